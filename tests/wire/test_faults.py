"""Real memcached servers that die, hang and restart, under a load that checks every value.

Delays are not measured, since everything is slow on a busy machine. Instead the timeouts for a server are so long that a test
would fail if any request waited for one of them.
"""
import time

import load
from case import WireTest
from case_large import SMALL, LargeSetTest, names
from harness import EVENLY, wait_until
from stored import counter

KEYS = 20
NEVER = "request_timeout = 600000\nconnect_timeout = 60000"
SOON = "request_timeout = 1000\nconnect_timeout = 60000"


class ServerFault(WireTest):
    alone = True
    config = NEVER

    def setUp(self):
        (self.a, self.b), self.proxy = self.pool(2, config=self.config)
        self.conn = self.connect(self.proxy)
        self.a_keys = self.keys_on(self.conn, self.a, KEYS)
        self.b_keys = self.keys_on(self.conn, self.b, KEYS)
        self.store(self.a_keys + self.b_keys)

    def store(self, keys):
        """Again where a limit passed: the machine may be that slow."""
        for key in keys:
            wait_until(f"{key} is stored", lambda: self.conn.set(key, load.named_value(key)) == "STORED")

    def loaded(self, keys, **kwargs):
        return load.Load(self.proxy.port, keys, **kwargs)

    def error(self, what):
        return f"SERVER_ERROR upstream {self.a.name} {what}"

    def back(self):
        """A key of server a is stored again."""
        key = self.a_keys[0]
        wait_until(f"{self.a.name} is used again", lambda: self.conn.set(key, load.named_value(key)) == "STORED", pause=0.01)

    def goes_down(self):
        key = self.a_keys[0]
        wait_until("it is noticed", lambda: self.conn.values(f"get {key}")[1] == self.error("unavailable"))


class Killed(ServerFault):
    smoke = True

    def test_kill_and_return_under_load(self):
        with self.loaded(self.a_keys) as on_a, self.loaded(self.b_keys) as on_b:
            on_a.gets_on()
            self.a.kill()
            on_a.gets_on()
            on_b.gets_on()
            down = time.monotonic()
            on_a.gets_on()
            on_b.gets_on()
            self.check_errors(on_a, down)
            self.a.start()
            self.back()
            self.store(self.a_keys)
            stored = time.monotonic()
            on_a.gets_on()
        self.assertEqual(on_a.wrong() + on_b.wrong(), [])
        self.assertEqual(on_b.whats(), {"hit"})
        self.assertEqual(on_a.whats(stored), {"hit"})

    def check_errors(self, running, down):
        """The error must be of the right kind: calls in flight are lost, later ones were never sent."""
        lost, unavailable = self.error("connection lost, outcome unknown"), self.error("unavailable")
        self.assertEqual(running.whats(down), {unavailable})
        for events in running.events():
            whats = [event.what for event in events]
            self.assertEqual([what for what in whats if what not in ("hit", lost, unavailable)], [])
            self.assertNotIn(lost, whats[whats.index(unavailable):])

    def test_all_commands_while_down(self):
        self.a.kill()
        key = self.a_keys[0]
        self.goes_down()
        for line in ("get {}", "gets {}", "gat 0 {}", "incr {} 1", "decr {} 1", "delete {}", "touch {} 0", "mg {} v", "md {}",
                     "ma {}", "me {}", "sadd {} a", "saddex {} 9 a", "sexpire {} 9 a", "sttl {} a", "saddx {} a", "srem {} a", "sset {} a", "smembers {}", "scard {}",
                     "sismember {} a", "smismember {} a b", "sinfo {}", "srandmember {}", "spop {} 2", "stake {}", "scompact {}", "sscan {} 5",
                     "srange {} a z 5", "scount {} a z"):
            self.assertEqual(self.conn.ask(line.format(key)), self.error("unavailable"), line)
        for line in ("set {} 0 0 1", "add {} 0 0 1", "append {} 0 0 1", "cas {} 0 0 1 1", "ms {} 1"):
            self.conn.send(line.format(key).encode() + b"\r\nx\r\n")
            self.assertEqual(self.conn.line().decode(), self.error("unavailable"), line)
        self.conn.send(f"set {key} 0 0 1 noreply\r\nx\r\nsadd {key} a noreply\r\nmg {self.b_keys[0]} v\r\n".encode())
        self.assertTrue(self.conn.line().startswith(b"VA "), "noreply is silent for a server that is down as well")
        self.conn.block(len(load.named_value(self.b_keys[0])))
        self.assertEqual(self.conn.ask(f"route {key}"), f"ROUTE {key} {self.a.name}")
        self.assertRegex(self.conn.ask("version"), "^VERSION ")

    def test_kill_with_pipelines_in_flight(self):
        for _ in range(3):
            with self.loaded(self.a_keys + self.b_keys, pipeline=50) as running:
                running.gets_on()
                self.a.kill()
                running.gets_on()
                self.a.start()
                self.back()
            self.assertEqual(running.wrong(), [])
            self.store(self.a_keys)

    def test_restart_between_requests(self):
        """A server was restarted while there were no requests: the next request finds a new connection, or fails once."""
        for _ in range(3):
            self.a.kill()
            self.a.start()
            self.back()
            self.assertEqual(self.conn.get(self.b_keys[0]), load.named_value(self.b_keys[0]))

    def test_both_down(self):
        self.a.kill()
        self.b.kill()

        def noticed():
            found, end = self.conn.values("get " + " ".join(self.a_keys + self.b_keys))
            self.assertEqual(found, {})
            self.assertRegex(end, r"^SERVER_ERROR upstream 127\.0\.0\.1:\d+ (unavailable|connection lost, outcome unknown)$")
            return end.endswith(" unavailable")
        wait_until("it is noticed", noticed)
        self.assertRegex(self.conn.ask("version"), "^VERSION ")
        self.assertEqual(self.conn.ask("mn"), "MN")

    def test_no_server_at_the_start(self):
        self.a.kill()
        proxy = self.setlistd([self.a, self.b], config=self.config)
        with self.connect(proxy) as conn:
            self.assertEqual(conn.values(f"get {self.a_keys[0]}")[1], self.error("unavailable"))
            self.assertEqual(conn.get(self.b_keys[0]), load.named_value(self.b_keys[0]))
            self.a.start()
            wait_until("it is used", lambda: conn.set(self.a_keys[0], b"x") == "STORED", pause=0.01)


