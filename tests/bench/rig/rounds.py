"""Measures: the servers of each row take turns, round after round, because the machine's speed changes meanwhile."""
import contextlib
import json
import os
import subprocess

from . import background, fill, special
from .peers import Failed, Missing, say

LIMIT = 180  # seconds for one measurement
WARMUP = 0.15
PROBE_SECONDS = 0.3


class Run:
    def __init__(self, lab, settings, loadgen):
        self.lab, self.settings, self.loadgen = lab, settings, loadgen
        self.samples = {}   # by row, server and op: the samples of each round
        self.skipped = []   # pairs of a name and a reason
        self.wrong = False
        self.rate = None    # half of the peak rate, once known

    def measure(self, rows, quick=False, only=()):
        chosen = [(row, pairs) for row in rows if (pairs := self._contenders(row, quick, only))]
        for turn in range(self.settings["rounds"]):
            for row, pairs in chosen:
                if turn and row.once:
                    continue
                say(f"round {turn + 1} of {self.settings['rounds']}: {row.name}")
                for server, op in pairs if turn % 2 == 0 else reversed(pairs):
                    self._measure(row, server, op)
        # In the order of the table, whatever the order of measurement.
        wanted = [(row.name, server, op) for row, pairs in chosen for server, op in pairs]
        self.samples = {key: self.samples[key] for key in wanted if key in self.samples}

    def _contenders(self, row, quick, only):
        there = [(server, op) for server, op in row.contenders(quick)
                 if (not only or server in only) and self.lab.get(server) is not None]
        asked = self.lab.servers.get("setlistd") or self.lab.servers.get("setlistd-nocache")
        if row.probe and asked and asked.ask(row.probe) == "ERROR":
            self._skip(row.name, f"setlistd does not know {row.probe.split()[0]}")
            return []
        return there

    def _skip(self, what, why):
        say(f"skipped: {what}: {why}")
        self.skipped.append((what, why))

    def _measure(self, row, name, op):
        server = self.lab.servers[name]
        self.lab.drop_data()
        try:
            if row.measure == "load":
                sample = self._loaded(row, server, op)
            else:
                sample = special.KINDS[row.measure](self.lab, name)
        except (Failed, Missing, OSError) as why:
            say(f"{row.name}, {name}: {why}")
            self.wrong = True
            return
        self.samples.setdefault((row.name, name, op), []).append(sample)

    def _loaded(self, row, server, op):
        options = row.options
        if row.fill:
            fill.KINDS[row.fill](server)
            # The cost of the first request is measured by another row.
            self._load(server, op, (*options, "--requests", "1"))
        else:
            options += ("--prefill",)
        with self._beside(row, server) as beside:
            sample = self._load(server, op, options, self._rate_of(row), self.settings["seconds"] * row.stretch)
        if beside is not None:
            sample.update(beside.found())
        if row.pairs and sample["rate"]:
            sample["pair_us"] = 2e6 / sample["rate"]
        return sample

    @staticmethod
    def _beside(row, server):
        return background.KINDS[row.beside](server) if row.beside else contextlib.nullcontext()

    def _load(self, server, op, options=(), rate=None, seconds=None):
        """Runs the load generator and returns its results. Any wrong reply is a failure."""
        where = ["--socket", server.path] if server.path else ["--port", ",".join(map(str, server.ports()))]
        command = [self.loadgen, "--proto", server.proto, *where, "--op", op,
                   "--json", "--conns", str(self.settings["conns"]), "--seconds", str(seconds or self.settings["seconds"]),
                   "--warmup", str(WARMUP), "--pids", ",".join(map(str, server.pids())), *options]
        if server.tls:
            command.append("--tls")
        if rate:
            # With enough requests in flight that none waits for the reply to another.
            command += ["--rate", f"{rate:.0f}", "--depth", "64"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired as late:
            raise Failed(f"no end after {LIMIT} s") from late
        try:
            sample = json.loads(ran.stdout)
        except ValueError as broken:
            raise Failed(ran.stderr.strip() or f"the load generator ended with status {ran.returncode}") from broken
        if ran.returncode:
            self.wrong = True
            say(f"{op}, {server.name}: {sample['errors']} errors, {sample['lost']} lost: {sample['first_error']}")
        sample["processes"] = together(sample["processes"], server.counts())
        return sample

    def _rate_of(self, row):
        if not row.half_peak:
            return None
        if self.rate is None:
            peaks = [self._peak(name) for name in ("setlistd", "memcached") if name in self.lab.servers]
            self.rate = min(peaks) / 2
            say(f"half of the peak rate: {self.rate:,.0f} requests/s")
        return self.rate

    def _peak(self, name):
        """Returns the rate of get-1, already measured or measured now."""
        known = self.samples.get(("get-1", name, "get"))
        if known:
            return known[0]["rate"]
        return self._load(self.lab.servers[name], "get", ("--prefill",), seconds=PROBE_SECONDS)["rate"]


def together(processes, counts):
    """Returns the processes, as one group for each kind."""
    found, at = [], 0
    for count in counts:
        kind = processes[at:at + count]
        found.append(dict(kind[0], **{metric: sum(one[metric] for one in kind) for metric in ("cpu_us", "rss_kb")}))
        at += count
    return found


def build_loadgen(root):
    """Returns the path of the load generator, which is recompiled if its source is newer."""
    folder, path = os.path.join(root, "tests/bench"), os.path.join(root, "build/loadgen")
    sources = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith((".c", ".h")))
    if os.path.exists(path) and all(os.path.getmtime(path) >= os.path.getmtime(name) for name in sources):
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-I" + folder,
               *(name for name in sources if name.endswith(".c")), "-o", path, "-lssl", "-lcrypto"]
    if subprocess.run(command, check=False).returncode:
        raise Failed("the load generator does not compile")
    return path
