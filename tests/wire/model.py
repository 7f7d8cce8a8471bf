"""The effects of commands on a key, and their replies: for tests with long pipelines, and for the soak test.

A command is an Op. Its reply is judged in order, by the state of the key at that time. So ops can be generated long before.
"""
MOST_OF_ONE = 60


class Key:
    """A key, its state (None if missing), and whether its server may lose it.

    `world` has the possible members of a set or list, `amounts` the numbers of them in one command. A list keeps at most `most`. `dated`:
    its encoding has members that expire.
    """

    def __init__(self, name, mortal=False, world=None, amounts=(1, 1, 1, 4), most=MOST_OF_ONE, dated=True):
        self.name, self.mortal, self.most, self.dated, self.state = name, mortal, most, dated, None
        self.world, self.amounts = world or [b"%s|%d" % (name, number) for number in range(MOST_OF_ONE)], amounts


class Op:
    """A request, the reader of its reply, and its effect: judge(state, reply) returns the new state, or raises Mismatch."""

    def __init__(self, key, line, read, judge, writes=True):
        self.key, self.line, self.read, self.judge, self.writes = key, line, read, judge, writes

    def take(self, reply):
        """Updates the state of the key by this command; raises Mismatch if the reply is wrong."""
        try:
            state = self.judge(self.key and self.key.state, reply)
        except (TypeError, IndexError, AttributeError, KeyError):       # even its form is wrong
            raise Mismatch from None
        if self.key:
            self.key.state = state


class Mismatch(Exception):
    pass


def must(condition):
    if not condition:
        raise Mismatch


def is_reply(expected, then):
    """Returns a judge: the reply must be this, and the new state is that."""
    def judge(_, reply):
        must(reply == expected)
        return then
    return judge


def take_all(conn, ops, what, pardoned=lambda op, reply: False):
    """Reads and judges the replies to all requests that were sent; requests with permitted errors have no effect."""
    for number, op in enumerate(ops):
        before, reply = op.key and op.key.state, op.read(conn)
        try:
            if not pardoned(op, reply):
                op.take(reply)
        except Mismatch:
            raise AssertionError(f"{what}, command {number}: {op.line[:200]!r} got {reply!r:.300}; known: {before!r:.300}") from None


# --- readers: they return an error line as text, or the reply

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
    """Reads STAT, COUNT or COMMAND lines."""
    lines = [line(conn)]
    while lines[-1] != b"END" and isinstance(lines[-1], bytes) and lines[-1] != b"NOT_FOUND":
        lines.append(line(conn))
    return lines[-1] if isinstance(lines[-1], str) else lines


# --- commands: each returns (line, reader, judge), or judges by both possible replies

def plain_ops(key, dice):
    name = key.name
    data = (b"%s|%d|" % (name, dice.randrange(1000)) + b"\r\nEND" * dice.randrange(3)) * dice.choice((1, 1, 1, 5, 2000))
    verb = dice.choice((b"set", b"add", b"replace", b"append", b"prepend"))

    def store(state, reply):
        takes = {b"set": True, b"add": state is None}.get(verb, state is not None)
        must(reply == (b"STORED" if takes else b"NOT_STORED"))
        extended = {b"append": lambda: state + data, b"prepend": lambda: data + state}.get(verb, lambda: data)
        return extended() if takes else state

    def found(state, reply):
        must(set(reply) <= {name.decode()})
        must((reply[name.decode()][:2] if reply else None) == (None if state is None else (0, state)))
        return state

    def by_word(good, bad, then):
        def judge(state, reply):
            must(reply.split(b" ")[0] == (bad if state is None else good))
            return then(state)
        return judge

    def by_meta(state, reply):
        """Whether a miss contains the key depends on the version of the server."""
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
    if not reply:
        return None
    flags, data = reply[key.name.decode()]
    must(flags == 0)
    return data.split(b" ") if data else []


def some_members(key, dice):
    return dice.choices(key.world, k=dice.choice(key.amounts))


