"""A client's program in `clients`: built if necessary, and driven step by step."""
import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading

from harness import BUILD_LIMIT, run_program
from matrix import BUILD, FOLDER, GOPATH

# scripts/deps installs the clients of npm there.
ENVIRONMENT = dict(os.environ, NODE_PATH=os.path.join(BUILD, "node_modules"), GOCACHE=os.path.join(BUILD, "go"), GOPATH=GOPATH,
                   GO111MODULE="off")


@functools.lru_cache
def installed(client):
    if not shutil.which(client.look[0]):
        return False
    # It starts a compiler or a virtual machine, from a disk that may be slow.
    return run_program(*client.look, env=ENVIRONMENT, limit=BUILD_LIMIT).returncode == 0


def build(client):
    """Built by one test at a time; the next one reuses the result."""
    source, command = client.build
    source = os.path.join(FOLDER, source)
    os.makedirs(BUILD, exist_ok=True)
    with open(f"{os.path.join(BUILD, client.build[0])}.built", "a", encoding="ascii") as stamp:
        fcntl.flock(stamp, fcntl.LOCK_EX)
        # The file contains a checksum of the program's source.
        with open(source, "rb") as text:
            wanted = hashlib.sha256(text.read()).hexdigest()
        with open(stamp.name, encoding="ascii") as old:
            if old.read() == wanted:
                return
        done = run_program(*command, source, cwd=BUILD, env=ENVIRONMENT, limit=BUILD_LIMIT)
        if done.returncode:
            raise AssertionError(f"{source}: {done.stderr}")
        stamp.truncate(0)
        stamp.write(wanted)


def located(word):
    for folder in (FOLDER, BUILD):
        if os.path.isfile(os.path.join(folder, word)):
            return os.path.join(folder, word)
    return word


class Program:
    """A running program, until the end of the with block. It processes one step at a time."""

    def __init__(self, client, port, protocol, *args):
        if client.build:
            build(client)
        argv = [located(word) if "/" not in word else word for word in client.argv]
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen([*argv, str(port), protocol, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.errors, text=True, errors="backslashreplace", cwd=FOLDER, env=ENVIRONMENT)
        self.watch = threading.Timer(BUILD_LIMIT, self.child.kill)
        self.watch.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.wait()
        self.watch.cancel()
        self.child.stdout.close()
        self.errors.close()

    def ask(self, *words):
        """Returns the reply to a step; the words contain no tabs. The program receives and sends newlines in them as \\v."""
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write("\t".join(words).replace("\n", "\v") + "\n")
            self.child.stdin.flush()
            answer = self.child.stdout.readline()
            if answer.endswith("\n"):
                return answer[:-1].replace("\v", "\n")
        self.child.wait()
        return f"the program exited with status {self.child.returncode}: {self.said()}"

    def said(self):
        """Returns its stderr."""
        self.errors.seek(0)
        return self.errors.read()
