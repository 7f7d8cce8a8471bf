"""Stored events: in one round trip, in the order of the pipeline, in bounded memory, and with servers that fail."""
import random
import threading
import time

import scripted
from case import WireTest, marks
from harness import built_with_sanitizer

BUCKET, MOMENT = "2015022016", 1424450096
BEFORE = "2015022015"
RETRIES = "retry_min = 10\nretry_max = 200"


def names(numbers, kind="E", bucket=BUCKET):
    return [f"{kind}::{bucket}::{number}" for number in numbers]


class RoundTrips(WireTest):
    """Two scripted servers that reply only after they have received all requests: sending one at a time would hang."""
    smoke = True

    def setUp(self):
        self.serve([self.scripted_server() for _ in range(2)], config=RETRIES)

    def withhold(self, values):
        """Each server replies when all of its keys were requested. Returns how many keys each has."""
        counts = []
        for server in self.servers:
            held = [key for key in values if self.conn.ask(f"route {key}").endswith(server.name)]
            waiting = []

            def fault(link, request, held=held, waiting=waiting):
                waiting.append(request.key)
                if len(waiting) == len(held):
                    link.send(b"".join(self.found(key, values[key.decode()]) for key in waiting))
                    waiting.clear()
            server.faults.update({key.encode(): fault for key in held})
            counts.append(len(held))
        self.assertGreater(min(counts), 0)
        return counts

    @staticmethod
    def found(key, value):
        return b"VA %d k%s f0\r\n%s\r\n" % (len(value), key, value)

    def test_three_hundred_events(self):
        """The sizes of the first ones are awaited. Then all others are requested at once."""
        events = names(range(1, 301))
        for some in (events[:16], events[16:]):
            self.withhold({event: b"x" for event in some})
        counter = f"E::{BUCKET}"
        for server in self.servers:
            server.faults[counter.encode()] = lambda link, request: link.send(self.found(request.key, b"300"))
        found, end = self.conn.values(f"evrange E {BUCKET}")
        self.assertEqual((list(found), end), (events, "END"))

    def test_counters_of_a_day_and_of_a_month(self):
        for prefix, count in (("20150220", 24), ("201502", 672)):
            buckets = [f"20150220{hour:02}" for hour in range(24)] if count == 24 else \
                [f"201502{day:02}{hour:02}" for day in range(1, 29) for hour in range(24)]
            self.withhold({f"E::{bucket}": bucket[-3:].encode() for bucket in buckets})
            self.conn.send(f"evcount E {prefix}\r\n".encode())
            self.assertEqual(self.conn.lines_until("END")[:-1], [f"COUNT {bucket} {int(bucket[-3:])}" for bucket in buckets])


class Failures(WireTest):
    smoke = True

    def serve(self):
        self.scripted = self.scripted_server()
        self.fault(f"E::{BUCKET}", scripted.raw(b"VA 3 k{key} f0\r\n100\r\n"))
        for name in names(range(1, 101)):
            self.fault(name, scripted.raw(b"VA 1 k{key} f0\r\nx\r\n"))
        self.conn = self.connect(self.setlistd([self.scripted], config=RETRIES))

    def fault(self, key, action):
        self.scripted.faults[key.encode()] = action

    def test_in_the_middle(self):
        """Earlier data is returned, then the error instead of END; the connection stays usable."""
        lost = "connection lost, outcome unknown"
        for command, told in ((f"evrange E {BUCKET}", range(1, 77)), (f"evlast E 50 {BUCKET}", range(100, 77, -1))):
            self.serve()
            self.fault(f"E::{BUCKET}::77", scripted.die)
            found, end = self.conn.values(command)
            self.assertEqual((list(found), end), (names(told), f"SERVER_ERROR upstream {self.scripted.name} {lost}"))
            self.assertEqual(self.conn.ask("mn"), "MN")

    def test_refused(self):
        self.serve()
        self.fault(f"E::{BUCKET}::3", scripted.raw(b"SERVER_ERROR out of memory\r\n"))
        found, end = self.conn.values(f"evrange E {BUCKET}")
        self.assertEqual((list(found), end), (names([1, 2]), "SERVER_ERROR out of memory"))

    def test_server_that_is_down(self):
        (one, other), proxy = self.pool(2, config="retry_min = 10\nretry_max = 100")
        conn = self.connect(proxy)
        kind = next(k for k in map("E{}".format, range(100)) if conn.ask(f"route {k}::{BUCKET}").endswith(one.name))
        for _ in range(50):
            conn.send(f"evadd {kind} 0 0 1 {MOMENT}\r\nx\r\n".encode())
            self.assertTrue(conn.line().startswith(b"EVENT "))
        other.kill()
        first = next(n for n in range(1, 51) if conn.ask(f"route {kind}::{BUCKET}::{n}").endswith(other.name))
        found, end = conn.values(f"evrange {kind} {BUCKET}")
        self.assertEqual(list(found), names(range(1, first), kind))
        self.assertTrue(end.startswith(f"SERVER_ERROR upstream {other.name} "), end)


