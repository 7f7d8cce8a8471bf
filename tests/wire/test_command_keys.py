"""Commands as keys: every command of `help`, as a key and as a line, sent to two setlistd in front of separate servers.

A new command is included automatically, and fails here until it has an example. The expected reply to a key is derived from the reply
to the line, by the rules of the manual, and is the same in the text protocol, with meta commands, and in the binary protocol; also if
the words of the key are written as %XX, and if the last word is all data of a name with a 1. With a *, several elements in a value are
quoted as in the reply to the line. Afterwards both pools must have the same
items.
"""
import functools
import re

from case import WireTest
from forms import FORMS, META, Request, Speaker, error
from harness import wait_until
from stored import stat, stats

SETTINGS = 'commands = "q|"\nevents "Router" { plain_verbs = true }\nevents "top" { types = true }'
# Every example has its own keys, which begin with these.
SET, LIST, ITEM, TYPE = "{k}set", "{k}list", "{k}item", "{k}Error"
OTHER = "{k}other"
NOW = 1424448000
# The lines before each example.
PREPARE = (f"sadd {SET} ann bob cyd", f"sadd {OTHER} cyd dee", f"rpush {LIST} one two three two", f"set {ITEM} 5 0 2\r\n10",
           f"sadd {{k}}only ann", f"evincr {TYPE} 2 {NOW}", f"evadd {TYPE} 7 0 5 {NOW}\r\nevent",
           "evincr top{k}a 2", "evincr top{k}b 3")
