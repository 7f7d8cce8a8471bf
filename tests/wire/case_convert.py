"""The base of the tests of setlistd-convert: proxies, rules for every encoding, a client that writes concurrently."""
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

from case import WireTest
from harness import HOST, PATIENCE, wait_until
from stored import stat
from wire import Conn

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts")
sys.path.insert(0, SCRIPTS)

LIMIT = 2 * PATIENCE
# The text of each rule, by name. Old keys begin with o-<name>-, new ones with n-<name>-.
ENCODINGS = {
    "oplog": "", "signed": 'encoding = "signed"', "csv": 'encoding = "csv"', "tombstone": 'encoding = "tombstone"',
    "paired": 'encoding = "paired" removed = "%sgone-"', "flip": 'encoding = "flip" pointer = false',
    "pointer": 'encoding = "flip" pointer = true', "indexed": 'encoding = "indexed"',
}


def rules():
    # A busy machine may stall for longer than the default timeout of a request.
    return "request_timeout = 30000\n" + "\n".join('collection "%s" { %s }' % (prefix, rule % prefix if "%" in rule else rule)
                     for name, rule in ENCODINGS.items() for prefix in (f"o-{name}-", f"n-{name}-"))


class ConvertTest(WireTest):
    config = rules()

    def setUp(self):
        self.folder = self.scratch()
        self.serve(config=self.config)
        self.server, = self.servers
        self.state = os.path.join(self.folder, "state")

    def argv(self, old, new, *options, source=None, target=None):
        argv = ["--from-prefix", old, "--to-prefix", new, "--state", self.state,
                "--from", f"{HOST}:{(source or self.proxy).port}"]
        return argv + (["--to", f"{HOST}:{target.port}"] if target else []) + list(options)

    def start(self, keys, *args, **kwargs):
        """Starts a conversion of these keys."""
        listed = tempfile.NamedTemporaryFile("wb", dir=self.folder, delete=False)
        listed.write(b"".join(key.encode() + b"\n" for key in keys))
        listed.close()
        # Not a pipe, since it is only read at the end.
        self.said = tempfile.TemporaryFile(dir=self.folder)
        self.addCleanup(self.said.close)
        child = subprocess.Popen([sys.executable, os.path.join(SCRIPTS, "convert"), *self.argv(*args, **kwargs), listed.name],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said)
        self.addCleanup(self.reap, child)
        return child

    @staticmethod
    def reap(child):
        child.kill()
        child.wait()

    def what_it_said(self):
        self.said.seek(0)
        return self.said.read().decode("utf-8", "replace")

    def convert(self, keys, *args, status=0, **kwargs):
        """Runs a conversion to its end. Returns its output."""
        child = self.start(keys, *args, **kwargs)
        child.wait(LIMIT)
        said = self.what_it_said()
        self.assertEqual(child.returncode, status, said[-2000:])
        return said

    def records(self):
        """Returns the complete records of the state file."""
        if not os.path.exists(self.state):
            return []
        with open(self.state, "rb") as file:
            return [json.loads(line) for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]

    def passes(self):
        return max([record["pass"] for record in self.records() if "end" in record], default=0)

    def members(self, key, conn=None):
        found, end = (conn or self.conn).values(f"smembers {key}")
        self.assertEqual(end, "END", key)
        return set(found[key][1].decode().split()) if key in found else None

    def ask(self, command, reply, conn=None):
        self.assertEqual((conn or self.conn).ask(command), reply, command)

    def add(self, *sets):
        """Takes keys, each with its members."""
        for words in sets:
            self.ask(f"sadd {words}", "STORED")

    @staticmethod
    def items_of(prefix, name="k"):
        """Returns all possible items of the collection, in any encoding."""
        return [prefix + name, f"{prefix}gone-{name}", *(f"{prefix}{name}.{part}" for part in ("a", "b", "active", "0", "1"))]

    def ttl(self, key):
        return stat(self.conn, f"sinfo {key}", "ttl")


class Writer:
    """A client that adds and removes members that no other client changes, and records which exist."""

    def __init__(self, port, seed):
        self.conn, self.random = Conn(port), random.Random(seed)
        self.model, self.lock, self.ended = {}, threading.Lock(), False
        self.key, self.names, self.failure, self.turns = None, [], None, 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def turn(self):
        with self.lock:
            name, add = self.random.choice(self.names), self.random.random() < 0.5
            reply = self.conn.ask(f"{'sadd' if add else 'srem'} {self.key} {name}")
            assert reply == ("STORED" if add else "DELETED"), reply
            self.model[name] = add
            self.turns += 1

    def run(self):
        try:
            while not self.ended:
                self.turn()
        except Exception as error:
            self.failure = error

    def use(self, key, names):
        """Makes it write these members to this key from now on."""
        with self.lock:
            self.key, self.names, self.turns = key, names, 0

    def wait(self, turns):
        wait_until("the client writes", lambda: self.failure or self.turns >= turns, limit=LIMIT)

    def close(self):
        self.ended = True
        if self.thread.is_alive():
            self.thread.join(LIMIT)
        self.conn.close()
        if self.failure:
            raise self.failure
