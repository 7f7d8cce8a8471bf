"""What compaction must keep, and what it must keep its hands off."""
import threading
import time

from case_large import SLOW, SMALL, LargeSetTest, names
from fake import FakeServer
from harness import PATIENCE, wait_until
from stored import Stored, counter, split
from tables import read_table

# Members that go to tables at once.
LONG = b" ".join(names(200)).decode()
# Seconds between two rounds in which a proxy asks after all items of a set in use.
ROUND = 60.0
NOT_A_SET = "CLIENT_ERROR value is not a collection"
NEWER = "SERVER_ERROR stored by a newer version of setlistd"
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
# Each is of a version to come, whatever else that has.
NEWER_BASES = (b"@set.2 ", b"@set.2 @x +a ", b"+a -b @set.10 nobody knows", b"@set.4294967295 " + TABLE, b"@list.2 @l00000000000.3.1 ",
               b"@set.2 " + b"x" * 5000)
# Each is of the version that came before, which nobody reads any more.
OLD_BASES = (b"@c00000000000.0.3 +a ", b"+a @d00000000000.12.128 @c00000000001.0.1 -b ", b"@c00000000000.0.1 " + b"+a -a " * 900)


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
            time.sleep(0.00003 * (step % 40))
            self.assertEqual((self.conn, *self.others)[step % 2].ask(f"touch {key} 50000"), "TOUCHED")
            self.assertIn(merger.line(), (b"OK", b"SERVER_ERROR busy"))
            # it may be set right behind the replies
            wait_until("the tables live as long as the base", PATIENCE, lambda: self.shortest(key) >= 50000 - SLOW)

    def shortest(self, key):
        """The time to live of the item that ends first."""
        metas = [self.at.meta(name, "t") for name in (key, *Stored(self.at, key).segment_keys)]
        return min(int(meta["t"]) if meta else 0 for meta in metas)


