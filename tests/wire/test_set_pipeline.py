"""All set commands in one long pipeline, against a model in dictionaries, while other proxies compact the same sets.

Each reply must include the effects of all earlier commands on the connection, whatever is rewritten meanwhile.
"""
import itertools
import random
import threading

import model
from case import marks
from case_large import LargeSetTest
from harness import PATIENCE
from model import Key, Op
from wire import Conn

LETTERS = [f"{letter * 8}-{number}".encode() for letter in "abcdefghijklmnopqrst" for number in range(30)]
# How often a command occurs, if not 3 times.
WEIGHTS = {b"sadd": 27, b"srem": 16, b"smembers": 6, b"scard": 6, b"smismember": 6, b"spop": 4, b"scompact": 4, b"sset": 1, b"delete": 1}
ALGEBRA = {b"sunion": frozenset.union, b"sinter": frozenset.intersection, b"sdiff": frozenset.difference}


class Dialogue:
    """Commands on a few sets; see model.py."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.keys = [Key(b"p%d" % number, world=LETTERS, amounts=(1, 5, 9, 25, 60)) for number in range(6)]

    def op(self):
        key = self.dice.choice(self.keys)
        ops = [*model.set_writes(key, self.dice), *model.set_reads(key, self.dice), *self.more(key)]
        return Op(key, *self.dice.choices(ops, [WEIGHTS.get(line.split(b" ")[0], 3) for line, *_ in ops])[0])

    def more(self, key):
        some, keys = model.some_members(key, self.dice), self.dice.choices(self.keys, k=self.dice.randint(1, 4))
        verb, act = self.dice.choice(list(ALGEBRA.items()))

        def combined(state, reply):
            found, = reply.items()
            members = found[1][1].split(b" ") if found[1][1] else []
            model.must((found[0], members) == (verb.decode(), sorted(act(*(each.state or frozenset() for each in keys)))))
            return state

        def gone(state, reply):
            model.must(reply == (b"NOT_FOUND" if state is None else b"DELETED"))

        def touched(state, reply):
            model.must(reply == (b"NOT_FOUND" if state is None else b"TOUCHED"))
            return state
        limit = self.dice.choice((0, 1, 7, 40))

        def counted(state, reply):
            number = len(act(*(each.state or frozenset() for each in keys)))
            model.must(reply == b"%d" % (min(number, limit) if limit else number))
            return state
        names = b" ".join(each.name for each in keys)
        yield b"%s %s" % (verb, names), model.values, combined
        yield b"%scard %d %s limit %d" % (verb, len(keys), names, limit), model.line, counted
        yield b"delete " + key.name, model.line, gone
        yield b"touch %s 5000" % key.name, model.line, touched
        yield b"sadd %s %s noreply" % (key.name, b" ".join(some)), lambda _: None, lambda state, _: (state or frozenset()) | {*some}


class Pipelines(LargeSetTest):
    COUNT = 4000

    def run_model(self, seed, beside=True):
        """`beside`: another proxy reads and compacts all the time."""
        stop, problems, dialogue = threading.Event(), [], Dialogue(seed)
        keys = [key.name.decode() for key in dialogue.keys]

        def disturb():
            try:
                with Conn(self.proxies[1].port) as conn:
                    while not stop.is_set():
                        for key in keys:
                            conn.ask(f"scompact {key}")
                            conn.values(f"smembers {key}")
            except Exception as error:
                problems.append(error)
        ops = [dialogue.op() for _ in range(self.COUNT)]
        helpers = [threading.Thread(target=self.conn.send, args=(b"".join(op.line + b"\r\n" for op in ops),), daemon=True)]
        helpers += [threading.Thread(target=disturb, daemon=True)] if beside else []
        for helper in helpers:
            helper.start()

        def pardoned(op, reply):
            """A compaction that loses to another proxy, or waits for a merge while this client deletes the set."""
            return (op.line.startswith(b"scompact") and reply == "SERVER_ERROR busy" and op.key.state is not None and
                    (beside or any(later.line == b"delete " + op.key.name for later in ops[ops.index(op):])))
        model.take_all(self.conn, ops, f"seed {seed}", pardoned)
        stop.set()
        for helper in helpers:
            helper.join(PATIENCE)
        self.assertEqual((problems, self.conn.ask("mn")), ([], "MN"))
        for key in dialogue.keys:
            self.assertEqual(self.read(key.name.decode()), key.state)
        for key in keys:
            self.conn.ask(f"delete {key}")

    @marks(smoke=True)
    def test_alone(self):
        self.run_model(1, beside=False)

    def test_beside_another_proxy(self):
        for seed in (2, 3):
            self.run_model(seed)


class LargerBases(Pipelines):
    """Sets that are not spilled."""
    config = None


class Gathered(LargeSetTest):
    """Queued operations on one key are not carried out one by one: additions are combined, and so are the reads between and after them.

    All short pipelines, each on a separate key after a command that delays them, are answered in their order.
    """
    smoke = True
    COMMANDS = ("sadd {} a", "saddex {} 9999 b", "saddx {} a", "srem {} a", "sismember {} a", "sismember {} b", "scard {}", "sscan {} 5")

    @staticmethod
    def reply(members, command):
        """Returns the expected reply, and the members then; None for a missing set."""
        verb, _, *words = command.replace(" 9999", "").split()
        if verb in ("sadd", "saddex") or verb == "saddx" and members is not None:
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
