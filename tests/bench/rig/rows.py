"""The rows: the requests and the servers. All servers of a row do the same work, or the nearest equivalent."""
from dataclasses import dataclass

from . import fill

# Each proxy is in front of the memcached, or the Redis, that is also measured directly.
SERVERS = ("setlistd", "setlistd-t2", "setlistd-nocache", "setlistd-fresh", "setlistd-keys", "memcached", "nutcracker", "memcached-proxy", "redis",
           "valkey", "nutcracker+redis", "setlistd-x20", "setlistd-tls", "memcached-tls", "setlistd-unix", "memcached-unix",
           "nutcracker-unix", "redis-unix", "setlistd-s5", "setlistd-nocache-s5", "setlistd-copies-s5", "setlistd-s20", "nutcracker-s20", "setlistd-s100",
           "nutcracker-s100")


@dataclass(frozen=True)
class Row:
    name: str
    about: str
    op: str
    servers: tuple            # names, with ":op" if their op differs
    options: tuple = ()       # of the load generator
    probe: str = ""           # sent to setlistd first: the row is skipped if the reply is ERROR
    half_peak: bool = False   # open loop, at half the rate of get-1
    beside: str = ""          # concurrent work: a name in background.py
    fill: str = ""            # data stored first: a name in fill.py; otherwise that of --prefill of the load generator
    pairs: bool = False       # requests come in pairs, and the time of a pair is measured
    once: bool = False        # only in the first round: later ones would have the same result
    measure: str = "load"     # or a name in special.py
    stretch: float = 1        # multiplies the duration, if few requests are answered per second
    quick: tuple = ()         # the servers of the quick run; none: not part of it

    def contenders(self, quick=False):
        """Returns pairs of server and op."""
        wanted = self.quick if quick else self.servers
        for one in self.servers:
            server, _, op = one.partition(":")
            if server in wanted or one in wanted:
                yield server, op or self.op


def _pair(name, about, op, servers, probe="", options=(), quick=((), ()), stretch=1, stored=""):
    """Returns the same at one and at 16 requests in flight on each connection."""
    deep = (*options, "--depth", "16")
    return [
        Row(f"{name}-1", f"{about}, 1 in flight", op, servers, options, probe, stretch=stretch, quick=quick[0], fill=stored),
        Row(f"{name}-16", f"{about}, 16 in flight", op, servers, deep, probe, stretch=stretch, quick=quick[1], fill=stored),
    ]


def _sized(size, keys, conns=(), stretch=1, quick=()):
    return Row(f"smembers-{size}", f"smembers of {size:,} members", "smembers", OURS + REDIS,
               ("--keys", str(keys), "--members", str(size), *conns), "scompact p", stretch=stretch, quick=quick)


def _mixed(size, keys):
    data = ("--keys", str(keys), "--members", str(size))
    # Runs are still being merged for a second after this number of members was added.
    stretch = 4 if size >= 200000 else 1
    for op, about in (("rw", "half sadd, half sismember"), ("rw10", "one sadd in ten, else sismember")):
        yield from _pair(f"{op}-{size}", f"{about}, sets of {size:,}", op, ("setlistd",) + REDIS, "sismember p m", data,
                         stretch=stretch)


def _drawn(name, command, size):
    data = ("--keys", "1", "--members", str(size), "--conns", "1")
    return Row(f"{name}-{size}", f"sadd and {command} in turn, one set of {size:,}, 1 connection", name,
               ("setlistd", "redis", "valkey"), data, f"{command} p", pairs=True)


def _deep(name, about, op, servers, depths):
    """Returns the same at several depths."""
    for depth in depths:
        yield Row(f"{name}-{depth}", f"{about}, {depth} in flight", op, servers, ("--depth", str(depth)))


def _pool(count, *rows):
    """Returns rows in front of this number of memcached."""
    servers = (f"setlistd-s{count}", f"nutcracker-s{count}")
    for name, op, depths in rows:
        yield from _deep(f"servers{count}-{name}", f"{name} with {count} memcached behind", op, servers, depths)


def _copies(name, about, op, options=(), stored=""):
    """Returns rows of sets with one copy, and with two."""
    return _pair(f"copies-{name}", f"{about}, of five memcached (setlistd-copies: copies = 2)", op, ("setlistd-s5", "setlistd-copies-s5"),
                 options=options, stored=stored)


def _onto(size):
    return Row(f"sadd-onto-{size}", f"sadd, one set of {size:,} members", "sadd-onto", ("setlistd",),
               ("--keys", "1", "--members", str(size)), "scompact p")


