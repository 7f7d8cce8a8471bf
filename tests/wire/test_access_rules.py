"""Access options of the configuration: files with passwords, denied commands, listeners, users of Unix sockets; and servers
that require a login."""
import os
import pwd
import socket
import sys
import unittest

from case import WireTest
from case_access import USERS, request_of, usages
from dns import command_with
from harness import HOST, PATIENCE, free_port, run_program, setlistd, wait_until
from stored import stat, stats


class Files(WireTest):
    """Errors in a file of users are reported at the start, and by -T."""
    smoke = True

    def check(self, *args, config=""):
        return setlistd("-S", "127.0.0.1:1", "-p", str(free_port()), "-T", "-f", self.private_file(config), *args)

    def bad(self, text, said, mode=0o600):
        path = self.private_file(text)
        os.chmod(path, mode)
        done = self.check(config=f'auth_file = "{path}"')
        self.assert_refused(done, path + said)
        return done.stderr

    def test_good(self):
        self.assert_good(self.check(config=f'auth_file = "{self.private_file(USERS)}"'))

    def test_modes(self):
        for mode in (0o640, 0o604, 0o644, 0o620, 0o666):
            self.bad(USERS, f": its mode is {mode:04o},", mode)

    @unittest.skipUnless(os.geteuid() == 0, "only root may give root a file")
    def test_modes_of_root(self):
        """The group may read a file that root owns, such as a Secret in a container that does not run as root; no one else may."""
        path = self.private_file(USERS)
        os.chown(path, 0, pwd.getpwnam("nobody").pw_gid)
        os.chmod(path, 0o440)
        self.assert_good(self.check(config=f'auth_file = "{path}"'))
        for mode in (0o460, 0o450, 0o444, 0o601):
            os.chmod(path, mode)
            self.assert_refused(self.check(config=f'auth_file = "{path}"'), f"{path}: its mode is {mode:04o},")

    def test_bad_lines(self):
        for text, said in (("", ":1: no user"), ("foo:bar\nsecret\n", ":2: no colon"), ("foo:bar\n:x\n", ":2: empty"),
                           ("foo:se cret\n", ":1: a space"), ("u:p\n" * 1001, ":1001: too many users"),
                           ("u:" + "p" * 254, ":1: the line is too long")):
            self.assertNotRegex(self.bad(text, said), "secret|se cret")

    def test_no_file(self):
        for path in ("/nonexistent/users", "/dev", "/dev/null"):
            self.assert_refused(self.check(config=f'auth_file = "{path}"'), f"{path}: ")

    def test_server_password(self):
        good = self.private_file("secret\n")
        config = 'server_user = "foo"\nserver_password_file = "%s"'
        self.assert_good(self.check(config=config % good))
        for text in ("", "two\nlines\n", "two words\n"):
            bad = self.private_file(text)
            self.assert_refused(self.check(config=config % bad), f"{bad}:1: the password: ")
        os.chmod(good, 0o604)
        for text, said in ((config % good, "its mode is 0604"), ('server_user = "foo"', "server_password_file: needed with server_user"),
                           (f'server_password_file = "{good}"', "server_user: needed with server_password_file"), ('\nserver_user = "f oo"', ":2: server_user: a space")):
            self.assert_refused(self.check(config=text), said)


class Upstream(WireTest):
    """Servers that require a login."""
    smoke = True

    def serve(self, password, *extra, user="foo"):
        self.server = self.memcached(*extra)
        config = f'server_user = "{user}"\nserver_password_file = "{self.private_file(password)}"' if user else None
        super().serve([self.server], config=config)

    def test_right(self):
        self.serve("bar\n", "-Y", self.private_file(USERS))
        self.assertEqual(self.conn.set("k", b"x"), "STORED")
        self.assertEqual((self.conn.ask("sadd s a b"), self.conn.ask("scard s")), ("STORED", "2"))
        self.server.kill()
        self.server.start(self.server.port)
        wait_until("it is used again", lambda: self.conn.set("k", b"y") == "STORED")
        self.assertIsNone(self.conn.get("setlistd-authentication"))

    def refused(self):
        """Logged once, however many attempts there are."""
        self.assertEqual(self.conn.set("k", b"x"), f"SERVER_ERROR upstream {self.server.name} unavailable")

        wait_until("it is tried again", lambda: stat(self.conn, "stats upstream", f"{self.server.name}:connects") >= 4)
        said = self.proxy.process.stderr()
        self.assertEqual(said.count("rejects server_user"), 1, said)
        self.assertNotIn("secret", said)

    def test_wrong(self):
        self.serve("secret\n", "-Y", self.private_file(USERS))
        self.refused()
        self.server.kill()
        self.server.extra = ["-Y", self.private_file("foo:secret\n")]
        self.server.start(self.server.port)
        wait_until("it is used", lambda: self.conn.set("k", b"y") == "STORED")

    def test_none(self):
        self.serve(None, "-Y", self.private_file(USERS), user=None)
        self.refused()

    def test_not_wanted(self):
        """A memcached that requires no login stores nothing of it."""
        self.serve("bar\n")
        self.assertEqual(self.conn.set("k", b"x"), "STORED")
        direct = self.connect(self.server)
        self.assertEqual(direct.get("k"), b"x")
        self.assertIsNone(direct.get("setlistd-authentication"))
        wait_until("nothing stays", lambda: stats(direct)["curr_items"] == "1")


