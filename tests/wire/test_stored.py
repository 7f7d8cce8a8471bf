"""The reader of the stored form, on bytes that are written here: it must detect each error in them."""
import struct

import xxhash

from case import WireTest
from stored import Stored
from tables import INTERVAL, Malformed, dates_of, read_dated, read_index, read_table

NAMES = [b"m%02d" % number for number in range(40)]
# A table and an index by the letter, as in the units of the daemon's own reader.
TABLE = (b"T1" + b"\0\x06a00" + b"".join(b"\2\2%d" % number for number in range(1, 10)) + b"\1\4" + b"10" +
         b"".join(b"\2\2%d" % number for number in range(1, 6)) + b"\0\7a16" + b"\3\6\xc3\xa9!" +
         b"\2\0\0\0\x35\0\0\0" + b"\x12\0\0\0")
ENTRIES = [(b"a%02d" % number, number == 16) for number in range(17)] + [(b"a16\xc3\xa9!", False)]
INDEX = (b"I1" + b"t0123456789a" + b"\x08\7\6\5\4\3\2\1" + b"\x80\x01" + b"\x12" + b"\1" + b"\0" +
         b"tzzzzzzzzzzz" + b"\0\0\0\0\0\0\0\xf0" + b"\xff\xff\xff\xff\x0f" + b"\2" + b"\0" + b"\2b!")


def varint(value):
    return bytes([value]) if value < 0x80 else bytes([value & 0x7f | 0x80]) + varint(value >> 7)


def table(entries, dates=()):
    """In the form of read_table; entries that are out of order are written as they are. With dates, there is one for each entry."""
    out, last, restarts = b"T3" if dates else b"T1", b"", []
    for number, (member, removed) in enumerate(entries):
        shared = 0
        if number % INTERVAL == 0:
            restarts.append(len(out))
        else:
            while shared < min(len(last), len(member)) and last[shared] == member[shared]:
                shared += 1
        out += varint(shared) + varint((len(member) - shared) << 1 | removed) + member[shared:]
        last = member
    return out + struct.pack(f"<{len(restarts) + len(dates) + 1}I", *restarts, *dates, len(entries))


def check(data):
    return xxhash.xxh64(data, seed=0).intdigest()


def fence(name, data, first, entries=None, removals=0):
    count = len(read_table(data)) if entries is None else entries
    return (name + struct.pack("<Q", check(data)) + varint(len(data)) + varint(count) + varint(removals) +
            varint(len(first)) + first)


def run(name, data, of, removals=0, **other):
    """A reference to the item `data`, which has the tables `of`; `other` has incorrect fields."""
    said = {"tables": len(of), "entries": sum(len(read_table(each)) for each in of), "removals": removals,
            "bytes": sum(map(len, of)), "check": "%016x" % check(data), "dates": dates_text(of), **other}
    return "@{}.{tables}.{entries}.{removals}.{bytes}{dates}.{check} ".format(name.decode(), **said).encode()


def dates_text(tables):
    count, _, mean = dates_of([entry for each in tables for entry in read_dated(each)])
    return f".{count}.{mean}" if count else ""


def added(names, removed=False):
    return [(name, removed) for name in names]


ONE, LOW, HIGH = table(added(NAMES[:20])), table(added(NAMES[20:30])), table(added(NAMES[30:]))
REMOVAL = table(added(NAMES[5:7], True))
RUN, INDEXED, LATER = b"t00000000001", b"i00000000002", b"t00000000005"
FENCES = b"I1" + fence(b"t00000000003", LOW, b"") + fence(b"t00000000004", HIGH, b"m3")


def items(base, **other):
    """Takes the place of the servers: the base and three runs; `other` are items that must differ."""
    found = {RUN.decode(): ONE, INDEXED.decode(): FENCES, "t00000000003": LOW, "t00000000004": HIGH, LATER.decode(): REMOVAL,
             **other}
    return {"k": base, **{f"k.{name}": data for name, data in found.items()}}


