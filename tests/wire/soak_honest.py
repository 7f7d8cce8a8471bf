"""Honest clients of the soak: each has keys of its own, knows what is in them, and holds every reply against that.

A key of a steady server must have what was acknowledged. A key of a server that is killed now and then may be missing as well. After
an unknown outcome a key is given up for a new one: the server may still carry out what it was sent.
"""
import random
import re
import time

from harness import PATIENCE, wait_until
from storm import ERRORS, NOT_SENT
from wire import Closed, Conn

RETIRED = "retired"
MOST_OF_ONE = 60
MOST = {"s": MOST_OF_ONE + 1, "l": MOST_OF_ONE, "p": 200000}     # members, items, bytes


class Key:
    """A key, what it holds (None: nothing), and whether its server may lose it."""

    def __init__(self, name, mortal):
        self.name, self.mortal, self.state = name, mortal, None


class Op:
    """What is sent, how the reply is read, and what it does: judge(state, reply) gives the new state; it raises Mismatch."""

    def __init__(self, key, line, read, judge, writes=True):
        self.key, self.line, self.read, self.judge, self.writes = key, line, read, judge, writes


class Mismatch(Exception):
    pass


def must(condition):
    if not condition:
        raise Mismatch


def is_reply(expected, then):
    """A judge: the reply is this, and the state is that afterwards."""
    def judge(_, reply):
        must(reply == expected)
        return then
    return judge


# --- readers: what they give is an error line as text, or the reply

def line(conn):
    got = conn.line()
    return got.decode() if got.startswith(b"SERVER_ERROR") else got


def values(conn):
    found, end = conn.read_values()
    return found if end == "END" else end


def meta(conn):
    got = line(conn)
    if isinstance(got, bytes) and got.startswith(b"VA "):
        return got, conn.block(int(got.split()[1]))
    return got


def until_end(conn):
    """STAT, COUNT or COMMAND lines."""
    lines = [line(conn)]
    while lines[-1] != b"END" and isinstance(lines[-1], bytes) and lines[-1] != b"NOT_FOUND":
        lines.append(line(conn))
    return lines[-1] if isinstance(lines[-1], str) else lines


# --- what commands do: each gives (line, reader, judge), or judges by both replies that are possible

def plain_ops(key, dice):
    name = key.name
    data = b"%s|%d|" % (name, dice.randrange(1000)) * dice.choice((1, 1, 1, 5, 2000))
    verb = dice.choice((b"set", b"add", b"replace", b"append", b"prepend"))

    def store(state, reply):
        takes = {b"set": True, b"add": state is None}.get(verb, state is not None)
        must(reply == (b"STORED" if takes else b"NOT_STORED"))
        extended = {b"append": lambda: state + data, b"prepend": lambda: data + state}.get(verb, lambda: data)
        return extended() if takes else state

    def found(state, reply):
        must(set(reply) <= {name.decode()})
        must((reply[name.decode()][1] if reply else None) == state)
        return state

    def by_word(good, bad, then):
        def judge(state, reply):
            must(reply.split(b" ")[0] == (bad if state is None else good))
            return then(state)
        return judge

    def by_meta(state, reply):
        """A miss names the key as well, or does not: that is the server's version."""
        must(reply in (b"EN", b"EN k" + name) if state is None else reply[1] == state and reply[0] == b"VA %d k%s" % (len(state), name))
        return state
    same = (lambda state: state)
    yield b"%s %s 0 0 %d\r\n%s" % (verb, name, len(data), data), line, store, True
    yield b"set %s 0 0 %d\r\n%s" % (name, len(data), data), line, is_reply(b"STORED", data), True
    yield b"ms %s %d\r\n%s" % (name, len(data), data), line, is_reply(b"HD", data), True
    for verb_line in (b"get %s", b"gets %s", b"gat 3600 %s", b"gats 3600 %s"):
        yield verb_line % name, values, found, False
    yield b"mg %s k v" % name, meta, by_meta, False
    yield b"me %s" % name, line, by_word(b"ME", b"EN", same), False
    yield b"touch %s 3600" % name, line, by_word(b"TOUCHED", b"NOT_FOUND", same), False
    yield b"delete %s" % name, line, by_word(b"DELETED", b"NOT_FOUND", lambda _: None), True
    yield b"md %s" % name, line, by_word(b"HD", b"NF", lambda _: None), True


def number_ops(key, dice):
    delta = dice.randrange(100)

    def count(change):
        def judge(state, reply):
            after = None if state is None else change(state)
            must(reply == (b"NOT_FOUND" if state is None else b"%d" % after))
            return after
        return judge

    def by_meta(state, reply):
        must(reply == b"NF" if state is None else reply[1] == b"%d" % (state + delta))
        return None if state is None else state + delta
    yield b"set %s 0 0 2\r\n17" % key.name, line, is_reply(b"STORED", 17), True
    yield b"incr %s %d" % (key.name, delta), line, count(lambda state: state + delta), True
    yield b"decr %s %d" % (key.name, delta), line, count(lambda state: max(0, state - delta)), True
    yield b"ma %s D%d v" % (key.name, delta), meta, by_meta, True


