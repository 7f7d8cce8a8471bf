"""Invalid, hostile and broken requests. The row numbers are those of the research that they are taken from.

There are three outcomes: refused, and the connection stays open; refused and closed; closed silently. In none of them may bytes of a
data block be parsed as a command.
"""
import contextlib
import random

from case import WireTest
from harness import wait_until
from wire import Conn, usage

BAD_CHUNK = b"CLIENT_ERROR bad data chunk"
TOO_LARGE = b"SERVER_ERROR object too large for cache"
ONLY_TEXT = b"CLIENT_ERROR only the memcached protocols are supported here"
CONTROL = b"CLIENT_ERROR control character in line"
MIB = 1 << 20


class BadInput(WireTest):
    """No data block may touch the value `victim`; payloads try to delete or to change it."""

    def setUp(self):
        self.serve(2)
        self.assertEqual(self.conn.set("victim", b"safe"), "STORED")

    def tearDown(self):
        self.assertEqual(self.conn.get("victim"), b"safe", "data was run as a command")

    def replies(self, data, half_close=True):
        """Returns all bytes until the proxy closes the connection."""
        with Conn(self.proxy.port) as conn:
            with contextlib.suppress(ConnectionError):
                conn.send(data)
                if half_close:
                    conn.half_close()
            return conn.rest()

    def refused_and_closed(self, data, error):
        """Only the error line, although more requests followed; the proxy closes the connection."""
        self.assertEqual(self.replies(data + b"mn\r\n", half_close=False), error + b"\r\n", data[:80])

    def refused_and_on(self, data, error):
        self.assertEqual(self.replies(data + b"mn\r\n"), error + b"\r\nMN\r\n", data[:80])


class Framing(BadInput):
    """Where the length of the data is in doubt, the connection ends (rows 18 to 20, 24, 35)."""
    smoke = True

    def test_length_that_is_no_number(self):
        for head in (b"set k 0 0 %s", b"add k 0 0 %s", b"append k 0 0 %s", b"prepend k 0 0 %s", b"replace k 0 0 %s",
                     b"cas k 0 0 %s 1", b"ms k %s"):
            for size in (b"-1", b"x", b"12abc", b"0x10", b"5.0", b"+5", b"18446744073709551615",
                         b"18446744073709551616", b"9" * 30, b"-2147483648"):
                with self.subTest(head=head, size=size):
                    self.refused_and_closed(head % size + b"\r\ndelete victim\r\n", usage(head.split()[0].decode()))

    def test_bad_data_chunk(self):
        for head in (b"set k 0 0 3", b"cas k 0 0 3 1", b"append k 0 0 3", b"ms k 3"):
            for tail in (b"12\r\ndelete victim\r\n", b"1234567\r\ndelete victim\r\n", b"\r\n\r\ndelete victim\r\n",
                         b"123\rdelete victim\r\n", b"123 \r\ndelete victim\r\n"):
                with self.subTest(head=head, tail=tail):
                    self.refused_and_closed(head + b"\r\n" + tail, BAD_CHUNK)

    def test_data_ended_by_a_bare_line_feed(self):
        """Accepted, as for a line, or refused as memcached does: but one of the two."""
        reply = self.replies(b"set k 0 0 3\r\n123\nmn\r\n")
        self.assertIn(reply, (b"STORED\r\nMN\r\n", BAD_CHUNK + b"\r\n"))

    def test_data_of_a_refused_bare_line(self):
        """They end in either form, and are discarded with it wherever they are cut: one request, one reply."""
        watcher = self.connect(self.proxy)
        for data in (b"abc\n", b"abc\r\n", b"\r\n\r\n\r\n"):
            request = b"set k x 0 %d\n" % len(data.rstrip(b"\r\n") or data[:4]) + data + b"mn\r\nmn\n"
            for cut in range(len(request)):
                with self.subTest(data=data, cut=cut), Conn(self.proxy.port) as conn:
                    conn.send(request[:cut])
                    self.assertEqual(watcher.ask("mn"), "MN")
                    conn.send(request[cut:])
                    self.assertEqual([conn.line() for _ in range(3)], [usage("set"), b"MN", b"MN"])

    def test_bad_data_chunk_does_not_store(self):
        self.conn.set("k", b"old")
        self.refused_and_closed(b"set k 0 0 3\r\nlonger\r\n", BAD_CHUNK)
        self.assertEqual(self.conn.get("k"), b"old")

    def test_very_large_lengths(self):
        """Numbers that are valid and absurd: no memory for them, and no command out of the data."""
        for size in (2147483645, 2147483646, 2147483647, 4294967295, 4294967296):
            with self.subTest(size=size):
                reply = self.replies(b"set k 0 0 %d\r\ndelete victim\r\nmn\r\n" % size)
                self.assertIn(reply, (b"", usage("set") + b"\r\n", TOO_LARGE + b"\r\n"))
        self.assertLess(self.proxy.peak_mib(), 512, "memory was taken by a declared length")

    def test_missing_arguments_do_not_run_the_payload(self):
        """Whether the connection stays open or not: the bytes after `set k 0 0` may be data, and must not delete."""
        self.assertEqual(self.replies(b"cas victim 0 0 13\r\n"), b"", "its data are awaited")
        for head in (b"set victim 0 0", b"set victim", b"ms victim", b"cas k 0 0 13\r\ndelete victim"):
            with self.subTest(head=head):
                first = self.replies(head + b"\r\n").split(b"\r\n")[0]
                self.assertTrue(first.startswith(b"CLIENT_ERROR") or first == b"ERROR", first)


