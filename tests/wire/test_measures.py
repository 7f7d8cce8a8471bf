"""Measurements: stats latency, hotkeys, largest and slow."""
import re
import threading
import time

import scripted
from case import WireTest
from test_admin_port import AdminCase
from case_scripted import ScriptedTest
from harness import EVENLY, PATIENCE, wait_until
from stored import stats

CLASSES = "get set delete touch incr flush meta collection event other refused".split()
SAMPLE, GAP_MOST = 64, 127
KEPT = 128


def latencies(conn):
    return {name: int(value) for name, value in stats(conn, "stats latency").items()}


def top(conn, kind):
    """[(weight, key)] of stats hotkeys, the hottest first."""
    found = stats(conn, "stats hotkeys")
    rows = [found[f"{kind}:{rank}"].split(" ") for rank in range(1, 21) if f"{kind}:{rank}" in found]
    return [(int(weight), key) for weight, key in rows]


def slow(conn):
    """The slow requests, the newest first, as lists of fields."""
    found = stats(conn, "stats slow")
    return [found[f"slow:{rank}"].split(" ") for rank in range(1, KEPT + 1) if f"slow:{rank}" in found]


class Latency(WireTest):
    smoke = True

    def test_counts(self):
        servers, proxy = self.pool(2, "-t", "2", config=EVENLY)
        conns = [self.connect(proxy) for _ in range(4)]
        for conn in conns:
            for number in range(10):
                self.assertEqual(conn.set(f"key-{number}", b"x"), "STORED")
            for number in range(5):
                self.assertEqual(conn.get(f"key-{number}"), b"x")
            self.assertEqual(conn.ask("nonsense"), "ERROR")
        found = latencies(conns[0])
        self.assertEqual({name.split(":")[0] for name in found if name[0] != "1"}, set(CLASSES))
        self.assertEqual((found["set:count"], found["get:count"], found["refused:count"]), (40, 20, 4))
        self.assertEqual(sum(found[f"{server.name}:count"] for server in servers), 60)
        for name in ("get", "set"):
            values = [found[f"{name}:{quantile}"] for quantile in ("p50", "p90", "p99", "p999")]
            self.assertEqual(values, sorted(values))
            self.assertGreater(values[0], 0)
        self.assertEqual(conns[0].ask("stats reset"), "RESET")
        found = latencies(conns[1])
        self.assertEqual([name for name, value in found.items() if value and not name.startswith("other:")], [])


class Refused(AdminCase):
    """A request that is refused without a call to a server is counted, and has no latency."""
    smoke = True
    COMMANDS = (("get", "get {k} {k}"), ("get", "gat 9 {k}"), ("set", "set {k} 0 0 1\r\nx"), ("incr", "incr {k} 1"), ("touch", "touch {k} 9"),
                ("delete", "delete {k}"), ("meta", "mg {k} v"), ("meta", "ms {k} 1\r\nx"), ("collection", "sadd {k} a"),
                ("collection", "scard {k}"), ("collection", "smembers {k} {k}"), ("collection", "sunionstore {k} {k}"),
                ("collection", "lmove {k} {k} left left"), ("collection", "blpop 1 {k}"), ("event", "evincr {k}"), ("event", "evcount {k}"),
                ("get", "get q|scard|{k}"), ("set", "set q|sadd|{k} 0 0 1\r\na"))
    WRONG = (("get", "get " + "x" * 251), ("set", "set k 0 0 1 2 3\r\nx"), ("incr", "incr k x"), ("collection", "scard k x"), ("event", "evcount"),
             ("delete", "delete k 1 2"), ("collection", "lmpop 1 k"), ("flush", "flush_all 0"))

    def setUp(self):
        self.start([self.memcached(), self.memcached()], 'commands = "q|"\ndeny = {"flush_all"}\nretry_min = 60000\nretry_max = 60000')
        self.conn = self.connect(self.proxy)
        self.up = self.key_on(self.conn, self.servers[1])

    def timed(self):
        found = self.metrics()
        return {name: found[f'setlistd_request_duration_seconds_count{{class="{name}"}}'] for name in CLASSES if name != "other"}

    def assert_untimed(self, commands):
        for name, line in commands:
            before, all_before = self.timed(), self.all_of(name)
            for _ in range(3):
                self.assertRegex(self.conn.ask(line), "(SERVER|CLIENT)_ERROR", line)
            self.assertEqual(self.timed(), before, line)
            self.assertEqual(self.all_of(name), all_before + 3, line)

    def all_of(self, name):
        found = next(row for row in self.stats()["latency"] if row["class"] == name)
        self.assertEqual(found["count"], latencies(self.conn)[f"{name}:count"])
        return found["count"] + found["untimed"]

    def test_of_servers_that_are_down(self):
        for server in self.servers:
            server.kill()
        wait_until("both are down", lambda: self.conn.ask(f"get {self.up}").endswith("unavailable") and self.conn.ask("get a b c d e f").endswith("unavailable"))
        self.assert_untimed([(name, line.replace("{k}", self.up)) for name, line in self.COMMANDS])

    def test_of_clients_that_are_wrong(self):
        self.assert_untimed(self.WRONG)

    def test_quantiles_stay(self):
        self.servers[0].kill()
        key = self.key_on(self.conn, self.servers[0])
        wait_until("it is down", lambda: self.conn.ask(f"get {key}").endswith("unavailable"))
        self.assertEqual(self.conn.ask("stats reset"), "RESET")
        # So many are not carried out in one turn.
        self.conn.send(f"get {key}\r\n".encode() * 20000)
        for _ in range(20000):
            self.assertTrue(self.conn.line().endswith(b"unavailable"))
        self.assertEqual(latencies(self.conn)["get:p50"], 0)
        for _ in range(3):
            self.assertIsNone(self.conn.get(self.up))
        self.assertEqual(latencies(self.conn)["get:count"], 3)


