"""Parses stored tables and indexes into plain Python, following their documentation, and checks each rule of the form.

It shares no code with setlistd, so that an error that its writer and its reader have in common is detected.
"""
import re
import struct
from collections import namedtuple

INTERVAL = 16
ID = 12
MEMBER = re.compile(rb"[^\x00-\x20\x7f]{1,250}")
TABLE_ID = re.compile(rb"t[0-9a-z]{11}")

# The entry of an index for one of its tables.
Fence = namedtuple("Fence", "id check bytes entries removals first")


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


def read_table(data):
    """Returns all entries in their order: [(member, removed)]."""
    need(data[:2] == b"T1" and len(data) >= 6, "this is no table")
    count, = struct.unpack("<I", data[-4:])
    restarts = -(-count // INTERVAL)
    end = len(data) - 4 - 4 * restarts
    need(end >= 2, f"no room for {restarts} restarts")
    offsets = struct.unpack(f"<{restarts}I", data[end:-4])
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
        entries.append((member, bool(size & 1)))
        last = member
    need(rest.left() == 0, f"{rest.left()} bytes behind the last entry")
    return entries


def read_index(data):
    """Returns all fences in their order."""
    need(data[:2] == b"I1", "this is no index")
    rest, fences = Bytes(data, 2), []
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
    return fences
