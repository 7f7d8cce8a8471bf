"""The matrix of clients: the calls that each lacks, and the replies in which it differs from most others.

setlistd-clients(7) has it as tables, which the tests compare with this one. So a wrong entry makes a test fail.
"""
import collections
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))

FOLDER = os.path.join(HERE, "clients")
BUILD = os.path.abspath(os.path.join(HERE, "../../build/clients"))
JAR = "/usr/share/java/spymemcached.jar"
PYTHON = ["/usr/bin/python3", "-B"]
REFUSED = object()  # a reply: an error, in the client's words
PLAIN, VERBS, KEYS = "plain use", "plain_verbs", "commands as keys"


class Client:
    """name: the usual name. package: of Debian, or of npm. protocols: those it supports. since: {protocol: the first release}.
    version: of npm, or of each of RELEASES; one text if they are the same.
    argv: the command of its program; the name of a file is one in `clients`, or a program that `build` creates there.
    build: (source, command without the source), if the program must be built.
    look: exits with status 0 if the client is installed.
    lacks: calls that it does not have. lacked: {version: calls that all releases up to this one lack}. sets: the setting with which values arrive unchanged, or None.
    packed: whether it compresses or serialises values by default.
    otherwise: {step: reply}, or {"binary: step": reply}, if it differs from most clients. A comment gives the reason.
    until: {version: the same for all releases up to this one}.
    silent: the verbs, or "text: verb", for which an error may look like the reply `no` or `missing`.
    waits: the steps that its program skips, since the client would wait for its timeout.
    newlines: False if it changes newlines in values; then it skips groups of steps with any.
    """

    def __init__(self, name, package, version, protocols, argv, look, **more):
        self.name, self.package, self.protocols = name, package, protocols
        self.versions = [version] * len(RELEASES) if isinstance(version, str) else version
        self.argv, self.look = argv, look
        self._lacks, self._lacked = more.get("lacks", ()), more.get("lacked", {})
        self._since = more.get("since", {})
        self.sets = more.get("sets")
        self.packed = more.get("packed", False)
        self._otherwise, self._until = more.get("otherwise", {}), more.get("until", {})
        self.silent = more.get("silent", ())
        self.waits = more.get("waits", ())
        self.newlines = more.get("newlines", True)
        self.build = more.get("build")
        self.npm = package.startswith("npm ")

    def lacks(self, installed):
        """Returns the calls that the installed release lacks."""
        return {*self._lacks, *(call for last, calls in self._lacked.items() if not_after(installed, last) for call in calls)}

    def otherwise(self, installed):
        """Returns the steps in which the installed release differs from most clients."""
        older = (steps for last, steps in self._until.items() if not_after(installed, last))
        return dict(collections.ChainMap(self._otherwise, *older))

    def speaks(self, protocol, installed):
        """Returns whether the installed release supports this protocol of the client."""
        return not_after(self._since.get(protocol, "0"), installed)

    def protocols_cell(self):
        """Returns its protocols, as text."""
        since = {protocol: f" (from {first})" for protocol, first in self._since.items()}
        return ", ".join(protocol + since.get(protocol, "") for protocol in self.protocols)

    def lacks_cell(self):
        """Returns the calls that it lacks, as text."""
        return ", ".join([*self._lacks, *(f"{', '.join(calls)} (until {last.rpartition('git')[2]})" for last, calls in self._lacked.items())])


def not_after(version, last):
    """Returns whether a version is this one or an earlier one."""
    numbers, last_numbers = ([int(number) for number in re.findall(r"\d+", text.split("+")[0])] for text in (version, last))
    return numbers <= last_numbers


RELEASES = {"bookworm": "Debian 12", "trixie": "Debian 13"}


def python(name, package, version, protocols, program, module, **more):
    return Client(name, package, version, protocols, [*PYTHON, program], [*PYTHON, "-c", f"import {module}"], **more)


def php(name, version, protocols, program, extension, **more):
    look = ["php", "-r", f"exit(extension_loaded('{extension}') ? 0 : 1);"]
    return Client(name, name, version, protocols, ["php", program], look, **more)


def perl(name, version, protocols, program, **more):
    package = f"lib{name.lower().replace('::', '-')}-perl"
    return Client(name, package, version, protocols, ["perl", program], ["perl", f"-M{name}", "-e", "1"], **more)


def node(name, version, protocols, program, **more):
    look = ["node", "-e", f"require('{name}')"]
    return Client(f"{name} (Node)", f"npm {name}", version, protocols, ["node", program], look, **more)


