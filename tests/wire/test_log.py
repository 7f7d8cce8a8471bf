"""The log: one line for one event, a limit for each kind, journald and syslog."""
import os
import re
import select
import signal
import socket

from case import WireTest, marks
from case_tls import TlsTest
from harness import EVENLY, HOST, PATIENCE, free_port, run_program, setlistd, wait_until
from stored import stats
from wire import Conn

LINES = 100          # of a kind in ten seconds
HTTP = "it sent an HTTP request"


def lines_with(proxy, *words):
    return [line for line in proxy.process.stderr().splitlines() if all(word in line for word in words)]


class Servers(WireTest):
    smoke = True

    def connections(self, conn, server):
        return int(stats(conn, "stats upstream")[f"{server.name}:connections"])

    def fall_and_return(self, threads):
        server = self.memcached()
        proxy = self.setlistd([server], "-t", str(threads), config=f"{EVENLY}\nretry_min = 10\nretry_max = 100")
        conns = [self.connect(proxy) for _ in range(2 * threads)]
        wait_until("all are connected", lambda: self.connections(conns[0], server) == threads)
        for _ in range(3):
            server.kill()
            wait_until("all have noticed", lambda: self.connections(conns[0], server) == 0)
            for conn in conns:
                for number in range(20):
                    self.assertIn("SERVER_ERROR", conn.ask(f"get key-{number}"))
            server.start()
            wait_until("all are connected", lambda: self.connections(conns[0], server) == threads)
            for conn in conns:
                self.assertEqual(conn.set("key", b"x"), "STORED")
        self.assertEqual(len(lines_with(proxy, "warning", f"upstream {server.name}: down: ")), 3, proxy.process.stderr())
        self.assertEqual(len(lines_with(proxy, f"upstream {server.name}: up again after ")), 3, proxy.process.stderr())
        self.assertEqual(len(lines_with(proxy, "upstream")), 6, proxy.process.stderr())

    def test_one_line_each(self):
        """However many threads there are."""
        self.fall_and_return(1)
        self.fall_and_return(4)

    def test_down_from_the_start(self):
        server = self.memcached()
        server.kill()
        conn = self.serve([server], "-t", "2", config=f"{EVENLY}\nretry_min = 10\nretry_max = 100")
        self.assertIn("SERVER_ERROR", conn.ask("get key"))
        server.start()
        wait_until("all are connected", lambda: self.connections(conn, server) == 2)
        self.assertEqual(len(lines_with(self.proxy, f"upstream {server.name}: down: ")), 1, self.proxy.process.stderr())
        self.assertEqual(len(lines_with(self.proxy, f"upstream {server.name}: up again after ")), 1, self.proxy.process.stderr())


class Notices(WireTest):
    """The lines that are logged without -v."""
    smoke = True

    def test_from_start_to_end(self):
        port, folder = free_port(), self.scratch()
        first = f'servers = {{"{self.memcached().name}"}}\nlisten = {{"{HOST}:{port}", "unix:{folder}/s"}}\n'
        proxy = self.setlistd([], tcp=False, patient=False, config=first)
        proxy.process.wait_ready((HOST, port))
        wait_until("it is ready", lambda: lines_with(proxy, "notice: ready: "))
        for number, (config, changed) in enumerate((("max_keys = 7\nthread_load = 90", "thread_load, max_keys"),
                                                    ('events "E" { ttl = 5 }', "thread_load, max_keys, rules"), ('events "E" { ttl = 5 }', "no option"))):
            proxy.configure(f"{first}{config}\n")
            wait_until("it is read", lambda n=number: len(lines_with(proxy, "notice: reloaded: ring")) > n)
            self.assertRegex(lines_with(proxy, "reloading: ")[-1], f" notice: reloading: changed: {changed}$")
        proxy.process.signal(signal.SIGTERM)
        wait_until("it has stopped", lambda: lines_with(proxy, "stopped"))
        lines = [re.sub(r"^\S+ ", "", line) for line in lines_with(proxy, "notice: ")]
        self.assertRegex(lines[0], rf"^notice: setlistd \S+ started: listening on {HOST}:{port} unix:{folder}/s, servers: 1, configuration: /\S+$")
        self.assertRegex(lines[1], r"^notice: ready: ring [0-9a-f]{16} of 1 servers$")
        self.assertRegex(lines[-2], r"^notice: signal 15: draining: ")
        self.assertEqual((lines[-1], len(lines)), ("notice: stopped", 4 + 2 * 3))

    def first_served(self, proxy):
        """Returns a connection, after that of the harness is closed."""
        conn = Conn(proxy.port)
        if conn.ask("mn") == "MN":
            self.addCleanup(conn.close)
            return conn
        conn.close()
        return None

    @marks(smoke=False)
    def test_rare_ones(self):
        """One line, and a count of the others with the address of the first one."""
        proxy = self.setlistd([self.memcached()], config="max_connections = 1")
        conn = wait_until("there is a place", lambda: self.first_served(proxy))
        for text in ("PANG", "nonsense\x1b[2J", "hello"):
            self.assertEqual(conn.ask(text), "ERROR")
        for _ in range(3):
            with Conn(proxy.port) as refused:
                self.assertEqual(refused.line(), b"ERROR Too many open connections")
        proxy.process.signal(signal.SIGTERM)
        for said in ("a client was refused: max_connections is reached", "unknown command or protocol: PANG"):
            wait_until("the others are counted", lambda what=said: len(lines_with(proxy, what)) == 2)
            self.assertRegex(lines_with(proxy, said)[1], r"notice: \d+ more suppressed like: ")
        self.assertIn(" 2 more suppressed like: client ", proxy.process.stderr())


