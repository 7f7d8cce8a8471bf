"""Keys, flags and lengths that a client chooses: no part of them is ever parsed as something else."""
import re
from base64 import b64encode

from case import WireTest
from case_large import SMALL
from test_command_keys import reply_to
from test_reserved import NO_PLAIN, examples
from wire import Conn, usage

PART = "CLIENT_ERROR the key is a part of a set or list, and can only be read"
COPY = "CLIENT_ERROR the key is that of a second copy, and can only be read"
TOO_LARGE = b"SERVER_ERROR object too large for cache"
MIB = 1 << 20
ITEMS = [b"%03d" % i + b"m" * 100 for i in range(100)]


class EncodedKeys(WireTest):
    """For an item that is created or extended by some flags, memcached does not store that its key was encoded, and prints all its bytes."""
    smoke = True

    def setUp(self):
        self.serve()

    def exchange(self, data, *lines):
        self.conn.send(data)
        for line in lines:
            self.assertEqual(self.conn.line(), line, data)

    def test_line_end_in_a_key(self):
        """As a separate reply it would be sent to another client, or close the connection for all."""
        key = b64encode(b'q\r\nVA 4 kx f0\r\nevil\r\nHD kq')
        other = self.connect(self.proxy)
        self.assertEqual(other.set("x", b"good"), "STORED")
        self.exchange(b"mg %s b N30 k\r\n" % key, b"HD k%s b W" % key)
        for _ in range(20):
            self.conn.send(b"mg %s b k t\r\n" % key)
            other.send(b"get x\r\n")
            self.assertRegex(self.conn.line(), rb"^HD k%s b t\d+ Z$" % re.escape(key))
            self.assertEqual(other.read_values()[0], {"x": (0, b"good")})
        self.assertIn(b"CLIENT_ERROR", self.conn.ask(b"me %s b" % key).encode())
        self.assertEqual(self.connect(self.proxy).get("x"), b"good")

    def test_every_command(self):
        key = b64encode(b"a\r\nEN")
        named = b" k%s b" % key
        self.exchange(b"ma %s b N0 J5 v k\r\n" % key, b"VA 1" + named, b"5")
        self.exchange(b"ma %s b v k O1\r\n" % key, b"VA 1" + named + b" O1", b"6")
        self.exchange(b"ms %s 1 b MA k\r\n0\r\n" % key, b"HD" + named)
        self.exchange(b"mg %s O2 b k v s\r\n" % key, b"VA 2 O2" + named + b" s2", b"60")
        self.exchange(b"ms %s 1 b ME k O3\r\nx\r\n" % key, b"NS" + named + b" O3")
        self.exchange(b"ms %s 1 b C1 O3 k\r\nx\r\n" % key, b"EX O3" + named)
        self.exchange(b"md %s b k q\r\nmd %s b k O4\r\nmn\r\n" % (key, key), b"NF" + named + b" O4", b"MN")
        self.exchange(b"mg %s b k O5\r\n" % key, b"EN" + named + b" O5")


