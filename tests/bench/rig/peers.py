"""The measured servers: started when a row needs them, stopped by process id. No file is left behind."""
import contextlib
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds for a server to listen, or to reply, on a busy machine under valgrind
SEARCHED = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"

# memcached's own proxy: every command with a key is sent to the only server.
PROXY_CONFIG = """\
function mcp_config_pools()
    return mcp.pool({{ mcp.backend("only", "127.0.0.1", {port}) }})
end

function mcp_config_routes(pool)
    local generator = mcp.funcgen_new()
    local handle = generator:new_handle(pool)
    generator:ready({{ n = "forward", f = function(context)
        return function(request)
            return context:enqueue_and_wait(request, handle)
        end
    end }})
    mcp.attach(mcp.CMD_ANY_STORAGE, generator)
end
"""

NUTCRACKER_CONFIG = """\
pool:
  listen: {listen}
  distribution: ketama
  hash: md5
  redis: {redis}
  preconnect: true
  auto_eject_hosts: false
  backlog: 1024
  servers:
{servers}
"""

NO_CACHE = "cache_memory = 0\n"
COPIES = 'collection "" { copies = 2 only = true }\n'
FRESH = 'item "" { fresh_for = 100 }\ncollection "" { fresh_for = 100 }\n'

# The servers that store data, and the command that drops it.
STORES = (*((name, "flush_all", "OK") for name in ("memcached", "memcached-unix", "memcached-x5", "memcached-x20",
                                                     "memcached-x100")),
          ("redis", "FLUSHALL", "+OK"), ("valkey", "FLUSHALL", "+OK"))


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Missing(Exception):
    """A server that is not available here, with the reason as text."""


class Failed(Exception):
    """An unexpected failure."""


class Server:
    """A server, on a Unix socket if it has a path. If it is a proxy, `behind` is the server that it forwards to; `others` are
    further servers of the same kind."""

    def __init__(self, name, proto, port, process, behind=None, tls=False, path=None):
        self.name, self.proto, self.port, self.process, self.behind = name, proto, port, process, behind
        self.tls, self.path = tls, path
        self.others = []

    def all(self):
        """Returns this server and `others`."""
        return [self, *self.others]

    def ports(self):
        return [one.port for one in self.all()]

    def pids(self):
        """Returns the ids of all processes that do the work: the server under test and its `others` first."""
        beside = [other.process.pid for other in self.others]
        return [self.process.pid] + beside + (self.behind.pids() if self.behind else [])

    def counts(self):
        """Returns how many of pids() are the server under test, how many those behind it, and so on."""
        return [1 + len(self.others)] + (self.behind.counts() if self.behind else [])

    def ask(self, line):
        """Returns the first line of the reply to a line."""
        with connect(self.path or self.port) as conn:
            conn.sendall(line.encode() + b"\r\n")
            with conn.makefile("rb") as replies:
                return replies.readline().rstrip(b"\r\n").decode("latin-1")

    def rss_kb(self):
        return self._memory("VmRSS")

    def peak_kb(self):
        """Returns the peak resident memory."""
        return self._memory("VmHWM")

    def _memory(self, name):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            found = re.search(rf"^{name}:\s*(\d+)", file.read(), re.M)
        return int(found[1]) if found else 0


