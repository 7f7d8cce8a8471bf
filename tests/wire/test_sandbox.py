"""The sandbox: the system calls that setlistd may make, and how its binary is built."""
import os
import re
import shutil
import signal

from case import WireTest
from harness import EVENLY, OPTIONS, built_with_sanitizer, run_program
from stored import stats


def helper(name):
    """A program that enters the sandbox and tries an action; `make` puts it next to the daemon or into build/."""
    folder = os.path.dirname(OPTIONS.setlistd)
    for path in (os.path.join(folder, name), os.path.join(folder, "build", name)):
        if os.access(path, os.X_OK):
            return path
    return None


def states(pid):
    """(NoNewPrivs, Seccomp) of each thread."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as status:
            lines = dict(line.split(":", 1) for line in status)
        if "Seccomp" not in lines:
            return None
        found.append((int(lines["NoNewPrivs"]), int(lines["Seccomp"])))
    return found


def has_seccomp():
    """Whether the daemon was built with it."""
    with open(OPTIONS.setlistd, "rb") as file:
        return b"built without seccomp" not in file.read()


class Sandbox(WireTest):
    smoke = True
    plain = True

    def setUp(self):
        if not has_seccomp():
            self.skipTest("this setlistd was built without seccomp")

    def threads_of(self, config):
        conn = self.serve(2, "-t", "3", config=f"{EVENLY}\n{config}")
        self.assertEqual(conn.set("k", b"x"), "STORED")
        found = states(self.proxy.pid)
        if found is None:
            self.skipTest("the kernel tells nothing about seccomp")
        self.assertGreaterEqual(len(found), 4)
        return conn, set(found)

    def test_every_thread_is_in_it(self):
        conn, found = self.threads_of("")
        self.assertEqual(found, {(1, 2)})
        self.assertEqual(stats(conn, "stats settings")["sandbox"], "1")

    def test_off(self):
        conn, found = self.threads_of("sandbox = false")
        inherited = set(states(os.getpid()))
        self.assertEqual(found, inherited)
        self.assertEqual(stats(conn, "stats settings")["sandbox"], "0")


class Actions(WireTest):
    """The effect on a process in the sandbox. Outside of it, the same actions do not kill the process."""
    smoke = True
    plain = True

    def run_helper(self, where, action):
        return run_program(self.path, where, action, env=dict(os.environ, LC_ALL="C"))

    def setUp(self):
        if built_with_sanitizer():
            self.skipTest("a sanitizer needs what the sandbox forbids")
        self.path, self.without = helper("sandboxed"), helper("unboxed")
        if not self.path or not self.without:
            self.skipTest("build/sandboxed or build/unboxed is not there: make check-wire makes them")

    def test_killed(self):
        for action in ("execve", "fork", "ptrace", "mprotect", "packets", "kill", "thread-execve"):
            with self.subTest(action=action):
                self.assertEqual(self.run_helper("in", action).returncode, -signal.SIGSYS)
                self.assertEqual(self.run_helper("out", action).returncode, 0, "it means nothing")

    def test_refused(self):
        for action, error in (("mmap", "not permitted"), ("write-file", "Permission denied"), ("clone3", "not implemented"),
                              ("tcgets", "Inappropriate ioctl"), ("tcgets2", "Inappropriate ioctl")):
            with self.subTest(action=action):
                done = self.run_helper("in", action)
                self.assertEqual(done.returncode, 1, done)
                self.assertIn(error, done.stdout)
                self.assertNotIn(error, self.run_helper("out", action).stdout, "it means nothing")

    def test_allowed(self):
        for action in ("read-file", "thread", "socket", "if_nametoindex", "if_indextoname"):
            with self.subTest(action=action):
                done = self.run_helper("in", action)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done)

    def test_without_seccomp(self):
        """A build without the sandbox reports this, and forbids nothing."""
        done = run_program(self.without, "in", "execve")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stderr, r"sandbox: not available, .* built without seccomp")

    def test_an_abort_is_still_one(self):
        self.assertEqual(self.run_helper("in", "abort").returncode, -signal.SIGABRT)


class Build(WireTest):
    """How the binary was compiled and linked."""
    smoke = True
    plain = True

    def readelf(self, *options):
        if not shutil.which("readelf"):
            self.skipTest("there is no readelf")
        return run_program("readelf", "-W", *options, OPTIONS.setlistd, check=True, env=dict(os.environ, LC_ALL="C")).stdout

    def setUp(self):
        if built_with_sanitizer():
            self.skipTest("with a sanitizer it is built differently")

    def test_loaded_anywhere(self):
        self.assertRegex(self.readelf("-h"), r"Type:\s+DYN")
        self.assertRegex(self.readelf("-d"), r"FLAGS_1.*\bPIE\b")

    def test_tables_are_read_only(self):
        """All symbols are bound at the start, and their table is read-only afterwards."""
        self.assertIn("GNU_RELRO", self.readelf("-l"))
        self.assertRegex(self.readelf("-d"), r"BIND_NOW|FLAGS_1.*\bNOW\b")

    def test_no_memory_is_writable_and_executable(self):
        headers = self.readelf("-l")
        self.assertRegex(headers, r"GNU_STACK.*\bRW\b")
        self.assertEqual(re.findall(r"^.*\bRWE\b.*$", headers, re.MULTILINE), [])

    def test_checks_of_the_compiler(self):
        symbols = self.readelf("--dyn-syms")
        self.assertIn("__stack_chk_fail", symbols)
        self.assertRegex(symbols, r"__(v?snprintf|memcpy|fread|read|recv)_chk")
