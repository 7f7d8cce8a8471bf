"""Collect the tests, run them side by side, print what failed and the count."""
import collections
import concurrent.futures
import signal
import sys
import time
import traceback
import unittest

from harness import OPTIONS, kill_leftovers

TEST_LIMIT = 900         # seconds; nothing here may hang
TICK = 5                 # seconds between two looks at that limit


# What is sent back from a worker: plain data only.
Outcome = collections.namedtuple("Outcome", "name seconds problem skipped")


def collect(folder, filters):
    """The selected tests, one list per class; a class shares nothing with another."""
    suite = unittest.TestLoader().discover(folder, pattern="test_*.py", top_level_dir=folder)
    groups = {}
    for test in flatten(suite):
        if isinstance(test, unittest.loader._FailedTest):
            raise SystemExit(f"{test.id()}: {test._exception}")
        if any(name in test.id() for name in filters) or not filters:
            if not OPTIONS.direct or test.direct:
                groups.setdefault(type(test), []).append(test)
    return list(groups.values())


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


class Recorder(unittest.TestResult):
    """Keeps the outcome of one test, with the last words of the processes that it ran."""

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
    """Breaks off the test that runs when it takes too long. A signal to this process looks every TICK.

    A kernel was seen to lose a wake-up: a read of a pipe slept on although nobody had the other end. Python retries
    each call that a signal interrupts, so such a read returns at the next tick. Hence the ticks go on between tests.
    """

    deadline = float("inf")

    @classmethod
    def start(cls):
        signal.signal(signal.SIGALRM, cls.tick)
        signal.setitimer(signal.ITIMER_REAL, TICK, TICK)

    @classmethod
    def tick(cls, *_):
        if time.monotonic() >= cls.deadline:
            cls.deadline = float("inf")
            raise AssertionError(f"the test took more than {TEST_LIMIT} s")


def run_one(test):
    recorder = Recorder()
    start = time.monotonic()
    Clock.deadline = start + TEST_LIMIT
    try:
        test.run(recorder)
    finally:
        Clock.deadline = float("inf")
        kill_leftovers()
    problem = "\n".join(recorder.problems) or None
    return Outcome(test.id(), time.monotonic() - start, problem, recorder.reason)


def run(groups, workers, verbose):
    """Tests side by side first, then those that measure time or memory, alone. The exit status is returned."""
    shared = [test for group in groups for test in group if not test.alone]
    alone = [test for group in groups for test in group if test.alone]
    tally = {"passed": 0, "failed": 0}
    Clock.start()
    with concurrent.futures.ProcessPoolExecutor(max_workers=max(1, workers), initializer=Clock.start) as pool:
        for outcome in concurrent.futures.as_completed([pool.submit(run_one, test) for test in shared]):
            report(outcome.result(), verbose, tally)
    for test in alone:
        report(run_one(test), verbose, tally)
    print(f"{tally['passed']} passed, {tally['failed']} failed")
    return 1 if tally["failed"] else 0


def report(outcome, verbose, tally):
    if outcome.problem:
        tally["failed"] += 1
        print(f"FAIL {outcome.name}")
        print("\n".join("    " + line for line in outcome.problem.splitlines()))
    elif outcome.skipped:
        print(f"skip {outcome.name}: {outcome.skipped}")
    else:
        tally["passed"] += 1
        if verbose:
            print(f"ok   {outcome.name} ({outcome.seconds:.2f} s)")
    sys.stdout.flush()
