"""What compaction must preserve, and what it must not touch."""
import threading
import time

from case import marks
from case_encodings import EncodingTest
from case_large import NOT_A_SET, SLOW, SMALL, LargeSetTest, RefusingTest, names
from scripted import ScriptedServer
from harness import PATIENCE, wait_until
from stored import Stored, counter

# A reference to a run of one table, and to one with an index.
TABLE, INDEX = b"@t00000000000.1.9.2.300.0123456789abcdef ", b"@i00000000000.2.9.0.300.0123456789abcdef "
# Each does not parse as a base.
BAD_BASES = (b"hello", b" ", b"+a", b"+a +", b"+a  ", b"+a + ", b"a,b,c,", b"+a hello ", b"+a -b c ", b"+a\n-b ", b"+a \x00",
             b"@", b"@x +a ", b"@e00000000000.0.1 ", b"@c0000000000.0.1 ", b"@c0000000000A.0.1 ", b"hello @c00000000000.0.1 ",
             b"@c00000000000.0.1", b"@list", b"@list @list ", b"@list +a @list ", b"hello @list ",
             b"@l00000000000.0.1 ", b"@l00000000000.3.1:1:3 ", b"@l00000000000.3.1:0:0 ",
             b"@set", b"@set ", b"@set. ", b"@set.1", b"@set.0 ", b"@set.x ", b"@set.-1 ", b"@set.1.1 ", b"@set.1x ", b"@list.0 ",
             TABLE, INDEX, b"@set.1 @set.1 ", b"@set.1 @list ", b"@list " + TABLE, b"@set.1 @l00000000000.3.1 ", b"hello @set.1 ",
             b"+a @set.1 +b @set.1 ", b"@set.1 " + TABLE[:-1], b"@set.1 +a " + TABLE, b"@set.1 " + TABLE + b"hello ",
             b"@set.1 " + TABLE.replace(b".1.9.", b".2.9."), b"@set.1 " + INDEX.replace(b".2.9.", b".1.9."),
             b"@set.1 " + TABLE.replace(b".9.2.", b".9.10."), b"@set.1 " + TABLE.replace(b".9.2.", b".0.0."),
             b"@set.1 " + TABLE.replace(b".300.", b".4294967296."), b"@set.1 " + TABLE.replace(b".300.", b"."),
             b"@set.1 " + TABLE.replace(b"0123", b"123"), b"@set.1 " + TABLE.replace(b"abc", b"ABC"),
             b"@set.1 " + TABLE.replace(b"@t0", b"@t"), b"@set.1 " + TABLE.replace(b"@t0", b"@u0"))


