"""memcached's binary protocol: setlistd's replies equal those of memcached."""
import os
import random
import re
import struct
import sys

from binary import (ADD, ADDQ, APPEND, APPENDQ, DECR, DECRQ, DELETE, DELETEQ, FLUSH, FLUSHQ, GAT, GATK, GATKQ, GATQ, GET, GETK, GETKQ,
                    GETQ, INCR, INCRQ, NO_INITIAL, NOOP, PREPEND, PREPENDQ, QUIT, QUITQ, REPLACE, REPLACEQ, SASL_AUTH, SASL_LIST,
                    SASL_STEP, SET, SETQ, STAT, TOUCH, VERBOSITY, VERSION, BinaryConn, count, packet, store, touch)
from case import WireTest, marks
from case_access import AuthTest
from case_large import SMALL
from harness import HOST, OPTIONS, run_program, wait_until
from manpage import marked, unescape
from stored import stat
from test_clients import PATIENT
from wire import Closed, Conn

REQUESTS = int(os.environ.get("BINARY_REQUESTS", "3000"))
SEED = os.environ.get("BINARY_SEED", "20261122")
PAST = 2592001  # a date in 1970
MIB = 1 << 20


class BinaryTest(WireTest):
    def serve(self, *args, **kwargs):
        self.servers, self.proxy = self.pool(2, *args, **kwargs)
        self.conn = self.speak()

    def speak(self, peer=None):
        conn = BinaryConn((peer or self.proxy).port)
        self.addCleanup(conn.close)
        return conn

    def answers(self, status, value, /, *args, **kwargs):
        """One request; its response has this status and this value."""
        response = self.conn.request(*args, **kwargs)
        self.assertEqual((response.status, response.value), (status, value), args)
        return response


class Dice(random.Random):
    """Random requests. Each is a function of the cas ids that the client knows, which differ between servers."""
    names = [f"name-{i}" for i in range(12)]
    # Numbers are only here, and keep their length: memcached pads one that gets shorter, or not, as it likes.
    counters = [f"counter-{i}" for i in range(5)]
    large = ["large-0", "large-1"]

    def key(self):
        return self.choice(self.names + self.counters + self.large)

    def cas(self, key):
        """None, one that is wrong on all servers, or the last received one."""
        kind = self.randrange(10)
        return lambda known: {0: 1 << 60 | 1, 1: known.get(key, 0), 2: known.get(key, 0)}.get(kind, 0)

    def value(self, key):
        if key in self.counters and self.randrange(12):
            return b"%d" % (5 * 10 ** 9 + self.randrange(10 ** 6))
        if key in self.large and self.randrange(3) == 0:
            return self.choice((b"x", b"y")) * self.choice((20000, 300000, 600000, MIB - 40, MIB + 1))
        # For a value of only spaces, memcached's number depends on the bytes that follow it in memory.
        return self.choice((b"", b"v" + bytes(self.choices(b"abc \r\n\0\xff", k=self.choice((0, 1, 5, 30, 200))))))

    def exptime(self):
        return self.choice((0, 0, 0, 1000, PAST, 0x7fffffff, 0xfffffffe))

    def storing(self, opaque):
        key, flags, exptime = self.key(), self.choice((0, 7, 0xffffffff)), self.exptime()
        opcode = self.choice((SET, SET, SET, SETQ, ADD, ADDQ, REPLACE, REPLACEQ))
        value, cas = self.value(key), self.cas(key)
        return key, lambda known: store(opcode, key, value, flags, exptime, cas=cas(known), opaque=opaque)

    def growing(self, opaque):
        key, opcode = self.key(), self.choice((APPEND, APPENDQ, PREPEND, PREPENDQ))
        value = b"x" * self.randrange(3) if key in self.counters else self.value(key)
        cas = self.cas(key)
        return key, lambda known: packet(opcode, key, value=value, cas=cas(known), opaque=opaque)

    def counting(self, opaque):
        key, opcode = self.choice((self.choice(self.counters), self.key())), self.choice((INCR, INCRQ, DECR, DECRQ))
        delta, initial = self.randrange(1000), 5 * 10 ** 9 + self.randrange(10 ** 6)
        exptime, cas = self.choice((0, 0, 1000, NO_INITIAL)) if key in self.counters else NO_INITIAL, self.cas(key)
        return key, lambda known: count(opcode, key, delta, initial, exptime, cas=cas(known), opaque=opaque)

    def reading(self, opaque):
        key, opcode = self.key(), self.choice((GET, GETQ, GETK, GETKQ))
        return key, lambda known: packet(opcode, key, opaque=opaque)

    def touching(self, opaque):
        key, opcode, exptime = self.key(), self.choice((TOUCH, GAT, GATQ, GATK, GATKQ)), self.exptime()
        return key, lambda known: touch(opcode, key, exptime, opaque=opaque)

    def deleting(self, opaque):
        # The cas id of another key, from another server, may by chance be that of this one.
        key, opcode = self.key(), self.choice((DELETE, DELETEQ))
        cas = self.cas(key)
        return key, lambda known: packet(opcode, key, cas=cas(known), opaque=opaque)

    def other(self, opaque):
        # The result of a flush depends on the second and on the order of the LRU, since memcached 1.6.25.
        later = struct.pack(">I", 1000)
        opcode, extras, value = self.choice((
            (NOOP, b"", b""), (NOOP, b"", b""), (FLUSH, later, b""), (FLUSHQ, later, b""), (SASL_LIST, b"", b""),
            (0x1f, b"", b""), (0xff, b"", b"some value"), (0x30, b"", b"x" * 3000)))
        return None, lambda known: packet(opcode, extras=extras, value=value, opaque=opaque)

    def request(self):
        make = self.choices((self.storing, self.growing, self.counting, self.reading, self.touching, self.deleting, self.other),
                            (6, 3, 4, 8, 3, 2, 0.3))[0]
        return make(self.randrange(1 << 32))

    def last(self):
        """A request after which the connection is closed."""
        return self.choice((
            packet(GET), packet(GET, "k", b"1234"), packet(GET, "k", value=b"v"), packet(SET, "k", b"1234", b"v"),
            packet(SET, b"", b"12345678", b"v"), packet(GET, "k" * 251), packet(GET, "k", body=0), packet(INCR, "k"),
            packet(NOOP, "k"), packet(FLUSH, extras=b"12345"), packet(VERSION, value=b"v"), packet(QUIT), packet(QUITQ),
            packet(TOUCH, "k"), packet(GAT, extras=b"1234"), packet(STAT, extras=b"1"), packet(SASL_AUTH), packet(NOOP, magic=0x81),
            packet(APPEND, "k", b"1234", b"v")))