def set_writes(key, dice):
    name, some, count = key.name, some_members(key, dice), dice.choice(key.amounts)
    words = b" ".join(some)

    def add(state, reply):
        must(reply == b"STORED")
        return (state or frozenset()) | set(some)

    def change(word, then):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else word))
            return None if state is None else then(state)
        return judge

    def number_of(answer):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else b"%d" % answer(state)))
            return state
        return judge

    def stored(state, reply):
        must(reply == b"%d" % len(state or ()))
        return state or frozenset()

    def member_or(word, other):
        def judge(state, reply):
            must(reply == (word if some[0] in (state or ()) else other))
            return state
        return judge

    def sample(taken):
        def judge(state, reply):
            got, there = members_of(key, reply) or [], state or frozenset()
            must(set(got) <= there and len(set(got)) == len(got) == min(count, len(there)))
            return None if state is None else state - set(got) if taken else state
        return judge

    def repeated(state, reply):
        got = members_of(key, reply) or []
        must(set(got) <= (state or frozenset()) and len(got) == (count + 1 if state else 0))
        return state

    yield b"sadd %s %s" % (name, words), line, add, True
    if key.dated:
        # They expire long after the test, or never.
        yield b"saddex %s %d %s" % (name, 10 ** 6 * (count % 2), words), line, add, True
        yield (b"sexpire %s %d %s" % (name, 10 ** 6 * (count % 2), words), line,
               number_of(lambda state: len(state.intersection(some))), True)
    yield b"saddx %s %s" % (name, words), line, change(b"STORED", lambda state: state | set(some)), True
    yield b"srem %s %s" % (name, words), line, change(b"DELETED", lambda state: state - set(some)), True
    yield b"sset %s %s" % (name, words), line, is_reply(b"STORED", frozenset(some)), True
    yield b"spop %s %d" % (name, count), values, sample(True), True
    yield (b"smove %s %s %s" % (name, name, some[0]), line, member_or(b"STORED", b"NOT_FOUND"), True)
    # The set is replaced by itself, and is created if it was missing.
    yield (b"sunionstore %s %s nothing-there" % (name, name), line, stored, True)
    yield b"scompact %s" % name, line, change(b"OK", lambda state: state), False
    yield b"srandmember %s %d" % (name, count), values, sample(False), False
    yield b"srandmember %s -%d" % (name, count + 1), values, repeated, False


def time_left(member):
    """It was added with a long time or without one."""
    def judge(state, reply):
        must(reply == b"NOT_FOUND" if member not in (state or ()) else reply == b"-1" or int(reply) > 0)
        return state
    return judge


def set_reads(key, dice):
    name, some, count, once = key.name, some_members(key, dice), dice.choice(key.amounts), dice.randrange(2)
    words, (low, high) = b" ".join(some), dice.choices(key.world, k=2)

    def number(answer):
        def judge(state, reply):
            must(reply == (b"NOT_FOUND" if state is None else answer(state)))
            return state
        return judge

    def exactly(answer):
        """A missing set is empty."""
        def judge(state, reply):
            must(reply == answer(state or ()))
            return state
        return judge

    def members(answer):
        """The reply has these, in this order; an empty set may be reported as missing."""
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
    yield b"sttl %s %s" % (name, some[0]), line, time_left(some[0]), False
    yield b"scard %s" % name, line, number(lambda state: b"%d" % len(state)), False
    yield b"sismember %s %s" % (name, some[0]), line, number(lambda state: b"%d" % (some[0] in state)), False
    yield (b"smismember %s %s" % (name, words), line,
           number(lambda state: b" ".join(b"%d" % (member in state) for member in some)), False)
    yield b"scount %s %s %s" % (name, low, high), line, number(lambda state: b"%d" % sum(low <= m <= high for m in state)), False
    yield b"smembers %s" % name, values, all_members, False
    yield b"sscan %s %d %s" % (name, count, low), values, members(lambda state: [m for m in state if m > low][:count]), False
    yield (b"sscan %s %d %s match *%s*" % (name, count, low, high[-1:]), values,
           members(lambda state: [m for m in state if m > low and high[-1:] in m][:count]), False)
    yield (b"srange %s %s %s %d" % (name, low, high, count), values,
           members(lambda state: [m for m in state if low <= m <= high][:count]), False)
    yield b"sunion %s %s" % (name, name), values, joined("sunion", lambda state: state), False
    yield b"sinter %s %s" % (name, name), values, joined("sinter", lambda state: state), False
    limit = dice.choice((0, count))
    for command in (b"sunioncard %d %s%s" % (1 + once, name, b" nothing-there" * once), b"sintercard 1 %s" % name,
                    b"sdiffcard %d %s%s" % (1 + once, name, b" nothing-there" * once)):
        yield command + (b" limit %d" % limit if limit else b""), line, exactly(lambda state: b"%d" % min(len(state), limit or len(state))), False
    yield b"sdiff %s nothing-there" % name, values, joined("sdiff", lambda state: state), False
    yield b"sinfo %s" % name, until_end, information, False


