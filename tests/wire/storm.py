"""Many clients that change one set at full rate, each in a process of its own, each knowing what must be in it.

Every member belongs to one client, which alone adds and removes it, over one connection. So at any time the client knows
what may be true of each of its members: what the last acknowledged operation said, or either where one that came later
ended with its outcome unknown. Every read, in the middle of a pipeline too, is held against that.

A member of which an outcome is unknown is given up for a new one: the server may do what a killed proxy sent at any time
later, and undo what was acknowledged meanwhile.
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
# Each client does so many operations however slow the machine is, or the storm would not have been one.
LEAST_OPERATIONS = 1500
# A client changes this part of its members for a while; the others rest, so that it shows when one of them is lost.
ACTIVE_PART = 4


class Plan:
    """What all clients of a storm share."""

    def __init__(self, ports, key="storm", members=80, clients=12, seconds=4.0, reads=True, batch=(50, 200), seed=1):
        self.ports, self.key, self.members, self.clients = ports, key.encode(), members, clients
        self.seconds, self.reads, self.batch, self.seed = seconds, reads, batch, seed

    def name(self, client, number):
        return b"c%02d-%08d" % (client, number)

    def expect_known(self, found):
        """Only members that some client adds at times, each once. The one of each client that is only ever removed is not."""
        if len(set(found)) != len(found):
            raise AssertionError(f"a member twice in a set of {len(found)}")
        for member in found:
            match = MEMBER.fullmatch(member)
            if not match or int(match.group(1)) >= self.clients or int(match.group(2)) == self.members:
                raise AssertionError(f"a member that was never added: {member!r}")


# What a client tells when it is done: plain data only.
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
        """To this client's proxy, as soon as it is there."""
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

    # --- one pipeline: (sent, expected reply or None, what to do with the reply)

    def write(self):
        """One command on some members."""
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
        """Notes an error; whether nothing was sent."""
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
        """An empty set shows as a missing one does."""
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
        """All is acknowledged, so another proxy must show it as well."""
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
    """Runs the clients: `with Storm(plan) as storm:` the body goes on beside them; afterwards storm.reports."""

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
        """What the final state of the set gets wrong, in words."""
        self.plan.expect_known(found)
        there = set(found)
        return [f"{member.decode()}: is {'in' if member in there else 'missing'}, must be {'in' if IN == may_be else 'out'}"
                for report in self.reports for member, may_be in report.may_be.items() if (member in there) not in may_be]

    def unknown_members(self):
        return sum(may_be == EITHER for report in self.reports for may_be in report.may_be.values())