class Denied(WireTest):
    smoke = True

    def deny(self, names):
        """A connection to a setlistd that denies these, and one to its server, past it."""
        listed = ", ".join(f'"{name}"' for name in names)
        conn = self.serve(config=f"deny = {{{listed}}}")
        return conn, self.connect(self.servers[0])

    def test_each_command(self):
        """Every command of `help`: with its data, separately and in order, without an effect."""
        commands = usages(self.serve())
        self.assertGreater(len(commands), 50)
        conn, direct = self.deny(commands)
        conn.send(b"".join(request_of(name, usage) for name, usage in commands.items()))
        for name in commands:
            self.assertEqual(conn.line().decode(), f"CLIENT_ERROR {name} is denied here")
        self.assertEqual(conn.ask("nonsense"), "ERROR")
        found = stats(direct)
        self.assertEqual({found[name] for name in ("cmd_get", "cmd_set", "cmd_touch", "cmd_flush", "curr_items", "delete_misses")}, {"0"})

    def test_the_others(self):
        conn, direct = self.deny(["flush_all", "set", "mg"])
        self.assertEqual(direct.set("k", b"old"), "STORED")
        self.assertEqual(conn.ask("flush_all"), "CLIENT_ERROR flush_all is denied here")
        self.assertEqual(conn.set("k", b"new"), "CLIENT_ERROR set is denied here")
        self.assertEqual(conn.get("k"), b"old")
        self.assertEqual(conn.ask("ms k 3\r\nnew"), "HD")
        self.assertEqual(conn.get("k"), b"new")
        conn.send(b"flush_all noreply\r\nset k 0 0 3 noreply\r\nxxx\r\nmn\r\n")
        self.assertEqual(conn.line(), b"MN")
        self.assertEqual(conn.get("k"), b"new")
        self.assertNotIn("flush_all", usages(conn))
        self.assertIn("get", usages(conn))
        self.assertEqual(conn.ask("help set"), "CLIENT_ERROR set is denied here")

    def test_a_value_that_is_too_large(self):
        """A `set` of one deletes the item; one that is denied does not."""
        conn, direct = self.deny(["set"])
        self.assertEqual(direct.set("k", b"old"), "STORED")
        self.assertEqual(conn.set("k", b"x" * 8388609), "CLIENT_ERROR set is denied here")
        self.assertEqual(conn.get("k"), b"old")

    def test_unknown_names(self):
        for name in ("FLUSH_ALL", "flush", ""):
            config = self.private_file(f'servers = {{"127.0.0.1:1"}}\ndeny = {{"flush_all",\n"{name}"}}\n')
            self.assert_refused(setlistd("-T", "-f", config), f'{config}:3: deny: "{name}" is not a command')


def has_ipv6_loopback():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


