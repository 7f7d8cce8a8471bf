"""stake: all members of a set at once, or a large set in blocks, each member to one client only."""
from case import marks
from case_large import SMALL, LargeSetTest, names
from test_concurrency import drain

# Small blocks: the limit of a result is that of a block.
BLOCK = 65536
BLOCKS = f"max_result = {BLOCK}\n"


class Takes(LargeSetTest):
    config = SMALL
    smoke = True

    def assert_empty(self, key):
        """It is an empty set, not a missing one, and only its base is left."""
        for conn in self.conns:
            self.assertEqual((conn.ask(f"scard {key}"), self.read(key, conn)), ("0", set()))
            self.assertEqual(conn.values(f"stake {key}"), ({}, "END"))
        self.assertEqual(self.at.get(key), b"")
        self.assert_nothing_else(key)

    def test_small_set(self):
        self.assertEqual(self.conn.values("stake k"), ({}, "END"))
        self.assertIsNone(self.read("k"))
        self.write("sadd", "k", names(50))
        self.write("srem", "k", names(20))
        self.assertEqual(sorted(self.listed("stake k")), sorted(names(50)[20:]))
        self.assert_empty("k")

    def test_over_layers(self):
        """Runs that override each other, members in front of them and a log after them: in one command, and nothing is left of them."""
        members = self.large_set()
        self.add_run("srem", "k", members[:100] + names(60, 9000))
        self.add_run("sadd", "k", members[50:70] + names(180, 5000))
        self.write("sadd", "k", names(40, 7000) + members[200:210])
        self.write("srem", "k", members[100:110] + names(5, 5000))
        self.assertEqual(self.conn.ask(b"lpush k " + b" ".join(names(30, 8000) + members[300:310] + members[:5])), "STORED")
        whole = self.stored("k").members()
        self.assertEqual(whole, {*members[50:70], *members[110:], *names(175, 5005), *names(40, 7000), *names(30, 8000)})
        self.assertEqual(sorted(self.listed("stake k", self.others[0])), sorted(whole))
        self.assert_empty("k")
        self.write("sadd", "k", members[:3])
        self.assert_members("k", members[:3], self.others[0])

    def test_only_removed_members(self):
        self.write("srem", "k", self.large_set())
        self.assertEqual(self.conn.values("stake k"), ({}, "END"))
        self.assert_empty("k")

    def test_time_and_flags(self):
        """They are kept, by a block and by the last one."""
        self.assertEqual(self.at.of("k").set("k", b"+a +b +c ", 9, 300), "STORED")
        self.assertEqual(self.conn.values("stake k"), ({"k": (0, b"a b c")}, "END"))
        self.assertEqual(self.at.meta("k", "f")["f"], "9")
        self.assert_ttl("k", 300)

    def test_list(self):
        """To commands on sets a list is the set of its elements. An empty list is left, with its segments gone."""
        items = names(1000)
        for i in range(0, len(items), 100):
            self.assertEqual(self.conn.ask(b"rpush k " + b" ".join(items[i:i + 100] + items[:1])), "STORED")
        self.compact("k")
        self.assertGreater(len(self.stored("k").refs), 1)
        self.assertEqual(sorted(self.listed("stake k")), sorted(items))
        self.assertEqual((self.conn.ask("llen k"), self.conn.values("stake k")), ("0", ({}, "END")))
        self.assert_nothing_else("k")

    def test_with_a_count(self):
        self.write("sadd", "k", names(10))
        taken = self.listed("stake k 4") + self.listed("stake k 100")
        self.assertEqual(sorted(taken), sorted(names(10)))
        self.assertEqual(self.listed("stake k 0"), [])


