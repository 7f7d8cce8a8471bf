"""Expectations of memcached's clients and monitors: the version, the statistics, and refused values."""
import select
import time

from binary import (APPEND, DECR, DELETE, GAT, GET, GETQ, INCR, NOOP, SET, STAT, TOUCH, VERSION, BinaryConn, count, packet, store,
                    touch)
from case import WireTest
from case_encodings import ENCODINGS, EncodingTest
from harness import setlistd, wait_until
from stored import stat, stats
from wire import Conn


class Version(WireTest):
    """The version is that of the servers, as one word, in every protocol."""
    smoke = True

    def said(self):
        """The replies of each protocol, without duplicates."""
        with Conn(self.proxy.port) as conn, BinaryConn(self.proxy.port) as binary:
            return {conn.ask("version").removeprefix("VERSION "), stats(conn)["version"],
                    binary.request(VERSION).value.decode(), self.binary_stats(binary)[b"version"].decode()}

    def binary_stats(self, conn):
        conn.request(STAT)
        found = {}
        while (response := conn.response()).key:
            found[response.key] = response.value
        return found

    def test_oldest_when_they_differ(self):
        self.serve([self.scripted_server(version=version) for version in (b"1.6.31", b"1.6.9", b"1.6.18")])
        self.assertEqual(self.said(), {"1.6.9"})

    def test_none_is_known(self):
        self.serve([self.scripted_server(hang_up=True)])
        self.assertEqual(self.said(), {"1.6.0"})

    def test_own(self):
        self.serve([self.scripted_server()])
        self.assertEqual("setlistd " + stats(self.conn)["setlistd_version"], setlistd("-V").stdout.strip())


class CasIds(EncodingTest):
    """Clients keep a cas id in 64 bits with a sign, or in a double."""
    smoke = True

    def test_small_enough(self):
        for name in ENCODINGS:
            for number in range(8):
                k = f"{name}.verbs-{number}"
                self.expect((f"sadd {k} ann bob", "STORED"), (f"srem {k} bob", "DELETED"))
                cas = self.conn.values(f"gets {k}")[0][k][2]
                self.assertTrue(0 < cas < 1 << 53, f"{k}: {cas}")
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas + 1}\r\nzoe"), "EXISTS", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "STORED", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "EXISTS", k)
                self.expect((f"sismember {k} zoe", "1"), (f"scard {k}", "1"))


