"""The passes over all keys, what is shown of them, and the command line."""
import argparse
import signal
import sys
import threading
import time

from conversion.peer import Failed, Fatal, Peer
from conversion.state import State
from conversion.visit import Visit

ABOUT = """\
Rewrites sets or lists from one encoding to another, while clients write.

A rule of setlistd's configuration gives the keys of a prefix their encoding. So each key with the old prefix is carried
over to one with the new prefix: both rules stand in the same setlistd, or in two, also in front of other servers.

  setlistd-convert --from-prefix old- --to-prefix topic- --dry-run keys   what would be done
  setlistd-convert --from-prefix old- --to-prefix topic- keys             carry over; again at any time
    (let clients use the new keys)
  setlistd-convert --from-prefix old- --to-prefix topic- --final keys     what was still written to the old ones

A pass reads each old collection, compares it with what it was in the pass before, and carries over the difference, only
that. So what clients write to a new key meanwhile stays, and what they still write to an old one follows with the next
pass. The state file says what was carried over; a run that was broken off, or killed, is gone on with from there."""

NOTES = """\
exit status:
  0  all is carried over
  1  errors of keys, listed at the end; the other keys are done
  2  wrong usage
  3  broken off, by a signal, by a setlistd that cannot be reached, or by a state file that cannot be used; what was
     carried over is in the state file, so run it again to go on

what to know:
  - Let clients change over after a pass without errors. Of two writes of one member, to the old key and soon after to the
    new one, that to the old key may come last: with the next pass. Nobody knows then which was first.
  - A new collection that exists before its key is begun is an error: members that clients removed there would come back.
    --merge adds the members of the old one to it.
  - A new collection that is gone after it was written (deleted, evicted, expired) is an error. --merge copies the old one.
  - Missing old keys are counted; what was carried over of them stays. An empty set is not created. The flags of the old
    item are not carried over.
  - A set of more than 24 KB is seen in part while it is carried over for the first time, and so is a list.
  - The new collection gets the time that the old one has left to live, also none, and again where it has changed. With
    --no-ttl the rule of the new prefix decides.
  - A list follows the old one where elements were pushed to either end of it. Anything else done to it since it was copied is
    an error of that key, which is left as it is.
  - --final verifies the members that it writes. If clients change the same ones meanwhile, that is an error too, and the
    next run takes them as they are.
  - --delete deletes an old key if it still is what was carried over: its items are compared and deleted, one after the other,
    the one that is written to first. If the first was written to meanwhile, all stay. If a later one was, it stays, and
    that is an error: only paired, flip and indexed have more than one. Empty sets stay. So do the tables of a large set and
    the segments of a list, until they expire or memcached evicts them: nothing refers to them any more.
  - Under paired, --to-removed is needed where a time to live changes after a key is begun. Without --from-removed --delete leaves
    the removals; they go when the set is created again."""

LINE_EVERY = 5     # seconds between lines of progress where there is no terminal
PIECE = 24000      # bytes of members in a line: one append for setlistd


class Tally:
    """What was counted, by all threads."""

    def __init__(self):
        self.lock, self.counts = threading.Lock(), {}

    def add(self, name, count):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + count

    def __getitem__(self, name):
        return self.counts.get(name, 0)


class Progress:
    """One line that is written over on a terminal, else a line every few seconds."""

    def __init__(self, title, total, errors):
        self.title, self.total, self.errors = title, total, errors
        self.visited, self.tally = 0, Tally()
        self.start = self.shown = time.monotonic()
        self.terminal = sys.stderr.isatty()

    def text(self):
        tally, rate = self.tally, self.visited / max(1e-3, time.monotonic() - self.start)
        parts = [f"{self.title}: {self.visited}/{self.total} keys, +{tally['added']} -{tally['removed']} members",
                 f"{rate:.0f} keys/s", f"{len(self.errors)} errors"]
        parts += [f"{tally[name]} {text}" for name, text in (("missing", "missing"), ("deleted", "deleted")) if tally[name]]
        return ", ".join(parts)

    def show(self, end=False):
        if self.terminal:
            sys.stderr.write(f"\r{self.text()}\x1b[K" + ("\n" if end else ""))
        elif end or time.monotonic() - self.shown >= LINE_EVERY:
            self.shown = time.monotonic()
            sys.stderr.write(self.text() + "\n")
        sys.stderr.flush()


