"""Elements of any bytes: requests and replies in all forms, compared with redis-server.

ANY_BYTES_COMMANDS and ANY_BYTES_SEED run other and more commands. The full run sends 100,000 commands.
"""
import os
import random
import re
import shutil
import socket
import unittest

from case import WireTest, marks
from harness import Process, wait_until
from stored import stat

COMMANDS = int(os.environ.get("ANY_BYTES_COMMANDS", 0))
SMOKE_COMMANDS, FULL_COMMANDS = 1500, 100000
SEED = int(os.environ.get("ANY_BYTES_SEED", 1))
REDIS = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or shutil.which("valkey-server")
MEMBER_MAX, ELEMENT_MAX = 1000, 65536
SIZES = 0, 1, 2, 3, 5, 8, 20, 100, 300, MEMBER_MAX
LARGE = 2000, 20000, ELEMENT_MAX - 1, ELEMENT_MAX

WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"|([^ ]+)')
ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|(.))")
LETTERS = dict(zip(b"nrtba", b"\n\r\t\b\a"))


def unescape(match):
    return bytes([int(match[1], 16) if match[1] else LETTERS.get(match[2][0], match[2][0])])


def elements(text):
    """Parses several elements of a reply."""
    found, at = [], 0
    while at < len(text):
        word = WORD.match(text, at)
        found.append(word[2] if word[2] is not None else ESCAPE.sub(unescape, word[1]))
        at = word.end() + 1
        assert text[word.end():at] in (b"", b" "), text
    return found


def quoted(element, rng):
    """Returns an element in quotes. Only some bytes need an escape."""
    needs = rng.choice((rb'["\\\n]', rb'[\x00-\x20"\\\x7f]', rb'(?s:.)'))
    return b'"' + re.sub(needs, lambda byte: b"\\x%02x" % byte[0][0], element) + b'"'


def argument(element, rng):
    """Returns an element in any of the forms in which it can be sent."""
    forms = [b"{%d}\r\n%s" % (len(element), element), quoted(element, rng), quoted(element, rng)]
    if not re.search(rb"[\n'\\]", element):
        forms.append(b"'" + element + b"'")
    if element and not re.search(rb"[\x00-\x20\x7f]", element) and not re.match(rb"['\"{]", element) and element != b"noreply":
        forms += [element] * 3
    return rng.choice(forms)


class Redis:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(path)
        self.file = self.sock.makefile("rb")

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.sock.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply()

    def reply(self):
        line = self.file.readline()[:-2]
        kind, size = line[:1], line[1:]
        if kind == b"$":
            return None if size == b"-1" else self.file.read(int(size) + 2)[:-2]
        if kind == b"*":
            return None if size == b"-1" else [self.reply() for _ in range(int(size))]
        return int(size) if kind == b":" else line

    def close(self):
        self.file.close()
        self.sock.close()


class Outcome:
    """Replies in one form: a list of elements, one element or None, a number, or nothing."""

    @staticmethod
    def number(reply):
        """Both have another number, or none, for a missing key, pivot or element."""
        return reply if isinstance(reply, int) and reply > 0 else 0

    @staticmethod
    def position(reply):
        return reply if isinstance(reply, int) else None

    @staticmethod
    def many(reply):
        return reply if isinstance(reply, list) else []

    @staticmethod
    def unordered(reply):
        return sorted(Outcome.many(reply))

    @staticmethod
    def popped(reply):
        """Redis names the list."""
        return reply[1] if isinstance(reply, list) and len(reply) == 2 and isinstance(reply[1], list) else Outcome.many(reply)

    @staticmethod
    def one(reply):
        return reply if isinstance(reply, bytes) else None

    @staticmethod
    def waited(reply):
        """Redis names the list, in another form than after lmpop."""
        return reply[1] if isinstance(reply, list) else Outcome.one(reply)

    @staticmethod
    def nothing(_):
        return None