class Stopped(ServerFault):
    """SIGSTOP: the kernel still accepts connections for the server, but there are no replies."""
    smoke = True

    def test_others_do_not_wait(self):
        """Other servers are used while the requests to the stopped server wait; they are answered when it continues."""
        with self.loaded(self.b_keys) as running:
            with self.a.process.paused():
                blocked = [self.connect(self.proxy) for _ in range(10)]
                for conn in blocked:
                    conn.send(f"get {self.a_keys[0]}\r\n".encode() * 10)
                for key in self.b_keys * 5:
                    self.assertEqual(self.conn.get(key), load.named_value(key))
                running.gets_on()
            for conn in blocked:
                for _ in range(10):
                    found, _ = conn.read_values()
                    self.assertEqual(found[self.a_keys[0]][1], load.named_value(self.a_keys[0]))
        self.assertEqual((running.wrong(), running.whats()), ([], {"hit"}))


class TimedOut(ServerFault):
    smoke = True
    config = SOON

    def test_stop_and_continue_under_load(self):
        """Each reply belongs to its request, even if the server continues long after the timeout."""
        with self.loaded(self.a_keys + self.b_keys) as running:
            running.gets_on()
            self.a.pause()
            wait_until("the limit passes", lambda: self.error("timed out, outcome unknown") in running.whats())
            running.gets_on(2)
            self.a.resume()
            self.back()
            running.gets_on()
        self.assertEqual(running.wrong(), [])
        whats = [self.error(what) for what in ("timed out, outcome unknown", "unavailable", "connection lost, outcome unknown")]
        others = [f"SERVER_ERROR upstream {self.b.name} timed out, outcome unknown",          # on a machine that stalls
                  f"SERVER_ERROR upstream {self.b.name} unavailable"]
        self.assertLessEqual(running.whats(), {"hit", *whats, *others})

    def test_one_request(self):
        """The error is that the outcome is unknown."""
        with self.a.process.paused():
            self.assertEqual(self.conn.ask(f"incr {self.a_keys[0]} 1"), self.error("timed out, outcome unknown"))
        self.back()