class Differential(BinaryTest):
    """The same random requests to memcached, and to it through setlistd: the responses are the same, cas ids apart."""
    smoke = True

    def setUp(self):
        self.serve()
        self.direct = self.memcached()
        self.dice = Dice(SEED)

    def sides(self):
        return [(self.speak(self.direct), {}), (self.speak(), {})]


    @marks(smoke=False)
    def test_random_requests(self):
        sides, done = self.sides(), 0
        while done < REQUESTS:
            size, sizes = self.dice.choice((1, 5, 40)), self.dice.choices((1, 7, 24, 100, 5000, 100000), k=3)
            makers = [self.dice.request() for _ in range(size)]
            end = self.dice.randrange(1 << 32)
            answers = []
            for conn, known in sides:
                packets = [make(known) for _, make in makers]
                keys = {struct.unpack(">I", p[12:16])[0]: key for (key, _), p in zip(makers, packets)}
                thread = conn.send_cut(b"".join(packets) + packet(NOOP, opaque=end), [max(s, len(packets)) for s in sizes])
                responses = conn.until_noop(end)
                thread.join()
                known.update({keys.get(each.opaque): each.cas for each in responses if each.status == 0 and each.cas})
                answers.append([response._replace(cas=response.cas > 0) for response in responses])
            self.assertEqual(answers[0], answers[1], f"after {done} requests, seed {SEED}")
            done += size

    def test_the_last_request(self):
        """Returns the replies, after which nothing may follow."""
        for _ in range(60):
            last, answers = self.dice.last(), []
            for conn, _ in self.sides():
                conn.send(packet(NOOP, opaque=7) + last)
                conn.until_noop(7)
                answers.append(conn.rest())
            self.assertEqual(*answers, last)