class Commands:
    """Makes random commands from few elements, so that they meet again. From time to time, another one takes the place of one of them."""

    def __init__(self, rng):
        self.rng = rng
        self.members = [self.element(SIZES) for _ in range(22)] + [self.element((MEMBER_MAX,)) for _ in range(2)]
        self.elements = self.members[:12] + [self.element(LARGE) for _ in range(4)]
        self.weights = [40] * 12 + [1] * 4

    def renew(self):
        rng = self.rng
        if rng.random() < 0.02:
            self.members[rng.randrange(24)] = self.element(SIZES)
            self.elements[rng.randrange(12)] = self.element(SIZES)
            self.elements[12 + rng.randrange(4)] = self.element(LARGE)

    def element(self, sizes):
        rng = self.rng
        size = rng.choice(sizes)
        alphabet = rng.choice((range(256), range(256), b"ab", b" \r\n\\\"'{}\x00\x01!\"B", b"0123456789{}", b"noreply END"))
        return bytes(rng.choice(alphabet) for _ in range(size))

    def set_command(self):
        rng, outcome = self.rng, Outcome
        key, other = rng.choice(("s1", "s2", "s3")), rng.choice(("s1", "s2", "s3"))
        some = [rng.choice(self.members) for _ in range(rng.randint(1, 4))]
        one = some[:1]
        return rng.choice((
            (("sadd", key, *some), outcome.nothing), (("sadd", key, *some), outcome.nothing),
            (("srem", key, *some), outcome.nothing),
            (("scard", key), outcome.number), (("smembers", key), outcome.unordered),
            (("sismember", key, *one), outcome.number), (("smismember", key, *some), outcome.many),
            (("sinter", key, other), outcome.unordered), (("sunion", key, other), outcome.unordered),
            (("sdiff", key, other), outcome.unordered), (("sunionstore", "s3", key, other), outcome.number),
            (("sinterstore", "s3", key, other), outcome.number), (("sdiffstore", "s3", key, other), outcome.number),
            (("sintercard", 2, key, other), outcome.number), (("sintercard", 2, key, other, "limit", 3), outcome.number),
            (("smove", key, other, *one), outcome.nothing), (("spop", key, 1000), outcome.unordered),
            (("spop", key), outcome.one), (("srandmember", key), outcome.one),
            (("srandmember", key, 1000), outcome.unordered)))

    def list_command(self):
        rng, outcome = self.rng, Outcome
        key, other = rng.choice(("l1", "l2")), rng.choice(("l1", "l2"))
        some = rng.choices(self.elements, self.weights, k=rng.randint(1, 4))
        one, at, end = some[0], rng.randint(-6, 6), rng.choice((-1, -1, 3))
        ends = rng.choice(("left", "right")), rng.choice(("left", "right"))
        return rng.choice((
            (("rpush", key, *some), outcome.nothing), (("lpush", key, *some), outcome.nothing),
            (("rpush", key, *some), outcome.nothing),
            (("rpushx", key, *some), outcome.nothing), (("lpushx", key, *some), outcome.nothing),
            (("llen", key), outcome.number), (("lrange", key, at, end), outcome.many),
            (("lindex", key, at), outcome.one), (("lpop", key), outcome.one), (("rpop", key), outcome.one),
            (("lpop", key, 3), outcome.many), (("rpop", key, 1), outcome.many),
            (("lset", key, at, one), outcome.nothing), (("ltrim", key, 0, 12), outcome.nothing),
            (("lrem", key, rng.randint(-2, 2), one), outcome.number),
            (("linsert", key, rng.choice(("before", "after")), one, some[-1]), outcome.number),
            (("lpos", key, one), outcome.position), (("lpos", key, one, "count", 0), outcome.many),
            (("lpos", key, one, "rank", rng.choice((-2, -1, 1, 2)), "count", 2, "maxlen", rng.randint(0, 9)), outcome.many),
            (("blpop", 60, key, other), outcome.waited), (("brpop", 60, key, other), outcome.waited),
            (("blmove", 60, key, other, *ends), outcome.one),
            (("lmove", key, other, *ends), outcome.one), (("rpoplpush", key, other), outcome.one),
            (("lmpop", 2, ends[0], "l1", "l2"), outcome.popped),
            (("blmpop", 60, 2, ends[0], key, other), outcome.popped)))


SINGLE = ("lindex", "lmove", "rpoplpush", "blpop", "brpop", "blmove")
SINGLE_WITHOUT_COUNT = ("lpop", "rpop", "spop", "srandmember")
# The lists of which one must have an element: a command would wait, or Redis has no empty lists, to which lpushx could add.
NEEDED = {"blpop": slice(2, 4), "brpop": slice(2, 4), "blmove": slice(2, 3), "blmpop": slice(4, 6), "lpushx": slice(1, 2), "rpushx": slice(1, 2)}


class Incomplete(WireTest):
    """The words of a request whose last line is not complete belong to the client."""
    SIZE = 300000

    def test_memory_is_counted(self):
        watcher = self.serve()
        sender = self.connect(self.proxy)
        sender.send(b"rpush k {%d}\r\n" % self.SIZE + b"\0" * self.SIZE + b" x")
        wait_until("the bytes and their escapes are counted", lambda: stat(watcher, "stats", "client_bytes") >= 3 * self.SIZE)
        sender.send(b"\r\n")
        self.assertEqual(sender.line(), b"CLIENT_ERROR element too long")


