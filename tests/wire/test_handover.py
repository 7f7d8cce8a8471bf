"""One setlistd takes over from another on the same port, and no request is lost. Supervisors are notified by sd_notify."""
import os
import select
import signal
import socket
import sys

from case import WireTest
from harness import HOST, PATIENCE, accepts, free_port, wait_until
from stored import stats
from witness import Load

HANDOVERS = int(os.environ.get("HANDOVERS", "5"))


class Supervisor(WireTest):
    """Starts setlistd as systemd does."""

    def setUp(self):
        self.server = self.memcached()
        self.path = os.path.join(self.scratch(), "notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(self.path)
        self.addCleanup(self.notify.close)
        self.under = ["env", f"NOTIFY_SOCKET={self.path}"]

    def told(self):
        ready, _, _ = select.select([self.notify], [], [], PATIENCE)
        self.assertTrue(ready, "nothing was said")
        return self.notify.recv(1000).decode()

    def start(self, port, config="", **kwargs):
        """A setlistd that is ready."""
        config = f'listen = {{"{HOST}:{port}"}}\n{config}'
        proxy = self.setlistd([self.server], tcp=False, config=config, **{"under": self.under, **kwargs})
        self.assertEqual(self.told(), "READY=1")
        return proxy

    def refusal(self, config, **kwargs):
        """Returns the output of a setlistd that does not start."""
        proxy = self.setlistd([self.server], tcp=False, config=config, **kwargs)
        wait_until("it exits", lambda: not proxy.process.alive())
        proxy.stopped, said = True, proxy.process.stderr()
        self.assertEqual(proxy.process.child.returncode, 1)
        proxy.discard()
        return said

    def inherit(self, listeners, count=None):
        """Returns a command that starts setlistd with these as descriptors 3 and following, as systemd does; sh becomes setlistd."""
        dups = " ".join(f"{number}<&{listener.fileno()}" for number, listener in enumerate(listeners, 3))
        line = f'exec {dups}; export LISTEN_FDS={count or len(listeners)} LISTEN_PID=$$; exec "$@"'
        return {"under": [*self.under, "bash", "-c", line, "bash"], "pass_fds": [item.fileno() for item in listeners]}

    def reload(self, proxy, config):
        proxy.configure(config)
        self.assertRegex(self.told(), r"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(self.told(), "READY=1")

    def stop(self, proxy):
        proxy.stop()
        self.assertEqual(self.told(), "STOPPING=1")

    def hand_over(self, port, start):
        """A new process takes the port from the previous one, repeatedly, and no client is affected."""
        old = start()
        with Load(port, may_close=True) as load:
            for _ in range(HANDOVERS):
                new = start()
                self.stop(old)
                old = new
                load.wait()
        self.assertEqual(load.faults, [])
        print(f"{HANDOVERS} handovers, {load.answered} replies", file=sys.stderr)


class Notify(Supervisor):
    smoke = True

    def test_states(self):
        port = free_port()
        proxy = self.start(port)
        self.assertEqual(self.connect(port).ask("mn"), "MN")
        for config in (proxy.config, "nonsense\n"):
            self.reload(proxy, config)
        self.stop(proxy)

    def test_nobody_listens(self):
        proxy = self.setlistd([self.server], under=["env", "NOTIFY_SOCKET=/no/such/socket"])
        self.assertEqual(self.connect(proxy).ask("mn"), "MN")


class Inherited(Supervisor):
    """The parent keeps the sockets: a process that is started with them serves their connections."""
    smoke = True

    def listener(self):
        listener = socket.create_server((HOST, 0), backlog=1000)
        self.addCleanup(listener.close)
        return listener

    def test_they_are_used(self):
        """Instead of the addresses of the configuration, also after a reload; the file of a Unix socket stays."""
        tcp, path, unused = self.listener(), self.path + ".socket", free_port()
        unix = socket.socket(socket.AF_UNIX)
        self.addCleanup(unix.close)
        unix.bind(path)
        self.addCleanup(os.unlink, path)
        unix.listen(100)
        early = self.connect(tcp.getsockname()[1])
        early.send(b"mn\r\n")
        proxy = self.start(unused, **self.inherit([tcp, unix]))
        self.assertEqual(early.line(), b"MN")
        self.assertEqual(self.connect(path).ask("mn"), "MN")
        self.assertFalse(accepts((HOST, unused)))
        self.reload(proxy, proxy.config)
        self.assertEqual(self.connect(tcp.getsockname()[1]).ask("mn"), "MN")
        self.stop(proxy)
        self.assertTrue(os.path.exists(path))

    def test_bad_ones(self):
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(datagram.close)
        for listeners, count, error in (([datagram], 1, "descriptor 3 of LISTEN_FDS: not a listening socket"),
                                        ([self.listener()], 2, "descriptor 4 of LISTEN_FDS: ")):
            with self.subTest(error):
                self.assertIn(error, self.refusal("", **self.inherit(listeners, count)))

    def test_for_another_process(self):
        """LISTEN_PID names who is meant."""
        port = free_port()
        under = [*self.under, "env", "LISTEN_FDS=1", "LISTEN_PID=1"]
        proxy = self.start(port, under=under)
        self.assertEqual(self.connect(port).ask("mn"), "MN")
        self.stop(proxy)

    def test_under_load(self):
        listener = self.listener()
        self.hand_over(listener.getsockname()[1], lambda: self.start(free_port(), **self.inherit([listener])))


class SamePort(Supervisor):
    """Two processes listen on one port, if both have `reuseport`."""
    alone = True
    smoke = True

    def test_only_with_reuseport(self):
        port = free_port()
        self.start(port)
        said = self.refusal(f'listen = {{"{HOST}:{port}"}}')
        self.assertIn("Address already in use; to take over from another setlistd, both need reuseport = true", said)

    def test_control(self):
        """A new process reports that it needs another path, or none, and gets one from its environment."""
        port, folder = free_port(), self.scratch()
        shared = f'reuseport = true\ncontrol = "{folder}/${{NAME}}.control"'
        self.start(port, shared, under=[*self.under, "env", "NAME=a"])
        said = self.refusal(f'listen = {{"{HOST}:{port}"}}\n{shared}', under=[*self.under, "env", "NAME=a"])
        self.assertIn(f"control: unix:{folder}/a.control: in use; a process that takes over must use another path, or none", said)
        new = self.start(port, shared, under=[*self.under, "env", "NAME=b"])
        self.assertTrue(os.path.exists(f"{folder}/b.control"))
        new.stop()

    def test_control_comes_first(self):
        """A new process without it does not listen for clients: they would lose their connections when it exits."""
        port, control = free_port(), f'control = "{self.scratch()}/control"'
        self.start(port, control)
        said = self.refusal(f'listen = {{"{HOST}:{port}"}}\n{control}')
        self.assertIn("control: unix:", said)
        self.assertNotIn(str(port), said)

    def gets_all(self, old, new, port, busy):
        """The old one lives on for a client that is busy, and is offered no connection any more."""
        old.process.signal(signal.SIGTERM)
        self.assertEqual(self.told(), "STOPPING=1")
        self.assertEqual({stats(self.connect(port), "stats")["pid"] for _ in range(20)}, {str(new.pid)})
        busy.close()
        old.stop()

    def test_a_reload_prepares_it(self):
        """For ports that are already open, including that of operators. It cannot be reverted."""
        port, admin = free_port(), f'admin = "{HOST}:{free_port()}"'
        shared = f"reuseport = true\n{admin}"
        old = self.start(port, admin)
        self.reload(old, old.config.replace(admin, shared))
        new = self.start(port, shared)
        busy = self.connect(port)
        busy.send(b"set slow 0 0 10\r\n")
        self.gets_all(old, new, port, busy)
        self.reload(new, new.config.replace(shared, admin))
        self.assertIn("reuseport stays true: ", new.process.stderr())
        self.assertEqual(stats(self.connect(port), "stats settings")["reuseport"], "1")

    def test_under_load(self):
        port = free_port()
        self.hand_over(port, lambda: self.start(port, "reuseport = true"))

    def test_the_newcomer_gets_all(self):
        """After the signal, the old process accepts no connection that the new one could accept."""
        port = free_port()
        old = self.start(port, "reuseport = true")
        busy = self.connect(port)
        busy.send(b"set slow 0 0 10\r\n")
        self.gets_all(old, self.start(port, "reuseport = true"), port, busy)
