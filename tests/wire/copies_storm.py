#!/usr/bin/python3
"""Sets and counters with two copies, while servers are killed, stopped, cut off and made to evict.

tests/wire/copies_storm.py [--setlistd PATH] [--seconds N] [--seed N] [--clients N]

Five servers, three proxies, and 50 clients at all proxies. Each member belongs to one client, which therefore knows the state of it: that
of its last acknowledged word, whatever happened to earlier ones. A word with an unknown outcome may be seen or not, until the next one is
acknowledged. All reads are compared with that. Some sets belong to one client: these are also deleted, replaced and popped, and
may be lost, since one copy of them is deleted while the server of the other is stopped; then they must be missing, never a part of them.

No server is made to lose items before all faults were over for a while, and no other fault follows before these are back, because a set
that both servers lost is missing. In the end, all copies must be equal within a minute, and have the members that the clients expect.

As root, the proxies run in network namespaces of their own, so that each can be cut off from each server. Without this, the cuts are left
out.
"""
import sys

sys.dont_write_bytecode = True

import argparse
import collections
import ctypes
import multiprocessing
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import traceback

from copied import NONE, SECOND, Copied, parse
from harness import HOST, OPTIONS, PATIENCE, SANITIZER_MARKS, Process, free_port, wait_until
from stored import Servers, stats
from wire import Closed, Conn

SERVERS, PROXIES = 5, 3
CONFIG = """
log_size = 4096
table_size = 16384
collection "s:" { copies = 2 only = true }
events "e:" { copies = 2 bucket = "day" }
"""
LARGE, SMALL = (200000, 20000, 2000), 8     # the members of sets that many clients share, and how many smaller ones there are
MEMBERS = 24                                # of each client in each of its sets
# Opposite words within this time, in seconds, are sent to the same proxy: its stamps grow.
CLOCKS = 0.05
# The time in seconds in which sets are repaired: a fault after that is the only one. A server that loses items is always such a fault.
REPAIRED = 45.0
# How far back words are kept that a set had before it was lost and created again.
KEPT = 10.0
EQUAL_LIMIT = 60.0
PROCESSES = 5
IN, OUT, EITHER = frozenset([True]), frozenset([False]), frozenset([True, False])
NEW_NETWORK = 0x40000000                    # CLONE_NEWNET
LINK = "10.52.{}.{}"


class Wrong(Exception):
    pass


# --- clients

class State:
    """What a client knows of its members of a set."""

    def __init__(self, key, names, alone):
        self.key, self.alone, self.missing = key, alone, alone
        self.may_be = {name: OUT for name in names}
        self.last = {name: (0.0, 0) for name in names}      # when it was changed, and through which proxy


