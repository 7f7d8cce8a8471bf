"""What goes on beside a row: its server has other work, or is watched, while the load generator measures."""
import socket
import threading

from . import flood
from .fill import Client
from .peers import PATIENCE, Failed

MEMBERS = 200000
PER_LINE = 1000
NAME = "beside"


class Compaction(threading.Thread):
    """Adds to a set of 200,000 and has it compacted, over and over, on one connection."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.conn = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        self.replies = self.conn.makefile("rb")
        self.ending = threading.Event()
        self.rounds, self.problem = 0, None

    def __enter__(self):
        for first in range(0, MEMBERS, PER_LINE):
            self._ask(self._adding(first), ("STORED",))
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(3 * PATIENCE)
        self.replies.close()
        self.conn.close()
        if self.problem:
            raise Failed(self.problem)

    def found(self):
        return {"beside": self.rounds}

    def run(self):
        try:
            while not self.ending.is_set():
                self._ask(self._adding(self.rounds * PER_LINE % MEMBERS), ("STORED",))
                self._ask(f"scompact {NAME}", ("OK", "SERVER_ERROR busy"))
                self.rounds += 1
        except (OSError, Failed) as why:
            self.problem = f"beside the row: {why}"

    @staticmethod
    def _adding(first):
        return f"sadd {NAME} " + " ".join(f"m{i:07}xxxx" for i in range(first, first + PER_LINE))

    def _ask(self, line, wanted):
        self.conn.sendall(line.encode() + b"\r\n")
        reply = self.replies.readline().rstrip(b"\r\n").decode("latin-1")
        if reply not in wanted:
            raise Failed(f"{line[:20]}...: {reply!r}")


class BaseSize(threading.Thread):
    """Asks memcached itself how large the item of the one key is, again and again."""

    EVERY = 0.02
    KEY = "k0000000"

    def __init__(self, server):
        super().__init__(daemon=True)
        self.memcached = Client(server.behind)
        self.ending = threading.Event()
        self.largest, self.problem = 0, None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(3 * PATIENCE)
        self.memcached.__exit__()
        if self.problem:
            raise Failed(self.problem)

    def found(self):
        return {"base_bytes": self.largest}

    def run(self):
        try:
            while not self.ending.wait(self.EVERY):
                reply = self.memcached.ask(f"mg {self.KEY} s")
                if reply.startswith("HD s"):
                    self.largest = max(self.largest, int(reply[4:]))
                elif reply != "EN":
                    raise Failed(f"mg: {reply!r}")
        except (OSError, Failed) as why:
            self.problem = f"beside the row: {why}"


KINDS = {"compaction": Compaction, "base size": BaseSize, **flood.FLOODS}