REFS = run(RUN, ONE, [ONE]) + run(INDEXED, FENCES, [LOW, HIGH]) + run(LATER, REMOVAL, [REMOVAL], removals=2)
BASE = b"+front +m05 -nobody @set.1 " + REFS + b"+m06 -m00 -m00 +new "


class Reader(WireTest):
    smoke = True

    def assert_malformed(self, pattern, read, *args):
        with self.assertRaisesRegex(Malformed, pattern):
            read(*args)

    def test_bytes(self):
        self.assertEqual(read_table(TABLE), ENTRIES)
        self.assertEqual(table(ENTRIES), TABLE)
        self.assertEqual([tuple(each) for each in read_index(INDEX)], [
            ("t0123456789a", 0x0102030405060708, 128, 18, 1, b"", (0, 0, 0)),
            ("tzzzzzzzzzzz", 0xf000000000000000, 0xffffffff, 2, 0, b"b!", (0, 0, 0))])
        self.assertEqual((read_table(b"T1\0\0\0\0"), read_index(b"I1")), ([], []))

    def test_cut(self):
        for size in range(len(TABLE)):
            self.assert_malformed("", read_table, TABLE[:size])
        for size in set(range(len(INDEX))) - {2, 27}:
            self.assert_malformed("", read_index, INDEX[:size])

    def test_wrong_tables(self):
        for pattern, names in (("is no member", [b""]), ("is no member", [b"a b"]), ("is no member", [b"x" * 251]),
                               ("is no member", [b"a\x7f"]), ("is behind", [b"b", b"a"]), ("is behind", [b"ab", b"a"]),
                               ("is behind", NAMES[:16] + NAMES[15:16])):
            self.assert_malformed(pattern, read_table, table(added(names)))
        for old, new in ((b"T1", b"T2"), (b"\1\4", b"\0\4"), (b"\2\0\0\0\x35", b"\2\0\0\0\x34"), (b"\x12\0\0\0", b"\x11\0\0\0"),
                         (b"\1\x04" + b"10", b"\0\x06a10")):
            self.assert_malformed("", read_table, TABLE.replace(old, new, 1))

    def test_wrong_indexes(self):
        one, two = INDEX[2:27], INDEX[27:]
        for data in (b"I2" + one, b"I1" + two, b"I1" + one + one, b"I1" + one + two + two, INDEX.replace(b"t0", b"T0"),
                     INDEX.replace(b"\xff\x0f", b"\xff\x1f")):
            self.assert_malformed("", read_index, data)

    def test_set(self):
        stored = Stored(items(BASE), "k")
        self.assertEqual(stored.refs, [RUN.decode(), INDEXED.decode(), LATER.decode()])
        self.assertEqual(stored.segment_keys, [f"k.{name.decode()}" for name in (
            RUN, INDEXED, b"t00000000003", b"t00000000004", LATER)])
        self.assertEqual([run.tables for run in stored.runs], [stored.segment_keys[:1], stored.segment_keys[2:4],
                                                              stored.segment_keys[4:]])
        self.assertEqual(stored.runs[1].entries, added(NAMES[20:40]))
        self.assertEqual(stored.runs[2].entries, added(NAMES[5:7], True))
        self.assertEqual(stored.members(), {b"front", b"new", *NAMES} - {b"m00", b"m05"})
        self.assertEqual(stored.bytes(), len(BASE) + sum(map(len, (ONE, FENCES, LOW, HIGH, REMOVAL))))
        self.assertEqual(stored.log, b"+m06 -m00 -m00 +new ")

    def test_dated_bytes(self):
        dates = [0] * 16 + [0, 7]
        dated = b"T3" + TABLE[2:-4] + struct.pack("<18I", *dates) + TABLE[-4:]
        self.assertEqual(read_dated(dated), [(*entry, date) for entry, date in zip(ENTRIES, dates)])
        self.assertEqual(table(ENTRIES, dates), dated)
        self.assertEqual(read_table(dated), ENTRIES)
        index = b"I2" + INDEX[2:] + struct.pack("<7I", 0, 0, 0, 2, 7, 8, 2)
        self.assertEqual([fence.dates for fence in read_index(index)], [(0, 0, 0), (2, 7, 8)])
        for wrong in (b"T3" + TABLE[2:], table(ENTRIES, [0] * 18), table(ENTRIES, [0] * 16 + [7, 0]), b"T1" + dated[2:],
                      *(dated[:size] for size in range(len(dated)))):
            self.assert_malformed("", read_dated, wrong)
        for wrong in (b"I2" + INDEX[2:], b"I1" + index[2:], index[:-4] + b"\1\0\0\0", index[:-4] + b"\0\0\0\0",
                      b"I2" + INDEX[2:] + struct.pack("<7I", 0, 0, 0, 0, 0, 0, 2), *(index[:size] for size in range(len(index)))):
            self.assert_malformed("", read_index, wrong)

    def test_packed_dates(self):
        """Three members of one digit each, and dates of two bits."""
        packed = self.packed([("a", False, 1000), ("b", True, 0), ("c", False, 1002)])
        self.assertEqual(read_dated(packed), [(b"a", False, 1000), (b"b", True, 0), (b"c", False, 1002)])
        self.assert_malformed("dates from", read_dated, self.packed([("a", False, 1001), ("b", True, 0), ("c", False, 1002)]))
        self.assert_malformed("has the date", read_dated, self.packed([("a", False, 1000), ("b", True, 1001), ("c", False, 1002)]))

    @staticmethod
    def packed(entries, first=1000, width=2):
        """Members of one letter each, the first letters of the alphabet; dates from `first` in so many bits, and the rate 0."""
        bits = "1" * len(entries)
        for _, removed, date in entries:
            more = date and date - first + 1
            bits += f"{int(removed)}" + "".join(str(more >> bit & 1) for bit in range(width)) + "0"     # the gap is 0
        data = int(bits[::-1], 2).to_bytes(-(-len(bits) // 8), "little")
        letters = "".join(letter for letter, _, _ in entries).encode()
        size = 2 + 3 * len(entries) + 4 + 4 * len(entries) + 4
        return b"T2\3\0" + bytes([len(entries), size, 1, 1, len(entries)]) + letters + varint(first) + bytes([width]) + data

    def test_dated_set(self):
        low, high = table(added(NAMES[20:30]), [0] * 9 + [50]), table(added(NAMES[30:]), [100, 201] + [0] * 8)
        index = (b"I2" + fence(b"t00000000003", low, b"") + fence(b"t00000000004", high, b"m3") +
                 struct.pack("<7I", 1, 50, 50, 2, 100, 150, 2))
        base = b"@set.3 " + run(INDEXED, index, [low, high]) + b"+m30 +m31 +m31\x020000000070 +new\x020000000080 -m20 "
        self.assertIn(b".3.117.", base)
        there = {"k": base, "k.i00000000002": index, "k.t00000000003": low, "k.t00000000004": high}
        stored = Stored(there, "k")
        self.assertEqual(stored.dates(), {**dict.fromkeys(NAMES[21:], 0), b"m29": 50, b"m31": 70, b"new": 80})
        for now, gone in (0, ()), (49, ()), (50, (b"m29",)), (79, (b"m29", b"m31")), (80, (b"m29", b"m31", b"new")):
            self.assertEqual(stored.members(now), {*NAMES[21:], b"new"}.difference(gone))
        for old, new in ((b".3.117.", b".2.117."), (b".3.117.", b".3.115."), (b".3.117.", b"."), (b"0000000070", b"000000070"),
                         (b"0000000070", b"0000000000"), (b"-m20", b"-m20\x020000000070")):
            self.assertIn(old, base)
            self.assert_malformed("", Stored({**there, "k": base.replace(old, new)}, "k").members)
        for said in (1, 51, 50), (1, 50, 49), (0, 0, 0):
            wrong = index[:-28] + struct.pack("<3I", *said) + index[-16:]
            wrong_base = b"@set.3 " + run(INDEXED, wrong, [low, high])
            self.assert_malformed("is told by", Stored({**there, "k": wrong_base, "k.i00000000002": wrong}, "k").members)

    def test_no_runs(self):
        self.assertEqual(Stored({"k": b"+a +b -a "}, "k").members(), {b"b"})
        self.assertEqual(Stored({"k": b"+x @set.1 "}, "k").members(), {b"x"})
        self.assertEqual(Stored(items(b"+m05 +x @set.1 " + run(LATER, REMOVAL, [REMOVAL], removals=2)), "k").members(), {b"x"})
        self.assertEqual(Stored({}, "k").refs, [])
        stored = Stored({"k": b"@list @l00000000001.3.1:1:2 @l00000000002.1.1 +x "}, "k")
        self.assertEqual(stored.segments, {"k.l00000000001.3.1": None, "k.l00000000002.1.1": None})

    def test_gone(self):
        """The request names the items, and the set is not read."""
        for name in Stored(items(BASE), "k").segment_keys:
            there = items(BASE)
            del there[name]
            stored = Stored(there, "k")
            self.assertEqual([key for key, data in stored.segments.items() if data is None], [name])
            self.assert_malformed("is gone", stored.members)

    def test_wrong_references(self):
        for name, data, tables, field, value in (
                (RUN, ONE, [ONE], "entries", 19), (RUN, ONE, [ONE], "removals", 1), (RUN, ONE, [ONE], "bytes", 7),
                (RUN, ONE, [ONE], "tables", 2), (RUN, ONE, [ONE], "check", "0" * 16),
                (INDEXED, FENCES, [LOW, HIGH], "entries", 21), (INDEXED, FENCES, [LOW, HIGH], "bytes", 7),
                (INDEXED, FENCES, [LOW, HIGH], "tables", 1), (INDEXED, FENCES, [LOW, HIGH], "check", "0" * 16)):
            base = b"@set.1 " + run(name, data, tables, **{field: value})
            self.assert_malformed("check" if field == "check" else "are referred to", Stored(items(base), "k").members)
        for base in (b"@set.4 ", b"@set.1", b"@set.1 " + REFS[:-1], b"@set.1 @list ", REFS, b"@list " + REFS,
                     b"@set.1 " + REFS.replace(b".", b":", 1), b"@set.1 @l00000000001.3.1 "):
            self.assert_malformed("", Stored, items(base), "k")
        for base in (b"+a", b"a ", b"+a  ", b"+a @set.1 +b @set.1 ", b"+a\n @set.1 ",
                     b"@set.1 " + run(RUN, ONE, [ONE]) * 2):
            self.assert_malformed("", Stored(items(base), "k").members)

    def test_wrong_fences(self):
        low, high = b"t00000000003", b"t00000000004"
        for pattern, index in (("is not above", [(low, LOW, b""), (high, HIGH, b"m29")]),
                               ("is above", [(low, LOW, b""), (high, HIGH, b"m30x")]),
                               ("is told by", [(low, LOW, b"", 11), (high, HIGH, b"m3", 9)]),
                               ("is told by", [(low, LOW, b"", 10, 1), (high, HIGH, b"m3")]),
                               ("has another check", [(low, HIGH, b""), (high, LOW, b"m3")]),
                               ("no index is needed", [(low, LOW, b"")])):
            data = b"I1" + b"".join(fence(*each) for each in index)
            base = b"@set.1 " + run(INDEXED, data, [each[1] for each in index])
            self.assert_malformed(pattern, Stored(items(base, i00000000002=data), "k").members)
