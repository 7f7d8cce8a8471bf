"""Many clients that wait for few lists or for many: what that costs the servers, and with WAITING_MANY=1 also memory and time.

    WAITING_MANY=1 tests/wire/run -v test_many_waiting      10,000 clients on 100 keys, and on 10 keys each; it prints what it has measured
"""
import os
import random
import resource
import selectors
import socket
import time
import unittest

from case import WireTest, marks
from harness import EVENLY, HOST, OPTIONS, PATIENCE, wait_until
from stored import counter, stat

CALLS = 4   # a second, for each key, however many wait for it
MOST = 10000, 200   # calls a second for all keys together, and in addition at once


def tell(text):
    if OPTIONS.verbose:
        print(f"     {text}", flush=True)


def p99(took):
    """In milliseconds."""
    return sorted(took)[len(took) * 99 // 100] * 1000


def quantiles(took):
    return f"p50 {sorted(took)[len(took) // 2] * 1000:.1f} ms, p99 {p99(took):.1f} ms, at most {max(took) * 1000:.1f} ms"


class Waiters:
    """Clients of one setlistd, of which each waits for one key: a share of the clients for each. Or each waits for some keys of its own."""

    def __init__(self, port, count, keys):
        self.port, self.keys, self.each = port, keys, max(1, keys // count)
        self.selector = selectors.DefaultSelector()
        self.socks = [self.connect(number) for number in range(count)]

    def connect(self, number):
        sock = socket.create_connection((HOST, self.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(sock, selectors.EVENT_READ, number)
        return sock

    def key(self, number):
        """Adjacent clients wait for the same key: they belong to different threads."""
        return number * self.keys // len(self.socks)

    def wait(self, number):
        keys = range(self.key(number), self.key(number) + self.each)
        self.socks[number].sendall(b"blpop 0 %s\r\n" % b" ".join(b"w%d" % key for key in keys))

    def wait_all(self):
        for number in range(len(self.socks)):
            self.wait(number)

    def served(self):
        """Returns the next replies, as (client, element), of at least one client."""
        ready = self.selector.select(PATIENCE)
        if not ready:
            raise AssertionError("nobody was served")
        return [(key.data, self.element(key.data, key.fileobj.recv(1024))) for key, _ in ready]

    def element(self, number, reply):
        head, element, end = reply.split(b"\r\n", 2)
        value, key = head.split(b" ")[:2]
        if value != b"VALUE" or not 0 <= int(key[1:]) - self.key(number) < self.each or end != b"END\r\n":
            raise AssertionError(f"client {number} got {reply!r}")
        return element

    def close(self):
        self.selector.close()
        for sock in self.socks:
            sock.close()


class ManyWaiting(WireTest):
    CONFIG = f"threads = 2\n{EVENLY}\n"

    def start(self, count, keys, config=CONFIG):
        self.serve(1, config=config)
        self.other = self.connect(self.setlistd(self.servers))
        self.waiters = Waiters(self.proxy.port, count, keys)
        self.addCleanup(self.waiters.close)
        self.base = self.connect(self.servers[0])

    def all_wait(self):
        self.waiters.wait_all()
        wait_until("all wait", lambda: counter(self.conn, "waiting_clients") == len(self.waiters.socks))

    def calls(self):
        return stat(self.base, "stats", "cmd_get")

    def cpu(self):
        """Seconds that setlistd has worked."""
        with open(f"/proc/{self.proxy.pid}/stat", encoding="ascii") as status:
            user, system = status.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def calls_in(self, seconds):
        """Returns the requests to the server, for each key; and the time, which is slightly longer than the counted interval."""
        began, calls = time.monotonic(), -self.calls()
        time.sleep(seconds)  # The subject is a rate: calls for each second.
        return (calls + self.calls()) / self.waiters.keys, time.monotonic() - began


class Calls(ManyWaiting):
    """Some hundred clients, of two threads."""
    COUNT, KEYS = 200, 10
    SHORT = 14  # this number of the pauses of two threads are shorter: from 5 to 160 ms, and those at both ends

    def test_what_servers_are_asked(self):
        self.start(self.COUNT, self.KEYS)
        self.all_wait()
        calls, seconds = self.calls_in(4)
        self.assertLessEqual(calls, CALLS * seconds + self.SHORT)
        self.push_to_each()

    @marks(smoke=True)
    def test_each_key_serves_one(self):
        self.start(self.COUNT, self.KEYS)
        self.all_wait()
        self.push_to_each()

    def push_to_each(self):
        for key in range(self.KEYS):
            self.assertEqual(self.other.ask(f"rpush w{key} {key}"), "STORED")
        served = []
        while len(served) < self.KEYS:
            served += self.waiters.served()
        self.assertEqual(sorted((self.waiters.key(number), element) for number, element in served), [(key, b"%d" % key) for key in range(self.KEYS)])


class ManyKeys(ManyWaiting):
    """Each client waits for many keys. All keys together are read at a rate."""
    smoke = True
    COUNT, KEYS = 50, 5000

    def test_what_servers_are_asked(self):
        self.start(self.COUNT, self.KEYS)
        self.all_wait()
        calls, seconds = self.calls_in(1)
        self.assertLessEqual(calls * self.KEYS, MOST[0] * seconds + MOST[1])
        for key in 0, self.KEYS - 1:
            self.assertEqual(self.other.ask(f"rpush w{key} x"), "STORED")
            self.assertEqual(self.waiters.served(), [(key * self.COUNT // self.KEYS, b"x")])


@unittest.skipUnless(os.environ.get("WAITING_MANY"), "WAITING_MANY is not set")
class Many(ManyWaiting):
    """The limits are for an idle machine. The excess of a sleep is attributed to the machine."""
    alone = True
    plain = True
    COUNT, KEYS, PUSHES = 10000, 100, 500

    def push_and_wait(self, conn, key):
        """Seconds from a push to its delivery."""
        began = time.monotonic()
        conn.send(b"rpush w%d x\r\n" % key)
        [(number, _)] = self.waiters.served()
        took = time.monotonic() - began
        self.assertEqual((self.waiters.key(number), conn.line()), (key - key % self.waiters.each, b"STORED"))
        self.waiters.wait(number)
        return took

    def oversleep(self):
        """Pushes are sent at any moment between two polls of the key."""
        pause, began = random.uniform(0, 0.1), time.monotonic()
        time.sleep(pause)
        return time.monotonic() - began - pause

    def measure(self, name, conn, most, pushes=PUSHES):
        late, took = [], []
        for number in range(pushes):
            late.append(self.oversleep())
            took.append(self.push_and_wait(conn, number * 37 * self.waiters.each % self.waiters.keys))
        tell(f"from a push through {name}: {quantiles(took)}; a sleep is too long by {quantiles(late)}")
        self.assertLessEqual(p99(took), most + p99(late), name)

    def run_many(self, threads, keys=KEYS):
        resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        most = 2 * self.COUNT
        self.start(self.COUNT, keys, f"threads = {threads}\n{EVENLY}\nmax_connections = {most}\nmax_waiting = {max(most, keys)}\n")
        idle = self.proxy.status_kib("VmRSS")
        self.all_wait()
        memory = (self.proxy.status_kib("VmRSS") - idle) * 1024 / self.COUNT
        tell(f"{threads} threads: {memory:.0f} bytes of memory for each that waits, beside {idle * 1024 / self.COUNT:.0f} of a connection")
        time.sleep(2)   # Pauses grow.
        worked = -self.cpu()
        calls, seconds = self.calls_in(5)
        calls /= seconds
        worked += self.cpu()
        tell(f"{calls:.2f} calls a second to the server for each key, in {worked * 20:.1f} % of a core")
        self.measure("the same proxy", self.conn, 5)
        if keys == self.KEYS:
            self.assertLessEqual(calls, CALLS)
            self.measure("another proxy", self.other, 300)
        else:
            tell(f"{calls * keys:.0f} calls a second for all keys")
            self.assertLessEqual(calls * keys, MOST[0] + MOST[1])
            self.measure("another proxy", self.other, 300 + keys * 1000 // MOST[0], 20)

    def test_one_thread(self):
        self.run_many(1)

    def test_two_threads(self):
        self.run_many(2)

    def test_ten_keys_each(self):
        self.run_many(2, 10 * self.COUNT)
