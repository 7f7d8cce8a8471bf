"""The base of all tests: processes and connections that are cleaned up, and shown if the test fails."""
import functools
import os
import pwd
import shutil
import tempfile
import time
import unittest

from harness import HOST, OPTIONS, SANITIZER_MARKS, Memcached, Process, Setlistd
from scripted import Held, ScriptedServer
from wire import Conn, small_windows


def marks(**values):
    """Decorates a single test whose marks differ from those of its class, such as marks(smoke=False)."""
    def decorate(method):
        method.marks = values
        return method
    return decorate


class WireTest(unittest.TestCase):
    # The marks, by which `run` selects tests and limits their time. They apply to all tests of a class. Smoke tests run by default in
    # scripts/test: they are cheap, and each area has some that fail if it is broken.
    smoke = False
    # Plain tests measure time or memory, or test the sandbox or the build: they need a setlistd without sanitizers.
    plain = False
    # Tests that compile, install, or run test suites of others.
    compiles = False
    # A class that measures time or memory runs alone, after the classes that run in parallel.
    alone = False
    # A class that also makes sense against memcached itself (`run --direct`) sets this.
    direct = False
    longMessage = True

    @functools.cached_property
    def processes(self):
        return []

    def memcached(self, *extra):
        server = Memcached(*extra)
        self.processes.append(server)
        self.addCleanup(server.kill)
        return server

    def memcached_at(self, address, *args):
        """Returns a socket that listens as the arguments specify, at a Unix socket's path or a (host, port)."""
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        server = Process("memcached", ["memcached", "-t", "1", "-m", "64", *user, *args])
        self.addCleanup(server.kill)
        server.wait_ready(address)
        return server

    def scripted_server(self, **kwargs):
        server = ScriptedServer(**kwargs)
        self.addCleanup(server.stop)
        return server

    def hold(self, server, key):
        """Makes the scripted server reply to requests for this key only after they are released, at the latest at the end of the test."""
        held = Held(server, key)
        self.addCleanup(held.release)
        return held

    def setlistd(self, servers, *args, **kwargs):
        """Starts setlistd. A bad exit status or a sanitizer's report fails the test."""
        names = [server if isinstance(server, str) else server.name for server in servers]
        proxy = Setlistd(names, *args, **kwargs)
        self.processes.append(proxy)
        self.addCleanup(proxy.stop)
        return proxy

    def replace(self, proxy, pause):
        """Kills setlistd, which must be running without errors, and starts it again at the same port."""
        old = proxy.process
        self.assertTrue(old.alive(), f"a proxy ended by itself\n{old.describe()}")
        self.assertEqual([mark for mark in SANITIZER_MARKS if mark in old.stderr()], [], old.describe())
        old.kill()
        time.sleep(pause)
        proxy.process = Process("setlistd", old.argv)
        proxy.process.wait_ready((HOST, proxy.port))

    def scratch(self):
        """Creates a directory, which is deleted after the test. Others may read it, since memcached runs as another user."""
        folder = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.addCleanup(shutil.rmtree, folder, True)
        os.chmod(folder, 0o755)
        return folder

    def private_file(self, text):
        """Creates a file that only its owner may read: the user as whom memcached runs. Root may read it too."""
        path = os.path.join(self.scratch(), "private")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o600)
        if os.geteuid() == 0:
            os.chown(path, pwd.getpwnam("nobody").pw_uid, -1)
        return path

    def pool(self, servers=2, *args, **kwargs):
        """Starts this number of memcached servers, or uses the given ones, with one setlistd in front; with --direct, only one memcached."""
        if OPTIONS.direct:
            server = self.memcached()
            return [server], server
        if isinstance(servers, int):
            servers = [self.memcached() for _ in range(servers)]
        return servers, self.setlistd(servers, *args, **kwargs)

    def serve(self, servers=1, *args, **kwargs):
        """Returns a pool and a connection to its setlistd."""
        self.servers, self.proxy = self.pool(servers, *args, **kwargs)
        self.conn = self.connect(self.proxy)
        return self.conn

    def assert_refused(self, done, *said):
        """Checks that a program has printed each of these words, and has failed."""
        self.assertEqual(done.returncode, 1, done)
        for words in said:
            self.assertIn(words, done.stderr)

    def assert_good(self, done, *what):
        """Checks that setlistd -T has accepted the configuration."""
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, "configuration ok\n"), *what)

    def connect(self, peer, **kwargs):
        conn = Conn(getattr(peer, "port", peer), **kwargs)
        self.addCleanup(conn.close)
        return conn

    def deaf(self):
        """Opens a connection whose receive buffer in the kernel is as small as possible."""
        sock = small_windows(self.proxy.port)
        self.addCleanup(sock.close)
        return sock

    def key_on(self, conn, server, prefix="key"):
        """Returns a key whose server is the given one."""
        return self.keys_on(conn, server, 1, prefix)[0]

    def keys_on(self, conn, server, count, prefix="key"):
        keys = []
        for number in range(100000):  # one server of a thousand may have very few keys
            key = f"{prefix}-{number}"
            reply = conn.ask(f"route {key}")
            self.assertTrue(reply.startswith(f"ROUTE {key} "), reply)
            if reply.endswith(f" {server.name}"):
                keys.append(key)
            if len(keys) == count:
                return keys
        self.fail(f"no {count} keys found that belong to {server.name}")

    def process_reports(self):
        reports = [getattr(owner, "process").describe() for owner in self.processes
                   if hasattr(owner, "process")]
        return "\n".join(reports)
