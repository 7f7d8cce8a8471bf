"""Honest clients of the soak test: each has its own keys, records their state, and compares every reply with it.

A key on a steady server must have its acknowledged state. A key on a server that is sometimes killed may also be missing. After an
unknown outcome, a key is replaced by a new one, since the server may still execute the call.

They measure how long each reply takes, and next to that how long a get takes through a setlistd without hostile clients: what both have
in common is due to the machine.
"""
import collections
import random
import re
import time

from harness import wait_until
from model import FAMILIES, MOST_OF_ONE, Key, Mismatch, Op, line, members_of, must, until_end, values
from soak_costs import CONTENDED
from storm import ERRORS, NOT_SENT
from wire import Closed, Conn

RETIRED = "retired"
MOST = {"s": MOST_OF_ONE + 1, "l": MOST_OF_ONE, "p": 200000}     # members, items, bytes


def loose_ops(client, dice):
    """Commands for which only the form of the reply and the names in it can be checked."""
    event, quiet = b"E%d" % client, b"quiet-%d" % client
    many = [b"quiet-%d" % dice.randrange(30) for _ in range(20)]

    def matches(pattern):
        return lambda _, reply: must(re.fullmatch(pattern, reply))

    def named(_, reply):
        for name, (_, data, *_) in reply.items():
            must(name.encode() in many and data.startswith(name.encode() + b"|"))

    def events(_, reply):
        must(all(name.encode().startswith(event + b"::") for name in reply))

    def ends(_, reply):
        must(reply[-1] == b"END")
    yield b"set %s 0 0 %d noreply\r\n%s|\r\nmn" % (quiet, len(quiet) + 1, quiet), line, matches(rb"MN")
    yield b"sadd set-%s x noreply\r\nsrem set-%s x noreply\r\nmn" % (quiet, quiet), line, matches(rb"MN")
    yield b"get " + b" ".join(many), values, named
    yield b"evincr " + event, line, matches(rb"\d+")
    yield b"evadd %s 0 60 1\r\nx" % event, line, matches(rb"EVENT %s::\d+::\d+|NOT_STORED" % event)
    yield b"evcount " + event, until_end, ends
    yield b"evrange %s now" % event, values, events
    yield b"evlast %s 3" % event, values, events
    yield b"route " + quiet, line, matches(rb"ROUTE %s \S+" % quiet)
    yield b"version", line, matches(rb"VERSION .*")
    yield b"mn", line, matches(rb"MN")
    yield b"stats", until_end, ends
    yield b"stats settings", until_end, ends
    yield b"verbosity 0", line, matches(rb"OK")
    yield b"nonsense", line, matches(rb"ERROR")
    yield b"incr %s x" % quiet, line, matches(rb"CLIENT_ERROR .*")
    yield b"help get", until_end, lambda _, reply: None
    yield b"scard %s" % CONTENDED, line, matches(rb"[01]|NOT_FOUND")


class Waits:
    """How long requests waited for their replies."""

    def __init__(self):
        self.by_ms, self.longest = collections.Counter(), (0.0, "none")

    def add(self, took, what):
        self.by_ms[int(took * 1000)] += 1
        self.longest = max(self.longest, (took, what))

    def update(self, other):
        self.by_ms.update(other.by_ms)
        self.longest = max(self.longest, other.longest)

    def __str__(self):
        left = sum(self.by_ms.values()) // 100
        for ms in sorted(self.by_ms, reverse=True):
            left -= self.by_ms[ms]
            if left < 0:
                break
        return f"p99 {ms + 1} ms, longest {self.longest[0] * 1000:.0f} ms ({self.longest[1]})" if self.by_ms else "none"


