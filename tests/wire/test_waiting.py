"""Clients that wait for elements of lists: each element is returned once, in the order of the waiting clients, and none is lost."""
import threading

from case import WireTest, marks
from harness import PATIENCE, wait_until
from stored import counter, stat


class Waiting(WireTest):
    """Two setlistd, one of two threads between which clients are shared out, on one memcached."""
    CONFIG = "threads = 2\nthread_load = 0\ncommands = \"q|\"\n"

    def setUp(self):
        super().setUp()
        self.serve(1, config=self.CONFIG)
        self.other = self.connect(self.setlistd(self.servers))

    def waits(self, *lines, conn=None, others=0):
        """Returns a connection that waits, a new one if none is given, next to this number of others."""
        conn = conn or self.connect(self.proxy)
        wait_until("none but these wait", lambda: self.waiting() == others)
        conn.send("".join(f"{line}\r\n" for line in lines).encode())
        wait_until("it waits", lambda: self.waiting() == others + 1)
        return conn

    def waiting(self):
        return counter(self.conn, "waiting_clients")

    def assert_gets(self, conn, key, element):
        self.assertEqual(conn.read_values(), ({key: (0, element)}, "END"))


class Lines(Waiting):
    smoke = True

    def test_nothing_comes(self):
        for command in "blpop 0.05 none", "brpop 0.001 none other", "get q|blpop|0.05|none", "blmpop 0.05 2 left none other":
            self.assertEqual(self.conn.values(command), ({}, "END"), command)
        self.assertEqual(self.waiting(), 0)

    def test_there_is_something(self):
        self.conn.ask("rpush b 1 2 3")
        self.assertEqual(self.conn.values("blpop 0 a b"), ({"b": (0, b"1")}, "END"))
        self.assertEqual(self.conn.values("brpop 0 b a"), ({"b": (0, b"3")}, "END"))
        self.assertEqual(self.conn.values("get q|brpop|0|b"), ({"q|brpop|0|b": (0, b"2")}, "END"))

    def test_several_elements(self):
        self.conn.ask("rpush b 1 2 3")
        self.assertEqual(self.conn.values("blmpop 0 2 right a b"), ({"b": (0, b"3 2")}, "END"))
        self.assertEqual(self.conn.values("blmpop 0 9 left b a"), ({"b": (0, b"1")}, "END"))
        conn = self.waits("blmpop 0 2 left a b")
        self.assertEqual(self.conn.ask("rpush b x y z"), "STORED")
        self.assert_gets(conn, "b", b"x y")
        conn = self.waits("get q|blmpop|0|5|right|a|c")
        self.assertEqual(self.conn.ask("rpush a v w"), "STORED")
        self.assert_gets(conn, "q|blmpop|0|5|right|a|c", b"w\nv")

    def test_a_push_through_each(self):
        """The same thread or another one, another proxy, and memcached itself."""
        base = self.connect(self.servers[0])
        pushes = [(conn.ask, "rpush k x") for conn in (self.connect(self.proxy), self.connect(self.proxy), self.other)]
        for ask, line in pushes:
            conn = self.waits("blpop 0 none k")
            self.assertEqual(ask(line), "STORED")
            self.assert_gets(conn, "k", b"x")
        conn = self.waits("blpop 0 k")
        self.assertEqual(base.ask("append k 0 0 3\r\n+y "), "STORED")
        self.assert_gets(conn, "k", b"y")

    def test_as_a_key(self):
        conn = self.waits("get q|blpop|0|k")
        self.other.ask("rpush k x")
        self.assert_gets(conn, "q|blpop|0|k", b"x")


