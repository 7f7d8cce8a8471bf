"""Name servers that answer late, in part or not at all, and names with several addresses."""
import os
import socket
import time
import unittest

from case import marks
from dns import command_with
from harness import HOST, PATIENCE, run_program, setlistd, start_somewhere, wait_until
from stored import stat, stats
from test_names import NAME, OFTEN, A, B, NamesTest
from wire import Conn

C = "127.0.0.4"
QUICK = "dns_interval = 20\nretry_min = 1\nretry_max = 10\nconnect_timeout = 50\n"
POD = "memcached-0.memcached"
CLUSTER = "ns.svc.cluster.local svc.cluster.local cluster.local example.com"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


class ResolverTest(NamesTest):
    def under(self):
        under = command_with({"/etc/hosts": self.hosts_path, "/etc/resolv.conf": self.resolv_path})
        if not under:
            self.skipTest("no right to put another file over /etc/hosts")
        return under

    def write_pod(self, server):
        """The resolv.conf of a pod."""
        with open(self.resolv_path, "w", encoding="ascii") as out:
            out.write(f"search {CLUSTER}\noptions ndots:5\nnameserver {server.address}\n")

    def serve_names(self, **names):
        server = self.name_server(**names)
        self.write_resolv(server.address)
        return server

    def at(self, address, who=b"a"):
        """A memcached at this address; returns its port."""
        return start_somewhere(lambda port: (self.memcached_with(address, port, who), port)[1])

    def several(self, *addresses):
        """A memcached at each address, all with one port, which is returned."""
        return start_somewhere(lambda port: [self.memcached_with(one, port, one.encode()) for one in addresses] and port)

    def start(self, port, *args, config=QUICK, name=NAME):
        proxy = self.setlistd([f"{name}:{port}"], *args, config=config, patient=False, under=self.under())
        return proxy, self.connect(proxy)

    def run_once(self, *args):
        return setlistd(*args, under=self.under())

    def server_names(self, conn):
        """In the order of the ring."""
        return [name.rpartition(":")[0] for name in stats(conn, "stats upstream") if name.endswith(":state")]

    def reasons(self, conn):
        """Why servers are down."""
        return [text for name, text in stats(conn, "stats upstream").items() if name.endswith(":why")]


