"""The client modules of conf/clients: the same calls in each language have the same results."""
import random
import re
import time

import modules
from case import WireTest
from case_access import USERS
from harness import run_program, wait_until
from modules import Driver, Refused
from stored import counter, stat
from test_any_bytes import elements

# A method with its arguments, and its result. A set is a list in a language that has no sets.
CALLS = (
    (("sadd", "t", "ann", "bob", "two words", 'q"uote', "it's", "{3}", "noreply"), True),
    (("smembers", "t"), {"ann", "bob", "two words", 'q"uote', "it's", "{3}", "noreply"}),
    (("sismember", "t", "ann"), True), (("sismember", "t", "eve"), False), (("sismember", "none", "ann"), None),
    (("smembers", "none"), None), (("scard", "t"), 7), (("scard", "none"), None),
    (("srem", "t", 'q"uote', "it's", "{3}", "noreply", "nobody"), True), (("srem", "none", "ann"), False),
    (("saddx", "none", "ann"), False), (("saddx", "t", "cyd"), True),
    (("lpos", "none", "a"), None), (("sclaim", "t", "dee"), True), (("sclaim", "t", "dee"), False),
    (("sset", "u", "bob", "new\nline", ""), True), (("smembers", "u"), {"bob", "new\nline", ""}),
    (("sinter", "t", "u"), {"bob"}), (("sinter", "t", "none"), set()), (("sdiff", "u", "t"), {"new\nline", ""}),
    (("sunion", "u", "none"), {"bob", "new\nline", ""}), (("sintercard", 2, "t", "u"), 1), (("sinterstore", "v", "t", "u"), 1),
    (("srange", "t", "b", "d", 10), ["bob", "cyd"]), (("sscan", "u", 2), ["", "bob"]),
    (("smove", "u", "t", "new\nline"), True), (("smove", "u", "t", "nobody"), False),
    (("sset", "u"), True), (("smembers", "u"), set()), (("scard", "u"), 0), (("stake", "u"), []), (("spop", "u"), None),
    (("srandmember", "v", 5), ["bob"]), (("stake", "v"), ["bob"]), (("stake", "none"), []),
    (("saddex", "e", 100000, "two words"), True), (("saddex", "e", 0, "ann"), True), (("sttl", "e", "ann"), -1), (("sttl", "e", "x"), None),
    (("sexpire", "e", 0, "two words", "x"), 1), (("sttl", "e", "two words"), -1), (("sexpire", "none", 5, "x"), None),
    (("sttl", "none", "x"), None),
    (("rpush", "l", "b", "c\nd", ""), True), (("lpush", "l", "a b"), True), (("rpushx", "none", "a"), False),
    (("lrange", "l", 0, -1), ["a b", "b", "c\nd", ""]), (("lrange", "l", 9, 9), []), (("llen", "l"), 4), (("llen", "none"), None),
    (("lindex", "l", -1), ""), (("lindex", "l", 9), None), (("lset", "l", 1, "B\n"), True), (("lrem", "l", 1, ""), True),
    (("lrem", "none", 1, "x"), False), (("lset", "none", 0, "x"), False), (("lpos", "l", "B\n"), 1), (("lpos", "l", "x"), None),
    (("lmove", "l", "m", "left", "right"), "a b"), (("lpop", "l"), "B\n"), (("rpop", "l", 2), ["c\nd"]), (("lpop", "l"), None),
    (("lpop", "l", 2), []), (("ltrim", "m", 0, 0), True), (("blpop", 5, "l", "m"), "a b"), (("blpop", 0.01, "m"), None),
    (("rpush", "m", "x"), True), (("blmove", 5, "m", "l", "left", "right"), "x"), (("blmove", 0.01, "m", "l", "left", "right"), None),
    (("evincr", "hits"), 1), (("evincr", "hits", 4), 5), (("evlimit", "tries", 1, 3600), 1), (("evlimit", "tries", 1, 3600), 0),
    (("delete", "t"), True), (("delete", "t"), False),
)
# Go applications use gomemcache for plain items, and its saddex has one member.
ITEMS = (
    (("saddex", "f", 0, "ann", "bob"), True), (("saddex", "f", 0, "new\nline", "cyd"), True), (("scard", "f"), 4),
    (("sttl", "f", "cyd"), -1), (("saddex", "f", 1000000, "cyd"), True), (("sexpire", "f", 0, "cyd"), 1),
    (("get", "item"), None), (("set", "item", "two words\n"), True), (("get", "item"), "two words\n"), (("delete", "item"), True),
)
# A queue. done and fail have the number of the reservation.
JOBS = (
    (("reserve", "jobs", 60, 0.01), None), (("rpush", "jobs", "one", '{"to":\n"ann"}', ""), True),
    (("reserve", "jobs", 60, 5), ["one", 1]), (("reserve", "jobs", 60, 0), ['{"to":\n"ann"}', 1]),
    (("llen", "jobs"), 1), (("done", 1), True), (("done", 1), False), (("fail", 2), True), (("fail", 2), False),
    (("lrange", "jobs", 0, -1), ["", '{"to":\n"ann"}']), (("reserve", "jobs", 60, 5), ["", 1]), (("done", 3), True),
    (("reserve", "jobs", 60, 5), ['{"to":\n"ann"}', 2]), (("done", 4), True), (("llen", "jobs"), 0),
)
ERRORS = (
    (("smembers", "plain"), "value is not a collection"),
    (("rpush", "l"), "usage: rpush <key> <element>+ [noreply]"),
    (("lset", "list", 9, "x"), "index out of range"),
    (("spop", "list"), "spop is denied here"),
    (("evlimit", "tries", 1, 10000000), "too many buckets"),
    (("sadd", "t", "x" * 1001), "member too long"),
    (("lindex", "list", 0), None),
)