def _flooded(name, about, beside, servers=("setlistd",), **more):
    """One small get at a time, next to another client."""
    return Row(f"beside-{name}", f"get of 100 bytes, one at a time, beside {about}", "get", servers,
               ("--conns", "1", "--keys", "100"), beside=beside, stretch=4, **more)


OURS = ("setlistd", "setlistd-t2")
FRESH = ("setlistd", "setlistd-fresh", "memcached", "redis", "valkey")
REDIS = ("redis", "valkey", "nutcracker+redis")
MEMCACHED = ("memcached", "nutcracker", "memcached-proxy")
UNIX = ("setlistd-unix", "setlistd", "memcached", "memcached-unix", "redis", "redis-unix")
LARGE = ("--keys", "1", "--members", "200000")

# A log that is not compacted grows with every write. Rows that write use many keys, and all data is dropped between measurements, so that a
# log stays within a few KB. (hot uses one key, and is compacted.)
ROWS = [
    *_pair("get", "get of 100 bytes", "get", OURS + MEMCACHED + ("redis", "valkey"),
           quick=(("setlistd", "memcached", "nutcracker"), ("setlistd", "memcached"))),
    *_pair("get-tls", "get of 100 bytes by clients with TLS", "get", ("setlistd-tls", "memcached-tls")),
    *_pair("get-binary", "get of 100 bytes in the binary protocol", "get-binary", OURS + ("memcached",)),
    # In half a second, one pause of the machine affects a hundredth.
    Row("get-half", "get at half of the peak rate", "get", ("setlistd",) + MEMCACHED, half_peak=True, stretch=4),
    Row("get-compacting", "get at half of the peak rate beside the compaction of 200,000 members", "get",
        ("setlistd",), probe="scompact p", half_peak=True, beside="compaction", stretch=4),
    *_pair("mg", "mg of 100 bytes", "mg", OURS + ("memcached", "memcached-proxy")),
    *_pair("set", "set of 100 bytes", "set", OURS + MEMCACHED, quick=((), ("setlistd", "memcached", "nutcracker"))),
    *_pair("sadd", "add to a set (memcached: a raw append)", "sadd", OURS + ("memcached:append",) + REDIS, "sadd p m",
           quick=(("setlistd", "memcached:append", "redis"),) * 2),
    *_pair("hot", "sadd and srem (4 to 1) of one set (of 1,000)", "hot", OURS + REDIS, "scompact p",
           ("--keys", "1")),
    *_pair("hot-get", "get of one item of 100 bytes (setlistd-fresh: fresh_for = 100)", "get", FRESH, options=("--keys", "1")),
    *_pair("hot-items", "get of 1,000 items of 100 bytes (setlistd-fresh: fresh_for = 100)", "get", FRESH, options=("--keys", "1000")),
    *_pair("hot-scard", "scard of one set of 100 members (setlistd-fresh: fresh_for = 100)", "scard",
           ("setlistd", "setlistd-fresh", "redis", "valkey"), "scard p", ("--members", "100", "--keys", "1")),
    _sized(1000, 10, quick=("setlistd", "redis")),
    _sized(10000, 10),
    _sized(200000, 1, ("--conns", "8"), stretch=3),
    Row("smembers-uncached", "smembers of 10,000 members, none cached", "smembers",
        ("setlistd-nocache", "setlistd-nocache-s5") + REDIS,
        ("--keys", "10", "--members", "10000"), "scompact p"),
    *_pair("sismember", "sismember, one set of 200,000 members", "sismember", OURS + REDIS, "scompact p", LARGE),
    # This number of sets fits into the cache: otherwise the row would measure the cost of folding them.
    *_pair("scard", "scard of 100 members (setlistd-keys: as the value of a key)", "scard",
           ("setlistd", "setlistd-keys:scard-key", "redis", "valkey"), "scard p", ("--members", "100", "--keys", "1000")),
    _onto(10),
    _onto(1000000),
    *_pair("rpush", "push to a list (memcached: a raw append)", "rpush", OURS + ("memcached:append",) + REDIS,
           "rpush p m"),
    *_pair("lrange", "lrange 0 99 of 1,000 items", "lrange", OURS + REDIS, "lrange p 0 99", ("--keys", "10")),
    *_pair("evincr", "count an event (others: incr)", "evincr", OURS + ("memcached:incr",) + REDIS, "evincr p",
           quick=(("setlistd", "memcached:incr", "redis"), ())),
    *_pair("evadd", "count and store an event of 100 bytes (others: only a set)", "evadd",
           OURS + ("memcached:set", "redis:set", "valkey:set"), "evadd p 0 0 1\r\nx"),
    *(row for size, keys in ((100, 1000), (1000, 100), (10000, 20), (200000, 2), (1000000, 1))
      for row in _mixed(size, keys)),
    *(_drawn(name, command, size) for name, command in (("pop", "spop"), ("srand", "srandmember"))
      for size in (1000, 1000000)),
    # A request takes so long that the number of requests is fixed, not the time.
    Row("sinter-1000000", "sinter of two sets of 1,000,000 that share half, 1 connection", "sinter",
        ("setlistd", "redis", "valkey"), ("--members", str(fill.SHARED), "--conns", "1", "--requests", "5"), "sinter p",
        fill="two sets"),
    Row("proxies20-hot", "half sadd, half srem of one set (of 1,000): one setlistd, and twenty of them", "churn",
        ("setlistd", "setlistd-x20"), ("--keys", "1", "--conns", "40", "--depth", "4"), "scompact p",
        beside="base size"),
    _flooded("nothing", "nothing", "", ("setlistd", "memcached")),
    _flooded("large-values", "1,024 gets of 1 MB in flight", "large values", ("setlistd", "memcached")),
    _flooded("many-keys", "20,000 gets of 100 keys in flight", "many keys", ("setlistd", "memcached")),
    _flooded("counters", "200 evcount of 49,897 hours in flight", "counters"),
    _flooded("sunion", "50 sunion of 1,000,000 members in flight", "sunion", probe="scompact p"),
    _flooded("smembers", "1,000 smembers of 1,000,000 members in flight", "smembers", probe="scompact p"),
    *_copies("sadd", "add to a set", "sadd"),
    *_copies("scard", "scard of 100 members", "scard", ("--members", "100", "--keys", "1000"), "1000 sets of 100"),
    *_copies("smembers", "smembers of 1,000 members", "smembers", ("--members", "1000", "--keys", "10"), "10 sets of 1000"),
    *_deep("unix-get", "get of 100 bytes by a Unix socket, or by TCP", "get", UNIX, (1, 16)),
    *_deep("unix-sadd", "add to a set by a Unix socket, or by TCP", "sadd",
           ("setlistd-unix", "setlistd", "redis", "redis-unix"), (1,)),
    *_pool(20, ("get", "get", (1, 16)), ("set", "set", (16,)), ("mget10", "mget", (1, 4)), ("mget100", "mget100", (1,))),
    *_pool(100, ("get", "get", (1, 16)), ("set", "set", (16,)), ("mget10", "mget", (1, 4)), ("mget100", "mget100", (1,))),
    Row("servers100-start", "from the start of the process to its first reply", "", ("setlistd-s100", "nutcracker-s100"),
        measure="start"),
    Row("churn-tcp", "connect, get and close by TCP", "get", ("setlistd", "nutcracker", "memcached"), ("--reconnect",)),
    Row("churn-unix", "connect, get and close by a Unix socket", "get",
        ("setlistd-unix", "nutcracker", "nutcracker-unix", "memcached-unix"), ("--reconnect",)),
    Row("cold-sismember-1000000", "the first sismember of a process that has just been started", "",
        ("setlistd", "setlistd-s5", "redis", "valkey"), probe="scompact p", measure="sismember", once=True),
    *(Row(f"memory-set-{name}", f"stored bytes for each of 1,000,000 members: {members}", "", ("setlistd", "redis", "valkey"),
          probe="scompact p", measure=f"set-{name}", once=True)
      for name, members in (("seq", "user-0000001 ..."), ("ids", "ids in sequence"), ("sparse", "one id in 50"),
                            ("10", "10 random letters"), ("hex", "16 random digits"), ("hex24", "24 random digits"),
                            ("hex32", "32 random digits"))),
    Row("memory-sinter", "growth of resident memory by the first sinter of two sets of 1,000,000", "", ("setlistd",),
        probe="scompact p", measure="sinter", once=True),
    Row("memory-idle", "resident memory of 10,000 idle connections", "", ("setlistd",), measure="idle"),
    Row("memory-slow", "resident memory of 100 readers that ask for 10,000 members and do not read", "",
        ("setlistd",), probe="scompact p", measure="slow"),
    Row("memory-unread", "resident memory of 10,000 clients that each ask for 100 MB and do not read; gets of another", "",
        ("setlistd",), measure="unread", once=True),
]


def select(names, quick=False):
    """Returns the rows called NAME or NAME-..., or all. Raises ValueError if a name matches none."""
    for name in names:
        if not any(_fits(row, name) for row in ROWS):
            raise ValueError(f"there is no row {name}")
    return [row for row in ROWS
            if (not quick or row.quick) and (not names or any(_fits(row, name) for name in names))]


def _fits(row, name):
    return row.name == name or row.name.startswith(name + "-")
