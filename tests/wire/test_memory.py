"""Memory: how much all clients together may use, and the message when memory runs out."""
import contextlib
import resource
import signal

import scripted
from case import WireTest, marks
from case_bounds import BoundsTest
from harness import ESTABLISHED, PATIENCE, built_with_sanitizer, tcp_rows, wait_until
from stored import stats
from wire import Closed

MIB = 1 << 20
BOUNDS_WITHIN_TURN = 256 * 1024  # of client/bounds.h
SETS_FIRST = 8  # of order.h: sets that one request reads at first




class NoMemory(WireTest):
    smoke = True
    plain = True

    def test_last_words(self):
        """The process ends with a message."""
        if built_with_sanitizer():
            self.skipTest("a sanitizer ends the process itself")
        conn = self.serve()
        self.assertEqual(conn.ask("mn"), "MN")
        most = self.proxy.status_kib("VmData") * 1024 + MIB
        resource.prlimit(self.proxy.pid, resource.RLIMIT_DATA, (most, most))
        with contextlib.suppress(OSError):
            conn.send(b"set k 0 0 8000000\r\n" + b"x" * 8000000 + b"\r\n")
        self.assertEqual(self.proxy.process.child.wait(PATIENCE), -signal.SIGABRT)
        self.proxy.stopped = True
        self.assertRegex(self.proxy.process.stderr(), r"error: out of memory: an allocation of \d+ bytes failed; aborting\n")