class Swallowed(BadInput):
    """The length is known, and something else is invalid: the data is skipped, the connection stays open (rows 10, 22, 27, 28, 30)."""
    smoke = True

    def refuse(self, head, error):
        with self.subTest(head=head[:80]):
            self.refused_and_on(head + b"\r\ndelete victim\r\n", error)

    def test_numbers(self):
        for flags in (b"x", b"-1", b"4294967296", b"1x", b"99999999999999999999999"):
            self.refuse(b"set k %s 0 13" % flags, usage("set"))
        for exptime in (b"x", b"4294967296", b"-2147483649", b"1x", b"99999999999999999999999"):
            self.refuse(b"set k 0 %s 13" % exptime, usage("set"))
        for cas in (b"x", b"-1", b"18446744073709551616", b"1x"):
            self.refuse(b"cas k 0 0 13 %s" % cas, usage("cas"))

    def test_key_too_long(self):
        key = b"k" * 251
        for verb in (b"set", b"add", b"replace", b"append", b"prepend"):
            self.refuse(b"%s %s 0 0 13" % (verb, key), b"CLIENT_ERROR key too long")
        self.refuse(b"cas %s 0 0 13 1" % key, b"CLIENT_ERROR key too long")

    def test_bad_key_or_flags_in_ms(self):
        """An invalid flag is an error, whichever part detects it; the data is skipped or the connection is closed."""
        for words in (b"k" * 251 + b" 13", *(b"k 13 " + flags for flags in (
                b"!", b"T1 T2", b"MX", b"O" + b"x" * 40, b"Cx", b"Tx", b"Fx", b" ".join([b"k"] * 30)))):
            with self.subTest(words=words):
                reply = self.replies(b"ms %s\r\ndelete victim\r\nmn\r\n" % words)
                self.assertRegex(reply, rb"^CLIENT_ERROR [^\r]+\r\n(MN\r\n)?$")

    def test_noreply_of_a_refused_command(self):
        """A refused command may be silent or not, but the next reply is the next command's."""
        for head in (b"set k x 0 13 noreply", b"set %s 0 0 13 noreply" % (b"k" * 251), b"cas k 0 0 13 x noreply"):
            with self.subTest(head=head[:60]):
                reply = self.replies(head + b"\r\ndelete victim\r\nmn\r\n")
                self.assertRegex(reply, rb"^(CLIENT_ERROR [^\r]+\r\n)?(MN\r\n)?$")
        for line in (b"incr k x noreply", b"touch k x noreply", b"sadd k noreply", b"delete k x noreply"):
            with self.subTest(line=line):
                reply = self.replies(line + b"\r\nmn\r\n")
                self.assertRegex(reply, rb"^((CLIENT_)?ERROR[^\r]*\r\n)?MN\r\n$")


