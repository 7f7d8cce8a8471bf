"""The limits of the daemon: requests in flight, times, connections and descriptors, and the last replies."""
import contextlib
import resource
import socket
import threading
import time

import scripted
from case import marks
from case_bounds import BoundsTest
from harness import EVENLY, PATIENCE, wait_until
from scripted import LARGE
from stored import stat, stats
from wire import Closed, Conn

LINGER_MOST = 16 << 20  # of client/connection.c


class Window(BoundsTest):
    """How many requests whose values may be large are under way."""
    smoke = True

    def under_way(self, prelude, replies):
        self.serve_scripted()
        held = self.hold(self.server, "key-1")
        conn = self.connect(self.proxy)
        conn.send(prelude)
        for _ in range(replies):
            conn.line()
        held.get(conn, 1024)
        asked = self.count("cmd_get") - prelude.count(b"get") - 1
        held.release()
        for _ in range(1024):
            self.assertEqual(conn.read_values()[0]["key-1"][1], scripted.value_of(b"key-1"))
        return asked

    def test_small_values_open_it_slowly(self):
        """Replies without a value, and misses, do not affect it."""
        for prelude, replies, most in ((b"", 0, 4), (b"mn\r\n" * 2000, 2000, 4), (b"get missing\r\n" * 2000, 2000, 4),
                                       (b"get key-2\r\n" * 8, 24, 8)):
            self.assertLessEqual(self.under_way(prelude, replies), most, prelude[:20])

    def test_one_large_value_closes_it(self):
        """Two hundred small replies widen the window; then one of the requests in flight has a large reply."""
        self.serve_scripted()
        self.server.faults[b"key-big"] = scripted.large
        conn = self.connect(self.proxy)
        conn.send(b"get key-2\r\n" * 200 + b"get key-big\r\n")
        for _ in range(201):
            conn.read_values()
        held = self.hold(self.server, "key-1")
        before = self.count("cmd_get")
        held.get(conn, 1024)
        self.assertLessEqual(self.count("cmd_get") - before, 4)

    def test_what_is_sent_counts(self):
        """Values for a server that does not read: as many as fit into client_buffer."""
        self.serve_scripted()
        held = self.hold(self.server, "key-1")
        conn = self.connect(self.proxy)
        sender = threading.Thread(target=lambda: conn.send((b"set key-1 0 0 1000000\r\n" + b"x" * 1000000 + b"\r\n") * 40), daemon=True)
        sender.start()
        self.wait_for("cmd_set", 4)
        self.assertLessEqual(self.count("cmd_set"), 6)
        held.release()
        for _ in range(40):
            conn.line()
        sender.join(PATIENCE)


class Times(BoundsTest):
    smoke = True

    def test_requests_that_are_not_complete(self):
        self.serve("request_read_timeout = 500")
        quiet = self.connect(self.proxy)
        self.assertEqual(quiet.ask("mn"), "MN")
        parts = (b"get ke", b"set k 0 0 100\r\nhalf", b"set k 0 0 9000000\r\n" + b"x" * 100)
        conns = [self.connect(self.proxy) for _ in parts]
        for conn, part in zip(conns, parts):
            conn.send(part)
        for conn in conns:
            self.assertEqual(conn.rest(), b"CLIENT_ERROR request not complete in time\r\n")
        self.assertEqual(stats(self.watcher)["closed_unfinished_clients"], "3")
        self.assertEqual(quiet.ask("mn"), "MN")

    def test_a_byte_now_and_then(self):
        self.serve("request_read_timeout = 500")
        conn = self.connect(self.proxy)
        conn.send(b"mn\r\nget ")

        def drip():
            try:
                conn.send(b"x")
            except OSError:
                return True
            return stats(self.watcher)["closed_unfinished_clients"] == "1"
        wait_until("it is closed", drip, pause=0.02)
        self.assertEqual(conn.line(), b"MN")

    def test_what_the_daemon_does_not_read_yet(self):
        """A client is not closed while its request waits for others."""
        self.serve_scripted("request_read_timeout = 500")
        held = self.hold(self.server, "key-1")
        waiting, late = self.connect(self.proxy), self.connect(self.proxy)
        held.get(waiting, more=b"flush_all\r\nget key-2\r\n")
        late.send(b"get ke")
        self.assertIn(b"CLIENT_ERROR", late.rest())
        held.release()
        self.assertIn("key-1", waiting.read_values()[0])
        self.assertEqual(waiting.line(), b"OK")
        self.assertIn("key-2", waiting.read_values()[0])

    @marks(smoke=False)
    def test_replies_that_wait_for_an_earlier_one(self):
        """Their client cannot read any of them. Another one, which could but does not, is closed meanwhile."""
        self.serve("client_buffer = 65536", servers=[self.memcached(), self.scripted_server()])
        key, big = self.key_on(self.watcher, self.server), self.keys_on(self.watcher, self.servers[0], 3, "big")
        size = 360000  # three are just too many: after they are written, the bytes that the kernel does not accept are not
        wait_until("the server is greeted", lambda: self.watcher.get(key))
        for each in big:
            self.assertEqual(self.watcher.set(each, b"x" * size), "STORED")
        held = self.hold(self.server, key)
        conn, deaf = self.connect(self.proxy), self.deaf()
        conn.send(b"set %s 0 0 1 noreply\r\nx\r\nget %s\r\n" % (key.encode(), " ".join(big).encode()))
        deaf.sendall(b"get %s\r\n" % " ".join(big * 2).encode())
        self.wait_for("closed_slow_clients")
        held.release()
        self.assertEqual({name: len(value) for name, (_, value) in conn.read_values()[0].items()}, dict.fromkeys(big, size))
        self.assertEqual(stats(self.watcher)["closed_slow_clients"], "1")

    @marks(smoke=False)
    def test_idle_clients(self):
        self.serve_scripted("idle_timeout = 1000")
        held = self.hold(self.server, "key-1")
        waiting, idle = self.connect(self.proxy), self.connect(self.proxy)
        held.get(waiting)
        self.assertEqual(idle.rest(), b"")
        held.release()
        self.assertIn("key-1", waiting.read_values()[0])
        self.assertEqual(waiting.rest(), b"")
        self.assertGreaterEqual(stat(self.connect(self.proxy), "stats", "closed_idle_clients"), 2)

    def test_idle_clients_stay(self):
        """By default."""
        self.serve("request_read_timeout = 500")
        late = self.connect(self.proxy)
        late.send(b"g")
        self.assertIn(b"CLIENT_ERROR", late.rest())
        self.assertEqual(stats(self.watcher)["closed_idle_clients"], "0")


