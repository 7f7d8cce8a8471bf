"""Members that expire: seen by every command that reads, in every form that a set is stored in.

A test that waits for a date assumes only that it passes: some members expire in seconds, all others long after the test. So no test
depends on how fast the machine is.
"""
import random
import time

from case import marks
from case_large import SLOW, SMALL, LargeSetTest, names
from harness import wait_until
from stored import Servers, Stored, fold, stats
from test_concurrency import together
from test_moving import Moving

SOON, LONG = 2, 100000
# Seconds by which setlistd may know the clock of a server too late or too early.
LATE, EARLY = 2, 1
RULES = '\ncollection "soon-" { member_ttl = 2 }\ncollection "day-" { member_ttl = 86400 }\n'


class Expiring(LargeSetTest):
    config = SMALL + RULES

    def time_of(self, key):
        return int(stats(self.at.of(key))["time"])

    def add(self, key, seconds, members, conn=None, per_line=100):
        """Sends saddex."""
        self.write("saddex", f"{key} {seconds}", members, conn, per_line)

    def dates(self, key):
        return self.stored(key).dates()

    def pass_by(self, key, date=None):
        """Waits until all members with a date of seconds have expired for each setlistd."""
        now = self.time_of(key)
        soon = [each for each in self.dates(key).values() if 0 < each < now + LONG // 2]
        last = date or max(soon, default=0)
        wait_until(f"{last} has passed", lambda: self.time_of(key) >= last + LATE, pause=0.05)

    def assert_all_reads(self, key, wanted, gone=(), conns=None):
        """Checks the answer of each command that reads a set."""
        wanted, gone = sorted(wanted), list(gone)
        some, missing = wanted[::max(1, len(wanted) // 20)], gone[::max(1, len(gone) // 20)]
        mixed = some + missing
        random.Random(1).shuffle(mixed)
        low, high = (wanted[0], wanted[-1]) if wanted else (b"a", b"z")
        for conn in conns or self.conns:
            self.assert_members(key, wanted, conn)
            self.assertEqual(conn.ask(f"scard {key}"), str(len(wanted)))
            self.assertEqual(conn.ask(b"scount %s %s %s" % (key.encode(), low, high)), str(len(wanted)))
            for member in mixed:
                self.assertEqual(conn.ask(b"sismember %s %s" % (key.encode(), member)), str(int(member in some)), member)
                self.assertEqual(conn.ask(b"sttl %s %s" % (key.encode(), member)) == "NOT_FOUND", member not in some, member)
            if mixed:
                self.assertEqual(conn.ask(b"smismember %s %s" % (key.encode(), b" ".join(mixed))),
                                 " ".join(str(int(member in some)) for member in mixed))
            for command in (f"sscan {key} 100000", f"sscan {key} 100000 match *", f"srange {key} {low.decode()} {high.decode()} 100000"):
                self.assertEqual(self.listed(command, conn), wanted, command)
            if wanted:
                self.assertEqual(sorted(self.listed(f"srandmember {key} 100000", conn)), wanted)
                self.assertLessEqual(set(self.listed(f"srandmember {key} -200", conn)), set(wanted))
            for command in (f"sunion {key}", f"sinter {key} {key}", f"sdiff {key} nothing"):
                found, end = conn.values(command)
                self.assertEqual((list(found.values())[0][1].split(), end), (wanted, "END"), command)
            for verb in "sunioncard", "sintercard", "sdiffcard":
                self.assertEqual(conn.ask(f"{verb} 1 {key}"), str(len(wanted)), verb)
            conn.send(f"sinfo {key}\r\n".encode())
            self.assertIn(f"STAT members {len(wanted)}", conn.lines_until("END"))


class Sets(Expiring):
    smoke = True

    def test_small_set(self):
        self.add("k", SOON, [b"a", b"b"])
        self.add("k", LONG, [b"c"])
        self.write("sadd", "k", [b"d"])
        self.assertNotEqual(self.conn.ask("sttl k c"), "NOT_FOUND")
        self.pass_by("k")
        self.assert_all_reads("k", [b"c", b"d"], [b"a", b"b"])
        self.assertIn(int(self.conn.ask("sttl k c")), range(LONG - SLOW, LONG + 1))
        self.assertEqual(self.conn.ask("sttl k d"), "-1")

    def test_all_members(self):
        """Then the set is empty, not missing, and the members can be added again."""
        self.add("k", SOON, [b"a", b"b"])
        self.pass_by("k")
        self.assert_all_reads("k", [], [b"a", b"b"])
        self.assertEqual([self.conn.ask(line) for line in ("saddx k c", "srem k c", "sexpire k 5000 a", "sclaim k a", "sclaim k a")],
                         ["STORED", "DELETED", "0", "1", "0"])
        self.assert_all_reads("k", [b"a"], [b"b", b"c"])

    def test_all_members_of_a_large_set(self):
        self.add("k", SOON, names(2000))
        self.compact("k")
        self.pass_by("k")
        self.assert_all_reads("k", [], names(2000))
        self.compact("k")
        self.assertEqual((self.stored("k").refs, self.conn.ask("scard k")), ([], "0"))
        self.assert_nothing_else("k")

    def test_renewals(self):
        """The last command of each member decides, whichever setlistd it was sent to."""
        members = names(400)
        self.add("k", SOON, members, per_line=400)
        self.add("k", LONG, members[:100], self.others[0])
        self.write("sadd", "k", members[100:200], self.others[0])
        self.add("k", LONG, members[200:250])
        self.assertEqual(self.conn.ask(b"sexpire k 0 " + b" ".join(members[200:250])), "50")
        self.add("k", LONG, names(10, 5000))
        self.add("k", SOON, names(10, 5000), self.others[0])
        self.pass_by("k")
        self.assert_all_reads("k", members[:250], members[250:] + names(10, 5000))

    def test_pops(self):
        """They return no member that has expired, and leave none."""
        for key, command in (("k", "spop k 1000"), ("l", "stake l"), ("m", "stake m 1000"), ("day-n", "spop day-n 1000")):
            self.add(key, SOON, names(50))
            self.write("sadd", key, names(20, 1000))
        for key, command in (("k", "spop k 1000"), ("l", "stake l"), ("m", "stake m 1000"), ("day-n", "spop day-n 1000")):
            self.pass_by(key)
            self.assertEqual(sorted(self.listed(command)), sorted(names(20, 1000)), command)
            self.assert_all_reads(key, [], names(50))

    def test_moves(self):
        self.add("k", SOON, [b"a"])
        self.add("k", LONG, [b"b", b"c"])
        self.pass_by("k")
        self.assertEqual([self.conn.ask(line) for line in ("smove k l a", "smove k l b", "smove k day-l c")], ["NOT_FOUND", "STORED", "STORED"])
        self.assertEqual(self.conn.ask("sttl l b"), "-1")
        self.assertIn(int(self.conn.ask("sttl day-l c")), range(86400 - SLOW, 86401))
        self.assert_all_reads("k", [], [b"a", b"b", b"c"])

    def test_lists(self):
        """An element stays, and the date is dropped when the elements are rewritten."""
        self.assertEqual(self.conn.ask("rpush l a"), "STORED")
        self.add("l", 1, [b"b", b"c"])
        date = max(fold(self.at.get("l").replace(b"@list ", b"")).values())
        wait_until("it has passed", lambda: self.time_of("l") >= date + LATE, pause=0.05)
        for conn in self.conns:
            self.assertEqual(conn.values("lrange l 0 -1"), ({"l": (0, b"a b c")}, "END"))
            self.assertEqual((conn.ask("llen l"), conn.ask("sismember l b"), conn.ask("scard l")), ("3", "1", "3"))
        self.assertEqual(self.conn.values("lpop l"), ({"l": (0, b"a")}, "END"))
        self.assertEqual(self.at.get("l"), b"@list +b +c ")

    def test_a_rule(self):
        """All members of a large set, and those that a client loads."""
        token = self.conn.ask("slease soon-l").split()[1]
        self.write("sadd", "soon-k", names(1500))
        self.assertEqual(self.conn.ask(b"sload soon-l %s %s" % (token.encode(), b" ".join(names(500)))), "STORED")
        self.assertEqual(self.conn.ask(f"saddx soon-l early"), "STORED")
        self.assertEqual(self.conn.ask(f"sfill soon-l {token} last"), "STORED")
        self.add("soon-l", LONG, [b"stays"])
        for key, wanted in (("soon-k", []), ("soon-l", [b"stays"])):
            self.pass_by(key)
            self.assert_all_reads(key, wanted, names(500))

    def test_results(self):
        """Stored results of small and of large sets have no members that have expired, and no dates but those of their own rule."""
        for count in 20, 2000:
            self.add(f"a{count}", SOON, names(count))
            self.add(f"a{count}", LONG, names(count, 10000))
            self.pass_by(f"a{count}")
            for verb in "sunionstore", "sinterstore", "sdiffstore":
                self.assertEqual(self.conn.ask(f"{verb} r a{count}"), str(count), verb)
                self.assertEqual(self.dates("r"), dict.fromkeys(names(count, 10000), 0))
            self.assertEqual(self.conn.ask(f"sunionstore day-r a{count} day-r"), str(count))
            now, dates = self.time_of("day-r"), self.dates("day-r")
            self.assertEqual(set(dates), {*names(count, 10000)})
            self.assertLessEqual(set(dates.values()), {*range(now + 86400 - SLOW, now + 86402)})


class Large(Expiring):
    """A set of several runs, in which dates override and are overridden."""
    smoke = True

    def layers(self):
        """Returns the members that stay, and those that expire soon."""
        old = names(1500)
        self.write("sadd", "k", old[:900])
        self.add("k", SOON, old[900:1200])
        self.add("k", LONG, old[1200:])
        self.compact("k")
        run, = self.stored("k").runs
        self.assertGreater(len(run.tables), 2)
        # A newer run: its dates override members without one, and its members without a date override dates.
        self.add_layer("saddex k 2", old[:200])
        self.add_layer("sadd k", old[900:1100])
        self.add_layer("srem k", old[1100:1150] + old[200:350])
        self.add("k", SOON, old[1200:1210] + names(10, 9000))
        self.write("sadd", "k", old[1150:1160])
        gone = old[:350] + old[1100:1150] + old[1160:1210] + names(10, 9000)
        return sorted(set(old).difference(gone)), sorted(gone)

    def add_layer(self, verb, members):
        before = Stored(self.at, "k").refs
        wanted = "DELETED" if verb.startswith("srem") else "STORED"
        self.assertEqual(self.conn.ask(verb.encode() + b" " + b" ".join(members)), wanted)

        def spilled():
            self.read("k", None, "sscan", 1)
            return Stored(self.at, "k").refs != before
        wait_until("the log goes to a run", spilled)

    def test_layers(self):
        stay, gone = self.layers()
        for conn in self.conns:
            self.read("k", conn)         # their views are older than the dates
        self.pass_by("k")
        self.assert_all_reads("k", stay, gone)
        self.assertEqual(self.stored("k").members(self.time_of("k")), set(stay))
        self.compact("k", self.others[0])
        self.assert_all_reads("k", stay, gone)
        dates = self.dates("k")
        self.assertEqual(set(dates), set(stay))
        self.assertEqual({member for member, date in dates.items() if date}, set(names(1500)[1210:]))
        self.assert_nothing_else("k")

    def test_reads_free_the_space(self):
        """Without a command that compacts: once the mean date of a run has passed, a read merges it, and drops what has expired."""
        self.write("sadd", "k", names(500))
        self.add("k", SOON, names(1500, 10000))
        self.compact("k")
        self.pass_by("k")

        def freed():
            self.assertEqual(self.conn.ask("scard k"), "500")
            stored = Stored(self.at, "k")
            return None not in stored.segments.values() and not any(run.removals() or any(date for _, _, date in run.dated)
                                                                    for run in stored.runs)
        wait_until("they are dropped", freed, pause=0.05)
        # These are 500 members of 12 bytes; all would be more than 20,000 bytes.
        self.assertLess(self.stored("k").bytes(), 10000)
        self.assert_all_reads("k", names(500), names(1500, 10000))
        self.assert_nothing_else("k")

    def test_a_new_setlistd(self):
        """Dates are on the servers, not in setlistd."""
        stay, gone = self.layers()
        for number, proxy in enumerate(self.proxies):
            self.replace(proxy, 0)
            self.conns[number] = self.connect(proxy)
        self.conn, *self.others = self.conns
        self.at.close()
        self.at = Servers(self.servers, self.proxies[0])
        self.addCleanup(self.at.close)
        self.pass_by("k")
        self.assert_all_reads("k", stay, gone)

    def test_taking_all(self):
        stay, gone = self.layers()
        self.pass_by("k")
        taken = []
        while some := self.listed("stake k", self.conns[len(taken) % 2]):
            taken += some
        self.assertEqual(sorted(taken), stay)
        self.assert_all_reads("k", [], gone)
        self.assert_nothing_else("k")

    def test_popping_all(self):
        stay, gone = self.layers()
        self.pass_by("k")
        taken = []
        while some := self.listed("spop k 100", self.conns[len(taken) // 100 % 2]):
            taken += some
        self.assertEqual(sorted(taken), stay)
        self.assert_all_reads("k", [], gone)

    @marks(smoke=False)
    def test_many(self):
        """Some thousands in several merges, while two proxies add and read."""
        stay, gone = names(5000), names(5000, 20000)

        def work(number):
            conn = self.connect(self.proxies[number])
            for i in range(number * 50, 5000, 100):
                self.add("k", SOON, gone[i:i + 50], conn, 50)
                self.write("sadd", "k", stay[i:i + 50], conn, 50)
                assert set(stay[i:i + 50]) <= self.read("k", conn)
        together(2, work)
        self.pass_by("k")
        self.assert_all_reads("k", stay, gone)
        self.compact("k")
        self.assertEqual(self.dates("k"), dict.fromkeys(stay, 0))
        self.assert_nothing_else("k")


class Forms(Expiring):
    """The dates of packed tables, of indexes and references are as documented; the reader of the tests checks them."""
    smoke = True
    forms = {b"I2", b"T2"}

    def test_forms(self):
        numbers = [b"%d" % number for number in range(100000, 104000)]
        for key, members in (("p", numbers), ("k", names(3000))):
            self.write("sadd", key, members[:1000])
            self.add(key, LONG, members[1000:2000])
            self.add(key, LONG * 2, members[2000:])
            self.write("srem", key, members[::7])
            self.compact(key)
            stored = self.stored(key)
            run, = stored.runs
            forms = {stored.segments[name][:2] for name in run.items}
            self.assertEqual(forms - {b"T1"}, self.forms)
            self.assertTrue(stored.base.startswith(b"@set.3 @i"))
            now = self.time_of(key)
            wanted = {member: 0 if at < 1000 else LONG * (1 + (at >= 2000)) for at, member in enumerate(members) if at % 7}
            dates = stored.dates()
            self.assertEqual(set(dates), set(wanted))
            for member, seconds in wanted.items():
                self.assertIn(dates[member], [0] if not seconds else range(now + seconds - SLOW, now + seconds + 2), member)


class PlainForms(Forms):
    """Those of tables that are not packed."""
    config = Forms.config + "packed_tables = false\n"
    forms = {b"I2", b"T3"}


class Edge(Expiring):
    """No read shows a member after its date, or misses it before, by the clock of the server and within the error of the estimate."""
    smoke = True
    kept = 200

    def answers(self, conn, key, probe):
        """One answer of each kind, as the number of members that expire, all of which have the same date."""
        yield lambda: int(conn.ask(f"scard {key}")) - self.kept
        yield lambda: len(self.read(key, conn)) - self.kept
        yield lambda: int(conn.ask(b"sismember %s %s" % (key.encode(), probe))) * 100
        yield lambda: (conn.ask(b"sttl %s %s" % (key.encode(), probe)) != "NOT_FOUND") * 100
        yield lambda: len(self.listed(f"sscan {key} 100000", conn)) - self.kept
        yield lambda: int(conn.ask(f"sunioncard 1 {key}")) - self.kept
        yield lambda: len(self.listed(f"srandmember {key} 1000", conn)) - self.kept
        yield lambda: int(conn.ask(f"scount {key} a z")) - self.kept

    def watch(self, key, tables):
        gone = names(100, 1000)
        self.write("sadd", key, names(self.kept - 60))
        self.add(key, 3, gone, per_line=100)
        if tables:
            self.compact(key)
        # A base of more than 512 bytes is not read again while it is the same; so the date must be seen in the copy.
        self.write("sadd", key, names(60, 3000))
        # On a machine that stalls, they may have expired and been dropped by now.
        date = max(self.dates(key).values())
        seen, last = set(), {}
        while min(last.values(), default=1):
            for number, conn in enumerate(self.conns):
                for kind, answer in enumerate(self.answers(conn, key, gone[5])):
                    before = self.time_of(key)
                    found = answer()
                    after = self.time_of(key)
                    self.assertIn(found, (0, 100), kind)
                    if after < date - EARLY:
                        self.assertEqual(found, 100, (kind, "it is missing before its date"))
                    if before >= date + LATE:
                        self.assertEqual(found, 0, (kind, "it is there after its date"))
                    last[number, kind] = found
                    seen.add(found)
        self.assertIn(0, seen)

    def test_log(self):
        self.watch("k", False)

    def test_tables(self):
        self.watch("k", True)
        self.assertGreater(len(self.at.get("k")), 512)


class LargeBases(Edge):
    """The log stays in the base."""
    config = RULES

    def test_log(self):
        super().test_log()
        self.assertGreater(len(self.at.get("k")), 512)


class Moves(Moving):
    """A key that moves to another server keeps the dates of its members."""
    CLIENTS = 0
    smoke = True

    def test_members(self):
        self.start([self.memcached()])
        conn = self.connect(self.proxies[0])
        members = names(600)
        for key, some in (("s", [b"a", b"b", b"c"]), ("k", members)):
            for seconds, chosen in ((SOON, some[::3]), (LONG, some[1::3]), (0, some[2::3])):
                self.assertEqual(conn.ask(b"saddex %s %d %s" % (key.encode(), seconds, b" ".join(chosen))), "STORED")
            self.assertEqual(conn.ask(f"scompact {key}"), "OK")
        text = self.moving([self.memcached()], time.time() - 10)
        for number in range(self.PROXIES):
            self.reload(number, text)
        conns = [self.connect(proxy) for proxy in self.proxies]
        # These are added on the new server, before the key has moved or after.
        self.assertEqual(conns[0].ask(b"saddex k %d new" % LONG), "STORED")
        server = self.connect(self.servers[0])
        begun = int(stats(server)["time"])
        wait_until("the date has passed", lambda: int(stats(server)["time"]) >= begun + SOON + LATE, pause=0.05)
        for key, some in (("s", [b"a", b"b", b"c"]), ("k", members)):
            wanted = {*some[1::3], *some[2::3], *([b"new"] if key == "k" else [])}
            for conn in conns:
                found, end = conn.values(f"smembers {key}")
                self.assertEqual((set(found[key][1].split()), end), (wanted, "END"))
                self.assertEqual(conn.ask(f"scard {key}"), str(len(wanted)))
                self.assertEqual(conn.ask(b"sttl %s %s" % (key.encode(), some[2])), "-1")
                self.assertIn(int(conn.ask(b"sttl %s %s" % (key.encode(), some[1]))), range(LONG - SLOW, LONG + 1))
