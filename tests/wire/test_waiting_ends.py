"""A client that waits for elements, with any later requests: once its connection is closed, no task waits and no element is removed."""
import contextlib
import os
import random
import struct
import threading

import binary
from case import WireTest
from case_tls import Secured
from harness import PATIENCE, accepts, wait_until
from stored import counter, stat
from wire import Conn, usage

COMMANDS = 'commands = "q|"\n'
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32)

# A valid request of each command.
VALID = tuple(line.encode() + b"\r\n" for line in (
    "get a", "gets a b", "gat 0 a", "gats 0 a b", "get q|smembers|s", "get q|blpop|0|z", "get a q|blpop|0|z", "mg q|brpop|0|z v",
    "set a 0 0 1\r\nx", "add a 0 0 1\r\nx", "replace a 0 0 1\r\nx", "append a 0 0 1\r\nx", "prepend a 0 0 1\r\nx", "cas a 0 0 1 5\r\nx",
    "set a 0 0 1 noreply\r\nx", "incr a 1", "decr a 1", "delete a", "touch a 0", "mg a v", "ms a 1\r\nx", "ma a", "md a", "me a", "mn",
    "sadd s m", "saddex s 9 m", "sexpire s 9 m", "sttl s m", "saddx s m", "srem s m", "sset s m n", "smove s t m", "sclaim s m", "spop s", "stake s", "scompact s", "smembers s t", "scard s",
    "sismember s m", "smismember s m n", "srandmember s", "sscan s 5", "srange s a z 5", "scount s a z", "sinfo s", "sunion s t",
    "sinter s t", "sdiff s t", "sunioncard 2 s t", "sintercard 2 s t", "sdiffcard 2 s t", "sunionstore u s t", "sinterstore u s t",
    "sdiffstore u s t", "slease v", "sload v 8f3k2w0q x", "sfill v 8f3k2w0q x", "llease w", "lload w 8f3k2w0q x", "lfill w 8f3k2w0q x",
    "rpush l x", "lpush l x", "rpushx l x", "lpushx l x", "lpop l", "rpop l", "lrange l 0 -1", "lindex l 0", "llen l", "lpos l x",
    "linsert l after x y", "lmove l m left right", "rpoplpush l m", "lmpop 5 left l m", "lrem l 1 x", "lset l 0 x", "ltrim l 0 5",
    "blpop 0 z", "brpop 0 z y", "blmove 0 z y left right", "blpop 0.05 z", "evincr E", "evadd E 0 0 1\r\nx", "evcount E", "evrange E now",
    "evlast E 5", "evtop E 5", "blmpop 0 5 left z y", "evlimit E 5 60", "help", "route a", "stats", "version", "verbosity 1", "lru_crawler metadump all", "flush_all", "quit"))

# Lines that are refused. The first ones leave it unknown where the next request begins.
FATAL = (b"set x 0 0 zz\r\n", b"ms x zz\r\n", b"evadd E 0 0 zz\r\n", b"\x80", b"\x80\x00\x00\x01" + bytes(20), HELLO, b"*1\r\n$4\r\nPING\r\n",
         b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\nblpop 0 k\r\n", b"get " + b"x" * 5000 + b"\r\n",
         b"y" * 5000)
REFUSED = (b"nonsense\r\n", b"get\r\n", b"get " + b"x" * 251 + b"\r\n", b"set " + b"x" * 251 + b" 0 0 3\r\nabc\r\n", b"set x 0 0 3000\r\n" + b"x" * 3002,
           b"set x 0 0 3000\r\nhalf", b"sadd s a\0b\r\n", b"\r\n", b"blpop x k\r\n", b"get \x01\r\n", b"set x 0 0 3\r\nabcdef\r\n")
HALF = (b"g", b"get", b"get a\r", b"set x 0 0 10\r\n", b"set x 0 0 10\r\nabc", b"set x 0 0 3\r\nabc", b"set x 0 0 3\r\nabc\r", b"ms x 10\r\nabc",
        b"evadd E 0 0 10\r\nabc", b"blpop 0 z", b"GET / HT")
AFTER = (b"", b"get a\r\nsinter s t\r\n", *VALID, *FATAL, *REFUSED, *HALF, *(valid + fatal for valid in VALID[::9] for fatal in FATAL), *(fatal + VALID[0] for fatal in FATAL),
         *(refused * 50 + half for refused in REFUSED[:3] for half in HALF), b"".join(VALID))
WAYS = "close", "half_close", "reset"
WAITS = ("blpop 0 %s", "brpop 0 none %s", "blmove 0 %s none left right", "get q|blpop|0|%s", "get none q|blpop|0|%s", "mg q|brpop|0|%s v")


