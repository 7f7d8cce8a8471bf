"""A server whose replies cannot be right, that answers unasked, or that dies."""
import random
import threading
import time

import scripted
from case_scripted import CONFIG, HASTY, NEVER, ScriptedTest
from case_large import NOT_A_SET, LargeSetTest, names
from scripted import FullBacklog
from harness import wait_until


class Garbage(ScriptedTest):
    """Replies that cannot be right: an error, the connection closed, nothing after them believed."""
    smoke = True

    def bad_reply(self, data, verb=None):
        """`get key-1` is answered with these bytes, while other requests wait for their replies."""
        for behind in (0, 3):
            with self.subTest(data=data[:60], behind=behind):
                self.serve_hastily()
                self.fault("key-1", scripted.raw(data))
                keys = ["key-1"] + [f"key-behind-{i}" for i in range(behind)]
                self.assertIsNotNone(self.asked(keys)["key-1"], "a reply that cannot be right was taken")
                self.recovers_from()

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
            other = scripted.Request([b"mg", b"key-2"] + request.words[2:])
            link.send(link.answer(other) + link.answer(request))
        self.fault("key-1", swapped)
        self.scripted.faults[b"key-2"] = scripted.one_shot(scripted.silence)
        self.assertIsNotNone(self.asked(["key-1", "key-2", "key-3"])["key-1"])
        self.recovers_from()

    def test_lengths(self):
        for size in (b"18446744073709551616", b"18446744073709551615", b"4294967295", b"4294967296", b"-1",
                     b"2147483648", b"2147483647", b"x", b"1x", b"", b"99999999999999999999999999"):
            self.bad_reply(b"VA " + size + b" k{key} f0\r\n{value}\r\n")
        self.assertLess(self.proxy.peak_mib(), 512, "memory was taken by a declared length")

    def test_garbage_without_meta(self):
        for data in (*(b"VALUE {key} 0 " + size + b"\r\n{value}\r\nEND\r\n" for size in (
                         b"18446744073709551616", b"4294967295", b"-1", b"2147483648", b"x")), b"nonsense\r\n", b"VALUE other 0 5\r\nother\r\nEND\r\n", b"VALUE {key} 0 3\r\nabcdef\r\nEND\r\n",
                     b"VALUE {key}\r\nEND\r\n", b"VALUE {key} 0\r\nEND\r\n", b"VALUE {key} x 1\r\n1\r\nEND\r\n",
                     b"VALUE {key} 0 1\r\n1\r\nVALUE {key} 0 1\r\n1\r\nEND\r\n", b"HD\r\n", b"STORED\r\n"):
            with self.subTest(data=data):
                self.serve_hastily(meta=False, version=b"1.4.39")
                self.fault("key-1", scripted.raw(data))
                self.assertIsNotNone(self.asked(["key-1", "key-2"])["key-1"])
                self.recovers_from()

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
                self.fault("key-1", scripted.raw(reply))
                self.assertTrue(self.conn.ask(line).startswith(f"SERVER_ERROR upstream {self.scripted.name} "))
                self.recovers_from()
                self.was_sent("key-1", 1, line)

    def test_bare_error_to_a_request_of_ours(self):
        """ERROR or CLIENT_ERROR to a request that setlistd built right: passed on or replaced, never paired wrongly."""
        for data in (b"ERROR\r\n", b"CLIENT_ERROR bad command line format\r\n"):
            self.serve_hastily()
            self.fault("key-1", scripted.raw(data))
            self.ask_all(["key-1"])
            self.assertRegex(self.conn.line(), rb"^(ERROR|(CLIENT|SERVER)_ERROR .+)$")
            self.usable_again()

    def test_server_error_is_passed_on(self):
        for command in ("get key-1", "incr key-1 1", "delete key-1", "touch key-1 1"):
            self.fault("key-1", scripted.raw(b"SERVER_ERROR out of memory\r\n"))
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
            self.scripted.faults[key.encode()] = scripted.one_shot(mangled(dice.randrange(1 << 30)))
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
    """The beginning of the reply is damaged; the data is not, since nothing protects it."""
    def fault(link, request):
        dice = random.Random(seed)
        reply = bytearray(link.answer(request))
        head = reply.index(b"\r\n") + 2
        for _ in range(dice.randrange(1, 3)):
            reply[dice.randrange(head)] = dice.choice((dice.randrange(256), 10, 13, 32, 48))
        link.send(bytes(reply))
    return fault


