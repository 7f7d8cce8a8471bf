"""The placement of the parts of sets and lists: on the server of their base, so that a set depends on a single server.

PLACEMENT_LARGE=1 uses realistic sizes, with the default options, instead of a tenth of them.
"""
import os

from case_large import SMALL, LargeSetTest, names
from harness import wait_until
from stored import Servers
from tables import read_index

LARGE = bool(os.environ.get("PLACEMENT_LARGE"))
SIZES = (20, 5000, 200000) if LARGE else (20, 300, 3000)
EACH = 100 if LARGE else 10
KINDS = {"s": ("sadd", "smembers {}"), "l": ("rpush", "lrange {} 0 -1")}


class PlacementTest(LargeSetTest):
    config = None if LARGE else SMALL
    server_count = 5

    def setUp(self):
        self.servers = [self.memcached("-m", "1024") for _ in range(self.server_count)]
        self.proxies = [self.setlistd(self.servers, config=self.config) for _ in range(2)]
        self.conns = [self.connect(proxy) for proxy in self.proxies]
        self.conn, *self.others = self.conns
        self.at = Servers(self.servers, self.proxies[0])
        self.addCleanup(self.at.close)

    def fresh(self, servers=None):
        """A connection to a proxy that has nothing in memory."""
        return self.connect(self.setlistd(servers or self.servers, config=self.config))

    def load(self, each=EACH):
        """Sets and lists of all sizes: {key: members}."""
        loaded = {}
        for size in SIZES:
            for number in range(each):
                for kind, (verb, _) in KINDS.items():
                    key = f"{kind}-{size}-{number}"
                    loaded[key] = names(size, number)
                    line = b"%s %s " % (verb.encode(), key.encode())
                    pieces = [loaded[key][at:at + 5000] for at in range(0, size, 5000)]
                    self.conn.send(b"".join(line + b" ".join(piece) + b"\r\n" for piece in pieces))
                    for _ in pieces:
                        self.assertEqual(self.conn.line(), b"STORED")
                    if size > SIZES[0]:
                        self.compact(key)
        return loaded

    def state(self, key, members, conn):
        """Returns true if it is complete, false if it is missing, or the error. A partial set is a failure."""
        found, end = conn.values(KINDS[key[0]][1].format(key))
        if end != "END":
            return end
        if not found:
            return False
        self.assertEqual(sorted(found[key][1].split(b" ")), sorted(members), key)
        return True

    def parts_at(self, key):
        """Its parts: pairs of a key and the name of a server that has it."""
        return {(name, server) for name in self.stored(key).segments for server, conn in self.at.conns.items() if conn.get(name)}


class Placement(PlacementTest):
    smoke = True

    def test_parts_are_with_their_base(self):
        """`route`, get and the meta commands agree, and find all of them."""
        loaded, bases = self.load(5), set()
        for key in loaded:
            base = self.conn.ask(f"route {key}").split()[2]
            bases.add(base)
            parts = self.parts_at(key)
            self.assertEqual(len(parts) > 0, not key.split("-")[1] == "20", key)
            for part, server in parts:
                self.assertEqual(server, base, part)
                self.assertEqual(self.conn.ask(f"route {part}"), f"ROUTE {part} {base}")
                data = self.at.conns[base].get(part)
                self.assertEqual(self.conn.get(part), data)
                self.assertEqual(self.conn.ask(f"mg {part} s"), f"HD s{len(data)}")
                self.assertTrue(self.conn.ask(f"me {part}").startswith(f"ME {part} "))
        self.assertGreater(len(bases), 2)
        large = self.stored(f"s-{SIZES[-1]}-0")
        self.assertGreater(len(read_index(large.segments[large.runs[0].key])), 3)


class SecondCopies(PlacementTest):
    """Each item of a second copy is one server further than that of the first one: no other key than that of the set matters."""
    smoke = True
    server_count = 12

    def place(self, key, conn=None):
        words = (conn or self.conn).ask(f"route {key}").split()
        self.assertEqual((words[:2], len(words)), (["ROUTE", key], 3))
        return words[2]

    def test_places(self):
        for number in range(30):
            key = f"k{number}"
            first = [self.place(key), *(self.place(f"{key}.t{digit}k0zq81mfwx") for digit in range(10))]
            second = [self.place(f"{key}.~copy"), *(self.place(f"{key}.~copy.t{digit}k0zq81mfwx") for digit in range(10))]
            self.assertEqual(first[0], first[1])
            self.assertEqual(second[0], second[1])
            self.assertEqual(second[1:-1], first[2:])
            self.assertEqual(len({*first, *second}), 11, "the last place is a server of its own")

    def test_few_servers(self):
        """The places go round the ring, and both copies of an item are on different servers."""
        conn = self.fresh(self.servers[:3])
        for digit in range(10):
            for part in ("", f".t{digit}k0zq81mfwx", f".s{digit}k0zq81mfwx.1.1"):
                self.assertNotEqual(self.place(f"k{part}", conn), self.place(f"k.~copy{part}", conn))
            self.assertEqual(self.place(f"k.~copy.t{digit}k0zq81mfwx", conn), self.place(f"k.t{(digit + 1) % 3}k0zq81mfwx", conn))


