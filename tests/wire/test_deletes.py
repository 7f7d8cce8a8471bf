"""Several concurrent deletes of one collection, through several proxies: exactly one has deleted it."""
from case_encodings import ENCODINGS, rule
from case import WireTest
from gate import Gate

RULES = "".join(rule(f"{name}-", options, "plain_verbs = true") for name, options in ENCODINGS.items()) + \
    'collection "list-" { type = "list" encoding = "csv" plain_verbs = true }\ncollection "log-" { type = "list" plain_verbs = true }\n'
# The stored items of collections with several items. They are written without setlistd, so that all items exist.
ITEMS = {
    "paired": {"paired-{}": b"a,b,", "unpaired-{}": b"b,"},
    "flip": {"flip-{}.active": b"flip-{}.a", "flip-{}.a": b"+a", "flip-{}.b": b"+b"},
    "mark": {"mark-{}.a": b"+a", "mark-{}.b": b"^+b"},
    "indexed": {"indexed-{}": b"+0+1", "indexed-{}.0": b"+a", "indexed-{}.1": b"+b"},
}
LISTS = ("list", "log")


class Deletes(WireTest):
    smoke = True

    def setUp(self):
        server = self.memcached()
        self.direct_conn = self.connect(server)
        self.gates = [Gate(server.port) for _ in range(2)]
        for gate in self.gates:
            self.addCleanup(gate.stop)
        self.conns = [self.connect(self.setlistd([gate], "-t", "1", config=RULES)) for gate in self.gates]

    def create(self, name, k):
        if name not in ITEMS:
            self.assertEqual(self.conns[0].ask(f"{'rpush' if name in LISTS else 'sadd'} {name}-{k} a b"), "STORED", name)
        for item, value in ITEMS.get(name, {}).items():
            self.assertEqual(self.direct_conn.set(item.format(k), value.decode().format(k).encode()), "STORED")

    def test_both_have_read(self):
        """Each has read the collection before the other one changes it."""
        for name in (*ENCODINGS, *LISTS):
            self.create(name, "k")
            for gate, conn in zip(self.gates, self.conns):
                gate.close_after(0)
                conn.send(f"delete {name}-k\r\n".encode())
            for gate in self.gates:
                gate.wait_held()
            for gate in self.gates:
                gate.open()
            self.assertEqual(sorted(conn.line() for conn in self.conns), [b"DELETED", b"NOT_FOUND"], name)

    def test_half_deleted(self):
        """The second one finds the items that the first has not deleted yet."""
        first, second = self.conns
        for name, items in ITEMS.items():
            self.create(name, "k")
            self.gates[0].close_after(1)
            first.send(f"delete {name}-k\r\n".encode())
            self.gates[0].wait_held()
            self.assertEqual(second.ask(f"delete {name}-k"), "NOT_FOUND", name)
            self.gates[0].open()
            self.assertEqual(first.line(), b"DELETED", name)
            for item in items:
                if not item.endswith(".active"):
                    self.assertIsNone(self.direct_conn.get(item.format("k")), item)

    def test_of_a_set_that_lost_an_item(self):
        """Reads do not find it, and neither does a delete, which removes the rest."""
        for name, lost, left in (("flip", "flip-k.active", "flip-k.a"), ("mark", "mark-k.a", "mark-k.b")):
            self.create(name, "k")
            self.assertEqual(self.direct_conn.ask(f"delete {lost}"), "DELETED")
            self.assertEqual(self.conns[0].ask(f"delete {name}-k"), "NOT_FOUND", name)
            self.assertIsNone(self.direct_conn.get(left))
