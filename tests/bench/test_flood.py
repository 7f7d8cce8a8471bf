"""The flood next to a row: it keeps its window full but not overfull, counts replies, and detects invalid ones."""
import time
import unittest

from rig.background import FLOODS, Flood
from rig.peers import PATIENCE, Failed
from test_loadgen import Scripted

KIND = "counters"
REPLY = b"2020010100 7\r\nEND\r\n"


class Counters:
    """Replies to the request with which a flood begins, then to one with each of the replies, and no more."""

    def __init__(self, *replies):
        self.seen, self.replies = 0, [REPLY, *replies]

    def answer(self, _, line):
        if line == "get mark":
            return b"VALUE mark 0 4\r\nmark\r\nEND\r\n"
        if line != FLOODS[KIND].request:
            return b"STORED\r\n" if line.startswith("set ") else b""
        self.seen += 1
        return self.replies[self.seen - 1] if self.seen <= len(self.replies) else b""


class Hanging(Counters):
    """Replies to one request of the flood, and closes the connection at the next."""

    def __init__(self):
        super().__init__(REPLY)

    def answer(self, number, line):
        if self.seen == len(self.replies):
            raise OSError
        return super().answer(number, line)


def wait_for(flood, is_reached):
    """Waits until this holds, or the flood has ended; a test that would wait for ever fails."""
    limit = time.monotonic() + PATIENCE
    while not is_reached() and flood.is_alive():
        flood.join(0.01)
        if time.monotonic() > limit:
            raise AssertionError(f"{flood.taken} bytes of replies after {PATIENCE} s")


class Floods(unittest.TestCase):
    def test_replies_are_counted(self):
        counters = Counters(REPLY, REPLY, REPLY)
        window = FLOODS[KIND].in_flight
        with Flood(KIND, Scripted(counters.answer)) as flood:
            wait_for(flood, lambda: flood.taken == 3 * len(REPLY) and counters.seen >= 1 + 3 + window)
        self.assertEqual((flood.found(), counters.seen), ({"beside": 3}, 1 + 3 + window))

    def test_an_error_is_noticed(self):
        counters = Counters(REPLY, b"SERVER_ERROR busy\r\n")
        with self.assertRaisesRegex(Failed, "busy"), Flood(KIND, Scripted(counters.answer)) as flood:
            wait_for(flood, lambda: False)

    def test_an_error_at_once(self):
        counters = Counters()
        counters.replies = [b"SERVER_ERROR down\r\n"]
        flood = Flood(KIND, Scripted(counters.answer))
        self.assertRaisesRegex(Failed, "down", flood.__enter__)

    def test_a_flood_that_got_nothing(self):
        counters = Counters()
        with self.assertRaisesRegex(Failed, "not one reply"), Flood(KIND, Scripted(counters.answer)) as flood:
            wait_for(flood, lambda: counters.seen == 1 + FLOODS[KIND].in_flight)

    def test_who_hangs_up(self):
        with self.assertRaises(Failed), Flood(KIND, Scripted(Hanging().answer)) as flood:
            wait_for(flood, lambda: False)


if __name__ == "__main__":
    unittest.main()
