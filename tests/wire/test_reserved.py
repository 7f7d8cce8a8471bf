"""`only` in a rule: no command of the table writes a plain item under a reserved key, or a set or list under another key."""
import os
import re
from base64 import b64encode

import binary
from case import WireTest
from forms import FORMS, Request, Speaker, error
from harness import wait_until
from test_command_keys import BLOCKS, ERROR, LINES, OUT_OF_REACH, key_of, reply_to, set_of

COMMANDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/protocol/commands.def")
RESERVED, FREE = "r-", "f-"
SETTINGS = f'commands = "q|"\ncollection "{RESERVED}" {{ only = true }}\ncollection "{FREE}" {{ ttl = 3600 }}\n'
NO_PLAIN = b"CLIENT_ERROR the key is reserved for sets and lists"
NO_COLLECTION = b"CLIENT_ERROR no rule reserves the key for sets and lists"
# The type of value that each command writes. A command of the table that is in none of these fails the test.
PLAIN = "add append cas decr evadd evincr evlimit incr ma ms prepend replace set".split()
COLLECTIONS = ("blhold blmove blmpop blpop brpop lack lfail lfill lhold linsert llease lload lmove lmpop lpop lpush lpushx lrem lset ltrim rpop rpoplpush rpush rpushx sadd"
               " saddex saddx sclaim scompact sdiffstore sexpire sfill sinterstore slease sload smove spop srem sset stake sunionstore").split()
PASS = ("delete evcount evlast evrange evtop flush_all gat gats get gets help lindex llen lpos lrange lru_crawler md me mg mn quit repair route scard"
        " scount sdiff sdiffcard sinfo sinter sintercard sismember smembers smismember srandmember srange sscan stats sttl sunion sunioncard"
        " touch verbosity version").split()
ITEMS = {"set": b"+ann +bob +cyd ", "other": b"+cyd +dee ", "list": b"+one +two +three +two ", "item": b"10", "only": b"+ann "}
NAMES = (*ITEMS, "none", "new", "Error")


def examples():
    """(command, its line with {k} in each name, the same request as a key)."""
    for name, lines in LINES.items():
        for line in lines:
            words, slash, data = line.partition(" /")
            yield name, words + data, set_of(words, data.strip()) if slash else Request("get", key_of(line))
    for name, blocks in BLOCKS.items():
        for words, flags, data in blocks:
            more = " 1" if name == "cas" else ""
            yield name, f"{words} {flags} {len(data)}{more}\r\n{data}", set_of(words + more, data, flags or "0 0")