class Run:
    def __init__(self, options, keys):
        self.options, self.keys = options, keys
        # Told to stop by a signal, which may come anywhere: so this is no lock.
        self.stopped, self.fatal, self.errors = False, None, {}
        self.lock, self.number, self.progress, self.piece = threading.Lock(), 0, None, PIECE
        header = {"setlistd-convert": 1, "from": options.source, "from_prefix": options.from_prefix,
                  "to": options.target, "to_prefix": options.to_prefix, "type": options.type}
        self.state = State(options.state, header, options.type == "list", options.dry_run)

    def stop(self, *_):
        self.stopped = True

    @property
    def tally(self):
        return self.progress.tally

    def over_keys(self, title, keys, do):
        """do(visit) for each key, side by side, until all are done or the run is to stop."""
        self.progress = Progress(title, len(keys), self.errors)
        rest = iter(keys)
        threads = [threading.Thread(target=self.work, args=(rest, do)) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)
                self.progress.show()
        self.state.sync()
        self.progress.show(end=True)
        if self.fatal:
            raise self.fatal

    def work(self, rest, do):
        source, target = Peer(self.options.source), Peer(self.options.target)
        try:
            while not self.stopped:
                with self.lock:
                    key = next(rest, None)
                if key is None:
                    break
                self.one(source, target, key, do)
        except BaseException as error:
            self.fatal = error
            self.stopped = True
        finally:
            source.close()
            target.close()

    def one(self, source, target, key, do):
        try:
            do(Visit(self, source, target, key))
            self.errors.pop(key, None)
        except Failed as error:
            self.errors[key] = str(error)
        with self.lock:
            self.progress.visited += 1

    def one_pass(self):
        """Whether all keys were visited. One that was broken off is gone on with, unless all must be read once more."""
        state, keys = self.state, self.keys
        resumed = state.open_pass and not self.options.final
        self.number = state.passes + (not resumed)
        if resumed:
            keys = [key for key in keys if key not in state.keys or state.keys[key].passed != self.number]
        elif not self.options.dry_run:
            state.write({"pass": self.number})
        self.over_keys(f"pass {self.number}" + (" (dry run)" if self.options.dry_run else ""), keys, Visit.carry)
        if self.stopped:
            return False
        if not self.options.dry_run:
            state.write({"pass": self.number, "end": 1})
            state.sync()
        return True

    def changed(self):
        return any(self.tally[name] for name in ("added", "removed", "times", "anew"))

    def passes(self):
        """Whether they came to their end."""
        options, count = self.options, 0
        while True:
            if not self.one_pass():
                return options.passes == 0 and not self.fatal
            count += 1
            if options.dry_run or (options.final and not self.changed()):
                return True
            if count == options.passes:
                if options.final:
                    raise Fatal(f"there were changes in each of {count} passes: are all clients using the new keys?")
                return True
            end = time.monotonic() + options.interval
            while not self.stopped and time.monotonic() < end:
                time.sleep(min(0.2, options.interval))

    def note(self):
        """What the counts of the last pass do not say."""
        if self.tally["differ"]:
            print(f"{self.tally['differ']} new collections have other numbers of members than the old ones:"
                  " clients wrote to them", file=sys.stderr)

    def run(self):
        target = Peer(self.options.target)
        settings = target.ask("stats settings", target.stats)
        if isinstance(settings, dict):
            # The line has room for the command, the longest key, and a look behind it.
            self.piece = min(PIECE, max(1, int(settings.get("max_line", 1 << 20)) - 600))
        target.close()
        ended = self.passes()
        if ended and self.options.delete and not self.options.dry_run:
            good = [key for key in self.keys if key in self.state.keys and key not in self.errors]
            self.over_keys("delete", good, Visit.delete)
        self.note()
        if not ended or (self.stopped and self.options.passes):
            print("broken off; run it again to go on", file=sys.stderr)
            return 3
        return 1 if self.errors else 0

    def list_errors(self):
        for key, error in sorted(self.errors.items()):
            print(f"{printable(key)}: {printable(error)}", file=sys.stderr)
        if self.errors:
            print(f"{len(self.errors)} of {len(self.keys)} keys have errors", file=sys.stderr)