class Stray(ScriptedTest):
    """Bytes without a request."""
    smoke = True

    def test_with_nothing_asked(self):
        for data in (b"VA 5 kkey-2 f0\r\nstray\r\n", b"STORED\r\n", b"\r\n", b"x", b"SERVER_ERROR idle\r\n"):
            with self.subTest(data=data):
                self.serve()
                self.asked(["key-1"])
                self.scripted.link_with("key-1").send(data)
                self.recovers_from()

    def test_a_reply_too_many(self):
        """The same reply twice, with other requests in flight: the second copy is not returned for any of them."""
        self.fault("key-1", scripted.twice)
        self.asked(["key-1"] + [f"key-behind-{i}" for i in range(20)])
        self.recovers_from()

    def test_a_reply_too_many_to_writes(self):
        """STORED twice: the copy may be mistaken for the reply of the next write, but no value is returned for another key, and it is
        detected."""
        self.fault("key-1", scripted.raw(b"DELETED\r\nDELETED\r\n"))
        self.assertEqual(self.conn.ask("delete key-1"), "DELETED")
        self.recovers_from()

    def test_bytes_after_the_handshake(self):
        """Stray bytes at the very beginning are no reply to the first request."""
        self.serve(greeting=b"VA 5 kkey-1 f0\r\nstray\r\n")
        self.assertIsNotNone(self.asked_one())


