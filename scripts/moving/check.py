"""setlistd-check: compares both copies of all keys of rules with copies, and makes a setlistd repair them."""
import argparse
import collections
import hashlib
import json
import os
import signal
import sys
import time

from moving.copies import SECOND, Copy, difference, number_of, second_of, tables_of
from moving.keys import Spool, base_of, batches, dump, in_line
from moving.link import Broken
from moving.pool import Pool, Stopped, add_options, number, open_files

ABOUT = """\
Compares both copies of all sets and counters whose rules have copies = 2, on the servers themselves.

The program lists the keys of each server, and asks the setlistd where the copies of each are. A key whose copies differ is compared
again after --wait seconds. It counts if they still differ, or are different again."""

NOTES = """\
exit status:
  0  both copies of all keys are equal
  1  the copies of some keys differ
  2  the command line is invalid
  3  stopped by a signal, or because the setlistd is unreachable; or a server could not be read, and no others differ"""

SIZE = 64       # keys that are compared at a time
AGAIN = 2       # times that a key in use is compared again
STUCK = 10      # seconds
WITNESS = b"@absent."
KINDS = {"missing": "one copy is missing", "base": "the settled parts differ", "words": "a word is only in one copy",
         "part": "a part is missing or differs", "value": "the values differ"}


class Unread(Exception):
    """A server could not be read, so the copies cannot be compared."""


def shown(key):
    return key.decode("utf-8", "backslashreplace")


