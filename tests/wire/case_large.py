"""The base of the tests of the stored form of sets: two servers, proxies in front of them, and direct connections to the servers."""
import random
import re

from case import WireTest
from harness import wait_until
from model import Op, take_all
from stored import Servers, Stored, counter

# The smallest permitted sizes, so that a few hundred members make a large set.
SMALL = "base_size = 1024\nsegment_size = 4096\nlog_size = 1024\ntable_size = 4096"
PIPELINE = 500
SPREAD = 61803398877    # it has no common factor with 10 ** 11
# Seconds that may pass between a command and the check of its effect. Times to live that a test distinguishes differ by more.
SLOW = 100
# Seconds by which a part outlives its base; more if its expiry is a date, which is more than a month away.
MARGIN, MARGIN_OF_DATE, MONTH = 10, 600, 30 * 24 * 3600
NOT_A_SET = "CLIENT_ERROR value is not a collection"


def names(count, start=0):
    """Returns members of 12 bytes, unique for each number, in an order without a pattern.

    A sorted table would compress ascending digits to almost nothing, and new members would always be at its end.
    """
    return [b"m%011d" % (number * SPREAD % 10 ** 11) for number in range(start, start + count)]


# Returns members that are stored in tables immediately.
LONG = b" ".join(names(200)).decode()


class LargeSetTest(WireTest):
    config = SMALL
    proxy_count = 2

    def setUp(self):
        self.servers = [self.memcached(*self.memcached_args()) for _ in range(2)]
        self.proxies = [self.setlistd(self.servers, config=self.config) for _ in range(self.proxy_count)]
        self.conns = [self.connect(proxy) for proxy in self.proxies]
        self.conn, *self.others = self.conns
        self.at = Servers(self.servers, self.proxies[0])
        self.addCleanup(self.at.close)

    def memcached_args(self):
        return ()

    def write(self, verb, key, members, conn=None, per_line=100):
        """Sends sadd or srem with many members, in pipelined lines."""
        conn = conn or self.conn
        lines = [b"%s %s %s\r\n" % (verb.encode(), key.encode(), b" ".join(members[i:i + per_line]))
                 for i in range(0, len(members), per_line)]
        wanted = b"DELETED" if verb == "srem" else b"STORED"
        for start in range(0, len(lines), PIPELINE):
            batch = lines[start:start + PIPELINE]
            conn.send(b"".join(batch))
            for _ in batch:
                self.assertEqual(conn.line(), wanted)

    def read(self, key, conn=None, command="smembers", *args):
        """Returns the members, None for a missing set. Each must occur once."""
        found, end = (conn or self.conn).values(" ".join(map(str, [command, key, *args])))
        self.assertEqual(end, "END")
        if not found:
            return None
        (_, data), = found.values()
        members = data.split(b" ") if data else []
        self.assertEqual(len(members), len(set(members)), f"{command} {key}: a member twice")
        return set(members)

    def listed(self, command, conn=None):
        """Returns the words of a reply with one VALUE, in their order."""
        found, end = (conn or self.conn).values(command)
        self.assertEqual(end, "END", command)
        if not found:
            return []
        (key, (flags, data)), = found.items()
        self.assertEqual((key, flags), (command.split()[1], 0))
        return data.split(b" ")

    def assert_members(self, key, expected, conn=None):
        found = self.read(key, conn)
        self.assertIsNotNone(found, f"{key} is missing")
        expected = set(expected)
        self.assertEqual((sorted(expected - found)[:5], sorted(found - expected)[:5]), ([], []),
                         f"lost, and unexpected, of {len(expected)} members of {key}")

    def assert_missing(self, key, conn=None):
        """Checks that the set is missing, with each command that reads one."""
        conn = conn or self.conn
        self.assertIsNone(self.read(key, conn))
        for command in (f"scard {key}", f"sismember {key} x", f"smismember {key} x y", f"sinfo {key}", f"scount {key} a z"):
            self.assertEqual(conn.ask(command), "NOT_FOUND", command)
        for command in (f"srandmember {key} 5", f"spop {key} 5", f"sscan {key} 5", f"sscan {key} 5 a", f"srange {key} a z 5"):
            self.assertEqual(conn.values(command), ({}, "END"), command)

    def live(self, key, ops, steps, seed):
        """Runs this number of commands on a key, each through a random proxy; see model.py."""
        dice = random.Random(seed)
        for _ in range(steps):
            op, conn = Op(key, *dice.choice(list(ops(key, dice)))), dice.choice(self.conns)
            conn.send(op.line + b"\r\n")
            take_all(conn, [op], f"seed {seed}")

    def stored(self, key):
        """Returns a consistent set of all items: a merge may delete an item right after the base that refers to it was read."""
        def whole():
            stored = Stored(self.at, key)
            return stored if None not in stored.segments.values() or stored.base == self.at.get(key) else None
        stored = wait_until(f"{key} stays the same for a moment", whole)
        self.assertNotIn(None, stored.segments.values(), "an item that the set is made of is gone")
        return stored

    def make_old(self, key):
        """Converts the segments of a list to those of 0.1.0: their references have no check, and the server of each is determined by its own
        key."""
        base, segments = self.at.get(key), Stored(self.at, key).segments
        moved = {segment: segment.replace(".s", ".l") for segment in segments}
        for segment, old in moved.items():
            self.assertEqual(self.at.delete(segment), "DELETED")
            self.assertEqual(self.at.of(old).set(old, segments[segment]), "STORED")
        base = re.sub(rb"@s([0-9a-z]{11}\.\d+\.\d+)\.[0-9a-f]{16}", rb"@l\1", base)
        self.assertEqual(self.at.of(key).set(key, base), "STORED")
        return list(moved.values())

    def assert_nothing_else(self, *keys):
        """Waits until the servers have only these sets and the items that they refer to; unreferenced items are deleted."""
        wait_until("nothing else is left", pause=0.05,
                   check=lambda: self.at.item_count() == sum(1 + len(Stored(self.at, key).segments) for key in keys))

    def compact(self, key, conn=None):
        """Sends scompact, and waits until no other proxy is rewriting the set."""
        self.assertEqual((conn or self.conn).ask(f"scompact {key}"), "OK")

    def large_set(self, key="k", count=1000, **kwargs):
        """Creates a set with one run of several tables. Returns its members."""
        members = names(count)
        self.write("sadd", key, members, **kwargs)
        self.compact(key)
        run, = self.stored(key).runs
        self.assertGreater(len(run.tables), 2, "this is no large set")
        return members

    def add_run(self, verb, key, members, conn=None):
        """Makes changes that become a run, newer than the existing ones, and too small to be merged with them immediately."""
        before = Stored(self.at, key).refs
        self.write(verb, key, members, conn, per_line=len(members))

        def spilled():
            # A read that finds a long base always folds it; a write does so only by chance.
            self.read(key, conn, "sscan", 1)
            return len(Stored(self.at, key).refs) > len(before)
        wait_until("the log goes to a run", spilled)
        self.assertEqual(Stored(self.at, key).refs[:-1], before, "they were merged")

    def ttl(self, key):
        meta = self.at.meta(key, "t")
        self.assertIsNotNone(meta, f"{key} is gone")
        return int(meta["t"])

    def assert_ttl(self, key, ttl):
        """Checks that the time to live was set recently, or is -1."""
        self.assertIn(self.ttl(key), [-1] if ttl == -1 else range(ttl - SLOW, ttl + 1), key)

    def assert_ttl_of_all(self, key, ttl):
        """Checks that parts outlive the base, unless all of them never expire. Parts are read before the base, whose time is shorter by
        then."""
        for name in self.stored(key).segment_keys:
            of_part, of_base = self.ttl(name), self.ttl(key)
            if ttl == -1:
                self.assertEqual(of_part, -1, name)
            else:
                self.assertGreater(of_part, of_base, name)
                self.assertLessEqual(of_part, ttl + (MARGIN_OF_DATE if ttl > MONTH else MARGIN), name)
        self.assert_ttl(key, ttl)

    def assert_error(self, command, pattern, conn=None):
        self.assertTrue(re.fullmatch(pattern, reply := (conn or self.conn).ask(command)), f"{command}: {reply!r}")


