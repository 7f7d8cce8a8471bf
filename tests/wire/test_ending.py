"""The end of the daemon: signals, and the requests that it still answers."""
import contextlib
import os
import socket
import threading
import time

import scripted
from case import WireTest, marks
from harness import EVENLY, PATIENCE, wait_until
from stored import stat
from wire import Closed, Conn

# Longer than the limit of any wait here: a wait for requests in flight would fail the test.
UNHURRIED = "shutdown_timeout = 600000"


class Ending(WireTest):
    alone = True
    smoke = True

    def status_of(self, proxy, number=15):
        proxy.process.signal(number)
        return proxy.process.child.wait(PATIENCE)

    def test_signals(self):
        server = self.memcached()
        for number in (15, 2):
            self.assertEqual(self.status_of(self.setlistd([server], config=UNHURRIED), number), 0)

    def test_signals_up_to_the_last_moment(self):
        """Who sends one more while it exits does not turn a clean exit into a killed one."""
        server = self.memcached()
        for _ in range(60):
            proxy = self.setlistd([server], config=UNHURRIED)
            while proxy.process.alive():
                proxy.process.child.send_signal(15)
                time.sleep(0.00005)  # a process that receives only signals does nothing else
            self.assertEqual(proxy.process.child.wait(PATIENCE), 0)

    def test_signal_at_the_first_socket(self):
        """A daemon that has just started can be stopped: the signal is sent when the first of many sockets appears."""
        server = self.memcached()
        folder = self.scratch()
        paths = [os.path.join(folder, str(number)) for number in range(500)]
        listen = 'listen = { "%s" }' % '", "'.join(f"unix:{path}" for path in paths)
        for number in (15, 2) * 5:
            proxy = self.setlistd([server], config=f"{UNHURRIED}\n{listen}", tcp=False)
            while not os.path.exists(paths[0]):
                self.assertTrue(proxy.process.alive(), proxy.process.describe())
            self.assertEqual(self.status_of(proxy, number), 0)
            proxy.stop()

    @marks(smoke=False)
    def test_idle_clients_do_not_hold_it_up(self):
        proxy = self.setlistd([self.memcached()], config=UNHURRIED)
        conns = [self.connect(proxy) for _ in range(50)]
        conns[0].send(b"set k 0 0 100\r\nhalf")
        self.assertEqual(self.status_of(proxy), 0)
        for conn in conns:
            self.assertEqual(conn.rest(), b"")

    def test_under_load(self):
        proxy = self.setlistd([self.memcached(), self.memcached()], "-t", "2", config=EVENLY)
        counts = [0] * 8
        threads = [threading.Thread(target=self.hammer, args=(proxy.port, counts, i), daemon=True) for i in range(8)]
        for thread in threads:
            thread.start()
        wait_until("all clients are at work", lambda: min(counts) > 10)
        self.assertEqual(self.status_of(proxy), 0)
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive(), "a client hangs after the end")

    @staticmethod
    def hammer(port, counts, number):
        with contextlib.suppress(Closed, OSError), Conn(port) as conn:
            while True:
                conn.send(b"set k%d 0 0 1\r\n1\r\nget k%d\r\nsadd s%d a\r\n" % (number, number, number))
                conn.line(), conn.read_values(), conn.line()
                counts[number] += 1


    @marks(smoke=False)
    def test_what_is_in_flight_is_answered(self):
        """A slow server: the reply is still sent."""
        conn = self.serve([self.scripted_server()])
        held = self.hold(self.servers[0], "key-1")
        self.assertEqual(conn.get("key-0"), scripted.value_of(b"key-0"))
        held.get(conn)
        self.proxy.begin_to_end()
        held.release()
        self.assertEqual(conn.read_values()[0]["key-1"][1], scripted.value_of(b"key-1"))
        self.assertEqual(conn.rest(), b"")
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    def test_what_was_read_and_waits_is_answered(self):
        """Requests after one that must wait for others, received before the signal."""
        conn = self.serve([self.scripted_server()], config=UNHURRIED)
        held = self.hold(self.servers[0], "key-1")
        held.get(conn, more=b"flush_all\r\nget key-0\r\nget key-2\r\nget key-half")
        self.assertEqual(self.connect(self.proxy).ask("mn"), "MN")
        self.proxy.begin_to_end()
        held.release()
        self.assertIn("key-1", conn.read_values()[0])
        self.assertEqual(conn.line(), b"OK")
        for key in ("key-0", "key-2"):
            self.assertIn(key, conn.read_values()[0])
        self.assertEqual(conn.rest(), b"")
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    def test_what_was_read_from_a_client_that_sends_no_more_is_answered(self):
        """The client has closed its side before the signal, while its requests waited for an earlier one that writes."""
        conn = self.serve([self.scripted_server()], config=UNHURRIED)
        held = self.hold(self.servers[0], "key-1")
        conn.send(b"sunionstore all key-1\r\nget key-0\r\nget key-2\r\n")
        held.wait()
        conn.half_close()
        other = self.connect(self.proxy)
        self.assertEqual([other.ask("mn") for _ in range(3)], ["MN"] * 3)   # so the loop has detected the end of the first one
        other.close()
        self.proxy.begin_to_end()
        held.release()
        conn.line()
        for key in ("key-0", "key-2"):
            self.assertIn(key, conn.read_values()[0])
        self.assertEqual(conn.rest(), b"")
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    @marks(smoke=False)
    def test_servers_that_never_answer_do_not_hold_it_up(self):
        """The timeout of a request passes, and the daemon waits no longer."""
        conn = self.serve([self.scripted_server()], config=f"{UNHURRIED}\nrequest_timeout = 1000")
        wait_until("the server is greeted", lambda: conn.values("get key-0")[1] == "END")
        self.hold(self.servers[0], "key-1").get(conn)
        self.assertEqual(self.status_of(self.proxy), 0)

