"""A queue of JSON jobs, in programs of clients that have only get and set: each job is taken once, and arrives byte for byte."""
import base64
import collections
import json
import os
import random
import subprocess

from case import WireTest
from harness import BUILD_LIMIT
from matrix import CLIENTS, FOLDER, PYTHON
from program import ENVIRONMENT, installed

JOBS, WORKERS = 1000, 2
TEXTS = ("hello world", 'in "quotes", with a \\', "two\nlines\r\n", "tabs\t and {braces}", "Grüße, κόσμε, 世界", " ", "")


def job(rng, number):
    """Some are written on several lines, some with escapes instead of UTF-8."""
    content = {"id": number, "subject": rng.choice(TEXTS), "tags": rng.sample(TEXTS, rng.randint(0, 3))}
    return json.dumps(content, indent=rng.choice((None, 2)), ensure_ascii=rng.random() < 0.2).encode()


def jobs():
    """The last one is JSON with a byte that no client's text can have."""
    rng = random.Random(49)
    return [job(rng, number) for number in range(JOBS - 1)] + [b'{"id": "\0"}']


class Queue(WireTest):
    smoke = True

    def start(self, command, verb, name):
        with open(os.path.join(self.folder, name), "wb") as out:
            child = subprocess.Popen([*command, str(self.proxy.port), verb], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE,
                                     cwd=FOLDER, env=ENVIRONMENT)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def finish(self, child, jobs=()):
        _, errors = child.communicate(b"".join(base64.b64encode(job) + b"\n" for job in jobs), timeout=BUILD_LIMIT)
        self.assertEqual((child.returncode, errors), (0, b""))

    def taken(self, name):
        with open(os.path.join(self.folder, name), "rb") as text:
            return [base64.b64decode(line) for line in text]

    def play(self, name, *command):
        client = next(client for client in CLIENTS if client.name == name)
        if not installed(client):
            self.skipTest(f"{client.package} is not installed")
        self.serve(2, "-c", "q|")
        self.folder = self.scratch()
        names = [f"worker-{number}" for number in range(WORKERS)]
        workers = [self.start(command, "take", name) for name in names]
        put = jobs()
        self.finish(self.start(command, "put", "producer"), put + [b"end"] * WORKERS)
        for worker in workers:
            self.finish(worker)
        taken = collections.Counter(job for name in names for job in self.taken(name))
        self.assertEqual(taken, collections.Counter(put))
        self.assertEqual(self.conn.ask("llen jobs"), "0")

    def test_python(self):
        self.play("pymemcache", *PYTHON, "jobs.py")

    def test_php(self):
        self.play("php-memcached", "php", "jobs.php")