class Table(WireTest):
    smoke = True

    def setUp(self):
        self.serve(config=SETTINGS)
        self.server = self.connect(self.servers[0])
        self.speakers = {form: Speaker(form, self.proxy.port) for form in FORMS}
        for speaker in self.speakers.values():
            self.addCleanup(speaker.close)

    def fill(self, prefix):
        for name in NAMES:
            self.server.ask(f"delete {prefix}{name}")
        for name, data in ITEMS.items():
            self.assertEqual(self.server.set(f"{prefix}{name}", data), "STORED")

    def items(self, prefix):
        return [self.server.get(f"{prefix}{name}") for name in NAMES]

    def refuses(self, name, prefix):
        if name in PLAIN:
            return NO_PLAIN if prefix == RESERVED else None
        return NO_COLLECTION if name in COLLECTIONS and prefix == FREE else None

    def test_each_command_is_known(self):
        with open(COMMANDS, encoding="utf-8") as file:
            names = re.findall(r'^(?:PROXY_)?COMMAND\(\w+, "(\w+)"', file.read(), re.M)
        self.assertEqual(sorted(names), sorted(PLAIN + COLLECTIONS + PASS))
        self.assertEqual(sorted(names), sorted([*LINES, *BLOCKS, *OUT_OF_REACH]))

    def test_as_lines(self):
        count = 0
        for name, line, _ in examples():
            replies = {}
            for prefix in (RESERVED, FREE):
                self.fill(prefix)
                before = self.items(prefix)
                replies[prefix] = reply_to(self.conn, line.replace("{k}", prefix).encode())
                if self.refuses(name, prefix):
                    self.assertEqual(self.items(prefix), before, line)
            for prefix in (RESERVED, FREE):
                refusal, other = self.refuses(name, prefix), replies[FREE if prefix == RESERVED else RESERVED]
                with self.subTest(line=line, prefix=prefix):
                    if not refusal:
                        self.assertNotIn(replies[prefix].strip(), (NO_PLAIN, NO_COLLECTION))
                    elif not other.startswith(b"CLIENT_ERROR"):
                        self.assertEqual(replies[prefix], refusal + b"\r\n")
                        count += 1
                    else:
                        # The example is wrong, under any key.
                        self.assertRegex(replies[prefix], ERROR)
        self.assertGreater(count, 70)

    def test_as_keys(self):
        count = 0
        for name, _, request in examples():
            for prefix in (prefix for prefix in (RESERVED, FREE) if self.refuses(name, prefix)):
                self.fill(prefix)
                before = self.items(prefix)
                for form, speaker in self.speakers.items():
                    with self.subTest(form, key=request.key, prefix=prefix):
                        outcome = speaker.ask(request.named("{k}", prefix))
                        self.assertEqual(outcome[0], "error")
                        self.assertEqual(self.items(prefix), before)
                        count += outcome == error(self.refuses(name, prefix))
        self.assertGreater(count, 200)

    def test_plain_commands_of_each_protocol(self):
        for verb in ("get", "gat", "set", "add", "replace", "append", "prepend", "cas", "delete", "touch", "incr", "decr"):
            for form, speaker in self.speakers.items():
                for name in ("item", "none"):
                    # touch of the text protocol, and a read with a time of the others, have replies of their own.
                    if verb == "touch" and form == "binary" or verb == "gat" and form == "text":
                        continue
                    self.fill(RESERVED)
                    outcome = speaker.ask(Request(verb, RESERVED + name, b"x", number=1, exptime=60))
                    with self.subTest(form, verb=verb, name=name):
                        if verb in PLAIN:
                            self.assertEqual(outcome, error(NO_PLAIN))
                            self.assertEqual(self.server.get(RESERVED + name), ITEMS.get(name))
                        else:
                            self.assertNotEqual(outcome[0], "error")


class Pairs(WireTest):
    smoke = True

    def setUp(self):
        self.serve(config=SETTINGS)
        self.server = self.connect(self.servers[0])
        for prefix in (RESERVED, FREE):
            for name, data in ITEMS.items():
                self.server.set(prefix + name, data)

    def test_all_keys_that_are_written(self):
        for line in ("lmove {a}list {b}list left right", "lmove {b}list {a}list left right", "rpoplpush {a}list {b}list",
                     "rpoplpush {b}list {a}list", "blmove 0 {a}none {b}list left left", "blmove 0 {b}none {a}list left left",
                     "smove {a}set {b}set ann", "smove {b}set {a}set ann", "blpop 0 {a}none {b}none", "brpop 0 {b}list {a}list",
                     "blmpop 0 1 left {a}none {b}list", "lmpop 1 left {a}none {b}list", "lmpop 1 left {b}none {a}list", "sunionstore {b}new {a}set {a}other"):
            self.assertEqual(self.conn.ask(line.format(a=RESERVED, b=FREE)), NO_COLLECTION.decode(), line)
        for prefix in (RESERVED, FREE):
            self.assertEqual([self.server.get(prefix + name) for name in (*ITEMS, "new")], [*ITEMS.values(), None])

    def test_keys_that_are_read(self):
        self.assertEqual(self.conn.ask(f"sunionstore {RESERVED}new {FREE}set {RESERVED}other"), "4")
        self.assertEqual(self.conn.ask(f"sintercard 2 {FREE}set {RESERVED}other"), "1")
        self.assertEqual(self.conn.get(f"{RESERVED}list"), ITEMS["list"])

    def test_without_a_reply(self):
        self.conn.send(f"set {RESERVED}item 0 0 1 noreply\r\nx\r\nsadd {FREE}set eve noreply\r\nms {RESERVED}item 1 q\r\nx\r\n".encode())
        self.assertEqual(self.conn.ask(f"append {RESERVED}item 0 0 1\r\nx").encode(), NO_PLAIN)
        self.assertEqual([self.server.get(key) for key in (f"{RESERVED}item", f"{FREE}set")], [ITEMS["item"], ITEMS["set"]])

    def test_forms_that_make_items(self):
        key = b64encode(f"{RESERVED}none".encode()).decode()
        for line in (f"mg {RESERVED}none N30 v", f"mg {key} b N30", f"ma {RESERVED}none N30 J5", f"ma {key} b N30", f"ms {key} 1 b\r\nx",
                     f"ms {RESERVED}none 1 I\r\nx"):
            self.assertEqual(self.conn.ask(line).encode(), NO_PLAIN, line)
        speaker = binary.BinaryConn(self.proxy.port)
        self.addCleanup(speaker.close)
        speaker.send(binary.count(binary.INCR, f"{RESERVED}none", initial=5, exptime=0) + binary.store(binary.SETQ, f"{RESERVED}none", b"x") +
                     binary.store(binary.SET, f"{RESERVED}no ne", b"x"))
        self.assertEqual([speaker.response().status for _ in range(3)], [4] * 3)
        self.assertIsNone(self.server.get(f"{RESERVED}none"))

    def test_a_refused_value_deletes_nothing(self):
        """memcached deletes the item if its new value is too large."""
        self.conn.send(f"set {RESERVED}set 0 0 9000000\r\n".encode() + b"x" * 9000000 + b"\r\n")
        self.assertRegex(self.conn.line(), b"^(SERVER|CLIENT)_ERROR ")
        self.assertEqual(self.server.get(f"{RESERVED}set"), ITEMS["set"])


