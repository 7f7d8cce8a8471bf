"""Tables and indexes that are deleted or overwritten without the proxies' knowledge: then the set is missing, never partial."""
from case import marks
from case_large import LargeSetTest, names
from harness import PATIENCE, wait_until
from stored import counter, split
from tables import read_table

# Seconds between two rounds in which a proxy checks all items of a set in use.
ROUND = 60.0


class LostTables(LargeSetTest):
    """A table or an index is deleted without the proxies' knowledge: a command that needs it finds the set missing, and none returns a part
    of it."""
    smoke = True

    def fresh(self):
        """A connection to a proxy that has not read anything yet."""
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
        """The ids of those of a table, the first being 1."""
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
        """Each command that needs it first."""
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
        """Whether a member is new cannot be determined without its table."""
        for command in ("scard k", "sinfo k"):
            self.large_set()
            self.lose("k", 0)
            conn = self.fresh()
            self.assertEqual(conn.ask("sadd k z"), "STORED")
            self.assertEqual(conn.ask(command), "NOT_FOUND")
            self.assertIsNone(self.at.get("k"))

    def test_who_does_not_need_it(self):
        """It is answered, correctly, until a command detects the loss; then the set is missing for all."""
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
        """The newest run of a set has lost its table: the rest of the set must not be returned."""
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

    def test_touch(self):
        """Nothing can be touched in a set that has lost a table. The base expires when it would have expired."""
        for ttl in (500, 50):
            for number in (0, 1, -1):
                self.large_set()
                self.assertEqual(self.conn.ask("touch k 100"), "TOUCHED")
                self.lose("k", number)
                self.assertEqual(self.fresh().ask(f"touch k {ttl}"), "NOT_FOUND")
                self.assertLessEqual(self.ttl("k"), 100)
                self.assertEqual(self.conn.ask("delete k"), "DELETED")

    def test_algebra_in_blocks(self):
        """The set has given members before a table is found lost: these are no set, and no reply."""
        for verb in ("sunion", "sinter", "sdiff"):
            self.large_set(count=6000)
            self.lose("k", -1)
            conn = self.fresh()
            self.assertEqual(conn.ask(f"{verb} k other" if verb != "sinter" else "sinter k"), "SERVER_ERROR set lost or deleted meanwhile")
            self.assertIsNone(self.at.get("k"), "the base stays")

    def test_starting_afresh(self):
        """Additions after the miss are the only members, through each proxy."""
        self.large_set()
        self.lose("k", 1)
        conn = self.fresh()
        self.assertIsNone(self.read("k", conn))
        self.assertEqual(conn.ask("srem k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("saddx k a"), "NOT_FOUND")
        self.assertEqual(conn.ask("sadd k new"), "STORED")
        for each in (conn, *self.conns):
            self.assert_members("k", [b"new"], each)

    def test_cached_view(self):
        """A proxy that has all of it in memory replies from there, until another one detects the loss: then it is missing for both."""
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

    @marks(smoke=False)
    def test_a_round_of_presence(self):
        """Once a minute a proxy checks all items of a set in use, including those that no read needs.

        So it detects a loss by itself, and memcached considers all of them used.
        """
        self.large_set()
        conn = self.fresh()
        self.assertEqual(conn.ask("sset whole " + b" ".join(names(800)).decode()), "STORED")
        table, = split(self.at.get("whole")).refs
        table = f"whole.{table[1].decode()}"

        def used():
            self.assertEqual(conn.ask("scard whole"), "800")
            return self.at.meta(table, "h u")["h"] == "1"

        def found_out():
            used()
            return conn.ask("scard k") != "1000"
        self.assertFalse(used(), "this test has looked at it itself")
        self.assertEqual(conn.ask("scard k"), "1000")
        self.lose("k", -1)
        wait_until("the proxy looks after them", found_out, pause=0.2, limit=ROUND + PATIENCE)
        self.assertEqual(conn.ask("scard k"), "NOT_FOUND")
        self.assertEqual(counter(conn, "incomplete_sets"), 1)
        self.assert_missing("k")
        wait_until("the table is asked for", used, pause=0.02)

    def test_writes_first(self):
        """Blind writes and compactions of a set that is incomplete: it remains missing, and they do not hang."""
        self.large_set()
        self.lose("k", *self.all_items())
        self.write("sadd", "k", names(500, 5000))
        self.write("srem", "k", names(100))
        self.assertEqual(self.conn.ask("scompact k"), "SERVER_ERROR busy")
        self.assertIsNone(self.read("k", self.fresh()))
        for conn in self.conns:
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
    """Another client overwrites a table or an index: this counts as a loss."""
    # Nothing, not a table, a truncated table, one of the same members of which one is removed: derived from the stored one.
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
        """Items that are not ours are not changed."""
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

    # These check only whether an item exists, not its value.
    test_a_round_of_presence = test_touch = None
