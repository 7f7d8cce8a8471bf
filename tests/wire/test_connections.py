"""Connections that are dead, or that nobody uses: to servers and from clients."""
import os
import time

from case import WireTest
from harness import ESTABLISHED, tcp_rows, wait_until

KEEPALIVE = "02"  # a timer in /proc/net/tcp
LARGE, COUNT = 50_000, 200     # more than the kernel takes for a server that reads nothing


def rows_of(port):
    """The rows of open sockets whose peer has this port."""
    return [row for row in tcp_rows() if row[3] == ESTABLISHED and int(row[2].split(":")[1], 16) == port]


def unsent(port):
    """The rows of sockets, closed ones too, which have something to send to this port."""
    return [row for row in tcp_rows() if int(row[2].split(":")[1], 16) == port and int(row[4].split(":")[0], 16)]


class Connections(WireTest):
    def assert_kept_alive(self, row, seconds):
        """The kernel probes the connection when it was idle for that long."""
        timer, left = row[5].split(":")
        self.assertEqual(timer, KEEPALIVE, row)
        self.assertLessEqual(int(left, 16) / os.sysconf("SC_CLK_TCK"), seconds, row)


class Servers(Connections):
    smoke = True

    def test_nothing_is_sent_after_a_timeout(self):
        """A server takes no more, its calls time out: what the kernel holds for it is discarded, and not executed minutes later."""
        server = self.memcached()
        conn = self.serve([server], patient=False, config="connect_timeout = 60000\nrequest_timeout = 500")
        self.assertEqual(conn.set("k", b"1"), "STORED")
        with server.process.paused():
            conn.send(b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (i, LARGE, b"x" * LARGE) for i in range(COUNT)))
            self.assertRegex(conn.line().decode(), "^SERVER_ERROR upstream .* outcome unknown$")
            self.assertEqual(unsent(server.port), [])

    def test_keepalive(self):
        server = self.memcached()
        self.assertEqual(self.serve([server]).set("k", b"1"), "STORED")
        (row,) = rows_of(server.port)
        self.assert_kept_alive(row, 15)


class Clients(Connections):
    smoke = True

    def test_keepalive(self):
        """The kernel looks for a client whose host has vanished after a minute."""
        conn = self.serve()
        self.assertEqual(conn.ask("mn"), "MN")
        (row,) = rows_of(conn.sock.getsockname()[1])
        self.assert_kept_alive(row, 60)
