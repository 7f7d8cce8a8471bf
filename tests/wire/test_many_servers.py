"""Hundreds of servers: few of them exist, and those work."""
from harness import free_port, wait_until
from stored import stats
from test_reload import REFUSED, Reloads, names

FEW = 100                   # the limit of libmemcached
MANY = 500
MOST = 1000
TOO_MANY = f"{MOST + 1} servers: at most {MOST} are allowed"
DISTRIBUTIONS = ("ketama", "consistent", "modula")


class Absent:
    """A server at an address of this host where nothing listens."""

    def __init__(self, number, port):
        self.name = f"127.1.{number // 250}.{number % 250 + 1}:{port}"


class ManyServers(Reloads):
    smoke = True

    def setUp(self):
        self.real = [self.memcached() for _ in range(2)]
        port = free_port()
        self.absent = [Absent(number, port) for number in range(MOST)]

    def config(self, count, distribution):
        """This number of servers, of which the first and the last exist."""
        servers = [self.real[0], *self.absent[:count - 2], self.real[1]]
        return f'{names(servers)}\ndistribution = "{distribution}"'

    def works(self, count):
        """Keys on servers that exist are stored; those on others fail with the reason."""
        self.assertEqual(sum(name.endswith(":state") for name in stats(self.conn, "stats upstream")), count)
        keys = [self.key_on(self.conn, server, f"k{count}") for server in self.real]
        for key in keys:
            wait_until("its server is up", lambda key=key: self.conn.set(key, b"x") == "STORED", pause=0.02)
        found, end = self.conn.values(f"get {' '.join(keys)}")
        self.assertEqual((sorted(found), end), (sorted(keys), "END"))
        lost = self.key_on(self.conn, self.absent[0])
        self.assertRegex(self.conn.ask(f"get {lost}"), f"^SERVER_ERROR upstream {self.absent[0].name} unavailable")
        return keys

    def test_too_many_at_the_start(self):
        for distribution in DISTRIBUTIONS:
            with self.assertRaisesRegex(AssertionError, TOO_MANY):
                self.setlistd([], config=self.config(MOST + 1, distribution))

    def test_reloads(self):
        """Each distribution accepts them. Too many are refused, which changes nothing."""
        self.start(self.config(FEW, "ketama"))
        first = stats(self.conn, "stats")["ring"]
        keys = self.works(FEW)
        for distribution in DISTRIBUTIONS:
            self.assertEqual(self.reload(self.config(MANY, distribution)), "OK")
            self.works(MANY)
            ring, said = stats(self.conn, "stats")["ring"], len(self.proxy.process.stderr())
            self.assertEqual(self.reload(self.config(MOST + 1, distribution)), REFUSED)
            self.assertIn(TOO_MANY, self.proxy.process.stderr()[said:])
            self.assertEqual(stats(self.conn, "stats")["ring"], ring)
        self.assertEqual(self.reload(self.config(FEW, "ketama")), "OK")
        self.assertEqual(stats(self.conn, "stats")["ring"], first)
        self.assertEqual([self.conn.get(key) for key in keys], [b"x", b"x"])

    def test_as_many_as_there_may_be(self):
        self.start(self.config(MOST, "ketama"))
        self.works(MOST)
