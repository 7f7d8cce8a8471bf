"""Starts and ends the processes of the tests: memcached and setlistd.

All of them listen on loopback. Each process is ended by its own pid, with a time limit, and its stderr is kept, so that a
failing test can show it.
"""
import atexit
import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import processes

HOST = "127.0.0.1"
# In memory: on a disk that others write to, a write may block for longer than any limit here, and no test is about disks.
if os.access("/dev/shm", os.W_OK):
    tempfile.tempdir = "/dev/shm"
# A wait returns as soon as its condition holds. On a busy machine, a process that needs a millisecond of CPU time may be delayed by
# seconds; a minute has been observed. The limits only end a test that hangs.
PATIENCE = 120.0
# Limits for programs. The longer one is for programs that compile, install, run a test suite, or work for seconds.
PROGRAM_LIMIT = PATIENCE
BUILD_LIMIT = 300.0
# Options of setlistd that a test has not set: a server that is only slow must not fail.
PATIENT = {"connect_timeout": 60000, "request_timeout": 60000}
EVENLY = "thread_load = 0"  # of setlistd: each thread has clients, however few requests they send
SANITIZER_MARKS = ("Sanitizer", "runtime error:")
STDERR_TAIL = 25
ESTABLISHED, LISTEN = "01", "0A"  # states in /proc/net/tcp


class Options:
    """The options of `run`: a single object, which all modules read."""
    setlistd = "./setlistd"
    direct = False
    verbose = False
    manpages = []


OPTIONS = Options()
_running = []
_claims = []


@atexit.register
def kill_leftovers():
    """Kills the process when its test is interrupted; normally a test ends its processes itself. Its ports may be used again."""
    for process in list(_running):
        process.kill()
    while _claims:
        _claims.pop().close()


def port_range():
    """The larger part of the ports that the kernel never assigns to outgoing connections: a server can be restarted on the same one."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as setting:
        first, last = map(int, setting.read().split())
    below, above = (10000, first - 1), (last + 1, 65535)
    best = below if below[1] - below[0] > above[1] - above[0] else above
    return best if best[1] - best[0] > 5000 else (10000, 32767)


def claim(port):
    """Returns whether the port is reserved for this test, among all tests that run on this machine at the same time.

    The reservation is a name in the abstract namespace of Unix sockets. It ends with this process.
    """
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0setlistd-wire-{port}")
    except OSError:
        mark.close()
        return False
    _claims.append(mark)
    return True


def free_port():
    """Returns a port on which no process listens, and that no other test uses."""
    span = port_range()
    for _ in range(1000):
        port = random.randint(*span)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if claim(port):
            return port
    raise RuntimeError("no free port found")


def wait_until(what, check, limit=PATIENCE, pause=0.005):
    """Calls check() until it is true. Fails with `what` after the limit, in seconds."""
    end = time.monotonic() + limit
    while True:
        late = time.monotonic() >= end
        result = check()
        if result:
            return result
        if late:
            raise AssertionError(f"{what}: not within {limit} s")
        time.sleep(pause)


def family_of(address):
    """Opens a connection to (host, port) or to the path of a Unix socket."""
    if isinstance(address, str):
        return socket.AF_UNIX
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def accepts(address):
    """Returns whether (host, port) or a Unix socket's path accepts connections."""
    with socket.socket(family_of(address)) as probe:
        probe.settimeout(PATIENCE)
        try:
            probe.connect(address)
            return True
        except OSError:
            return False


