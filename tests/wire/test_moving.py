"""The pool changes while clients write: nothing is lost, and no request fails."""
import base64
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time

import xxhash

import manpage
from case import WireTest, marks
from case_tls import TlsTest
from harness import BUILD_LIMIT, HOST, run_program, setlistd, wait_until
from stored import stats
from wire import Conn

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/setlistd.8")
MARK_FLAGS = 0xc0b1e5a7
SECOND, BUCKET = 1700000000, "2023111422"
MOVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/move")


def utc(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def pool(option, servers):
    quoted = ", ".join(f'"{server.name}"' for server in servers)
    return f"{option} = {{{quoted}}}\n"


class Late(Exception):
    """The machine stalled until the time of the move, and some proxies were not reloaded yet. So replies to clients may be wrong."""


class Worker(threading.Thread):
    """A client. An exception in its thread counts as an error."""
    PAUSE = 0.05    # seconds: the load leaves something of the machine to other tests

    def __init__(self):
        super().__init__(daemon=True)
        self.faults, self.rounds, self.stopping = [], 0, threading.Event()

    def run(self):
        try:
            conns = self.connect()
            while not self.stopping.is_set():
                self.work(conns)
                self.rounds += 1
                self.stopping.wait(self.PAUSE)
        except Exception as error:                  # it would be lost otherwise
            self.faults.append(repr(error))

    def expect(self, request, reply, wanted):
        if reply != wanted:
            self.faults.append(f"{request}: {reply!r:.300}, not {wanted!r:.300}")

    def say(self, conn, request, wanted):
        self.expect(request, conn.ask(request), wanted)


class Client(Worker):
    """Writes to its own keys of each kind, through one proxy after another, and records their expected state."""
    KEYS = 4
    LARGE = 150     # members of one of its sets, and elements of one of its lists: these have parts

    def __init__(self, proxies, number):
        super().__init__()
        self.proxies, self.number = proxies, number
        self.sets = {f"set-{number}-{i}": set() for i in range(self.KEYS)}
        self.lists = {f"list-{number}-{i}": [] for i in range(self.KEYS)}
        self.counters = {f"count-{number}-{i}": 0 for i in range(self.KEYS)}
        self.items = {f"item-{number}-{i}": None for i in range(self.KEYS)}

    def connect(self):
        conns = [Conn(proxy.port) for proxy in self.proxies]
        words = [f"large-{i}" for i in range(self.LARGE)]
        for key in self.counters:
            self.say(conns[0], f"add {key} 0 0 1\r\n0", "STORED")
        self.say(conns[0], f"sadd set-{self.number}-0 {' '.join(words)}", "STORED")
        self.sets[f"set-{self.number}-0"].update(words)
        self.say(conns[0], f"rpush list-{self.number}-0 {' '.join(words)}", "STORED")
        self.lists[f"list-{self.number}-0"].extend(words)
        return conns

    def work(self, conns):
        self.write(conns[self.rounds % len(conns)])
        self.check(conns[(self.rounds + 1) % len(conns)])

    def write(self, conn):
        which, n = self.rounds % self.KEYS, self.rounds
        key = f"set-{self.number}-{which}"
        self.say(conn, f"sadd {key} m{n} n{n}", "STORED")
        self.sets[key] |= {f"m{n}", f"n{n}"}
        if n % 3 == 0:
            self.say(conn, f"srem {key} n{n}", "DELETED")
            self.sets[key].discard(f"n{n}")
        key = f"list-{self.number}-{which}"
        self.say(conn, f"rpush {key} e{n}", "STORED")
        self.lists[key].append(f"e{n}")
        key = f"count-{self.number}-{which}"
        self.counters[key] += 1
        self.say(conn, f"incr {key} 1", str(self.counters[key]))
        key = f"item-{self.number}-{which}"
        if n % 5 == 4:
            self.say(conn, f"delete {key}", "DELETED" if self.items[key] is not None else "NOT_FOUND")
            self.items[key] = None
        elif self.items[key] is None or n % 5 < 3:
            self.say(conn, f"set {key} 7 0 {len(str(n))}\r\n{n}", "STORED")
            self.items[key] = str(n)
        else:
            self.say(conn, f"append {key} 0 0 2\r\n+a", "STORED")
            self.items[key] += "+a"

    def check(self, conn, which=None):
        which = (self.rounds * 3) % self.KEYS if which is None else which
        for kind, verb in (("set", "smembers"), ("list", "lrange"), ("count", "get"), ("item", "get")):
            key = f"{kind}-{self.number}-{which}"
            found, end = conn.values(f"lrange {key} 0 -1" if kind == "list" else f"{verb} {key}")
            data = found[key][1].decode() if key in found else None
            if end not in ("END", "NOT_FOUND"):
                self.faults.append(f"{verb} {key}: {end}")
            elif kind == "set":
                self.expect(key, set((data or "").split()), self.sets[key])
            elif kind == "list":
                self.expect(key, (data or "").split(), self.lists[key])
            elif kind == "count":
                self.expect(key, data, str(self.counters[key]))
            else:
                self.expect(key, data, self.items[key])

    def check_all(self, conn):
        for which in range(self.KEYS):
            self.check(conn, which)


class Adder(Worker):
    """Adds to keys that all clients share, through one proxy, and records the acknowledged additions."""
    KEYS = 40

    def __init__(self, proxy, number):
        super().__init__()
        self.proxy, self.number = proxy, number
        self.added = {f"{kind}-{i}": set() for kind in ("set", "list") for i in range(self.KEYS)}
        self.counted = dict.fromkeys((f"event-{i}" for i in range(self.KEYS)), 0)

    def connect(self):
        return Conn(self.proxy.port)

    def work(self, conn):
        which, word = (self.rounds + self.number) % self.KEYS, f"w{self.number}.{self.rounds}"
        for kind, verb in (("set", "sadd"), ("list", "rpush")):
            self.say(conn, f"{verb} {kind}-{which} {word}", "STORED")
            self.added[f"{kind}-{which}"].add(word)
        request = f"evincr event-{which} 1 {SECOND}"
        if not (reply := conn.ask(request)).isdigit():
            self.faults.append(f"{request}: {reply}")
        self.counted[f"event-{which}"] += 1


class Moving(WireTest):
    PROXIES, CLIENTS, MARGIN = 3, 4, 2
    RULES = 'collection "list-" {\ntype = "list"\n}\nbase_size = 1024\nlog_size = 1024\n'

    def start(self, servers, make=None):
        """Starts this number of proxies in front of these servers, and clients."""
        self.servers = servers
        self.folder = self.scratch()
        self.proxies = [self.setlistd([], config=self.config(number, pool("servers", servers))) for number in range(self.PROXIES)]
        self.clients = [(make or self.client)(number) for number in range(self.CLIENTS)]
        for client in self.clients:
            client.start()
        self.addCleanup(self.stop)
        self.get_on()

    def client(self, number):
        return Client(self.proxies, number)

    def adder(self, number):
        return Adder(self.proxies[number % self.PROXIES], number)

    def config(self, number, text):
        return f'control = "{self.folder}/{number}"\n{self.RULES}{text}'

    def reload(self, number, text):
        self.proxies[number].write_config(self.config(number, text))
        with Conn(f"{self.folder}/{number}") as operator:
            self.assertEqual(operator.ask("reload"), "OK")

    def get_on(self):
        """Until each client has been at each of its keys again."""
        before = [client.rounds for client in self.clients]
        wait_until("the clients get on", lambda: self.faults() or all(
            client.rounds >= rounds + Client.KEYS for client, rounds in zip(self.clients, before)), pause=0.02)
        self.assertEqual(self.faults(), [])

    def faults(self):
        return [fault for client in self.clients for fault in client.faults][:5]

    def stop(self):
        for client in self.clients:
            client.stopping.set()
        for client in self.clients:
            client.join()

    def moving(self, servers, at):
        """Returns the configuration of a change to these servers, which become the current ones."""
        text = pool("servers", servers) + pool("former_servers", self.servers) + f'move_at = "{utc(at)}"\n'
        self.servers = servers
        return text

    def change(self, servers, ahead=4):
        """Changes the current servers to these: the proxies are reloaded one after the other; then the time of the move arrives."""
        at = int(time.time()) + ahead
        text = self.moving(servers, at)
        for number in range(self.PROXIES):
            self.reload(number, text)
        if time.time() >= at - self.MARGIN:
            raise Late()
        self.get_on()
        wait_until("the time has come", lambda: time.time() >= at + 1, pause=0.05)
        self.get_on()

    def move(self, number=0, status=0, *args):
        done = run_program(sys.executable, MOVE, *args, f"{HOST}:{self.proxies[number].port}", limit=BUILD_LIMIT)
        if status is not None:
            self.assertEqual(done.returncode, status, done)
        return done.stdout

    def finish(self):
        """Removes the former servers: everything must be found with only the new ones."""
        for number in range(self.PROXIES):
            self.reload(number, pool("servers", self.servers))

    def count(self, name, group="stats"):
        """The sum of a counter of all proxies."""
        return sum(int(stats(self.connect(proxy), group)[name]) for proxy in self.proxies)

    def check_all(self):
        """Checks that each proxy finds everything, and nothing else."""
        self.stop()
        self.assertEqual(self.faults(), [])
        for proxy in self.proxies:
            with Conn(proxy.port) as conn:
                for client in self.clients:
                    client.check_all(conn)
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.count("incomplete_sets", "stats collections"), 0)
        for proxy in self.proxies:
            self.assertNotIn("have lost a part", proxy.process.stderr())