class Spread(PlacementTest):
    """Parts on three servers: a set or list is there as long as these are. The parts of each are where they were, whatever the rule."""
    server_count = 6
    more = 'collection "" { spread = 3 }\ncollection "l" { type = "list" spread = 3 }'

    def setUp(self):
        super().setUp()
        self.conn = self.connect(self.setlistd(self.servers, config=f"{self.config or ''}\n{self.more}"))

    def test_a_server_dies_and_comes_back_empty(self):
        loaded, places = self.load(), {}
        for key in loaded:
            parts = self.parts_at(key)
            places[key] = {server for _, server in parts} | {self.conn.ask(f"route {key}").split()[2]}
            for part, server in parts:
                self.assertEqual(self.conn.ask(f"route {part}"), f"ROUTE {part} {server}")
        self.assertEqual(max(map(len, places.values())), 3)
        self.assertEqual({len(places[key]) for key in loaded if key.split("-")[1] == "20"}, {1})
        victim = next(server for server in self.servers if server.name in places[f"s-{SIZES[-1]}-0"])
        lost = {key for key in loaded if victim.name in places[key]}
        self.assertLess(len(lost), len(loaded))
        known = self.connect(self.setlistd(self.servers, config=self.config))
        for key, members in loaded.items():
            self.assertIs(self.state(key, members, known), True, f"{key} through a proxy without the rule")
        victim.kill()
        fresh = self.fresh()
        for key, members in loaded.items():
            state = self.state(key, members, fresh)
            self.assertTrue("SERVER_ERROR" in state if key in lost else state is True, key)
        victim.start()
        for conn in (self.fresh(), self.conn, self.others[0]):
            wait_until("the server is used again", lambda: conn.ask(f"get {self.key_on(conn, victim)}") == "END")
            for key, members in loaded.items():
                self.assertIs(self.state(key, members, conn), key not in lost, key)
        for key in lost:
            self.conn.ask(f"delete {key}")
            self.assertEqual(self.conn.ask(f"sset {key} a"), "STORED")
            self.assertIs(self.state(key, [b"a"], self.others[0]), True)


class OtherServers(PlacementTest):
    """A proxy was reloaded to one server more than the others have: keys that it does not find exist for the others."""
    smoke = True

    def reloaded(self):
        proxy = self.setlistd([], config=self.config_of(self.servers))
        conn = self.connect(proxy)
        proxy.configure(self.config_of([*self.servers, self.memcached()]))
        wait_until("it has the new servers", lambda: len(self.servers_of(conn)) == len(self.servers) + 1)
        return conn

    def config_of(self, servers):
        return "\n".join([self.config or "", "servers = {" + ", ".join(f'"{server.name}"' for server in servers) + "}"])

    def servers_of(self, conn):
        return {conn.ask(f"route {number}").split()[2] for number in range(1000)}

    def test_reading_destroys_nothing(self):
        """Not even a list of 0.1.0, whose base may have the same place for both, while its segments do not."""
        loaded = self.load(20)
        for key in loaded:
            if key[0] == "l" and key.split("-")[1] != "20":
                self.make_old(key)
        moved, missing = self.read_through_other(loaded)
        self.assertEqual({key[0] for key in missing - moved}, {"l"})

    def test_reading_destroys_no_spread_set(self):
        self.conn = self.connect(self.setlistd(self.servers, config=f"{self.config or ''}\n{Spread.more}"))
        moved, missing = self.read_through_other(self.load(20))
        self.assertEqual({key[0] for key in missing - moved}, {"s", "l"})

    def read_through_other(self, loaded):
        """Returns the keys whose base has moved for the other proxy, and the keys that are missing there."""
        bases = {key: self.at.get(key) for key in loaded}
        other, missing = self.reloaded(), set()
        for key, members in loaded.items():
            one = other.ask(b"sismember %s %s" % (key.encode(), members[0]))
            if self.state(key, members, other) is False or one == "NOT_FOUND":
                missing.add(key)
            other.ask(f"scard {key}")
            other.values(f"lindex {key} -1")
        self.assertEqual({key: self.at.get(key) for key in loaded}, bases)
        for conn in (self.fresh(), self.conn):
            for key, members in loaded.items():
                self.assertIs(self.state(key, members, conn), True, key)
        moved = {key for key in loaded if other.ask(f"route {key}") != self.conn.ask(f"route {key}")}
        self.assertLess(moved, missing, "some are missing for the other proxy though their bases have not moved")
        return moved, missing


class Fate(PlacementTest):
    smoke = True
    server_count = 10

    def test_a_server_dies_and_comes_back_empty(self):
        """Sets with a base on that server are missing; all others are complete, whether a proxy has them in memory or not."""
        loaded = self.load()
        victim = next(server for server in self.servers if self.conn.ask(f"route {min(loaded)}").endswith(f" {server.name}"))
        there = {key for key in loaded if self.conn.ask(f"route {key}").endswith(f" {victim.name}")}
        self.assertLess(len(there), len(loaded) / 2)
        victim.kill()
        for conn in (self.conn, self.fresh()):
            for key, members in loaded.items():
                state = self.state(key, members, conn)
                if key in there:
                    self.assertIn("SERVER_ERROR", state)
                else:
                    self.assertIs(state, True, key)
        victim.start()
        for conn in (self.fresh(), self.others[0]):
            wait_until("the server is used again", lambda: conn.ask(f"get {next(iter(there))}") == "END")
            for key, members in loaded.items():
                self.assertIs(self.state(key, members, conn), key not in there, key)

    def test_a_server_more(self):
        """From ten servers to eleven: the sets whose base has another place are missing, all others are whole."""
        loaded = self.load()
        more = self.fresh([*self.servers, self.memcached()])
        moved = {key for key in loaded if self.conn.ask(f"route {key}").split()[2] != more.ask(f"route {key}").split()[2]}
        self.assertLess(len(moved), len(loaded) / 2)
        for key, members in loaded.items():
            self.assertIs(self.state(key, members, more), key not in moved, key)