class Pipelined(WireTest):
    """With a timeout that no test reaches, so that replies do not arrive because of it."""
    smoke = True

    def check_replies_before_one_that_hangs(self, others):
        (a, b), proxy = self.pool(2, config="request_timeout = 100000")
        conn, other = self.connect(proxy), self.connect(proxy)
        a_key, b_key = self.key_on(conn, a), self.key_on(conn, b)
        for _ in range(100):  # the number of calls in flight grows with small replies
            self.assertEqual(other.ask(f"get {b_key}"), "END")
        with b.process.paused():
            other.send(f"get {b_key}\r\n".encode() * others)
            conn.send(f"get {a_key}\r\nget {a_key}\r\nget {b_key}\r\n".encode())
            self.assertEqual([conn.line(), conn.line()], [b"END", b"END"])
        self.assertEqual(conn.line(), b"END")

    def test_replies_before_one_that_hangs(self):
        self.check_replies_before_one_that_hangs(0)

    def test_replies_while_very_much_hangs(self):
        """Requests that are held back because servers are busy are sent before the servers are idle."""
        self.check_replies_before_one_that_hangs(500)


class Restarted(ServerFault):
    smoke = True

    def test_a_server_that_comes_back_empty(self):
        """Misses are legal, an old cas id is not accepted as a new one, a set starts again."""
        self.conn.send(f"gets {self.a_keys[0]}\r\n".encode())
        token = self.conn.read_values()[0][self.a_keys[0]][2]
        self.conn.ask(f"sadd {self.a_keys[1]}-set a")
        self.a.kill()
        self.a.start()
        wait_until("it is used again", lambda: self.conn.values(f"get {self.a_keys[0]}") == ({}, "END"), pause=0.01)
        self.conn.send(f"cas {self.a_keys[0]} 0 0 1 {token}\r\nx\r\n".encode())
        self.assertEqual(self.conn.line(), b"NOT_FOUND")
        for key in self.a_keys:
            self.assertEqual(self.conn.ask(f"scard {key}"), "NOT_FOUND")
            self.assertEqual(self.conn.ask(f"sadd {key} a"), "STORED")
            self.assertEqual(self.conn.ask(f"scard {key}"), "1")


class TablesOutOfReach(LargeSetTest):
    """The base of a set is on one server, some of its tables on another one, which does not reply: this is no reason to drop the set."""
    smoke = True
    config = SMALL + '\ncollection "" { spread = 2 }'
    proxy_count = 1

    def setUp(self):
        super().setUp()
        self.a, self.b = self.servers
        # Where tables go is chance, but not for long.
        for self.key in self.keys_on(self.conn, self.a, 20, "set"):
            self.members = self.large_set(self.key, count=3000)
            run, = self.stored(self.key).runs
            self.on_b = [name for name in run.tables if self.at.of(name) is self.at.conns[self.b.name]]
            if len(self.on_b) > 1:
                break
        self.assertGreater(len(self.on_b), 1)
        self.base = self.at.get(self.key)

    def impatient(self):
        """Its errors are returned; the other proxy waits as long as necessary, whatever the machine does."""
        return self.connect(self.setlistd(self.servers, config=f"{self.config}\nrequest_timeout = 1000"))

    def wait_for_b(self, conn):
        wait_until("the server is used again", lambda: conn.values(f"get {self.on_b[0]}")[1] == "END", pause=0.01)

    def test_reads(self):
        """They fail, each with an error, and the set is unchanged when the server continues."""
        conn = self.impatient()
        with self.b.process.paused():
            for command in ("smembers {}", "srandmember {} 500", "spop {} 500", "stake {}", "sscan {} 3000", "srange {} a z 3000", "sinter {}"):
                self.assert_error(command.format(self.key), f"SERVER_ERROR upstream {self.b.name} .*", conn)
            self.assertEqual(conn.ask(f"scard {self.key}"), "3000")
        self.assertEqual(self.at.get(self.key), self.base)
        self.assertEqual(counter(conn, "incomplete_sets"), 0)
        for each in (self.conn, conn):
            self.wait_for_b(each)
            self.assert_members(self.key, self.members, each)

    def test_spilling(self):
        """An unwritten table is never referred to, and the log keeps its tokens until they are in a table."""
        conn = self.impatient()
        more = names(1000, 5000)
        with self.b.process.paused():
            # Past all proxies: none of them is to have a compaction under way.
            stock, log = self.at.of(self.key), b"".join(b"+%s " % member for member in more)
            stock.send(b"append %s 0 0 %d\r\n%s\r\n" % (self.key.encode(), len(log), log))
            self.assertEqual(stock.line(), b"STORED")
            # New tables may all be for the other server, but to merge them the old ones would have to be read.
            for _ in range(5):
                self.assert_error(f"scompact {self.key}", f"SERVER_ERROR (busy|upstream {self.b.name} .*)", conn)
        self.assert_members(self.key, self.members + more)
        self.assertEqual(self.stored(self.key).members(), {*self.members, *more})
        self.compact(self.key)
        self.assertEqual(self.stored(self.key).members(), {*self.members, *more})

    def test_killed(self):
        """If it is replaced by an empty server, the set is missing. It cannot be determined whether other clients see this too."""
        conn = self.connect(self.setlistd(self.servers, config=self.config))
        self.b.kill()
        self.assert_error(f"smembers {self.key}", f"SERVER_ERROR upstream {self.b.name} .*", conn)
        self.assertEqual(self.at.get(self.key), self.base)
        self.b.start()
        self.wait_for_b(conn)
        self.assert_missing(self.key, conn)
        self.assertEqual(self.at.get(self.key), self.base)
        self.assertEqual(self.conn.ask(f"sset {self.key} a"), "STORED")
        self.assert_members(self.key, [b"a"], conn)

    def test_killed_behind_a_view(self):
        """A proxy that has the set in memory checks its tables once the server is back."""
        self.assert_members(self.key, self.members)
        self.b.kill()
        self.b.start()
        self.wait_for_b(self.conn)
        self.assert_missing(self.key)


