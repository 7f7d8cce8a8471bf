"""The load generator against misbehaving servers: it must detect wrong replies, and include stalls."""
import contextlib
import json
import os
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

LOADGEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/loadgen")
LIMIT = 60
OWN_HOST = "127.%d.%d.%d" % (1 + os.getpid() % 250, os.getpid() // 250 % 250, 1 + os.getpid() // 62500 % 250)


class Scripted(threading.Thread):
    """Serves the connections to its port: each line of one is a request, and answer(number, line) its reply."""
    proto = "memcache"

    def __init__(self, answer, listener=None):
        super().__init__(name="scripted", daemon=True)
        self.answer, self.listener = answer, listener or socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]  # of a Unix socket: a letter of its path, which is not used
        self.start()

    @staticmethod
    def requests(stream):
        return (line.decode().strip() for line in stream)

    def run(self):
        with contextlib.suppress(OSError):  # it is stopped
            while True:
                threading.Thread(target=self.serve, args=self.listener.accept()[:1], daemon=True).start()

    def serve(self, conn):
        with conn, conn.makefile("rb") as stream, contextlib.suppress(OSError):  # the generator has received enough
            for number, request in enumerate(self.requests(stream)):
                conn.sendall(self.answer(number, request))

    def stop(self):
        """Returns when the thread no longer accepts connections: close alone does not wake it.

        Otherwise that thread would later accept connections from the next owner of the descriptor.
        """
        self.listener.shutdown(socket.SHUT_RDWR)
        self.join()
        self.listener.close()


def run_loadgen(*options):
    return subprocess.run([LOADGEN, *options], capture_output=True, text=True, timeout=LIMIT, check=False)


def serve_alone(answer, server=Scripted):
    """Returns a server at an address of this process, so that other processes do not connect to it by mistake."""
    return server(answer, socket.create_server((OWN_HOST, 0)))


def load(answer, *options, server=Scripted):
    server = serve_alone(answer, server)
    ran = run_loadgen("--host", OWN_HOST, "--port", str(server.port), "--conns", "1", "--warmup", "0", "--json", *options)
    server.stop()
    return ran


def record(lines, answer):
    """Returns the reply, and records the lines."""
    def both(number, line):
        lines.append(line)
        return answer(number, line)
    return both


class OpenLoop(unittest.TestCase):
    STALL = 0.5

    def stalling(self):
        """Replies immediately, except to the 20th request, which delays all later ones."""
        def answer(number, _):
            if number == 20:
                time.sleep(self.STALL)
            return b"END\r\n"
        return answer

    ATTEMPTS = 50

    def measure(self, *options):
        """Repeated if the generator itself was delayed at the end, on a busy machine: it sent fewer requests then."""
        for _ in range(self.ATTEMPTS):
            found = json.loads(load(self.stalling(), "--rate", "100", "--seconds", "0.4", *options).stdout)
            if found["requests"] >= 39:
                break
        return found

    def test_a_stall_counts_for_all_that_was_due(self):
        # The run ends in the middle of the stall; requests that were due before the end are counted.
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
        # A data block is a separate line, without a reply.
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

    def test_members_of_several_sets(self):
        def answer(members):
            return lambda *_: b"VALUE sinter 0 %d\r\n%s\r\nEND\r\n" % (members * 13 - 1, b"x" * (members * 13 - 1))
        for members, status in ((5, 0), (4, 1)):
            ran = load(answer(members), "--op", "sinter", "--members", "5", "--requests", "3")
            self.assertEqual(ran.returncode, status, ran.stderr)

    def test_members_of_several_sets_of_redis(self):
        def answer(members, size):
            reply = b"*%d\r\n" % members + b"$%d\r\n%s\r\n" % (size, b"x" * size) * members
            return lambda _, line: reply if line == "right" else b""
        for members, size, status in ((5, 12, 0), (4, 12, 1), (5, 11, 1)):
            ran = load(answer(members, size), "--proto", "resp", "--op", "sinter", "--members", "5", "--requests", "3")
            self.assertEqual(ran.returncode, status, ran.stderr)


class BinaryScripted(Scripted):
    """The same for requests of the binary protocol: each is a get of a key of 8 bytes."""

    @staticmethod
    def requests(stream):
        return iter(lambda: stream.read(32), b"")


class Binary(unittest.TestCase):
    def load(self, answer):
        return load(answer, "--op", "get-binary", "--requests", "50", server=BinaryScripted)

    @staticmethod
    def response(status, extras, value):
        return struct.pack(">BBHBBHIIQ", 0x81, 0, 0, len(extras), 0, status, len(extras) + len(value), 0, 0) + extras + value

    def test_right(self):
        asked = []
        ran = self.load(record(asked, lambda _, request: self.response(0, bytes(4), request[24:] + b"x" * 92)))
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["misses"]), (0, 0), ran.stderr)
        self.assertEqual(len(asked), 50)
        for request in asked:
            self.assertEqual(request[:24], struct.pack(">BBHBBHIIQ", 0x80, 0, 8, 0, 0, 0, 8, 0, 0))

    def test_misses(self):
        ran = self.load(lambda *_: self.response(1, b"", b"Not found"))
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["misses"]), (0, 50), ran.stderr)

    def test_wrong(self):
        for wrong in (self.response(0, bytes(4), b"k" * 100), self.response(0, bytes(4), b"k"),
                      self.response(4, b"", b"Invalid arguments"), b"END\r\n" * 10):
            self.assertEqual(self.load(lambda *_, wrong=wrong: wrong).returncode, 1)