def tcp_rows():
    """Yields the fields of each IPv4 socket in /proc/net/tcp: the second is the local address, the fourth the state, the fifth the queue
    sizes."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return [line.split() for line in table.readlines()[1:]]


def tcp_sockets(state):
    """Returns (hexadecimal address, port) of the local end of each IPv4 socket in that state."""
    return [(row[1].split(":")[0], int(row[1].split(":")[1], 16)) for row in tcp_rows() if row[3] == state]


def backlog(sock):
    """Returns (unsent bytes, bytes that the other process has received and not read) of a connection within this host; None if it is broken."""
    try:
        near, far = sock.getsockname()[1], sock.getpeername()[1]
    except OSError:
        return None
    found = {tuple(int(end.split(":")[1], 16) for end in row[1:3]): [int(size, 16) for size in row[4].split(":")]
             for row in tcp_rows() if row[3] == ESTABLISHED}
    return (found[near, far][0], found[far, near][1]) if {(near, far), (far, near)} <= set(found) else None


class Process:
    """A child process whose stderr goes to a temporary file."""

    def __init__(self, name, argv, pass_fds=()):
        self.name, self.argv = name, argv
        self.scratch = tempfile.mkdtemp(prefix="setlistd-wire-")
        self.stderr_path = os.path.join(self.scratch, "stderr")
        with open(self.stderr_path, "wb") as err:
            self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=err, stderr=err, pass_fds=pass_fds)
        _running.append(self)

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child.poll() is None

    def stderr(self):
        try:
            with open(self.stderr_path, encoding="utf-8", errors="replace") as err:
                return err.read()
        except FileNotFoundError:
            return ""

    def describe(self):
        """Returns the last lines of stderr, for the report of a failure."""
        lines = self.stderr().splitlines()[-STDERR_TAIL:]
        state = "running" if self.alive() else f"exit status {self.child.returncode}"
        return "\n".join([f"--- {self.name} (pid {self.pid}, {state}): {' '.join(self.argv)}"] + lines)

    def wait_ready(self, address):
        def ready():
            if not self.alive():
                raise AssertionError(f"{self.name} ended at its start\n{self.describe()}")
            return accepts(address)
        wait_until(f"{self.name} accepts connections", ready)

    def signal(self, number):
        os.kill(self.pid, number)

    def pause(self):
        """Returns when none of its threads runs any more: on a busy machine a signal takes effect late."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self):
        self.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self):
        """Stops the process during the with block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def kill(self):
        """Kills the process. Its exit status has no meaning."""
        if self.alive():
            self.child.kill()
            self.child.wait()
        self._forget()

    def terminate(self):
        """Sends SIGTERM and returns the exit status; after the usual limit, sends SIGKILL and returns None."""
        if self.alive():
            self.child.terminate()
        try:
            return self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            return None

    def _forget(self):
        if self in _running:
            _running.remove(self)
        shutil.rmtree(self.scratch, ignore_errors=True)


def start_somewhere(start):
    """Calls start(port) with a free port; with another one if an unrelated program has taken it meanwhile."""
    for attempt in range(5):
        try:
            return start(free_port())
        except AssertionError as error:
            if attempt == 4 or "Address already in use" not in str(error):
                raise


class Memcached:
    """A real memcached, which can be killed and restarted on the same port, empty."""

    def __init__(self, *extra):
        self.extra = list(extra)
        start_somewhere(self.start)

    @property
    def name(self):
        return f"{HOST}:{self.port}"

    def start(self, port=None):
        self.port = port or self.port
        argv = ["memcached", "-l", HOST, "-p", str(self.port), "-U", "0", "-t", "1", "-m", "64"]
        if os.geteuid() == 0:
            argv += ["-u", "nobody"]
        self.process = Process("memcached", argv + self.extra)
        try:
            self.process.wait_ready((HOST, self.port))
        except AssertionError:
            self.process.kill()
            raise

    def kill(self):
        self.process.kill()

    def pause(self):
        self.process.pause()

    def resume(self):
        self.process.resume()


class Setlistd:
    """A setlistd in front of the given servers.

    config: text of a configuration file (the servers are passed with -S as well, unless the text sets them). The timeouts for
    servers are long, unless the text sets them or patient is false. `under` is a command that runs it, with the descriptors
    `pass_fds`.
    """

    def __init__(self, servers, *args, config=None, tcp=True, patient=True, under=(), pass_fds=()):
        config = config or ""
        if patient:
            config = "\n".join([f"{name} = {value}" for name, value in PATIENT.items()
                                if not re.search(rf"^{name}\b", config, re.MULTILINE)] + [config])
        start_somewhere(lambda port: self._start(port, servers, args, config, tcp, under, pass_fds))

    def _start(self, port, servers, args, config, tcp, under, pass_fds):
        self.port = port
        self.stopped = False
        argv = [*under, OPTIONS.setlistd]
        self.config_path = None
        if config:
            argv += ["-f", self._write_config(config)]
        if servers:
            argv += ["-S", ",".join(servers)]
        if tcp:
            argv += ["-p", str(self.port)]
        self.process = Process("setlistd", argv + list(args), pass_fds)
        if tcp:
            try:
                self.process.wait_ready((HOST, self.port))
            except AssertionError:
                self.discard()
                raise

    def _write_config(self, text):
        handle, self.config_path = tempfile.mkstemp(prefix="setlistd-wire-", suffix=".conf")
        os.close(handle)
        self.write_config(text + "\n")
        return self.config_path

    def write_config(self, text):
        self.config = text
        with open(self.config_path, "w", encoding="utf-8") as out:
            out.write(text)

    def configure(self, text):
        """Makes it reload a new configuration."""
        self.write_config(text)
        self.process.signal(signal.SIGHUP)

    @property
    def pid(self):
        return self.process.pid

    def status_kib(self, name):
        """Returns a size from its /proc/PID/status."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(f"{name}:"))

    def peak_mib(self):
        """Returns the peak of its memory: sampling would miss memory that is allocated and freed within one turn."""
        return self.status_kib("VmHWM") / 1024

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def stop(self):
        """Sends SIGTERM: the exit status must be 0, and no sanitizer may have reported an error. A second call does nothing."""
        if self.stopped:
            return
        self.stopped = True
        status = self.process.terminate()
        report = self.process.describe()
        noise = [mark for mark in SANITIZER_MARKS if mark in self.process.stderr()]
        self.discard()
        if status is None:
            raise AssertionError(f"setlistd did not end within {PATIENCE} s of SIGTERM\n{report}")
        if status != 0 or noise:
            raise AssertionError(f"setlistd ended with status {status}, {noise or 'no sanitizer report'}\n{report}")

    def begin_to_end(self):
        """Sends SIGTERM. On return it accepts no more connections."""
        self.process.signal(signal.SIGTERM)
        wait_until("it refuses connections", lambda: not accepts((HOST, self.port)))

    def discard(self):
        self.process.kill()
        if self.config_path and os.path.exists(self.config_path):
            os.unlink(self.config_path)