class Swallowed(WireTest):
    """A refused request is answered after its data was received: a client that is still sending does not read, or treats the error
    as the end."""
    smoke = True
    PART = 100000
    LATE = "SERVER_ERROR object too large for cache"

    def setUp(self):
        self.serve(config="max_value = 1048576\n")
        self.watcher = self.connect(self.proxy)

    def is_silent(self, conn, sent):
        """Returns whether nothing was answered."""
        wait_until("all was read", lambda: stat(self.watcher, "stats", "bytes_read") >= sent)
        for _ in range(3):
            self.watcher.ask("version")
        return not select.select([conn.sock], [], [], 0)[0]

    def check(self, conn, head, data, end):
        """Half of the data, and silence; the rest, and the reply is for the caller to read."""
        before = stat(self.watcher, "stats", "bytes_read")
        conn.send(head + data[:self.PART])
        self.assertTrue(self.is_silent(conn, before + len(head) + self.PART), head)
        conn.send(data[self.PART:] + end)

    def test_text_and_meta(self):
        data = b"x" * (1 << 21)
        for line, error in (("set k 0 0 2097152", self.LATE), ("set k 0 0 2097152 noreply", None), ("cas k 0 0 2097152 1", self.LATE),
                            ("ms k 2097152", self.LATE), ("ms k 2097152 T5 q", self.LATE), ("append k 0 0 2097152", self.LATE),
                            ("set " + "k" * 251 + " 0 0 2097152", "CLIENT_ERROR key too long"),
                            ("set k x 0 2097152", "CLIENT_ERROR usage: set <key> <flags> <exptime> <bytes> [noreply]"),
                            ("ms k 2097152 Fx", "CLIENT_ERROR bad token in command line format"),
                            ("evadd E 0 0 2097152", self.LATE)):
            self.assertEqual(self.conn.set("k", b"old"), "STORED")
            self.check(self.conn, line.encode() + b"\r\n", data, b"\r\nmn\r\n")
            self.assertEqual([self.conn.line() for _ in range(2 if error else 1)], ([error.encode()] if error else []) + [b"MN"], line)
            kept = not line.startswith(("set k 0", "ms k 2097152 T", "ms k 2097152")) or line.endswith("Fx")
            self.assertEqual(self.conn.get("k"), b"old" if kept else None, line)

    def test_bare_line_feeds(self):
        self.check(self.conn, b"set k 0 0 2097152\n", b"x" * (1 << 21), b"\nmn\n")
        self.assertEqual([self.conn.line(), self.conn.line()], [self.LATE.encode(), b"MN"])

    def test_earlier_replies_are_not_held_back(self):
        self.conn.send(b"get nothing\r\nset k 0 0 2097152\r\nx")
        self.assertEqual(self.conn.line(), b"END")
        self.conn.send(b"x" * ((1 << 21) - 1) + b"\r\nget nothing\r\n")
        self.assertEqual([self.conn.line(), self.conn.line()], [self.LATE.encode(), b"END"])

    def test_binary(self):
        conn = BinaryConn(self.proxy.port)
        self.addCleanup(conn.close)
        data = b"x" * (1 << 21)
        for request, status in ((store(SET, "k", data, opaque=7), 3), (packet(APPEND, "k", value=data, opaque=7), 3),
                                (packet(0x30, value=data, opaque=7), 0x81), (store(SET, " " * 200, data, opaque=7), 4)):
            head = request[:-len(data)]
            self.check(conn, head, data, packet(NOOP, opaque=8))
            self.assertEqual([(response.status, response.opaque) for response in (conn.response(), conn.response())],
                             [(status, 7), (0, 8)], head)

    def test_client_that_goes_meanwhile(self):
        """Nothing is left of it, and it is not answered."""
        with Conn(self.proxy.port) as conn:
            conn.send(b"set k 0 0 2097152\r\nxxx")
        wait_until("it has gone", lambda: stat(self.watcher, "stats", "curr_connections") == 2)
        self.assertEqual(self.conn.get("k"), None)


# The lines of `stats` that memcached_exporter parses: without those that it sums up, it reports memcached_up 0.
SUMMED = ("cmd_set", "cas_hits", "cas_misses", "cas_badval")
TIMES = ("rusage_user", "rusage_system")
EXPORTED = [f"{command}_{result}" for command in ("get", "delete", "incr", "decr", "cas", "touch") for result in ("hits", "misses")] + """
    cas_badval cmd_flush uptime time bytes limit_maxbytes curr_items total_items bytes_read bytes_written curr_connections
    total_connections rejected_connections listen_disabled_num evictions reclaimed store_too_large store_no_memory lru_crawler_starts
    direct_reclaims crawler_items_checked crawler_reclaimed moves_to_cold moves_to_warm moves_within_lru accepting_conns""".split()
# The lines that Datadog's check reads.
CHECKED = """total_items curr_items limit_maxbytes uptime bytes curr_connections max_connections connection_structures threads pointer_size
    rusage_user rusage_system cmd_get cmd_set cmd_flush get_hits get_misses delete_misses delete_hits evictions bytes_read bytes_written
    cas_misses cas_hits cas_badval total_connections listen_disabled_num""".split()
COUNTED = [f"{command}_{result}" for command in ("get", "touch", "delete", "incr", "decr", "cas") for result in ("hits", "misses")]
COUNTED += ["cas_badval", "cmd_get", "cmd_touch", "cmd_set"]
SUMS = ("curr_items", "total_items", "bytes", "limit_maxbytes", "evictions")


