"""Sets larger than an item: how they are stored, and that delete, touch, gat and sset apply to all of their items.

STORM_MILLION=1 also loads a set of a million members.
"""
import os
import time
import unittest

from case import marks
from case_large import MARGIN, MARGIN_OF_DATE, MONTH, SLOW, SMALL, LargeSetTest, names
from harness import PATIENCE, wait_until
from stored import Stored, counter, stat, stats

TABLE_SIZE, LOG_SIZE = 32768, 4096
BASE_SIZE = 4 * LOG_SIZE    # the limit above which a read compacts a set with more than a megabyte of tables


class Loading(LargeSetTest):
    """With the default sizes, and many members."""
    smoke = True
    config = None

    def assert_compact(self, key, members):
        """The stored bytes are fewer than those of the members, and no item is too large or unreferenced."""
        allowed = sum(map(len, members)) + 2 * LOG_SIZE

        def is_short():
            # Writes check the size of the base only by chance; a read that finds it too long always folds it.
            self.conn.ask("scard " + key)
            return len(self.at.get(key)) <= BASE_SIZE

        wait_until("the base shrinks", is_short, pause=0.1)
        wait_until("merges end", lambda: Stored(self.at, key).bytes() <= allowed, pause=0.1)
        self.assert_nothing_else(key)
        stored = self.stored(key)
        self.assertEqual(stored.members(), set(members))
        self.assertLessEqual(max(stored.sizes().values(), default=0), TABLE_SIZE)

    def load(self, count):
        """In lines of 100; complete through the proxy that has it in memory and through another."""
        members = names(count)
        self.write("sadd", "k", members)
        self.assert_compact("k", members)
        for conn in self.conns:
            self.assert_members("k", members, conn)
            self.assertEqual(conn.ask("scard k"), str(count))
        self.assertEqual(self.conn.ask(b"smismember k %s x %s" % (members[0], members[-1])), "1 0 1")

    @marks(smoke=False)
    def test_200_000(self):
        self.load(200000)

    @marks(smoke=False)
    @unittest.skipUnless(os.environ.get("STORM_MILLION"), "STORM_MILLION is not set")
    def test_1_000_000(self):
        self.load(1000000)

    def test_shrinking(self):
        """Most members are removed again, through both proxies."""
        members = names(200000)
        self.write("sadd", "k", members)
        for i, conn in enumerate(self.conns):
            self.write("srem", "k", members[5000 + i::2], conn)
        rest = members[:5000]
        self.assert_members("k", rest)
        self.compact("k")
        self.assert_compact("k", rest)
        self.assert_members("k", rest, self.others[0])

    def test_emptying(self):
        """A large set that is emptied is an empty set, not a missing one."""
        members = names(20000)
        self.write("sadd", "k", members)
        self.write("srem", "k", members)
        self.assertEqual(self.conn.ask("scard k"), "0")
        self.compact("k")
        self.assert_nothing_else("k")
        self.assertEqual(self.at.item_count(), 1)
        for conn in self.conns:
            self.assertEqual(self.read("k", conn), set())
            self.assertEqual(conn.ask("scard k"), "0")

    def test_blind_writes_compact_too(self):
        """There are no reads, so writes check the size only by chance: this must keep the base small."""
        biggest = 0
        for _ in range(200):
            self.write("sadd", "k", names(1000))
            self.write("srem", "k", names(1000))
            biggest = max(biggest, int(self.at.meta("k", "s")["s"]))
        self.assertLess(biggest, 128 * 1024)
        self.assertGreater(counter(self.conn, "compactions"), 0)
        self.assertEqual(self.stored("k").members(), set())
        for conn in self.conns:
            self.assertEqual(self.read("k", conn), set())

    def test_one_long_line(self):
        """All in one command of nearly 1 MiB."""
        members = names(75000)
        self.write("sadd", "k", members, per_line=len(members))
        self.assert_members("k", members)
        self.write("srem", "k", members[10:], self.others[0], per_line=len(members))
        self.assert_members("k", members[:10])