class TooLarge(BadInput):
    """A value that cannot be stored: the old value is deleted, as in memcached, and nothing else (row 22)."""
    smoke = True

    def test_near_the_servers_limit(self):
        """memcached counts its own header: a value just below the limit is refused there as well."""
        stored = refused = 0
        for size in range(MIB - 200, MIB + 1, 8):
            self.assertEqual(self.conn.set("k", b"old"), "STORED")
            reply = self.conn.set("k", b"x" * size)
            if reply == "STORED":
                stored += 1
                self.assertEqual(refused, 0, f"{size} bytes were stored, fewer were refused")
                continue
            refused += 1
            self.assertEqual(reply, TOO_LARGE.decode(), f"{size} bytes")
            self.assertIsNone(self.conn.get("k"), f"{size} bytes were refused, and the old value is still there")
        self.assertGreater(stored, 0)
        self.assertGreater(refused, 0)

    def test_over_max_value(self):
        """The proxy's own limit, with the data streamed past it."""
        proxy = self.setlistd(self.servers, config="max_value = 100000")
        with Conn(proxy.port) as conn:
            conn.set("k", b"old")
            self.assertEqual(conn.set("k", b"x" * 100001), TOO_LARGE.decode())
            self.assertIsNone(conn.get("k"))
            self.assertEqual(conn.set("k", b"x" * 99000), "STORED")
            conn.send(b"set k 0 0 30000000\r\n" + b"x" * 30000000 + b"\r\nmn\r\n")
            self.assertEqual([conn.line(), conn.line()], [TOO_LARGE, b"MN"])