# Methods of the class that applications do not call.
INNER = {"constructor", "store", "ask", "fill", "bytes", "text"}
NAMES = "console.log(Object.getOwnPropertyNames(require(process.argv[1]).Setlistd.prototype).join(' '))"


class Types(WireTest):
    smoke = True

    def test_methods(self):
        """setlistd.d.ts has each method of setlistd.js."""
        module = next(module for module in modules.ALL if module.language == "js")
        if not module.is_installed():
            self.skipTest("there is no Node")
        names = run_program("node", "-e", NAMES, module.path).stdout.split()
        with open(module.path.replace(".js", ".d.ts"), encoding="utf-8") as types:
            typed = set(re.findall(r"(?m)^\t(\w+)\(", types.read()))
        self.assertEqual(set(names) - INNER, typed - INNER)


class ModuleCase(WireTest):
    """`module` is set by the subclass of each language."""
    smoke = True
    compiles = True
    module = None

    def setUp(self):
        if not self.module.is_installed():
            self.skipTest(f"the client of the module for {self.module.language} is not installed")

    def driver(self, **options):
        driver = Driver(self.module, self.proxy.port, **options)
        self.addCleanup(driver.close)
        return driver

    def check(self, driver, call, wanted):
        found = driver.ask(*call)
        if isinstance(wanted, set):
            self.assertIsInstance(found, set if self.module.sets else list, call)
            self.assertEqual(len(found), len(wanted), call)
            found = set(found)
        self.assertEqual(found, wanted, call)
        self.assertIs(type(found), type(wanted), call)


