"""Users: replies to a client that must authenticate, and the effect of its failures on other clients."""
import os
import threading

import manpage
import player
from case import marks
from case_access import RIGHT, UNAUTHENTICATED, USERS, WRONG, AuthTest, request_of, usages
from harness import EVENLY, HOST, OPTIONS, PATIENCE, wait_until
from wire import Closed, Conn

FAILURE = "CLIENT_ERROR authentication failure"
TRIES = 10  # closed after this number of refused requests


class Users(AuthTest):
    smoke = True

    def test_right(self):
        for login in (b"foo bar", b"ann a:b", b" foo  bar "):
            with Conn(self.proxy.port) as conn:
                self.assertEqual(conn.set("any", login), "STORED")
                self.assertEqual(conn.set("k", b"x"), "STORED")
                self.assertEqual(conn.get("k"), b"x")
                self.assertIsNone(conn.get("any"), "the password was stored")

    def test_wrong(self):
        before = self.seen_by_server()
        for login in (b"foo baz", b"foo ba", b"foo barr", b"fo bar", b"ann bar", b"FOO bar", b"foo foo:bar"):
            with Conn(self.proxy.port) as conn:
                self.assertEqual(conn.set("any", login), FAILURE, login)
                self.assertEqual(conn.ask("get any"), UNAUTHENTICATED)
        for login in (b"", b"foo", b"foobar", b"foo:bar", b" foo"):
            self.assertEqual(self.connect(self.proxy).set("any", login), "CLIENT_ERROR bad authentication token format", login)
        self.assertEqual(self.seen_by_server(), before)
        self.assertEqual((self.count("auth_failures"), self.count("auth_errors"), self.count("auth_ok"), self.count("auth_cmds")),
                         (12, 12, 1, 13))
        said = self.proxy.process.stderr()
        self.assertEqual(said.count("authentication failure"), 12)
        for secret in ("bar", "baz", "foo"):
            self.assertNotIn(secret, said)

    def test_none(self):
        """No command does anything; the list of all is that of `help`."""
        before = self.seen_by_server()
        conns = []
        for name, usage in usages(self.watcher).items():
            if name != "set":
                conns.append((name, self.connect(self.proxy)))
                conns[-1][1].send(request_of(name, usage) + RIGHT + b"mn\r\n")
        self.assertGreater(len(conns), 50)
        for name, conn in conns:
            self.assertEqual([conn.line().decode() for _ in range(3)], [UNAUTHENTICATED, "STORED", "MN"], name)
        self.assertEqual(self.seen_by_server(), before)

    def test_later_set_is_an_ordinary_one(self):
        conn = self.user()
        self.assertEqual(conn.set("auth", b"ann wrong"), "STORED")
        self.assertEqual(conn.get("auth"), b"ann wrong")

    def test_denied_commands(self):
        """They do not matter until the client is authenticated, which a denied `set` still can do."""
        self.serve(config='deny = {"set", "get"}')
        self.assertEqual(self.watcher.set("k", b"x"), "CLIENT_ERROR set is denied here")
        self.assertEqual(self.connect(self.proxy).ask("get k"), UNAUTHENTICATED)

    def test_pipelined_behind_a_right_one(self):
        conn = self.connect(self.proxy)
        conn.send(RIGHT + b"".join(b"set k%d 0 0 100\r\n%s\r\nget k%d\r\n" % (i, b"x" * 100, i) for i in range(2000)))
        self.assertEqual(conn.line(), b"STORED")
        for i in range(2000):
            self.assertEqual(conn.line(), b"STORED")
            self.assertEqual(conn.read_values()[0][f"k{i}"][1], b"x" * 100)

    def test_pipelined_behind_a_wrong_one(self):
        """Each is answered, in order; a correct login after them is accepted."""
        self.assertEqual(self.watcher.set("victim", b"safe"), "STORED")
        conn = self.connect(self.proxy)
        conn.send(WRONG + b"delete victim\r\nadd x 0 0 25\r\n" + RIGHT + b"\r\n" + RIGHT + b"get victim\r\n")
        self.assertEqual([conn.line().decode() for _ in range(4)], [FAILURE, UNAUTHENTICATED, UNAUTHENTICATED, "STORED"])
        self.assertEqual(conn.read_values()[0]["victim"][1], b"safe")

    def test_refused_data_does_not_authenticate(self):
        """memcached reads the data of a refused request as requests."""
        for line in (b"add k 0 0 25", b"add k x 0 25", b"ms k 25"):
            with Conn(self.proxy.port) as conn:
                conn.send(line + b"\r\n" + RIGHT + b"\r\nget k\r\n")
                self.assertEqual((conn.line(), conn.line()), (UNAUTHENTICATED.encode(),) * 2, line)

    def test_noreply(self):
        for data, reply in ((b"foo bar\r\nmn\r\n", "MN"), (b"foo baz\r\ndelete k noreply\r\nmn\r\n", UNAUTHENTICATED)):
            self.assertEqual(self.connect(self.proxy).ask(b"set auth 0 0 7 noreply\r\n" + data[:-2]), reply)

    def test_byte_by_byte(self):
        conn = self.connect(self.proxy)
        for byte in WRONG + RIGHT + b"mn\r\n":
            conn.send(bytes([byte]))
        self.assertEqual([conn.line().decode() for _ in range(3)], [FAILURE, "STORED", "MN"])

    def test_cut_anywhere(self):
        data = RIGHT + b"mn\r\n"
        for cut in range(1, len(data)):
            with Conn(self.proxy.port) as conn:
                conn.send(data[:cut])
                self.assertEqual(self.watcher.ask("mn"), "MN")  # so that the first part was read by itself, as a rule
                conn.send(data[cut:])
                self.assertEqual((conn.line(), conn.line()), (b"STORED", b"MN"), cut)

    def test_too_much(self):
        before = self.seen_by_server()
        for data in (b"set auth 0 0 1025\r\n" + b"x" * 1025 + b"\r\n", b"add k 0 0 1025\r\n", b"set auth 0 0 9999999999\r\n",
                     b"set auth 0 0 many\r\n", b"get " + b"k" * 2048, b"set " + b"k" * 2048, b"ms k 99999999\r\n",
                     b"set auth 0 0 7\r\nfoo bars\r\n", b"\x16\x03"):
            with Conn(self.proxy.port) as conn:
                conn.send(data)
                lines = conn.rest().split(b"\r\n")
                self.assertEqual((len(lines), lines[0][:13]), (2, b"CLIENT_ERROR "), data)
        with Conn(self.proxy.port) as conn:
            conn.send(b"set auth 0 0 1024\r\nfoo bar" + b" " * 1017 + b"\r\nmn\r\n")
            self.assertEqual((conn.line(), conn.line()), (b"STORED", b"MN"))
        self.assertEqual(self.seen_by_server(), before)

    def test_much_behind_a_wrong_one(self):
        """It is closed, now or when it has been refused often enough."""
        conn = self.connect(self.proxy)
        conn.send(WRONG + b"get k\r\n" * 20000)
        lines = conn.rest().split(b"\r\n")
        self.assertEqual(lines[0].decode(), FAILURE)
        self.assertLessEqual(len(lines), TRIES + 1)
        self.assertEqual(set(lines[1:]) - {UNAUTHENTICATED.encode(), b""}, set())

    def test_no_time_is_left(self):
        self.serve(config="request_read_timeout = 500")
        silent, begun, chatty = self.connect(self.proxy), self.connect(self.proxy), self.connect(self.proxy)
        begun.send(b"set auth 0 0 7\r\nfoo")
        chatty.send(b"get k\r\n" * 3)
        self.assertEqual(silent.rest(), b"CLIENT_ERROR not authenticated in time\r\n")
        self.assertRegex(begun.rest(), rb"^CLIENT_ERROR [a-z ]+ in time\r\n$")
        self.assertRegex(chatty.rest(), rb"CLIENT_ERROR not authenticated in time\r\n$")
        self.assertEqual(self.count("closed_unfinished_clients"), 3)
        self.assertEqual(self.watcher.ask("mn"), "MN")

    def test_on_a_unix_socket(self):
        path = os.path.join(self.scratch(), "s.sock")
        self.serve("-s", path)
        self.assertEqual(self.connect(path).ask("mn"), UNAUTHENTICATED)


