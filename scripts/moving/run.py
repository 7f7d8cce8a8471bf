"""The passes over all keys of the former servers, their progress and errors, and the command line."""
import argparse
import os
import signal
import sys
import time

from moving.keys import BATCH, Spool, base_of, batches, dump, in_line
from moving.link import Broken
from moving.pool import Pool, Stopped, add_options, number, open_files

ABOUT = """\
Moves the keys of former servers to their new ones, by requesting each of them from a setlistd.

The setlistd has former_servers and move_at in its configuration, and that time has passed. A pass lists the keys of each
former server, and moves the keys whose server has changed. The program can be interrupted and started again at any time, since
keys that have moved are no longer listed. It ends when a complete pass has found no key to move. RELOADING in setlistd(8)
describes the procedure. A server that is unreachable does not delay the others."""

NOTES = """\
exit status:
  0  nothing is left on the former servers
  1  some keys are left, because a server or the setlistd refused a request, or after the last of --passes
  2  the command line is invalid, or nothing moves: the setlistd has no former servers, or move_at is in the future
  3  stopped by a signal, or because the setlistd is unreachable; or a server could not be read, and nothing is left on the
     others. Start it again to continue; pass a server that is down for good with --lost"""

SHOWN = 10      # errors
MARKED = b"f%d" % 0xc0b1e5a7    # the flags of an item that is being moved: MARK_FLAGS in src/collection/move/mark.h


