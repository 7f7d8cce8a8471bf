"""Held elements: workers and proxies are killed while they hold jobs, and every job is done; what waits for elements that are given back."""
import collections
import multiprocessing
import os
import random
import time

from case import WireTest, marks
from harness import PATIENCE, wait_until
from stored import counter
from wire import Closed, Conn

SEED = int(os.environ.get("HELD_SEED", 0)) or random.randrange(1, 1 << 30)
WORKERS, KILLS, SECONDS = 10, 20, 2


def held(conn, line):
    """Returns (ticket, deliveries, element) of a hold; None if there is no element."""
    values, end = conn.values(line)
    if end != "END":
        raise AssertionError(end)
    for _, value in values.values():
        ticket, count, element = value.split(b" ", 2)
        return ticket.decode(), int(count), element
    return None


class Worker:
    """A separate process, which may be killed at any moment. It logs each job that it has, and each that is done."""

    def __init__(self, port, log, dice):
        self.port, self.log, self.dice = port, log, dice

    def write(self, *words):
        os.write(self.log, (" ".join(map(str, words)) + "\n").encode())

    def run(self):
        while True:
            try:
                with Conn(self.port) as conn:
                    self.work(conn)
            except (Closed, OSError, AssertionError):
                time.sleep(0.01)

    def work(self, conn):
        while True:
            found = held(conn, f"blhold 1 jobs {SECONDS} {self.dice.choice(('left', 'right'))}")
            if not found:
                continue
            ticket, deliveries, job = found
            self.write("took", job.decode(), deliveries, ticket)
            if self.dice.random() < 0.02:
                conn.ask(f"lfail jobs {ticket}")
                continue
            while (reply := conn.ask(f"lack jobs {ticket}")) == "SERVER_ERROR busy":
                pass
            self.write("end", job.decode(), deliveries, reply.split()[0])


class Jobs(WireTest):
    jobs = 600

    def start_worker(self, number):
        context = multiprocessing.get_context("fork")
        worker = Worker(self.proxies[number % 2].port, self.log, random.Random(self.dice.random()))
        child = context.Process(target=worker.run, daemon=True)
        child.start()
        return child

    def end_worker(self, number):
        self.children[number].kill()
        self.children[number].join(PATIENCE)

    def start(self):
        self.serve(1)
        self.dice = random.Random(SEED)
        self.proxies = [self.setlistd(self.servers) for _ in range(2)]
        path = os.path.join(self.scratch(), "log")
        self.log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self.addCleanup(os.close, self.log)
        for first in range(0, self.jobs, 100):
            self.assertEqual(self.conn.ask("rpush jobs " + " ".join(map(str, range(first, first + 100)))), "STORED")
        self.children = [self.start_worker(number) for number in range(WORKERS)]
        self.addCleanup(lambda: [self.end_worker(number) for number in range(WORKERS)])

    def events(self, kind):
        lines = os.pread(self.log, os.fstat(self.log).st_size, 0).decode().splitlines()
        return [line.split()[1:] for line in lines if line.startswith(f"{kind} ")]

    def is_empty(self):
        return self.conn.ask("llen jobs") == "0" and b"~h" not in self.connect(self.servers[0]).get("jobs")

    def finish(self, kills):
        wait_until("all jobs are done", self.is_empty, pause=0.1)
        last, took, done = {}, collections.Counter(), {}
        for job, deliveries, _ in self.events("took"):
            last[job] = max(last.get(job, 0), int(deliveries))
            took[job, deliveries] += 1
        for job, deliveries, reply in self.events("end"):
            if reply == "DELETED":
                self.assertNotIn(job, done, "done twice")
                done[job] = int(deliveries)
        self.assertEqual(max(took.values()), 1, "two workers had the same delivery")
        # A worker may be killed, or lose its connection, between the end of a job and its line.
        lost = [job for job in map(str, range(self.jobs)) if job not in done]
        self.assertLessEqual(len(lost), kills, lost[:10])
        # After a job was done, no other worker gets it.
        self.assertEqual([(job, done[job], last[job]) for job in done if done[job] != last[job]], [])
        return sum(count > 1 for count in last.values())