class Unread(WireTest):
    """A connection is closed while replies are in flight to the client, which keeps sending requests."""
    smoke = True
    FIRST, REQUESTS = 10 ** 18, 5000
    DISCARDED, MORE = 16 << 20, 40 << 20  # bytes; more than the kernel buffers

    def counted(self):
        return int(self.direct.get("n")) - self.FIRST

    def pipeline(self):
        """The kernel holds most of the replies for this client, which reads none yet."""
        self.serve(1, config=UNHURRIED)
        self.direct = self.connect(self.servers[0])
        self.assertEqual(self.conn.set("n", b"%d" % self.FIRST), "STORED")
        sock = self.deaf()
        sock.sendall(b"incr n 1\r\n" * self.REQUESTS)
        wait_until("all are carried out", lambda: self.counted() == self.REQUESTS)
        wait_until("no reply waits in setlistd", lambda: stat(self.conn, "stats", "client_bytes") < 100000)
        return sock

    def go_on(self, sock):
        """Sends more requests, until the connection breaks or the peer stops reading."""
        part, sent = b"incr n 1\r\n" * 100000, 0
        sock.settimeout(0.5)
        with contextlib.suppress(ConnectionError):
            while sent < self.MORE:
                try:
                    sent += sock.send(part)
                except TimeoutError:
                    if sent > self.DISCARDED:
                        break
        sock.settimeout(PATIENCE)

    def replies(self, sock, size=1 << 16):
        data = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(size):
                data += part
        return bytes(data).split(b"\r\n")[:-1]

    def assert_all_answered(self, replies):
        self.assertEqual([int(reply) - self.FIRST for reply in replies], list(range(1, self.counted() + 1)))

    def test_shutdown(self):
        sock = self.pipeline()
        self.proxy.begin_to_end()
        self.go_on(sock)
        self.assert_all_answered(self.replies(sock))
        sock.close()
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    def test_errors_that_close(self):
        for last, reply in ((b"quit\r\n", []), (b"GET / HTTP/1.0\r\n\r\n", []), (b"set x 0 0 1\r\nxxx\r\n", [b"CLIENT_ERROR bad data chunk"])):
            sock = self.pipeline()
            sock.sendall(last)
            self.go_on(sock)
            replies = self.replies(sock)
            self.assertEqual(replies[self.REQUESTS:], reply, last)
            self.assert_all_answered(replies[:self.REQUESTS])
            sock.close()

    @marks(smoke=False)
    def test_a_client_that_never_stops(self):
        """It sends and reads concurrently, and knows how many of its requests were executed."""
        for _ in range(5):
            self.serve(1, "-t", "2", config=UNHURRIED)
            self.direct = self.connect(self.servers[0])
            self.assertEqual(self.conn.set("n", b"%d" % self.FIRST), "STORED")
            sock, replies = self.deaf(), []
            sock.settimeout(None)
            threads = [threading.Thread(target=self.send_for_ever, args=(sock,), daemon=True),
                       threading.Thread(target=lambda into, at: into.extend(self.replies(at, 100)), args=(replies, sock), daemon=True)]
            for thread in threads:
                thread.start()
            wait_until("many are carried out", lambda: self.counted() > 10000)
            self.proxy.begin_to_end()
            threads[1].join(PATIENCE)
            self.assertFalse(threads[1].is_alive())
            self.assert_all_answered(replies)
            with contextlib.suppress(OSError):  # it was reset
                sock.shutdown(socket.SHUT_RDWR)
            threads[0].join(PATIENCE)
            self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    @staticmethod
    def send_for_ever(sock):
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(b"incr n 1\r\n" * 10000)
