"""Many clients, several proxies, long pipelines."""
import random
import threading
import time

import model
from case import WireTest, marks
from scripted import value_of
from harness import EVENLY, PATIENCE, wait_until
from model import Key, Op
from dns import command_with
from stored import stat
from wire import Conn, usage


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


def drain(conns, command, meanwhile=lambda: None):
    """All clients pop until the lists are empty and `meanwhile` has ended. command(dice) is the next command. Returns all popped elements."""
    taken, done = [], threading.Event()

    def work(number):
        if number == len(conns):
            meanwhile()
            done.set()
            return
        dice, last, found, end = random.Random(number), False, True, ""
        while found or not last or end != "END":
            last = done.is_set()
            found, end = conns[number].values(command(dice))
            assert end in ("END", "SERVER_ERROR busy"), end
            taken.extend([item for _, data in found.values() for item in data.split(b" ")])
    together(len(conns) + 1, work)
    return taken


class Races(WireTest):
    """Several proxies on the same servers, which share nothing but these."""
    smoke = True

    def connections(self, proxies, count, *args, **kwargs):
        """This number of connections, to this number of proxies."""
        servers = [self.memcached() for _ in range(2)]
        peers = [self.setlistd(servers, *args, **kwargs) for _ in range(proxies)]
        return [self.connect(peers[i % proxies]) for i in range(count)]

    @staticmethod
    def members(conn, key):
        found, _ = conn.values(f"smembers {key}")
        return set(found[key][1].decode().split())

    def test_creating_a_set(self):
        """All add a member to a set that is not there yet: none is lost."""
        conns = self.connections(3, 20)
        everyone = {f"member-{i}" for i in range(20)}
        for round_number in range(40):
            key = f"set-{round_number}"
            replies = [None] * 20

            def add(number):
                replies[number] = conns[number].ask(f"sadd {key} member-{number}")
            together(20, add)
            self.assertEqual(set(replies), {"STORED"}, key)
            for conn in conns[:3]:
                self.assertEqual(self.members(conn, key), everyone, f"{key}: a creation was lost")


    def test_replacing_a_set(self):
        """sset from many clients concurrently: the result is one of the sets as a whole, never a mixture."""
        conns = self.connections(2, 8)
        sets = [{f"{number}-{i}" for i in range(50)} for number in range(8)]
        for _ in range(10):
            def replace(number):
                reply = conns[number].ask("sset k " + " ".join(sets[number]))
                assert reply in ("STORED", "SERVER_ERROR busy"), reply
            together(8, replace)
            self.assertIn(self.members(conns[0], "k"), sets)

    def test_replacing_against_adding(self):
        """An sadd that was acknowledged after the last sset is there."""
        conns = self.connections(2, 6)

        def work(number):
            for i in range(100):
                if number == 0:
                    assert conns[0].ask("sset k base") in ("STORED", "SERVER_ERROR busy")
                else:
                    assert conns[number].ask(f"sadd k m{number}-{i}") == "STORED"
        together(6, work)
        for number in range(1, 6):
            self.assertEqual(conns[number].ask(f"sadd k last-{number}"), "STORED")
        self.assertLessEqual({"base", *(f"last-{number}" for number in range(1, 6))}, self.members(conns[0], "k"))

    def test_popping_what_is_added(self):
        self.in_turn("sadd", "spop", "scard")

    def test_popping_what_is_pushed(self):
        self.in_turn("rpush", "lpop", "llen")

    def in_turn(self, add, pop, count):
        """Each client adds an element and removes one, through one proxy or through all: none is lost, or returned twice."""
        conns, taken, added = self.connections(2, 4), [], []

        def work(number):
            conn, mine = conns[number], [f"{number}-{i}" for i in range(300)]
            for member in mine:
                self.assertEqual(conn.ask(f"{add} k {member}"), "STORED")
                found, end = conn.values(f"{pop} k")
                while end == "SERVER_ERROR busy":
                    found, end = conn.values(f"{pop} k")
                taken.append(found["k"][1].decode())
            added.extend(mine)
        work(0)
        together(len(conns), lambda number: number and work(number))
        work(0)
        self.assertEqual(sorted(taken), sorted(added))
        self.assertEqual(conns[0].ask(f"{count} k"), "0")

    def test_counting_events(self):
        """The sum is exact, and each number is given once."""
        conns = self.connections(3, 12, "-t", "2", config=EVENLY)
        numbers = [[] for _ in conns]

        def count(number):
            for _ in range(200):
                numbers[number].append(int(conns[number].ask("evincr E 1 1424448000")))
        together(12, count)
        self.assertEqual(sorted(n for some in numbers for n in some), list(range(1, 2401)))
        self.assertTrue(all(some == sorted(some) for some in numbers))
        conns[0].send(b"evcount E 2015022016\r\n")
        self.assertEqual(conns[0].lines_until("END"), ["COUNT 2015022016 2400", "END"])

    def test_a_limit(self):
        """All proxies together let exactly the permitted number through; events above the limit count as well."""
        conns = self.connections(3, 12, "-t", "2", config=EVENLY + '\nevents "E" { bucket = "day" }')
        let_through = []

        def attempt(name):
            def count(number):
                for _ in range(50):
                    reply = int(conns[number].ask(f"evlimit E{name} 100 86400"))
                    if reply:
                        let_through.append(reply)
            together(12, count)
            conns[0].send(f"evcount E{name}\r\n".encode())
            return conns[0].lines_until("END")[0].endswith(" 600")
        for name in range(3):       # repeated if the day has changed meanwhile
            let_through.clear()
            if attempt(name):
                break
        self.assertEqual(sorted(let_through), list(range(1, 101)))

    def test_storing_events(self):
        conns = self.connections(2, 10)
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
    smoke = True

    def test_threads_and_connections(self):
        """Two workers, many connections, each with its own keys: no client receives the reply to another."""
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
        """From the start, when no load has been measured yet. Each thread has its own connection to the server."""
        server = self.scripted_server()
        proxy = self.setlistd([server], "-t", "2", config="thread_load = 100")
        keys = [f"key-{i}" for i in range(60)]
        for key in keys:
            with Conn(proxy.port) as conn:
                self.assertEqual(conn.get(key), value_of(key.encode()))
            time.sleep(0.005)  # so that some connect while the first measurements are used
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