def raise_descriptors(wanted):
    """Raises the limit of open files, also for child processes. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limits in ((max(wanted, soft), max(wanted, hard)), (hard, hard)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            break
        except (OSError, ValueError):
            continue
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def find_program(name):
    path = shutil.which(name, path=SEARCHED)
    if path is None:
        raise Missing(f"{name} is not installed")
    return path


def first_number(*command):
    """Returns the version that a program prints."""
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?", shown.stdout + shown.stderr)
    return found[0] if found else "unknown"


class Lab:
    """All servers of one run."""

    def __init__(self, setlistd, threads=1, proxy=None):
        self.setlistd, self.threads, self.proxy = setlistd, threads, proxy
        self.servers, self.missing, self.versions = {}, {}, {}
        self.processes, self.ports = [], set()
        self.work = None
        self.hurry = False   # a start does not wait for the process to listen
        self.started = None  # start time of the last process

    def __enter__(self):
        self.work = tempfile.mkdtemp(prefix="bench-")
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            self._end(process)
        shutil.rmtree(self.work, ignore_errors=True)

    def get(self, name):
        """Returns the server with that name, which is started if necessary; None if it is not available, which is printed once."""
        if name not in self.servers and name not in self.missing:
            try:
                self.servers[name] = self._start(name)
            except Missing as why:
                self.missing[name] = str(why)
                say(f"skipped: {name}: {why}")
        return self.servers.get(name)

    def drop_data(self):
        for name, line, answer in STORES:
            server = self.servers.get(name)
            for one in server.all() if server else ():
                if one.ask(line) != answer:
                    raise Failed(f"{name} does not drop its data")

    def fresh_setlistd(self, config="", behind=None):
        """Returns another setlistd for one measurement; end it with stop()."""
        return self._start_setlistd("setlistd-fresh", 1, config, behind)

    def configured_setlistd(self, path):
        """Returns a setlistd whose servers are those of a configuration file."""
        port = self._free_port()
        process = self._run(os.path.basename(path), port, [self.setlistd, "-p", str(port), "-f", path])
        return Server("setlistd-configured", "memcache", port, process)

    def fresh_memcached(self):
        """The same of memcached."""
        return self._start_memcached("memcached-fresh")

    def counted_setlistd(self, clock, tls):
        """Returns a setlistd under callgrind, with the given clock and a memcached of its own; and the path of the counts."""
        behind = self._start_memcached("memcached-counted", "-R", "1000", path=self._socket("memcached-counted"))
        config = "sandbox = false\n"
        if tls:
            config += 'tls_certificate = "%s"\ntls_key = "%s"\n' % self._certificate()
        path, port = None if tls else self._socket("setlistd-counted"), self._free_port()
        listens = ["-l", "tls:127.0.0.1", "-p", str(port)] if tls else ["-p", "0", "-s", path]
        counts = os.path.join(self.work, "counts")
        process = self._run("setlistd-counted", path or port, [
            "env", f"LD_PRELOAD={clock}", find_program("valgrind"), "-q", "--tool=callgrind", f"--callgrind-out-file={counts}",
            self.setlistd, "-S", "unix:" + behind.path, "-t", "1", *listens, "-f", self._write("counted.conf", config)])
        return Server("setlistd-counted", "memcache", port, process, behind, tls, path), counts

    def start_another(self, name):
        """Returns another proxy with that name, which may not listen yet, and its start time; end it with stop()."""
        self.hurry = True
        try:
            return self._start(name), self.started
        finally:
            self.hurry = False

    def stop(self, server):
        server.process.terminate()
        self._end(server.process)
        self.processes.remove(server.process)

    @contextlib.contextmanager
    def ending(self, server, conns=()):
        """Stops the server after the block, and first the servers that are connected to it by then."""
        try:
            yield
        finally:
            for conn in conns:
                conn.close()
            self.stop(server)

    # --- one function for each kind of server

    def _start(self, name):
        kind, _, number = name.rpartition("-")
        if kind == "memcached" and re.fullmatch(r"x\d+", number):
            return self._several(int(number[1:]), lambda: self._start_memcached(name))
        if re.fullmatch(r"s\d+", number):
            pool = f"memcached-x{number[1:]}"
            return self._start_nutcracker(name, pool) if kind == "nutcracker" else self._start_setlistd(
                name, self.threads, {"setlistd-nocache": NO_CACHE, "setlistd-copies": COPIES}.get(kind, ""), self._needed(pool))
        return {
            "memcached": lambda: self._start_memcached(name),
            "memcached-unix": lambda: self._start_memcached(name, path=self._socket(name)),
            "memcached-proxy": self._start_proxy,
            "memcached-tls": lambda: self._start_memcached(
                name, "-Z", "-o", "ssl_chain_cert=%s,ssl_key=%s" % self._certificate(), tls=True),
            "redis": lambda: self._start_redis(name),
            "valkey": lambda: self._start_redis(name),
            "redis-unix": lambda: self._on_socket(name),
            "nutcracker": lambda: self._start_nutcracker(name, "memcached"),
            "nutcracker+redis": lambda: self._start_nutcracker(name, "redis"),
            "nutcracker-unix": lambda: self._start_nutcracker(name, "memcached", self._socket(name)),
            "setlistd": lambda: self._start_setlistd(name, self.threads),
            "setlistd-t2": lambda: self._start_setlistd(name, 2),
            "setlistd-unix": lambda: self._on_socket(name),
            "setlistd-tls": lambda: self._start_setlistd(
                name, self.threads, 'tls_certificate = "%s"\ntls_key = "%s"\n' % self._certificate(), tls=True),
            "setlistd-nocache": lambda: self._start_setlistd(name, self.threads, NO_CACHE),
            "setlistd-fresh": lambda: self._start_setlistd(name, self.threads, FRESH),
            "setlistd-keys": lambda: self._start_setlistd(name, self.threads, 'commands = "q|"\n'),
            "setlistd-x20": lambda: self._several(20, lambda: self._start_setlistd(name, 1)),
        }[name]()

    @staticmethod
    def _several(count, start):
        """Returns servers that a row uses as one; the first one has the others."""
        first, *others = [start() for _ in range(count)]
        first.others = others
        return first

    def _needed(self, name):
        server = self.get(name)
        if server is None:
            raise Missing(self.missing[name])
        return server

    def _certificate(self):
        """Returns the paths of a self-signed certificate and its key."""
        paths = os.path.join(self.work, "cert.pem"), os.path.join(self.work, "key.pem")
        if not os.path.exists(paths[0]):
            command = [find_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                       "-nodes", "-subj", "/CN=bench", "-out", paths[0], "-keyout", paths[1]]
            subprocess.run(command, capture_output=True, timeout=PATIENCE, check=True)
            os.chmod(paths[1], 0o644)
            os.chmod(self.work, 0o777)
        return paths

    def _start_memcached(self, name, *options, tls=False, path=None):
        program, port = find_program("memcached"), self._free_port()
        self.versions["memcached"] = first_number(program, "--version")
        if path:
            options += ("-s", path, "-a", "0777")
        process = self._run(name, path or port, self._memcached(program, port, "-m", "1024", *options))
        return Server(name, "memcache", port, process, tls=tls, path=path)

    def _on_socket(self, name):
        """Returns a server that also listens on TCP, by its Unix socket."""
        other = self._needed(name.removesuffix("-unix"))
        return Server(name, other.proto, other.port, other.process, other.behind, path=self._socket(name))

    def _socket(self, name):
        """Returns the path of a server's Unix socket."""
        os.chmod(self.work, 0o777)  # servers may drop root privileges before they listen
        return os.path.join(self.work, name + ".socket")

    def _start_proxy(self):
        program = self.proxy or find_program("memcached")
        version = first_number(program, "--version")
        if tuple(map(int, re.findall(r"\d+", version)[:3])) < (1, 6, 23):
            raise Missing(f"memcached {version} has no proxy that we know how to use; 1.6.23 has")
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if "proxy_config" not in shown.stdout:
            raise Missing(f"memcached {version} was built without its proxy")
        behind, port = self._needed("memcached"), self._free_port()
        config = self._write("proxy.lua", PROXY_CONFIG.format(port=behind.port))
        self.versions["memcached-proxy"] = version
        process = self._run("memcached-proxy", port, self._memcached(program, port, "-o", f"proxy_config={config}"))
        return Server("memcached-proxy", "memcache", port, process, behind)

    @staticmethod
    def _memcached(program, port, *options):
        user = ["-u", "nobody"] if os.geteuid() == 0 else []
        most = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
        return [program, *user, "-t", "1", "-l", "127.0.0.1", "-U", "0", "-c", str(most), "-p", str(port), *options]

    def _start_redis(self, name):
        """Redis, or Valkey, which has the same options."""
        program, port = find_program(f"{name}-server"), self._free_port()
        self.versions[name] = first_number(program, "--version")
        process = self._run(name, port, [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "",
                                         "--appendonly", "no", "--dir", self.work, "--daemonize", "no",
                                         "--unixsocket", self._socket(f"{name}-unix")])
        return Server(name, "resp", port, process)

    def _start_nutcracker(self, name, behind, path=None):
        program, behind, port = find_program("nutcracker"), self._needed(behind), self._free_port()
        self.versions["nutcracker"] = first_number(program, "-V")
        redis = "true" if behind.proto == "resp" else "false"
        config = self._write(f"{name}.yml", NUTCRACKER_CONFIG.format(
            listen=f"{path} 0777" if path else f"127.0.0.1:{port}", redis=redis,
            servers="\n".join(f"   - 127.0.0.1:{one}:1" for one in behind.ports())))
        files = os.path.join(self.work, name)
        process = self._run(name, path or port, [program, "-c", config, "-a", "127.0.0.1", "-s", str(self._free_port()), "-v",
                                         "0", "-o", files + ".out", "-p", files + ".pid"])
        return Server(name, behind.proto, port, process, behind, path=path)

    def _start_setlistd(self, name, threads, config="", behind=None, tls=False):
        if not os.access(self.setlistd, os.X_OK):
            raise Missing(f"{self.setlistd} is not built")
        behind, port = behind or self._needed("memcached"), self._free_port()
        self.versions["setlistd"] = first_number(self.setlistd, "-V")
        command = [self.setlistd, "-l", "tls:127.0.0.1" if tls else "127.0.0.1",
                   "-p", str(port), "-S", ",".join(f"127.0.0.1:{one}" for one in behind.ports()),
                   "-t", str(threads)]
        if name == "setlistd":
            command += ["-s", self._socket("setlistd-unix")]
        if config:
            command += ["-f", self._write(f"{name}.conf", config)]
        return Server(name, "memcache", port, self._run(name, port, command), behind, tls)

    # --- processes, ports, files

    def _write(self, name, text):
        path = os.path.join(self.work, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.work, 0o777)  # servers may drop root privileges before they read it
        return path

    def _run(self, name, place, command):
        """Starts a server that listens on a port or a Unix socket, and waits until it does."""
        log = os.path.join(self.work, name + ".log")
        self.started = time.monotonic()
        with open(log, "wb") as file:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        self.processes.append(process)
        if self.hurry:
            return process
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit and process.poll() is None:
            if _listens(place):
                return process
            time.sleep(0.02)
        with open(log, encoding="utf-8", errors="replace") as file:
            raise Failed(f"{name} did not start: {file.read()[-500:].strip()}")

    @staticmethod
    def _end(process):
        try:
            process.wait(3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _free_port(self):
        """Returns a port on which no process listens, below the ephemeral ports."""
        while True:
            port = random.randrange(20000, 32000)
            if port not in self.ports and not _listens(port):
                self.ports.add(port)
                return port


def connect(place, patience=PATIENCE):
    """Connects to a port, or to the Unix socket at a path."""
    if isinstance(place, int):
        conn = socket.create_connection(("127.0.0.1", place), patience)
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return conn
    conn = socket.socket(socket.AF_UNIX)
    conn.settimeout(patience)
    try:
        conn.connect(place)
    except OSError:
        conn.close()
        raise
    return conn


def _listens(place):
    try:
        connect(place, 1).close()
        return True
    except OSError:
        return False