class Client:
    def __init__(self, number, ports, servers, shared, seed, end, events):
        self.number, self.ports, self.servers, self.end, self.events = number, ports, servers, end, events
        self.dice = random.Random(seed * 1000 + number)
        self.conns = [None] * len(ports)
        own = State(f"s:own-{number}", [f"c{number}-{i}" for i in range(MEMBERS * 3)], True)
        chosen = [shared[number % len(shared)], shared[(number * 7 + 3) % len(shared)]]
        self.states = [own, *(State(key, [f"c{number}-{i}" for i in range(MEMBERS)], False) for key in dict.fromkeys(chosen))]
        self.counter, self.least, self.most, self.lacks = f"e:{number}", 0, 0, 0
        self.count = collections.Counter()
        self.errors, self.problems, self.slow = [], [], []

    def ask(self, proxy, request, read):
        """Returns the reply, or None after an error."""
        began = time.monotonic()
        try:
            if not self.conns[proxy]:
                self.conns[proxy] = Conn(self.ports[proxy])
            self.conns[proxy].send(request.encode() + b"\r\n")
            reply = read(self.conns[proxy])
        except (Closed, OSError) as error:
            self.conns[proxy] = None
            reply = f"SERVER_ERROR {type(error).__name__}"
        took = time.monotonic() - began
        self.count["requests"] += 1
        if took > 0.5:
            self.slow.append((time.time(), took, request.split()[0]))
        if isinstance(reply, str) and reply.startswith("SERVER_ERROR"):
            self.errors.append((time.time(), proxy, request.split()[0], reply))
            return None
        return reply

    @staticmethod
    def line(conn):
        return conn.line().decode()

    @staticmethod
    def values(conn):
        found, end = conn.read_values()
        return end if end != "END" else [data.decode().split() for _, data, *_ in found.values()]

    def wrong(self, what, key=None):
        raise Wrong(f"{time.strftime('%T', time.gmtime())} client {self.number}: {what}" + (self.stored(key) if key else ""))

    def stored(self, key):
        """What is stored at this moment, for a problem that will be looked into."""
        lines = []
        for host, port in self.servers:
            try:
                with Conn((host, port), 2) as conn:
                    for name in (key, key + SECOND):
                        conn.send(f"gets {name}\r\n".encode())
                        found, _ = conn.read_values()
                        lines += [f"\n    {host}:{port} {name}: {value!r:.600}" for value in found.values()]
            except (Closed, OSError) as error:
                lines.append(f"\n    {host}:{port}: {error}")
        return "".join(lines)

    # --- what is known

    def see(self, state, member, there, how):
        if there not in state.may_be[member]:
            self.wrong(f"{how}: {member} of {state.key} is {'in' if there else 'missing'}, "
                       f"last changed {time.monotonic() - state.last[member][0]:.3f} s ago", state.key)

    def see_missing(self, state, how):
        """A set that is missing, as its client knows, or because it was lost."""
        if not state.alone:
            self.wrong(f"{how}: {state.key} is missing", state.key)
        if any(may_be == IN for may_be in state.may_be.values()):
            self.count["lost sets"] += 1
            # A word with an unknown outcome may still be executed, and late words are kept when the set is created again.
            state.may_be = {name: OUT if may_be != EITHER and time.monotonic() - state.last[name][0] > KEPT else EITHER
                            for name, may_be in state.may_be.items()}
        state.missing = True

    def changed(self, state, members, to, proxy, sure):
        for member in members:
            state.may_be[member] = to if sure else state.may_be[member] | to
            state.last[member] = (time.monotonic(), proxy)

    def proxy_for(self, state, members):
        """A random proxy; after a change a moment ago, that of it."""
        proxy = self.dice.randrange(len(self.ports))
        recent = {last[1] for last in map(state.last.get, members) if time.monotonic() - last[0] < CLOCKS}
        while len(recent) > 1:
            time.sleep(CLOCKS / 2)
            recent = {last[1] for last in map(state.last.get, members) if time.monotonic() - last[0] < CLOCKS}
        return recent.pop() if recent else proxy

    # --- requests

    def write(self, state):
        members = self.dice.sample(list(state.may_be), self.dice.choice((1, 1, 1, 3, 8)))
        proxy, adds = self.proxy_for(state, members), self.dice.random() < 0.6
        # A set that was lost must not be created unnoticed.
        verb = ("sadd" if state.missing else "saddx") if adds else "srem"
        reply = self.ask(proxy, f"{verb} {state.key} {' '.join(members)}", self.line)
        if reply == "NOT_FOUND" and verb != "sadd":
            self.see_missing(state, verb)
            return
        elif reply not in (None, "STORED" if adds else "DELETED"):
            self.wrong(f"a write of {state.key} said {reply}")
        state.missing = state.missing and not (verb == "sadd" and reply)
        if verb == "sadd":
            # If the other server was unreachable when the set was lost, it has words of the last seconds, which are joined with the new set.
            for name, (when, _) in state.last.items():
                if time.monotonic() - when < KEPT:
                    state.may_be[name] = EITHER
        self.changed(state, members, IN if adds else OUT, proxy, reply is not None)

    def test(self, state):
        members, proxy = self.dice.sample(list(state.may_be), 10), self.dice.randrange(len(self.ports))
        loaded = [] if state.alone else ["m0"]
        reply = self.ask(proxy, f"smismember {state.key} {' '.join(members + loaded)}", self.line)
        if reply == "NOT_FOUND":
            self.see_missing(state, f"smismember at {proxy}")
        elif reply is not None:
            if loaded and reply.split()[-1] != "1":
                self.wrong(f"smismember at {proxy}: {state.key} lacks a member that was loaded")
            for member, there in zip(members, reply.split()):
                self.see(state, member, there == "1", f"smismember at {proxy}")

    def list(self, state):
        proxy = self.dice.randrange(len(self.ports))
        found = self.ask(proxy, f"smembers {state.key}", self.values)
        if found is not None:
            self.see_all(state, found, f"smembers at {proxy}")

    def see_all(self, state, found, how):
        if not found:
            self.see_missing(state, how)
            return
        there = set(found[0])
        if len(there) != len(found[0]):
            self.wrong(f"{how}: a member of {state.key} twice")
        for member in state.may_be:
            self.see(state, member, member in there, how)

    def claim(self, state):
        member = self.dice.choice(list(state.may_be))
        proxy = self.proxy_for(state, [member])
        before, reply = state.may_be[member], self.ask(proxy, f"sclaim {state.key} {member}", self.line)
        if reply in ("0", "1"):
            if (reply == "0") not in before:
                self.wrong(f"sclaim {state.key} {member} said {reply}")
            self.changed(state, [member], IN, proxy, True)
        elif reply is None:
            self.changed(state, [member], IN, proxy, False)
        else:
            self.wrong(f"sclaim said {reply}")

    def replace(self, state):
        """The whole set: sset, delete, or spop of some."""
        kind, everything = self.dice.choice(("sset", "delete", "spop")), list(state.may_be)
        proxy = self.proxy_for(state, everything)
        if kind == "spop":
            found = self.ask(proxy, f"spop {state.key} 5", self.values)
            if found is None:
                self.changed(state, everything, OUT, proxy, False)
            elif not found:
                if any(may_be == IN for may_be in state.may_be.values()):
                    self.see_missing(state, "spop")
            else:
                for member in found[0]:
                    self.see(state, member, True, "spop")
                self.changed(state, found[0], OUT, proxy, True)
            return
        members = self.dice.sample(everything, len(everything) // 2) if kind == "sset" else []
        reply = self.ask(proxy, " ".join([kind, state.key, *members]), self.line)
        if reply not in (None, "STORED" if kind == "sset" else "DELETED", "NOT_FOUND"):
            self.wrong(f"{kind} said {reply}")
        self.changed(state, [name for name in everything if name not in members], OUT, proxy, reply is not None)
        self.changed(state, members, IN, proxy, reply is not None)
        state.missing = reply == "DELETED" or state.missing and not (kind == "sset" and reply)

    def event(self):
        proxy = self.dice.randrange(len(self.ports))
        if self.dice.random() < 0.7:
            reply = self.ask(proxy, f"evincr {self.counter} 1", self.line)
            self.most += 1
            self.least += reply is not None
            found = reply
        else:
            found = self.ask(proxy, f"evcount {self.counter}", self.counted)
        if found is None:
            return
        if int(found) > self.most:
            self.wrong(f"{self.counter} is {found}, but only {self.most} were counted")
        # Each copy lacks what was counted without its server, and the larger one counts: what is acknowledged while proxies see different
        # servers, or before a repair, may be missing.
        self.count["low counters"] += int(found) < self.least
        self.lacks = max(self.lacks, self.least - int(found))

    @staticmethod
    def counted(conn):
        lines = []
        while not lines or lines[-1].startswith("COUNT"):
            lines.append(conn.line().decode())
        return lines[-1] if lines[-1] != "END" else str(sum(int(line.split()[-1]) for line in lines[:-1]))

    def turn(self):
        state, kind = self.dice.choice(self.states), self.dice.random()
        if kind < 0.5:
            self.write(state)
        elif kind < 0.75:
            self.test(state)
        elif kind < 0.8:
            if state.alone or self.dice.random() < 0.1:
                self.list(state)
        elif kind < 0.85:
            # It would create a set that was lost: the sets for it are not lost.
            self.claim(state if not state.alone else self.states[1])
        elif kind < 0.88:
            if state.alone:
                self.replace(state)
        elif self.events:
            self.event()

    def run(self):
        while time.time() < self.end:
            try:
                self.turn()
            except Wrong as error:
                self.problems.append(str(error))
                if len(self.problems) > 20:
                    return
                # So that one fault is not reported again and again.
                for state in self.states:
                    state.may_be = dict.fromkeys(state.may_be, EITHER)
            except Exception:
                self.problems.append(traceback.format_exc())
                return
            time.sleep(self.dice.uniform(0, 0.1))

    def report(self):
        return {"count": self.count, "errors": self.errors, "problems": self.problems, "slow": self.slow,
                "states": [(state.key, state.alone, state.may_be) for state in self.states],
                "counter": (self.counter, self.least, self.most), "lacks": self.lacks}


def client_process(pipe, numbers, *args):
    clients = [Client(number, *args) for number in numbers]
    threads = [threading.Thread(target=client.run, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for client, thread in zip(clients, threads):
        thread.join(max(0, client.end - time.time()) + PATIENCE)
        if thread.is_alive():
            client.problems.append(f"client {client.number} hangs")
    pipe.send([client.report() for client in clients])


# --- servers, proxies and the network between them

def run(*argv):
    subprocess.run(argv, check=True)


class Network:
    """A link from each proxy to each server, in namespaces. The servers and the clients are in that of this process."""

    def __init__(self):
        run("ip", "link", "set", "lo", "up")
        for server in range(SERVERS):
            run("ip", "address", "add", f"{LINK.format(0, server + 1)}/32", "dev", "lo")
        self.holders = []
        for proxy in range(PROXIES):
            holder = Process("namespace", ["unshare", "-n", "sleep", "infinity"])
            self.holders.append(holder)
            wait_until("a namespace", lambda holder=holder: os.readlink(f"/proc/{holder.pid}/ns/net") != os.readlink("/proc/self/ns/net"))
            inside = self.inside(proxy)
            run(*inside, "ip", "link", "set", "lo", "up")
            for server in range(SERVERS):
                near, far, name = self.address(proxy, server, 2), self.address(proxy, server, 1), self.link(proxy, server)
                run("ip", "link", "add", name, "type", "veth", "peer", "name", "y" + name, "netns", str(holder.pid))
                run("ip", "address", "add", f"{far}/30", "dev", name)
                run("ip", "link", "set", name, "up")
                run(*inside, "ip", "address", "add", f"{near}/30", "dev", "y" + name)
                run(*inside, "ip", "link", "set", "y" + name, "up")
                run(*inside, "ip", "route", "add", LINK.format(0, server + 1), "via", far, "src", near)

    @staticmethod
    def address(proxy, server, end):
        return LINK.format(proxy + 1, 4 * server + end)

    @staticmethod
    def link(proxy, server):
        return f"p{proxy}s{server}"

    def inside(self, proxy):
        return ["nsenter", "-t", str(self.holders[proxy].pid), "-n"]

    def cut(self, proxy, server, replies):
        """Of both directions, or only of what the server sends: then it carries out requests, and no proxy knows."""
        if replies:
            run("ip", "route", "add", "blackhole", self.address(proxy, server, 2))
        else:
            run("ip", "link", "set", self.link(proxy, server), "down")

    def mend(self, proxy, server, replies):
        if replies:
            run("ip", "route", "del", "blackhole", self.address(proxy, server, 2))
        else:
            run("ip", "link", "set", self.link(proxy, server), "up")

    def stop(self):
        for holder in self.holders:
            holder.kill()


class Server:
    def __init__(self, host, extra):
        self.port, self.host, self.extra = free_port(), host, extra
        self.name = f"{host}:{self.port}"
        self.start()

    def start(self):
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        self.process = Process("memcached", ["memcached", "-l", self.host, "-p", str(self.port), "-t", "1", "-U", "0", *self.extra, *user])
        self.process.wait_ready((self.host, self.port))

    def conn(self):
        return Conn((self.host, self.port))


class Proxy:
    def __init__(self, servers, folder, number, under):
        self.port = os.path.join(folder, f"proxy-{number}")     # a socket that is reachable from all namespaces
        path = os.path.join(folder, f"{number}.conf")
        with open(path, "w", encoding="utf-8") as out:
            out.write(CONFIG)
        self.process = Process("setlistd", [*under, OPTIONS.setlistd, "-f", path, "-S", ",".join(server.name for server in servers), "-l", self.port])
        self.process.wait_ready(self.port)


# --- the storm

class Fault:
    def __init__(self, kind, what):
        self.kind, self.what, self.began, self.ended = kind, what, time.time(), None


def age(stamp):
    """Returns how many seconds ago a stamp is."""
    digits = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
    number = 0
    for digit in stamp:
        number = number * 64 + digits.index(digit)
    return f"{time.time() - number / 64 / 1000:.1f}" if number else "none"


class Storm:
    def __init__(self, args):
        self.args, self.dice = args, random.Random(args.seed)
        self.folder = tempfile.mkdtemp(prefix="copies-storm-")
        os.chmod(self.folder, 0o755)
        self.network = Network() if args.inside else None
        self.servers = [Server(LINK.format(0, i + 1) if self.network else HOST, ["-m", "64"]) for i in range(SERVERS)]
        self.places = [(server.host, server.port) for server in self.servers]
        self.proxies = [Proxy(self.servers, self.folder, i, self.network.inside(i) if self.network else []) for i in range(PROXIES)]
        self.shared = [f"s:large-{size}" for size in LARGE] + [f"s:small-{i}" for i in range(SMALL)]
        self.faults = []
        self.reports, self.problems, self.lacks = [], [], []

    def load(self):
        """The members that a shared set has besides those of the clients."""
        with Conn(self.proxies[0].port) as conn:
            wait_until("servers", lambda: conn.ask("scard s:none") == "NOT_FOUND", pause=0.1)
            for key in self.shared:
                size = int(key.split("-")[1]) if "large" in key else 20
                wait_until(f"{key} is loaded", lambda key=key, size=size: self.fill(conn, key, size), pause=1)

    @staticmethod
    def fill(conn, key, size):
        word, *token = conn.ask(f"slease {key} 60").split()
        if word != "LEASE":
            return False
        for start in range(0, size, 1000):
            if conn.ask(f"sload {key} {token[0]} " + " ".join(f"m{i}" for i in range(start, min(size, start + 1000)))) != "STORED":
                return False
        return conn.ask(f"sfill {key} {token[0]}") == "STORED"

    def tell(self, text):
        print(f"{time.strftime('%T', time.gmtime())} {text}", flush=True)

    def server_of(self, key):
        with Conn(self.proxies[0].port) as conn:
            name = conn.ask(f"route {key}").split()[2]
        return next(server for server in self.servers if server.name == name)

    # --- faults: each generator does it until its `yield`, and ends it after that

    def weak(self, server):
        """The sets that will be lost with this server, because their other copy cannot be believed alone; each with the reason."""
        absent, found = {}, []
        conns = [one.conn() for one in self.servers]
        for conn in conns:
            for other in self.servers:
                conn.send(f"get @absent.{other.name}\r\n".encode())
                for value in conn.read_values()[0].values():
                    absent[other] = max(absent.get(other, b""), value[1])
        for key in self.shared:
            names = (key, key + SECOND)
            for name, other in (names, names[::-1]):
                if self.server_of(name) is not server:
                    continue
                keeper = self.server_of(other)
                conns[self.servers.index(keeper)].send(f"get {other}\r\n".encode())
                values = list(conns[self.servers.index(keeper)].read_values()[0].values())
                copy = parse(values[0][1]) if values else None
                if not copy or copy.gone or copy.horizon < max(absent.get(keeper, NONE), copy.fill):
                    found.append(f"{other} on {keeper.name}: " + (f"horizon {age(copy.horizon)}, fill {age(copy.fill)}, "
                                 f"gone {copy.gone}, " if copy else "missing, ") +
                                 f"absent {age(absent.get(keeper, NONE))}")
        for conn in conns:
            conn.close()
        return found

    def kill(self, server):
        for text in self.weak(server):
            self.tell(f"  will be lost: {text}")
        server.process.kill()
        yield self.dice.choice((0.3, 3, 8))
        server.start()

    def stop(self, server):
        server.process.pause()
        yield self.dice.choice((0.5, 1.5, 4, 10, 25))
        server.process.resume()

    def cut(self, pairs, replies):
        for proxy, server in pairs:
            self.network.cut(proxy, server, replies)
        yield self.dice.choice((1, 5, 15))
        for proxy, server in pairs:
            self.network.mend(proxy, server, replies)

    def evict(self, keys):
        """Deletes one copy of each of these sets, while the server of the other is stopped."""
        stopped = self.server_of(keys[0])
        stopped.process.pause()
        yield 4
        for key in keys:
            for name, other in ((key, key + SECOND), (key + SECOND, key)):
                if self.server_of(other) is stopped:
                    with self.server_of(name).conn() as conn:
                        conn.ask(f"delete {name}")
        time.sleep(2)
        stopped.process.resume()

    def crowd(self, server):
        """Items until the server evicts others."""
        with server.conn() as conn:
            before = int(stats(conn)["evictions"])
            for number in range(200000):
                size = self.dice.choice((60, 200, 700, 3000))
                conn.send(b"set filler-%d-%d 0 0 %d noreply\r\n%s\r\n" % (self.args.seed, number, size, b"x" * size))
                if number % 5000 == 0 and int(stats(conn)["evictions"]) > before + 20000:
                    break
        yield 1
        with server.conn() as conn:
            for number in range(200000):
                conn.send(b"delete filler-%d-%d noreply\r\n" % (self.args.seed, number))
            conn.ask("mn")

    def choose(self, clean):
        server, kind = self.dice.choice(self.servers), self.dice.random()
        at = self.servers.index(server)
        if clean and self.dice.random() < 0.5:
            if self.args.crowd and self.dice.random() < 0.25:
                return "crowd", server.name, self.crowd(server)
            return "kill", server.name, self.kill(server)
        if kind < 0.35:
            return "stop", server.name, self.stop(server)
        if kind < 0.5 or not self.network:
            keys = [f"s:own-{number}" for number in range(self.args.clients)]
            self.dice.shuffle(keys)
            return "evict", keys[0], self.evict(keys)
        proxy, other, replies = self.dice.randrange(PROXIES), self.dice.randrange(1, SERVERS), self.dice.random() < 0.5
        if kind < 0.75:
            return f"cut one{' way' if replies else ''}", f"{proxy}-{at}", self.cut([(proxy, at)], replies)
        return (f"cut both{' one way' if replies else ''}", f"{proxy}-{at}, other than {other}",
                self.cut([(proxy, at), ((proxy + 1) % PROXIES, (at + other) % SERVERS)], replies))

    def rage(self, end):
        while time.time() < end - 8:
            # Until a copy that was lost is back, any fault of the other server loses the set.
            lost = self.faults and self.faults[-1].kind.startswith(("kill", "crowd"))
            quiet = REPAIRED if lost or (self.dice.random() < 0.6 and self.faults) else self.dice.uniform(2, 6)
            time.sleep(max(0, min(quiet, end - time.time() - 5)))
            clean = not self.faults or time.time() > self.faults[-1].ended + REPAIRED - 1
            kind, what, steps = self.choose(clean)
            kind += "" if clean else ", soon after another"
            fault = Fault(kind, what)
            self.faults.append(fault)
            pause = next(steps)
            time.sleep(min(pause, max(0.1, end - time.time())))
            next(steps, None)
            fault.ended = time.time()
            self.tell(f"{kind} {what}, {fault.ended - fault.began:.1f} s")

    def clients(self, end):
        context = multiprocessing.get_context("fork")
        children = []
        for part in range(PROCESSES):
            mine, theirs = context.Pipe(duplex=False)
            numbers = range(part, self.args.clients, PROCESSES)
            child = context.Process(target=client_process, daemon=True, args=(
                theirs, numbers, [proxy.port for proxy in self.proxies], self.places, self.shared, self.args.seed, end, self.args.events))
            child.start()
            theirs.close()
            children.append((child, mine))
        return children

    # --- after

    def different(self):
        """The sets whose copies differ, each with the difference."""
        class Router:
            port = self.proxies[0].port
        servers = Servers([], Router)
        servers.conns = {server.name: server.conn() for server in self.servers}
        found = {}
        for key in [*self.shared, *(f"s:own-{number}" for number in range(self.args.clients))]:
            try:
                difference = Copied(servers, key).difference()
            except Exception as error:
                difference = f"{type(error).__name__} {error}"
            if difference:
                found[key] = difference
        servers.close()
        return found

    def wait_equal(self):
        """Returns after how many seconds all copies were equal."""
        last = max([fault.ended for fault in self.faults] or [time.time()])
        while True:
            began = time.time()
            found = self.different()
            if not found:
                return began - last
            if began > last + EQUAL_LIMIT:
                self.problems += [f"{len(found)} sets whose copies differ, a minute after the last fault",
                                  *(f"{key}: {difference}" for key, difference in list(found.items())[:4])]
                return None
            time.sleep(1)

    def check_members(self):
        expected, counters = collections.defaultdict(dict), [report["counter"] for report in self.reports]
        alone = set()
        for report in self.reports:
            for key, own, may_be in report["states"]:
                expected[key].update(may_be)
                alone |= {key} if own else set()
        for number, proxy in enumerate(self.proxies):
            with Conn(proxy.port) as conn:
                for key, may_be in expected.items():
                    def members(conn=conn, key=key):
                        found, end = conn.values(f"smembers {key}")
                        return [set(found[key][1].decode().split()) if key in found else None] if end == "END" else None
                    there = wait_until(f"{key} at {number}", members, pause=0.2, limit=30)[0]
                    if there is None and key not in alone:
                        self.problems.append(f"{key} is missing in the end, at proxy {number}")
                        continue
                    wrong = [member for member, may in may_be.items() if (member in (there or ())) not in may]
                    if wrong:
                        self.problems.append(f"{key} in the end at {number}: {len(wrong)} of {len(may_be)} are wrong: {wrong[:3]}, "
                                             f"{'missing' if there is None else len(there)}")
                    if "large" in key and there is not None:
                        lacks = [i for i in range(int(key.split('-')[1])) if f"m{i}" not in there]
                        self.problems += [f"{key} in the end at {number}: lacks {len(lacks)} that were loaded"] if lacks else []
                for key, least, most in counters if self.args.events else []:
                    conn.send(f"evcount {key}\r\n".encode())
                    found = Client.counted(conn)
                    if not found.isdigit() or int(found) > most:
                        self.problems.append(f"{key} in the end at {number}: {found}, of {most}")
                    else:
                        self.lacks.append(max(0, least - int(found)))

    def tell_errors(self):
        """How many errors clients received, and how long after the beginning and the end of the fault before them."""
        table = collections.defaultdict(list)
        for when, proxy, verb, text in (error for report in self.reports for error in report["errors"]):
            before = [fault for fault in self.faults if fault.began <= when]
            fault = before[-1] if before else Fault("none", "")
            table[fault.kind].append((when - fault.began, when - fault.ended if fault.ended else 0.0, verb, text.split(" ")[-3:], fault))
        kinds = collections.Counter(fault.kind for fault in self.faults)
        for kind in sorted(kinds | collections.Counter(table.keys())):
            errors = table[kind]
            late = [after for _, after, *_ in errors if after > 0]
            # How long errors were seen, in each fault.
            seen = {}
            for since, _, _, _, fault in errors:
                seen.setdefault(id(fault), []).append(since)
            longest = sorted(max(times) - min(times) for times in seen.values())
            verbs = collections.Counter(verb for _, _, verb, _, _ in errors)
            self.tell(f"  {kind}: {kinds[kind]} times, {len(errors)} errors; the last one {max([e[0] for e in errors], default=0):.2f} s after its beginning; "
                      f"{len(late)} after its end, at most {max(late, default=0):.2f} s; seen for at most {max(longest, default=0):.2f} s; {dict(verbs)}")
        texts = collections.Counter(text for report in self.reports for _, _, _, text in report["errors"])
        self.tell(f"  errors: {dict(texts.most_common(12))}")

    def run(self):
        self.load()
        self.tell(f"seed {self.args.seed}: loaded; {'with' if self.network else 'no'} cuts of the network")
        end = time.time() + self.args.seconds
        children = self.clients(end)
        self.rage(end)
        for child, pipe in children:
            if pipe.poll(max(0, end - time.time()) + PATIENCE):
                self.reports += pipe.recv()
            else:
                self.problems.append("clients hang")
            child.join(1)
        self.problems += [problem for report in self.reports for problem in report["problems"]]
        equal = self.wait_equal()
        self.check_members()
        count = sum((report["count"] for report in self.reports), collections.Counter())
        self.tell(f"{count['requests']} requests, {len(self.faults)} faults, {count['lost sets']} lost sets, "
                  f"equal {'after %.1f s' % equal if equal is not None else 'never'}")
        if self.args.events:
            self.tell(f"  counters: {count['low counters']} replies were too low, by at most {max(report['lacks'] for report in self.reports)}; in "
                      f"the end they lack {sum(self.lacks) // PROXIES} of {sum(report['counter'][1] for report in self.reports)}")
        self.tell_errors()
        for proxy in self.proxies:
            with Conn(proxy.port) as conn:
                found = stats(conn, "stats collections")
            self.tell("  " + str({name: value for name, value in found.items() if "cop" in name or "repair" in name or "absen" in name or "lost" in name}))
            if not proxy.process.alive() or any(mark in proxy.process.stderr() for mark in SANITIZER_MARKS):
                self.problems.append(proxy.process.describe())

    def stop_all(self):
        for owner in [*self.proxies, *self.servers]:
            if owner.process.alive():
                owner.process.signal(signal.SIGCONT)
            if owner in self.proxies and owner.process.terminate() != 0:
                self.problems.append(owner.process.describe())
            owner.process.kill()
        if self.network:
            self.network.stop()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setlistd", default="./setlistd", help="the program under test")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1, 1 << 30))
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--no-events", dest="events", action="store_false", help="without counters")
    parser.add_argument("--no-crowd", dest="crowd", action="store_false", help="no server is filled until it evicts")
    return parser.parse_args()


def may_unshare():
    return os.geteuid() == 0 and ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK) == 0


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    args = arguments()
    OPTIONS.setlistd = os.path.abspath(args.setlistd)
    args.inside = may_unshare()
    if not args.inside:
        print("no permission to create network namespaces: connections are not cut")
    storm = Storm(args)
    try:
        storm.run()
    finally:
        storm.stop_all()
    for problem in storm.problems[:200]:
        print(problem)
    print(f"{0 if storm.problems else 1} passed, {len(storm.problems)} failed")
    return 1 if storm.problems else 0


if __name__ == "__main__":
    sys.exit(main())
