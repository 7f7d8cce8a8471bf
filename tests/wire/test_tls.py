"""TLS between clients and setlistd. All data is checked byte by byte."""
import contextlib
import os
import re
import ssl
import sys

import test_bounds
import test_concurrency
import test_memory
import test_shared_replies
import test_slow_clients
from case import marks
from case_tls import Secured, TlsTest
from harness import EVENLY, HOST, backlog, free_port, run_program, setlistd, wait_until
from key_updates import Context
from stored import stats
from wire import Closed

MIB = 1 << 20


class Clients(TlsTest):
    smoke = True

    def test_versions(self):
        self.serve_tls()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            conn = self.secured(self.proxy, context)
            self.assertEqual(conn.sock.tls.version(), version.name.replace("_", "."))
            self.assertEqual(conn.ask("mn"), "MN")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.load_verify_locations(self.authority.ca)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with self.assertRaises((ssl.SSLError, OSError)):
            self.secured(self.proxy, old)

    def test_large_values(self):
        self.check_large_values(self.serve_tls(server=("-I", "16m")))

    def test_byte_by_byte(self):
        """Each byte in a separate record."""
        conn = self.serve_tls()
        for byte in b"set k 0 0 5\r\nhello\r\nget k\r\nsadd s a b\r\nscard s\r\n":
            conn.send(bytes([byte]))
        self.assertEqual(conn.line(), b"STORED")
        self.assertEqual(conn.read_values()[0]["k"][1], b"hello")
        self.assertEqual([conn.line(), conn.line()], [b"STORED", b"2"])

    def test_what_the_session_holds(self):
        """The last record was received together with earlier ones: nothing more arrives on the socket, but it is read."""
        conn = self.serve_tls("max_pipeline = 8")
        for count in (0, 500):
            asked = b"get a\r\n" * count
            begun, rest = 300000, 65536 - len(asked) - 2
            conn.send(b"set k 0 0 %d\r\n" % (begun + rest) + b"x" * begun)
            wait_until("that is read", lambda: backlog(conn.sock)[1] == 0)
            self.proxy.process.pause()
            before = conn.sock.sent
            last = b"x" * rest + b"\r\n" + asked  # the size of one read, in records of 1000 bytes
            for start in range(0, len(last), 1000):
                conn.send(last[start:start + 1000])
            conn.send(b"get a\r\n")
            wait_until("all is there", lambda: backlog(conn.sock)[1] == conn.sock.sent - before)
            self.proxy.process.resume()
            self.assertEqual(conn.line(), b"STORED")
            self.assertEqual([conn.line() for _ in range(count + 1)], [b"END"] * (count + 1))


    def test_both_kinds_of_listener(self):
        """One port with TLS, one without. A client that uses the wrong one is closed, and others are not affected."""
        port = free_port()
        self.proxy = self.setlistd([self.memcached()], "-l", f"tls:{HOST}", "-l", f"{HOST}:{port}", "-v", config=self.listening())
        conn, plain = self.secured(self.proxy), self.connect(port)
        self.assertEqual(conn.set("k", b"v"), "STORED")
        self.assertEqual(plain.get("k"), b"v")
        for text in (b"get k\r\n", b"GET / HTTP/1.1\r\n\r\n", b"x" * 100000):
            wrong = self.connect(self.proxy)
            wrong.send(text)
            self.assertNotIn(b"VALUE", wrong.rest())
        wait_until("the log says so", lambda: "it does not speak TLS" in self.proxy.process.stderr())
        with self.assertRaises((ssl.SSLError, OSError)):
            self.secured(port)
        self.assertEqual(conn.get("k"), b"v")
        self.assertEqual(plain.get("k"), b"v")
        conn.send(b"stats settings\r\n")
        self.assertIn(f"STAT listen tls:{HOST}:{self.proxy.port}", conn.lines_until("END"))


