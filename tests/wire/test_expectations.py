"""What clients and monitors of memcached expect of it: the version, the statistics, and values that are refused."""
import select

from binary import APPEND, NOOP, SET, STAT, VERSION, BinaryConn, packet, store
from case import WireTest
from case_encodings import ENCODINGS, EncodingTest
from harness import setlistd, wait_until
from stored import stat, stats
from wire import Conn


class Version(WireTest):
    """The version is that of the servers, as one word, in every protocol."""
    smoke = True

    def said(self):
        """What each protocol says, without repetitions."""
        with Conn(self.proxy.port) as conn, BinaryConn(self.proxy.port) as binary:
            return {conn.ask("version").removeprefix("VERSION "), stats(conn)["version"],
                    binary.request(VERSION).value.decode(), self.binary_stats(binary)[b"version"].decode()}

    def binary_stats(self, conn):
        conn.request(STAT)
        found = {}
        while (response := conn.response()).key:
            found[response.key] = response.value
        return found

    def test_oldest_when_they_differ(self):
        self.serve([self.scripted_server(version=version) for version in (b"1.6.31", b"1.6.9", b"1.6.18")])
        self.assertEqual(self.said(), {"1.6.9"})

    def test_none_is_known(self):
        self.serve([self.scripted_server(hang_up=True)])
        self.assertEqual(self.said(), {"1.6.0"})

    def test_own(self):
        self.serve([self.scripted_server()])
        self.assertEqual("setlistd " + stats(self.conn)["setlistd_version"], setlistd("-V").stdout.strip())


class CasIds(EncodingTest):
    """Clients keep a cas id in 64 bits with a sign, or in a double."""
    smoke = True

    def test_small_enough(self):
        for name in ENCODINGS:
            for number in range(8):
                k = f"{name}.verbs-{number}"
                self.expect((f"sadd {k} ann bob", "STORED"), (f"srem {k} bob", "DELETED"))
                cas = self.conn.values(f"gets {k}")[0][k][2]
                self.assertTrue(0 < cas < 1 << 53, f"{k}: {cas}")
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas + 1}\r\nzoe"), "EXISTS", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "STORED", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "EXISTS", k)
                self.expect((f"sismember {k} zoe", "1"), (f"scard {k}", "1"))


class Swallowed(WireTest):
    """A request that is refused is answered once its data have come: a client that still sends them does not read, or takes the error
    for the end."""
    smoke = True
    PART = 100000
    LATE = "SERVER_ERROR object too large for cache"

    def setUp(self):
        self.serve(config="max_value = 1048576\n")
        self.watcher = self.connect(self.proxy)

    def is_silent(self, conn, sent):
        """Whether nothing was answered to all that was sent."""
        wait_until("all was read", lambda: stat(self.watcher, "stats", "bytes_read") >= sent)
        for _ in range(3):
            self.watcher.ask("version")
        return not select.select([conn.sock], [], [], 0)[0]

    def check(self, conn, head, data, end):
        """Half of the data, and silence; the rest, and the reply is for the caller to read."""
        before = stat(self.watcher, "stats", "bytes_read")
        conn.send(head + data[:self.PART])
        self.assertTrue(self.is_silent(conn, before + len(head) + self.PART), head)
        conn.send(data[self.PART:] + end)

    def test_text_and_meta(self):
        data = b"x" * (1 << 21)
        for line, error in (("set k 0 0 2097152", self.LATE), ("set k 0 0 2097152 noreply", None), ("cas k 0 0 2097152 1", self.LATE),
                            ("ms k 2097152", self.LATE), ("ms k 2097152 T5 q", self.LATE), ("append k 0 0 2097152", self.LATE),
                            ("set " + "k" * 251 + " 0 0 2097152", "CLIENT_ERROR key too long"),
                            ("set k x 0 2097152", "CLIENT_ERROR usage: set <key> <flags> <exptime> <bytes> [noreply]"),
                            ("ms k 2097152 Fx", "CLIENT_ERROR bad token in command line format"),
                            ("evadd E 0 0 2097152", self.LATE)):
            self.assertEqual(self.conn.set("k", b"old"), "STORED")
            self.check(self.conn, line.encode() + b"\r\n", data, b"\r\nmn\r\n")
            self.assertEqual([self.conn.line() for _ in range(2 if error else 1)], ([error.encode()] if error else []) + [b"MN"], line)
            kept = not line.startswith(("set k 0", "ms k 2097152 T", "ms k 2097152")) or line.endswith("Fx")
            self.assertEqual(self.conn.get("k"), b"old" if kept else None, line)

    def test_bare_line_feeds(self):
        self.check(self.conn, b"set k 0 0 2097152\n", b"x" * (1 << 21), b"\nmn\n")
        self.assertEqual([self.conn.line(), self.conn.line()], [self.LATE.encode(), b"MN"])

    def test_earlier_replies_are_not_held_back(self):
        self.conn.send(b"get nothing\r\nset k 0 0 2097152\r\nx")
        self.assertEqual(self.conn.line(), b"END")
        self.conn.send(b"x" * ((1 << 21) - 1) + b"\r\nget nothing\r\n")
        self.assertEqual([self.conn.line(), self.conn.line()], [self.LATE.encode(), b"END"])

    def test_binary(self):
        conn = BinaryConn(self.proxy.port)
        self.addCleanup(conn.close)
        data = b"x" * (1 << 21)
        for request, status in ((store(SET, "k", data, opaque=7), 3), (packet(APPEND, "k", value=data, opaque=7), 3),
                                (packet(0x30, value=data, opaque=7), 0x81), (store(SET, " " * 200, data, opaque=7), 4)):
            head = request[:-len(data)]
            self.check(conn, head, data, packet(NOOP, opaque=8))
            self.assertEqual([(response.status, response.opaque) for response in (conn.response(), conn.response())],
                             [(status, 7), (0, 8)], head)

    def test_client_that_goes_meanwhile(self):
        """Nothing is left of it, and it is not answered."""
        with Conn(self.proxy.port) as conn:
            conn.send(b"set k 0 0 2097152\r\nxxx")
        wait_until("it has gone", lambda: stat(self.watcher, "stats", "curr_connections") == 2)
        self.assertEqual(self.conn.get("k"), None)