def members_of(key, reply):
    must(set(reply) <= {key.name.decode()})
    return reply[key.name.decode()][1].split() if reply else None


def some_members(key, dice):
    return [b"%s|%d" % (key.name, dice.randrange(MOST_OF_ONE)) for _ in range(dice.choice((1, 1, 1, 4)))]


def set_writes(key, dice):
    name, some = key.name, some_members(key, dice)
    words = b" ".join(some)

    def add(state, reply):
        must(reply == b"STORED")
        return (state or frozenset()) | set(some)

    def change(word, then):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else word))
            return None if state is None else then(state)
        return judge

    def sample(taken):
        def judge(state, reply):
            got, there = members_of(key, reply) or [], state or frozenset()
            must(set(got) <= there and len(set(got)) == len(got) == min(2, len(there)))
            return None if state is None else state - set(got) if taken else state
        return judge

    yield b"sadd %s %s" % (name, words), line, add, True
    yield b"saddx %s %s" % (name, words), line, change(b"STORED", lambda state: state | set(some)), True
    yield b"srem %s %s" % (name, words), line, change(b"DELETED", lambda state: state - set(some)), True
    yield b"sset %s %s" % (name, words), line, is_reply(b"STORED", frozenset(some)), True
    yield b"spop %s 2" % name, values, sample(True), True
    yield b"scompact %s" % name, line, change(b"OK", lambda state: state), False
    yield b"srandmember %s 2" % name, values, sample(False), False


def set_reads(key, dice):
    name, some = key.name, some_members(key, dice)
    words, low, high = b" ".join(some), min(some), max(some)

    def number(answer):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else answer(state)))
            return state
        return judge

    def members(answer):
        """The reply has these, in this order; an empty set may show as a missing one."""
        def judge(state, reply):
            must((members_of(key, reply) or []) == answer(sorted(state or ())))
            return state
        return judge

    def all_members(state, reply):
        got = members_of(key, reply)
        must(got is None if state is None else got is not None and len(got) == len(state) and set(got) == state)
        return state

    def joined(verb, answer):
        def judge(state, reply):
            must(set(reply) <= {verb} and (reply[verb][1].split() if reply else []) == answer(sorted(state or ())))
            return state
        return judge

    def information(state, reply):
        must(reply == [b"NOT_FOUND"] if state is None else b"STAT members %d" % len(state) in reply)
        return state
    yield b"scard %s" % name, line, number(lambda state: b"%d" % len(state)), False
    yield b"sismember %s %s" % (name, some[0]), line, number(lambda state: b"%d" % (some[0] in state)), False
    yield (b"smismember %s %s" % (name, words), line,
           number(lambda state: b" ".join(b"%d" % (member in state) for member in some)), False)
    yield b"scount %s %s %s" % (name, low, high), line, number(lambda state: b"%d" % sum(low <= m <= high for m in state)), False
    yield b"smembers %s" % name, values, all_members, False
    yield b"sscan %s 9 %s" % (name, low), values, members(lambda state: [m for m in state if m > low][:9]), False
    yield b"srange %s %s %s 9" % (name, low, high), values, members(lambda state: [m for m in state if low <= m <= high][:9]), False
    yield b"sunion %s %s" % (name, name), values, joined("sunion", lambda state: state), False
    yield b"sinter %s %s" % (name, name), values, joined("sinter", lambda state: state), False
    yield b"sdiff %s nothing-there" % name, values, joined("sdiff", lambda state: state), False
    yield b"sinfo %s" % name, until_end, information, False


