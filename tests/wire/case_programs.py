"""Runs the programs of the documentation in each language, unchanged except for the port."""
import os
import re
import shutil
import tempfile

from case import WireTest
from harness import BUILD_LIMIT, run_program
from matrix import CLIENTS
from modules import MODULES, PROGRAM_ENVIRONMENT
from program import installed

TRIES = 8
PORT = "11311"  # the port in the page
# The client that a program uses, and the code around a part of a program. Python, Ruby, Perl and PHP need none.
WHOLE = "%s"
GO = 'package main\n\nimport (\n"fmt"\n"github.com/bradfitz/gomemcache/memcache"\n)\n\nfunc main() {\n%s}\n'
JS = "(async () => {\n%sc.close();\n})();\n"
C = "#include <libmemcached/memcached.h>\n#include <stdio.h>\n\nint main(void)\n{\n%sreturn 0;\n}\n"
LANGUAGES = {
    "python": ("pymemcache", WHOLE, "{python} {source}"),
    "php": ("php-memcached", WHOLE, "php -d include_path={modules} {source}"),
    "ruby": ("Dalli (Ruby)", WHOLE, "ruby {source}"),
    "perl": ("Cache::Memcached::Fast", "use strict; use warnings;\n%s", "perl {source}"),
    "go": ("gomemcache (Go)", GO, "go run {source}"),
    "js": ("memjs (Node)", JS, "node {source}"),
    "c": ("libmemcached (C)", C, "cc -o {source}.out {source} -lmemcached && {source}.out"),
}


class ProgramTest(WireTest):
    def play(self, language, text, port, lines=3):
        """Runs it with setlistd at this port. It must print the lines in its comments: this number of lines, or at least one."""
        name, around, command = LANGUAGES[language]
        client = next(client for client in CLIENTS if client.name == name)
        if not installed(client):
            self.skipTest(f"{client.package} is not installed")
        self.assertEqual(text.count(PORT), 1, text)
        folder = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.addCleanup(shutil.rmtree, folder)
        source = os.path.join(folder, f"program.{language}")
        with open(source, "w", encoding="utf-8") as out:
            out.write(around % text.replace(PORT, str(port)))
        # Some clients time out after a second, gomemcache after a tenth. On a machine that stalls, the program is tried again.
        for _ in range(TRIES):
            done = run_program("sh", "-c", command.format(source=source, python="/usr/bin/python3 -B", modules=f"{MODULES}/php"),
                               env=PROGRAM_ENVIRONMENT, limit=BUILD_LIMIT)
            if (done.returncode, done.stderr) == (0, ""):
                break
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        # Each line that prints something is followed by the expected output. Python prints newlines in bytes as \\n.
        expected = re.findall(r"\)+;?(?:, \"\\n\";)?  +(?:#|//) (.*)$", text, re.MULTILINE)
        printed = len(expected)
        if language != "python":
            expected = "\n".join(expected).replace("\\n", "\n").splitlines()
        self.assertEqual(done.stdout.splitlines(), expected)
        if lines is None:
            self.assertGreater(printed, 0)
        else:
            self.assertEqual(printed, lines)