# The lines of each command. In those for `set` a slash marks the beginning of the data.
LINES = {
    "blhold": [f"blhold 5 {LIST} 60", f"blhold 0.001 {{k}}none 60 right", f"blhold 5 {LIST} 0", f"blhold 5 {ITEM} 60"],
    "blmpop": [f"blmpop 5 2 right {LIST}", f"blmpop 0.001 9 left {{k}}none {LIST}", "blmpop 0.001 1 left {k}none", f"blmpop 1 0 left {LIST}"],
    "blmove": [f"blmove 5 {LIST} {{k}}new left right", "blmove 0.001 {k}none {k}new left left", f"blmove 5 {LIST} {LIST}"],
    "blpop": [f"blpop 5 {LIST}", f"blpop 0.001 {{k}}none {LIST}", "blpop 0.001 {k}none", f"blpop x {LIST}"],
    "brpop": [f"brpop 5 {{k}}none {LIST}", "brpop 0.001 {k}none", f"brpop 5 {ITEM}"],
    "decr": [f"decr {ITEM} 3", f"decr {ITEM} / 3", "decr {k}none 3"],
    "delete": [f"delete {ITEM} /", f"delete {SET} /", "delete {k}none /"],
    "evcount": [f"evcount {TYPE}", f"evcount {TYPE} 20150220", f"evcount {TYPE} x", f"evcount {TYPE} 2015022015 2015022016 {{k}}none {TYPE}"],
    "evincr": [f"evincr {TYPE} 4", f"evincr {TYPE} / 4", f"evincr {TYPE} 4 {NOW}", f"evincr {TYPE} / x"],
    "evlast": [f"evlast {TYPE} 3 2015022016", f"evlast {TYPE} 3", f"evlast {TYPE} x", f"evlast {TYPE} 3 2015022016 {{k}}none {TYPE}"],
    "evlimit": [f"evlimit {TYPE} 1 3600", f"evlimit {TYPE} 0 3600", f"evlimit {TYPE} 9 7200", f"evlimit {TYPE} / 9 60", f"evlimit {TYPE} 9"],
    "evrange": [f"evrange {TYPE} 2015022016", f"evrange {TYPE} 2015022015"],
    "evtop": ["evtop top{k} 2", "evtop top{k}none 2 3", "evtop {k} 2", "evtop top{k} x"],
    "flush_all": ["flush_all / 1000000", "flush_all / x"],
    "gat": [f"gat 100 {ITEM}", f"gat 100 {ITEM} {{k}}none {SET}", "gat 100 {k}none"],
    "gats": [f"gats 100 {ITEM}", "gats 100 {k}none"],
    "get": [f"get {ITEM}", f"get {ITEM} {SET}", "get {k}none"],
    "gets": [f"gets {ITEM}", "gets {k}none"],
    "help": ["help", "help sadd", "help nothing"],
    "incr": [f"incr {ITEM} 3", f"incr {ITEM} / 3", f"incr {SET} 3"],
    "lack": [f"lack {LIST} 5v1mq8d03xkw", f"lack {LIST} / 5v1mq8d03xkw", "lack {k}none 5v1mq8d03xkw", f"lack {LIST}"],
    "lfail": [f"lfail {LIST} 5v1mq8d03xkw", f"lfail {LIST} / 5v1mq8d03xkw", f"lfail {ITEM} 5v1mq8d03xkw"],
    "lfill": [f"lfill {LIST} 8f3k2w0q / a", "lfill {k}none / 8f3k2w0q a"],
    "lhold": [f"lhold {LIST} 60", f"lhold {LIST} 5 right", "lhold {k}none 60", f"lhold {LIST} 60 up"],
    "lindex": [f"lindex {LIST} -1", f"lindex {LIST} 9", f"lindex {LIST} x"],
    "linsert": [f"linsert {LIST} before two x", f"linsert {LIST} / after two x", "linsert {k}none after a b", f"linsert {LIST} after a / b"],
    "llease": [f"llease {LIST}", f"llease {LIST} / 5", f"llease {LIST} 0", f"llease {ITEM}"],
    "llen": [f"llen {LIST}", "llen {k}none", f"llen {ITEM}"],
    "lload": [f"lload {LIST} 8f3k2w0q / a", "lload {k}none 8f3k2w0q / a"],
    "lmove": [f"lmove {LIST} {{k}}new left right", f"lmove {LIST} {LIST} left right", "lmove {k}none {k}new left left", f"lmove {LIST} {LIST}"],
    "lmpop": [f"lmpop 2 right {LIST}", f"lmpop 2 left {{k}}none {LIST}", "lmpop 2 left {k}none", f"lmpop 1 {LIST}"],
    "lpop": [f"lpop {LIST}", f"lpop {LIST} 2", "lpop {k}none"],
    "lpos": [f"lpos {LIST} two", f"lpos {LIST} ten", f"lpos {LIST} two count 0 rank -1", f"lpos {LIST} ten count 0"],
    "lpush": [f"lpush {LIST} / a b", "lpush {k}new / a b", f"lpush {LIST} /"],
    "lpushx": [f"lpushx {LIST} / a b", "lpushx {k}none / a"],
    "lrange": [f"lrange {LIST} 0 9", f"lrange {LIST} 7 9", f"lrange {LIST} 0"],
    "lrem": [f"lrem {LIST} 1 two", f"lrem {LIST} 1 / two", f"lrem {LIST} 0 ten", "lrem {k}none 0 ten"],
    "lru_crawler": ["lru_crawler metadump all", "lru_crawler enable"],
    "lset": [f"lset {LIST} 1 / x", f"lset {LIST} / 1 x", f"lset {LIST} 9 / x", "lset {k}none 0 / x"],
    "ltrim": [f"ltrim {LIST} / 1 2", f"ltrim {LIST} 1 2 /", "ltrim {k}none / 1 2"],
    "ma": [f"ma {ITEM} v", f"ma {ITEM} D5 v", "ma {k}none v"],
    "md": [f"md {ITEM}", f"md {ITEM} /", "md {k}none", "md {k}none /", f"md {ITEM} q"],
    "me": [f"me {ITEM}", "me {k}none"],
    "mg": [f"mg {ITEM} v", f"mg {ITEM} t f", f"mg {SET} v k", "mg {k}none v", "mg {k}none v q"],
    "mn": ["mn"],
    "repair": [f"repair {SET}"],
    "route": [f"route {SET}"],
    "rpop": [f"rpop {LIST}", f"rpop {LIST} 3"],
    "rpoplpush": [f"rpoplpush {LIST} {{k}}new", f"rpoplpush {LIST} {LIST}", f"rpoplpush {{k}}none {LIST}"],
    "rpush": [f"rpush {LIST} / a b", "rpush {k}new / a"],
    "rpushx": [f"rpushx {LIST} / a b", "rpushx {k}none / a"],
    "sadd": [f"sadd {SET} / gus hal", f"sadd {SET} gus / hal", "sadd {k}new / ann", f"sadd {SET} /"],
    "saddex": [f"saddex {SET} 5000 / gus hal", "saddex {k}new 0 / ann", f"saddex {SET} x / gus", f"saddex {SET} 5000 /", f"saddex {LIST} 5000 / ten"],
    "saddx": [f"saddx {SET} / gus hal", "saddx {k}none / gus"],
    "scard": [f"scard {SET}", "scard {k}none", f"scard {ITEM}", f"scard {SET} x"],
    "sclaim": [f"sclaim {SET} gus", f"sclaim {SET} / ann", f"sclaim {SET} / gus", "sclaim {k}new / ann", f"sclaim {ITEM} ann", f"sclaim {SET} a b"],
    "scompact": [f"scompact {SET}", f"scompact {SET} /", "scompact {k}none"],
    "scount": [f"scount {SET} a bz", f"scount {SET} a"],
    "sdiff": [f"sdiff {SET} {OTHER}"],
    "sdiffcard": [f"sdiffcard 2 {SET} {OTHER}", f"sdiffcard 2 {SET} {OTHER} limit 1", f"sdiffcard 1 {{k}}none"],
    "sdiffstore": [f"sdiffstore {{k}}new {SET} {OTHER}", f"sdiffstore {SET} {SET} {{k}}none"],
    "sexpire": [f"sexpire {SET} 5000 ann gus", f"sexpire {SET} 0 / ann", "sexpire {k}none 5000 / ann", f"sexpire {SET} 5000 / gus", f"sexpire {ITEM} 5 ann",
                f"sexpire {SET} 5"],
    "sfill": [f"sfill {SET} 8f3k2w0q / ann", "sfill {k}none 8f3k2w0q /", f"sfill {SET} /"],
    "sinfo": [f"sinfo {SET}", "sinfo {k}none"],
    "sinter": [f"sinter {SET} {OTHER}", f"sinter {SET} {{k}}none", f"sinter {SET} {ITEM}"],
    "sintercard": [f"sintercard 2 {SET} {OTHER}", f"sintercard 2 {SET} {{k}}none", f"sintercard 2 {SET} {ITEM}", f"sintercard x {SET}"],
    "sinterstore": [f"sinterstore {{k}}new {SET} {OTHER}", f"sinterstore {SET} / {SET} {{k}}none", f"sinterstore {{k}}new {SET} {ITEM}",
                    f"sinterstore {ITEM} {SET}"],
    "sismember": [f"sismember {SET} ann", f"sismember {SET} eve", "sismember {k}none ann", f"sismember {SET} / ann",
                  f"sismember / {SET} eve", "sismember {k}none / ann", f"sismember {SET} / ann bob"],
    "slease": [f"slease {SET}", f"slease {SET} / 5", f"slease {SET} 0", f"slease {ITEM}"],
    "sload": [f"sload {SET} 8f3k2w0q / ann", "sload {k}none 8f3k2w0q / ann"],
    "smembers": [f"smembers {SET}", f"smembers {SET} {OTHER} {{k}}none", "smembers {k}none", f"smembers {ITEM}"],
    "smismember": [f"smismember {SET} ann eve cyd", f"smismember {SET} / ann eve", f"smismember {SET} ann / cyd", "smismember {k}none / a"],
    "smove": [f"smove {SET} {OTHER} / ann", f"smove {SET} / {{k}}new ann", f"smove {SET} {OTHER} / eve", f"smove {{k}}none {OTHER} / eve"],
    "spop": ["spop {k}only", "spop {k}none"],
    "srandmember": ["srandmember {k}only", "srandmember {k}only 5", "srandmember {k}only -5"],
    "srange": [f"srange {SET} a bz 10", f"srange {SET} x y 10"],
    "srem": [f"srem {SET} / ann bob", "srem {k}none / ann"],
    "sscan": [f"sscan {SET} 2", f"sscan {SET} 2 bob", f"sscan {SET} 2 zoe", f"sscan {SET} 2 match *[by]*", f"sscan {SET} 9 ann match *b*", f"sscan {SET} 2 match"],
    "sset": [f"sset {SET} / zoe", f"sset {SET} /", "sset {k}new / zoe", f"sset {ITEM} / zoe"],
    "stake": ["stake {k}only", "stake {k}only 5", "stake {k}none", f"stake {ITEM}", "stake {k}only x"],
    "stats": ["stats settings", "stats nothing", "stats items", "stats detail on"],
    "sttl": [f"sttl {SET} ann", f"sttl {SET} eve", f"sttl {SET} / ann", f"sttl {SET} / eve", "sttl {k}none ann", f"sttl {ITEM} ann"],
    "sunion": [f"sunion {SET} {OTHER}"],
    "sunioncard": [f"sunioncard 2 {SET} {OTHER}", f"sunioncard 2 {SET} {OTHER} limit 2", f"sunioncard 2 {SET} {{k}}none limit 1"],
    "sunionstore": [f"sunionstore {OTHER} {SET} {OTHER}", f"sunionstore {{k}}new / {SET} {OTHER}", f"sunionstore {SET}"],
    "touch": [f"touch {ITEM} / 100", "touch {k}none / 100"],
    "verbosity": ["verbosity / 0", "verbosity / x"],
    "version": ["version"],
}
# Commands with a data block: the words of the key, flags and exptime, the data.
BLOCKS = {
    "add": [("add {k}new", "5 0", "x y"), (f"add {ITEM}", "5 0", "x")],
    "append": [(f"append {ITEM}", "0 0", "5"), ("append {k}none", "0 0", "5")],
    "cas": [(f"cas {ITEM}", "0 0", "5")],
    "evadd": [(f"evadd {TYPE}", "7 100", "the\r\nevent"), (f"evadd {TYPE}", "0 0", "")],
    "ms": [(f"ms {ITEM}", "", "5"), ("ms {k}none", "", "5")],
    "prepend": [(f"prepend {ITEM}", "0 0", "5"), ("prepend {k}none", "0 0", "5")],
    "replace": [(f"replace {ITEM}", "5 0", "x"), ("replace {k}none", "5 0", "x")],
    "set": [("set {k}new", "5 0", "x"), (f"set {ITEM}", "6 100", "y")],
}
OUT_OF_REACH = {"quit": "CLIENT_ERROR the command quit cannot be a key"}
# Differences between two pools, or between two moments.
VARIES = re.compile(rb"127\.0\.0\.1:\d+|la=\d+|cas=\d+|~[ht]1\d{9}|\x02\d{10}|t(100|9\d)\b|[0-9a-z]{12}(?=[ \n.]1[ \n.])")
ERROR = re.compile(rb"(ERROR|CLIENT_ERROR .*|SERVER_ERROR .*)\r\n")
MISSES = (b"END\r\n", b"NOT_FOUND\r\n", b"EN\r\n", b"NF\r\n", b"")
# Commands whose reply has a 0 for each member that is missing, or that another client has claimed.
TESTS = ("sismember", "smismember", "sclaim")
# Commands of which a reply may have several VALUEs, whatever is stored.
SEVERAL = ("evlast", "evrange")
# Commands whose reply may have several elements.
ELEMENTS = ("blhold", "blmpop", "lhold", "lmpop", "lpop", "lrange", "rpop", "sdiff", "sinter", "smembers", "spop", "srandmember", "srange", "sscan", "stake",
            "sunion")