class Pools(Moving):
    """From five servers to six, to four, to four others, under the load of 50 clients."""
    CLIENTS = 50

    def pools(self):
        """The proxies of each change, and the servers that are removed for good."""
        self.first = [self.memcached() for _ in range(5)]
        last = [self.memcached() for _ in range(4)]
        return ((self.first + [self.memcached()], []), (self.first[:4], []), (last, self.first[:4]))

    def end(self, left):
        """The former servers receive no more requests, and the removed ones are stopped."""
        self.finish()
        self.get_on()
        for server in left:
            server.kill()

    def move_three_times(self, ahead):
        pools = self.pools()
        self.start(self.first)
        for servers, left in pools:
            self.change(servers, ahead)
            self.assertGreater(self.count("moved_keys"), 0)
            self.assertIn("nothing is left", self.move())
            self.end(left)
        self.check_all()

    def test_all_reloaded(self):
        """Checks that there was no error, nothing is lost or partial, and each client sees all its writes."""
        for ahead in (4, 8, 16, 32, 64):
            try:
                self.move_three_times(ahead)
                return
            except Late:
                self.stop()
        self.fail("the machine is too slow")

    def test_one_forgotten(self):
        """A proxy writes only to the former servers while the others move keys and setlistd-move runs. After it is reloaded and
        everything has moved again, nothing is missing. Its writes during a move may be in a list twice, or counted twice.
        """
        pools = self.pools()
        self.start(self.first, self.adder)
        for forgotten, (servers, left) in enumerate(pools):
            text = self.moving(servers, time.time() - 5)
            for number in range(self.PROXIES):
                if number != forgotten:
                    self.reload(number, text)
            self.get_on()
            self.move(forgotten - 1, None, "--passes", "1")
            self.get_on()
            self.reload(forgotten, text)
            self.get_on()
            self.assertIn("nothing is left", self.move())
            self.end(left)
        self.stop()
        self.assertEqual(self.faults(), [])
        for proxy in self.proxies:
            self.check_added(self.connect(proxy))

    def check_added(self, conn):
        for key in self.clients[0].added:
            found, _ = conn.values(f"smembers {key}" if key.startswith("set") else f"lrange {key} 0 -1")
            words = found[key][1].decode().split() if key in found else []
            wanted = set().union(*(client.added[key] for client in self.clients))
            self.assertEqual(set(words), wanted, key)
        for key in self.clients[0].counted:
            total = sum(client.counted[key] for client in self.clients)
            found = conn.ask(f"evcount {key} {BUCKET}")
            self.assertEqual(conn.line(), b"END")
            self.assertGreaterEqual(int(found.removeprefix(f"COUNT {BUCKET} ")), total, key)