class LostTables(LargeSetTest):
    """A table or an index goes behind the proxies' backs: who needs it finds the set missing, and nobody gets a part of it."""

    def fresh(self):
        """A connection to a proxy that has seen nothing yet."""
        return self.connect(self.setlistd(self.servers, config=self.config))

    def lose(self, key, *numbers):
        """Deletes items of the set: 0 is its index, 1 the first table."""
        for number in numbers:
            self.assertEqual(self.at.delete(self.stored_before[number]), "DELETED")

    def large_set(self, key="k", **kwargs):
        members = super().large_set(key, **kwargs)
        self.run, = self.stored(key).runs
        self.stored_before = [self.run.key, *self.run.tables]
        return members

    def all_items(self):
        return range(len(self.stored_before))

    def members_of(self, number):
        """Those of a table, the first being 1."""
        data = self.at.get(self.stored_before[number])
        return [member for member, _ in read_table(data)]

    def test_miss_and_count(self):
        for number in (0, 1, 2, -1):
            with self.subTest(number=number):
                self.large_set()
                self.lose("k", number)
                conn = self.fresh()
                self.assertIsNone(self.read("k", conn))
                self.assertEqual(counter(conn, "incomplete_sets"), 1)
                self.assertIsNone(self.at.get("k"), "the base stays")
                for other in (conn, *self.others, self.conn):
                    self.assert_missing("k", other)

    def test_every_command(self):
        """Whichever asks first and cannot do without."""
        for command, reply in (("smembers k", "END"), (f"sismember k {names(1)[0].decode()}", "NOT_FOUND"),
                               ("smismember k a z", "NOT_FOUND"), ("srandmember k 5", "END"), ("srandmember k 500", "END"),
                               ("spop k 5", "END"), ("sscan k 5", "END"), ("sscan k 5 m5", "END"), ("srange k m m5 5", "END"),
                               ("scount k m4 m5", "NOT_FOUND")):
            for numbers in ([0], None):
                with self.subTest(command=command, numbers=numbers):
                    self.large_set()
                    self.lose("k", *(numbers or self.all_items()[1:]))
                    self.assertEqual(self.fresh().ask(command), reply)
                    self.assertIsNone(self.at.get("k"), "the base stays")

    def test_counting_what_changed(self):
        """Whether a member is new cannot be told without its table."""
        for command in ("scard k", "sinfo k"):
            self.large_set()
            self.lose("k", 0)
            conn = self.fresh()
            self.assertEqual(conn.ask("sadd k z"), "STORED")
            self.assertEqual(conn.ask(command), "NOT_FOUND")
            self.assertIsNone(self.at.get("k"))

    def test_who_does_not_need_it(self):
        """Is answered, and rightly so, as long as nobody has found out; then the set is gone for all."""
        members = sorted(self.large_set())
        first, last = self.members_of(1), self.members_of(-1)
        self.assertEqual((first + last)[0], members[0])
        self.lose("k", -1)
        conn = self.fresh()
        self.assertEqual(conn.ask("scard k"), "1000")
        self.assertEqual(conn.ask(b"smismember k %s %sx %s" % (first[0], first[1], first[-1])), "1 0 1")
        self.assertEqual(self.read("k", conn, "sscan", 20), set(first[:20]))
        self.assertEqual(conn.values(f"srange k a {first[9].decode()} 100")[0]["k"][1], b" ".join(first[:10]))
        self.assertEqual(conn.ask(f"scount k {first[10].decode()} {first[19].decode()}"), "10")
        self.assertEqual(counter(conn, "incomplete_sets"), 0)
        self.assertEqual(conn.ask(b"smismember k %s %s" % (first[0], last[0])), "NOT_FOUND")
        self.assertEqual(counter(conn, "incomplete_sets"), 1)
        self.assertEqual(conn.ask(b"sismember k " + first[0]), "NOT_FOUND")
        self.assert_missing("k", self.conn)

    def test_one_of_several_runs(self):
        """A set whose newest run has lost its table: what it is made of beside that must not come to light."""
        members = self.large_set()
        self.add_run("srem", "k", members[:200])
        newest = self.stored("k").runs[-1].key
        self.assertEqual(self.at.delete(newest), "DELETED")
        conn = self.fresh()
        self.assertEqual(conn.ask(b"sismember k " + members[0]), "NOT_FOUND")
        self.assert_missing("k", self.others[0])

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
        self.assertIsNone(self.read("k", conn))
        self.assertEqual(conn.ask("srem k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("saddx k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("sadd k new"), "STORED")
        for each in (conn, self.conn, *self.others):
            self.assert_members("k", [b"new"], each)

    def test_cached_view(self):
        """Who has all of it in memory answers from there, until another one has found out: then at once it is gone for both."""
        members = self.large_set()
        self.assert_members("k", members, self.others[0])
        self.lose("k", *self.all_items())
        self.assert_members("k", members, self.others[0])
        self.assertEqual(self.others[0].ask(b"smismember k %s x" % members[0]), "1 0")
        self.write("srem", "k", members[:10], self.others[0])
        self.assert_members("k", members[10:], self.others[0])
        self.assertIsNone(self.read("k", self.fresh()))
        self.assert_missing("k", self.others[0])
        self.assertEqual(self.others[0].ask("sadd k new"), "STORED")
        self.assert_members("k", [b"new"])

    def test_a_round_of_presence(self):
        """Once a minute a proxy asks after all items of a set in use, those too that no read needs.

        So it finds out by itself what is gone, and memcached takes all of them for used.
        """
        self.large_set()
        conn = self.fresh()
        self.assertEqual(conn.ask("sset whole " + LONG), "STORED")
        table, = split(self.at.get("whole")).refs
        table = f"whole.{table[1].decode()}"

        def used():
            self.assertEqual(conn.ask("scard whole"), "200")
            return self.at.meta(table, "h u")["h"] == "1"

        def found_out():
            used()
            return conn.ask("scard k") != "1000"
        self.assertFalse(used(), "this test has looked at it itself")
        self.assertEqual(conn.ask("scard k"), "1000")
        self.lose("k", -1)
        wait_until("the proxy looks after them", ROUND + PATIENCE, found_out, pause=0.2)
        self.assertEqual(conn.ask("scard k"), "NOT_FOUND")
        self.assertEqual(counter(conn, "incomplete_sets"), 1)
        self.assert_missing("k")
        wait_until("the table is asked for", PATIENCE, used, pause=0.02)

    def test_writes_first(self):
        """Blind writes and compactions of what is not whole any more: it stays a miss, and they do not hang."""
        self.large_set()
        self.lose("k", *self.all_items())
        self.write("sadd", "k", names(500, 5000))
        self.write("srem", "k", names(100))
        self.assertEqual(self.conn.ask("scompact k"), "SERVER_ERROR busy")
        self.assertIsNone(self.read("k", self.fresh()))
        for conn in (self.conn, *self.others):
            self.assert_missing("k", conn)
        self.assertEqual(self.conn.ask("sadd k new"), "STORED")
        self.assert_members("k", [b"new"], self.others[0])

    def test_lost_while_it_is_read(self):
        """Reads and writes all the time, while tables go: each reply is a whole set, or none."""
        for step in range(12):
            members = set(self.large_set())
            reader = self.fresh() if step % 2 else self.connect(self.proxies[step % 4 // 2])
            reader.send(b"smembers k\r\n" * 5)
            self.others[0].send(b"sadd k extra\r\n")
            self.at.delete(self.stored_before[step % 3])
            reader.send(b"smembers k\r\n" * 5)
            self.assertEqual(self.others[0].line(), b"STORED")
            for _ in range(10):
                found, end = reader.read_values()
                self.assertEqual(end, "END")
                if found:
                    whole = set(found["k"][1].split(b" "))
                    self.assertIn(whole, (members, members | {b"extra"}, {b"extra"}))
            self.conn.ask("delete k")


class ChangedTables(LostTables):
    """Somebody writes other bytes over a table or an index: that is as good as gone."""
    # Nothing, no table, a table cut short, one of the same members of which one is removed: made from what was there.
    CHANGES = (lambda data: b"", lambda data: b"hello", lambda data: data[:-1], lambda data: data + b"x",
               lambda data: data[:-4] + bytes([data[-4] ^ 1]) + data[-3:], lambda data: data.replace(b"m", b"n", 1))

    def lose(self, key, *numbers):
        """In place of deleting it; with each call in another way."""
        for number in numbers:
            name = self.stored_before[number]
            data = self.at.get(name)
            change = self.CHANGES[self.changes % len(self.CHANGES)]
            changed = change(data)
            self.changes += 1
            self.assertNotEqual(changed, data)
            self.assertEqual(self.at.of(name).set(name, changed), "STORED")
            self.changed[name] = changed

    def setUp(self):
        super().setUp()
        self.changes, self.changed = 0, {}

    def large_set(self, key="k", **kwargs):
        self.assert_untouched()
        return super().large_set(key, **kwargs)

    def assert_untouched(self):
        """What is none of ours is left alone."""
        for name, data in self.changed.items():
            self.assertEqual(self.at.get(name), data)

    def tearDown(self):
        self.assert_untouched()

    def test_another_table(self):
        """One of the very same set, and well formed, but not the one that the index means."""
        self.large_set()
        one, other = self.stored_before[1:3]
        self.assertEqual(self.at.of(one).set(one, self.at.get(other)), "STORED")
        self.assertIsNone(self.read("k", self.fresh()))
        self.assert_missing("k")

    def test_another_index(self):
        """Of an older run of the same set."""
        self.large_set()
        old = self.at.get(self.run.key)
        self.write("sadd", "k", names(500, 5000))
        self.compact("k")
        name = self.stored("k").runs[0].key
        self.assertEqual(self.at.of(name).set(name, old), "STORED")
        self.assertIsNone(self.read("k", self.fresh()))
        self.assert_missing("k")

    # A round does not look at what an item holds, only whether there is one.
    test_a_round_of_presence = None


class Corrupt(LargeSetTest):
    """Bytes that do not parse are never rewritten."""

    def assert_untouched(self, key, data, flags, act):
        """Whatever act() does, the item stays the very same: no write at all, or its cas id would differ."""
        conn = self.at.of(key)
        self.assertEqual(conn.set(key, data, flags, 500), "STORED")
        before = self.at.meta(key, "c f")
        act()
        self.assertEqual((conn.get(key), self.at.meta(key, "c f")), (data, before))

    def refuse_all(self, error=NOT_A_SET):
        for command in ("smembers k", "scard k", "sismember k a", "smismember k a b", "srandmember k", "spop k", "spop k 3",
                        "sunion k other", "sinter other k", "sdiff k", "scompact k", "sinfo k", "sset k a b", "sset k",
                        "sscan k 5", "sscan k 5 a", "srange k a z 5", "scount k a z", "sset k " + LONG):
            for conn in (self.conn, *self.others):
                self.assertEqual(conn.ask(command), error, command)

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

    def test_merging(self):
        """A merge that comes upon what is no table ends without a change, and leaves nothing behind."""
        self.large_set()
        stored = self.stored("k")
        name = stored.segment_keys[1]
        self.assertEqual(self.at.of(name).set(name, b"hello"), "STORED")
        self.write("sadd", "k", names(300, 5000))
        for conn in (self.conn, *self.others):
            self.assertEqual(conn.ask("scompact k"), "SERVER_ERROR busy")
        now = Stored(self.at, "k")
        self.assertEqual(now.refs[:len(stored.refs)], stored.refs)
        self.assertEqual({key: now.segments[key] for key in stored.segment_keys}, {**stored.segments, name: b"hello"})
        self.assertEqual(self.at.of(name).set(name, stored.segments[name]), "STORED")
        self.assert_members("k", names(1000) + names(300, 5000))
        self.compact("k")
        self.assert_members("k", names(1000) + names(300, 5000))
        self.assert_nothing_else("k")


class OtherVersions(Corrupt):
    """What a later version has written is left to it; what the one before has written counts as nothing."""

    def test_newer(self):
        for data in NEWER_BASES:
            with self.subTest(data=data[:60]):
                self.assert_untouched("k", data, 5, lambda: self.refuse_all(NEWER))
        self.assertEqual(counter(self.conn, "corrupt_values"), 0)

    def test_newer_lists(self):
        commands = ("lrange k 0 -1", "llen k", "lindex k 0", "lpos k a", "lpop k", "rpop k 2", "lrem k 0 a", "lset k 0 b", "ltrim k 1 2")
        for data in NEWER_BASES:
            self.assert_untouched("k", data, 5, lambda: [self.assertEqual(self.conn.ask(each), NEWER, each) for each in commands])

    def test_newer_is_not_compacted(self):
        """Adding does not read. What it triggers finds the later version, and leaves it as it is, with what was added behind."""
        for data in (b"@set.2 @x ", b"+a @set.2 @x +y "):
            self.assertEqual(self.at.of("k").set("k", data, 5, 500), "STORED")
            self.write("sadd", "k", names(2000), per_line=50)
            self.assertEqual(self.conn.ask("scompact k"), NEWER)
            self.assertEqual(self.conn.ask("scard k"), NEWER)
            self.assertEqual(self.at.get("k"), data + b"".join(b"+%s " % name for name in names(2000)))
            self.assertEqual(self.at.meta("k", "f")["f"], "5")
            self.assertEqual(counter(self.conn, "compactions"), 0)

    def test_newer_behind_a_view(self):
        """A proxy that knows the set as it was is not misled."""
        members = self.large_set()
        self.assert_members("k", members)
        self.assert_members("k", members, self.others[0])
        self.assert_untouched("k", b"@set.2 " + self.at.get("k").split(b" ", 1)[1], 0, lambda: self.refuse_all(NEWER))
        for conn in (self.conn, *self.others):
            self.assertEqual(conn.ask("delete k"), "DELETED" if conn is self.conn else "NOT_FOUND")
            self.assertEqual(conn.ask("sadd k again"), "STORED")
            self.assert_members("k", [b"again"], conn)
            self.assertEqual(conn.ask("delete k"), "DELETED")

    def test_newer_touch_and_delete(self):
        """What else there is of it could not be touched along with the base, which would outlive it. To delete it is no matter."""
        for data in NEWER_BASES:
            for conn in (self.conn, *self.others):
                self.assert_untouched("k", data, 5, lambda: self.assertEqual(conn.ask("touch k 900"), NEWER))
                self.assert_ttl("k", 500)
                self.assertEqual(conn.values("get k"), ({"k": (5, data)}, "END"))
                self.assertEqual(conn.ask("delete k"), "DELETED")
                self.assertIsNone(self.at.get("k"))

    def test_old_counts_as_missing(self):
        for data in OLD_BASES:
            for command, reply in (("smembers k", "END"), ("scard k", "NOT_FOUND"), ("sismember k a", "NOT_FOUND"),
                                   ("smismember k a b", "NOT_FOUND"), ("sinfo k", "NOT_FOUND"), ("srandmember k 5", "END"),
                                   ("spop k 5", "END"), ("sscan k 5", "END"), ("srange k a z 5", "END"), ("scount k a z", "NOT_FOUND")):
                self.assertEqual(self.at.of("k").set("k", data, 5, 500), "STORED")
                self.assertEqual(self.conn.ask(command), reply, command)
                self.assertIsNone(self.at.get("k"), f"{command} leaves the base")
                self.assertEqual(self.others[0].ask("sadd k new"), "STORED")
                self.assert_members("k", [b"new"])

    def test_old_is_replaced(self):
        for data in OLD_BASES:
            self.assertEqual(self.at.of("k").set("k", data), "STORED")
            self.assertEqual(self.conn.ask("scompact k"), "NOT_FOUND")
            self.assertEqual(self.conn.ask("sset k a b"), "STORED")
            self.assert_members("k", [b"a", b"b"], self.others[0])
            self.assertEqual(self.at.get("k"), b"+a +b ")

    def test_old_behind_a_view(self):
        self.assert_members("k", self.large_set(), self.others[0])
        self.assertEqual(self.at.of("k").set("k", OLD_BASES[0]), "STORED")
        self.assert_missing("k", self.others[0])

    test_base = test_long_base = test_writes_are_blind = test_merging = None


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
