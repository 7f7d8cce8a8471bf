"""Each option of the configuration with a bad value: -T reports the file and the line, and so does a start. Generated from options.def and
rules.def.
"""
import os
import re
import socket

from case import WireTest, marks
from case_access import USERS
from case_tls import TlsTest
from harness import HOST, free_port, setlistd

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/config/options.def")
with open(TABLE, encoding="utf-8") as source:
    TEXT = source.read()
OPTIONS = re.findall(r'^OPTION\((\w+), (\w+), (?:NULL|"(?:\\.|[^"])*"), (.*?), (?:SHOWN|HIDDEN|AS_DIGIT|OF_RING),', TEXT, re.M)
ROWS = len(re.findall(r"^OPTION\(", TEXT, re.M))
RULES = os.path.join(os.path.dirname(TABLE), "../collection/rules.def")
with open(RULES, encoding="utf-8") as source:
    RULES_TEXT = source.read()
RULE_OPTIONS = re.findall(r'^(\w+)_RULE\([\w ]+, (\w+), (\w+), \S+, (.*?), ".*"\)$', RULES_TEXT, re.M)
SERVERS = f'servers = {{"{HOST}:1"}}\n'
# Any value of a text may be valid, and a list can be invalid in several ways. The option, its values, the text before it.
TEXTS = {
    "listen": ('{"127.0.0.1:x"}', '{"127.0.0.1:0"}', '{"0.0.0.0:5"}', '{"no-such-host.invalid:5"}', '{"127.0.0.1:5", "tls:127.0.0.1:6"}',
               '{"unix:/no/such/folder/socket"}', f'{{"unix:{TABLE}"}}', '{"192.0.2.1:11311"}'),
    "servers": ('{"127.0.0.1:x"}', '{"a", "a"}', '{"--SERVER=a --NONSENSE"}', '{"--SERVER=a --SERVER=a"}', '{"a,b"}',
                "{" + ", ".join(f'"a:{port}"' for port in range(1, 1002)) + "}"),
    "former_servers": ('{"127.0.0.1:x"}', '{"a"}', '{"--SERVER=a --NONSENSE"}'),
    "lost_servers": ('{"127.0.0.1:x"}', '{"a"}', '{"--SERVER=a"}'),
    "move_at": ('"soon"', '"2026-12-01T06:00:00"', '"2026-12-01T06:00:00+01:00"', '"2026-02-29T06:00:00Z"', '"2026-12-01T24:00:00Z"',
                '"2026-12-01T06:00:00Z"'),
    "user": ('"no-such-user-here"',), "control": ('"relative"', '"/no/such/folder/socket"', f'"{os.path.abspath(TABLE)}"'),
    "commands": ('"q"',), "commands_delimiter": ('""',), "admin": ('"0.0.0.0"', '"unix:/a"', '"*:5"'), "admin_hosts": ('{"a b"}',),
    "auth_file": ('"/no/such/file"', '"/dev/null"'), "server_user": ('"foo"', '"f oo"'), "server_password_file": ('"/no/such/file"',),
    "tls_certificate": ('"/no/such/file"', f'"{TABLE}"'), "tls_key": ('"/no/such/file"',), "tls_client_ca": ('"/no/such/file"',),
    "server_tls_certificate": ('"/no/such/file"',), "server_tls_key": ('"/no/such/file"',), "server_tls_ca": ('"/no/such/file"',),
    "socket_users": ('{"no-such-user-here"}',), "deny": ('{"nonsense"}',),
}
ALONE = ("192.0.2.1",)  # good without `insecure`, which lets a listener pass as far as the socket


def bad_values(kind, name, allowed):
    if kind == "NUMBER":
        least, most = map(int, re.match(r"RANGE\((\d+), (\d+)\)", allowed).groups())
        return str(least - 1), str(most + 1), '"x"', f'"+{least}"', '"-0"'
    return {"FLAG": ("maybe", '"1"'), "WORD": ('"nonsense"', '""'), "MODE": ('"999"', '"01000"', '"rwx"')}.get(kind) or TEXTS[name]


def bad_values_of_rule(kind, name, allowed):
    if kind == "SHARE":
        return "0", "1.001", "-1", '"x"'
    if kind not in ("BYTE", "TEXT"):
        return bad_values(kind, name, allowed)
    least, most = map(int, re.match(r"BYTES\((\d+), (\d+)\)", allowed).groups())
    return tuple(f'"{text}"' for text in (["a" * (least - 1)] if least else []) + ["a" * (most + 1), " ", "\t", "\x7f"])