class Examples(AuthTest):
    smoke = True

    def test_of_the_manual(self):
        """Commands that require a login are executed here; a wrong password in one causes a pause."""
        found = [each for page in OPTIONS.manpages for each in manpage.examples(page, "guarded")]
        self.assertGreater(len(found), 0)
        self.serve(users=USERS + "ann:secret\n")
        for example in found:
            player.Player(example, self.proxy.port).play()


class Failures(AuthTest):
    """A client that guesses is delayed; others are not."""
    smoke = True

    def test_a_pause(self):
        """Between two requests of a client that were sent together, others are served: without a pause this would never happen."""
        def seen():
            before = self.count("auth_failures")
            with Conn(self.proxy.port) as conn:
                conn.send(WRONG * 2)
                self.assertEqual(conn.line().decode(), FAILURE)
                between = self.count("auth_failures")
                self.assertEqual(conn.line().decode(), FAILURE)
            return between == before + 1
        wait_until("a pause", seen)

    @marks(smoke=False)
    def test_the_end(self):
        conn, other = self.connect(self.proxy), self.connect(self.proxy)
        conn.send(WRONG * (TRIES + 1))
        other.send(b"version\r\n" * (TRIES + 1))
        self.assertEqual(conn.rest().decode(), (FAILURE + "\r\n") * TRIES)
        self.assertEqual(other.rest().decode(), (UNAUTHENTICATED + "\r\n") * TRIES)

    @marks(smoke=False)
    def test_others_are_served(self):
        """Many that fail as fast as they can have ten tries each, and one that does not gets on in between."""
        self.assertEqual(self.watcher.set("k", b"x"), "STORED")
        guessers = [self.connect(self.proxy) for _ in range(50)]
        left = threading.Semaphore(0)

        def drain(conn):
            conn.rest()
            left.release()
        for conn in guessers:
            conn.send(WRONG * 100)
            threading.Thread(target=drain, args=(conn,), daemon=True).start()
        ended = served = 0
        while ended < len(guessers):
            self.assertEqual(self.watcher.get("k"), b"x")
            served += 1
            ended += left.acquire(blocking=False)
        self.assertEqual(self.count("auth_failures"), len(guessers) * TRIES)
        self.assertGreater(served, 50)

    @marks(smoke=False)
    def test_a_client_that_leaves(self):
        """During its pause; and the end of the daemon during one."""
        for _ in range(20):
            with Conn(self.proxy.port) as conn:
                conn.send(WRONG)
                self.assertEqual(conn.line().decode(), FAILURE)
        wait_until("they are gone", lambda: self.count("curr_connections") == 1)
        conn = self.connect(self.proxy)
        conn.send(WRONG * 2)
        self.assertEqual(conn.line().decode(), FAILURE)
        self.proxy.stop()


