"""Lists: the semantics of the commands, how large ones are stored, and that no element is lost or returned twice."""
import re

from case_large import MARGIN, LargeSetTest, names
from harness import wait_until
from model import Key, list_ops
from stored import counter
from test_concurrency import drain, together

BASE_SIZE = 16384
REF = re.compile(rb"@(s[0-9a-z]{11}\.(\d+)\.\d+)\.[0-9a-f]{16}(?::\d+:(\d+))?$")


class ListTest(LargeSetTest):
    def push(self, key, items, verb="rpush", conn=None, per_line=100):
        self.write(verb, key, items, conn, per_line)

    def push_and_compact(self, items):
        self.push("k", items)
        self.compact("k")

    def items(self, command, conn=None):
        """The items of a reply, None where there is only END."""
        return self.listed(command, conn) or None

    def all(self, key="k", conn=None):
        return self.items(f"lrange {key} 0 -1", conn)

    def refs(self, key="k"):
        """Returns the references in the base of a list: pairs of a segment's key and the number of its valid items."""
        found = []
        for token in self.at.get(key).split(b" "):
            match = REF.match(token)
            if match:
                found.append((f"{key}.{match[1].decode()}", int(match[3] or match[2])))
        return found

    def assert_ttl_of_segments(self, key, ttl):
        """They outlive the base."""
        for name, _ in self.refs(key):
            self.assertIn(self.ttl(name), range(self.ttl(key) + 1, ttl + MARGIN + 1), name)

    def assert_no_litter(self, key="k"):
        """The servers have the base and the items that it refers to, and nothing else."""
        wait_until("old segments go", lambda: self.at.item_count() == 1 + len(self.refs(key)), pause=0.05)


