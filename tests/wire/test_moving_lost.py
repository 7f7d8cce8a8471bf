"""A former server that is permanently down: setlistd-move skips it, and its keys are missing."""
import itertools
import sys
import time

import xxhash

from harness import BUILD_LIMIT, HOST, run_program, setlistd, wait_until
from stored import stats
from test_moving import MARK_FLAGS, MOVE, Moving, pool
from wire import Conn


class Lost(Moving):
    """A former server dies for good while keys move."""
    smoke = True
    PROXIES, CLIENTS = 1, 0

    def setUp(self):
        self.former, self.new = [self.memcached() for _ in range(3)], [self.memcached() for _ in range(2)]
        self.start(self.former)
        self.conn = self.connect(self.proxies[0])
        self.keys = {server: self.keys_on(self.conn, server, 20) for server in self.former}
        for key in itertools.chain(*self.keys.values()):
            self.assertEqual(self.conn.set(key, b"5"), "STORED")
        self.dead = self.former[0]
        self.text = self.moving(self.new, time.time() - 10)
        self.reload(0, self.text)
        # The first former server in the list.
        self.assertEqual([name for name in stats(self.conn, "stats upstream") if name.endswith(":state")][2], f"{self.dead.name}:state")
        self.dead.kill()
        wait_until("it is down", lambda: "unavailable" in self.conn.ask(f"get {self.keys[self.dead][0]}"))

    def run_move(self, *args):
        return run_program(sys.executable, MOVE, *args, f"{HOST}:{self.proxies[0].port}", limit=BUILD_LIMIT)

    def assert_others_moved(self):
        for server in self.former[1:]:
            self.assertEqual(self.names_of(server), [])
            for key in self.keys[server]:
                self.assertEqual(self.conn.get(key), b"5")

    def names_of(self, server):
        with Conn(server.port) as conn:
            conn.send(b"lru_crawler metadump all\r\n")
            return [line for line in conn.lines_until("END")[:-1]]

    def test_the_others_move(self):
        done = self.run_move()
        self.assertEqual(done.returncode, 3, done)
        self.assertIn(self.dead.name, done.stderr)
        self.assertIn("--lost", done.stderr)
        self.assert_others_moved()
        done = self.run_move("--lost", self.dead.name)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("nothing is left", done.stdout)

    def test_only_what_is_down_is_lost(self):
        for name, word in ((self.former[1].name, "it is up"), ("127.0.0.1:1", "the servers are")):
            done = self.run_move("--lost", name)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(word, done.stderr)

    def declare(self):
        self.reload(0, self.text + pool("lost_servers", [self.dead]))

    def test_its_keys_are_missing(self):
        """They can be written immediately, as after a restart of the server."""
        keys = iter(self.keys[self.dead])
        self.assertEqual(self.conn.ask(f"incr {next(keys)} 1").split()[0], "SERVER_ERROR")
        self.declare()
        self.assertNotIn(f"{self.dead.name}:state", stats(self.conn, "stats upstream"))
        self.assertRegex(self.conn.ask(f"route {next(keys)}"), "^ROUTE .* from lost$")
        for requests in (("get {}", "END"), ("incr {} 1", "NOT_FOUND"), ("delete {}", "NOT_FOUND"), ("touch {} 9", "NOT_FOUND"), ("mg {} v", "EN"),
                         ("scard {}", "NOT_FOUND"), ("replace {} 0 0 1\r\nx", "NOT_STORED"), ("cas {} 0 0 1 7\r\nx", "NOT_FOUND"),
                         ("add {} 0 0 1\r\nx", "STORED", "get {}", "VALUE {} 0 1", "", "x", "", "END"),
                         ("set {} 0 0 1\r\nx", "STORED", "append {} 0 0 1\r\ny", "STORED", "mg {} v", "VA 2", "", "xy"),
                         ("sadd {} a b", "STORED", "scard {}", "2"), ("rpush {} a b", "STORED", "lpop {}", "VALUE {} 0 1", "", "a", "", "END"),
                         ("ms {} 1\r\nx", "HD", "md {}", "HD", "mg {}", "EN"), ("ma {} N0 J5 v", "VA 1", "", "5", "incr {} 1", "6")):
            key = next(keys)
            for request, reply in zip(requests[::2], requests[1::2], strict=True):
                found = self.conn.ask(request.format(key)) if request else self.conn.line().decode()
                self.assertEqual(found, reply.format(key), requests)

    def test_nothing_is_left(self):
        """Also the remains of its moves on the new servers."""
        claim, copy, kept, *_ = self.keys[self.dead]
        for key, text in ((claim, "@claim.{} "), (copy, "@copy.{}.7.99.1.5 value")):
            there = next(server for server in self.new if server.name == self.conn.ask(f"route {key}").split()[2])
            value = text.format(xxhash.xxh64(key.encode(), seed=0).intdigest()).encode()
            self.assertEqual(self.connect(there).set(key, value, flags=MARK_FLAGS), "STORED")
        self.declare()
        self.assertEqual(self.conn.set(kept, b"x"), "STORED")
        done = self.run_move()
        self.assertEqual(done.returncode, 0, done)
        self.assert_others_moved()
        self.finish()
        self.assertEqual(self.conn.values(f"get {claim} {copy} {kept}")[0], {copy: (7, b"value"), kept: (0, b"x")})

    def test_wrong_configurations(self):
        folder = self.scratch()
        for text, word in ((self.text + 'lost_servers = {"127.0.0.1:1"}', "lost_servers: 127.0.0.1:1 is not in former_servers"),
                           (pool("servers", self.new) + pool("lost_servers", [self.dead]), "former_servers: needed with lost_servers"),
                           (self.text + 'lost_servers = {"--SERVER=127.0.0.1:1"}', "lost_servers: list the servers one by one")):
            with open(f"{folder}/conf", "w", encoding="utf-8") as file:
                file.write(text)
            self.assert_refused(setlistd("-T", "-f", f"{folder}/conf"), word)
