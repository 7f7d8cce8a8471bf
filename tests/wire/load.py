"""A constant load that checks every reply: clients in threads that request keys whose values contain them."""
import collections
import threading
import time

from harness import PATIENCE, wait_until
from wire import Conn

# what: "hit", "miss", or the error line. The events of a connection are in the order of its requests.
Event = collections.namedtuple("Event", "sent answered key what")


class Checker(threading.Thread):
    """A connection that gets one key after another and records the results: own value, miss, error, or a wrong reply."""

    def __init__(self, port, keys, pipeline=1):
        super().__init__(daemon=True)
        self.port, self.keys, self.pipeline = port, keys, pipeline
        self.stop_asked = threading.Event()
        self.wrong = []
        self.events = []

    def run(self):
        try:
            with Conn(self.port) as conn:
                index = 0
                while not self.stop_asked.is_set():
                    batch = [self.keys[(index + i) % len(self.keys)] for i in range(self.pipeline)]
                    index += self.pipeline
                    self.ask(conn, batch)
        except Exception as error:                  # a thread's exception would be lost otherwise
            self.wrong.append(f"the checking client failed: {error!r}")

    def ask(self, conn, batch):
        start = time.monotonic()
        conn.send(b"".join(b"get %s\r\n" % key.encode() for key in batch))
        for key in batch:
            found, end = conn.read_values()
            self.events.append(Event(start, time.monotonic(), key, self.judge(key, found, end)))

    def judge(self, key, found, end):
        if end != "END":
            if found or not end.startswith("SERVER_ERROR upstream "):
                self.wrong.append(f"get {key}: {found} {end}")
            return end
        if not found:
            return "miss"
        if set(found) != {key} or found[key][1] != named_value(key):
            self.wrong.append(f"get {key}: got {found}")
        return "hit"


class Load:
    """Several checkers in parallel; `with Load(...) as load:` runs them during a fault."""

    def __init__(self, port, keys, count=4, pipeline=1):
        self.checkers = [Checker(port, keys[i:] + keys[:i], pipeline) for i in range(count)]

    def __enter__(self):
        for checker in self.checkers:
            checker.start()
        return self

    def __exit__(self, *_):
        for checker in self.checkers:
            checker.stop_asked.set()
        for checker in self.checkers:
            checker.join(PATIENCE)

    def wrong_replies(self):
        return [text for checker in self.checkers for text in checker.wrong][:5]

    def wrong(self):
        """Checked at the end: a client that still runs by then hangs."""
        return ["a checking client hangs" for checker in self.checkers if checker.is_alive()] + self.wrong_replies()

    def events(self, since=0.0):
        """Returns the answered requests since then, a list for each connection."""
        return [[event for event in list(checker.events) if event.sent >= since] for checker in self.checkers]

    def whats(self, since=0.0):
        return {event.what for some in self.events(since) for event in some}

    def gets_on(self, count=20):
        """Waits until each connection has received this number of replies to requests from now on, or a wrong reply."""
        now = time.monotonic()
        wait_until("the load gets on",
                   lambda: self.wrong_replies() or all(len(some) >= count for some in self.events(now)), pause=0.02)


def named_value(key):
    return b"the value of " + key.encode() + b"\r\nEND"