class Conversation(BinaryTest):
    smoke = True

    def setUp(self):
        self.serve(config='collection "tag-" { plain_verbs = true }')

    def test_both_on_one_port(self):
        self.answers(0, b"", SET, "k", bytes(8), b"value")
        with Conn(self.proxy.port) as text:
            self.assertEqual(text.get("k"), b"value")
            text.set("k", b"other", flags=5)
        self.assertEqual(self.answers(0, b"other", GET, "k").extras, struct.pack(">I", 5))

    def test_no_other_protocol_later(self):
        """The first byte of a connection decides."""
        self.answers(0, b"", NOOP)
        self.conn.send(b"mn\r\n")
        self.assertEqual(self.conn.rest(), b"")
        with Conn(self.proxy.port) as text:
            self.assertEqual(text.ask("mn"), "MN")
            text.send(packet(NOOP))
            self.assertRegex(text.rest(), b"^CLIENT_ERROR only ")

    def test_byte_by_byte(self):
        for byte in store(SET, "k", b"value") + packet(GETK, "k"):
            self.conn.send(bytes([byte]))
        self.assertEqual(self.conn.response().status, 0)
        self.assertEqual(self.conn.response().value, b"value")

    def test_flush(self):
        for flush, responses in ((packet(FLUSH), [FLUSH]), (packet(FLUSH, extras=bytes(4)), [FLUSH]), (packet(FLUSHQ), [])):
            self.conn.send(store(SETQ, "k", b"1") + packet(GETK, "k") + flush + packet(GETKQ, "k") + packet(NOOP, opaque=9))
            found = self.conn.until_noop(9)
            self.assertEqual([(r.opcode, r.status) for r in found], [(opcode, 0) for opcode in [GETK, *responses, NOOP]])

    def test_a_number_that_gets_shorter(self):
        self.assertEqual(self.answers(0, struct.pack(">Q", 10), INCR, "n", struct.pack(">QQI", 1, 10, 0)).extras, b"")
        self.answers(0, struct.pack(">Q", 8), DECR, "n", struct.pack(">QQI", 2, 0, NO_INITIAL))
        self.answers(0, struct.pack(">Q", 0), DECR, "n", struct.pack(">QQI", 20, 0, NO_INITIAL))
        self.answers(1, b"Not found", INCR, "missing", struct.pack(">QQI", 1, 10, NO_INITIAL))

    def test_stat_and_version(self):
        for group, name in ((b"", b"uptime"), (b"upstream", b"%s:state" % self.servers[0].name.encode()), (b"settings", b"max_value")):
            self.conn.send(packet(STAT, group, opaque=3))
            found = [self.conn.response()]
            while found[-1].key:
                found.append(self.conn.response())
            self.assertIn(name, [r.key for r in found])
            self.assertEqual({(r.opcode, r.status, r.opaque) for r in found}, {(STAT, 0, 3)})
        self.answers(0, b"", STAT, b"reset")
        for group in (b"slabs", b"items", b"detail on", b"detail dump"):
            self.answers(0, b"", STAT, group)
        self.answers(1, b"Not found", STAT, b"nothing")
        self.assertRegex(self.conn.request(VERSION).value, rb"\A1\.\d+\.\d+\Z")
        self.answers(0, b"", VERBOSITY, extras=struct.pack(">I", 1))

    def test_plain_verbs(self):
        value = self.answers(0, b"", SET, "tag-a", bytes(8), b"ann,bob,")
        self.assertEqual(value.cas, 0)
        self.answers(0, b"", APPEND, "tag-a", value=b"cyd")
        found = self.conn.request(GETK, "tag-a")
        self.assertEqual((found.key, sorted(found.value.split(b","))), (b"tag-a", [b"", b"ann", b"bob", b"cyd"]))
        self.assertGreater(found.cas, 0)
        self.answers(0, b"", SET, "tag-a", bytes(8), b"dee", cas=found.cas)
        self.answers(2, b"Data exists for key.", SET, "tag-a", bytes(8), b"eve", cas=found.cas)
        self.assertEqual(self.conn.request(INCR, "tag-a", struct.pack(">QQI", 1, 1, 0)).status, 4)
        self.assertEqual(self.conn.request(APPEND, "tag-a", value=b"fay", cas=9).status, 4)
        self.answers(0, b"dee,", GAT, "tag-a", bytes(4))
        self.answers(0, b"", DELETE, "tag-a")
        self.answers(1, b"Not found", GET, "tag-a")

    def test_keys_of_any_bytes(self):
        """memcached accepts them. A key with a line end must not be sent as one to a server."""
        for key in (b"a b", b"\0", b"a\r\nflush_all\r\n", bytes(range(186)), b" " * 186):
            self.answers(1, b"Not found", GET, key)
            cas = self.answers(0, b"", SET, key, bytes(8), b"value").cas
            self.answers(2, b"Data exists for key.", ADD, key, bytes(8), b"x")
            self.answers(2, b"Data exists for key.", APPEND, key, value=b"x", cas=cas + 1)
            self.answers(0, b"", APPEND, key, value=b"s")
            self.assertEqual(self.answers(0, b"values", GETK, key).key, key)
            self.answers(0, b"values", GAT, key, struct.pack(">I", 100))
            self.answers(0, b"", TOUCH, key, struct.pack(">I", 100))
            self.answers(6, b"Non-numeric server-side value for incr or decr", INCR, key, struct.pack(">QQI", 1, 1, 0))
            self.answers(0, b"", DELETE, key)
            self.answers(0, struct.pack(">Q", 7), INCR, key, struct.pack(">QQI", 1, 7, 0))
            self.answers(0, struct.pack(">Q", 8), INCR, key, struct.pack(">QQI", 1, 7, 0))
            self.answers(3, b"Too large.", SET, key, bytes(8), b"x" * (2 * MIB))
            self.answers(1, b"Not found", GET, key)
        self.assertEqual(self.conn.request(SET, b"tag-a b", bytes(8), b"x").status, 4)
        for size in (187, 250):
            self.answers(4, b"key with spaces or control characters too long", SET, b" " * size, bytes(8), b"x" * 1000)

    def test_commands_as_keys(self):
        self.serve(config='commands = "q|"\nevents "Err" { plain_verbs = true }')
        self.answers(0, b"", SET, "q|sadd|s", bytes(8), b"ann\nbob")
        self.answers(0, b"2", GET, "q|scard|s")
        self.assertEqual(self.answers(0, b"1", GETK, "q|sismember|s|ann").key, b"q|sismember|s|ann")
        self.assertEqual(self.answers(1, b"", GETK, "q|lpop|none").key, b"q|lpop|none")
        self.answers(4, b"usage: scard <key>", GET, "q|scard|s|more")
        self.assertEqual({self.conn.request(opcode, "q|scard|s", extras).status for opcode, extras in (
            (ADD, bytes(8)), (APPEND, b""), (DELETE, b""), (TOUCH, bytes(4)), (GAT, bytes(4)), (INCR, bytes(20)))}, {4})
        self.conn.send(store(SETQ, "q|sadd|s", b"cyd") + packet(GETQ, "q|lpop|none") + packet(GETKQ, "q|scard|s") + packet(NOOP))
        self.assertEqual([(r.status, r.key, r.value) for r in self.conn.until_noop(0)], [(0, b"q|scard|s", b"3"), (0, b"", b"")])
        found = self.conn.request(GET, "q|smembers|s")
        self.assertEqual(sorted(found.value.split()), [b"ann", b"bob", b"cyd"])
        self.assertGreater(found.cas, 0)
        self.answers(0, b"", SET, "q|sset|s", bytes(8), b"dee", cas=found.cas)
        self.answers(2, b"Data exists for key.", SET, "q|sset|s", bytes(8), b"eve", cas=found.cas)
        self.answers(0, struct.pack(">Q", 4), INCR, "Err", struct.pack(">QQI", 4, 0, NO_INITIAL))
        self.answers(0, b"4", GET, "Err")
        self.answers(0, b"", SET, "Err", bytes(8), b"it")
        self.assertEqual(self.conn.request(DECR, "Err", bytes(20)).status, 4)
        for key in (b"q|sadd|s ann", b"q|scard|s\r\nflush_all", b"Err\r\nflush_all"):
            for opcode, extras in ((SET, bytes(8)), (GET, b""), (INCR, bytes(20))):
                self.answers(4, b"only plain items may have keys with spaces or control characters", opcode, key, extras)
        self.answers(0, b"1", GET, "q|scard|s")

    def test_parts_of_sets(self):
        self.serve(config=SMALL)
        with Conn(self.proxy.port) as text:
            self.assertEqual(text.ask(b"sadd big " + b" ".join(b"%03d" % i + b"m" * 100 for i in range(100))), "STORED")
            self.assertEqual(text.ask("scompact big"), "OK")
            part = b"big." + re.search(rb"@([ti][0-9a-z]{11})\.", text.get("big"))[1]
            for opcode, extras in ((SET, bytes(8)), (DELETE, b""), (GAT, bytes(4)), (TOUCH, bytes(4)), (INCR, bytes(20))):
                self.assertEqual(self.conn.request(opcode, part, extras).status, 4, opcode)
            self.answers(0, b"", TOUCH, "big", struct.pack(">I", 1000))
            self.assertEqual(text.ask("scard big"), "100")


