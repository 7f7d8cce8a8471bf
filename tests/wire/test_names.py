"""Servers that are given by name: their addresses change, their names are not known at the start, or not any more."""
import os
import re
import threading
import time
import unittest

import scripted
from case import WireTest, marks
from dns import NameServer, command_with
from harness import ESTABLISHED, PATIENCE, start_somewhere, tcp_sockets, wait_until
from stored import stat
from wire import Conn

NAME = "mc.test"
A, B = "127.0.0.2", "127.0.0.3"
OFTEN = "dns_interval = 20\nretry_min = 1\nretry_max = 10\n"
LOST = "cannot be resolved"


def hex_address(address):
    return "".join(f"{int(part):02X}" for part in reversed(address.split(".")))


class NamesTest(WireTest):
    def setUp(self):
        folder = self.scratch()
        self.hosts_path, self.resolv_path = (os.path.join(folder, name) for name in ("hosts", "resolv.conf"))
        self.write_hosts(None)
        self.write_resolv("127.0.0.1")

    def write_hosts(self, address):
        with open(self.hosts_path, "w", encoding="ascii") as out:
            out.write("127.0.0.1 localhost\n" + (f"{address} {NAME}\n" if address else ""))

    def write_resolv(self, address):
        with open(self.resolv_path, "w", encoding="ascii") as out:
            out.write(f"search .\nnameserver {address}\n")

    def name_server(self, **names):
        try:
            server = NameServer(**names)
        except OSError as error:
            raise unittest.SkipTest(f"port 53 of the loopback interface: {error}") from error
        self.addCleanup(server.stop)
        return server

    def memcached_with(self, address, port, who):
        """A memcached with the key `who`, whose value identifies it."""
        server = self.memcached_at((address, port), "-l", address, "-p", str(port), "-U", "0")
        with Conn((address, port)) as conn:
            self.assertEqual(conn.set("who", who), "STORED")
        return server

    def pair(self):
        """Two memcached with the same port."""
        def start(port):
            self.memcached_with(A, port, b"a")
            self.memcached_with(B, port, b"b")
            return port
        return start_somewhere(start)

    def scripted_pair(self):
        """Two scripted servers with the same port, the first of which has the name."""
        former = self.scripted_server(host=A)
        self.write_hosts(A)
        return former, self.scripted_server(host=B, port=former.port)

    def move(self, new):
        """The name moves to the second one, and on return the proxy has greeted this one."""
        self.write_hosts(B)
        wait_until("the new address is greeted", lambda: new.links and new.links[0].requests)

    def follow(self, port, *args, config=OFTEN, name=NAME):
        """A setlistd for which the name may change, and a connection to it."""
        under = command_with({"/etc/hosts": self.hosts_path, "/etc/resolv.conf": self.resolv_path})
        if not under:
            self.skipTest("no right to put another file over /etc/hosts")
        proxy = self.setlistd([f"{name}:{port}"], *args, config=config, under=under)
        return proxy, self.connect(proxy)

    def follow_name_server(self, config=OFTEN):
        """The same with a name server, which resolves the name to the address of the first of a pair of memcached."""
        server, port = self.name_server(**{NAME: [A]}), self.pair()
        self.write_resolv(server.address)
        proxy, conn = self.follow(port, config=config)
        self.wait_for(conn, b"a")
        return server, proxy, conn

    def connections_to(self, address, port):
        """The connections, as listed on the server's side."""
        return tcp_sockets(ESTABLISHED).count((hex_address(address), port))

    def wait_for(self, conn, who):
        """A request before the first connection is refused."""
        def answers():
            found, end = conn.values("get who")
            return end == "END" and "who" in found and found["who"][1] == who
        wait_until(f"{who} answers", answers)

    def log_lines(self, proxy, *words):
        return [line for line in proxy.process.stderr().splitlines() if all(word in line for word in words)]