class Statistics(WireTest):
    """memcached's general statistics are there, and true."""
    smoke = True

    def test_exporter_finds_all(self):
        self.serve(2)
        self.assertEqual(self.conn.set("k", b"v"), "STORED")
        found = stats(self.conn)
        self.assertEqual([name for name in SUMMED + TIMES + tuple(EXPORTED) if name not in found], [])
        for name in SUMMED + tuple(EXPORTED):
            float(found[name])
        for name in TIMES:
            seconds, micros = found[name].split(".")
            self.assertEqual((len(micros), seconds.isdigit(), micros.isdigit()), (6, True, True), found[name])
        self.assertGreaterEqual(float(found["cmd_set"]), sum(float(found[name]) for name in SUMMED[1:]))
        self.assertEqual(len(found["version"].split()), 1)
        for group in ("items", "slabs"):
            self.assertEqual(self.conn.ask(f"stats {group}"), "END")

    def test_datadog_finds_all(self):
        self.serve(2)
        with BinaryConn(self.proxy.port) as conn:
            found = Version.binary_stats(self, conn)
        self.assertEqual([name for name in CHECKED if name.encode() not in found], [])
        for name in CHECKED:
            float(found[name.encode()])

    def test_sums_of_the_servers(self):
        self.serve(3)
        for number in range(100):
            self.assertEqual(self.conn.set(f"key-{number}", b"v" * number), "STORED")
        own = [stats(self.connect(server)) for server in self.servers]
        sums = {name: sum(int(each[name]) for each in own) for name in SUMS}
        self.assertEqual(sums["curr_items"], 100)
        # On a busy machine a server may be too slow to be included immediately.
        wait_until("the sums are told", lambda: (found := stats(self.conn)) and {name: int(found[name]) for name in SUMS} == sums)

    def test_server_that_is_down_or_stuck(self):
        """The others are included, without waiting for it."""
        good = self.memcached()
        stuck, dead = self.scripted_server(), self.scripted_server(hang_up=True)
        self.serve([good, stuck, dead], config="request_timeout = 600000\n")
        self.conn.ask("version")  # setlistd has greeted all servers
        stuck.mute = True
        key = self.key_on(self.conn, good)
        self.assertEqual(self.conn.set(key, b"v"), "STORED")
        wait_until("the others count", lambda: stats(self.conn)["curr_items"] == "1")

    def test_servers_are_asked_rarely(self):
        """However often a client sends it, and never for other requests."""
        server = self.scripted_server()
        self.serve([server])
        asked = lambda: sum(request.words == [b"stats"] for link in server.links for request in link.requests)
        self.conn.get("key-1")
        greeted = asked()                   # the greeting reads the clock
        for group in ("upstream", "collections", "latency", "settings"):
            stats(self.conn, f"stats {group}")
        self.assertEqual((greeted, asked()), (1, 1))
        start = time.monotonic()
        for _ in range(50):
            stats(self.conn)
        self.assertLessEqual(asked() - greeted, 1 + (time.monotonic() - start) / 4)
        wait_until("the server is asked", asked)

    def both(self, *lines):
        """The same lines for setlistd and for memcached, and their values."""
        found = []
        for conn in (self.conn, self.plain):
            conn.ask("set a 0 0 1\r\n1")
            conn.ask("delete x")
            before = stats(conn)
            conn.send("".join(line + "\r\n" for line in lines).encode() + b"mn\r\n")
            while conn.line() != b"MN":
                pass
            after = stats(conn)
            found.append({name: int(after[name]) - int(before[name]) for name in COUNTED if after[name] != before[name]})
        self.assertEqual(found[0], found[1], lines)
        return found[0]

    def test_hits_and_misses_as_memcached(self):
        self.serve(2)
        self.plain = self.connect(self.memcached())
        self.assertEqual(self.both("get a x"), {"get_hits": 1, "get_misses": 1, "cmd_get": 2})
        for lines in (["get a"], ["get x"], ["gets a a x"], ["gat 0 a x"], ["gat 0 a"], ["gats 0 x"], ["touch a 0"], ["touch x 0"], ["delete a"],
                      ["delete x"], ["incr a 1"], ["incr x 1"], ["decr a 1"], ["decr x 1"], ["cas x 0 0 1 1", "1"], ["cas a 0 0 1 1", "1"],
                      ["set a 0 0 1", "1"], ["set a 0 0 1 noreply", "1"], ["add a 0 0 1", "1"], ["append x 0 0 1", "1"],
                      ["set a 0 0 2", "xx", "incr a 1"], ["mg a v"], ["mg x v"], ["mg a T0 v"], ["mg a"], ["mg x v N30"], ["ms a 1", "1"], ["ms a 1 C1", "1"],
                      ["ms x 1 C1", "1"], ["md a"], ["md x"], ["md a C1"], ["md a q"], ["ma a"], ["ma x"], ["ma a MD"], ["ma x M-"],
                      ["ma a C1"], ["me a"], ["ms a 1 ME", "1"], ["ms x 1 MR", "1"]):
            self.both(*lines)

    def test_cas_that_succeeds(self):
        self.serve()
        self.assertEqual(self.conn.set("a", b"1"), "STORED")
        cas = self.conn.values("gets a")[0]["a"][2]
        self.assertEqual([self.conn.ask(f"cas a 0 0 1 {cas}\r\n2") for _ in range(2)], ["STORED", "EXISTS"])
        found = stats(self.conn)
        self.assertEqual([found[name] for name in ("cas_hits", "cas_badval", "cas_misses", "cmd_set")], ["1", "1", "0", "3"])

    def test_sets_and_commands_as_keys(self):
        """A set with plain_verbs is an item to these counters; a command as a key is one if it has a value.

        setlistd's own commands are not counted.
        """
        self.serve(config='commands = "q|"\ncollection "s-" { type = "set" plain_verbs = true }\n')
        self.assertEqual(self.conn.ask("sadd s-1 ann"), "STORED")
        self.conn.ask("scard s-1")
        for line in ("get s-1", "get s-2", "get q|scard|s-1", "get q|scard|s-2", "get q|scard|s-1 s-1 s-2", "mg s-1 v", "mg s-2 v"):
            self.conn.send(line.encode() + b"\r\nmn\r\n")
            while self.conn.line() != b"MN":
                pass
        self.assertEqual([self.conn.ask(line) for line in ("touch s-1 0", "touch s-2 0", "delete s-1", "delete s-1")],
                         ["TOUCHED", "NOT_FOUND", "DELETED", "NOT_FOUND"])
        found = stats(self.conn)
        self.assertEqual({name: found[name] for name in COUNTED if found[name] != "0"},
                         {"get_hits": "5", "get_misses": "4", "cmd_get": "9", "touch_hits": "1", "touch_misses": "1", "cmd_touch": "2",
                          "delete_hits": "1", "delete_misses": "1"})

    def test_binary(self):
        self.serve()
        with BinaryConn(self.proxy.port) as conn:
            conn.send(store(SET, "a", b"1"))
            cas = conn.response().cas
            conn.send(b"".join((packet(GET, "a"), packet(GETQ, "x"), touch(GAT, "a", 0), touch(TOUCH, "x", 0), count(INCR, "a"), count(DECR, "x"),
                                store(SET, "a", b"2", cas=cas), packet(DELETE, "a"), packet(DELETE, "a"), packet(NOOP, opaque=9))))
            conn.until_noop(9)
        found = stats(self.conn)
        self.assertEqual({name: found[name] for name in COUNTED if found[name] != "0"},
                         {"get_hits": "1", "get_misses": "1", "cmd_get": "2", "touch_hits": "1", "touch_misses": "1", "cmd_touch": "2",
                          "incr_hits": "1", "decr_misses": "1", "cas_badval": "1", "cmd_set": "2", "delete_hits": "1", "delete_misses": "1"})

    def test_client_that_goes_while_it_waits(self):
        server = self.scripted_server()
        self.serve([server], config="request_timeout = 600000\n")
        self.conn.ask("version")  # setlistd has greeted the server
        server.mute = True
        with Conn(self.proxy.port) as conn:
            conn.send(b"stats\r\n")
            wait_until("it is asked", lambda: any(request.words == [b"stats"] for link in server.links for request in link.requests))
        wait_until("it has gone", lambda: stats(self.conn)["curr_connections"] == "1")


