"""Every command, as many times and as large as clients may send it, while the server answers nothing: others still find room in its queue.

The requests are made from the usage of each command, so that a new command is tested too. Only calls are counted. tests/unit/check_costs.c
has the costs that can be counted without a server.
"""
import re

from case import WireTest, marks
from case_access import usages
from harness import wait_until
from stored import stat

QUEUE, GREEDY, HONEST, WORDS = 2048, 8, 40, 300
KEYS = " ".join(f"k{number}" for number in range(WORDS))
MEMBERS = " ".join(f"m{number:06}" for number in range(WORDS))
DATA = MEMBERS.encode()
# The words of a request by those of the usage.
VALUES = {"<key>": "k", "<key>+": KEYS, "<member>": "m", "<member>+": MEMBERS, "<member>*": MEMBERS, "<element>": "m", "<element>+": MEMBERS,
          "<element>*": MEMBERS, "<source>": "k", "<target>": "t", "<flags>": "0", "<exptime>": "100", "<bytes>": str(len(DATA)), "<cas>": "5",
          "<delta>": "1", "<type>": "e", "<n>": str(WORDS), "<limit>": "1000000", "<seconds>": "1", "<token>": "t", "<index>": "0",
          "<pivot>": "m", "<start>": "0", "<stop>": "-1", "<from>": "a", "<to>": "z", "<count>": "100000", "<bucket>": "2018010100",
          "<timeout>": "1", "<ticket>": "x" * 12, "<prefix>": "e", "<class>": "all", "<flag>*": "", "left|right": "left", "before|after": "before"}
# Other requests than the usage makes. None: the connection would end, or others could not be answered meanwhile.
OTHERS = {"evcount": "evcount e 2018010100 2018032523", "quit": None, "stats": None}


def request_of(name, usage):
    """Returns a large request that matches the usage, as bytes; None if there is none."""
    line = OTHERS.get(name, usage)
    if line is None:
        return None
    while "[" in line:
        line = re.sub(r" ?\[[^\[\]]*\]", "", line)
    words = []
    for word in line.split()[1:]:
        if word[0] == "<" or "|" in word:
            if word not in VALUES:
                raise AssertionError(f"no value for {word} of {name}")
            word = VALUES[word]
        words += [word] if word else []
    return " ".join([name, *words]).encode() + b"\r\n" + (DATA + b"\r\n" if "<bytes>" in line else b"")


class EveryCommand(WireTest):
    def setUp(self):
        self.watcher = self.serve(config=f"server_queue = {QUEUE}")
        self.assertEqual(self.watcher.set("v", b"x"), "STORED")
        self.assertEqual(self.watcher.ask("sset k " + MEMBERS), "STORED")
        self.greedy = [self.connect(self.proxy) for _ in range(GREEDY)]
        self.honest = [self.connect(self.proxy) for _ in range(HONEST)]
        for conn in self.greedy + self.honest:      # known to read small values, which are not waited for
            self.assertEqual(conn.get("v"), b"x")

    def count(self, name):
        return stat(self.watcher, "stats upstream", f"{self.servers[0].name}:{name}")

    def check(self, name, request):
        times = 1 if name.startswith("b") else min(64, 4 + 20000 // len(request))   # clients that block do so one second each time
        with self.servers[0].process.paused():
            before = self.count("calls")
            for conn in self.greedy:
                conn.send(request * times + b"mn\r\n")
            for _ in range(10):                     # turns in which more could be sent
                self.watcher.ask("mn")
            for conn in self.honest:
                conn.send(b"get v\r\n")
            wait_until("they are sent", lambda: self.count("calls") >= before + HONEST or self.count("busy"))
            for _ in range(10):
                self.watcher.ask("mn")
            self.assertLessEqual(self.count("calls") - before, QUEUE, name)
        for conn in self.honest:
            self.assertNotIn("busy", conn.read_values()[1], name)
        for conn in self.greedy:
            for line in conn.lines_until("MN"):
                self.assertNotIn("SERVER_ERROR busy", line, name)
        self.assertEqual(self.count("busy"), 0, name)

    def check_all(self, names):
        found = usages(self.watcher)
        for name in names or found:
            request = request_of(name, found[name])
            if request:
                self.check(name, request)

    @marks(smoke=True)
    def test_some(self):
        self.check_all(["get", "gat", "smembers", "sinter", "evcount", "sset"])

    def test_all(self):
        self.check_all(None)
