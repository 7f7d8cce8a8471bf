"""setlistd_rule_reads_total: which keys of a rule were found, and which were missing."""
import json
import re

import binary
from harness import EVENLY, wait_until
from test_admin_port import AdminCase


class RuleCounts(AdminCase):
    """Hits and misses of each rule for sets and lists."""
    smoke = True
    CONFIG = 'commands = "q|"\ncollection "a-" { ttl = 60 }\ncollection "b-" { encoding = "csv" plain_verbs = true }\n' \
             'collection "l-" { type = "list" }\n'

    def counts(self):
        """{prefix: (hits, misses)}, as /metrics has them."""
        found = {}
        for name, value in self.metrics().items():
            if parts := re.fullmatch(r'setlistd_rule_reads_total\{rule="(.*)",result="(hit|miss)"\}', name):
                found.setdefault(json.loads(f'"{parts[1]}"'), {})[parts[2]] = int(value)
        return {prefix: (row["hit"], row["miss"]) for prefix, row in found.items()}

    def serve_rules(self, *args, config=CONFIG):
        self.start(None, config, *args)
        self.conn = self.connect(self.proxy)
        self.assertEqual(self.counts(), {"a-": (0, 0), "b-": (0, 0), "l-": (0, 0)})

    def assert_counts(self, request, prefix, hits, misses):
        before = self.counts()
        self.conn.send(f"{request}\r\nmn\r\n".encode())
        while self.conn.line() != b"MN":
            pass
        after = self.counts()
        self.assertEqual(after, {row["prefix"]: (row["hits"], row["misses"]) for row in self.stats()["rules"]})
        wanted = dict(before)
        wanted[prefix] = before[prefix][0] + hits, before[prefix][1] + misses
        self.assertEqual(after, wanted, request)

    def test_each_kind_of_read(self):
        self.serve_rules()
        for request in ("sadd a-1 x y", "sadd a-2 x", "set b-1 0 0 4\r\nx,y,", "rpush l-1 x y", "set other 0 0 1\r\nx"):
            self.assertEqual(self.conn.ask(request), "STORED")
        for request, prefix, hits, misses in (
                ("scard a-1", "a-", 1, 0), ("scard a-9", "a-", 0, 1), ("sismember a-1 z", "a-", 1, 0), ("smembers a-1 a-9", "a-", 1, 1),
                ("sismember a-9 z", "a-", 0, 1), ("get q|scard|a-1", "a-", 1, 0), ("get q|scard|a-9", "a-", 0, 1), ("get a-1", "a-", 1, 0),
                ("get a-1 a-8 a-9", "a-", 1, 2), ("gets a-9", "a-", 0, 1), ("mg a-1 v", "a-", 1, 0), ("mg a-9 v", "a-", 0, 1),
                ("get b-1", "b-", 1, 0), ("get b-9", "b-", 0, 1), ("scard b-1", "b-", 1, 0), ("mg b-9 v", "b-", 0, 1), ("get b-1 b-9", "b-", 1, 1),
                ("llen l-1", "l-", 1, 0), ("lrange l-9 0 1", "l-", 0, 1), ("lindex l-1 0", "l-", 1, 0), ("lpos l-1 z", "l-", 0, 0),
                ("get other none", "a-", 0, 0), ("sadd a-1 z", "a-", 0, 0), ("set a-7 0 0 1\r\nx", "a-", 0, 0), ("delete a-7", "a-", 0, 0)):
            self.assert_counts(request, prefix, hits, misses)
        with binary.BinaryConn(self.proxy.port) as speaker:
            before = self.counts()
            speaker.request(binary.GET, "a-1")
            speaker.request(binary.GET, "a-9")
            self.assertEqual(self.counts(), {**before, "a-": (before["a-"][0] + 1, before["a-"][1] + 1)})

    def test_threads_and_reset(self):
        self.serve_rules("-t", "3", config=EVENLY + "\n" + self.CONFIG)
        conns = [self.connect(self.proxy) for _ in range(6)]
        for conn in conns:
            self.assertIsNone(conn.get("a-1"))
        self.assertEqual(self.counts()["a-"], (0, 6))
        self.assertEqual(conns[0].ask("stats reset"), "RESET")
        self.assertEqual(self.counts()["a-"], (0, 0))
        self.assertIsNone(conns[0].get("a-1"))
        self.assertEqual(self.counts()["a-"], (0, 1))

    def test_reloads(self):
        """The counts of a rule that stays continue, wherever it is in the file. The counts of a removed rule are dropped."""
        self.serve_rules("-t", "2")
        for _ in range(5):
            self.assertIsNone(self.conn.get("a-1"))
        self.assertIsNone(self.conn.get("b-1"))
        config = self.proxy.config
        for number in range(20):
            rules = f'collection "new-{number}-" {{ ttl = 5 }}\ncollection "a-" {{ ttl = {number + 1} }}\n'
            self.proxy.configure(config[:config.index("collection")] + rules)
            wait_until("only the new rules are left", lambda: set(self.counts()) == {"a-", f"new-{number}-"})
            self.assertEqual(self.counts()["a-"], (0, 5 + number))
            self.assertIsNone(self.conn.get("a-1"))
        self.proxy.configure(config)
        wait_until("the rules are back", lambda: self.counts() == {"a-": (0, 25), "b-": (0, 0), "l-": (0, 0)})

    def test_odd_prefixes(self):
        """A label is text, whatever bytes the prefix has."""
        self.start(None, 'collection "\u00e9\\\\\\"" { ttl = 60 }\ncollection "" { ttl = 50 }\n')
        conn = self.connect(self.proxy)
        conn.send('get \u00e9\\"x x\r\n'.encode())
        self.assertEqual(conn.line(), b"END")
        self.assertEqual(self.counts(), {"": (0, 1), '\\xc3\\xa9\\x5c"': (0, 1)})
