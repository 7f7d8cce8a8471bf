"""A set as it is stored on its servers: its base, the items that the base refers to, and orphaned items.

The tests read them directly from memcached, and find the server of an item with `route`. tables.py parses the tables; it shares
no code with setlistd.
"""
import functools
import re
from collections import namedtuple

import xxhash

from tables import Malformed, dates_of, need, read_dated, read_index, unpacked_size
from wire import Conn

RUN = re.compile(rb"@([ti][0-9a-z]{11})\.(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\.(\d+)\.(\d+))?\.([0-9a-f]{16})")
LIST_SEGMENT = re.compile(rb"@([ls][0-9a-z]{11}\.\d+\.\d+)(?:\.[0-9a-f]{16})?(?::\d+:\d+)?")
# A word of a log: its sign, the member, and the date of an addition.
WORD = re.compile(rb"([+-])([^\x00-\x20\x7f]{1,250})(?:\x02(\d{10}))?")
# In the place of a date.
REMOVED = -1
REFS = {b"@set.1": RUN, b"@set.3": RUN, b"@list": LIST_SEGMENT}

# A base: the log at its beginning, the matches of its references, oldest first, and the log at its end.
Base = namedtuple("Base", "head refs log")


class Servers:
    """Connections to the memcached servers themselves, and one to a setlistd that returns which of them has a key."""

    def __init__(self, servers, proxy):
        self.conns = {server.name: Conn(server.port) for server in servers}
        self.router = Conn(proxy.port)

    def close(self):
        for conn in [*self.conns.values(), self.router]:
            conn.close()

    def of(self, key):
        """Returns a connection to the server that has the key."""
        reply = self.router.ask(f"route {key}")
        word, said, name, *_ = reply.split(" ")
        if (word, said) != ("ROUTE", key):
            raise AssertionError(f"route {key}: {reply}")
        return self.conns[name]

    def get(self, key):
        return self.of(key).get(key)

    def meta(self, key, flags):
        """Returns the flags of the reply to `mg` for the key: {letter: rest of the word}; None for a miss."""
        reply = self.of(key).ask(f"mg {key} {flags}").split()
        return None if reply[0] == "EN" else {word[0]: word[1:] for word in reply[1:]}

    def delete(self, key):
        return self.of(key).ask(f"delete {key}")

    def bytes_sent(self):
        """A counter, summed over all servers."""
        return sum(stat(conn, "stats", "bytes_written") for conn in self.conns.values())

    def item_count(self):
        """The number of items on all servers."""
        return sum(stat(conn, "stats", "curr_items") for conn in self.conns.values())


def stats(conn, command="stats"):
    """Returns all lines of a `stats` reply: {name: text}."""
    conn.send(command.encode() + b"\r\n")
    return dict(line.split(" ", 2)[1:] for line in conn.lines_until("END")[:-1])


def stat(conn, command, name):
    return int(stats(conn, command)[name])


def counter(conn, name):
    """Returns one of the counters of a setlistd."""
    return stat(conn, "stats collections", name)


class Stored:
    """A set as it is stored now. Missing parts are recorded; malformed ones are found when they are parsed."""

    def __init__(self, servers, key, base=None):
        """`base` is used in place of the one that is stored."""
        self.key = key
        self.base = servers.get(key) if base is None else base
        self.head, matches, self.log = split(self.base or b"")
        self.refs = [match[1].decode() for match in matches]
        self.segments, self.tables = {}, {}
        for match, ref in zip(matches, self.refs):
            self.segments[f"{key}.{ref}"] = data = servers.get(f"{key}.{ref}")
            self.tables[ref] = [f"{key}.{name}" for name in tables_of(ref, data)]
            self.segments.update((name, servers.get(name)) for name in self.tables[ref] if name not in self.segments)
        self.matches = matches
        self.segment_keys = list(self.segments)

    def sizes(self):
        return {name: len(data) for name, data in self.segments.items() if data is not None}

    def bytes(self):
        return len(self.base) + sum(self.sizes().values())

    @functools.cached_property
    def runs(self):
        """Returns its runs, oldest first. All of them must exist and match their references."""
        runs = [Run(self, match) for match in self.matches if match.re is RUN]
        need(sum(len(run.items) for run in runs) == len({name for run in runs for name in run.items}), "an item is there twice")
        return runs

    def dates(self):
        """Returns its members with their dates, 0 for none: the newest entry of each member counts."""
        said = fold(self.head)
        for run in self.runs:
            said.update((member, REMOVED if removed else date) for member, removed, date in run.dated)
        said.update(fold(self.log))
        return {member: date for member, date in said.items() if date != REMOVED}

    def members(self, now=0):
        """Returns the members whose date has not passed by then."""
        return {member for member, date in self.dates().items() if not date or date > now}


