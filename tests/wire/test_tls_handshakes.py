"""TLS handshakes with clients: they wait for clients that are ready, and their memory is counted, limited and freed.

setlistd gives a client five seconds for its handshake. If a slow machine lets these pass, the attempt proves nothing, and is repeated.
"""
import ssl

from case import marks
from case_bounds import BoundsTest
from case_tls import TlsTest
from harness import HOST, built_with_sanitizer, free_port, wait_until
from scripted import arrive
from stored import stats
from wire import Closed


class Handshake:
    """A client's, step by step, which verifies nothing."""

    def __init__(self, conn, context):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.conn = conn
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing)

    def go_on(self):
        """Returns the bytes to be sent now; none if more must be received first."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()

    def answer(self):
        """Reads until there are bytes to send, and returns them."""
        while True:
            data = self.conn.sock.recv(65536)
            if not data:
                raise Closed()
            self.incoming.write(data)
            step = self.go_on()
            if step:
                return step


def half():
    """A part of the first message."""
    return Handshake(None, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).go_on()[:200]


class HandshakeTest(TlsTest, BoundsTest):
    """Next to a client without TLS, which reads the counters."""

    def serve(self, config="", files=None):
        port = free_port()
        certificate, key = files or self.files
        self.proxy = self.setlistd([self.memcached()], "-l", f"tls:{HOST}", "-l", f"{HOST}:{port}",
                                   config=f'tls_certificate = "{certificate}"\ntls_key = "{key}"\n{config}\n')
        self.proxy.process.wait_ready((HOST, port))
        self.watcher = self.connect(port)
        self.assertEqual(self.watcher.ask("mn"), "MN")

    def begin(self, context=None):
        return Handshake(self.connect(self.proxy), context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def open_half(self, done):
        """Connections that send a part of their first message. Whether it was done before setlistd gave one of them up."""
        before = self.count("closed_unfinished_clients")
        conns, part = [self.connect(self.proxy) for _ in range(600)], half()
        for conn in conns:
            conn.send(part)
        wait_until("it is done, or one is given up", lambda: done() or self.count("closed_unfinished_clients") > before)
        for conn in conns:
            conn.close()
        wait_until("all have gone", lambda: self.count("curr_connections") == 1)
        return done()


class Line(HandshakeTest):
    smoke = True
    MANY = 100

    def test_clients_that_are_ready_go_first(self):
        """Each received step decrypts with a large key. A request that arrived after all of them is answered before most."""
        self.serve(files=self.authority.sign_itself("rsa", ("basicConstraints=CA:FALSE",), ("rsa:3072",)))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_ciphers("AES128-GCM-SHA256")
        wait_until("setlistd gives nobody up", self.burst)

    def burst(self):
        clients = [self.begin(self.context) for _ in range(self.MANY)]
        for client in clients:
            client.conn.send(client.go_on())
        try:
            steps = [client.answer() for client in clients]
        except (Closed, ConnectionError):
            return False
        before = stats(self.watcher)
        with self.proxy.process.paused():
            for client, step in zip(clients, steps):
                client.conn.send(step)
            for client in clients:
                arrive(client.conn.sock)
            self.watcher.send(b"stats\r\n")
            arrive(self.watcher.sock)
        asked = dict(line.split(" ", 2)[1:] for line in self.watcher.lines_until("END")[:-1])
        self.assertLess(int(asked["tls_handshakes"]) - int(before["tls_handshakes"]), self.MANY // 4)
        wait_until("all are done or given up", lambda: self.since(before, "tls_handshakes", "closed_connections") >= self.MANY)
        return self.since(before, "tls_handshakes") == self.MANY

    def since(self, before, *names):
        now = stats(self.watcher)
        return sum(int(now[name]) - int(before[name]) for name in names)

    def test_who_has_given_up_takes_no_time(self):
        """A client whose first message announces that it sends no more cannot complete the handshake, so it is not begun."""
        self.serve()
        with self.proxy.process.paused():
            client = self.begin()
            client.conn.send(client.go_on())
            client.conn.half_close()
        self.assertEqual(client.conn.rest(), b"")


class Bounds(HandshakeTest):
    smoke = True

    def test_what_a_handshake_takes_is_counted(self):
        """This number of incomplete handshakes needs more than client_memory; idle sessions would not."""
        self.serve("client_memory = 12582912")
        wait_until("some are closed for that", self.attempt)

    def attempt(self):
        return self.open_half(lambda: self.count("closed_memory_clients"))

    @marks(smoke=False)
    def test_a_handshake_has_five_seconds(self):
        """Though a request may be incomplete for ever."""
        self.serve("request_read_timeout = 0")
        silent, begun = self.connect(self.proxy), self.connect(self.proxy)
        begun.send(half())
        self.assertEqual((silent.rest(), begun.rest()), (b"", b""))
        self.assertGreaterEqual(self.count("closed_unfinished_clients"), 2)
        self.assertEqual(self.watcher.ask("mn"), "MN")

    def test_long_lists_of_certificates_are_refused(self):
        self.proxy = self.setlistd_tls([self.memcached()], "-v", config=f'tls_client_ca = "{self.authority.ca}"')
        own, key = self.authority.sign("client")
        self.assertEqual(self.secured(self.proxy, self.context((own, key))).ask("mn"), "MN")
        with open(self.authority.ca, encoding="ascii") as ca, open(own, "a", encoding="ascii") as out:
            out.write(ca.read() * 180)
        with self.assertRaises((ssl.SSLError, OSError, Closed)):
            self.secured(self.proxy, self.context((own, key))).ask("mn")
        wait_until("the log says so", lambda: "TLS: excessive message size" in self.proxy.process.stderr())


class Memory(HandshakeTest):
    alone = True
    smoke = True
    plain = True

    def test_what_many_have_taken_is_given_back(self):
        if built_with_sanitizer():
            self.skipTest("a sanitizer keeps memory that was freed")
        self.serve("client_memory = 33554432")
        before = self.proxy.peak_mib()
        wait_until("much is taken", lambda: self.open_half(lambda: self.proxy.peak_mib() > before + 16))
        wait_until("most is given back", lambda: self.proxy.status_kib("VmRSS") / 1024 < before + 10)