class Failures(BinaryTest):
    smoke = True

    def test_denied(self):
        self.serve(config='deny = {"flush_all", "set"}')
        self.answers(4, b"flush_all is denied here", FLUSH)
        self.answers(4, b"set is denied here", SETQ, "k", bytes(8), b"x")
        self.answers(4, b"set is denied here", SET, "k", bytes(8), b"x" * (2 * MIB))
        self.answers(0, b"", ADD, "k", bytes(8), b"x")

    def test_a_server_that_is_down(self):
        self.serve()
        key = self.key_on(self.connect(self.proxy), self.servers[0])
        self.servers[0].kill()
        text = b"upstream %s unavailable" % self.servers[0].name.encode()
        while self.conn.request(GET, key).status != 0x86:
            pass
        for opcode, extras in ((GET, b""), (GETQ, b""), (SET, bytes(8)), (SETQ, bytes(8)), (TOUCH, bytes(4)), (DELETE, b""),
                               (INCR, bytes(20))):
            self.answers(0x86, text, opcode, key, extras)
        self.answers(0, b"", NOOP)

    @marks(plain=True)
    def test_claims(self):
        """Nothing is allocated for a body that is only announced, or is too large."""
        self.serve()
        for body in (0xffffffff, 0x80000000, (1 << 30) + 1):
            for opcode in (SET, GET, 0xff):
                conn = self.speak()
                conn.send(packet(opcode, "k", bytes(8) if opcode == SET else b"", body=body))
                self.assertEqual((conn.response().status, conn.rest()), (4, b""))
        before = self.proxy.peak_mib()
        watcher = self.connect(self.proxy)
        for _ in range(100):
            self.speak().send(packet(SET, "k", bytes(8), body=1 << 30) + bytes(MIB))
        wait_until("all was read", lambda: stat(watcher, "stats", "bytes_read") > 100 * MIB)
        self.assertLess(self.proxy.peak_mib() - before, 30)

    def test_mutated_requests(self):
        """Good requests with a byte or two changed: the proxy lives, and answers the next client."""
        self.serve()
        dice = Dice(SEED)
        for _ in range(100):
            bad = bytearray(b"".join(dice.request()[1]({})[:3000] for _ in range(10)))
            for _ in range(dice.choice((1, 2, 5))):
                bad[dice.randrange(len(bad))] = dice.randrange(256)
            conn = self.speak()
            conn.send(bytes(bad))
            conn.half_close()
            conn.rest()
        self.answers(0, b"", NOOP)