class ControlBytes(WireTest):
    """Keys with control bytes are for plain items: see also the transcript keys_control."""
    smoke = True
    ODD = "CLIENT_ERROR only plain items may have keys with spaces or control characters"
    RULES = """commands = "q|"
        collection "s-" { type = "set" plain_verbs = true }
        events "e-" { plain_verbs = true }
        """

    def test_rules_do_not_apply(self):
        """A key that a rule would interpret otherwise is refused, and never accidentally an item."""
        self.serve(config=self.RULES)
        for key in ("s-\x01", "e-a\tb"):
            for line in (f"get {key}", f"touch {key} 0", f"delete {key}", f"set {key} 0 0 1\r\nx", f"mg {key} v", f"ms {key} 1\r\nx", f"md {key}",
                         f"cas {key} 0 0 1 1\r\nx"):
                self.assertEqual(self.conn.ask(line), self.ODD, line)
        for line in ("get q|scard|s\x01", "get q|sadd|s|a\tb", "get q|smembers|a\r", "set q|sadd|s\x7f 0 0 1\r\nx", "mg q|scard|s\x01 v"):
            self.assertTrue(self.conn.ask(line).startswith("CLIENT_ERROR"), line)
        self.assertEqual(self.conn.set("a\x01", b"v"), "STORED")
        self.conn.send(b"get s-\x01 a\x01 e-\x02 s-\x01\r\n")
        self.assertEqual([self.conn.line() for _ in range(3)], [b"VALUE a\x01 0 1", b"v", b"END"])

    def test_set_commands_refuse_them(self):
        self.serve()
        for line in ("sadd k\x01 a", "sadd k a\x01", "scard k\x01", "lpush k\x01 a", "smembers a k\x01", "evincr k\x01", "sadd k a\r"):
            self.assertEqual(self.conn.ask(line), "CLIENT_ERROR control character in line", line)

    def test_shown_escaped(self):
        """No byte of a key reaches a terminal or a page without escaping."""
        server = self.scripted_server()
        self.serve([server], config="slow_threshold = 1\n")
        held = self.hold(server, "key\x1b[1m\x01")
        conn = self.connect(self.proxy)
        conn.send(b"get key\x1b[1m\x01\r\n")
        held.wait()
        time.sleep(0.01)  # longer than slow_threshold
        held.release()
        conn.line()
        # The list of slow requests first: on a busy machine others may push it out.
        self.conn.send(b"stats slow\r\n")
        shown = "\n".join(self.conn.lines_until("END"))
        for _ in range(3000):
            self.conn.send(b"get \x1b[1m\x01\r\n")
            self.conn.line()
        for group in ("hotkeys", "largest"):
            self.conn.send(f"stats {group}\r\n".encode())
            shown += "\n".join(self.conn.lines_until("END"))
        self.assertIn(r"key\x1b[1m\x01", shown)
        self.assertRegex(shown, r"requests:1 \d+ \\x1b\[1m\\x01")
        self.assertNotRegex(shown, r"[\x00-\x09\x0b-\x1f\x7f]")

    def test_two_protocols_one_item(self):
        self.serve()
        self.assertEqual(self.conn.set("a\x01b", b"text"), "STORED")
        with BinaryConn(self.proxy.port) as conn:
            self.assertEqual(conn.request(GET, "a\x01b").value, b"text")
            conn.send(store(SET, "a\x01b", b"binary"))
            conn.response()
        self.assertEqual(self.conn.get("a\x01b"), b"binary")
        self.assertEqual(self.conn.ask("mg YQFi b k v"), "VA 6 kYQFi b")
        self.assertEqual(self.conn.line(), b"binary")
