"""One client's bulk must not fail another client's requests, and never looks like a miss."""
import time

from case import WireTest
from fake import FakeServer, one_shot
from harness import wait_until
from stored import stats

QUEUE = 2000


class Overload(WireTest):
    """With a queue that one careless client would fill."""

    def setUp(self):
        super().setUp()
        (self.server,), self.proxy = self.pool(1, config=f"server_queue = {QUEUE}")
        self.conn, self.other = self.connect(self.proxy), self.connect(self.proxy)

    def refused(self):
        return int(stats(self.other, "stats upstream")[f"{self.server.name}:busy"])

    def test_many_keys_pipelined(self):
        """Every key that exists is found, however many are asked for."""
        keys = [f"k{number}" for number in range(100)]
        for key in keys:
            self.conn.set(key, b"x")
        rounds = 1000
        self.conn.send(f"get {' '.join(keys)}\r\n".encode() * rounds)
        for _ in range(rounds):
            found, end = self.conn.read_values()
            self.assertEqual((len(found), end), (len(keys), "END"))
        self.assertEqual(self.refused(), 0)

    def test_one_request_for_very_many_keys(self):
        keys = [f"k{number}" for number in range(3 * QUEUE)]
        for key in keys:
            self.conn.send(f"set {key} 0 0 1 noreply\r\nx\r\n".encode())
        found, end = self.conn.values(f"get {' '.join(keys)}")
        self.assertEqual((len(found), end), (len(keys), "END"))
        self.assertEqual(self.refused(), 0)

    def test_counters_of_many_buckets(self):
        """All buckets of some years, asked for many times at once; and others who ask for little meanwhile."""
        self.other.set("small", b"x")
        rounds = 20
        self.conn.send(b"evcount none 2018010100 2021010100\r\n" * rounds)
        for _ in range(100):
            self.assertEqual(self.other.get("small"), b"x")
        for _ in range(rounds):
            lines = self.conn.lines_until("END")
            self.assertGreater(len(lines), 26000)
        self.assertEqual(self.refused(), 0)


class Silence(WireTest):
    """A key that no server was asked for is no miss."""

    def test_a_server_that_is_down(self):
        (a, b), proxy = self.pool(2)
        conn = self.connect(proxy)
        a_key, b_key = self.key_on(conn, a), self.key_on(conn, b)
        conn.set(a_key, b"x")
        b.kill()
        wait_until("it is noticed", 60, lambda: conn.ask(f"get {b_key}").startswith("SERVER_ERROR"))
        found, end = conn.values(f"get {a_key} {b_key}")
        self.assertEqual(list(found), [a_key])
        self.assertTrue(end.startswith("SERVER_ERROR upstream"), end)


class Slow(WireTest):
    """A server that goes on answering is not given up, however long the last call has waited."""
    LIMIT, CALLS, PAUSE = 2000, 30, 0.1

    def attempt(self):
        server = FakeServer()
        self.addCleanup(server.stop)
        proxy = self.setlistd([server], config=f"request_timeout = {self.LIMIT}", patient=False)
        conn = self.connect(proxy)
        self.assertEqual(conn.get("key0"), b"value of key0")

        def answer_late(link, request):
            time.sleep(self.PAUSE)
            link.send(link.answer(request))
        for number in range(self.CALLS):
            server.faults[b"key%d" % number] = one_shot(answer_late)
        began = time.monotonic()
        for number in range(self.CALLS):
            conn.send(f"get key{number}\r\n".encode())
        replies = [conn.read_values() for _ in range(self.CALLS)]
        self.assertGreater(time.monotonic() - began, self.LIMIT / 1000)
        return all(end == "END" for _, end in replies)

    def test_all_are_answered(self):
        """A machine that stands still for longer than the limit fails an attempt, but not each of them."""
        self.assertTrue(any(self.attempt() for _ in range(20)))


class Huge(WireTest):
    """A server that announces a value that nobody can have stored."""

    def test_is_not_waited_for(self):
        server = FakeServer()
        self.addCleanup(server.stop)
        proxy = self.setlistd([server], config="max_value = 1000000\nrequest_timeout = 600000\nretry_min = 10", patient=False)
        conn = self.connect(proxy)
        self.assertEqual(conn.get("key1"), b"value of key1")
        server.faults[b"key2"] = one_shot(lambda link, request: link.send(b"VA 1000000000 kkey2 f0\r\n" + b"x" * 100))
        self.assertEqual(conn.ask("get key2"), f"SERVER_ERROR upstream {server.name} connection lost, outcome unknown")
        wait_until("it is used again", 60, lambda: conn.ask("get key3").startswith("VALUE"))


class Dripping(WireTest):
    """A reply that goes on for ever, byte by byte, is given up in the end."""

    def test_is_given_up(self):
        server = FakeServer()
        self.addCleanup(server.stop)
        proxy = self.setlistd([server], config="request_timeout = 300\nretry_min = 10", patient=False)
        conn = self.connect(proxy)
        wait_until("it is used", 60, lambda: conn.ask("get other") == "END")

        def drip(link, _):
            link.send(b"VA 1000000 kkey1 f0\r\n")
            link.drip(b"x" * 1000000, pause=0.02)
        server.faults[b"key1"] = one_shot(drip)
        conn.sock.settimeout(60)
        self.assertRegex(conn.ask("get key1"), f"SERVER_ERROR upstream {server.name} .*outcome unknown")


class Stalled(WireTest):
    """A server that takes what it is sent and answers nothing is given up, however much it is sent."""

    def test_is_given_up(self):
        server = FakeServer()
        self.addCleanup(server.stop)
        proxy = self.setlistd([server], config="request_timeout = 1000\nretry_min = 10", patient=False)
        conn, other = self.connect(proxy), self.connect(proxy)
        self.assertEqual(conn.get("key0"), b"value of key0")
        server.faults[b"key1"] = one_shot(lambda link, request: time.sleep(600))
        conn.send(b"get key1\r\n")
        conn.sock.settimeout(0.1)
        for _ in range(600):
            other.send(b"set key2 0 0 1\r\nx\r\n")
            try:
                self.assertRegex(conn.line(), b"SERVER_ERROR upstream .* timed out, outcome unknown")
                return
            except TimeoutError:
                pass
        self.fail("it is waited for")