class Meaning(ListTest):
    """Small lists: command by command, as in Redis."""
    smoke = True
    TABLE = (
        ("rpush k a b c", "STORED"), ("lpush k x y", "STORED"), ("lrange k 0 -1", b"y x a b c"),
        ("lrange k 1 2", b"x a"), ("lrange k -2 -1", b"b c"), ("lrange k 2 100", b"a b c"), ("lrange k -100 0", b"y"),
        ("lrange k 3 1", None), ("lrange k 5 9", None), ("llen k", "5"), ("lindex k 0", b"y"), ("lindex k -1", b"c"),
        ("lindex k 5", None), ("lindex k -6", None), ("lpos k a", "2"), ("lpos k q", "NOT_FOUND"),
        ("rpush k a y a", "STORED"), ("lpos k y", "0"), ("lrem k 1 y", "1"), ("lrange k 0 -1", b"x a b c a y a"),
        ("lrem k -2 a", "2"), ("lrange k 0 -1", b"x a b c y"), ("lrem k 0 q", "0"), ("lset k 1 A", "STORED"),
        ("lset k -1 Y", "STORED"), ("lset k 5 q", "CLIENT_ERROR index out of range"),
        ("lset k -6 q", "CLIENT_ERROR index out of range"), ("lrange k 0 -1", b"x A b c Y"), ("lpop k", b"x"),
        ("rpop k", b"Y"), ("ltrim k 0 1", "STORED"), ("lrange k 0 -1", b"A b"), ("rpush k c d", "STORED"),
        ("rpop k 2", b"d c"), ("lpop k 0", None), ("lpop k 9", b"A b"), ("lpop k", None), ("rpop k 3", None),
        ("llen k", "0"), ("lrange k 0 -1", None), ("rpushx k z", "STORED"), ("lpushx k y", "STORED"),
        ("lrange k 0 -1", b"y z"), ("ltrim k 5 9", "STORED"), ("llen k", "0"), ("delete k", "DELETED"),
        ("llen k", "NOT_FOUND"), ("lrange k 0 -1", None), ("lindex k 0", None), ("lpos k a", "NOT_FOUND"),
        ("lpop k", None), ("lrem k 0 a", "NOT_FOUND"), ("lset k 0 a", "NOT_FOUND"), ("ltrim k 0 1", "NOT_FOUND"),
        ("rpushx k a", "NOT_FOUND"), ("lpushx k a", "NOT_FOUND"), ("llen k", "NOT_FOUND"),
        ("linsert k before a b", "NOT_FOUND"), ("lpos k a count 0", None), ("lmove k l left right", None),
        ("rpush k a b c b a b", "STORED"), ("lpos k b rank 2", "3"), ("lpos k b rank -1", "5"), ("lpos k b rank 4", "NOT_FOUND"),
        ("lpos k b count 0", b"1 3 5"), ("lpos k b count 2", b"1 3"), ("lpos k b rank -2 count 0", b"3 1"),
        ("lpos k b maxlen 1", "NOT_FOUND"), ("lpos k b count 0 maxlen 4", b"1 3"), ("lpos k b rank -1 maxlen 3 count 9", b"5 3"),
        ("lpos k z count 0", None), ("linsert k before b x", "7"), ("linsert k after a y", "8"), ("linsert k after z y", "NOT_FOUND"),
        ("lrange k 0 -1", b"a y x b c b a b"), ("lmove k k left right", b"a"), ("rpoplpush k k", b"a"), ("lmove k k right right", b"b"),
        ("lrange k 0 -1", b"a y x b c b a b"), ("lmove k l left left", b"a"), ("lmove k l right left", b"b"), ("rpoplpush k l", b"a"),
        ("lmove k l left right", b"y"), ("lrange k 0 -1", b"x b c b"), ("lrange l 0 -1", b"a b a y"),
        ("delete k", "DELETED"), ("delete l", "DELETED"),
    )

    def test_table(self):
        """Through one proxy, and each command through another: none caches anything whose change it would not detect."""
        for conns in (self.conn,), self.conns:
            for number, (command, expected) in enumerate(self.TABLE):
                conn = conns[number % len(conns)]
                if isinstance(expected, str):
                    self.assertEqual(conn.ask(command), expected, command)
                else:
                    self.assertEqual(self.items(command, conn), expected and expected.split(b" "), command)
            self.assertEqual(self.conn.ask("delete k"), "NOT_FOUND")

    def test_pops_of_several_lists(self):
        self.conn.ask("rpush k a b c")
        self.conn.ask("rpush l d e")
        for line, key, taken in (("lmpop 2 left none k l", "k", b"a b"), ("lmpop 9 right k l", "k", b"c"), ("lmpop 1 right k l", "l", b"e"),
                                 ("lmpop 9 left k l", "l", b"d"), ("lmpop 1 left k l", None, b"")):
            self.assertEqual(self.conn.values(line), ({key: (0, taken)} if key else {}, "END"), line)
        for line, error in (("lmpop 1 k", "usage: lmpop <count> left|right <key>+"), ("lmpop x left k", "invalid count"),
                            ("lmpop 1 right", "usage: lmpop <count> left|right <key>+"), (f"lmpop 1 left {'k' * 221}", "key too long")):
            self.assertEqual(self.conn.ask(line), f"CLIENT_ERROR {error}")

    def test_in_order(self):
        """Later commands on the connection see all effects of a move."""
        self.conn.ask("rpush k a b")
        self.conn.send(b"lmove k l left right\r\nlrange k 0 -1\r\nlrange l 0 -1\r\nlmpop 1 left l k\r\nllen l\r\nsadd s m\r\n"
                       b"smove s t m\r\nscard s\r\nscard t\r\n")
        for key, value in (("k", b"a"), ("k", b"b"), ("l", b"a"), ("l", b"a")):
            self.assertEqual(self.conn.read_values(), ({key: (0, value)}, "END"))
        self.assertEqual([self.conn.line() for _ in range(5)], [b"0", b"STORED", b"STORED", b"0", b"1"])

    def test_workers_with_lists_of_their_own(self):
        """Through three proxies: without a proxy that dies, each element goes to one worker."""
        items = [f"i{number}" for number in range(120)]
        self.conn.ask("rpush jobs " + " ".join(items))

        def work(number):
            conn = self.connect(self.proxies[number % len(self.proxies)])
            found, end = True, ""
            while found or end != "END":
                found, end = conn.values(f"lmove jobs mine-{number} left right")
                self.assertIn(end, ("END", "SERVER_ERROR busy"))
        together(6, work)
        found = [item.decode() for number in range(6) for item in self.all(f"mine-{number}") or []]
        self.assertEqual(sorted(found), sorted(items))

    def test_noreply(self):
        self.conn.send(b"rpush k a noreply b noreply\r\nlpush k c noreply\r\nlset k 0 C noreply\r\nltrim k 0 2 noreply\r\n")
        self.assertEqual(self.all(), [b"C", b"a", b"noreply"])

    def test_stock_client(self):
        """A log that was written by another is a list."""
        server = self.at.of("k")
        server.set("k", b"+a +b +a ")
        self.assertEqual(self.all(), [b"a", b"b", b"a"])
        server.send(b"prepend k 0 0 3\r\n+z \r\n")
        server.line()
        self.assertEqual(self.items("lpop k 2"), [b"z", b"a"])
        self.assertEqual(self.at.get("k"), b"+b +a ")
        self.conn.ask("lpush k y")
        self.assertEqual(self.at.get("k"), b"+y +b +a ")

    def test_not_a_list(self):
        self.at.of("k").set("k", b"just text")
        for command in ("llen k", "lrange k 0 1", "lindex k 0", "lpos k a", "lpop k", "rpop k", "lrem k 0 a", "lset k 0 a",
                        "ltrim k 0 1"):
            self.assertEqual(self.conn.ask(command), "CLIENT_ERROR value is not a collection", command)
        self.assertEqual(self.at.get("k"), b"just text")

    def test_set_commands_on_a_list(self):
        self.push("k", [b"a", b"b", b"a"])
        self.assertEqual(self.read("k"), {b"a", b"b"})
        self.assertEqual(self.conn.ask("scard k"), "2")
        self.assertEqual(self.conn.ask("sadd k c a"), "STORED")
        self.assertEqual(self.all(), [b"a", b"b", b"a", b"c", b"a"])
        self.assertEqual(self.conn.ask("srem k a"), "DELETED")
        self.assertEqual(self.all(), [b"b", b"c"])
        self.assertEqual(self.conn.ask("scompact k"), "OK")
        self.assertEqual(self.all(), [b"b", b"c"])
        self.assertEqual(len(self.items("spop k 2")), 2)
        self.assertIsNone(self.all())
        self.assertEqual(self.conn.ask("llen k"), "0")
        self.assertEqual(self.conn.ask("sset k x y"), "STORED")
        self.assertEqual(self.all(), [b"x", b"y"])

    def test_list_commands_on_a_set(self):
        """It stays a set: duplicates are still removed when it is compacted."""
        self.conn.ask("sadd k a b c")
        self.assertEqual(self.conn.ask("srem k b"), "DELETED")
        self.assertEqual(self.all(), [b"a", b"c"])
        self.conn.ask("rpush k a")
        self.conn.ask("lpush k z")
        self.assertEqual(self.read("k"), {b"z", b"a", b"c"})
        self.assertEqual(self.items("lpop k"), [b"z"])
        self.assertEqual(self.conn.ask("scompact k"), "OK")
        self.assertEqual(self.read("k"), {b"a", b"c"})
        self.assertEqual(self.conn.ask("llen k"), "2")

    def test_list_commands_on_a_large_set(self):
        """A set in tables has their order. No command on lists reads it or removes anything; pushed elements are appended."""
        members = self.large_set(count=2000)
        before = self.at.get("k")
        for command in ("llen k", "lrange k 0 -1", "lindex k 0", "lpos k x", "lpop k", "rpop k 3", "lrem k 0 x", "lset k 0 x",
                        "ltrim k 0 5"):
            for conn in self.conns:
                self.assertEqual(conn.ask(command), "CLIENT_ERROR value is a set, not a list", command)
        self.assertEqual(self.at.get("k"), before)
        for command in ("lpush k first", "rpush k last", "lpushx k before", "rpushx k behind"):
            self.assertEqual(self.conn.ask(command), "STORED")
        members += [b"first", b"last", b"before", b"behind"]
        self.assert_members("k", members)
        self.compact("k")
        self.assert_members("k", members, self.others[0])
        self.assertEqual(self.stored("k").members(), set(members))
        self.assertEqual(self.conn.ask("lrange k 0 -1"), "CLIENT_ERROR value is a set, not a list")

    def test_a_large_set_under_the_rule_of_a_list(self):
        """It is a set all the same: its base must not grow without end."""
        conn = self.connect(self.setlistd(self.servers, config=self.config + '\ncollection "l-" { type = "list" }'))
        members = names(2000)
        self.assertEqual(conn.ask(b"sset l-k " + b" ".join(members)), "STORED")
        self.write("sadd", "l-k", names(500, 5000), conn)
        self.assertEqual(conn.ask("lrange l-k 0 -1"), "CLIENT_ERROR value is a set, not a list")
        self.compact("l-k", conn)
        self.assertEqual(len(self.stored("l-k").log), 0)
        self.assert_members("l-k", members + names(500, 5000), conn)

    def test_ttl_and_flags_stay(self):
        self.push_and_compact(names(2000))
        for conn in self.conns:
            self.assertEqual(conn.ask("touch k 500"), "TOUCHED")
            for command in ("lpop k", "rpop k 2", "lset k 5 x", "lset k -1 x", "lrem k 1 x", "ltrim k 1 -2", "lset k 300 x"):
                conn.send(command.encode() + b"\r\n")
                conn.send(b"mn\r\n")
                conn.lines_until("MN")
                self.assert_ttl("k", 500)
                self.assert_ttl_of_segments("k", 500)