class Runs(LargeSetTest):
    """With small tables."""
    smoke = True

    def test_layers(self):
        """Each layer overrides some members of the older ones."""
        members = self.large_set()
        self.add_run("srem", "k", members[100:300])
        self.add_run("sadd", "k", members[200:250] + names(150, 5000), self.others[0])
        self.write("srem", "k", members[240:260] + names(10, 5000))
        expected = {*members[:100], *members[200:240], *members[300:], *names(140, 5010)}
        stored = self.stored("k")
        self.assertEqual([(len(run.entries), run.removals()) for run in stored.runs], [(1000, 0), (200, 200), (200, 0)])
        self.assertEqual(stored.members(), expected)
        for conn in self.conns:
            self.assert_members("k", expected, conn)
            self.assertEqual(conn.ask("scard k"), str(len(expected)))
            asked = [members[150], members[220], members[245], members[255], names(1, 5005)[0], names(1, 5100)[0], members[400]]
            self.assertEqual(conn.ask(b"smismember k " + b" ".join(asked)), "0 1 0 0 0 1 1")
        self.compact("k")
        run, = self.stored("k").runs
        self.assertEqual([member for member, _ in run.entries], sorted(expected))
        self.assert_nothing_else("k")

    def test_filled_and_emptied(self):
        """Merges without a result, while the log is moved to new runs, which remove members that no longer exist."""
        members = names(1000)
        for step in range(100):
            conn = self.conns[step // 2 % 2]
            # Each line is spilled separately, after a read. Where all is removed twice, the second time crosses the merge.
            for verb in ("sadd", "srem", "srem")[:2 + step % 2]:
                self.write(verb, "k", members, conn, per_line=1000)
                self.assertEqual(conn.ask("sismember k x"), "0")
            if step % 5 == 0:
                self.assertEqual(self.stored("k").members(), set())
                for conn in self.conns:
                    self.assertEqual((conn.ask("scard k"), self.read("k", conn)), ("0", set()))

    def test_sinfo(self):
        """In all layers, as their reader here counts them; the same from a proxy that reads the set for the first time."""
        members = self.large_set()
        self.add_run("srem", "k", members[:200])
        self.write("sadd", "k", members[:10] + names(10, 5000))
        self.write("srem", "k", names(5, 5000))
        stored = self.stored("k")
        expected = {"members": len(stored.members()), "base_bytes": len(stored.base), "tokens": stored.log.count(b" "),
                    "table_bytes": sum(run.bytes for run in stored.runs), "runs": 2,
                    "tables": sum(len(run.tables) for run in stored.runs), "entries": 1200, "removals": 200}
        expected["bytes"] = expected["base_bytes"] + expected["table_bytes"]
        self.assertEqual((expected["members"], expected["tokens"]), (815, 25))
        for conn in self.conns:
            info = stats(conn, "sinfo k")
            self.assertEqual({name: int(info[name]) for name in expected}, expected)
            self.assertEqual((info["waste"], info["ttl"], info["server"]), ("0.20", "-1", self.conn.ask("route k").split()[2]))

    def test_longest_key_and_members(self):
        """A key of 220 bytes leaves room for the names of its tables; members of 250 bytes fill tables badly."""
        key = "k" * 220
        members = [b"%04d" % (i * 7919 % 10000) + b"x" * 246 for i in range(200)]
        self.write("sadd", key, members)
        self.compact(key)
        self.assertGreater(len(self.stored(key).runs[0].tables), 2)
        self.assert_members(key, members, self.others[0])


class Replacing(LargeSetTest):
    """sset, and its effect on tables."""
    smoke = True

    def sset(self, members, conn=None):
        self.assertEqual((conn or self.conn).ask(b"sset k " + b" ".join(members)), "STORED")

    def assert_items(self, count):
        wait_until(f"{count} items are left", lambda: self.at.item_count() == count)

    def test_large_by_small(self):
        """Through the proxy that wrote it, and through another one."""
        for members, writer, reader in (([b"a", b"b"], self.conn, self.others[0]), ([b"a"], self.others[0], self.conn),
                                        ([], self.conn, self.others[0])):
            self.large_set()
            self.sset(members, writer)
            self.assert_items(1)
            self.assert_members("k", members, reader)
            self.assertEqual(self.conn.ask("scard k"), str(len(members)))

    def test_large_by_large(self):
        self.large_set()
        self.sset(names(2000, 10000))
        stored = self.stored("k")
        self.assertGreater(len(stored.segments), 3)
        self.assertEqual(stored.members(), set(names(2000, 10000)))
        self.assert_items(1 + len(stored.segments))
        for conn in self.conns:
            self.assert_members("k", names(2000, 10000), conn)

    def test_duplicates(self):
        """A member named twice is stored once: a table names each once."""
        self.sset(names(2000) + names(2000))
        self.assertEqual(self.conn.ask("scard k"), "2000")
        self.assertEqual([len(run.entries) for run in self.stored("k").runs], [2000])
        self.assert_members("k", names(2000))

    def test_not_a_collection(self):
        """The tables that were written for it go again."""
        self.at.of("k").set("k", b"hello")
        self.assertEqual(self.conn.ask(b"sset k " + b" ".join(names(2000))), "CLIENT_ERROR value is not a collection")
        self.assertEqual(self.at.get("k"), b"hello")
        self.assert_items(1)


class Deleting(LargeSetTest):
    smoke = True

    def assert_all_gone(self):
        wait_until("all items are gone", lambda: self.at.item_count() == 0)

    def test_by_the_proxy_that_wrote_it(self):
        self.large_set()
        self.assertEqual(self.conn.ask("delete k"), "DELETED")
        self.assert_all_gone()
        self.assert_missing("k")
        self.assert_missing("k", self.others[0])
        self.assertEqual(self.conn.ask("delete k"), "NOT_FOUND")

    def test_by_a_proxy_that_has_read_it_or_has_a_rule(self):
        self.assert_members("k", self.large_set(), self.others[0])
        self.assertEqual(self.others[0].ask("delete k"), "DELETED")
        self.assert_all_gone()
        self.large_set()
        proxy = self.setlistd(self.servers, config=SMALL + '\ncollection "k" { ttl = 0 }')
        self.assertEqual(self.connect(proxy).ask("delete k"), "DELETED")
        self.assert_all_gone()

    def test_noreply(self):
        self.large_set()
        self.conn.send(b"delete k noreply\r\nscard k\r\n")
        self.assertEqual(self.conn.line(), b"NOT_FOUND")
        self.assert_all_gone()


    def test_while_it_is_compacted(self):
        """Through either proxy, while tables are written and merged: late tables are deleted again.

        Without a rule, a proxy that has seen the set only while it was small deletes one item.
        """
        other = self.connect(self.setlistd(self.servers, config=SMALL + '\ncollection "k" { ttl = 0 }'))
        members = names(3000)
        lines = [b"sadd k %s\r\n" % b" ".join(members[i:i + 20]) for i in range(0, 3000, 20)]
        for step, conn in enumerate((self.conn, other) * 8):
            writer = self.connect(self.proxies[0])
            writer.send(b"".join(lines))
            for _ in lines[9 * step:]:
                self.assertEqual(writer.line(), b"STORED")
            self.assertIsNotNone(self.read("k", conn))
            self.assertEqual(conn.ask("delete k"), "DELETED")
            for _ in lines[:9 * step]:
                self.assertEqual(writer.line(), b"STORED")
            self.conn.ask("delete k")
        self.assert_all_gone()

    def test_then_added_again(self):
        """In one pipeline, after writes, which sometimes request the size of the base: no part of the old set returns."""
        for _ in range(20):
            self.large_set(count=900)
            self.conn.send(b"srem k x\r\nsadd k %s %s\r\ndelete k\r\nsadd k new\r\nsmembers k\r\n" % (b"x" * 250, b"y" * 250))
            self.assertEqual([self.conn.line() for _ in range(4)], [b"DELETED", b"STORED", b"DELETED", b"STORED"])
            self.assertEqual(self.conn.read_values()[0]["k"][1], b"new")
        self.assertEqual(self.conn.ask("delete k"), "DELETED")
        self.assert_all_gone()


class Touching(LargeSetTest):
    smoke = True

    def test_touch(self):
        self.large_set()
        self.assert_ttl_of_all("k", -1)
        for conn in self.conns:
            self.assertEqual(conn.ask("touch k 500"), "TOUCHED")
            self.assert_ttl_of_all("k", 500)
            self.assertEqual(conn.ask("touch k 0"), "TOUCHED")
            self.assert_ttl_of_all("k", -1)
        self.assertEqual(self.conn.ask("touch missing 5"), "NOT_FOUND")

    def test_gat(self):
        """The reply is the stored bytes, and the time to live reaches the tables and their index."""
        self.large_set()
        for verb, ttl in (("gat", 500), ("gats", 900)):
            found, end = self.conn.values(f"{verb} {ttl} k")
            self.assertEqual((found["k"][1], end), (self.at.get("k"), "END"))
            # they are touched after the reply
            wait_until("the tables are touched", lambda: all(
                self.ttl(name) in range(ttl - SLOW, ttl + MARGIN + 1) for name in self.stored("k").segment_keys))
            self.assert_ttl_of_all("k", ttl)

    def test_expiry(self):
        """All of it expires, and later additions form a new set."""
        self.large_set()
        self.assertEqual(self.conn.ask("touch k 1"), "TOUCHED")
        wait_until("the set is gone", lambda: self.conn.ask("scard k") == "NOT_FOUND", pause=0.1)
        self.assertEqual(self.conn.ask("sadd k new"), "STORED")
        for conn in self.conns:
            self.assert_members("k", [b"new"], conn)
            self.assertEqual(counter(conn, "incomplete_sets"), 0, "the base outlived its tables")

    def test_date(self):
        """The clock by which a date was made may be another than that of the server."""
        self.large_set()
        for ttl in (10 * MONTH, 20 * MONTH, 2 * MONTH):
            self.assertEqual(self.conn.ask(f"touch k {int(time.time()) + ttl}"), "TOUCHED")
            for name in self.stored("k").segment_keys:
                self.assertGreater(self.ttl(name), self.ttl("k") + MARGIN_OF_DATE - 1, name)
            self.assertLess(abs(self.ttl("k") - ttl), SLOW)
        # Here the end of the parts becomes a date.
        self.assertEqual(self.conn.ask(f"touch k {MONTH - 5}"), "TOUCHED")
        self.assert_ttl("k", MONTH - 5)
        for name in self.stored("k").segment_keys:
            self.assertGreater(self.ttl(name), self.ttl("k"), name)

    def test_rule(self):
        """A rule's time to live also applies to the tables, from the creation of the set."""
        proxy = self.setlistd(self.servers, config=SMALL + '\ncollection "r" { ttl = 700 }')
        conn = self.connect(proxy)
        self.write("sadd", "r", names(1000), conn)
        self.compact("r", conn)
        self.assertGreater(len(self.stored("r").segments), 3)
        self.assert_ttl_of_all("r", 700)
        self.assertEqual(conn.ask(b"sset r " + b" ".join(names(1000))), "STORED")
        self.assert_ttl_of_all("r", 700)


class Pressure(LargeSetTest):
    """Servers evict the items of a set, one by one or all at once: each reader finds it complete or missing."""
    config = None
    COUNT = 200000

    def without_memory(self):
        """A connection to a proxy that keeps nothing, and so needs all of a set each time."""
        return self.connect(self.setlistd(self.servers, config="cache_memory = 0"))

    def whole_or_missing(self, key, members, conn):
        """Whether it is missing."""
        found = self.read(key, conn)
        self.assertIn(found, (None, members))
        if found is None:
            self.assertEqual(conn.ask(f"scard {key}"), "NOT_FOUND")
        return found is None

    def fill(self, size, start, count):
        """Items of the size of a table, on all servers: memcached evicts items of about the same size."""
        for conn in self.at.conns.values():
            conn.send(b"".join(b"set junk-%d 0 0 %d noreply\r\n%s\r\n" % (number, size, b"x" * size)
                               for number in range(start, start + count)) + b"mn\r\n")
            self.assertEqual(conn.line(), b"MN")

    def load(self, keys, members):
        for key in keys:
            self.write("sadd", key, sorted(members))
            self.compact(key)

    def test_evictions(self):
        """Much more is written than the servers hold: an idle set goes, and so may one that is read all the time."""
        members = set(names(self.COUNT))
        self.load(("idle", "used"), members)
        conn, gone, step = self.without_memory(), set(), 0
        made_of = self.stored("idle").sizes()
        size = max(made_of.values())
        count = 3200000 // size

        def evicted():
            nonlocal step
            self.fill(size, count * step, count)
            step += 1
            if "used" not in gone and self.whole_or_missing("used", members, conn):
                gone.add("used")
            # `u`: this look does not make it more lately used.
            return any(self.at.meta(name, "u") is None for name in made_of)
        wait_until("something of the idle set is evicted", evicted, pause=0, limit=2 * PATIENCE)
        self.assertGreater(sum(stat(each, "stats", "evictions") for each in self.at.conns.values()), 0)
        for each in (self.without_memory(), conn, *self.conns):
            self.assert_missing("idle", each)
        # A set that has lost a part cannot be added to, even before a read has found out.
        self.whole_or_missing("used", members, self.without_memory())
        self.load(("idle", "used"), members)
        for each in (conn, *self.conns):
            self.assert_members("idle", members, each)

    def test_a_server_comes_back_empty(self):
        """The part on one server is missing, and that on another server is complete."""
        members = set(names(self.COUNT))
        for server, other in (self.servers, self.servers[::-1]):
            key, kept = self.key_on(self.conn, server), self.key_on(self.conn, other)
            self.load((key, kept), members)
            server.kill()
            server.start()
            self.at.conns[server.name] = self.connect(server)
            for conn in (self.without_memory(), *self.conns):
                wait_until("the server is used again", lambda: conn.ask(f"get {key}") == "END")
                self.assert_missing(key, conn)
                self.assert_members(kept, members, conn)
            self.conn.ask(f"delete {kept}")
