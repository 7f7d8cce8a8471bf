"""Reads of sets: random members, algebra, and the cache, which must never have a visible effect."""
import collections
import random

from case import marks
from case_large import SMALL, LargeSetTest, names
from harness import built_with_sanitizer, wait_until
from stored import counter
from test_concurrency import drain


class RandomMembers(LargeSetTest):
    smoke = True

    def test_srandmember_is_random(self):
        """Each of ten members is returned about as often as the others, in a small set and in one with tables."""
        self.conn.ask("sadd small " + " ".join("abcdefghij"))
        self.large_set()
        for key, size, draws in (("small", 10, 1), ("small", 10, 3), ("k", 1000, 100)):
            times = {}
            for _ in range(1000):
                for member in self.listed(f"srandmember {key} {draws}"):
                    times[member] = times.get(member, 0) + 1
            expected = 1000 * draws / size
            self.assertEqual(len(times), size)
            self.assertGreater(min(times.values()), expected * 0.4, key)
            self.assertLess(max(times.values()), expected * 1.8, key)

    def layers(self):
        """A set of two runs, a log after them and members in front: {name of a layer: its members}, and removed members."""
        members = self.large_set()
        self.add_run("srem", "k", members[:100] + names(60, 9000))
        self.add_run("sadd", "k", names(180, 5000))
        self.write("sadd", "k", names(40, 7000))
        self.write("srem", "k", members[100:110] + names(5, 5000))
        self.assertEqual(self.conn.ask(b"lpush k " + b" ".join(names(30, 8000))), "STORED")
        stored = self.stored("k")
        self.assertEqual((len(stored.runs), bool(stored.head), bool(stored.log)), (3, True, True))
        layers = {"oldest": members[110:], "newer": names(175, 5005), "log": names(40, 7000), "front": names(30, 8000)}
        self.assertEqual(stored.members(), set().union(*layers.values()))
        return layers

    def test_srandmember_over_layers(self):
        """Each member is equally likely, in whichever layer, and a removed member is never returned, wherever it was removed."""
        layers = self.layers()
        whole = set().union(*layers.values())
        times, rounds, draws = collections.Counter(), 3000, 10
        self.conn.send(b"srandmember k %d\r\n" % draws * rounds)
        for _ in range(rounds):
            found, _ = self.conn.read_values()
            taken = found["k"][1].split(b" ")
            self.assertEqual((len(taken), len(set(taken))), (draws, draws))
            times.update(taken)
        self.assertEqual(set(times), whole)
        for name, members in layers.items():
            came, expected = sum(times[member] for member in members), rounds * draws * len(members) / len(whole)
            # Eight standard deviations, more or less.
            self.assertLess(abs(came - expected), 8 * expected ** 0.5, f"{name}: {came} came, {expected} are expected")

    def test_spop_over_layers(self):
        """All members, each once, and then none."""
        layers = self.layers()
        taken = []
        for conn in self.conns * 20:
            taken += self.listed("spop k 25", conn)
        while some := self.listed("spop k 100"):
            taken += some
        self.assertEqual(sorted(taken), sorted(set().union(*layers.values())))
        for conn in self.conns:
            self.assertEqual((conn.ask("scard k"), self.read("k", conn)), ("0", set()))

    def test_everybody_pops(self):
        """Each member is returned to one client only, including those that are added meanwhile."""
        for key, count, more in (("small", 400, []), ("large", 2000, names(1500, 5000))):
            members = names(count)
            self.write("sadd", key, members)
            conns = [self.connect(self.proxies[i % 2]) for i in range(8)]
            taken = drain(conns, lambda dice: f"spop {key} {dice.randrange(1, 20)}",
                          lambda: [self.write("sadd", key, more[i:i + 10]) for i in range(0, len(more), 10)])
            self.assertEqual(sorted(taken), sorted(members + more), key)
            for conn in self.conns:
                self.assertEqual(conn.ask(f"scard {key}"), "0")

    def test_spop_keeps_time_and_flags(self):
        self.assertEqual(self.at.of("k").set("k", b"+a +b +c ", 9, 300), "STORED")
        self.assertEqual(len(self.listed("spop k 2")), 2)
        self.assertEqual(self.at.meta("k", "f")["f"], "9")
        self.assert_ttl("k", 300)