class Places(BoundsTest):
    smoke = True

    def place(self):
        """A new connection that was let in, or None."""
        conn = self.connect(self.proxy)
        try:
            return conn if conn.ask("mn") == "MN" else conn.close()
        except (Closed, OSError):
            return conn.close()

    def fill(self, count):
        return [wait_until("a place", self.place) for _ in range(count)]

    def replaced(self, config, *args):
        _, self.proxy = self.pool(1, *args, config=f"max_connections = 3\nreplace_idle = 1\n{config}")
        first, second, third = self.fill(3)
        third.send(b"get ")
        newcomer = wait_until("a place", self.place, pause=0.05)
        self.assertEqual(stats(newcomer)["replaced_clients"], "1")
        return first, second

    def test_the_one_idle_longest_goes(self):
        first, second = self.replaced("")
        self.assertEqual(first.rest(), b"")
        self.assertEqual(second.ask("mn"), "MN")

    @marks(smoke=False)
    def test_of_several_threads(self):
        """With three threads, all connections that may be closed are in the first one."""
        self.replaced(EVENLY, "-t", "2")
        self.replaced("", "-t", "3")

    def test_nobody_goes_unless_told(self):
        _, self.proxy = self.pool(1, config="max_connections = 3")
        conns = self.fill(3)
        self.assertEqual(self.connect(self.proxy).rest(), b"ERROR Too many open connections\r\n")
        for conn in conns:
            self.assertEqual(conn.ask("mn"), "MN")

    @marks(smoke=False)
    def test_requests_that_are_not_complete(self):
        """Clients that occupy all connections are closed after their timeout, and others get these."""
        _, self.proxy = self.pool(1, config="max_connections = 4\nrequest_read_timeout = 500")
        parts = (b"get ke", b"g", b"set key 0 0 100\r\nab", b"sadd key a")
        conns = self.fill(len(parts))
        for conn, part in zip(conns, parts):
            conn.send(part)
        newcomers = self.fill(len(parts))
        for conn in conns:
            self.assertEqual(conn.rest(), b"CLIENT_ERROR request not complete in time\r\n")
        self.assertEqual(stats(newcomers[0])["closed_unfinished_clients"], str(len(parts)))


def few(descriptors):
    """Returns a command that runs another one with this number of descriptors."""
    return ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"]