class NoCas(WireTest):
    """memcached -C: commands without CAS work, the others return the reason."""
    smoke = True
    refusal = "SERVER_ERROR the server returns no cas ids (memcached -C)"

    def test_errors_say_why(self):
        server = self.memcached("-C")
        conn = self.serve([server])
        self.assertEqual(conn.ask("sadd k a b"), "STORED")
        self.assertEqual(conn.ask("sismember k a"), "1")
        self.assertEqual(conn.ask("rpush l a b"), "STORED")
        self.assertEqual(conn.values("lrange l 0 -1")[0]["l"][1], b"a b")
        for command in ("spop k", "stake k", "sset k a", "lpop l"):
            self.assertEqual(conn.ask(command), self.refusal)
        self.assertEqual(self.proxy.process.stderr().count("returns no cas ids"), 1)

    def test_is_said_once(self):
        """However many threads have a connection to the server."""
        proxy = self.setlistd([self.memcached("-C")], "-t", "4", config=EVENLY)
        for conn in [self.connect(proxy) for _ in range(16)]:
            self.assertEqual(conn.ask("sadd k a b"), "STORED")
            self.assertEqual(conn.ask("spop k"), self.refusal)
        self.assertEqual(proxy.process.stderr().count("returns no cas ids"), 1)

    def test_other_encodings(self):
        """A rewrite with the token 0 would overwrite whatever is there."""
        options = {name: "" for name in ("csv", "signed", "tombstone", "paired", "flip", "indexed")}
        options["paired"] = 'removed = "unpaired-"'
        server = self.memcached("-C")
        conn = self.connect(self.setlistd([server], config="\n".join(
            f'collection "{name}-" {{ encoding = "{name}" {more} }}' for name, more in options.items())))
        at = self.connect(server)
        items = "get " + " ".join(f"{name}-k{end}" for name in (*options, "unpaired") for end in ("", ".a", ".b", ".active", ".0"))
        for key in (f"{name}-k" for name in options):
            self.assertEqual(conn.ask(f"sadd {key} a b"), "STORED", key)
            for _ in range(3):
                self.assertEqual(conn.ask(f"sadd {key} c d"), "STORED", key)
                self.assertEqual(conn.ask(f"srem {key} c d"), self.refusal if key == "csv-k" else "DELETED", key)
            before = at.values(items)
            for command in (f"sset {key} e", f"spop {key}", f"stake {key}"):
                self.assertEqual(conn.ask(command), self.refusal, command)
            self.assertEqual(conn.ask(f"scompact {key}"), "OK", key)
            self.assertEqual(before, at.values(items))