class Parts(WireTest):
    """The items of a large set or list other than that under its key."""
    smoke = True

    def setUp(self):
        self.serve(2, config=SMALL)

    def refused(self, part, refusal=PART):
        for line in (f"delete {part}", f"incr {part} 1", f"touch {part} 9", f"gat 9 {part}", f"sadd {part} EVIL", f"srem {part} x",
                     f"sset {part}", f"spop {part}", f"stake {part}", f"smembers {part}", f"scompact {part}", f"rpush {part} x", f"lpop {part}",
                     f"md {part} I", f"mg {part} T1", f"mg {part} N1", f"ma {part} N1", f"md {b64encode(part.encode()).decode()} b"):
            self.assertEqual(self.conn.ask(line), refusal, line)
        for verb in ("set", "add", "replace", "append", "prepend"):
            self.assertEqual(self.conn.ask(f"{verb} {part} 0 0 4\r\nEVIL"), refusal)
        self.assertEqual(self.conn.ask(f"cas {part} 0 0 4 1\r\nEVIL"), refusal)
        self.assertEqual(self.conn.ask(f"ms {part} 4\r\nEVIL"), refusal)
        self.conn.send(f"set {part} 0 0 4 noreply\r\nEVIL\r\nset {part} 0 0 30000000\r\n".encode() + b"x" * 30000000 + b"\r\n")
        self.assertEqual(self.conn.line(), TOO_LARGE)

    def parts_of(self, verb, items):
        """Returns the keys of the stored items other than the base."""
        self.assertEqual(self.conn.ask(b"%s victim %s" % (verb, b" ".join(items))), "STORED")
        self.assertEqual(self.conn.ask("scompact victim"), "OK")
        ids = re.findall(rb"@([ti][0-9a-z]{11}|s[0-9a-z]{11}\.\d+\.\d+)", self.conn.get("victim"))
        self.assertTrue(ids)
        return [f"victim.{part.decode()}" for part in ids]

    def test_a_set(self):
        for part in self.parts_of(b"sadd", ITEMS):
            before = self.conn.get(part)
            self.refused(part)
            self.assertEqual(self.conn.get(part), before)
            self.assertEqual(self.conn.ask(f"mg {part} s"), f"HD s{len(before)}")
        self.assertEqual(self.connect(self.proxy).ask("scard victim"), "100")

    def test_a_list(self):
        for part in self.parts_of(b"rpush", ITEMS):
            self.refused(part)
        self.assertEqual(self.conn.values("lrange victim 0 -1")[0]["victim"][1], b" ".join(ITEMS))

    def test_a_second_copy(self):
        self.refused("victim.~copy", COPY)
        self.assertEqual(self.conn.ask("get victim.~copy"), "END")
        self.assertEqual(self.conn.ask("mg victim.~copy s"), "EN")
        self.refused("victim.~copy.t0k4zq81mfwx")
        self.assertEqual(self.conn.ask("set victim.copy 0 0 4\r\nGOOD"), "STORED")

    def test_a_list_by_hand(self):
        """As in the manual, with the items written on the servers."""
        for key, data in (("queue.s0k4zq81mfwx.3.1", b"+a +b +c "), ("queue", b"+z @list @s0k4zq81mfwx.3.1.ff822a2867ea9b22:1:2 +d +e +e ")):
            name = self.conn.ask(f"route {key}").split()[2]
            with Conn(next(server.port for server in self.servers if server.name == name)) as direct:
                self.assertEqual(direct.set(key, data), "STORED")
        self.assertEqual(self.conn.values("lrange queue 0 -1")[0]["queue"][1], b"z b c d e e")
        self.assertEqual(self.conn.values("lpop queue 2")[0]["queue"][1], b"z b")
        self.assertEqual(self.conn.get("queue"), b"@list @s0k4zq81mfwx.3.1.ff822a2867ea9b22:2:1 +d +e +e ")

    def test_others_are_written(self):
        for key in ("app.transactions", "app.introduction", "app.transaction1", "user.t20251123101", "v.1.2"):
            self.assertEqual(self.conn.set(key, b"x"), "STORED")
            self.assertEqual(self.conn.ask(f"delete {key}"), "DELETED")


class SecondCopies(WireTest):
    """`<key>.~copy` names the second copy of a set or counter. Each command of the table handles such a key like that of a part."""
    smoke = True
    RULES = ("", 'collection "" { plain_verbs = true }\nevents "" { plain_verbs = true }', 'collection "" { only = true }',
             'collection "" { type = "list" }', 'collection "" { encoding = "csv" }')
    # The others never write to a key of the request, or write to the counters of a type that has this name.
    PASS = ("evadd evcount evincr evlast evlimit evrange evtop flush_all get gets help lru_crawler me mg mn quit repair route stats verbosity version").split()

    def test_the_table(self):
        for rules in self.RULES:
            self.serve(config=f'commands = "q|"\n{rules}\n')
            refused, names = set(), set()
            for name, line, request in examples():
                names.add(name)
                ask = [re.sub(r"\{k\}\w+", key, line).encode() for key in ("victim.~copy", "victim.t0k4zq81mfwx")]
                replies = [reply_to(self.conn, one) for one in ask]
                with self.subTest(rules=rules, line=ask[0]):
                    self.assertEqual(replies[0].replace(COPY.encode(), PART.encode()).replace(b"victim.~copy", b"victim.t0k4zq81mfwx"), replies[1])
                if replies[0].strip() in (COPY.encode(), NO_PLAIN):
                    refused.add(name)
            with self.subTest(rules=rules):
                self.assertLessEqual(names - refused, set(self.PASS))


class EmptyKeys(WireTest):
    """A client whose key is empty, and whose data would run as commands."""
    smoke = True

    def test_data_is_swallowed(self):
        _, proxy = self.pool()
        data = b"set inj 0 0 1\r\nx"
        for line in (b"ms  %d", b"ms  %d T0", b"set  0 0 %d", b"set  0 0 %d noreply", b"evadd  0 0 %d"):
            with Conn(proxy.port) as conn:
                conn.send(line % len(data) + b"\r\n" + data + b"\r\nmn\r\n")
                if not line.endswith(b"noreply"):
                    self.assertEqual(conn.line(), usage(line.split()[0].decode()), line)
                self.assertEqual(conn.line(), b"MN", line)
                self.assertIsNone(conn.get("inj"), line)
        for line in (b"cas  0 0 %d 1", b"evadd  0 0 %d 99"):
            with Conn(proxy.port) as conn:
                conn.send(line % len(data) + b"\r\n" + data + b"\r\nmn\r\n")
                self.assertEqual(conn.rest(), usage(line.split()[0].decode()) + b"\r\n", line)
            self.assertIsNone(self.connect(proxy).get("inj"), line)


