"""Filling and counting for the benchmark: missing data must be detected, and the meter's own traffic excluded."""
import unittest
from types import SimpleNamespace

from rig import fill
from rig.background import BaseSize
from rig.peers import Failed
from test_loadgen import Scripted, record


class Members(unittest.TestCase):
    def test_names(self):
        self.assertEqual(fill.in_order(9, 2), ["user-0000009", "user-0000010"])
        self.assertEqual(len(fill.in_order(fill.MILLION, 1)[0]), fill.NAME_SIZE)
        found = fill.hexadecimal(1000)
        self.assertEqual(len(set(found)), 1000)
        self.assertTrue(all(len(one) == 16 and int(one, 16) >= 0 and one == one.lower() for one in found))
        self.assertEqual(found, fill.hexadecimal(1000))
        found = fill.letters(1000)
        self.assertEqual(found, fill.letters(1000))
        self.assertEqual(({len(one) for one in found}, len(set(found))), ({10}, 1000))

    def test_any_order(self):
        self.assertNotEqual(fill.shuffled(fill.in_order(1, 1000)), fill.in_order(1, 1000))
        self.assertEqual(sorted(fill.shuffled(fill.in_order(1, 1000))), fill.in_order(1, 1000))


class Clients(unittest.TestCase):
    def test_all_are_added(self):
        lines, members = [], fill.in_order(1, 20 * fill.PER_LINE + 1)
        with fill.Client(Scripted(record(lines, lambda *_: b"STORED\r\n"))) as client:
            client.add("k", members)
        self.assertEqual([member for line in lines for member in line.split()[2:]], members)
        self.assertEqual({tuple(line.split()[:2]) for line in lines}, {("sadd", "k")})

    def test_what_is_not_added_is_noticed(self):
        answers = [b"STORED\r\n", b"SERVER_ERROR busy\r\n"]
        with fill.Client(Scripted(lambda number, _: answers[number % 2])) as client:
            self.assertRaises(Failed, client.add, "k", fill.in_order(1, 2 * fill.PER_LINE))

    def test_compaction_is_waited_for(self):
        answers = [b"SERVER_ERROR busy\r\n", b"OK\r\n", b"NOT_FOUND\r\n"]
        with fill.Client(Scripted(lambda number, _: answers[number])) as client:
            client.compact("k")
            self.assertRaises(Failed, client.compact, "k")

    def test_bytes_stored(self):
        with fill.Client(Scripted(lambda *_: b"STAT version 1.6 x\r\nSTAT bytes 77\r\nEND\r\n")) as client:
            self.assertEqual(client.stored(), 77)
        text = b"# Memory\r\nused_memory:4711\r\nused_memory_human:4K\r\n"
        redis = Scripted(lambda *_: b"$%d\r\n%s\r\n" % (len(text), text))
        redis.proto = "resp"
        with fill.Client(redis) as client:
            self.assertEqual([client.stored(), client.stored()], [4711, 4711])

    def test_rest(self):
        values = iter([1, 2, 2, 3, 3, 3, 4])
        self.assertEqual(fill.at_rest(lambda: next(values), 3), 3)


class Memcached:
    """Counts like memcached: a request when it arrives, and the reply to it only afterwards."""

    def __init__(self):
        self.read = self.written = self.gets = 0

    def answer(self, _, line):
        self.read += len(line) + 2
        if line == "stats":
            lines = {"bytes_read": self.read, "bytes_written": self.written, "cmd_get": self.gets, "cmd_set": 0,
                     "cmd_touch": 0}
            reply = "".join(f"STAT {name} {value}\r\n" for name, value in lines.items()).encode() + b"END\r\n"
        else:
            reply = b"HD s%d\r\n" % self.gets
            self.gets += 1
        self.written += len(reply)
        return reply


class Watching(unittest.TestCase):
    def test_the_meter_leaves_itself_out(self):
        for asked in (0, 1, 3):
            with fill.Meter(Scripted(Memcached().answer)) as meter:
                for _ in range(asked):
                    meter.client.ask("mg k s")
                self.assertEqual(meter.read(), (asked * len("mg k s\r\nHD s0\r\n"), asked))

    def test_the_largest_base(self):
        seen, sizes = [], [10, 500, 7]
        memcached = Scripted(record(seen, lambda number, _: b"HD s%d\r\n" % sizes[number] if number < 3 else b"EN\r\n"))
        with BaseSize(SimpleNamespace(behind=memcached)) as watching:
            while len(seen) < 5:
                watching.join(0.01)
        self.assertEqual((watching.found(), set(seen)), ({"base_bytes": 500}, {"mg k0000000 s"}))

    def test_a_base_that_cannot_be_asked_for(self):
        memcached = Scripted(lambda *_: b"ERROR\r\n")
        with self.assertRaises(Failed), BaseSize(SimpleNamespace(behind=memcached)) as watching:
            watching.join()


if __name__ == "__main__":
    unittest.main()