def more_of_lists(name, first, count, once, items, change):
    same = (lambda state: state)
    places = (lambda state: [place for place, item in enumerate(state) if item == first])
    yield (b"lpos %s %s rank -1" % (name, first), line,
           change(lambda state: b"%d" % places(state)[-1] if first in state else b"NOT_FOUND", same), False)
    yield (b"lpos %s %s count 0" % (name, first), values,
           items(lambda state: [b"%d" % place for place in places(state)], same), False)
    yield (b"linsert %s %s %s new" % (name, (b"before", b"after")[once], first), line,
           change(lambda state: b"%d" % (len(state) + 1) if first in state else b"NOT_FOUND",
                  lambda state: (*state[:state.index(first) + once], b"new", *state[state.index(first) + once:])
                  if first in state else state), True)
    yield b"lmove %s %s left right" % (name, name), values, items(lambda state: state[:1], lambda state: state[1:] + state[:1]), True
    yield b"rpoplpush %s %s" % (name, name), values, items(lambda state: state[-1:], lambda state: state[-1:] + state[:-1]), True
    yield b"lmpop %d left nothing-there %s" % (count, name), values, items(lambda state: state[:count], lambda state: state[count:]), True


def list_ops(key, dice):
    name, some, count = key.name, tuple(some_members(key, dice)), dice.choice(key.amounts)
    words, first, once = b" ".join(some), some[0], dice.randrange(2)
    index = dice.choice((dice.randrange(-9, 9), dice.randrange(-1000, 1000)))

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

    def at(state):
        """Returns the position of the index, or one after the end."""
        place = index + len(state) if index < 0 else index
        return place if 0 <= place < len(state) else len(state)

    def replaced(state):
        return state[:at(state)] + some[:1] + state[at(state) + 1:] if at(state) < len(state) else state

    def removed(state):
        place = state.index(first) if first in state else len(state)
        return state[:place] + state[place + 1:] if once else tuple(item for item in state if item != first)
    same = (lambda state: state)
    yield b"rpush %s %s" % (name, words), line, push(lambda state: state + some, True), True
    yield b"lpush %s %s" % (name, words), line, push(lambda state: some[::-1] + state, True), True
    yield b"rpushx %s %s" % (name, words), line, push(lambda state: state + some, False), True
    yield b"lpushx %s %s" % (name, words), line, push(lambda state: some[::-1] + state, False), True
    yield b"lpop %s %d" % (name, count), values, items(lambda state: state[:count], lambda state: state[count:]), True
    yield (b"rpop %s %d" % (name, count), values,
           items(lambda state: state[::-1][:count], lambda state: state[:max(0, len(state) - count)]), True)
    yield b"lrange %s 0 -1" % name, values, items(same, same), False
    yield b"lindex %s %d" % (name, index), values, items(lambda state: state[at(state):][:1], same), False
    yield b"llen %s" % name, line, change(lambda state: b"%d" % len(state), same), False
    yield (b"lpos %s %s" % (name, first), line,
           change(lambda state: b"%d" % state.index(first) if first in state else b"NOT_FOUND", same), False)
    yield from more_of_lists(name, first, count, once, items, change)
    yield (b"lrem %s %d %s" % (name, once, first), line,
           change(lambda state: b"%d" % (len(state) - len(removed(state))), removed), True)
    yield (b"lset %s %d %s" % (name, index, first), line,
           change(lambda state: b"STORED" if at(state) < len(state) else b"CLIENT_ERROR index out of range", replaced), True)
    yield b"ltrim %s 0 %d" % (name, key.most), line, change(lambda _: b"STORED", lambda state: state[:key.most + 1]), True


def set_ops(key, dice):
    return set_writes(key, dice) if dice.random() < 0.5 else set_reads(key, dice)


FAMILIES = {"p": plain_ops, "n": number_ops, "s": set_ops, "l": list_ops}