class Hosts(NamesTest):
    smoke = True

    def test_followed_without_a_failed_request(self):
        port = self.pair()
        self.write_hosts(A)
        proxy, conn = self.follow(port, "-t", "2")
        problems, done = [], threading.Event()

        def work():
            with Conn(proxy.port) as conn:
                while not done.is_set():
                    conn.send(b"get who\r\n" * 50)
                    for _ in range(50):
                        found, end = conn.read_values()
                        if end != "END" or found.get("who", (0, b""))[1] not in (b"a", b"b"):
                            problems.append((found, end))
        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for address, former, who in ((B, A, b"b"), (A, B, b"a"), (B, A, b"b")):
            self.write_hosts(address)
            self.wait_for(conn, who)
            wait_until(f"{former} is left", lambda: not self.connections_to(former, port))
        done.set()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual(problems[:3], [])
        self.assertEqual(conn.get("who"), b"b")

    def test_calls_at_the_former_address_are_answered_first(self):
        """The connection stays until then, and later requests wait: both addresses may belong to one server."""
        former, new = self.scripted_pair()
        held, early = self.hold(former, "key-held"), []

        def note(link, request):
            early.append(not held.free.is_set())
            link.send(link.answer(request))
        new.faults[b"key-next"] = note
        proxy, first = self.follow(former.port)
        second, watcher = self.connect(proxy), self.connect(proxy)
        self.assertEqual(first.get("key-1"), b"value of key-1")
        held.get(first)
        self.move(new)
        gets = stat(watcher, "stats", "cmd_get")
        second.send(b"get key-next\r\n")
        wait_until("the request is taken", lambda: stat(watcher, "stats", "cmd_get") > gets)
        held.release()
        self.assertEqual(first.read_values()[0]["key-held"][1], b"value of key-held")
        self.assertEqual(second.read_values()[0]["key-next"][1], b"value of key-next")
        self.assertEqual(early, [False], "asked of the new address before the former one had answered")
        self.assertTrue(former.link_with("key-held").closed_by_peer.wait(PATIENCE))
        self.assertEqual(first.get("key-next"), b"value of key-next")

    @marks(smoke=False)
    def test_a_former_address_that_does_not_answer(self):
        """Its calls fail after request_timeout; the others continue."""
        former, new = self.scripted_pair()
        former.faults[b"key-lost"] = scripted.silence
        proxy, first = self.follow(former.port, config=OFTEN + "request_timeout = 2000")
        second = self.connect(proxy)
        first.send(b"get key-lost\r\n")
        wait_until("the request arrives", lambda: former.requests_for("key-lost"))
        self.move(new)
        self.assertRegex(first.line(), b"^SERVER_ERROR upstream .* timed out")
        wait_until("the new address answers", lambda: second.values("get key-1")[1] == "END")
        self.assertTrue(new.requests_for("key-1"))
        self.assertTrue(former.link_with("key-lost").closed_by_peer.wait(PATIENCE))

    @marks(smoke=False)
    def test_a_former_address_that_answers_while_the_daemon_stands_still(self):
        wait_until("it is stopped in time", self.former_while_stopped)

    def former_while_stopped(self):
        former, new = self.scripted_pair()
        held = self.hold(former, "key-held")
        proxy, conn = self.follow(former.port, config=OFTEN + "request_timeout = 1000")
        held.get(conn)
        self.move(new)
        with proxy.process.paused():
            if re.search("calls? fail|no reply", proxy.process.stderr()):
                return False
            held.come()
            time.sleep(1.5)  # The subject is time: the limit passes while the daemon is stopped.
        self.assertEqual(conn.read_values()[0]["key-held"][1], b"value of key-held")
        return True

    def test_a_new_address_where_nothing_listens(self):
        """The connection stays where it is, with one line in the log, until something does."""
        port = start_somewhere(lambda port: (self.memcached_with(A, port, b"a"), port)[1])
        self.write_hosts(A)
        proxy, conn = self.follow(port, "-vv")
        self.assertEqual(conn.get("who"), b"a")
        self.write_hosts(B)
        wait_until("it is tried", lambda: self.log_lines(proxy, "warning", "keeping the connection"))
        self.assertEqual(conn.get("who"), b"a")
        self.memcached_with(B, port, b"b")
        self.wait_for(conn, b"b")
        self.assertEqual(len(self.log_lines(proxy, "warning", "upstream")), 1, proxy.process.stderr())

    def test_looked_up_for_each_connection(self):
        """Also without any check in between."""
        port, first = start_somewhere(lambda port: (port, self.memcached_with(A, port, b"a")))
        self.memcached_with(B, port, b"b")
        self.write_hosts(A)
        proxy, conn = self.follow(port, config=OFTEN.replace("dns_interval = 20", "dns_interval = 0"))
        self.assertEqual(conn.get("who"), b"a")
        self.write_hosts(B)
        first.kill()
        wait_until("the new address answers", lambda: conn.values("get who")[0].get("who", (0, b""))[1] == b"b")


