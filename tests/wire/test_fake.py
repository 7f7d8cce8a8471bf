"""A server that misbehaves: no reply may ever reach the wrong request, and setlistd must be usable again afterwards.

What counts: a request gets its own value (each names its key) or an error that names the server, never anything else; where
the framing is in doubt the connection to the server is closed; a new one serves the next request.
"""
import contextlib
import random
import re
import threading
import time

import fake
from case import WireTest
from fake import FakeServer, FullBacklog, value_of
from harness import PATIENCE, wait_until
from stored import stats
from wire import Conn, small_windows

CONFIG = "retry_min = 10\nretry_max = 200"
# Where a limit is to pass. A machine that stands still lets it pass anywhere, so more than "own value or error" can be said
# there only of what is never answered.
HASTY = f"{CONFIG}\nrequest_timeout = 400"
# Whoever waits for a limit here waits too long for the test.
NEVER = f"{CONFIG}\nrequest_timeout = 600000"


class FakeTest(WireTest):
    def serve(self, config=CONFIG, patient=True, **kwargs):
        """One fake server, a setlistd in front of it, and a connection; those of before are ended."""
        self.end_serving()
        self.fake = self.fake_server(**kwargs)
        self.proxy = self.setlistd([self.fake], config=config, patient=patient)
        self.conn = self.connect(self.proxy)

    def serve_hastily(self, config=HASTY, **kwargs):
        """With limits that may pass. The server is greeted: what is asked now is sent to it."""
        self.serve(config=config, **kwargs)
        self.usable_again()

    def end_serving(self):
        if getattr(self, "proxy", None):
            self.conn.close()
            self.proxy.stop()
            self.processes.remove(self.proxy)
            self.fake.stop()

    def fake_server(self, **kwargs):
        server = FakeServer(**kwargs)
        self.addCleanup(server.stop)
        return server

    def error(self, what):
        return f"SERVER_ERROR upstream {self.fake.name} {what}"

    def fault(self, key, action, once=True):
        self.fake.faults[key.encode()] = fake.one_shot(action) if once else action

    def own_or_error(self, keys, conn=None):
        """Read one reply for each `get key` in turn. Returns {key: error line or None}."""
        conn = conn or self.conn
        outcome = {}
        for key in keys:
            found, end = conn.read_values()
            if end == "END":
                self.assertEqual(set(found), {key}, f"reply to get {key}")
                self.assertEqual(found[key][1], value_of(key.encode()), f"reply to get {key}")
                outcome[key] = None
            else:
                self.assertEqual(found, {}, f"reply to get {key}")
                self.assertTrue(end.startswith(f"SERVER_ERROR upstream {self.fake.name} "), f"get {key}: {end}")
                outcome[key] = end
        return outcome

    def ask_all(self, keys, conn=None):
        (conn or self.conn).send(b"".join(b"get %s\r\n" % key.encode() for key in keys))

    def uptime(self):
        return int(stats(self.conn, "stats")["uptime"])

    def usable_again(self):
        """Each key is answered with its own value."""
        def good():
            keys = ["key-after-1", "key-after-2", "key-after-3"]
            self.ask_all(keys)
            return not any(self.own_or_error(keys).values())
        wait_until("setlistd is usable again", PATIENCE, good, pause=0.02)

    def was_sent(self, key, times, line):
        """So often, and not once more."""
        wait_until(f"{line} arrives", PATIENCE, lambda: len(self.fake.requests_for(key)) >= times)
        self.assertEqual(len(self.fake.requests_for(key)), times, f"{line} was sent again")

    def was_closed(self, key):
        link = wait_until(f"a request for {key} arrives", PATIENCE, lambda: self.fake.link_with(key))
        self.assertTrue(link.closed_by_peer.wait(PATIENCE), "setlistd kept a connection whose framing is in doubt")