class KeyUpdates(TlsTest):
    """Records without data, which OpenSSL does not report. A client may send them before it is authenticated."""
    smoke = True

    def setUp(self):
        self.updating = Context()
        if not self.updating.is_usable:
            self.skipTest("there is no libssl")
        self.proxy = self.setlistd_tls([self.memcached()], "-v")
        self.conn, self.other = self.secured(self.proxy, self.updating), self.secured(self.proxy)
        self.assertEqual((self.conn.ask("mn"), self.other.ask("mn")), ("MN", "MN"))

    def send(self, updates):
        self.conn.sock.tls.update_keys(updates)
        self.conn.send(b"mn\r\n")

    def test_some_are_carried_out(self):
        for _ in range(10):
            self.send(1000)
            self.assertEqual(self.conn.line(), b"MN")

    def test_many_without_data_are_refused(self):
        with self.assertRaises((Closed, ConnectionError)):
            self.send(3000)
            self.conn.line()
        wait_until("the log says so", lambda: "TLS: too many records without data" in self.proxy.process.stderr())
        self.assertEqual(self.other.ask("mn"), "MN")

    def test_others_have_their_turn(self):
        """However much was received, little of it is read at once: a request after further updates is answered in a later turn."""
        self.conn.sock.take_records()
        before = self.conn.sock.sent
        self.proxy.process.pause()
        for _ in range(3):
            self.send(700)
        wait_until("all is there", lambda: backlog(self.conn.sock) == (0, self.conn.sock.sent - before))
        self.assertGreater(self.conn.sock.sent - before, 3 * 16384)
        self.proxy.process.resume()
        self.assertEqual([self.conn.line() for _ in range(3)], [b"MN"] * 3)
        self.assertEqual(len(self.conn.sock.take_records()), 3)