class OneThread(Waiting):
    """First come, first served, in each thread."""
    smoke = True
    CONFIG = "commands = \"q|\"\n"

    def test_in_the_order_of_the_line(self):
        conns = [self.waits("blpop 0 k", others=others) for others in range(6)]
        self.other.ask("rpush k 0 1 2 3 4 5")
        for number, conn in enumerate(conns):
            self.assert_gets(conn, "k", str(number).encode())

    def test_who_comes_later_does_not_pass(self):
        """Although no client waits for its first list."""
        first = self.waits("blpop 0 k")
        second = self.waits("blpop 0 free k", others=1)
        self.other.ask("rpush k 0")
        self.assert_gets(first, "k", b"0")
        self.other.ask("rpush k 1")
        self.assert_gets(second, "k", b"1")

    def test_a_move(self):
        conn = self.waits("blmove 0 k mine left right")
        self.other.ask("rpush k 0 1")
        self.assert_gets(conn, "k", b"0")
        self.assertEqual(self.conn.values("lrange mine 0 -1"), ({"mine": (0, b"0")}, "END"))
        self.assertEqual(self.conn.values("blmove 0.001 none mine left right"), ({}, "END"))
        self.assertTrue(self.conn.ask("blmove 1 k mine up right").startswith("CLIENT_ERROR "))

    def test_a_move_to_what_is_no_list(self):
        """Nothing is removed: not immediately, and not when the target becomes a plain item while the client waits."""
        moves = "blmove 0 k mine right left", "get q|blmove|0|k|mine|right|left"
        for plain in b"nolist", b"9":
            for line in moves:
                self.conn.set("mine", plain)
                self.conn.ask("rpush k x")
                self.assertEqual(self.conn.ask(line), "CLIENT_ERROR value is not a collection", line)
                self.assertEqual(self.conn.ask("delete k"), "DELETED")
                for before in None, plain:
                    self.conn.ask("delete mine") if before is None else self.conn.set("mine", before)
                    conn = self.waits(line)
                    self.conn.set("mine", plain)
                    self.assertEqual(self.other.ask("rpush k x"), "STORED")
                    self.assertEqual(conn.line(), b"CLIENT_ERROR value is not a collection", line)
                    self.assertEqual(self.conn.get("mine"), plain)
                    self.assertEqual(self.conn.values("lpop k 2"), ({"k": (0, b"x")}, "END"))

    def test_the_next_one_gets_it(self):
        """The element that cannot be moved is that of the next client in the line."""
        self.conn.set("mine", b"nolist")
        first, second = self.waits("blmove 0 k mine left right"), self.waits("blpop 0 k", others=1)
        self.other.ask("rpush k x")
        self.assertEqual(first.line(), b"CLIENT_ERROR value is not a collection")
        self.assert_gets(second, "k", b"x")

    def test_later_requests_wait(self):
        conn = self.waits("blpop 0 k", "rpush l x", "llen l")
        self.assertEqual(self.conn.ask("llen l"), "NOT_FOUND")
        self.conn.ask("rpush k 0")
        self.assert_gets(conn, "k", b"0")
        self.assertEqual([conn.line(), conn.line()], [b"STORED", b"1"])

    def test_who_has_gone_takes_nothing(self):
        gone, stays = self.waits("blpop 0 k"), self.waits("blpop 0 k", others=1)
        gone.close()
        wait_until("it has left", lambda: self.waiting() == 1)
        self.other.ask("rpush k 0")
        self.assert_gets(stays, "k", b"0")
        self.waits("blpop 0 k", conn=stays).close()
        wait_until("it has left", lambda: self.waiting() == 0)
        # Later requests have not been read.
        for end in ("close", "reset", "half_close"):
            getattr(self.waits("blpop 0 k", "blpop 0 k", "get k"), end)()
            wait_until("it has left", lambda: self.waiting() == 0)
        self.other.ask("rpush k 1")
        self.assertEqual(self.conn.ask("llen k"), "1")

    def test_an_error_ends_it(self):
        self.conn.ask("set s 0 0 10\r\n@set.1 +a ")
        self.assertEqual(self.conn.ask("blpop 0 none s"), "CLIENT_ERROR value is a set, not a list")

    def test_wrong_forms(self):
        for line, reply in (("blpop", "CLIENT_ERROR usage: blpop <seconds> <key>+"), ("blpop 1", "CLIENT_ERROR usage: blpop <seconds> <key>+"),
                            ("blpop x k", "CLIENT_ERROR invalid timeout"), ("brpop -1 k", "CLIENT_ERROR invalid timeout"),
                            ("blmpop 1 0 left k", "CLIENT_ERROR invalid count"), ("brpop 1.2345 k", "CLIENT_ERROR invalid timeout"), ("brpop 1. k", "CLIENT_ERROR invalid timeout")):
            self.assertEqual(self.conn.ask(line), reply, line)


class Bounds(Waiting):
    smoke = True
    CONFIG = "max_waiting = 2\ncommands = \"q|\"\n"

    def test_too_many(self):
        conns = [self.waits("blpop 0 k"), self.waits("blpop 0 k", others=1)]
        self.assertEqual(self.connect(self.proxy).ask("blpop 0 k"), "SERVER_ERROR too many waiting clients")
        self.assertEqual(self.connect(self.proxy).ask("get q|blmove|0|k|l|left|right"), "SERVER_ERROR too many waiting clients")
        self.conn.ask("rpush k 0 1")
        for number, conn in enumerate(conns):
            self.assert_gets(conn, "k", str(number).encode())

    def test_a_reload_of_rules(self):
        conn = self.waits("blpop 0 k")
        self.proxy.configure("max_waiting = 7\n")
        self.assertEqual(conn.read_values(), ({}, "END"))
        conn = self.waits("blpop 0 k", conn=conn)
        self.conn.ask("rpush k x")
        self.assert_gets(conn, "k", b"x")

    def test_keys_count(self):
        """Not clients: the second has one key too many. What one leaves is free for others."""
        first = self.waits("blpop 0 k")
        self.assertEqual(self.connect(self.proxy).ask("brpop 0 k l"), "SERVER_ERROR too many waiting clients")
        self.conn.ask("rpush k x")
        self.assert_gets(first, "k", b"x")
        second = self.waits("brpop 0 k l")
        self.assertEqual(self.connect(self.proxy).ask("blpop 0 k"), "SERVER_ERROR too many waiting clients")
        self.conn.ask("rpush l y")
        self.assert_gets(second, "l", b"y")

    @marks(smoke=False)
    def test_setlistd_stops(self):
        conn = self.waits("blpop 0 k")
        self.proxy.process.child.terminate()
        self.assertEqual(conn.read_values(), ({}, "END"))
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), 0)


