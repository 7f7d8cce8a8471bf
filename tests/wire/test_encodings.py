"""One suite of set behaviours over every encoding, and the exact bytes that each encoding is documented with."""
import random
import time

import binary
from case import marks
from case_encodings import EncodingTest
from case_large import names
from harness import wait_until
from model import Key, set_ops
from stored import counter, stats
from test_concurrency import drain, together

# Bytes that a member must not contain.
RESERVED = {"signed": "+-", "csv": ",", "semicolon": ";", "tombstone": ",|", "paired": ",", "flip": "+-", "mark": "+-", "indexed": "+-"}
BAD = "CLIENT_ERROR value is not a collection"


class SetBehaviours(EncodingTest):
    smoke = True

    def test_few_members(self):
        """So few that a set is sometimes empty, and most changes are repeated. Some begin like the marks of encodings."""
        for seed, (name, k) in enumerate(self.each()):
            self.assert_missing(k)
            self.expect((f"srem {k} a", "NOT_FOUND"), (f"saddx {k} a", "NOT_FOUND"), (f"scompact {k}", "NOT_FOUND"))
            self.assert_missing(k)
            key = Key(k.encode(), world=[b"a", b"b", b"^a", b"^^"], amounts=(1, 1, 2, 5, 30), dated=name == "oplog")
            self.live(key, set_ops, 400, seed)

    def test_algebra(self):
        for name, k in self.each():
            self.expect((f"sadd {k} a b c", "STORED"), (f"sadd {name}-l b c d", "STORED"), (f"srem {name}-l c", "DELETED"))
            for verb, expected in (("sunion", b"a b c d"), ("sinter", b"b"), ("sdiff", b"a c")):
                found, _ = self.conn.values(f"{verb} {k} {name}-l")
                self.assertEqual(sorted(found[verb][1].split()), expected.split(), verb)
                number = len(expected.split())
                self.expect((f"{verb}card 2 {k} {name}-l", str(number)), (f"{verb}card 2 {k} {name}-l limit 1", "1"))

    def test_sinfo(self):
        for name, k in self.each():
            self.expect((f"sadd {k} aa bb", "STORED"))
            info = stats(self.conn, f"sinfo {k}")
            self.assertEqual(info["encoding"], {"semicolon": "csv", "mark": "flip"}.get(name, name))
            self.assertEqual((info["members"], info["tables"], info["ttl"]), ("2", "0", "-1"))
            self.assertGreaterEqual(int(info["bytes"]), 6)
            self.assertEqual(info["base_bytes"], info["bytes"])

    def test_compacting_many_lists(self):
        """A few at a time. There are no concurrent writes, so none fails with busy."""
        numbers = range(600)
        self.give({"indexed-k": b"".join(b"+%d" % n for n in numbers), **{f"indexed-k.{n}": b"+a%d-a%d+b%d" % (n, n, n) for n in numbers}})
        self.expect(("scompact indexed-k", "OK"), ("scard indexed-k", "600"))
        self.assertEqual(self.at.get("indexed-k.300"), b"-a300+b300")

    def test_noreply_and_order(self):
        """Requests that a client sends in one write take effect in order."""
        for _, k in self.each():
            self.conn.send(f"sadd {k} a b noreply\r\nscard {k}\r\nsrem {k} a noreply\r\nsmismember {k} a b\r\nsset {k} x noreply\r\n"
                           f"sadd {k} y\r\nscard {k}\r\nsrem {k} x\r\nsadd {k} x\r\nsismember {k} x\r\nspop {k} 5\r\nscard {k}\r\n".encode())
            for reply in (b"2", b"0 1", b"STORED", b"2", b"DELETED", b"STORED", b"1"):
                self.assertEqual(self.conn.line(), reply)
            self.assertEqual(set(self.conn.read_values()[0][k][1].split()), {b"x", b"y"})
            self.assertEqual(self.conn.line(), b"0")

    def test_reserved_bytes(self):
        """A member that holds one is refused, and nothing is stored, nor changed."""
        for name, k in self.each():
            for byte in RESERVED.get(name, ""):
                for member in (byte, f"a{byte}", f"{byte}a", f"a{byte}b"):
                    for command in (f"sadd {k} good {member}", f"saddx {k} {member}", f"srem {k} {member}", f"sset {k} {member} x",
                                    f"sismember {k} {member}"):
                        self.assertRegex(self.conn.ask(command), "^CLIENT_ERROR member contains ", command)
                self.assertEqual(self.items(name), {})
            free = "".join(byte for byte in "+-,;|^@." if byte not in RESERVED.get(name, ""))
            self.expect((f"sadd {k} x{free}y", "STORED"))
            self.assert_members(k, {f"x{free}y".encode()})

    def test_reserved_word(self):
        """Internal tokens of the encodings are not members."""
        for name in ("flip", "mark", "indexed"):
            for command in (f"sadd {name}-k good ^", f"srem {name}-k ^", f"sset {name}-k ^"):
                self.assertRegex(self.conn.ask(command), "^CLIENT_ERROR member contains ", command)
            self.assertEqual(self.items(name), {})
            self.expect((f"sadd {name}-k ^^", "STORED"), (f"scard {name}-k", "1"))

    def test_time_to_live(self):
        """A rule's time to live is set on new collections, and neither writes nor compactions change it; nor the flags."""
        for name, _ in self.each():
            k = f"{name}.ttl-k"
            self.expect((f"sadd {k} a b", "STORED"), (f"sadd {k} c", "STORED"), (f"srem {k} a", "DELETED"))
            self.assert_ttl_near(k, 500)
            self.churn(k)
            self.compact(k)
            self.assert_ttl_near(k, 500)
            self.assert_members(k, {b"b", b"c"})
            self.expect((f"sset {k} z", "STORED"))
            self.assert_ttl_near(k, 500)

    @marks(smoke=False)
    def test_a_date_does_not_drift(self):
        """Beyond a month memcached needs a date, by a clock that differs slightly from ours; a rewrite gains and loses no second."""
        keys = [f"{name}.verbs-k" for name, _ in self.each()]
        end = int(time.time()) + 40 * 24 * 3600
        for k in keys:
            self.expect((f"sadd {k} a", "STORED"), (f"touch {k} {end}", "TOUCHED"))
        self.assertEqual(self.conn.ask(f"set plain 0 {end} 1\r\nx"), "STORED")
        start = time.monotonic()
        for _ in range(30):
            for k in keys:
                self.churn(k, 2)
                self.compact(k)
            time.sleep(0.03)                # over more than a second, since the clocks agree for a part of each
        for k in keys:
            self.assert_date_of_plain(k, start)

    def test_touch_and_delete(self):
        for name, _ in self.each():
            k = f"{name}.verbs-k"
            self.expect((f"touch {k} 100", "NOT_FOUND"), (f"delete {k}", "NOT_FOUND"), (f"sadd {k} a b c", "STORED"))
            self.expect((f"srem {k} b", "DELETED"), (f"touch {k} 300", "TOUCHED"))
            self.assert_ttl_near(k, 300)
            self.churn(k)
            self.compact(k)
            self.assert_ttl_near(k, 300)
            self.assert_members(k, {b"a", b"c"})
            self.expect((f"touch {k} 100", "TOUCHED"))
            self.assert_ttl_near(k, 100)
            self.assertEqual(self.conn.values(f"gat 0 {k}")[1], "END")
            self.assert_ttl_near(k, -1)
            self.expect((f"delete {k}", "DELETED"))
            self.assert_missing(k)
            self.expect((f"sadd {k} new", "STORED"))
            self.assert_members(k, {b"new"})

    def test_touch_in_the_binary_protocol(self):
        def touched(k, exptime):
            conn.send(binary.touch(binary.TOUCH, k, exptime))
            return conn.response()._replace(cas=0)

        with binary.BinaryConn(self.proxies[0].port) as conn:
            for name, _ in self.each():
                for k in (f"{name}-k", f"{name}.verbs-k"):
                    self.assertEqual(touched(k, 100).status, 1, k)
                    self.expect((f"sadd {k} a b c", "STORED"), (f"srem {k} b", "DELETED"))
                    self.assertEqual(touched(k, 300), (binary.TOUCH, 0, 0, 0, bytes(4), b"", b""), k)
                    self.compact(k)
                    self.assert_ttl_near(k, 300)
                    self.assert_members(k, {b"a", b"c"})

    def churn(self, k, rounds=40):
        """Leaves much redundant data behind."""
        for n in range(rounds):
            self.expect((f"sadd {k} some{n}thing", "STORED"), (f"srem {k} some{n}thing", "DELETED"))

    def assert_ttl_near(self, k, seconds):
        """A copy on another server lives until the same date, which may be a second later by that server's clock."""
        ttl = self.ttl(k)
        self.assertTrue(ttl == seconds if seconds < 0 else seconds - 60 <= ttl <= seconds + 1, f"{k}: ttl {ttl} is not {seconds}")


