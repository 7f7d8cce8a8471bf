"""The program itself: its options, its configuration, its sockets."""
import os
import re
import stat

from case import WireTest
from harness import HOST, LISTEN, accepts, free_port, setlistd, tcp_sockets, wait_until
from wire import Closed, Conn
SERVERS = 'servers = {"127.0.0.1:11211"}\n'
COMMENTED = '# one\n// two /*\n/* three\n  # four */ servers = { # five\n  "a", /* six */ "b" }\ncommands_delimiter = "#" commands = a//|\n'


class Scratch(WireTest):
    def setUp(self):
        self.folder = self.scratch()

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, text, name="setlistd.conf"):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        return self.path(name)


class Options(Scratch):
    smoke = True

    def test_version(self):
        done = setlistd("-V")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"\d+\.\d+\.\d+")

    def test_help(self):
        done = setlistd("-h")
        self.assertEqual(done.returncode, 0, done)
        for option in "-a -c -f -l -p -s -S -t -u -v -T -V".split():
            self.assertRegex(done.stdout, re.escape(option) + r"\b")
        self.assertEqual(setlistd("--help").stdout, done.stdout)
        self.assertEqual(setlistd("--version").stdout, setlistd("-V").stdout)

    def test_long_names(self):
        path = self.file("threads = 2\n")
        self.assert_good(setlistd("--test", "--file", path, "--servers=127.0.0.1:1", "--port", str(free_port()), "--threads", "3", "--verbose",
                                  "--socket", self.path("s"), "--admin", "127.0.0.1", "--commands", "q|", "--listen", "127.0.0.1", "--user", ""))

    def test_what_is_said(self):
        for args, said in ((["--sevrers", "a"], "unknown option --sevrers; did you mean servers?"), (["--nonsense"], "unknown option --nonsense;"),
                           (["-vZ"], "unknown option -Z;"), (["-T", "-p"], "-p, --port: needs a value;"), (["--port"], "-p, --port: needs a value;"),
                           (["-p", "65536"], "-p 65536: must be a decimal number from 0 to 65535;"), (["--test=1"], "-T, --test: takes no value;"), (["-v"], "-V prints the version;")):
            done = setlistd(*args)
            self.assertEqual(done.returncode, 2, done)
            self.assertRegex(done.stderr, rf"\Asetlistd: .*{re.escape(said)}.*\n\Z")

    def test_all_bad_addresses_are_said(self):
        done = setlistd("-T", "-l", "11311", "-l", "h:x", "-S", "[")
        self.assertEqual(done.returncode, 1, done)
        self.assertEqual(sorted(done.stderr.splitlines()), ["setlistd: -S [: missing ]", "setlistd: -l 11311: a port without a host",
                                                            "setlistd: -l h:x: bad port (1 to 65535)"])

    def test_no_server_is_an_error(self):
        self.assert_refused(setlistd("-p", str(free_port())), "server")
        self.assertEqual(setlistd("-p", str(free_port()), "-S", "").returncode, 1)

    def refused(self, args, status):
        with self.subTest(args=args):
            servers = [] if "-S" in args else ["-S", "127.0.0.1:1"]
            port = [] if "-p" in args else ["-p", str(free_port())]
            done = setlistd(*servers, *port, *args)
            self.assertEqual(done.returncode, status, done)
            self.assertTrue(done.stderr.strip(), "not a word about it")

    def test_wrong_options(self):
        for args in (["-Z"], ["-p", "x"], ["-p", "65536"], ["-p", "-1"], ["-t", "0"], ["-t", "x"], ["-f"], ["stray"]):
            self.refused(args, 2)

    def test_wrong_settings(self):
        for args in (["-f", self.path("missing.conf")], ["-u", "no-such-user-here"], ["-S", ":"], ["-S", "127.0.0.1:x"],
                     ["-S", "127.0.0.1:70000"], ["-S", "--NONSENSE=1"], ["-c", "q"], ["-c", "q |"]):
            self.refused(args, 1)

    def test_port_in_use(self):
        server = self.memcached()
        self.assert_refused(setlistd("-S", server.name, "-p", str(server.port)), str(server.port))

    def test_listens_on_loopback_only(self):
        """By default."""
        proxy = self.setlistd([self.memcached()])
        self.assertEqual({address for address, port in tcp_sockets(LISTEN) if port == proxy.port}, {"0100007F"})

    def test_server_strings(self):
        a, b = self.memcached(), self.memcached()
        for servers in (f"{a.name},{b.name}", f"{a.name} weight=2,{b.name}", f"--SERVER={a.name} --SERVER={b.name}",
                        f"--SERVER={a.name} --SERVER={b.name} --DISTRIBUTION=consistent"):
            with self.subTest(servers=servers):
                conn = self.serve([servers])
                self.assertEqual({conn.ask(f"route k{i}").split()[-1] for i in range(200)}, {a.name, b.name})
                self.assertEqual(conn.set("k", b"x"), "STORED")

    def test_weight(self):
        a, b = self.memcached(), self.memcached()
        conn = self.serve([f"{a.name} weight=9,{b.name} weight=1"])
        heavy = sum(conn.ask(f"route k{i}").endswith(a.name) for i in range(1000))
        self.assertTrue(750 < heavy < 990, f"{heavy} of 1000 keys on the server of weight 9 of 10")

    def test_server_on_a_unix_socket(self):
        path = self.path("mc.sock")
        os.chmod(self.folder, 0o777)
        self.memcached_at(path, "-s", path, "-a", "0777")
        conn = self.serve([f"unix:{path}"])
        self.assertEqual((conn.set("k", b"x"), conn.get("k")), ("STORED", b"x"))


