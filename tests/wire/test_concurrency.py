"""Many clients, several proxies, long pipelines."""
import os
import random
import subprocess
import threading
import time

from case import WireTest
from fake import FakeServer, value_of
from harness import EVENLY, PATIENCE, wait_until
from stored import stats
from wire import Conn, small_windows


def together(count, work):
    """Run work(number) in `count` threads that start at the same time; its exceptions are the caller's."""
    barrier, problems = threading.Barrier(count), []

    def body(number):
        try:
            barrier.wait(PATIENCE)
            work(number)
        except Exception as error:
            problems.append(error)
    threads = [threading.Thread(target=body, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5 * PATIENCE)
    if any(thread.is_alive() for thread in threads):
        problems.append(AssertionError("a client hangs"))
    if problems:
        raise problems[0]


class Races(WireTest):
    """Several proxies on the same servers, which share nothing but these."""

    def proxies(self, count, *args, **kwargs):
        servers = [self.memcached() for _ in range(2)]
        return [self.setlistd(servers, *args, **kwargs) for _ in range(count)]

    def connections(self, proxies, count):
        return [self.connect(proxies[i % len(proxies)]) for i in range(count)]

    def test_creating_a_set(self):
        """All add a member to a set that is not there yet: none is lost."""
        proxies = self.proxies(3)
        conns = self.connections(proxies, 20)
        everyone = {f"member-{i}" for i in range(20)}
        for round_number in range(40):
            key = f"set-{round_number}"
            replies = [None] * 20

            def add(number):
                replies[number] = conns[number].ask(f"sadd {key} member-{number}")
            together(20, add)
            self.assertEqual(set(replies), {"STORED"}, key)
            for conn in conns[:3]:
                found, _ = conn.values(f"smembers {key}")
                self.assertEqual(set(found[key][1].decode().split()), everyone, f"{key}: a creation was lost")

    def test_adding_and_removing(self):
        """Each client has members of its own, which it adds and removes: in the end exactly those that it added last."""
        proxies = self.proxies(3, "-t", "2", config=EVENLY)
        conns = self.connections(proxies, 12)
        kept = [set() for _ in conns]

        def work(number):
            dice = random.Random(number)
            for _ in range(150):
                member = f"m{number}-{dice.randrange(20)}"
                if dice.random() < 0.6:
                    kept[number].add(member)
                    assert conns[number].ask(f"sadd shared {member}") == "STORED"
                else:
                    kept[number].discard(member)
                    assert conns[number].ask(f"srem shared {member}") in ("DELETED", "NOT_FOUND")
                reply = conns[number].ask(f"sismember shared {member}")
                assert reply == "NOT_FOUND" or reply == str(int(member in kept[number])), (member, reply)
        together(12, work)
        found, _ = conns[0].values("smembers shared")
        self.assertEqual(set(found["shared"][1].decode().split()), set().union(*kept))

    def test_replacing_a_set(self):
        """sset from many at once: one of the sets as a whole, never a mixture."""
        conns = self.connections(self.proxies(2), 8)
        sets = [{f"{number}-{i}" for i in range(50)} for number in range(8)]
        for _ in range(10):
            def replace(number):
                reply = conns[number].ask("sset k " + " ".join(sets[number]))
                assert reply in ("STORED", "SERVER_ERROR busy"), reply
            together(8, replace)
            found, _ = conns[0].values("smembers k")
            self.assertIn(set(found["k"][1].decode().split()), sets)

    def test_replacing_against_adding(self):
        """An sadd that was acknowledged after the last sset is there."""
        conns = self.connections(self.proxies(2), 6)

        def work(number):
            for i in range(100):
                if number == 0:
                    assert conns[0].ask("sset k base") in ("STORED", "SERVER_ERROR busy")
                else:
                    assert conns[number].ask(f"sadd k m{number}-{i}") == "STORED"
        together(6, work)
        for number in range(1, 6):
            self.assertEqual(conns[number].ask(f"sadd k last-{number}"), "STORED")
        found, _ = conns[0].values("smembers k")
        members = set(found["k"][1].decode().split())
        self.assertTrue({f"last-{n}" for n in range(1, 6)} <= members)
        self.assertIn("base", members)

    def test_counting_events(self):
        """The sum is exact, and each number is given once."""
        conns = self.connections(self.proxies(3, "-t", "2", config=EVENLY), 12)
        numbers = [[] for _ in conns]

        def count(number):
            for _ in range(200):
                numbers[number].append(int(conns[number].ask("evincr E 1 1424448000")))
        together(12, count)
        self.assertEqual(sorted(n for some in numbers for n in some), list(range(1, 2401)))
        self.assertTrue(all(some == sorted(some) for some in numbers))
        conns[0].send(b"evcount E 2015022016\r\n")
        self.assertEqual(conns[0].lines_until("END"), ["COUNT 2015022016 2400", "END"])

    def test_storing_events(self):
        conns = self.connections(self.proxies(2), 10)
        keys = [[] for _ in conns]

        def add(number):
            for i in range(30):
                data = f"event {number}-{i}"
                conns[number].send(f"evadd E 0 0 {len(data)}\r\n{data}\r\n".encode())
                keys[number].append((conns[number].line().decode(), data))
        together(10, add)
        stored = {reply.split()[1]: data for some in keys for reply, data in some}
        self.assertEqual(len(stored), 300, "an event's key was given twice")
        found, _ = conns[0].values("get " + " ".join(stored))
        self.assertEqual({key: value[1].decode() for key, value in found.items()}, stored)


class Workers(WireTest):
    def test_threads_and_connections(self):
        """Two workers, many connections, each with keys of its own: nobody gets another's reply."""
        _, proxy = self.pool(2, "-t", "2", config=EVENLY)
        conns = [self.connect(proxy) for _ in range(60)]

        def work(number):
            conn = conns[number]
            for i in range(40):
                key, value = f"k-{number}-{i % 5}", f"value {number} {i}".encode()
                assert conn.set(key, value) == "STORED"
                assert conn.get(key) == value, (key, value)
                conn.send(f"sadd s-{number} m{i}\r\nscard s-{number}\r\n".encode())
                assert (conn.line(), conn.line()) == (b"STORED", str(i + 1).encode())
        together(60, work)

    def test_one_thread_for_few_clients(self):
        """From the beginning, when no load was measured yet. Each thread has a connection of its own to the server."""
        server = FakeServer()
        self.addCleanup(server.stop)
        proxy = self.setlistd([server], "-t", "2", config="thread_load = 100")
        keys = [f"key-{i}" for i in range(60)]
        for key in keys:
            with Conn(proxy.port) as conn:
                self.assertEqual(conn.get(key), value_of(key.encode()))
            time.sleep(0.005)  # so that some come while the first measurements are used
        self.assertEqual(len({server.link_with(key) for key in keys}), 1)

    def test_four_threads(self):
        _, proxy = self.pool(2, "-t", "4", config=EVENLY)

        def work(number):
            with Conn(proxy.port) as conn:
                for i in range(50):
                    assert conn.ask(f"sadd k{i} m{number}") == "STORED"
        together(16, work)
        with Conn(proxy.port) as conn:
            for i in range(50):
                self.assertEqual(conn.ask(f"scard k{i}"), "16")


class Model:
    """What the proxy must answer to a pipeline of mixed commands, kept in dictionaries."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.items, self.sets, self.counters = {}, {}, {}

    def command(self):
        """One command's bytes and the bytes of its reply."""
        make = self.dice.choice((self.set, self.get, self.get, self.get_many, self.delete, self.add, self.append, self.count,
                                 self.sadd, self.sadd, self.srem, self.scard, self.sismember, self.event, self.wrong,
                                 self.quiet, self.meta))
        return make(f"{self.dice.choice('abcdefgh')}{self.dice.randrange(4)}")

    def value(self):
        return b"v%d" % self.dice.randrange(10 ** self.dice.randrange(1, 9)) + b"\r\nEND" * self.dice.randrange(3)

    def store(self, verb, key, tail=b""):
        value = self.value()
        return value, b"%s %s 0 0 %d%s\r\n%s\r\n" % (verb, key.encode(), len(value), tail, value)

    def set(self, key):
        value, sent = self.store(b"set", key)
        self.items[key] = value
        return sent, b"STORED\r\n"

    def quiet(self, key):
        value, sent = self.store(b"set", key, b" noreply")
        self.items[key] = value
        return sent, b""

    def add(self, key):
        value, sent = self.store(b"add", key)
        if key in self.items:
            return sent, b"NOT_STORED\r\n"
        self.items[key] = value
        return sent, b"STORED\r\n"

    def append(self, key):
        value, sent = self.store(b"append", key)
        if key not in self.items:
            return sent, b"NOT_STORED\r\n"
        self.items[key] += value
        return sent, b"STORED\r\n"

    def delete(self, key):
        there = self.items.pop(key, None) is not None
        return b"delete %s\r\n" % key.encode(), b"DELETED\r\n" if there else b"NOT_FOUND\r\n"

    def block(self, key):
        value = self.items.get(key)
        return b"" if value is None else b"VALUE %s 0 %d\r\n%s\r\n" % (key.encode(), len(value), value)

    def get(self, key):
        return b"get %s\r\n" % key.encode(), self.block(key) + b"END\r\n"

    def get_many(self, _):
        keys = [f"{letter}{self.dice.randrange(4)}" for letter in "abcdefgh"]
        return b"get " + " ".join(keys).encode() + b"\r\n", b"".join(map(self.block, keys)) + b"END\r\n"

    def meta(self, key):
        value = self.items.get(key)
        reply = b"EN\r\n" if value is None else b"VA %d k%s\r\n%s\r\n" % (len(value), key.encode(), value)
        return b"mg %s v k\r\n" % key.encode(), reply if value is not None else b"EN k%s\r\n" % key.encode()

    def count(self, key):
        name = f"n-{key}"
        if name not in self.counters:
            self.counters[name] = 10
            return b"add %s 0 0 2\r\n10\r\n" % name.encode(), b"STORED\r\n"
        step = self.dice.randrange(1000)
        self.counters[name] += step
        return b"incr %s %d\r\n" % (name.encode(), step), b"%d\r\n" % self.counters[name]

    def members(self):
        return {f"m{self.dice.randrange(30)}" for _ in range(self.dice.randrange(1, 5))}

    def sadd(self, key):
        members = self.members()
        self.sets.setdefault(key, set()).update(members)
        return f"sadd s-{key} {' '.join(members)}\r\n".encode(), b"STORED\r\n"

    def srem(self, key):
        members = self.members()
        sent = f"srem s-{key} {' '.join(members)}\r\n".encode()
        if key not in self.sets:
            return sent, b"NOT_FOUND\r\n"
        self.sets[key] -= members
        return sent, b"DELETED\r\n"

    def scard(self, key):
        reply = b"NOT_FOUND\r\n" if key not in self.sets else b"%d\r\n" % len(self.sets[key])
        return f"scard s-{key}\r\n".encode(), reply

    def sismember(self, key):
        member = f"m{self.dice.randrange(30)}"
        reply = b"NOT_FOUND\r\n" if key not in self.sets else b"%d\r\n" % (member in self.sets[key])
        return f"sismember s-{key} {member}\r\n".encode(), reply

    def event(self, key):
        name = f"event-{key}"
        self.counters[name] = self.counters.get(name, 0) + 1
        return f"evincr {name} 1 1424448000\r\n".encode(), b"%d\r\n" % self.counters[name]

    def wrong(self, key):
        return self.dice.choice(((b"bogus\r\n", b"ERROR\r\n"), (b"mn\r\n", b"MN\r\n"),
                                 (b"sadd %s\r\n" % key.encode(), b"CLIENT_ERROR no member given\r\n"),
                                 (b"set %s x 0 4\r\nquit\r\n" % key.encode(), b"CLIENT_ERROR bad command line format\r\n")))


class Pipelines(WireTest):
    COUNT = 10000

    def run_model(self, proxy, seed, piece=None):
        model = Model(seed)
        commands = [model.command() for _ in range(self.COUNT)]
        sent = b"".join(command for command, _ in commands)
        with self.connect(proxy) as conn:
            sender = threading.Thread(target=self.send, args=(conn, sent, piece), daemon=True)
            sender.start()
            for number, (command, reply) in enumerate(commands):
                while len(conn.buffer) < len(reply):
                    conn._fill()
                got = bytes(conn.buffer[:len(reply)])
                del conn.buffer[:len(reply)]
                self.assertEqual(got, reply, f"reply {number} of seed {seed}, to {command!r}")
            self.assertEqual(conn.ask("mn"), "MN")
            sender.join(PATIENCE)

    @staticmethod
    def send(conn, data, piece):
        for start in range(0, len(data), piece or len(data)):
            conn.send(data[start:start + (piece or len(data))])

    def test_in_one_write(self):
        _, proxy = self.pool(2)
        self.run_model(proxy, 1)

    def test_in_pieces(self):
        """Cut everywhere, over three servers."""
        _, proxy = self.pool(3)
        self.run_model(proxy, 2, piece=997)

    def test_with_small_limits(self):
        """The limits on a client hold it up, and lose nothing."""
        _, proxy = self.pool(2, config="max_pipeline = 8\nclient_buffer = 65536")
        self.run_model(proxy, 3)

    def test_several_at_once(self):
        """Pipelines of several clients, each on servers' keys of its own."""
        _, proxy = self.pool(2, "-t", "2", config=EVENLY)

        def work(number):
            with self.connect(proxy) as conn:
                keys = [f"c{number}-{i}" for i in range(50)]
                sent = b"".join(b"set %s 0 0 %d\r\n%s\r\n" % (k.encode(), len(k), k.encode()) for k in keys) * 20
                gets = b"".join(b"get %s\r\n" % k.encode() for k in keys) * 20
                threading.Thread(target=self.send, args=(conn, sent + gets, None), daemon=True).start()
                for _ in range(1000):
                    assert conn.line() == b"STORED"
                for i in range(1000):
                    found, end = conn.read_values()
                    key = keys[i % 50]
                    assert end == "END" and found[key][1] == key.encode(), (key, found, end)
        together(8, work)


class ManyKeys(WireTest):
    """A request with more keys than are asked for in one go."""

    def test_a_client_that_reads_in_bursts(self):
        """Whatever makes room for more, more is asked for at once: nothing else would happen before the limit passes."""
        value, count = b"x" * 40000, 800
        servers = [self.memcached("-m", "128")]
        proxy = self.setlistd(servers, config="client_buffer = 65536\nrequest_timeout = 600000")
        conn = self.connect(proxy)
        for i in range(count):
            self.assertEqual(conn.set(f"k{i}", value), "STORED")
        wanted = b"".join(b"VALUE k%d 0 %d\r\n%s\r\n" % (i, len(value), value) for i in range(count)) + b"END\r\n"
        sock = small_windows(proxy.port)
        self.addCleanup(sock.close)
        for _ in range(3):
            sock.sendall(b"get " + " ".join(f"k{i}" for i in range(count)).encode() + b"\r\n")
            got = bytearray()
            while len(got) < len(wanted):
                time.sleep(0.2)
                burst = min(len(got) + 8 * 1024 * 1024, len(wanted))
                while len(got) < burst:
                    got += sock.recv(burst - len(got))
            self.assertTrue(got == wanted)

    def test_get_and_smembers(self):
        """It is not overtaken by what changes the last of them."""
        _, proxy = self.pool(2)
        conn = self.connect(proxy)
        keys = [f"k{i}" for i in range(1000)]
        for key in keys:
            self.assertEqual(conn.set(key, b"1"), "STORED")
            self.assertEqual(conn.ask(f"sadd s{key} old"), "STORED")
        conn.send(b"get " + " ".join(keys).encode() + b"\r\nincr k999 1\r\n"
                  b"smembers " + " ".join(f"s{key}" for key in keys).encode() + b"\r\nsadd sk999 new\r\n"
                  b"gat -1 " + " ".join(keys).encode() + b"\r\nget k999\r\n")
        found, end = conn.read_values()
        self.assertEqual((len(found), found["k999"][1], end, conn.line()), (1000, b"1", "END", b"2"))
        found, end = conn.read_values()
        self.assertEqual((len(found), found["sk999"][1], end, conn.line()), (1000, b"old", "END", b"STORED"))
        found, end = conn.read_values()
        self.assertEqual((len(found), found["k999"][1], end), (1000, b"2", "END"))
        self.assertEqual(conn.read_values(), ({}, "END"))


class HalfClose(WireTest):
    def test_commands_then_fin(self):
        """All is answered, then the proxy closes."""
        _, proxy = self.pool(2)
        with self.connect(proxy) as conn:
            conn.send(b"sadd t a b c\r\nsrem t b\r\nsmembers t\r\nget x\r\nset x 0 0 1\r\n1\r\nget x\r\n")
            conn.half_close()
            self.assertEqual(conn.rest(), b"STORED\r\nDELETED\r\nVALUE t 0 3\r\na c\r\nEND\r\nEND\r\nSTORED\r\n"
                                          b"VALUE x 0 1\r\n1\r\nEND\r\n")

    def test_many_commands_then_fin(self):
        _, proxy = self.pool(2)
        with self.connect(proxy) as conn:
            conn.send(b"incr n 1\r\nmn\r\n" * 5000)
            conn.half_close()
            self.assertEqual(conn.rest(), b"NOT_FOUND\r\nMN\r\n" * 5000)

    def test_half_a_command_then_fin(self):
        _, proxy = self.pool(2)
        with self.connect(proxy) as conn:
            conn.send(b"mn\r\nset x 0 0 5\r\nab")
            conn.half_close()
            self.assertEqual(conn.rest(), b"MN\r\n")
        with self.connect(proxy) as conn:
            self.assertIsNone(conn.get("x"))


def without_statistics():
    """A command that runs a program without the system's statistics, for which a core is always idle then; () without the right to."""
    under = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", 'mount --bind /dev/null /proc/stat && exec "$@"', "sh"]
    try:
        done = subprocess.run([*under, "true"], capture_output=True, timeout=PATIENCE, check=False)
    except OSError:
        return ()
    return under if done.returncode == 0 else ()


class Moved(WireTest):
    """Clients that are given from one thread to the other, since theirs has too much to do, notice nothing, and stay authenticated."""
    alone = True

    def test_all_replies_are_right(self):
        under = without_statistics()
        users = self.private_file("foo:bar\n")
        _, proxy = self.pool(2, "-t", "2", config=f'thread_load = 1\nauth_file = "{users}"', under=under)
        watcher, done, rounds = self.connect(proxy), threading.Event(), [0] * 8
        self.assertEqual(watcher.set("auth", b"foo bar"), "STORED")

        end = time.monotonic() + PATIENCE / 2

        def moved():
            return int(stats(watcher, "stats")["moved_connections"])

        def busy():
            return time.monotonic() > end

        def work(number):
            with self.connect(proxy) as conn:
                assert conn.set("auth", b"foo bar") == "STORED"
                while not done.is_set():
                    i = rounds[number]
                    again = b"get k%d\r\n" % number
                    now = i % 3  # so many bytes of it at once: none, one, or two
                    conn.send(b"sadd s%d m%d\r\nset k%d 0 0 %d\r\n%d\r\nscard s%d\r\n"
                              % (number, i % 50, number, len(str(i)), i, number) + again + again[:now])
                    assert (conn.line(), conn.line()) == (b"STORED", b"STORED")
                    assert int(conn.line()) == min(i + 1, 50)
                    for more in (again[now:], b""):
                        assert conn.read_values()[0][f"k{number}"][1] == str(i).encode()
                        conn.send(more)
                    rounds[number] += 1
                    time.sleep(0.002)  # so that cores are idle

        def wait(number):
            if number < 8:
                work(number)
                return
            try:
                wait_until("some are moved", PATIENCE, lambda: moved() > 0 or not under and busy())
                enough = [count + 50 for count in rounds]
                wait_until("all get on", PATIENCE, lambda: all(a >= b for a, b in zip(rounds, enough)))
            finally:
                done.set()
        together(9, wait)
        if moved() == 0:
            self.skipTest("no client was moved: no core was idle")
