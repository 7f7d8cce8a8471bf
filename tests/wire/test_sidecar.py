"""setlistd next to an application: the commands of setlistd-guide(7), and clients that connect and disconnect."""
import os
import re
import shlex
import sys

import manpage
from case import WireTest
from harness import EVENLY, OPTIONS, Process, run_program, wait_until
from matrix import CLIENTS
from program import installed
from stored import stats
from wire import Conn

PATH, SERVERS = "/run/setlistd.sock", "10.0.0.1:11211,10.0.0.2:11211"


def commands():
    """The commands of the section, by their first word. A command continues on the next line after a backslash, or in a string."""
    text = "".join(f"{manpage.unescape(line)}\n" for _, kind, lines in manpage.marked(manpage.GUIDE) if kind == "sidecar" for _, line in lines)
    return {found[0].split()[0]: found[0].replace("\\\n", "") for found in re.finditer(r"(?m)^(?:'[^']*'|\\\n|[^'\n])+$", text)}


class Scratch(WireTest):
    def setUp(self):
        self.path = os.path.join(self.scratch(), "socket")


class Manual(Scratch):
    """Its commands, with another socket and other servers."""
    smoke = True

    def setUp(self):
        super().setUp()
        self.servers = [self.memcached(), self.memcached()]
        line = commands()["setlistd"]
        self.assertIn(SERVERS, line)
        words = shlex.split(self.replaced(line).replace(SERVERS, ",".join(server.name for server in self.servers)))
        proxy = Process("setlistd", [OPTIONS.setlistd, *words[1:]])
        self.addCleanup(proxy.kill)
        proxy.wait_ready(self.path)

    def replaced(self, line):
        self.assertIn(PATH, line)
        return line.replace(PATH, self.path)

    def need(self, name):
        """Without this client the test is passed over."""
        if not installed(next(client for client in CLIENTS if client.name == name)):
            self.skipTest(f"{name} is not installed")

    def run_line(self, client, word):
        """The output of the second command."""
        self.need(client)
        environment = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"])
        done = run_program("sh", "-c", self.replaced(commands()[word]), env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_python(self):
        self.assertEqual(self.run_line("pymemcache", "python3"), "b'none'")
        self.assertEqual(self.connect(self.path).set("greeting", b"hello"), "STORED")
        self.assertEqual(self.run_line("pymemcache", "python3"), "b'hello'")

    def test_php(self):
        self.assertEqual(self.run_line("php-memcached", "php"), "bool(true)")
        self.assertEqual(self.connect(self.path).get("greeting"), b"hello")

    def test_pylibmc(self):
        self.need("pylibmc")
        import pylibmc
        client = pylibmc.Client([self.path])
        self.assertTrue(client.set("greeting", "hello"))
        self.assertEqual(client.get("greeting"), "hello")


class ComeAndGo(Scratch):
    """A connection for each request."""
    smoke = True

    def serve(self, *args, config=""):
        self.watcher = super().serve(1, "-s", self.path, *args, config=config)
        self.assertEqual(self.watcher.set("key", b"value"), "STORED")

    def wake_all_threads(self):
        """Each thread opens a connection to the server, and the one that checked the port is closed: the remaining ones are permanent."""
        conns = [Conn(place) for place in (self.proxy.port, self.path) * 4]
        for conn in conns:
            self.assertEqual(conn.get("key"), b"value")
        for conn in conns:
            conn.close()
        wait_until("they are gone", lambda: self.look()[1] == 1)

    def look(self):
        found = stats(self.watcher, "stats")
        return self.proxy.fd_count(), int(found["curr_connections"]), int(found["client_bytes"])

    def come_and_go(self, count):
        self.wake_all_threads()
        before = self.look()
        for number in range(count):
            with Conn(self.path if number % 2 else self.proxy.port) as conn:
                self.assertEqual(conn.get("key"), b"value")
                if number % 10 == 0:
                    conn.reset()
        wait_until(f"nothing is left of them but {before}", lambda: self.look() == before)

    def test_nothing_is_left(self):
        self.serve()
        self.come_and_go(4000)

    def test_nothing_is_left_in_two_threads(self):
        self.serve("-t", "2", config=EVENLY)
        self.come_and_go(2000)

    def test_many_at_once(self):
        """More than are accepted in one turn, all of which are pending before the first one is accepted."""
        for args in ((), ("-t", "2")):
            self.serve(*args, config=EVENLY)
            self.proxy.process.pause()
            conns = [self.connect(place) for _ in range(200) for place in (self.proxy.port, self.path)]
            for conn in conns:
                conn.send(b"get key\r\n")
            self.proxy.process.resume()
            for conn in conns:
                self.assertEqual(conn.read_values()[0]["key"][1], b"value")
            self.proxy.stop()
