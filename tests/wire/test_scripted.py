"""A server that replies correctly or late, in the middle of an upload, or next to another: setlistd must be usable again afterwards."""
import random
import re
import threading

import scripted
from case import marks
from case_scripted import CONFIG, HASTY, NEVER, ScriptedTest
from scripted import value_of
from harness import PATIENCE, wait_until
from stored import stats


class Normal(ScriptedTest):
    """The server without faults, on which the other tests rely."""
    smoke = True

    def test_handshake_and_get(self):
        self.assertEqual(self.conn.get("key-1"), value_of(b"key-1"))
        self.assertIsNone(self.conn.get("missing"))
        found, _ = self.conn.values("gets key-1 missing key-2")
        self.assertEqual({k: (v[1], v[2]) for k, v in found.items()},
                         {"key-1": (value_of(b"key-1"), 7), "key-2": (value_of(b"key-2"), 7)})
        self.assertEqual(self.scripted.requests_for("key-1")[0].verb, b"mg")
        asked = [r.words for r in self.scripted.links[0].requests[:3]]
        self.assertEqual(asked, [[b"version"], [b"mn"], [b"stats", b"settings"]])

    def test_server_without_meta_commands(self):
        self.serve(meta=False, version=b"1.4.39")
        self.assertEqual(self.conn.get("key-1"), value_of(b"key-1"))
        found, _ = self.conn.values("get key-1 missing key-2 key-1")
        self.assertEqual(set(found), {"key-1", "key-2"})
        found, _ = self.conn.values("gets key-1")
        self.assertEqual(found["key-1"][1:], (value_of(b"key-1"), 7))
        self.assertEqual({r.verb for r in self.scripted.requests_for("key-1")} - {b"get", b"gets"}, set())
        self.assertEqual(self.conn.set("key-1", b"x"), "STORED")
        self.assertIn("1.4.39", self.conn.ask("version"))

    def test_pipeline_without_meta_commands(self):
        self.serve(meta=False, version=b"1.4.39")
        keys = [f"key-{i}" for i in range(300)]
        self.assertFalse(any(self.asked(keys).values()))

    def test_noreply_is_not_passed_on(self):
        """No request to a server uses noreply, so that an error is never mistaken for the next reply."""
        self.conn.send(b"set key-1 0 0 1 noreply\r\n1\r\ndelete key-1 noreply\r\nincr key-1 1 noreply\r\n"
                       b"ms key-1 1 q\r\n1\r\nmg key-1 v q\r\nget key-2\r\n")
        self.conn.line(), self.conn.block(len(value_of(b"key-1")))
        self.own_or_error(["key-2"])
        for request in self.scripted.requests_for("key-1"):
            self.assertNotIn(b"noreply", request.words)
            self.assertNotIn(b"q", request.words)

    def test_one_write_for_many_requests(self):
        """1000 pipelined requests and a slow server: all answered, in order, each with its own value."""
        self.serve(delay=0.0002)
        keys = [f"key-{i}" for i in range(1000)]
        random.Random(7).shuffle(keys)
        self.assertFalse(any(self.asked(keys).values()))

    def test_many_connections_and_a_slow_server(self):
        self.serve(delay=0.0005)
        conns = [self.connect(self.proxy) for _ in range(20)]
        for number, conn in enumerate(conns):
            self.ask_all([f"key-{number}-{i}" for i in range(20)], conn)
        for number, conn in enumerate(conns):
            outcome = self.own_or_error([f"key-{number}-{i}" for i in range(20)], conn)
            self.assertFalse(any(outcome.values()))


