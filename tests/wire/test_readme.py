"""The examples of the README: loading a set again, and access with its configuration. Its links and its length."""
import os
import re
import socket
import threading

from case import WireTest, marks
from case_access import USERS
from case_tls import TlsTest
from harness import HOST, PATIENCE, free_port, setlistd, wait_until
from matrix import CLIENTS
from modules import make_importable
from program import installed
from readme import README, blocks, links, section
from wire import Conn


class Database:
    """The database of the application."""

    def __init__(self):
        self.rows = {"topic-1": ["ann"]}

    def members(self, topic):
        return self.rows[topic]

    def add(self, topic, member):
        self.rows[topic].append(member)


class Text(WireTest):
    smoke = True

    def test_links(self):
        """Each link is to a file of this repository, so that it works in a browser."""
        found = links()
        self.assertGreater(len(found), 10)
        self.assertEqual([path for path in found if not os.path.exists(os.path.join(os.path.dirname(README), path))], [])

    def test_length(self):
        with open(README, encoding="utf-8") as text:
            self.assertLessEqual(len(text.readlines()), 150)


class Vanishing(WireTest):
    """A missing set is loaded by a reader, and keeps concurrent additions of others."""

    def setUp(self):
        if not installed(next(client for client in CLIENTS if client.name == "pymemcache")):
            self.skipTest("pymemcache is not installed")
        self.serve(2, "-c", "q|")
        text = blocks("A set can vanish")
        self.program = {"database": Database()}
        make_importable(self)
        exec("\n".join(text).replace("11311", str(self.proxy.port)), self.program)

    @marks(smoke=True)
    def test_reader(self):
        self.assertEqual(self.program["members"]("topic-1"), {"ann"})
        self.assertEqual(self.conn.ask("sismember topic-1 ann"), "1")
        self.assertEqual(self.conn.ask("sadd topic-1 bob"), "STORED")
        self.assertEqual(self.program["members"]("topic-1"), {"ann", "bob"})

    def test_writer(self):
        """One who adds does not make a set that is not complete."""
        self.program["add"]("topic-1", "bob")
        self.assertEqual(self.conn.ask("scard topic-1"), "NOT_FOUND")
        self.assertEqual(self.program["members"]("topic-1"), {"ann", "bob"})
        self.program["add"]("topic-1", "dee")
        self.assertEqual(self.conn.ask("smismember topic-1 ann bob dee"), "1 1 1")

    def test_while_another_loads(self):
        """The additions of the program are kept, although the other client has read the database before; and it waits for the other."""
        token = self.conn.ask("slease topic-1").split()[1]
        old = self.program["database"].members("topic-1")[:]
        self.program["add"]("topic-1", "bob")
        found = []
        reader = threading.Thread(target=lambda: found.extend(self.program["members"]("topic-1")), daemon=True)
        reader.start()
        self.assertEqual(self.conn.ask(f"sfill topic-1 {token} {' '.join(old)}"), "STORED")
        reader.join(PATIENCE)
        self.assertEqual(sorted(found), ["ann", "bob"])


class Access(TlsTest):
    smoke = True

    def configure(self, changes):
        config = blocks("Security")[0]
        for text, replacement in changes.items():
            self.assertEqual(config.count(text), 1, text)
            config = config.replace(text, replacement)
        return config

    def test_example(self):
        port, path = free_port(), os.path.join(self.folder, "setlistd.sock")
        config = self.configure({
            "0.0.0.0:11311": f"{HOST}:{port}", "/run/setlistd.sock": path, "/etc/setlistd/cert.pem": self.files[0],
            "/etc/setlistd/key.pem": self.files[1], "/etc/setlistd/users": self.private_file(USERS + "ann:secret\n")})
        self.setlistd([self.memcached()], config=config, tcp=False)
        wait_until("listening", lambda: socket.socket().connect_ex((HOST, port)) == 0)
        for conn in (self.secured(port), Conn(path)):
            self.log_in(conn)
            self.assertEqual(conn.ask("sadd topic ann"), "STORED")
            self.assertEqual(conn.ask("flush_all"), "CLIENT_ERROR flush_all is denied here")
            self.assertEqual(conn.ask("verbosity 1"), "CLIENT_ERROR verbosity is denied here")
            conn.close()

    def log_in(self, conn):
        """As in the README: before the login everything is refused, and the login is a set of any key."""
        self.assertIn("a `set` of any key with the value `user password`", section("Security"))
        self.assertEqual(conn.ask("get k"), "CLIENT_ERROR unauthenticated")
        self.assertEqual(conn.set("any", b"ann secret"), "STORED")

    def test_open_to_the_network(self):
        """Without the users, the same listener is refused, as the README states."""
        config = self.configure({"/etc/setlistd/cert.pem": self.files[0], "/etc/setlistd/key.pem": self.files[1],
                                 "0.0.0.0:11311": f"0.0.0.0:{free_port()}"})
        bad = self.private_file(re.sub(r"^auth_file.*\n", "", config, flags=re.MULTILINE))
        run = setlistd("-T", "-f", bad, "-S", HOST)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("insecure", run.stderr)