TEXT, BINARY, BOTH = ("text",), ("binary",), ("text", "binary")
STORING = ("set", "add", "append", "prepend", "cas")
READING = ("get", "gets", "multi")
ALL = STORING + READING + ("incr", "touch", "delete")
GOPATH = "/usr/share/gocode"
CLIENTS = [
    python("pymemcache", "python3-pymemcache", ("3.5.2", "4.0.0"), TEXT, "pymemcache_client.py", "pymemcache"),
    # libmemcached treats an error of a get as a miss.
    python("pylibmc", "python3-pylibmc", "1.6.3", BOTH, "pylibmc_client.py", "pylibmc", silent=READING),
    python("python-memcache", "python3-memcache", ("1.59", "1.62"), TEXT, "python_memcache.py", "memcache",
           silent=STORING + READING + ("touch", "delete"),
           # It ignores whether delete found the item.
           until={"1.59": {"delete absent": "yes", "delete tag-absent": "yes"}}),
    python("bmemcached", "python3-binary-memcached", ("0.31.1+dfsg1", "0.31.2+dfsg1"), BINARY, "bmemcached_client.py", "bmemcached",
           lacks=("append", "prepend", "touch"), sets="compress_level=0", packed=True,
           # It creates a missing number, and ignores whether delete found the item. An item that is not stored is an error.
           otherwise={"incr missing 1": "0", "delete absent": "yes", "delete tag-absent": "yes", "set q|sismember|topic-1 'eve'": REFUSED}),
    php("php-memcached", ("3.2.0+2.2.0", "3.3.0"), BOTH, "php_memcached.php", "memcached", silent=READING,
        # libmemcached does not support this status of the binary protocol.
        sets="OPT_COMPRESSION, false", packed=True),
    php("php-memcache", ("8.0+4.0.5.2+3.0.9~20170802.e702b5f9+", "8.2"), BOTH, "php_memcache.php", "memcache", lacks=("touch",),
        sets="setCompressThreshold(0)", packed=True, silent=("binary: get",),
        # In the binary protocol, an item that is not stored is an error.
        otherwise={"binary: append tag-none ann": REFUSED, "binary: set q|sismember|topic-1 'eve'": REFUSED}),
    perl("Cache::Memcached", "1.30", TEXT, "cache_memcached.pl", lacks=("cas", "touch"), silent=ALL,
         # It waits for an END after the error, and then reports a miss.
         waits=("get q|sadd|topic-1", "get q|nonsense|topic-1")),
    perl("Cache::Memcached::Fast", "0.28", TEXT, "cache_memcached_fast.pl", silent=ALL),
    perl("Cache::Memcached::libmemcached", "0.04001", BOTH, "cache_memcached_libmemcached.pl", lacks=("cas", "touch"), silent=ALL),
    Client("Dalli (Ruby)", "ruby-dalli", ("3.0.6", "3.2.8"), ("binary", "meta"), ["ruby", "dalli_client.rb"],
           ["ruby", "-rdalli", "-e", "1"], since={"meta": "3.2.0"}, sets="raw: true, compress: false", packed=True),
    node("memjs", "1.3.2", BINARY, "memjs_client.js", lacks=("multi", "cas"),
         # It creates a missing number, its prepend is an append, and an append to a missing item is an error.
         otherwise={"incr missing 1": "0", "get d": "<onexy>", "get tag-pend": "<ann,bob,cyd,>", "get feed-pend": "<1,2,0,>",
                    "append tag-none ann": REFUSED, "set q|sismember|topic-1 'eve'": REFUSED}),
    # It puts a backslash before each newline.
    node("memcached", "2.2.2", TEXT, "node_memcached.js", newlines=False),
    Client("gomemcache (Go)", "golang-github-bradfitz-gomemcache-dev", ("0.0~git20141109", "0.0~git20230611.acc6962"), TEXT, ["gomemcache_client"],
           ["sh", "-c", f"go version && test -d {GOPATH}/src/github.com/bradfitz/gomemcache"],
           lacked={"0.0~git20141109": ("append", "prepend")},
           build=("gomemcache_client.go", ["go", "build", "-o", "gomemcache_client"])),
    Client("spymemcached (Java)", "libspymemcached-java", "2.12.3+dfsg", BOTH,
           ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JAR}:{BUILD}", "SpymemcachedClient"],
           ["sh", "-c", f"javac -version && test -e {JAR}"], sets="setCompressionThreshold", packed=True,
           # incr returns only a number; in the binary protocol, get returns no error.
           silent=("incr", "binary: get"), build=("SpymemcachedClient.java", ["javac", "-cp", JAR, "-d", "."])),
    Client("libmemcached (C)", "libmemcached11", "1.1.4", BOTH, ["libmemcached_client"], ["sh", "-c", "cc --version"], silent=READING,
           build=("libmemcached_client.c", ["cc", "-O1", "-o", "libmemcached_client", "-Wl,--no-as-needed", "-lmemcached"])),
    Client("libmemcached's tools", "libmemcached-tools", "1.1.4", BOTH, [*PYTHON, "libmemcached_tools.py"], ["memccat", "--version"],
           lacks=("append", "prepend", "cas", "incr"), silent=ALL),
]


def short(version):
    """Returns the version without the suffixes of Debian and of a commit."""
    return re.sub(r"(git\d+)\..*", r"\1", version.split("+")[0])


def cell(text):
    """Returns a cell as written in the source of a page. An empty cell needs a macro that prints nothing."""
    return text.replace(" ", r"\ ").replace("-", r"\-").replace("~", r"\(ti") or r"\&"


def table(*head, clients=CLIENTS, cells):
    """Returns the lines of a table: its header, and a row with the name and the cells of each client."""
    rows = ([client.name, *cells(client)] for client in clients)
    return [f".It {' Ta '.join(f'Sy {cell(text)}' for text in head)}", *(f".It {' Ta '.join(map(cell, row))}" for row in rows)]


TABLES = (
    table("Client", "Package", cells=lambda client: [client.package]),
    table("Client", *RELEASES.values(), cells=lambda client: [short(version) for version in client.versions]),
    table("Client", "Protocols", cells=lambda client: [client.protocols_cell()]),
    table("Client", "Has no", clients=[client for client in CLIENTS if client.lacks_cell()], cells=lambda client: [client.lacks_cell()]),
    table("Client", "Needs", clients=[client for client in CLIENTS if client.sets], cells=lambda client: [client.sets]),
)