class Forgotten(Moving):
    CLIENTS = 20    # this many have some set that moves, whatever the positions of the servers on the ring

    def test_a_forgotten_proxy(self):
        """A proxy writes only to the former servers until it is reloaded; then nothing is missing. It may not see the writes of the others."""
        first = [self.memcached() for _ in range(3)]
        self.start(first)
        self.stop()
        text = self.moving([*first, self.memcached()], time.time() - 5)
        for number in (0, 1):
            self.reload(number, text)
        conns = [self.connect(proxy) for proxy in self.proxies]
        keys = [key for client in self.clients for key in client.sets if " from " in conns[0].ask(f"route {key}")]
        self.assertGreater(len(keys), 0)
        sets = {key: found for client in self.clients for key, found in client.sets.items()}
        for turn in range(3):
            for number, conn in enumerate(conns):
                for key in keys:
                    self.assertEqual(conn.ask(f"sadd {key} late{turn}.{number}"), "STORED")
                    sets[key].add(f"late{turn}.{number}")
        self.reload(2, text)
        self.move()
        self.finish()
        for conn in conns:
            for client in self.clients:
                client.check_all(conn)
        self.assertEqual(self.faults(), [])


class Undone(Moving):
    """Acknowledged writes of a proxy with the new configuration are not undone by one with the old configuration, which writes later or
    earlier."""
    CLIENTS = 0

    def begin(self):
        """Only the first two proxies have the new servers; all keys move. Returns the connections, of which the last one is to the third
        proxy."""
        former, new = [self.memcached()], [self.memcached()]
        self.start(former)
        self.conns = [self.connect(proxy) for proxy in self.proxies]
        text = self.moving(new, time.time() - 10)
        for number in (0, 1):
            self.reload(number, text)
        return self.conns

    def end(self):
        """Moves the other keys and reloads all proxies. The former server then receives no more requests."""
        self.assertIn("nothing is left", self.move())
        self.finish()

    def test_plain_items(self):
        first, second, forgotten = self.begin()
        keys = [f"key-{i}" for i in range(20)]
        for i, key in enumerate(keys):
            late = i % 2
            if late:
                self.assertEqual(forgotten.set(key, b"old"), "STORED")
            self.assertEqual(first.set(key, b"new", flags=i, exptime=1000 + i), "STORED")
            self.assertEqual(second.get(key), b"new")
            if not late or i % 3 == 0:
                self.assertEqual(forgotten.set(key, b"old"), "STORED")
        self.end()
        for conn in self.conns:
            self.assertEqual(conn.values(f"get {' '.join(keys)}")[0], {key: (i, b"new") for i, key in enumerate(keys)})
            self.assertRegex(conn.ask(f"mg {keys[-1]} t"), "HD t(10|9)..")
        self.assertGreater(self.count("dropped_keys"), 0)

    def test_numbers(self):
        """Increments by proxies with the new servers are never lost, and a number that was set is not changed."""
        first, second, forgotten = self.begin()
        for key in ("few", "many", "set"):
            self.assertEqual(first.ask(f"add {key} 0 0 1\r\n0"), "STORED")
        for i in range(1, 11):
            self.assertEqual((first, second)[i % 2].ask("incr many 2"), str(2 * i))
            self.assertEqual((first, second)[i % 2].ask("incr few 1"), str(i))
            # Its increments are dropped as soon as they are found.
            for key, number in (("many", 1), ("few", 2), ("set", 100)):
                forgotten.ask(f"add {key} 0 0 1\r\n0")
                forgotten.ask(f"incr {key} {number}")
        self.assertEqual(first.ask("set set 0 0 1\r\n3"), "STORED")
        self.end()
        for conn in self.conns:
            self.assertEqual([conn.get(key) for key in ("few", "many", "set")], [b"10", b"20", b"3"])

    @marks(smoke=True)
    def test_deletions(self):
        """A deleted value does not return; a later write looks like an item that has not moved yet."""
        first, second, forgotten = self.begin()
        for request in ("delete {}", "md {}", "touch {} -1", "set {} 0 -1 1\r\nx", "gat -1 {}", "ms {} 1 T-1\r\nx"):
            self.assertEqual(first.set("key", b"new"), "STORED")
            self.assertEqual(second.get("key"), b"new")
            self.assertEqual(forgotten.set("key", b"old"), "STORED")
            reply = first.ask(request.format("key"))
            if reply.startswith("VALUE"):
                self.assertEqual((first.line(), first.line()), (b"new", b"END"))
            else:
                self.assertIn(reply, ("DELETED", "HD", "TOUCHED", "STORED"), request)
            self.assertIsNone(forgotten.get("key"), request)
            for conn in (first, second):
                self.assertIsNone(conn.get("key"), request)
        self.assertEqual(forgotten.set("key", b"later"), "STORED")
        self.end()
        for conn in self.conns:
            self.assertEqual(conn.get("key"), b"later")

    def test_sets(self):
        """They are joined, with the time to live of the new server's item."""
        first, second, forgotten = self.begin()
        self.assertEqual(first.ask("sadd s a b"), "STORED")
        self.assertEqual(second.ask("touch s 1000"), "TOUCHED")
        self.assertEqual(forgotten.ask("sadd s c"), "STORED")
        self.end()
        for conn in self.conns:
            self.assertEqual(set(conn.values("smembers s")[0]["s"][1].split()), {b"a", b"b", b"c"})
            self.assertRegex(conn.ask("mg s t Pitem"), "HD t(1000|9..)")
        self.assertEqual(self.count("merged_keys"), 1)