class Answers(ResolverTest):
    """A server is up as soon as one address is there."""
    smoke = True

    def test_a_pod_whose_outer_names_are_not_answered(self):
        inner = f"{POD}.ns.svc.cluster.local"
        server = self.name_server(**{inner: [A]})
        server.answers = lambda name, kind: name.endswith("cluster.local")
        self.write_pod(server)
        proxy, conn = self.start(self.at(A), name=POD, config="")
        self.wait_for(conn, b"a")
        self.assertGreater(server.count(inner, "AAAA"), 0)
        self.assertEqual(self.log_lines(proxy, "warning", POD), [])

    def test_aaaa_is_never_answered(self):
        server = self.serve_names(**{NAME: [A]})
        server.answers = lambda name, kind: kind == "A"
        _, conn = self.start(self.at(A))
        self.wait_for(conn, b"a")

    @unittest.skipUnless(has_ipv6(), "no IPv6")
    def test_a_is_never_answered(self):
        server = self.serve_names(**{NAME: ["::1"]})
        server.answers = lambda name, kind: kind == "AAAA"
        _, conn = self.start(self.at("::1"))
        self.wait_for(conn, b"a")

    @marks(smoke=False)
    def test_a_late_answer(self):
        """The log and the statistics report the name as unresolved. The server is up when the reply arrives, not with the next retry."""
        server = self.serve_names(**{NAME: [A]})
        server.mute = True
        proxy, conn = self.start(self.at(A), "-t", "2", config="connect_timeout = 50\nretry_min = 60000\nretry_max = 600000\n")
        wait_until("it is reported", lambda: self.log_lines(proxy, "warning", NAME, "its name cannot be resolved: no answer yet"))
        self.assertEqual(self.reasons(conn), ["its name cannot be resolved: no answer yet"])
        server.release()
        self.wait_for(conn, b"a")

    def test_truncated(self):
        server = self.serve_names(**{NAME: [A]})
        server.truncate = True
        _, conn = self.start(self.at(A))
        self.wait_for(conn, b"a")
        self.assertIn((NAME, "A"), server.asked_by_tcp)

    def test_known_to_hosts_alone(self):
        """A name in the file is never sent to a name server, and a dead one has no effect."""
        server = self.serve_names()
        server.mute = True
        self.write_hosts(A)
        _, conn = self.start(self.at(A))
        self.wait_for(conn, b"a")
        self.assertEqual(server.count(NAME, "A"), 0)

    @unittest.skipUnless(has_ipv6(), "no IPv6")
    def test_one_address_of_each_family_is_one_server(self):
        """It need not listen on both."""
        for listening, other in ((A, "::1"), ("::1", A)):
            with self.subTest(listening=listening):
                self.serve_names(**{NAME: [listening, other]})
                _, conn = self.start(self.at(listening))
                self.wait_for(conn, b"a")

    @unittest.skipUnless(has_ipv6(), "no IPv6")
    def test_another_name_of_the_search_list_is_another_server(self):
        """The IPv6 address of a wildcard in an outer domain is not that of the name that has the IPv4 address."""
        server = self.name_server(**{f"{POD}.ns.svc.cluster.local": [A], f"{POD}.example.com": ["::1"]})
        self.write_pod(server)
        port = self.at("::1", b"stranger")
        proxy, conn = self.start(port, name=POD)
        wait_until("both are answered", lambda: server.count(f"{POD}.example.com", "AAAA") > 3)
        self.assertRegex(conn.ask("get who"), "^SERVER_ERROR", proxy.process.stderr())

    def test_failing_lookups_leave_the_address_in_use(self):
        server = self.serve_names(**{NAME: [A]})
        port = start_somewhere(lambda port: (setattr(self, "first", self.memcached_with(A, port, b"a")), port)[1])
        proxy, conn = self.start(port)
        self.wait_for(conn, b"a")
        server.names = {}
        wait_until("it is noticed", lambda: self.log_lines(proxy, "warning", NAME, "cannot be resolved"))
        self.first.kill()
        wait_until("it is down", lambda: self.log_lines(proxy, "down:"))
        self.memcached_with(A, port, b"again")
        self.wait_for(conn, b"again")

    def test_each_name_is_asked_for_once_in_an_interval(self):
        """However many servers and threads there are."""
        names = [f"mc-{i}.test" for i in range(10)]
        server = self.name_server(**{name: [A] for name in names})
        self.write_pod(server)  # With `search .` some versions of c-ares send two queries for a name without the address.
        port, interval = self.at(A), 0.1
        begin = time.monotonic()
        proxy = self.setlistd([f"{name}:{port}" for name in names], "-t", "4", config="dns_interval = 100", under=self.under())
        with Conn(proxy.port) as conn:
            self.assertEqual(conn.set("key", b"1"), "STORED")
        wait_until("each is asked for", lambda: all(server.count(name) > 10 for name in names))
        most = (time.monotonic() - begin) / interval + 2
        self.assertLessEqual(max(server.count(name, kind) for name in names for kind in ("A", "AAAA")), most)


class SeveralAddresses(ResolverTest):
    smoke = True

    def test_refused_at_the_start(self):
        self.serve_names(**{NAME: [A, B, A]})
        path = os.path.join(self.scratch(), "conf")
        for servers in (f'servers = {{"127.0.0.1:1",\n "{NAME}:7"}}', f'servers = {{\n"--SERVER={NAME}:7"}}'):
            with open(path, "w", encoding="ascii") as out:
                out.write(servers + "\n")
            for args in (["-f", path], ["-T", "-f", path]):
                self.assert_refused(self.run_once(*args), f'{path}:2: servers: "{NAME}:7": the name has 2 addresses ({A} {B})',
                                    "`dns:`")
        self.assert_refused(self.run_once("-S", f"{NAME}:7"), f'servers: "{NAME}:7": the name has 2 addresses')

    def test_reported_while_it_runs(self):
        """All threads keep the address that was the only one, also for new connections."""
        server = self.serve_names(**{NAME: [B]})
        port = start_somewhere(lambda port: (setattr(self, "first", self.memcached_with(B, port, b"b")), port)[1])
        self.memcached_with(A, port, b"a")
        self.memcached_with(C, port, b"c")
        proxy, conn = self.start(port, "-t", "2")
        self.wait_for(conn, b"b")
        server.names = {NAME: [A, B, C]}
        wait_until("it is reported", lambda: self.log_lines(proxy, "warning", NAME, "has 3 addresses", "dns:"))
        self.first.kill()
        wait_until("it is down", lambda: self.log_lines(proxy, "down:"))
        self.memcached_with(B, port, b"again")
        self.wait_for(conn, b"again")
        self.assertEqual(len(self.log_lines(proxy, "has 3 addresses")), 1)
        server.names = {NAME: [C]}
        self.wait_for(conn, b"c")

    def test_never_known_as_one(self):
        """It is not resolved at the start; later it has several addresses, of which none is used."""
        server = self.serve_names()
        port = self.several(A, B)
        proxy, conn = self.start(port)
        server.names = {NAME: [A, B]}
        wait_until("it is reported", lambda: self.log_lines(proxy, "warning", NAME, "has 2 addresses"))
        self.assertRegex(conn.ask("get who"), "^SERVER_ERROR")
        wait_until("it is the reason", lambda: "the name has 2 addresses" in self.reasons(conn)[0])