def reply_to(conn, data):
    """All bytes of the reply to one request."""
    conn.send(data + b"\r\nmn\r\n")
    while not conn.buffer.endswith(b"MN\r\n") or data == b"mn" and conn.buffer.count(b"MN\r\n") < 2:
        conn._fill()
    reply = bytes(conn.buffer[:-4])
    conn.buffer.clear()
    return reply


def value_of(line, reply, quoted):
    """The value that a get of this command must have, given the reply to its line; None for a miss."""
    words = line.split()
    if reply in MISSES:
        return None
    found = re.match(rb"VALUE \S+ \d+ (\d+)(?: \d+)?\r\n", reply)
    keys = len(words) - (2 if words[0].startswith("gat") else 3 if words[0] == "lmpop" else 1)
    one = words[0] not in SEVERAL and (keys == 1 or words[0] not in ("get", "gets", "gat", "gats", "smembers", "lmpop"))
    if found and one:
        value = reply[found.end():found.end() + int(found[1])]
        return value.replace(b" ", b"\n") if words[0] in ELEMENTS and not quoted else value
    if reply.endswith(b"END\r\n") and words[0] not in ("mg", "ma"):
        reply = reply[:-5]
    return reply[:-2]


def as_get(line, reply, quoted=False):
    if ERROR.match(reply):
        return error(reply[:-2])
    value = value_of(line, reply, quoted)
    return ("miss",) if value is None else ("value", 0, value)