class Slow(ScriptedTest):
    smoke = True

    def test_reply_within_the_limit(self):
        """Late, or byte by byte."""
        for fault in (scripted.late(0.2), scripted.dripped):
            self.fault("key-1", fault)
            self.assertFalse(any(self.asked(["key-1", "key-2"]).values()))

    def test_every_command_byte_by_byte(self):
        for meta in (True, False):
            self.serve(meta=meta)
            for key in ("key-1", "key-2"):
                self.fault(key, scripted.dripped, once=False)
            self.conn.send(b"get key-1\r\ngets key-2\r\nset key-1 0 0 1\r\n1\r\nincr key-1 1\r\ndelete key-2\r\n"
                           b"touch key-1 0\r\nget key-1 key-2\r\n")
            self.own_or_error(["key-1"])
            found, _ = self.conn.read_values()
            self.assertEqual(found["key-2"][1:], (value_of(b"key-2"), 7))
            self.assertEqual([self.conn.line() for _ in range(4)], [b"STORED", b"5", b"DELETED", b"TOUCHED"])
            self.assertEqual(set(self.conn.read_values()[0]), {"key-1", "key-2"})

    def test_no_reply(self):
        """No reply, or half of one: it times out, and the error says so."""
        for fault in (scripted.silence, lambda link, request: link.send(link.answer(request)[:-4])):
            self.serve_hastily()
            self.fault("key-1", fault)
            self.assertEqual(self.asked_one(), self.error("timed out, outcome unknown"))
            self.recovers_from()

    def test_no_reply_with_the_default_limit(self):
        self.serve_hastily(CONFIG, patient=False)
        settings = stats(self.conn, "stats settings")
        self.assertEqual((settings["request_timeout"], settings["connect_timeout"]), ("1000", "500"))
        self.fault("key-1", scripted.silence)
        self.assertEqual(self.asked_one(), self.error("timed out, outcome unknown"))

    def test_late_reply(self):
        """It arrives after its request has timed out, and is sent to no client."""
        self.serve_hastily()
        late = self.hold(self.scripted, "key-late")
        self.assertEqual(self.asked_one("key-late"), self.error("timed out, outcome unknown"))
        late.release()
        for _ in range(50):
            self.asked(["key-2", "key-3"])
        self.usable_again()

    def test_writes_without_reply(self):
        for line in ("incr key-1 1", "delete key-1", "touch key-1 5"):
            self.serve_hastily()
            self.fault("key-1", scripted.silence)
            self.assertEqual(self.conn.ask(line), self.error("timed out, outcome unknown"))
            self.usable_again()
            self.was_sent("key-1", 1, line)

    @marks(smoke=False)
    def test_set_commands(self):
        self.serve_hastily()
        self.fault("s", scripted.silence, once=False)
        for line, stores in (("sadd s a", True), ("srem s a", True), ("scard s", False), ("sismember s a", False)):
            before = len(self.scripted.requests_for("s"))
            self.assertEqual(self.conn.ask(line), self.error("timed out, outcome unknown"))
            self.usable_again()
            # By chance an addition looks at the size as well.
            sent = [request for request in self.scripted.requests_for("s")[before:] if not stores or request.data is not None]
            self.assertEqual(len(sent), 1, line)

    @marks(smoke=False)
    def test_client_that_reads_nothing(self):
        """More bytes are pending for it than permitted, and it reads nothing for two seconds: it is closed, although no more bytes follow."""
        self.serve(CONFIG + "\nclient_buffer = 65536")
        for key in ("key-big-1", "key-big-2"):
            self.fault(key, scripted.large)
        self.fault("key-late", scripted.silence)
        self.deaf().sendall(b"get key-big-1\r\nget key-big-2\r\nget key-late\r\n")
        wait_until("all is asked", lambda: self.scripted.requests_for("key-late"))
        wait_until("it is closed", lambda: stats(self.conn, "stats")["closed_slow_clients"] == "1")
        self.assertEqual(stats(self.conn, "stats")["curr_connections"], "1")
        self.usable_again()


class EarlyReply(ScriptedTest):
    """An error in the middle of an upload (research row 49)."""
    smoke = True

    ERROR = b"SERVER_ERROR out of memory storing object"

    def early(self, then):
        """The error arrives after the first line of the upload, and then something happens to the connection."""
        def fault(link, request):
            link.send(self.ERROR + b"\r\n")
            then(link)
        self.scripted.header_faults[b"key-big"] = fault

    def upload(self, size=1000000):
        self.conn.send(b"set key-big 0 0 %d\r\n" % size + b"x" * size + b"\r\nget key-1\r\nget key-2\r\n")
        first = self.conn.line().decode()
        own = (self.ERROR.decode(),)
        self.assertTrue(first in own or first.startswith(f"SERVER_ERROR upstream {self.scripted.name} "), first)
        return first, self.own_or_error(["key-1", "key-2"])

    def test_error_then_the_rest_is_read(self):
        self.early(lambda link: scripted.arrive(link.sock))
        first, _ = self.upload()
        self.assertEqual(first, self.ERROR.decode())
        self.usable_again()

    def test_error_then_closed(self):
        self.early(scripted.Link.close)
        self.upload()
        self.usable_again()

    def test_error_then_nothing_is_read(self):
        """The upload never ends: the error, or the time limit, but not for ever."""
        self.serve_hastily()
        over = threading.Event()
        self.early(lambda link: (over.wait(2 * PATIENCE), link.close()))
        self.upload()
        over.set()
        self.usable_again()

    def test_too_large_by_the_servers_own_limit(self):
        """A server that refuses a value which its settings permit: the error is passed on, and the next reply is for the next request."""
        self.scripted.header_faults[b"key-big"] = scripted.raw(b"SERVER_ERROR object too large for cache\r\n")
        self.conn.send(b"set key-big 0 0 5\r\nhello\r\nget key-1\r\n")
        self.assertRegex(self.conn.line().decode(), re.compile("^SERVER_ERROR (object too large for cache|upstream .*)$"))
        self.own_or_error(["key-1"])
        self.usable_again()

    def test_nothing_read_at_all(self):
        """A server that stops reading: its clients get an error when the limit passes."""
        self.serve_hastily()
        over = threading.Event()
        self.scripted.header_faults[b"key-big"] = lambda link, request: over.wait(2 * PATIENCE)
        self.conn.send(b"set key-big 0 0 1000000\r\n" + b"x" * 1000000 + b"\r\n")
        self.assertEqual(self.conn.line().decode(), self.error("timed out, outcome unknown"))
        over.set()

    def test_others_go_on_while_nothing_is_read(self):
        self.serve_before([self.scripted_server(), self.memcached()], NEVER)
        big = self.key_on(self.conn, self.scripted, "key-big")
        other = self.key_on(self.conn, self.servers[1], "other")
        over = threading.Event()
        self.scripted.header_faults[big.encode()] = lambda link, request: (over.wait(2 * PATIENCE), link.close())
        self.conn.send(b"set %s 0 0 1000000\r\n" % big.encode() + b"x" * 1000000 + b"\r\n")
        conn = self.connect(self.proxy)
        for _ in range(50):
            self.assertEqual(conn.set(other, b"x"), "STORED")
        over.set()
        self.assertTrue(self.conn.line().startswith(f"SERVER_ERROR upstream {self.scripted.name} ".encode()))


