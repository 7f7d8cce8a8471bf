"""The tests' own tools: marks, limits, and the report of a test that exceeded its limit."""
import os
import re
import signal
import subprocess
import sys

import processes
from case import WireTest, marks
from harness import run_program, wait_until
from runner import LONG_LIMIT, SMOKE_LIMIT, limit_of, mark

HERE = os.path.dirname(os.path.abspath(__file__))
ENDLESS = "1000"  # seconds for which a program sleeps: the test ends it
# A file of tests: one that nothing ends, with a child that sleeps. Its time is over once the child runs.
STUCK = f"""import subprocess, threading
from case import WireTest
from runner import Clock

class Stuck(WireTest):
    def test_that_waits(self):
        child = subprocess.Popen(["sleep", "{ENDLESS}"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        Clock.deadline = 0
        threading.Event().wait()

    def test_that_passes(self):
        pass
"""
RUN = """import sys
sys.path.insert(0, sys.argv[1])
import runner
runner.TICK = 0.1
sys.exit(runner.run(runner.collect(sys.argv[2], []), 2, False))
"""


class Report(WireTest):
    smoke = True

    def sleeper(self):
        """A shell whose child sleeps for as long as the test lasts; the pids of both."""
        shell = subprocess.Popen(["sh", "-c", f"sleep {ENDLESS} & wait"], stdin=subprocess.PIPE, start_new_session=True)
        self.addCleanup(shell.stdin.close)
        self.addCleanup(shell.wait)
        self.addCleanup(processes.kill_group, shell.pid)
        wait_until("the child runs", lambda: re.search(rf"(?m)^process \d+: sleep {ENDLESS}$", processes.report(shell.pid)))
        _, child = processes.family(shell.pid)
        return shell, child

    def test_what_processes_do(self):
        shell, child = self.sleeper()
        report = processes.report(shell.pid)
        self.assertRegex(report, rf"(?m)^process {shell.pid}: sh -c sleep {ENDLESS} & wait$")
        self.assertRegex(report, rf"(?m)^process {child}: sleep {ENDLESS}\n    State: .*, PPid: {shell.pid}, TracerPid: 0, Threads: 1\b")
        self.assertRegex(report, rf"(?m)^    thread {child}: Name: sleep, State: .*, wchan: \S+, syscall: \S+")
        self.assertRegex(report, rf"(?m)^    fd 0: pipe:\[\d+\], also open in (\d+, )*{os.getpid()}(, \d+)*$")

    def test_of_a_process_that_has_ended(self):
        shell, child = self.sleeper()
        os.kill(child, signal.SIGKILL)
        shell.wait()
        self.assertIn(f"process {shell.pid}: (No such file or directory)", processes.report(shell.pid))

    def test_of_a_program(self):
        """All of it is described and then killed, including a program that it has started itself."""
        command = f"sleep {ENDLESS} & wait"
        reader, writer = os.pipe()
        with os.fdopen(reader, "rb") as output:
            with os.fdopen(writer, "wb") as file, self.assertRaises(AssertionError) as caught:
                run_program("sh", "-c", command, limit=1, stdout=file)
            self.assertEqual(output.read(), b"")  # its end is reached once no process has it open
        text = str(caught.exception)
        self.assertIn("took more than 1 s", text)
        self.assertIn(f"process {os.getpid()}: ", text)
        self.assertIn(f": sh -c {command}\n", text)


class Wake(WireTest):
    smoke = True

    def test_what_it_waits_for_still_comes(self):
        """A child in a blocking read is interrupted once, in each of its threads, and continues to read."""
        command = "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print(sys.stdin.read())"
        with subprocess.Popen([sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            wait_until("both threads are there", lambda: len(processes.entries(f"/proc/{child.pid}/task")) == 2)
            self.assertEqual(processes.wake(child.pid), 2)
            self.assertEqual(processes.entries(f"/proc/{child.pid}/task")[:1], [child.pid])
            child.communicate(b"text")
        self.assertEqual(child.returncode, 0)
        self.assertEqual(processes.wake(child.pid), 0)


class Run(WireTest):
    smoke = True

    def test_a_test_that_exceeds_its_limit(self):
        """It fails with a report, and the others count. The last lines are the slowest tests and the sum."""
        folder = self.scratch()
        with open(os.path.join(folder, "test_stuck.py"), "w", encoding="utf-8") as file:
            file.write(STUCK)
        done = run_program(sys.executable, "-B", "-c", RUN, HERE, folder)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn(f"FAIL test_stuck.Stuck.test_that_waits\n    the test took more than {LONG_LIMIT} s\n", done.stdout)
        self.assertRegex(done.stdout, rf"(?m)^    process \d+: sleep {ENDLESS}$")
        *_, title, first, second, count = done.stdout.splitlines()
        self.assertEqual(title, "the slowest tests:")
        self.assertEqual(sorted(re.sub(r"^ +\d+\.\d\d s  ", "", line) for line in (first, second)),
                         ["test_stuck.Stuck.test_that_passes", "test_stuck.Stuck.test_that_waits"])
        self.assertEqual(count, "1 passed, 1 failed")


class Marks(WireTest):
    """Of a class, of a single test, and their effect on its limit."""
    smoke = True

    class Marked(WireTest):
        smoke = True

        def test_of_its_class(self):
            pass

        @marks(smoke=False, plain=True)
        def test_of_its_own(self):
            pass

        @marks(compiles=True)
        def test_that_compiles(self):
            pass

    def test_marks(self):
        found = {name: [mark(self.Marked(name), each) for each in ("smoke", "plain", "compiles", "alone")]
                 for name in ("test_of_its_class", "test_of_its_own", "test_that_compiles")}
        self.assertEqual(found, {"test_of_its_class": [True, False, False, False], "test_of_its_own": [False, True, False, False],
                                 "test_that_compiles": [True, False, True, False]})

    def test_limits(self):
        self.assertEqual([limit_of(self.Marked(name)) for name in ("test_of_its_class", "test_of_its_own", "test_that_compiles")],
                         [SMOKE_LIMIT, LONG_LIMIT, LONG_LIMIT])