class Run(Pool):
    def __init__(self, options):
        super().__init__(options, options.lost)
        self.errors = []
        self.found = self.moved = self.young = self.stayed = self.leftovers = 0
        self.unread = {}    # servers that this pass could not read completely, with the reasons

    # --- the state of the setlistd ---

    def check(self):
        """Returns None if keys move, or why none do."""
        found = dict(self.proxy.stats())
        at = int(found.get("move_at", "0"))
        if not at:
            return "it has no former servers"
        if int(found["time"]) < at:
            return f"keys do not move before {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(at))}"
        states = self.states()
        for name in self.options.lost:
            if name not in states:
                return f"--lost {name}: the servers are {' '.join(states)}"
            if states[name] == "up":
                return f"--lost {name}: it is up"
        return None

    # --- moving ---

    def error(self, key, reply):
        self.failed += 1
        if len(self.errors) < SHOWN:
            self.errors.append(f"{key.decode('utf-8', 'backslashreplace')}: {reply.decode('utf-8', 'replace')}")

    def places(self, server, keys):
        """Returns the keys of this server whose server is another one now, and the keys that are new on it. A part moves with its base."""
        leave, new = [], []
        for key, reply in zip(keys, self.proxy.ask(b"route " + in_line(key) for key in keys)):
            # The servers of a second copy follow: that is a key of its own here.
            words = reply.partition(b" copy ")[0].split(b" ")
            if words[0] != b"ROUTE":
                self.error(key, reply)
            elif len(words) == 5 and words[4] == server.encode():
                leave.append(key)
            elif len(words) == 5 and words[2] == server.encode():
                new.append(key)
        return leave, new

    def look(self, server, link, work):
        """Lists the keys of the server."""
        keys, parts, marks = work
        listing = self.connect(server)
        try:
            for batch in batches(dump(listing)):
                ages = dict(batch)
                leave, new = self.places(server, list(ages))
                for key in leave:
                    if base_of(key):
                        parts.add(key, ages[key])
                    else:
                        keys.add(key, 0)
                # Another process is moving it, or was killed while it did.
                for key, reply in zip(new, link.ask(b"mg %s f" % in_line(key) for key in new)):
                    if MARKED in reply.split(b" "):
                        marks.add(key, 0)
                self.pause(0)
        finally:
            listing.close()

    def move(self, server, link, found):
        keys = [key for key, _ in found]
        replies = self.proxy.ask(b"mg %s f Pitem" % in_line(key) for key in keys)
        for key, reply in zip(keys, replies):
            if reply[:2] not in (b"HD", b"EN"):
                self.error(key, reply)
        self.found += len(keys)
        for gone, reply in zip(link.ask(b"mg %s" % in_line(key) for key in keys), replies):
            if gone == b"EN":
                self.moved += 1
            else:
                self.stayed += reply[:2] in (b"HD", b"EN")

    def settle(self, _, link, found):
        """Makes the setlistd complete moves that another one has begun. If it replies with these flags, a client has stored an item with them."""
        keys = [key for key, _ in found]
        replies = self.proxy.ask(b"mg %s f Pitem" % in_line(key) for key in keys)
        for key, reply, there in zip(keys, replies, link.ask(b"mg %s f" % in_line(key) for key in keys)):
            if reply[:2] not in (b"HD", b"EN"):
                self.error(key, reply)
            if MARKED not in reply.split(b" "):
                self.found += 1
                self.stayed += MARKED in there.split(b" ")

    def drop(self, server, link, keys):
        """Deletes parts whose base has left the server. A part is read first, which copies it if its set needs it. Young parts may be in use."""
        bases = link.ask(b"mg %s" % in_line(base_of(key)) for key, _ in keys)
        lost = [key_age for key_age, reply in zip(keys, bases) if reply == b"EN"]
        there = link.ask(b"mg %s" % in_line(key) for key, _ in lost)
        for (key, age), reply in zip(lost, there):
            if reply == b"EN":
                continue
            self.found += 1
            if age < self.options.age:
                self.young += 1
            elif not self.proxy.read(in_line(key)):
                self.error(key, b"it cannot be read")
            elif link.ask([b"md %s" % in_line(key)])[0] in (b"HD", b"NF"):
                self.leftovers += 1
            else:
                self.error(key, b"it cannot be deleted at " + server.encode())

    # --- passes ---

    def carry_out(self, server, what, spool, act, link):
        size = min(BATCH, max(1, self.options.rate // 10)) if self.options.rate else BATCH
        done, began = 0, time.monotonic()
        for batch in batches(spool, size):
            self.pause(len(batch))
            act(server, link, batch)
            done += len(batch)
            self.progress(f"{server}: {done:,} of {spool.count:,} {what}", done, spool.count, began)

    def go_over(self):
        """Runs a pass. Returns how many keys of other servers it has found, and errors."""
        self.found = self.failed = self.young = self.stayed = 0
        self.errors, self.unread = [], {}
        for server in self.servers():
            try:
                self.visit(server)
            except Broken as error:
                if error.address != server:
                    raise
                self.unread[server] = str(error)
                print(f"setlistd-move: {error}; continuing with the other servers", file=sys.stderr)
        return self.found + self.failed

    def visit(self, server):
        link = self.connect(server)
        work = Spool(), Spool(), Spool()
        try:
            self.look(server, link, work)
            self.began, self.sent = time.monotonic(), 0
            for spool, what, act in zip(work, ("keys", "parts", "marks"), (self.move, self.drop, self.settle)):
                if spool.count:
                    self.carry_out(server, what, spool, act, link)
        finally:
            for one in (*work, link):
                one.close()

    def run(self):
        why = self.check()
        if why:
            print(f"setlistd-move: {self.options.proxy}: {why}", file=sys.stderr)
            return 2
        for number in range(1, self.options.passes + 1):
            left = self.go_over()
            if not left and self.unread:
                print(f"setlistd-move: nothing is left on the other servers; not read: {' '.join(self.unread)}. Start again when they are up;"
                      " if one is down for good, pass it with --lost", file=sys.stderr)
                return 3
            if not left:
                self.say(f"pass {number}: nothing is left; {self.moved:,} keys have moved, {self.leftovers:,} left-over parts were deleted")
                return 0
            self.say(f"pass {number}: {self.found:,} keys were found, {self.stayed:,} of them did not move, {self.young:,} parts may be in use; "
                     f"{self.failed:,} errors")
            for error in self.errors:
                print(f"setlistd-move: {error}", file=sys.stderr)
            # A key that was just written to a former server is not searched for immediately.
            if self.failed + self.stayed:
                self.wait(1.5)
            elif self.young == left:
                self.wait(5)
        print("setlistd-move: some keys are left after the last pass", file=sys.stderr)
        return 1


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="setlistd-move", description=ABOUT, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--rate", type=number, default=0, metavar="N", help="maximum number of keys to move per second; 0 for no limit (0)")
    add("--passes", type=number, default=20, metavar="N", help="maximum number of passes (20)")
    add("--age", type=number, default=60, metavar="SECONDS",
        help="how long a left-over part of a set or list must have been unused before it is deleted (60)")
    add("--lost", action="append", default=[], metavar="SERVER",
        help="a server that is permanently down, by its name in `stats upstream`: it is not read; may be repeated")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.passes == 0:
        parser.error("--passes is out of range")
    return open_files(parser, options)


def main():
    options = arguments()
    os.nice(10)     # so that it does not slow down a setlistd on the same host
    try:
        run = Run(options)
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, run.stop)
        return run.run()
    except Stopped:
        print("setlistd-move: stopped; start again to continue", file=sys.stderr)
    except (Broken, OSError) as error:
        print(f"setlistd-move: {error}; start again to continue", file=sys.stderr)
    return 3
