"""The rows about large sets that a setlistd knows nothing of: others have stored them, and it was just started."""
import random
import statistics
import time

from . import fill
from .peers import Failed

STARTS = 5


def sismember(lab, name):
    """The first sismember of each of several processes; of Redis, the first on each of several connections."""
    server = lab.servers[name]
    fill.one_set(server)
    draw = random.Random(3)
    members = [f"user-{draw.randint(1, fill.MILLION):07}" for _ in range(STARTS)]
    if server.proto == "resp":
        return {"cold_ms": statistics.median(_asked(server, member) for member in members)}
    with fill.Client(server.behind) as watching:
        fill.at_rest(watching.stored)
    taken = [_first(lab, server.behind, member) for member in members]
    return {metric: statistics.median(one[metric] for one in taken) for metric in taken[0]}


def _first(lab, memcached, member):
    server = lab.fresh_setlistd()
    with lab.ending(server):
        with fill.Meter(memcached) as meter:
            took = _asked(server, member)
            passed, requests = meter.read()
    return {"cold_ms": took, "cold_kb": passed / 1024, "cold_requests": requests}


def _asked(server, member):
    """Milliseconds."""
    with fill.Client(server) as client:
        start = time.monotonic()
        reply = client.ask(f"sismember large {member}")
        took = time.monotonic() - start
    if reply not in ("1", ":1"):
        raise Failed(f"sismember: {reply!r}")
    return took * 1e3


def sinter(lab, name):
    """By how much memory a setlistd grows at most while it intersects two sets for the first time."""
    fill.two_sets(lab.servers[name])
    server = lab.fresh_setlistd()
    with lab.ending(server):
        with fill.Client(server) as client:
            before = server.rss_kb()
            reply = client.ask("sinter left right")
            size = fill.SHARED * (fill.NAME_SIZE + 1) - 1
            if reply != f"VALUE sinter 0 {size}" or len(client.line()) != size or client.line() != "END":
                raise Failed(f"sinter: {reply!r}")
            peak = server.peak_kb()
    return {"rss_before_kb": before, "peak_kb": peak, "growth_mb": (peak - before) / 1024}


KINDS = {"sismember": sismember, "sinter": sinter}
