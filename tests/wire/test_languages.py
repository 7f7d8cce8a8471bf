"""The programs of setlistd-clients(7): each runs as it stands there, but for the port. Those of README.md are among them."""
import os
import re
import shutil
import subprocess
import tempfile

import manpage
import readme
from case import WireTest
from harness import OPTIONS
from matrix import CLIENTS
from program import ENVIRONMENT, LIMIT, installed

PROGRAMS = manpage.programs(manpage.CLIENTS)
TRIES = 8
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PORT = "11311"  # that of the page
# The client that a program uses, and what is around a part of a program. Python, Ruby, Perl and PHP need nothing around them.
WHOLE = "%s"
GO = 'package main\n\nimport (\n"fmt"\n"github.com/bradfitz/gomemcache/memcache"\n)\n\nfunc main() {\n%s}\n'
JS = "(async () => {\n%sc.close();\n})();\n"
C = "#include <libmemcached/memcached.h>\n#include <stdio.h>\n\nint main(void)\n{\n%sreturn 0;\n}\n"
LANGUAGES = {
    "python": ("pymemcache", WHOLE, "{python} {source}"),
    "php": ("php-memcached", WHOLE, "php {source}"),
    "ruby": ("Dalli (Ruby)", WHOLE, "ruby {source}"),
    "perl": ("Cache::Memcached::Fast", "use strict; use warnings;\n%s", "perl {source}"),
    "go": ("gomemcache (Go)", GO, "go run {source}"),
    "js": ("memjs (Node)", JS, "node {source}"),
    "c": ("libmemcached (C)", C, "cc -o {source}.out {source} -lmemcached && {source}.out"),
}


class Quickstart(WireTest):
    def quickstart(self, make="", deps=""):
        """With nothing to install or to build, but these."""
        folder = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.addCleanup(shutil.rmtree, folder)
        for path, text in (("scripts/deps", f"#!/bin/sh\n{deps}\n"), ("make", f"#!/bin/sh\n{make}\n")):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(os.path.join(folder, path), 0o700)
        shutil.copy(os.path.join(ROOT, "scripts/quickstart"), os.path.join(folder, "scripts"))
        os.symlink(os.path.abspath(OPTIONS.setlistd), os.path.join(folder, "setlistd"))
        return subprocess.run([os.path.join(folder, "scripts/quickstart"), "--once"], capture_output=True, text=True, timeout=LIMIT,
                              env=dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"), check=False)

    def test_failure(self):
        """The step, and the end of what it has printed."""
        done = self.quickstart(make="seq 100; echo no compiler; exit 1", deps="seq 9")
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, r"\Ainstalling 9 packages \.\.\. \d+ s\nbuilding \.\.\. failed\n\Z")
        self.assertRegex(done.stderr, r"(?s)\Ascripts/quickstart: building: failed\nThe end of build/quickstart.log:\n.* 99\n    100\n    no compiler\n\Z")
        self.assertLess(done.stderr.count("\n"), 20)

    def test_session(self):
        """What it prints is what README promises."""
        done = self.quickstart()
        self.assertEqual(done.returncode, 0, done)
        self.assertLess(len(done.stdout.splitlines()), 60, "it is quiet")
        self.assertEqual(done.stderr, "")
        self.assertIn("> get q|smembers|topic-1\nVALUE q|smembers|topic-1 0 11\nann cyd dee\nEND\n", done.stdout)


class Languages(WireTest):
    def play(self, language, text):
        name, around, command = LANGUAGES[language]
        client = next(client for client in CLIENTS if client.name == name)
        if not installed(client):
            self.skipTest(f"{client.package} is not installed")
        self.assertEqual(text.count(PORT), 1, text)
        conn = self.serve(2, "-c", "q|")
        self.assertEqual(conn.ask("sadd topic-2 cyd dee"), "STORED")
        folder = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.addCleanup(shutil.rmtree, folder)
        source = os.path.join(folder, f"program.{language}")
        with open(source, "w", encoding="utf-8") as out:
            out.write(around % text.replace(PORT, str(self.proxy.port)))
        # Some of the clients give up within a second, gomemcache within a tenth. A machine that stands still gets further tries.
        for _ in range(TRIES):
            done = subprocess.run(["sh", "-c", command.format(source=source, python="/usr/bin/python3 -B")], env=ENVIRONMENT,
                                  capture_output=True, text=True, timeout=LIMIT, check=False)
            if (done.returncode, done.stderr) == (0, ""):
                break
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        # Behind each line that prints stands what it prints.
        self.assertEqual(done.stdout.splitlines(), re.findall(r"\)+;?(?:, \"\\n\";)?  +(?:#|//) (.*)$", text, re.MULTILINE))
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertEqual(conn.ask("smembers topic-1")[:15], "VALUE topic-1 0")

    def test_languages(self):
        """Each language has a program, and no program is of another one."""
        self.assertEqual({language for language, _ in PROGRAMS}, set(LANGUAGES))

    def test_readme(self):
        """Its programs are some of these, so they run."""
        found = readme.programs()
        self.assertGreater(len(found), 0)
        for program in found:
            self.assertIn(program, PROGRAMS)


def add(number, language, text):
    def test(self):
        self.play(language, text)
    test.__name__ = f"test_{language}_{number}"
    setattr(Languages, test.__name__, test)


for place, each in enumerate(PROGRAMS, 1):
    add(place, *each)