class Normal(FakeTest):
    """The fake without faults: what the other tests stand on."""

    def test_handshake_and_get(self):
        self.serve()
        self.assertEqual(self.conn.get("key-1"), value_of(b"key-1"))
        self.assertIsNone(self.conn.get("missing"))
        found, _ = self.conn.values("gets key-1 missing key-2")
        self.assertEqual({k: (v[1], v[2]) for k, v in found.items()},
                         {"key-1": (value_of(b"key-1"), 7), "key-2": (value_of(b"key-2"), 7)})
        self.assertEqual(self.fake.requests_for("key-1")[0].verb, b"mg")
        asked = [r.words for r in self.fake.links[0].requests[:3]]
        self.assertEqual(asked, [[b"version"], [b"mn"], [b"stats", b"settings"]])

    def test_server_without_meta_commands(self):
        self.serve(meta=False, version=b"1.4.39")
        self.assertEqual(self.conn.get("key-1"), value_of(b"key-1"))
        found, _ = self.conn.values("get key-1 missing key-2 key-1")
        self.assertEqual(set(found), {"key-1", "key-2"})
        found, _ = self.conn.values("gets key-1")
        self.assertEqual(found["key-1"][1:], (value_of(b"key-1"), 7))
        self.assertEqual({r.verb for r in self.fake.requests_for("key-1")} - {b"get", b"gets"}, set())
        self.assertEqual(self.conn.set("key-1", b"x"), "STORED")
        self.assertIn("1.4.39", self.conn.ask("version"))

    def test_pipeline_without_meta_commands(self):
        self.serve(meta=False, version=b"1.4.39")
        keys = [f"key-{i}" for i in range(300)]
        self.ask_all(keys)
        self.assertFalse(any(self.own_or_error(keys).values()))

    def test_noreply_is_not_passed_on(self):
        """Upstream a reply is always asked for, so that an error is never taken for the next reply."""
        self.serve()
        self.conn.send(b"set key-1 0 0 1 noreply\r\n1\r\ndelete key-1 noreply\r\nincr key-1 1 noreply\r\n"
                       b"ms key-1 1 q\r\n1\r\nmg key-1 v q\r\nget key-2\r\n")
        self.conn.line(), self.conn.block(len(value_of(b"key-1")))
        self.own_or_error(["key-2"])
        for request in self.fake.requests_for("key-1"):
            self.assertNotIn(b"noreply", request.words)
            self.assertNotIn(b"q", request.words)

    def test_one_write_for_many_requests(self):
        """1000 pipelined requests and a slow server: all answered, in order, each with its own value."""
        self.serve(delay=0.0002)
        keys = [f"key-{i}" for i in range(1000)]
        random.Random(7).shuffle(keys)
        self.ask_all(keys)
        outcome = self.own_or_error(keys)
        self.assertFalse([e for e in outcome.values() if e])

    def test_many_connections_and_a_slow_server(self):
        self.serve(delay=0.0005)
        conns = [self.connect(self.proxy) for _ in range(20)]
        for number, conn in enumerate(conns):
            self.ask_all([f"key-{number}-{i}" for i in range(20)], conn)
        for number, conn in enumerate(conns):
            outcome = self.own_or_error([f"key-{number}-{i}" for i in range(20)], conn)
            self.assertFalse(any(outcome.values()))


