"""The rows that the load generator does not measure: the memory of a setlistd, stored bytes, the first request to a process.

Each function takes the lab and the name of a server, and returns a sample. Most start a separate setlistd.
"""
import contextlib
import multiprocessing
import random
import socket
import statistics
import time

from . import fill
from .fill import Client
from .peers import PATIENCE, Failed, connect, raise_descriptors, say

CLIENTS = 10000         # connections of memory-idle and memory-unread
SPARE_DESCRIPTORS = 200
ROOM = "max_connections = 20000\n"
READERS = 100           # of memory-slow, and the members that they request
MEMBERS = 10000
STARTS = 5              # of cold-sismember
GETS = 100              # requests in flight of each client of memory-unread, each of this number of bytes
VALUE = 1000000
SECONDS = 5             # after the last of them has sent its request


def allowed(row):
    """Returns how many connections of a row the limit of open files permits. Prints a note if the row wants more."""
    limit = raise_descriptors(CLIENTS + SPARE_DESCRIPTORS)
    count = min(CLIENTS, limit - SPARE_DESCRIPTORS)
    if count < CLIENTS:
        say(f"{row}: only {count} connections, {limit} open files are allowed")
    return count


def idle(lab, _):
    """Measures resident memory before and after many connections that have each sent one request and stay open."""
    count = allowed("memory-idle")
    server, clients = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, clients):
        with Client(server) as client:
            client.set("idle", "x" * 100)
        before = server.rss_kb()
        for _ in range(count):
            clients.append(Client(server))
            clients[-1].get("idle")
        after = fill.at_rest(server.rss_kb, 10)
    return {"connections": count, "rss_before_kb": before, "rss_after_kb": after,
            "bytes_each": (after - before) * 1024 / count}


def slow(lab, _):
    """Measures resident memory before and after many clients that have requested a large set and read nothing of it."""
    server, conns = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, conns):
        with Client(server) as client:
            client.add("slow", [f"m{number:07}xxxx" for number in range(MEMBERS)])
        # Read twice completely, so that the cost of a first reader, and the cache, are included before.
        size = max(_read_whole(server) for _ in range(2))
        before = fill.at_rest(server.rss_kb, 10)
        for _ in range(READERS):
            conns.append(_slow_reader(server))
        after = fill.at_rest(server.rss_kb, 10)
    growth = (after - before) * 1024
    return {"readers": READERS, "reply_bytes": size, "rss_before_kb": before, "rss_after_kb": after,
            "growth_bytes": growth, "copies": growth / size}


def _slow_reader(server):
    conn = socket.socket()
    conn.settimeout(PATIENCE)
    # Small windows and segments, as in a network: over loopback the kernel would buffer everything that is not read.
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    conn.connect(("127.0.0.1", server.port))
    conn.sendall(b"smembers slow\r\n")
    return conn


def _read_whole(server):
    """Returns the bytes of the reply."""
    with Client(server) as client:
        lines = [client.ask("smembers slow"), client.line(), client.line()]
    if len(lines[1]) != MEMBERS * 13 - 1 or lines[2] != "END":
        raise Failed(f"memory: smembers answered {lines[0]!r}")
    return sum(len(line) + 2 for line in lines)


def unread(lab, _):
    """Measures the peak memory of a setlistd while clients request much and read nothing, and the time of gets of a small value by
    another client meanwhile."""
    count = allowed("memory-unread")
    server, conns = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, conns):
        with Client(server) as client:
            client.set("big", "x" * VALUE)
            client.set("small", "y")
        before = server.rss_kb()
        with Another(server) as another:
            for _ in range(count):
                conns.append(_unread(server))
            time.sleep(SECONDS)
            took = another.took()
        peak = server.peak_kb()
        with Client(server) as client:
            stats, _ = client.stats()
    return {"connections": count, "rss_before_kb": before, "peak_kb": peak,
            "closed": int(stats["closed_memory_clients"]) + int(stats["closed_slow_clients"]), "gets": len(took),
            "p99_us": 1e6 * statistics.quantiles(took, n=100)[98]}


def _unread(server):
    """A client that sends requests and reads nothing. It may be closed before it has sent all."""
    conn = connect(server.port)
    try:
        conn.sendall(b"get big\r\n" * GETS)
    except OSError:
        pass
    return conn


class Another:
    """Another client, in its own process, which gets a small value repeatedly."""

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
        """Stops it, and returns the times of its gets, in seconds."""
        self.pipe.send("enough")
        found = self.pipe.recv()
        if isinstance(found, str) or len(found) < 2:
            raise Failed(f"memory-unread: {found or 'no get was answered'}")
        return found


