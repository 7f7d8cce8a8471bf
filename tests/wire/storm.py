"""Many clients that change one set at full rate, each in its own process, each with a record of its members.

Every member belongs to one client, and only this client adds and removes it, over one connection. So at any time the client knows
the possible states of each of its members: that of the last acknowledged operation, or any that a later operation with an unknown
outcome may have caused. Every read, also within a pipeline, is compared with these states.

A member with an unknown outcome is replaced by a new one: the server may execute the call of a killed proxy at any later time,
and revert an acknowledged write.
"""
import collections
import contextlib
import multiprocessing
import random
import re
import time
import traceback

from harness import PATIENCE
from wire import Closed, Conn

ERRORS = re.compile(r"SERVER_ERROR (busy|upstream \S+ (unavailable|timed out, outcome unknown|connection lost, outcome unknown))")
NOT_SENT = re.compile(r"SERVER_ERROR upstream \S+ unavailable")
MEMBER = re.compile(rb"c(\d+)-(\d+)")
IN, OUT, EITHER = frozenset([True]), frozenset([False]), frozenset([True, False])
COMEBACK = PATIENCE
# Each client executes this number of operations, however slow the machine is, so that there is always contention.
LEAST_OPERATIONS = 1500
# A client changes only this part of its members for a while, so that the loss of one of the others is detected.
ACTIVE_PART = 4


class Plan:
    """The plan that all clients of a storm share."""

    def __init__(self, ports, key="storm", members=80, clients=12, seconds=4.0, reads=True, batch=(50, 200), seed=1):
        self.ports, self.key, self.members, self.clients = ports, key.encode(), members, clients
        self.seconds, self.reads, self.batch, self.seed = seconds, reads, batch, seed

    def name(self, client, number):
        return b"c%02d-%08d" % (client, number)

    def expect_known(self, found):
        """Returns only members that some client may add, each once, without the member of each client that is only ever removed."""
        if len(set(found)) != len(found):
            raise AssertionError(f"a member twice in a set of {len(found)}")
        for member in found:
            match = MEMBER.fullmatch(member)
            if not match or int(match.group(1)) >= self.clients or int(match.group(2)) == self.members:
                raise AssertionError(f"a member that was never added: {member!r}")


# The report of a client at its end: only plain data.
Report = collections.namedtuple("Report", "may_be operations errors broken problem", defaults=(0, {}, 0, None))


