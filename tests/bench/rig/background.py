"""Work in addition to a row: the server does other work, or is watched, while the load generator measures."""
import functools
import select
import threading
from dataclasses import dataclass

from . import fill
from .fill import Client
from .peers import PATIENCE, Failed

MEMBERS = 200000        # of the set that is compacted
PER_LINE = 1000
NAME = "beside"
MARK = "mark"           # a key whose reply shows that the previous request is complete
VALUE = 1000000
KEYS = [f"f{number:02}" for number in range(100)]
PIECE = 1 << 20
LOOK = 100              # milliseconds between checks for the end of the row


class Beside(threading.Thread):
    """Calls work() repeatedly, as a separate client, during the with block."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.client = server, Client(server)
        self.ending, self.problem = threading.Event(), None

    def __enter__(self):
        try:
            self.prepare()
        except BaseException:
            self.client.close()
            raise
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(3 * PATIENCE)
        self.client.close()
        if self.problem:
            raise Failed(self.problem)

    def prepare(self):
        """Runs before the load generator starts."""

    def run(self):
        try:
            while not self.ending.is_set():
                self.work()
        except (OSError, Failed) as why:
            self.problem = f"beside the row: {why}"


class Compaction(Beside):
    """Adds to a set of 200,000 and compacts it."""
    rounds = 0

    def prepare(self):
        for first in range(0, MEMBERS, PER_LINE):
            self._add(first)

    def found(self):
        return {"beside": self.rounds}

    def work(self):
        self._add(self.rounds * PER_LINE % MEMBERS)
        if (reply := self.client.ask(f"scompact {NAME}")) not in ("OK", "SERVER_ERROR busy"):
            raise Failed(f"scompact: {reply!r}")
        self.rounds += 1

    def _add(self, first):
        self.client.add(NAME, [f"m{i:07}xxxx" for i in range(first, first + PER_LINE)], PER_LINE)


class BaseSize(Beside):
    """Reads the size of the only key's item directly from memcached."""

    EVERY = 0.02
    KEY = "k0000000"
    largest = 0

    def __init__(self, server):
        super().__init__(server.behind)

    def found(self):
        return {"base_bytes": self.largest}

    def work(self):
        reply = self.client.ask(f"mg {self.KEY} s")
        if reply.startswith("HD s"):
            self.largest = max(self.largest, int(reply[4:]))
        elif reply != "EN":
            raise Failed(f"mg: {reply!r}")
        self.ending.wait(self.EVERY)


@dataclass(frozen=True)
class Kind:
    request: str
    in_flight: int
    members: int = 0    # of a set that is stored before


FLOODS = {
    "large values": Kind("get big", 1024),
    "counters": Kind("evcount none 2020010100 2025091000", 200),
    "many keys": Kind("get " + " ".join(KEYS), 20000),
    "sunion": Kind("sunion flood", 50, fill.MILLION),
    "smembers": Kind("smembers flood", 1000, fill.MILLION),
}


class Flood(Beside):
    """A client that takes as much as it can: it keeps many requests of one kind in flight and reads every reply as fast as
    possible. Every reply has the size of the first."""

    def __init__(self, kind, server):
        super().__init__(server)
        self.kind, self.conn = FLOODS[kind], self.client.conn
        self.request = self.kind.request.encode() + b"\r\n"
        self.block = memoryview(self.request * (PIECE // len(self.request) + 1))
        self.room, self.poll = bytearray(PIECE), select.poll()
        self.size = self.taken = self.sent = 0

    def prepare(self):
        if self.kind.members:
            with Client(self.server) as client:
                client.add("flood", fill.in_order(1, self.kind.members))
        for key, value in ((MARK, MARK), ("big", "x" * VALUE), *((key, key) for key in KEYS)):
            self.client.set(key, value)
        self.size = self._size_of_one()
        self.conn.setblocking(False)

    def __exit__(self, *_):
        super().__exit__()
        if self.taken < self.size:
            raise Failed("beside the row: not one reply")

    def found(self):
        return {"beside": self.taken // self.size}

    def _size_of_one(self):
        """Returns the bytes of one reply."""
        mark, reply = b"VALUE mark 0 4\r\nmark\r\nEND\r\n", bytearray()
        self.conn.sendall(self.request + b"get mark\r\n")
        while not reply.endswith(mark):
            reply += self.room[:self._receive()]
        return len(reply) - len(mark)

    def _receive(self):
        """Returns how many bytes were received."""
        count = self.conn.recv_into(self.room)
        if not count or b"ERROR" in self.room[:count]:
            raise Failed(f"{self.kind.request[:20]}...: {bytes(self.room[:min(count, 80)])!r}")
        return count

    def work(self):
        """One stream of requests and one of replies; the number of bytes shows where a reply ends."""
        open_bytes = (self.taken // self.size + self.kind.in_flight) * len(self.request) - self.sent
        self.poll.register(self.conn, select.POLLIN | (select.POLLOUT if open_bytes > 0 else 0))
        ready = self.poll.poll(LOOK)
        if ready and ready[0][1] & select.POLLOUT:
            at = self.sent % len(self.request)
            self.sent += self.conn.send(self.block[at:at + open_bytes])
        if ready and ready[0][1] & ~select.POLLOUT:
            self.taken += self._receive()


KINDS = {"compaction": Compaction, "base size": BaseSize,
         **{kind: functools.partial(Flood, kind) for kind in FLOODS}}