class Model:
    """The events of two buckets, and the expected replies of commands about them."""
    BUCKETS = {BEFORE: MOMENT - 3600, BUCKET: MOMENT}

    def __init__(self, seed, kind):
        self.dice, self.kind = random.Random(seed), kind
        self.counts = dict.fromkeys(self.BUCKETS, 0)
        self.events = {}

    def bucket(self):
        return self.dice.choice(list(self.BUCKETS))

    def commands(self, count):
        weights = {self.evadd: 30, self.quiet: 10, self.evincr: 4, self.evrange: 12, self.evlast: 12, self.delete: 10,
                   self.replace: 6, self.get: 6, self.evcount: 4}
        return [make() for make in self.dice.choices(list(weights), list(weights.values()), k=count)]

    # Each returns the request and the expected reply, and updates the model.

    def add(self, quiet):
        bucket, data = self.bucket(), b"d%d" % self.dice.randrange(1000)
        self.counts[bucket] += 1
        name, = names([self.counts[bucket]], self.kind, bucket)
        self.events[bucket, self.counts[bucket]] = (name, data)
        line = f"evadd {self.kind} 0 0 {len(data)} {self.BUCKETS[bucket]}{' noreply' if quiet else ''}\r\n"
        return line.encode() + data + b"\r\n", b"" if quiet else f"EVENT {name}\r\n".encode()

    def evadd(self):
        return self.add(False)

    def quiet(self):
        return self.add(True)

    def evincr(self):
        bucket = self.bucket()
        self.counts[bucket] += 2
        return f"evincr {self.kind} 2 {self.BUCKETS[bucket]}\r\n".encode(), b"%d\r\n" % self.counts[bucket]

    def evcount(self):
        rows = "".join(f"COUNT {bucket} {count}\r\n" for bucket, count in self.counts.items())
        return f"evcount {self.kind} {BEFORE} {BUCKET}\r\n".encode(), rows.encode() + b"END\r\n"

    @staticmethod
    def values(events):
        return b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (n.encode(), len(data), data) for n, data in events) + b"END\r\n"

    def evrange(self):
        bucket = self.bucket()
        count = self.counts[bucket]
        first, last = (self.dice.randint(-count - 1, count + 1) for _ in range(2))
        low, high = (n + count + 1 if n < 0 else n for n in (first, last))
        found = [self.events[bucket, n] for n in range(max(low, 1), min(high, count) + 1) if (bucket, n) in self.events]
        return f"evrange {self.kind} {bucket} {first} {last}\r\n".encode(), self.values(found)

    def evlast(self):
        newest = [self.events[place] for place in sorted(self.events, reverse=True)]
        n = self.dice.choice((1, 5, 100))
        return f"evlast {self.kind} {n} {BUCKET}\r\n".encode(), self.values(newest[:n])

    def some(self):
        """A bucket and a number, mostly of an event that is there."""
        if self.events and self.dice.random() < .9:
            return self.dice.choice(list(self.events))
        return self.bucket(), 999999

    def delete(self):
        place = self.some()
        name, = names([place[1]], self.kind, place[0])
        return f"delete {name}\r\n".encode(), b"DELETED\r\n" if self.events.pop(place, None) else b"NOT_FOUND\r\n"

    def replace(self):
        place = self.some()
        name, = names([place[1]], self.kind, place[0])
        there = place in self.events
        if there:
            self.events[place] = (name, b"new")
        return f"replace {name} 0 0 3\r\nnew\r\n".encode(), b"STORED\r\n" if there else b"NOT_STORED\r\n"

    def get(self):
        place = self.some()
        name, = names([place[1]], self.kind, place[0])
        return f"get {name}\r\n".encode(), self.values([self.events[place]] if place in self.events else [])


class Order(WireTest):
    smoke = True
    COUNT = 3000

    @marks(smoke=False)
    def test_pipeline(self):
        """Every command sees the effects of earlier commands on its connection, and none of later ones."""
        _, proxy = self.pool(2)
        for seed in range(1, 5):
            model = Model(seed, f"E{seed}")
            dialogue = model.commands(self.COUNT)
            conn = self.connect(proxy)
            sent = b"".join(request for request, _ in dialogue)
            threading.Thread(target=conn.send, args=(sent,), daemon=True).start()
            for number, (request, expected) in enumerate(dialogue):
                found = bytearray()
                while len(found) < len(expected):
                    found += conn.line() + b"\r\n"
                self.assertEqual(bytes(found), expected, f"seed {seed}: reply to command {number}: {request!r:.80}")
            self.assertEqual(conn.ask("mn"), "MN")

    def test_long_range(self):
        """A command with several rounds is not overtaken by a change of its last events."""
        count = 20000
        conn, direct = self.serve(), self.connect(self.servers[0])
        direct.send(b"".join(b"set %s 0 0 1 noreply\r\nx\r\n" % name.encode() for name in names(range(1, count + 1))))
        self.assertEqual(direct.set(f"E::{BUCKET}", b"%d" % count), "STORED")
        last, = names([count])
        conn.send(f"evrange E {BUCKET}\r\nevlast E {count} {BUCKET}\r\ndelete {last}\r\nget {last}\r\n".encode())
        for expected in (range(1, count + 1), range(count, 0, -1)):
            found, end = conn.read_values()
            self.assertEqual((list(found) == names(expected), end), (True, "END"), f"{len(found)} of {count} events")
        self.assertEqual(conn.line(), b"DELETED")
        self.assertEqual(conn.read_values(), ({}, "END"))