def printable(text):
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def read_keys(path):
    """The keys of a file, each once, in order."""
    if path == "-":
        lines = sys.stdin.buffer.read().split(b"\n")
    else:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    keys = (line.rstrip(b"\r").decode("utf-8", "surrogateescape") for line in lines)
    return list(dict.fromkeys(key for key in keys if key))


def address(text):
    host, _, port = text.rpartition(":")
    if text.startswith("unix:") or (host and port.isdigit()):
        return text
    raise ValueError(text)


def number(text):
    if int(text) < 0:
        raise ValueError(text)
    return int(text)


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="setlistd-convert", description=ABOUT, epilog=NOTES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--from-prefix", required=True, metavar="PREFIX", help="what the old keys begin with")
    add("--to-prefix", required=True, metavar="PREFIX", help="what the new keys begin with in its place")
    add("--from", dest="source", type=address, default="127.0.0.1:11311", metavar="ADDR",
        help="the setlistd with the rule of the old prefix: host:port or unix:/path (127.0.0.1:11311)")
    add("--to", dest="target", type=address, metavar="ADDR", help="the one with the rule of the new prefix (the same)")
    add("--type", choices=("set", "list"), default="set", help="what the keys are (set)")
    add("--state", default="setlistd-convert.state", metavar="FILE",
        help="where to keep what was carried over (setlistd-convert.state); one for each conversion")
    add("--dry-run", action="store_true", help="only read, and count what one pass would do")
    add("--final", action="store_true",
        help="clients use the new keys: passes until nothing changes any more, with what was written verified")
    add("--delete", action="store_true", help="with --final: delete the old keys then, but for those that have errors")
    add("--merge", action="store_true", help="also where the new key exists already, or is gone (see below)")
    add("--from-removed", metavar="PREFIX", help="`removed` of the old rule, if its encoding is paired")
    add("--to-removed", metavar="PREFIX", help="`removed` of the new rule, if its encoding is paired")
    add("--no-ttl", action="store_true", help="leave the time to live of the new keys to their rule")
    add("--passes", type=number, metavar="N",
        help="how many passes, 0 until interrupted (1); with --final the most, until nothing changes (100)")
    add("--interval", type=float, default=0, metavar="SECONDS", help="between passes (0)")
    add("--jobs", type=number, default=4, metavar="N", help="keys at once (4)")
    add("keyfile", nargs="?", default="-", metavar="KEYFILE",
        help="the old keys, with their prefix, one a line; - or nothing is stdin")
    options = parser.parse_args(argv)
    options.target = options.target or options.source
    if options.passes is None:
        options.passes = 100 if options.final else 1
    if options.source == options.target and options.from_prefix == options.to_prefix:
        parser.error("the old keys are the new ones")
    if options.delete and not options.final:
        parser.error("--delete is for --final")
    if options.jobs == 0 or options.interval < 0 or (options.final and options.passes == 0):
        parser.error("--jobs, --interval or --passes is out of its range")
    return options


def main():
    options = arguments()
    run = None
    try:
        run = Run(options, read_keys(options.keyfile))
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, run.stop)
        status = run.run()
    except (Fatal, Failed, OSError) as error:
        print(f"setlistd-convert: {error}", file=sys.stderr)
        status = 3
    if run:
        run.list_errors()
    return status