class Memory(BoundsTest):
    """client_memory: the largest clients are closed, the others are not affected."""
    alone = True
    smoke = True
    plain = True

    def serve_big(self, config):
        self.serve(config)
        self.assertEqual(self.watcher.set("big", b"x" * 1000000), "STORED")
        self.assertEqual(self.watcher.set("little", b"x"), "STORED")
        self.small = self.connect(self.proxy)

    def bounded(self, limit):
        wait_until("memory is reclaimed", lambda: self.count("client_bytes") <= limit)
        self.assertEqual(self.small.get("little"), b"x")
        if not built_with_sanitizer():
            self.assertLess(self.proxy.peak_mib(), limit / MIB + 64)

    def test_clients_that_do_not_read(self):
        self.serve_big("client_memory = 16777216")
        socks = [self.deaf() for _ in range(40)]
        for sock in socks:
            sock.sendall(b"get big\r\n" * 32)
        self.wait_for("closed_memory_clients", 10)
        self.bounded(16 * MIB)
        self.assertIn("client_memory is exceeded", self.proxy.process.stderr())

    @marks(smoke=False)
    def test_buffers_count_whole(self):
        """A buffer is larger than its content, and its memory belonged to another client before."""
        self.serve_big("")
        conns = [self.connect(self.proxy) for _ in range(300)]
        for conn in conns:
            conn.send(b"get big\r\n" * 32)
        self.wait_for("closed_memory_clients", 220)
        self.bounded(256 * MIB)

    def test_values_of_one_request(self):
        """They count as they arrive, although the request is answered only after the client reads some."""
        self.serve_big("client_memory = 16777216")
        for sock in [self.deaf() for _ in range(20)]:
            sock.sendall(b"get" + b" big" * 1000 + b"\r\n")
        self.wait_for("closed_memory_clients", 19)
        self.bounded(16 * MIB)

    @marks(smoke=False)
    def test_client_that_takes_nothing_of_one_request(self):
        self.serve_big("client_buffer = 65536")
        self.deaf().sendall(b"get" + b" big" * 1000 + b"\r\n")
        self.wait_for("closed_slow_clients")

    def test_reply_to_a_client_that_has_gone(self):
        """It is not made."""
        self.serve_big('commands = "q|"')
        for i in range(100):
            self.assertEqual(self.watcher.ask("sadd set " + " ".join(f"{i}-{j}-{'m' * 90}" for j in range(1000))), "STORED")
        size = len(self.watcher.values("smembers set")[0]["set"][1])
        before = self.proxy.status_kib("VmRSS") / 1024
        conn = self.connect(self.proxy)
        asked = self.count("cmd_get")
        self.server.pause()
        conn.send(b"get q|smembers" + b"|set" * SETS_FIRST + b" little\r\n")
        self.wait_for("cmd_get", asked + 1)
        conn.reset()
        wait_until("it has gone", lambda: stats(self.watcher)["curr_connections"] == "2")
        self.server.resume()
        reply = SETS_FIRST * size / MIB
        # An earlier request of the client delays this one on the way from the server.
        self.assertEqual(len(self.watcher.values("smembers set")[0]["set"][1]), size)
        if not built_with_sanitizer():
            self.assertLess(self.proxy.peak_mib(), before + reply / 2)

    def test_beginnings_of_lines(self):
        """A line that arrives in pieces needs little more memory than its length."""
        self.serve_big("")
        conns = [self.connect(self.proxy) for _ in range(100)]
        for _ in range(3):
            for conn in conns:
                conn.send(b"get" * 100)
            for _ in range(20):             # turns in which that is read
                self.watcher.ask("mn")
        self.assertLess(self.count("client_bytes"), len(conns) * 32768)

    def test_requests_that_are_not_complete(self):
        self.serve_big("client_memory = 16777216\nmax_value = 8388608")
        for part in (b"set k 0 0 1000000\r\n" + b"x" * 999999, b"get " + b"k" * 999000):
            with self.subTest(part=part[:10]):
                before = self.count("closed_memory_clients")
                for conn in [self.connect(self.proxy) for _ in range(40)]:
                    with contextlib.suppress(OSError):
                        conn.send(part)
                self.wait_for("closed_memory_clients", before + 10)
                self.bounded(16 * MIB)

    def test_one_text_for_many_counts_once(self):
        self.serve_big("client_memory = 16777216")
        for i in range(40):
            self.assertEqual(self.watcher.ask("sadd set " + " ".join(f"{i}-{j}-{'m' * 40}" for j in range(500))), "STORED")
        readers = [self.connect(self.proxy) for _ in range(60)]
        sizes = set()
        for conn in readers:
            conn.send(b"smembers set\r\n")
        for conn in readers:
            sizes.add(len(conn.read_values()[0]["set"][1]))
        self.assertEqual(len(sizes), 1)
        self.assertEqual(stats(self.watcher)["closed_memory_clients"], "0")

    def test_a_text_counts_before_it_is_written(self):
        """Several clients receive it in one turn, and another one so much in the same turn that the limit is checked at once."""
        self.serve_big("")
        for i in range(20):
            self.assertEqual(self.watcher.ask("sadd set " + " ".join(f"{i}-{j}-{'m' * 10}" for j in range(500))), "STORED")
        size = len(self.watcher.values("smembers set")[0]["set"][1])
        self.assertIn(size, range(BOUNDS_WITHIN_TURN // 2, BOUNDS_WITHIN_TURN), "those that get it once are weighed at once too")
        conns = [self.connect(self.proxy) for _ in range(5)]
        conns.append(conns[-1])
        asked = self.count("cmd_collection")
        self.server.pause()
        for number, conn in enumerate(conns, 1):
            conn.send(b"smembers set\r\n")
            self.wait_for("cmd_collection", asked + number)
        self.server.resume()
        for conn in conns:
            self.assertEqual(len(conn.read_values()[0]["set"][1]), size)
        self.assertEqual(stats(self.watcher)["closed_memory_clients"], "0")

    def test_a_reply_that_cannot_be_held(self):
        """For a command as a key, the client receives an error and is not closed."""
        self.serve_big('client_memory = 4194304\ncommands = "q|"')
        for _ in range(8):
            self.watcher.send(b"evadd E 0 0 900000\r\n" + b"x" * 900000 + b"\r\n")
            self.watcher.line()
        self.assertEqual(self.watcher.ask("get q|evrange|E|now"), "SERVER_ERROR result too large")
        self.assertEqual(self.watcher.ask("mg q|evlast|E|8 v"), "SERVER_ERROR result too large")
        found, _ = self.watcher.values("get q|evlast|E|2 little")
        self.assertEqual((len(found["q|evlast|E|2"][1]) // 900000, found["little"][1]), (2, b"x"))
        self.assertEqual(stats(self.watcher)["closed_memory_clients"], "0")

    @marks(smoke=False)    # How many replies grow concurrently depends on other load of the machine.
    def test_answers_that_grow(self):
        """They count while they are made, and one that no client may hold is refused before."""
        self.serve_big("client_memory = 16777216")
        sets = [f"set-{i}" for i in range(16)]
        for key in sets:
            self.assertEqual(self.watcher.ask(f"sadd {key} " + " ".join(f"{i}-{'m' * 200}" for i in range(500))), "STORED")
        self.assertEqual(self.watcher.ask(f"srandmember {sets[0]} -1000000"), "SERVER_ERROR result too large")
        for key in sets:
            self.deaf().sendall(f"srandmember {key} -70000\r\n".encode())
        self.wait_for("closed_memory_clients", len(sets) - 2)
        self.bounded(16 * MIB)

    def test_all_is_given_back(self):
        self.serve_big("")
        socks = [self.deaf() for _ in range(5)]
        for sock in socks:
            sock.sendall(b"smembers big\r\nget big\r\n" * 4)
        wait_until("they hold something", lambda: self.count("client_bytes") > 4 * MIB)
        for sock in socks:
            sock.close()
        wait_until("all is given back", lambda: self.count("client_bytes") < 16384)


def to_be_sent(port):
    """Returns the bytes in the kernel for the peers of this port: (TCP state, bytes) of each connection."""
    return [(row[3], int(row[4].split(":")[0], 16)) for row in tcp_rows() if int(row[1].split(":")[1], 16) == port]


class KernelMemory(BoundsTest):
    """All sockets of a machine share TCP's memory: once it is used up, all of them block."""
    smoke = True

    def setUp(self):
        self.serve("client_memory = 16777216")
        self.assertEqual(self.watcher.set("big", b"x" * 1000000), "STORED")

    def test_little_for_a_client_that_does_not_read(self):
        """It is less where clients are many."""
        conns = [self.connect(self.proxy) for _ in range(64)]
        conns[-1].send(b"get big\r\n" * 15)
        wait_until("replies wait", lambda: self.count("client_bytes") > 4 * MIB)
        self.assertLess(max(held for _, held in to_be_sent(self.proxy.port)), 256 * 1024)

    def test_nothing_for_a_client_that_was_closed(self):
        conns = [self.connect(self.proxy) for _ in range(20)]
        for conn in conns:
            conn.send(b"get big\r\n" * 16)
        self.wait_for("closed_memory_clients", 5)
        closed = [held for state, held in to_be_sent(self.proxy.port) if state != ESTABLISHED]
        self.assertEqual(sum(closed), 0)


class CounterMemory(BoundsTest):
    """Memory of requests that read very many counters: here a third of a megabyte for a request of 225 bytes."""
    smoke = True
    TYPE = "T" * 210
    REQUEST = f"evcount {TYPE} 2012\r\n".encode()
    HOURS = 366 * 24

    def hold_first(self):
        return self.hold(self.server, f"{self.TYPE}::2012010100")

    def is_answered(self, conn):
        try:
            self.assertEqual(len(conn.lines_until("END")), self.HOURS + 1)
        except (Closed, OSError):
            return False
        return True

    def test_of_many_clients(self):
        """Two of these requests are too much. A single one is carried out with its reply, although it needs more than client_buffer."""
        self.serve_scripted("client_memory = 655360\nrequest_timeout = 600000")
        held = self.hold_first()
        conns = [self.connect(self.proxy) for _ in range(4)]
        for conn in conns:
            conn.send(self.REQUEST)
        self.wait_for("closed_memory_clients", 3)
        self.assertGreater(self.count("client_bytes"), MIB // 4)
        held.release()
        self.assertEqual([self.is_answered(conn) for conn in conns].count(True), 1)
        self.assertEqual(stats(self.watcher)["closed_memory_clients"], "3")
        wait_until("all is given back", lambda: self.count("client_bytes") < 16384)

    @marks(smoke=False)
    def test_is_no_reply(self):
        """A client that waits for its counters is not a client that does not read, which is closed meanwhile."""
        self.serve_scripted("client_buffer = 65536\nrequest_timeout = 600000")
        conn, deaf = self.connect(self.proxy), self.deaf()
        self.assertEqual(conn.ask("mn"), "MN")
        self.server.faults[b"key-big"] = scripted.large
        deaf.sendall(b"get key-big\r\n" * 2)
        wait_until("it does not read", lambda: self.count("client_bytes") > 16 * 65536)
        held = self.hold_first()
        conn.send(self.REQUEST)
        self.wait_for("closed_slow_clients")
        held.release()
        self.assertTrue(self.is_answered(conn))
        self.assertEqual(stats(self.watcher)["closed_slow_clients"], "1")

    def test_requests_without_room(self):
        """Set algebra needs memory for a block of each set. The requests that have no room stay in the input."""
        self.serve_scripted("request_timeout = 600000")
        held, conn = self.hold(self.server, "key-a"), self.connect(self.proxy)
        conn.send(b"sintercard 2 key-a key-b\r\n" * 1000)
        wait_until("some begin", lambda: self.count("cmd_collection") > 0)
        for _ in range(20):                 # turns in which more could begin
            self.watcher.ask("mn")
        self.assertLess(self.count("cmd_collection"), 100)
        held.release()
        self.assertEqual({conn.line() for _ in range(1000)}, {b"CLIENT_ERROR value is not a collection"})

    def test_clients_that_have_sent_all(self):
        """They may have disconnected, so only 32 of them wait for memory. All others are closed."""
        self.serve_scripted("request_timeout = 600000")
        held, conns = self.hold(self.server, "key-a"), [self.connect(self.proxy) for _ in range(40)]
        for conn in conns:
            conn.send(b"sintercard 2 key-a key-b\r\n" * 20)
        wait_until("all have begun", lambda: self.count("cmd_collection") >= 40)
        self.assertEqual(self.count("closed_memory_clients"), 0)
        for conn in conns:
            conn.half_close()
        self.wait_for("closed_memory_clients", 8)
        held.release()
        replies = [conn.rest() for conn in conns]
        self.assertEqual(replies.count(b"CLIENT_ERROR value is not a collection\r\n" * 20), 32)
        self.assertEqual(self.count("closed_memory_clients"), 8)

    def test_is_given_back_at_once(self):
        """Though nothing can be written to the client."""
        self.serve()
        self.assertEqual(self.watcher.set("big", b"x" * 1000000), "STORED")
        self.deaf().sendall(b"get big\r\nget big\r\n" + self.REQUEST.replace(b"2012 2013", b"2012 2016"))
        self.wait_for("cmd_event")
        wait_until("it is given back", lambda: self.count("client_bytes") < 8 * MIB)
