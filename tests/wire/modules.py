"""The client modules of conf/clients, each with a program in `modules` that runs calls of it."""
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

from harness import BUILD_LIMIT, run_program
from matrix import BUILD, CLIENTS, GOPATH, PYTHON
from program import ENVIRONMENT, installed

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, MODULES = os.path.join(HERE, "modules"), os.path.abspath(os.path.join(HERE, "../../conf/clients"))
GO_PATH = os.path.join(BUILD, "gopath")
# Go programs import the module as "setlistd".
PROGRAM_ENVIRONMENT = dict(ENVIRONMENT, GOPATH=f"{GO_PATH}:{GOPATH}", PYTHONPATH=os.path.join(MODULES, "python"),
                           NODE_PATH=f"{ENVIRONMENT['NODE_PATH']}:{MODULES}/node")


def build_go(source, program):
    os.makedirs(os.path.join(GO_PATH, "src"), exist_ok=True)
    with open(os.path.join(GO_PATH, "lock"), "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        link = os.path.join(GO_PATH, "src/setlistd")
        if not os.path.islink(link):
            os.symlink(os.path.join(MODULES, "go"), link)
        done = run_program("go", "build", "-o", program, source, env=PROGRAM_ENVIRONMENT, limit=BUILD_LIMIT)
    if done.returncode:
        raise AssertionError(f"{source}: {done.stderr}")


class Module:
    """client: the name in the matrix of the client that it needs, or None. sets: whether the language has sets."""

    def __init__(self, language, path, client, sets, argv):
        self.language, self.path = language, os.path.join(MODULES, path)
        self.client = next((each for each in CLIENTS if each.name == client), None)
        self.sets, self.argv = sets, argv

    def is_installed(self):
        return installed(self.client) if self.client else shutil.which(self.argv[0]) is not None

    def command(self, source):
        """Returns the command that runs a program, which is built first if necessary."""
        if self.language != "go":
            return [*self.argv, source]
        program = os.path.join(BUILD, f"module_{os.path.basename(source)[:-3]}")
        build_go(source, program)
        return [program]


ALL = (
    Module("python", "python/setlistd.py", "pymemcache", True, PYTHON),
    Module("php", "php/Setlistd.php", "php-memcached", False, ["php", "-d", f"include_path={os.path.join(MODULES, 'php')}"]),
    Module("js", "node/setlistd.js", None, True, ["node"]),
    Module("go", "go/setlistd.go", "gomemcache (Go)", False, ["go"]),
)


def make_importable(test):
    """Until the end of a test, Python finds the module for it."""
    path = os.path.join(MODULES, "python")
    sys.path.insert(0, path)
    test.addCleanup(sys.path.remove, path)


class Refused(Exception):
    """kind: "setlistd", "busy", or "other" for an error that is not setlistd's."""

    def __init__(self, text, kind):
        super().__init__(text)
        self.kind = kind


class Driver:
    """A running program. A call is started with `start`, and ends with `finish`."""

    def __init__(self, module, port, timeout=60.0, login=None):
        self.module = module
        argv = [*module.command(os.path.join(FOLDER, f"driver.{module.language.replace('python', 'py')}")), str(port),
                json.dumps({"timeout": timeout, "login": login})]
        self.errors = tempfile.TemporaryFile("w+")
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                      env=PROGRAM_ENVIRONMENT)
        self.watch = threading.Timer(BUILD_LIMIT, self.child.kill)
        self.watch.start()

    def close(self):
        self.child.stdin.close()
        self.child.wait()
        self.watch.cancel()
        self.child.stdout.close()
        self.errors.close()

    def start(self, *call):
        print(json.dumps(call), file=self.child.stdin, flush=True)

    def finish(self):
        """Returns the result, in which each character of a string is a byte, or raises Refused."""
        line = self.child.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise AssertionError(f"the program has ended: {self.errors.read()}")
        reply = json.loads(line)
        if "error" in reply:
            raise Refused(reply["error"], reply["kind"])
        return set(reply["set"]) if "set" in reply else reply["ok"]

    def ask(self, *call):
        self.start(*call)
        return self.finish()