class SameServers(WireTest):
    """setlistd and a libmemcached client that are given the same servers agree on where each key lives."""
    smoke = True

    KEYS = [f"key-{i}" for i in range(300)] + ["schlüssel", "a" * 200]

    def agree(self, config, **behaviors):
        import pylibmc
        from test_clients import PATIENT
        conn = self.serve(3, config=config)
        client = pylibmc.Client([s.name for s in self.servers], binary=False,
                                behaviors=dict(PATIENT, **behaviors, verify_keys=False))
        for key in self.KEYS:
            client.set(key.encode(), key.encode())
        for key in self.KEYS:
            self.assertEqual(conn.get(key), key.encode(), f"{key} is elsewhere for the client")
            self.assertEqual(conn.ask(f"sadd set-{key} x"), "STORED")
            self.assertEqual(client.get(f"set-{key}".encode()), b"+x ")

    def test_each_distribution(self):
        self.agree(None, ketama_weighted=True)
        self.agree('distribution = "ketama"', ketama_weighted=True)
        for name in ("consistent", "modula"):
            self.agree(f'distribution = "{name}"', distribution=name)


class Configuration(Scratch):
    smoke = True

    def check(self, text):
        return setlistd("-T", "-f", self.file(text))

    def good(self, text):
        self.assert_good(self.check(text), text)

    def bad(self, text, line, word=""):
        with self.subTest(text=text):
            self.assert_refused(self.check(text), f"{self.path('setlistd.conf')}:{line}: ", word)

    def test_good_files(self):
        """Comments may stand in a list."""
        for text in ("", "# {", 'events "E{" {\n  separator = "}"\n}\n# {',
                     'listen = {"127.0.0.1:11311", "unix:/run/x.sock"}\nthreads = 2\n',
                     'collection "a-" { type = "set" encoding = "oplog" ttl = 10 }\nevents "E" { bucket = "day" }\n',
                     'collection "a-" { }\nevents "E" { }\n', "idle_timeout = 0800\n",
                     'connect_timeout = 200\nrequest_timeout = 300\nretry_min = 10\nretry_max = 100\nmax_line = 65536\n'
                     'max_value = 1000000\nmax_keys = 100\nmax_pipeline = 64\nclient_buffer = 100000\nserver_queue = 1000\n'
                     'max_connections = 500\nsocket_mode = "0770"\nverbose = 1\ndistribution = "modula"\n'):
            self.good(SERVERS + text)
        self.good('servers = {"127.0.0.1:11211", "127.0.0.1:11212 weight=2"}\n')
        self.good(COMMENTED)

    def test_servers_from_the_command_line(self):
        self.assert_good(setlistd("-T", "-f", self.file("threads = 2\n"), "-S", "127.0.0.1:1"))

    def test_very_many_servers(self):
        """libmemcached, which reads its strings, aborts where its table of points is full."""
        def check(count, distribution):
            return setlistd("-T", "-f", self.file(f'distribution = "{distribution}"\n'), "-S",
                            ",".join(f"127.0.0.1:{20000 + number}" for number in range(count)))
        def string(count, distribution):
            return setlistd("-T", "-S", " ".join([*(f"--SERVER=127.0.0.1:{20000 + number}" for number in range(count)),
                                                  f"--DISTRIBUTION={distribution}"]))
        for distribution in ("ketama", "consistent", "modula"):
            self.assertEqual(check(1000, distribution).returncode, 0)
            self.assert_refused(check(1001, distribution), "1001 servers: at most 1000 are allowed")
        self.assertEqual(string(100, "consistent").returncode, 0)
        self.assert_refused(string(101, "consistent"), "101 servers: ")
        self.assertEqual(string(101, "modula").returncode, 0)

    def test_no_servers(self):
        self.assert_refused(self.check("threads = 2\n"), "server")

    def test_bad_files(self):
        """Including unclosed sections, strings and comments. Lines after comments are counted correctly."""
        for text, line, word in (
                ("nonsense = 1\n", 2, "nonsense"), ("threads = many\n", 2, ""), ("\n\nthreads = 0\n", 4, "threads"),
                ('distribution = "random"\n', 2, "random"), ('listen = {"127.0.0.1:99999"}\n', 2, ""), ('log = "file"\n', 2, "syslog"),
                ('socket_mode = "999"\n', 2, ""), ('socket_mode = "rwx"\n', 2, ""),
                ('collection "a-" {\n  ttl = 5\n', 3, "not closed"), ('collection "a-" { }\nevents "E" {', 3, "not closed"),
                ('events "E" {\n  ttl = 5\n# }', 4, "not closed"), ('events "E" {\n}\n}\n', 4, "brace"),
                ('user = "abc\nthreads = 2\ndistribution = "modula"\n', 2, "not closed on its line"),
                ('user = "${HOME"\nevents "E" { }\n', 2, "not closed on its line"), ("/* two\n*/\n\n/* five\n\n", 5, "comment"),
                ('events "E" {\n  bucket = "week"\n}\n', 3, "week"), ('events "E" {\n  separator = " "\n}\n', 3, ""),
                ('events "E" {\n  ttl = -5\n}\n', 3, "")):
            self.bad(SERVERS + text, line, word)
        self.bad('servers = {"127.0.0.1:x"}\n', 1)
        self.bad('servers = {"127.0.0.1:11211 weight=none"}\n', 1)
        self.bad("user = 'abc", 1, "not closed on its line")
        self.bad(COMMENTED + "threads = 0\n", 7, "threads")

    def test_servers_named_twice(self):
        self.bad('servers = {"127.0.0.1:1", "127.0.0.1:2",\n"127.0.0.1:1"}\n', 2, "twice")
        self.bad('servers = {"127.0.0.1:1",\n"127.0.0.1:2",\n"127.0.0.1:1 weight=2"}\n', 3, "127.0.0.1:1")
        self.bad('servers = {"unix:/a",\n"/a"}\n', 2, "twice")
        self.good('servers = {"127.0.0.1:1", "127.0.0.2:1", "127.0.0.1:2", "unix:/a"}\n')
        self.bad('servers = {"127.0.0.1,127.0.0.2"}\n', 1, "of its own")
        self.bad('servers = {"127.0.0.1:1",\n"--SERVER=127.0.0.2"}\n', 2, "the only entry")
        self.bad('servers = {"--SERVER=127.0.0.2",\n"127.0.0.1:1"}\n', 2, "the only entry")
        self.assert_refused(setlistd("-T", "-S", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:1"), "listed twice")
        for text in ("--SERVER=127.0.0.1:1 --SERVER=127.0.0.1:2 --SERVER=127.0.0.1:1", '--SOCKET="/a" --SOCKET="/a"'):
            done = setlistd("-T", "-S", text)
            self.assertEqual((done.returncode, done.stderr), (1, "setlistd: a server is listed twice\n"))
        self.good('servers = {"--SERVER=127.0.0.1:1 --SERVER=127.0.0.2:1 --SERVER=127.0.0.1:2"}\n')

    def test_listen_named_twice(self):
        for one, other in (("127.0.0.1:1", "127.0.0.1:1"), ("tls:127.0.0.1:1", "127.0.0.1:1"), ("127.0.0.1", "127.0.0.1:11311"),
                           ("[::1]", "[::1]:11311"), ("unix:/a", "/a"), ("*", "*")):
            self.bad(f'servers = {{"a"}}\nlisten = {{"{one}", "127.0.0.1:2",\n"{other}"}}\n', 3, f'listen: "{other}" is listed twice')
        self.good('servers = {"127.0.0.1:1"}\nlisten = {"127.0.0.1:1", "127.0.0.2:1", "127.0.0.1:2", "unix:/1"}\n')
        done = setlistd("-T", "-S", "127.0.0.1:1", "-l", "127.0.0.1:1", "-l", "127.0.0.1:1")
        self.assertEqual((done.returncode, done.stderr), (1, "setlistd: -l 127.0.0.1:1: an address to listen on is listed twice\n"))

    def test_unusual_bytes(self):
        """An error is one line, whatever the file holds."""
        for text in ("\0", '"" = 5', 'listen = {"a\\nb"}', 'distribution = "a\\nb"', '"a\\nb" = 5'):
            self.bad(f"threads = 2\n{text}\n", 2)
            self.assertEqual(self.check(f"threads = 2\n{text}\n").stderr.count("\n"), 1, text)

    def test_directory(self):
        done = setlistd("-T", "-f", self.path("."))
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, rf"^{re.escape(self.path('.'))}: .*directory")

    def test_number_ranges(self):
        for option in ("threads", "connect_timeout", "request_timeout", "retry_min", "retry_max", "max_connections",
                       "max_line", "max_value", "max_keys", "max_pipeline", "client_buffer", "server_queue"):
            self.bad(SERVERS + f"{option} = -1\n", 2, option)
            self.bad(SERVERS + f"{option} = 99999999999999999999\n", 2)
            self.bad(SERVERS + f"{option} = 0\n", 2, option)
        for text in ('""', "0x10", "1e3", "${NO_SUCH_VARIABLE}"):
            self.bad(SERVERS + f"idle_timeout = {text}\n", 2, "decimal")

    def test_collections(self):
        for options in ('encoding = "oplog"', 'encoding = "signed"', 'encoding = "csv"', 'encoding = "csv" delimiter = ";"',
                        'type = "set" encoding = "tombstone"', 'encoding = "paired" removed = "unfollow-"', 'encoding = "flip"',
                        'encoding = "flip" pointer = true', 'encoding = "indexed" plain_verbs = true', 'type = "list"',
                        'type = "list" encoding = "csv" delimiter = "/" plain_verbs = true', 'plain_verbs = true delimiter = "."',
                        'type = "list" max = 1', 'type = "list" max = 1000000 newest = "first"', 'max = 0 newest = "last"', "spread = 1", 'type = "list" dead = "d" dead_after = 1', 'dead = "" dead_after = 1000000', "only = true", 'encoding = "flip" only = false',
                        'encoding = "oplog" spread = 10', 'encoding = "csv" spread = 1'):
            self.good(SERVERS + f'collection "a-" {{ {options} }}\n')

    def test_bad_collections(self):
        for option, word in (('type = "bag"', "bag"), ('encoding = "xml"', "xml"), ('colour = "red"', "colour"), ("ttl = -5", "ttl"),
                             ("compact_waste = 0.0", "compact_waste"), ('delimiter = ""', "delimiter"), ('delimiter = ",,"', "delimiter"),
                             ('delimiter = " "', "delimiter"), ('delimiter = "\x7f"', "delimiter"), ('removed = "a b"', "removed"),
                             (f'removed = "{"x" * 251}"', "removed"), ("pointer = maybe", ""), ("plain_verbs = 7", ""), ("only = 2", ""),
                             ("max = -1", "max"), ("spread = 0", "spread"), ("spread = 11", "spread"), ("copies = 0", "copies = 0: must be a decimal number from 1 to 2"), ("copies = 3", "copies"), ("max = 1000001", "max"), ("dead_after = 0", "dead_after"), ("dead_after = 1000001", "dead_after"), ('dead = "a b"', "dead"), ('newest = "left"', "newest")):
            self.bad(SERVERS + f'collection "a-" {{\n  {option}\n}}\n', 3, word)

    def test_rules_that_make_no_sense(self):
        """An error in a section as a whole is reported for its last line."""
        lists = [f'type = "list"\n encoding = "{name}"' for name in ("signed", "tombstone", "flip", "indexed")]
        for options, word in (*((text, "the encoding of a list must be oplog or csv") for text in lists),
                              ('encoding = "paired"\n', "removed"), ('encoding = "paired"\n removed = "a-"', "differs from that of the rule"),
                              ('encoding = "csv"\n removed = "b-"', "only for the encoding paired"),
                              ('encoding = "tombstone"\n delimiter = "|"', "must not be |"),
                              ('dead_after = 2\n dead = "d"', "`dead` is only for lists with the encoding oplog"),
                              ('encoding = "csv" type = "list"\n dead = "d"', "`dead` is only for lists with the encoding oplog"),
                              ('encoding = "csv"\n spread = 2', "`spread` is only for the encoding oplog"),
                              ('type = "set"\n max = 5', "`max` is only for lists"),
                              ('type = "list" encoding = "csv"\n max = 5', "`max` is only for lists")):
            self.bad(SERVERS + f'collection "a-" {{\n {options}\n}}\n', 5, word)
        keeps = 'events "%s" { types = true }\n'
        self.bad(SERVERS + keeps % "a-" + 'collection "a" { encoding = "csv" }\n', 2, 'events "a-": `types` needs sets in oplog')
        self.bad(SERVERS + keeps % "a-" + 'collection "a-:" { type = "list" }\n', 2, 'events "a-": `types` needs sets in oplog')
        self.bad(SERVERS + keeps % ("a" * 200), 2, "the prefix is too long for `types`")
        self.good(SERVERS + keeps % ("a" * 199) + keeps % "b-" + 'collection "b" { encoding = "csv" }\ncollection "b-" { ttl = 5 }\n')
        paired = 'collection "%s" { encoding = "paired" removed = "%s" }\n'
        self.bad(SERVERS + paired % ("a-", "gone-") + paired % ("b-", "gone-"), 3, 'collection "b-": another rule has the same `removed`')
        self.good(SERVERS + paired % ("a-", "gone-") + paired % ("b-", "gone-b-"))
        self.bad('collection "a-" { delimiter = "|" }\ncollection|encoding = "tombstone"\n', 1, "must not be |")

    def test_two_copies(self):
        three = SERVERS.replace("{", '{"127.0.0.2:1", "127.0.0.3:1", ')
        sets = 'collection "a-" {{\n copies = 2 {}\n}}\n'
        self.good(three + sets.format("only = true") + sets.format("only = true spread = 10").replace("a-", "b-") + 'events "e" { copies = 2 }\n')
        self.good(SERVERS + 'collection "a-" { copies = 1 encoding = "csv" plain_verbs = true }\nevents "e" { copies = 1 plain_verbs = true }\n')
        for options, word in (("", "`copies` = 2 needs `only` = true: plain writes would reach only one copy"),
                              ('only = true type = "list"', "`copies` = 2 is not for lists"),
                              ('only = true encoding = "csv"', "`copies` = 2 is only for the encoding oplog"),
                              ("only = true plain_verbs = true", "`copies` = 2 excludes `plain_verbs`")):
            self.bad(three + sets.format(options), 4, f'collection "a-": {word}')
        self.bad(three + 'events "e" { copies = 2\nplain_verbs = true }\n', 3, 'events "e": `copies` = 2 excludes `plain_verbs`')
        keeps = sets.format("only = true") + 'events "a-%s" { types = true }\n'
        self.bad(three + keeps % ("a" * 192), 5, "the prefix is too long for `types`")
        self.good(three + keeps % ("a" * 191))

    def test_servers_for_two_copies(self):
        for rule in 'collection "a-" { copies = 2 only = true }\n', 'events "e" { copies = 2 }\n':
            for count in range(1, 4):
                names = [f"127.0.0.{number}:1" for number in range(1, count + 1)]
                quoted = ", ".join(f'"{name}"' for name in names)
                for text in (f"servers = {{{quoted}}}\n{rule}", f"{rule}servers = {{{quoted}}}\n",
                             f"servers = {{\"{' '.join(f'--SERVER={name}' for name in names)}\"}}\n{rule}"):
                    if count < 3:
                        self.bad(text, 1 + text.startswith(rule), "servers: `copies` = 2 needs at least 3 servers")
                    else:
                        self.good(text)
                path = self.file(rule)
                done = setlistd("-T", "-f", path, "-S", ",".join(names))
                self.assertEqual(done.returncode, int(count < 3), done)
                self.assertEqual("servers: `copies` = 2 needs at least 3 servers" in done.stderr, count < 3)

    def test_missing_file(self):
        self.assert_refused(setlistd("-T", "-f", self.path("missing.conf")), "missing.conf")

    def test_the_example_file(self):
        """conf/setlistd.conf of the project is a good file."""
        example = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../conf/setlistd.conf")
        self.assert_good(setlistd("-T", "-f", example))

    def test_starts_by_file_alone(self):
        server, port = self.memcached(), free_port()
        proxy = self.setlistd([], config=f'listen = {{"{HOST}:{port}"}}\nservers = {{"{server.name}"}}\nthreads = 2\n', tcp=False)
        proxy.process.wait_ready((HOST, port))
        self.assertEqual(self.connect(port).ask("route k"), f"ROUTE k {server.name}")

    def test_bad_file_does_not_start(self):
        done = setlistd("-f", self.file('servers = {"127.0.0.1:1"}\nnonsense = 1\n'), "-p", str(free_port()))
        self.assert_refused(done, f"{self.path('setlistd.conf')}:2: ")


class Sockets(Scratch):
    smoke = True

    def test_unix_socket(self):
        path = self.path("s.sock")
        proxy = self.setlistd([self.memcached()], "-s", path)
        proxy.process.wait_ready(path)
        with Conn(path) as conn, Conn(proxy.port) as tcp:
            self.assertEqual(conn.set("k", b"x"), "STORED")
            self.assertEqual(tcp.get("k"), b"x")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)

    def test_unix_socket_only(self):
        path = self.path("s.sock")
        proxy = self.setlistd([self.memcached()], "-p", "0", "-s", path, tcp=False)
        proxy.process.wait_ready(path)
        self.assertEqual(self.connect(path).ask("mn"), "MN")
        self.assertFalse(accepts((HOST, proxy.port)))

    def test_socket_mode(self):
        path = self.path("s.sock")
        self.setlistd([self.memcached()], "-s", path, config='socket_mode = "0770"').process.wait_ready(path)
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o770)

    def test_socket_left_over(self):
        """A socket file without a listener is replaced; one that is in use is an error."""
        path = self.path("s.sock")
        server = self.memcached()
        first = self.setlistd([server], "-s", path)
        first.process.wait_ready(path)
        done = setlistd("-S", server.name, "-p", str(free_port()), "-s", path)
        self.assertEqual(done.returncode, 1, "took the socket of a running one")
        self.assertTrue(accepts(path), "the running one lost its socket")
        first.process.kill()
        first.stopped = True
        self.assertTrue(os.path.exists(path))
        self.setlistd([server], "-s", path).process.wait_ready(path)

    def test_several_addresses(self):
        proxy = self.setlistd([self.memcached()], "-l", "127.0.0.1", "-l", "127.0.0.2")
        for host in ("127.0.0.1", "127.0.0.2"):
            proxy.process.wait_ready((host, proxy.port))

    def test_connection_limit(self):
        """Above the limit a client receives an error or waits; connected ones continue, and a freed connection is used."""
        proxy = self.setlistd([self.memcached()], config="max_connections = 20")
        conns = [self.connect(proxy) for _ in range(19)]
        for conn in conns:
            self.assertEqual(conn.ask("mn"), "MN")
        extra = [self.connect(proxy) for _ in range(10)]
        for conn in conns:
            self.assertEqual(conn.ask("mn"), "MN")
        for conn in conns[:15] + extra:
            conn.close()

        def place():
            try:
                with Conn(proxy.port, limit=5) as conn:
                    return conn.ask("mn") == "MN"
            except (Closed, TimeoutError, OSError):
                return False
        wait_until("a free place is used", place, pause=0.05)