class Dying(ScriptedTest):
    """The server goes away."""
    smoke = True

    def test_in_the_middle_of_a_reply(self):
        for part in (0, 1, 5, 12, 20, 30):
            with self.subTest(part=part):
                self.serve()
                self.fault("key-1", scripted.die_after(part))
                outcome = self.asked(["key-1", "key-2", "key-3"])
                self.assertIn(outcome["key-1"], (None, self.error("connection lost, outcome unknown")))
                self.usable_again()

    def test_writes_are_not_sent_again(self):
        for line, want in (("incr key-1 1", 1), ("delete key-1", 1), ("touch key-1 0", 1), ("sadd key-1 a", 1),
                           ("evincr key", None)):
            with self.subTest(line=line):
                self.serve()
                self.fault(line.split()[1], scripted.die, once=False)
                if want is None:
                    self.die_on_events()
                self.assertEqual(self.conn.ask(line), self.error("connection lost, outcome unknown"))
                if want:
                    self.assertEqual(len(self.scripted.requests_for("key-1")), want, "sent again")
                self.usable_again()

    def die_on_events(self):
        """The counter's key has the hour in it: the present and the next one."""
        for seconds in (0, 3600):
            hour = time.strftime("%Y%m%d%H", time.gmtime(time.time() + seconds))
            self.fault(f"key::{hour}", scripted.die, once=False)

    def test_with_many_requests_outstanding(self):
        keys = [f"key-{i}" for i in range(200)]
        self.fault("key-77", scripted.die)
        outcome = self.asked(keys)
        self.assertFalse([k for k in keys[:77] if outcome[k]], "what was answered before was lost")
        self.usable_again()

    def test_while_the_proxy_writes(self):
        """The failure of the write is detected before the last replies are read. Whether this happens is chance, so it is tried in rounds."""
        keys = [f"key-{i}" for i in range(20)]
        for turn in range(20):
            self.serve(CONFIG + "\nmax_pipeline = 100000")
            other = self.connect(self.proxy)
            for conn in [self.conn] * 200 + [other] * 200:  # the size of replies is known: many may be in flight
                conn.values("get key-other")
            at, answers = threading.Event(), []
            for key in keys[:-1]:
                self.fault(key, scripted.gather(answers))
            self.fault(keys[-1], scripted.send_and_die(answers, at))
            self.ask_all(keys)
            wait_until("they arrive", lambda: self.scripted.requests_for(keys[-1]))
            threading.Timer(turn / 5000, at.set).start()
            self.ask_all(["key-other"] * 8000, other)
            outcome = self.own_or_error(keys)
            self.assertFalse([k for k in keys[:-1] if outcome[k]], "what was answered before was lost")
            other.close()

    def test_clients_of_one_server_in_common(self):
        conns = [self.connect(self.proxy) for _ in range(10)]
        self.fault("key-5-3", scripted.die)
        for number, conn in enumerate(conns):
            self.ask_all([f"key-{number}-{i}" for i in range(10)], conn)
        for number, conn in enumerate(conns):
            self.own_or_error([f"key-{number}-{i}" for i in range(10)], conn)
        self.usable_again()

    def test_refused_then_back(self):
        self.usable_again()
        self.scripted.stop_listening()
        self.scripted.drop_links()
        wait_until("it is noticed", self.unavailable)
        for i in range(20):
            self.assertEqual(self.asked_one(f"key-{i}"), self.error("unavailable"))
        self.assertEqual(self.conn.ask("sadd s a"), self.error("unavailable"))
        self.assertEqual(self.conn.ask("evincr E"), self.error("unavailable"))
        self.scripted.start()
        self.usable_again()

    def unavailable(self):
        return self.asked_one() == self.error("unavailable")

    def test_down_at_the_start(self):
        server = self.scripted_server()
        server.stop_listening()
        self.serve_before([server])
        self.assertEqual(self.asked_one(), self.error("unavailable"))
        self.scripted.start()
        self.usable_again()

    def test_never_accepting(self):
        """Neither accepted nor refused: the connect limit passes."""
        server = FullBacklog()
        self.addCleanup(server.stop)
        self.serve_before([server], f"{NEVER}\nconnect_timeout = 300")
        self.assertEqual(set(self.asked(["key-1", "key-2"]).values()), {self.error("unavailable")})

    def test_no_answer_to_the_handshake(self):
        self.serve(config=HASTY, mute=True)
        self.assertEqual(self.asked_one(), self.error("unavailable"), "nothing of the request was sent")
        self.scripted.mute = False
        self.usable_again()

    def test_too_many_connections(self):
        """memcached's refusal is no reply to a request."""
        self.serve(greeting=b"ERROR Too many open connections\r\n", hang_up=True)
        for key in ("key-1", "key-2"):
            self.assertEqual(self.asked_one(key), self.error("unavailable"))
        self.scripted.greeting, self.scripted.hang_up = b"", False
        self.usable_again()

    def test_garbage_for_a_handshake(self):
        for greeting in (b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00" * 100):
            with self.subTest(greeting=greeting):
                self.serve(config=HASTY, greeting=greeting)
                self.assertEqual(self.asked_one(), self.error("unavailable"))
                self.scripted.greeting = b""
                self.usable_again()


class Altered(LargeSetTest):
    """A client writes a base whose references contradict tables that setlistd has in memory."""
    smoke = True
    proxy_count = 1
    FAKE = b"@t4k0zq81mfwx.1.3.0.29.1048f82143307346 "
    COMMANDS = ("sismember k x", "srandmember k 5", "srandmember k 500", "spop k", "smembers k", "scard k", "scount k a z",
                "sscan k 5", "sinfo k")

    def write_base(self, base, read=False):
        self.assertEqual(self.conn.set("k", base), "STORED")
        if read:
            self.assert_members("k", self.members)
            self.assertEqual(self.conn.ask("sismember k x"), "0")

    def alter_numbers(self):
        """Each number of the only reference, for each command: nothing is served, and the set is there again with its base."""
        good = self.at.get("k")
        mark, ref, end = good.split(b" ")
        self.assertEqual(end, b"")
        words = ref.split(b".")
        for place in range(1, 5):
            number = int(words[place])
            for value in {4000000000, number + 1, max(number - 1, 0)} - {number}:
                altered = b".".join([*words[:place], b"%d" % value, *words[place + 1:]])
                for command in self.COMMANDS:
                    self.write_base(good, read=True)
                    self.write_base(b"%s %s %s" % (mark, altered, self.FAKE))
                    self.assertIn(self.conn.ask(command), ("NOT_FOUND", "END", NOT_A_SET), (altered, command))
        self.write_base(good, read=True)

    def test_index(self):
        self.members = self.large_set()
        self.alter_numbers()

    def test_table(self):
        self.members = names(100)
        self.write("sadd", "k", self.members)
        # The log of a set that is not read may be longer.
        self.assert_members("k", self.members)
        self.compact("k")
        run, = self.stored("k").runs
        self.assertEqual(run.id[0], "t")
        self.alter_numbers()