class Large(EncodingTest):
    smoke = True

    def test_many_members(self):
        """More than a base holds, from two proxies, with compactions by the way; in the end nothing is wasted."""
        for name, k in self.each():
            members = names(600)
            self.write("sadd", k, members[:400])
            self.write("sadd", k, members[300:], self.others[0])
            self.write("srem", k, members[100:200], self.others[0])
            left = set(members[:100] + members[200:])
            self.assert_members(k, left)
            for conn in (self.conn, self.others[0]):
                self.compact(k, conn)
                self.assert_members(k, left)
            if name != "oplog":
                kept = 100 if name == "indexed" else 0  # removals, which stay in all lists except the first
                self.assertLess(sum(map(len, self.items(name).values())), 14 * (len(left) + kept) + 300, name)

    @marks(smoke=False)
    def test_two_proxies_at_once(self):
        """Four clients add and remove their own members, while all sets are compacted: each member has the state of its last change."""
        for _, k in self.each():
            self.expect((f"sset {k}", "STORED"))
            conns, sets = [self.connect(self.proxies[i % 2]) for i in range(4)], [set() for _ in range(4)]

            def work(number, k=k, conns=conns, sets=sets):
                conn, dice = conns[number], random.Random(number)
                for _ in range(150):
                    member = b"c%dm%d" % (number, dice.randrange(12))
                    verb, reply = dice.choice([(b"sadd", b"STORED"), (b"srem", b"DELETED")])
                    line = None
                    while line != reply:
                        conn.send(b"%s %s %s\r\n" % (verb, k.encode(), member))
                        line = conn.line()
                        assert line in (reply, b"SERVER_ERROR busy"), line
                    (sets[number].add if verb == b"sadd" else sets[number].discard)(member)
                    if dice.randrange(20) == 0:
                        assert conn.ask(f"scompact {k}") in ("OK", "SERVER_ERROR busy")
            together(4, work)
            for conn in (self.conn, self.others[0]):
                self.assert_members(k, set().union(*sets), conn)

    def test_everybody_pops(self):
        for _, k in self.each():
            members = names(120)
            self.write("sadd", k, members)
            taken = drain([self.connect(self.proxies[i % 2]) for i in range(4)], lambda _, k=k: f"spop {k} 5")
            self.assertEqual(sorted(taken), sorted(members))

    @marks(smoke=False)
    def test_a_date_that_everybody_rewrites(self):
        """Each spop is a rewrite. A read between a rewrite and its correction must not use the wrong date."""
        end = int(time.time()) + 40 * 24 * 3600
        for _, k in self.each():
            self.write("sadd", k, names(200))
            self.expect((f"set plain 0 {end} 1\r\nx", "STORED"), (f"touch {k} {end}", "TOUCHED"))
            conns, start = [self.connect(self.proxies[i % 2]) for i in range(4)], time.monotonic()

            def work(number, k=k, conns=conns):
                for i in range(60):
                    conns[number].values(f"spop {k}")
                    self.assertIn(conns[number].ask(f"sadd {k} c{number}m{i}"), ("STORED", "SERVER_ERROR busy"))
            together(4, work)
            self.assert_date_of_plain(k, start)