class Strangers(TlsTest):
    """Clients with a wrong password or protocol: one line a minute of each kind, with an address."""
    smoke = True

    def told(self, proxy, what):
        wait_until("it is logged", lambda: lines_with(proxy, what))
        self.assertRegex(lines_with(proxy, what)[0], rf" notice: client {HOST}:\d+: {what}")

    def test_passwords(self):
        proxy = self.setlistd([self.memcached()], config=f'auth_file = "{self.private_file("ann:secret" + chr(10))}"')
        for _ in range(3):
            with Conn(proxy.port) as conn:
                self.assertEqual(conn.set("auth", b"ann wrong"), "CLIENT_ERROR authentication failure")
        self.told(proxy, "authentication failure")
        with Conn(proxy.port) as conn:
            conn.send(b"*1\r\n$4\r\nPING\r\n")
            self.assertIn(b"CLIENT_ERROR", conn.rest())
        self.told(proxy, "refused: not authenticated")
        self.assertEqual(len(lines_with(proxy, "notice: client")), 2, proxy.process.stderr())
        self.assertNotIn("wrong", proxy.process.stderr())

    def test_a_plain_client_of_a_port_with_tls(self):
        proxy = self.setlistd_tls([self.memcached()])
        with Conn(proxy.port) as conn:
            conn.send(b"get key\r\n")
            conn.rest()
        self.told(proxy, "it does not speak TLS")

    def test_tls_on_a_plain_port(self):
        proxy = self.setlistd([self.memcached()])
        with Conn(proxy.port) as conn:
            conn.send(b"\x16\x03\x01\x02\x00")
            conn.rest()
        self.told(proxy, "unknown command or protocol")


class Clients(WireTest):
    smoke = True

    def closed_for_http(self, proxy, text, count=1):
        conns = [Conn(proxy.port) for _ in range(count)]
        for conn in conns:
            conn.send(text)
        for conn in conns:
            conn.rest()
            conn.close()

    def test_escaped_and_cut(self):
        proxy = self.setlistd([self.memcached()], "-v")
        self.closed_for_http(proxy, b"GET /\xff\x1b[2J HTTP/1.1\r\nX: " + b"y" * 100 + b"\r\n\r\n")
        line, = wait_until("the line is there", lambda: lines_with(proxy, HTTP))
        self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info: client 127\.0\.0\.1:\d+: closed: it sent an HTTP request: "
                               r"GET\\x20/\\xff\\x1b\[2J\\x20HTTP/1\.1\\x0d\\x0aX:\\x20y+\.\.\.$")

    @marks(smoke=False)
    def test_limit(self):
        """All suppressed lines are counted, at the latest at the end."""
        proxy = self.setlistd([self.memcached()], "-v")
        count = 4 * LINES
        self.closed_for_http(proxy, b"GET / HTTP/1.1\r\n\r\n", count)

        def told():
            lines = lines_with(proxy, HTTP)
            left_out = [int(re.search(r"(\d+) more suppressed like: client ", line)[1]) for line in lines
                        if "more suppressed" in line]
            return len(lines) - len(left_out), sum(left_out)
        wait_until("all are told", lambda: sum(told()) == count)
        self.assertGreaterEqual(told()[0], LINES)
        self.assertGreater(told()[1], 0)


