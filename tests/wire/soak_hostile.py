"""Hostile clients of the soak test. They ignore replies, except where a reply would show that an attack succeeded.

soak_costs.py has the attacks whose requests are expensive.
"""
import collections
import contextlib
import random
import re
import socket
import threading
import time
from base64 import b64encode

from harness import HOST
from wire import Closed, Conn, small_windows

BIG = 1000000
VICTIM = b"large-set"        # it has tables, whose keys every client can read
PATIENCE = 20.0


def held(sock, dice):
    """Uses a connection for a while, and ends it in one of several ways."""
    time.sleep(dice.uniform(0.2, 2))
    conn = Conn.__new__(Conn)
    conn.sock = sock
    conn.reset() if dice.random() < 0.5 else conn.close()


def never_reads(port, dice):
    sock = small_windows(port)
    sock.settimeout(1)
    with contextlib.suppress(OSError):
        sock.sendall(dice.choice((b"get big\r\n", b"smembers large-set\r\n", b"lrange large-list 0 -1\r\n", b"help\r\n")) * 2000)
    held(sock, dice)


def half_a_request(port, dice):
    sock = socket.create_connection((HOST, port), timeout=PATIENCE)
    sock.sendall(dice.choice((b"set half 0 0 900000\r\n" + b"x" * dice.randrange(800000), b"get half", b"sadd half " + b"x" * 100000,
                              b"g", b"set half 0 0 10" + b" " * 100000)))
    held(sock, dice)


def reads_much(port, dice):
    """Reads promptly, with as many megabytes in flight as possible."""
    with Conn(port, PATIENCE) as conn:
        conn.send(b"get big\r\n" * 64)
        for _ in range(64):
            found, end = conn.read_values()
            if found and found["big"][1] != b"B" * BIG or not end.startswith(("END", "SERVER_ERROR")):
                raise AssertionError(f"get big: {end}")


def reads_many_keys(port, dice):
    with Conn(port, PATIENCE) as conn:
        keys = b" ".join(b"quiet-%d" % number for number in range(dice.randrange(1000, 20000)))
        conn.send(b"get " + keys + b"\r\n")
        conn.read_values()


def counts_years(port, dice):
    with Conn(port, PATIENCE) as conn:
        conn.send(b"evcount E1 2020010100 2025091000\r\nevlast E1 10000 2020010100\r\nmn\r\n")
        conn.lines_until("MN")


def joins_one_set(port, dice):
    with Conn(port, PATIENCE) as conn:
        count = dice.choice((2, 100, 2000))
        verb = dice.choice((b"sunion", b"sinter", b"sdiff", b"sintercard %d" % count, b"smembers"))
        conn.values(verb + b" large-set" * count)


def writes_parts(port, _):
    """Writes indexes under the keys that the base refers to: each write is refused."""
    with Conn(port, PATIENCE) as conn:
        found, _ = conn.values(b"get " + VICTIM)
        base = found[VICTIM.decode()][1] if found else b""
        for part in re.findall(rb"@([ti][^. ]+)\.", base):
            for text in (b"sadd %s.%s EVIL", b"set %s.%s 0 0 4\r\nEVIL", b"delete %s.%s", b"append %s.%s 0 0 4\r\nEVIL",
                         b"touch %s.%s 1", b"md %s.%s", b"spop %s.%s", b"gat 1 %s.%s", b"rpush %s.%s EVIL"):
                reply = conn.ask(text % (VICTIM, part))
                if not reply.startswith("CLIENT_ERROR"):
                    raise AssertionError(f"{text}: {reply}")


def forges(port, dice):
    """Keys, lengths and lines that would be a reply or a command if they were parsed at the wrong position."""
    with Conn(port, PATIENCE) as conn:
        key = b64encode(b"q%d\r\nVA 4 kx f0\r\nevil\r\nHD kq" % dice.randrange(100))
        conn.send(dice.choice((
            b"mg %s b N30 k\r\nmg %s b k t\r\nme %s b\r\n" % (key, key, key), b"ma %s b N0 J5 v k\r\n" % key,
            b"ms  16\r\nset inj 0 0 1\r\nx\r\n", b"cas forged 0 0 16\r\nset inj 0 0 1\r\nx\r\n",
            b"set %s 0 0 16\r\nset inj 0 0 1\r\nx\r\n" % (b"k" * 300), b"incr a\x01 1 noreply\r\n", b"sadd a b\x02 noreply\r\n",
            b"set forged 0 0 99999999\r\n", b"set forged 0 0 18446744073709551615\r\n", b"set forged 0 0 5000000\r\n" + b"x" * 5000000,
            b"GET / HTTP/1.1\r\n\r\n", b"\x80\x00\x00\x00" * 6)))
        conn.half_close()
        conn.rest()