class Check(Pool):
    def __init__(self, options):
        super().__init__(options)
        self.links, self.unread = {}, {}
        self.keys = self.uncompared = self.repaired = 0
        self.kinds, self.first, self.errors = collections.Counter(), [], []

    def say(self, text, last=True):
        if not self.options.json:
            super().say(text, last)

    # --- reading ---

    def places(self, keys):
        """Returns for each key the servers of both copies, from which each may be moved; None if it has no two copies."""
        for key, reply in zip(keys, self.proxy.ask(b"route " + in_line(key) for key in keys)):
            if not reply.startswith(b"ROUTE "):
                self.failed += 1
                self.errors.append(f"{shown(key)}: {shown(reply)}")
            first, _, second = reply.partition(b" copy ")
            lists = first.split(b" ")[2::2], second.split(b" ")[0::2]
            yield [[server for server in servers if server != b"lost"] for servers in lists] if second else None

    def link(self, server):
        if server in self.unread:
            raise Unread()
        try:
            if server not in self.links:
                self.links[server] = self.connect(server)
            return self.links[server]
        except Broken as error:
            self.give_up(server, error)
            raise Unread() from error

    def give_up(self, server, error):
        self.unread[server] = str(error)
        self.links.pop(server, None)
        print(f"setlistd-check: {error}; continuing with the other servers", file=sys.stderr)

    def read(self, wanted, form=lambda value: value):
        """Returns the values of pairs of a server and a key. A pair that could not be read is left out."""
        by_server, found = collections.defaultdict(list), {}
        for server, key in wanted:
            by_server[server].append(key)
        for server, keys in by_server.items():
            try:
                for key, value in zip(keys, self.link(server).values([in_line(key) for key in keys])):
                    found[server, key] = value if value is None else form(value)
            except Broken as error:
                self.give_up(server, error)
            except Unread:
                pass
        return found

    def both(self, names, places, found):
        """Returns both values. While keys move, an item may be on its former server."""
        values = []
        for name, servers in zip(names, places):
            seen = [found.get((server.decode(), name), Unread) for server in servers]
            there = [value for value in seen if value is not None and value is not Unread]
            if not there and Unread in seen:
                raise Unread()
            values.append(there[0] if there else None)
        return values

    def pairs(self, keys, form=lambda value: value):
        """Yields each key that has two copies, with their values; UNREAD if a server could not be read."""
        keys = list(keys)
        placed = [(key, places) for key, places in zip(keys, self.places(keys)) if places]
        names = {key: (key, self.second(key)) for key, _ in placed}
        found = self.read([(server.decode(), name) for key, places in placed for name, servers in zip(names[key], places) for server in servers],
                          form)
        for key, places in placed:
            try:
                yield key, self.both(names[key], places, found)
            except Unread:
                yield key, None

    @staticmethod
    def second(key):
        base = base_of(key)
        return second_of(base) + key[len(base):] if base else second_of(key)

    # --- comparing ---

    def parts_differ(self, key, ids):
        """Returns whether a part of the set is not on both servers."""
        def digest(value):
            return value if value.startswith((b"I1", b"I2")) else hashlib.blake2b(value).digest()

        while ids:
            below = set()
            for some in batches(sorted(ids), SIZE):
                for part, values in self.pairs([key + b"." + one for one in some], digest):
                    if values is None:
                        raise Unread()
                    if values[0] is None or values[0] != values[1]:
                        return True
                    if part[len(key) + 1:len(key) + 2] == b"i":
                        try:
                            below |= tables_of(values[0])
                        except ValueError:
                            return True
            ids = below
        return False

    def compare(self, key, values):
        """Returns what differs, or None."""
        numbers = [None if value is None else number_of(value) for value in values]
        if None not in numbers:
            return None if numbers[0] == numbers[1] else "value"
        found = difference(values, time.time() * 1000, self.options.wait * 1000)
        if found or None in values:
            return found
        try:
            ids = Copy(values[0]).parts()
        except ValueError:
            return None
        return "part" if self.parts_differ(key, ids) else None

    def look(self, keys):
        """Compares keys. Returns those that differ, with the reasons, and the number of compared ones."""
        differ, count = [], 0
        for key, values in self.pairs(keys):
            try:
                if values is None:
                    raise Unread()
                if values == [None, None]:
                    continue
                count += 1
                kind = self.compare(key, values)
                if kind:
                    differ.append((key, kind))
            except Unread:
                self.uncompared += 1
        return differ, count

    # --- the walk ---

    def keys_of(self, server, keys):
        """Returns the keys to compare: the second copy of a key is compared with the first one, unless that is missing."""
        first = [key for key in keys if not base_of(key) and not key.endswith(SECOND) and not key.startswith(WITNESS)]
        second = [key[:-len(SECOND)] for key in keys if key.endswith(SECOND) and not base_of(key)]
        lone = [key for key, values in self.pairs(second) if values and values[0] is None and values[1] is not None]
        return first + lone

    def visit(self, server, spool):
        listing = self.connect(server)
        done = 0
        try:
            for batch in batches(dump(listing), SIZE):
                self.pause(len(batch))
                differ, count = self.look(self.keys_of(server, [key for key, _ in batch]))
                self.keys += count
                done += len(batch)
                for key, _ in differ:
                    spool.add(key, 0)
                if self.options.repair:
                    self.repair([key for key, _ in differ])
                if time.monotonic() - self.shown >= 1:
                    self.shown = time.monotonic()
                    self.say(f"{server}: {done:,} items; {spool.count:,} keys differ so far", False)
        finally:
            listing.close()

    def repair(self, keys):
        while keys:
            self.pause(0)
            busy = []
            for key, reply in zip(keys, self.proxy.ask(b"repair " + in_line(key) for key in keys)):
                if reply == b"OK":
                    self.repaired += 1
                elif reply.startswith(b"SERVER_ERROR too many"):
                    busy.append(key)
                else:
                    self.failed += 1
                    self.errors.append(f"{shown(key)}: {shown(reply)}")
            keys = busy
            if keys:
                self.wait(1)

    def settle(self):
        """Waits until differences count, and until repairs are done, or do not succeed."""
        self.wait(self.options.wait)
        least, since = None, time.monotonic()
        while self.options.repair and time.monotonic() < since + STUCK:
            waiting = int(dict(self.proxy.stats(b"collections"))["repairs_waiting"])
            if not waiting:
                break
            if least is None or waiting < least:
                least, since = waiting, time.monotonic()
            self.wait(1)

    def look_again(self, spool):
        for batch in batches((key for key, _ in spool), SIZE):
            self.pause(len(batch))
            differ, _ = self.look(batch)
            for _ in range(AGAIN):
                # A key in use is between two writes now and then.
                if all(kind == "missing" for _, kind in differ):
                    break
                self.wait(1)
                differ, _ = self.look([key for key, _ in differ])
            for key, kind in differ:
                self.kinds[kind] += 1
                if len(self.first) < self.options.show:
                    self.first.append((key, kind))

    def run(self):
        spool = Spool()
        try:
            for server in self.servers():
                try:
                    self.visit(server, spool)
                except Broken as error:
                    if error.address != server:
                        raise
                    self.give_up(server, error)
            if spool.count:
                self.say(f"{spool.count:,} of {self.keys:,} keys differ; comparing them again in {self.options.wait} s")
                self.settle()
                self.look_again(spool)
        finally:
            spool.close()
        self.report()
        return 1 if self.kinds else 3 if self.unread or self.failed else 0

    def report(self):
        differ = sum(self.kinds.values())
        ratio = differ / self.keys if self.keys else 0.0
        for error in self.errors[:self.options.show]:
            print(f"setlistd-check: {error}", file=sys.stderr)
        if self.options.json:
            print(json.dumps({"keys": self.keys, "differ": differ, "ratio": ratio, "kinds": dict(self.kinds), "uncompared": self.uncompared,
                              "unread": self.unread, "repaired": self.repaired, "errors": self.failed,
                              "first": [{"key": shown(key), "kind": kind} for key, kind in self.first]}))
            return
        for key, kind in self.first:
            print(f"{shown(key)}: {KINDS[kind]}")
        parts = [f"{self.keys:,} keys have two copies", f"{differ:,} of them differ ({ratio:.4%})"]
        if self.options.repair:
            parts.append(f"{self.repaired:,} were repaired")
        if self.unread:
            parts.append(f"{self.uncompared:,} could not be compared")
        self.say("; ".join(parts))


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="setlistd-check", description=ABOUT, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--repair", action="store_true", help="make the setlistd repair keys that differ")
    add("--wait", type=number, default=60, metavar="SECONDS", help="how long a difference must last to count (60)")
    add("--rate", type=number, default=0, metavar="N", help="maximum number of items to list per second; 0 for no limit (0)")
    add("--show", type=number, default=10, metavar="N", help="number of differing keys to print (10)")
    add("--json", action="store_true", help="print the result as one line of JSON, and no progress")
    add_options(parser)
    return open_files(parser, parser.parse_args(argv))


def main():
    options = arguments()
    os.nice(10)     # so that it does not slow down a setlistd on the same host
    try:
        run = Check(options)
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, run.stop)
        return run.run()
    except Stopped:
        print("setlistd-check: stopped", file=sys.stderr)
    except (Broken, OSError) as error:
        print(f"setlistd-check: {error}", file=sys.stderr)
    return 3