class Slow(FakeTest):
    def test_reply_within_the_limit(self):
        self.serve()
        self.fault("key-1", fake.late(0.2))
        self.ask_all(["key-1", "key-2"])
        self.assertFalse(any(self.own_or_error(["key-1", "key-2"]).values()))

    def test_reply_byte_by_byte(self):
        self.serve()
        self.fault("key-1", fake.dripped)
        self.ask_all(["key-1", "key-2"])
        self.assertFalse(any(self.own_or_error(["key-1", "key-2"]).values()))

    def test_every_command_byte_by_byte(self):
        for meta in (True, False):
            self.serve(meta=meta)
            for key in ("key-1", "key-2"):
                self.fault(key, fake.dripped, once=False)
            self.conn.send(b"get key-1\r\ngets key-2\r\nset key-1 0 0 1\r\n1\r\nincr key-1 1\r\ndelete key-2\r\n"
                           b"touch key-1 0\r\nget key-1 key-2\r\n")
            self.own_or_error(["key-1"])
            found, _ = self.conn.read_values()
            self.assertEqual(found["key-2"][1:], (value_of(b"key-2"), 7))
            self.assertEqual([self.conn.line() for _ in range(4)], [b"STORED", b"5", b"DELETED", b"TOUCHED"])
            self.assertEqual(set(self.conn.read_values()[0]), {"key-1", "key-2"})

    def test_no_reply(self):
        """Timed out, and said so."""
        self.serve_hastily()
        self.fault("key-1", fake.silence)
        self.ask_all(["key-1"])
        self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("timed out, outcome unknown"))
        self.was_closed("key-1")
        self.usable_again()

    def test_no_reply_with_the_default_limit(self):
        self.serve_hastily(CONFIG, patient=False)
        settings = stats(self.conn, "stats settings")
        self.assertEqual((settings["request_timeout"], settings["connect_timeout"]), ("1000", "500"))
        self.fault("key-1", fake.silence)
        self.ask_all(["key-1"])
        self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("timed out, outcome unknown"))

    def test_late_reply(self):
        """It comes when its request has been given up, and reaches nobody."""
        self.serve_hastily()
        given_up = threading.Event()
        self.fault("key-late", fake.held(given_up))
        self.ask_all(["key-late"])
        self.assertEqual(self.own_or_error(["key-late"])["key-late"], self.error("timed out, outcome unknown"))
        given_up.set()
        for _ in range(50):
            self.ask_all(["key-2", "key-3"])
            self.own_or_error(["key-2", "key-3"])
        self.usable_again()

    def test_writes_without_reply(self):
        for line in ("incr key-1 1", "delete key-1", "touch key-1 5"):
            self.serve_hastily()
            self.fault("key-1", fake.silence)
            self.assertEqual(self.conn.ask(line), self.error("timed out, outcome unknown"))
            self.usable_again()
            self.was_sent("key-1", 1, line)

    def test_half_a_reply_then_silence(self):
        self.serve_hastily()
        self.fault("key-1", lambda link, request: link.send(link.answer(request)[:-4]))
        self.ask_all(["key-1"])
        self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("timed out, outcome unknown"))
        self.was_closed("key-1")
        self.usable_again()

    def test_drip_does_not_put_the_limit_off(self):
        """The limit is for the whole reply, not for each byte."""
        self.serve_hastily()
        self.fault("key-1", fake.endless)
        self.ask_all(["key-1"])
        self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("timed out, outcome unknown"))
        self.was_closed("key-1")
        self.usable_again()

    def test_set_commands(self):
        self.serve_hastily()
        self.fault("s", fake.silence, once=False)
        for line in ("sadd s a", "srem s a", "scard s", "sismember s a"):
            before = len(self.fake.requests_for("s"))
            self.assertEqual(self.conn.ask(line), self.error("timed out, outcome unknown"))
            self.usable_again()
            self.was_sent("s", before + 1, line)

    def is_closed_when_deaf(self):
        """A client takes nothing of 2 MB for two seconds, then one more reply comes: whether it is closed by that."""
        late = threading.Event()
        for key in ("key-big-1", "key-big-2"):
            self.fault(key, fake.raw(b"VA 1000000 k{key} f0\r\n" + b"x" * 1000000 + b"\r\n"))
        self.fault("key-late", fake.held_until(late))
        asked = len(self.fake.requests_for("key-late"))
        with contextlib.closing(small_windows(self.proxy.port)) as deaf:
            deaf.sendall(b"get key-big-1\r\nget key-big-2\r\nget key-late\r\n")
            wait_until("all is asked", PATIENCE, lambda: len(self.fake.requests_for("key-late")) > asked)
            full = self.uptime()
            wait_until("two seconds pass by its own clock", PATIENCE, lambda: self.uptime() > full + 2, pause=0.05)
            late.set()
            self.usable_again()  # what is asked now is answered behind that
            return stats(self.conn, "stats")["closed_slow_clients"] == "1"

    def test_client_that_reads_nothing(self):
        """Tried again where the machine stood still so long that the two seconds began late."""
        self.serve(CONFIG + "\nclient_buffer = 65536")
        wait_until("it is closed", PATIENCE, self.is_closed_when_deaf)
        wait_until("it is gone", PATIENCE, lambda: stats(self.conn, "stats")["curr_connections"] == "1")
        self.usable_again()