def as_set(line, reply):
    if ERROR.match(reply):
        return error(reply[:-2])
    if line.split()[0] in TESTS:
        return ("not stored",) if b"0" in reply or reply in MISSES else ("done",)
    if reply != b"" and reply in MISSES or reply in (b"NOT_STORED\r\n", b"NS\r\n"):
        return ("not stored",)
    return ("exists",) if reply in (b"EXISTS\r\n", b"EX\r\n") else ("done",)


def as_incr(_, reply):
    return error(reply[:-2]) if ERROR.match(reply) else ("number", int(reply))


def key_of(words):
    return f"q|{'|'.join(words.split())}"


def set_of(words, data, flags="0 0"):
    return Request("set", key_of(words), data, *map(int, flags.split()))


def encoded(request):
    """The same request with each byte of the words in its key as %XX."""
    prefix, name, *words = request.key.split(b"|")
    words = [b"".join(b"%%%02X" % byte for byte in word) for word in words]
    return Request(request.verb, b"|".join([prefix, name, *words]), request.data, request.flags, request.exptime, request.number)


def masked(outcome, name):
    """The same for each pool and each name."""
    return tuple(VARIES.sub(b"*", part.replace(name.encode(), b"{k}")) if isinstance(part, bytes) else part for part in outcome)