class Ending(WireTest):
    CONFIG = f"{COMMANDS}max_line = 4096\nmax_value = 2048\n"

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.scratch(), "socket")
        self.servers, self.proxy = self.pool(1, "-s", self.path, config=self.CONFIG)
        wait_until("it listens on the Unix socket too", lambda: accepts(self.path))
        self.conn = self.connect(self.proxy)
        self.held = self.bytes_held()

    def bytes_held(self):
        return stat(self.conn, "stats", "client_bytes")

    def open(self, key):
        """Returns a connection, and how it waits for an element of this key."""
        line = random.Random(key).choice(WAITS) % key
        return self.connect(self.proxy), line.encode() + b"\r\n"

    def all_have_ended(self, keys):
        """Each connection is closed, no client waits, and each element is returned to the next client that pops it."""
        wait_until("all are closed", lambda: stat(self.conn, "stats", "curr_connections") == 1)
        wait_until("nothing waits", lambda: counter(self.conn, "waiting_clients") == 0)
        wait_until("nothing is held", lambda: self.bytes_held() < self.held + (64 << 10))
        for key in keys:
            self.assertEqual(self.conn.ask(f"rpush {key} x"), "STORED", keys[key])
            self.assertEqual(self.conn.values(f"lpop {key}"), ({key: (0, b"x")}, "END"), keys[key])

    def end_all(self, ways, cases):
        conns, keys = [], {}
        for way in ways:
            for after in cases:
                key = f"k{len(keys)}"
                conn, line = self.open(key)
                conn.send(line + after)
                keys[key] = (way, line + after[:60])
                conns.append((conn, way))
        for conn, way in conns:
            # It may have been closed already.
            with contextlib.suppress(OSError):
                getattr(conn, way)()
        for conn, way in conns:
            if way == "half_close":
                conn.rest()
        self.all_have_ended(keys)


class Ends(Ending):
    smoke = True
    STEP = 1

    def test_each(self):
        self.end_all(WAYS, AFTER[::self.STEP])

    def test_at_random(self):
        dice = random.Random(20261126)
        cases = [b"".join(dice.choice(dice.choice((VALID, REFUSED))) for _ in range(dice.randrange(40))) +
                 dice.choice(dice.choice((FATAL, HALF, VALID))) for _ in range(100)]
        self.end_all([dice.choice(WAYS) for _ in range(3)], cases[::self.STEP])


class EndsInThreads(Ends):
    CONFIG = f"{Ending.CONFIG}threads = 3\nthread_load = 0\n"


class EndsInUnix(Ends):
    def connect(self, peer, **kwargs):
        return super().connect(self.path if peer is getattr(self, "proxy", None) else peer, **kwargs)


class EndsInTls(Secured, Ends):
    STEP = 3


class EndsInBinary(Ends):
    """The list is a key of a get of the binary protocol."""
    AFTER = (b"", binary.packet(binary.GET, "a"), binary.packet(binary.NOOP) * 50, binary.store(binary.SET, "a", b"x"),
             binary.packet(binary.QUIT), binary.packet(binary.GET, "q|blpop|0|z"), binary.packet(binary.FLUSH), b"\x80",
             binary.packet(binary.GET, "a")[:20], binary.packet(binary.GET, "a", body=99), b"get a\r\n", b"GET / HTTP/1.1\r\n\r\n",
             binary.packet(binary.GET, "x" * 251), binary.packet(0x99, "a"), binary.store(binary.SET, "a", b"x" * 3000)[:1000],
             binary.packet(binary.GET, "a", magic=0x81), struct.pack(">BBHBBHIIQ", 0x80, 0, 5, 0, 0, 0, 1 << 31, 0, 0))

    def open(self, key):
        return self.connect(self.proxy), binary.packet(binary.GET, f"q|blpop|0|{key}")

    def test_each(self):
        self.end_all(WAYS, self.AFTER)

    def test_at_random(self):
        dice = random.Random(20261126)
        self.end_all(WAYS, [b"".join(dice.choice(self.AFTER) for _ in range(dice.randrange(1, 9))) for _ in range(40)])


