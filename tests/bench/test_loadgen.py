"""The load generator against servers that misbehave: it must notice wrong replies, and must not overlook a stall."""
import json
import os
import socket
import subprocess
import threading
import time
import unittest

LOADGEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/loadgen")
LIMIT = 60


class Fake(threading.Thread):
    """Serves one connection: each line is a request, answer(number, line) its reply."""

    def __init__(self, answer):
        super().__init__(daemon=True)
        self.answer, self.listener = answer, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        conn, _ = self.listener.accept()
        with conn, conn.makefile("rb") as lines:
            try:
                for number, line in enumerate(lines):
                    conn.sendall(self.answer(number, line.decode().strip()))
            except OSError:
                pass  # the generator has seen enough


def load(answer, *options):
    fake = Fake(answer)
    ran = subprocess.run([LOADGEN, "--port", str(fake.port), "--conns", "1", "--warmup", "0", "--json", *options],
                         capture_output=True, text=True, timeout=LIMIT, check=False)
    fake.listener.close()
    return ran


class OpenLoop(unittest.TestCase):
    STALL = 0.5

    def stalling(self):
        """Answers at once, but for the 20th request, and whatever waits behind it."""
        def answer(number, _):
            if number == 20:
                time.sleep(self.STALL)
            return b"END\r\n"
        return answer

    ATTEMPTS = 50

    def measure(self, *options):
        """Again where the generator itself stood still when the time was up, on a busy machine: it asked for less then."""
        for _ in range(self.ATTEMPTS):
            found = json.loads(load(self.stalling(), "--rate", "100", "--seconds", "0.4", *options).stdout)
            if found["requests"] >= 39:
                break
        return found

    def test_a_stall_counts_for_all_that_was_due(self):
        # The end comes in the middle of the stall; what was due before it counts nevertheless.
        for depth in ("1", "64"):
            with self.subTest(depth=depth):
                found = self.measure("--depth", depth)
                self.assertIn(found["requests"], (39, 40, 41))
                self.assertGreaterEqual(found["max_us"], 0.9 * self.STALL * 1e6)
                # Half of them were due during the stall, the median one near its end.
                self.assertGreaterEqual(found["p95_us"], 0.6 * self.STALL * 1e6)


class Replies(unittest.TestCase):
    def test_right(self):
        def answer(_, line):
            key = line.split()[1]
            return f"VALUE {key} 0 100\r\n{key}{'x' * 92}\r\nEND\r\n".encode()
        ran = load(answer, "--requests", "50", "--depth", "4")
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["requests"]), (0, 50))

    def test_wrong(self):
        for reply, why in ((b"VALUE other 0 1\r\n1\r\nEND\r\n", "value of another key"), (b"HD\r\n", "unexpected line")):
            ran = load(lambda *_, reply=reply: reply, "--requests", "5")
            self.assertEqual(ran.returncode, 1)
            self.assertIn(why, ran.stderr)

    def test_error_lines_are_counted(self):
        ran = load(lambda *_: b"SERVER_ERROR busy\r\n", "--requests", "5")
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["errors"]), (1, 5))
        self.assertIn("SERVER_ERROR busy", ran.stdout)

    def test_events(self):
        # A data block is a line of its own, which is not answered.
        def answer(_, line):
            return f"EVENT {line.split()[1]}::2026112106::7\r\n".encode() if line.startswith("evadd ") else b""
        ran = load(answer, "--op", "evadd", "--requests", "20")
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["errors"]), (0, 0))

    def test_a_range_of_a_list(self):
        def answer(members):
            return lambda _, line: (f"VALUE {line.split()[1]} 0 {members * 13 - 1}\r\n"
                                    f"{' '.join(['m0000001xxxx'] * members)}\r\nEND\r\n").encode()
        self.assertEqual(load(answer(100), "--op", "lrange", "--requests", "5").returncode, 0)
        self.assertEqual(load(answer(99), "--op", "lrange", "--requests", "5").returncode, 1)


if __name__ == "__main__":
    unittest.main()