FLUSH = b"\r\nflush_all\r\n"     # a part of a key


class Tool(Moving):
    """setlistd-move."""
    smoke = True

    def begin(self, at):
        """A pool of one, from which all keys move to another one."""
        self.numbers = itertools.count()
        self.former, self.new = self.memcached(), self.memcached()
        self.folder = self.scratch()
        self.proxies = [self.setlistd([], config=self.config(0, pool("servers", [self.former])))]
        self.conn, self.there = self.connect(self.proxies[0]), self.connect(self.former)
        self.at = at

    def turn(self):
        self.servers = [self.former]
        self.reload(0, self.moving([self.new], self.at))

    def stop_former(self):
        """As in RELOADING in setlistd(8), after setlistd-move."""
        self.reload(0, pool("servers", [self.new]))
        self.former.kill()

    def names(self, server):
        with Conn(server.port) as conn:
            conn.send(b"lru_crawler metadump all\r\n")
            return [line.split(" ")[0][4:] for line in conn.lines_until("END")[:-1]]

    def test_all_kinds(self):
        """Also sets and lists with parts, and keys with spaces or control bytes."""
        self.begin(time.time() - 10)
        for i in range(50):
            self.conn.ask("sadd large " + " ".join(f"member-{i}-{n}" for n in range(200)))
            self.conn.ask("rpush list-large " + " ".join(f"element-{i}-{n}" for n in range(200)))
        self.assertEqual(self.conn.set("plain", b"x", flags=9), "STORED")
        self.assertEqual(self.conn.set("percent%20\xff+&=".encode("latin-1"), b"x"), "STORED")
        self.assertGreater(len(self.names(self.former)), 6)
        self.turn()
        self.assertIn("nothing is left", self.move(0, 0, "--age", "0"))
        self.assertEqual(self.names(self.former), [])
        self.stop_former()
        self.assertEqual(self.conn.ask("scard large"), "10000")
        self.assertEqual(self.conn.ask("llen list-large"), "10000")
        self.assertEqual(self.conn.values("get plain")[0], {"plain": (9, b"x")})

    def test_keys_that_are_no_text(self):
        """They are never a part of a request to a server that is not in base64."""
        self.begin(time.time() - 10)
        keys = [base64.b64encode(text).decode() for text in (b"x" + FLUSH, b"a b")]
        self.assertEqual(self.conn.set("plain", b"x"), "STORED")
        for key in keys:
            self.assertEqual(self.conn.ask(f"ms {key} 1 b T1000 F9\r\nx"), "HD")
        self.turn()
        self.assertEqual(self.conn.ask(f"mg {keys[0]} b t"), "HD t1000")
        self.assertEqual(self.there.ask(f"ms {base64.b64encode(b'y' + FLUSH + b'.t0abcdefghij').decode()} 1 b\r\nx"), "HD")
        self.assertIn("nothing is left", self.move(0, 0, "--age", "0"))
        self.assertEqual(self.names(self.former), [])
        self.assertEqual(len(self.names(self.new)), 3)
        self.stop_former()
        for key in keys:
            self.assertRegex(self.conn.ask(f"mg {key} b f t"), "HD f9 t(1000|9..)")
        self.assertEqual(self.conn.get("plain"), b"x")

    def mark(self, text, key=None):
        """Stores the remains of a killed mover on the new server; {check} in the text is the check of the key. Returns the key."""
        with Conn(self.new.port) as there:
            key = key or f"key-{next(self.numbers)}"
            value = text.format(check=xxhash.xxh64(key.encode(), seed=0).intdigest()).encode()
            self.assertEqual(there.set(key, value, flags=MARK_FLAGS), "STORED")
        return key

    def test_marks(self):
        """Claims are deleted, and copies become items, including those that a setlistd has looked for before."""
        self.begin(time.time() - 10)
        self.turn()
        for _ in range(2):
            claim, copy = self.mark("@claim.{check} "), self.mark("@copy.{check}.7.99.1.5 value")
            self.assertIn("nothing is left", self.move())
            with Conn(self.new.port) as there:
                self.assertEqual(there.values(f"get {claim} {copy}")[0], {copy: (7, b"value")})
            for key in (claim, copy):
                self.conn.ask(f"delete {key}")

    def test_items_that_look_like_marks(self):
        """Clients may store items with the flags of marks, and any value. They move, stay as they are, and are nothing that is left."""
        self.begin(time.time() - 10)
        values = {f"like-{i}": value for i, value in enumerate((b"x", b"", b"7", b"@claim.", b"@claim.1 ", b"@copy.1.2.3.4.5 value"))}
        for key, value in values.items():
            self.assertEqual(self.conn.set(key, value, flags=MARK_FLAGS), "STORED")
        self.turn()
        values |= {f"new-{key}": value for key, value in values.items()}
        for key, value in values.items():
            if key.startswith("new-"):
                self.assertEqual(self.conn.set(key, value, flags=MARK_FLAGS), "STORED")
        self.assertIn("nothing is left", self.move(0, 0, "--passes", "3"))
        self.assertEqual(self.names(self.former), [])
        wanted = {key: (MARK_FLAGS, value) for key, value in values.items()}
        self.assertEqual(self.conn.values(f"get {' '.join(values)}")[0], wanted)
        for key in ("like-2", "new-like-2"):
            self.assertEqual(self.conn.ask(f"incr {key} 1"), "8")
            self.assertEqual(self.conn.ask(f"delete {key}"), "DELETED")
        self.stop_former()
        del wanted["like-2"], wanted["new-like-2"]
        self.assertEqual(self.conn.values(f"get {' '.join(values)}")[0], wanted)

    @marks(smoke=False)
    def test_a_mark_that_a_client_has_stored(self):
        """A client stores all bytes of a mark that it has read from a server: it is completed like any other. The value alone is not a mark."""
        self.begin(time.time() - 10)
        self.turn()
        copy = self.mark("@copy.{check}.7.99.1.5 value")
        with Conn(self.new.port) as there:
            flags, mark = there.values(f"get {copy}")[0][copy]
        self.assertEqual(self.conn.set(copy, mark, flags=flags), "STORED")
        self.assertIn("nothing is left", self.move())
        self.assertEqual(self.conn.values(f"get {copy}")[0], {copy: (7, b"value")})
        self.assertEqual(self.conn.set(copy, mark, flags=1), "STORED")
        self.assertEqual(self.conn.ask(f"mg {copy} f"), "HD f1")
        self.assertEqual(self.conn.ask(f"mg {copy} v"), f"VA {len(mark)}")
        self.assertEqual(self.conn.line(), mark)

    @marks(smoke=False)
    def test_meta_commands_and_marks(self):
        """No client ever receives a mark or uses it as an item."""
        self.begin(time.time() - 10)
        self.turn()
        for request, reply in (("mg {}", "EN"), ("mg {} v", "EN"), ("mg {} f v", "EN"), ("gat 100 {}", "END"), ("md {}", "NF"),
                               ("ms {} 1 MA\r\nx", "NS"), ("ms {} 1 ME\r\nx", "HD")):
            self.assertEqual(self.conn.ask(request.format(self.mark("@claim.{check} "))), reply, request)
        # The first one is looked up before; for the others the reply shows it.
        self.assertEqual(self.conn.ask("md key-99"), "NF")
        time.sleep(2.5)  # The subject is time: no claim of a mover arrives later than the margin.
        self.assertEqual(self.conn.ask("md key-99"), "NF")
        for request in ("mg key-99 f", "mg key-99 v", "mg key-99 t v f"):
            self.mark("@claim.{check} ", "key-99")
            self.assertEqual(self.conn.ask(request), "EN", request)
        # An item that only looks like a mark is an item.
        self.assertEqual(self.conn.ask(f"mg {self.mark('x')} f v"), f"VA 1 f{MARK_FLAGS}")

    def test_nothing_moves(self):
        """It prints the reason, and exits with the status for invalid usage."""
        self.begin(time.time() + 3600)
        self.move(0, 2)
        self.turn()
        self.move(0, 2)

    def test_a_server_that_is_down(self):
        """It is not mistaken for a server with no keys left."""
        self.begin(time.time() - 10)
        self.turn()
        self.former.kill()
        self.move(0, 3)

    @marks(smoke=False)
    def test_leftovers(self):
        """A part without a base is deleted if it is old; otherwise it counts as left."""
        self.begin(time.time() - 10)
        self.assertEqual(self.there.set("gone.t0abcdefghij", b"x"), "STORED")
        self.turn()
        self.move(0, 1, "--passes", "1", "--age", "3600")
        self.assertEqual(self.names(self.former), ["gone.t0abcdefghij"])
        self.assertIn("nothing is left", self.move(0, 0, "--age", "0"))
        self.assertEqual(self.names(self.former), [])

    def test_interrupted(self):
        """At a rate that would take for ever; then it is restarted."""
        self.begin(time.time() - 10)
        for i in range(300):
            self.assertEqual(self.conn.set(f"key-{i}", b"x"), "STORED")
        self.turn()
        process = subprocess.Popen([sys.executable, MOVE, "--rate", "10", f"{HOST}:{self.proxies[0].port}"], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        self.assertIn("of 300 keys", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(), 3)
        self.assertGreater(len(self.names(self.former)), 0)
        self.assertIn("nothing is left", self.move())
        self.assertEqual(self.names(self.former), [])


class Secured(TlsTest):
    """setlistd-move if all connections use TLS and require a login."""
    smoke = True

    def start(self):
        users = self.private_file("foo:bar\n")
        self.former, self.new = (self.memcached_tls("-Y", users) for _ in range(2))
        text = "".join([pool("servers", [self.new]), pool("former_servers", [self.former]), 'move_at = "2020-01-01T00:00:00Z"\n',
                        f'server_user = "foo"\nserver_password_file = "{self.private_file("bar")}"\n',
                        f'auth_file = "{self.private_file("ann:secret" + chr(10))}"\n', self.verifying(), self.listening()])
        self.proxy = self.setlistd([], "-l", f"tls:{HOST}", config=text)
        with self.secured(self.former) as there:
            self.assertEqual(there.ask("set login 0 0 7\r\nfoo bar"), "STORED")
            for i in range(20):
                self.assertEqual(there.ask(f"set key-{i} 0 0 1\r\nx"), "STORED")

    def move(self, *left_out):
        options = {"--login": self.private_file("ann secret\n"), "--server-login": self.private_file("foo bar\n"),
                   "--ca": self.authority.ca, "--server-ca": self.authority.ca}
        words = [word for name, path in options.items() if name not in left_out for word in (name, path)]
        words += [word for word in ("--server-tls",) if word not in left_out]
        return run_program(sys.executable, MOVE, *words, f"tls:{HOST}:{self.proxy.port}")

    def test_tls_and_logins(self):
        self.start()
        for left_out in ("--login", "--server-login", "--ca", "--server-ca", "--server-tls"):
            done = self.move(left_out)
            self.assertEqual(done.returncode, 3, (left_out, done))
            # A server that it cannot read is skipped; without the proxy it ends immediately.
            self.assertIn("continuing with the other servers" if "server" in left_out else "start again", done.stderr)
        done = self.move()
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("20 keys have moved", done.stdout)


class Procedure(Moving):
    """RELOADING in the manual: each step, and its output."""

    def steps(self):
        """For each command the lines that it is to print."""
        found = []
        for _, kind, lines in manpage.marked(MANUAL):
            for _, text in lines if kind == "step" else ():
                text = manpage.unescape(text)
                if text.startswith("$ "):
                    found.append((text[2:], []))
                elif text.startswith("    "):      # the manual breaks long lines
                    found[-1][1][-1] += f" {text.strip()}"
                else:
                    found[-1][1].append(text)
        return found

    def carry_out(self, command):
        """The output of setlistd-move, on the host of the first proxy."""
        if command == "setlistd -T -f /etc/setlistd/setlistd.conf":
            return setlistd("-T", "-f", self.proxies[0].config_path).stdout
        if command == "setlistd-move --rate 5000 127.0.0.1:11311":
            return self.move(0, 0, "--rate", "5000")
        found = re.fullmatch(r"echo (\w+) \| nc -N (-U /run/setlistd/control|127\.0\.0\.1 11311)(?: \| grep -E '(.*)')?", command)
        self.assertTrue(found, command)
        address = f"{self.folder}/0" if "control" in found[2] else self.proxies[0].port
        with Conn(address) as conn:
            conn.send(f"{found[1]}\r\n".encode())
            conn.half_close()
            lines = conn.rest().decode().splitlines(True)
        return "".join(line for line in lines if re.search(found[3] or "", line))

    @staticmethod
    def shape(text):
        """Numbers, checksums and addresses differ."""
        text = re.sub(r"\b[0-9a-f]{16}\b", "RING", text.strip())
        return re.sub(r"\d[\d,]*", "N", re.sub(r"\d+(?:\.\d+){3}:\d+", "SERVER", text))

    def test_each_step(self):
        first = [self.memcached() for _ in range(2)]
        self.start(first)
        self.stop()
        at = int(time.time()) + 4
        text, last = self.moving([*first, self.memcached()], at), False
        self.proxies[0].write_config(self.config(0, text))
        for number in range(1, self.PROXIES):
            self.reload(number, text)
        steps = self.steps()
        self.assertEqual(len(steps), 5)
        for command, lines in steps:
            if command.startswith("setlistd-move"):
                wait_until("the time has come", lambda: time.time() >= at + 1, pause=0.05)
                last = True
            elif last:
                self.finish()
            printed = [self.shape(line) for line in self.carry_out(command).splitlines()]
            wanted = [self.shape(line) for line in lines]
            self.assertLessEqual(set(wanted), set(printed), command)
            self.assertEqual(printed[-1], wanted[-1], command)
        self.check_all()