class EachOption(WireTest):
    smoke = True

    def refused(self, name, config, line):
        """By -T and by a start, with the same words."""
        path = self.private_file(config)
        checked = setlistd("-T", "-f", path)
        self.assertEqual((checked.returncode, checked.stdout), (1, ""), f"{name}: {config}")
        self.assertRegex(checked.stderr, rf"\A{re.escape(path)}:{line}: [^\n]+\n\Z", config[:300])
        if name != "user":
            started = setlistd("-f", path)
            self.assertEqual((started.returncode, started.stderr), (1, checked.stderr), config[:300])

    @marks(smoke=False)
    def test_values(self):
        self.assertEqual(len(OPTIONS), ROWS)
        for kind, name, allowed in OPTIONS:
            for value in bad_values(kind, name, allowed):
                with self.subTest(f"{name} = {value[:80]}"):
                    before = "" if name == "servers" else SERVERS
                    before += "insecure = true\n" if any(host in value for host in ALONE) else ""
                    before += "" if name in ("listen", "servers") else f'listen = {{"{HOST}:{free_port()}"}}\n'
                    self.refused(name, f"{before}\n{name} = {value}\nmax_line = 7000\n" if name != "max_line" else f"{before}\n{name} = {value}\n", before.count("\n") + 2)

    def test_values_of_rules(self):
        self.assertEqual(len(RULE_OPTIONS), len(re.findall(r"^\w+_RULE\(", RULES_TEXT, re.M)))
        for section, kind, name, allowed in RULE_OPTIONS:
            section = {"COLLECTION": "collection", "EVENT": "events", "ITEM": "item"}[section]
            for value in bad_values_of_rule(kind, name, allowed):
                with self.subTest(f"{section}: {name} = {value}"):
                    path = self.private_file(f'{SERVERS}{section} "a" {{\n{name} = {value}\n}}\n')
                    done = setlistd("-T", "-f", path)
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
                    self.assertRegex(done.stderr, rf"\A{re.escape(path)}:3: [^\n]*\b{name}\b[^\n]*\n")

    def test_a_pool_that_moves(self):
        """The error is reported for the list, or for the time, whichever part is invalid."""
        at = 'move_at = "2026-12-01T06:00:00Z"\n'
        self.assert_good(setlistd("-T", "-f", self.private_file(f'{SERVERS}{at}former_servers = {{"a", "b weight=3"}}\n')))
        self.assert_good(setlistd("-T", "-f", self.private_file(f'{SERVERS}{at}former_servers = {{"{HOST}:1"}}\nformer_distribution = "modula"\n')))
        for config in (f'former_servers = {{"{HOST}:1"}}\n', f'former_servers = {{"{HOST}:1"}}\nformer_distribution = "ketama"\n',
                       'former_servers = {"--SERVER=a --NONSENSE"}\n'):
            self.refused("former_servers", f"{SERVERS}\n{config}{at}", 3)

    def test_lines_of_a_list(self):
        """Each element is on a separate line."""
        for value in ("0.0.0.0:5", "unix:/no/such/folder/socket", f"tls:{HOST}:6", "no-such-host.invalid:5"):
            self.refused("listen", f'{SERVERS}listen = {{"{HOST}:{free_port()}",\n"{value}",\n"unix:/{value[-1]}"}}\n', 3)

    def test_a_user(self):
        """A start reports it too, after a warning."""
        path = self.private_file(f'{SERVERS}listen = {{"{HOST}:{free_port()}"}}\nuser = "no-such-user-here"\n')
        said = f"{path}:3: user no-such-user-here: unknown\n"
        for args in ((), ("-T",)):
            self.assert_refused(setlistd("-f", path, *args), said)
        for args in ((), ("-T",)):
            done = setlistd("-p", str(free_port()), "-S", f"{HOST}:1", "-u", "no-such-user-here", *args)
            self.assert_refused(done, "setlistd: user no-such-user-here: unknown\n")
        if os.geteuid() != 0:
            path = self.private_file(f'{SERVERS}user = "nobody"\n')
            self.assert_refused(setlistd("-T", "-f", path), f"{path}:2: user nobody: only root")

    def test_the_command_line(self):
        """An option that it overrides is not an error in the file."""
        path = self.private_file('servers = {"--SERVER=a --NONSENSE"}\nlisten = {"no-such-host.invalid:5"}\n')
        self.assert_good(setlistd("-T", "-f", path, "-S", f"{HOST}:1", "-l", HOST))
        self.assert_refused(setlistd("-T", "-f", path, "-S", f"{HOST}:1"), f'{path}:2: listen "no-such-host.invalid:5": ')
        done = setlistd("-T", "-f", path, "-S", f"{HOST}:1", "-l", "0.0.0.0")
        self.assertRegex(done.stderr, r'\Asetlistd: listen "0\.0\.0\.0:11311": ')

    def test_descriptors(self):
        done = setlistd("-T", "-S", f"{HOST}:1", "-t", "64", under=("prlimit", "--nofile=100:100"))
        self.assert_refused(done, "setlistd: the limit of file descriptors is 100")

    def test_a_running_one(self):
        """Its sockets are no fault of the file that it runs with."""
        folder, port = self.scratch(), free_port()
        path = self.private_file(f'{SERVERS}listen = {{"{HOST}:{port}", "unix:{folder}/s"}}\ncontrol = "{folder}/c"\n')
        proxy = self.setlistd([self.memcached()], config=open(path, encoding="utf-8").read(), tcp=False)
        proxy.process.wait_ready(f"{folder}/s")
        self.assert_good(setlistd("-T", "-f", path))
        self.assertEqual(self.connect(f"{folder}/s").ask("mn"), "MN")