class Shared(Secured, test_shared_replies.Order):
    """Sets that are written without a copy."""
    smoke = True

    def test_records_are_full(self):
        """Texts and the data between them are gathered, without a record for each."""
        members = [b"m-%04d" % n for n in range(2500)]  # just large enough to be shared
        reply = self.load("small", members)
        conn = self.connect(self.proxy)
        self.assertEqual(conn.ask("mn"), "MN")
        conn.sock.take_records()
        conn.send(b"smembers" + b" small" * 20 + b"\r\n")
        size = 20 * (len(reply) - 5) + 5
        while len(conn.buffer) < size:
            conn._fill()
        self.assertEqual(bytes(conn.buffer), reply[:-5] * 20 + reply[-5:])
        self.assertLess(len(conn.sock.take_records()), 2 * size // 16384)


class Moved(Secured, test_concurrency.Moved):
    """Clients that are given to another thread under way, and their sessions with them."""
    smoke = True


class Pipelines(Secured, test_concurrency.Pipelines):
    smoke = True


class HalfClose(Secured, test_concurrency.HalfClose):
    """The client announces its end, and its requests are answered."""
    smoke = True


class Slow(Secured, test_slow_clients.Slow):
    smoke = plain = False


class LastReplies(Secured, test_bounds.LastReplies):
    """Executed requests are answered, even if nothing more is read."""
    smoke = False


class Memory(Secured, test_memory.Memory):
    smoke = plain = False
    test_all_is_given_back = None  # a session uses some as long as it exists


class Ends(TlsTest):
    smoke = True

    def test_quit(self):
        """The end is announced with a close_notify, so that replies cannot be cut off undetected."""
        conn = self.serve_tls()
        conn.send(b"mn\r\nquit\r\n")
        self.assertEqual(conn.rest(), b"MN\r\n")
        self.assertTrue(conn.sock.announced)

    def test_idle(self):
        """It is also announced to a client that is closed because it was idle."""
        conn = self.serve_tls("idle_timeout = 50")
        self.assertEqual(conn.rest(), b"")
        self.assertTrue(conn.sock.announced)

    def test_half_closed(self):
        """The client announces that it sends no more, with or without an end of file: it receives its replies, and the same from the other
        side."""
        self.serve_tls()
        for is_closed in (True, False):
            conn = self.secured(self.proxy)
            conn.send(b"set k 0 0 5\r\nhello\r\nget k\r\n")
            (conn.half_close if is_closed else conn.sock.say_end)()
            self.assertEqual(conn.rest(), b"STORED\r\nVALUE k 0 5\r\nhello\r\nEND\r\n")
            self.assertTrue(conn.sock.announced or not is_closed)

    def test_cut_off(self):
        """A client that goes away without a word, with and without unread replies."""
        other = self.serve_tls()
        for unread in (b"", b"mn\r\n"):
            for end in ("close", "reset"):
                conn = self.secured(self.proxy)
                conn.send(unread)
                getattr(conn, end)()
        wait_until("all but one are gone", lambda: stats(other)["curr_connections"] == "1")

    def test_handshake_takes_too_long(self):
        """A handshake that is not begun, or not completed, ends as a request that is not complete."""
        done = self.serve_tls("request_read_timeout = 100")
        silent, begun = self.connect(self.proxy), self.connect(self.proxy)
        begun.send(b"\x16\x03\x01\x02\x00\x01")
        self.assertEqual((silent.rest(), begun.rest()), (b"", b""))
        self.assertEqual(done.ask("mn"), "MN")
        self.assertEqual(stats(done, "stats")["closed_unfinished_clients"], "2")

    @marks(smoke=False)
    def test_end_of_the_daemon(self):
        """With clients before, during and after their handshake."""
        conn = self.serve_tls()
        waiting, begun = self.connect(self.proxy), self.connect(self.proxy)
        begun.send(b"\x16\x03\x01\x02\x00\x01")
        wait_until("all are accepted", lambda: stats(conn)["curr_connections"] == "3")
        self.proxy.stop()
        self.assertEqual((conn.rest(), waiting.rest(), begun.rest()), (b"", b"", b""))
        self.assertTrue(conn.sock.announced)

    def test_no_place(self):
        self.proxy = self.setlistd_tls([self.memcached()], config="max_connections = 1")
        first = wait_until("there is a place", self.try_it)
        self.assertIsNone(self.try_it())
        self.assertEqual(first.ask("mn"), "MN")

    def try_it(self):
        try:
            return self.secured(self.proxy)
        except OSError:
            return None

    def test_garbage(self):
        """Bytes that are not TLS, at the start and after a complete handshake."""
        broken = self.serve_tls()
        self.assertEqual(broken.ask("mn"), "MN")
        for i in range(50):
            conn = self.connect(self.proxy)
            conn.send(b"\x16\x03\x03" + os.urandom(i * 40 + 2))
            with contextlib.suppress(OSError):  # setlistd may have closed the connection already
                conn.half_close()
            conn.rest()
        broken.sock.sock.sendall(b"\x17\x03\x03\x00\x30" + os.urandom(48))
        with self.assertRaises((Closed, ssl.SSLError)):
            broken.line()
        self.assertEqual(self.secured(self.proxy).ask("mn"), "MN")


class Sessions(TlsTest):
    smoke = True

    def is_resumed(self, proxy, context):
        first = self.secured(proxy, context)
        self.assertEqual(first.ask("mn"), "MN")
        self.assertFalse(first.sock.tls.session_reused)
        again = self.secured(proxy, context, session=first.sock.tls.session)
        self.assertEqual(again.ask("mn"), "MN")
        self.assertTrue(again.sock.tls.session_reused)

    def test_resumed(self):
        proxy = self.setlistd_tls([self.memcached()], "-t", "2", config=EVENLY)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.context()
            context.minimum_version = context.maximum_version = version
            self.is_resumed(proxy, context)

    def test_resumed_with_a_certificate(self):
        own = self.authority.sign("client")
        proxy = self.setlistd_tls([self.memcached()], config=f'tls_client_ca = "{self.authority.ca}"')
        self.is_resumed(proxy, self.context(own))


class Certificates(TlsTest):
    """tls_client_ca: clients must show who they are."""
    smoke = True

    def refused(self, context):
        """With TLS 1.3 a client learns of it after its handshake, on its first read."""
        with self.assertRaises((ssl.SSLError, OSError, Closed)):
            conn = self.secured(self.proxy, context)
            conn.send(b"mn\r\n")
            conn.line()

    def test_right_and_wrong(self):
        self.proxy = self.setlistd_tls([self.memcached()], "-v", config=f'tls_client_ca = "{self.authority.ca}"')
        good, late = self.authority.sign("client"), self.authority.sign("late", expired=True)
        other = type(self.authority)(self.folder, "other").sign("stranger")
        self.assertEqual(self.secured(self.proxy, self.context(good)).ask("mn"), "MN")
        for own, reason in ((None, "peer did not return a certificate"), (late, "certificate refused: expired"),
                            (other, "certificate refused: unknown CA")):
            self.refused(self.context(own))
            wait_until(reason, lambda: reason in self.proxy.process.stderr())
        self.assertEqual(self.secured(self.proxy, self.context(good)).ask("mn"), "MN")


class Configuration(TlsTest):
    smoke = True

    def check(self, text):
        path = os.path.join(self.folder, "setlistd.conf")
        with open(path, "w", encoding="utf-8") as out:
            out.write(f'servers = {{"{HOST}:1"}}\n' + text)
        return setlistd("-T", "-f", path)

    def test_good(self):
        for text in (self.listening(f'listen = {{"tls:{HOST}"}}'), self.listening(), self.verifying(),
                     self.listening(self.verifying()), "server_tls = true\nserver_tls_verify = false\n"):
            self.assert_good(self.check(text), text)

    def test_bad(self):
        other, key = self.authority.sign("other")
        locked = os.path.join(self.folder, "locked.key")
        run_program("openssl", "ec", "-in", key, "-aes128", "-passout", "pass:secret", "-out", locked, check=True)
        missing, text = os.path.join(self.folder, "none.pem"), os.path.join(self.folder, "setlistd.conf")
        for config, wanted in (
                (f'listen = {{"tls:{HOST}"}}', f"tls_certificate: needed to listen on tls:{HOST}:11311"),
                (f'listen = {{"tls:unix:/x"}}', "TLS is not supported on a Unix socket"),
                (f'tls_certificate = "{other}"', "tls_key: needed with tls_certificate"),
                (f'tls_key = "{key}"', "tls_certificate: needed with tls_key"),
                (f'tls_certificate = "{missing}"\ntls_key = "{key}"', f"tls_certificate: {missing}: No such file or directory"),
                (f'tls_certificate = "{text}"\ntls_key = "{key}"', f"tls_certificate: {text}: no start line"),
                (f'tls_certificate = "{other}"\ntls_key = "{self.files[1]}"', f"tls_key: {self.files[1]}: key values mismatch"),
                (f'tls_certificate = "{other}"\ntls_key = "{locked}"', f"tls_key: {locked}: "),
                (self.listening(f'tls_client_ca = "{missing}"'), f"tls_client_ca: {missing}: No such file or directory"),
                (f'server_tls_ca = "{text}"', f"server_tls_ca: {text}: no certificate or crl found"),
                (f'server_tls_certificate = "{other}"', "server_tls_key: needed with server_tls_certificate"),
                (f'server_tls_certificate = "{other}"\nserver_tls_key = "{missing}"', f"server_tls_key: {missing}: No such file")):
            self.assert_refused(self.check(config), wanted)

    def test_unreadable_for_the_user(self):
        """The files are read before the process becomes another user."""
        if os.geteuid() != 0:
            self.skipTest("not root")
        os.chmod(self.files[1], 0o600)
        proxy = self.setlistd_tls([self.memcached()], "-u", "nobody")
        self.assertEqual(self.secured(proxy).ask("mn"), "MN")


class Pymemcache(TlsTest):
    smoke = True

    def test_client(self):
        proxy = self.setlistd_tls([self.memcached()])
        script = ("import ssl, sys\nfrom pymemcache.client.base import Client\n"
                  "c = Client((sys.argv[1], int(sys.argv[2])), tls_context=ssl.create_default_context(cafile=sys.argv[3]))\n"
                  "print(c.set('k', b'x' * 500000, noreply=False), len(c.get('k')), c.get_many(['k', 'none']).keys(), c.delete('k', noreply=False))")
        done = run_program(sys.executable, "-B", "-c", script, HOST, str(proxy.port), self.authority.ca)
        if re.search("No module named 'pymemcache'", done.stderr):
            self.skipTest("there is no python3-pymemcache")
        self.assertEqual((done.stdout, done.stderr), ("True 500000 dict_keys(['k']) True\n", ""))