def run_program(*argv, limit=PROGRAM_LIMIT, check=False, text=True, **options):
    """Runs a program to its end. Its status must be 0 only if `check` is set. `input` is its standard input; other options are those of
    subprocess.Popen. Input and output are bytes unless `text` is set.

    If it exceeds the limit, the failure reports what this process and all its descendants are doing.
    """
    given = options.pop("input", None)
    with contextlib.ExitStack() as stack:
        # Its output goes to files. Waiting for the end of pipes was seen to block although the program had ended, and no other process had
        # them open.
        files = {name: stack.enter_context(tempfile.TemporaryFile("w+" if text else "w+b")) for name in ("stdout", "stderr")}
        # In its own session, so that all its descendants can be killed.
        options = {"stdin": subprocess.DEVNULL if given is None else subprocess.PIPE, "start_new_session": True, **files, **options}
        child = stack.enter_context(subprocess.Popen(argv, text=text, **options))
        try:
            child.communicate(given, timeout=limit)
        except BaseException as error:
            expired = isinstance(error, subprocess.TimeoutExpired)
            report = processes.report(os.getpid()) if expired else ""
            processes.kill_group(child.pid)
            if not expired:
                raise
            raise AssertionError(f"{argv} took more than {limit} s\n{report}") from None
        for file in files.values():
            file.seek(0)
        done = subprocess.CompletedProcess(argv, child.returncode, *[file.read() for file in files.values()])
    if check:
        done.check_returncode()
    return done


def setlistd(*args, under=()):
    """Runs setlistd to its end; `under` is a command that runs it."""
    return run_program(*under, OPTIONS.setlistd, *args, env=dict(os.environ, LC_ALL="C"))


def built_with_sanitizer():
    """The shadow memory of a sanitizer makes limits on RSS meaningless, so tests of memory check this first."""
    with open(OPTIONS.setlistd, "rb") as binary:
        text = binary.read()
    return b"__asan_init" in text or b"__tsan_init" in text