class Lines(BadInput):
    """Lines that are too long, contain control bytes or have too many words (rows 2 to 9, 33, 36, 37)."""
    smoke = True

    def test_line_too_long(self):
        for start in (b"get ", b"sadd k ", b"set k 0 0 ", b"", b"sadd"):
            with self.subTest(start=start):
                self.assertEqual(self.replies(start + b"x" * (MIB + 5000), half_close=False),
                                 b"CLIENT_ERROR line too long\r\n")

    def test_line_too_long_after_good_commands(self):
        reply = self.replies(b"mn\r\nmn\r\nsadd k " + b"x" * (MIB + 5000) + b"\r\nmn\r\n", half_close=False)
        self.assertEqual(reply, b"MN\r\nMN\r\nCLIENT_ERROR line too long\r\n")

    def test_configured_line_limit(self):
        proxy = self.setlistd(self.servers, config="max_line = 4096")
        with Conn(proxy.port) as conn:
            conn.send(b"get " + b"k " * 1800 + b"\r\n")
            self.assertEqual(conn.line(), b"END")
            conn.send(b"get " + b"k " * 2100 + b"\r\n")
            self.assertEqual(conn.rest(), b"CLIENT_ERROR line too long\r\n")

    def test_long_lines_within_the_limit(self):
        members = [f"member-{i}" for i in range(10000)]
        self.assertEqual(self.conn.ask("sadd k " + " ".join(members)), "STORED")
        self.assertEqual(self.conn.ask("scard k"), "10000")
        found, _ = self.conn.values("smembers k")
        self.assertEqual(set(found["k"][1].decode().split()), set(members))
        self.assertEqual(self.conn.ask("smismember k " + " ".join(members)), " ".join(["1"] * 10000))
        self.assertEqual(self.conn.ask("srem k " + " ".join(members[1:])), "DELETED")
        self.assertEqual(self.conn.ask("scard k"), "1")

    def test_many_words_where_few_belong(self):
        words = b" x" * 10000
        for verb in (b"delete", b"touch", b"incr", b"set", b"cas", b"mg", b"md", b"ma", b"scard", b"route", b"evincr"):
            with self.subTest(verb=verb), Conn(self.proxy.port) as conn:
                conn.send(verb + words + b"\r\n")
                line = conn.line()
                self.assertTrue(line.startswith(b"CLIENT_ERROR") or line == b"ERROR", line[:100])

    def test_spaces(self):
        for data, want in ((b"get" + b" " * 772 + b"k\r\n", b"END\r\n"), (b" " * 3000 + b"\r\n", b"ERROR\r\n"),
                           (b"get k" + b" " * 3000 + b"\r\n", b"END\r\n")):
            self.assertEqual(self.replies(data + b"mn\r\n"), want + b"MN\r\n")

    def test_control_bytes(self):
        """Only a key of memcached's own commands may have them, and no zero byte: there the line of memcached ends."""
        for line in (b"get a%sb", b"get a b%s", b"get %s", b"gets good a%sb good", b"delete a%s", b"mg a%s v", b"touch a%s 0"):
            with self.subTest(line=line):
                self.refused_and_on(line % b"\x00" + b"\r\n", CONTROL)
        for byte in (b"\x00", b"\x01", b"\t", b"\x0b", b"\r", b"\x1b", b"\x1f", b"\x7f"):
            for line in (b"mg a v%s", b"scard a%s", b"route a%s", b"sadd a b%s", b"sunion a%s b", b"evincr a%s", b"lpush a b%s"):
                with self.subTest(byte=byte, line=line):
                    self.refused_and_on(line % byte + b"x\r\n", CONTROL)

    def test_control_bytes_in_an_unknown_command(self):
        for line in (b"ge\tt a", b"\x01", b"get\x00", b"bog\x7fus", b"\tget a"):
            self.assertIn(self.replies(line + b"\r\nmn\r\n"), (CONTROL + b"\r\nMN\r\n", b"ERROR\r\nMN\r\n"), line)

    def test_control_bytes_in_a_command_with_data(self):
        for byte in (b"\x00", b"\t", b"\r", b"\x7f"):
            for head in (b"evadd a%sb 0 0 13", b"ms a 13 v%s") if byte != b"\x00" else (b"set a%sb 0 0 13", b"append a%s 0 0 13", b"ms a%sb 13"):
                with self.subTest(byte=byte, head=head):
                    reply = self.replies(head % byte + b"\r\ndelete victim\r\nmn\r\n")
                    self.assertIn(reply, (CONTROL + b"\r\n", CONTROL + b"\r\nMN\r\n"))

    def test_one_bad_key_among_good_ones(self):
        """One error and no part of a reply (row 37)."""
        keys = [f"good-{i}" for i in range(100)]
        for key in keys:
            self.conn.set(key, b"x")
        keys[50] = "k" * 251
        line = " ".join(keys).encode()
        for head in (b"get ", b"gets ", b"gat 0 ", b"gats 0 "):
            self.refused_and_on(head + line + b"\r\n", b"CLIENT_ERROR key too long")

    def test_key_too_long(self):
        key = b"k" * 251
        for line in (b"get %s", b"gets %s", b"gat 0 %s", b"delete %s", b"incr %s 1", b"decr %s 1", b"touch %s 0"):
            self.refused_and_on(line % key + b"\r\n", b"CLIENT_ERROR key too long")
        for line in (b"mg %s v", b"md %s", b"ma %s", b"me %s"):
            reply = self.replies(line % key + b"\r\nmn\r\n")
            self.assertRegex(reply, rb"^CLIENT_ERROR [^\r]+\r\nMN\r\n$")

    def test_missing_arguments(self):
        for line in (b"delete", b"touch", b"touch k", b"incr", b"incr k", b"decr k", b"me", b"md", b"ma", b"mg"):
            self.refused_and_on(line + b"\r\n", usage(line.split()[0].decode()))

    def test_same_key_very_often(self):
        """More often in one line than memcached can count references to an item (row 36)."""
        count = 60001
        with Conn(self.proxy.port) as conn:
            conn.set("k", b"v")
            conn.send(b"get" + b" k" * count + b"\r\n")
            block = b"VALUE k 0 1\r\nv\r\n"
            while len(conn.buffer) < len(block) * count + 5:
                conn._fill()
            self.assertTrue(conn.buffer == block * count + b"END\r\n", "not each repetition was answered")

    def test_too_many_keys(self):
        with Conn(self.proxy.port) as conn:
            conn.send(b"get" + b" k" * 65537 + b"\r\n")
            self.assertRegex(conn.line(), rb"^CLIENT_ERROR .+")
        self.assertIsNone(self.conn.get("k"))


