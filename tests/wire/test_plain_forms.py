"""plain_verbs: memcached's commands on a set, a list and a type of events, in the three protocols, with the same effects and replies."""
import itertools

from case import WireTest, marks
from forms import FORMS, MODES, TEXT, Request, Speaker

SETTINGS = """
collection "set-" { plain_verbs = true }
collection "flip-" { encoding = "flip" plain_verbs = true }
collection "list-" { type = "list" plain_verbs = true }
events "type-" { bucket = "day" plain_verbs = true }
"""
KINDS = ("set-", "flip-", "list-", "type-")
# Of each kind there is a key of either state.
PRESENT, MISSING = "present", "missing"
VERBS = ("get", "gat", "set", "add", "replace", "append", "prepend", "cas", "delete", "touch", "incr", "decr")
DATA = (b"ann,bob", b"", b"cyd,", b"a b", b"m" * 251, b"x" * (2 << 20))


class Forms(WireTest):
    smoke = True

    def setUp(self):
        self.serve(2, config=SETTINGS)
        self.count = 0
        self.speakers = {form: Speaker(form, self.proxy.port) for form in FORMS}
        for speaker in self.speakers.values():
            self.addCleanup(speaker.close)

    def prepare(self, key):
        if not key.endswith(PRESENT):
            return
        if key.startswith("type-"):
            self.assertEqual(self.conn.ask(f"incr {key} 5"), "5")
        else:
            self.assertEqual(self.conn.set(key, b"ann,dee", 9), "STORED")

    def state(self, key):
        """The result for a later reader: flags, value, time to live."""
        self.conn.send(f"mg {key} f v t\r\n".encode())
        line = self.conn.line()
        if not line.startswith(b"VA "):
            return line
        _, size, flags, ttl = line.split(b" ")
        # The members of a set are in no order.
        return flags, sorted(self.conn.block(int(size)).split(b",")), ttl == b"t-1" or ttl[1:].isdigit() and int(ttl[1:]) > 800

    def same(self, verb, kind, state, **words):
        """Each protocol has its own key, in the same state before and after the request."""
        self.count += 1
        keys = {form: f"{kind}{self.count}{form[0]}-{state}" for form in FORMS}
        outcomes, states = {}, {}
        for form, speaker in self.speakers.items():
            self.prepare(keys[form])
            outcome = speaker.ask(Request(verb, keys[form], **words))
            outcomes[form] = outcome[:2] + (sorted(outcome[2].split(b",")),) if outcome[0] == "value" else outcome
            states[form] = self.state(keys[form])
        with self.subTest(verb, kind=kind, state=state, data=words["data"][:20], exptime=words["exptime"]):
            self.assertEqual(outcomes, dict.fromkeys(FORMS, outcomes[TEXT]))
            self.assertEqual(states, dict.fromkeys(FORMS, states[TEXT]))

    @marks(smoke=False)
    def test_every_verb(self):
        for kind, state, verb in itertools.product(KINDS, (PRESENT, MISSING), VERBS):
            # Other protocols than text read to touch, and a type can be read.
            if verb == "touch" and kind == "type-":
                continue
            for data in DATA if verb in MODES else (b"",):
                for exptime in (0, 1000):
                    self.same(verb, kind, state, data=data, flags=3, exptime=exptime, number=7)
        self.assertGreater(self.count, 600)

    def test_cas(self):
        """The id that a form reads is good for its own cas, once."""
        for kind in ("set-", "flip-", "list-"):
            for form, speaker in self.speakers.items():
                key = f"{kind}{form}-{PRESENT}"
                self.prepare(key)
                self.assertEqual(speaker.ask(Request("get", key))[:2], ("value", 9))
                request = Request("cas", key, b"eve", flags=4, number=speaker.cas)
                self.assertEqual([speaker.ask(request) for _ in range(2)], [("done",), ("exists",)], key)
                self.assertEqual(speaker.ask(Request("get", key)), ("value", 4, b"eve,"))


class Stored(WireTest):
    smoke = True

    def test_debug_sees_the_item(self):
        """me refers to the item, even with plain_verbs; the servers have the results of the other commands."""
        conn = self.serve(config=SETTINGS)
        self.assertEqual(conn.ask("ms set-a 8\r\nann,bob,"), "HD")
        self.assertRegex(conn.ask("me set-a"), r"^ME set-a exp=-1 .*")
        self.assertEqual(self.connect(self.servers[0]).get("set-a"), b"+ann +bob ")