class Run:
    """A run: `tables` are the keys of its tables, `entries` pairs of a member and whether it is removed, in their order; `dated` has also
    their dates."""

    def __init__(self, stored, match):
        self.id = match[1].decode()
        self.key = f"{stored.key}.{self.id}"
        self.tables = stored.tables[self.id]
        self.items = list(dict.fromkeys([self.key, *self.tables]))
        self.dated, self.bytes, self.data = [], 0, stored.segments
        verify(self.key, self.data[self.key], int(match[8], 16))
        if self.id[0] == "i":
            self.read_indexed(read_index(self.data[self.key]))
        else:
            self.read(self.key)
        found = [len(self.tables), len(self.dated), self.removals(), self.bytes]
        need(found == [int(match[number]) for number in range(2, 6)], f"{self.key}: {found} are referred to as {match[0]}")
        count, _, mean = dates_of(self.dated)
        # The mean is that of the means of the tables.
        need(int(match[6] or 0) == count and 0 <= mean - int(match[7] or 0) <= 1,
             f"{self.key}: {count} dates with the mean {mean} are referred to as {match[0]}")

    @property
    def entries(self):
        return [(member, removed) for member, removed, _ in self.dated]

    def removals(self):
        return sum(removed for _, removed, _ in self.dated)

    def read(self, name):
        """Yields the entries of a table, which must follow all entries that were read before."""
        entries = read_dated(self.data[name])
        need(entries, f"{name} has no entries")
        self.dated += entries
        self.bytes += unpacked_size(self.data[name], entries)
        return entries

    def read_indexed(self, fences):
        need(len(fences) > 1, f"{self.key}: no index is needed")
        for fence, name in zip(fences, self.tables):
            verify(name, self.data[name], fence.check)
            need(not self.dated or self.dated[-1][0] < fence.first, f"{name}: its fence is not above the table before")
            entries = self.read(name)
            need(fence.first <= entries[0][0], f"{name}: its fence is above {entries[0][0]}")
            found = unpacked_size(self.data[name], entries), len(entries), sum(removed for _, removed, _ in entries), dates_of(entries)
            need(found == (fence.bytes, fence.entries, fence.removals, fence.dates), f"{name}: {found} is told by {fence}")


def verify(name, data, check):
    need(data is not None, f"{name} is gone")
    need(xxhash.xxh64(data, seed=0).intdigest() == check, f"{name} has another check than {check:016x}")


def tables_of(ref, data):
    """Returns the ids of a run's tables in addition to the item of its reference; an invalid index yields none."""
    if ref[0] != "i":
        return [ref] if ref[0] == "t" else []
    try:
        return [fence.id for fence in read_index(data or b"")]
    except Malformed:
        return []


def split(base):
    """Splits a base into its parts; without references, all of it is the log."""
    tokens = base.split(b" ")
    start = next((number for number, token in enumerate(tokens) if token[:1] == b"@"), None)
    if start is None:
        return Base(b"", [], base)
    need(tokens[start] in REFS, f"a block begins with {tokens[start]}")
    matches, end = [], start + 1
    while tokens[end:] and tokens[end][:1] == b"@":
        matches.append(REFS[tokens[start]].fullmatch(tokens[end]))
        need(matches[-1], f"{tokens[end]} is no reference of {tokens[start]}")
        end += 1
    need(tokens[end:], "the last reference is not ended by a space")
    return Base(b"".join(token + b" " for token in tokens[:start]), matches, b" ".join(tokens[end:]))


def fold(log):
    """Returns the latest token of a log for each member: {member: its date, 0 for none, or REMOVED}."""
    tokens = log.split(b" ")
    need(tokens.pop() == b"", f"a log ends with {log[-20:]}")
    tokens = [token for token in tokens if not re.fullmatch(rb"~t(0|[1-9]\d{6,9})", token)]
    said = {}
    for token in tokens:
        word = WORD.fullmatch(token)
        need(word and (word[1] == b"+" or not word[3]) and word[3] != b"0000000000", f"{token} is none of a log")
        said[word[2]] = REMOVED if word[1] == b"-" else int(word[3] or 0)
    return said
