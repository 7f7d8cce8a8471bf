"""The cost of large sets: the stored bytes, and the requests of a proxy to the servers.

Counted by memcached, in bytes and requests: no time is measured.
"""
import random

from case_large import LargeSetTest, names
from stored import stats

COUNT = 200000


class CostTest(LargeSetTest):
    """With the defaults."""
    config = None

    def fill(self, members, key="k"):
        self.write("sadd", key, members)
        self.compact(key)
        return self.stored(key)


class StoredBytes(CostTest):
    """The base, the index and the tables, as memcached has them, in bytes for each member."""

    def each(self, members):
        stored = self.fill(members)
        self.assertEqual(stored.members(), set(members))
        return stored.bytes() / len(members)

    def test_members_that_count(self):
        self.assertLessEqual(self.each([b"user-%07d" % number for number in range(1, COUNT + 1)]), 0.5)

    def test_random_members(self):
        dice = random.Random(1)
        self.assertLessEqual(self.each([b"%016x" % dice.getrandbits(64) for _ in range(COUNT)]), 7)

    def test_random_letters(self):
        dice = random.Random(2)
        members = sorted({"".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=10)).encode() for _ in range(COUNT)})
        self.assertLessEqual(self.each(members), 4.5)


class NotPacked(CostTest):
    """The form that setlistd 1.0 can read."""
    config = "packed_tables = false"

    def test_form(self):
        stored = self.fill([b"user-%07d" % number for number in range(1, COUNT + 1)])
        self.assertTrue(stored.base.startswith(b"@set.1 "))
        self.assertEqual({data[:2] for name, data in stored.segments.items() if name not in stored.segment_keys[:1]}, {b"T1"})
        self.assertLessEqual(stored.bytes() / COUNT, 5)


class FirstRead(CostTest):
    """By a proxy that has read nothing yet of a set of 200,000."""
    smoke = True

    def asked(self, act):
        """Returns how many items were requested from all servers in act(), and how many bytes they wrote, without the requests of this
        check."""
        before = self.look(), self.look()
        act()
        after = self.look()
        own = before[1][1] - before[0][1]
        return after[0] - before[1][0], after[1] - before[1][1] - own

    def look(self):
        found = [stats(conn, "stats") for conn in self.at.conns.values()]
        return sum(int(each["cmd_get"]) + int(each["cmd_touch"]) for each in found), sum(int(each["bytes_written"]) for each in found)

    def fresh(self):
        """A connection to such a proxy, which is connected to its servers."""
        conn = self.connect(self.setlistd(self.servers))
        for server in self.servers:
            self.assertIsNone(conn.get(self.key_on(conn, server, "none")))
        return conn

    def test_sismember(self):
        members = names(COUNT)
        self.assertGreater(len(self.fill(members).segments), 30)
        for member, reply in ((members[0], "1"), (members[-1], "1"), (b"m5", "0"), (b"a", "0"), (b"z", "0")):
            conn = self.fresh()
            requests, size = self.asked(lambda: self.assertEqual(conn.ask(b"sismember k " + member), reply))
            self.assertLessEqual(requests, 3)
            self.assertLess(size, 128 * 1024)
            # It was cached: only the base is requested.
            requests, size = self.asked(lambda: self.assertEqual(conn.ask(b"sismember k " + member), reply))
            self.assertLessEqual(requests, 1)
            self.assertLess(size, 1024)

    def test_others_that_need_little(self):
        """The number of members is in the base; a page, a few random members and a part need only their tables."""
        members = sorted(names(COUNT))
        self.fill(members)
        for command, most in (("scard k", 1), ("sinfo k", 2), ("sscan k 100", 3), (f"sscan k 100 {members[COUNT // 2].decode()}", 4),
                              ("srandmember k 1", 3), ("srandmember k 5", 7),
                              (f"scount k {members[1].decode()} {members[-2].decode()}", 4), ("spop k 1", 4)):
            conn = self.fresh()
            requests, size = self.asked(lambda: self.answered(conn, command))
            self.assertLessEqual(requests, most, command)
            self.assertLess(size, most * 40 * 1024, command)

    def answered(self, conn, command):
        line = conn.ask(command)
        self.assertNotIn("ERROR", line)
        while line.startswith(("VALUE", "STAT")):
            if line.startswith("VALUE"):
                conn.block(int(line.split()[3]))
            line = conn.line().decode()

    def test_following_changes(self):
        """A change by others costs a reader a read of the base, but not of the tables, which do not change."""
        members = names(COUNT)
        self.fill(members)
        conn, other = self.fresh(), self.conn
        self.assert_members("k", members, conn)
        for number, member in enumerate(names(20, COUNT)):
            self.assertEqual(other.ask(b"sadd k " + member), "STORED")
            requests, size = self.asked(lambda: self.assertEqual(conn.ask("scard k"), str(COUNT + number + 1)))
            self.assertLessEqual(requests, 2)
            self.assertLess(size, 8192)