class NameServers(NamesTest):
    smoke = True

    def test_followed(self):
        server, proxy, conn = self.follow_name_server()
        server.names = {NAME: [B]}
        self.wait_for(conn, b"b")
        server.names = {NAME: [A, B]}
        asked = len(server.asked)
        wait_until("it asks", lambda: len(server.asked) > asked + 10)
        self.assertEqual(conn.get("who"), b"b", "the address that it has is still one of the name's")

    def test_another_name_server(self):
        """resolv.conf changes while it runs."""
        one, _, conn = self.follow_name_server(OFTEN + "connect_timeout = 500")
        other = self.name_server(**{NAME: [B]})
        one.mute = True
        self.write_resolv(other.address)
        self.wait_for(conn, b"b")

    def test_not_known_at_the_start(self):
        """It starts nevertheless, logs this once, and uses the server as soon as the name is resolved."""
        port = self.pair()
        server = self.name_server()
        self.write_resolv(server.address)
        proxy, conn = self.follow(port)
        self.assertRegex(conn.ask("get who"), "^SERVER_ERROR upstream")
        wait_until("it tries again", lambda: len(server.asked) > 20)
        self.assertEqual(len(self.log_lines(proxy, NAME)), 1, proxy.process.stderr())
        self.assertEqual(len(self.log_lines(proxy, NAME, LOST)), 1)
        server.names = {NAME: [A]}
        wait_until("the server is there", lambda: conn.values("get who")[1] == "END")
        self.assertEqual(conn.get("who"), b"a")

    def test_known_no_more(self):
        """The connection stays, with one line in the log."""
        server, proxy, conn = self.follow_name_server()
        server.names = {}
        wait_until("it is noticed", lambda: self.log_lines(proxy, LOST))
        asked = len(server.asked)
        wait_until("it asks again", lambda: len(server.asked) > asked + 20)
        self.assertEqual(conn.get("who"), b"a")
        self.assertEqual(len(self.log_lines(proxy, NAME)), 1, proxy.process.stderr())
        server.names = {NAME: [B]}
        self.wait_for(conn, b"b")

    def test_no_answer(self):
        """A lookup that never ends delays neither requests nor the shutdown."""
        server, proxy, conn = self.follow_name_server(OFTEN + "connect_timeout = 50")
        server.mute = True
        wait_until("it waits", lambda: server.held)
        self.assertEqual(conn.get("who"), b"a")
        proxy.stop()

    @marks(smoke=False)
    def test_no_answer_is_reported(self):
        server, proxy, conn = self.follow_name_server()
        server.mute = True
        wait_until("it is noticed", lambda: self.log_lines(proxy, NAME, LOST))
        self.assertEqual(conn.get("who"), b"a")
        server.release()
        wait_until("it is over", lambda: self.log_lines(proxy, "notice", NAME, "resolved"))
