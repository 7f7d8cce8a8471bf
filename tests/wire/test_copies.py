"""Sets with a copy on each of two servers: every command, through two proxies, and the faults of a server that need no clock.

Both copies are read directly from their servers: see copied.py. copies_storm.py has clients at full rate while servers fail.
"""
import random
import re
import time

from case import WireTest, marks
from case_large import SMALL, names
from copied import SECOND, Copied
from forms import FORMS, Request, Speaker
from harness import wait_until
from model import Key, Op, set_reads, set_writes, take_all
from stored import Servers
from test_command_keys import LINES, PREPARE, as_get, as_set, key_of, masked, reply_to, set_of
from test_leases import Database
from wire import Conn

RULE = 'collection "s:" { copies = 2 only = true }\ncollection "o:" { only = true }'
CONFIG = f'{SMALL}\ncommands = "q|"\n{RULE}'
# The keys of the examples in test_command_keys.py that may be sets; all others are in no rule.
SETS = re.compile(r"\{k\}(?=set|other|only|none|new)")
# `scompact` says so while the set is written.
BUSY = "SERVER_ERROR busy"
# How long a server may be silent, in milliseconds, in tests that pause one: then the answer of a read is delayed by this time.
SILENCE = 1500


def stamp():
    """Returns the stamp of this moment."""
    digits, number = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz", int(time.time() * 1000) * 64
    return "".join(digits[number >> 6 * place & 63] for place in range(7, -1, -1))


class CopiesTest(WireTest):
    config = CONFIG
    server_count = 3
    patient = True
    at = None

    def setUp(self):
        self.servers = [self.memcached() for _ in range(self.server_count)]
        self.proxies = [self.setlistd(self.servers, config=self.config, patient=self.patient) for _ in range(2)]
        self.conn, self.other = self.conns = [self.connect(proxy) for proxy in self.proxies]
        for conn in self.conns:
            wait_until("all servers are connected", lambda conn=conn: conn.ask("scard s:none") == "NOT_FOUND")

    def tearDown(self):
        self.servers_changed()

    def servers_changed(self):
        """The connections to the servers are opened again."""
        if self.at:
            self.at.close()
        self.at = None

    def copied(self, key):
        """The set as it is stored."""
        if not self.at:
            self.at = Servers(self.servers, self.proxies[0])
        return Copied(self.at, key)

    def server_of(self, key, copy=0):
        """The server that has the first or the second copy."""
        name = self.conn.ask(f"route {key + SECOND * copy}").split()[2]
        return next(server for server in self.servers if server.name == name)

    def members(self, key, conn=None):
        """None for a missing set."""
        found, end = (conn or self.conn).values(f"smembers {key}")
        self.assertEqual(end, "END", key)
        if not found:
            return None
        data = found[key][1].split()
        self.assertEqual(len(data), len(set(data)))
        return set(data)

    def reads(self, command, conn=None):
        """Sends a read until it is answered: while a server fails, its error is right, and nothing else."""
        def read():
            self.reply = (conn or self.conn).values(command) if command.startswith("smembers") else (conn or self.conn).ask(command)
            return not str(self.reply).count("SERVER_ERROR")
        wait_until(command, read, pause=0.05)
        return self.reply

    def writes(self, command, conn=None):
        """Sends a write until it is acknowledged. The words of all that are repeated here may be stored twice."""
        return wait_until(command, lambda: (reply := (conn or self.conn).ask(command)) and "SERVER_ERROR" not in reply and reply, pause=0.05)

    def equal(self, key, conn=None):
        """Makes both copies equal, which is part of a compaction, and checks that they are."""
        def compacted():
            self.reply = (conn or self.conn).ask(f"scompact {key}")
            return self.reply in ("OK", "NOT_FOUND")
        wait_until(f"scompact {key}", compacted, pause=0.02)
        wait_until(f"both copies of {key} are equal", lambda: not self.copied(key).difference(), pause=0.2)
        return self.copied(key)

    def check(self, key, members):
        """Checks all reads, and both copies, each by itself."""
        expected = None if members is None else {name if isinstance(name, bytes) else name.encode() for name in members}
        for conn in self.conns:
            self.assertEqual(self.members(key, conn), expected, key)
        copied = self.equal(key)
        for copy in range(2):
            self.assertEqual(copied.members(copy), expected, f"copy {copy} of {key}: {copied.bases}")
        return copied


