"""setlistd-check finds keys whose copies differ, and makes setlistd repair them."""
import json
import os
import sys
import time
import urllib.parse

from case import WireTest, marks
from harness import BUILD_LIMIT, HOST, run_program, wait_until
from stored import stats

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/check")
SERVERS, LARGE = 4, 2000
RULES = """
log_size = 1024
table_size = 4096
collection "s:" {
    copies = 2
    only = true
}
events "e:" {
    copies = 2
}
"""


class Check(WireTest):
    def setUp(self):
        self.serve(SERVERS, config=RULES)

    def route(self, key):
        """Returns connections to the servers of both copies."""
        words = self.conn.ask(f"route {key}").split(" ")
        self.assertEqual((len(words), words[3]), (5, "copy"), words)
        return [self.direct(words[2]), self.direct(words[4])]

    def direct(self, name):
        return self.connect(next(server for server in self.servers if server.name == name))

    def check(self, status, *args, wait=2):
        done = run_program(sys.executable, CHECK, "--json", "--wait", str(wait), *args, f"{HOST}:{self.proxy.port}", limit=BUILD_LIMIT)
        self.assertEqual(done.returncode, status, done)
        return json.loads(done.stdout)

    def store(self):
        for i in range(20):
            self.assertEqual(self.conn.ask(f"sadd s:{i} a b c{i}"), "STORED")
        members = " ".join(f"member-{i}" for i in range(LARGE))
        self.assertEqual(self.conn.ask(f"sset s:large {members}"), "STORED")
        self.assertEqual(self.conn.ask("evincr e:views 5"), "5")
        return 22

    def members(self, key):
        return set(self.conn.values(f"smembers {key}")[0][key][1].decode().split())

    def keys_on(self, conn):
        """Returns the keys of a server."""
        conn.send(b"lru_crawler metadump hash\r\n")
        found = []
        while (line := conn.line()) != b"END":
            found.append(urllib.parse.unquote(line.decode().split(" ")[0][len("key="):]))
        return found

    def differs(self, kind, key):
        found = self.check(1)
        self.assertEqual((found["differ"], found["kinds"], found["first"]), (1, {kind: 1}, [{"key": key, "kind": kind}]))
        self.assertGreater(found["ratio"], 0)
        found = self.check(0, "--repair", wait=6)
        self.assertEqual((found["differ"], found["repaired"]), (0, 1))
        self.assertEqual(self.check(0)["differ"], 0)

    @marks(smoke=True)
    def test_equal(self):
        self.assertEqual(self.check(0)["keys"], 0)
        keys = self.store()
        found = self.check(0)
        self.assertEqual((found["keys"], found["differ"], found["ratio"], found["first"]), (keys, 0, 0, []))

    def test_missing_copies(self):
        self.store()
        for number, which, key in (3, 1, "s:3.~copy"), (4, 0, "s:4"):
            self.assertEqual(self.route(f"s:{number}")[which].ask(f"delete {key}"), "DELETED")
            self.differs("missing", f"s:{number}")
            self.assertEqual(self.members(f"s:{number}"), {"a", "b", f"c{number}"})

    def test_words_in_one_copy(self):
        self.store()
        _, second = self.route("s:3")
        self.assertEqual(second.ask("append s:3.~copy 0 0 3\r\n+x "), "STORED")
        time.sleep(3)       # younger words may be on their way
        self.differs("words", "s:3")
        self.assertEqual(self.members("s:3"), {"a", "b", "c3", "x"})

    def test_lost_part(self):
        self.store()
        parts = [(conn, key) for conn in map(self.connect, self.servers) for key in self.keys_on(conn) if key.startswith("s:large.~copy.")]
        self.assertGreater(len(parts), 2)
        for conn, part in (parts[0], parts[-1]):
            self.assertEqual(conn.ask(f"delete {part}"), "DELETED")
            self.differs("part", "s:large")

    def test_counter(self):
        self.store()
        counter = next(key for conn in map(self.connect, self.servers) for key in self.keys_on(conn) if key.startswith("e:") and ".~" not in key)
        first, _ = self.route(counter)
        self.assertEqual(first.ask(f"set {counter} 0 0 1\r\n3"), "STORED")
        found = self.check(1)
        self.assertEqual(found["first"], [{"key": counter, "kind": "value"}])
        self.check(0, "--repair", wait=20)
        self.assertEqual(first.values(f"get {counter}")[0][counter][1], b"5")

    def test_copies_are_turned_on(self):
        """Sets that were stored with one copy get their second one."""
        plain = self.connect(self.setlistd(self.servers, config="log_size = 1024\ntable_size = 4096"))
        for i in range(30):
            self.assertEqual(plain.ask(f"sadd s:{i} a b"), "STORED")
        self.assertEqual(plain.ask("sset s:large " + " ".join(f"member-{i}" for i in range(LARGE))), "STORED")
        found = self.check(1, "--show", "3")
        self.assertEqual((found["keys"], found["kinds"], len(found["first"])), (31, {"missing": 31}, 3))
        found = self.check(0, "--repair", wait=6)
        self.assertEqual((found["keys"], found["repaired"]), (31, 31))
        self.assertEqual(self.conn.ask("scard s:large"), str(LARGE))
        self.assertEqual(self.check(0)["keys"], 31)

    @marks(smoke=True)
    def test_server_down(self):
        self.store()
        self.servers[1].kill()
        found = self.check(3)
        self.assertEqual((found["differ"], list(found["unread"])), (0, [self.servers[1].name]))
        self.assertGreater(found["uncompared"], 0)

    @marks(smoke=True)
    def test_facts(self):
        def fact(group, name):
            return int(stats(self.conn, f"stats {group}")[name])
        self.store()
        down = self.conn.ask("route s:3").split(" ")[4]
        self.assertEqual(fact("upstream", f"{down}:absent"), 0)
        next(server for server in self.servers if server.name == down).kill()
        self.assertEqual(self.conn.ask("sadd s:3 d"), "STORED")
        wait_until("the server is absent", lambda: fact("upstream", f"{down}:absent") == 1)
        self.assertGreater(fact("collections", "absences_raised"), 0)
        self.assertGreater(fact("collections", "repairs_waiting"), 0)
        self.assertEqual(fact("collections", "lost_sets"), 0)

    @marks(smoke=True)
    def test_repair_of_one_key(self):
        self.assertEqual(self.conn.ask("repair other"), "CLIENT_ERROR no rule gives this key two copies")
        self.assertEqual(self.conn.ask("repair s:a x"), "CLIENT_ERROR usage: repair <key> [b]")
        self.assertEqual(self.conn.ask("repair s:a"), "OK")
        self.assertEqual(self.conn.ask("repair czph b"), "OK")