@unittest.skipUnless(REDIS, "redis-server is not installed")
class AgainstRedis(WireTest):
    smoke = True

    def setUp(self):
        path = os.path.join(self.scratch(), "redis")
        server = Process("redis", [REDIS, "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"])
        self.addCleanup(server.kill)
        server.wait_ready(path)
        self.redis = Redis(path)
        self.addCleanup(self.redis.close)
        self.serve(2)

    def ask(self, rng, words):
        verb, *rest = words
        line = [verb.encode()] + [argument(word, rng) if isinstance(word, bytes) else str(word).encode() for word in rest]
        self.conn.send(b" ".join(line) + b"\r\n")
        return self.read(verb, rest)

    def read(self, verb, rest):
        line = self.conn.line()
        if line.startswith(b"VALUE "):
            text = self.conn.block(int(line.split(b" ")[3]))
            self.assertEqual(self.conn.line(), b"END")
            if verb in SINGLE or (verb in SINGLE_WITHOUT_COUNT and len(rest) == 1):
                return text
            return [int(word) for word in text.split()] if verb == "lpos" else elements(text)
        if line == b"END":
            return None
        if verb == "smismember" and line != b"NOT_FOUND":
            return [int(word) for word in line.split()]
        return int(line) if line.isdigit() else line

    def ask_redis(self, verb, *rest):
        """The order of words differs in some commands."""
        if verb == "lmpop":
            return self.redis.ask(verb, rest[0], *rest[2:], rest[1], "count", rest[0])
        if verb == "blmpop":
            return self.redis.ask(verb, rest[0], 2, *rest[3:], rest[2], "count", rest[1])
        if verb in ("blpop", "brpop", "blmove"):
            return self.redis.ask(verb, *rest[1:], rest[0])
        return self.redis.ask(verb, *rest)

    def comparable(self, words):
        return words[0] not in NEEDED or any(self.redis.ask("llen", key) for key in words[NEEDED[words[0]]])

    def drawn(self, words, reply):
        """What Redis would draw is another member: the one that setlistd drew must be a member of the set."""
        if reply is None:
            return None if self.redis.ask("exists", words[1]) == 0 else b"any member"
        there = self.redis.ask("srem" if words[0] == "spop" else "sismember", words[1], reply)
        return reply if there else b"another member"

    def same(self, rng, words, outcome):
        if words[0] in ("spop", "srandmember") and len(words) == 2:
            reply = self.ask(rng, words)
            expected = self.drawn(words, outcome(reply))
        else:
            expected = outcome(self.ask_redis(*words))
            reply = self.ask(rng, words)
        self.assertNotIn(b"SERVER_ERROR", reply if isinstance(reply, bytes) else b"")
        if words[0] == "smismember" and reply == b"NOT_FOUND":
            reply = [0] * (len(words) - 2)
        self.assertEqual(outcome(reply), expected, f"seed {SEED}: {words!r:.400}")

    def compare(self, make, count):
        """Each test has half of the commands."""
        rng = random.Random(SEED)
        commands = Commands(rng)
        compared = 0
        while compared < (COMMANDS or count) // 2:
            commands.renew()
            words, outcome = getattr(commands, make)()
            if self.comparable(words):
                self.same(rng, words, outcome)
                compared += 1

    def test_sets(self):
        self.compare("set_command", SMOKE_COMMANDS)

    def test_lists(self):
        self.compare("list_command", SMOKE_COMMANDS)

    def test_patterns(self):
        """The members that match a pattern of Redis, for which bytes in ranges are signed, and * does not match the empty element."""
        rng, alphabet = random.Random(SEED), b"aaabbc]^-\\*? \n\xe9"
        members = sorted({bytes(rng.choices(alphabet, k=rng.randint(1, 5))) for _ in range(500)})
        self.redis.ask("sadd", "s", *members)
        for member in members:
            self.conn.send(b"sadd s " + argument(member, rng) + b"\r\n")
            self.assertEqual(self.conn.line(), b"STORED")
        some = 0
        for _ in range(COMMANDS or SMOKE_COMMANDS):
            pattern = bytes(rng.choices(b"**??[[" + alphabet, k=rng.randint(0, 8)))
            if re.search(rb"\xe9-|-\xe9", pattern):
                continue
            expected = self.redis.ask("sscan", "s", 0, "match", pattern, "count", 10000)[1]
            found = self.ask(rng, ("sscan", "s", 10000, "match", pattern)) or []
            self.assertEqual(found, sorted(expected), f"seed {SEED}: {pattern!r}")
            some += 1 < len(found) < len(members)
        self.assertGreater(some, (COMMANDS or SMOKE_COMMANDS) // 10)

    @marks(smoke=False)
    def test_many_on_sets(self):
        self.compare("set_command", FULL_COMMANDS)

    @marks(smoke=False)
    def test_many_on_lists(self):
        self.compare("list_command", FULL_COMMANDS)