class Dialogue:
    """A long pipeline of mixed commands on a few keys of each kind; see model.py."""
    WRONG = ((b"bogus", b"ERROR"), (b"mn", b"MN"), (b"sadd k", usage("sadd")),
             (b"set k x 0 4\r\nquit", usage("set")))

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.keys = {family: [Key(f"{family}{number}".encode()) for number in range(12)] for family in (*model.FAMILIES, "E")}

    def op(self):
        others = (self.many, self.quiet, self.event, self.wrong)
        return self.dice.choice((*[self.of_one_key] * 12, *others))()

    def of_one_key(self):
        family = self.dice.choice(list(model.FAMILIES))
        key = self.dice.choice(self.keys[family])
        return Op(key, *self.dice.choice(list(model.FAMILIES[family](key, self.dice))))

    def many(self):
        keys = self.dice.choices(self.keys["p"], k=8)

        def judge(_, reply):
            model.must(reply == {key.name.decode(): (0, key.state) for key in keys if key.state is not None})
        return Op(None, b"get " + b" ".join(key.name for key in keys), model.values, judge)

    def quiet(self):
        key, data = self.dice.choice(self.keys["p"]), b"%d" % self.dice.randrange(10 ** 9)
        return Op(key, b"set %s 0 0 %d noreply\r\n%s" % (key.name, len(data), data), lambda _: None, lambda *_: data)

    def event(self):
        key = self.dice.choice(self.keys["E"])

        def judge(state, reply):
            model.must(reply == b"%d" % ((state or 0) + 1))
            return (state or 0) + 1
        return Op(key, b"evincr %s 1 1424448000" % key.name, model.line, judge)

    def wrong(self):
        sent, reply = self.dice.choice(self.WRONG)
        return Op(None, sent, model.line, model.is_reply(reply, None))


