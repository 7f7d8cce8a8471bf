"""The daemon stalls: it is stopped, or one turn of its loop takes long. No peer may time out for bytes that have arrived but were not read.

While it is stopped, the bytes of its peers arrive, and a timeout passes. If a slow machine lets the timeout pass before, the attempt
proves nothing, and is repeated.
"""
import contextlib
import os
import socket
import ssl
import time

import scripted
from case import WireTest, marks
from case_tls import TlsTest
from scripted import arrive, value_of
from harness import HOST, PATIENCE, wait_until
from stored import stat

LIMIT = 1000  # milliseconds
CONFIG = f"request_timeout = {LIMIT}\nconnect_timeout = {LIMIT}\nretry_min = 10\nretry_max = 50\n"




def sleeps(pid):
    """Returns whether all threads of a process sleep: then they wait for events, where the stop interrupts them."""
    states = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
            states.append(stat.read().rsplit(")", 1)[1].split()[0])
    return set(states) == {"S"}


class StandstillTest(WireTest):
    def stands_still(self, proxy, happens, given_up):
        """Stops the daemon until something has happened and the limit has passed. False if it had given up before."""
        wait_until("it has nothing to do", lambda: sleeps(proxy.pid))
        with proxy.process.paused():
            if given_up in proxy.process.stderr():
                return False
            happens()
            time.sleep(1.5 * LIMIT / 1000)  # The subject is time: the limit passes.
            return True

    def repeat(self, attempt):
        wait_until("the daemon is stopped in time", attempt)


class Servers(StandstillTest):
    def begin(self, *args, **kwargs):
        """A connection to a proxy that uses its server."""
        conn = self.serve([self.scripted_server()], *args, config=CONFIG, patient=False, **kwargs)
        wait_until("the server is used", lambda: conn.ask("get other") == "END")
        return conn

    @marks(smoke=True)
    def test_a_reply(self):
        self.repeat(self.reply)

    def reply(self):
        conn = self.begin()
        held = self.hold(self.servers[0], "key-1")
        held.get(conn, more=b"incr key-2 1\r\n")
        if not self.stands_still(self.proxy, held.come, "no reply in time"):
            return False
        self.assertEqual(conn.read_values()[0]["key-1"][1], value_of(b"key-1"))
        return True

    def test_a_greeting(self):
        self.repeat(self.greeting)

    def greeting(self):
        conn = self.begin()
        held = self.hold(self.servers[0], "settings")
        self.servers[0].drop_links()
        held.wait()
        if not self.stands_still(self.proxy, held.come, "no greeting in time"):
            return False
        wait_until("the server is used", lambda: conn.ask("get other") == "END")
        self.assertNotIn("no greeting in time", self.proxy.process.stderr())
        return True

    def test_calls_that_are_too_old(self):
        """Calls that are held for a new connection are not sent if the daemon was stopped for longer than the timeouts allow."""
        self.repeat(self.old_calls)

    def old_calls(self):
        conn = self.begin()
        held = self.hold(self.servers[0], "settings")
        time.sleep(1.1)  # The subject is time: only a connection that was steady for a second is renewed with its calls.
        self.servers[0].drop_links()
        held.wait()
        conn.send(b"incr key-1 1\r\n")

        def pass_():
            held.come()
            time.sleep((2 * (LIMIT + LIMIT) + 1000) / 1000)

        if not self.stands_still(self.proxy, pass_, "no greeting in time"):
            return False
        self.assertEqual(conn.line().decode(), f"SERVER_ERROR upstream {self.servers[0].name} unavailable")
        self.assertEqual(stat(conn, "stats upstream", f"{self.servers[0].name}:lost_calls"), 1)
        self.assertEqual(self.servers[0].requests_for(b"key-1"), [])
        return True

    def test_a_long_turn(self):
        """Calls are not overdue if they have only just been written. A log that is not read makes a turn as long as the test needs."""
        self.assertTrue(any(self.long_turn() for _ in range(10)), "given up each time")

    def long_turn(self):
        reader, writer, path = self.pipe()
        conn = self.begin("-v", under=["sh", "-c", f'exec "$@" 2>{path}', "sh"])
        self.servers[0].faults[b"key-1"] = scripted.one_shot(scripted.late(LIMIT / 10000))
        fill(writer)
        conn.send(b"get key-1\r\nGET / HTTP/1.1\r\n\r\n")   # the second one is logged
        time.sleep(1.5 * LIMIT / 1000)  # The turn takes longer than the timeout.
        drain(reader)
        return conn.read_values()[1] == "END"

    def pipe(self):
        """A named one, and both its ends, open as long as the test."""
        path = os.path.join(self.scratch(), "log")
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        return reader, writer, path


def fill(writer):
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * size)


def drain(reader):
    with contextlib.suppress(BlockingIOError):
        while os.read(reader, 65536):
            pass


class Handshake(StandstillTest, TlsTest):
    def test_with_a_server(self):
        self.repeat(self.handshake)

    def handshake(self):
        listener = socket.create_server((HOST, 0))
        self.addCleanup(listener.close)
        listener.settimeout(PATIENCE)
        proxy = self.setlistd([f"{HOST}:{listener.getsockname()[1]}"], config=self.verifying(CONFIG), patient=False)
        sock, _ = listener.accept()
        self.addCleanup(sock.close)
        sock.settimeout(PATIENCE)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.server_context().wrap_bio(incoming, outgoing, server_side=True)

        def answer():
            incoming.write(sock.recv(65536))
            with self.assertRaises(ssl.SSLWantReadError):
                tls.do_handshake()
            sock.sendall(outgoing.read())
            arrive(sock)
        if not self.stands_still(proxy, answer, "the TLS handshake timed out"):
            return False
        incoming.write(sock.recv(65536))
        tls.do_handshake()
        return True


class Clients(StandstillTest):
    def attempt(self, config, before, during, given_up):
        conn = self.serve([self.scripted_server()], "-v", config=config)
        conn.send(b"mn\r\n" + before)
        self.assertEqual(conn.line(), b"MN")

        def happens():
            conn.send(during)
            arrive(conn.sock)
        if not self.stands_still(self.proxy, happens, given_up):
            return False
        self.assertEqual(conn.read_values()[0]["key-1"][1], value_of(b"key-1"))
        return True

    def test_a_request_that_was_begun(self):
        self.repeat(lambda: self.attempt(f"request_read_timeout = {LIMIT}", b"get key", b"-1\r\n", "not complete in time"))

    def test_a_client_that_was_idle(self):
        self.repeat(lambda: self.attempt(f"idle_timeout = {LIMIT}", b"", b"get key-1\r\n", "it was idle"))
