"""Members in byte order: sscan, srange and scount against a model, and a walk through a set that others change.

STORM_MILLION=1 walks through a million members instead of 200,000.
"""
import bisect
import os
import random
import threading

from case_encodings import EncodingTest
from case_large import LargeSetTest, names
from harness import PATIENCE, wait_until
from model import Key, set_ops
from tables import read_index
from wire import Conn

LARGEST = 1000000 if os.environ.get("STORM_MILLION") else 200000


class Ordered:
    """Checks the replies of the three commands. A mixin for tests of large sets."""

    def walk(self, key, count, conn=None):
        """Returns all members by cursor, at most this number at a time."""
        found = page = self.listed(f"sscan {key} {count}", conn)
        while page:
            self.assertLessEqual(len(page), count)
            page = self.listed(f"sscan {key} {count} {found[-1].decode()}", conn)
            found = found + page
        return found

    def expect(self, key, members, bounds, dice, conn=None):
        """For a set with just these members, and some of these bounds."""
        members = sorted(members)
        for _ in range(3):
            one, other = (dice.choice(bounds).decode() for _ in range(2))
            count = dice.choice((0, 1, 2, 7, 50, 10 ** 6))
            low, high = bisect.bisect_left(members, one.encode()), bisect.bisect_right(members, other.encode())
            behind = bisect.bisect_right(members, one.encode())
            for command, expected in ((f"sscan {key} {count or 1} {one}", members[behind:][:count or 1]),
                                      (f"srange {key} {one} {other} {count}", members[low:high][:count])):
                self.assertEqual(self.listed(command, conn), expected, command)
            command = f"scount {key} {one} {other}"
            self.assertEqual((conn or self.conn).ask(command), str(max(high - low, 0)), command)
        count = dice.choice((1, 5, 10 ** 6))
        self.assertEqual(self.listed(f"sscan {key} {count}", conn), members[:count])


def spread(dice, count, alphabet="ab/~!0", longest=9):
    """Members of which many begin with another one, and few have the longest name that there is."""
    found = {"".join(dice.choices(alphabet, k=dice.randint(1, longest))).encode() for _ in range(count)}
    return sorted(found | {dice.choice(alphabet).encode() * 250 for _ in range(3)})


class Model(Ordered, LargeSetTest):
    """Each step through one proxy, each look through one of both."""
    smoke = True

    def live(self, key, pool, seed, steps, batch):
        dice, members, bounds = random.Random(seed), set(), pool + spread(random.Random(seed + 1), 50)
        self.assertEqual(self.conn.ask(f"sset {key}"), "STORED")
        for step in range(steps):
            some = dice.sample(pool, dice.randint(1, batch))
            verb = dice.choice(("sadd", "sadd", "srem"))
            self.write(verb, key, some, dice.choice(self.conns), per_line=40)
            members = members | set(some) if verb == "sadd" else members - set(some)
            if dice.random() < 0.1:
                self.compact(key, dice.choice(self.conns))
            self.expect(key, members, bounds, dice, dice.choice(self.conns))
        for conn in self.conns:
            self.assertEqual(self.walk(key, 37, conn), sorted(members))
        return members

    def test_small_sets(self):
        for seed in range(5):
            self.live(f"k{seed}", spread(random.Random(seed), 60), seed, 60, 12)
        self.assertEqual(self.stored("k0").refs, [])

    def test_sets_in_tables(self):
        for seed in range(3):
            pool = spread(random.Random(seed), 1500) + names(1500)
            members = self.live(f"k{seed}", pool, seed, 60, 250)
            self.assertGreater(len(self.stored(f"k{seed}").segments), 2, "it is in several tables, however far they are merged")
            self.assertEqual(self.stored(f"k{seed}").members(), members)

    def test_between_tables(self):
        """Bounds at either side of each place where one table ends and the next begins."""
        members = sorted(self.large_set(count=3000))
        run, = self.stored("k").runs
        dice, edges = random.Random(1), []
        for table in run.tables:
            first, last = self.ends(table)
            edges += [first, last, first[:-1], last[:-1], first + b"0", last + b"0", first[:-1] + bytes([first[-1] - 1])]
        self.assertGreater(len(run.tables), 5)
        for number, edge in enumerate(edges):
            conn = self.conns[number % 2]
            self.expect("k", members, [edge, edge, edges[number - 1], edges[number - 3]], dice, conn)

    def ends(self, table):
        """The first and the last member of a table."""
        run, = self.stored("k").runs
        number = run.tables.index(table)
        sizes = [fence.entries for fence in read_index(self.at.get(run.key))]
        start = sum(sizes[:number])
        return run.entries[start][0], run.entries[start + sizes[number] - 1][0]

    def test_layers(self):
        """Additions and removals by newer layers within a range, and tokens that pushes have prepended."""
        members = set(self.large_set())
        order = sorted(members)
        self.add_run("srem", "k", order[300:500])
        self.add_run("sadd", "k", names(180, 5000) + order[400:420])
        self.write("srem", "k", order[410:430] + order[700:705])
        self.write("sadd", "k", order[310:315] + names(10, 7000))
        self.assertEqual(self.conn.ask(b"lpush k aa zz " + names(1, 8000)[0]), "STORED")
        members -= {*order[300:310], *order[315:400], *order[410:500], *order[700:705]}
        members |= {*names(180, 5000), *names(10, 7000), b"aa", b"zz", *names(1, 8000)}
        stored = self.stored("k")
        self.assertEqual((len(stored.runs), bool(stored.head), stored.members()), (3, True, members))
        dice, bounds = random.Random(2), order + names(20, 5000) + [b"a", b"aa", b"zz", b"zzz", b"m", b"n"]
        for number in range(60):
            self.expect("k", members, bounds, dice, self.conns[number % 2])
        for conn in self.conns:
            self.assertEqual(self.walk("k", 100, conn), sorted(members))

    def test_a_list(self):
        """For these commands, a list is the set of its elements."""
        items = names(300)
        self.write("rpush", "k", items + items[:50])
        for _ in range(2):
            self.expect("k", items, items, random.Random(3))
            self.assertEqual(self.walk("k", 100), sorted(items))
            self.compact("k")