class Blocks(LargeSetTest):
    config = SMALL + "\n" + BLOCKS
    smoke = True

    def test_blocks(self):
        """Each is a part of the set, and the members of no layer are lost or returned twice."""
        members = self.large_set(count=20000)
        self.add_run("srem", "k", members[::7])
        self.add_run("sadd", "k", members[:3000:3] + names(2000, 50000))
        self.write("srem", "k", members[1:3000:5])
        self.assertEqual(self.at.of("k").ask("touch k 5000"), "TOUCHED")
        whole, taken, blocks = self.stored("k").members(), [], 0
        while some := self.listed("stake k", self.conns[blocks % 2]):
            taken += some
            blocks += 1
            self.assertLess(sum(map(len, some)) + len(some), BLOCK + 4096 * 4)
            self.assertEqual(self.stored("k").members(), whole.difference(taken))
            self.assert_nothing_else("k")
            self.assert_ttl("k", 5000)
        self.assertEqual(sorted(taken), sorted(whole))
        self.assertGreater(blocks, 3)
        self.assertRegex(self.at.get("k"), rb"\A~t[0-9]{10} \Z")

    def test_blocks_without_members(self):
        """An empty reply means an empty set, so blocks whose members are all removed are skipped."""
        members = sorted(self.large_set(count=20000))
        self.add_run("srem", "k", members[:7000])
        self.assertEqual(self.conn.ask("scard k"), "13000")
        first = self.listed("stake k")
        self.assertTrue(first)
        while some := self.listed("stake k", self.others[0]):
            first += some
        self.assertEqual(sorted(first), members[7000:])
        self.assert_nothing_else("k")

    def test_additions_meanwhile(self):
        """Several clients at two proxies take blocks, while others add members: each member is returned once."""
        members, more = names(20000), names(3000, 50000)
        self.large_set(count=len(members))
        conns = [self.connect(self.proxies[i % 2]) for i in range(4)]
        taken = drain(conns, lambda dice: "stake k", lambda: [self.write("sadd", "k", more[i:i + 10]) for i in range(0, len(more), 10)])
        self.assertEqual(sorted(taken), sorted(members + more))
        self.assertEqual(self.conn.ask("scard k"), "0")

    def test_order_of_one_client(self):
        """A later request of a connection is carried out after the whole command, which reads the base twice."""
        members = self.large_set()
        self.conn.send(b"stake k\r\nsadd k new\r\nscard k\r\nget q|stake|k\r\nsadd k newer\r\n")
        found, end = self.conn.read_values()
        self.assertEqual((sorted(found["k"][1].split(b" ")), end), (sorted(members), "END"))
        self.assertEqual([self.conn.line() for _ in range(2)], [b"STORED", b"1"])


    def test_killed_proxy(self):
        """The members of the block in flight are in no reply, and may not be in the set. No other member is lost, and none returned twice."""
        members, taken = names(20000), []
        self.large_set(count=len(members))
        with self.connect(self.proxies[1]) as conn:
            conn.send(b"stake k\r\n" * 3)
            for _ in range(2):
                found, _ = conn.read_values()
                taken += found["k"][1].split(b" ")
            self.proxies[1].process.kill()
            self.proxies[1].stopped = True
            self.proxies[1].discard()
        left = []
        while some := self.listed("stake k"):
            left += some
        lost = set(members).difference(taken, left)
        self.assertEqual(len(taken) + len(left) + len(lost), len(members))
        self.assertLess(sum(map(len, lost)) + len(lost), BLOCK + 4096 * 4)
        self.assertEqual(self.conn.ask("scard k"), "0")


class Large(LargeSetTest):
    """With the default sizes."""
    config = None

    @marks(smoke=False)
    def test_race_for_200_000(self):
        """Two clients of different proxies, and blocks of a megabyte."""
        members = names(200000)
        self.write("sadd", "k", members)
        taken = drain([self.connect(proxy) for proxy in self.proxies], lambda dice: "stake k")
        self.assertEqual(len(taken), len(members))
        self.assertEqual(set(taken), set(members))
        self.assertEqual(self.conn.ask("scard k"), "0")
        self.assert_nothing_else("k")