class Closing(Ending):
    """A client whose connection will be closed does not wait, although it is still connected."""
    smoke = True

    def test_an_unreadable_request(self):
        for after, error in ((b"set x 0 0 zz\r\n", usage("set") + b"\r\n"), (b"GET / HTTP/1.1\r\n", b""),
                             (b"\x80", b"CLIENT_ERROR only the memcached protocols are supported here\r\n"),
                             (b"y" * 5000, b"CLIENT_ERROR line too long\r\n")):
            conn = self.connect(self.proxy)
            conn.send(b"blpop 0 k\r\nget\r\n" + after)
            self.assertEqual(conn.rest(), b"END\r\nERROR\r\n" + error)
        self.all_have_ended({"k": "k"})

    def test_quit_waits(self):
        """quit is a request like any other: the client is connected when the element is returned."""
        conn = self.connect(self.proxy)
        conn.send(b"blpop 0 k\r\nquit\r\n")
        wait_until("it waits", lambda: counter(self.conn, "waiting_clients") == 1)
        self.assertEqual(self.conn.ask("rpush k x"), "STORED")
        self.assertEqual(conn.rest(), b"VALUE k 0 1\r\nx\r\nEND\r\n")

    def test_all_requests_are_answered(self):
        """A client that has shut down its sending side receives all its replies, and none of its commands waits."""
        for times in (1, 30):
            conn = self.connect(self.proxy)
            conn.send((b"blpop 0 z\r\nmn\r\nget q|blpop|0|z\r\nnonsense\r\nget none\r\n") * times + b"get")
            conn.half_close()
            self.assertEqual(conn.rest(), b"END\r\nMN\r\nEND\r\nERROR\r\nEND\r\n" * times)
        self.all_have_ended({"z": "z"})

    def test_at_that_moment(self):
        """A push and the end of the connection arrive before the daemon reads either. A Unix socket is closed immediately."""
        for number, after in enumerate((b"", b"mn\r\n", b"get a\r\n" * 10000, b"nonsense\r\n", b"get")):
            key = f"k{number}"
            conn = Conn(self.path)
            conn.send(f"blpop 0 {key}\r\n".encode())
            wait_until("it waits", lambda: counter(self.conn, "waiting_clients") == 1)
            with self.proxy.process.paused():
                self.conn.send(f"rpush {key} x\r\nlpop {key}\r\n".encode())
                conn.send(after)
                conn.close()
            self.assertEqual(self.conn.line(), b"STORED")
            self.assertEqual(self.conn.read_values(), ({key: (0, b"x")}, "END"), after[:20])


class Much(Ending):
    """Requests of four megabytes after the blocking command."""
    CONFIG = COMMANDS
    SET = b"set a 0 0 1000000\r\n" + b"x" * 1000000 + b"\r\n"
    CASES = b"mn\r\n" * 1000000, SET * 4, SET + b"get none\r\n" * 50000, b"nonsense\r\n" * 400000, b"blpop 0 z\r\n" * 5000, SET[:900000]

    def test_each(self):
        for way in WAYS:
            for case in self.CASES:
                self.end_all((way,), (case,))

    def test_more_than_is_read(self):
        """The client stays connected: it gets END, and then the replies to all its requests."""
        conn = self.connect(self.proxy)
        sender = threading.Thread(target=conn.send, args=(b"blpop 0 k\r\n" + b"mn\r\n" * 1500000 + b"quit\r\n",), daemon=True)
        sender.start()
        self.assertEqual(conn.rest(), b"END\r\n" + b"MN\r\n" * 1500000)
        sender.join(PATIENCE)

    def test_as_much_as_is_read(self):
        conn = self.connect(self.proxy)
        conn.send(b"blpop 0 k\r\n" + self.SET + b"mn\r\n" * 100000)
        wait_until("it waits", lambda: counter(self.conn, "waiting_clients") == 1)
        wait_until("all is read", lambda: stat(self.conn, "stats", "client_bytes") > 1400000)
        self.assertEqual(self.conn.ask("rpush k x"), "STORED")
        self.assertEqual(conn.read_values(), ({"k": (0, b"x")}, "END"))
        self.assertEqual([conn.line() for _ in range(100001)], [b"STORED"] + [b"MN"] * 100000)


class MuchOfMany(WireTest):
    """Many such clients together stay within client_memory, and free their memory when they disconnect."""
    smoke = True
    CONFIG = "client_buffer = 1048576\nclient_memory = 8388608\nmax_connections = 40\nmax_waiting = 40\n"

    def test_memory(self):
        self.serve(1, config=self.CONFIG)
        for _ in range(3):
            for _ in range(35):
                conn = Conn(self.proxy.port)
                # The largest client may be closed meanwhile.
                with contextlib.suppress(ConnectionError):
                    conn.send(b"blpop 0 k\r\n" + b"get a\r\n" * 100000)
                conn.close()
            self.assertLessEqual(stat(self.conn, "stats", "client_bytes"), 2 * 8388608)
            wait_until("all are closed", lambda: stat(self.conn, "stats", "curr_connections") == 1)
        self.assertEqual(counter(self.conn, "waiting_clients"), 0)
        self.assertEqual(stat(self.conn, "stats", "client_bytes"), 0)
        self.assertEqual(self.conn.ask("rpush k x"), "STORED")
        self.assertEqual(self.conn.values("lpop k"), ({"k": (0, b"x")}, "END"))
