"""The rows about memory: what a setlistd that did nothing else keeps for clients. Each starts one of its own."""
import socket
import time

from .fill import Client
from .peers import PATIENCE, Failed, raise_descriptors, say

IDLE_CONNECTIONS = 10000
SPARE_DESCRIPTORS = 200
READERS = 100
MEMBERS = 10000
ROOM = "max_connections = 20000\n"


def allowed(row, wanted):
    """How many connections of those that a row wants the limit of open files allows. Says so if they are fewer."""
    limit = raise_descriptors(wanted + SPARE_DESCRIPTORS)
    count = min(wanted, limit - SPARE_DESCRIPTORS)
    if count < wanted:
        say(f"{row}: only {count} connections, {limit} open files are allowed")
    return count


def idle(lab, _):
    """Resident memory before and after many connections each asked for one thing and stayed."""
    count = allowed("memory-idle", IDLE_CONNECTIONS)
    server, conns = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, conns):
        _ask(_connect(server), b"set idle 0 0 100\r\n" + b"x" * 100 + b"\r\n", b"STORED\r\n").close()
        before = server.rss_kb()
        for _ in range(count):
            conns.append(_connect(server))
            _ask(conns[-1], b"get idle\r\n", b"END\r\n")
        after = _settled(server)
    return {"connections": count, "rss_before_kb": before, "rss_after_kb": after,
            "bytes_each": (after - before) * 1024 / count}


def slow(lab, _):
    """Resident memory before and after many clients asked for a large set and read nothing of it."""
    server, conns = lab.fresh_setlistd(ROOM), []
    with lab.ending(server, conns):
        _store(server)
        # Twice read as it should be, so that what a first reader costs, and the cache, are there before.
        size = max(_read_whole(server) for _ in range(2))
        before = _settled(server)
        for _ in range(READERS):
            conns.append(_connect(server, small=True))
            conns[-1].sendall(b"smembers slow\r\n")
        after = _settled(server)
    growth = (after - before) * 1024
    return {"readers": READERS, "reply_bytes": size, "rss_before_kb": before, "rss_after_kb": after,
            "growth_bytes": growth, "copies": growth / size}


def _connect(server, small=False):
    conn = socket.socket()
    conn.settimeout(PATIENCE)
    if small:
        # Small windows and segments, as in a network: over the loopback the kernel would take in all that is not read.
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    conn.connect(("127.0.0.1", server.port))
    return conn


def _ask(conn, request, end):
    """Sends a request, reads up to the end of its reply, and gives the connection back."""
    conn.sendall(request)
    reply = b""
    while not reply.endswith(end):
        piece = conn.recv(1 << 16)
        if not piece or b"ERROR" in piece[:13]:
            raise Failed(f"memory: {request[:20]!r}: {piece[:80]!r}")
        reply += piece
    return conn


def _store(server):
    with Client(server) as client:
        client.add("slow", [f"m{number:07}xxxx" for number in range(MEMBERS)])


def _read_whole(server):
    """The bytes of the reply."""
    conn, size, tail = _connect(server), 0, b""
    conn.sendall(b"smembers slow\r\n")
    while not tail.endswith(b"END\r\n"):
        piece = conn.recv(1 << 16)
        if not piece:
            raise Failed("memory: smembers was not answered")
        size, tail = size + len(piece), (tail + piece)[-5:]
    conn.close()
    if size < MEMBERS * 13:
        raise Failed(f"memory: smembers answered only {size} bytes")
    return size


def _settled(server):
    """Resident memory once it no longer changes, at the latest after some seconds."""
    seen, limit = [], time.monotonic() + 5
    while time.monotonic() < limit and (len(seen) < 5 or len(set(seen[-5:])) > 1):
        time.sleep(0.1)
        seen.append(server.rss_kb())
    return seen[-1]


KINDS = {"idle": idle, "slow": slow}