def key_and_data(line):
    """Returns a line, the same request as a key, and what its reply is derived with."""
    words, slash, data = line.partition(" /")
    if slash:
        return words + data, set_of(words, data.strip().replace(" ", "\n")), as_set
    return line, Request("get", key_of(line)), as_get


class EveryCommand(WireTest):
    smoke = True

    def setUp(self):
        self.by_line = self.serve(2, config=SETTINGS)
        self.by_key = self.serve(2, config=SETTINGS)
        self.speakers = {form: Speaker(form, self.proxy.port) for form in FORMS}
        for speaker in self.speakers.values():
            self.addCleanup(speaker.close)
        self.count = 0

    def same(self, line, request, expect, change=lambda request: request):
        """One example: `line` to one pool and `request`, which is the same as a key, to the other, in each form."""
        self.count += 1
        # Each form has its own keys.
        names = {form: f"x{self.count}{form[0]}" for form in FORMS}
        for prepare in PREPARE:
            reply_to(self.by_line, prepare.replace("{k}", names[META]).encode())
            for name in names.values():
                reply_to(self.by_key, prepare.replace("{k}", name).encode())
        line = line.replace("{k}", names[META])
        wanted = masked(expect(line, reply_to(self.by_line, line.encode())), names[META])
        for form, name in names.items():
            with self.subTest(form, line=line):
                self.assertEqual(masked(self.speakers[form].ask(change(request.named("{k}", name))), name), wanted)
                self.same_state(names[META], name)

    def same_state(self, by_line, by_key):
        for suffix in ("set", "list", "item", "other", "only", "none", "new"):
            states = [VARIES.sub(b"*", reply_to(conn, f"mg {name}{suffix} v f t".encode()))
                      for conn, name in ((self.by_line, by_line), (self.by_key, by_key))]
            self.assertEqual(*states)

    def test_each_has_an_example(self):
        names = [line.split()[0].decode() for line in reply_to(self.by_key, b"help").split(b"\r\n") if line.startswith(b" ")]
        self.assertEqual(sorted(names), sorted([*LINES, *BLOCKS, *OUT_OF_REACH]))

    def test_lines(self):
        for line in (line for name in LINES for line in LINES[name]):
            self.same(*key_and_data(line))

    def test_encoded_words(self):
        for line in (line for name in LINES for line in LINES[name]):
            self.same(*key_and_data(line), encoded)

    def test_one_element(self):
        """With a 1 after the name, the data are the last word."""
        for line in (line for name in LINES for line in LINES[name]):
            words, _, data = line.partition(" / ")
            if data:
                *before, last = f"{words} {data}".split()
                before[0] += "1"
                self.same(f"{words} {data}", set_of(" ".join(before), last), as_set)

    def test_quoted_elements(self):
        """With a * after the name, elements are as in the reply to the line."""
        as_quoted = functools.partial(as_get, quoted=True)
        for line in (line for name in LINES for line in LINES[name]):
            if " /" not in line:
                name, *words = line.split()
                self.same(line, Request("get", key_of(" ".join([f"{name}*", *words]))), as_quoted)

    def test_blocks_of_data(self):
        for name in BLOCKS:
            for words, flags, data in BLOCKS[name]:
                more = " 1" if name == "cas" else ""
                self.same(f"{words} {flags} {len(data)}{more}\r\n{data}", set_of(words + more, data, flags or "0 0"), as_set)

    def test_counts(self):
        for delta in (4, 1, 0, 1 << 63):
            self.same(f"evincr {TYPE} {delta}", Request("incr", f"q|evincr|{TYPE}", number=delta), as_incr)

    def test_out_of_reach(self):
        for name, refusal in OUT_OF_REACH.items():
            for request in (Request("get", f"q|{name}"), set_of(name, "")):
                for speaker in self.speakers.values():
                    self.assertEqual(speaker.ask(request), error(refusal.encode()))

    def test_other_verbs(self):
        """Requests that the text protocol refuses are refused by the others with the same words."""
        for verb in ("add", "replace", "append", "prepend", "cas", "delete", "incr", "decr", "gat"):
            for key in ("q|sadd|x", "q|scard|x", "q|evadd|x", "q|evincr|x|4", "q|delete|x", "q|x", "q|", "q|scard||x", "q|quit"):
                request = Request(verb, key, "ann", number=7, exptime=50)
                outcomes = {form: speaker.ask(request) for form, speaker in self.speakers.items()}
                self.assertEqual(set(outcomes.values()), {outcomes["text"]}, (verb, key))
                self.assertEqual(outcomes["text"][0], "error", (verb, key))

    def test_cas_ids(self):
        """The id of a set that is read is the same in each form, and good for a cas."""
        for prepare in PREPARE:
            reply_to(self.by_key, prepare.replace("{k}", "x").encode())
        for key in ("q|smembers|xset", "q|scard|xset", "q|sismember|xset|ann", "q|llen|xlist", "q|sinter|xset|xother"):
            found = set()
            for speaker in self.speakers.values():
                self.assertEqual(speaker.ask(Request("get", key))[0], "value")
                found.add(speaker.cas)
            self.assertEqual(len(found), 1, key)
        for form, speaker in self.speakers.items():
            speaker.ask(Request("get", "q|smembers|xset"))
            request = Request("cas", "q|sset|xset", f"ann\n{form}", number=speaker.cas)
            self.assertEqual([speaker.ask(request) for _ in range(2)], [("done",), ("exists",)], form)

    def test_all_reads_in_one_get(self):
        """The result of a get of many keys for each key equals that of a get of only this key."""
        for prepare in PREPARE:
            reply_to(self.by_key, prepare.replace("{k}", "x").encode())
        lines = [line.replace("{k}", "x") for name in LINES for line in LINES[name]
                 if "/" not in line and name not in ("stats", "me", "mn") and not name.startswith("gat")]
        keys = [f"q|{'|'.join(line.split())}" for line in lines]
        keys = [key for key in keys if not re.match(r"q\|(b?[lrs]pop|b?lmove|b?lhold|lrem|linsert|lmpop|blmpop|rpoplpush|s(union|inter|diff)store|sclaim|sexpire|stake|scompact|m[ad]|incr|decr|evincr|evlimit)\b", key)]
        keys[5:5], keys[20:20] = ["xitem"], ["nothing", "xset"]
        alone, errors = b"", []
        for key in keys:
            reply = reply_to(self.by_key, f"get {key}".encode())
            error = ERROR.match(reply)
            errors += [reply] if error else []
            alone += b"" if error else reply[:-5]
        self.assertGreater(len(keys), 50)
        together = reply_to(self.by_key, f"get {' '.join(keys)}".encode())
        random = re.compile(rb"(VALUE q\|s(?:members)\S* 0 \d+\r\n)[^\r]*")
        self.assertEqual(random.sub(rb"\1", together), random.sub(rb"\1", alone + errors[0]))


