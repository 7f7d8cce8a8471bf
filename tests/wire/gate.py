"""A relay between setlistd and one memcached, in which a test can delay changes by setlistd."""
import socket
import threading

from harness import HOST, PATIENCE, free_port, wait_until

READS = (b"mg", b"mn", b"me", b"get", b"gets", b"version", b"stats")


class Gate:
    """Passes everything until close_after(n): then n more commands that are not reads, and nothing after them.

    close_after is called while nothing is in flight; until open(), setlistd sends only commands of one line, or a first change.
    """

    def __init__(self, port):
        self.port = free_port()
        self.name = f"{HOST}:{self.port}"
        self.server = port
        self.left = None  # number of changes that still pass; None: any number
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
                pass  # the peer closed it first

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
        """Blocks if one of these commands is a change that may not pass. setlistd sends a change when it has read everything that it needs."""
        with self.lock:
            if self.left is None or all(line.split(b" ")[0] in READS for line in data.splitlines() if line):
                return
            if self.left > 0:
                self.left -= 1
                return
            self.held = True
            self.lock.wait_for(lambda: self.left is None)