class BoundOfNone(Waiting):
    smoke = True
    CONFIG = "max_waiting = 0\n"

    def test_none(self):
        """Even then, an existing element is returned."""
        for command in "blpop 0 k", "brpop 0.1 k l", "blmove 0 k l left right":
            self.assertEqual(self.connect(self.proxy).ask(command), "SERVER_ERROR too many waiting clients", command)
        self.conn.ask("rpush k 0")
        self.assertEqual(self.connect(self.proxy).values("blpop 0 k"), ({"k": (0, b"0")}, "END"))


class BoundOfKeys(Waiting):
    """A command has at most a thousand keys."""
    smoke = True
    CONFIG = "max_waiting = 1000\nthreads = 2\nthread_load = 0\n"

    @staticmethod
    def request(count):
        return " ".join(["blpop 0"] + [f"k{number}" for number in range(count)])

    def test_one_more_is_refused(self):
        self.conn.ask("rpush k3 x")
        for count in 1001, 65000:
            self.assertEqual(self.connect(self.proxy).ask(self.request(count)), "CLIENT_ERROR too many keys")
        self.assertEqual(self.conn.ask("llen k3"), "1")

    def test_all_of_them(self):
        """They wait for the last one too, and make room for as many."""
        for _ in range(2):
            conn = self.waits(self.request(1000))
            self.assertEqual(self.connect(self.proxy).ask("blpop 0 k"), "SERVER_ERROR too many waiting clients")
            self.assertEqual(self.other.ask("rpush k999 x"), "STORED")
            self.assert_gets(conn, "k999", b"x")

    def test_the_rest_goes_on(self):
        """Clients with far too many keys are refused, and cause no reads."""
        conns = [self.connect(self.proxy) for _ in range(3)]
        base = self.connect(self.servers[0])
        calls = stat(base, "stats", "cmd_get")
        for conn in conns:
            conn.send(self.request(65000).encode() + b"\r\n")
        self.assertEqual(self.conn.values("get a"), ({}, "END"))
        for conn in conns:
            self.assertEqual(conn.line(), b"CLIENT_ERROR too many keys")
        self.assertEqual(self.waiting(), 0)
        self.assertEqual(stat(base, "stats", "cmd_get"), calls + 1)


class BoundOfThreads(Waiting):
    smoke = True
    CONFIG = "threads = 3\nthread_load = 0\nmax_waiting = 4\n"

    def test_all_together(self):
        """In whichever threads they are."""
        conns = [self.waits("blpop 0 k", others=others) for others in range(4)]
        more = [self.connect(self.proxy) for _ in range(6)]
        for conn in more:
            self.assertEqual(conn.ask("blpop 0 k"), "SERVER_ERROR too many waiting clients")
        conns.pop().close()
        wait_until("it has left", lambda: self.waiting() == 3)
        self.waits("blpop 0 k", conn=more[0], others=3)
        self.assertEqual(more[1].ask("blpop 0 k"), "SERVER_ERROR too many waiting clients")


class Queue(Waiting):
    """Many clients that wait at two proxies, and many that push."""
    smoke = True
    CONFIG = "threads = 2\nthread_load = 0\n"
    WORKERS, JOBS = 8, 300

    def work(self, conn, taken):
        """Pops jobs until it receives a stop. Elements that are not jobs are recorded too."""
        job = b""
        while job.isdigit() or not job:
            values, line = conn.values("blpop 0 jobs urgent")
            job = next((value for _, value in values.values()), line.encode())
            taken.append(job)

    def test_each_job_is_done_once(self):
        taken = [[] for _ in range(self.WORKERS)]
        peers = [self.proxy, self.processes[-1]]
        threads = [threading.Thread(target=self.work, args=(self.connect(peers[i % 2]), taken[i])) for i in range(self.WORKERS)]
        for thread in threads:
            thread.start()
        pushers = [self.connect(peer) for peer in peers for _ in range(2)]
        for job in range(self.JOBS):
            self.assertEqual(pushers[job % 4].ask(f"{'rl'[job % 2]}push {('jobs', 'urgent')[job % 3 == 0]} {job}"), "STORED")
        for _ in threads:
            self.assertEqual(self.conn.ask("rpush jobs stop"), "STORED")
        for thread in threads:
            thread.join(PATIENCE)
            self.assertFalse(thread.is_alive())
        self.assertEqual([jobs.pop() for jobs in taken], [b"stop"] * self.WORKERS)
        rest = [job for key in ("jobs", "urgent") for job in self.conn.values(f"lrange {key} 0 -1")[0].get(key, (0, b""))[1].split()]
        self.assertEqual(sorted(int(job) for jobs in taken for job in jobs) + sorted(int(job) for job in rest), sorted(range(self.JOBS)))