class ExactBytes(EncodingTest):
    """The examples of the documentation, written by a client of memcached."""
    smoke = True
    GIVEN = {
        "signed": ({"signed-k": b"+1234+222+987-222"}, {b"1234", b"987"}),
        "csv": ({"csv-k": b"user-1234,user-222,user-987,"}, {b"user-1234", b"user-222", b"user-987"}),
        "semicolon": ({"semicolon-k": b"a,b;c;"}, {b"a,b", b"c"}),
        "tombstone": ({"tombstone-k": b"user-222,|user-1234,user-222,user-987,"}, {b"user-1234", b"user-987"}),
        "paired": ({"paired-k": b"ann,bob,cyd,", "unpaired-k": b"bob,"}, {b"ann", b"cyd"}),
        "flip": ({"flip-k.a": b"+1234+222", "flip-k.b": b"+987-222", "flip-k.active": b"flip-k.b"}, {b"1234", b"987"}),
        "mark": ({"mark-k.a": b"^+1234+222", "mark-k.b": b"+987-222"}, {b"1234", b"987"}),
        "indexed": ({"indexed-k": b"+0+1", "indexed-k.0": b"+1234+222", "indexed-k.1": b"+987-222"}, {b"1234", b"987"}),
        "oplog": ({"oplog-k": b"+1234 +222 +987 -222 "}, {b"1234", b"987"}),
    }

    def test_reads(self):
        for name, k in self.each():
            items, members = self.GIVEN[name]
            self.give(items)
            self.assert_members(k, members)
            self.expect((f"scard {k}", str(len(members))))
            self.assertEqual(self.items(name), items, "reading changed something")

    def test_goes_on_from_there(self):
        """setlistd writes the same bytes as the application's own code; flags are kept."""
        for name, k in self.each():
            items, members = self.GIVEN[name]
            self.give(items, flags=7)
            gone = min(members)
            self.expect((f"sadd {k} new", "STORED"), (f"srem {k} {gone.decode()}", "DELETED"))
            self.assert_members(k, members - {gone} | {b"new"})
            self.expect((f"sadd {k} {gone.decode()}", "STORED"))
            self.assert_members(k, members | {b"new"}, self.others[0])
            self.compact(k)
            self.assert_members(k, members | {b"new"})
            for item in items:
                self.assertEqual(self.at.meta(item, "f")["f"], "7", item)

    def test_written_forms(self):
        """The bytes that writing leaves."""
        for name, talk, items in (
                ("signed", ["sadd {} 1234 222", "srem {} 222"], {"signed-k": b"+1234+222-222"}),
                ("csv", ["sadd {} a b", "sadd {} c", "srem {} b"], {"csv-k": b"a,c,"}),
                ("tombstone", ["sadd {} a b", "srem {} a"], {"tombstone-k": b"a,|a,b,"}),
                ("tombstone", ["sadd {} a b", "srem {} a", "sadd {} a"], {"tombstone-k": b"a,|a,b,a,a,"[:-2]}),
                ("paired", ["sadd {} a b", "srem {} a"], {"paired-k": b"a,b,", "unpaired-k": b"a,"}),
                ("flip", ["sadd {} a", "srem {} a"], {"flip-k.a": b"+a-a", "flip-k.active": b"flip-k.a"}),
                ("mark", ["sadd {} a", "srem {} a"], {"mark-k.a": b"+a-a"}),
                ("indexed", ["sadd {} a", "srem {} a"], {"indexed-k": b"+NUMBER", "indexed-k.NUMBER": b"+a-a"})):
            with self.subTest(encoding=name, talk=talk):
                written = wait_until("nothing is compacted", lambda name=name, talk=talk: self.written(name, talk))
                number = written["indexed-k"].decode()[1:] if name == "indexed" else ""
                self.assertEqual(written, {item.replace("NUMBER", number): data.replace(b"NUMBER", number.encode())
                                           for item, data in items.items()})

    def written(self, name, talk):
        """The items after these commands; None if a write requested a compaction, which happens by chance."""
        before = counter(self.conn, "compactions")
        self.clear(name)
        for command in talk:
            self.assertIn(self.conn.ask(command.format(f"{name}-k")), ("STORED", "DELETED"))
        items = self.items(name)
        self.conn.ask(f"scard {name}-k")  # answered after a compaction that is in progress
        return items if counter(self.conn, "compactions") == before else None

    def clear(self, name):
        for item in self.items(name):
            self.at.delete(item)

    def test_tombstone_counts(self):
        """A member that was removed is in again when it is appended once more, as the manual has it."""
        self.give({"tombstone-k": b"user-222,|user-1234,user-222,user-987,"})
        self.assertEqual(self.conn.ask("sismember tombstone-k user-222"), "0")
        conn = self.at.of("tombstone-k")
        conn.send(b"append tombstone-k 0 0 9\r\nuser-222,\r\n")
        self.assertEqual(conn.line(), b"STORED")
        self.assertEqual(self.conn.ask("sismember tombstone-k user-222"), "1")

    WRONG = {
        "signed": [b"1234", b"+", b"+a+", b"+a b", b"a+b", b"+a-", b"+a\r\n"],
        "csv": [b"a", b"a,b", b",", b"a,,", b"a b,", b"a,\n"],
        "semicolon": [b"a,b,", b"a;b"],
        "tombstone": [b"a,b,", b"a,|b", b"a|b,", b"", b"a,|b,|c,", b"a,b"],
        "oplog": [b"+a", b"a b ", b"+a  +b "],
    }
    WRONG_PARTS = [
        ("paired", {"paired-k": b"a,b"}), ("paired", {"paired-k": b"a,", "unpaired-k": b"a"}),
        ("flip", {"flip-k.a": b"+a", "flip-k.active": b"flip-k.c"}), ("flip", {"flip-k.a": b"a", "flip-k.active": b"a"}),
        ("flip", {"flip-k.a": b"+a", "flip-k.b": b"x", "flip-k.active": b"flip-k.a"}),
        ("flip", {"flip-k.a": b"+a", "flip-k.b": b"^"}), ("flip", {"flip-k.a": b"^+a", "flip-k.b": b"+b"}),
        ("mark", {"mark-k.a": b"+a", "mark-k.b": b"+b"}), ("mark", {"mark-k.a": b"^a", "mark-k.b": b"+b"}),
        ("mark", {"mark-k.a": b"+a^"[:2] + b" ", "mark-k.b": b"^"}),
        ("indexed", {"indexed-k": b"0"}), ("indexed", {"indexed-k": b"+zero"}), ("indexed", {"indexed-k": b"+0", "indexed-k.0": b"a"}),
    ]
    # Additions, and in some removals, are appended without a look.
    BLIND = {"oplog": ("sadd", "saddx", "srem"), "signed": ("sadd", "saddx", "srem"), "csv": ("sadd", "saddx"),
             "semicolon": ("sadd", "saddx"), "flip": ("sadd", "saddx", "srem"), "indexed": ("sadd", "saddx", "srem")}

    def refused(self, name, items):
        k = f"{name}-k"
        with self.subTest(encoding=name, items=items):
            self.clear(name)
            self.give(items)
            for command in (f"scard {k}", f"sismember {k} a", f"smismember {k} a", f"sinfo {k}", f"scompact {k}", f"sset {k} new"):
                self.expect((command, BAD))
            for command in (f"smembers {k}", f"spop {k}", f"srandmember {k}"):
                self.assertEqual(self.conn.ask(command), BAD, command)
            for verb in ("sadd", "saddx", "srem"):
                if verb not in self.BLIND.get(name, ()):
                    self.expect((f"{verb} {k} a", BAD))
            self.assertEqual(self.items(name), items, "it was changed")
            self.assertIn(self.conn.ask(f"touch {k} 100"), ("TOUCHED", "NOT_FOUND"))
            self.assertIn(self.conn.ask(f"delete {k}"), ("DELETED", "NOT_FOUND"))
            self.expect((f"scard {k}", "NOT_FOUND"))

    def test_not_of_the_encoding(self):
        for name, values in self.WRONG.items():
            for value in values:
                self.refused(name, {f"{name}-k": value})
        for name, items in self.WRONG_PARTS:
            self.refused(name, items)

    def test_a_part_that_is_gone(self):
        """Such a set is a miss, and can be created again: by an addition that detects this. Reads do not change the items."""
        for name, gone in (("flip", "flip-k.active"), ("flip", "flip-k.b"), ("mark", "mark-k.b"), ("indexed", "indexed-k.0"),
                           ("indexed", "indexed-k.1")):
            with self.subTest(encoding=name, gone=gone):
                self.clear(name)
                self.give(self.GIVEN[name][0])
                self.at.delete(gone)
                left = self.items(name)
                self.assert_missing(f"{name}-k")
                self.assertEqual(self.conn.ask(f"scompact {name}-k"), "NOT_FOUND")
                self.assertEqual(self.items(name), left)
                verb = "sset" if gone == "indexed-k.0" else "sadd"
                self.expect((f"{verb} {name}-k fresh", "STORED"))
                wait_until("the new set", lambda name=name: self.read(f"{name}-k") == {b"fresh"})


class ManyLists(EncodingTest):
    """Under indexed, with more lists than usual."""
    smoke = True
    KEY, MOST = "indexed-k", 4096

    def test_lists_that_no_index_names(self):
        """An application deletes a set by deleting only its index. Then the lists stay, and are replaced by others."""
        for members in ("sset indexed-k a b", "sadd indexed-k a b"):
            for _ in range(40):
                self.expect((members, "STORED"))
                self.assertEqual(self.read(self.KEY), {b"a", b"b"})
                self.at.delete(self.KEY)

    def test_as_many_as_there_may_be(self):
        """No list is added to these, which would make the index unreadable for others."""
        index = b"".join(b"+%d" % number for number in range(self.MOST))
        self.give({self.KEY: index, **{f"{self.KEY}.{number}": b"+m%d" % number for number in range(self.MOST)}})
        words = " ".join(f"word{number}" for number in range(2000))
        self.expect((f"sadd {self.KEY} {words}", "STORED"), (f"scompact {self.KEY}", "OK"),
                    (f"scard {self.KEY}", str(self.MOST + 2000)))
        self.assertEqual(self.at.get(self.KEY), index)