class TwoServers(ScriptedTest):
    """One server misbehaves: the other's keys are not touched by it."""
    smoke = True

    def serve_two(self, config=CONFIG):
        self.good = self.scripted_server()
        self.serve_before([self.scripted_server(), self.good], config)
        self.bad_keys = self.keys_on(self.conn, self.scripted, 5)
        self.good_keys = self.keys_on(self.conn, self.good, 5)

    def test_multi_get_with_one_server_silent(self):
        """The values of the others, and the error: a key that was never requested is not a miss."""
        self.serve_two(HASTY)
        self.fault(self.bad_keys[0], scripted.silence, once=False)

        def what_the_others_had():
            found, end = self.conn.values(f"get {self.bad_keys[0]} " + " ".join(self.good_keys))
            if not found:                                  # the other one timed out too, or its greeting was not complete
                return False
            self.assertTrue(end.startswith(self.error("")), end)
            self.assertEqual({k: v[1] for k, v in found.items()}, {k: value_of(k.encode()) for k in self.good_keys})
            return True
        wait_until("the other server's values come", what_the_others_had)

    def goes_down(self):
        """One of the two; a call may be lost with it."""
        self.scripted.stop()
        wait_until("it is noticed", lambda: self.asked(self.bad_keys[:1])[self.bad_keys[0]] == self.error("unavailable"))

    def test_one_server_down_or_both(self):
        """Members of a set that cannot be read are not treated as missing."""
        self.serve_two()
        self.goes_down()
        found, end = self.conn.values("get " + " ".join(self.bad_keys + self.good_keys))
        self.assertEqual((set(found), end), (set(self.good_keys), self.error("unavailable")))
        self.assertEqual(self.conn.ask("flush_all"), self.error("unavailable"))
        _, end = self.conn.values(f"smembers {self.bad_keys[0]}")
        self.assertEqual(end, self.error("unavailable"))
        _, end = self.conn.values(f"smembers missing-x {self.bad_keys[0]} missing-y")
        self.assertTrue(end.startswith("SERVER_ERROR upstream "), end)
        self.good.stop()
        found, end = self.conn.values("get " + " ".join(self.bad_keys + self.good_keys))
        self.assertEqual(found, {})
        self.assertRegex(end, r"^SERVER_ERROR upstream 127\.0\.0\.1:\d+ ")

    def test_others_do_not_wait(self):
        """While one server is silent, pipelines on the other's keys from other clients are answered."""
        self.serve_two(NEVER)
        for key in self.bad_keys:
            self.fault(key, scripted.silence, once=False)
        self.ask_all(self.bad_keys)
        conn = self.connect(self.proxy)
        for key in self.good_keys * 4:
            self.assertEqual(conn.get(key), value_of(key.encode()))
        self.scripted.drop_links()
        self.assertTrue(all(self.own_or_error(self.bad_keys).values()))

    def test_order_of_replies(self):
        """A fast server's replies wait for the slow one's: replies are in the order of the requests."""
        self.serve_two()
        for key in self.bad_keys:
            self.fault(key, scripted.late(0.05), once=False)
        keys = [key for pair in zip(self.bad_keys, self.good_keys) for key in pair]
        self.assertFalse(any(self.asked(keys).values()))