class Holes(WireTest):
    smoke = True

    def test_the_last_ten_past_three_holes(self):
        conn = self.serve(2)
        for moment, count in ((MOMENT - 7200, 4), (MOMENT, 9)):
            for _ in range(count):
                conn.send(f"evadd RouterError 0 0 1 {moment}\r\nx\r\n".encode())
                self.assertTrue(conn.line().startswith(b"EVENT "))
        for number in (9, 5, 4):
            self.assertEqual(conn.ask(f"delete RouterError::{BUCKET}::{number}"), "DELETED")
        there = names((8, 7, 6, 3, 2, 1), "RouterError") + names((4, 3, 2, 1), "RouterError", "2015022014")
        self.assertEqual(list(conn.values(f"evlast RouterError 10 {BUCKET}")[0]), there)
        self.assertEqual(list(conn.values(f"evlast RouterError 7 {BUCKET}")[0]), there[:7])
        self.assertEqual(list(conn.values(f"evlast RouterError 100 {BUCKET}")[0]), there)
        self.assertEqual(list(conn.values("evlast RouterError 10 2015022013")[0]), [])
        self.assertEqual(list(conn.values("evrange RouterError 20150220")[0]), sorted(there))

    def test_a_long_count_and_a_later_event(self):
        """Counters are read many at a time. The last ones must not include later increments of the client."""
        conn, hours = self.serve(2), 3000
        last = time.strftime("%Y%m%d%H", time.gmtime(MOMENT + 3600 * (hours - 1)))
        conn.send(f"evcount E {BUCKET} {last}\r\nevincr E 7 {MOMENT + 3600 * (hours - 1)}\r\n".encode())
        rows = [conn.line() for _ in range(hours)]
        self.assertEqual((rows[0], rows[-1]), (f"COUNT {BUCKET} 0".encode(), f"COUNT {last} 0".encode()))
        self.assertEqual((conn.line(), conn.line()), (b"END", b"7"))

    def test_counter_that_promises_too_much(self):
        """It ends, and soon enough, though the counters name more keys than anyone could read."""
        conn = self.serve(2)
        for hours in range(24):
            conn.ask(f"evincr E 1000000000 {MOMENT - 3600 * hours}")
        self.assertEqual(conn.values(f"evlast E 10 {BUCKET}"), ({}, "END"))
        self.assertEqual(conn.ask(f"evrange E {BUCKET}"), "CLIENT_ERROR too many events")
        self.assertEqual(conn.values(f"evrange E {BUCKET} -1000"), ({}, "END"))


class Memory(WireTest):
    """100,000 events of one bucket, and a client that does not read for a while."""
    alone = True
    plain = True
    COUNT, SIZE = 100000, 1000

    def test_slow_reader(self):
        server = self.memcached("-m", "400")
        proxy = self.setlistd([server])
        direct = self.connect(server)
        for start in range(1, self.COUNT + 1, 5000):
            direct.send(b"".join(b"set %s 0 0 %d noreply\r\n%0*d\r\n" % (name.encode(), self.SIZE, self.SIZE, number)
                                 for number, name in zip(range(start, start + 5000), names(range(start, start + 5000)))))
        self.assertEqual(direct.set(f"E::{BUCKET}", b"%d" % self.COUNT), "STORED")
        for command, numbers in ((f"evrange E {BUCKET}", range(1, self.COUNT + 1)),
                                 (f"evlast E {self.COUNT} {BUCKET}", range(self.COUNT, 0, -1))):
            conn = self.connect(proxy)
            conn.send(command.encode() + b"\r\n")
            time.sleep(0.5)  # Time in which a proxy without bounds would read on. Nothing shows that it has stopped.
            for number in numbers:
                name = f"E::{BUCKET}::{number}".encode()
                if (line := conn.line()) != b"VALUE %s 0 %d" % (name, self.SIZE):
                    self.fail(f"{command}: {line!r} in place of number {number}")
                if int(conn.block(self.SIZE)) != number:
                    self.fail(f"{command}: not the data of number {number}")
            self.assertEqual(conn.line(), b"END")
        if not built_with_sanitizer():
            self.assertLess(proxy.peak_mib(), 80, "held in memory")
