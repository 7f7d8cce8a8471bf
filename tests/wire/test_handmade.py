"""Sets whose stored form is written here, byte by byte, without setlistd, which must read them according to the documentation.

setlistd's own writes cover only a part of the valid forms: other fences, tables of any size, removals of nothing.
"""
import random

from case import marks
from case_large import LargeSetTest
from test_ordered import Ordered, spread
from test_stored import fence, run, table

FEW, FORMS = 15, 150


class Handmade(Ordered, LargeSetTest):
    def make_run(self, dice, pool):
        """Stores the items of a run. Returns the reference."""
        entries = [(member, dice.random() < self.removed) for member in sorted(dice.sample(pool, dice.randint(1, len(pool))))]
        removals = sum(removed for _, removed in entries)
        cuts = sorted(dice.sample(range(1, len(entries)), min(len(entries) - 1, dice.choice((0, 0, 1, 2, 5)))))
        parts = [entries[start:end] for start, end in zip([0, *cuts], [*cuts, len(entries)])]
        tables = [table(part) for part in parts]
        if len(parts) == 1:
            name, data = self.store(b"t", tables[0])
            return run(name, data, tables, removals)
        index, last = b"I1", None
        for part, data in zip(parts, tables):
            name, _ = self.store(b"t", data)
            index += fence(name, data, self.first(dice, last, part[0][0]), removals=sum(removed for _, removed in part))
            last = part[-1][0]
        name, data = self.store(b"i", index)
        return run(name, data, tables, removals)

    @staticmethod
    def first(dice, last, member):
        """Any fence: above the last member of the previous table, not above the first one of its own. The very first is empty."""
        if last is None:
            return b""
        return dice.choice([member[:size] for size in range(1, len(member) + 1) if member[:size] > last])

    def store(self, kind, data):
        self.count += 1
        name = kind + b"%011d" % self.count
        self.assertEqual(self.at.of(f"k.{name.decode()}").set(f"k.{name.decode()}", data), "STORED")
        return name, data

    def log(self, dice, pool, most):
        return b"".join(dice.choice((b"+", b"+", b"-")) + dice.choice(pool) + b" " for _ in range(dice.randint(0, most)))

    def make(self, seed):
        """Returns all members with an entry."""
        dice, self.count, self.removed = random.Random(seed), 1000 * seed, random.Random(seed).choice((0, 0.3, 0.7, 1))
        pool = spread(dice, dice.choice((5, 40, 300)))
        base = self.log(dice, pool, dice.choice((0, 0, 8))) + b"@set.1 "
        base += b"".join(self.make_run(dice, pool) for _ in range(dice.randint(1, 5)))
        self.assertEqual(self.at.of("k").set("k", base + self.log(dice, pool, 10)), "STORED")
        return pool

    def look(self, pool, dice, conn):
        stored = self.stored("k")
        members = stored.members()
        for command, reply in dice.sample([
                ("scard k", str(len(members))),
                ("scount k ! ~~~", str(sum(b"!" <= member <= b"~~~" for member in members))),
                ("smismember k " + " ".join(member.decode() for member in pool),
                 " ".join("01"[member in members] for member in pool))], 3):
            self.assertEqual(conn.ask(command), reply, command)
        self.expect("k", members, pool, dice, conn)
        self.assertEqual(self.read("k", conn), members)
        for count in (1, 3, len(members), 1000):
            found = self.listed(f"srandmember k {count}", conn)
            self.assertEqual((len(found), len(set(found))), (min(count, len(members)),) * 2)
            self.assertLessEqual(set(found), members)
        return members

    @marks(smoke=True)
    def test_a_few_forms(self):
        self.check_forms(range(FEW))

    def test_many_forms(self):
        self.check_forms(range(FEW, FORMS))

    def check_forms(self, seeds):
        """Both proxies read them without having read them before; then one writes, and folds everything into one run."""
        for seed in seeds:
            with self.subTest(seed=seed):
                pool, dice = self.make(seed), random.Random(seed)
                for conn in self.conns:
                    members = self.look(pool, dice, conn)
                some = dice.sample(pool, 5)
                self.write("srem", "k", some[:2])
                self.write("sadd", "k", some[2:])
                members = members - set(some[:2]) | set(some[2:])
                self.assertEqual(self.look(pool, dice, self.conns[seed % 2]), members)
                self.compact("k", self.conns[seed // 2 % 2])
                self.assertEqual(self.look(pool, dice, self.conns[seed % 2]), members)
                self.assertLessEqual(sum(removed for each in self.stored("k").runs for _, removed in each.entries), 0)
                self.assertEqual(self.conn.ask("delete k"), "DELETED")
        self.assert_nothing_else()
