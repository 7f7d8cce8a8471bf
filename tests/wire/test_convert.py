"""setlistd-convert: collections carried over from one encoding to another, while clients write."""
import contextlib
import fcntl
import io
import json
import os
import signal

from case import WireTest, marks
from case_convert import ENCODINGS, LIMIT, ConvertTest, Writer, rules
from conversion.run import Run, arguments
from conversion.state import State
from conversion.visit import Visit, grown
from harness import wait_until
from wire import Conn


class EveryEncoding(ConvertTest):
    """A client writes to the old key, then to the new one, while passes run; a late one still writes to the old key."""

    def carry(self, old, new):
        self.state = os.path.join(self.folder, f"{old}-{new}")
        with contextlib.closing(Writer(self.proxy.port, f"{old} {new}")) as writer:
            self.carry_beside(writer, f"o-{old}-", f"n-{new}-", new)

    def carry_beside(self, writer, old, new, name):
        source, target = old + name, new + name
        first, second = [f"a{n}" for n in range(20)], [f"b{n}" for n in range(20)]
        self.add(f"{source} {' '.join(first[:10] + second[:10])} stays")
        writer.model.update(dict.fromkeys(first[:10] + second[:10], True))
        writer.use(source, first)
        writer.thread.start()
        writer.wait(3)
        child = self.start([source], old, new, "--passes", "0")
        self.after_passes(2, child)
        writer.use(target, second)
        writer.wait(3)
        # Two more passes, of which the second began after the last write to the old key: then all members are copied.
        self.after_passes(2, child)
        writer.use(target, first + second)
        writer.wait(20)
        self.add(f"{source} late")
        self.ask(f"srem {source} stays", "DELETED")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(LIMIT), 0, self.what_it_said()[-2000:])
        self.convert([source], old, new, "--final", "--delete", "--from-removed", "o-paired-gone-")
        server = self.connect(self.server)
        self.assertEqual([key for key in self.items_of(old, name) if server.get(key) is not None], [])
        writer.close()
        expected = {member for member, there in writer.model.items() if there} | {"late"}
        self.assertEqual(self.members(target), expected)
        self.assertIsNone(self.members(source))

    def after_passes(self, count, child):
        goal = self.passes() + count
        try:
            wait_until(f"pass {goal}", lambda: child.poll() is not None or self.passes() >= goal, limit=LIMIT)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.records()[-3:]}, {self.what_it_said()[-2000:]}") from None
        self.assertIsNone(child.poll(), "it ended before it was told to")


def add_tests():
    for old in ENCODINGS:
        @marks(smoke=old == "csv")
        def test(self, old=old):
            for new in ENCODINGS:
                with self.subTest(f"{old} to {new}"):
                    self.carry(old, new)
        setattr(EveryEncoding, f"test_{old}", test)


add_tests()


