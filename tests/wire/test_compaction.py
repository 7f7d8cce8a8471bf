"""What compaction must keep, and what it must keep its hands off."""
import threading
import time

from case_large import SLOW, SMALL, LargeSetTest, names
from fake import FakeServer
from harness import PATIENCE, wait_until
from stored import Stored, counter

NOT_A_SET = "CLIENT_ERROR value is not a collection"
# Each does not parse as a base.
BAD_BASES = (b"hello", b" ", b"+a", b"+a +", b"+a  ", b"+a + ", b"a,b,c,", b"+a hello ", b"+a -b c ", b"+a\n-b ", b"+a \x00",
             b"@", b"@x +a ", b"@c00000000000.0.1", b"@c00000000000.0 ", b"@e00000000000.0.1 ", b"@c0000000000.0.1 ",
             b"@c00000000000.0.-1 ", b"@c00000000000.x.1 ", b"@c0000000000A.0.1 ", b"hello @c00000000000.0.1 ",
             b"+a @c00000000000.0.1 +b @c00000000000.1.1 ", b"@list", b"@list @list ", b"@list +a @list ", b"hello @list ",
             b"@c00000000000.0.1:0:1 ", b"@l00000000000.0.1 ", b"@l00000000000.3.1:1:3 ", b"@l00000000000.3.1:0:0 ")
# Neither does a segment of these bytes. The first of a large set's segments is a clean one.
BAD_SEGMENTS = (b"hello", b"+a", b"-a ", b"+a -b ", b"@c00000000000.0.1 ", b"+a @c00000000000.0.1 ", b"+a  ", b"+a\r\n")


class TimeToLive(LargeSetTest):
    """Compaction keeps the time to live and the client flags, however often it runs."""
    proxy_count = 2

    def set_base(self, key, data, flags, ttl):
        self.assertEqual(self.at.of(key).set(key, data, flags, ttl), "STORED")

    def compact_often(self, key, count):
        """With something to compact each time."""
        for step in range(count):
            conn = (self.conn, *self.others)[step % 2]
            waste = names(40, 5000000 + step)
            self.write("sadd", key, waste, conn)
            self.write("srem", key, waste, conn)
            self.compact(key, conn)

    def compactions(self):
        return sum(counter(conn, "compactions") for conn in (self.conn, *self.others))

    def assert_kept(self, key, ttl, flags):
        self.assertEqual(self.at.meta(key, "f")["f"], str(flags))
        self.assert_ttl_of_all(key, ttl)

    def test_a_hundred_compactions(self):
        self.set_base("k", b"+a +b -a " * 100, 7, 10000)
        self.compact_often("k", 100)
        self.assertGreaterEqual(self.compactions(), 100)
        self.assert_kept("k", 10000, 7)
        self.assert_members("k", [b"b"])
        self.assertLess(len(self.at.get("k")), 100)

    def assert_no_drift(self, ttl):
        """A second won or lost at each compaction shows beside an item of the same server that is never compacted.

        One may be won where the clock ticks within a compaction, so as many as there were seconds.
        """
        self.set_base("k", b"+a +b ", 7, ttl)
        server = self.at.of("k")
        self.assertEqual(server.set("never-compacted", b"x", 0, ttl), "STORED")
        start = time.monotonic()
        self.compact_often("k", 200)
        server.send(b"mg k t\r\nmg never-compacted t\r\n")
        left, expected = (int(server.line().split(b" t")[1]) for _ in range(2))
        self.assertLess(abs(left - expected), 3 + time.monotonic() - start, "after 200 compactions")

    def test_it_does_not_drift(self):
        self.assert_no_drift(1000)

    def test_it_does_not_drift_beyond_a_month(self):
        """Where memcached wants a date, by a clock that is not quite ours."""
        self.assert_no_drift(int(time.time()) + 40 * 24 * 3600)

    def test_large_set(self):
        """The segments live as long as the base does."""
        self.set_base("k", b"+first ", 4294967295, 10000)
        self.write("sadd", "k", names(1000))
        self.compact_often("k", 30)
        self.assert_kept("k", 10000, 4294967295)
        self.assertGreater(len(self.stored("k").refs), 2)
        self.assert_members("k", {b"first", *names(1000)}, self.others[0])

    def test_no_end(self):
        self.set_base("k", b"+first " * 50, 3, 0)
        self.compact_often("k", 10)
        self.assert_kept("k", -1, 3)
        self.write("sadd", "k", names(1000))
        self.compact_often("k", 5)
        self.assert_ttl_of_all("k", -1)

    def test_more_than_a_month(self):
        """Beyond 30 days memcached takes a time to live for a date."""
        month = 30 * 24 * 3600
        for ttl in (month - 1, month, month + 1, 10 * month):
            self.set_base("k", b"+a -a +b " * 200, 1, int(time.time()) + ttl)
            self.compact_often("k", 3)
            self.assertLess(abs(self.ttl("k") - ttl), SLOW)
            self.assertEqual(self.at.meta("k", "f")["f"], "1")

    def test_touch_beside_compaction(self):
        """A touch that comes between a compaction's read and its commit is not undone."""
        stop, problems = threading.Event(), []

        def compact(conn):
            try:
                while not stop.is_set():
                    conn.send(b"sadd k x y z x y z x y z\r\nsrem k x y z\r\nscompact k\r\n" * 10)
                    for _ in range(30):
                        conn.line()
            except Exception as error:
                problems.append(error)
        self.write("sadd", "k", names(20))
        threads = [threading.Thread(target=compact, args=(self.connect(proxy),)) for proxy in self.proxies]
        for thread in threads:
            thread.start()
        toucher = self.connect(self.proxies[0])
        step = 0
        while not problems and (step < 150 or step % 50 or self.compactions() < 100):
            ttl = 1000 + 2 * SLOW * step
            step += 1
            if toucher.ask(f"touch k {ttl}") != "TOUCHED":
                problems.append("not touched")
            time.sleep(0.003)
            left = self.ttl("k")
            if left not in range(ttl - SLOW, ttl + 1):
                problems.append(f"touched with {ttl}, it has {left} s left")
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(problems, [])

    def test_touch_while_segments_are_written(self):
        """Or the base outlives its segments, and the set is lost when they end: through the same proxy and another."""
        members = names(2000)
        merger = self.connect(self.proxies[0])
        for step in range(80):
            key = f"k{step}"
            self.assertEqual(self.conn.ask(b"sset %s %s" % (key.encode(), b" ".join(members))), "STORED")
            self.assertEqual(self.conn.ask(f"touch {key} 100"), "TOUCHED")
            self.write("sadd", key, names(300, 5000))
            merger.send(f"scompact {key}\r\n".encode())
            time.sleep(0.00003 * (step % 40))
            self.assertEqual((self.conn, *self.others)[step % 2].ask(f"touch {key} 50000"), "TOUCHED")
            self.assertIn(merger.line(), (b"OK", b"SERVER_ERROR busy"))
            # it may be set right behind the replies
            wait_until("the segments live as long as the base", PATIENCE, lambda: self.shortest(key) >= 50000 - SLOW)

    def shortest(self, key):
        """The time to live of the item that ends first."""
        metas = [self.at.meta(name, "t") for name in (key, *Stored(self.at, key).segment_keys)]
        return min(int(meta["t"]) if meta else 0 for meta in metas)