class Listeners(WireTest):
    """A TCP address that the network reaches needs a reason."""
    smoke = True

    def check(self, *addresses, config="", under=()):
        listed = ", ".join(f'"{address}"' for address in addresses)
        path = self.private_file(f'servers = {{"127.0.0.1:1"}}\nlisten = {{{listed}}}\n{config}\n')
        return setlistd("-T", "-f", path, under=under)

    OPEN = ("0.0.0.0:11311", "*:11311", "[::]:11311", "192.0.2.1:11311", "[2001:db8::1]:11311")

    def test_open(self):
        for address in self.OPEN:
            done = self.check("127.0.0.1:11312", address)
            named = address.replace("[", "").replace("]", "")
            self.assert_refused(done, f'"{named}"', "auth_file", "tls_client_ca", "insecure = true")

    def test_local(self):
        self.assert_good(self.check("127.0.0.1:1", "127.1.2.3:1", "[::1]:1", "localhost:1", "unix:/run/x.sock"))

    def test_nothing_resolves(self):
        """localhost is local all the same, though nothing can listen on it; of another name nothing is known."""
        under = command_with({"/etc/hosts": self.private_file("\n"),
                              "/etc/resolv.conf": self.private_file("nameserver 127.0.0.1\n")})
        if not under:
            self.skipTest("no right to put another file over /etc/hosts")
        self.assert_refused(self.check("localhost:1", under=under), "cannot listen: localhost:1: ")
        self.assert_refused(self.check("example.invalid:1", under=under), "anyone who can connect")

    def test_guarded(self):
        for config in ("insecure = true", f'auth_file = "{self.private_file(USERS)}"'):
            self.assert_good(self.check(*self.OPEN[:3 if has_ipv6_loopback() else 2], config=config), config)
            for address in self.OPEN[3:]:
                self.assert_refused(self.check(address, config=config), "private:2: cannot listen: ")
        self.assertEqual(self.check(self.OPEN[0], config="insecure = false").returncode, 1)

    def test_every_address(self):
        """Also of IPv6, if available; an IPv4 client has the same name as elsewhere."""
        port = free_port()
        proxy = self.setlistd([self.memcached()], "-v", config=f'listen = {{"*:{port}"}}\ninsecure = true', tcp=False)
        proxy.process.wait_ready((HOST, port))
        clients = [(socket.AF_INET, HOST, HOST)]
        if has_ipv6_loopback():
            clients.append((socket.AF_INET6, "::1", "[::1]"))
        for family, host, name in clients:
            with socket.socket(family) as client:
                client.settimeout(PATIENCE)
                client.connect((host, port))
                client.sendall(b"mn\r\nGET / HTTP/1.1\r\n\r\n")
                self.assertEqual(client.recv(4), b"MN\r\n")
            wait_until("it is told", lambda said=f"client {name}:": said in proxy.process.stderr())

    def test_command_line(self):
        for args in (("-l", "0.0.0.0"), ("-l", "127.0.0.1", "-l", "0.0.0.0")):
            self.assert_refused(setlistd("-S", "127.0.0.1:1", "-p", str(free_port()), *args), "insecure = true")

    def started(self, *args):
        """Returns the log of a setlistd that has started to serve."""
        self.assertEqual(self.serve(1, *args).ask("mn"), "MN")
        return self.proxy.process.stderr()

    def test_root(self):
        """Without another user to become, it warns once."""
        self.assertEqual(self.started("-t", "2").count("running as root"), 1 if os.geteuid() == 0 else 0)
        if os.geteuid() == 0:
            self.assertNotIn("runs as root", self.started("-u", "nobody"))


PEER = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try:
    s.sendall(b"mn\\r\\n")
except OSError:
    pass  # it is closed already, and its last words can be read
sys.stdout.write(s.makefile().readline())
"""


class SocketUsers(WireTest):
    smoke = True

    def serve(self, *users, args=()):
        self.path = os.path.join(self.scratch(), "s.sock")
        listed = ", ".join(f'"{user}"' for user in users)
        self.proxy = self.setlistd([self.memcached()], "-s", self.path, *args,
                                   config=f'socket_users = {{{listed}}}\nsocket_mode = "0777"')
        self.proxy.process.wait_ready(self.path)

    def asks(self, user):
        """Returns the reply to another user."""
        if os.geteuid() != 0:
            self.skipTest("only root can connect as another user")
        return run_program(sys.executable, "-c", PEER, self.path, user=user, cwd="/").stdout

    def rejected(self):
        return stat(self.connect(self.proxy), "stats", "rejected_connections")

    def test_own_user(self):
        self.serve("daemon")
        self.assertEqual(self.connect(self.path).ask("mn"), "MN")
        self.assertEqual(self.rejected(), 0)

    def test_by_name_and_by_number(self):
        nobody = pwd.getpwnam("nobody").pw_uid
        for user in ("nobody", str(nobody)):
            self.serve("daemon", user)
            self.assertEqual(self.asks(nobody), "MN\n")
        self.assertEqual(self.asks(pwd.getpwnam("daemon").pw_uid), "MN\n")

    def test_others(self):
        self.serve("daemon")
        self.assertEqual(self.asks(pwd.getpwnam("nobody").pw_uid), "ERROR this user may not connect\n")
        self.assertEqual(self.asks(54321), "ERROR this user may not connect\n")
        self.assertEqual(self.rejected(), 2)
        self.assertEqual(self.connect(self.proxy).ask("mn"), "MN", "TCP is for everybody")

    def test_everybody(self):
        self.serve()
        self.assertEqual(self.asks(54321), "MN\n")

    def test_user_of_the_daemon(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        self.serve("daemon", args=("-u", "nobody"))
        self.assertEqual(self.asks(pwd.getpwnam("nobody").pw_uid), "MN\n")
        self.assertEqual(self.asks(0), "MN\n")

    def test_unknown(self):
        for user in ("no-such-user-here", "", "-1", "4294967295"):
            config = self.private_file(f'servers = {{"127.0.0.1:1"}}\nsocket_users = {{"nobody",\n"{user}"}}\n')
            self.assert_refused(setlistd("-T", "-f", config), f'{config}:3: socket_users: "{user}" is not a user of this system')
