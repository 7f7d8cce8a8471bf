"""A relay between setlistd and one memcached, at which a test holds back what setlistd is about to change."""
import socket
import threading

from harness import HOST, PATIENCE, free_port, wait_until

READS = (b"mg", b"mn", b"me", b"get", b"gets", b"version", b"stats")


class Gate:
    """It lets everything through until close_after(n): then n more commands that are no reads, and nothing behind these.

    close_after is called while nothing is under way, and what comes until open() is commands of one line, or a first change.
    """

    def __init__(self, port):
        self.port = free_port()
        self.name = f"{HOST}:{self.port}"
        self.server = port
        self.left = None  # so many changes pass yet; None: any number
        self.lock = threading.Condition()
        self.held = False
        self.socks = []
        self.listener = socket.create_server((HOST, self.port))
        self._start(self._accept)

    def close_after(self, changes):
        with self.lock:
            self.left, self.held = changes, False

    def open(self):
        with self.lock:
            self.left = None
            self.lock.notify_all()

    def wait_held(self):
        wait_until("a change is held back", lambda: self.held)

    def stop(self):
        self.open()
        self.listener.shutdown(socket.SHUT_RDWR)
        for sock in self.socks:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other side was first

    @staticmethod
    def _start(work, *args):
        threading.Thread(target=work, args=args, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((HOST, self.server), PATIENCE)
            far.settimeout(None)
            self.socks += [near, far]
            self._start(self._relay, near, far, self._pass)
            self._start(self._relay, far, near, lambda data: None)

    @staticmethod
    def _relay(source, target, look):
        try:
            while data := source.recv(1 << 16):
                look(data)
                target.sendall(data)
        except OSError:
            pass
        for sock in (source, target):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _pass(self, data):
        """Waits where one of these commands is a change that may not pass. setlistd sends a change when it has read what it needs."""
        with self.lock:
            if self.left is None or all(line.split(b" ")[0] in READS for line in data.splitlines() if line):
                return
            if self.left > 0:
                self.left -= 1
                return
            self.held = True
            self.lock.wait_for(lambda: self.left is None)