class Killed(ConvertTest):
    smoke = True

    def stop_at(self, child, count, field):
        """Stops the process when this number of records have that field. Returns these records."""
        def some():
            return [record for record in self.records() if field in record and "k" in record]
        wait_until(f"{count} records", lambda: child.poll() is not None or len(some()) >= count, limit=LIMIT)
        child.send_signal(signal.SIGSTOP)
        self.assertIsNone(child.poll(), "it was done before it could be stopped")
        os.waitid(os.P_PID, child.pid, os.WSTOPPED)
        return some()


    @marks(smoke=False)
    def test_many_keys(self):
        keys = [f"o-csv-{n}" for n in range(3000)]
        for start in range(0, len(keys), 500):
            self.conn.send(b"".join(f"sadd {key} a b c\r\n".encode() for key in keys[start:start + 500]))
            for _ in range(500):
                self.assertEqual(self.conn.line(), b"STORED")
        child = self.start(keys, "o-csv-", "n-signed-", "--jobs", "1")
        done = [record["k"].replace("o-csv-", "n-signed-") for record in self.stop_at(child, 20, "p")]
        for key in done:
            self.ask(f"srem {key} a", "DELETED")
            self.add(f"{key} d")
        self.reap(child)
        left = len(keys) - sum("p" in record for record in self.records())
        self.assertGreater(left, 0, "it was done before it could be killed")
        self.ask("srem o-csv-0 b", "DELETED")
        said = self.convert(keys, "o-csv-", "n-signed-")
        self.assertIn(f"pass 1: {left}/{left} keys", said)
        self.convert(keys, "o-csv-", "n-signed-", "--final")
        done = set(done)
        for old in keys:
            key = old.replace("o-csv-", "n-signed-")
            expected = {"b", "c", "d"} if key in done else {"a", "b", "c"}
            self.assertEqual(self.members(key), expected - ({"b"} if old == "o-csv-0" else set()), key)

    def test_large_set(self):
        names = [f"m{n:011d}" for n in range(40000)]
        self.ask(f"sset o-oplog-k {' '.join(names)}", "STORED")
        child = self.start(["o-oplog-k"], "o-oplog-", "n-oplog-")
        carried = self.stop_at(child, 3, "a")
        self.assertIsNotNone(self.members("o-oplog-k"))
        self.ask(f"srem n-oplog-k {carried[0]['a'][0]}", "DELETED")
        self.reap(child)
        # A line that was not written to its end.
        with open(self.state, "ab") as file:
            file.write(b'{"k":"o-oplog-k","a":["m0')
        self.convert(["o-oplog-k"], "o-oplog-", "n-oplog-", "--final", "--delete")
        self.assertEqual(self.members("n-oplog-k"), set(names) - {carried[0]["a"][0]})
        self.assertIsNone(self.members("o-oplog-k"))

    def test_delete_spares_other_keys(self):
        """Other parts in the block of a base are not keys of a client."""
        names = " ".join(f"m{n:05d}" for n in range(4000))
        self.ask(f"sset o-oplog-set {names}", "STORED")
        self.ask("scompact o-oplog-set", "OK")
        for near in ("list", "set.1"):
            self.ask(f"set o-oplog-set.{near} 0 0 4\r\nkeep", "STORED")
        self.convert(["o-oplog-set"], "o-oplog-", "n-oplog-", "--final", "--delete")
        os.unlink(self.state)
        for key in ("o-oplog-list", "o-oplog-long"):
            self.ask(f"rpush {key} a b c", "STORED")
            self.ask(f"set {key}.list 0 0 4\r\nkeep", "STORED")
        self.ask(f"rpush o-oplog-long {names}", "STORED")
        self.ask("scompact o-oplog-long", "OK")
        self.convert(["o-oplog-list", "o-oplog-long"], "o-oplog-", "n-oplog-", "--type", "list", "--final", "--delete")
        for key in ("o-oplog-set", "o-oplog-list", "o-oplog-long"):
            self.ask(f"scard {key}", "NOT_FOUND")
        self.assertEqual(self.conn.values("get o-oplog-set.list o-oplog-set.set.1 o-oplog-list.list o-oplog-long.list")[0].keys(),
                         {"o-oplog-set.list", "o-oplog-set.set.1", "o-oplog-list.list", "o-oplog-long.list"})


