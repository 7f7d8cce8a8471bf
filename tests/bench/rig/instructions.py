"""Counting instead of timing: instructions of setlistd for each request of a few scripts, by callgrind.

One client sends 16 requests in one write, and the next ones once all are answered. So a turn of setlistd has the same work,
however busy the machine is. Its clock stands almost still (preload/clock.c). Each script runs twice, with few requests and with
many: the difference of the two is free of what the start costs. Timing still decides a little: when a compaction begins, or how
many replies come at once. So a script that is above the limit is counted again, and the least count holds.
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

# A script, and what the load generator is told. The replies to 16 requests take less than a buffer for input: with more, timing
# would decide how many reads they take.
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
    """What the counts depend on, beside setlistd itself."""
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
        """The instructions of one setlistd, from its start to its end."""
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
        """The path of the clock that stands still."""
        path = os.path.join(folder, "clock.so")
        source = os.path.join(self.root, "tests/bench/preload/clock.c")
        if subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", path, source], check=False).returncode:
            raise Failed("the clock does not compile")
        return path

    def count(self, name, stored):
        """The count, or the least of several if it is too high; a text in its place says why there is none."""
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
        """What later counts are compared with: neither the least of several nor the greatest."""
        return statistics.median(self.per_request(name) for _ in range(TRIES))


def is_above(count, stored):
    return stored is not None and count > stored * LIMIT


def verdict(counts, stored):
    """Lines for people, and how many counts are good and bad. Without stored counts all that were made are good."""
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
    """Counts, compares with the file at the path or writes it, and gives the exit status."""
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
