"""Forms of other versions: values of a later version are not changed, values of the previous one count as missing."""
from case_large import NOT_A_SET, RefusingTest
from stored import counter

NEWER = "SERVER_ERROR stored by a newer version of setlistd"
# Each is of a future version, with any other content.
NEWER_BASES = (b"@set.4 ", b"@set.4 @x +a ", b"+a -b @set.10 nobody knows", b"@list.4 @l00000000000.3.1 ",
               b"@set.4294967295 @t00000000000.1.9.2.300.0123456789abcdef ", b"@set.4 " + b"x" * 5000)
# A later version of form 3 may have dates of members, after the byte 0x02: nothing in such a base is a set or a list until then.
RESERVED_BASES = (b"+a\x02b ", b"@set.3 +a\x02b ", b"@set.3 +a -b\x02 ", b"+a\x02b @set.3 @t00000000000.1.9.2.300.0123456789abcdef +c ",
                  b"@list.3 +a\x02b ", b"@list.3 @s00000000000.3.1.0123456789abcdef +a +a\x02b ")
# Each is of the previous version, which is no longer read.
OLD_BASES = (b"@c00000000000.0.3 +a ", b"+a @d00000000000.12.128 @c00000000001.0.1 -b ", b"@c00000000000.0.1 " + b"+a -a " * 900)


class OtherVersions(RefusingTest):
    """Values of a later version are not changed; values of the previous one count as missing."""
    smoke = True

    def test_newer(self):
        for data in NEWER_BASES:
            with self.subTest(data=data[:60]):
                self.assert_untouched("k", data, 5, lambda: self.refuse_all(NEWER))
        self.assertEqual(counter(self.conn, "corrupt_values"), 0)

    def test_newer_lists(self):
        commands = ("lrange k 0 -1", "llen k", "lindex k 0", "lpos k a", "lpop k", "rpop k 2", "lrem k 0 a", "lset k 0 b", "ltrim k 1 2")
        for data in NEWER_BASES:
            self.assert_untouched("k", data, 5, lambda: [self.assertEqual(self.conn.ask(each), NEWER, each) for each in commands])

    def test_reserved(self):
        for data in RESERVED_BASES:
            with self.subTest(data=data):
                self.assert_untouched("k", data, 5, self.refuse_all)
        for data in RESERVED_BASES[:2]:
            self.assert_not_compacted(data, NOT_A_SET)

    def test_newer_is_not_compacted(self):
        """An addition does not read. The compaction that it triggers finds the later version, and does not change it, nor the additions
        after it."""
        for data in (b"@set.4 @x ", b"+a @set.4 @x +y "):
            self.assert_not_compacted(data, NEWER)

    def test_newer_behind_a_view(self):
        """A proxy that has the earlier set in memory detects the change."""
        members = self.large_set()
        self.assert_members("k", members)
        self.assert_members("k", members, self.others[0])
        self.assert_untouched("k", b"@set.4 " + self.at.get("k").split(b" ", 1)[1], 0, lambda: self.refuse_all(NEWER))
        for conn in self.conns:
            self.assertEqual(conn.ask("delete k"), "DELETED" if conn is self.conn else "NOT_FOUND")
            self.assertEqual(conn.ask("sadd k again"), "STORED")
            self.assert_members("k", [b"again"], conn)
            self.assertEqual(conn.ask("delete k"), "DELETED")

    def test_newer_touch_and_delete(self):
        """Its other items could not be touched together with the base, which would outlive them. A delete is possible."""
        for data in NEWER_BASES:
            for conn in self.conns:
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
