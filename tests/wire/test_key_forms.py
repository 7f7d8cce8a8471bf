"""Elements of random bytes and sizes, in every form of a request: in quotes and as literals in the text protocol; as words of a key with
%XX, as lines of the data, and as all data; values with lines and with quotes; with text, meta, base64 and binary keys. All forms have the same replies and store the same.

KEY_FORMS_REQUESTS and KEY_FORMS_SEED run other and more requests.
"""
import base64
import os
import random
import re

from case import WireTest, marks
from forms import FORMS, META, Request, Speaker, error
from test_any_bytes import ELEMENT_MAX, MEMBER_MAX, elements, quoted

REQUESTS = int(os.environ.get("KEY_FORMS_REQUESTS", 0))
SEED = int(os.environ.get("KEY_FORMS_SEED", 1))
SMOKE_REQUESTS, FULL_REQUESTS = 600, 12000
# The commands that take elements: those that only a set reaches, that both reach, and that only a get reaches.
SETS = ("sadd", "saddex", "saddx", "srem", "sset", "smove", "sload", "sfill", "rpush", "rpushx", "lpush", "lpushx", "lset", "lload", "lfill")
BOTH = ("sismember", "smismember", "sclaim", "sexpire", "sttl", "linsert", "lrem")
GETS = ("lpos", "srange", "scount", "sscan")
# Commands of which several requests with an element each have the same effect as one with all.
DIVISIBLE = ("sadd", "saddex", "saddx", "srem", "rpush", "rpushx", "lpush", "lpushx", "sload", "lload")
# Replies that have a 0 for each member that is missing, or claimed.
TESTS = ("sismember", "smismember", "sclaim")
# Reads of several elements, and of single ones.
LISTS = ("smembers", "lrange", "srange", "sscan", "lpop2", "spop")
MISSES = (b"END", b"NOT_FOUND")
REFUSED = "an element contains the delimiter"


class Op:
    """A request: words before the elements, the elements, and words after them. `key` is a format of the prefix of its form."""

    def __init__(self, name, key, before=(), parts=(), after=()):
        self.name, self.key = name, key
        self.before, self.parts, self.after = before, list(parts), after

    def words(self, prefix):
        """The words around the elements, with the keys of a form."""
        name = self.name.rstrip("2")
        return [name, prefix + self.key, *(word.replace("@", prefix) for word in self.before)], self.after


