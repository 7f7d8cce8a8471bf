"""All set commands in one long pipeline, against a model in dictionaries, while other proxies compact the same sets.

The order of one connection is what counts: each reply must be that of the commands before it, whatever is rewritten meanwhile.
"""
import itertools
import random
import threading

from case_large import LargeSetTest
from harness import PATIENCE
from wire import Conn

KEYS = [f"p{i}" for i in range(6)]
LETTERS = [f"{letter * 8}-{number}" for letter in "abcdefghijklmnopqrst" for number in range(30)]


class Model:
    """Makes commands, and tells whether a reply is right."""

    def __init__(self, seed):
        self.dice, self.sets = random.Random(seed), {}

    def key(self):
        return self.dice.choice(KEYS)

    def some(self, most=25):
        return self.dice.sample(LETTERS, self.dice.randint(1, most))

    def commands(self, count):
        weights = {self.sadd: 27, self.srem: 16, self.saddx: 2, self.sset: 1, self.quiet: 4, self.smembers: 6, self.scard: 6,
                   self.smismember: 6, self.spop: 4, self.srandmember: 3, self.algebra: 4, self.scompact: 4, self.delete: 1,
                   self.touch: 2, self.sscan: 3, self.srange: 3, self.scount: 3}
        return [make() for make in self.dice.choices(list(weights), list(weights.values()), k=count)]

    # Each gives the line to send, and what reads and judges the reply when its turn comes.

    def sadd(self):
        key, members = self.key(), self.some()

        def judge(conn):
            self.sets.setdefault(key, set()).update(members)
            return conn.line() == b"STORED"
        return f"sadd {key} {' '.join(members)}", judge

    def quiet(self):
        key, members = self.key(), self.some()

        def judge(conn):
            self.sets.setdefault(key, set()).update(members)
            return True
        return f"sadd {key} {' '.join(members)} noreply", judge

    def saddx(self):
        key, members = self.key(), self.some()

        def judge(conn):
            if key not in self.sets:
                return conn.line() == b"NOT_FOUND"
            self.sets[key].update(members)
            return conn.line() == b"STORED"
        return f"saddx {key} {' '.join(members)}", judge

    def srem(self):
        key, members = self.key(), self.some(60)

        def judge(conn):
            if key not in self.sets:
                return conn.line() == b"NOT_FOUND"
            self.sets[key].difference_update(members)
            return conn.line() == b"DELETED"
        return f"srem {key} {' '.join(members)}", judge

    def sset(self):
        key, members = self.key(), self.some(400)

        def judge(conn):
            self.sets[key] = set(members)
            return conn.line() == b"STORED"
        return f"sset {key} {' '.join(members)}", judge

    def scompact(self):
        key = self.key()
        good = (b"OK", b"SERVER_ERROR busy")
        return f"scompact {key}", lambda conn: conn.line() in (good if key in self.sets else (b"NOT_FOUND",))

    def delete(self):
        key = self.key()
        return f"delete {key}", lambda conn: conn.line() == (b"NOT_FOUND" if self.sets.pop(key, None) is None else b"DELETED")

    def touch(self):
        key = self.key()
        return f"touch {key} 5000", lambda conn: conn.line() == (b"TOUCHED" if key in self.sets else b"NOT_FOUND")

    def scard(self):
        key = self.key()
        return f"scard {key}", lambda conn: conn.line() == (b"%d" % len(self.sets[key]) if key in self.sets else b"NOT_FOUND")

    def smismember(self):
        key, members = self.key(), self.some(9)

        def judge(conn):
            there = self.sets.get(key)
            return conn.line() == (b"NOT_FOUND" if there is None else b" ".join(b"01"[m in there:][:1] for m in members))
        return f"smismember {key} {' '.join(members)}", judge

    @staticmethod
    def members(conn):
        """The members of each VALUE; None where there is something wrong with the reply."""
        found, end = conn.read_values()
        lists = {key: data.decode().split(" ") if data else [] for key, (_, data) in found.items()}
        good = end == "END" and all(len(members) == len(set(members)) for members in lists.values())
        return {key: set(members) for key, members in lists.items()} if good else None

    def smembers(self):
        key = self.key()
        return f"smembers {key}", lambda conn: self.members(conn) == ({key: self.sets[key]} if key in self.sets else {})

    def taken(self, conn, key, count):
        """So many random members; None when that is not what came."""
        found, there = self.members(conn), self.sets.get(key, set())
        if found is None or set(found) - {key}:
            return None
        members = found.get(key, set())
        return members if members <= there and len(members) == min(count, len(there)) else None

    def spop(self):
        key, count = self.key(), self.dice.randrange(40)

        def judge(conn):
            members = self.taken(conn, key, count)
            if members:
                self.sets[key] -= members
            return members is not None
        return f"spop {key} {count}", judge

    def srandmember(self):
        key, count = self.key(), self.dice.randrange(100)
        return f"srandmember {key} {count}", lambda conn: self.taken(conn, key, count) is not None

    # --- in byte order

    def span(self):
        """Two bounds, and the members between them in order, when the reply is judged."""
        key, (one, other) = self.key(), self.dice.sample(LETTERS, 2)
        return key, one, other, lambda: sorted(m for m in self.sets.get(key, ()) if one <= m <= other)

    def page(self, conn, key, expected):
        found, end = conn.read_values()
        return (found, end) == ({key: (0, " ".join(expected).encode())} if expected else {}, "END")

    def sscan(self):
        key, count, after = self.key(), self.dice.randrange(60), self.dice.choice(["", *LETTERS])
        return f"sscan {key} {count} {after}", lambda conn: self.page(
            conn, key, sorted(m for m in self.sets.get(key, ()) if m > after)[:count])

    def srange(self):
        key, one, other, between = self.span()
        count = self.dice.randrange(60)
        return f"srange {key} {one} {other} {count}", lambda conn: self.page(conn, key, between()[:count])

    def scount(self):
        key, one, other, between = self.span()
        return (f"scount {key} {one} {other}",
                lambda conn: conn.line() == (b"%d" % len(between()) if key in self.sets else b"NOT_FOUND"))

    def algebra(self):
        verb, act = self.dice.choice((("sunion", set.union), ("sinter", set.intersection), ("sdiff", set.difference)))
        keys = [self.key() for _ in range(self.dice.randint(1, 4))]
        return (f"{verb} {' '.join(keys)}",
                lambda conn: self.members(conn) == {verb: act(*(self.sets.get(key, set()) for key in keys))})