class TimeToLive(LargeSetTest):
    """Compaction keeps the time to live and the client flags, however often it runs."""
    smoke = True
    proxy_count = 2

    def set_base(self, key, data, flags, ttl):
        self.assertEqual(self.at.of(key).set(key, data, flags, ttl), "STORED")

    def compact_often(self, key, count):
        """With something to compact each time."""
        for step in range(count):
            conn = self.conns[step % 2]
            waste = names(40, 5000000 + step)
            self.write("sadd", key, waste, conn)
            self.write("srem", key, waste, conn)
            self.compact(key, conn)

    def compactions(self):
        return sum(counter(conn, "compactions") for conn in self.conns)

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
        """A second gained or lost at each compaction is visible by comparison with an item of the same server that is never compacted.

        The first one converts the seconds to a date, by a clock that may have been read late.
        """
        self.set_base("k", b"+a +b ", 7, ttl)
        server = self.at.of("k")
        self.assertEqual(server.set("never-compacted", b"x", 0, ttl), "STORED")
        self.compact_often("k", 200)
        server.send(b"mg k t\r\nmg never-compacted t\r\n")
        left, expected = (int(server.line().split(b" t")[1]) for _ in range(2))
        self.assertLessEqual(abs(left - expected), 2, "after 200 compactions")

    def test_it_does_not_drift(self):
        self.assert_no_drift(1000)

    def test_it_does_not_drift_beyond_a_month(self):
        """memcached needs a date, by a clock that differs slightly from ours."""
        self.assert_no_drift(int(time.time()) + 40 * 24 * 3600)

    def test_large_set(self):
        """The tables live as long as the base does."""
        self.set_base("k", b"+first ", 4294967295, 10000)
        self.write("sadd", "k", names(1000))
        self.compact_often("k", 30)
        self.assert_kept("k", 10000, 4294967295)
        self.assertGreater(len(self.stored("k").segments), 3)
        self.assert_members("k", {b"first", *names(1000)}, self.others[0])

    def test_no_end(self):
        self.set_base("k", b"+first " * 50, 3, 0)
        self.compact_often("k", 10)
        self.assert_kept("k", -1, 3)
        self.write("sadd", "k", names(1000))
        self.compact_often("k", 5)
        self.assert_ttl_of_all("k", -1)

    def test_more_than_a_month(self):
        """Beyond 30 days, memcached treats a time to live as a date."""
        month = 30 * 24 * 3600
        for ttl in (month - 1, month, month + 1, 10 * month):
            self.set_base("k", b"+a -a +b " * 200, 1, int(time.time()) + ttl)
            self.compact_often("k", 3)
            self.assertLess(abs(self.ttl("k") - ttl), SLOW)
            self.assertEqual(self.at.meta("k", "f")["f"], "1")

    def test_touch_beside_compaction(self):
        """A touch between a compaction's read and its commit is not undone.

        memcached may still execute it between the commit and the preceding read of the time to live. This is rare: compactions without
        that read undo one in ten.
        """
        stop, problems, undone = threading.Event(), [], []

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
            time.sleep(0.003)  # A compaction that is under way may end in this time, and must not undo the touch.
            left = self.ttl("k")
            if left not in range(ttl - SLOW, ttl + 1):
                undone.append(f"touched with {ttl}, it has {left} s left")
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(problems, [])
        self.assertLess(len(undone), 5 + step // 50, undone)

    def test_touch_while_tables_are_written(self):
        """Or the base outlives its tables, and the set is lost when they end: through the same proxy and another."""
        members = names(2000)
        merger = self.connect(self.proxies[0])
        for step in range(80):
            key = f"k{step}"
            self.assertEqual(self.conn.ask(b"sset %s %s" % (key.encode(), b" ".join(members))), "STORED")
            self.assertEqual(self.conn.ask(f"touch {key} 100"), "TOUCHED")
            self.write("sadd", key, names(300, 5000))
            merger.send(f"scompact {key}\r\n".encode())
            time.sleep(0.00003 * (step % 40))  # The touch arrives at another moment of each compaction.
            self.assertEqual(self.conns[step % 2].ask(f"touch {key} 50000"), "TOUCHED")
            self.assertIn(merger.line(), (b"OK", b"SERVER_ERROR busy"))
            # it may be set shortly after the replies
            wait_until("the tables live as long as the base", lambda: self.shortest(key) >= 50000 - SLOW)

    def shortest(self, key):
        """The time to live of the item that ends first."""
        metas = [self.at.meta(name, "t") for name in (key, *Stored(self.at, key).segment_keys)]
        return min(int(meta["t"]) if meta else 0 for meta in metas)


class Together(LargeSetTest):
    """No client receives busy while there is no concurrent write."""
    smoke = True

    def test_two_proxies_compact_one_set(self):
        members = []
        for step in range(40):
            more = names(300, 300 * step)
            members += more
            self.write("sadd", "k", more, self.conns[step % 2])
            for conn in self.conns:
                conn.send(b"scompact k\r\n")
            self.assertEqual([conn.line() for conn in self.conns], [b"OK", b"OK"])
        self.assert_members("k", members)
        self.assertEqual(len(self.stored("k").runs), 1)


class TogetherInEncodings(EncodingTest):
    """The same for the encodings of applications. Each of two proxies may lose against the other, and retries."""
    smoke = True

    def test_two_proxies_compact_one_set(self):
        for _, k in self.each():
            members = set()
            for step in range(20):
                more = names(40, 40 * step)
                self.write("sadd", k, more, self.conns[step % 2])
                self.write("srem", k, more[:10], self.conns[step // 2 % 2])
                members |= set(more[10:])
                for conn in self.conns:
                    conn.send(f"scompact {k}\r\n".encode())
                self.assertEqual([conn.line() for conn in self.conns], [b"OK", b"OK"])
            for conn in self.conns:
                self.assert_members(k, members, conn)

    def test_behind_a_delete(self):
        """It does not block the next command, through any proxy."""
        for _, k in self.each():
            for one, other in ((self.conn, self.others[0]), (self.others[0], self.conn)):
                for conn in (one, other):
                    self.expect((f"sadd {k} a b", "STORED"), (f"srem {k} a", "DELETED"), (f"scompact {k}", "OK"), conn=one)
                    self.expect((f"delete {k}", "DELETED"), conn=other)
                    self.expect((f"sadd {k} c", "STORED"), (f"scompact {k}", "OK"), conn=conn)
                    self.assert_members(k, {b"c"})
                    self.expect((f"delete {k}", "DELETED"), conn=conn)
                    self.expect((f"scompact {k}", "NOT_FOUND"), conn=other)


class Corrupt(RefusingTest):
    """Bytes that do not parse are never rewritten."""
    smoke = True

    def test_base(self):
        for data in BAD_BASES:
            with self.subTest(data=data):
                self.assert_untouched("k", data, 5, self.refuse_all)

    def test_long_base(self):
        """So long that a set would be compacted."""
        for data in (b"+a -a " * 2000 + b"x", b"x" * 50000, b"+a " * 20000 + b"@e00000000000.0.1 "):
            self.assert_untouched("k", data, 5, self.refuse_all)

    def test_writes_are_blind(self):
        """An addition does not read. The compaction that it triggers finds no collection, and changes nothing."""
        for data in (b"hello", b"+a -a " * 500 + b"x"):
            self.assert_not_compacted(data, NOT_A_SET)
        self.assertGreater(counter(self.conn, "corrupt_values"), 0)

    @marks(smoke=False)
    def test_merging(self):
        """A merge that finds an invalid table ends without a change, and leaves nothing behind."""
        self.large_set()
        stored = self.stored("k")
        name = stored.segment_keys[1]
        self.assertEqual(self.at.of(name).set(name, b"hello"), "STORED")
        self.write("sadd", "k", names(300, 5000))
        for conn in self.conns:
            self.assertEqual(conn.ask("scompact k"), "SERVER_ERROR busy")
        now = Stored(self.at, "k")
        self.assertEqual(now.refs[:len(stored.refs)], stored.refs)
        self.assertEqual({key: now.segments[key] for key in stored.segment_keys}, {**stored.segments, name: b"hello"})
        self.assertEqual(self.at.of(name).set(name, stored.segments[name]), "STORED")
        self.assert_members("k", names(1000) + names(300, 5000))
        self.compact("k")
        self.assert_members("k", names(1000) + names(300, 5000))
        self.assert_nothing_else("k")


class OldServer(ScriptedServer):
    """A memcached without meta commands, which stores everything it receives."""

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

    def do_gets(self, request):
        blocks = [b"VALUE %s 0 %d%s\r\n%s\r\n" % (key, len(data), b" %d" % stamp if request.verb == b"gets" else b"", data)
                  for key in request.keys if key in self.items for data, stamp in [self.items[key]]]
        return b"".join(blocks) + b"END\r\n"

    do_get = do_gets

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
    """A server that cannot return a time to live: sets that may have one are not compacted, and everything else works."""
    smoke = True

    def setUp(self):
        super().setUp()
        self.scripted = OldServer()
        self.addCleanup(self.scripted.stop)
        self.old = self.connect(self.setlistd([self.scripted], config=SMALL))

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
        self.assertEqual(self.scripted.items[b"k"][0], expected)
        self.assertEqual({r.verb for r in self.scripted.requests_for("k")} - {b"get", b"gets", b"append", b"add"}, set())
        self.assertEqual(set(self.scripted.items), {b"k"})
        self.assertEqual(counter(self.old, "compactions"), 0)

    def test_commands(self):
        self.write("sadd", "k", names(100), self.old)
        self.assertEqual(self.old.ask("sset k a b c"), "STORED")
        self.assert_members("k", [b"a", b"b", b"c"], self.old)
        self.assertEqual(self.read("k", self.old, "sunion"), {b"a", b"b", b"c"})
        self.assertEqual(self.old.ask("srem k a"), "DELETED")
        self.assertEqual(self.old.ask("smismember k a b"), "0 1")
