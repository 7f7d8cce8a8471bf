"""Collects the tests, runs them in parallel, prints the failures and the count."""
import collections
import concurrent.futures
import os
import signal
import sys
import threading
import time
import traceback
import unittest

import processes
from harness import OPTIONS, kill_leftovers

# Time limits of a test in seconds: for smoke tests, and for all slower ones.
SMOKE_LIMIT = 300
LONG_LIMIT = 900
TICK = 5      # seconds between two checks of the limit
SLOWEST = 10  # number of tests listed at the end

# The result that a worker sends: only plain data.
Outcome = collections.namedtuple("Outcome", "name seconds problem skipped")


def collect(folder, filters):
    """Returns the tests with these names, one list per class; classes share nothing."""
    suite = unittest.TestLoader().discover(folder, pattern="test_*.py", top_level_dir=folder)
    groups = {}
    for test in flatten(suite):
        if isinstance(test, unittest.loader._FailedTest):
            raise SystemExit(f"{test.id()}: {test._exception}")
        if any(name in test.id() for name in filters) or not filters:
            if not OPTIONS.direct or test.direct:
                groups.setdefault(type(test), []).append(test)
    return list(groups.values())


def mark(test, name):
    """Returns the value of a mark: that of the test, or of its class."""
    return getattr(getattr(test, test._testMethodName), "marks", {}).get(name, getattr(test, name))


def limit_of(test):
    return SMOKE_LIMIT if mark(test, "smoke") and not mark(test, "compiles") else LONG_LIMIT


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


class Recorder(unittest.TestResult):
    """Records the result of one test, with the last output of the processes that it ran."""

    def __init__(self):
        super().__init__()
        self.problems, self.reason = [], None

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(test, err, subtest._subDescription())

    def addSkip(self, test, reason):
        self.reason = reason

    def addError(self, test, err, title=""):
        kind, value, trace = err
        if issubclass(kind, AssertionError):
            where = traceback.extract_tb(trace)[-1]
            frames = [f for f in traceback.extract_tb(trace) if "/tests/wire/" in f.filename]
            where = " < ".join(f"{f.filename.rsplit('/', 1)[1]}:{f.lineno}" for f in reversed(frames)) or where
            text = f"{value}\n  at {where}"
        else:
            text = "".join(traceback.format_exception(kind, value, trace)).rstrip()
        reports = test.process_reports() if hasattr(test, "processes") else ""
        self.problems.append("\n".join(filter(None, [title, text, reports])))

    addFailure = addError


class Clock:
    """Interrupts the running test when it exceeds its limit. A signal to this process checks it every TICK.

    Python retries each call that a signal interrupts. So a read whose wake-up was lost may return at the next tick; Watch is for other processes.
    """

    deadline, limit = float("inf"), 0

    @classmethod
    def start(cls):
        signal.signal(signal.SIGALRM, cls.tick)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)

    @classmethod
    def tick(cls, *_):
        if time.monotonic() >= cls.deadline:
            cls.deadline = float("inf")
            raise AssertionError(f"the test took more than {cls.limit} s\n{processes.report(os.getpid())}")


def run_one(test):
    recorder = Recorder()
    start = time.monotonic()
    Clock.limit = limit_of(test)
    Clock.deadline = start + Clock.limit
    try:
        test.run(recorder)
    finally:
        Clock.deadline = float("inf")
        kill_leftovers()
    problem = "\n".join(recorder.problems) or None
    return Outcome(test.id(), time.monotonic() - start, problem, recorder.reason)


class Watch(threading.Thread):
    """Wakes workers that have used no CPU time since the last tick: see processes.wake(). Without a fault it has no effect."""

    def __init__(self, pool):
        super().__init__(daemon=True)
        self.pool, self.over, self.used = pool, threading.Event(), {}

    def run(self):
        while not self.over.wait(2 * TICK):
            for pid in list(self.pool._processes or ()):
                used = processes.processor_time(pid)
                if used is not None and used == self.used.get(pid):
                    processes.wake(pid)
                self.used[pid] = used


def run_all(tests, workers, note):
    """Runs the tests in separate processes, which this one monitors, and records each result."""
    with concurrent.futures.ProcessPoolExecutor(max_workers=workers, initializer=Clock.start) as pool:
        pending = {pool.submit(run_one, test) for test in tests}
        watch = Watch(pool)
        watch.start()
        while pending:
            done, pending = concurrent.futures.wait(pending, TICK, concurrent.futures.FIRST_COMPLETED)
            for future in done:
                note(future.result())
        watch.over.set()
        watch.join()


def run(groups, workers, verbose):
    """Runs tests in parallel first, then those that measure time or memory, one by one. Returns the exit status."""
    shared = [test for group in groups for test in group if not mark(test, "alone")]
    alone = [test for group in groups for test in group if mark(test, "alone")]
    outcomes = []

    def note(outcome):
        report(outcome, verbose)
        outcomes.append(outcome)
    for tests, count in ((shared, max(1, workers)), (alone, 1)):
        run_all(tests, count, note)
    print("the slowest tests:")
    for outcome in sorted(outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]:
        print(f"{outcome.seconds:8.2f} s  {outcome.name}")
    failed = sum(bool(outcome.problem) for outcome in outcomes)
    passed = sum(not outcome.problem and not outcome.skipped for outcome in outcomes)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def report(outcome, verbose):
    if outcome.problem:
        print(f"FAIL {outcome.name}")
        print("\n".join("    " + line for line in outcome.problem.splitlines()))
    elif outcome.skipped:
        print(f"skip {outcome.name}: {outcome.skipped}")
    elif verbose:
        print(f"ok   {outcome.name} ({outcome.seconds:.2f} s)")
    sys.stdout.flush()
