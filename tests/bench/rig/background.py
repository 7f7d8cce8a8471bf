"""What goes on beside a row: its server has other work, or is watched, while the load generator measures."""
import threading

from . import flood
from .fill import Client
from .peers import PATIENCE, Failed

MEMBERS = 200000
PER_LINE = 1000
NAME = "beside"


class Beside(threading.Thread):
    """Asks by a client of its own, over and over, for as long as the with block lasts."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = Client(server)
        self.ending, self.problem = threading.Event(), None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(3 * PATIENCE)
        self.client.__exit__()
        if self.problem:
            raise Failed(self.problem)

    def run(self):
        try:
            while not self.ending.is_set():
                self.ask()
        except (OSError, Failed) as why:
            self.problem = f"beside the row: {why}"


class Compaction(Beside):
    """Adds to a set of 200,000 and has it compacted."""
    rounds = 0

    def __enter__(self):
        for first in range(0, MEMBERS, PER_LINE):
            self._add(first)
        return super().__enter__()

    def found(self):
        return {"beside": self.rounds}

    def ask(self):
        self._add(self.rounds * PER_LINE % MEMBERS)
        if (reply := self.client.ask(f"scompact {NAME}")) not in ("OK", "SERVER_ERROR busy"):
            raise Failed(f"scompact: {reply!r}")
        self.rounds += 1

    def _add(self, first):
        reply = self.client.ask(f"sadd {NAME} " + " ".join(f"m{i:07}xxxx" for i in range(first, first + PER_LINE)))
        if reply != "STORED":
            raise Failed(f"sadd: {reply!r}")


class BaseSize(Beside):
    """Asks memcached itself how large the item of the one key is."""

    EVERY = 0.02
    KEY = "k0000000"
    largest = 0

    def __init__(self, server):
        super().__init__(server.behind)

    def found(self):
        return {"base_bytes": self.largest}

    def ask(self):
        reply = self.client.ask(f"mg {self.KEY} s")
        if reply.startswith("HD s"):
            self.largest = max(self.largest, int(reply[4:]))
        elif reply != "EN":
            raise Failed(f"mg: {reply!r}")
        self.ending.wait(self.EVERY)


KINDS = {"compaction": Compaction, "base size": BaseSize, **flood.FLOODS}