class OtherProtocols(BadInput):
    """Rows 13 and 14."""
    smoke = True

    def test_foreign_protocols(self):
        """HTTP is closed in silence."""
        for data, reply in ((b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""), (b"POST /a HTTP/1.0\r\n\r\nset a 0 0 1\r\n1\r\n", b""),
                            (b"GET /index.html HTTP/1.1\r\n\r\n", b""), (b"\x16\x03\x01\x02\x00\x01\x00", ONLY_TEXT + b"\r\n"),
                            (b"*1\r\n$4\r\nPING\r\n", ONLY_TEXT + b"\r\n")):
            with self.subTest(data=data):
                self.assertEqual(self.replies(data, half_close=False), reply)

    def test_random_bytes(self):
        """Anything at all: the proxy lives, and answers the next client."""
        dice = random.Random(20150220)
        for _ in range(60):
            junk = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 600)))
            self.replies(junk)
        self.assertEqual(self.conn.ask("mn"), "MN")

    def test_mutated_requests(self):
        """Valid requests with a byte or two changed, as from a broken client."""
        dice = random.Random(1424448000)
        good = (b"set k 1 2 3\r\nabc\r\nget k k2\r\nincr n 5\r\nsadd s a b c\r\nsmembers s\r\nms k 3 T0 c\r\nabc\r\n"
                b"mg k v f O1\r\nevincr E 1\r\nevadd E 0 0 2\r\nhi\r\ncas k 0 0 1 5\r\nx\r\n")
        for _ in range(200):
            bad = bytearray(good)
            for _ in range(dice.choice((1, 1, 2, 5))):
                bad[dice.randrange(len(bad))] = dice.choice((dice.randrange(256), 10, 13, 32, 48, 45))
            self.replies(bytes(bad))
        self.assertEqual(self.conn.set("k", b"abc"), "STORED")
        self.assertEqual(self.conn.get("k"), b"abc")


class BrokenOff(BadInput):
    """Clients that go away (rows 16, 40, 41)."""
    smoke = True

    def test_reset_in_the_middle_of_a_value(self):
        for begun, leave in ((b"set half 0 0 10\r\n12345", Conn.reset), (b"set half2 0 0 10\r\n0123456789", Conn.close)):
            conn = Conn(self.proxy.port)
            # one write is read in one piece: when the first request is answered, the others were read too
            conn.send(b"mn\r\n" + begun)
            self.assertEqual(conn.line(), b"MN")
            leave(conn)
        self.assertEqual(self.connect(self.proxy).values("get half half2"), ({}, "END"))

    def test_line_without_its_end(self):
        self.conn.set("k", b"x")
        self.assertEqual(self.replies(b"delete k"), b"")
        self.assertEqual(self.conn.get("k"), b"x")

    def test_clients_that_leave_their_replies(self):
        """Replies to disconnected clients are never sent to others, and no descriptor is leaked."""
        with Conn(self.proxy.port) as conn:
            for i in range(10):
                conn.set(f"k{i}", b"value of k%d" % i * 100)
            before = self.proxy.fd_count()
            for i in range(50):
                leaver = Conn(self.proxy.port)
                leaver.send(b"".join(b"get k%d\r\n" % (j % 10) for j in range(200)))
                (leaver.reset if i % 2 else leaver.close)()
                key = f"k{i % 10}"
                self.assertEqual(conn.get(key), f"value of {key}".encode() * 100)
            wait_until("all descriptors are closed", lambda: self.proxy.fd_count() <= before)

    def test_a_stalled_client_holds_up_nobody(self):
        stalled = self.connect(self.proxy)
        stalled.send(b"set slow 0 0 100\r\nabc")
        other = self.connect(self.proxy)
        other.send(b"get ")
        self.assertEqual(self.conn.set("k", b"1"), "STORED")
        other.send(b"k\r\n")
        self.assertEqual(other.read_values()[0]["k"][1], b"1")
        stalled.send(b"x" * 97 + b"\r\n")
        self.assertEqual(stalled.line(), b"STORED")