class Pipelines(WireTest):
    smoke = True
    COUNT = 10000

    def run_model(self, seed, servers=2, piece=None, **kwargs):
        conn, dialogue = self.serve(servers, **kwargs), Dialogue(seed)
        ops = [dialogue.op() for _ in range(self.COUNT)]
        sent = b"".join(op.line + b"\r\n" for op in ops)
        sender = threading.Thread(target=self.send, args=(conn, sent, piece), daemon=True)
        sender.start()
        model.take_all(conn, ops, f"seed {seed}")
        self.assertEqual(conn.ask("mn"), "MN")
        sender.join(PATIENCE)

    @staticmethod
    def send(conn, data, piece):
        for start in range(0, len(data), piece or len(data)):
            conn.send(data[start:start + (piece or len(data))])

    def test_in_one_write(self):
        self.run_model(1)

    def test_in_pieces(self):
        """Cut everywhere, over three servers."""
        self.run_model(2, servers=3, piece=997)

    def test_with_small_limits(self):
        """The limits on a client hold it up, and lose nothing."""
        self.run_model(3, config="max_pipeline = 8\nclient_buffer = 65536")

    def test_several_at_once(self):
        """Pipelines of several clients, each with its own keys on each server."""
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
    """A request with more keys than are requested in one round."""
    smoke = True

    @marks(smoke=False)
    def test_a_client_that_reads_in_bursts(self):
        """Whenever there is capacity for more, more is requested immediately: otherwise nothing would happen before the timeout."""
        value, count = b"x" * 40000, 800
        conn = self.serve([self.memcached("-m", "128")], config="client_buffer = 65536\nrequest_timeout = 600000")
        for i in range(count):
            self.assertEqual(conn.set(f"k{i}", value), "STORED")
        wanted = b"".join(b"VALUE k%d 0 %d\r\n%s\r\n" % (i, len(value), value) for i in range(count)) + b"END\r\n"
        sock = self.deaf()
        for _ in range(3):
            sock.sendall(b"get " + " ".join(f"k{i}" for i in range(count)).encode() + b"\r\n")
            got = bytearray()
            while len(got) < len(wanted):
                time.sleep(0.2)  # Without the pause there would be no bursts: everything that is ready would be sent in time.
                burst = min(len(got) + 8 * 1024 * 1024, len(wanted))
                while len(got) < burst:
                    got += sock.recv(burst - len(got))
            self.assertTrue(got == wanted)

    def test_get_and_smembers(self):
        """It is not overtaken by a change of its last keys."""
        conn = self.serve(2)
        keys = [f"k{i}" for i in range(1000)]
        for key in keys:
            self.assertEqual(conn.set(key, b"1"), "STORED")
            self.assertEqual(conn.ask(f"sadd s{key} old"), "STORED")
        conn.send(b"get " + " ".join(keys).encode() + b"\r\nincr k999 1\r\n"
                  b"smembers " + " ".join(f"s{key}" for key in keys).encode() + b"\r\nsadd sk999 new\r\n"
                  b"gat -1 " + " ".join(keys).encode() + b"\r\nget k999\r\n")
        for last, value, after in (("k999", b"1", b"2"), ("sk999", b"old", b"STORED"), ("k999", b"2", b"END")):
            found, end = conn.read_values()
            self.assertEqual((len(found), found[last][1], end, conn.line()), (1000, value, "END", after))


class HalfClose(WireTest):
    smoke = True

    def test_commands_then_fin(self):
        """All complete requests are answered, then the proxy closes the connection."""
        self.serve(2)
        for sent, replies in ((b"sadd t a b c\r\nsrem t b\r\nsmembers t\r\nget x\r\nset x 0 0 1\r\n1\r\nget x\r\n",
                               b"STORED\r\nDELETED\r\nVALUE t 0 3\r\na c\r\nEND\r\nEND\r\nSTORED\r\nVALUE x 0 1\r\n1\r\nEND\r\n"),
                              (b"incr n 1\r\nmn\r\n" * 5000, b"NOT_FOUND\r\nMN\r\n" * 5000), (b"mn\r\nset y 0 0 5\r\nab", b"MN\r\n")):
            with self.connect(self.proxy) as conn:
                conn.send(sent)
                conn.half_close()
                self.assertEqual(conn.rest(), replies)
        self.assertIsNone(self.conn.get("y"))




class Moved(WireTest):
    """Clients that are handed to another thread, since theirs is overloaded, notice nothing, and stay authenticated."""
    alone = True
    smoke = True

    def test_all_replies_are_right(self):
        # Without the system's statistics a core is always idle.
        under = command_with({"/proc/stat": "/dev/null"})
        users = self.private_file("foo:bar\n")
        watcher = self.serve(2, "-t", "2", config=f'thread_load = 1\nauth_file = "{users}"', under=under)
        done, rounds = threading.Event(), [0] * 8
        self.assertEqual(watcher.set("auth", b"foo bar"), "STORED")

        end = time.monotonic() + 30

        def moved():
            return stat(watcher, "stats", "moved_connections")

        def work(number):
            with self.connect(self.proxy) as conn:
                assert conn.set("auth", b"foo bar") == "STORED"
                while not done.is_set():
                    i = rounds[number]
                    again = b"get k%d\r\n" % number
                    now = i % 3  # number of its bytes at once: none, one, or two
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
                wait_until("some are moved", lambda: moved() > 0 or not under and time.monotonic() > end)
                enough = [count + 50 for count in rounds]
                wait_until("all get on", lambda: all(a >= b for a, b in zip(rounds, enough)))
            finally:
                done.set()
        together(9, wait)
        if moved() == 0:
            self.skipTest("no client was moved: no core was idle")