class Garbage(FakeTest):
    """Replies that cannot be right: an error, the connection closed, nothing after them believed."""

    def bad_reply(self, data, verb=None):
        """`get key-1` is answered with these bytes, other requests wait behind it."""
        for behind in (0, 3):
            with self.subTest(data=data[:60], behind=behind):
                self.serve_hastily()
                self.fault("key-1", fake.raw(data))
                keys = ["key-1"] + [f"key-behind-{i}" for i in range(behind)]
                self.ask_all(keys)
                outcome = self.own_or_error(keys)
                self.assertIsNotNone(outcome["key-1"], "a reply that cannot be right was taken")
                self.was_closed("key-1")
                self.usable_again()

    def test_words(self):
        for data in (b"nonsense\r\n", b"\r\n", b"\x00\x01\x02\r\n", b"EnD\r\n", b"STORED\r\n", b"END\r\nEND\r\n", b"HELLO 5\r\n",
                     b"VALUE\r\n", b"VA\r\n", b"DELETED\r\n", b"-ERR no\r\n", b"5\r\n"):
            self.bad_reply(data)

    def test_wrong_key(self):
        for data in (b"VA 5 kother f0\r\nother\r\n", b"VA 3 kkey-12 f0\r\nabc\r\n", b"VA 3 kkey- f0\r\nabc\r\n",
                     b"VALUE other 0 5\r\nother\r\nEND\r\n", b"EN kother\r\n"):
            self.bad_reply(data)

    def test_another_requests_value(self):
        """Replies in the wrong order: each names its key, none may be given to the other."""
        self.serve_hastily()

        def swapped(link, request):
            other = fake.Request([b"mg", b"key-2"] + request.words[2:])
            link.send(link.answer(other) + link.answer(request))
        self.fault("key-1", swapped)
        self.fake.faults[b"key-2"] = fake.one_shot(fake.silence)
        keys = ["key-1", "key-2", "key-3"]
        self.ask_all(keys)
        self.assertIsNotNone(self.own_or_error(keys)["key-1"])
        self.was_closed("key-1")
        self.usable_again()

    def test_lengths(self):
        for size in (b"18446744073709551616", b"18446744073709551615", b"4294967295", b"4294967296", b"-1",
                     b"2147483648", b"2147483647", b"x", b"1x", b"", b"99999999999999999999999999"):
            self.bad_reply(b"VA " + size + b" k{key} f0\r\n{value}\r\n")
        self.assertLess(self.proxy.peak_mib(), 512, "memory was taken by a declared length")

    def test_lengths_without_meta(self):
        for size in (b"18446744073709551616", b"4294967295", b"-1", b"2147483648", b"x"):
            self.serve_hastily(meta=False, version=b"1.4.39")
            self.fault("key-1", fake.raw(b"VALUE {key} 0 " + size + b"\r\n{value}\r\nEND\r\n"))
            keys = ["key-1", "key-2"]
            self.ask_all(keys)
            self.assertIsNotNone(self.own_or_error(keys)["key-1"], size)
            self.was_closed("key-1")
            self.usable_again()

    def test_garbage_without_meta(self):
        for data in (b"nonsense\r\n", b"VALUE other 0 5\r\nother\r\nEND\r\n", b"VALUE {key} 0 3\r\nabcdef\r\nEND\r\n",
                     b"VALUE {key}\r\nEND\r\n", b"VALUE {key} 0\r\nEND\r\n", b"VALUE {key} x 1\r\n1\r\nEND\r\n",
                     b"VALUE {key} 0 1\r\n1\r\nVALUE {key} 0 1\r\n1\r\nEND\r\n", b"HD\r\n", b"STORED\r\n"):
            with self.subTest(data=data):
                self.serve_hastily(meta=False, version=b"1.4.39")
                self.fault("key-1", fake.raw(data))
                self.ask_all(["key-1"])
                self.assertIsNotNone(self.own_or_error(["key-1"])["key-1"])
                self.was_closed("key-1")
                self.usable_again()

    def test_data_without_its_end(self):
        for data in (b"VA 3 k{key} f0\r\nabcdef\r\n", b"VA {size} k{key} f0\r\n{value}", b"VA 3 k{key} f0\r\nabc\n\n",
                     b"VA 2 k{key} f0\r\nab\rc\r\n"):
            self.bad_reply(data)

    def test_line_without_its_end(self):
        self.bad_reply(b"x" * 3000)
        self.bad_reply(b"VA 5 k{key}" + b" " * 100000)
        self.bad_reply(b"SERVER_ERROR " + b"x" * 1000000)

    def test_replies_to_writes(self):
        for line, reply in (("incr key-1 1", b"nonsense\r\n"), ("incr key-1 1", b"STORED\r\n"), ("delete key-1", b"STORED\r\n"),
                            ("delete key-1", b"END\r\n"), ("touch key-1 0", b"5\r\n"), ("incr key-1 1", b"12x\r\n"),
                            ("delete key-1", b"VALUE key-1 0 1\r\n1\r\nEND\r\n"), ("touch key-1 0", b"\r\n")):
            with self.subTest(line=line, reply=reply):
                self.serve_hastily()
                self.fault("key-1", fake.raw(reply))
                self.assertTrue(self.conn.ask(line).startswith(f"SERVER_ERROR upstream {self.fake.name} "))
                self.was_closed("key-1")
                self.usable_again()
                self.was_sent("key-1", 1, line)

    def test_bare_error_to_a_request_of_ours(self):
        """ERROR or CLIENT_ERROR to a request that setlistd built right: passed on or replaced, never paired wrongly."""
        for data in (b"ERROR\r\n", b"CLIENT_ERROR bad command line format\r\n"):
            self.serve_hastily()
            self.fault("key-1", fake.raw(data))
            self.ask_all(["key-1"])
            self.assertRegex(self.conn.line(), rb"^(ERROR|(CLIENT|SERVER)_ERROR .+)$")
            self.usable_again()

    def test_server_error_is_passed_on(self):
        self.serve()
        for command in ("get key-1", "incr key-1 1", "delete key-1", "touch key-1 1"):
            self.fault("key-1", fake.raw(b"SERVER_ERROR out of memory\r\n"))
            self.ask_all(["key-0"])
            self.conn.send(command.encode() + b"\r\n")
            self.ask_all(["key-2"])
            self.own_or_error(["key-0"])
            self.assertEqual(self.conn.line(), b"SERVER_ERROR out of memory", command)
            self.assertIsNone(self.own_or_error(["key-2"])["key-2"])

    def test_random_replies(self):
        """Right replies with a few bytes changed or lost. Only the value itself may go unnoticed."""
        dice = random.Random(11)
        self.serve_hastily()
        for round_number in range(60):
            key = f"key-{round_number}"
            self.fake.faults[key.encode()] = fake.one_shot(mangled(dice.randrange(1 << 30)))
            keys = [key, "key-behind"]
            self.ask_all(keys)
            self.check_mangled(key)
            self.own_or_error(["key-behind"])
        self.usable_again()

    def check_mangled(self, key):
        found, end = self.conn.read_values()
        self.assertTrue(set(found) <= {key}, f"get {key} gave {found}")
        self.assertRegex(end, r"^(END|(SERVER_|CLIENT_)?ERROR.*)$")


