#!/usr/bin/python3
"""The soak test: everything at once, for any length of time. `make check` does not run it, since it uses all of the machine.

tests/wire/soak.py [--setlistd PATH] [--seconds N] [--seed N] [--calm]

There are two proxies. The servers of `torn` are one that is killed and restarted empty, one that is stopped for short times, and one
without faults. `firm` has the last two, and a storm on a large set. Honest clients compare every reply with the expected state;
hostile clients try to do damage. An operator of each proxy reloads new configurations, some with a mistake. After a short round
of all this, the daemons' descriptors, memory and connections are recorded. After the long round they must have the same values, no
reply may have been wrong, and no acknowledged write lost. The configuration is then the first one again.

--calm: no server is killed or stopped, and no configuration is reloaded. Then no honest client may get an error, such as
SERVER_ERROR busy. The report has the longest wait of an honest client for a reply; next to it that of the same clients for a reply of
`beside`, a setlistd that no hostile client uses, with a server of its own.
"""
import sys

sys.dont_write_bytecode = True

import argparse
import collections
import multiprocessing
import os
import random
import time
import traceback

from harness import EVENLY, OPTIONS, PATIENCE, Memcached, Setlistd, built_with_sanitizer, wait_until
from soak_costs import COSTS, RULES
from soak_honest import Honest, Waits
from soak_hostile import ALL, BIG, VICTIM, Hostile
from soak_reload import Operator
from stored import stats
from storm import Plan, Storm
from wire import Closed, Conn

# The queue is short enough that the attackers fill it if they are not limited to their shares.
CONFIG = f"{EVENLY}\nserver_queue = 4096\nclient_memory = 134217728\ncache_memory = 16777216\nrequest_read_timeout = 5000\n{RULES}"
# While servers fail, they are given up early. Otherwise even a server that is slow is waited for.
IMPATIENT = "request_timeout = 1000"
SMALL_TABLES = "log_size = 1024\ntable_size = 4096"
HONEST = 6
COSTLY = 3                      # threads for each proxy whose attacks are expensive
THREADS = 2
# Of each server, in MiB: enough that it evicts nothing.
MEMORY = "2048"
# The memory that a heap keeps after so many clients; with a sanitizer, also the freed memory in its quarantine.
GROWTH_MIB, GROWTH_MIB_SANITIZER = 96, 640


def honest_process(pipe, *args):
    try:
        report = Honest(*args).run()
    except Exception as error:
        report = {"problem": str(error) if isinstance(error, AssertionError) else traceback.format_exc()}
    pipe.send(report)


def all_connected(conn):
    """Returns whether each thread is connected to each server: a thread may pause before it reconnects."""
    return all(int(value) == THREADS for name, value in stats(conn, "stats upstream").items() if name.endswith(":connections"))


def least(turns):
    kind = min(turns, key=turns.get)
    return f"fewest {turns[kind]}, {kind}"


class Found(dict):
    """Returns what was found; true even if that is nothing."""

    def __bool__(self):
        return True


def read(conn, command):
    found, end = conn.values(command)
    return Found(found) if end == "END" else None