class Large(ListTest):
    """With the defaults."""
    smoke = True
    config = None

    def test_a_million(self):
        """A query about a part of it reads only that part, and a push costs the same as on an empty list."""
        items = names(1000000)
        self.push("k", items)
        self.assertEqual(self.conn.ask("llen k"), "1000000")
        for conn in self.conns:
            self.assertEqual(self.items("lrange k 0 99", conn), items[:100])
            self.assertEqual(self.items("lrange k -100 -1", conn), items[-100:])
            self.assertEqual(self.items("lindex k 500000", conn), [items[500000]])
        before = self.at.bytes_sent()
        self.push("k", [b"new"] * 500, per_line=1)
        self.assertLess(self.at.bytes_sent() - before, 2 * 1024 * 1024)
        before = self.at.bytes_sent()
        for i in range(500):
            self.assertEqual(self.items("lpop k"), [items[i]])
        self.assertLess(self.at.bytes_sent() - before, 500 * 4 * BASE_SIZE)
        self.assertEqual(self.conn.ask("llen k"), "1000000")
        self.assertEqual(self.conn.ask("ltrim k 1000 -1001"), "STORED")
        self.assertEqual(self.items("lindex k 0"), [items[1500]])
        self.assertEqual(self.conn.ask("llen k"), "998000")
        self.assertEqual(self.all(), items[1500:-500])
        self.assert_no_litter()

    def test_from_both_ends(self):
        items = names(60000)
        for start in range(0, 30000, 3000):
            self.push("k", items[30000 + start:33000 + start])
            self.push("k", items[30000 - start - 3000:30000 - start][::-1], "lpush", self.others[0])

        def has_segments():
            self.assertEqual(self.all(), items)
            return len(self.refs()) > 3

        # A proxy compacts after a read or a write. Its compaction may lose to the other one's.
        wait_until("the list moves to segments", has_segments)
        self.assertIn(b"@list ", self.at.get("k"))
        self.assert_no_litter()