class Descriptors(BoundsTest):
    smoke = True

    def test_few_are_allowed(self):
        """The servers have reserved descriptors: one that restarts is used, however many clients there are."""
        self.serve(under=few(100))
        conns = [self.connect(self.proxy) for _ in range(150)]
        self.assertEqual(self.watcher.set("k", b"x"), "STORED")
        self.server.kill()
        self.server.start(self.server.port)
        wait_until("it is used again", lambda: self.watcher.set("k", b"x") == "STORED")
        places = stat(self.watcher, "stats settings", "max_connections")
        self.assertIn(places, range(20, 90))
        self.assertRegex(self.proxy.process.stderr(), rf"max_connections is only {places}, not 10000\b")
        self.assertNotIn("cannot accept connections", self.proxy.process.stderr())
        del conns

    def test_too_few_even_for_servers(self):
        with self.assertRaisesRegex(AssertionError, "limit of file descriptors is 30"):
            self.serve(under=few(30))

    @marks(smoke=False)
    def test_none_left(self):
        """The listener pauses, which is logged once; later it continues."""
        self.serve()
        limits = resource.prlimit(self.proxy.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.proxy.pid, resource.RLIMIT_NOFILE, (self.proxy.fd_count(), limits[1]))
        conns = []

        def said():
            conns.append(self.connect(self.proxy))
            return "cannot accept connections" in self.proxy.process.stderr()
        wait_until("it is said", said, pause=0.1)
        time.sleep(1)  # The subject is time: ten more attempts are made in it, which nothing shows. Fewer prove less.
        self.assertEqual(self.watcher.ask("mn"), "MN")
        self.assertEqual(self.proxy.process.stderr().count("cannot accept connections"), 1)
        resource.prlimit(self.proxy.pid, resource.RLIMIT_NOFILE, limits)
        for conn in conns:
            self.assertEqual(conn.ask("mn"), "MN")


class LastReplies(BoundsTest):
    """Executed requests are answered, although other bytes are never read."""
    smoke = True

    def reader(self):
        """A connection with a small window: much of a reply stays in the kernel on the daemon's side."""
        conn = self.connect(self.proxy)
        conn.sock = self.deaf()
        conn.sock.settimeout(PATIENCE)
        return conn


    @marks(smoke=False)
    def test_at_the_end_of_the_daemon(self):
        self.serve_scripted("shutdown_timeout = 600000")
        held = self.hold(self.server, "key-1")
        self.server.faults[b"key-big"] = scripted.large
        conn = self.reader()
        held.get(conn, more=b"get key-big\r\n")
        self.proxy.begin_to_end()
        conn.send(b"get key-2\r\n" * 1000)
        held.release()
        self.assertIn("key-1", conn.read_values()[0])
        self.assertEqual(conn.read_values()[0]["key-big"][1], LARGE)
        self.assertEqual(conn.rest(), b"")
        conn.close()
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)

    def test_after_a_fatal_error(self):
        self.serve()
        self.assertEqual(self.watcher.set("big", LARGE), "STORED")
        conn = self.reader()
        conn.send(b"get big\r\n" * 2 + b"x" * 1100000)
        for _ in range(2):
            self.assertEqual(conn.read_values()[0]["big"][1], LARGE)
        self.assertRegex(conn.line(), b"ERROR")
        self.assertEqual(conn.rest(), b"")

    def test_a_peer_that_never_ends(self):
        """It is waited for no longer than some seconds."""
        self.serve()
        conn = self.connect(self.proxy)
        conn.send(b"quit\r\n" + b"mn\r\n" * 10000)
        self.assertEqual(conn.rest(), b"")
        wait_until("it is closed", lambda: stats(self.watcher)["curr_connections"] == "1", pause=0.05)

    def test_a_peer_that_goes_on(self):
        """Only a limited number of bytes after a fatal error is discarded."""
        self.serve()
        conn, part = self.connect(self.proxy), b"x" * (1 << 20)
        sent = 4 * len(part)
        conn.send(b"x" * sent)
        self.assertRegex(conn.line(), rb"^(ERROR|CLIENT_ERROR) ")
        with contextlib.suppress(OSError):
            while sent < 32 * LINGER_MOST:
                sent += conn.sock.send(part)
        self.assertLess(sent, 4 * LINGER_MOST, "more than that, and what the kernel may hold")
        self.assertEqual(self.watcher.ask("mn"), "MN")

    @marks(smoke=False)
    def test_what_was_counted(self):
        """A client has many changes in flight at the end: the executed ones are exactly the answered ones."""
        self.serve("client_buffer = 65536\nshutdown_timeout = 600000")
        first, requests = 10 ** 18, 45000
        self.assertEqual(self.watcher.set("n", b"%d" % first), "STORED")
        conn = self.reader()
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        sender = threading.Thread(target=conn.send, args=(b"incr n 1\r\n" * requests,), daemon=True)
        sender.start()
        for number in range(1, 1001):
            self.assertEqual(int(conn.line()), first + number)
        sender.join(PATIENCE)
        self.assertFalse(sender.is_alive(), "the kernel takes less than it is thought to")
        self.proxy.begin_to_end()
        replies = conn.rest().split()
        self.assertEqual([int(reply) for reply in replies], list(range(first + 1001, first + 1001 + len(replies))))
        with Conn(self.server.port) as direct:
            self.assertEqual(direct.get("n"), b"%d" % (first + 1000 + len(replies)))
        self.assertLess(1000 + len(replies), requests, "all was carried out before the end")
        conn.close()
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)