class MeasuredTest(ScriptedTest):
    def let_pass(self, seconds):
        """So much time, by a clock that measures; how many microseconds there were."""
        start = time.monotonic()
        wait_until("time passes", lambda: time.monotonic() > start + seconds)
        return int((time.monotonic() - start) * 1e6)


class HeldLatency(MeasuredTest):
    smoke = True

    def test_is_not_too_short(self):
        """It is at least the observed time of the server."""
        held = self.hold(self.scripted, "key-1")
        held.get(self.conn)
        least = self.let_pass(0.02)
        held.release()
        self.own_or_error(["key-1"])
        found = latencies(self.conn)
        self.assertEqual((found["get:count"], found[f"{self.scripted.name}:count"]), (1, 1))
        self.assertGreaterEqual(found["get:p50"], least)
        self.assertGreaterEqual(found[f"{self.scripted.name}:p50"], least)

    def test_a_call_without_a_reply_counts(self):
        self.serve_hastily(config="retry_min = 10\nretry_max = 200\nrequest_timeout = 100")
        self.assertEqual(self.conn.ask("stats reset"), "RESET")
        self.fault("key-1", scripted.silence)
        self.assertTrue(self.asked_one())
        found = latencies(self.conn)
        self.assertGreaterEqual(found[f"{self.scripted.name}:p999"], 98000)


