"""Counts of instructions: counts that are too high, are repeated, are compared. Nothing is counted here."""
import contextlib
import io
import json
import os
import tempfile
import unittest
from unittest import mock

from rig import instructions

MADE = {"compiler": "one"}


class Counted(instructions.Counter):
    """Returns the given counts."""

    def __init__(self, counts):
        self.counts = list(counts)

    def per_request(self, name):
        found = self.counts.pop(0)
        if isinstance(found, str):
            raise instructions.Failed(found)
        return found


class Counts(unittest.TestCase):
    def test_one_below_the_limit_is_enough(self):
        self.assertEqual(Counted([103.0]).count("get", 100), 103.0)

    def test_the_least_of_several(self):
        self.assertEqual(Counted([104.0, 102.0]).count("get", 100), 102.0)
        self.assertEqual(Counted([105.0, 104.0, 106.0]).count("get", 100), 104.0)

    def test_a_run_that_fails_is_repeated(self):
        self.assertEqual(Counted(["no reply", 99.0]).count("get", 100), 99.0)
        self.assertEqual(Counted(["no reply"] * 3).count("get", 100), "no reply")

    def test_verdict(self):
        lines, good, bad = instructions.verdict({"get": 103.1, "set": 103.0, "sadd": 50.0, "mg": "no reply"},
                                                {"get": 100, "set": 100})
        self.assertEqual((good, bad), (2, 2))
        self.assertEqual([line.split()[-1] for line in lines], ["HIGH", "100.0", "50.0", "reply"])


class Runs(unittest.TestCase):
    def run_with(self, counts, made=MADE, **more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stored.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"made_by": MADE, "counts": {"get": 100}}, file)
            with (mock.patch.object(instructions, "Counter", lambda *_: Counted(counts)),
                  mock.patch.object(instructions, "made_by", lambda _: made),
                  contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.redirect_stderr(io.StringIO())):
                status = instructions.run("", "", path, ["get"], **more)
            with open(path, encoding="utf-8") as file:
                return status, shown.getvalue().splitlines()[-1], json.load(file)["counts"]["get"]

    def test_compared(self):
        self.assertEqual(self.run_with([103.0]), (0, "1 passed, 0 failed", 100))
        self.assertEqual(self.run_with([104.0] * 3), (1, "0 passed, 1 failed", 100))

    def test_of_another_compiler(self):
        self.assertEqual(self.run_with([200.0], made={"compiler": "two"}), (0, "1 passed, 0 failed", 100))

    def test_written(self):
        self.assertEqual(self.run_with([190.0, 300.0, 200.0], write=True), (0, "1 passed, 0 failed", 200.0))

    def test_a_name_that_is_none(self):
        with self.assertRaises(instructions.Failed):
            instructions.run("", "", "", ["gets"])


if __name__ == "__main__":
    unittest.main()
