"""Parses stored tables and indexes into plain Python, following their documentation, and checks each rule of the form.

It shares no code with setlistd, so that an error that its writer and its reader have in common is detected.
"""
import re
import struct
from collections import namedtuple

INTERVAL = 16
ID = 12
# The flags of a packed table.
REMOVALS, DATES = 1, 2
MEMBER = re.compile(rb"[^\x00-\x20\x7f]{1,250}")
TABLE_ID = re.compile(rb"t[0-9a-z]{11}")

# The entry of an index for one of its tables. `dates`: how many members expire, the first of their dates, and the mean.
Fence = namedtuple("Fence", "id check bytes entries removals first dates", defaults=[(0, 0, 0)])


class Malformed(AssertionError):
    """Stored bytes that violate the form."""


def need(condition, what):
    if not condition:
        raise Malformed(what)


class Bytes:
    """Reads fields from the beginning of some bytes."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        need(count <= self.left(), f"{count} bytes are wanted at {self.at}, {self.left()} are left")
        self.at += count
        return self.data[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte, = self.take(1)
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                need(value < 1 << 32 and (byte or shift == 7), f"no number before {self.at}")
                return value


class Bits:
    """Reads bits, the lowest bit of each byte first."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return 8 * len(self.data) - self.at

    def take(self, count):
        need(count <= self.left(), f"{count} bits are wanted, {self.left()} are left")
        start, self.at = self.at, self.at + count
        value = int.from_bytes(self.data[start // 8:(self.at + 7) // 8], "little")
        return value >> start % 8 & ((1 << count) - 1)

    def gap(self, rate):
        size = rate
        while self.take(1):
            size += 1
        return (1 << size) + self.take(size) - (1 << rate)


def read_packed(data):
    """Returns the entries of a packed table, with their dates, and the bytes of the table that it unpacks to."""
    rest = Bytes(data, 2)
    flags, rate = rest.take(2)
    count, size = rest.varint(), rest.varint()
    shortest, longest, width = rest.take(3)
    letters = rest.take(width)
    first_date, date_bits = (rest.varint(), *rest.take(1)) if flags & DATES else (0, 0)
    need(flags <= REMOVALS | DATES and date_bits <= 32 and rate < 62 and 1 <= shortest <= longest <= 128, f"no packed table begins with {data[:8]}")
    need(count and letters == bytes(sorted(set(letters))) and letters[0] > 0x20, f"the letters are {letters}")
    bits, places = Bits(rest.take(rest.left())), []
    for at in range(longest):
        place = [letter for letter in letters if bits.take(1)]
        need(place, f"position {at} has no letter")
        places.append([None] * (at >= shortest) + place)
    head, numbers = 0, 1
    while head < longest and numbers * len(places[head]) <= 1 << 62:
        numbers *= len(places[head])
        head += 1
    entries, number, last = [], 0, b""
    for entry in range(count):
        removed = bool(flags & REMOVALS and bits.take(1))
        date = bits.take(date_bits)
        number += bits.gap(rate) + (entry > 0 and head == longest)
        need(number < numbers, f"there is no number {number}")
        member = packed_member(places, head, number, bits, shortest)
        need(member > last, f"{member} is behind {last}")
        entries.append((member, removed, date and first_date - 1 + date))
        last = member
    need(bits.left() < 8 and bits.take(bits.left()) == 0, f"{bits.left()} bits behind the last entry")
    dates = [date for _, _, date in entries if date]
    need(not flags & DATES or (min(dates), date_bits) == (first_date, (max(dates) - first_date + 1).bit_length()),
         f"dates from {first_date} in {date_bits} bits are {dates[:9]}")
    return entries, size


def packed_member(places, head, number, bits, shortest):
    """Returns the member of a number of the first `head` positions, and of the digits that follow in the bits."""
    found = []
    for place in reversed(places[:head]):
        number, digit = divmod(number, len(place))
        found.insert(0, place[digit])
    for place in places[head:]:
        if found[shortest:] and found[-1] is None:
            found.append(None)
        else:
            digit = bits.take((len(place) - 1).bit_length())
            need(digit < len(place), f"a digit of {digit} of {len(place)}")
            found.append(place[digit])
    size = found.index(None) if None in found else len(found)
    need(not any(found[size:]), f"{found} goes on after its end")
    return bytes(found[:size])


def table_size(entries):
    """Returns the bytes of the table that is not packed. The entries have dates."""
    size, last = 6 + (4 * len(entries) if any(date for _, _, date in entries) else 0), b""
    for number, (member, _, _) in enumerate(entries):
        shared = 0
        while number % INTERVAL and shared < len(last) and member[shared:shared + 1] == last[shared:shared + 1]:
            shared += 1
        rest = len(member) - shared
        size += 1 + (1 if rest < 64 else 2) + rest + (0 if number % INTERVAL else 4)
        last = member
    return size


def unpacked_size(data, entries):
    """Returns the bytes that references count for a table."""
    return table_size(entries) if data[:2] == b"T2" else len(data)


def read_table(data):
    """Returns all entries in their order: [(member, removed)]."""
    return [(member, removed) for member, removed, _ in read_dated(data)]


def read_dated(data):
    """Returns the same with dates, 0 for none: [(member, removed, date)]."""
    if data[:2] == b"T2":
        entries, size = read_packed(data)
        need(size == table_size(entries), f"it unpacks to {table_size(entries)} bytes, not {size}")
        check_dates(entries)
        return entries
    need(data[:2] in (b"T1", b"T3") and len(data) >= 6, "this is no table")
    count, = struct.unpack("<I", data[-4:])
    restarts = -(-count // INTERVAL)
    behind = restarts + (count if data[:2] == b"T3" else 0)
    end = len(data) - 4 - 4 * behind
    need(end >= 2, f"no room for {behind} numbers")
    numbers = struct.unpack(f"<{behind}I", data[end:-4])
    offsets, dates = numbers[:restarts], numbers[restarts:] or [0] * count
    need(data[:2] == b"T1" or any(dates), "a table without dates has the form of one with dates")
    rest, last, entries = Bytes(data[:end], 2), b"", []
    for number in range(count):
        if number % INTERVAL == 0:
            need(offsets[number // INTERVAL] == rest.at, f"the restart of entry {number}, at {rest.at}, is another")
            most = 0
        else:
            most = len(last)
        shared, size = rest.varint(), rest.varint()
        need(shared <= most, f"entry {number} shares {shared} bytes of {most}")
        member = last[:shared] + rest.take(size >> 1)
        need(MEMBER.fullmatch(member), f"{member} is no member")
        need(member > last, f"{member} is behind {last}")
        need(shared == most or member[shared] != last[shared], f"{member} shares {shared} bytes with {last}, that is not all")
        entries.append((member, bool(size & 1), dates[number]))
        last = member
    need(rest.left() == 0, f"{rest.left()} bytes behind the last entry")
    check_dates(entries)
    return entries


def check_dates(entries):
    for member, removed, date in entries:
        need(not (removed and date), f"the removal of {member} has the date {date}")


def dates_of(entries):
    """Returns what indexes and references say of the dates of a table: how many there are, the first one, and the mean."""
    dates = [date for _, _, date in entries if date]
    return (len(dates), min(dates), sum(dates) // len(dates)) if dates else (0, 0, 0)


def read_index(data):
    """Returns all fences in their order."""
    need(data[:2] == b"I1" or data[:2] == b"I2" and len(data) >= 6, "this is no index")
    end, dates = len(data), []
    if data[:2] == b"I2":
        count, = struct.unpack("<I", data[-4:])
        end -= 4 + 12 * count
        need(count and end > 2, f"no room for the dates of {count} tables")
        dates = list(struct.iter_unpack("<3I", data[end:-4]))
        need(any(dated for dated, _, _ in dates), "an index without dates has the form of one with dates")
    rest, fences = Bytes(data[:end], 2), []
    while rest.left():
        name = rest.take(ID)
        need(TABLE_ID.fullmatch(name), f"{name} is no table's id")
        check, = struct.unpack("<Q", rest.take(8))
        size, entries, removals, width = (rest.varint() for _ in range(4))
        fence = Fence(name.decode(), check, size, entries, removals, rest.take(width))
        if fences:
            need(fence.first > fences[-1].first, f"the fence {fence.first} is behind {fences[-1].first}")
        else:
            need(fence.first == b"", f"the first fence is {fence.first}")
        fences.append(fence)
    need(len(dates) in (0, len(fences)), f"dates of {len(dates)} tables in an index of {len(fences)}")
    return [fence._replace(dates=each) for fence, each in zip(fences, dates)] if dates else fences