class Honest:
    """A client, which works until the end of the test, and then checks all its keys again."""

    def __init__(self, port, beside, number, seconds, is_mortal, seed):
        """Its keys contain the seed, so that they differ from those of an earlier client."""
        self.tag = b"%x" % int(seed * (1 << 32))
        self.port, self.number, self.seconds, self.is_mortal = port, number, seconds, is_mortal
        self.dice = random.Random(f"{seed}-{number}")
        self.made = self.requests = self.unknown = 0
        self.errors = {}
        self.conn, self.beside = Conn(port), Conn(beside)
        self.waits, self.waits_beside = Waits(), Waits()
        self.keys = [(family, self.new_key(family, number)) for family in FAMILIES for number in range(6)]

    def new_key(self, family, number):
        """Half of the plain items may be lost; sets and lists, and items with a cas id, may not."""
        wants_mortal = family in "pn" and number % 2 == 1
        while True:
            self.made += 1
            name = b"%s-%s-%d-%d" % (family.encode(), self.tag, self.number, self.made)
            if self.is_mortal(name) == wants_mortal:
                return Key(name, wants_mortal)

    def choose(self):
        if self.dice.random() < 0.15:
            text, read, judge = self.dice.choice(list(loose_ops(self.number, self.dice)))
            return Op(None, text, read, judge, False)
        family, key = self.dice.choice(self.keys)
        if family in MOST and key.state is not None and len(key.state) > MOST[family]:
            key.state = RETIRED
        return Op(key, *self.dice.choice(list(FAMILIES[family](key, self.dice))))

    def take(self, op, reply):
        """Compares the reply with the expected state."""
        if isinstance(reply, str):
            must(ERRORS.fullmatch(reply))
            self.errors[reply] = self.errors.get(reply, 0) + 1
            if op.key and op.writes and not NOT_SENT.fullmatch(reply):
                self.unknown += 1
                op.key.state = RETIRED
            return
        if op.key and op.key.state == RETIRED:
            return
        try:
            op.take(reply)
        except Mismatch:
            if not (op.key and op.key.mortal):
                raise
            op.key.state = None
            op.take(reply)

    def run_batch(self, batch):
        start = time.monotonic()
        self.conn.send(b"".join(op.line + b"\r\n" for op in batch))
        for op in batch:
            reply = op.read(self.conn)
            self.waits.add(time.monotonic() - start, op.line[:40].decode("ascii", "replace"))
            self.requests += 1
            before = op.key and op.key.state
            try:
                self.take(op, reply)
            except Mismatch:
                raise AssertionError(f"client {self.number}: {op.line[:200]!r} got {reply!r:.300}; known: {before!r:.300}") from None
        self.keys = [(family, self.new_key(family, i % 6) if key.state == RETIRED else key)
                     for i, (family, key) in enumerate(self.keys)]

    def ask_beside(self):
        start = time.monotonic()
        must(self.beside.values("get nothing") == ({}, "END"))
        self.waits_beside.add(time.monotonic() - start, "get")

    def read_again(self, family, key):
        """Reads a key, which must have the expected state. Returns whether it could be read."""
        read = {"s": b"smembers %s", "l": b"lrange %s 0 -1"}.get(family, b"get %s") % key.name
        self.conn.send(read + b"\r\n")
        reply = values(self.conn)
        if isinstance(reply, str):
            return False
        got = members_of(key, reply)
        known = {"s": lambda: key.state and sorted(key.state), "l": lambda: key.state and list(key.state),
                 "n": lambda: key.state is not None and [b"%d" % key.state]}.get(family, lambda: key.state and [key.state])()
        if got:
            # A number that became shorter may be followed by spaces.
            got = sorted(got) if family == "s" else got[:1] if family == "n" else got
        if (got or None) != (known or None) and not (key.mortal and got is None):
            raise AssertionError(f"client {self.number}: {key.name!r} has {got!r:.300} in the end; known: {key.state!r:.300}")
        return True

    def run(self):
        end = time.monotonic() + self.seconds
        try:
            while time.monotonic() < end:
                self.run_batch([self.choose() for _ in range(self.dice.choice((1, 1, 4, 30)))])
                self.ask_beside()
            for family, key in self.keys:
                wait_until("a last look", lambda family=family, key=key: self.read_again(family, key), pause=0.05)
        except Closed as closed:
            raise AssertionError(f"client {self.number}: {closed}") from None
        self.conn.close()
        return {"requests": self.requests, "unknown": self.unknown, "errors": self.errors, "waits": self.waits, "beside": self.waits_beside}
