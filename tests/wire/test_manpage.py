"""The examples of the manual's pages are run: each block on empty servers, on one connection.

Pages that show a configuration have their examples run with it.
"""
import os

import manpage
import player
from case import WireTest
from harness import OPTIONS
from stored import counter
from wire import Conn

# A write requests a compaction by chance, once in a hundred or less.
COMPACTED_AT_MOST = 20
EXAMPLES_AT_LEAST = {"setlistd-protocol.7": 6, "setlistd-encodings.7": 8, "setlistd-clients.7": 6}


class Examples(WireTest):
    smoke = True

    def play_once(self, page, number, last):
        """Whether it was played; False if it failed and a compaction by chance may be the reason."""
        script = manpage.examples(page)[number]
        config = "\n".join(script.config) if script.config else None
        _, proxy = self.pool(3 if config and "copies = 2" in config else 2, config=config)
        try:
            player.Player(script, proxy.port).play()
        except player.Mismatch:
            with Conn(proxy.port) as conn:
                if last or counter(conn, "compactions") == 0:
                    raise
            return False
        return True

    def play(self, page, number):
        player.in_one_hour(lambda: any(self.play_once(page, number, turn == COMPACTED_AT_MOST)
                                       for turn in range(1, COMPACTED_AT_MOST + 1)))

    def test_the_pages_have_examples(self):
        for page in OPTIONS.manpages:
            found = manpage.examples(page)
            self.assertGreaterEqual(len(found), EXAMPLES_AT_LEAST.get(os.path.basename(page), 1), page)
            for example in found:
                kinds = {step.kind for step in example.steps}
                self.assertEqual(kinds, {"send", "expect"}, example.name)


def add_all(page):
    if not os.path.exists(page):
        return                                        # test_the_pages_have_examples says so
    for number, example in enumerate(manpage.examples(page)):
        def test(self, number=number):
            self.play(page, number)
        test.__name__ = f"test_{example.name}"
        setattr(Examples, test.__name__, test)


for each in OPTIONS.manpages:
    add_all(each)
