"""One client's bulk must not fail another client's requests, and never looks like a miss."""
import contextlib
import os
import pathlib
import threading
import time

from case import WireTest, marks
from scripted import LARGE, large, one_shot, value_of
from harness import ESTABLISHED, built_with_sanitizer, tcp_sockets, wait_until
from stored import stat
from wire import Closed

QUEUE = 2000


class Overload(WireTest):
    """With a queue that one careless client would fill."""
    smoke = True

    def setUp(self):
        self.serve(config=f"server_queue = {QUEUE}")
        self.other = self.connect(self.proxy)

    def assert_none_refused(self):
        self.assertEqual(stat(self.other, "stats upstream", f"{self.servers[0].name}:busy"), 0)

    def test_many_keys_pipelined(self):
        """Every existing key is found, however many are requested."""
        keys = [f"k{number}" for number in range(100)]
        for key in keys:
            self.conn.set(key, b"x")
        rounds = 1000
        self.conn.send(f"get {' '.join(keys)}\r\n".encode() * rounds)
        for _ in range(rounds):
            found, end = self.conn.read_values()
            self.assertEqual((len(found), end), (len(keys), "END"))
        self.assert_none_refused()

    def test_one_request_for_very_many_keys(self):
        keys = [f"k{number}" for number in range(3 * QUEUE)]
        for key in keys:
            self.conn.send(f"set {key} 0 0 1 noreply\r\nx\r\n".encode())
        found, end = self.conn.values(f"get {' '.join(keys)}")
        self.assertEqual((len(found), end), (len(keys), "END"))
        self.assert_none_refused()

    def test_counters_of_many_buckets(self):
        """All buckets of some years, requested many times at once; meanwhile other clients send small requests."""
        self.other.set("small", b"x")
        rounds = 20
        self.conn.send(b"evcount none 2018010100 2021010100\r\n" * rounds)
        for _ in range(100):
            self.assertEqual(self.other.get("small"), b"x")
        for _ in range(rounds):
            self.assertGreater(len(self.conn.lines_until("END")), 26000)
        self.assert_none_refused()


class FullQueue(WireTest):
    """A server that does not reply meanwhile, and the maximum number of calls to it."""
    smoke = True
    QUEUE = 64                  # the minimum

    def test_a_get_says_so(self):
        """A key of this server is no miss. Others keep theirs, and so does this client."""
        (fast, slow), proxy = self.pool(2, config=f"server_queue = {self.QUEUE}")
        conn, watcher = self.connect(proxy), self.connect(proxy)
        here, there = self.key_on(conn, fast), self.key_on(conn, slow)

        def count(name):
            return stat(watcher, "stats upstream", f"{slow.name}:{name}")
        for key in (here, there):
            self.assertEqual(conn.set(key, b"1"), "STORED")
        slow.pause()
        sent = count("calls") + self.QUEUE
        fillers = [self.connect(proxy) for _ in range(self.QUEUE)]  # each may have one call, however full it is
        for filler in fillers:
            filler.send(f"incr {there} 1\r\n".encode())
        wait_until("its queue is full", lambda: count("calls") == sent)
        before = count("busy")
        for number, request in enumerate((f"get {here} {there}", f"gets {there} {here}", f"gat 100 {here} {there}"), 1):
            found, end = conn.values(request)
            self.assertEqual((list(found), end), ([here], "SERVER_ERROR busy"), request)
            self.assertEqual(count("busy"), before + number)
        self.assertEqual(conn.ask(f"mg {there} v"), "SERVER_ERROR busy")
        self.assertEqual(self.connect(proxy).get(here), b"1")
        slow.resume()
        replies = [int(filler.line()) for filler in fillers]
        self.assertEqual(sorted(replies), list(range(2, self.QUEUE + 2)))
        self.assertEqual(conn.get(there), b"%d" % (self.QUEUE + 1))
        self.assertEqual(count("busy"), before + 4)