class LostSegments(LargeSetTest):
    """A segment goes behind the proxies' backs: the set is a miss then, never a part of it."""

    def fresh(self):
        """A connection to a proxy that has seen nothing yet."""
        return self.connect(self.setlistd(self.servers, config=self.config))

    def lose(self, key, index):
        self.assertEqual(self.at.delete(self.stored(key).segment_keys[index]), "DELETED")

    def test_miss_and_count(self):
        for index in (0, 1, -1):
            with self.subTest(index=index):
                self.large_set()
                self.lose("k", index)
                conn = self.fresh()
                self.assertIsNone(self.read("k", conn))
                self.assertEqual(counter(conn, "incomplete_sets"), 1)
                for other in (conn, *self.others, self.conn):
                    self.assert_missing("k", other)

    def test_every_command(self):
        """Whichever asks first."""
        for command, reply in (("scard k", "NOT_FOUND"), ("sismember k m00000000000", "NOT_FOUND"),
                               ("smismember k a b", "NOT_FOUND"), ("sinfo k", "NOT_FOUND"),
                               ("srandmember k 5", "END"), ("spop k 5", "END"), ("smembers k", "END")):
            with self.subTest(command=command):
                self.large_set()
                self.lose("k", 1)
                self.assertEqual(self.fresh().ask(command), reply)

    def test_algebra(self):
        for verb, expected in (("sunion", {b"a"}), ("sinter", set()), ("sdiff", set())):
            self.large_set()
            self.lose("k", 1)
            conn = self.fresh()
            self.assertEqual(conn.ask("sset other a"), "STORED")
            self.assertEqual(self.read("k other", conn, verb), expected)

    def test_starting_afresh(self):
        """What is added after the miss is all there is, through each proxy."""
        self.large_set()
        self.lose("k", 1)
        conn = self.fresh()
        self.assertEqual(conn.ask("scard k"), "NOT_FOUND")
        self.assertEqual(conn.ask("srem k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("saddx k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("sadd k new"), "STORED")
        for each in (conn, self.conn, *self.others):
            self.assert_members("k", [b"new"], each)

    def test_cached_view(self):
        """A proxy that knows the whole set asks after its segments all the same, so it sees the loss as any other does."""
        members = self.large_set()
        self.assert_members("k", members, self.others[0])
        self.lose("k", 1)
        self.assertIsNone(self.read("k", self.others[0]))
        self.assertIsNone(self.read("k", self.conn))
        self.assertEqual(self.others[0].ask("sadd k new"), "STORED")
        self.assert_members("k", [b"new"])

    def test_writes_first(self):
        """Blind writes and compactions of what is not whole any more: it stays a miss, and they do not hang."""
        self.large_set()
        self.lose("k", 1)
        self.write("sadd", "k", names(500, 5000))
        self.write("srem", "k", names(100))
        self.conn.ask("scompact k")
        for conn in (self.conn, *self.others):
            self.assertIn(self.read("k", conn), (None, set()))
        self.assert_error("scard k", "NOT_FOUND")
        self.assertEqual(self.conn.ask("sadd k new"), "STORED")
        self.assert_members("k", [b"new"], self.others[0])

    def test_lost_while_it_is_read(self):
        """Reads and writes all the time, while segments go: each reply is a whole set, or none."""
        for step in range(10):
            members = set(self.large_set())
            doomed = self.stored("k").segment_keys[step % 3]
            reader = self.connect(self.proxies[step % 2])
            reader.send(b"smembers k\r\n" * 5)
            self.others[0].send(b"sadd k extra\r\n")
            self.at.delete(doomed)
            reader.send(b"smembers k\r\n" * 5)
            self.assertEqual(self.others[0].line(), b"STORED")
            for _ in range(10):
                found, end = reader.read_values()
                self.assertEqual(end, "END")
                if found:
                    whole = set(found["k"][1].split(b" "))
                    self.assertIn(whole, (members, members | {b"extra"}, {b"extra"}))
            self.conn.ask("delete k")


class Corrupt(LargeSetTest):
    """Bytes that do not parse are never rewritten."""

    def assert_untouched(self, key, data, flags, act):
        """Whatever act() does, the item stays the very same: no write at all, or its cas id would differ."""
        conn = self.at.of(key)
        self.assertEqual(conn.set(key, data, flags, 500), "STORED")
        before = self.at.meta(key, "c f")
        act()
        self.assertEqual((conn.get(key), self.at.meta(key, "c f")), (data, before))

    def refuse_all(self):
        for command in ("smembers k", "scard k", "sismember k a", "smismember k a b", "srandmember k", "spop k", "spop k 3",
                        "sunion k other", "sinter other k", "sdiff k", "scompact k", "sinfo k", "sset k a b", "sset k"):
            for conn in (self.conn, *self.others):
                self.assertEqual(conn.ask(command), NOT_A_SET, command)

    def test_base(self):
        for data in BAD_BASES:
            with self.subTest(data=data):
                self.assert_untouched("k", data, 5, self.refuse_all)

    def test_long_base(self):
        """So long that a set would be compacted."""
        for data in (b"+a -a " * 2000 + b"x", b"x" * 50000, b"+a " * 20000 + b"@e00000000000.0.1 "):
            self.assert_untouched("k", data, 5, self.refuse_all)

    def test_writes_are_blind(self):
        """Adding does not read. What it triggers finds no collection, and leaves all of it as it is."""
        for data in (b"hello", b"+a -a " * 500 + b"x"):
            self.assertEqual(self.at.of("k").set("k", data, 5, 500), "STORED")
            self.write("sadd", "k", names(2000), per_line=50)
            self.assertEqual(self.conn.ask("scompact k"), NOT_A_SET)
            self.assertEqual(self.at.get("k"), data + b"".join(b"+%s " % name for name in names(2000)))
            self.assertEqual(self.at.meta("k", "f")["f"], "5")
            self.assertEqual(counter(self.conn, "compactions"), 0)
        self.assertGreater(counter(self.conn, "corrupt_values"), 0)

    def test_segment(self):
        """An error, not a part of the set; base and segments stay for whoever wants to repair it."""
        for data in BAD_SEGMENTS:
            with self.subTest(data=data):
                self.conn.ask("delete k")
                self.large_set()
                stored = self.stored("k")
                name = stored.segment_keys[1]
                good = stored.segments[name]

                def act():
                    for conn in (self.others[0], self.conn):
                        conn.ask("sadd k more")
                        self.assertEqual(conn.ask("smembers k"), NOT_A_SET)
                        self.assertEqual(conn.ask("scard k"), NOT_A_SET)
                        self.assertEqual(conn.ask("spop k"), NOT_A_SET)
                        conn.ask("scompact k")
                self.assert_untouched(name, data, 0, act)
                self.assertEqual(Stored(self.at, "k").refs, stored.refs)
                self.assertEqual(self.at.of(name).set(name, good), "STORED")
                self.assert_members("k", {*names(1000), b"more"})

    def test_merging(self):
        """A merge that comes upon such a segment ends without a change, and leaves nothing behind."""
        self.large_set()
        stored = self.stored("k")
        name = stored.segment_keys[1]
        self.assertEqual(self.at.of(name).set(name, b"hello"), "STORED")
        self.write("sadd", "k", names(300, 5000))
        for conn in (self.conn, *self.others):
            self.assert_error("scompact k", f"{NOT_A_SET}|SERVER_ERROR busy", conn)
        now = Stored(self.at, "k")
        self.assertEqual(now.refs[:len(stored.refs)], stored.refs)
        self.assertEqual({key: now.segments[key] for key in stored.segment_keys}, {**stored.segments, name: b"hello"})
        self.assertEqual(self.at.of(name).set(name, stored.segments[name]), "STORED")
        self.assert_members("k", names(1000) + names(300, 5000))
        self.compact("k")
        wait_until("nothing is left behind", PATIENCE, lambda: self.at.item_count() == 1 + len(Stored(self.at, "k").refs))


class OldFake(FakeServer):
    """A memcached before the meta commands, which keeps what it is given."""

    def __init__(self):
        self.items, self.stamp = {}, 0
        super().__init__(meta=False, version=b"1.4.39")

    def answer(self, request):
        act = getattr(self, "do_" + request.verb.decode(), None)
        return act(request) if act else super().answer(request)

    def keep(self, key, data):
        self.stamp += 1
        self.items[key] = (data, self.stamp)
        return b"STORED\r\n"

    def found(self, request, tail):
        blocks = [b"VALUE %s 0 %d%s\r\n%s\r\n" % (key, len(data), b" %d" % stamp if tail else b"", data)
                  for key in request.keys if key in self.items for data, stamp in [self.items[key]]]
        return b"".join(blocks) + b"END\r\n"

    def do_get(self, request):
        return self.found(request, False)

    def do_gets(self, request):
        return self.found(request, True)

    def do_set(self, request):
        return self.keep(request.key, request.data)

    def do_add(self, request):
        return b"NOT_STORED\r\n" if request.key in self.items else self.keep(request.key, request.data)

    def do_append(self, request):
        if request.key not in self.items:
            return b"NOT_STORED\r\n"
        return self.keep(request.key, self.items[request.key][0] + request.data)

    def do_cas(self, request):
        if request.key not in self.items:
            return b"NOT_FOUND\r\n"
        if self.items[request.key][1] != int(request.words[5]):
            return b"EXISTS\r\n"
        return self.keep(request.key, request.data)

    def do_delete(self, request):
        return b"DELETED\r\n" if self.items.pop(request.key, None) else b"NOT_FOUND\r\n"


class WithoutMeta(LargeSetTest):
    """A server that cannot tell a time to live: what may have one is not compacted, and works all the same."""

    def setUp(self):
        super().setUp()
        self.fake = OldFake()
        self.addCleanup(self.fake.stop)
        self.old = self.connect(self.setlistd([self.fake], config=SMALL))

    def test_never_compacted(self):
        expected = b""
        for step in range(40):
            self.write("sadd", "k", names(30), self.old)
            self.write("srem", "k", names(29), self.old)
            expected += b"".join(b"+%s " % name for name in names(30)) + b"".join(b"-%s " % name for name in names(29))
            if step % 8 == 0:
                self.assert_members("k", names(1, 29), self.old)
                self.assertEqual(self.old.ask("scard k"), "1")
                self.old.ask("scompact k")
        self.assertEqual(self.fake.items[b"k"][0], expected)
        self.assertEqual({r.verb for r in self.fake.requests_for("k")} - {b"get", b"gets", b"append", b"add"}, set())
        self.assertEqual(set(self.fake.items), {b"k"})
        self.assertEqual(counter(self.old, "compactions"), 0)

    def test_commands(self):
        self.write("sadd", "k", names(100), self.old)
        self.assertEqual(self.old.ask("sset k a b c"), "STORED")
        self.assert_members("k", [b"a", b"b", b"c"], self.old)
        self.assertEqual(self.read("k", self.old, "sunion"), {b"a", b"b", b"c"})
        self.assertEqual(self.old.ask("srem k a"), "DELETED")
        self.assertEqual(self.old.ask("smismember k a b"), "0 1")