class Sasl(AuthTest, BinaryTest):
    smoke = True

    def setUp(self):
        super().setUp()
        self.conn = self.speak()

    def closed(self):
        self.assertEqual(self.conn.rest(), b"")

    def test_right(self):
        self.answers(0, b"PLAIN", SASL_LIST)
        self.assertRegex(self.conn.request(VERSION).value, rb"^1\.")
        self.answers(0, b"Authenticated", SASL_AUTH, "PLAIN", value=b"\0foo\0bar")
        self.answers(0, b"", SET, "k", bytes(8), b"x")
        self.answers(0, b"Authenticated", SASL_AUTH, "PLAIN", value=b"foo\0ann\0a:b")
        self.answers(0, b"x", GET, "k")
        self.answers(0x20, b"Auth failure.", SASL_AUTH, "PLAIN", value=b"\0foo\0baz")
        self.closed()

    def test_in_two_steps(self):
        self.answers(0x21, b"", SASL_AUTH, "PLAIN")
        self.answers(0, b"Authenticated", SASL_STEP, "PLAIN", value=b"\0foo\0bar")
        self.answers(0, b"", NOOP)

    @marks(smoke=False)
    def test_wrong(self):
        for opcode, key, value in ((SASL_AUTH, "PLAIN", b"\0foo\0baz"), (SASL_STEP, "PLAIN", b"\0foo\0bar"),
                                   (SASL_AUTH, "CRAM-MD5", b"\0foo\0bar"), (SASL_AUTH, "PLAIN", b"foo bar"),
                                   (SASL_AUTH, "PLAIN", b"\0foo\0bar\0")):
            self.answers(0x20, b"Auth failure.", opcode, key, value=value)
        self.assertEqual(self.count("auth_failures"), 5)
        self.answers(0, b"Authenticated", SASL_AUTH, "PLAIN", value=b"\0foo\0bar")

    def test_none(self):
        """Nothing of it reaches a server, nor is its data waited for."""
        before = self.seen_by_server()
        for data in (packet(GET, "k"), store(SET, "k", b"x"), packet(NOOP), packet(0xff), packet(SET, "k", bytes(8), body=MIB),
                     packet(FLUSHQ), packet(STAT)):
            self.conn = self.speak()
            self.conn.send(data)
            response = self.conn.response()
            self.assertEqual((response.status, response.value), (0x20, b"Auth failure."))
            self.closed()
        self.assertEqual(self.seen_by_server(), before)

    def test_too_much(self):
        self.answers(3, b"Too large.", SASL_AUTH, "PLAIN", value=b"x" * 5000)
        self.closed()

    @marks(smoke=False)
    def test_many_failures(self):
        with self.assertRaises((Closed, ConnectionError)):
            for _ in range(20):
                self.answers(0x20, b"Auth failure.", SASL_AUTH, "PLAIN", value=b"\0foo\0baz")

    def test_much_that_is_allowed(self):
        """A client that waits for its replies may send many requests; of one that does not, only some are answered."""
        begin = packet(SASL_AUTH, "PLAIN")
        for asked in (packet(VERSION), packet(SASL_LIST), begin):
            for _ in range(3):
                self.conn.send(asked * 100)
                self.assertEqual({self.conn.response().opcode for _ in range(100)}, {asked[1]})
            with BinaryConn(self.proxy.port) as conn:
                self.proxy.process.pause()
                conn.send(asked * 1000)
                conn.half_close()
                self.proxy.process.resume()
                self.assertLess(len(conn.rest()), 20000)
        self.conn.send(packet(VERSION) + packet(SASL_LIST) + begin + packet(SASL_STEP, "PLAIN", value=b"\0foo\0bar") +
                       packet(VERSION) * 1000)
        self.assertEqual([self.conn.response().status for _ in range(1004)], [0, 0, 0x21] + [0] * 1001)

    def test_replies_that_are_not_taken(self):
        """Though it sends slowly, little is kept for a client that is not authenticated."""
        sock = self.deaf()
        sock.setblocking(False)
        for _ in range(400):
            try:
                sock.send(packet(VERSION) * 100)
            except (BlockingIOError, ConnectionError):
                break
            self.assertLess(self.count("client_bytes"), 65536)

    def test_a_client_library(self):
        import pylibmc
        client, wrong = (pylibmc.Client([f"{HOST}:{self.proxy.port}"], binary=True, username="foo", password=password,
                                        behaviors=dict(PATIENT)) for password in ("bar", "baz"))
        self.assertTrue(client.set("k", "value"))
        self.assertEqual(client.get("k"), "value")
        self.assertRaises(pylibmc.Error, wrong.set, "k", "other")


class Clients(BinaryTest):
    smoke = True

    def test_example_of_the_manual(self):
        self.serve()
        programs = [lines for path in OPTIONS.manpages for _, kind, lines in marked(path) if kind == "python"]
        self.assertEqual(len(programs), 1)
        text = "\n".join(unescape(line) for _, line in programs[0]).replace("11211", str(self.proxy.port))
        done = run_program(sys.executable, "-B", "-c", text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_memcstat(self):
        self.serve()
        done = run_program("memcstat", "--binary", f"--servers={HOST}:{self.proxy.port}")
        self.assertIn("total_connections", done.stdout, done.stderr)
