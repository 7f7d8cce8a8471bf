"""A set with two copies, as both are stored on their servers: src/collection/copies/copy.h describes the form. No code of setlistd is used.

The second copy of the key K is K.~copy, and that of the part K.ID is K.~copy.ID.
"""
import re
from collections import namedtuple

from stored import Stored, fold
from tables import need

SECOND = ".~copy"
STAMP = rb"([-0-9A-Z_a-z]{8})"      # in byte order
HEADER = re.compile(rb"~o%s (?:~f%s )?(~g )?" % (STAMP, STAMP))
GROUP = re.compile(rb"~([sc])%s ((?:[^~]\S* |~t\d+ )*)~e " % STAMP)
START = re.compile(rb"(?:\A|(?<= ))~[osc]")
NONE = b"--------"
DATE = re.compile(rb"~t\d+")

# A base: what is closed, up to the horizon; the fill, NONE if there is none; whether it is gone; and the groups that follow.
Copy = namedtuple("Copy", "closed horizon fill gone groups")
Group = namedtuple("Group", "stamp creates words")


def parse(base):
    start = START.search(base)
    closed, rest = (base[:start.start()], base[start.start():]) if start else (base, b"")
    header = HEADER.match(rest)
    rest = rest[header.end():] if header else rest
    groups = []
    while rest:
        group = GROUP.match(rest)
        need(group, f"{rest[:40]} is no group")
        groups.append(Group(group[2], group[1] == b"c", group[3].split()))
        rest = rest[group.end():]
    return Copy(closed, header[1] if header else NONE, header and header[2] or NONE, bool(header and header[3]), groups)


def latest(copies, horizon):
    """Returns the word that counts of each member, and its stamp, of all words after the horizon."""
    found = {}
    for copy in copies:
        for group in copy.groups:
            last = {b"~t" if DATE.fullmatch(word) else word[1:].split(b"\2")[0]: word for word in group.words}
            for member, word in last.items():
                if group.stamp > horizon:
                    # Removals count more than additions: - follows + in the order of bytes.
                    found[member] = max(found.get(member, (b"", b"")), (group.stamp, word))
    return found


class Part(Stored):
    """One copy, or both joined, as an ordinary set: `key` is the name of the copy whose parts are read."""

    def __init__(self, servers, key, copies):
        newest = max(copies, key=lambda copy: copy.horizon)
        words = latest(copies, newest.horizon)
        created = any(group.creates and group.stamp > newest.horizon for copy in copies for group in copy.groups)
        self.missing = newest.gone and not created
        super().__init__(servers, key, newest.closed + b"".join(word + b" " for _, word in sorted(words.values())))


class Copied:
    """Both copies, as they are now. `servers` is a stored.Servers."""

    def __init__(self, servers, key):
        self.servers, self.key = servers, key
        self.names = [key, key + SECOND]
        self.bases = [servers.get(name) for name in self.names]
        self.copies = [None if base is None else parse(base) for base in self.bases]

    def part(self, copy):
        return Part(self.servers, self.names[copy], [self.copies[copy]])

    def members(self, copy):
        """Returns the members in a copy, read alone; None if the set is missing."""
        if self.copies[copy] is None:
            return None
        part = self.part(copy)
        return None if part.missing else part.members()

    def difference(self):
        """Returns a text that describes how the copies and their parts differ; empty if they are equal."""
        if None in self.bases:
            gone = [base is None or copy.gone and not any(group.creates for group in copy.groups)
                    for base, copy in zip(self.bases, self.copies)]
            return "" if all(gone) else f"{self.names[self.bases.index(None)]} is missing"
        first, second = self.copies
        for what, one, other in (("horizon", first.horizon, second.horizon), ("closed part", first.closed, second.closed),
                                 ("missing set", first.gone, second.gone)):
            if one != other:
                return f"{what}: {one!r:.300}, {other!r:.300}"
        words = [latest([copy], copy.horizon) for copy in self.copies]
        differing = [(member, *(each.get(member) for each in words)) for member in words[0].keys() | words[1].keys()
                     if words[0].get(member) != words[1].get(member)]
        return f"words: {differing[:3]}" if differing else self.differing_part()

    def differing_part(self):
        parts = [self.part(copy) for copy in range(2)]
        items = [{name[len(key) + 1:]: data for name, data in part.segments.items()} for key, part in zip(self.names, parts)]
        for name in sorted(items[0].keys() | items[1].keys()):
            found = [each.get(name) for each in items]
            if found[0] is None or found[0] != found[1]:
                return f"part {name}: {found[0]!r:.60}, {found[1]!r:.60}"
        return ""