class Rules(WireTest):
    smoke = True

    def test_plain_verbs_write_members(self):
        conn = self.serve(config='collection "t-" { plain_verbs = true only = true }')
        self.assertEqual(conn.set("t-a", b"ann,bob"), "STORED")
        self.assertEqual(conn.ask("append t-a 0 0 3\r\ncyd"), "STORED")
        self.assertEqual(conn.ask("scard t-a"), "3")
        # These name the item.
        self.assertEqual(conn.ask("ms t-a 1 Pitem\r\nx").encode(), NO_PLAIN)
        self.assertEqual(conn.ask("sadd u-a x").encode(), NO_COLLECTION)

    def test_longest_prefix(self):
        conn = self.serve(config='collection "a-" { only = true }\ncollection "a-b-" { ttl = 60 }')
        self.assertEqual([conn.set(key, b"x").encode() for key in ("a-x", "a-b-x", "x")], [NO_PLAIN, b"STORED", b"STORED"])
        self.assertEqual([conn.ask(f"rpush {key} x").encode() for key in ("a-y", "a-b-y", "y")], [b"STORED", NO_COLLECTION, NO_COLLECTION])

    def test_item_of_removals(self):
        conn = self.serve(config='collection "in-" { encoding = "paired" removed = "out-" only = true }')
        self.assertEqual(conn.ask("sadd in-a ann bob"), "STORED")
        self.assertEqual(conn.ask("srem in-a bob"), "DELETED")
        self.assertEqual(conn.set("out-a", b"x").encode(), NO_PLAIN)
        self.assertEqual(conn.ask("sadd out-a x").encode(), NO_COLLECTION)
        self.assertEqual(conn.ask("scard in-a"), "1")

    def test_events(self):
        conn = self.serve(config='collection "a-" { only = true }\nevents "" { plain_verbs = true }')
        for line in ("incr a-type 1", "set a-type 0 0 1\r\nx", "evincr a-type", "evadd a-type 0 0 1\r\nx", "evlimit a-type 1 60"):
            self.assertEqual(conn.ask(line).encode(), NO_PLAIN, line)
        self.assertEqual(conn.ask("incr b-type 1"), "1")

    def test_reload(self):
        conn = self.serve(config='collection "a-" { ttl = 60 }')
        self.assertEqual(conn.set("a-x", b"x"), "STORED")
        self.proxy.configure(self.proxy.config.replace("ttl = 60", "ttl = 60 only = true"))
        wait_until("the key is reserved", lambda: conn.set("a-x", b"x").encode() == NO_PLAIN)
        self.assertEqual(conn.get("a-x"), b"x")
