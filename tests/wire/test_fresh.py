"""Rules with fresh_for: reads that are answered from memory, and what they may not miss."""
import os
import random
import time

import binary
from case import marks
from harness import EVENLY, wait_until
from test_admin_port import AdminCase

LONG = 60000  # ms; no test takes so long
RULES = 'commands = "q|"\nitem "hot-" {{ fresh_for = {0} }}\ncollection "s-" {{ fresh_for = {0} }}\n' \
        'collection "l-" {{ type = "list" fresh_for = {0} }}\nevents "E-" {{ fresh_for = {0} separator = ":" bucket = "day" }}\n'
TRIALS = int(os.environ.get("FRESH_TRIALS", "500"))


class Fresh(AdminCase):
    def serve_fresh(self, ms=LONG, *args, config=""):
        """Starts a setlistd with the rules, and another one, which has none and writes what the first one does not see."""
        self.start(None, RULES.format(ms) + config, *args)
        self.conn = self.connect(self.proxy)
        self.other = self.connect(self.setlistd(self.servers))

    def numbers(self, command="stats"):
        """A worker publishes its numbers in the next turn, such as that of this request."""
        self.conn.send(f"{command}\r\n".encode())
        return dict(line.split()[1:3] for line in self.conn.lines_until("END")[:-1])

    def reads(self):
        numbers = self.numbers()
        return {name: int(numbers[f"fresh_{name}"]) for name in ("hits", "shared", "misses")}

    def bytes_held(self):
        return int(self.numbers("stats collections")["fresh_bytes"])

    def lines(self, request):
        """Returns all lines of the reply to a request."""
        self.conn.send(f"{request}\r\nmn\r\n".encode())
        return self.conn.lines_until("MN")[:-1]

    def is_from_memory(self, request):
        before = self.reads()["hits"]
        self.lines(request)
        return self.reads()["hits"] > before

    def assert_from_memory(self, request, hits=1):
        """Returns the reply, for which no server was asked."""
        before = self.reads()
        reply = self.lines(request)
        self.assertEqual(self.reads(), {**before, "hits": before["hits"] + hits}, request)
        return reply

    def assert_asks(self, request):
        before = self.reads()
        reply = self.lines(request)
        self.assertEqual(self.reads()["hits"], before["hits"], request)
        return reply