def mangled(seed):
    """The head of the reply damaged; the data is left alone, since nothing protects it."""
    def fault(link, request):
        dice = random.Random(seed)
        reply = bytearray(link.answer(request))
        head = reply.index(b"\r\n") + 2
        for _ in range(dice.randrange(1, 3)):
            reply[dice.randrange(head)] = dice.choice((dice.randrange(256), 10, 13, 32, 48))
        link.send(bytes(reply))
    return fault


class Stray(FakeTest):
    """Bytes that nobody asked for."""

    def test_with_nothing_asked(self):
        for data in (b"VA 5 kkey-2 f0\r\nstray\r\n", b"STORED\r\n", b"\r\n", b"x", b"SERVER_ERROR idle\r\n"):
            with self.subTest(data=data):
                self.serve()
                self.ask_all(["key-1"])
                self.own_or_error(["key-1"])
                self.fake.link_with("key-1").send(data)
                self.was_closed("key-1")
                self.usable_again()

    def test_a_reply_too_many(self):
        """Twice the same reply, with other requests behind it: the second copy is for none of them."""
        self.serve()
        self.fault("key-1", fake.twice)
        keys = ["key-1"] + [f"key-behind-{i}" for i in range(20)]
        self.ask_all(keys)
        self.own_or_error(keys)
        self.was_closed("key-1")
        self.usable_again()

    def test_a_reply_too_many_to_writes(self):
        """STORED twice: the copy may pass for the reply of the next write, but no value goes astray, and it comes to light."""
        self.serve()
        self.fault("key-1", fake.raw(b"DELETED\r\nDELETED\r\n"))
        self.assertEqual(self.conn.ask("delete key-1"), "DELETED")
        self.was_closed("key-1")
        self.usable_again()

    def test_bytes_after_the_handshake(self):
        """Stray bytes at the very beginning are no reply to the first request."""
        self.serve(greeting=b"VA 5 kkey-1 f0\r\nstray\r\n")
        self.ask_all(["key-1"])
        self.assertIsNotNone(self.own_or_error(["key-1"])["key-1"])