class Commands(CopiesTest):
    """Nothing fails: the replies are those of a set with one copy."""
    smoke = True

    def same(self, line, request, expect):
        """Sends an example for a set with one copy and for one with two, as a line and in each form as a key."""
        self.count += 1
        forms = ["line", *FORMS]
        wanted = None
        for rule, form in [(rule, form) for rule in ("o:", "s:") for form in forms]:
            name = f"x{self.count}{form[0]}"
            put = (lambda text, rule=rule, name=name: SETS.sub(rule + name, text).replace("{k}", name))
            for prepare in PREPARE:
                reply_to(self.conn, put(prepare).encode())
            with self.subTest(form, line=line, rule=rule):
                if form == "line":
                    reply = masked(("reply", reply_to(self.conn, put(line).encode()).replace(rule.encode(), b"")), name)
                    # The order of a reply's members is that of their words.
                    reply = sorted(re.sub(rb"\s", b" ", reply[1]).split())
                    wanted = wanted or {"line": reply}
                    self.assertEqual(reply, wanted["line"])
                else:
                    asked = Request(request.verb, *(put(part.decode()) for part in (request.key, request.data)), request.flags,
                                    request.exptime, request.number)
                    outcome = masked(self.speakers[form].ask(asked), name)
                    outcome = [sorted(part.replace(rule.encode(), b"").split()) if isinstance(part, bytes) else part for part in outcome]
                    wanted.setdefault(form, outcome)
                    self.assertEqual(outcome, wanted[form])
                for suffix in ("set", "other", "only", "none", "new"):
                    state = self.members(f"{rule}{name}{suffix}")
                    wanted.setdefault((form, suffix), state)
                    self.assertEqual(state, wanted[form, suffix], f"{suffix} after {line}")
                    if rule == "s:" and state is not None:
                        self.equal(f"{rule}{name}{suffix}")

    def test_every_command_on_sets(self):
        """The examples of test_command_keys.py that name a set."""
        self.count, self.speakers = 0, {form: Speaker(form, self.proxies[1].port) for form in FORMS}
        for speaker in self.speakers.values():
            self.addCleanup(speaker.close)
        examples = [line for name in LINES for line in LINES[name] if name[0] == "s" and name not in ("sinfo", "slease", "stats")
                    and SETS.search(line) and "list" not in line and "item" not in line]
        self.assertGreater(len({line.split()[0] for line in examples}), 30)
        for line in examples:
            words, slash, data = line.partition(" /")
            request = set_of(words, data.strip().replace(" ", "\n")) if slash else Request("get", key_of(line))
            self.same(words + data, request, as_set if slash else as_get)

    def test_long_pipelines(self):
        """Random commands of two clients at two proxies, one after the other: each reply is that of the model."""
        seed = random.randrange(1 << 30)
        dice = random.Random(seed)
        key = Key(b"s:long", world=names(120), amounts=(1, 1, 1, 4, 60))
        for turn in range(40):
            kind = set_reads if turn % 3 == 2 else set_writes
            ops = [Op(key, *dice.choice(list(kind(key, dice)))) for _ in range(12)]
            conn = self.conns[turn % 2]
            conn.send(b"".join(op.line + b"\r\n" for op in ops))
            take_all(conn, ops, f"seed {seed}, turn {turn}")
            if dice.random() < 0.1:
                self.assertEqual(conn.ask("delete s:long"), "NOT_FOUND" if key.state is None else "DELETED", f"seed {seed}")
                # Until the deletion is settled, saddx and srem are taken.
                self.assertEqual(conn.ask(b"sadd s:long " + key.world[0]), "STORED")
                key.state = frozenset(key.world[:1])
        self.check("s:long", key.state)

    def test_delete_and_touch(self):
        for command in ("delete s:a", "touch s:a 500", "gat 500 s:a", "md s:a", "touch s:a -1"):
            missing = self.conn.ask(command)
            self.assertIn(missing, ("NOT_FOUND", "NF", "END"), command)
            self.assertEqual(self.conn.ask("sadd s:a x y"), "STORED")
            if command.startswith("gat"):
                self.assertRegex(self.other.values(command)[0]["s:a"][1], rb"\A\+x \+y ~t\d+ \Z")
            else:
                self.assertNotEqual(self.other.ask(command), missing, command)
            self.check("s:a", {"x", "y"} if "500" in command else None)
            if "500" in command:
                for copy in range(2):
                    with Conn(self.server_of("s:a", copy).port) as server:
                        self.assertRegex(server.ask(f"mg s:a{SECOND * copy} t"), r"\AHD t(500|4\d\d)\Z", command)
                self.assertEqual(self.conn.ask("delete s:a"), "DELETED")
        self.assertEqual(self.conn.ask("sadd s:a z"), "STORED")
        self.check("s:a", {"z"})

    def test_cas_ids(self):
        """A conditional sset with the id that a read has returned."""
        self.assertEqual(self.conn.ask("sadd s:a x y"), "STORED")

        def token(conn):
            conn.send(b"mg q|smembers|s:a c v\r\n")
            word, size, cas = conn.line().split()
            self.assertEqual(word, b"VA")
            conn.block(int(size))
            return cas[1:].decode()
        for conn, writer in (self.conns, self.conns[::-1]):
            old = token(conn)
            self.assertEqual(token(conn), old)
            self.assertEqual(writer.ask("sadd s:a z"), "STORED")
            self.assertEqual(conn.ask(f"ms q|sset|s:a 3 C{old}\r\neve"), "EX")
            self.assertEqual(writer.ask(f"ms q|sset|s:a 7 C{token(conn)}\r\nann\nbob"), "HD")
            self.check("s:a", {"ann", "bob"})
        self.assertEqual(self.conn.ask("ms q|sset|s:none 3 C77\r\neve"), "NF")

    def test_claims(self):
        """Each member is claimed once, over both proxies."""
        claimed = []
        for number in range(60):
            self.assertEqual(self.conns[number % 2].ask(f"sclaim s:a m{number // 3}"), "01"[number % 3 == 0])
            claimed.append(f"m{number // 3}")
        self.check("s:a", set(claimed))

    def test_pops(self):
        """spop and spop with a count return each member once."""
        self.assertEqual(self.conn.ask(b"sset s:a " + b" ".join(names(300))), "STORED")
        popped = []
        while found := self.conns[len(popped) % 2].values(f"spop s:a {1 + len(popped) % 40}")[0]:
            popped += found["s:a"][1].split()
        self.assertEqual(sorted(popped), sorted(names(300)))
        self.check("s:a", set())

    def test_expiry_of_members(self):
        self.assertEqual(self.conn.ask("saddex s:a 5000 x y"), "STORED")
        self.assertEqual(self.other.ask("sadd s:a z"), "STORED")
        self.assertEqual(self.other.ask("sexpire s:a 9000 y z none"), "2")
        for conn in self.conns:
            for member, least, most in (("x", 4000, 5000), ("y", 8000, 9000), ("z", 8000, 9000)):
                left = int(conn.ask(f"sttl s:a {member}"))
                # The clocks of a server in two setlistd may be a second apart.
                self.assertIn(left, range(least + 1, most + 2), member)
        self.equal("s:a")
        self.assertEqual(self.conn.ask("saddex s:a 1 x w"), "STORED")
        wait_until("they expire", lambda: self.members("s:a") == self.members("s:a", self.other) == {b"y", b"z"}, pause=0.1)

    def test_leases(self):
        """A set is loaded by one client, while others change it."""
        database = Database()
        for number in range(200):
            database.change(f"m{number}", True)
        word, token = self.conn.ask("slease s:a").split()
        self.assertEqual((word, self.other.ask("slease s:a")), ("LEASE", "WAIT"))
        loaded = database.read()
        for name in ("m7", "m8"):
            database.change(name, False)
            self.assertIn(self.other.ask(f"srem s:a {name}"), ("DELETED", "NOT_FOUND"))
        database.change("new", True)
        self.assertIn(self.other.ask("saddx s:a new"), ("STORED", "NOT_FOUND"))
        for start in range(0, 200, 50):
            self.assertEqual(self.conn.ask(f"sload s:a {token} " + " ".join(loaded[start:start + 50])), "STORED")
        self.assertIsNone(self.members("s:a", self.other))
        self.assertEqual(self.conn.ask(f"sfill s:a {token}"), "STORED")
        self.check("s:a", database.members)
        self.assertEqual(self.other.ask("slease s:a"), "EXISTS")
        self.assertEqual(self.other.ask(f"sfill s:a {token}"), "NOT_FOUND")

    def test_stores_and_algebra(self):
        """Of sets with two copies, one copy, and both."""
        a, b = names(300), names(300, 150)
        self.assertEqual([self.conn.ask(b"sset s:a " + b" ".join(a)), self.conn.ask(b"sset s:b " + b" ".join(b)),
                          self.conn.ask(b"sset o:b " + b" ".join(b))], ["STORED"] * 3)
        for other in ("s:b", "o:b"):
            for verb, result in (("sinter", set(a) & set(b)), ("sunion", set(a) | set(b)), ("sdiff", set(a) - set(b))):
                found, end = self.other.values(f"{verb} s:a {other}")
                self.assertEqual((end, set(found[verb][1].split())), ("END", result))
                self.assertEqual(self.other.ask(f"{verb}card 2 s:a {other}"), str(len(result)))
                for target in ("s:t", "o:t"):
                    self.assertEqual(self.other.ask(f"{verb}store {target} s:a {other}"), str(len(result)))
                    self.assertEqual(self.members(target), result)
                self.check("s:t", result)
        self.assertEqual(self.conn.ask(f"smove s:a o:b {a[0].decode()}"), "STORED")
        self.assertEqual(self.conn.ask(f"smove o:b s:b {a[0].decode()}"), "STORED")
        self.check("s:a", a[1:])
        self.check("s:b", {*b, a[0]})


