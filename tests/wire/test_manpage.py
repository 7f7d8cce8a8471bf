"""The examples of the manual's pages are run: each block on empty servers, on one connection.

Pages that show a configuration have their examples run with it.
"""
import os

import manpage
import player
from case import WireTest
from harness import OPTIONS

EXAMPLES_AT_LEAST = {"setlistd-protocol.7": 6, "setlistd-encodings.7": 8}


class Examples(WireTest):
    def play(self, page, number):
        def play():
            script = manpage.examples(page)[number]
            _, proxy = self.pool(2, config="\n".join(script.config) if script.config else None)
            player.Player(script, proxy.port).play()
        player.in_one_hour(play)

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
