"""Stock clients, unmodified, for uses that the matrix of clients does not cover: no replies, many keys, administration."""
import os
import re
import unittest

from case import WireTest, marks
from harness import BUILD_LIMIT, HOST, PATIENCE, run_program

MEMCACHED_TOOL = "/usr/share/memcached/scripts/memcached-tool"
# libmemcached's timeout for a server, in milliseconds: long enough for a machine that stalls for 5 s.
PATIENT = {"connect_timeout": int(1000 * PATIENCE), "_poll_timeout": int(1000 * PATIENCE)}


class ClientTest(WireTest):
    direct = True

    def setUp(self):
        _, self.peer = self.pool(2)


class Pymemcache(ClientTest):
    smoke = True

    def client(self, **kwargs):
        from pymemcache.client.base import Client
        client = Client((HOST, self.peer.port), timeout=PATIENCE, connect_timeout=PATIENCE, **kwargs)
        self.addCleanup(client.close)
        return client

    def both(self):
        """With replies, and with its default of noreply for writes."""
        return [self.client(default_noreply=False), self.client(default_noreply=True)]

    def test_many(self):
        for client in self.both():
            items = {f"key-{i}": b"v%d" % i for i in range(100)}
            self.assertFalse(client.set_many(items))
            self.assertEqual(client.get_many(list(items) + ["missing"]), items)
            self.assertEqual({k: v for k, (v, _) in client.gets_many(list(items)).items()}, items)
            self.assertTrue(client.delete_many(list(items)))
            self.assertEqual(client.get_many(list(items)), {})

    def test_storage_replies(self):
        client = self.client(default_noreply=False)
        self.assertFalse(client.replace("a", b"x"))
        self.assertTrue(client.add("a", b""))
        self.assertEqual(client.get("a"), b"")
        self.assertTrue(client.replace("a", b"d"))

    def test_storage_without_replies(self):
        client = self.client(default_noreply=True)
        client.add("a", b"b")
        client.append("a", b">")
        client.prepend("a", b"<")
        client.touch("a", 100)
        self.assertEqual(client.get("a"), b"<b>")
        client.incr("n", 1, noreply=True)
        client.set("n", b"1")
        client.incr("n", 4, noreply=True)
        client.decr("n", 2, noreply=True)
        self.assertEqual(client.get("n"), b"3")

    def test_administration(self):
        client = self.client(default_noreply=False)
        client.set("a", b"1")
        self.assertTrue(client.version().startswith(b"1.") or b"setlistd" in client.version(), client.version())
        self.assertTrue(client.stats())
        self.assertTrue(client.flush_all())
        self.assertIsNone(client.get("a"))
        client.set("a", b"1")
        self.client(default_noreply=True).flush_all()
        client.quit()

    def test_errors(self):
        from pymemcache.exceptions import MemcacheClientError, MemcacheServerError
        client = self.client(default_noreply=False)
        client.set("s", b"abc")
        with self.assertRaises(MemcacheClientError):
            client.incr("s", 1)
        with self.assertRaises(MemcacheServerError):
            client.set("big", b"x" * ((1 << 20) + 1))
        self.assertEqual(client.get("s"), b"abc")

    def test_large_and_binary_values(self):
        client = self.client(default_noreply=False)
        for value in (bytes(range(256)) * 100, b"\r\nEND\r\n" * 1000, b"x" * 1000000):
            client.set("v", value)
            self.assertEqual(client.get("v"), value)