class Soak:
    def __init__(self, seconds, seed, calm):
        self.seconds, self.seed, self.calm, self.dice = seconds, seed, calm, random.Random(seed)
        self.count, self.errors, self.problems = collections.Counter(), collections.Counter(), []
        self.turns, self.waits, self.waits_beside = collections.Counter(), Waits(), Waits()
        self.steady, self.stalled, self.mortal = self.servers = [Memcached("-m", MEMORY) for _ in range(3)]
        self.torn = self.proxy(self.servers, 'commands = "q|"')
        self.firm = self.proxy([self.steady, self.stalled], SMALL_TABLES)
        self.proxies = [self.torn, self.firm]
        self.apart = Memcached()
        self.beside = Setlistd([self.apart.name])

    def proxy(self, servers, config):
        config = f"{CONFIG}\n{config}\n{'' if self.calm else IMPATIENT}"
        return Setlistd([server.name for server in servers], "-t", str(THREADS), config=config, patient=self.calm)

    # --- before

    def fill(self):
        """Errors that hostile clients may receive, except that a server is not connected yet."""
        members = [b"m%06d" % number for number in range(20000)]
        for proxy in self.proxies:
            with Conn(proxy.port) as conn:
                for request in (b"set big 0 0 %d\r\n%s" % (BIG, b"B" * BIG), b"sset %s %s" % (VICTIM, b" ".join(members)),
                                b"sset large-list\r\nrpush large-list " + b" ".join(members)):
                    wait_until("it is stored", lambda request=request: conn.ask(request) == "STORED", pause=0.1)
            with Conn(proxy.port) as conn:
                wait_until("all servers are connected", lambda conn=conn: all_connected(conn), pause=0.1)

    def is_mortal(self, name):
        with Conn(self.torn.port) as conn:
            reply = conn.ask(b"route " + name)
        assert reply.startswith("ROUTE "), reply
        return reply.endswith(self.mortal.name)

    def storm(self, seconds):
        """Its first set exists before it begins."""
        key = f"storm-{self.dice.randrange(1 << 30)}"
        plan = Plan([self.firm.port] * 2, key, members=200, clients=2, seconds=seconds, seed=self.dice.randrange(1 << 30))
        with Conn(self.firm.port) as conn:
            wait_until("a set", lambda: conn.ask(b"sadd %s %s" % (plan.key, plan.name(0, 0))) == "STORED", pause=0.1)
            wait_until("an empty set", lambda: conn.ask(b"srem %s %s" % (plan.key, plan.name(0, 0))) == "DELETED", pause=0.1)
        return Storm(plan)

    # --- meanwhile

    def fault(self):
        if self.dice.random() < 0.5:
            self.count["kills"] += 1
            self.mortal.kill()
            time.sleep(self.dice.choice((0, 0.2, 1)))
            self.mortal.start()
        else:
            self.count["stalls"] += 1
            self.stalled.pause()
            time.sleep(self.dice.choice((0.1, 0.5, 2.5)))
            self.stalled.resume()

    def round(self, seconds):
        context = multiprocessing.get_context("fork")
        children = []
        hostile = [Hostile(proxy.port, kinds, seconds, self.dice.random()) for proxy in self.proxies
                   for kinds in [(kind,) for kind in ALL] + [COSTS] * COSTLY]
        operators = [] if self.calm else [Operator(proxy, seconds, self.dice.random()) for proxy in self.proxies]
        seeds = [self.dice.random() for _ in range(HONEST)]
        with self.storm(seconds) as storm:
            for number, seed in enumerate(seeds):
                mine, theirs = context.Pipe(duplex=False)
                args = (theirs, self.torn.port, self.beside.port, number, seconds, self.is_mortal, seed)
                child = context.Process(target=honest_process, args=args, daemon=True)
                child.start()
                theirs.close()
                children.append((child, mine))
            for thread in hostile + operators:
                thread.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(self.dice.uniform(0.2, 2))
                if not self.calm:
                    self.fault()
        self.hear_storm(storm)
        for operator in operators:
            operator.join(PATIENCE)
            self.count["reloads"] += operator.reloads
            self.count["refused"] += operator.refused
            self.problems += [operator.problem] if operator.problem else ["a reload hangs"] if operator.is_alive() else []
        for child, pipe in children:
            self.hear(pipe.recv() if pipe.poll(PATIENCE + seconds) else {"problem": "an honest client hangs"})
            child.join(1)
        for thread in hostile:
            thread.join(PATIENCE)
            self.turns.update(thread.turns)
            self.problems += [thread.problem] if thread.problem else ["a hostile client hangs"] if thread.is_alive() else []

    def hear(self, report):
        if "problem" in report:
            self.problems.append(report["problem"])
            return
        self.count["honest requests"] += report["requests"]
        self.count["outcomes unknown"] += report["unknown"]
        self.waits.update(report["waits"])
        self.waits_beside.update(report["beside"])
        self.errors.update(report["errors"])

    def hear_storm(self, storm):
        self.problems += storm.problems()
        self.count["storm operations"] += storm.operations()
        self.errors.update(storm.errors())
        key = storm.plan.key.decode()
        with Conn(self.firm.port) as conn:
            found = wait_until("the storm's set", lambda: read(conn, f"smembers {key}"), pause=0.1)
        self.problems += storm.wrong_members(found[key][1].split())[:3] if key in found else ["the storm's set is gone"]

    # --- after

    def settled(self, what, count, most):
        """Waits until the figure is at most the limit. Returns the figure, also if that fails."""
        try:
            wait_until(what, lambda: count() <= most, pause=0.2)
        except AssertionError:
            self.problems.append(f"{what}: {count()}, more than {most}")
        return count()

    def measure(self, before=None):
        """Checks the descriptors, MiB and connections of each proxy, which must have their former values."""
        growth = GROWTH_MIB_SANITIZER if built_with_sanitizer() else GROWTH_MIB
        figures = []
        for i, proxy in enumerate(self.proxies):
            if not proxy.process.alive():
                self.problems.append(proxy.process.describe())
                return []
            most = before[i] if before else (1 << 20, 1 << 20)
            self.fill()
            # Each figure is read over this single connection, so that it includes no others that are about to be closed.
            with Conn(proxy.port) as conn:
                conns = self.settled("connections", lambda conn=conn: int(stats(conn)["curr_connections"]), 1)
                if "inj" in wait_until("a reply", lambda conn=conn: read(conn, b"get inj"), pause=0.1):
                    self.problems.append("a forged command was carried out")
                wait_until("all servers are connected", lambda conn=conn: all_connected(conn), pause=0.1)
                figures.append((self.settled("descriptors", proxy.fd_count, most[0]),
                                self.settled("MiB", lambda proxy=proxy: proxy.status_kib("VmRSS") // 1024, most[1] + growth), conns))
        return figures

    def run(self):
        self.fill()
        self.round(min(10, max(3, self.seconds / 6)))
        before = self.measure()
        if not self.problems:
            self.round(self.seconds)
            after = self.measure(before)
            self.count["connections"] = sum(figures[2] for figures in after) - len(after)
            for number, what in enumerate(("descriptors", "MiB")):
                self.count[what] = " and ".join(f"{was[number]} -> {now[number]}" for was, now in zip(before, after))
        self.check()
        self.stop()
        self.report()
        return 1 if self.problems else 0

    def check(self):
        if self.calm:
            self.problems += [f"{number} honest requests were answered {reply}" for reply, number in self.errors.items()]
        self.count["peak MiB"] = " and ".join(f"{proxy.peak_mib():.0f}" for proxy in self.proxies if proxy.process.alive())
        for server in self.servers:
            with Conn(server.port) as conn:
                if stats(conn)["evictions"] != "0":
                    self.problems.append(f"{server.name} evicted items, so it has too little memory for this test")

    def report(self):
        self.count["hostile turns"] = f"{sum(self.turns.values())} (of {len(self.turns)} attacks: {least(self.turns)})"
        self.count["honest busy"] = sum(number for reply, number in self.errors.items() if reply.endswith("busy"))
        self.count["errors"] = sum(self.errors.values())
        counts = ", ".join(f"{name} {number}" for name, number in self.count.items())
        for problem in self.problems[:10]:
            print(f"WRONG: {problem}")
        print(f"soak: {'FAILED' if self.problems else 'ok'}, {self.seconds} s{', calm' * self.calm}, seed {self.seed}: {counts}\n"
              f"soak: waits of honest clients {self.waits}; through a setlistd without hostile clients {self.waits_beside}")

    def stop(self):
        for proxy in [*self.proxies, self.beside]:
            try:
                proxy.stop()
            except AssertionError as error:
                self.problems.append(str(error))
        for server in [*self.servers, self.apart]:
            server.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setlistd", default=os.environ.get("SETLISTD", "./setlistd"), help="the program under test")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 30))
    parser.add_argument("--calm", action="store_true", help="no faults of servers and no reloads: honest clients may get no error")
    args = parser.parse_args()
    OPTIONS.setlistd = os.path.abspath(args.setlistd)
    try:
        return Soak(args.seconds, args.seed, args.calm).run()
    except (AssertionError, Closed, OSError) as error:
        print(f"soak: FAILED, seed {args.seed}: {error!r}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