class Shares(WireTest):
    """Clients that ask for as much as they may, of a server that answers nothing meanwhile. Others find room in its queue."""
    smoke = True
    QUEUE, GREEDY, HONEST = 4096, 20, 50
    COUNTS = b"evcount none 2018010100 2018032523\r\n"      # 2016 buckets

    def setUp(self):
        self.watcher = self.serve(config=f"server_queue = {self.QUEUE}\ntable_size = 4096")
        self.assertEqual(self.watcher.set("k", b"x"), "STORED")

    def count(self, name):
        return stat(self.watcher, "stats upstream", f"{self.servers[0].name}:{name}")

    def check(self, request, answers, least):
        """Many send the request again and again. `answers` reads the replies of one of them, and `least` are sent in all."""
        greedy = [self.connect(self.proxy) for _ in range(self.GREEDY)]
        honest = [self.connect(self.proxy) for _ in range(self.HONEST)]
        for conn in greedy + honest:        # known to read small values, which are not waited for
            self.assertEqual(conn.get("k"), b"x")
        with self.servers[0].process.paused():
            before = self.count("calls")
            for conn in greedy:
                conn.send(request * 10)
            wait_until("each has sent some", lambda: self.count("calls") >= before + least or self.count("busy"))
            for _ in range(20):             # turns in which more could be sent
                self.watcher.ask("mn")
            sent = self.count("calls")
            self.assertLessEqual(sent - before, self.QUEUE - self.HONEST)
            for conn in honest:
                conn.send(b"get k\r\n")
            wait_until("they are sent", lambda: self.count("calls") >= sent + self.HONEST or self.count("busy"))
            self.assertEqual(self.count("busy"), 0)
        for conn in honest:
            self.assertEqual(conn.read_values(), ({"k": (0, b"x")}, "END"))
        for conn in greedy:
            answers(conn)
        self.assertEqual(self.count("busy"), 0)

    def test_counters(self):
        def answers(conn):
            for _ in range(10):
                self.assertEqual(len(conn.lines_until("END")), 2017)
        self.check(self.COUNTS, answers, self.QUEUE // 8)

    def test_few_calls_of_counters(self):
        """The calls of another client do not wait for many of these."""
        conns = [self.connect(self.proxy) for _ in range(self.GREEDY)]
        with self.servers[0].process.paused():
            before = self.count("calls")
            for conn in conns:
                conn.send(self.COUNTS)
            wait_until("some are sent", lambda: self.count("calls") >= before + self.QUEUE // 8)
            for _ in range(20):
                self.watcher.ask("mn")
            self.assertLessEqual(self.count("calls") - before, self.QUEUE // 4)
        for conn in conns:
            self.assertEqual(len(conn.lines_until("END")), 2017)

    def test_sets_of_many_tables(self):
        """A touch of a set touches all its tables, and each of these calls is made."""
        for at in range(0, 40000, 4000):
            self.assertEqual(self.watcher.ask("sadd set " + " ".join(f"member{at + i:07}" for i in range(4000))), "STORED")
        self.assertEqual(self.watcher.ask("scompact set"), "OK")

        def touch(conns, times):
            for conn in conns:
                conn.send(b"gat 1000 set\r\n" * times)
            for conn in conns:
                for _ in range(times):
                    self.assertIn("set", conn.read_values()[0])

        def cost():
            before = self.count("calls")
            touch([self.watcher], 1)
            return self.count("calls") - before
        wait_until("no merge goes on", lambda: cost() == cost())
        each = cost()
        self.assertGreater(each, 10)
        conns = [self.connect(self.proxy) for _ in range(self.GREEDY)]
        before = self.count("calls")
        touch(conns, 100)
        self.assertEqual(self.count("busy"), 0)
        self.assertGreaterEqual(self.count("calls") - before, each * 100 * len(conns))

    def test_writes(self):
        def answers(conn):
            for _ in range(4000):
                self.assertEqual(conn.line(), b"NOT_FOUND")
        self.check(b"incr none 1\r\n" * 400, answers, self.QUEUE // 2)


class Turns(WireTest):
    """Clients whose values may be large take turns, so that few bytes are in flight from a server."""
    smoke = True
    CLIENTS, GETS, AT_ONCE = 60, 3, 16
    MEMORY = 512 << 10

    def setUp(self):
        self.watcher = self.serve([self.scripted_server() for _ in range(2)], config=f"client_memory = {self.MEMORY}")
        self.free, self.held = (self.key_on(self.watcher, server) for server in self.servers)
        for key in (self.held, self.free):
            wait_until("the servers are greeted", lambda key=key: self.watcher.values(f"get {key}")[1] == "END")
        self.holding = self.hold(self.servers[1], self.held)

    def gets(self):
        return stat(self.watcher, "stats", "cmd_get")

    def wait_in_line(self, more=b""):
        """Many new clients send requests to a server that does not reply yet. Returns them, and how many gets were sent to it."""
        before = self.gets()
        conns = [self.connect(self.proxy) for _ in range(self.CLIENTS)]
        for conn in conns:                  # none is accepted later than the turns are given
            self.assertEqual(conn.ask("mn"), "MN")
        for conn in conns:
            with contextlib.suppress(OSError):      # closed while it sends more
                conn.send(f"get {self.held}\r\n".encode() * self.GETS + more)
        wait_until("some are sent", lambda: self.gets() - before >= self.AT_ONCE)
        for _ in range(20):                 # turns in which more could be sent
            self.watcher.ask("mn")
        return conns, self.gets() - before

    def all_are_answered(self, conns):
        """When the server answers."""
        self.holding.release()
        for conn in conns:
            for _ in range(self.GETS):
                found, end = conn.read_values()
                self.assertEqual((found[self.held][1], end), (value_of(self.held.encode()), "END"))

    def test_little_is_on_the_way(self):
        conns, asked = self.wait_in_line()
        self.assertLessEqual(asked, self.AT_ONCE + self.GETS)
        self.all_are_answered(conns)

    def test_small_values_do_not_wait(self):
        """A client that is known to read small values is sent immediately, however many others wait."""
        small = self.connect(self.proxy)
        self.assertEqual(small.get(self.free), value_of(self.free.encode()))
        conns, _ = self.wait_in_line()
        before = self.gets()
        small.send(f"get {self.held}\r\n".encode() * 2)
        wait_until("it is sent", lambda: self.gets() == before + 2)
        self.all_are_answered(conns)

    def test_another_server_is_not_waited_for(self):
        conns, _ = self.wait_in_line()
        self.assertEqual(self.connect(self.proxy).get(self.free), value_of(self.free.encode()))
        self.all_are_answered(conns)

    def test_some_leave(self):
        """Later clients in the queue are served as well."""
        conns, _ = self.wait_in_line()
        for conn in conns[::2]:
            conn.close()
        self.assertEqual(self.watcher.ask("mn"), "MN")
        self.all_are_answered(conns[1::2])

    def test_some_are_closed(self):
        """Waiting clients keep their requests in memory, which counts."""
        conns, _ = self.wait_in_line(b"get key-1\r\n" * 20000)
        wait_until("memory is reclaimed", lambda: stat(self.watcher, "stats", "closed_memory_clients") > 0)
        self.holding.release()
        answered = 0
        for conn in conns:
            with contextlib.suppress(Closed, OSError):
                answered += conn.read_values()[0][self.held][1] == value_of(self.held.encode())
        self.assertGreater(answered, 0)
        self.assertEqual(self.watcher.get(self.free), value_of(self.free.encode()))

    def test_those_that_are_gone_ask_for_nothing(self):
        conns, _ = self.wait_in_line()
        for conn in conns[:-1]:
            conn.reset()
        proxy = ("0100007F", self.proxy.port)
        wait_until("they are gone", lambda: tcp_sockets(ESTABLISHED).count(proxy) == 2)
        before = self.gets()
        self.all_are_answered(conns[-1:])
        self.assertLessEqual(self.gets(), before + self.GETS)

    def test_disconnects_are_noticed(self):
        """While requests of the clients are delayed, so their input is not read."""
        conns, _ = self.wait_in_line(b"get key-1\r\n" * 200)
        for conn in conns[:-1]:
            conn.reset()
        wait_until("they are closed", lambda: stat(self.watcher, "stats", "curr_connections") == 2)
        self.all_are_answered(conns[-1:])

    def test_the_server_is_lost(self):
        """All requests that were sent fail; waiting ones are sent on the next connection, or fail like any request."""
        conns, _ = self.wait_in_line()
        self.holding.release()
        self.servers[1].drop_links()
        for conn in conns:
            for _ in range(self.GETS):
                _, end = conn.read_values()
                self.assertTrue(end == "END" or end.startswith(f"SERVER_ERROR upstream {self.servers[1].name}"), end)

    def test_shutdown(self):
        """Requests that were read and are waiting for their turn are still answered."""
        conns, asked = self.wait_in_line()
        self.assertLess(asked, self.CLIENTS * self.GETS)
        self.proxy.begin_to_end()
        self.all_are_answered(conns)
        self.proxy.stop()


class Gone(WireTest):
    """Clients that disconnect while their requests wait for a server that does not reply. They are detected even if none of their input
    is read, and at a time when those that only send no more are examined, too.
    """
    smoke = True
    KEYS, REQUESTS = 5000, 4000

    def setUp(self):
        self.path = os.path.join(self.scratch(), "s.sock")
        self.watcher = self.serve(1, "-s", self.path)
        self.assertEqual(self.watcher.set("n", b"0"), "STORED")

    def clients(self):
        return stat(self.watcher, "stats", "curr_connections")

    def calls(self):
        return stat(self.watcher, "stats upstream", f"{self.servers[0].name}:calls")

    def send(self, more=b"", first=None, address=None):
        """Returns a client that has sent a request, by default one that leaves no calls for a second one, and then `more` of them."""
        conn, before = self.connect(address or self.proxy), self.calls()
        conn.send(first or b"smembers " + b" ".join(b"%d-%d" % (before, number) for number in range(self.KEYS)) + b"\r\n")
        wait_until("it has begun", lambda: self.calls() > before)
        conn.send(more)
        return conn

    def leave(self, *conns):
        before = self.clients()
        for conn in conns:
            conn.reset()
        wait_until("they are gone", lambda: self.clients() == before - len(conns))

    def test_while_requests_wait(self):
        with self.servers[0].process.paused():
            reader, sender = self.send(b"get n\r\n"), self.send(first=b"get n\r\n")
            reader.half_close()     # sends no more, and reads its replies
            sender.half_close()
            for _ in range(20):     # turns in which that is read
                self.watcher.ask("mn")
            self.leave(self.send(b"get n\r\n"), self.send(b"set x 0 0 1\r\n1\r\n"), sender)
        self.assertEqual(reader.read_values(), ({}, "END"))
        self.assertEqual(reader.read_values(), ({"n": (0, b"0")}, "END"))
        self.assertIsNone(self.watcher.get("x"))

    def test_on_a_unix_socket(self):
        """A client that expects no replies may close its connection at once: all its requests are carried out."""
        with self.servers[0].process.paused():
            self.send(first=b"incr n 1 noreply\r\n" * self.REQUESTS, address=self.path).close()
            self.leave(self.send(b"get n\r\n"))
        wait_until("all are carried out", lambda: self.watcher.get("n") == b"%d" % self.REQUESTS)


def kernel_holds():
    """The bytes that the kernel may take from setlistd for a server that reads nothing."""
    limits = [pathlib.Path(f"/proc/sys/net/ipv4/tcp_{name}mem").read_text().split()[2] for name in "rw"]
    return sum(map(int, limits))


class Writes(WireTest):
    """Large values for a server that takes none. They wait in the input of their clients, which counts."""
    smoke = True
    SIZE = 1000000
    FEW = 30        # also calls for statistics

    def test_few_are_queued(self):
        watcher = self.serve(config="client_memory = 1073741824")

        def calls():
            return stat(watcher, "stats upstream", f"{self.servers[0].name}:calls")
        self.assertEqual(watcher.set("k", b"x"), "STORED")      # the server is up
        most = kernel_holds() // self.SIZE + self.FEW
        conns = [self.connect(self.proxy) for _ in range(2 * most)]
        with self.servers[0].process.paused():
            before = calls()
            for number, conn in enumerate(conns):
                conn.send(f"set k{number} 0 0 {self.SIZE}\r\n".encode() + b"x" * self.SIZE + b"\r\n")
            wait_until("all is read", lambda: stat(watcher, "stats", "client_bytes") >= (len(conns) - most) * self.SIZE)
            for _ in range(20):             # turns in which more could be sent
                watcher.ask("mn")
            self.assertLessEqual(calls() - before, most)
        for conn in conns:
            self.assertEqual(conn.line(), b"STORED")
        self.assertGreaterEqual(calls() - before, len(conns))


class Rewrites(WireTest):
    """Rewrites on behalf of a client count in its turns, so it waits while others use the server."""
    smoke = True
    ITEMS, ROUNDS = 20000, 20

    def setUp(self):
        self.watcher = self.serve()
        self.writer, self.other, self.reader = (self.connect(self.proxy) for _ in range(3))
        self.other.ask("rpush L " + " ".join(f"item{number:07}" for number in range(self.ITEMS)))
        self.other.set("large", LARGE)
        self.assertEqual(self.reader.get("large"), LARGE)

    def calls(self):
        return stat(self.watcher, "stats upstream", f"{self.servers[0].name}:calls")

    def is_quiet(self):
        before = self.calls()
        time.sleep(0.2)
        return self.calls() == before

    def is_sent(self, more):
        """A call to the stopped server."""
        wait_until("it is sent", lambda: self.calls() > more)

    def test_who_rewrites_waits(self):
        for number in range(self.ROUNDS):
            self.assertEqual(self.writer.ask(f"lset L {self.ITEMS // 2} x{number}"), "STORED")
        self.assertEqual(self.watcher.ask("llen L"), str(self.ITEMS))
        wait_until("nothing follows the last one", self.is_quiet)
        with self.servers[0].process.paused():
            before = self.calls()
            self.reader.send(b"get large\r\n")      # takes all the capacity of the server
            self.is_sent(before)
            self.writer.send(b"sadd a x\r\n")
            self.other.send(b"sadd b x\r\n")
            self.is_sent(before + 1)
            for _ in range(20):
                self.watcher.ask("mn")
            self.assertEqual(self.calls(), before + 2)
        self.assertEqual((self.other.line(), self.writer.line()), (b"STORED", b"STORED"))
        self.assertEqual(self.reader.read_values()[0]["large"][1], LARGE)


class Patience(WireTest):
    """A server that takes longer than request_timeout in total, but never for a single reply. On a machine that stalls for that long an
    attempt fails, so it is repeated with longer times.
    """

    def serve(self, limit, config=""):
        """A connection, and a server that is used. `limit` is request_timeout in seconds."""
        conn = super().serve([self.scripted_server()], config=f"request_timeout = {round(limit * 1000)}\n{config}", patient=False)
        wait_until("the server is used", lambda: conn.values("get key0") == ({"key0": (0, b"value of key0")}, "END"))
        return self.servers[0], conn

    def try_from(self, shortest):
        self.assertTrue(any(self.attempt(shortest * factor) for factor in (1, 1, 1, 1, 2, 2, 4, 4, 8, 8)))


class Slow(Patience):
    """A server that keeps replying is not given up, however long the last call has waited."""
    CALLS, PART = 30, 20

    def attempt(self, limit):
        server, conn = self.serve(limit)

        def answer_late(link, request):
            time.sleep(limit / self.PART)  # The test is about time: each reply takes a part of the timeout, all together take more.
            link.send(link.answer(request))
        for number in range(self.CALLS):
            server.faults[b"key%d" % number] = one_shot(answer_late)
        began = time.monotonic()
        for number in range(self.CALLS):
            conn.send(f"get key{number}\r\n".encode())
        good = all([conn.read_values()[1] == "END" for _ in range(self.CALLS)])
        self.assertTrue(not good or time.monotonic() - began > limit)
        return good

    def test_all_are_answered(self):
        self.try_from(2)


class Many(Patience):
    """A get whose next key is requested when one is answered: the server always has the same number of calls."""
    LONGEST, KEYS, PART = 30, 450, 10

    def attempt(self, limit):
        server, conn = self.serve(limit, "server_queue = 64")
        server.delay = limit / self.PART
        began = time.monotonic()
        found, end = conn.values("get " + " ".join(f"key{number}" for number in range(self.KEYS)))
        good = len(found) == self.KEYS and end == "END"
        self.assertTrue(not good or time.monotonic() - began > self.LONGEST * limit)
        return good

    def test_all_are_answered(self):
        self.try_from(0.1)


class Huge(WireTest):
    """A server that announces a value larger than any that can be stored."""
    smoke = True
    MOST = len(LARGE)

    def setUp(self):
        self.server = self.scripted_server()
        self.serve([self.server], config=f"max_value = {self.MOST}\nrequest_timeout = 600000\nretry_min = 10", patient=False)
        self.assertEqual(self.conn.get("key1"), b"value of key1")

    def lost(self):
        return stat(self.conn, "stats upstream", f"{self.server.name}:lost_connections")

    def test_is_not_waited_for(self):
        """It is not kept either, however many bytes arrive; it is counted."""
        for number, size in enumerate((1000000000, self.MOST + 1), 1):
            self.server.faults[b"key2"] = one_shot(lambda link, _, size=size: link.send(b"VA %d kkey2 f0\r\n" % size + b"x" * 100))
            self.assertEqual(self.conn.ask("get key2"), f"SERVER_ERROR upstream {self.server.name} connection lost, outcome unknown")
            self.assertEqual(self.lost(), number)
            wait_until("it is used again", lambda: self.conn.values("get key3") == ({"key3": (0, b"value of key3")}, "END"))
        self.assertEqual(self.lost(), number)

    @marks(plain=True)
    def test_is_not_kept(self):
        if built_with_sanitizer():
            self.skipTest("its memory is not the daemon's")
        before = self.proxy.peak_mib()

        def pour(link, _):
            link.send(b"VA 1000000000 kkey2 f0\r\n")
            for _ in range(256):
                link.send(bytes(1 << 20))
        self.server.faults[b"key2"] = pour
        self.assertEqual(self.conn.ask("get key2"), f"SERVER_ERROR upstream {self.server.name} connection lost, outcome unknown")
        link = self.server.link_with("key2")
        wait_until("it is closed", lambda: not link.open)
        self.assertLess(self.proxy.peak_mib(), before + 64)

    def test_the_largest_is_taken(self):
        self.server.faults[b"key2"] = large
        self.assertEqual(self.conn.values("get key2"), ({"key2": (0, LARGE)}, "END"))
        self.assertEqual(self.lost(), 0)


class Dripping(WireTest):
    """A reply that never ends, byte by byte, is given up eventually."""

    def test_is_given_up(self):
        conn = self.serve([self.scripted_server()], config="request_timeout = 300\nretry_min = 10", patient=False)
        wait_until("it is used", lambda: conn.ask("get other") == "END")

        def drip(link, _):
            link.send(b"VA 1000000 kkey1 f0\r\n")
            link.drip(b"x" * 1000000, pause=0.02)
        self.servers[0].faults[b"key1"] = one_shot(drip)
        self.assertRegex(conn.ask("get key1"), f"SERVER_ERROR upstream {self.servers[0].name} .*outcome unknown")


class Stalled(WireTest):
    """A server that reads everything and never replies is given up, however much is sent to it."""
    smoke = True

    def test_is_given_up(self):
        conn = self.serve([self.scripted_server()], config="request_timeout = 1000\nretry_min = 10", patient=False)
        other = self.connect(self.proxy)
        self.assertEqual(conn.get("key0"), b"value of key0")
        ended = threading.Event()
        self.addCleanup(ended.set)
        self.servers[0].faults[b"key1"] = one_shot(lambda link, request: ended.wait())
        conn.send(b"get key1\r\n")
        conn.sock.settimeout(0.1)
        for _ in range(600):
            other.send(b"set key2 0 0 1\r\nx\r\n")
            try:
                self.assertRegex(conn.line(), b"SERVER_ERROR upstream .* timed out, outcome unknown")
                return
            except TimeoutError:
                pass
        self.fail("it is waited for")