class AlgebraTest(LargeSetTest):
    OPERATIONS = {"sunion": set.union, "sinter": set.intersection, "sdiff": set.difference}

    def expect(self, sets, keys, conn=None):
        """Each of the three, of these keys, as Python's sets have it; a key that is not in `sets` is missing."""
        operands = [sets.get(key, set()) for key in keys]
        for verb, act in self.OPERATIONS.items():
            command = f"{verb} {' '.join(keys)}"
            found, end = (conn or self.conn).values(command)
            self.assertEqual((list(found), end), ([verb], "END"), command[:100])
            flags, data = found[verb]
            members = data.split(b" ") if data else []
            self.assertEqual(len(members), len(set(members)), f"{command[:100]}: a member twice")
            self.assertEqual((flags, set(members)), (0, act(*operands)), command[:100])
            for limit in (0, 1, len(members) // 2, len(members), len(members) + 1):
                reply = (conn or self.conn).ask(f"{verb}card {len(keys)} {' '.join(keys)} limit {limit}")
                self.assertEqual(reply, str(min(limit or len(members), len(members))), f"{verb}card {limit} {command[:100]}")


class Algebra(AlgebraTest):
    smoke = True

    def test_random_sets(self):
        """On both servers, of all sizes, with missing and empty ones, and keys named twice."""
        dice, sets = random.Random(5), {}
        for key in [key for server in self.servers for key in self.keys_on(self.conn, server, 6, "s")]:
            members = dice.sample(names(1500), dice.choice((0, 1, 5, 50, 700)))
            sets[key] = set(members)
            self.assertEqual(self.conn.ask(f"sset {key}"), "STORED")
            if members:
                self.write("sadd", key, members)
        keys = [*sets, "missing", "missing-too"]
        for _ in range(60):
            self.expect(sets, [dice.choice(keys) for _ in range(dice.randrange(1, 6))], dice.choice(self.conns))
        self.expect(sets, keys)

    def test_many_keys(self):
        sets = {}
        for i in range(500):
            sets[f"many-{i}"] = {b"%d" % i, b"%d" % (i + 1), b"all"}
        self.conn.send(b"".join(b"sadd %s %s\r\n" % (key.encode(), b" ".join(members)) for key, members in sets.items()))
        for _ in sets:
            self.assertEqual(self.conn.line(), b"STORED")
        self.expect(sets, list(sets))

    def test_a_server_is_down(self):
        keys = [self.key_on(self.conn, server) for server in self.servers]
        for key in keys:
            self.assertEqual(self.conn.ask(f"sadd {key} m"), "STORED")
        self.servers[1].kill()
        for verb in self.OPERATIONS:
            self.assert_error(f"{verb} {keys[0]} {keys[1]}", f"SERVER_ERROR upstream {self.servers[1].name} .*")
        self.expect({keys[0]: {b"m"}}, [keys[0]])


class LargeAlgebra(AlgebraTest):
    smoke = True
    config = None

    @marks(smoke=False)
    def test_large_sets(self):
        """200,000 and 100,000 members, on different servers."""
        one, two = (self.key_on(self.conn, server) for server in self.servers)
        sets = {one: names(200000), two: names(100000, 150000), "few": names(10, 149995)}
        for key, members in sets.items():
            self.write("sadd", key, members)
        self.write("srem", two, names(1000, 199000))
        sets = {key: set(members) for key, members in sets.items()}
        sets[two] -= set(names(1000, 199000))
        for keys in ((one, two), (two, one), ("few", one, two), (one, "missing", two)):
            self.expect(sets, keys)

    @marks(smoke=False, plain=True)
    def test_named_very_often(self):
        """A set of 100,000 members, 8,000 times: it is read once, and one result is held."""
        if built_with_sanitizer():
            self.skipTest("sanitizers take memory of their own")
        self.write("sadd", "s", names(100000))
        before = self.proxies[0].peak_mib()
        for verb in ("sunion", "sinter"):
            found, _ = self.conn.values(verb + " s" * 8000)
            self.assertTrue(sorted(found[verb][1].split()) == sorted(names(100000)), verb)
        found, _ = self.conn.values("sdiff" + " s" * 8000)
        self.assertEqual(found["sdiff"][1], b"")
        self.assertLess(self.proxies[0].peak_mib() - before, 64)

    def test_a_result_that_is_too_large(self):
        proxy = self.setlistd(self.servers, config="max_result = 65536")
        conn = self.connect(proxy)
        sets = {key: set(members) for key, members in (("s", names(10000)), ("few", names(10)))}
        for key, members in sets.items():
            self.write("sadd", key, sorted(members))
        for command in ("sunion few s", "sinter s s", "sdiff s few"):
            self.assertEqual(conn.ask(command), "SERVER_ERROR result too large", command)
            verb, keys = command.split(" ", 1)
            self.assertIn(int(conn.ask(f"{verb}card {len(keys.split())} {keys}")), (9990, 10000))
        found, _ = conn.values("sinter s few")
        self.assertEqual(set(found["sinter"][1].split()), sets["few"])


class Cache(LargeSetTest):
    """The cache saves work, and has no other visible effect."""
    smoke = True
    READS = 50

    def hits(self, conn=None):
        return counter(conn or self.conn, "cache_hits")

    def test_hits(self):
        for key, members in (("few", names(100)), ("k", names(1000))):
            self.write("sadd", key, members)
            self.compact(key)
            self.assert_members(key, members)
            before = self.hits()
            for _ in range(self.READS):
                self.assert_members(key, members)
            self.assertGreaterEqual(self.hits() - before, self.READS - 1, key)
        self.assertGreater(counter(self.conn, "cache_bytes"), 12000)

    def test_asking_does_not_transfer(self):
        members = self.large_set(count=5000)
        self.assert_members("k", members)
        before = self.at.bytes_sent()
        for i in range(self.READS):
            self.assertEqual(self.conn.ask("scard k"), "5000")
            self.assertEqual(self.conn.ask(b"sismember k %s" % members[i]), "1")
            self.assertEqual(self.conn.ask(b"smismember k x %s" % members[i]), "0 1")
            self.assert_members("k", members)
        # A line for the base and one for each segment, not their bytes.
        self.assertLess((self.at.bytes_sent() - before) / (4 * self.READS), sum(map(len, members)) / 50)

    def changes(self):
        """Commands that change a set, each with the resulting members."""
        stock = self.at.of("k")
        other = self.others[0]

        def append(log):
            stock.send(b"append k 0 0 %d\r\n%s\r\n" % (len(log), log))
            self.assertEqual(stock.line(), b"STORED")
        yield lambda: other.ask("sadd k new"), lambda was: was | {b"new"}
        yield lambda: other.ask("srem k new"), lambda was: was - {b"new"}
        yield lambda: self.conn.ask("sadd k mine"), lambda was: was | {b"mine"}
        yield lambda: append(b"+stock "), lambda was: was | {b"stock"}
        yield lambda: append(b"-stock "), lambda was: was - {b"stock"}
        yield lambda: other.ask("scompact k"), lambda was: was
        yield lambda: other.ask("sset k " + "x" * 200 + " y"), lambda was: {b"x" * 200, b"y"}
        yield lambda: stock.set("k", b"+" + b"z" * 250 + b" -y "), lambda was: {b"z" * 250}
        yield lambda: stock.ask("delete k"), lambda was: None
        yield lambda: other.ask("sadd k again"), lambda was: {b"again"}
        yield lambda: stock.ask("flush_all"), lambda was: None

    def test_every_change_is_seen_at_once(self):
        for start in (names(100), names(1000)):
            self.assertEqual(self.conn.ask(b"sset k " + b" ".join(start)), "STORED")
            expected = set(start)
            for act, after in self.changes():
                for conn in self.conns:
                    self.read("k", conn), self.read("k", conn)
                act()
                expected = after(expected)
                for conn in self.conns:
                    self.assertEqual(self.read("k", conn), expected)
                    card = "NOT_FOUND" if expected is None else str(len(expected))
                    self.assertEqual(conn.ask("scard k"), card)

    def test_expiry(self):
        """A cached set ends with its item."""
        self.write("sadd", "k", names(300))
        self.assert_members("k", names(300))
        self.assertEqual(self.at.of("k").ask("touch k -1"), "TOUCHED")
        self.assert_missing("k")

    def test_cas_ids_start_again(self):
        """After a restart of memcached another value may have the cas id that a cached one had."""
        server = self.servers[0]
        key = self.key_on(self.conn, server)
        self.write("sadd", key, names(100))
        self.assert_members(key, names(100))
        self.assert_members(key, names(100))
        cas = int(self.at.meta(key, "c")["c"])
        server.kill()
        server.start()
        stock = self.connect(server)
        data = b"".join(b"+%s " % name for name in names(100, 5000))
        for _ in range(cas):
            self.assertEqual(stock.set(key, data), "STORED")
            if int(stock.values(f"gets {key}")[0][key][2]) == cas:
                break
        else:
            self.fail("the cas id did not come again")
        # the proxy is back at that server after a short pause
        wait_until("it is usable", lambda: self.conn.ask(f"sismember {key} x") == "0", pause=0.02)
        self.assert_members(key, names(100, 5000))

    def test_small_budget(self):
        """More sets than there is room for: all are right, and the memory stays within it."""
        budget = 200000
        conn = self.connect(self.setlistd(self.servers, config=f"{SMALL}\ncache_memory = {budget}"))
        sets = {f"s{i}": names(400, 1000 * i) for i in range(60)}
        for key, members in sets.items():
            self.write("sadd", key, members, conn)
        for _ in range(3):
            for key, members in sets.items():
                self.assert_members(key, members, conn)
                self.assertLessEqual(counter(conn, "cache_bytes"), budget)
        self.assertGreater(counter(conn, "cache_bytes"), budget / 2)

    def test_no_cache(self):
        conn = self.connect(self.setlistd(self.servers, config=f"{SMALL}\ncache_memory = 0"))
        self.write("sadd", "k", names(1000), conn)
        for _ in range(3):
            self.assert_members("k", names(1000), conn)
            self.assertEqual(conn.ask("scard k"), "1000")
        self.assertEqual((counter(conn, "cache_hits"), counter(conn, "cache_bytes")), (0, 0))
