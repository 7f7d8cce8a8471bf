"""What the daemon holds and how long: memory, times, places and descriptors, and what it says when there are none."""
import resource
import signal

from case import WireTest
from harness import PATIENCE, built_with_sanitizer

MIB = 1 << 20


def status_kib(proxy, name):
    with open(f"/proc/{proxy.pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(f"{name}:"):
                return int(line.split()[1])
    raise AssertionError(f"no {name}")


class NoMemory(WireTest):
    def test_last_words(self):
        """The process ends, and says why."""
        if built_with_sanitizer():
            self.skipTest("a sanitizer ends the process itself")
        proxy = self.setlistd([self.memcached()])
        conn = self.connect(proxy)
        self.assertEqual(conn.ask("mn"), "MN")
        most = status_kib(proxy, "VmData") * 1024 + MIB
        resource.prlimit(proxy.pid, resource.RLIMIT_DATA, (most, most))
        try:
            conn.send(b"set k 0 0 8000000\r\n" + b"x" * 8000000 + b"\r\n")
        except OSError:
            pass
        self.assertEqual(proxy.process.child.wait(PATIENCE), -signal.SIGABRT)
        proxy.stopped = True
        self.assertRegex(proxy.process.stderr(), r"error: no memory: \d+ bytes were asked for; the process ends\n")