class Memory(Fresh):
    smoke = True

    def assert_remembers(self, read, write, old, new):
        """The write by another proxy is not seen from memory. One by this proxy is, and shows both."""
        self.assertEqual(self.assert_asks(read), old)
        self.other.ask(write.format("b"))
        self.assertEqual(self.assert_from_memory(read), old)
        self.conn.ask(write.format("a"))
        self.assertEqual(self.assert_asks(read), new)
        self.assertEqual(self.assert_from_memory(read), new)

    def test_each_kind(self):
        self.serve_fresh()
        self.assert_remembers("get hot-1", "append hot-1 0 0 1\r\n{}", ["END"], ["END"])
        self.conn.ask("set hot-2 0 0 1\r\nx")
        self.assertEqual(self.assert_from_memory("get hot-2"), ["VALUE hot-2 0 1", "x", "END"])
        self.conn.ask("append hot-2 0 0 1\r\ny")
        self.assert_remembers("get hot-2", "append hot-2 0 0 1\r\n{}", ["VALUE hot-2 0 2", "xy", "END"], ["VALUE hot-2 0 4", "xyba", "END"])
        self.conn.ask("sadd s-1 x")
        self.assert_remembers("smembers s-1", "sadd s-1 {}", ["VALUE s-1 0 1", "x", "END"], ["VALUE s-1 0 5", "x b a", "END"])
        self.assertEqual(self.assert_from_memory("scard s-1"), ["3"])
        self.assertEqual(self.assert_from_memory("get q|scard|s-1"), ["VALUE q|scard|s-1 0 1", "3", "END"])
        self.assertEqual(self.assert_from_memory("mg q|scard|s-1 v"), ["VA 1", "3"])
        self.conn.ask("rpush l-1 x")
        self.assert_remembers("lrange l-1 0 -1", "rpush l-1 {}", ["VALUE l-1 0 1", "x", "END"], ["VALUE l-1 0 5", "x b a", "END"])
        self.assertEqual(self.assert_from_memory("llen l-1"), ["3"])
        self.conn.ask("evincr E-1 3")
        count = "evcount E-1"
        self.assertEqual(self.assert_asks(count)[0].split()[2], "3")
        self.assertEqual(self.assert_from_memory(count)[0].split()[2], "3")
        self.conn.ask("evincr E-1 4")
        self.assertEqual(self.assert_asks(count)[0].split()[2], "7")

    def test_binary(self):
        self.serve_fresh()
        with binary.BinaryConn(self.proxy.port) as speaker:
            speaker.request(binary.GET, "hot-1")
            before = self.reads()
            speaker.request(binary.GET, "hot-1")
            # The reply has a CAS id, which is always that of now.
            self.assertEqual(self.reads()["hits"], before["hits"])

    def test_reads_that_always_ask(self):
        self.serve_fresh()
        self.conn.ask("set hot-1 0 0 1\r\nx")
        self.assert_from_memory("get hot-1")
        self.other.ask("set hot-1 0 0 1\r\ny")
        self.assertEqual(self.assert_asks("mg hot-1 v"), ["VA 1", "y"])
        self.assertEqual(self.assert_asks("gets hot-1")[1], "y")
        self.assertEqual(self.assert_from_memory("get hot-1")[1], "x")
        self.assertEqual(self.assert_asks("gat 100 hot-1")[1], "y")
        self.assertEqual(self.assert_asks("get hot-1")[1], "y")
        self.assertEqual(self.conn.ask("flush_all"), "OK")
        self.assertEqual(self.assert_asks("get hot-1"), ["END"])

    def test_many_keys(self):
        self.serve_fresh()
        keys = [f"hot-{number}" for number in range(200)]
        for key in keys:
            self.conn.ask(f"set {key} 0 0 3\r\n{key[-3:]:>3}")
        # Some of the keys may share a slot: then the write of one has dropped the other one.
        self.lines("get " + " ".join(keys))
        reply = self.assert_from_memory("get " + " ".join(keys), hits=len(keys))
        self.assertEqual(len(reply), 2 * len(keys) + 1)

    def test_a_limit_counts_as_always(self):
        """evlimit reads the earlier buckets of all proxies as they are now."""
        self.serve_fresh()
        self.conn.ask("evincr E-1 1")
        self.assert_asks("evcount E-1")
        self.assert_asks("evlimit E-1 10 172800")
        self.assert_asks("evlimit E-1 10 172800")

    def test_memory_is_part_of_the_cache(self):
        self.serve_fresh(config="cache_memory = 1048576\n")
        size = 5000
        for number in range(300):
            self.assertEqual(self.conn.ask(f"set hot-{number} 0 0 {size}\r\n{'x' * size}"), "STORED")
        held = self.bytes_held()
        self.assertTrue(1 << 17 < held <= 1 << 18, held)
        self.assertEqual(self.metrics()["setlistd_cache_bytes"], held)
        self.assertEqual(self.metrics()["setlistd_fresh_bytes"], held)
        self.assert_from_memory("get hot-299")
        self.assert_asks("get hot-0")

    def test_reload(self):
        self.serve_fresh(config="")
        self.conn.ask("set hot-1 0 0 1\r\nx")
        self.assert_from_memory("get hot-1")
        config = self.proxy.config
        self.proxy.configure(config.replace('item "hot-"', 'item "cold-"'))
        wait_until("the new rules are used", lambda: not self.is_from_memory("get hot-1"))
        wait_until("memory is freed", lambda: self.bytes_held() == 0)
        self.proxy.configure(config)
        wait_until("no other rules are used any more", lambda: self.is_from_memory("get hot-1"))

    def test_a_server_that_is_down(self):
        self.serve_fresh()
        self.conn.ask("set hot-1 0 0 1\r\nx")
        self.assert_from_memory("get hot-1")
        self.servers[0].kill()
        self.assertEqual(self.assert_from_memory("get hot-1")[1], "x")
        wait_until("a write fails", lambda: self.conn.ask("set hot-1 0 0 1\r\ny").startswith("SERVER_ERROR"))
        self.assertTrue(self.assert_asks("get hot-1")[0].startswith("SERVER_ERROR"))


class Workers(Fresh):
    smoke = True

    def test_each_sees_the_writes_of_the_others(self):
        self.serve_fresh(LONG, "-t", "3", config=EVENLY + "\n")
        conns = [self.connect(self.proxy) for _ in range(6)]
        chance = random.Random(1)
        count = 0
        for number in range(1, TRIALS):
            key = f"hot-{number % 3}"
            writer, reader, again = (chance.choice(conns) for _ in range(3))
            self.assertEqual(writer.set(key, b"%d" % number), "STORED")
            for conn in reader, again, reader:
                self.assertEqual(conn.get(key), b"%d" % number)
            if number % 4 == 0:
                count += 1
                self.assertEqual(writer.ask(f"sadd s-1 m{count}"), "STORED")
                for conn in reader, again, reader:
                    self.assertEqual(conn.ask("scard s-1"), str(count))
        self.assertGreater(self.reads()["hits"], TRIALS)


class NeverOlder(Fresh):
    """What another proxy has written fresh_for milliseconds before a read, or earlier, is seen. A slow machine changes nothing of it."""

    def trials(self, ms, count):
        self.serve_fresh(ms, "-t", "2", config=EVENLY + "\n")
        readers = [self.connect(self.proxy) for _ in range(4)]
        chance = random.Random(1)
        stored = []
        for number in range(1, count + 1):
            self.assertEqual(self.other.set("hot-1", b"%d" % number), "STORED")
            stored.append(time.monotonic())
            for _ in range(chance.randrange(1, 4)):
                sent = time.monotonic()
                seen = int(chance.choice(readers).get("hot-1") or b"0")
                if seen < number:
                    self.assertLessEqual(sent - stored[seen], ms / 1000, f"{seen} was read, and {number} was stored")
            if number % 50 == 0:
                time.sleep(chance.random() * 2 * ms / 1000)
        self.assertGreater(self.reads()["hits"], count // 10)

    @marks(smoke=True)
    def test_two_proxies(self):
        self.trials(20, TRIALS)