class Places(AuthTest):
    smoke = True

    def admitted(self):
        try:
            return self.user()
        except (AssertionError, Closed, OSError):
            return None

    def serve_few(self, places, *args, config=""):
        """Only the watcher has a connection; not even the one that checked whether the port listens."""
        self.serve(*args, config=f"max_connections = {places}\n{config}")
        self.open(1)

    def open(self, count):
        wait_until(f"{count} connections", lambda: self.count("curr_connections") == count)

    def replaced(self, *args, config=""):
        """Which of two that did not authenticate keep their places."""
        self.serve_few(3, *args, config=config)
        strangers = [self.connect(self.proxy) for _ in range(2)]
        self.open(3)
        newcomer = wait_until("a place", self.admitted, pause=0.05)
        self.assertEqual(newcomer.ask("mn"), "MN")
        self.assertEqual(self.watcher.ask("mn"), "MN")
        self.assertEqual(self.count("replaced_clients"), 1)
        stay = []
        for conn in strangers:
            try:
                stay.append(conn.ask("mn") == UNAUTHENTICATED)
            except (Closed, OSError):
                stay.append(False)
        return stay

    def test_who_is_not_authenticated_goes_first(self):
        self.assertEqual(self.replaced(), [False, True])

    @marks(smoke=False)
    def test_of_several_threads(self):
        """With three threads, all connections that may be closed are in the first one."""
        self.assertEqual(sorted(self.replaced("-t", "2", config=EVENLY)), [False, True])
        self.assertEqual(sorted(self.replaced("-t", "3")), [False, True])

    def test_who_is_stays(self):
        self.serve_few(2)
        second = self.user()
        self.assertEqual(self.connect(self.proxy).rest(), b"ERROR Too many open connections\r\n")
        self.assertEqual((self.watcher.ask("mn"), second.ask("mn")), ("MN", "MN"))


class Clients(AuthTest):
    """Stock clients authenticate with a set of any key."""
    smoke = True

    def test_pymemcache(self):
        from pymemcache.client.base import Client
        from pymemcache.exceptions import MemcacheClientError
        for noreply in (True, False):
            client = Client((HOST, self.proxy.port), timeout=PATIENCE, default_noreply=noreply)
            self.addCleanup(client.close)
            self.assertTrue(client.set("auth", "foo bar"))
            self.assertTrue(client.set("k", b"v", noreply=False))
            self.assertEqual(client.get("k"), b"v")
        wrong = Client((HOST, self.proxy.port), timeout=PATIENCE, default_noreply=False)
        self.addCleanup(wrong.close)
        with self.assertRaises(MemcacheClientError):
            wrong.set("auth", "foo baz")
        with self.assertRaises(MemcacheClientError):
            wrong.get("k")

    def test_pylibmc(self):
        import pylibmc
        from test_clients import PATIENT
        client = pylibmc.Client([f"{HOST}:{self.proxy.port}"], binary=False, behaviors=dict(PATIENT))
        with self.assertRaisesRegex(pylibmc.Error, "authentication failure"):
            client.set("auth", "foo baz")
        self.assertTrue(client.set("auth", "foo bar"))
        self.assertTrue(client.set("k", "v"))
        self.assertEqual(client.get("k"), "v")