class Dying(FakeTest):
    """The server goes away."""

    def test_in_the_middle_of_a_reply(self):
        for part in (0, 1, 5, 12, 20, 30):
            with self.subTest(part=part):
                self.serve()
                self.fault("key-1", fake.die_after(part))
                keys = ["key-1", "key-2", "key-3"]
                self.ask_all(keys)
                outcome = self.own_or_error(keys)
                self.assertIn(outcome["key-1"], (None, self.error("connection lost, outcome unknown")))
                self.usable_again()

    def test_writes_are_not_sent_again(self):
        for line, want in (("incr key-1 1", 1), ("delete key-1", 1), ("touch key-1 0", 1), ("sadd key-1 a", 1),
                           ("evincr key", None)):
            with self.subTest(line=line):
                self.serve()
                self.fault(line.split()[1], fake.die, once=False)
                if want is None:
                    self.die_on_events()
                self.assertEqual(self.conn.ask(line), self.error("connection lost, outcome unknown"))
                if want:
                    self.assertEqual(len(self.fake.requests_for("key-1")), want, "sent again")
                self.usable_again()

    def die_on_events(self):
        """The counter's key has the hour in it: the present and the next one."""
        for seconds in (0, 3600):
            hour = time.strftime("%Y%m%d%H", time.gmtime(time.time() + seconds))
            self.fault(f"key::{hour}", fake.die, once=False)

    def test_with_many_requests_outstanding(self):
        self.serve()
        keys = [f"key-{i}" for i in range(200)]
        self.fault("key-77", fake.die)
        self.ask_all(keys)
        outcome = self.own_or_error(keys)
        self.assertFalse([k for k in keys[:77] if outcome[k]], "what was answered before was lost")
        self.usable_again()

    def test_while_the_proxy_writes(self):
        """That the write fails is seen before the last replies are read. Whether it comes to that is chance: in rounds."""
        keys = [f"key-{i}" for i in range(20)]
        for turn in range(20):
            self.serve(CONFIG + "\nmax_pipeline = 100000")
            other = self.connect(self.proxy)
            for _ in range(200):                            # what its replies are like is known: many may be under way
                other.values("get key-other")
            at, answers = threading.Event(), []
            for key in keys[:-1]:
                self.fault(key, fake.gather(answers))
            self.fault(keys[-1], fake.send_and_die(answers, at))
            self.ask_all(keys)
            wait_until("they arrive", PATIENCE, lambda: self.fake.requests_for(keys[-1]))
            threading.Timer(turn / 5000, at.set).start()
            self.ask_all(["key-other"] * 8000, other)
            outcome = self.own_or_error(keys)
            self.assertFalse([k for k in keys[:-1] if outcome[k]], "what was answered before was lost")
            other.close()

    def test_clients_of_one_server_in_common(self):
        self.serve()
        conns = [self.connect(self.proxy) for _ in range(10)]
        self.fault("key-5-3", fake.die)
        for number, conn in enumerate(conns):
            self.ask_all([f"key-{number}-{i}" for i in range(10)], conn)
        for number, conn in enumerate(conns):
            self.own_or_error([f"key-{number}-{i}" for i in range(10)], conn)
        self.usable_again()

    def test_refused_then_back(self):
        self.serve()
        self.usable_again()
        self.fake.stop_listening()
        self.fake.drop_links()
        wait_until("it is noticed", PATIENCE, self.unavailable)
        for i in range(20):
            self.ask_all([f"key-{i}"])
            self.assertEqual(self.own_or_error([f"key-{i}"])[f"key-{i}"], self.error("unavailable"))
        self.assertEqual(self.conn.ask("sadd s a"), self.error("unavailable"))
        self.assertEqual(self.conn.ask("evincr E"), self.error("unavailable"))
        self.fake.start()
        self.usable_again()

    def unavailable(self):
        self.ask_all(["key-1"])
        return self.own_or_error(["key-1"])["key-1"] == self.error("unavailable")

    def test_down_at_the_start(self):
        self.fake = self.fake_server()
        self.fake.stop_listening()
        self.proxy = self.setlistd([self.fake], config=CONFIG)
        self.conn = self.connect(self.proxy)
        self.ask_all(["key-1"])
        self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("unavailable"))
        self.fake.start()
        self.usable_again()

    def test_never_accepting(self):
        """Neither accepted nor refused: the connect limit passes."""
        self.fake = FullBacklog()
        self.addCleanup(self.fake.stop)
        self.proxy = self.setlistd([self.fake], config=f"{NEVER}\nconnect_timeout = 300")
        self.conn = self.connect(self.proxy)
        self.ask_all(["key-1", "key-2"])
        outcome = self.own_or_error(["key-1", "key-2"])
        self.assertEqual(set(outcome.values()), {self.error("unavailable")})

    def test_no_answer_to_the_handshake(self):
        self.serve(config=HASTY, mute=True)
        self.ask_all(["key-1"])
        outcome = self.own_or_error(["key-1"])
        self.assertEqual(outcome["key-1"], self.error("unavailable"), "nothing of the request was sent")
        self.fake.mute = False
        self.usable_again()

    def test_too_many_connections(self):
        """memcached's refusal is no reply to a request."""
        self.serve(greeting=b"ERROR Too many open connections\r\n", hang_up=True)
        for key in ("key-1", "key-2"):
            self.ask_all([key])
            self.assertEqual(self.own_or_error([key])[key], self.error("unavailable"))
        self.fake.greeting, self.fake.hang_up = b"", False
        self.usable_again()

    def test_garbage_for_a_handshake(self):
        for greeting in (b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 100):
            with self.subTest(greeting=greeting):
                self.serve(config=HASTY, greeting=greeting)
                self.ask_all(["key-1"])
                self.assertEqual(self.own_or_error(["key-1"])["key-1"], self.error("unavailable"))
                self.fake.greeting = b""
                self.usable_again()


