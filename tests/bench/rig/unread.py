"""The row about many clients that ask for far more than they read, which is nothing."""
import multiprocessing
import socket
import statistics
import time

from . import fill
from .memory import ROOM, allowed
from .peers import PATIENCE, Failed

CLIENTS = 10000
GETS = 100              # of each, in flight
VALUE = 1000000
SECONDS = 5             # after the last of them has asked


def unread(lab, _):
    """The most memory that a setlistd had, and how long another's gets of a small value took meanwhile."""
    count = allowed("memory-unread", CLIENTS)
    server, conns = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, conns):
        _store(server)
        before = server.rss_kb()
        with Another(server) as another:
            for _ in range(count):
                conns.append(_one(server))
            time.sleep(SECONDS)
            took = another.took()
        peak, closed = server.peak_kb(), _closed(server)
    return {"connections": count, "rss_before_kb": before, "peak_kb": peak, "closed": closed, "gets": len(took),
            "p99_us": 1e6 * statistics.quantiles(took, n=100)[98]}


class Another:
    """Another client, in a process of its own, which gets a small value again and again."""

    def __init__(self, server):
        self.pipe, self.theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=_ask, args=(server, self.theirs), daemon=True)

    def __enter__(self):
        self.process.start()
        self.theirs.close()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.join()
        self.pipe.close()

    def took(self):
        """How long each of its gets took, in seconds. It makes no more of them."""
        self.pipe.send("enough")
        found = self.pipe.recv()
        if isinstance(found, str) or len(found) < 2:
            raise Failed(f"memory-unread: {found or 'no get was answered'}")
        return found


def _store(server):
    for key, value in (("big", "x" * VALUE), ("small", "y")):
        with fill.Client(server) as client:
            if client.ask(f"set {key} 0 0 {len(value)}\r\n{value}") != "STORED":
                raise Failed("memory-unread: nothing is stored")


def _one(server):
    """A client that asks and reads nothing. It may be closed before it has asked for all."""
    conn = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    try:
        conn.sendall(b"get big\r\n" * GETS)
    except OSError:
        pass
    return conn


def _ask(server, pipe):
    """Gets until it is told to stop, and sends the times, or what went wrong."""
    took = []
    try:
        with fill.Client(server) as client:
            while not pipe.poll():
                start = time.monotonic()
                reply = client.ask("get small"), client.line(), client.line()
                took.append(time.monotonic() - start)
                if reply != ("VALUE small 0 1", "y", "END"):
                    raise Failed(f"a reply that is wrong: {reply}")
        pipe.send(took)
    except (OSError, Failed) as why:
        pipe.send(str(why))


def _closed(server):
    """How many clients were closed, since they held much or read nothing."""
    with fill.Client(server) as client:
        found, _ = client.stats()
    return int(found["closed_memory_clients"]) + int(found["closed_slow_clients"])


KINDS = {"unread": unread}
