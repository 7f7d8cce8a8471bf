"""The passes over all keys, their progress and errors, and the command line."""
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

A rule in setlistd's configuration sets the encoding of the keys with a prefix. So each key with the old prefix is copied to a
key with the new prefix. Both rules are in the configuration of one setlistd, or of two, which may have different servers.

  setlistd-convert --from-prefix old- --to-prefix topic- --dry-run keys   counts the changes
  setlistd-convert --from-prefix old- --to-prefix topic- keys             copies; repeat at any time
    (change the clients to the new keys)
  setlistd-convert --from-prefix old- --to-prefix topic- --final keys     copies late writes to old keys

A pass reads each old collection, compares it with its state in the previous pass, and copies only the difference. So
members that clients write to a new key meanwhile are kept, and later writes to an old key are copied by the next pass. The
state file records what was copied; a run that was interrupted or killed continues from there."""

NOTES = """\
exit status:
  0  everything was copied
  1  some keys had errors, which are listed at the end; the other keys were copied
  2  the command line is invalid
  3  stopped by a signal, an unreachable setlistd, or an unusable state file; the state file has everything that was copied, so
     run it again to continue

notes:
  - Change the clients to the new keys after a pass without errors. If a member is written to the old key and soon after to the
    new one, the next pass may apply the write to the old key last, since the order of the two is not known.
  - A new collection that exists before its key is first copied is an error: members that clients removed there would return.
    --merge adds the members of the old collection to it.
  - A new collection that has disappeared since it was written (deleted, evicted, expired) is an error. --merge copies the old
    one again.
  - Missing old keys are counted; members that were already copied from them are kept. An empty set is not created. The flags
    of the old item are not copied.
  - While a set of more than 24 KB, or a list, is copied for the first time, readers may see only a part of it.
  - The new collection gets the remaining time to live of the old one, or none if that has none, and is updated when it changes.
    With --no-ttl, the rule of the new prefix determines it.
  - The new list is updated if elements were pushed to either end of the old one. Any other change of the old list since it was
    copied is an error of that key, and the new list is not changed.
  - --final verifies the members that it writes. If clients change the same members meanwhile, that is an error too, and the
    next run accepts them as they are.
  - --delete deletes an old key if it has not changed since it was copied: its items are compared and deleted one by one,
    beginning with the one that is written first. If the first one has changed meanwhile, none is deleted. If a later one has
    changed, it is kept, and that is an error: only paired, flip and indexed have several items. Empty sets are kept. So are the
    tables of a large set and the segments of a list, to which nothing refers any more, until they expire or are evicted.
  - With the encoding paired, --to-removed is needed if a time to live changes after a key was first copied. Without
    --from-removed, --delete keeps the removals; they are deleted when the set is created again."""

LINE_EVERY = 5     # seconds between lines of progress if stderr is not a terminal
PIECE = 24000      # bytes of members in a line: one append for setlistd


class Tally:
    """Counters of all threads."""

    def __init__(self):
        self.lock, self.counts = threading.Lock(), {}

    def add(self, name, count):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + count

    def __getitem__(self, name):
        return self.counts.get(name, 0)


class Progress:
    """One line that is overwritten on a terminal, otherwise a line every few seconds."""

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
        # Set by a signal handler, which may run at any point: so not a lock.
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
        """Calls do(visit) for each key, concurrently, until all keys are done or the run is stopped."""
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
        """Returns whether all keys were visited. An interrupted pass is continued, unless all keys must be read again."""
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
        """Returns whether all passes were completed."""
        options, count = self.options, 0
        while True:
            if not self.one_pass():
                return options.passes == 0 and not self.fatal
            count += 1
            if options.dry_run or (options.final and not self.changed()):
                return True
            if count == options.passes:
                if options.final:
                    raise Fatal(f"each of {count} passes found changes: are all clients using the new keys?")
                return True
            end = time.monotonic() + options.interval
            while not self.stopped and time.monotonic() < end:
                time.sleep(min(0.2, options.interval))

    def note(self):
        """Prints a note that the counts of the last pass do not include."""
        if self.tally["differ"]:
            print(f"{self.tally['differ']} new collections differ in size from the old ones:"
                  " clients wrote to them", file=sys.stderr)

    def run(self):
        target = Peer(self.options.target)
        settings = target.ask("stats settings", target.stats)
        if isinstance(settings, dict):
            # The line also contains the command, the longest key, and a second command that reads the result.
            self.piece = min(PIECE, max(1, int(settings.get("max_line", 1 << 20)) - 600))
        target.close()
        ended = self.passes()
        if ended and self.options.delete and not self.options.dry_run:
            good = [key for key in self.keys if key in self.state.keys and key not in self.errors]
            self.over_keys("delete", good, Visit.delete)
        self.note()
        if not ended or (self.stopped and self.options.passes):
            print("stopped; run it again to continue", file=sys.stderr)
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
    """Returns the keys in a file, each once, in order."""
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
    add("--from-prefix", required=True, metavar="PREFIX", help="the prefix of the old keys")
    add("--to-prefix", required=True, metavar="PREFIX", help="the prefix that replaces it in the new keys")
    add("--from", dest="source", type=address, default="127.0.0.1:11311", metavar="ADDR",
        help="the setlistd with the rule of the old prefix: host:port or unix:/path (127.0.0.1:11311)")
    add("--to", dest="target", type=address, metavar="ADDR", help="the setlistd with the rule of the new prefix (the same)")
    add("--type", choices=("set", "list"), default="set", help="the type of the keys (set)")
    add("--state", default="setlistd-convert.state", metavar="FILE",
        help="the file that records what was copied (setlistd-convert.state); each conversion needs its own")
    add("--dry-run", action="store_true", help="change nothing, and count what one pass would do")
    add("--final", action="store_true",
        help="after clients have changed to the new keys: run passes until nothing changes any more, and verify the new keys")
    add("--delete", action="store_true", help="with --final: delete the old keys afterwards, except keys with errors")
    add("--merge", action="store_true", help="also convert keys whose new key already exists, or has disappeared (see below)")
    add("--from-removed", metavar="PREFIX", help="`removed` of the old rule, if its encoding is paired")
    add("--to-removed", metavar="PREFIX", help="`removed` of the new rule, if its encoding is paired")
    add("--no-ttl", action="store_true", help="take the time to live of the new keys from their rule")
    add("--passes", type=number, metavar="N",
        help="number of passes; 0 until interrupted (1); with --final the maximum (100)")
    add("--interval", type=float, default=0, metavar="SECONDS", help="pause between passes (0)")
    add("--jobs", type=number, default=4, metavar="N", help="number of keys converted in parallel (4)")
    add("keyfile", nargs="?", default="-", metavar="KEYFILE",
        help="file with the old keys, with their prefix, one per line; - or no file for stdin")
    options = parser.parse_args(argv)
    options.target = options.target or options.source
    if options.passes is None:
        options.passes = 100 if options.final else 1
    if options.source == options.target and options.from_prefix == options.to_prefix:
        parser.error("the old and the new keys are the same")
    if options.delete and not options.final:
        parser.error("--delete needs --final")
    if options.jobs == 0 or options.interval < 0 or (options.final and options.passes == 0):
        parser.error("--jobs, --interval or --passes is out of range")
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