class Encodings(Ordered, EncodingTest):
    smoke = True

    def test_model(self):
        """In all forms that a set may have."""
        for seed, (encoding, name) in enumerate(self.each()):
            key = Key(name.encode(), world=spread(random.Random(seed), 60, "ab/~!0", 6), amounts=(1, 1, 5, 15),
                      dated=encoding == "oplog")
            self.live(key, set_ops, 300, seed)
            for conn in self.conns:
                self.assertEqual(self.walk(name, 7, conn), sorted(key.state or ()))

    def test_bounds_need_not_be_members(self):
        """Bytes that no member may hold in some form are good for a bound: nothing of it is stored."""
        for _, key in self.each():
            self.assertEqual(self.conn.ask(f"sadd {key} a b c"), "STORED")
            for bound in ("a,", "a+", "a-", "a;", "a|", "a^"):
                self.assertEqual(self.listed(f"sscan {key} 5 {bound}"), [b"b", b"c"])
                self.assertEqual(self.listed(f"srange {key} {bound} c 1"), [b"b"])
                self.assertEqual(self.conn.ask(f"scount {key} a {bound}"), "1")


class Changer(threading.Thread):
    """Adds and removes its own members until it is stopped, and then knows which of them exist."""

    def __init__(self, port, key, own, seed):
        super().__init__(daemon=True)
        self.port, self.key, self.own, self.dice = port, key.encode(), own, random.Random(seed)
        self.inside, self.batches, self.problem, self.end = set(), 0, None, threading.Event()

    def run(self):
        try:
            with Conn(self.port) as conn:
                while not self.end.is_set():
                    self.batch(conn)
        except Exception as error:                  # a thread's exception would be lost otherwise
            self.problem = error

    def batch(self, conn):
        """Replies are in the order of the commands, so the last change of each member is known."""
        sent, replies = [], []
        for _ in range(20):
            some, adds = self.dice.sample(self.own, 5), self.dice.random() < 0.5
            sent.append(b"%s %s %s\r\n" % (b"sadd" if adds else b"srem", self.key, b" ".join(some)))
            replies.append(b"STORED" if adds else b"DELETED")
            self.inside = self.inside | set(some) if adds else self.inside - set(some)
        conn.send(b"".join(sent))
        assert [conn.line() for _ in sent] == replies
        self.batches += 1


class Walk(Ordered, LargeSetTest):
    """With the defaults."""
    config = None
    PAGE = LARGEST // 200

    def test_beside_changes(self):
        """A member that always exists is returned once, one that never exists is not returned, and the order is kept over all pages.

        The scan waits for the others at each page, so that the set changes throughout.
        """
        stay = names(LARGEST)
        self.write("sadd", "k", stay)
        changers = [Changer(proxy.port, "k", names(5000, 2 * LARGEST + 5000 * number), number)
                    for number, proxy in enumerate(self.proxies)]
        for changer in changers:
            changer.start()
        found, page, pages = [], [b"!"], 0
        while page:
            self.wait_for(changers)
            page = self.listed(f"sscan k {self.PAGE} {page[-1].decode()}", self.conns[pages % 2])
            self.assertEqual(page, sorted(set(page)))
            self.assertLessEqual(len(page), self.PAGE)
            self.assertTrue(not page or not found or found[-1] < page[0], "a page begins before the one before it has ended")
            found += page
            pages += 1
        for changer in changers:
            changer.end.set()
            changer.join(PATIENCE)
        self.assertEqual([changer.problem for changer in changers], [None] * len(changers))
        changing = set().union(*(changer.own for changer in changers))
        self.assertEqual([member for member in found if member not in changing], sorted(stay))
        self.assertGreater(len(found), len(stay))
        expected = set(stay).union(*(changer.inside for changer in changers))
        for conn in self.conns:
            self.assertEqual(self.walk("k", LARGEST // 3, conn), sorted(expected))

    @staticmethod
    def wait_for(changers):
        before = [changer.batches for changer in changers]
        wait_until("all others get on", pause=0.001, check=lambda: all(
            changer.problem or changer.batches > batches for changer, batches in zip(changers, before)))