def sends_noise(port, dice):
    words = (b"get", b"set", b"sadd", b"mg", b"ms", b"lrange", b"evcount", b" ", b" ", b"0", b"-1", b"\r\n", b"\n", b"\x00", b"noreply", b"zz")
    with Conn(port, PATIENCE) as conn:
        conn.send(b"".join(dice.choice(words) for _ in range(400)))
        conn.half_close()
        conn.rest()


def comes_and_goes(port, dice):
    conns = [Conn(port, PATIENCE) for _ in range(50)]
    for conn in conns:
        conn.send(dice.choice((b"get big\r\n", b"mn\r\n", b"smembers large-set\r\n")))
    for conn in conns:
        conn.reset()


def asks_the_same(port, dice):
    """Sends one query a thousand times whose reply takes long, and disconnects before it arrives, or reads nothing."""
    sock = small_windows(port)
    sock.settimeout(1)
    question = dice.choice((b"scount large-set 0 z", b"smembers large-set", b"srandmember large-set -200000", b"lrange large-list 0 -1",
                            b"sunion large-set large-set", b"evrange E1 2020010100 2025091000"))
    with contextlib.suppress(OSError):
        sock.sendall((question + b"\r\n") * 1024)
    held(sock, dice)


def keys_that_are_commands(port, dice):
    """They are commands in one of the two setlistd, and plain keys in the other."""
    sock = small_windows(port)
    sock.settimeout(1)
    key = dice.choice((b"q|smembers|large-set", b"q|srandmember|large-set|-100000", b"q|sinter|large-set|large-set"))
    with contextlib.suppress(OSError):
        sock.sendall(b"get" + (b" " + key) * 8 + b"\r\n" + b"mg " + key + b" v\r\n")
    held(sock, dice)


def rewrites(port, dice):
    """Uses its own lists and sets, with commands that make the servers write all of them."""
    with Conn(port, PATIENCE) as conn:
        conn.send(b"rpush churned " + b" ".join(b"%d" % number for number in range(2000)) + b"\r\n")
        for number in range(100):
            conn.send(dice.choice((b"lrem churned 1 %d\r\nrpush churned %d\r\n" % (number, number), b"lset churned 900 x\r\n",
                                   b"sadd churned-set %d\r\nscompact churned-set\r\n" % number)))
        conn.send(b"ltrim churned -3000 -1\r\nmn\r\n")
        conn.lines_until("MN")


def waits_and_goes(port, dice):
    """Many clients wait for one list, and disconnect before they receive an element, or at that moment."""
    conns = [Conn(port, PATIENCE) for _ in range(20)]
    for conn in conns:
        conn.send(dice.choice((b"blpop 0 awaited\r\n", b"brpop 0.2 other awaited\r\n", b"blpop 0 a b c d awaited\r\nblpop 0 awaited\r\n")))
    conns[0].half_close()
    with Conn(port, PATIENCE) as conn:
        conn.ask("rpush awaited 1 2 3 4 5")
    for conn in conns:
        dice.choice((conn.reset, conn.close))()


ALL = (never_reads, asks_the_same, keys_that_are_commands, rewrites, waits_and_goes, half_a_request, reads_much, reads_many_keys,
       counts_years, joins_one_set, writes_parts, forges, sends_noise, comes_and_goes)


class Hostile(threading.Thread):
    """Repeats some kinds of attacks, in a random order. The connection may be closed, but certain replies must never occur."""

    def __init__(self, port, kinds, seconds, seed):
        super().__init__(daemon=True)
        self.port, self.kinds, self.end = port, list(kinds), time.monotonic() + seconds
        self.dice = random.Random(f"{seed}-{kinds[0].__name__}")
        self.turns, self.problem = collections.Counter(), None

    def run(self):
        while not self.problem:
            self.dice.shuffle(self.kinds)
            for kind in self.kinds:
                if time.monotonic() >= self.end or self.problem:
                    return
                self.attack(kind)

    def attack(self, kind):
        try:
            with contextlib.suppress(OSError, Closed):
                kind(self.port, self.dice)
        except Exception as error:                      # a thread's exception would be lost otherwise
            self.problem = f"{kind.__name__}: {error!r:.500}"
        self.turns[kind.__name__] += 1
        time.sleep(0.05)