class Memcached(WireTest):
    """Rarely used features of memcached. `run --direct` tests memcached itself."""
    direct = True
    smoke = True

    def setUp(self):
        self.serve()

    def test_too_large(self):
        """No stale value can be read, not even by calls that are in flight."""
        big = b"x" * (2 * MIB)
        for line, reply in ((b"set k 0 0 %d", TOO_LARGE), (b"set k 0 0 %d noreply", None), (b"ms k %d", TOO_LARGE),
                            (b"ms azE= %d b q", TOO_LARGE), (b"ms YSBi %d b", TOO_LARGE), (b"ms k %d C1", TOO_LARGE)):
            self.conn.send(b"ms k 3\r\nold\r\nms azE= 3 b\r\nold\r\nms YSBi 3 b\r\nold\r\n")
            self.assertEqual([self.conn.line() for _ in range(3)], [b"HD"] * 3)
            key = line.split()[1]
            flags = b" b v" if b" b" in line else b" v"
            self.conn.send(line % len(big) + b"\r\n" + big + b"\r\nmg " + key + flags + b"\r\n")
            if reply:
                self.assertEqual(self.conn.line(), reply, line)
            self.assertEqual(self.conn.line(), b"EN", line)
        for verb in (b"add", b"replace", b"append", b"prepend"):
            self.conn.set("k", b"old")
            self.conn.send(verb + b" k 0 0 %d\r\n" % len(big) + big + b"\r\n")
            self.assertEqual(self.conn.line(), TOO_LARGE)
            self.assertEqual(self.conn.get("k"), b"old")

    def test_noreply(self):
        """An error reply to it is as silent as success: the next bytes are the reply to the next command."""
        for line in (b"incr x" + b"x" * 250 + b" 1", b"incr a x", b"touch a x", b"delete a 5", b"set a 0 0", b"incr a"):
            self.conn.send(line + b" noreply\r\nmn\r\n")
            self.assertEqual(self.conn.line(), b"MN", line)

    def test_time_to_live_behind_a_read(self):
        """The reply to a read refers to its item until it is written: `ma` must not apply its T to that item."""
        for i in range(20):
            key = f"d{i}"
            self.assertEqual(self.conn.set(key, b"10"), "STORED")
            self.conn.send(f"get {key}\r\nma {key} T100\r\nmg {key} t\r\n".encode())
            self.assertEqual(self.conn.read_values()[0], {key: (0, b"10")})
            self.assertEqual(self.conn.line(), b"HD")
            self.assertRegex(self.conn.line(), rb"^HD t(100|[1-9]\d?)$")

    def test_touch_of_a_long_key(self):
        for key in ("k" * 250, "k" * 238, "k" * 221, "k" * 220, "k" * 200):
            for value in (b"@", b"@x", b"@set.1 @x ", b"+a @", b"+a ", b"-", b"@list @labcdefghijk.1.1 ",
                          b"@set.1 @t4k0zq81mfwx.1.3.0.29.1048f82143307346 ", b"@set.9 @x "):
                self.assertEqual(self.conn.set(key, value), "STORED")
                if len(key) <= 220 and value.startswith((b"@list", b"@set")):
                    continue  # the possible items of a collection
                self.assertEqual(self.conn.ask(f"touch {key} 100"), "TOUCHED", (len(key), value))
                self.assertRegex(self.conn.ask(f"mg {key} t"), r"^HD t(100|[1-9]\d?)$")

    def test_flags_that_mean_nothing(self):
        for line, reply in ((b"ms a 1 t v f s h l u\r\n5", b"HD"), (b"mg a F1 I MX J9 D2 s", b"HD s1"),
                            (b"ma a F1 l h I R5", b"HD"), (b"md a v F7 N3 MX s u", b"HD"), (b"mg a v1", b"EN")):
            self.conn.send(line + b"\r\n")
            self.assertEqual(self.conn.line()[:len(reply)], reply, line)


class ControlBytes(WireTest):
    smoke = True

    def test_noreply(self):
        """If a control byte is refused, this is as silent as everything else."""
        conn = self.serve()
        for line in (b"incr a\x00 1", b"sadd k \x02", b"delete a\x00b", b"touch a\x00 1", b"set a\x00 0 0 1", b"evincr a\x01 1"):
            conn.send(line + b" noreply\r\n" + (b"x\r\n" if line.startswith(b"set") else b"") + b"mn\r\n")
            self.assertEqual(conn.line(), b"MN", line)