class Modules(ModuleCase):
    def test_length(self):
        with open(self.module.path, encoding="utf-8") as text:
            lines = text.read().splitlines()
        self.assertLessEqual(len(lines), 250)
        self.assertLessEqual(max(len(line.expandtabs(4)) for line in lines), 100)

    def test_results(self):
        self.serve(2, config='commands = "q|"')
        driver = self.driver()
        for call, wanted in CALLS + (() if self.module.language == "go" else ITEMS):
            self.check(driver, call, wanted)
        counts = driver.ask("evcount", "hits")
        self.assertEqual(list(counts.values()), [5])

    def test_queue(self):
        self.serve(2, config='commands = "q|"')
        driver = self.driver()
        for call, wanted in JOBS:
            self.check(driver, call, wanted)

    def test_errors(self):
        """An error is never a missing value, and the next call has its own result."""
        self.serve(2, config='commands = "q|"\ndeny = {"spop"}')
        self.conn.set("plain", b"text")
        self.conn.ask("rpush list a")
        driver = self.driver()
        for call, text in ERRORS:
            if text is None:
                self.assertEqual(driver.ask(*call), "a")
                continue
            with self.assertRaises(Refused, msg=call) as raised:
                driver.ask(*call)
            self.assertEqual((str(raised.exception), raised.exception.kind), (text, "setlistd"), call)
            self.assertIsNone(driver.ask("scard", "none"))

    def test_any_bytes(self):
        self.serve(2, config='commands = "q|"')
        rng, driver = random.Random(1), self.driver()
        alphabets = range(256), b"\n\r \"'\\{}%|*x0", b"ab\n"
        members = {bytes(rng.choices(rng.choice(alphabets), k=rng.choice((0, 1, 2, 10, 1000)))).decode("latin-1") for _ in range(60)}
        long = bytes(rng.choices(range(256), k=65536)).decode("latin-1")
        self.check(driver, ("sadd", "s", *members), True)
        self.check(driver, ("smembers", "s"), members)
        self.check(driver, ("rpush", "l", *members, long), True)
        self.check(driver, ("lrange", "l", 0, -1), [*members, long])
        self.check(driver, ("lpop", "l", 2), [*members][:2])
        self.check(driver, ("rpop", "l"), long)
        self.check(driver, ("sset", "s", *sorted(members)[:50]), True)
        line = self.conn.ask("smembers s")
        stored = {element.decode("latin-1") for element in elements(self.conn.block(int(line.split()[3])))}
        self.assertEqual(stored, set(sorted(members)[:50]))
        self.assertEqual(self.conn.line(), b"END")

    def test_timeout(self):
        """A server that does not answer is an error; later calls have their own results."""
        self.serve(1, config='commands = "q|"')
        self.assertEqual(self.conn.ask("sadd s ann"), "STORED")
        driver = self.driver(timeout=0.3)
        self.servers[0].pause()
        with self.assertRaises(Refused) as raised:
            driver.ask("scard", "none")
        self.assertEqual(raised.exception.kind, "other")
        self.servers[0].resume()
        # The machine may be slower than the timeout.
        wait_until("the next call has its result", lambda: self.result_or_none(driver, "scard", "s") == 1)

    def result_or_none(self, driver, *call):
        try:
            return driver.ask(*call)
        except Refused as error:
            self.assertEqual(error.kind, "other")
            return None

    def test_wait_is_longer_than_the_timeout(self):
        self.serve(2, config='commands = "q|"')
        driver = self.driver(timeout=0.3)
        for seconds in (0, 100):
            driver.start("blpop", seconds, "jobs")
            wait_until("it waits", lambda: counter(self.conn, "waiting_clients") == 1)
            time.sleep(1)
            self.assertEqual(self.conn.ask("rpush jobs a"), "STORED")
            self.assertEqual(driver.finish(), "a")

    def test_one_loader(self):
        """Of ten clients that load a set, one runs its loader; all have its result, and what was added meanwhile."""
        self.serve(2, config='commands = "q|"')
        drivers = [self.driver() for _ in range(10)]
        asked = stat(self.conn, "stats", "cmd_get")
        for driver in drivers:
            driver.start("load", "s", ["ann", "new\nline"], "wait", 100)
        wait_until("the others have asked for it", lambda: stat(self.conn, "stats", "cmd_get") >= asked + 60
                   or stat(self.conn, "stats", "cmd_collection") >= asked + 60)
        self.assertEqual(self.conn.ask("saddx s bob"), "STORED")
        self.assertEqual(self.conn.ask("rpush go 1"), "STORED")
        for driver in drivers:
            self.assertEqual(set(driver.finish()), {"ann", "bob", "new\nline"})
        self.assertEqual(self.conn.ask("evincr loads 0"), "1")

    def test_loader_that_fails(self):
        """Its error is that of the call, and the next client loads at once."""
        self.serve(2, config='commands = "q|"')
        driver = self.driver()
        with self.assertRaisesRegex(Refused, "the database has failed"):
            driver.ask("load", "s", ["ann"], "fail", 100)
        # A lease that has not ended would last longer.
        self.assertEqual(list(driver.ask("load", "s", ["ann"], "now", 30)), ["ann"])
        self.assertEqual(list(driver.ask("load", "empty", [], "now", 100)), [])
        self.assertEqual(self.conn.ask("scard empty"), "0")

    def test_another_client_loads(self):
        self.serve(2, config='commands = "q|"')
        driver = self.driver()  # It may be compiled first, for longer than a lease.
        token = self.conn.ask("slease s").split()[1]
        with self.assertRaises(Refused) as raised:
            driver.ask("load", "s", ["ann"], "now", 0.05)
        self.assertEqual((raised.exception.kind, self.conn.ask("evincr loads 0")), ("busy", "0"))
        driver.start("load", "s", ["ann"], "now", 100)
        self.assertEqual(self.conn.ask(f"sfill s {token} bob"), "STORED")
        self.assertEqual(list(driver.finish()), ["bob"])

    def test_login(self):
        self.serve(2, config=f'commands = "q|"\nauth_file = "{self.private_file(USERS)}"')
        self.assertEqual(self.conn.set("auth", b"foo bar"), "STORED")
        driver = self.driver(login=["foo", "bar"])
        self.assertIsNone(driver.ask("scard", "s"))
        self.assertTrue(driver.ask("sadd", "s", "ann"))
        with self.assertRaisesRegex(Refused, "usage"):
            driver.ask("sadd", "s")
        self.assertEqual(driver.ask("scard", "s"), 1)
        self.assertEqual(driver.ask("blpop", 0.01, "l"), None)