class Rules(ConvertTest):
    smoke = True
    config = rules() + '\ncollection "n-short-" { ttl = 500 }' \
        '\ncollection "n-verbs-" { encoding = "flip" plain_verbs = true }' + "".join(
            f'\ncollection "v-{name}-" {{ {rule % f"v-{name}-" if "%" in rule else rule} plain_verbs = true }}'
            for name, rule in ENCODINGS.items())

    def test_dry_run(self):
        self.add("o-csv-1 a b c", "o-csv-2 a")
        self.convert(["o-csv-2"], "o-csv-", "n-signed-")
        self.add("o-csv-2 b")
        before, server = self.records(), self.connect(self.server)
        keys = ["o-csv-1", "n-signed-1", "o-csv-2", "n-signed-2"]
        bytes_before = [server.get(key) for key in keys]
        said = self.convert(["o-csv-1", "o-csv-2", "o-csv-3"], "o-csv-", "n-signed-", "--dry-run")
        self.assertIn("3/3 keys, +4 -0 members", said)
        self.assertIn("1 missing", said)
        self.assertEqual((self.records(), [server.get(key) for key in keys]), (before, bytes_before))
        self.state = os.path.join(self.folder, "another")
        said = self.convert(["o-csv-1"], "o-csv-", "n-signed-", "--dry-run")
        self.assertIn("+3 -0 members", said)
        self.assertFalse(os.path.exists(self.state))

    def test_errors_of_keys(self):
        self.add("o-csv-good a", "o-csv-bad a+b", "o-csv-there a", "n-signed-there z")
        self.assertEqual(self.conn.set("o-csv-broken", b"no list"), "STORED")
        keys = ["o-csv-bad", "o-csv-broken", "else", "o-csv-there", "o-csv-missing", "o-csv-good"]
        said = self.convert(keys, "o-csv-", "n-signed-", status=1)
        for line in ("o-csv-bad: sadd: CLIENT_ERROR", "o-csv-broken: sinfo: CLIENT_ERROR", "else: ", "o-csv-there: n-signed-there exists",
                     "4 of 6 keys have errors", "1 missing"):
            self.assertIn(line, said)
        self.assertEqual(self.members("n-signed-good"), {"a"})
        self.assertEqual(self.members("n-signed-there"), {"z"})
        self.assertEqual(self.conn.get("o-csv-broken"), b"no list")
        self.convert(keys, "o-csv-", "n-signed-", "--final", "--delete", status=1)
        self.assertEqual(self.members("o-csv-there"), {"a"})
        self.assertIsNone(self.members("o-csv-good"))
        self.convert(["o-csv-there"], "o-csv-", "n-signed-", "--merge")
        self.assertEqual(self.members("n-signed-there"), {"a", "z"})

    def test_new_one_is_gone(self):
        self.add("o-csv-k a b")
        self.convert(["o-csv-k"], "o-csv-", "n-signed-")
        self.ask("delete n-signed-k", "DELETED")
        self.add("o-csv-k c")
        said = self.convert(["o-csv-k"], "o-csv-", "n-signed-", status=1)
        self.assertIn("n-signed-k has disappeared", said)
        self.assertIsNone(self.members("n-signed-k"), "a part of it looks whole")
        said = self.convert(["o-csv-k"], "o-csv-", "n-signed-", "--final", "--delete", status=1)
        self.assertEqual(self.members("o-csv-k"), {"a", "b", "c"})
        self.convert(["o-csv-k"], "o-csv-", "n-signed-", "--merge")
        self.assertEqual(self.members("n-signed-k"), {"a", "b", "c"})

    def test_old_one_comes_again(self):
        self.add("o-csv-k a b")
        self.convert(["o-csv-k"], "o-csv-", "n-signed-")
        self.ask("delete o-csv-k", "DELETED")
        self.convert(["o-csv-k"], "o-csv-", "n-signed-")
        self.add("o-csv-k c")
        self.convert(["o-csv-k"], "o-csv-", "n-signed-")
        self.assertEqual(self.members("n-signed-k"), {"a", "b", "c"})

    def touch(self, prefix, seconds):
        """Returns all items of k, by the rules of the encoding."""
        found = [self.conn.ask(f"touch {key} {seconds}") for key in self.items_of(prefix)]
        self.assertIn("TOUCHED", found)

    def assert_ttl(self, prefix, *between):
        """Of the collection, and of each item that it is made of."""
        self.assertIn(self.ttl(prefix + "k"), range(*between))
        with Conn(self.server.port) as server:
            for key in self.items_of(prefix):
                words = server.ask(f"mg {key} t").split()
                if words[0] == "HD":
                    self.assertIn(int(words[1][1:]), range(*between), key)

    @marks(smoke=False)
    def test_time_to_live(self):
        for name in [*ENCODINGS, "verbs"]:
            with self.subTest(name):
                self.state = os.path.join(self.folder, name)
                old, new = f"o-{'csv' if name == 'verbs' else name}-", f"n-{name}-"
                source, also = old + "k", ["--to-removed", new + "gone-"] if name == "paired" else []
                self.add(f"{source} a b")
                self.touch(old, 1000)
                self.convert([source], old, new)
                self.assert_ttl(new, 900, 1001)
                # A client's own is not undone, until the old one's changes.
                self.ask(f"srem {new}k b", "DELETED")
                self.touch(new, 3000)
                self.convert([source], old, new)
                self.assert_ttl(new, 2900, 3001)
                self.touch(old, 9000)
                if also:
                    self.assertIn("without --to-removed", self.convert([source], old, new, status=1))
                    self.assert_ttl(new, 2900, 3001)
                self.convert([source], old, new, *also)
                self.assert_ttl(new, 8900, 9001)
                self.assertEqual(self.members(new + "k"), {"a"})
                self.touch(old, 0)
                self.convert([source], old, new, *also)
                self.assert_ttl(new, -1, 0)
                self.conn.ask(f"delete {source}")

    @marks(smoke=False)
    def test_deletes_what_has_plain_verbs(self):
        """The items of such a set are read and deleted one by one, although the rule makes sets of their keys."""
        for name in ENCODINGS:
            with self.subTest(name):
                old, new, self.state = f"v-{name}-", f"n-{name}-v-", os.path.join(self.folder, name)
                source, also = old + "k", ["--from-removed", old + "gone-"] if name == "paired" else []
                self.add(f"{source} a b c")
                self.ask(f"srem {source} b", "DELETED")
                self.convert([source], old, new)
                self.assertIn("1 deleted", self.convert([source], old, new, "--final", "--delete", *also))
                self.assertEqual((self.members(source), self.members(new + "k")), (None, {"a", "c"}))
                server = self.connect(self.server)
                items = [source, f"{old}gone-k", *(f"{source}.{part}" for part in ("a", "b", "active", 0, 1))]
                self.assertEqual([key for key in items if server.get(key) is not None], [])

    def test_time_to_live_by_rule(self):
        self.add("o-csv-k a")
        self.convert(["o-csv-k"], "o-csv-", "n-short-a-")
        self.assertEqual(self.ttl("n-short-a-k"), -1)
        self.state += "2"
        self.convert(["o-csv-k"], "o-csv-", "n-short-b-", "--no-ttl")
        self.assertIn(self.ttl("n-short-b-k"), range(400, 501))

    def test_members_of_any_kind(self):
        names = ["noreply", "é", "a"]
        self.conn.send("sadd o-csv-k noreply \xff é a\r\nsadd o-csv-one noreply a\r\nsrem o-csv-one a\r\n".encode("latin-1"))
        self.assertEqual([self.conn.line() for _ in range(3)], [b"STORED", b"STORED", b"DELETED"])
        keys = ["o-csv-k", "o-csv-one"]
        self.convert(keys, "o-csv-", "n-oplog-")
        found, _ = self.conn.values("smembers n-oplog-k")
        self.assertEqual(set(found["n-oplog-k"][1].split()), {name.encode("latin-1") for name in names + ["\xff"]})
        self.assertEqual(self.members("n-oplog-one"), {"noreply"})
        self.add("o-csv-one b")
        self.ask("srem o-csv-one noreply x", "DELETED")
        self.convert(keys, "o-csv-", "n-oplog-", "--final", "--delete")
        self.assertEqual(self.members("n-oplog-one"), {"b"})

    def test_two_pools(self):
        other = self.setlistd([self.memcached()], config='collection "x-" { encoding = "csv" }')
        there = self.connect(other)
        self.add("o-signed-k a b")
        self.convert(["o-signed-k"], "o-signed-", "x-", target=other)
        self.assertEqual(self.members("x-k", there), {"a", "b"})
        self.assertIsNone(self.members("x-k"))

    def test_state_file(self):
        self.add("o-csv-k a")
        self.convert(["o-csv-k"], "o-csv-", "n-signed-")
        self.assertIn("belongs to another conversion", self.convert(["o-csv-k"], "o-csv-", "n-flip-", status=3))
        with open(self.state, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertIn("another run uses it", self.convert(["o-csv-k"], "o-csv-", "n-signed-", status=3))
        with open(self.state, "ab+") as file:
            file.write(b"what is this\n")
            file.seek(0)
            number = len(file.readlines())
        self.assertIn(f"{number}: not a line", self.convert(["o-csv-k"], "o-csv-", "n-signed-", status=3))

    def test_state_file_is_made_shorter(self):
        header = {"setlistd-convert": 1}
        state = State(self.state, header, False, False)
        state.write({"pass": 1})
        for n in range(300):
            state.write({"k": f"k{n % 2}", "a": [f"m{n}"], "d": n})
            state.write({"k": f"k{n % 2}", "r": [f"m{n - 4}"], "p": 1})
        expected, size = [state.members(f"k{n}") for n in range(2)], os.path.getsize(self.state)
        state.file.close()
        for _ in range(2):
            state = State(self.state, header, False, False)
            self.assertLess(os.path.getsize(self.state), size // 10)
            self.assertEqual([state.members(f"k{n}") for n in range(2)], expected)
            self.assertEqual((state.passes, state.open_pass, state.keys["k1"].deadline, state.keys["k1"].passed), (1, True, 299, 1))
            state.file.close()

    @marks(smoke=False)
    def test_setlistd_cannot_be_reached(self):
        self.add("o-csv-k a")
        self.proxy.stop()
        self.convert(["o-csv-k"], "o-csv-", "n-signed-", status=3)

    def test_old_one_is_written_to_before_it_is_deleted(self):
        server = self.connect(self.server)
        # Both lists are in use, and the second one is active.
        for key, data in (("o-flip-k.a", b"^+a"), ("o-flip-k.b", b"+b"), ("o-pointer-k.a", b"+a"), ("o-pointer-k.b", b"+b"),
                          ("o-pointer-k.active", b"o-pointer-k.b")):
            self.assertEqual(server.set(key, data), "STORED")
        for old in ENCODINGS:
            with self.subTest(old):
                self.state = os.path.join(self.folder, old)
                key, late = f"o-{old}-k", self.connect(self.proxy)
                self.add(f"{key} a b")
                number = (server.get(key) or b"+").decode()[1:] if old == "indexed" else ""

                class Late(Visit):
                    def deleted(visit, before):
                        self.ask(f"sadd {key} late", "STORED", late)
                        return super().deleted(before)

                listed = os.path.join(self.folder, "keys")
                run = Run(arguments(self.argv(f"o-{old}-", f"n-csv-{old}-", "--final", "--delete", listed)), [key])
                with contextlib.redirect_stderr(io.StringIO()):
                    run.one_pass()
                    run.over_keys("delete", [key], lambda visit: Late(run, visit.source, visit.target, key).delete())
                run.state.file.close()
                if old == "indexed":
                    left = f"{key}.{number}"
                    self.assertEqual(run.errors, {key: f"it changed while it was being deleted; the item {left} was kept"})
                    self.assertEqual(server.get(left), b"+a+b+late")
                else:
                    self.assertEqual(run.errors, {key: "not deleted: it has changed"})
                    self.assertEqual(self.members(key), {"a", "b", "late"})


class Lists(ConvertTest):
    smoke = True
    config = "\n".join(f'collection "{prefix}-{name}-" {{ type = "list" encoding = "{name}" }}'
                       for name in ("oplog", "csv") for prefix in "on")

    def setUp(self):
        if self.connect(self.setlistd([self.memcached()])).ask("llen x") == "ERROR":
            self.skipTest("this setlistd has no lists")
        super().setUp()

    def items(self, key):
        found, _ = self.conn.values(f"lrange {key} 0 -1")
        return found[key][1].decode().split() if key in found else []

    def carry(self, old, new):
        key, target, args = f"o-{old}-k", f"n-{new}-k", (f"o-{old}-", f"n-{new}-", "--type", "list")
        self.state = os.path.join(self.folder, f"{old}-{new}")
        many = [f"i{n % 5000}" for n in range(9000)]
        self.ask(f"rpush {key} {' '.join(many)} noreply y", "STORED")
        self.ask(f"touch {key} 1000", "TOUCHED")
        self.convert([key, f"o-{old}-missing"], *args)
        self.assertEqual(self.items(target), many + ["noreply", "y"])
        self.assertIn(self.ttl(target), range(900, 1001))
        self.ask(f"rpush {key} t noreply u", "STORED")
        self.ask(f"lpush {key} h g", "STORED")
        self.ask(f"rpush {target} client", "STORED")
        self.convert([key], *args, "--final")
        expected = ["g", "h"] + many + ["noreply", "y", "client", "t", "noreply", "u"]
        self.assertEqual(self.items(target), expected)
        self.conn.values(f"rpop {key}")
        self.assertIn("the list has changed in other ways", self.convert([key], *args, "--final", "--delete", status=1))
        self.assertEqual(self.items(target), expected)
        self.conn.send(f"delete {key}\r\ndelete {target}\r\n".encode())
        self.assertEqual([self.conn.line(), self.conn.line()], [b"DELETED"] * 2)

    @marks(smoke=False)
    def test_every_encoding(self):
        for old in ("oplog", "csv"):
            for new in ("oplog", "csv"):
                with self.subTest(f"{old} to {new}"):
                    self.carry(old, new)

    def test_push_that_nobody_knows_of(self):
        args = ("o-oplog-", "n-csv-", "--type", "list")
        for made in (True, False):
            key, target = f"o-oplog-{made}", f"n-csv-{made}"
            self.state = os.path.join(self.folder, str(made))
            self.ask(f"rpush {key} a b", "STORED")
            self.convert([key], *args)
            self.ask(f"rpush {key} c", "STORED")
            with open(self.state, "a", encoding="ascii") as file:
                file.write(json.dumps({"k": key, "i": {"a": ["c"]}}) + "\n")
            if made:
                self.ask(f"rpush {target} c", "STORED")
            self.convert([key], *args)
            self.assertEqual(self.items(target), ["a", "b", "c"])


class Grown(WireTest):
    smoke = True

    def test_what_was_pushed(self):
        for old, new, expected in (("", "ab", ("", "ab")), ("ab", "ab", ("", "")), ("ab", "abc", ("", "c")), ("ab", "cab", ("c", "")),
                                   ("ab", "cabd", ("c", "d")), ("ab", "b", None), ("ab", "ba", None), ("a", "cacac", None),
                                   ("ab", "", None), ("aa", "aaa", ("", "a")), ("abc", "zabzabcy", ("zabz", "y"))):
            found = grown(list(old), list(new))
            self.assertEqual(found, expected and tuple(list(part) for part in expected), (old, new))
