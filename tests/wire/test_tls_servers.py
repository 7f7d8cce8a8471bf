"""TLS between setlistd and its servers: memcached -Z, and which certificates are refused."""
import os
import socket
import ssl
import sys

from case_tls import Authority, TlsServer, TlsTest
from harness import HOST, run_program, wait_until
from stored import stat
from test_names import NAME, NamesTest

# Soon enough that a test need not wait, and not a limit for anything else.
SOON = "retry_min = 1\nretry_max = 20\n"
MIB = 1 << 20
MOVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/move")


class Servers(TlsTest):
    smoke = True

    def start(self, more="", count=2, server=(), args=()):
        return self.serve([self.memcached_tls(*server) for _ in range(count)], *args, config=self.verifying(more))

    def test_commands(self):
        conn = self.start()
        for i in range(50):
            self.assertEqual(conn.set(f"k{i}", b"%d" % i), "STORED")
            self.assertEqual(conn.ask(f"sadd s{i} a b c"), "STORED")
        found, _ = conn.values("get " + " ".join(f"k{i}" for i in range(50)))
        self.assertEqual({key: data for key, (_, data) in found.items()}, {f"k{i}": b"%d" % i for i in range(50)})
        self.assertEqual(conn.ask("scard s7"), "3")

    def test_large_values(self):
        self.check_large_values(self.start(server=("-I", "16m")))

    def test_pipelines(self):
        """memcached does not process bytes that follow a value in the same record: nevertheless everything is answered."""
        conn = self.start(count=1)
        for size in (10, 5000, 16000, 16350, 16384, 20000, 100000):
            data = b"%d " % size * (size // 4)
            conn.send(b"".join(b"set k%d 0 0 %d\r\n%s\r\nget k%d\r\nmn\r\n" % (i, len(data), data, i) for i in range(30)))
            for i in range(30):
                self.assertEqual(conn.line(), b"STORED")
                self.assertEqual(conn.read_values()[0][f"k{i}"][1], data)
                self.assertEqual(conn.line(), b"MN")
        conn.send(b"".join(b"set k%d 0 0 1\r\n1\r\nincr k%d 1\r\n" % (i, i) for i in range(5000)))
        for _ in range(5000):
            self.assertEqual((conn.line(), conn.line()), (b"STORED", b"2"))

    def test_large_sets(self):
        conn = self.start()
        members = sorted(b"member-%06d" % i for i in range(30000))
        for first in range(0, len(members), 1000):
            conn.send(b"sadd s " + b" ".join(members[first:first + 1000]) + b"\r\n")
            self.assertEqual(conn.line(), b"STORED")
        self.assertEqual(conn.ask("scompact s"), "OK")
        again = self.connect(self.setlistd(self.servers, config=self.verifying()))
        for one in (conn, again):
            self.assertEqual(sorted(one.values("smembers s")[0]["s"][1].split(b" ")), members)

    def test_both_sides(self):
        servers = [self.memcached_tls() for _ in range(2)]
        conn = self.secured(self.setlistd_tls(servers, "-t", "2", config=self.verifying()))
        for size in (5, 300000):
            self.assertEqual(conn.set("k", b"x" * size), "STORED")
            self.assertEqual(conn.get("k"), b"x" * size)

    def test_unix_socket(self):
        """TLS is for TCP: a server on a Unix socket is spoken to as ever."""
        path = os.path.join(self.folder, "plain.sock")
        os.chmod(self.folder, 0o777)
        self.memcached_at(path, "-s", path, "-a", "0777")
        conn = self.connect(self.setlistd([f"unix:{path}"], config=self.verifying()))
        self.assertEqual(conn.set("k", b"v"), "STORED")

    def test_a_server_comes_back(self):
        conn = self.start(SOON, count=1)
        self.assertEqual(conn.set("k", b"v"), "STORED")
        for _ in range(3):
            self.servers[0].kill()
            wait_until("it is down", lambda: conn.ask("incr k 1").startswith("SERVER_ERROR upstream "))
            self.servers[0].start()
            wait_until("it is back", lambda: conn.set("k", b"v") == "STORED")


class Refused(TlsTest):
    """A refused certificate: one line in the log with the reason, and the calls fail as for any server that is down."""
    smoke = True

    def refused(self, files, reason, config=None):
        server = self.memcached_tls(files=files)
        conn = self.serve([server], config=SOON + (config or self.verifying()))
        self.assertRegex(conn.ask("incr k 1"), f"^SERVER_ERROR upstream {server.name}")
        wait_until("it is tried again", lambda: stat(conn, "stats upstream", f"{server.name}:connects") >= 5)
        said = [line for line in self.proxy.process.stderr().splitlines() if reason in line]
        self.assertEqual(len(said), 1, (reason, self.proxy.process.stderr()))
        self.assertIn(f"upstream {server.name}: ", said[0])

    def test_each_reason(self):
        """Finally a CA that the system does not have."""
        for files, reason in ((self.authority.sign("late", expired=True), "expired: certificate has expired"),
                              (self.authority.sign_itself("own"), "self-signed: self-signed certificate"),
                              (self.authority.sign("other", names="IP:127.0.0.2,DNS:localhost"), "wrong name: IP address mismatch"),
                              (Authority(self.folder, "strangers").sign("strange"), "unknown CA: ")):
            self.refused(files, f"certificate refused: {reason}")
        self.refused(self.files, "certificate refused: unknown CA: ", "server_tls = true\n")

    def test_wrong_name(self):
        """The name is that in `servers`."""
        files = self.authority.sign("other", names=f"DNS:elsewhere,IP:{HOST}")
        server = self.memcached_tls(files=files)
        proxy = self.setlistd([f"localhost:{server.port}"], config=self.verifying())
        self.assertRegex(self.connect(proxy).ask("incr k 1"), "^SERVER_ERROR upstream localhost")
        self.assertIn("certificate refused: wrong name: hostname mismatch", proxy.process.stderr())
        good = self.setlistd([server], config=self.verifying())
        self.assertEqual(self.connect(good).set("k", b"v"), "STORED")

    def test_plain_server(self):
        server = self.memcached()
        proxy = self.setlistd([server], config=self.verifying())
        self.assertRegex(self.connect(proxy).ask("incr k 1"), "^SERVER_ERROR upstream ")
        self.assertIn("it does not speak TLS", proxy.process.stderr())

    def test_not_verified(self):
        for files in (self.authority.sign("late", expired=True), self.authority.sign_itself("own"),
                      Authority(self.folder, "strangers").sign("strange", names="DNS:elsewhere")):
            proxy = self.setlistd([self.memcached_tls(files=files)], config="server_tls = true\nserver_tls_verify = false")
            self.assertEqual(self.connect(proxy).set("k", b"v"), "STORED")

    def test_bad_after_good(self):
        """A server that was up returns with another certificate, then with a valid one. Each change is one line."""
        server = TlsServer(self.server_context())
        self.addCleanup(server.stop)
        conn = self.serve([server], "-v", config=self.verifying(SOON))
        self.assertIsNone(conn.get("k"))
        for name, reason in (("late", "expired"), ("own", "self-signed")):
            files = self.authority.sign(name, expired=True) if name == "late" else self.authority.sign_itself(name)
            server.context = self.server_context(files)
            server.cut()
            wait_until("it is refused", lambda: f"refused: {reason}" in self.proxy.process.stderr())
            refusals = len(server.errors)
            wait_until("it is tried again", lambda: len(server.errors) >= refusals + 5)
            self.assertEqual(self.proxy.process.stderr().count(f"refused: {reason}"), 1)
        server.context = self.server_context()
        wait_until("it is back", lambda: conn.values("get k")[1] == "END")


class Mutual(TlsTest):
    """Servers that request a certificate of setlistd."""
    smoke = True

    def test_right_and_missing(self):
        server = self.memcached_tls(ca=self.authority.ca)
        own = self.authority.sign("setlistd")
        config = 'server_tls_certificate = "%s"\nserver_tls_key = "%s"\n' % own
        good = self.setlistd([server], config=self.verifying(config))
        self.assertEqual(self.connect(good).set("k", b"v"), "STORED")
        bad = self.setlistd([server], config=self.verifying())
        self.assertRegex(self.connect(bad).ask("incr k 1"), "^SERVER_ERROR upstream ")


class Handshakes(TlsTest):
    smoke = True

    def test_takes_too_long(self):
        """A server that accepts and sends nothing: connect_timeout includes the handshake."""
        server = self.silent()
        proxy = self.setlistd([server], config=self.verifying("connect_timeout = 50\nrequest_timeout = 600000\n"))
        self.assertRegex(self.connect(proxy).ask("incr k 1"), "^SERVER_ERROR upstream ")
        self.assertIn("the TLS handshake timed out", proxy.process.stderr())

    def silent(self):
        listener = socket.create_server((HOST, 0))
        self.addCleanup(listener.close)
        return f"{HOST}:{listener.getsockname()[1]}"

    def test_resumed(self):
        """The next connection resumes the session of the last one, with either version, and after a loss without a word."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.server_context()
            context.minimum_version = context.maximum_version = version
            server = TlsServer(context)
            self.addCleanup(server.stop)
            conn = self.connect(self.setlistd([server], config=self.verifying(SOON)))
            for count in (1, 2, 3):
                wait_until("it is up", lambda: len(server.resumed) >= count and conn.values("get k")[1] == "END")
                server.cut()
            self.assertEqual(server.resumed[:3], [False, True, True], version)


class Named(TlsTest, NamesTest):
    def test_a_dot_at_the_end(self):
        """The dot ends an absolute name for the resolver; certificates and servers have the name without it."""
        self.write_resolv(self.name_server(**{NAME: [HOST]}).address)
        server = self.memcached_tls(files=self.authority.sign("named", names=f"DNS:{NAME}"))
        _, conn = self.follow(server.port, config=self.verifying(), name=f"{NAME}.")
        wait_until("it is connected", lambda: conn.set("k", b"v") == "STORED")

    def test_the_name_of_several_servers(self):
        """With `dns:` the certificate is for the name, not for the address of the server, for setlistd-move as well."""
        self.write_resolv(self.name_server(**{NAME: [HOST]}).address)
        former, new = (self.memcached_tls(files=self.authority.sign("named", names=f"DNS:{NAME}")) for _ in range(2))
        _, conn = self.follow(former.port, config=self.verifying(), name=f"dns:{NAME}")
        wait_until("it is connected", lambda: conn.set("left", b"v") == "STORED")
        moving = f'former_servers = {{"dns:{NAME}.:{former.port}"}}\nmove_at = "2020-01-01T00:00:00Z"\n'
        proxy, conn = self.follow(new.port, config=self.verifying(moving), name=f"dns:{NAME}")
        wait_until("it is connected", lambda: conn.set("k", b"v") == "STORED")
        done = run_program(sys.executable, MOVE, "--server-tls", "--server-ca", self.authority.ca, f"{HOST}:{proxy.port}")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("1 keys have moved", done.stdout)
