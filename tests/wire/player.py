"""Plays a transcript over real connections, in one of several ways to deliver the same bytes."""
import os
import random
import re
import time

from harness import PATIENCE
from transcript import CONNECT, END, EXPECT, FRESH, RETRY, SEND, USE, bucket_names, substitute
from wire import Closed, Conn

SHOWN = 300
PIECES = 40
POLL = 0.05


class Mismatch(AssertionError):
    pass


def send_whole(conn, data):
    conn.send(data)


def send_bytewise(conn, data):
    for index in range(len(data)):
        conn.send(data[index:index + 1])
        os.sched_yield()


def send_cut(seed):
    """Cuts at random positions; the seed makes a failure reproducible."""
    dice = random.Random(seed)

    def send(conn, data):
        count = min(dice.randint(1, PIECES), len(data))
        cuts = sorted(dice.sample(range(len(data) + 1), count)) + [len(data)]
        start = 0
        for cut in cuts:
            conn.send(data[start:cut])
            start = cut
            if dice.random() < 0.3:
                time.sleep(0.0005)
    return send


class Player:
    def __init__(self, script, port, send=send_whole):
        self.script, self.port, self.send = script, port, send
        self.names = dict(script.names)
        self.conns = {"main": Conn(port)}
        self.current = "main"
        self.closed = set()

    @property
    def conn(self):
        return self.conns[self.current]

    def play(self):
        """Plays all steps in order; the bytes of adjacent lines are sent together."""
        try:
            index = 0
            while index < len(self.script.steps):
                index = self._step(index)
            self._nothing_left()
        finally:
            for conn in self.conns.values():
                conn.close()

    def play_burst(self):
        """Sends everything in one write, then checks all expectations."""
        steps = self.script.steps
        try:
            self._deliver(b"".join(self._bytes(step) for step in steps if step.kind == SEND))
            expected = [step for step in steps if step.kind == EXPECT]
            for index, step in enumerate(expected):
                self._expect(step, expected[index + 1:index + 2])
            self._nothing_left()
        finally:
            self.conn.close()

    def _bytes(self, step):
        return substitute(step.data, self.names)

    def _deliver(self, data):
        try:
            self.send(self.conn, data)
        except ConnectionError:
            pass                       # the peer may close the connection on bad input before all is sent; reading will show that

    def _step(self, index):
        steps = self.script.steps
        step = steps[index]
        if step.kind == SEND:
            data = b""
            while index < len(steps) and steps[index].kind == SEND:
                data += self._bytes(steps[index])
                index += 1
            self._deliver(data)
            return index
        if step.kind == EXPECT:
            self._expect(step, steps[index + 1:index + 2])
        elif step.kind == RETRY:
            return self._retry(index + 1)
        else:
            self._connection_step(step)
        return index + 1

    def _retry(self, start):
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                index = start
                while self.script.steps[index].kind != END:
                    index = self._step(index)
                return index + 1
            except Mismatch:
                if time.monotonic() > limit:
                    raise
            self._connect_again()
            time.sleep(POLL)

    def _connection_step(self, step):
        if step.kind == CONNECT:
            self.current = step.data
            self.conns[step.data] = Conn(self.port)
        elif step.kind == USE:
            self.current = step.data
        elif step.kind == FRESH:
            self._connect_again()

    def _connect_again(self):
        self.conn.close()
        self.closed.discard(self.current)
        self.conns[self.current] = Conn(self.port)

    # --- expectations

    def _expect(self, step, following):
        if step.how == "close":
            self._expect_close(step)
        elif step.how == "raw":
            self._expect_raw(step)
        elif step.how == "any":
            self._skip_lines(step, following)
        else:
            line = self._line(step)
            if not self._matches(step, line):
                self._complain(step, line)

    def _line(self, step):
        try:
            return self.conn.line()
        except (Closed, TimeoutError) as error:
            return self._complain(step, b"", str(error) or "nothing came in time")

    def _matches(self, step, line):
        if step.how == "regex":
            match = re.fullmatch(substitute(step.data, self.names, escape=True), line)
            if match:
                self.names.update({k: v for k, v in match.groupdict().items() if v is not None})
            return bool(match)
        if step.how == "words":
            return sorted(line.split(b" ")) == sorted(substitute(step.data, self.names).split(b" "))
        return line == substitute(step.data, self.names)

    def _expect_raw(self, step):
        want = substitute(step.data, self.names)
        try:
            while len(self.conn.buffer) < len(want):
                self.conn._fill()
        except (Closed, TimeoutError) as error:
            self._complain(step, bytes(self.conn.buffer), str(error))
        got = bytes(self.conn.buffer[:len(want)])
        del self.conn.buffer[:len(want)]
        if got != want:
            where = next(i for i in range(len(want)) if got[i] != want[i])
            self._complain(step, got[max(0, where - 40):], f"differs at byte {where} of {len(want)}")

    def _skip_lines(self, step, following):
        if not following or following[0].kind != EXPECT:
            raise ValueError(f"{self.script.path}:{step.number}: <... needs an expectation behind it")
        while True:
            line = self._line(following[0])
            if self._matches(following[0], line):
                self.conn.buffer[:0] = line + b"\r\n"
                return

    def _expect_close(self, step):
        try:
            rest = self.conn.rest()
        except TimeoutError:
            self._complain(step, bytes(self.conn.buffer), "the connection stays open")
        if rest:
            self._complain(step, rest, "bytes before the close")
        self.closed.add(self.current)

    def _nothing_left(self):
        """An extra reply is as wrong as a missing one: the next bytes must be the reply to `mn`."""
        for name, conn in self.conns.items():
            if name in self.closed:
                continue
            conn.send(b"mn\r\n")
            try:
                line = conn.line()
            except (Closed, TimeoutError) as error:
                raise Mismatch(f"{self.script.path}: connection {name} is not usable at the end: {error}") from None
            if line != b"MN":
                raise Mismatch(f"{self.script.path}: connection {name}, a reply too many at the end: {line!r:.300}")

    def _complain(self, step, got, note=""):
        raise Mismatch("\n".join(filter(None, [
            f"{self.script.path}:{step.number}: {note or 'unexpected reply'}",
            f"  expected {step.how}: {substitute(step.data, self.names)!r:.{SHOWN}}",
            f"  received: {got!r:.{SHOWN}}",
            f"  unread:   {bytes(self.conn.buffer)!r:.{SHOWN}}" if self.conn.buffer else "",
            f"  sent before: {self._sent_before(step)!r:.{SHOWN}}"])))

    def _sent_before(self, step):
        sent = [s for s in self.script.steps if s.kind == SEND and s.number < step.number]
        return b"".join(self._bytes(s) for s in sent[-3:])


def in_one_hour(play):
    """The keys of event counters contain the hour: a transcript that failed when the hour changed is played again."""
    while True:
        begun = bucket_names()
        try:
            return play()
        except AssertionError:
            if bucket_names() == begun:
                raise