class Configured(WireTest):
    smoke = True

    def test_denied(self):
        conn = self.serve(2, config='commands = "q|"\ndeny = {"spop", "help"}')
        conn.set("name", b"value")
        self.assertEqual(conn.ask("get q|spop|x"), "CLIENT_ERROR spop is denied here")
        self.assertEqual(conn.values("get q|help name q|spop|x"), ({"name": (0, b"value")}, "CLIENT_ERROR help is denied here"))
        self.assertEqual(conn.ask("sadd x a"), "STORED")
        self.assertEqual(conn.get("q|scard|x"), b"1")

    def test_command_line(self):
        """-c needs no file, and overrides one."""
        conn = self.serve(1, "-c", "q|")
        self.assertEqual((conn.set("q|sadd|x", b"ann\nbob"), conn.get("q|scard|x")), ("STORED", b"2"))
        self.assertEqual(stats(conn, "stats settings")["commands"], "q|")
        self.assertIsNone(self.connect(self.servers[0]).get("q|sadd|x"))
        for prefix, found in (("do:", b"1"), ("", None)):
            conn = self.serve(1, "-c", prefix, config='commands = "q|"')
            conn.ask("sadd x a")
            self.assertEqual((conn.get("q|scard|x"), conn.get("do:scard:x")), (None, found))

    def test_a_delimiter(self):
        conn = self.serve(2, config='commands = "do:"\ncommands_delimiter = ","')
        self.assertEqual(conn.set("do:sadd:x", b"ann,bob,"), "STORED")
        self.assertEqual(conn.set("do:sadd:x", b"ann\nbob,,bob"), "STORED")
        self.assertEqual(conn.get("do:srange:x:%00:b:9"), b"ann,ann\nbob")
        self.assertEqual(conn.get("do:scard:x"), b"4")
        conn.set("do:sadd1:x", b"ann,bob")
        self.assertEqual(conn.set("do:sismember1:x", b"ann,bob"), "STORED")
        self.assertRegex(conn.ask("get do:smembers:x"), "CLIENT_ERROR an element contains the delimiter")

    def test_a_space(self):
        """As before 1.1: words of the data that any number of spaces separates."""
        conn = self.serve(2, config='commands = "q|"\ncommands_delimiter = " "')
        self.assertEqual(conn.set("q|sadd|x", b"  ann   bob "), "STORED")
        self.assertEqual(conn.get("q|scard|x"), b"2")
        self.assertIn(conn.get("q|smembers|x"), (b"ann bob", b"bob ann"))
        for word in (b"a\nb", b"a\tb", b"\x00", b"\x7f"):
            self.assertEqual(conn.set("q|sadd|x", word), "CLIENT_ERROR bad word in the data")
        self.assertEqual(conn.set("q|lset|l", b"0 \x01"), "CLIENT_ERROR bad word in the data")
        self.assertEqual(conn.set("q|sadd1|x", b" a\nb"), "STORED")
        self.assertEqual(conn.get("q|sismember|x|%20a%0ab"), b"1")

    def test_off_by_default(self):
        conn = self.serve()
        self.assertEqual(conn.set("q|scard|x", b"value"), "STORED")
        self.assertEqual(self.connect(self.servers[0]).get("q|scard|x"), b"value")

    def test_nothing_reaches_a_server(self):
        conn = self.serve(config='commands = "q|"')
        for verb in ("set", "add", "replace", "append", "prepend"):
            for data in (b"x", b"x" * 9000000):
                conn.send(b"%s q|sadd|x 0 0 %d\r\n%s\r\n" % (verb.encode(), len(data), data))
                conn.line()
        conn.send(b"ms q|x 9000000\r\n" + b"x" * 9000000 + b"\r\n")
        conn.line()
        self.assertEqual(conn.get("q|scard|x"), b"1")
        self.assertEqual(conn.ask("get name q|scard|x q|scard"), "VALUE q|scard|x 0 1")
        found = stats(self.connect(self.servers[0]))
        # Only the append, and an ADD where there was nothing; one DISCARD would be a delete.
        self.assertEqual((found["delete_hits"], found["delete_misses"], found["curr_items"]), ("0", "0", "1"))

    def test_reload(self):
        conn = self.serve(config="verbose = 0")
        conn.ask("sadd x a")
        self.assertIsNone(conn.get("q|scard|x"))
        self.proxy.configure(self.proxy.config + 'commands = "q|"\n')
        wait_until("the new configuration holds", lambda: conn.get("q|scard|x") == b"1")

    def test_mistakes_are_found(self):
        for line in ('commands = "q"', 'commands = "q |"', 'commands = "q-"', f'commands = "{"x" * 40}|"',
                     'commands_delimiter = ""', 'commands_delimiter = ",,"', 'commands_delimiter = "\\t"'):
            with self.assertRaises(AssertionError, msg=line):
                self.setlistd([self.memcached()], config=line)