class Client:
    EVERYTHING = 1000000

    def __init__(self, plan, number):
        self.plan, self.number = plan, number
        self.dice = random.Random(plan.seed * 1000 + number)
        self.names = [plan.name(number, i) for i in range(plan.members)]
        self.never = plan.name(number, plan.members)
        self.may_be = {name: OUT for name in self.names}
        self.may_be[self.never] = OUT
        self.active = self.names
        self.given_up, self.next_number = set(), plan.members + 1
        self.operations, self.errors, self.broken = 0, collections.Counter(), 0
        self.conn = None

    # --- connections

    def connect(self, turn=0):
        """Connects to this client's proxy, as soon as it listens."""
        port = self.plan.ports[(self.number + turn) % len(self.plan.ports)]
        end = time.monotonic() + COMEBACK
        while True:
            try:
                return Conn(port)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def reconnect(self):
        self.broken += 1
        if self.conn:
            self.conn.close()
        self.conn = self.connect()

    # --- one pipeline: (bytes sent, expected reply or None, handler of the reply)

    def write(self):
        """Sends one command with some members."""
        adds = self.dice.random() < 0.5
        count = 1 if self.dice.random() < 0.9 else self.dice.randrange(2, 12)
        members = self.dice.sample(self.active, count)
        sent = b"%s %s %s\r\n" % (b"sadd" if adds else b"srem", self.plan.key,
                                  b" ".join(members if adds else members + [self.never]))
        return sent, b"STORED" if adds else b"DELETED", (members, IN if adds else OUT)

    def read(self):
        kind = self.dice.random()
        if kind < 0.3:
            return b"smembers %s\r\n" % self.plan.key, None, self.all_members
        if kind < 0.4:
            return b"sscan %s %d\r\n" % (self.plan.key, self.EVERYTHING), None, self.all_in_order
        asked = self.dice.sample(self.names, 10) + [self.never]
        if kind < 0.7:
            return b"sismember %s %s\r\n" % (self.plan.key, asked[0]), None, lambda conn: self.tested(conn, asked[:1])
        return b"smismember %s %s\r\n" % (self.plan.key, b" ".join(asked)), None, lambda conn: self.tested(conn, asked)

    def pipeline(self):
        if self.dice.random() < 0.1:
            self.active = self.dice.sample(self.names, len(self.names) // ACTIVE_PART)
        batch = [self.write() for _ in range(self.dice.randint(*self.plan.batch))]
        if self.plan.reads:
            for _ in range(self.dice.randrange(4)):
                batch.insert(self.dice.randrange(len(batch) + 1), self.read())
        return batch

    # --- replies

    def failed(self, line):
        """Records an error. Returns whether nothing was sent."""
        if not ERRORS.fullmatch(line):
            raise AssertionError(f"client {self.number} got {line!r}")
        self.errors[line] += 1
        return NOT_SENT.fullmatch(line)

    def unknown(self, members, now):
        for member in members:
            self.may_be[member] |= now
            if member not in self.given_up and member != self.never:
                self.give_up(member)

    def give_up(self, member):
        successor = self.plan.name(self.number, self.next_number)
        self.next_number += 1
        self.given_up.add(member)
        self.may_be[successor] = OUT
        self.names = [successor if name == member else name for name in self.names]
        self.active = [successor if name == member else name for name in self.active]

    def written(self, line, expected, members, now):
        if line == expected:
            for member in members:
                self.may_be[member] = now | self.may_be[member] if member in self.given_up else now
        elif not self.failed(line.decode()):
            self.unknown(members, now)

    def expect(self, member, present):
        if present not in self.may_be[member]:
            raise AssertionError(f"client {self.number}: {member!r} is {'in' if present else 'missing'}, against its last "
                                 f"acknowledged operation")

    def all_members(self, conn):
        found, end = conn.read_values()
        if end != "END":
            self.failed(end)
        elif not found:
            raise AssertionError("the whole set is gone")
        else:
            self.expect_all(found[self.plan.key.decode()][1].split())

    def all_in_order(self, conn):
        """An empty set may be reported as missing."""
        found, end = conn.read_values()
        if end != "END":
            self.failed(end)
            return
        members = found[self.plan.key.decode()][1].split() if found else []
        if members != sorted(members):
            raise AssertionError(f"client {self.number}: the members are not in order")
        self.expect_all(members)

    def expect_all(self, members):
        self.plan.expect_known(members)
        there = set(members)
        for member in self.may_be:
            self.expect(member, member in there)

    def tested(self, conn, asked):
        line = conn.line()
        answers = line.split(b" ")
        if len(answers) != len(asked) or not set(answers) <= {b"0", b"1"}:
            self.failed(line.decode())
            return
        for member, answer in zip(asked, answers):
            self.expect(member, answer == b"1")

    # --- a turn

    def run_batch(self, batch):
        done = 0
        try:
            self.conn.send(b"".join(sent for sent, _, _ in batch))
            for _, expected, action in batch:
                if expected:
                    self.written(self.conn.line(), expected, *action)
                else:
                    action(self.conn)
                done += 1
            self.operations += len(batch)
        except (Closed, ConnectionError):
            for _, expected, action in batch[done:]:
                if expected:
                    self.unknown(*action)
            self.reconnect()

    def look_elsewhere(self):
        """All writes are acknowledged, so another proxy must return them too."""
        with contextlib.suppress(Closed, ConnectionError), self.connect(self.dice.randrange(1, len(self.plan.ports))) as conn:
            conn.send(b"smembers %s\r\n" % self.plan.key)
            self.all_members(conn)

    def run(self):
        end = time.monotonic() + self.plan.seconds
        self.conn = self.connect()
        while time.monotonic() < end or self.operations < LEAST_OPERATIONS:
            self.run_batch(self.pipeline())
            if self.plan.reads and self.dice.random() < 0.1:
                self.look_elsewhere()
        self.conn.close()
        return Report(self.may_be, self.operations, self.errors, self.broken)


def _client_process(plan, number, pipe):
    client = Client(plan, number)
    try:
        report = client.run()
    except Exception as error:
        text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        report = Report(client.may_be, problem=text)
    pipe.send(report)
    pipe.close()


class Storm:
    """Runs the clients: `with Storm(plan) as storm:` runs the body concurrently; then the results are in storm.reports."""

    def __init__(self, plan):
        self.plan = plan
        self.children, self.reports = [], []

    def __enter__(self):
        context = multiprocessing.get_context("fork")
        for number in range(self.plan.clients):
            mine, theirs = context.Pipe(duplex=False)
            child = context.Process(target=_client_process, args=(self.plan, number, theirs), daemon=True)
            child.start()
            theirs.close()
            self.children.append((child, mine))
        return self

    def raging(self):
        return any(child.is_alive() and not pipe.poll() for child, pipe in self.children)

    def __exit__(self, kind, *_):
        limit = 0 if kind else self.plan.seconds + 5 * COMEBACK
        end = time.monotonic() + limit
        for number, (child, pipe) in enumerate(self.children):
            if pipe.poll(max(0, end - time.monotonic())):
                self.reports.append(pipe.recv())
            else:
                self.reports.append(Report({}, problem=f"client {number} hangs"))
                child.kill()
            child.join(PATIENCE)

    def problems(self):
        return [report.problem for report in self.reports if report.problem]

    def operations(self):
        return sum(report.operations for report in self.reports)

    def errors(self):
        return dict(sum((collections.Counter(report.errors) for report in self.reports), collections.Counter()))

    def wrong_members(self, found):
        """Returns the errors of the final state of the set, as text."""
        self.plan.expect_known(found)
        there = set(found)
        return [f"{member.decode()}: is {'in' if member in there else 'missing'}, must be {'in' if IN == may_be else 'out'}"
                for report in self.reports for member, may_be in report.may_be.items() if (member in there) not in may_be]

    def unknown_members(self):
        return sum(may_be == EITHER for report in self.reports for may_be in report.may_be.values())