class HotKeys(WireTest):
    smoke = True
    ROUNDS = 800
    HALF_LIFE = 300  # seconds, of notes.h

    def between_halvings(self, conn, send):
        """Sends requests, and again if the counts were halved meanwhile. Returns the top keys, by requests and by bytes."""
        period, found = None, None
        while period != time.monotonic() // self.HALF_LIFE:
            period = time.monotonic() // self.HALF_LIFE
            self.assertEqual(conn.ask("stats reset"), "RESET")
            send()
            found = top(conn, "requests"), top(conn, "bytes"), int(stats(conn, "stats hotkeys")["requests"])
        return found

    def test_ranks(self):
        """Of the gaps between two samples none is longer than 127 keys, so there is a bound that no chance can break."""
        _, proxy = self.pool(1, "-t", "2", config=EVENLY)
        conns = [self.connect(proxy) for _ in range(2)]
        self.assertEqual(conns[0].set("large", b"x" * 100000), "STORED")

        def send():
            for conn in conns:
                for _ in range(self.ROUNDS // 8):
                    conn.send(b"get hot k1 hot k\xff hot k3 hot k4\r\n" * 8)
                    for _ in range(8):
                        self.assertEqual(conn.read_values()[1], "END")
                for _ in range(2 * GAP_MOST):
                    self.assertEqual(len(conn.get("large")), 100000)
        by_requests, by_bytes, total = self.between_halvings(conns[0], send)
        self.assertEqual(by_requests[0][1], "hot")
        self.assertEqual(by_bytes[0][1], "large")
        self.assertEqual({key for _, key in by_requests}, {"hot", "k1", "k\\xff", "k3", "k4", "large"})
        asked = 2 * 4 * self.ROUNDS
        self.assertGreater(by_requests[0][0], asked * 0.6)
        self.assertLess(by_requests[0][0], asked * 1.4)
        self.assertGreaterEqual(total, (2 * 8 * self.ROUNDS // GAP_MOST - 2) * SAMPLE)
        self.assertEqual(conns[0].ask("stats reset"), "RESET")
        self.assertEqual(top(conns[0], "requests"), [])

    def test_all_commands(self):
        conn = self.serve()
        requests = {"set a 0 0 1\r\nx": "a", "append b 0 0 1\r\nx": "b", "delete c": "c", "incr d 1": "d", "touch e 0": "e",
                    "mg f v": "f", "sadd g x": "g", "scard h": "h", "smembers i": "i", "rpush j x": "j", "lrange k 0 1": "k",
                    "sinfo l": "l", "evincr m": "m", "sunion n": "n", "gat 0 p": "p", "evcount q": "q", "ms r 1\r\nx": "r",
                    "evrange s now": "s"}

        def send():
            for request in requests:
                conn.send(f"{request}\r\n".encode() * GAP_MOST)
            conn.send(b"mn\r\n")
            while conn.line() != b"MN":
                pass
        by_requests, _, _ = self.between_halvings(conn, send)
        self.assertEqual(set(requests.values()) - {key for _, key in by_requests}, set())

    def test_commands_as_keys(self):
        conn = self.serve(1, config='commands = "q|"')

        def send():
            for request, count in (("get q|scard|a", GAP_MOST), ("get q|scard|b q|scard|b", GAP_MOST)):
                for _ in range(count):
                    conn.send(f"{request}\r\n".encode())
                    self.assertEqual(conn.read_values()[1], "END")
        by_requests, _, _ = self.between_halvings(conn, send)
        self.assertEqual({key for _, key in by_requests}, {"q|scard|a", "q|scard|b"})


class Largest(WireTest):
    smoke = True

    def test_sets_and_lists(self):
        conn = self.serve(2, config='collection "csv-" { encoding = "csv" }')
        for start in range(0, 20000, 1000):
            members = " ".join(f"member-{number}" for number in range(start, start + 1000))
            self.assertEqual(conn.ask(f"sadd large {members}"), "STORED")
        self.assertEqual(conn.ask("rpush list " + " ".join(f"i{number}" for number in range(300))), "STORED")
        self.assertEqual(conn.ask("sadd csv-a x y z"), "STORED")
        self.assertEqual(conn.ask("sadd small x"), "STORED")

        def rows():
            for request in ("scard large", "llen list", "scard csv-a", "scard small"):
                conn.ask(request)
            found = stats(conn, "stats largest")
            return [found[f"largest:{rank}"].split(" ") for rank in range(1, len(found) + 1)]

        def measured():
            found = {row[3]: (int(row[1]), int(row[0])) for row in rows()}
            info = stats(conn, "sinfo large")
            return (found.get("large") == (20000, int(info["bytes"])) and found.get("list", [0])[0] == 300 and
                    found.get("csv-a") == (3, 6) and found.get("small") == (1, 3))
        wait_until("all are measured", measured)
        self.assertEqual([row[3] for row in rows()], ["large", "list", "csv-a", "small"])
        self.assertEqual(conn.ask("stats reset"), "RESET")
        self.assertEqual(stats(conn, "stats largest"), {})


class Slow(MeasuredTest):
    smoke = True
    HASTY = "retry_min = 10\nretry_max = 200\nrequest_timeout = 200\nslow_threshold = 50"
    LEAST = 198000  # microseconds: clocks in milliseconds are cut off

    def test_stalled_server(self):
        self.serve_hastily(config=self.HASTY)
        key = "key-\xe4" + 100 * "x"
        self.scripted.faults[key.encode("latin-1")] = scripted.silence
        self.assertEqual(self.conn.ask("stats slow reset"), "RESET")
        before = time.time()
        self.conn.send(b"get %s\r\n" % key.encode("latin-1"))
        self.assertIn("SERVER_ERROR upstream", self.conn.line().decode())
        row = slow(self.conn)[-1]
        client = "%s:%d" % self.conn.sock.getsockname()
        self.assertEqual(row[1:5], [client, "get", "key-\\xe4" + 59 * "x" + "...", self.scripted.name])
        took, waited, server, taken = map(int, row[5:])
        self.assertGreaterEqual(took, self.LEAST)
        self.assertEqual((took, taken), (waited + server, 0))
        self.assertTrue(before - 1 <= float(row[0]) <= time.time() + 1, row)
        self.assertEqual(self.conn.ask("stats reset"), "RESET")
        self.assertEqual(stats(self.conn, "stats slow"), {"slow": "0"})

    def send_slowly(self, *requests):
        """Sends the requests, the first of which is held for some milliseconds."""
        held = self.hold(self.scripted, "set")
        self.conn.send(requests[0])
        held.wait()
        self.conn.send(b"".join(requests[1:]))
        # A reply without any wait, after the requests.
        self.connect(self.proxy).ask("mn")
        self.let_pass(0.03)
        held.release()

    def test_lane(self):
        """The wait for an earlier operation on the key is not the server's time."""
        self.serve(config="slow_threshold = 10")
        self.send_slowly(b"sadd set a\r\n", b"sset set b\r\n")
        self.assertEqual([self.conn.line(), self.conn.line()], [b"STORED", b"STORED"])
        rows = {row[2]: [int(number) for number in row[5:8]] for row in slow(self.conn)}
        self.assertGreater(rows["sadd"][2], 0)
        self.assertGreater(rows["sset"][1], 0, rows)

    def test_client_that_could_take_nothing(self):
        """A reply that waited for that of an earlier request has not waited for the client, if a later one arrives in the same turn."""
        self.serve(config="slow_threshold = 10")
        free, answers = threading.Event(), []

        def both(link, request):
            free.wait(PATIENCE)
            link.send(b"".join(answers) + link.answer(request))
        self.scripted.faults[b"key-1"], self.scripted.faults[b"key-2"] = scripted.gather(answers), both
        self.conn.send(b"set key-1 0 0 1 noreply\r\nx\r\nmn\r\nget key-2\r\n")
        wait_until("the server is asked", lambda: self.scripted.requests_for("key-2"))
        self.let_pass(0.03)
        free.set()
        self.assertEqual((self.conn.line(), len(self.conn.read_values()[0])), (b"MN", 1))
        self.assertEqual([row[8] for row in slow(self.conn) if row[3] == "key-2"], ["0"])

    def test_off(self):
        self.serve(config="slow_threshold = 0")
        self.send_slowly(b"sadd set a\r\n")
        self.assertEqual(self.conn.line(), b"STORED")
        self.assertEqual(stats(self.conn, "stats slow"), {"slow": "0"})

    def test_only_the_last(self):
        """Many slow ones: the newest 128 of each thread are kept, and all are counted or left out of a turn."""
        self.serve_hastily(config=self.HASTY)
        self.scripted.faults[b"key-s"] = scripted.silence
        self.conn.send(b"get key-s\r\n" * 300)
        for _ in range(300):
            self.assertIn("SERVER_ERROR", self.conn.line().decode())
        rows = slow(self.conn)
        self.assertLessEqual(len(rows), KEPT)
        self.assertGreater(len(rows), 0)
        times = [float(row[0]) for row in rows]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertTrue(all(re.fullmatch(r"\d+\.\d{3}", row[0]) for row in rows))


class Resets(WireTest):
    smoke = True
    RESETS, READS, ROUNDS = 2000, 50, 60

    def reset_until(self, conn, enough):
        while not enough.is_set():
            conn.send(b"stats reset\r\n" * self.RESETS)
            for _ in range(self.RESETS):
                conn.line()

    def test_another_thread_reads(self):
        """A number that was summed before a reset, and printed after it, would be below 0: it has twenty digits then."""
        resets, reads = self.serve(1, "-t", "8", config=EVENLY), self.connect(self.proxy)
        self.assertEqual((resets.ask("mn"), reads.ask("mn")), ("MN", "MN"))
        enough = threading.Event()
        thread = threading.Thread(target=self.reset_until, args=(resets, enough), daemon=True)
        thread.start()
        try:
            for _ in range(self.ROUNDS):
                reads.send(b"stats\r\n" * self.READS)
                lines = [line for _ in range(self.READS) for line in reads.lines_until("END")]
                self.assertEqual([line for line in lines if re.search(r" \d{20}$", line)], [])
        finally:
            enough.set()
            thread.join(PATIENCE)
        self.assertFalse(thread.is_alive())