class Pylibmc(ClientTest):
    smoke = True

    def setUp(self):
        super().setUp()
        import pylibmc
        self.pylibmc = pylibmc
        self.client = pylibmc.Client([f"{HOST}:{self.peer.port}"], binary=False, behaviors=dict(PATIENT, cas=True))

    def test_many(self):
        items = {f"key-{i}": f"v{i}" for i in range(200)}
        for client in (self.client, self.pylibmc.Client([f"{HOST}:{self.peer.port}"], binary=True, behaviors=dict(PATIENT))):
            self.assertEqual(client.set_multi(items), [])
            self.assertEqual(client.get_multi(list(items) + ["missing"]), items)
            self.assertTrue(client.delete_multi(list(items)))
            self.assertEqual(client.get_multi(list(items)), {})

    @marks(smoke=False)
    def test_counters(self):
        self.client.set("n", 15)
        self.assertEqual(self.client.get("n"), 15)
        self.assertRaises(self.pylibmc.NotFound, self.client.incr, "missing")
        self.client.set("m", "1")
        self.client.incr_multi(["n", "m"], delta=2)
        self.assertEqual(self.client.get_multi(["n", "m"]), {"n": 17, "m": "3"})

    @marks(smoke=False)
    def test_administration(self):
        self.client.set("a", "1")
        self.assertTrue(self.client.get_stats()[0][1])
        self.client.flush_all()
        self.assertIsNone(self.client.get("a"))

    def test_noreply_and_buffered(self):
        quiet = self.pylibmc.Client([f"{HOST}:{self.peer.port}"], binary=False, behaviors=dict(PATIENT, _noreply=True))
        for i in range(100):
            quiet.set(f"q{i}", "x")
        quiet.delete("q0")
        self.assertIsNone(quiet.get("q0"))
        self.assertEqual(len(self.client.get_multi([f"q{i}" for i in range(100)])), 99)


class Tools(ClientTest):
    """The command line tools of libmemcached."""
    smoke = True

    def tool(self, name, *args, status=0):
        argv = [name, f"--servers={HOST}:{self.peer.port}", *args]
        done = run_program(*argv, text=False)
        text = f"{' '.join(argv)}: status {done.returncode}\n{done.stdout[:500]}\n{done.stderr[:500]}"
        if status is not None:
            self.assertEqual(done.returncode, status, text)
        return done

    def put(self, name, content):
        path = os.path.join(self.scratch(), name)
        with open(path, "wb") as out:
            out.write(content)
        self.tool("memccp", path)

    def test_copy_cat_remove(self):
        self.put("file-one", b"content of the file\n")
        self.assertIn(b"content of the file", self.tool("memccat", "file-one").stdout)
        self.tool("memcexist", "file-one")
        self.tool("memctouch", "--expire=100", "file-one")
        self.tool("memcrm", "file-one")
        self.assertNotEqual(self.tool("memcexist", "file-one", status=None).returncode, 0)
        self.assertNotIn(b"content", self.tool("memccat", "file-one", status=None).stdout)

    def test_ping_and_stat(self):
        self.tool("memcping")
        self.assertIn(b"version", self.tool("memcstat").stdout)
        done = self.tool("memcstat", "--server-version")
        self.assertRegex(done.stdout + done.stderr, rb":%d 1\.\d+\.\d+" % self.peer.port)

    def test_dump_ends(self):
        self.put("some-file", b"content\n")
        self.tool("memcdump")

    @unittest.skipUnless(os.path.exists(MEMCACHED_TOOL), "there is no memcached-tool")
    def test_memcached_tool_ends(self):
        """Each mode: it reads up to the END, and would wait for it for ever after an error."""
        for mode in ("display", "dump", "keys", "sizes", "stats", "settings"):
            done = run_program(MEMCACHED_TOOL, f"{HOST}:{self.peer.port}", mode)
            self.assertEqual(done.returncode, 0, (mode, done.stdout, done.stderr))

    @marks(smoke=False)
    def test_conformance(self):
        """memccapable: each of its tests, of the text and of the binary protocol, passes."""
        done = run_program("memccapable", "-t", "60", "-h", HOST, "-p", str(self.peer.port), limit=BUILD_LIMIT)
        lines = done.stdout.splitlines()
        verdicts = [re.fullmatch(r"((?:ascii|binary) .*?) +\[(.*)\]", line) for line in lines]
        verdicts = [match.groups() for match in verdicts if match]
        self.assertGreaterEqual(len(verdicts), 54, done.stdout)
        self.assertEqual([v for v in verdicts if v[1] != "pass"], [], done.stderr)
        self.assertEqual(done.returncode, 0)
        self.assertIn("All tests passed", lines)