class Tags(ModuleCase):
    """Go applications use gomemcache for plain items, so its module has no tags."""

    def remember(self, driver, value, mode="now", key="page", ttl=3600, tags=("pages-1", "pages-2")):
        driver.start("remember", key, tags, ttl, value, mode)

    def remembered(self, driver, *args, **options):
        self.remember(driver, *args, **options)
        return driver.finish()

    def tags(self, config=""):
        self.serve(2, config='commands = "q|"\n' + config)
        return self.driver()

    def test_tags(self):
        """A value is rendered once, and again after one of its tags was invalidated."""
        driver, texts = self.tags(), ["first", "any\xff\0\r\n bytes", '"third"']
        self.assertEqual(self.remembered(driver, "other", key="other", tags=["pages-3"], ttl=0), "other")
        for number, (text, tag) in enumerate(zip(texts, ("pages-1", "pages-2", "pages-1")), start=1):
            for each in text, "another", "":
                self.assertEqual(self.remembered(driver, each), text)
            self.assertEqual(self.conn.ask("evincr renderings 0"), str(number + 1))
            self.assertIsNone(driver.ask("invalidate", tag))
        self.assertIsNone(driver.ask("invalidate", "pages-none"))
        self.assertEqual(self.conn.get("page"), None)
        self.assertEqual(self.remembered(driver, "x", key="other", tags=["pages-3"]), "other")

    def test_times_of_tags(self):
        """Members of tags expire later than the item, and never if it does not."""
        driver = self.tags()
        for ttl, least, most in (3600, 3690, 3720), (0, -1, -1):
            self.remembered(driver, "text", key=f"page-{ttl}", ttl=ttl)
            self.assertIn(int(self.conn.ask(f"sttl pages-2 page-{ttl}")), range(least, most + 1))
            self.assertIn(int(self.conn.ask(f"mg page-{ttl} t").removeprefix("HD t")), range(min(ttl, 1) * 3500 - (not ttl), ttl + 1))

    def test_rendering_during_an_invalidation(self):
        """What was rendered from former data is returned once, and not kept."""
        driver, other = self.tags(), self.driver()
        for tag in "pages-1", "pages-2":
            self.remember(driver, "old", "wait")
            wait_until("it renders", lambda: counter(self.conn, "waiting_clients") == 1)
            other.ask("invalidate", tag)
            self.assertEqual(self.conn.ask("rpush go 1"), "STORED")
            self.assertEqual(driver.finish(), "old")
            self.assertIsNone(self.conn.get("page"))
            self.assertEqual([self.remembered(each, text) for each, text in ((driver, "new"), (other, "newer"))], ["new", "new"])
            other.ask("invalidate", tag)

    def test_two_that_render(self):
        """Each has its value, and the first one that is stored stays."""
        driver, other = self.tags(), self.driver()
        self.remember(driver, "slow", "wait")
        wait_until("it renders", lambda: counter(self.conn, "waiting_clients") == 1)
        self.assertEqual(self.remembered(other, "quick"), "quick")
        self.assertEqual(self.conn.ask("rpush go 1"), "STORED")
        self.assertEqual([driver.finish(), self.remembered(driver, "x")], ["slow", "quick"])

    def test_rendering_that_fails(self):
        driver = self.tags()
        for text in "the database has failed", "another time":
            with self.assertRaisesRegex(Refused, "the database has failed"):
                self.remembered(driver, text, "fail")
        self.assertEqual(self.remembered(driver, "text"), "text")

    def test_tag_that_fails(self):
        """The error is that of the call, and nothing is kept that no tag has."""
        driver = self.tags('deny = {"saddex"}')
        with self.assertRaisesRegex(Refused, "saddex is denied here"):
            self.remembered(driver, "text")
        self.assertEqual((self.conn.get("page"), self.conn.ask("evincr renderings 0")), (b"", "0"))

    def test_many_tagged(self):
        driver = self.tags()
        for number in range(50):
            self.remembered(driver, "text", key=f"page-{number}", tags=["pages"])
        driver.ask("invalidate", "pages")
        self.assertEqual([self.conn.get(f"page-{number}") for number in range(50)], [None] * 50)


for each in modules.ALL:
    cases = (Modules,) if each.language == "go" else (Modules, Tags)
    for case in cases:
        name = f"{case.__name__[:-1]}_{each.language}"
        globals()[name] = type(name, (case,), {"module": each, "__module__": __name__})
del ModuleCase, Modules, Tags, case