class Dns(ResolverTest):
    """`dns:` is a server for each address."""
    smoke = True

    def proxy_of(self, port, *args, config="", under=()):
        path = os.path.join(self.scratch(), "conf")
        self.conf = f'servers = {{"dns:{NAME}:{port}"}}\n{QUICK}{config}\n'
        with open(path, "w", encoding="ascii") as out:
            out.write(self.conf)
        proxy = self.setlistd([], *args, config=self.conf, patient=False, under=[*self.under(), *under])
        return proxy, self.connect(proxy)

    def ring(self, conn):
        return stats(conn)["ring"]

    def test_all_proxies_have_one_ring(self):
        port = self.several(A, B, C)
        server = self.serve_names(**{NAME: [C, A, B]})
        _, first = self.proxy_of(port, "-t", "2")
        server.names = {NAME: [B, C, A, B]}
        _, second = self.proxy_of(port)
        self.assertEqual(self.server_names(first), [f"{address}:{port}" for address in (A, B, C)])
        self.assertEqual(self.ring(first), self.ring(second))
        for i in range(30):
            self.assertEqual(first.ask(f"sadd set-{i} member"), "STORED")
            self.assertEqual(second.ask(f"scard set-{i}"), "1")
        listed = self.setlistd([f"{address}:{port}" for address in (A, B, C)])
        self.assertEqual(self.ring(self.connect(listed)), self.ring(first))

    def test_a_change_is_reported_and_waits_for_a_reload(self):
        port = self.several(A, B, C)
        server = self.serve_names(**{NAME: [A, B]})
        proxy, conn = self.proxy_of(port)
        before = self.ring(conn)
        self.assertEqual(stat(conn, "stats", "names_changed"), 0)
        server.names = {NAME: [C, A]}
        wait_until("it is counted", lambda: stat(conn, "stats", "names_changed") == 1)
        asked = server.count(NAME)
        wait_until("it asks again", lambda: server.count(NAME) > asked + 5)
        self.assertEqual(len(self.log_lines(proxy, "warning", NAME, f"are now {A} {C}", f"still {A} {B}")), 1,
                         proxy.process.stderr())
        self.assertEqual((self.ring(conn), self.server_names(conn)), (before, [f"{A}:{port}", f"{B}:{port}"]))
        proxy.configure(proxy.config)
        wait_until("it is reloaded", lambda: self.log_lines(proxy, "reloaded: ring"))
        wait_until("its clients have it", lambda: self.server_names(conn) == [f"{A}:{port}", f"{C}:{port}"])
        self.assertEqual(stat(conn, "stats", "names_changed"), 0)
        self.assertEqual(len(self.log_lines(proxy, "changed: servers")), 1)

    def test_a_change_back(self):
        port = self.several(A, B)
        server = self.serve_names(**{NAME: [A, B]})
        proxy, conn = self.proxy_of(port)
        server.names = {NAME: [A]}
        wait_until("it is counted", lambda: stat(conn, "stats", "names_changed") == 1)
        server.names = {NAME: [B, A]}
        wait_until("it is not any more", lambda: stat(conn, "stats", "names_changed") == 0)
        self.assertEqual(len(self.log_lines(proxy, "notice", NAME, "again")), 1)

    def test_unknown_at_the_start(self):
        self.serve_names()
        path = os.path.join(self.scratch(), "conf")
        with open(path, "w", encoding="ascii") as out:
            out.write(f'servers = {{\n"dns:{NAME}:7"}}\n')
        for args in (["-f", path], ["-T", "-f", path]):
            self.assert_refused(self.run_once(*args), f'{path}:2: servers: "dns:{NAME}:7": the addresses of the name are not known: it does not exist')
        self.assert_refused(self.run_once("-S", f"dns:{NAME}:7"), "it does not exist")
        self.assert_good(self.run_once("-T", "-S", f"{NAME}:7"))

    def test_unknown_at_a_reload(self):
        """The reload is refused."""
        port = self.several(A, B)
        server = self.serve_names(**{NAME: [A, B]})
        proxy, conn = self.proxy_of(port)
        before = self.ring(conn)
        server.names = {}
        proxy.configure(proxy.config)
        wait_until("it is refused", lambda: self.log_lines(proxy, "error", "the old one stays in effect"))
        self.assertEqual(len(self.log_lines(proxy, "error", f"dns:{NAME}:{port}", "does not exist")), 1)
        self.assertEqual(self.ring(conn), before)
        server.names = {NAME: [A]}
        proxy.configure(proxy.config)
        wait_until("it is reloaded", lambda: self.log_lines(proxy, "reloaded: ring"))

    def test_an_answer_that_is_older_than_the_reload(self):
        """It does not count: the name is looked up once more."""
        port = self.several(A, B)
        server = self.serve_names(**{NAME: [A, B]})
        path = os.path.join(self.scratch(), "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE)
            proxy, conn = self.proxy_of(port, under=["env", f"NOTIFY_SOCKET={path}"])
            before, asked = self.ring(conn), server.count(NAME)
            server.mute = True
            wait_until("it asks", lambda: server.count(NAME) > asked)
            server.names = {}
            proxy.configure(proxy.config)
            while not manager.recv(256).startswith(b"RELOADING"):
                pass
        time.sleep(0.1)  # Until the lookup of the reload. If it takes longer, this test covers less.
        server.release()
        wait_until("it is refused", lambda: self.log_lines(proxy, "error", "the old one stays in effect"))
        self.assertEqual(len(self.log_lines(proxy, "error", f"dns:{NAME}:{port}", "does not exist")), 1)
        self.assertEqual(self.ring(conn), before)

    @unittest.skipUnless(has_ipv6(), "no IPv6")
    def test_ipv6(self):
        """Counts only if the name has no IPv4 address: each server may have an address of both."""
        port = start_somewhere(lambda port: [self.memcached_with(one, port, b"x") for one in (A, "::1")] and port)
        server = self.serve_names(**{NAME: ["::1", A]})
        server.answers = lambda name, kind: kind == "A"  # That of IPv6 is not awaited.
        _, conn = self.proxy_of(port)
        self.assertEqual(self.server_names(conn), [f"{A}:{port}"])
        server.release()
        server.names = {NAME: ["::1"]}
        _, conn = self.proxy_of(port)
        self.assertEqual(self.server_names(conn), [f"[::1]:{port}"])

    def test_weights_and_other_servers(self):
        port = self.several(A, B, C)
        self.serve_names(**{NAME: [B, A]})
        servers = [f"{C}:{port}", f"dns:{NAME}:{port} weight=3"]
        one = self.connect(self.setlistd(servers, under=self.under()))
        same = [f"{C}:{port}", f"{A}:{port} weight=3", f"{B}:{port} weight=3"]
        self.assertEqual(self.ring(one), self.ring(self.connect(self.setlistd(same))))

    def test_refused(self):
        self.serve_names(**{NAME: [B, A]})
        for servers, why in ((f"dns:{NAME}:7,{A}:7", f'"{A}:7" is listed twice'),
                             (f"{A}:7,dns:{NAME}:7", f'"{A}:7" is listed twice'),
                             (f"dns:{NAME}:7,{NAME}:7", "listed twice"),
                             ("dns:10.0.0.1:7", "needs a name"), ("dns:[::1]:7", "needs a name"),
                             ("dns:unix:/tmp/x", "a Unix socket has no name"), ("dns:7", "a port without a host")):
            self.assert_refused(self.run_once("-T", "-S", servers), why)

    def test_moving_from_the_addresses_that_it_had(self):
        """former_servers supports `dns:` too."""
        port = self.several(A, B, C)
        self.serve_names(**{NAME: [A, B, C], "old.test": [B, A]})
        former = self.connect(self.setlistd([f"{A}:{port}", f"{B}:{port}"]))
        for i in range(20):
            self.assertEqual(former.ask(f"sadd set-{i} member"), "STORED")
        proxy, conn = self.proxy_of(port, config=f'former_servers = {{"dns:old.test:{port}"}}\nmove_at = "2020-01-01T00:00:00Z"')
        for i in range(20):
            self.assertEqual(conn.ask(f"scard set-{i}"), "1")
        done = self.move(proxy)
        self.assertIn("nothing is left", done)
        self.assert_refused(self.run_once("-T", "-f", self.same_pool(port)), "so no key would move")

    def same_pool(self, port):
        path = os.path.join(self.scratch(), "conf")
        with open(path, "w", encoding="ascii") as out:
            out.write(f'servers = {{"dns:old.test:{port}"}}\nformer_servers = {{"{A}:{port}", "{B}:{port}"}}\n'
                      'move_at = "2020-01-01T00:00:00Z"\n')
        return path

    def move(self, proxy):
        done = run_program("scripts/move", f"{HOST}:{proxy.port}")
        self.assertEqual(done.returncode, 0, done)
        return done.stdout
