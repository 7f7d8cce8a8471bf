"""The HTTP port for operators: its replies, refused requests, and its limits."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import unittest

from case import WireTest, marks
from harness import HOST, PATIENCE, accepts, backlog, free_port, run_program, setlistd, tcp_rows, wait_until
from stored import stats
from wire import Conn

MUCH = 4 << 20  # bytes: more than the kernel transfers at once
FACTS = os.path.join(os.path.dirname(__file__), "..", "..", "src", "measure", "facts.def")


PREFIXES = {"CLASS": "cmd_", "KEYS": "keys_"}
SHARED = {"CLASS": "setlistd_requests_total", "KEYS": "setlistd_keys_total", "LOOKUP": "setlistd_lookups_total"}  # the metrics of many rows


def counters():
    """{name: metric} of all counters, in their order."""
    with open(FACTS, encoding="ascii") as table:
        rows = re.findall(r'^(CLASS|KEYS|LOOKUP|COUNTER|MOVES|COPIES|LANES|HELD)\((\w+)(?:, "(\w+)")?', table.read(), re.M)
    return {PREFIXES.get(kind, "") + name: SHARED.get(kind, metric) for kind, name, metric in rows}


def fetch(port, path, method="GET", headers=None, body=None):
    """Returns (status, headers, text) of one request on a new connection."""
    conn = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)
    try:
        conn.request(method, path, body, headers or {})
        reply = conn.getresponse()
        return reply.status, reply.headers, reply.read().decode()
    finally:
        conn.close()


def raw(port, data):
    with Conn(port) as conn:
        conn.send(data)
        return conn.rest()


class AdminCase(WireTest):
    def start(self, servers=None, config="", *args):
        self.servers = [self.memcached()] if servers is None else servers
        self.admin = free_port()
        self.proxy = self.setlistd(self.servers, "-a", f"{HOST}:{self.admin}", *args, config=config)
        wait_until("ready", lambda: self.get("/readyz")[0] == 200)

    def get(self, path, **kwargs):
        return fetch(self.admin, path, **kwargs)

    def stats(self):
        return json.loads(self.get("/stats.json")[2])

    def metrics(self):
        """{name with labels: value}"""
        lines = self.get("/metrics")[2].splitlines()
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}


class Started(AdminCase):
    """Tests with the usual configuration."""

    def setUp(self):
        self.start()


class Paths(Started):
    smoke = True

    def test_health_page_and_nothing_else(self):
        self.assertEqual(self.get("/healthz")[::2], (200, "alive\n"))
        status, headers, text = self.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        nonce = re.search(r"script-src 'nonce-(\w{32})'", headers["Content-Security-Policy"])[1]
        self.assertEqual(text.count(f'nonce="{nonce}"'), 2)
        self.assertNotIn('nonce=""', text)
        self.assertNotIn(nonce, self.get("/")[1]["Content-Security-Policy"])
        self.assertEqual(self.get("/nothing")[0], 404)
        self.assertEqual(self.get("/metrics/")[0], 404)

    def test_head_has_the_length_and_no_text(self):
        """Byte by byte: a client that skips a text would not notice one."""
        for path, status, length in ("/healthz", b"200", b"6"), ("/nothing", b"404", b"51"):
            asked = b"HEAD %s HTTP/1.1\r\nHost: localhost\r\n" % path.encode()
            first, second, rest = raw(self.admin, asked + b"\r\n" + asked + b"Connection: close\r\n\r\n").split(b"\r\n\r\n")
            for head in first, second:
                self.assertEqual(head.split(b" ")[:2], [b"HTTP/1.1", status])
                self.assertIn(b"\r\nContent-Length: %s\r\n" % length, head + b"\r\n")
            self.assertEqual(rest, b"")

    def test_two_requests_on_one_connection(self):
        conn = http.client.HTTPConnection(HOST, self.admin, timeout=PATIENCE)
        self.addCleanup(conn.close)
        for _ in range(3):
            conn.request("GET", "/healthz")
            self.assertEqual(conn.getresponse().read(), b"alive\n")

    def test_only_reading_is_allowed(self):
        for method in "POST", "PUT", "DELETE", "OPTIONS", "PATCH":
            status, headers, _ = self.get("/", method=method)
            self.assertEqual((method, status, headers["Allow"]), (method, 405, "GET, HEAD"))
        self.assertEqual(self.get("/", method="POST", body=b"x" * 100)[0], 413)
        self.assertEqual(raw(self.admin, b"get x\r\n\r\n").split(b" ")[1][:3], b"400")

    def test_off_by_default(self):
        self.assertEqual(stats(self.serve(), "stats settings")["admin"], "")


class Hosts(AdminCase):
    smoke = True

    def test_names_of_strangers_are_refused(self):
        self.start(config='admin_hosts = {"cache-7.example.org"}')
        for host, status in (("localhost", 200), ("LOCALHOST:80", 200), ("10.1.2.3", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200),
                             ("cache-7.example.org:11312", 200), ("Cache-7.example.org", 200), ("evil.example.org", 403),
                             ("localhost.evil.example.org", 403), ("127.0.0.1.evil.org", 403), ("[evil]", 403), ("[::1", 403),
                             ("127.0.0.1:x", 403), ("", 403), ("localhost:", 403), ("::1", 403)):
            with self.subTest(host):
                self.assertEqual(self.get("/stats.json", headers={"Host": host})[0], status)
        self.assertIn(b" 403 ", raw(self.admin, b"GET /stats.json HTTP/1.0\r\n\r\n"))

    def test_addresses_that_the_network_reaches_need_insecure(self):
        def check(*lines):
            return setlistd("-T", "-f", self.private_file("\n".join(('servers = {"127.0.0.1:1"}',) + lines) + "\n"))
        self.assert_refused(check('admin = "*:11312"'), "set insecure = true")
        self.assertEqual(check('admin = "*:11312"', "insecure = true").returncode, 0)
        self.assertEqual(check('admin = "127.0.0.1"').returncode, 0)
        for value in "unix:/tmp/x", "tls:127.0.0.1:5", "127.0.0.1:x":
            done = check(f'admin = "{value}"')
            self.assertEqual(done.returncode, 1, done)
            self.assertRegex(done.stderr, r"private:2: admin = ")
        self.assertRegex(check('admin_hosts = {"a b"}').stderr, r"private:2: admin_hosts")


def sized(size, begin=b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"):
    """A request of that many bytes, of which most are in one line."""
    return begin + b"X: " + b"x" * (size - len(begin) - 7) + b"\r\n\r\n"


HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = b"Connection: close\r\n"
# What is sent, and the status and the text of the answer. None of them has a body that the answer could wait for, and the faulty ones
# end in their fault.
ANSWERS = {
    "a line of 2,100 bytes": (sized(2300), 200, b"alive"),
    "a header of 8 KB": (sized(8192), 200, b"alive"),
    "a header of 8 KB and a byte": (sized(8193), 431, b"at most 8192 bytes"),
    "a header without an end": (HEAD + b"X: " + b"x" * 8192, 431, b"at most 8192 bytes"),
    "a header of 100 KB": (sized(100000), 431, b"at most 8192 bytes"),
    "a request line without an end": (b"GET /" + b"x" * 8192, 414, b"at most 8192 bytes"),
    "a request line of 100 KB": (b"GET /" + b"x" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, b"at most 8192 bytes"),
    "100 lines": (HEAD + b"X: 1\r\n" * 98 + CLOSE + b"\r\n", 200, b"alive"),
    "101 lines": (HEAD + b"X: 1\r\n" * 100, 431, b"at most 100 lines"),
    "two hosts": (HEAD + b"Host: localhost\r\n", 400, b"two Hosts"),
    "two hosts, the first is bad": (b"GET / HTTP/1.1\r\nHost: evil.example.org\r\nHost: localhost\r\n", 400, b"two Hosts"),
    "two hosts, the last is bad": (b"GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example.org\r\n", 400, b"two Hosts"),
    "two hosts, HTTP/1.0": (b"GET / HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n", 400, b"two Hosts"),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400, b"has a Host"),
    "a host with a space": (b"GET /healthz HTTP/1.1\r\nHost: localhost evil\r\n", 400, b"has a space"),
    "no colon": (HEAD + b"nonsense\r\n", 400, b"no colon"),
    "a space before the colon": (HEAD + b"X : 1\r\n", 400, b"not allowed"),
    "no name": (HEAD + b": 1\r\n", 400, b"is empty"),
    "a bare CR": (HEAD + b"X: 1\rHost: a\r\n", 400, b"control character"),
    "a bare CR in the request line": (b"GET /\rhealthz HTTP/1.1\r\n", 400, b"control character"),
    "a zero byte": (HEAD + b"X: \0\r\n", 400, b"control character"),
    "only LF": ((HEAD + CLOSE).replace(b"\r", b"") + b"\n", 200, b"alive"),
    "a folded line": (HEAD + b"X: 1\r\n 2\r\n", 400, b"begins with a space"),
    "a space before the first line of the header": (b"GET /healthz HTTP/1.1\r\n Host: localhost\r\n", 400, b"begins with a space"),
    "an empty line before": (b"\r\n" + HEAD + CLOSE + b"\r\n", 200, b"alive"),
    "a body": (HEAD + b"Content-Length: 5\r\n\r\n", 413, b"must not have a body"),
    "a body that is sent": (HEAD + b"Content-Length: 500000\r\n\r\n" + b"x" * 500000, 413, b"must not have a body"),
    "a body of no bytes": (HEAD + b"Content-Length: 0\r\n" + CLOSE + b"\r\n", 200, b"alive"),
    "a length that is no number": (HEAD + b"Content-Length: x\r\n", 400, b"no number"),
    "two lengths": (HEAD + b"Content-Length: 0\r\nContent-Length: 0\r\n", 400, b"given twice"),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", 413, b"must not have a body"),
    "chunks and a length": (HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", 400, b"given twice"),
    "chunks, HTTP/1.0": (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, b"no Transfer-Encoding"),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", 200, b"alive"),
    "HTTP/1.0, to be kept": (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n", 200, b"alive"),
    "close among others": (HEAD + b"Connection: x, close\r\n\r\n", 200, b"alive"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, b"Only HTTP/1.1"),
    "HTTP/0.9": (b"GET /\r\n", 400, b"not an HTTP/1.1 request"),
    "memcached": (b"get x\r\n", 400, b"not an HTTP/1.1 request"),
    "two spaces": (b"GET  / HTTP/1.1\r\n", 400, b"not an HTTP/1.1 request"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400, b"control character"),
}


class Requests(Started):
    """Each request, good or bad, is answered at once, and then the connection ends without a reset."""
    smoke = True

    def test_answers(self):
        for name, (data, status, text) in ANSWERS.items():
            with self.subTest(name):
                head, _, body = raw(self.admin, data).partition(b"\r\n\r\n")
                self.assertRegex(head, rb"^HTTP/1\.1 %d " % status)
                self.assertIn(b"\r\nConnection: close", head)
                self.assertIn(text, body)
                self.assertIn(b"\r\nContent-Length: %d\r\n" % len(body), head)

    def test_answers_byte_by_byte(self):
        for name, (data, status, _) in ANSWERS.items():
            if len(data) < 200:
                with self.subTest(name), Conn(self.admin) as conn:
                    conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    for i in range(len(data)):
                        conn.send(data[i:i + 1])
                    self.assertRegex(conn.rest(), rb"^HTTP/1\.1 %d " % status)

    def test_a_request_that_is_cut_off(self):
        for data in b"G", HEAD, HEAD[:-2], HEAD + b"X: 1":
            with Conn(self.admin) as conn:
                conn.send(data)
                conn.sock.shutdown(socket.SHUT_WR)
                self.assertRegex(conn.rest(), rb"^HTTP/1\.1 400 [^\0]*The request ends before its empty line\.\n$")
        with Conn(self.admin) as conn:
            conn.send(HEAD + b"\r\n" + HEAD)
            conn.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", conn.rest()), [b"200", b"400"])

    def test_nothing_follows_a_refused_request(self):
        """Where the next request begins is unknown."""
        reply = raw(self.admin, HEAD + b"\r\n" + HEAD + b"Host: a\r\n\r\n" + (HEAD + b"\r\n") * 1000)
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", reply), [b"200", b"400"])

    def test_a_refused_head_has_no_text(self):
        for data in b"HEAD /healthz HTTP/1.1\r\n\r\n", b"HEAD /" + b"x" * 9000:
            self.assertRegex(raw(self.admin, data), rb"(?s)^HTTP/1\.1 4.*Content-Length: [1-9].*\r\n\r\n$")

    def test_a_command_that_is_too_long_for_the_control_socket(self):
        path = f"{self.scratch()}/control"
        self.start(config=f'control = "{path}"')
        with socket.socket(socket.AF_UNIX) as conn:
            conn.connect(path)
            conn.sendall(b"x" * 300)
            self.assertEqual(conn.makefile().read(), "ERROR a command has at most 256 bytes\n")


class Limits(Started):
    smoke = True

    @marks(smoke=False)
    def test_a_slow_sender_is_answered_and_closed(self):
        slow, silent, begun = (self.connect(self.admin) for _ in range(3))
        begun.send(b"GE")
        slow.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        slow.sock.settimeout(0.2)
        reply = b""
        while not reply:
            with contextlib.suppress(TimeoutError):
                slow.send(b"x")
                reply = slow.sock.recv(1000)
        self.assertTrue(reply.startswith(b"HTTP/1.1 408 Request Timeout\r\n"), reply)
        self.assertTrue(begun.rest().startswith(b"HTTP/1.1 408 Request Timeout\r\n"))
        # A connection without a request may be closed by its client at any time, so it has no answer to expect.
        self.assertEqual(silent.rest(), b"")
        self.assertEqual(self.get("/healthz")[0], 200)

    def feed(self, begun, more):
        """Sends `begun`, then `more` repeatedly. Returns the number of bytes that were read when reading stops, or when it is too high."""
        conn, other = Conn(self.admin), http.client.HTTPConnection(HOST, self.admin, timeout=PATIENCE)
        self.addCleanup(conn.close)
        self.addCleanup(other.close)
        conn.sock.setblocking(False)
        rest, sent, before, read = begun, 0, None, 0
        while read < MUCH and read != before:
            try:
                while True:
                    n = conn.sock.send(rest)
                    rest, sent = rest[n:] or more, sent + n
            except BlockingIOError:
                pass
            except ConnectionError:
                break
            # A turn of the loop, in which something would be read.
            other.request("GET", "/healthz")
            self.assertEqual(other.getresponse().read(), b"alive\n")
            waiting = backlog(conn.sock)
            if not waiting:
                break
            before, read = read, sent - sum(waiting)
        return read

    def test_who_takes_no_replies_is_read_no_further(self):
        """Further bytes stay in the kernel, which stops the sender."""
        self.assertLess(self.feed(b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100), MUCH)

    def test_many_requests_at_once_are_all_answered(self):
        request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
        reply = raw(self.admin, (request + b"\r\n") * 3000 + request + b"Connection: close\r\n\r\n")
        self.assertEqual(reply.count(b"\r\n\r\nalive\n"), 3001)

    def test_a_line_without_end_is_read_no_further(self):
        """The size of a chunk is a line as well. Many such connections leave a place for others."""
        begun = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertLess(self.feed(begun, b"0" * MUCH), MUCH)
        conns = [self.connect(self.admin) for _ in range(40)]
        self.assertEqual(self.get("/healthz")[0], 200)      # All of them have been accepted.
        for conn in conns:
            with contextlib.suppress(ConnectionError):  # it may have lost its place already
                conn.send(begun + b"0" * 20000)
        for _ in range(3):
            self.assertEqual(self.get("/healthz")[0], 200)
        for conn in conns[-8:]:
            self.assertTrue(conn.rest().startswith(b"HTTP/1.1 413 "))

    def test_many_connections_leave_a_place_for_one_more(self):
        before = self.proxy.fd_count()
        conns = [self.connect(self.admin) for _ in range(100)]
        for _ in range(3):
            self.assertEqual(self.get("/healthz")[0], 200)
        wait_until("at most 33 are open", lambda: self.proxy.fd_count() <= before + 33)
        for conn in conns:
            conn.close()
        wait_until("all are closed", lambda: self.proxy.fd_count() < before + 3)
        # Clients of memcached's protocol do not notice any of it.
        self.assertEqual(self.connect(self.proxy).ask("mn"), "MN")

    def test_a_flood_that_asks_is_answered(self):
        """A client that has sent a request is answered before its connection is closed: a probe succeeds, however many others are connected."""
        with self.proxy.process.paused():
            conns = [self.connect(self.admin) for _ in range(300)]
            for conn in conns:
                conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for conn in conns:
            self.assertEqual(conn.line(), b"HTTP/1.1 200 OK")

    def test_the_one_silent_longest_makes_room(self):
        def ask(conn):
            conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            conn.lines_until("alive<bare LF>")
        conns = [self.connect(self.admin) for _ in range(32)]
        for conn in conns + conns[:1]:
            ask(conn)
        ask(self.connect(self.admin))
        self.assertEqual(conns[1].rest(), b"")
        for conn in conns[:1] + conns[2:]:
            ask(conn)

    def test_a_request_that_was_not_read_yet_is_not_silence(self):
        """The process notices a new connection before a request that was sent on an earlier one."""
        conns = [self.connect(self.admin) for _ in range(32)]
        for conn in conns:
            conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            conn.lines_until("alive<bare LF>")
        with self.proxy.process.paused():
            self.connect(self.admin)
            conns[0].send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(conns[0].line(), b"HTTP/1.1 200 OK")
        self.assertEqual(conns[1].rest(), b"")

    def test_requests_without_end_keep_no_place(self):
        """Who reads no replies is not read further, and is closed for others although it has sent more."""
        deaf = [Conn(self.admin) for _ in range(32)]
        for conn in deaf:
            self.addCleanup(conn.close)
            conn.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 750)

        def state():
            return sorted(row[2:5:2] for row in tcp_rows() if int(row[1].split(":")[1], 16) == self.admin and int(row[4].split(":")[0], 16))
        wait_until("they are not read", lambda: state() == (self.get("/healthz"), state())[1])
        probes = [self.connect(self.admin) for _ in range(16)]
        for conn in probes:
            conn.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(conn.line(), b"HTTP/1.1 200 OK")


class Readiness(AdminCase):
    smoke = True

    def test_ready_follows_the_servers(self):
        self.start()
        self.assertEqual(self.get("/readyz")[::2], (200, "ready\n"))
        self.servers[0].kill()
        wait_until("not ready", lambda: self.get("/readyz")[::2] == (503, "no server is up\n"))
        self.assertEqual(self.get("/healthz")[0], 200)
        self.assertEqual(self.metrics()["setlistd_ready"], 0)
        self.servers[0].start()
        wait_until("ready", lambda: self.get("/readyz")[0] == 200)

    def test_not_ready_before_the_servers_were_tried(self):
        server = self.scripted_server(mute=True)
        self.admin = free_port()
        self.setlistd([server.name], "-p", str(free_port()), "-a", f"{HOST}:{self.admin}", tcp=False)
        wait_until("it listens", lambda: accepts((HOST, self.admin)))
        status, _, text = self.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn("starting", text)

    def test_not_ready_while_draining(self):
        self.start(config="shutdown_timeout = 600000\nrequest_timeout = 600000")
        conn = self.connect(self.proxy)
        self.assertEqual(conn.ask("mn"), "MN")
        self.servers[0].pause()
        conn.send(b"get held\r\n")
        wait_until("the request is on its way", lambda: self.stats()["counters"]["cmd_get"] == 1)
        self.proxy.process.signal(signal.SIGTERM)
        wait_until("draining", lambda: self.get("/readyz")[::2] == (503, "draining\n"))
        self.assertEqual(self.get("/healthz")[0], 200)
        self.servers[0].resume()
        self.assertEqual(conn.read_values(), ({}, "END"))


class Outage(AdminCase):
    """The statistics of a server in /stats.json while it is down, and afterwards."""
    smoke = True

    def server(self, number):
        return self.stats()["servers"][number]

    def failed(self):
        return sum(self.stats()["timeline"]["failed"])

    def test_whose_it_is(self):
        self.start(config="slow_threshold = 70")
        found = self.stats()
        self.assertEqual((found["host"], found["listens"]), (socket.gethostname(), f"{HOST}:{self.proxy.port}"))
        self.assertEqual(found["slow_threshold_ms"], 70)

    @marks(smoke=False)
    def test_a_clock_that_differs(self):
        """A scripted server whose clock is wrong by an hour, and one whose clock is right."""
        self.start([self.scripted_server(clock=-3600), self.scripted_server()])
        wait_until("both are up", lambda: [s["state"] for s in self.stats()["servers"]] == ["up"] * 2)
        differences = [s["clock_difference"] for s in self.stats()["servers"]]
        self.assertIn(differences[0], range(3590, 3611))
        self.assertLess(differences[1], 10)

    @marks(smoke=False)
    def test_a_dead_server(self):
        self.start([self.memcached(), self.memcached()])
        self.assertEqual([(s["why"], s["down_seconds"], s["state"]) for s in self.stats()["servers"]], [("", 0, "up")] * 2)
        self.servers[1].kill()
        wait_until("it is down", lambda: self.server(1)["why"] == "Connection refused")
        wait_until("a second passes", lambda: self.server(1)["down_seconds"] >= 1)
        self.assertEqual((self.server(0)["why"], self.server(0)["down_seconds"]), ("", 0))
        conn = self.connect(self.proxy)
        for i in range(100):
            conn.ask(f"delete key-{i}")
        wait_until("the failed calls are in the timeline", lambda: self.failed() > 0)
        self.servers[1].start()
        wait_until("it is up", lambda: self.server(1)["state"] == "up")
        self.assertEqual((self.server(1)["why"], self.server(1)["down_seconds"]), ("", 0))
        self.assertGreater(self.failed(), 0)

    def test_calls_that_a_silent_server_loses(self):
        self.start(config="request_timeout = 300")
        conn = self.connect(self.proxy)
        with self.servers[0].process.paused():
            conn.send(b"get a\r\nget b\r\nget c\r\n")
            wait_until("they fail", lambda: self.server(0)["lost_calls"] >= 1)
            wait_until("the timeline has them", lambda: self.failed() >= 1)

    @marks(smoke=False)
    def test_the_timeline_grows(self):
        self.start()
        conn = self.connect(self.proxy)
        wait_until("it has begun", lambda: self.stats()["timeline"]["age_ms"])
        for _ in range(50):
            conn.get("k")
        wait_until("the requests are in it", lambda: sum(self.stats()["timeline"]["requests"]) > 0)
        wait_until("points follow", lambda: len(self.stats()["timeline"]["age_ms"]) >= 3)
        found = self.stats()["timeline"]
        self.assertEqual(list(found), ["age_ms", "requests", "failed", "p50_us", "p99_us"])
        self.assertEqual(len({len(column) for column in found.values()}), 1)
        self.assertEqual(found["age_ms"], sorted(found["age_ms"], reverse=True))
        for requests, p50, p99 in zip(found["requests"], found["p50_us"], found["p99_us"], strict=True):
            self.assertTrue(0 < p50 <= p99 if requests else p50 <= p99, found)


class Reloading(AdminCase):
    smoke = True

    def setUp(self):
        self.server, self.first = self.memcached(), free_port()
        self.proxy = self.setlistd([], config=self.with_admin(self.first))

    def with_admin(self, port):
        return f'servers = {{"{self.server.name}"}}\n' + (f'admin = "{HOST}:{port}"\n' if port else "")

    def test_the_address_may_change(self):
        first, second = self.first, free_port()
        self.assertEqual(fetch(first, "/healthz")[0], 200)
        for old, new in ((first, second), (second, first), (first, None)):
            self.proxy.configure(self.with_admin(new))
            if new:
                wait_until("the new one is open", lambda port=new: accepts((HOST, port)))
                self.assertEqual(fetch(new, "/healthz")[0], 200)
            wait_until("the old one is closed", lambda port=old: not accepts((HOST, port)))

    def test_an_address_in_use_changes_nothing(self):
        self.proxy.configure(self.with_admin(self.server.port))
        wait_until("it is refused", lambda: "the old one stays in effect" in self.proxy.process.stderr())
        self.assertEqual(fetch(self.first, "/readyz")[0], 200)


class Numbers(Started):
    smoke = True

    def setUp(self):
        super().setUp()
        conn = self.connect(self.proxy)
        self.assertEqual(conn.set("k", b"v"), "STORED")
        for _ in range(5):
            conn.get("k")
        conn.ask("sadd s a b c")
        conn.values("smembers s")

    def test_every_counter_is_in_both(self):
        names = counters()
        self.assertGreater(len(names), 30)
        found, text = self.stats(), self.get("/metrics")[2]
        self.assertEqual(list(found["counters"]), list(names))
        for metric in names.values():
            self.assertRegex(text, rf"(?m)^{metric}[{{ ]")
        with open(FACTS, encoding="ascii") as table:
            wanted = set(re.findall(r'"((?:setlistd|process)_\w+)"', table.read()))
        self.assertEqual(sorted(re.findall(r"(?m)^# HELP (\w+)", text)), sorted(wanted - {"setlistd_version"} | set(SHARED.values())))
        metrics = self.metrics()
        self.assertEqual(metrics['setlistd_lookups_total{command="get",result="hit"}'], 5)
        self.assertEqual(metrics['setlistd_keys_total{command="get"}'], 5)
        self.assertEqual(metrics['setlistd_requests_total{class="get"}'], 5)
        self.assertEqual(metrics['setlistd_request_duration_seconds_count{class="get"}'], 5)
        self.assertEqual(metrics['setlistd_request_duration_seconds_bucket{class="get",le="+Inf"}'], 5)
        server = self.servers[0].name
        self.assertEqual(metrics[f'setlistd_server_up{{server="{server}"}}'], 1)
        self.assertEqual(metrics[f'setlistd_server_call_duration_seconds_count{{server="{server}"}}'],
                         found["servers"][0]["count"])
        for name in ("resident_memory_bytes", "open_fds", "max_fds", "cpu_seconds_total", "start_time_seconds", "virtual_memory_bytes"):
            self.assertGreater(metrics[f"process_{name}"], 0, name)
        self.assertNotIn('"k"', text)

    def test_stats_and_http_say_the_same(self):
        conn = self.connect(self.proxy)
        said, found = {**stats(conn), **stats(conn, "stats collections")}, self.stats()["counters"]
        # Of these commands stats has the keys, not the requests.
        for name in set(counters()) - {"bytes_read", "bytes_written", "cmd_other", "cmd_get", "cmd_set", "cmd_touch"}:
            self.assertEqual(said[name.replace("keys_", "cmd_")], str(found[name]), name)

    def test_buckets_grow_and_have_the_sum(self):
        found = [(name, value) for name, value in self.metrics().items() if name.startswith("setlistd_request_duration_seconds_bucket") and '"get"' in name]
        bounds = [float(re.search(r'le="([^"]+)"', name)[1]) for name, _ in found]
        self.assertEqual(bounds, sorted(bounds))
        self.assertEqual((bounds[0], bounds[-2], len(bounds)), (1e-05, 10.48576, 22))
        self.assertEqual([value for _, value in found], sorted(value for _, value in found))

    def test_keys_are_escaped(self):
        """A key with any bytes gets through as ASCII."""
        self.start(config="slow_threshold = 1")
        conn = self.connect(self.proxy)
        key = "\"<b>\\\u00e9" + "x" * 20
        for _ in range(400):
            conn.get(key)
        keys = [entry["key"] for entry in self.stats()["hot_by_requests"]["keys"]]
        self.assertEqual(keys, ["\"<b>\\x5c\\xc3\\xa9" + "x" * 20])

    @unittest.skipUnless(shutil.which("promtool"), "there is no promtool")
    def test_promtool_has_nothing_to_say(self):
        text = self.get("/metrics")[2]
        done = run_program("promtool", "check", "metrics", input=text)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(self.get("/metrics")[1]["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