class AllAtOnce(WireTest):
    """One run reports all errors, each with its line."""
    smoke = True

    def said(self, text):
        path = self.private_file(text)
        done = setlistd("-T", "-f", path)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return sorted((int(line), what) for line, what in re.findall(rf"^{re.escape(path)}:(\d+): (.*)\n", done.stderr, re.MULTILINE))

    def test_ten_typos(self):
        found = self.said("""servers = {"127.0.0.1:1"}
            listne = {"127.0.0.1:5", "unix:/a"} threds = 4
            max_keyz = '{ not a section }'
            collecion "a-" { type = "list" ttl { x = 1 } }
            collection "b-" { type = "lsit" ttl = -1 plain_verb = true pointer = maybe
            }
            max_value = 1
            deny = {"flushall"}
            sandbox = ture
            admin = "0.0.0.0"
            tls_kye = "/x"
            auth_file = "/no/such/file"
        """)
        wanted = [(2, "unknown option listne; did you mean listen?"), (2, "unknown option threds; did you mean threads?"),
                  (3, "unknown option max_keyz; did you mean max_keys?"),
                  (4, "unknown option collecion; did you mean collection?"), (5, 'type = "lsit" is not one of: set, list'),
                  (5, "ttl = -1: must be a decimal number from 0 to 2592000, optionally with a unit: s, min, h, d"), (5, "pointer = maybe: must be true or false"),
                  (5, "unknown option plain_verb; did you mean plain_verbs?"),
                  (7, "max_value = 1: must be a decimal number from 1024 to 1073741824, optionally with a unit: K, M, G"),
                  (8, 'deny: "flushall" is not a command; did you mean flush_all?'), (9, 'sandbox = "ture": must be true or false'),
                  (10, 'admin "0.0.0.0": anyone who can connect could read keys and statistics; set insecure = true to permit that'),
                  (11, "unknown option tls_kye; did you mean tls_key?"), (12, "auth_file: /no/such/file: No such file or directory")]
        self.assertEqual(found, sorted(wanted))

    def test_what_somebody_may_call_a_rule(self):
        for name in "rule", "set", "lists":
            self.assertEqual(self.said(f'{SERVERS}{name} "tags-" {{ type = "list" }}\n'),
                             [(2, f'unknown option {name}; a rule is a section: collection "tags-" {{ type = "list" }}')])
        self.assertEqual(self.said(f'{SERVERS}collection "a" {{ rule = 1 }}\n'), [(2, "unknown option rule")])

    def test_the_list_of_dead_elements(self):
        """It must be one that a push could create."""
        jobs, types = 'collection "jobs-" { type = "list" dead = "%s" %s }\n', "the rule for the key in `dead` is not for lists"
        reserved = "the key in `dead` needs a rule with `only`, since others reserve theirs"
        other = 'collection "%s" { %s }\n'
        for dead, only, rule, error in (
                ("failed", "", other % ("f", "ttl = 5"), types), ("failed", "", other % ("", 'type = "set" only = true'), types),
                ("failed", "", other % ("failed", 'encoding = "flip"'), types), ("failed", "only = true", other % ("failed", "only = true"), types),
                ("failed", "only = true", "", reserved), ("failed", "only = true", other % ("failed", 'type = "list"'), reserved),
                ("failed", "", other % ("tags-", "only = true"), reserved), ("jobs-failed", "", other % ("tags-", "only = true"), reserved),
                ("failed", "", "", None), ("jobs-failed", "", "", None), ("jobs-failed", "only = true", "", None),
                ("failed", "", other % ("g", "ttl = 5"), None), ("failed", "", other % ("f", 'type = "list" encoding = "csv"'), None),
                ("failed", "", other % ("f", "ttl = 5") + other % ("fail", 'type = "list"'), None),
                ("failed", "only = true", other % ("failed", 'type = "list" only = true'), None)):
            for text in jobs % (dead, only) + rule, rule + jobs % (dead, only):
                with self.subTest(text):
                    line = 2 + text[:text.index("dead")].count("\n")
                    if error:
                        self.assertEqual(self.said(SERVERS + text), [(line, f'collection "jobs-": {error}')])
                    else:
                        self.assert_good(setlistd("-T", "-f", self.private_file(SERVERS + text)), text)

    def test_what_a_start_would_find(self):
        """The sockets, the user and the files."""
        found = self.said(f'{SERVERS}listen = {{"unix:/no/such/folder/a",\n"unix:/no/such/folder/b"}}\nuser = "no-such-user-here"\n')
        self.assertEqual([line for line, _ in found], [2, 3, 4])

    def test_twice(self):
        for text, line, what in (
                ("max_keys = 5\nmax_keys = 5", 3, "max_keys is already set on line 2"), ('deny = {"get"}\ndeny = {"set"}', 3, "deny is already set on line 2"),
                ('deny = {"get", "set"} deny = {"get"}', 2, "deny is already set on line 2"), ('user = ""\n\nuser = ""', 4, "user is already set on line 2"),
                ('collection "a" {\nttl = 1\nttl = 1\n}', 4, "ttl is set twice in this rule"), ('events "a" { bucket = "day" bucket = "day" }', 2, "bucket is set twice in this rule"),
                ('collection "a" { pointer = true pointer = true }', 2, "pointer is set twice in this rule"),
                ('collection "a" { compact_waste = 0.5 compact_waste = 0.5 }', 2, "compact_waste is set twice in this rule")):
            self.assertEqual(self.said(f"{SERVERS}{text}\n"), [(line, what)], text)
        for text in ('deny = {"get"}\ndeny += {"set"}\ndeny += {"add", "cas"}\ndeny += {}', 'collection "a" { ttl = 1 }\ncollection "b" { ttl = 1 }'):
            self.assert_good(setlistd("-T", "-f", self.private_file(f"{SERVERS}{text}\n")), text)


