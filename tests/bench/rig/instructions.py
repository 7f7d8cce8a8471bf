"""Counts instead of timing: instructions of setlistd for each request of a few scripts, by callgrind.

A client sends 16 requests in one write, and the next ones after all replies. So a turn of setlistd has the same work, however
busy the machine is. Its clock almost stops (preload/clock.c). Each script runs twice, with few requests and with many: the
difference does not include the cost of the start. Timing still has a small influence: when a compaction begins, or how many
replies arrive together. So a script above the limit is counted again, and the lowest count is used.
"""
import concurrent.futures
import json
import os
import platform
import re
import ssl
import statistics
import subprocess

from .peers import Failed, Lab, find_program, first_number, say
from .rounds import build_loadgen

SCHEMA = 1
LIMIT = 1.03            # of the stored count
TRIES = 3
FEW, MANY = 4000, 24000
PATIENCE = 120          # seconds for one run
DEEP = ("--conns", "1", "--depth", "16", "--batch", "16")

# A script, and the options of the load generator. The replies to 16 requests are smaller than an input buffer: with larger ones, timing
# would determine the number of reads.
SCRIPTS = {
    "get": ("get", "--keys", "1000"),
    "get-tls": ("get", "--keys", "1000", "--tls"),
    "get-binary": ("get-binary", "--keys", "1000"),
    "set": ("set", "--keys", "1000"),
    "sadd": ("sadd", "--keys", "1000"),
    "sismember": ("sismember", "--keys", "100", "--members", "50"),
    "scard": ("scard", "--keys", "100", "--members", "50"),
    "smembers": ("smembers", "--keys", "100", "--members", "20"),
    "mixed": ("rw", "--keys", "100", "--members", "50"),
    "mixed-large": ("rw", "--keys", "20", "--members", "1000"),
    "rpush": ("rpush", "--keys", "1000"),
    "lrange": ("lrange", "--keys", "100", "--members", "20"),
    "evincr": ("evincr", "--keys", "1000"),
    "evadd": ("evadd", "--keys", "1000"),
}


def made_by(setlistd):
    """The environment on which the counts depend."""
    with open(setlistd, "rb") as file:
        program = file.read()
    compilers = set(re.findall(rb"(?:GCC|clang)[: ][^\0]*", program))
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        vectors = "AVX2" if " avx2 " in file.read() else "no AVX2"
    return {"compiler": ", ".join(sorted(name.decode("latin-1") for name in compilers)),
            "linked": "as a whole" if b".lto_priv" in program else "from objects", "libc": " ".join(platform.libc_ver()),
            "openssl": ssl.OPENSSL_VERSION, "machine": f"{platform.machine()}, {vectors}",
            "valgrind": first_number(find_program("valgrind"), "--version"),
            "memcached": first_number(find_program("memcached"), "--version")}


class Counter:
    def __init__(self, root, setlistd):
        self.root, self.setlistd, self.loadgen = root, setlistd, build_loadgen(root)
        find_program("valgrind")

    def per_request(self, name):
        few, many = (self._whole(name, requests) for requests in (FEW, MANY))
        return round((many - few) / (MANY - FEW), 1)

    def _whole(self, name, requests):
        """Returns the instructions of one setlistd, from its start to its end."""
        with Lab(self.setlistd) as lab:
            server, counted = lab.counted_setlistd(self._clock(lab.work), tls="--tls" in SCRIPTS[name])
            where = ("--socket", server.path) if server.path else ("--port", str(server.port))
            command = [self.loadgen, *where, *DEEP, "--prefill", "--requests", str(requests), "--op", *SCRIPTS[name]]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
                server.process.terminate()
                server.process.wait(PATIENCE)
            except subprocess.TimeoutExpired as late:
                raise Failed(f"{name}: no end after {PATIENCE} s") from late
            if ran.returncode:
                raise Failed(f"{name}: {ran.stderr.strip() or ran.stdout.strip()}")
            with open(counted, encoding="utf-8", errors="replace") as file:
                totals = re.findall(r"^totals: (\d+)$", file.read(), re.M)
        if len(totals) != 1:
            raise Failed(f"{name}: callgrind counted nothing")
        return int(totals[0])

    def _clock(self, folder):
        """Returns the path of the stopped clock."""
        path = os.path.join(folder, "clock.so")
        source = os.path.join(self.root, "tests/bench/preload/clock.c")
        if subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", path, source], check=False).returncode:
            raise Failed("the clock does not compile")
        return path

    def count(self, name, stored):
        """Returns the count, or the lowest of several if it is too high; or a text with the reason why there is none."""
        counts, why = [], None
        for _ in range(TRIES):
            try:
                counts.append(self.per_request(name))
            except (Failed, OSError) as failed:
                why = str(failed)
            if counts and not is_above(min(counts), stored):
                break
        return min(counts) if counts else why

    def middle(self, name):
        """Returns the count with which later ones are compared: neither the lowest of several nor the highest."""
        return statistics.median(self.per_request(name) for _ in range(TRIES))


def is_above(count, stored):
    return stored is not None and count > stored * LIMIT


def verdict(counts, stored):
    """Returns lines to print, and how many counts are good and bad. Without stored counts, all are good."""
    lines, bad = [], 0
    for name, count in counts.items():
        was = stored.get(name)
        if isinstance(count, str):
            lines.append(f"{name:12} {count}")
            bad += 1
        elif was is None:
            lines.append(f"{name:12} {count:9,.1f}")
        else:
            above = is_above(count, was)
            bad += above
            lines.append(f"{name:12} {count:9,.1f}  {count / was:.3f} of {was:,.1f}{'  TOO HIGH' if above else ''}")
    return lines, len(counts) - bad, bad


def run(root, setlistd, path, names=(), write=False):
    """Counts, compares with the file at the path or writes it, and returns the exit status."""
    if unknown := [name for name in names if name not in SCRIPTS]:
        raise Failed(f"no script {unknown[0]}; there are {', '.join(SCRIPTS)}")
    counter, made = Counter(root, setlistd), made_by(setlistd)
    stored = {}
    if not write:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        stored = document["counts"] if document["made_by"] == made else {}
    chosen = {name: stored.get(name) for name in names or SCRIPTS}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = dict(zip(chosen, pool.map(counter.middle, chosen) if write else pool.map(counter.count, chosen, chosen.values())))
    lines, good, bad = verdict(counts, stored)
    print("\n".join(lines))
    if not write and not stored:
        say("counted and not compared: the file was made by " + different(document["made_by"], made))
    if write and not bad:
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"schema": SCHEMA, "made_by": made, "counts": counts}, indent=1) + "\n")
    print(f"{good} passed, {bad} failed")
    return 1 if bad else 0


def different(there, here):
    return "; ".join(f"{name} {there.get(name)}, here {value}" for name, value in here.items() if there.get(name) != value)
