"""Shared by tests of all encodings: two servers and two proxies with rules for each, and the items of a set."""
import time

from case_large import SMALL, LargeSetTest
from stored import stat

ENCODINGS = {
    "oplog": 'encoding = "oplog"',
    "signed": 'encoding = "signed"',
    "csv": 'encoding = "csv"',
    "semicolon": 'encoding = "csv" delimiter = ";"',
    "tombstone": 'encoding = "tombstone"',
    "paired": 'encoding = "paired" removed = "un{prefix}"',
    "flip": 'encoding = "flip" pointer = true',
    "mark": 'encoding = "flip" pointer = false',
    "indexed": 'encoding = "indexed"',
}
# The possible items of a set of the encoding; `{}` is its key after the prefix.
ITEMS = {
    "paired": ["paired-{}", "unpaired-{}"],
    "flip": ["flip-{}.a", "flip-{}.b", "flip-{}.active"],
    "mark": ["mark-{}.a", "mark-{}.b"],
    "indexed": ["indexed-{}"] + ["indexed-{}." + str(n) for n in range(10)],  # and the lists that the index names
}


def rule(prefix, options, more=""):
    return f'collection "{prefix}" {{ type = "set" {options.format(prefix=prefix)} {more} }}\n'


class EncodingTest(LargeSetTest):
    config = SMALL + "\n" + "".join(
        rule(f"{name}-", options) + rule(f"{name}.verbs-", options, "plain_verbs = true") + rule(f"{name}.ttl-", options, "ttl = 500")
        for name, options in ENCODINGS.items())

    def each(self):
        """Yields each encoding, with a key."""
        for name in ENCODINGS:
            yield name, f"{name}-k"

    def items(self, name, key="k"):
        """Returns {item: its bytes} of a set, as stored on the servers."""
        keys = [item.format(key) for item in ITEMS.get(name, [f"{name}-{{}}"])]
        if name == "indexed":
            index = self.at.get(keys[0]) or b""
            keys += [f"{keys[0]}.{number}" for number in index.decode().split("+")[1:]]
        found = {item: self.at.get(item) for item in keys}
        return {item: data for item, data in found.items() if data is not None}

    def give(self, items, flags=0):
        for item, data in items.items():
            self.assertEqual(self.at.of(item).set(item, data, flags), "STORED")

    def expect(self, *talk, conn=None):
        for command, reply in talk:
            self.assertEqual((conn or self.conn).ask(command), reply, command)

    def ttl(self, k):
        return stat(self.conn, f"sinfo {k}", "ttl")

    def assert_date_of_plain(self, k, start):
        expected = int(self.conn.ask("mg plain t").split(" t")[1])
        self.assertLess(abs(self.ttl(k) - expected), 3 + time.monotonic() - start, k)
