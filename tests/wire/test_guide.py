"""The programs of setlistd-guide(7): each runs as the page shows it, one after the other, on one setlistd.

The application with a client module runs in each language on a setlistd of its own, and prints the same.
"""
import os

import manpage
import modules
from case_programs import PORT, TRIES, ProgramTest
from harness import BUILD_LIMIT, run_program
from matrix import CLIENTS
from program import installed

PAGE = manpage.GUIDE
PROGRAMS = manpage.programs(PAGE)
NAMES = {"python": "pymemcache", "php": "php-memcached"}


class Guide(ProgramTest):
    smoke = True
    compiles = True

    def test_each_part_has_both_languages(self):
        """Seven tasks in Python and in PHP, and one about the errors of PHP."""
        languages = [language for language, _ in PROGRAMS]
        self.assertEqual(languages, ["python", "php"] * 7 + ["php"])

    def test_programs(self):
        """In the order of the page, on one setlistd, so that a later program can use what an earlier one has stored."""
        self.serve(2, config="\n".join(manpage.configuration(PAGE)))
        for number, (language, text) in enumerate(PROGRAMS, 1):
            client = next(client for client in CLIENTS if client.name == NAMES[language])
            if not installed(client):
                continue
            with self.subTest(number=number, language=language):
                self.play(language, text, self.proxy.port, lines=None)


APPLICATIONS = manpage.programs(PAGE, "module")


class Application(ProgramTest):
    smoke = True
    compiles = True

    def test_each_language_has_one(self):
        self.assertEqual([language for language, _ in APPLICATIONS], [module.language for module in modules.ALL])

    def play_application(self, module, text):
        if not module.is_installed():
            self.skipTest(f"the client of the module for {module.language} is not installed")
        self.assertEqual(text.count(PORT), 1)
        # The modules time out after three seconds. On a machine that stalls, the program is tried again, on another setlistd.
        for _ in range(TRIES):
            done = self.run_application(module, text)
            if (done.returncode, done.stderr) == (0, ""):
                break
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        (_, _, lines), = [block for block in manpage.marked(PAGE) if block[1] == "output"]
        self.assertEqual(done.stdout.splitlines(), [manpage.unescape(line) for _, line in lines])

    def run_application(self, module, text):
        self.serve(2, config="\n".join(manpage.configuration(PAGE)))
        source = os.path.join(self.scratch(), f"application.{module.language}")
        with open(source, "w", encoding="utf-8") as out:
            out.write(text.replace(PORT, str(self.proxy.port)))
        return run_program(*module.command(source), env=modules.PROGRAM_ENVIRONMENT, limit=BUILD_LIMIT)


def add(module, text):
    def test(self):
        self.play_application(module, text)
    setattr(Application, f"test_{module.language}", test)


for each, (_, program) in zip(modules.ALL, APPLICATIONS):
    add(each, program)
