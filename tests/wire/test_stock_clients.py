"""Stock clients that know nothing but memcached's own verbs, on collections whose rule says plain_verbs.

Each runs as a program of its own, in clients/, and prints what came. A client that is not installed is passed over by name.
"""
import os
import shutil
import subprocess
import sys

from case import WireTest
from harness import HOST, PATIENCE

CLIENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
RUN_LIMIT = 5 * PATIENCE
CONFIG = """
collection "tag-" { type = "set" encoding = "oplog" plain_verbs = true }
collection "feed-" { type = "list" encoding = "csv" delimiter = "," plain_verbs = true }
"""
EXPECTED = """\
missing set: missing
append to what is missing: no
add: yes
append: yes
set: <ann,bob,cyd,>
prepend removes: yes
set: <ann,cyd,>
cas: yes
cas with an old token: no
gets: <dee,eve,>
append: yes
cas after a change: no
set: <dee,eve,gus,>
set replaces: yes
append to what is missing: no
add: yes
append to the list: yes
prepend to the list: yes
list: <0,1,2,2,3,>
cas of the list: yes
cas of the list with an old token: no
found: 3
set: <dee,eve,gus,>
other set: <hal,ida,>
list: <9,8,9,>
delete: yes
deleted: missing
delete: yes
deleted: missing
delete: yes
deleted: missing
""".splitlines()
# What tells that a client is there, and what runs its programs.
PYTHON = [sys.executable, "-B"]
PYMEMCACHE = ["python3-pymemcache", PYTHON, ["-c", "import pymemcache"]]
PYLIBMC = ["python3-pylibmc", PYTHON, ["-c", "import pylibmc"]]
MEMCACHE = ["python3-memcache", PYTHON, ["-c", "import memcache"]]
PHP = ["php-memcached", ["php"], ["-r", "exit(extension_loaded('memcached') ? 0 : 1);"]]
PERL = ["libcache-memcached-fast-perl", ["perl"], ["-MCache::Memcached::Fast", "-e", "1"]]
DALLI = ["ruby-dalli", ["ruby"], ["-rdalli", "-e", "1"]]


class ProgramTest(WireTest):
    def need(self, client):
        """What runs the client's programs; without the client the test is passed over."""
        name, interpreter, look = client
        if not shutil.which(interpreter[0]) or subprocess.run([*interpreter, *look], capture_output=True, timeout=RUN_LIMIT,
                                                              check=False).returncode:
            self.skipTest(f"{name} is not installed")
        return interpreter

    def run_program(self, client, program, *args):
        """What it prints, as lines; it must not complain."""
        done = subprocess.run([*self.need(client), os.path.join(CLIENTS, program), *map(str, args)], capture_output=True,
                              text=True, timeout=RUN_LIMIT, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), f"{program}\n{done.stdout}")
        return done.stdout.splitlines()


class PlainVerbs(ProgramTest):
    def setUp(self):
        super().setUp()
        _, self.proxy = self.pool(2, config=CONFIG)

    @staticmethod
    def in_order(line):
        """The members of a set come in no order that anybody promised."""
        what, _, value = line.partition(": ")
        if what not in ("set", "other set", "gets") or not value.endswith(",>"):
            return line
        return f"{what}: <{','.join(sorted(value[1:-2].split(',')))},>"

    def play(self, client, program):
        lines = self.run_program(client, program, self.proxy.port, "tag-one", "tag-other", "feed-items")
        self.assertEqual([self.in_order(line) for line in lines], EXPECTED)

    def test_pymemcache(self):
        self.play(PYMEMCACHE, "pymemcache_client.py")

    def test_pylibmc(self):
        self.play(PYLIBMC, "pylibmc_client.py")

    def test_python_memcache(self):
        self.play(MEMCACHE, "memcache_client.py")

    def test_php_memcached(self):
        self.play(PHP, "php_memcached.php")

    def test_perl_cache_memcached_fast(self):
        self.play(PERL, "memcached_fast.pl")

    def test_counting_is_refused(self):
        self.need(PYMEMCACHE)
        from pymemcache.client.base import Client
        from pymemcache.exceptions import MemcacheClientError
        client = Client((HOST, self.proxy.port), timeout=PATIENCE, default_noreply=False)
        self.addCleanup(client.close)
        for key in ("tag-one", "feed-items"):
            self.assertTrue(client.set(key, "1"))
            for count in (client.incr, client.decr):
                self.assertRaises(MemcacheClientError, count, key, 1)
            self.assertEqual(client.get(key), b"1,")


class BinaryProtocol(ProgramTest):
    """A `set` and a `get`."""

    def served(self, client, program):
        _, proxy = self.pool(2)
        self.assertRegex(self.run_program(client, program, proxy.port)[0], "^served: .value.$")

    def test_ruby_dalli(self):
        self.served(DALLI, "binary_dalli.rb")

    def test_php_memcached(self):
        self.served(PHP, "binary_php.php")

    def test_pylibmc(self):
        self.served(PYLIBMC, "binary_pylibmc.py")
