"""A new configuration takes effect without a stop: no connection is dropped, no reply is lost or sent to the wrong request."""
import os
import shutil
import signal
import sys

from case import WireTest
from case_tls import Authority, TlsTest
from scripted import silence, value_of
from harness import ESTABLISHED, HOST, accepts, free_port, tcp_sockets, wait_until
from stored import stat, stats
from wire import Conn
from witness import Load

RELOADS = int(os.environ.get("RELOADS", "60"))
REFUSED = "ERROR refused, the old configuration stays in effect; see the log"


def names(servers):
    quoted = (f'"{server.name}"' for server in servers)
    return f"servers = {{{', '.join(quoted)}}}"


class Reloads(WireTest):
    """Commands for a test that reloads."""
    timeout = 60000     # of requests to servers, in milliseconds

    def start(self, config, *args, port=None):
        """`port` is that of a listener in `config`; without one, -p overrides the listeners."""
        self.control = os.path.join(self.scratch(), "control")
        self.proxy = self.setlistd([], *args, config=self.whole(config), tcp=not port)
        if port:
            wait_until("it listens", lambda: accepts((HOST, port)))
            self.proxy.port = port
        self.conn = self.connect(self.proxy)
        self.assertEqual(self.conn.ask("mn"), "MN")

    def whole(self, config):
        control = "#\n" if "control = " in config else f'control = "{self.control}"\n'
        return f'{control}request_timeout = {self.timeout}\nconnect_timeout = 60000\n{config}'

    def reload(self, config):
        self.proxy.write_config(self.whole(config))
        with Conn(self.control) as operator:
            return operator.ask("reload")

    def settings(self):
        return stats(self.conn, "stats settings")