class EarlyReply(FakeTest):
    """An error in the middle of an upload (research row 49)."""

    ERROR = b"SERVER_ERROR out of memory storing object"

    def upload(self, size=1000000):
        self.conn.send(b"set key-big 0 0 %d\r\n" % size + b"x" * size + b"\r\nget key-1\r\nget key-2\r\n")
        first = self.conn.line().decode()
        own = (self.ERROR.decode(),)
        self.assertTrue(first in own or first.startswith(f"SERVER_ERROR upstream {self.fake.name} "), first)
        return first, self.own_or_error(["key-1", "key-2"])

    def test_error_then_the_rest_is_read(self):
        self.serve()

        def early(link, request):
            link.send(self.ERROR + b"\r\n")
            wait_until("it arrives", PATIENCE, lambda: not link.unsent())
        self.fake.header_faults[b"key-big"] = early
        first, _ = self.upload()
        self.assertEqual(first, self.ERROR.decode())
        self.usable_again()

    def test_error_then_closed(self):
        self.serve()

        def early(link, request):
            link.send(self.ERROR + b"\r\n")
            link.close()
        self.fake.header_faults[b"key-big"] = early
        self.upload()
        self.usable_again()

    def test_error_then_nothing_is_read(self):
        """The upload never ends: the error, or the time limit, but not for ever."""
        self.serve_hastily()
        over = threading.Event()

        def early(link, request):
            link.send(self.ERROR + b"\r\n")
            over.wait(2 * PATIENCE)
            link.close()
        self.fake.header_faults[b"key-big"] = early
        self.upload()
        over.set()
        self.usable_again()

    def test_too_large_by_the_servers_own_limit(self):
        """A server that refuses what the settings allowed: passed on, and the next reply is the next request's."""
        self.serve()

        def early(link, request):
            link.send(b"SERVER_ERROR object too large for cache\r\n")
        self.fake.header_faults[b"key-big"] = early
        self.conn.send(b"set key-big 0 0 5\r\nhello\r\nget key-1\r\n")
        self.assertRegex(self.conn.line().decode(), re.compile("^SERVER_ERROR (object too large for cache|upstream .*)$"))
        self.own_or_error(["key-1"])
        self.usable_again()

    def test_nothing_read_at_all(self):
        """A server that stops reading: its clients get an error when the limit passes."""
        self.serve_hastily()
        over = threading.Event()
        self.fake.header_faults[b"key-big"] = lambda link, request: over.wait(2 * PATIENCE)
        self.conn.send(b"set key-big 0 0 1000000\r\n" + b"x" * 1000000 + b"\r\n")
        self.assertEqual(self.conn.line().decode(), self.error("timed out, outcome unknown"))
        over.set()

    def test_others_go_on_while_nothing_is_read(self):
        real = self.memcached()
        self.fake = self.fake_server()
        self.proxy = self.setlistd([self.fake, real], config=NEVER)
        self.conn = self.connect(self.proxy)
        big = self.key_on(self.conn, self.fake, "key-big")
        other = self.key_on(self.conn, real, "other")

        over = threading.Event()

        def stuck(link, request):
            over.wait(2 * PATIENCE)
            link.close()
        self.fake.header_faults[big.encode()] = stuck
        self.conn.send(b"set %s 0 0 1000000\r\n" % big.encode() + b"x" * 1000000 + b"\r\n")
        with Conn(self.proxy.port) as conn:
            for _ in range(50):
                self.assertEqual(conn.set(other, b"x"), "STORED")
        over.set()
        self.assertTrue(self.conn.line().startswith(f"SERVER_ERROR upstream {self.fake.name} ".encode()))