def store(line, data, noreply=b""):
    return b"%s 0 0 %d%s\r\n%s\r\n" % (line, len(data), noreply, data)


class LongData(WireTest):
    """The words of a long data block are converted in slices. Replies and effects keep their order all the same."""
    WORDS = 40000

    def setUp(self):
        self.serve(config='commands = "q|"\ncollection "plain-" { plain_verbs = true }')

    def words(self, sign, delimiter=b"\n"):
        return delimiter.join(b"%s%06d" % (sign, number) for number in range(self.WORDS))

    def test_order(self):
        """Each request is sent before the replies to earlier ones, and sees their effects."""
        very_many = b"\n".join(b"a%06d" % number for number in range(500000))    # several slices
        many, some = self.words(b"a"), b"\n".join(b"a%06d" % number for number in range(100))
        escaped = b"\0" * 40000    # twice as long as a word
        requests = (
            (store(b"set q|sset|s", very_many), ("STORED",)),
            (b"scard s\r\ndelete s\r\n", ("500000", "DELETED")),
            (store(b"set q|sadd|s", many), ("STORED",)),
            (b"scard s\r\n", (str(self.WORDS),)),
            (store(b"set q|srem|s", some), ("STORED",)),
            (b"scard s\r\n", (str(self.WORDS - 100),)),
            (b"sadd s %s\r\n" % self.words(b"a", b" "), ("STORED",)),
            (b"get q|scard|s\r\n", (f"VALUE q|scard|s 0 {len(str(self.WORDS))}", str(self.WORDS), "END")),
            (store(b"set q|sset|s", many + b"\n" + escaped), ("CLIENT_ERROR member too long",)),
            (store(b"set q|rpush1|j", escaped), ("STORED",)),
            (b"llen j\r\nlrem j 0 {40000}\r\n%s\r\n" % escaped, ("1", "1")),
            (b"rpush j {40000}\r\n%s\r\n" % escaped, ("STORED",)),
            (b"llen j\r\ndelete j\r\n", ("1", "DELETED")),
            (store(b"set q|sset|s", self.words(b"b")), ("STORED",)),
            (b"sismember s a000001\r\nsismember s b000001\r\n", ("0", "1")),
            (store(b"set q|rpush|l", many), ("STORED",)),
            (store(b"set q|lpush|l", many), ("STORED",)),
            (b"llen l\r\nlindex l 0\r\n", (str(2 * self.WORDS), "VALUE l 0 7", f"a{self.WORDS - 1:06}", "END")),
            (b"ms q|sadd|s %d\r\n%s\r\n" % (len(many), many), ("HD",)),
            (b"scard s\r\n", (str(2 * self.WORDS),)),
            (store(b"set plain-s", self.words(b"c", b",")), ("STORED",)),
            (b"scard plain-s\r\n", (str(self.WORDS),)),
            (store(b"append plain-s", self.words(b"d", b",")), ("STORED",)),
            (b"scard plain-s\r\ndelete plain-s\r\nscard plain-s\r\n", (str(2 * self.WORDS), "DELETED", "NOT_FOUND")))
        self.conn.send(b"".join(request for request, _ in requests))
        for request, replies in requests:
            for reply in replies:
                self.assertEqual(self.conn.line(), reply.encode(), request[:40])

    def test_quit(self):
        """A client that sends nothing more is still served."""
        conn = self.connect(self.proxy)
        conn.send(store(b"set q|sadd|s", self.words(b"a"), b" noreply") + b"quit\r\n")
        wait_until("the set is stored", lambda: self.conn.ask("scard s") == str(self.WORDS))


