"""sinterstore and similar commands on large sets: the stored result, memory, and the effect on other clients.

STORM_MILLION=1 has two sets of a million members, and measures the delays of another client.
"""
import os
import threading
import time

from case_large import LargeSetTest, names
from harness import OPTIONS, PATIENCE, built_with_sanitizer

MILLION = os.environ.get("STORM_MILLION")
COUNT = 1000000 if MILLION else 100000
MOST_MIB, MOST_MS = 32 if MILLION else 8, 20


class Stores(LargeSetTest):
    """Two sets that have half of their members in common, and a proxy that has read none of them."""
    alone = True
    smoke = True
    plain = True
    config = None

    def memcached_args(self):
        return ("-m", "512")

    def setUp(self):
        super().setUp()
        self.sets = {"a": set(names(COUNT)), "b": set(names(COUNT, COUNT // 2))}
        for key, members in self.sets.items():
            self.write("sadd", key, list(members))
            self.compact(key)

    def ask_beside(self, act):
        """Returns the seconds that another client waits for each reply during act()."""
        conn, took, ended = self.connect(self.proxy), [], threading.Event()

        def ask():
            while not ended.is_set():
                began = time.monotonic()
                conn.ask("mn")
                took.append(time.monotonic() - began)
                time.sleep(0.0005)
        thread = threading.Thread(target=ask)
        thread.start()
        try:
            act()
        finally:
            ended.set()
            thread.join(PATIENCE)
        return sorted(took)

    def store(self, verb, result):
        self.proxy = self.setlistd(self.servers)
        conn = self.connect(self.proxy)
        self.assertEqual(conn.ask("mn"), "MN")
        before = self.proxy.peak_mib()
        took = self.ask_beside(lambda: self.assertEqual(conn.ask(f"{verb} t a b"), str(len(result))))
        more, p99 = self.proxy.peak_mib() - before, took[len(took) * 99 // 100] * 1000
        if OPTIONS.verbose:
            print(f"     {verb}: {len(result)} members, {more:.1f} MiB, another client p99 {p99:.2f} ms of {len(took)}", flush=True)
        self.assert_members("t", result)
        if not built_with_sanitizer():
            self.assertLessEqual(more, MOST_MIB, verb)
        if MILLION:
            self.assertLessEqual(p99, MOST_MS, verb)

    def test_inter(self):
        self.store("sinterstore", self.sets["a"] & self.sets["b"])

    def test_union_and_diff(self):
        self.store("sunionstore", self.sets["a"] | self.sets["b"])
        self.store("sdiffstore", self.sets["a"] - self.sets["b"])