class Unread(WireTest):
    """Standard error is a pipe that is not read."""
    smoke = True

    @staticmethod
    def fill(end):
        """Fills the pipe until it has no room for another line."""
        os.set_blocking(end, False)
        try:
            while True:
                os.write(end, b"x" * select.PIPE_BUF)
        except BlockingIOError:
            os.set_blocking(end, True)

    def test_nobody_waits(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        self.fill(write)
        conn = self.serve(1, "-t", "2", "-v", under=("sh", "-c", f'exec "$@" 2>/proc/self/fd/{write}', "sh"), pass_fds=[write],
                          config="retry_min = 1\nretry_max = 5")
        self.servers[0].kill()
        for number in range(200):
            self.assertIn("SERVER_ERROR", conn.ask(f"get key-{number}"))
            self.assertEqual(conn.ask(f"nonsense-{number}"), "ERROR")
        self.proxy.configure(self.proxy.config)
        wait_until("lines are dropped", lambda: stats(conn)["log_lines_dropped"] > "1")
        with open(read, "rb", closefd=False) as log:
            log.read(select.PIPE_BUF * 16)
            self.proxy.configure(self.proxy.config + "\n# again")
            os.set_blocking(read, False)
            wait_until("it goes on", lambda: b"log lines were dropped" in (log.read1() or b""))
        self.proxy.stop()


class Journal(WireTest):
    smoke = True

    def say(self, stream):
        """The first line about a server that is down, with JOURNAL_STREAM as given."""
        under = ("sh", "-c", f'JOURNAL_STREAM={stream} exec "$@"', "sh")
        proxy = self.setlistd(["127.0.0.1:1"], under=under)
        return wait_until("it is told", lambda: lines_with(proxy, "upstream"))[0]

    def test_journald_reads_standard_error(self):
        self.assertRegex(self.say("$(stat -L -c %d:%i /proc/self/fd/2)"), r"^<4>upstream 127\.0\.0\.1:1: down: ")

    def test_journald_reads_something_else(self):
        self.assertRegex(self.say("$(stat -L -c %d:1 /proc/self/fd/2)"), r"^\d{4}-.* warning: upstream ")


class Syslog(WireTest):
    """In a mount namespace, whose /dev is a folder of the test with a socket `log`."""
    smoke = True

    ENTER = 'mount --rbind /dev/shm "$0/shm" && mount --rbind "$0" /dev && exec "$@"'

    def setUp(self):
        self.folder = self.scratch()
        os.mkdir(os.path.join(self.folder, "shm"))
        flags = ["-m"] if os.geteuid() == 0 else ["-rm"]
        self.under = ["unshare", *flags, "sh", "-c", self.ENTER, self.folder]
        if run_program(*self.under, "true").returncode:
            self.skipTest("no mount namespace is allowed here")

    def listen(self):
        path = os.path.join(self.folder, "log")
        if os.path.exists(path):
            os.unlink(path)
        log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(log.close)
        log.bind(path)
        log.settimeout(PATIENCE)
        return log

    def line_with(self, log, words):
        while True:
            line = log.recv(4096).decode()
            if words in line:
                return line

    def test_lines(self):
        """Inside of the sandbox; and a syslog that restarts is found again."""
        log = self.listen()
        server = self.memcached()
        conn = self.serve([server], config='log = "syslog"\nretry_min = 10', under=self.under)
        self.assertEqual(conn.set("key", b"x"), "STORED")
        server.kill()
        line = self.line_with(log, f"upstream {server.name}: down: ")
        self.assertRegex(line, rf"^<28>.* setlistd\[{self.proxy.pid}\]: upstream ")
        log.close()
        log = self.listen()
        server.start()
        self.line_with(log, f"upstream {server.name}: up again after ")
        self.assertEqual(conn.set("key", b"x"), "STORED")
        self.assertEqual(lines_with(self.proxy, "upstream"), [])
        self.reload_without(self.proxy, server)

    def test_errors_of_a_reload(self):
        """They are logged like everything else."""
        log = self.listen()
        proxy = self.setlistd([self.memcached()], config='log = "syslog"', under=self.under)
        proxy.configure(proxy.config + "nonsense = 1\n")
        number = proxy.config.count("\n")
        line = self.line_with(log, f"{proxy.config_path}:{number}: ")
        self.assertRegex(line, rf"^<27>.* setlistd\[{proxy.pid}\]: {proxy.config_path}:")
        self.line_with(log, "the old one stays in effect")
        self.assertEqual(lines_with(proxy, proxy.config_path), [])

    def test_errors_at_the_start(self):
        """They are printed on standard error, where a supervisor finds them."""
        self.listen()
        for limit, config, words in ((40, "", "the limit of file descriptors is 40, but even without clients "), (1000, "nonsense", ":2: ")):
            path = self.private_file(f'log = "syslog"\n{config}\n')
            os.chmod(path, 0o644)
            done = setlistd("-S", "127.0.0.1:1", "-f", path, "-p", str(free_port()),
                            under=[*self.under, "sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh"])
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done)
            self.assertIn(words, done.stderr)

    def reload_without(self, proxy, server):
        """The next configuration may name the other place."""
        proxy.configure(proxy.config.replace('log = "syslog"', 'log = "stderr"\nverbose = 1'))
        wait_until("it is reloaded", lambda: lines_with(proxy, "reloaded: "))
        server.kill()
        wait_until("the line is there", lambda: lines_with(proxy, f"upstream {server.name}: down: "))