class Limits(WireTest):
    """A file that could occupy the main thread for long is refused, with the limit; one at the limit is good."""
    smoke = True
    MOST, LINE = 1 << 20, 1 << 16

    def check(self, text):
        path = self.private_file(text)
        done = setlistd("-T", "-f", path)
        return done, [line.removeprefix(path) for line in done.stderr.splitlines()]

    def assert_error(self, text, error):
        done, lines = self.check(text)
        self.assertEqual((done.returncode, lines), (1, [error]), text[:100])

    def assert_taken(self, text):
        self.assert_good(self.check(text)[0], text[:100])

    def rules(self, section, count):
        removed = 'encoding = "paired" removed = "-%d"' if section == "collection" else "ttl = %d" if section == "events" else "fresh_for = %d"
        return SERVERS + "".join(f'{section} "{i}" {{ {removed % i} }}\n' for i in range(1, count + 1))

    def test_bytes_of_the_file(self):
        for begin, row in (SERVERS, "\n"), (SERVERS, "# comment\n"), (SERVERS, "deny = {}\n"):
            full = begin + row * ((self.MOST - len(begin)) // len(row))
            full += " " * (self.MOST - len(full))
            self.assert_taken(full)
            self.assert_error(full + "\n", ": more than 1048576 bytes")

    def test_bytes_of_a_line(self):
        for begin, fill, end in (("# ", "x", ""), ("deny = {", " ", "}"), ("/*", "*", "*/"), ('admin_hosts = {"', 'a", "', 'a"}')):
            count = (self.LINE - len(begin) - len(end)) // len(fill)
            line = begin + fill * count
            line += " " * (self.LINE - len(line) - len(end)) + end
            self.assertEqual(len(line), self.LINE)
            done, lines = self.check(f"{SERVERS}\n{line}\n")
            self.assertNotIn(":3: a line of more than 65536 bytes", lines, begin)
            self.assertEqual(done.returncode, int("admin" in begin), done)
            self.assert_error(f"{SERVERS}\n{line} \n", ":3: a line of more than 65536 bytes")
        self.assert_error("x" * self.MOST, ":1: a line of more than 65536 bytes")

    def test_number_of_rules(self):
        for section in "collection", "events", "item":
            self.assert_taken(self.rules(section, 1000))
            self.assert_error(self.rules(section, 1001), f":1002: {section}: more than 1000 of these rules")

    def test_length_of_a_list(self):
        lists = {"listen": "127.0.0.1:%d", "admin_hosts": "h%d", "socket_users": "%d"}
        for name, form in lists.items():
            rows = [f'{name} += {{"{form % i}"}}\n' for i in range(1, 1026)]
            self.assert_taken(SERVERS + "".join(rows[:-1]))
            self.assert_error(SERVERS + "".join(rows), f":1026: {name}: more than 1024 elements")

    def test_number_of_errors(self):
        """Each unknown option needs another parse, and a reload logs each error."""
        for row in "a%d = 1\n", "a%d { b = 2 }\n", 'deny += {"a%d"}\n', 'collection "%d" { ttl = x }\n', 'events "%d" { bucket = "x" }\n':
            for count in 19, 20, 2000:
                done, lines = self.check(SERVERS + "".join(row % i for i in range(count)))
                more = [": more errors may follow; 20 are shown"] if count >= 20 else []
                self.assertEqual((done.returncode, len(lines), lines[20:]), (1, min(count, 20) + len(more), more), row)
                self.assertEqual([line.split(":")[1] for line in lines[:20]], [str(i + 2) for i in range(min(count, 20))])

    def test_a_reload_of_the_largest_files(self):
        """The reload is refused or done, and the control socket answers after each."""
        control = f"{self.scratch()}/control"
        server = self.memcached()
        base = f'servers = {{"{server.name}"}}\ncontrol = "{control}"\n'
        proxy = self.setlistd([], config=base)
        good = self.rules("collection", 1000).replace(SERVERS, "")
        for text, answer in ((base + "x" * (3 << 20), "ERROR refused"), (base + "a {}\n" * 200000, "ERROR refused"), (base + good, "OK"),
                             (base + "".join(f'collection "{i}" {{}}\n' for i in range(30000)), "ERROR refused"), (base + "\n" * 1000000, "OK")):
            proxy.write_config(text)
            with socket.socket(socket.AF_UNIX) as conn:
                conn.connect(control)
                conn.sendall(b"reload\n")
                self.assertTrue(conn.makefile().readline().startswith(answer), text[:200])


class Files(TlsTest):
    """Errors in the files that an option names have the option's line."""
    smoke = True

    def test_each(self):
        users, locked = self.private_file("foo:bar\nsecret\n"), self.private_file(USERS)
        os.chmod(locked, 0o640)
        certificate, key = self.authority.sign("other")
        for lines, line in (
                (f'auth_file = "{users}"', 3), (f'auth_file = "{locked}"', 3), (f'\nserver_password_file = "{users}"', 4),
                (f'server_user = "foo"\nserver_password_file = "{users}"', 4), (f'tls_certificate = "{certificate}"', 3),
                (f'tls_certificate = "{certificate}"\n\ntls_key = "{self.files[1]}"', 5), (f'tls_key = "{key}"', 3),
                (f'server_tls_ca = "{users}"', 3), (f'\nserver_tls_certificate = "{certificate}"', 4)):
            path = os.path.join(self.folder, "setlistd.conf")
            with open(path, "w", encoding="utf-8") as out:
                out.write(f"{SERVERS}\n{lines}\nmax_keys = 7\n")
            done = setlistd("-T", "-f", path)
            self.assertEqual(done.returncode, 1, lines)
            self.assertRegex(done.stderr, rf"\A{re.escape(path)}:{line}: (auth_file|(server_)?(tls|password|user)\w*): [^\n]+\n\Z", lines)
