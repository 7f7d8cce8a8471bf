"""One client that takes all it can get: it keeps many requests in flight and reads every reply, as fast as it can."""
import functools
import select
import socket
import threading
from dataclasses import dataclass

from . import fill
from .peers import PATIENCE, Failed

MARK = "mark"           # a key whose reply shows that the one before is complete
VALUE = 1000000
KEYS = [f"f{number:02}" for number in range(100)]
PIECE = 1 << 20
LOOK = 100              # milliseconds until it is seen that the row is over


@dataclass(frozen=True)
class Kind:
    request: str
    in_flight: int
    members: int = 0    # of a set that is stored before


KINDS = {
    "large values": Kind("get big", 1024),
    "counters": Kind("evcount none 2020010100 2025091000", 200),
    "many keys": Kind("get " + " ".join(KEYS), 20000),
    "sunion": Kind("sunion flood", 50, fill.MILLION),
    "smembers": Kind("smembers flood", 1000, fill.MILLION),
}


class Flood(threading.Thread):
    """Beside a row, a flood of one kind of request. Every reply has the size of the first."""

    def __init__(self, kind, server):
        super().__init__(daemon=True)
        self.kind, self.server = KINDS[kind], server
        self.request = self.kind.request.encode() + b"\r\n"
        self.ending = threading.Event()
        self.size, self.taken, self.problem = 0, 0, None

    def __enter__(self):
        if self.kind.members:
            with fill.Client(self.server) as client:
                client.add("flood", fill.in_order(1, self.kind.members))
        self.conn = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE)
        try:
            self._store()
            self.size = self._size_of_one()
        except BaseException:
            self.conn.close()
            raise
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(PATIENCE)
        self.conn.close()
        if self.problem or self.taken < self.size:
            raise Failed(self.problem or "beside the row: not one reply")

    def found(self):
        return {"beside": self.taken // self.size}

    def _store(self):
        for key, value in ((MARK, MARK), ("big", "x" * VALUE), *((key, key) for key in KEYS)):
            self._exchange(f"set {key} 0 0 {len(value)}\r\n{value}\r\n".encode(), b"STORED\r\n")

    def _size_of_one(self):
        """The bytes of one reply."""
        mark = b"VALUE mark 0 4\r\nmark\r\nEND\r\n"
        return len(self._exchange(self.request + b"get mark\r\n", mark)) - len(mark)

    def _exchange(self, request, end):
        """Sends a request, and gives all that comes until the end of its reply."""
        self.conn.sendall(request)
        reply = bytearray()
        while not reply.endswith(end):
            piece = self.conn.recv(PIECE)
            if not piece or b"ERROR" in piece:
                raise Failed(f"{request[:20]!r}...: {piece[:80]!r}")
            reply += piece
        return reply

    def run(self):
        try:
            self._flow()
        except (OSError, Failed) as why:
            self.problem = f"beside the row: {why}"

    def _flow(self):
        """One stream of requests and one of replies; where a request ends follows from the number of bytes."""
        block = memoryview(self.request * (PIECE // len(self.request) + 1))
        room, sent, poll = bytearray(PIECE), 0, select.poll()
        self.conn.setblocking(False)
        while not self.ending.is_set():
            open_bytes = (self.taken // self.size + self.kind.in_flight) * len(self.request) - sent
            poll.register(self.conn, select.POLLIN | (select.POLLOUT if open_bytes > 0 else 0))
            ready = poll.poll(LOOK)
            if ready and ready[0][1] & select.POLLOUT:
                at = sent % len(self.request)
                sent += self.conn.send(block[at:at + open_bytes])
            if ready and ready[0][1] & ~select.POLLOUT:
                count = self.conn.recv_into(room)
                if not count or b"ERROR" in room[:count]:
                    raise Failed(f"{self.kind.request[:20]}...: {bytes(room[:min(count, 80)])!r}")
                self.taken += count


FLOODS = {kind: functools.partial(Flood, kind) for kind in KINDS}