class Changes(Reloads):
    """Which options may change, and which stay."""
    smoke = True

    def setUp(self):
        self.servers = [self.memcached() for _ in range(3)]
        self.a, self.b, self.c = self.servers

    def test_limits(self):
        self.start(names([self.a]))
        self.assertEqual(self.reload(names([self.a]) + "\nmax_value = 100000"), "OK")
        self.assertEqual(self.settings()["max_value"], "100000")
        self.conn.send(b"set k 0 0 200000\r\n" + bytes(200000) + b"\r\n")
        self.assertEqual(self.conn.line(), b"SERVER_ERROR object too large for cache")

    def test_limits_of_time_end(self):
        """0 is no limit, also for a request that has already begun."""
        mute = self.scripted_server()
        servers = names([self.a, mute])
        self.start(servers + "\nrequest_read_timeout = 600000")
        here, there = self.key_on(self.conn, self.a), self.key_on(self.conn, mute)
        mute.faults[there.encode()] = silence
        self.conn.send(f"set {here} 0 0 4\r\nab".encode())
        self.timeout = 1000
        self.assertEqual(self.reload(servers + "\nrequest_read_timeout = 0"), "OK")
        # The timer that looks after clients is shorter than this one, and of the same loop.
        self.assertIn("timed out", self.connect(self.proxy).ask(f"get {there}"))
        self.conn.send(b"cd\r\n")
        self.assertEqual(self.conn.line(), b"STORED")

    def test_unchanged_servers_keep_what_they_know(self):
        """Only limits have changed: connections and cached views are kept."""
        self.start(names([self.a]))
        self.conn.ask("sadd s " + " ".join(f"m{i}" for i in range(100)))
        self.conn.ask("scard s")
        before = stats(self.conn, "stats collections")["cache_bytes"]
        self.assertEqual(self.reload(names([self.a]) + "\nmax_keys = 1000"), "OK")
        self.assertEqual(stats(self.conn, "stats collections")["cache_bytes"], before)
        self.assertEqual(stats(self.conn, "stats upstream")[f"{self.a.name}:connects"], "1")

    def test_servers(self):
        self.start(names([self.a, self.b]))
        ring = stats(self.conn, "stats")["ring"]
        keys = {server: self.keys_on(self.conn, server, 5) for server in (self.a, self.b)}
        for key in keys[self.a] + keys[self.b]:
            self.assertEqual(self.conn.set(key, b"x"), "STORED")
        self.assertEqual(self.reload(names([self.a, self.c])), "OK")
        upstream = stats(self.conn, "stats upstream")
        self.assertEqual(upstream[f"{self.a.name}:connects"], "1")
        self.assertEqual(upstream[f"{self.c.name}:state"], "up")
        self.assertNotIn(f"{self.b.name}:state", upstream)
        for key in keys[self.a] + keys[self.b]:
            stays = self.conn.ask(f"route {key}").endswith(self.a.name)
            self.assertEqual(self.conn.get(key), b"x" if stays and key in keys[self.a] else None)
        self.assertNotEqual(stats(self.conn, "stats")["ring"], ring)
        self.assertEqual(self.reload(names([self.a, self.b])), "OK")
        self.assertEqual(stats(self.conn, "stats")["ring"], ring)
        for key in keys[self.a] + keys[self.b]:
            self.assertEqual(self.conn.get(key), b"x")

    def test_a_server_that_is_gone_is_left(self):
        self.start(names([self.a, self.b]))
        self.assertEqual(self.reload(names([self.a])), "OK")
        with Conn(self.b.port) as direct:
            wait_until("its connection is closed", lambda: stats(direct, "stats")["curr_connections"] == "2")

    def test_a_new_server_is_down(self):
        """It is tried before it is used, and found to be down: only its keys fail."""
        port = free_port()
        self.start(names([self.a]))
        self.assertEqual(self.reload(f'servers = {{"{self.a.name}", "{HOST}:{port}"}}'), "OK")
        replies = {self.conn.ask(f"delete key-{i}") for i in range(100)}
        self.assertIn("NOT_FOUND", replies)
        self.assertEqual(len(replies), 2)
        self.assertTrue((replies - {"NOT_FOUND"}).pop().startswith(f"SERVER_ERROR upstream {HOST}:{port}"))

    def test_distribution_and_weights(self):
        self.start(names([self.a, self.b]))
        places = [self.conn.ask(f"route key-{i}") for i in range(200)]
        self.assertEqual(self.reload(names([self.a, self.b]) + '\ndistribution = "modula"'), "OK")
        self.assertNotEqual([self.conn.ask(f"route key-{i}") for i in range(200)], places)
        self.assertEqual(self.reload(f'servers = {{"{self.a.name} weight=99", "{self.b.name}"}}'), "OK")
        heavy = [self.conn.ask(f"route key-{i}").endswith(self.a.name) for i in range(200)]
        self.assertGreater(sum(heavy), 150)

    def test_rules(self):
        rule = 'collection "list-" {\n type = list\n plain_verbs = true\n}'
        self.start(names([self.a]))
        self.assertEqual(self.conn.set("list-1", b"a"), "STORED")
        self.assertEqual(self.conn.ask("delete list-1"), "DELETED")
        self.assertEqual(self.reload(f"{names([self.a])}\n{rule}"), "OK")
        self.assertEqual(self.conn.ask("rpush list-1 one two"), "STORED")
        self.assertEqual(self.conn.get("list-1"), b"one,two,")
        self.assertEqual(self.reload(names([self.a])), "OK")
        self.assertNotEqual(self.conn.get("list-1"), b"one,two,")

    def test_what_stays(self):
        """It is logged at each reload with another value."""
        same, other = "threads = 2", 'threads = 3\nuser = "nobody"\ncontrol = "/no/such/folder/control"'
        self.start(f"{names([self.a])}\n{same}")
        for count, config in ((1, other), (2, other), (2, same), (3, other)):
            self.assertEqual(self.reload(f"{names([self.a])}\n{config}"), "OK")
            said = self.proxy.process.stderr()
            for stays in ("threads stays 2: ", "user stays unset: ", f"control stays {self.control}: "):
                self.assertEqual(said.count(stays), count, said)
            self.assertEqual(said.count(" stays "), 3 * count, said)
        self.assertEqual(self.settings()["threads"], "2")

    def test_sighup(self):
        self.start(names([self.a]))
        self.proxy.configure(self.whole(names([self.a]) + "\nmax_keys = 77"))
        wait_until("it is read", lambda: self.settings()["max_keys"] == "77")

    def test_sighup_without_a_file(self):
        proxy = self.setlistd([self.a], patient=False)
        conn = self.connect(proxy)
        proxy.process.signal(signal.SIGHUP)
        wait_until("it is handled", lambda: not signals_pending(proxy.pid))
        self.assertEqual(conn.ask("mn"), "MN")

    def test_the_command_line_overrides_again(self):
        """-S and -p are unchanged."""
        self.start(names([self.b]), "-S", self.a.name)
        self.assertEqual(self.reload(names([self.c]) + '\nlisten = {"127.0.0.1:1"}'), "OK")
        self.assertEqual(self.conn.ask("route k"), f"ROUTE k {self.a.name}")
        self.assertTrue(accepts((HOST, self.proxy.port)))

    def test_control(self):
        """Its commands, several operators at once, one that disconnects, and one that sends too much."""
        self.start(names([self.a]))
        self.assertEqual(os.stat(self.control).st_mode & 0o777, 0o600)
        conns = [Conn(self.control) for _ in range(8)]
        for conn in conns:
            conn.send(b"reload\r\nreload\r\n")
            conn.half_close()
        conns.pop().close()
        for conn in conns:
            self.assertEqual(conn.rest(), b"OK\r\nOK\r\n")
            conn.close()
        with Conn(self.control) as operator:
            self.assertEqual(operator.ask("help"), "ERROR unknown command; the only command is: reload")
            operator.send(b"x" * 10000)
            operator.rest()
        self.assertEqual(self.reload(names([self.a])), "OK")