class Random:
    """Makes requests from few elements, so that they meet again."""

    def __init__(self, rng):
        self.rng = rng
        self.members = [self.element(MEMBER_MAX) for _ in range(20)]
        self.elements = self.members[:10] + [self.element(ELEMENT_MAX) for _ in range(3)]

    def element(self, most):
        rng = self.rng
        size = rng.choice((0, 1, 1, 2, 3, 8, 30, 70, 300, most if rng.random() < 0.4 else 5))
        alphabet = rng.choice((range(256), range(256), b"ab", b"\n\r\0 |%\x01!,", b"%0aF|", b"\n"))
        return bytes(rng.choice(alphabet) for _ in range(size))

    def op(self):
        rng = self.rng
        key, other = rng.sample(("s1", "s2", "s3"), 2)
        queue = rng.choice(("l1", "l2"))
        members = [rng.choice(self.members) for _ in range(rng.randint(1, 4))]
        items = [rng.choice(self.elements) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.01:
            members = items = [b"\0" * (rng.choice((MEMBER_MAX, ELEMENT_MAX)) + 1)]
        one, item = members[:1], items[:1]
        return rng.choice((
            Op("sadd", key, (), members), Op("sadd", key, (), members), Op("sadd", key, (), members), Op("saddx", key, (), members),
            Op("srem", key, (), members), Op("sset", key, (), members), Op("smove", key, (f"@{other}",), one),
            # Without a date, which depends on the moment.
            Op("saddex", key, ("0",), members), Op("sexpire", key, ("0",), members), Op("sttl", key, (), one),
            Op("sismember", key, (), one), Op("smismember", key, (), members), Op("sclaim", key, (), one),
            Op("srange", key, (), sorted(rng.choices(self.members, k=2)), ("3",)),
            Op("scount", key, (), sorted(rng.choices(self.members, k=2))), Op("sscan", key, ("3",), one),
            Op("scard", key), Op("smembers", key), Op("sload", "s4", ("token",), members), Op("sfill", "s4", ("token",), members),
            Op("rpush", queue, (), items), Op("rpush", queue, (), items), Op("lpush", queue, (), items), Op("lpushx", queue, (), items),
            Op("rpushx", queue, (), items), Op("lset", queue, (str(rng.randint(-3, 3)),), item),
            Op("linsert", queue, (rng.choice(("before", "after")),), (rng.choice(items), rng.choice(self.elements))),
            Op("lrem", queue, (str(rng.randint(-2, 2)),), item), Op("lpos", queue, (), item), Op("llen", queue), Op("lindex", queue, ("0",)),
            Op("lrange", queue, ("-4", "-1")), Op("lpop", queue), Op("lpop2", queue, ("2",)), Op("ltrim", queue, ("0", "8")),
            Op("lload", "l4", ("token",), items), Op("lfill", "l4", ("token",), items)))


def reply_of(op, conn):
    """The reply in the text protocol: a list of elements, one element, a number or a line as bytes, or ("error", text)."""
    line = conn.line()
    if line.startswith(b"VALUE "):
        data = conn.block(int(line.split(b" ")[3]))
        assert conn.line() == b"END"
        return elements(data) if op.name in LISTS else [data]
    return error(line) if b"ERROR" in line else line


class Text:
    """The text protocol, with elements in quotes or as literals."""

    def __init__(self, conn, rng, literal):
        self.conn, self.rng, self.literal = conn, rng, literal

    def ask(self, op, prefix, token):
        before, after = op.words(prefix)
        parts = [b"{%d}\r\n%s" % (len(part), part) if self.literal else quoted(part, self.rng) for part in op.parts]
        words = [word.replace("token", token).encode() for word in before] + parts + [word.encode() for word in after]
        self.conn.send(b" ".join(words) + b"\r\n")
        return reply_of(op, self.conn)


class KeySpeaker(Speaker):
    key_max = 250


class Base64(KeySpeaker):
    """Meta commands whose key is in base64, which is longer."""
    key_max = 250 // 4 * 3

    def __init__(self, port):
        super().__init__(META, port)

    def ask(self, request):
        key = base64.b64encode(request.key)
        if request.verb == "get":
            self.conn.send(b"mg %s b v f\r\n" % key)
        else:
            self.conn.send(b"ms %s %d b\r\n%s\r\n" % (key, len(request.data), request.data))
        code, *flags = (line := self.conn.line()).split(b" ")
        if code == b"VA":
            return ("value", 0, self.conn.block(int(flags[0])))
        words = {b"EN": "miss", b"NF": "miss", b"NS": "not stored", b"HD": "done"}
        return (words[code],) if code in words else error(line)


class Keys:
    """Commands as keys. `unsuited` counts requests that do not fit into one."""

    def __init__(self, speaker, rng, fallback):
        self.speaker, self.rng, self.fallback = speaker, rng, fallback
        self.by_words = self.by_lines = self.whole = self.unsuited = 0

    def encoded(self, word):
        """Only some bytes must be encoded."""
        needed = self.rng.choice((rb"[\x00-\x20%|\x7f]", rb"[^a-z]", rb"(?s:.)"))
        return re.sub(needed, lambda byte: b"%%%02x" % byte[0][0], word)

    def fits(self, words):
        return all(words) and len(b"q|" + b"|".join(words)) <= self.speaker.key_max

    def ways(self, op, before, after):
        """Returns the requests that are the same: verb, key, data."""
        name, *first = before
        words = [self.encoded(word) for word in op.parts]
        ways = []
        if self.fits(all_words := [name, *first, *words, *after]):
            ways += [("get" if op.name not in SETS and not op.name == "ltrim" else "set", all_words, b"")]
            ways += [("set", all_words, b"")] if op.name in BOTH else []
        if op.name in LISTS and self.fits(quoted_words := [name + b"*", *first, *words, *after]):
            ways += [("get", quoted_words, b"")]
        if op.parts and op.name in SETS + BOTH and self.fits([name + b"1", *first, *words[:-1]]):
            ways += [("set", [name + b"1", *first, *words[:-1]], op.parts[-1])]
        lines = [*first[1:], *op.parts]
        if op.parts and op.name in SETS + BOTH and not any(b"\n" in part for part in op.parts):
            cut = self.rng.randrange(len(lines) - len(op.parts) + 1)
            end = b"" if lines[-1] and self.rng.random() < 0.5 else b"\n"
            ways += [("set", [name, *first[:1], *first[1:][:cut]], b"\n".join(lines[cut:]) + end)]
        return ways

    def ask(self, op, prefix, token, reply):
        """Checks the outcome, given the reply to the same request in the text protocol."""
        before, after = op.words(prefix)
        before, after = ([word.replace("token", token).encode() for word in words] for words in (before, after))
        ways = self.ways(op, before, after)
        if not ways and op.name in DIVISIBLE and len(op.parts) > 1:
            for part in op.parts:
                self.ask(Op(op.name, op.key, op.before, [part], op.after), prefix, token, reply)
        elif not ways:
            self.unsuited += 1
            assert self.fallback.ask(op, prefix, token) == reply, op.name
        else:
            verb, words, data = self.rng.choice(ways)
            whole = words[0].endswith(b"1")
            self.by_words += bool(op.parts) and not data and not whole
            self.by_lines += bool(data) and not whole
            self.whole += whole
            outcome = self.speaker.ask(Request(verb, b"q|" + b"|".join(words), data))
            request = f"{self.speaker.form}: {verb} {words!r:.300} {data!r:.300}"
            if words[0].endswith(b"*"):
                verb = "get quoted"
            assert agrees(op, verb, outcome, reply), f"{request}: {outcome!r:.300}, not {reply!r:.300}"


def agrees(op, verb, outcome, reply):
    """Whether the outcome of a command as a key is that of its reply in the text protocol."""
    if isinstance(reply, tuple):
        return outcome == reply
    if verb == "set":
        failed = op.name in TESTS and b"0" in reply
        return outcome == (("not stored",) if failed or reply in MISSES or reply == b"NOT_STORED" else ("done",))
    if not isinstance(reply, list):
        return outcome == (("miss",) if reply in MISSES else ("value", 0, reply))
    if verb == "get quoted":
        found = elements(outcome[2])
        return sorted(found) == sorted(reply) if op.name == "smembers" else found == reply
    if op.name not in LISTS or not any(b"\n" in part for part in reply):
        # An empty set, or one with only the empty member.
        found = outcome[2].split(b"\n") if op.name in LISTS and reply else [outcome[2]] if reply or outcome[2] else []
        return sorted(found) == sorted(reply) if op.name == "smembers" else found == reply
    # What a command has removed is not lost.
    return elements(outcome[2].replace(b"\n", b" ")) == reply if op.name == "lpop2" else outcome[1].startswith(REFUSED)


class EveryForm(WireTest):
    def setUp(self):
        self.serve(2, config='commands = "q|"\nlease_time = 3600')
        self.rng = random.Random(SEED)
        self.text = Text(self.conn, self.rng, literal=False)
        self.literals = Text(self.connect(self.proxy), self.rng, literal=True)
        speakers = [*(KeySpeaker(form, self.proxy.port) for form in FORMS), Base64(self.proxy.port)]
        for speaker in speakers:
            self.addCleanup(speaker.close)
        self.keys = {f"k{number}-": Keys(speaker, self.rng, self.literals) for number, speaker in enumerate(speakers)}
        self.prefixes = ["t-", "u-", *self.keys]
        self.tokens = {}

    def token(self, op, prefix):
        """The token of a lease on the key of a load. A key that is already loaded is deleted first."""
        key = prefix + op.key
        if "token" not in op.before:
            return ""
        if key not in self.tokens:
            self.conn.ask(f"delete {key}")
            self.tokens[key] = self.conn.ask(f"{op.name[0]}lease {key}").split()[1]
        token = self.tokens[key]
        if "fill" in op.name:
            del self.tokens[key]
        return token

    def play(self, op):
        reply = self.text.ask(op, "t-", self.token(op, "t-"))
        same = self.literals.ask(op, "u-", self.token(op, "u-"))
        unordered = op.name == "smembers" and isinstance(reply, list)
        self.assertEqual(sorted(same) if unordered else same, sorted(reply) if unordered else reply, op.name)
        for prefix, keys in self.keys.items():
            keys.ask(op, prefix, self.token(op, prefix), reply)

    def read(self, key):
        line = self.conn.ask(f"smembers {key}" if "-s" in key else f"lrange {key} 0 -1")
        if not line.startswith("VALUE"):
            return line
        text = self.conn.block(int(line.split()[3]))
        self.assertEqual(self.conn.line(), b"END")
        return tuple(sorted(elements(text)) if "-s" in key else elements(text))

    def same_state(self):
        """The elements are the same, and after a compaction also the stored bytes; parts of sets and lists have random names."""
        for name in ("s1", "s2", "s3", "s4", "l1", "l2", "l4"):
            keys = [prefix + name for prefix in self.prefixes]
            self.assertEqual(len({self.read(key) for key in keys}), 1, name)
            for key in keys:
                self.conn.ask(f"scompact {key}")
            stored = {self.conn.get(key) or b"" for key in keys}
            if not any(re.search(rb"@[tls]\d", value) for value in stored) and name not in ("s4", "l4"):
                self.assertEqual(len(stored), 1, name)

    def run_forms(self, count):
        make = Random(self.rng)
        for number in range(count):
            self.play(make.op())
            if number % 100 == 99:
                self.same_state()
        for keys in self.keys.values():
            self.assertGreater(min(keys.by_words, keys.by_lines, keys.whole), count / 20)
            self.assertLess(keys.unsuited, count / 4)

    @marks(smoke=True)
    def test_some(self):
        self.run_forms(REQUESTS or SMOKE_REQUESTS)

    def test_many(self):
        self.run_forms(REQUESTS or FULL_REQUESTS)

    def test_names(self):
        """Every command that takes elements is among the requests."""
        usages = [self.conn.ask("help")]
        while usages[-1] != "END":
            usages.append(self.conn.line().decode())
        taking = {usage.split()[0] for usage in usages if re.search(r"<(member|element|from|after|pivot)>", usage)}
        self.assertEqual(taking - {"evcount"}, {*SETS, *BOTH, *GETS})
