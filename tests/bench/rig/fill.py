"""Prepares data that --prefill of the load generator cannot: sets of given members, and idle servers."""
import random
import time
from string import ascii_lowercase

from .peers import Failed, connect

MILLION = 1000000
SHARED = MILLION // 2   # number of members in each of the two sets that are intersected
NAME_SIZE = len("user-0000001")
PER_LINE = 500
WINDOW = 32             # lines in flight
LIMIT = 60              # seconds until a set is compacted, or a server is idle
READS_AND_WRITES = ("cmd_get", "cmd_set", "cmd_touch")


def in_order(first, count):
    return [f"user-{number:07}" for number in range(first, first + count)]


def ids(count):
    return [str(number) for number in range(MILLION, MILLION + count)]


def sparse_ids(count):
    """Returns this number of decimal members, about one in 50, the same ones in each run."""
    draw, number, found = random.Random(4), 10 * MILLION, []
    while len(found) < count:
        number += draw.randint(1, 100)
        found.append(str(number))
    return found


def hexadecimal(count, digits=16):
    """Returns this number of members of so many random digits, the same ones in each run."""
    draw, found = random.Random(1), set()
    while len(found) < count:
        found.add(f"{draw.getrandbits(4 * digits):0{digits}x}")
    return sorted(found)


def letters(count):
    """Returns this number of members of 10 random letters, the same ones in each run."""
    draw, found = random.Random(3), set()
    while len(found) < count:
        found.add("".join(draw.choices(ascii_lowercase, k=10)))
    return sorted(found)


def shuffled(members):
    random.Random(2).shuffle(members)
    return members


class Client:
    """A connection for requests in lines. Redis accepts the same lines as inline commands."""

    def __init__(self, server):
        self.server, self.conn = server, connect(server.port)
        self.replies = self.conn.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.replies.close()
        self.conn.close()

    def line(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise Failed(f"{self.server.name} hung up")
        return line[:-2].decode("latin-1")

    def ask(self, line):
        """Returns the first line of the reply."""
        self.conn.sendall(line.encode() + b"\r\n")
        return self.line()

    def set(self, key, value):
        if (reply := self.ask(f"set {key} 0 0 {len(value)}\r\n{value}")) != "STORED":
            raise Failed(f"set {key}: {reply!r}")

    def get(self, key):
        """Returns the value that set stored."""
        head, value, end = self.ask(f"get {key}"), self.line(), self.line()
        if (head, end) != (f"VALUE {key} 0 {len(value)}", "END"):
            raise Failed(f"get {key}: {head!r}")
        return value

    def add(self, key, members, per_line=PER_LINE):
        wanted = ("STORED",) if self.server.proto == "memcache" else (":",)
        lines = [f"sadd {key} {' '.join(members[at:at + per_line])}\r\n" for at in range(0, len(members), per_line)]
        for at in range(0, len(lines), WINDOW):
            window = lines[at:at + WINDOW]
            self.conn.sendall("".join(window).encode())
            for _ in window:
                reply = self.line()
                if not reply.startswith(wanted):
                    raise Failed(f"sadd to {self.server.name}: {reply!r}")

    def compact(self, key):
        """Retries until it succeeds: other clients may be compacting the set."""
        if self.server.proto != "memcache":
            return
        limit = time.monotonic() + LIMIT
        while (reply := self.ask(f"scompact {key}")) != "OK":
            if reply != "SERVER_ERROR busy" or time.monotonic() > limit:
                raise Failed(f"scompact: {reply!r}")
            time.sleep(0.05)

    def stats(self):
        """Of a memcached: the values, and the size of the reply."""
        found, size, line = {}, 0, self.ask("stats")
        while line != "END":
            _, name, value = line.split(" ", 2)
            found[name], size, line = value, size + len(line) + 2, self.line()
        return found, size + len("END\r\n")

    def used_memory(self):
        """Of a Redis."""
        size = int(self.ask("INFO memory").removeprefix("$"))
        lines = self.replies.read(size + 2).decode().splitlines()
        return int(next(line for line in lines if line.startswith("used_memory:")).partition(":")[2])

    def stored(self):
        """Returns the bytes of all stored data on a memcached or a Redis."""
        return int(self.stats()[0]["bytes"]) if self.server.proto == "memcache" else self.used_memory()


class Meter:
    """Counts the traffic of a memcached, without the requests of this meter itself."""

    def __init__(self, memcached):
        self.client = Client(memcached)
        self.before, self.own = self.client.stats()  # the reply counts only from the next request on

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def read(self):
        """Returns bytes and requests since the meter was created, once the server is idle."""
        return at_rest(self._passed, 5)

    def _passed(self):
        now, size = self.client.stats()

        def growth(*names):
            return sum(int(now[name]) - int(self.before[name]) for name in names)
        found = growth("bytes_read", "bytes_written") - self.own - len("stats\r\n"), growth(*READS_AND_WRITES)
        self.own += size + len("stats\r\n")
        return found


def at_rest(value_of, looks=20):
    """Returns the value once it was the same this number of times in a row, at twenty reads per second."""
    seen, limit = [value_of()], time.monotonic() + LIMIT
    while len(seen) < looks:
        if time.monotonic() > limit:
            raise Failed(f"no rest in {LIMIT} s")
        time.sleep(0.05)
        now = value_of()
        seen = [*seen, now] if now == seen[-1] else [now]
    return seen[-1]


def two_sets(server):
    """Stores a million members under each of two keys, half of them under both."""
    with Client(server) as client:
        for key, first in (("left", 1), ("right", 1 + MILLION - SHARED)):
            client.add(key, in_order(first, MILLION))
            client.compact(key)


def whole_sets(keys, members):
    """Returns a function that stores this number of sets of the load generator, each as a whole: as sets are that were closed."""
    def store(server):
        with Client(server) as client:
            for key in range(keys):
                if (reply := client.ask(f"sset k{key:07} {' '.join(in_order(0, members))}")) != "STORED":
                    raise Failed(f"sset: {reply!r}")
    return store


KINDS = {"two sets": two_sets, "1000 sets of 100": whole_sets(1000, 100), "10 sets of 1000": whole_sets(10, 1000)}