class Mixes(unittest.TestCase):
    @staticmethod
    def answer(number, line):
        verb, key = line.split()[:2]
        value = f"VALUE {key} 0 12\r\nm0000001xxxx\r\nEND\r\n"
        return {"sadd": b"STORED\r\n", "srem": b"DELETED\r\n", "sismember": b"%d\r\n" % (number % 2)}.get(
            verb, value.encode())

    def ask(self, op, *options):
        lines = []
        ran = load(record(lines, self.answer), "--op", op, "--members", "100", "--requests", "2000", *options)
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["misses"]), (0, 0), ran.stderr)
        return [line.split() for line in lines]

    def test_shares(self):
        for op, verbs in (("hot", {"sadd": 80, "srem": 20}), ("churn", {"sadd": 50, "srem": 50}),
                          ("rw", {"sadd": 50, "sismember": 50}), ("rw10", {"sadd": 10, "sismember": 90})):
            with self.subTest(op=op):
                asked = self.ask(op)
                self.assertEqual({words[0] for words in asked}, set(verbs))
                for verb, percent in verbs.items():
                    self.assertAlmostEqual(sum(words[0] == verb for words in asked) / 20, percent, delta=4)
                    # Any of all members, for any command.
                    members = {int(words[2][1:8]) for words in asked if words[0] == verb}
                    self.assertLess(max(members), 100)
                    self.assertGreater(len(members), 80)

    def test_turns(self):
        for op, verb in (("pop", "spop"), ("srand", "srandmember")):
            with self.subTest(op=op):
                asked = self.ask(op, "--members", "5000000")
                self.assertEqual([{words[0] for words in asked[turn::2]} for turn in (0, 1)], [{"sadd"}, {verb}])
                # No existing members, and hardly any twice.
                members = [int(words[2][1:8]) for words in asked[::2]]
                self.assertGreaterEqual(min(members), 5000000)
                self.assertGreater(len(set(members)), 990)


class Ports(unittest.TestCase):
    def test_connections_take_turns(self):
        lines = [], []
        servers = [serve_alone(record(kept, lambda *_: b"END\r\n")) for kept in lines]
        ports = ",".join(str(server.port) for server in servers)
        ran = run_loadgen("--host", OWN_HOST, "--port", ports, "--conns", "2", "--requests", "20")
        for server in servers:
            server.stop()
        self.assertEqual((ran.returncode, [len(kept) for kept in lines]), (0, [10, 10]), ran.stderr)

    def test_bad(self):
        for text in ("", "0", "65536", "1,x", "x", ",1", ",".join(["1"] * 33)):
            self.assertEqual(run_loadgen("--port", text).returncode, 2, text)


class Connections(unittest.TestCase):
    """Counts the connections at a server that replies to every request, by TCP and by a Unix socket."""

    def load(self, *options):
        return run_loadgen("--conns", "3", "--requests", "30", "--json", *options)

    def check(self, where, listener, *options, conns):
        """A connection counts with the first request of the generator, since other processes may connect to the port."""
        firsts = []

        def answer(number, line):
            if number == 0 and line.startswith("get k"):
                firsts.append(line)
            return b"END\r\n"
        server = Scripted(answer, listener)
        ran = self.load(*where, *options)
        server.stop()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual((json.loads(ran.stdout)["requests"], len(firsts)), (30, conns))

    def test_tcp_and_unix(self):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            for options, conns in ((), 3), (("--reconnect",), 30):
                listener = socket.create_server(("127.0.0.1", 0))
                self.check(["--port", str(listener.getsockname()[1])], listener, *options, conns=conns)
                listener, path = socket.socket(socket.AF_UNIX), os.path.join(folder, f"socket-{conns}")
                listener.bind(path)
                listener.listen()
                self.check(["--socket", path], listener, *options, conns=conns)

    def test_what_does_not_go_together(self):
        for options in (["--depth", "2"], ["--rate", "10"], ["--tls"]):
            self.assertEqual(self.load("--reconnect", *options).returncode, 2)


class Keys(unittest.TestCase):
    def test_a_hundred(self):
        def answer(_, line):
            keys = line.split()[1:]
            self.assertEqual(len(keys), 100)
            return b"".join(f"VALUE {key} 0 100\r\n{key}{'x' * 92}\r\n".encode() for key in keys) + b"END\r\n"
        self.assertEqual(json.loads(load(answer, "--op", "mget100", "--requests", "5").stdout)["misses"], 0)


if __name__ == "__main__":
    unittest.main()