class Pipelines(LargeSetTest):
    COUNT = 4000

    def run_model(self, seed, beside=True):
        """`beside`: another proxy reads and compacts all the time."""
        stop, problems = threading.Event(), []

        def disturb():
            try:
                with Conn(self.proxies[1].port) as conn:
                    while not stop.is_set():
                        for key in KEYS:
                            conn.ask(f"scompact {key}")
                            conn.values(f"smembers {key}")
            except Exception as error:
                problems.append(error)
        model = Model(seed)
        commands = model.commands(self.COUNT)
        sent = "".join(line + "\r\n" for line, _ in commands).encode()
        helpers = [threading.Thread(target=self.conn.send, args=(sent,), daemon=True)]
        helpers += [threading.Thread(target=disturb, daemon=True)] if beside else []
        for helper in helpers:
            helper.start()
        for number, (line, judge) in enumerate(commands):
            self.assertTrue(judge(self.conn), f"seed {seed}: wrong reply to command {number}: {line[:100]}")
        stop.set()
        for helper in helpers:
            helper.join(PATIENCE)
        self.assertEqual((problems, self.conn.ask("mn")), ([], "MN"))
        for key in KEYS:
            self.assertEqual(self.read(key), {m.encode() for m in model.sets[key]} if key in model.sets else None)

    def test_alone(self):
        self.run_model(1, beside=False)

    def test_beside_another_proxy(self):
        for seed in (2, 3):
            self.run_model(seed)
            for key in KEYS:
                self.conn.ask(f"delete {key}")


class LargerBases(Pipelines):
    """Sets that are not spilled."""
    config = None


class Gathered(LargeSetTest):
    """What waits for one key is not carried out one by one: additions go together, and so do the reads between and behind them.

    All short pipelines, each on a key of its own behind a command that keeps them waiting, are answered in their order.
    """
    COMMANDS = ("sadd {} a", "sadd {} b", "saddx {} a", "srem {} a", "sismember {} a", "sismember {} b", "scard {}", "sscan {} 5")

    @staticmethod
    def reply(members, command):
        """What it must be answered, and the members then; None for a set that is missing."""
        verb, _, *words = command.split()
        if verb == "sadd" or verb == "saddx" and members is not None:
            return "STORED", (members or frozenset()) | {words[0]}
        if verb == "sscan":
            return ("END" if not members else f"VALUE {' '.join(sorted(members))} END"), members
        if members is None:
            return "NOT_FOUND", None
        if verb == "srem":
            return "DELETED", members - {words[0]}
        return str(len(members) if verb == "scard" else int(words[0] in members)), members

    def test_all_short_pipelines(self):
        for length in (2, 3, 4):
            talks = [[text.format(f"g{length}-{number}") for text in ("scard {}", *some)]
                     for number, some in enumerate(itertools.product(self.COMMANDS, repeat=length))]
            sender = threading.Thread(target=self.conn.send, daemon=True, args=(
                "".join(line + "\r\n" for talk in talks for line in talk).encode(),))
            sender.start()
            for talk in talks:
                members, expected = None, []
                for line in talk:
                    answer, members = self.reply(members, line)
                    expected.append(answer)
                self.assertEqual([self.answer(line) for line in talk], expected, talk)
            sender.join(PATIENCE)

    def answer(self, command):
        if not command.startswith("sscan"):
            return self.conn.line().decode()
        found, end = self.conn.read_values()
        return " ".join(["VALUE " + data.decode() for _, data in found.values()] + [end])