class Stored(ListTest):
    """With small bases and segments."""
    smoke = True

    def test_duplicates_survive(self):
        items = [b"a", b"b"] * 3000
        self.push_and_compact(items)
        self.compact("k", self.others[0])
        self.assertGreater(len(self.refs()), 2)
        self.assertEqual(self.all(), items)
        self.assertEqual(self.conn.ask("scard k"), "2")
        self.assertEqual(self.all(conn=self.others[0]), items)

    def test_random_pops(self):
        """spop removes all items that equal the returned ones. The others stay, in their order, and it is still a list."""
        items = names(1000) + names(500) + names(1000)[::-1]
        self.push_and_compact(items)
        segments = self.refs()
        self.assertGreater(len(segments), 2)
        for count in (1, 1, 20, 1):
            conn = self.conns[count % 2]
            popped = self.items(f"spop k {count}", conn)
            self.assertEqual(len(set(popped)), count)
            self.assertLessEqual(set(popped), set(items))
            self.assertEqual(self.refs(), segments, "a pop rewrites the list")
            items = [item for item in items if item not in popped]
            if count > 1:
                self.assertEqual(conn.ask("scard k"), str(len(set(items))))
                self.push("k", [b"new"])
                items.append(b"new")
        self.assertEqual(self.conn.ask("llen k"), str(len(items)))
        for conn in self.conns:
            self.assertEqual(self.all(conn=conn), items)
        self.compact("k")
        self.assertEqual(self.all(), items)
        self.assertTrue(self.at.get("k").startswith(b"@list @s"))
        self.assert_no_litter()

    def test_random_pop_of_a_list_larger_than_an_item(self):
        items = names(120000)
        self.push_and_compact(items)
        popped, = self.items("spop k")
        self.assertEqual(self.all(), [item for item in items if item != popped])

    def test_rule(self):
        """A rule makes a list of a value that was not created by a push."""
        conn = self.connect(self.setlistd(self.servers, config=self.config + '\ncollection "p-" { type = "list" }'))
        self.at.of("p-1").set("p-1", b"+a +b " * 2000)
        wait_until("compacted", lambda: conn.ask("scompact p-1") == "OK")
        self.assertEqual(self.all("p-1", conn), [b"a", b"b"] * 2000)
        self.assertTrue(self.at.get("p-1").startswith(b"@list @s"))

    def test_random(self):
        """Next to one of our lists, through two proxies, with all commands that change one."""
        key = Key(b"k", world=[b"i%d" % number for number in range(300)], amounts=range(1, 60), most=3000)
        self.live(key, list_ops, 1500, 20260101)
        self.assertEqual(self.all() or [], list(key.state))
        self.compact("k")
        self.assertEqual(self.all(conn=self.others[0]) or [], list(key.state))
        self.assert_no_litter()

    def test_segment_is_gone(self):
        """A command that needs it finds the list missing; others are answered until the loss is detected."""
        self.push_and_compact(names(2000))
        self.assertEqual(self.at.delete(self.refs()[0][0]), "DELETED")
        self.assertEqual(self.conn.ask("llen k"), "2000")
        self.assertEqual(self.items("lindex k -1"), [names(2000)[-1]])
        self.assertIsNone(self.items("lrange k 0 0"))
        self.assertEqual(self.conn.ask("llen k"), "NOT_FOUND")
        self.assertEqual(self.conn.ask("rpushx k a"), "NOT_FOUND")
        self.assertGreater(counter(self.conn, "incomplete_sets"), 0)

    def test_segment_is_changed(self):
        """Another client overwrites it: this counts as a loss, and items that are not ours are not changed."""
        for data in (b"", b"hello", b"+x " * 3, None):
            with self.subTest(data=data):
                self.push_and_compact(names(2000))
                segment = self.refs()[0][0]
                before = self.at.get(segment)
                data = before.replace(before[1:2], b"y", 1) if data is None else data
                self.assertEqual(self.at.of(segment).set(segment, data), "STORED")
                self.assertEqual(self.conn.ask("llen k"), "2000")
                self.assertIsNone(self.items("lrange k 0 0"))
                self.assertEqual(self.conn.ask("llen k"), "NOT_FOUND")
                self.assertEqual(self.at.get(segment), data)

    def make_old_on_both_servers(self, items):
        """The names of segments are random, so all of a list may belong on one server: then it is made once more."""
        for _ in range(64):
            self.push_and_compact(items)
            if len({self.at.of(segment) for segment in self.make_old("k")}) == 2:
                return
            self.assertEqual(self.conn.ask("delete k"), "DELETED")
        self.fail("the segments of 64 lists were each on one server")

    def test_segments_of_the_first_release(self):
        """They stay readable."""
        self.make_old_on_both_servers(names(2000))
        self.assertEqual(self.all(), names(2000))
        self.assertEqual(self.items("lpop k"), names(1))
        self.push_and_compact(names(2000))
        self.assertEqual(self.all(), names(2000)[1:] + names(2000))

    def test_delete_and_touch_reach_segments(self):
        for number in range(2):
            key = f"k{number}"
            self.push(key, names(2000))
            self.compact(key)
            self.conn.ask(f"lpush {key} x")
            self.items(f"rpop {key} 5")
            segments = [name for name, _ in self.refs(key)]
            self.assertGreater(len(segments), 2)
            self.assertEqual(self.conn.ask(f"touch {key} 300"), "TOUCHED")
            self.assert_ttl(key, 300)
            self.assert_ttl_of_segments(key, 300)
            self.assertEqual(self.conn.ask(f"delete {key}"), "DELETED")
            wait_until("segments go", lambda: self.at.item_count() == 0)

    def test_emptied(self):
        """Only by pops; then it is an empty list, and still exists."""
        items = names(1500)
        self.push_and_compact(items)
        for i in range(0, 1500, 50):
            self.assertEqual(self.items("lpop k 50", self.conns[i // 50 % 2]), items[i:i + 50])
        self.assertEqual(self.conn.ask("llen k"), "0")
        self.assertEqual(self.at.get("k"), b"@list ")
        wait_until("segments go", lambda: self.at.item_count() == 1)


class Limited(ListTest):
    """Feeds, which keep their newest elements."""
    smoke = True
    MAX = 1000
    config = ListTest.config + f"""
collection "feed-" {{ type = "list" max = {MAX} }}
collection "news-" {{ type = "list" max = {MAX} newest = "first" }}"""

    def feed(self, key, verb):
        """It never shows more, and leaves nothing on the servers but the last elements. Both proxies push."""
        items = names(6000)
        for at in range(0, len(items), 500):
            self.push(key, items[at:at + 500], verb, self.conns[at // 500 % len(self.conns)], per_line=20)
            newest = items[max(0, at + 500 - self.MAX):at + 500]
            for conn in self.conns:
                self.assertEqual(self.all(key, conn), newest if verb == "rpush" else newest[::-1])
                self.assertEqual(conn.ask(f"llen {key}"), str(len(newest)))
                self.assertEqual(conn.ask(f"scard {key}"), str(len(newest)))
                self.assertEqual(conn.ask(f"sismember {key} {items[0].decode()}"), str(int(items[0] in newest)))
        self.compact(key)
        self.assertEqual(sorted(self.all(key)), sorted(items[-self.MAX:]))
        self.assert_no_litter(key)
        refs = self.refs(key)
        self.assertTrue(0 < len(refs) < 12, refs)
        self.assertLessEqual(sum(count for _, count in refs), self.MAX)

    def test_at_the_end(self):
        self.feed("feed-1", "rpush")

    def test_at_the_start(self):
        self.feed("news-1", "lpush")

    def test_pops(self):
        """The oldest valid element is popped; elements beyond the limit are never returned."""
        items = names(self.MAX + 20)
        self.push("feed-1", items)
        self.assertEqual(self.items("lpop feed-1 2"), items[20:22])
        self.assertEqual(self.all("feed-1"), items[22:])


class Queue(ListTest):
    """Two proxies, 20 connections: every item is handed out once."""
    smoke = True
    CLIENTS = 20


    def setUp(self):
        super().setUp()
        self.clients = [self.connect(self.proxies[i % 2]) for i in range(self.CLIENTS)]

    def assert_once(self, got, items):
        self.assertEqual((len(got), len(set(got))), (len(items), len(items)))
        self.assertEqual(sorted(got), sorted(items))

    def test_each_item_once(self):
        items = names(6000)
        self.push("k", items)
        self.assert_once(drain(self.clients, lambda dice: f"{dice.choice(('lpop', 'rpop'))} k {dice.choice((1, 1, 1, 5))}"), items)
        self.assertEqual(self.conn.ask("llen k"), "0")

    def test_pushed_meanwhile(self):
        """Half of the clients push, at both ends; the list is compacted meanwhile."""
        half = self.CLIENTS // 2
        items = [names(300, 1000 * i) for i in range(half)]

        def push(number):
            for i in range(0, 300, 10):
                self.push("k", items[number][i:i + 10], ("rpush", "lpush")[number % 2], self.clients[number], per_line=10)
        got = drain(self.clients[half:], lambda dice: f"{dice.choice(('lpop', 'rpop'))} k 3", lambda: together(half, push))
        self.assert_once(got, sum(items, []))