class Hostile(WireTest):
    smoke = True

    def test_clients_that_leave(self):
        """Requests are abandoned at any moment; nothing is left behind."""
        conn = self.serve(2, config='commands = "q|"')
        for number in range(40):
            conn.ask(f"sadd s{number} " + " ".join(f"m{i}" for i in range(number * 20 + 1)))
        keys = " ".join(f"q|smembers|s{i} q|sinter|s{i}|s{(i + 7) % 40} s{i} q|scard" for i in range(40))
        with self.servers[0].process.paused(), self.servers[1].process.paused():
            leaving = [self.connect(self.proxy) for _ in range(20)]
            for each in leaving:
                each.send(f"get {keys}\r\n".encode() * 3)
            for each in leaving:
                each.reset()
        found, end = conn.values(f"get {keys}")
        self.assertEqual((len(found), end), (120, "CLIENT_ERROR usage: scard <key>"))

    def test_memory(self):
        """The collected results of a get of many commands count: a client that requests too much is closed."""
        conn = self.serve(2, config='commands = "q|"\nclient_memory = 4194304\nclient_buffer = 65536')
        for part in range(30):
            conn.ask("sadd large " + " ".join(f"member-{part}-{i:06}" for i in range(2000)))
        greedy = self.connect(self.proxy)
        greedy.send(("get " + " ".join(["q|srandmember|large|50000"] * 2000) + "\r\n").encode())
        # Either limit may be the first that it meets.
        wait_until("the client is closed", lambda: stat(conn, "stats", "closed_memory_clients") or stat(conn, "stats", "closed_slow_clients"))
