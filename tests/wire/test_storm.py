"""Three proxies and a dozen clients on one set, at full rate, while it is compacted, and while proxies are killed.

STORM_SECONDS: the length of each storm. STORM_SEED: the seed of the clients, and of what is killed when.
"""
import os
import random
import time

from case import WireTest, marks
from harness import EVENLY, OPTIONS, wait_until
from storm import Plan, Storm
from stored import Servers, Stored, counter
from wire import Conn

SECONDS = float(os.environ.get("STORM_SECONDS", 0))
SEED = int(os.environ.get("STORM_SEED", 0)) or random.randrange(1, 1 << 30)
ITEM_LIMIT = 8 << 20
AGGRESSIVE = "log_size = 1024\ntable_size = 4096\ncollection \"storm\" { compact_waste = 0.05 }"


def tell(text):
    if OPTIONS.verbose:
        print(f"     {text}", flush=True)


class StormTest(WireTest):
    alone = True

    def fleet(self, config, *args, memcached=()):
        self.servers = [self.memcached(*memcached) for _ in range(2)]
        self.proxies = [self.setlistd(self.servers, *args, config=config) for _ in range(3)]

    def plan(self, seconds, **kwargs):
        """Returns a plan for this fleet; its set exists before any client removes from it."""
        plan = Plan([proxy.port for proxy in self.proxies], seconds=SECONDS or seconds, seed=SEED, **kwargs)
        with Conn(self.proxies[0].port) as conn:
            self.assertEqual(conn.ask(b"sadd %s %s" % (plan.key, plan.name(0, 0))), "STORED")
            self.assertEqual(conn.ask(b"srem %s %s" % (plan.key, plan.name(0, 0))), "DELETED")
        return plan

    def check(self, storm):
        self.assertEqual(storm.problems()[:3], [], f"seed {SEED}")
        for proxy in self.proxies:
            self.check_members(storm, proxy, "after the storm")
        wait_until("scompact", lambda: self.connect(self.proxies[0]).ask(b"scompact %s" % storm.plan.key) == "OK", pause=0.02)
        for proxy in self.proxies:
            self.check_members(storm, proxy, "after the last compaction")

    def check_members(self, storm, proxy, when):
        found, end = self.connect(proxy).values(b"smembers %s" % storm.plan.key)
        self.assertEqual((end, len(found)), ("END", 1), f"{when}, seed {SEED}")
        members = found[storm.plan.key.decode()][1].split()
        self.assertEqual(storm.wrong_members(members)[:5], [], f"{when}, seed {SEED}")

    def stored(self, storm):
        servers = Servers(self.servers, self.proxies[0])
        self.addCleanup(servers.close)
        return servers, Stored(servers, storm.plan.key.decode())

    def items_in_use(self, storm):
        return 1 + len(self.stored(storm)[1].segments)

    def counted(self, name):
        """A counter, of all proxies together."""
        return sum(counter(self.connect(proxy), name) for proxy in self.proxies)


class Kills(StormTest):
    """Proxies are killed and restarted during the storm."""

    def kill_now_and_then(self, storm, dice):
        """The number of kills."""
        kills = 0
        time.sleep(0.3)  # The first kill meets a storm that has begun. These pauses set the rate of kills.
        while storm.raging() or kills == 0:
            proxy = dice.choice(self.proxies)
            self.replace(proxy, dice.choice((0, 0, 0.05, 0.2)))
            kills += 1
            time.sleep(dice.uniform(0.1, 0.5))
        return kills

    def run_storm(self, config, *args, seconds=3, **kwargs):
        self.fleet(config, *args)
        with Storm(self.plan(seconds, **kwargs)) as storm:
            kills = self.kill_now_and_then(storm, random.Random(SEED))
        tell(f"seed {SEED}: {storm.operations()} operations, {kills} kills, "
             f"{sum(report.broken for report in storm.reports)} connections broken, {storm.unknown_members()} members unknown, "
             f"{storm.errors() or 'no errors'}")
        self.check(storm)
        return self.stored(storm)[1]

    @marks(smoke=True)
    def test_small_base_and_tables(self):
        stored = self.run_storm(AGGRESSIVE)
        self.assertGreater(len(stored.refs), 0, "there were no tables to be tested")

    def test_defaults(self):
        self.run_storm(None)

    def test_defaults_and_a_larger_set(self):
        """Enough members that they are moved to tables with the default options too."""
        stored = self.run_storm(EVENLY, "-t", "2", members=400)
        self.assertGreater(len(stored.refs), 0, "there were no tables to be tested")


class Calm(StormTest):
    """No process is killed: nothing may fail, and nothing may be left behind."""

    def rage(self, plan, beside):
        with Storm(plan) as storm:
            while storm.raging():
                beside()
        self.check(storm)
        return storm

    def test_base_stays_small(self):
        """1,000 live members of 12 bytes, half of all possible ones, written without any read, which would compact as well.

        How small the base stays depends on the scheduling of the proxies: the simulation of crowds, which has its own clock,
        checks limits for it. Here servers accept items so large that no proxy that stalls for a while makes a write
        fail, and the base stays far below that.
        """
        self.fleet(None, memcached=("-I", str(ITEM_LIMIT)))
        plan = self.plan(4, members=168, reads=False)
        sizes = []
        servers = Servers(self.servers, self.proxies[0])
        self.addCleanup(servers.close)
        watcher, request = servers.of(plan.key.decode()), b"mg %s s" % plan.key
        storm = self.rage(plan, lambda: sizes.append(int(watcher.ask(request).split(" s")[1])))
        rate = storm.operations() / plan.seconds
        tell(f"base at most {max(sizes)} bytes in {len(sizes)} looks, {rate:.0f} operations/s, {storm.errors() or 'no errors'}")
        self.assertLess(max(sizes), ITEM_LIMIT // 2)
        self.assertGreater(self.counted("compactions"), 0)
        self.assertEqual(storm.errors(), {})

    def test_no_orphans(self):
        """At the end, the servers have only the base and the items that it refers to, with the members that the clients expect."""
        self.fleet(AGGRESSIVE)
        storm = self.rage(self.plan(3), lambda: time.sleep(0.05))  # the storm takes a while
        servers, _ = self.stored(storm)
        wait_until("all is deleted that nothing refers to", lambda: servers.item_count() == self.items_in_use(storm))
        stored = self.stored(storm)[1]
        tell(f"{storm.operations()} operations, {self.counted('compactions')} compactions, {self.counted('merges')} merges, "
             f"{self.counted('segments_written')} tables and indexes written, {storm.errors() or 'no errors'}")
        self.assertGreater(self.counted("merges"), 0)
        self.assertGreater(len(stored.refs), 0)
        self.assertNotIn(None, stored.segments.values())
        self.assertEqual(storm.wrong_members(list(stored.members()))[:5], [])
        self.assertEqual(self.counted("incomplete_sets"), 0)
        self.assertEqual(self.counted("corrupt_values"), 0)
