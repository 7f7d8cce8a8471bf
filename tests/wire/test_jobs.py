"""A queue of jobs: each worker moves a job to its own list, carries it out, and removes it, while workers and their proxies are killed.

JOBS_MANY=1 has 10,000 jobs instead of some hundred.
"""
import collections
import multiprocessing
import os
import random
import time

from case import WireTest
from harness import OPTIONS, PATIENCE, wait_until
from wire import Closed, Conn

JOBS = 10000 if os.environ.get("JOBS_MANY") else 600
SEED = int(os.environ.get("JOBS_SEED", 0)) or random.randrange(1, 1 << 30)
WORKERS, KILL_EVERY = 6, 80     # jobs


class Worker:
    """A separate process, which may be killed at any moment. Jobs in its list were left by a previous one."""

    def __init__(self, port, number, log):
        self.port, self.mine, self.log = port, f"mine{number}", log
        self.conn = None

    def write(self, word):
        os.write(self.log, b"%s\n" % word)

    def ask(self, line):
        """Returns the result of a retrieval. After an error, which may be that of a killed proxy, it continues: None."""
        try:
            self.conn = self.conn or Conn(self.port)
            found, end = self.conn.values(line)
        except (Closed, OSError):
            self.conn = None
            time.sleep(0.01)
            return None
        if end.startswith("SERVER_ERROR"):
            self.write(b"busy" if end == "SERVER_ERROR busy" else b"error")
            return None
        return b"".join(value for _, value in found.values())

    def run(self):
        while True:
            job = self.ask(f"lrange {self.mine} 0 0")
            if job == b"":
                self.ask(f"blmove 1 jobs {self.mine} left right")
            elif job:
                self.write(job)
                self.ask(f"lrem {self.mine} 1 {job.decode()}")


class Jobs(WireTest):
    smoke = True

    def start_worker(self, number):
        context = multiprocessing.get_context("fork")
        child = context.Process(target=Worker(self.proxies[number % 2].port, number, self.log).run, daemon=True)
        child.start()
        return child

    def end_worker(self, number):
        self.children[number].kill()
        self.children[number].join(PATIENCE)

    def start(self):
        self.serve(2)
        self.proxies = [self.setlistd(self.servers) for _ in range(2)]
        path = os.path.join(self.scratch(), "log")
        self.log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self.addCleanup(os.close, self.log)
        for first in range(0, JOBS, 100):
            self.assertEqual(self.conn.ask("rpush jobs " + " ".join(map(str, range(first, first + 100)))), "STORED")
        self.children = [self.start_worker(number) for number in range(WORKERS)]
        self.addCleanup(lambda: [self.end_worker(number) for number in range(WORKERS)])

    def words(self):
        return os.pread(self.log, os.fstat(self.log).st_size, 0).split()

    def done(self):
        return collections.Counter(int(word) for word in self.words() if word.isdigit())

    def is_empty(self):
        """The first list is looked at first: from there on each job is in another one, or done."""
        return all(self.conn.ask(f"llen {key}") in ("0", "NOT_FOUND") for key in ["jobs"] + [f"mine{i}" for i in range(WORKERS)])

    def finish(self):
        wait_until("all lists are empty", self.is_empty, pause=0.05)
        done = self.done()
        self.assertEqual(sorted(done), list(range(JOBS)), f"seed {SEED}")
        twice = sum(done.values()) - JOBS
        if OPTIONS.verbose:
            words = self.words()
            print(f"     {JOBS} jobs, {twice} done once more than needed, {words.count(b'busy')} replies of busy", flush=True)
        return twice

    def test_nobody_is_killed(self):
        self.start()
        self.assertEqual(self.finish(), 0)

    def test_workers_and_proxies_are_killed(self):
        """Who is killed may leave the job in its hands, and one that is on the way."""
        dice = random.Random(SEED)
        self.start()
        workers, proxies = 0, 0
        for least in range(KILL_EVERY, JOBS, KILL_EVERY):
            wait_until("the work gets on", lambda least=least: len(self.done()) >= least)
            if dice.random() < 0.2:
                self.replace(dice.choice(self.proxies), dice.choice((0, 0.05)))
                proxies += 1
            else:
                number = dice.randrange(WORKERS)
                self.end_worker(number)
                self.children[number] = self.start_worker(number)
                workers += 1
        twice = self.finish()
        if OPTIONS.verbose:
            print(f"     seed {SEED}: {workers} workers and {proxies} proxies were killed", flush=True)
        self.assertLessEqual(twice, 2 * workers + WORKERS * proxies, f"seed {SEED}")
