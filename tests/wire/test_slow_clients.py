"""Clients that do not read: their memory is limited, and others are served."""
import contextlib
import threading
import time

from case import WireTest, marks
from case_bounds import BoundsTest
from harness import built_with_sanitizer, wait_until
from stored import stat, stats

MIB = 1 << 20


def limit():
    """MiB. Without bounds these would be several hundred, and with them there were 40 at most.

    A sanitizer's build keeps freed memory back, and has its shadow on top.
    """
    return 640 if built_with_sanitizer() else 128


class Slow(WireTest):
    """Clients that request much and do not read: memory is limited, and others are served."""
    alone = True
    plain = True

    def watch(self, seconds):
        """Another client works for a while; the most memory that was held in it."""
        conn, end = self.connect(self.proxy), time.monotonic() + seconds
        while time.monotonic() < end:
            self.assertEqual((conn.set("small", b"x"), conn.get("small")), ("STORED", b"x"))
            time.sleep(0.005)  # it sends requests from time to time during the attack
        return self.proxy.peak_mib()

    def flood(self, request, count):
        """Sends requests without reading, until all are sent or the peer stops reading."""
        conn = self.connect(self.proxy)

        def send():
            with contextlib.suppress(OSError):
                conn.send(request * count)
        threading.Thread(target=send, daemon=True).start()
        return conn


    def test_large_values(self):
        """Of many gets, and 400 MB in the reply to a single one."""
        for request, count in ((b"get big\r\n", 2000), (b"get" + b" big" * 800 + b"\r\n", 1)):
            self.assertEqual(self.serve(2).set("big", b"x" * 500000), "STORED")
            self.flood(request, count)
            self.assertLess(self.watch(2), limit())

    def test_large_sets(self):
        conn = self.serve(2)
        for i in range(20):
            self.assertEqual(conn.ask("sadd big " + " ".join(f"{i}-{j}-{'m' * 30}" for j in range(500))), "STORED")
        self.flood(b"smembers big\r\n", 2000)
        self.assertLess(self.watch(2), limit())

    def test_many_small_requests(self):
        self.serve(2)
        conns = [self.flood(b"get missing\r\nincr missing 1\r\nmn\r\n", 200000) for _ in range(3)]
        self.assertLess(self.watch(2), limit())
        for conn in conns:
            conn.close()

    @marks(smoke=True)
    def test_what_was_not_read_comes_later(self):
        """A client that was held up gets all of its replies once it reads."""
        self.assertEqual(self.serve(2).set("big", b"x" * 200000), "STORED")
        conn = self.flood(b"get big\r\nmn\r\n", 300)
        wait_until("it is held up", lambda: stat(self.conn, "stats", "client_bytes") > MIB)
        for _ in range(300):
            found, _ = conn.read_values()
            self.assertEqual(len(found["big"][1]), 200000)
            self.assertEqual(conn.line(), b"MN")

    def test_uploads_that_stall(self):
        """Many large values of which only the beginning is sent: received bytes may be stored, announced ones are not allocated."""
        self.serve(2)
        conns = [self.connect(self.proxy) for _ in range(100)]
        for conn in conns:
            conn.send(b"set k 0 0 1000000\r\nbegun")
        self.assertLess(self.watch(0.5), limit() / 2)


class LargeReplies(BoundsTest):
    """Each reply is larger than a client's limit. A client that reads nothing of it is closed, and others are served."""
    alone = True
    plain = True
    COUNT, PER_LINE, READERS, REQUESTS = 40000, 500, 8, 200

    def is_closed(self, write, request):
        self.serve("client_buffer = 65536")
        for start in range(0, self.COUNT, self.PER_LINE):
            words = " ".join(f"{number:035}" for number in range(start, start + self.PER_LINE))
            self.assertEqual(self.watcher.ask(f"{write} big {words}"), "STORED")
        (value,) = self.watcher.values(request)[0].values()
        self.assertEqual(len(value[1].replace(b",", b" ").split()), self.COUNT)
        socks = [self.deaf() for _ in range(self.READERS)]
        for sock in socks:
            # Small earlier replies are no indication of later ones.
            sock.sendall(b"mn\r\n" * 1000 + f"{request}\r\n".encode() * self.REQUESTS)
        self.wait_for("closed_slow_clients", self.READERS)
        self.assertEqual(self.connect(self.proxy).set("small", b"x"), "STORED")
        self.assertEqual(stats(self.watcher)["closed_slow_clients"], str(self.READERS))
        self.assertLess(self.proxy.peak_mib(), limit())

    def test_random_members_and_lists(self):
        self.is_closed("sadd", f"srandmember big {self.COUNT}")
        self.is_closed("rpush", "lrange big 0 -1")
