"""The programs of setlistd-clients(7), unmodified. Those of README.md are among them."""
import manpage
import readme
from case import marks
from case_programs import LANGUAGES, ProgramTest

PROGRAMS = manpage.programs(manpage.CLIENTS)


class Languages(ProgramTest):
    smoke = True
    compiles = True

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
    # In a fresh work tree Go compiles its own library first.
    @marks(smoke=language != "go")
    def test(self):
        conn = self.serve(2, "-c", "q|")
        self.assertEqual(conn.ask("sadd topic-2 cyd dee"), "STORED")
        self.play(language, text, self.proxy.port)
        self.assertEqual(conn.ask("smembers topic-1")[:15], "VALUE topic-1 0")
    test.__name__ = f"test_{language}_{number}"
    setattr(Languages, test.__name__, test)


for place, each in enumerate(PROGRAMS, 1):
    add(place, *each)