def _ask(server, pipe):
    """Gets until it is stopped, then sends the times, or the error."""
    took = []
    try:
        with Client(server) as client:
            while not pipe.poll():
                start = time.monotonic()
                client.get("small")
                took.append(time.monotonic() - start)
        pipe.send(took)
    except (OSError, Failed) as why:
        pipe.send(str(why))


def stored(members):
    """Returns a function that measures the stored bytes of a million members, which a function of fill returns."""
    return lambda lab, name: _bytes_each(lab, name, members(fill.MILLION))


def _bytes_each(lab, name, members):
    """Added in random order, as over a long time."""
    if lab.servers[name].proto == "resp":
        return _filled(lab.servers[name], lab.servers[name], fill.shuffled(members))
    # Uses a separate memcached: after a flush, memory is only reused when it is needed.
    memcached = lab.fresh_memcached()
    with lab.ending(memcached):
        server = lab.fresh_setlistd(behind=memcached)
        with lab.ending(server):
            return _filled(server, memcached, fill.shuffled(members))


def _filled(server, store, members):
    with Client(store) as watching, Client(server) as client:
        before = watching.stored()
        client.add("stored", members)
        client.compact("stored")
        growth = (fill.at_rest(watching.stored) if store.proto == "memcache" else watching.stored()) - before
    return {"members": len(members), "growth_bytes": growth, "member_bytes": growth / len(members)}


def sismember(lab, name):
    """Measures the first sismember of each of several processes; of Redis, the first on each of several connections."""
    server = lab.servers[name]
    with Client(server) as client:
        client.add("large", fill.in_order(1, fill.MILLION))
        client.compact("large")
    draw = random.Random(3)
    members = [f"user-{draw.randint(1, fill.MILLION):07}" for _ in range(STARTS)]
    if server.proto == "resp":
        return {"cold_ms": statistics.median(_asked(server, member) for member in members)}
    for memcached in server.behind.all():
        with Client(memcached) as watching:
            fill.at_rest(watching.stored)
    taken = [_first(lab, server.behind, member) for member in members]
    return {metric: statistics.median(one[metric] for one in taken) for metric in taken[0]}


def _first(lab, behind, member):
    server = lab.fresh_setlistd(behind=behind)
    with lab.ending(server), contextlib.ExitStack() as stack:
        meters = [stack.enter_context(fill.Meter(memcached)) for memcached in behind.all()]
        took = _asked(server, member)
        passed, requests = map(sum, zip(*(meter.read() for meter in meters)))
    return {"cold_ms": took, "cold_kb": passed / 1024, "cold_requests": requests}


def _asked(server, member):
    """Milliseconds."""
    with Client(server) as client:
        start = time.monotonic()
        reply = client.ask(f"sismember large {member}")
        took = time.monotonic() - start
    if reply not in ("1", ":1"):
        raise Failed(f"sismember: {reply!r}")
    return took * 1e3


def sinter(lab, name):
    """Measures by how much the memory of a setlistd grows at most while it intersects two sets for the first time."""
    fill.two_sets(lab.servers[name])
    server = lab.fresh_setlistd()
    with lab.ending(server), Client(server) as client:
        before = server.rss_kb()
        reply = client.ask("sinter left right")
        size = fill.SHARED * (fill.NAME_SIZE + 1) - 1
        if reply != f"VALUE sinter 0 {size}" or len(client.line()) != size or client.line() != "END":
            raise Failed(f"sinter: {reply!r}")
        peak = server.peak_kb()
    return {"rss_before_kb": before, "peak_kb": peak, "growth_mb": (peak - before) / 1024}


def first_answer(lab, name):
    """Measures milliseconds from the start of a process to the first reply, on a connection that retries."""
    server, started = lab.start_another(name)
    with lab.ending(server):
        with _connected(server, started) as conn, conn.makefile("rb") as replies:
            conn.sendall(b"get k0000001\r\n")
            reply = replies.readline()
            took = time.monotonic() - started
    if reply != b"END\r\n":
        raise Failed(f"{name} answers its first request with {reply!r}")
    return {"start_ms": took * 1e3}


def _connected(server, started):
    while True:
        try:
            return connect(server.port)
        except OSError as why:
            if time.monotonic() > started + PATIENCE or server.process.poll() is not None:
                raise Failed(f"{server.name} does not listen") from why
            time.sleep(0.001)


KINDS = {"idle": idle, "slow": slow, "unread": unread, "sismember": sismember, "sinter": sinter, "start": first_answer,
         "set-seq": stored(lambda count: fill.in_order(1, count)), "set-ids": stored(fill.ids), "set-sparse": stored(fill.sparse_ids),
         "set-10": stored(fill.letters), "set-hex": stored(fill.hexadecimal),
         "set-hex24": stored(lambda count: fill.hexadecimal(count, 24)), "set-hex32": stored(lambda count: fill.hexadecimal(count, 32))}