class TwoServers(FakeTest):
    """One server misbehaves: the other's keys are not touched by it."""

    def serve_two(self, config=CONFIG):
        self.fake, self.good = self.fake_server(), self.fake_server()
        self.proxy = self.setlistd([self.fake, self.good], config=config)
        self.conn = self.connect(self.proxy)
        self.bad_keys = self.keys_on(self.conn, self.fake, 5)
        self.good_keys = self.keys_on(self.conn, self.good, 5)

    def test_multi_get_with_one_server_silent(self):
        """What the others had, END."""
        self.serve_two(HASTY)
        self.fault(self.bad_keys[0], fake.silence, once=False)

        def what_the_others_had():
            found, end = self.conn.values(f"get {self.bad_keys[0]} " + " ".join(self.good_keys))
            if not found:                                  # the limit passed for the other one too, or it was not yet greeted
                return False
            self.assertEqual(end, "END")
            self.assertEqual({k: v[1] for k, v in found.items()}, {k: value_of(k.encode()) for k in self.good_keys})
            return True
        wait_until("the other server's values come", PATIENCE, what_the_others_had)

    def goes_down(self):
        """One of the two; a call may be lost with it."""
        self.fake.stop()
        wait_until("it is noticed", PATIENCE,
                   lambda: self.conn.values(f"get {self.bad_keys[0]}")[1] == self.error("unavailable"))

    def test_multi_get_with_one_server_down(self):
        self.serve_two()
        self.goes_down()
        found, end = self.conn.values("get " + " ".join(self.bad_keys + self.good_keys))
        self.assertEqual((set(found), end), (set(self.good_keys), "END"))

    def test_multi_get_with_both_down(self):
        self.serve_two()
        self.fake.stop()
        self.good.stop()
        found, end = self.conn.values("get " + " ".join(self.bad_keys + self.good_keys))
        self.assertEqual(found, {})
        self.assertRegex(end, r"^SERVER_ERROR upstream 127\.0\.0\.1:\d+ ")

    def test_sets_with_one_server_down(self):
        """Members of a set that cannot be read are not taken for missing."""
        self.serve_two()
        self.goes_down()
        _, end = self.conn.values(f"smembers {self.bad_keys[0]}")
        self.assertEqual(end, self.error("unavailable"))
        _, end = self.conn.values(f"smembers missing-x {self.bad_keys[0]} missing-y")
        self.assertTrue(end.startswith("SERVER_ERROR upstream "), end)

    def test_flush_all_with_one_server_down(self):
        self.serve_two()
        self.goes_down()
        self.assertEqual(self.conn.ask("flush_all"), self.error("unavailable"))

    def test_others_do_not_wait(self):
        """While one server is silent, pipelines on the other's keys from other clients are answered."""
        self.serve_two(NEVER)
        for key in self.bad_keys:
            self.fault(key, fake.silence, once=False)
        self.ask_all(self.bad_keys)
        with Conn(self.proxy.port) as conn:
            for key in self.good_keys * 4:
                self.assertEqual(conn.get(key), value_of(key.encode()))
        self.fake.drop_links()
        self.assertTrue(all(self.own_or_error(self.bad_keys).values()))

    def test_order_of_replies(self):
        """A fast server's replies wait for the slow one's: the order is that of the requests."""
        self.serve_two()
        for key in self.bad_keys:
            self.fault(key, fake.late(0.05), once=False)
        keys = [key for pair in zip(self.bad_keys, self.good_keys) for key in pair]
        self.ask_all(keys)
        self.assertFalse(any(self.own_or_error(keys).values()))