class Workers(Jobs):
    smoke = True

    def test_workers_are_killed(self):
        self.start()
        for kill in range(1, KILLS + 1):
            wait_until("some jobs are done", lambda: len(self.events("end")) >= kill * self.jobs // (2 * KILLS))
            number = self.dice.randrange(WORKERS)
            self.end_worker(number)
            self.children[number] = self.start_worker(number)
        self.finish(KILLS)


class ManyJobs(Workers):
    jobs = 10000
    smoke = False
    plain = True


class Proxies(Jobs):
    def test_proxies_are_killed(self):
        """All workers of a proxy lose their connections with it."""
        self.start()
        for kill in range(1, 5):
            wait_until("some jobs are done", lambda: len(self.events("end")) >= kill * self.jobs // 8)
            self.replace(self.proxies[kill % 2], 0.05)
        self.finish(4 * WORKERS)


class Given(WireTest):
    """Two setlistd with one memcached."""
    smoke = True

    def setUp(self):
        self.serve(1, config="threads = 2\nthread_load = 0\n")
        self.other = self.connect(self.setlistd(self.servers))

    @marks(smoke=False)
    def test_one_that_is_not_acknowledged(self):
        self.conn.ask("rpush k a b")
        ticket, count, element = held(self.conn, "lhold k 1")
        self.assertEqual((count, element), (1, b"a"))
        wait_until("it is given back", lambda: self.other.ask("llen k") == "2")
        self.assertEqual(self.other.values("lrange k 0 -1"), ({"k": (0, b"a b")}, "END"))
        self.assertEqual(self.conn.ask(f"lack k {ticket}"), "NOT_FOUND")
        self.assertEqual(held(self.conn, "lhold k 60")[1:], (2, b"a"))

    def test_through_another_proxy(self):
        self.conn.ask("rpush k a b")
        tickets = [held(conn, "lhold k 60")[0] for conn in (self.conn, self.other)]
        self.assertEqual(self.other.ask(f"lack k {tickets[0]}"), "DELETED")
        self.assertEqual(self.conn.ask(f"lack k {tickets[0]}"), "NOT_FOUND")
        self.assertEqual(self.conn.ask(f"lfail k {tickets[1]}"), "STORED")
        self.assertEqual(held(self.other, "lhold k 60")[1:], (2, b"b"))

    @marks(smoke=False)
    def test_clients_that_wait(self):
        """No write shows them that the time of a held element is over."""
        self.conn.ask("rpush k a")
        held(self.conn, "lhold k 1")
        waits = {line: self.connect(proxy) for line, proxy in (("blhold 0 k 1", self.proxy), ("blhold 0 k 1 right", self.other.sock.getpeername()[1]))}
        for line, conn in waits.items():
            conn.send(f"{line}\r\n".encode())
        for conn in waits.values():
            values, _ = conn.read_values()
            self.assertEqual(values["k"][1].split()[2], b"a")

    def test_one_that_has_failed(self):
        conn = self.connect(self.proxy)
        self.conn.ask("rpush k a")
        ticket, _, _ = held(self.conn, "lhold k 600")
        conn.send(b"blpop 0 k\r\n")
        wait_until("it waits", lambda: counter(self.conn, "waiting_clients") == 1)
        self.assertEqual(self.conn.ask(f"lfail k {ticket}"), "STORED")
        self.assertEqual(conn.read_values(), ({"k": (0, b"a")}, "END"))

    def test_too_many(self):
        self.conn.ask("rpush k " + " ".join(f"e{i}" for i in range(1005)))
        tickets = [held(self.conn, "lhold k 600")[0] for _ in range(1000)]
        self.assertEqual(self.conn.ask("lhold k 600"), "SERVER_ERROR too many held elements")
        self.assertEqual(self.conn.ask("llen k"), "5")
        self.assertEqual(self.conn.ask(f"lack k {tickets[500]}"), "DELETED")
        self.assertEqual(held(self.conn, "lhold k 600")[2], b"e1000")


class Segments(WireTest):
    smoke = True

    def test_compactions(self):
        """Held elements, and the counts of others, outlast that the list is moved to segments and back."""
        self.serve(1, config="base_size = 1024\nsegment_size = 4096\n")
        self.conn.ask("rpush k " + " ".join(f"e{i:05}" for i in range(10)))
        tickets = [held(self.conn, f"lhold k 600 {end}")[0] for end in ("left", "right") * 2]
        self.conn.ask(f"lfail k {tickets[0]}")
        for first in range(10, 2000, 10):
            self.conn.ask("rpush k " + " ".join(f"e{i:05}" for i in range(first, first + 10)))
            self.conn.ask("lpush k x")
            self.conn.values("lpop k")
        self.assertEqual(self.conn.ask("scompact k"), "OK")
        self.assertIn(b"@s", self.connect(self.servers[0]).get("k"))
        self.assertEqual([self.conn.ask(f"lack k {ticket}") for ticket in tickets[1:]], ["DELETED"] * 3)
        self.assertEqual(self.conn.ask("lrem k 0 e00000"), "1")
        self.assertEqual(self.conn.ask("llen k"), "1996")
