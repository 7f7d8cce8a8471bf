"""One client at a time loads a missing set, or claims a member, over several proxies that share only the servers.

STORM_MILLION=1 also loads a set of a million members.
"""
import os
import random
import threading
import unittest

from case_large import LargeSetTest, names
from harness import PATIENCE, wait_until
from test_concurrency import together

CLIENTS, ROUNDS, WRITERS, LOADERS = 100, 5, 6, 6
RUNS_AT_MOST = 16


class Database:
    """The database of the application: the members of a set, and how often they were read."""

    def __init__(self):
        self.lock, self.members, self.reads = threading.Lock(), set(), 0

    def read(self):
        with self.lock:
            self.reads += 1
            return sorted(self.members)

    def change(self, member, there):
        with self.lock:
            (self.members.add if there else self.members.discard)(member)


class LeaseTest(LargeSetTest):
    proxy_count = 3

    def lease(self, key, conn=None, seconds=""):
        """The token, or None."""
        word, *token = (conn or self.conn).ask(f"slease {key} {seconds}").split()
        self.assertIn(word, ("LEASE", "WAIT", "EXISTS"))
        return token[0] if word == "LEASE" else None

    def fill(self, conn, key, token, members, pieces):
        """Whether the set was completed; the lease may be over."""
        step = max(1, len(members) // pieces)
        for start in range(0, len(members), step):
            reply = conn.ask(f"sload {key} {token} " + " ".join(members[start:start + step]))
            if reply != "STORED":
                self.assertIn(reply, ("NOT_FOUND", "SERVER_ERROR busy"))
                return False
        reply = conn.ask(f"sfill {key} {token}")
        self.assertIn(reply, ("STORED", "NOT_FOUND", "SERVER_ERROR busy"))
        return reply == "STORED"


class Leases(LeaseTest):
    smoke = True

    def test_one_of_a_hundred_loads(self):
        """All clients miss at the same time. One loads, and all read the complete set."""
        conns = [self.connect(self.proxies[i % 3]) for i in range(CLIENTS)]
        for number in range(ROUNDS):
            database = Database()
            database.members = {f"m{i}" for i in range(500)}
            self.miss_together(conns, f"k{number}", database)
            self.assertEqual(database.reads, 1)

    def miss_together(self, conns, key, database):
        start = threading.Barrier(CLIENTS)

        def read(client):
            conn, found = conns[client], None
            self.assertIsNone(self.read(key, conn))
            start.wait(PATIENCE)
            while found is None:
                token = self.lease(key, conn, 3600)
                if token:
                    self.assertTrue(self.fill(conn, key, token, database.read(), 3))
                found = self.read(key, conn)
            self.assertEqual(found, {member.encode() for member in database.members})
        together(CLIENTS, read)

    def test_one_who_says_nothing_is_replaced(self):
        key, late = "k", self.lease("k", self.others[0], 1)
        self.assertEqual(self.others[0].ask(f"sload {key} {late} old"), "STORED")
        self.assertEqual(self.others[1].ask(f"saddx {key} word"), "STORED")
        token = wait_until("another one may load", lambda: self.lease(key, self.conn, 3600), pause=0.1)
        self.assertEqual(self.others[0].ask(f"sfill {key} {late} late"), "NOT_FOUND")
        self.assertEqual(self.others[0].ask(f"sload {key} {late} late"), "NOT_FOUND")
        self.assertEqual(self.conn.ask(f"sfill {key} {token} new"), "STORED")
        self.assert_members(key, [b"new", b"word"], self.others[0])

    def test_no_word_is_lost(self):
        """All clients write to the database first, and then to the set, which is repeatedly deleted and loaded. A client that then finds
        the set also finds its write."""
        database, stop = Database(), threading.Event()
        conns = [self.connect(self.proxies[i % 3]) for i in range(WRITERS + LOADERS)]

        def write(number):
            dice, conn, own = random.Random(number), conns[number], {}
            for _ in range(300):
                member, there = f"w{number}m{dice.randrange(40)}", dice.random() < 0.6
                own[member] = there
                database.change(member, there)
                self.assertIn(conn.ask(f"{'saddx' if there else 'srem'} k {member}"), ("STORED", "DELETED", "NOT_FOUND"))
                member, there = dice.choice(list(own.items()))
                self.assertIn(conn.ask(f"sismember k {member}"), ("NOT_FOUND", str(int(there))), member)

        def load(number):
            dice, conn = random.Random(number), conns[number]
            while not stop.is_set():
                token = self.lease("k", conn, 1)
                if token and self.fill(conn, "k", token, database.read(), dice.randrange(1, 5)) and dice.random() < 0.8:
                    conn.ask("delete k")

        def work(number):
            if number >= WRITERS:
                load(number)
                return
            try:
                write(number)
            finally:
                writers.pop()
                if not writers:
                    stop.set()
        writers = [None] * WRITERS
        together(WRITERS + LOADERS, work)
        wait_until("it is there", lambda: self.is_loaded("k", database), pause=0.1)
        for conn in self.conns:
            self.assert_members("k", {member.encode() for member in database.members}, conn)

    def is_loaded(self, key, database):
        """Returns whether it exists; otherwise loads it, unless another client does."""
        if self.read(key) is not None:
            return True
        token = self.lease(key)
        return token is not None and self.fill(self.conn, key, token, database.read(), 1)

    def load(self, count, per_line):
        """In pieces, through all proxies in turn; no client reads a part of it."""
        members, token = names(count), self.lease("k", None, 3600)
        for start in range(0, count, per_line):
            conn = self.conns[start // per_line % 3]
            self.assertEqual(conn.ask(b"sload k %s %s" % (token.encode(), b" ".join(members[start:start + per_line]))), "STORED")
            if start == count // 2:
                self.assert_missing("k", conn)
                self.assertEqual(conn.ask(b"srem k %s" % members[0]), "DELETED")
                self.assertEqual(conn.ask(b"srem k %s" % members[-1]), "DELETED")
                self.assertEqual(conn.ask(b"saddx k word"), "STORED")
        self.assertEqual(self.conn.ask(f"sfill k {token} last"), "STORED")
        for conn in self.conns:
            self.assert_members("k", [*members[1:-1], b"word", b"last"], conn)
            self.assertEqual(conn.ask("scard k"), str(count))
        def merged():
            """A merge that lost its base to another proxy continues at the next use of the set."""
            self.assertEqual(self.conn.ask("scard k"), str(count))
            return len(self.stored("k").runs) <= RUNS_AT_MOST
        wait_until("merges end", merged, pause=0.1)
        self.assert_nothing_else("k")

    def test_20_000_in_pieces(self):
        self.load(20000, 100)


class Lists(LeaseTest):
    smoke = True

    def test_pushes_stand_around_what_is_loaded(self):
        """Others push at both ends until the list is complete, and each push is there once, in the order of its client."""
        token, stop = self.conn.ask("llease k 3600").split()[1], threading.Event()
        conns, pushed = [self.connect(self.proxies[i % 3]) for i in range(6)], [[] for _ in range(6)]

        def work(number):
            if number == len(conns):
                for start in range(0, 2000, 50):
                    line = " ".join(f"loaded{i}" for i in range(start, start + 50))
                    self.assertEqual(self.conn.ask(f"lload k {token} {line}"), "STORED")
                self.assertEqual(self.conn.ask(f"lfill k {token} last"), "STORED")
                stop.set()
                return
            while not stop.is_set() and len(pushed[number]) < 500:
                item = f"p{number}n{len(pushed[number])}"
                self.assertEqual(conns[number].ask(f"{'lpushx' if number % 2 else 'rpushx'} k {item}"), "STORED")
                pushed[number].append(item)
        together(len(conns) + 1, work)
        for conn in self.conns:
            found = [item.decode() for item in self.listed("lrange k 0 -1", conn)]
            start = found.index("loaded0")
            self.assertEqual(found[start:start + 2001], [*(f"loaded{i}" for i in range(2000)), "last"])
            for number, items in enumerate(pushed):
                side = found[:start][::-1] if number % 2 else found[start + 2001:]
                self.assertEqual([item for item in side if item.startswith(f"p{number}n")], items)
            self.assertEqual(len(found), 2001 + sum(map(len, pushed)))


class Claims(LeaseTest):
    smoke = True

    def test_each_is_for_one(self):
        """All clients claim every event, through all proxies."""
        conns, events = [self.connect(self.proxies[i % 3]) for i in range(12)], [f"event{i}" for i in range(100)]
        granted = [[] for _ in conns]

        def work(number):
            for event in random.Random(number).sample(events, len(events)):
                reply = conns[number].ask(f"sclaim seen {event}")
                while reply == "SERVER_ERROR busy":
                    reply = conns[number].ask(f"sclaim seen {event}")
                self.assertIn(reply, ("0", "1"))
                if reply == "1":
                    granted[number].append(event)
        together(len(conns), work)
        self.assertEqual(sorted(sum(granted, [])), sorted(events))
        self.assertEqual(self.conn.ask("scard seen"), str(len(events)))


class Million(LeaseTest):
    """With the defaults."""
    config = None

    @unittest.skipUnless(os.environ.get("STORM_MILLION"), "STORM_MILLION is not set")
    def test_1_000_000(self):
        Leases.load(self, 1000000, 5000)