def signals_pending(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return any(line.startswith("ShdPnd:") and int(line.split()[1], 16) for line in status)


BAD = [
    "servers = {", "servers = {}", 'servers = {"127.0.0.1:0"}', 'servers = {"127.0.0.1:99999"}', 'servers = {"a b c"}',
    'servers = {"127.0.0.1:1", "127.0.0.1:1"}', 'servers = {"--NONSENSE"}', 'servers = {"127.0.0.1:1 weight=0"}',
    'listen = {"127.0.0.1:x"}', 'listen = {"192.0.2.1:4000"}', 'listen = {"unix:/no/such/folder/socket"}', "max_keys = 0",
    "max_keys = many", "max_keys = 99999999", "client_memory = -1", "threads = 0", "threads = 65", "nonsense = 1", "max_keys 1",
    "max_keys = ", 'distribution = "random"', 'socket_mode = "9"', 'socket_mode = "7777777"', 'control = "relative"',
    'collection "x" {', 'collection "x" { type = heap }', 'collection "x" { encoding = none }', 'collection "x" { ttl = -1 }',
    'collection "x" { compact_waste = 2 }', 'collection { type = set }', 'events "x" { bucket = "week" }',
    'events "x" { lookback = 0 }', 'collection "x" { encoding = paired }', 'collection "x" { delimiter = "" }', '"', "{", "}",
]


# Errors in a file as a whole.
WITHOUT_LINE = "no servers"


class Bad(Reloads):
    """An invalid file changes nothing, and the log has the line."""
    smoke = True

    def test_each(self):
        server, port = self.memcached(), free_port()
        listen = f'listen = {{"{HOST}:{port}"}}'
        self.start(f"{names([server])}\n{listen}", port=port)
        before, descriptors = (self.settings(), stats(self.conn, "stats")["ring"]), self.proxy.fd_count()
        for number, text in enumerate(BAD):
            with self.subTest(text):
                said = len(self.proxy.process.stderr())
                rest = [line for line in (names([server]), listen) if line.split()[0] != text.split()[0]]
                file = "\n".join([*rest, text])
                self.assertEqual(self.reload("\n" * number + file), REFUSED)
                said = self.proxy.process.stderr()[said:]
                line = 4 + number + len(rest)
                place = f"{self.proxy.config_path}:{line}"
                self.assertTrue(place in said or WITHOUT_LINE in said, f"{place} is not in: {said}")
        self.assertEqual((self.settings(), stats(self.conn, "stats")["ring"]), before)
        wait_until("all is closed", lambda: self.proxy.fd_count() <= descriptors)

    def test_the_file_is_gone(self):
        self.start(names([self.memcached()]))
        os.rename(self.proxy.config_path, self.proxy.config_path + ".away")
        self.addCleanup(os.unlink, self.proxy.config_path + ".away")
        self.assertEqual(self.connect(self.control).ask("reload"), REFUSED)
        self.assertIn("No such file", self.proxy.process.stderr())
        self.assertEqual(self.conn.ask("mn"), "MN")


class Secrets(Reloads, TlsTest):
    """Files that the configuration names are read again. They hold for new connections."""
    smoke = True

    def test_users(self):
        users = self.private_file("foo:bar\n")
        config = names([self.memcached()]) + f'\nauth_file = "{users}"'
        self.start(config.replace("auth_file", "#auth_file"))
        self.assertEqual(self.reload(config), "OK")
        self.assertEqual(self.conn.ask("get k"), "END", "it was there before")
        first, second = self.connect(self.proxy), self.connect(self.proxy)
        self.assertEqual(first.set("login", b"foo bar"), "STORED")
        with open(users, "w", encoding="ascii") as file:
            file.write("foo:new\n")
        self.assertEqual(self.reload(config), "OK")
        self.assertEqual(first.ask("get k"), "END")
        self.assertEqual(second.set("login", b"foo new"), "STORED")
        self.assertEqual(self.connect(self.proxy).set("login", b"foo bar"), "CLIENT_ERROR authentication failure")
        os.chmod(users, 0o644)
        self.assertEqual(self.reload(config), REFUSED)
        self.assertEqual(self.reload(config.replace("auth_file", "#auth_file")), "OK")
        self.assertEqual(self.connect(self.proxy).ask("get k"), "END")

    def test_login_for_servers(self):
        config = names([self.memcached("-Y", self.private_file("foo:bar\n"))])
        self.start(config)
        password = self.private_file("bar\n")
        self.assert_cured_by(f'{config}\nserver_user = "foo"\nserver_password_file = "{password}"')

    def assert_cured_by(self, config):
        """The server is refused until that is the configuration."""
        self.assertTrue(self.conn.ask("get k").startswith("SERVER_ERROR upstream"))
        self.assertEqual(self.reload(config), "OK")
        wait_until("the server is used", lambda: self.conn.ask("get k") == "END")

    def test_certificates(self):
        """A renewed certificate, for clients and for servers; earlier sessions can still be resumed."""
        old, renewed = self.authority.sign("old"), self.authority.sign("renewed")
        paths = [os.path.join(self.folder, name) for name in ("current.pem", "current.key")]
        port, plain = free_port(), free_port()
        config = (names([self.memcached()]) + f'\nlisten = {{"tls:{HOST}:{port}", "{HOST}:{plain}"}}\n'
                  f'tls_certificate = "{paths[0]}"\ntls_key = "{paths[1]}"')
        self.install(old, paths)
        self.start(config, port=plain)
        before = self.secured(port)
        self.assertEqual(self.subject(before), "old")
        for files, reply in ((renewed, "OK"), ((renewed[0], old[1]), REFUSED)):
            self.install(files, paths)
            self.assertEqual(self.reload(config), reply)
            conn = self.secured(port)
            self.assertEqual((self.subject(conn), conn.ask("mn"), before.ask("mn")), ("renewed", "MN", "MN"))
        self.assertIn("tls_key", self.proxy.process.stderr())

    def install(self, files, paths):
        for source, path in zip(files, paths):
            shutil.copy(source, path)

    def subject(self, conn):
        return dict(item[0] for item in conn.sock.tls.getpeercert()["subject"])["commonName"]

    def test_plain_text_becomes_tls(self):
        """On the same port: connected clients stay, and new ones must use TLS."""
        port = free_port()
        config = f"{names([self.memcached()])}\n{self.listening()}"
        self.start(config + f'listen = {{"{HOST}:{port}"}}', port=port)
        self.assertEqual(self.reload(config + f'listen = {{"tls:{HOST}:{port}"}}'), "OK")
        self.assertEqual((self.conn.ask("mn"), self.secured(port).ask("mn")), ("MN", "MN"))

    def test_tls_to_servers(self):
        """A CA that did not sign the server's certificate, and then the one that did."""
        config = f"{names([self.memcached_tls()])}\n{self.verifying()}"
        self.start(config.replace(self.authority.ca, Authority(self.folder, "wrong").ca))
        self.assert_cured_by(config)


class Listeners(Reloads):
    smoke = True

    def test_the_mode_is_set_only_when_it_changes(self):
        """The file is deleted, so each attempt is logged; a user other than the one that opened it would fail with the file too."""
        server, path = self.memcached(), os.path.join(self.scratch(), "socket")
        mode = 'socket_mode = "0640"'
        self.start(f'{names([server])}\n{mode}', "-s", path)
        os.unlink(path)
        self.assertEqual(self.reload(f'{names([server])}\n{mode}'), "OK")
        self.assertNotIn("cannot change its mode", self.proxy.process.stderr())
        self.assertEqual(self.reload(f'{names([server])}\nsocket_mode = "0600"'), "OK")
        wait_until("the attempt is told", lambda: "cannot change its mode" in self.proxy.process.stderr())

    def test_added_and_removed(self):
        """Clients of a listener that is closed stay connected; connections in its backlog are accepted."""
        server = self.memcached()
        first, second = free_port(), free_port()
        path = os.path.join(self.scratch(), "socket")
        self.start(names([server]) + f'\nlisten = {{"{HOST}:{first}"}}', port=first)
        old = self.connect(first)
        self.assertEqual(old.ask("mn"), "MN")
        both = f'\nsocket_mode = "0640"\nlisten = {{"{HOST}:{first}", "{HOST}:{second}", "unix:{path}"}}'
        self.assertEqual(self.reload(names([server]) + both), "OK")
        for address in (first, second, path):
            self.assertEqual(self.connect(address).ask("mn"), "MN")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o640)
        self.assertEqual(self.reload(names([server]) + both.replace("0640", "0600")), "OK")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(self.reload(names([server]) + f'\nlisten = {{"{HOST}:{second}"}}'), "OK")
        self.assertFalse(accepts((HOST, first)))
        self.assertFalse(os.path.exists(path))
        self.assertEqual(old.ask("mn"), "MN")