def list_ops(key, dice):
    name = key.name
    some = tuple(b"%s|%d" % (name, dice.randrange(9)) for _ in range(dice.choice((1, 1, 3))))
    words, index = b" ".join(some), dice.randrange(9)

    def push(joined, always):
        def judge(state, reply):
            must(reply == (b"STORED" if always or state is not None else b"NOT_FOUND"))
            return joined(state or ()) if always or state is not None else None
        return judge

    def items(answer, left):
        def judge(state, reply):
            there = state or ()
            must((members_of(key, reply) or []) == list(answer(there)))
            return None if state is None else left(there)
        return judge

    def change(reply_for, left):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else reply_for(state)))
            return None if state is None else left(state)
        return judge

    def without_first(state):
        at = state.index(some[0]) if some[0] in state else len(state)
        return state[:at] + state[at + 1:]

    def replaced(state):
        return state[:index] + some[:1] + state[index + 1:] if index < len(state) else state
    same = (lambda state: state)
    yield b"rpush %s %s" % (name, words), line, push(lambda state: state + some, True), True
    yield b"lpush %s %s" % (name, words), line, push(lambda state: some[::-1] + state, True), True
    yield b"rpushx %s %s" % (name, words), line, push(lambda state: state + some, False), True
    yield b"lpushx %s %s" % (name, words), line, push(lambda state: some[::-1] + state, False), True
    yield b"lpop %s 2" % name, values, items(lambda state: state[:2], lambda state: state[2:]), True
    yield b"rpop %s 3" % name, values, items(lambda state: state[::-1][:3], lambda state: state[:-3]), True
    yield b"lrange %s 0 -1" % name, values, items(same, same), False
    yield b"lindex %s %d" % (name, index), values, items(lambda state: state[index:index + 1], same), False
    yield b"llen %s" % name, line, change(lambda state: b"%d" % len(state), same), False
    yield (b"lpos %s %s" % (name, some[0]), line,
           change(lambda state: b"%d" % state.index(some[0]) if some[0] in state else b"NOT_FOUND", same), False)
    yield b"lrem %s 1 %s" % (name, some[0]), line, change(lambda state: b"%d" % (some[0] in state), without_first), True
    yield (b"lset %s %d %s" % (name, index, some[0]), line,
           change(lambda state: b"STORED" if index < len(state) else b"CLIENT_ERROR index out of range", replaced), True)
    yield b"ltrim %s 0 %d" % (name, MOST_OF_ONE), line, change(lambda _: b"STORED", lambda state: state[:MOST_OF_ONE + 1]), True


def set_ops(key, dice):
    return set_writes(key, dice) if dice.random() < 0.5 else set_reads(key, dice)


FAMILIES = {"p": plain_ops, "n": number_ops, "s": set_ops, "l": list_ops}


def loose_ops(client, dice):
    """Commands of which only the form and the names in the reply are known."""
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


class Honest:
    """One client, which works until the time is up, and then looks at all that it knows once more."""

    def __init__(self, port, number, seconds, is_mortal, seed):
        """Its keys are named by the seed, so that those of an earlier one are not there."""
        self.tag = b"%x" % int(seed * (1 << 32))
        self.port, self.number, self.seconds, self.is_mortal = port, number, seconds, is_mortal
        self.dice = random.Random(f"{seed}-{number}")
        self.made = self.requests = self.unknown = 0
        self.errors = {}
        self.conn = Conn(port)
        self.keys = [(family, self.new_key(family, number)) for family in FAMILIES for number in range(6)]

    def new_key(self, family, number):
        """Half of the plain ones may be lost; what has several items, or is compared, is not."""
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
        """Holds the reply against what is known."""
        if isinstance(reply, str):
            must(ERRORS.fullmatch(reply))
            self.errors[reply] = self.errors.get(reply, 0) + 1
            if op.key and op.writes and not NOT_SENT.fullmatch(reply):
                self.unknown += 1
                op.key.state = RETIRED
            return
        if not op.key:
            op.judge(None, reply)
            return
        if op.key.state == RETIRED:
            return
        try:
            op.key.state = op.judge(op.key.state, reply)
        except Mismatch:
            if not op.key.mortal:
                raise
            op.key.state = op.judge(None, reply)

    def run_batch(self, batch):
        self.conn.send(b"".join(op.line + b"\r\n" for op in batch))
        for op in batch:
            reply = op.read(self.conn)
            self.requests += 1
            before = op.key and op.key.state
            try:
                self.take(op, reply)
            except (Mismatch, TypeError, IndexError, AttributeError):
                raise AssertionError(f"client {self.number}: {op.line[:200]!r} got {reply!r:.300}; known: {before!r:.300}") from None
        self.keys = [(family, self.new_key(family, i % 6) if key.state == RETIRED else key)
                     for i, (family, key) in enumerate(self.keys)]

    def read_again(self, family, key):
        """Whether what is there could be read; it must be what is known."""
        read = {"s": b"smembers %s", "l": b"lrange %s 0 -1"}.get(family, b"get %s") % key.name
        self.conn.send(read + b"\r\n")
        reply = values(self.conn)
        if isinstance(reply, str):
            return False
        got = members_of(key, reply)
        known = {"s": lambda: key.state and sorted(key.state), "l": lambda: key.state and list(key.state),
                 "n": lambda: key.state is not None and [b"%d" % key.state]}.get(family, lambda: key.state and [key.state])()
        got = sorted(got) if family == "s" and got else got
        if (got or None) != (known or None) and not (key.mortal and got is None):
            raise AssertionError(f"client {self.number}: {key.name!r} has {got!r:.300} in the end; known: {key.state!r:.300}")
        return True

    def run(self):
        end = time.monotonic() + self.seconds
        try:
            while time.monotonic() < end:
                self.run_batch([self.choose() for _ in range(self.dice.choice((1, 1, 4, 30)))])
            for family, key in self.keys:
                wait_until("a last look", PATIENCE, lambda family=family, key=key: self.read_again(family, key), pause=0.05)
        except Closed as closed:
            raise AssertionError(f"client {self.number}: {closed}") from None
        self.conn.close()
        return {"requests": self.requests, "unknown": self.unknown, "errors": self.errors}