class LargeTest(CopiesTest):

    def fill(self, key, members, verb="sadd"):
        for start in range(0, len(members), 100):
            self.assertIn(self.conns[start // 100 % 2].ask(f"{verb} {key} ".encode() + b" ".join(members[start:start + 100])), ("STORED", "DELETED"))

    def load(self, key, members):
        """A load writes its members to tables."""
        token = self.conn.ask(f"slease {key}").split()[1]
        for start in range(0, len(members), 500):
            self.assertEqual(self.conn.ask(f"sload {key} {token} ".encode() + b" ".join(members[start:start + 500])), "STORED")
        self.assertEqual(self.conn.ask(f"sfill {key} {token}"), "STORED")

    def nothing_else(self, *keys):
        """The servers have only the bases, their parts, and what is known about the absence of servers."""
        def count():
            found = [server.items() for server in map(Dump, self.servers)]
            parts = [name for items in found for name in items if not name.startswith("@")]
            kept = [name for key in keys for part in map(self.copied(key).part, range(2)) for name in (part.key, *part.segments)]
            return sorted(set(parts) - {"s:none", "s:none" + SECOND}) == sorted(set(kept))
        wait_until("nothing else is stored", count, pause=0.2)


class Large(LargeTest):
    """Sets of many tables: each table, index and block is on both servers."""
    smoke = True

    def test_layers(self):
        members = names(5000)
        self.load("s:a", members)
        copied = self.check("s:a", members)
        self.assertGreater(len(copied.part(0).segments), 10)
        self.fill("s:a", members[:500], "srem")
        self.fill("s:a", names(300, 50000))
        self.check("s:a", {*members[500:], *names(300, 50000)})
        self.assertEqual(self.conn.ask("delete s:a"), "DELETED")
        self.check("s:a", None)
        self.nothing_else("s:a")

    def test_a_lost_part(self):
        """A table that one server has lost is read from the other one, and is put back."""
        members = names(3000)
        self.assertEqual(self.conn.ask(b"sset s:a " + b" ".join(members)), "STORED")
        copied = self.check("s:a", members)
        ids = sorted(name.rpartition(".")[2] for name in copied.part(0).segments)
        self.assertGreater(len(ids), 3)
        fresh = self.connect(self.setlistd(self.servers, config=self.config))
        for number, name in enumerate(ids):
            lost = f"s:a{SECOND * (number % 2)}.{name}"
            self.assertEqual(Conn(self.server_of(lost).port).ask(f"delete {lost}"), "DELETED")
        self.assertEqual(self.members("s:a", fresh), set(members))
        wait_until("the parts are put back", lambda: not self.copied("s:a").difference(), pause=0.2)
        self.assertEqual(self.copied("s:a").members(1), set(members))

    def test_a_part_that_both_lost(self):
        """Then the set is missing, never a part of it."""
        members = names(3000)
        self.assertEqual(self.conn.ask(b"sset s:a " + b" ".join(members)), "STORED")
        name = min(self.copied("s:a").part(0).segments).rpartition(".")[2]
        for lost in (f"s:a.{name}", f"s:a{SECOND}.{name}"):
            self.assertEqual(Conn(self.server_of(lost).port).ask(f"delete {lost}"), "DELETED")
        fresh = self.connect(self.setlistd(self.servers, config=self.config))
        self.assertIsNone(self.members("s:a", fresh))
        # As with one copy, words are stored until the set is found to be lost, and are lost with it.
        wait_until("it is created again", lambda: fresh.ask("sadd s:a x") == "STORED" and self.members("s:a", fresh) == {b"x"}, pause=0.2)
        self.check("s:a", {"x"})


class Blocks(LargeTest):
    config = f"{CONFIG}\nmax_result = 65536"

    def test_layers(self):
        """A large set is taken in blocks, over both proxies. Meanwhile the copies are equal."""
        members = names(20000)
        self.load("s:a", members)
        self.fill("s:a", members[:300], "srem")
        expected, taken, blocks = set(members[300:]), [], 0
        while found := self.conns[blocks % 2].values("stake s:a")[0]:
            taken += found["s:a"][1].split()
            blocks += 1
            self.assertEqual(self.conn.ask("scard s:a"), str(len(expected) - len(taken)))
            copied = self.equal("s:a")
            self.assertEqual([copied.members(copy) for copy in range(2)], [expected.difference(taken)] * 2)
        self.assertEqual(sorted(taken), sorted(expected))
        self.assertGreater(blocks, 3)
        self.check("s:a", set())
        self.nothing_else("s:a")


class Faults(CopiesTest):
    """A server fails. Nothing that was acknowledged is lost, and no read is old."""
    server_count = 4
    patient = False
    config = f"{CONFIG}\nrequest_timeout = {SILENCE}\nconnect_timeout = {SILENCE}"

    def keys_of(self, server, copy):
        """A key whose first or second copy is on this server."""
        return next(f"s:k{i}" for i in range(1000) if self.server_of(f"s:k{i}", copy) is server)

    def both(self, server):
        """Two sets, of which one has its first copy on this server, and the other its second one."""
        keys = [self.keys_of(server, copy) for copy in range(2)]
        for key in keys:
            self.assertEqual(self.writes(f"sadd {key} before old"), "STORED")
        return keys

    def live(self, key, name, old="old"):
        """Writes and reads go on, at both proxies."""
        self.assertEqual(self.writes(f"sadd {key} {name}"), "STORED")
        self.assertEqual(self.writes(f"srem {key} {old}", self.other), "DELETED")
        for conn in self.conns:
            found, _ = self.reads(f"smembers {key}", conn)
            self.assertEqual(set(found[key][1].split()), {b"before", name.encode()})

    @marks(smoke=True)
    def test_killed_and_restarted_empty(self):
        server = self.servers[0]
        keys = self.both(server)
        server.kill()
        self.servers_changed()
        for key in keys:
            self.live(key, "during")
        self.assertRegex(self.conn.ask(f"sclaim {keys[0]} x"), "SERVER_ERROR")
        self.assertEqual(self.writes(f"sclaim {keys[1]} during"), "0")
        self.assertEqual(self.reads(f"sismember {keys[0]} x"), "0")
        found, end = wait_until("spop", lambda: (found := self.conn.values(f"spop {keys[0]} 1"))[1] == "END" and found, pause=0.05)
        (popped,) = found[keys[0]][1].split()
        server.start()
        left = {b"before", b"during"} - {popped}
        for key, members in zip(keys, (left, {b"before", b"during"})):
            for conn in self.conns:
                found, _ = self.reads(f"smembers {key}", conn)
                self.assertEqual(set(found[key][1].split()), members)
            wait_until(f"{key} is repaired", lambda key=key: not self.copied(key).difference(), pause=0.2)
            self.assertEqual([self.copied(key).members(copy) for copy in range(2)], [members] * 2)
        self.assertEqual(self.writes(f"sclaim {keys[0]} x"), "1")

    def test_hangs_and_goes_on(self):
        """The words that it carries out late have no effect."""
        server = self.servers[1]
        keys = self.both(server)
        with server.process.paused():
            for key in keys:
                self.live(key, "during")
        for key in keys:
            self.live(key, "after", "during")
            wait_until(f"{key} is repaired", lambda key=key: not self.copied(key).difference(), pause=0.2)
            self.assertEqual([self.copied(key).members(copy) for copy in range(2)], [{b"before", b"after"}] * 2)

    def absence(self, server):
        """The time up to which a server is known to have been absent, as text in the order of time."""
        found = []
        for other in self.servers:
            with Conn(other.port) as conn:
                found.append(conn.get(f"@absent.{server.name}") or b"")
        return max(found)

    def test_a_base_in_memory(self):
        """It has not changed, but lacks a word that was acknowledged while its server was absent."""
        key, other = "s:known", "s:other"
        self.assertEqual(self.writes(f"sset {key} {b' '.join(names(100)).decode()}"), "STORED")
        for _ in range(3):
            self.assertEqual(self.reads(f"sismember {key} new"), "0")
        server, now = self.server_of(key), stamp()
        with Conn(self.server_of(key, 1).port) as conn:
            word = f"~s{now} +new ~e "
            self.assertEqual(conn.ask(f"append {key + SECOND} 0 0 {len(word)}\r\n{word}"), "STORED")
        for witness in self.servers:
            with Conn(witness.port) as conn:
                self.assertEqual(conn.ask(f"set @absent.{server.name} 0 0 {len(now)}\r\n{now}"), "STORED")
        time.sleep(0.7)     # absences are read again, for another set
        self.reads(f"scard {other}")
        self.assertEqual(self.reads(f"sismember {key} new"), "1")

    def test_hangs_and_then_the_other_is_killed(self):
        """After a while the copies are closed up to the end of the absence, and each of them may be believed alone again."""
        server = self.servers[2]
        keys = self.both(server)
        with server.process.paused():
            for key in keys:
                self.live(key, "during")
        self.assertTrue(self.absence(server))

        def closed(key):
            self.reads(f"scard {key}")
            copies, absence = self.copied(key).copies, self.absence(server)     # it may have been raised once more
            # A copy that was written again is believed alone once its horizon is past that.
            return None not in copies and all(not copy.gone and copy.horizon >= max(absence, copy.fill) for copy in copies)
        # The server that is killed first may have a copy of the other set, too.
        for key in keys:
            wait_until(f"{key} is closed", lambda key=key: closed(key), pause=0.5)
        for key, other in zip(keys, (1, 0)):
            wait_until(f"{key} is closed", lambda key=key: closed(key), pause=0.5)
            lost = self.server_of(key, other)
            lost.kill()
            lost.start()
            self.servers_changed()
            for conn in self.conns:
                found, _ = self.reads(f"smembers {key}", conn)
                self.assertEqual(set(found[key][1].split()), {b"before", b"during"})

    def test_both_servers_lost(self):
        """The set is missing, and stays so; then it is created again."""
        self.assertEqual(self.writes("sadd s:a x y"), "STORED")
        lost = [self.server_of("s:a", copy) for copy in range(2)]
        for server in lost:
            server.kill()
        self.assertRegex(self.conn.ask("smembers s:a"), "SERVER_ERROR")
        self.assertRegex(self.conn.ask("sadd s:a z"), "SERVER_ERROR")
        for server in lost:
            server.start()
        self.servers_changed()
        for conn in self.conns:
            self.assertEqual(self.reads("smembers s:a", conn), ({}, "END"))
        self.assertEqual(self.writes("sadd s:a new"), "STORED")
        for conn in self.conns:
            found, _ = self.reads("smembers s:a", conn)
            self.assertEqual(set(found["s:a"][1].split()), {b"new"})

    def test_lost_one_after_the_other(self):
        """A word was acknowledged without the first server, and then the second one is lost: the first copy is old, so the set is missing."""
        self.assertEqual(self.writes("sadd s:a x y"), "STORED")
        first, second = (self.server_of("s:a", copy) for copy in range(2))
        with first.process.paused():
            self.assertEqual(self.writes("srem s:a x"), "DELETED")
            second.kill()
            second.start()
        self.servers_changed()
        for conn in self.conns:
            self.assertEqual(self.reads("smembers s:a", conn), ({}, "END"))
        self.assertEqual(self.reads("scard s:a"), "NOT_FOUND")

    def test_a_copy_that_is_evicted(self):
        for copy in range(2):
            self.assertEqual(self.writes("sset s:a x y"), "STORED")
            with Conn(self.server_of("s:a", copy).port) as conn:
                self.assertEqual(conn.ask(f"delete s:a{SECOND * copy}"), "DELETED")
            for conn in self.conns:
                self.assertEqual(self.members("s:a", conn), {b"x", b"y"})
            self.assertEqual(self.writes("sadd s:a z"), "STORED")
            self.equal("s:a")
            self.assertEqual([self.copied("s:a").members(copy) for copy in range(2)], [{b"x", b"y", b"z"}] * 2)


class Rules(CopiesTest):
    """A rule gets copies while its sets are in use, and keys at the limits."""
    smoke = True

    def test_a_rule_is_turned_on(self):
        """Existing sets, also large ones, get their second copy."""
        config, large = self.config, names(3000)
        self.proxies = [self.setlistd(self.servers, config=config.replace("copies = 2 ", "")) for _ in range(2)]
        self.conn, self.other = self.conns = [self.connect(proxy) for proxy in self.proxies]
        self.assertEqual([self.conn.ask("sadd s:a x y"), self.conn.ask(b"sset s:b " + b" ".join(large))], ["STORED"] * 2)
        self.assertEqual([self.copied(key).bases[1] for key in ("s:a", "s:b")], [None] * 2)
        for proxy in self.proxies:
            proxy.configure(config)
        for conn in self.conns:
            def two_copies(conn=conn):
                # It takes effect soon after the signal; until then the proxies are not to be used for the same set.
                key = f"s:new-{self.conns.index(conn)}"
                return conn.ask(f"sset {key} x") == "STORED" and self.copied(key).bases[1] is not None
            wait_until("copies", two_copies, pause=0.05)
        self.assertEqual(self.other.ask("sadd s:a z"), "STORED")
        self.check("s:a", {"x", "y", "z"})
        self.check("s:b", large)

    def test_sets_larger_than_an_item(self):
        """A base keeps the words of ten seconds, so a server may have no room for more of them for a moment: then none is stored in part."""
        lines = [[b"%03d" % i + b"m" * 240 for i in range(start, start + 50)] for start in range(0, 5000, 50)]
        stored = set()
        for number, line in enumerate(lines):
            reply = self.conns[number % 2].ask(b"sadd s:a " + b" ".join(line))
            self.assertIn(reply, ("STORED", "SERVER_ERROR object too large for cache", BUSY))
            if reply == "STORED":
                stored |= set(line)
        self.check("s:a", stored)
        self.assertLess(len(stored), 5000)
        wait_until("there is room again", lambda: self.conn.ask(b"sadd s:a " + b" ".join(lines[-1])) == "STORED", pause=0.5)
        self.check("s:a", stored | set(lines[-1]))
        self.assertEqual(self.conn.ask("delete s:a"), "DELETED")
        # All at once: these words are closed from the beginning.
        token = self.conn.ask("slease s:b").split()[1]
        for line in lines:
            self.assertEqual(self.conn.ask(f"sload s:b {token} ".encode() + b" ".join(line)), "STORED")
        self.assertEqual(self.conn.ask(f"sfill s:b {token}"), "STORED")
        self.check("s:b", set().union(*lines))

    def test_reserved_names(self):
        self.assertEqual(self.conn.ask("sadd s:a x"), "STORED")
        for request in ("sadd s:a.~copy y", "delete s:a.~copy", "set s:a.~copy 0 0 1\r\ny", "sset s:a.~copy.t0k4zq81mfwx y", "rpush s:a y",
                        "set s:a 0 0 1\r\ny", "sadd @absent.x y"):
            self.assertRegex(self.conn.ask(request), "^CLIENT_ERROR", request)
        self.check("s:a", {"x"})


class Dump:
    def __init__(self, server):
        self.port = server.port

    def items(self):
        with Conn(self.port) as conn:
            conn.send(b"lru_crawler metadump all\r\n")
            lines = []
            while not (lines and lines[-1] == "END"):
                lines.append(conn.line().decode())
            return [line.split()[0][4:].replace("%40", "@").replace("%3A", ":").replace("%7E", "~").replace("%7e", "~") for line in lines[:-1]]
