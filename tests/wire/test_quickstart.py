"""scripts/quickstart: its output, and all examples for clients in README.md, run with the processes that it started."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

import readme
from case import marks
from case_programs import PORT, ProgramTest
from harness import BUILD_LIMIT, OPTIONS, run_program
from matrix import CLIENTS
from modules import make_importable
from program import installed
from wire import Conn

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PYMEMCACHE = next(client for client in CLIENTS if client.name == "pymemcache")


class Quickstart(ProgramTest):
    smoke = True

    def command(self, *options, make="", deps=""):
        """A command line and its environment, to run it with nothing to install or to build, but these."""
        folder = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.addCleanup(shutil.rmtree, folder)
        for path, text in (("scripts/deps", f"#!/bin/sh\n{deps}\n"), ("make", f"#!/bin/sh\n{make}\n")):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(os.path.join(folder, path), 0o700)
        shutil.copy(os.path.join(ROOT, "scripts/quickstart"), os.path.join(folder, "scripts"))
        os.symlink(os.path.abspath(OPTIONS.setlistd), os.path.join(folder, "setlistd"))
        return [os.path.join(folder, "scripts/quickstart"), *options], dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")

    def once(self, **steps):
        argv, env = self.command("--once", **steps)
        return run_program(*argv, env=env, limit=BUILD_LIMIT)

    def started(self):
        """Returns the port of a quickstart that keeps running; all its processes end with the test."""
        argv, env = self.command()
        # A shell that runs the tests in the background makes them ignore SIGINT, and a shell cannot trap a signal that was ignored at its
        # start.
        process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(self.interrupt, process)
        for line in process.stdout:
            if found := re.match(r"setlistd listens on 127\.0\.0\.1:(\d+),", line):
                port = int(found[1])
            if line == "Interrupt it to stop all of it.\n":
                return port
        return self.fail(process.stderr.read())

    def interrupt(self, process):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=BUILD_LIMIT)
        self.assertEqual((process.returncode, errors), (0, ""))

    def test_failure(self):
        """The step, and the end of its output."""
        done = self.once(make="seq 100; echo no compiler; exit 1", deps="seq 9")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ainstalling 9 packages \.\.\. \d+ s\nbuilding \.\.\. failed\n\Z")
        self.assertRegex(done.stderr, r"(?s)\Ascripts/quickstart: building: failed\nThe end of build/quickstart.log:\n.* 99\n    100\n    no compiler\n\Z")
        self.assertLess(done.stderr.count("\n"), 20)

    def test_session(self):
        """Its output is as in README."""
        done = self.once()
        self.assertEqual(done.returncode, 0, done)
        around = re.sub(r"\nA set:\n(?s:.*)\nNext:\n", "\n", done.stdout)
        self.assertLess(len(around.splitlines()), 15, "it is quiet")
        self.assertLess(len(done.stdout.splitlines()), 65)
        self.assertEqual(done.stderr, "")
        self.assertIn("> get q|smembers|topic-2\nVALUE q|smembers|topic-2 0 7\ncyd\ndee\nEND\n", done.stdout)

    @marks(smoke=False)
    def test_readme(self):
        """One after the other, as a reader pastes them. All but the session are skipped without their clients."""
        port = self.started()
        with Conn(port) as conn:
            self.session(conn)
        if installed(PYMEMCACHE):
            self.vanishing(port)
        for language, text in readme.programs():
            with self.subTest(language=language):
                self.play(language, text, port)

    def session(self, conn):
        """Each line that is sent is followed by its reply, if README has one."""
        for line in readme.blocks("A session")[0].splitlines():
            if line.startswith("    "):
                self.assertEqual(conn.line().decode(), line.strip())
            else:
                conn.send(f"{line}\r\n".encode())

    def vanishing(self, port):
        """With a set that is there, and one that is not."""
        class Database:
            rows = {"topic-3": ["eve"]}

            def members(self, topic):
                return self.rows[topic]

            def add(self, topic, member):
                self.rows.setdefault(topic, []).append(member)

        program = {"database": Database()}
        make_importable(self)
        exec("\n".join(readme.blocks("A set can vanish")).replace(PORT, str(port)), program)
        self.assertEqual(program["members"]("topic-1"), {"ann", "bob"})
        self.assertEqual(program["members"]("topic-3"), {"eve"})
        program["add"]("topic-3", "fay")
        self.assertEqual(program["members"]("topic-3"), {"eve", "fay"})