class RefusingTest(LargeSetTest):
    """Checks items that must not change."""

    def assert_untouched(self, key, data, flags, act):
        """Checks that act() does not write the item at all: a write would change its cas id."""
        conn = self.at.of(key)
        self.assertEqual(conn.set(key, data, flags, 500), "STORED")
        before = self.at.meta(key, "c f")
        act()
        self.assertEqual((conn.get(key), self.at.meta(key, "c f")), (data, before))

    def assert_not_compacted(self, data, error):
        """Checks that additions, which do not read, are appended to the data, and that all reads are refused."""
        self.assertEqual(self.at.of("k").set("k", data, 5, 500), "STORED")
        self.write("sadd", "k", names(2000), per_line=50)
        for command in ("scompact k", "scard k"):
            self.assertEqual(self.conn.ask(command), error)
        self.assertEqual(self.at.get("k"), data + b"".join(b"+%s " % name for name in names(2000)))
        self.assertEqual(self.at.meta("k", "f")["f"], "5")
        self.assertEqual(counter(self.conn, "compactions"), 0)

    def refuse_all(self, error=NOT_A_SET):
        for command in ("smembers k", "scard k", "sismember k a", "smismember k a b", "srandmember k", "spop k", "spop k 3",
                        "sunion k other", "sinter other k", "sdiff k", "scompact k", "sinfo k", "sset k a b", "sset k",
                        "sscan k 5", "sscan k 5 a", "srange k a z 5", "scount k a z", "sset k " + LONG):
            for conn in self.conns:
                self.assertEqual(conn.ask(command), error, command)
