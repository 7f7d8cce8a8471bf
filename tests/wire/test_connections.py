"""Dead and idle connections, to servers and from clients."""
import os
import time

from case import WireTest
from gate import Gate
from harness import ESTABLISHED, tcp_rows, wait_until
from stored import stat, stats

KEEPALIVE = "02"  # a timer in /proc/net/tcp
LARGE, COUNT = 50_000, 200     # more than the kernel buffers for a server that reads nothing


class Firewall(Gate):
    """A relay that can drop its connections silently: it discards their bytes, and closes none of them."""

    def __init__(self, port):
        self.forgotten = set()
        super().__init__(port)

    def forget(self):
        self.forgotten = set(self.socks)

    def _relay(self, source, target, look):
        def drop(data):
            look(data)
            while source in self.forgotten and source.recv(1 << 16):
                pass
        super()._relay(source, target, drop)


def rows_of(port):
    """The rows of open sockets whose peer has this port."""
    return [row for row in tcp_rows() if row[3] == ESTABLISHED and int(row[2].split(":")[1], 16) == port]


def unsent(port):
    """The entries of sockets, including closed ones, with unsent bytes for this port."""
    return [row for row in tcp_rows() if int(row[2].split(":")[1], 16) == port and int(row[4].split(":")[0], 16)]


class Connections(WireTest):
    def store(self, conn):
        """Also if the first connection takes longer than a short timeout."""
        wait_until("it is stored", lambda: conn.set("k", b"1") == "STORED")

    def assert_kept_alive(self, row, seconds):
        """The kernel probes the connection when it was idle for that long."""
        timer, left = row[5].split(":")
        self.assertEqual(timer, KEEPALIVE, row)
        self.assertLessEqual(int(left, 16) / os.sysconf("SC_CLK_TCK"), seconds, row)


class Servers(Connections):
    smoke = True

    def test_nothing_is_sent_after_a_timeout(self):
        """A server stops reading, its calls time out: bytes for it in the kernel are discarded, and not executed minutes later."""
        server = self.memcached()
        conn = self.serve([server], patient=False, config="connect_timeout = 60000\nrequest_timeout = 2000")
        self.store(conn)
        with server.process.paused():
            conn.send(b"".join(b"set k%d 0 0 %d\r\n%s\r\n" % (i, LARGE, b"x" * LARGE) for i in range(COUNT)))
            self.assertRegex(conn.line().decode(), "^SERVER_ERROR upstream .* outcome unknown$")
            self.assertEqual(unsent(server.port), [])

    def test_keepalive(self):
        server = self.memcached()
        self.store(self.serve([server]))
        (row,) = rows_of(server.port)
        self.assert_kept_alive(row, 15)


class Clients(Connections):
    smoke = True

    def test_keepalive(self):
        """The kernel looks for a client whose host has vanished after a minute."""
        conn = self.serve()
        self.assertEqual(conn.ask("mn"), "MN")
        ports = [self.proxy.port, conn.sock.getsockname()[1]]
        (row,) = [row for row in tcp_rows() if row[3] == ESTABLISHED and [int(end.split(":")[1], 16) for end in row[1:3]] == ports]
        self.assert_kept_alive(row, 60)


class Idle(Connections):
    """This test takes as long as an idle connection."""

    IDLE = 10.5

    def setUp(self):
        self.server = self.memcached()
        self.firewall = Firewall(self.server.port)
        self.addCleanup(self.firewall.stop)

    def test_a_firewall_forgets(self):
        """The connection is found dead before a call is sent on it, so that no outcome is unknown."""
        conn = self.serve([self.firewall], patient=False, config="request_timeout = 3000\nconnect_timeout = 60000")
        self.store(conn)
        time.sleep(self.IDLE)
        self.firewall.forget()
        conn.send(b"incr k 1\r\nappend k 0 0 1\r\n5\r\nget k\r\n")
        self.assertEqual([conn.line() for _ in range(2)], [b"2", b"STORED"])
        self.assertEqual(conn.read_values()[0]["k"][1], b"25")
        self.assertEqual(stat(conn, "stats upstream", f"{self.firewall.name}:connects"), 2)

    def test_an_idle_connection_is_kept(self):
        conn = self.serve([self.firewall])
        self.store(conn)
        time.sleep(self.IDLE)
        conn.send(b"incr k 1\r\n" * 100)
        self.assertEqual([conn.line() for _ in range(100)], [b"%d" % i for i in range(2, 102)])
        self.assertEqual(stat(conn, "stats upstream", f"{self.firewall.name}:connects"), 1)
        self.assertEqual(stats(conn, "stats upstream")[f"{self.firewall.name}:state"], "up")

    def test_the_server_has_gone(self):
        """Calls that wait for the reply of an idle server fail if there is none, and none of them was sent."""
        conn = self.serve([self.server], patient=False, config="request_timeout = 500\nconnect_timeout = 500\nretry_min = 1\nretry_max = 20")
        self.store(conn)
        time.sleep(self.IDLE)
        with self.server.process.paused():
            reply = conn.ask("incr k 1")
        self.assertRegex(reply, "^SERVER_ERROR upstream ")
        self.assertNotIn("unknown", reply)
        wait_until("it is up again", lambda: conn.ask("get k").startswith("VALUE") and [conn.line() for _ in range(2)] == [b"1", b"END"])
