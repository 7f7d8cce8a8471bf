"""The programs of setlistd-guide(7): each runs as the page shows it, one after the other, on one setlistd."""
import manpage
from case_programs import ProgramTest
from matrix import CLIENTS
from program import installed

PAGE = manpage.GUIDE
PROGRAMS = manpage.programs(PAGE)
NAMES = {"python": "pymemcache", "php": "php-memcached"}


class Guide(ProgramTest):
    smoke = True
    compiles = True

    def test_each_part_has_both_languages(self):
        """Six tasks in Python and in PHP, and one about the errors of PHP."""
        languages = [language for language, _ in PROGRAMS]
        self.assertEqual(languages, ["python", "php"] * 6 + ["php"])

    def test_programs(self):
        """In the order of the page, on one setlistd, so that a later program can use what an earlier one has stored."""
        self.serve(2, config="\n".join(manpage.configuration(PAGE)))
        for number, (language, text) in enumerate(PROGRAMS, 1):
            client = next(client for client in CLIENTS if client.name == NAMES[language])
            if not installed(client):
                continue
            with self.subTest(number=number, language=language):
                self.play(language, text, self.proxy.port, lines=None)