class InProgress(Reloads):
    """Requests finish where they began, and the order of each client's requests stays."""
    smoke = True

    def setUp(self):
        self.old, self.new = self.scripted_server(), self.scripted_server()
        self.held = self.hold(self.old, "key-held")
        self.start(names([self.old]))

    def move(self, times=1):
        """The new server replaces the old one, which has pending requests of the client."""
        self.held.get(self.conn, times)
        self.assertEqual(self.reload(names([self.new])), "OK")

    def assert_answered(self, *keys, conn=None):
        for key in keys:
            self.assertEqual((conn or self.conn).read_values(), ({key: (0, value_of(key.encode()))}, "END"))

    def test_a_request_is_answered_by_the_server_it_was_sent_to(self):
        other = self.connect(self.proxy)
        self.move()
        self.conn.send(b"get key-next\r\n")
        self.assertEqual(other.get("key-other"), value_of(b"key-other"))
        self.assertTrue(self.new.requests_for(b"key-other"))
        self.assertFalse(self.new.requests_for(b"key-next"), "it must wait for the request before it")
        self.held.release()
        self.assert_answered("key-held", "key-next")
        self.assertTrue(self.new.requests_for(b"key-next"))
        wait_until("the old server is left", lambda: not tcp_connections_to(self.old))

    def test_the_client_leaves_meanwhile(self):
        self.move(times=3)
        self.conn.close()
        self.held.release()
        wait_until("the old server is left", lambda: not tcp_connections_to(self.old))

    def test_several_generations(self):
        """Each reload finds a client whose first request was never answered."""
        self.move()
        for _ in range(5):
            self.assertEqual(self.reload(names([self.new, self.old])), "OK")
            self.assertEqual(self.reload(names([self.new])), "OK")
        self.held.release()
        self.assert_answered("key-held")

    def test_it_is_stopped_meanwhile(self):
        self.move()
        self.proxy.begin_to_end()
        self.held.release()
        self.assert_answered("key-held")
        self.proxy.stop()

    def test_clients_in_line_for_large_values(self):
        """Their turns are in the queue of a server that was removed."""
        conns = [self.connect(self.proxy) for _ in range(60)]
        for conn in conns:
            self.assertEqual(conn.ask("mn"), "MN")
            conn.send(b"get key-held\r\n" * 3)
        watcher = self.connect(self.proxy)
        wait_until("some are sent", lambda: stat(watcher, "stats", "cmd_get") >= 16)
        self.assertEqual(self.reload(names([self.new])), "OK")
        self.held.release()
        for conn in conns:
            self.assert_answered(*["key-held"] * 3, conn=conn)


def tcp_connections_to(server):
    """Connections of any process to the server."""
    return tcp_sockets(ESTABLISHED).count(("0100007F", server.port))


class UnderLoad(Reloads):
    alone = True
    smoke = True

    def test_reloads(self):
        """Between two configurations, with sets and plain items: nothing dropped, lost or mispaired; descriptors as before."""
        servers = [self.memcached() for _ in range(3)]
        one = names(servers[:2]) + "\nthreads = 2\n"
        other = names(servers[1:]) + '\nthreads = 2\nclient_buffer = 1000000\ncollection "set-1" { encoding = signed }\n'
        self.start(one)
        descriptors = self.proxy.fd_count()
        with Load(self.proxy.port) as load:
            for number in range(RELOADS):
                self.assertEqual(self.reload((other, one)[number % 2]), "OK")
                if load.faults:
                    break
            load.wait()
        self.assertEqual(load.faults, [])
        wait_until("all is as before", lambda: self.proxy.fd_count() == descriptors)
        print(f"{RELOADS} reloads, {load.answered} replies, {self.proxy.peak_mib():.0f} MiB", file=sys.stderr)


