"""The client's side of a connection: sends bytes, reads lines and blocks, always with a time limit."""
import os
import re
import socket
import struct

from harness import HOST, PATIENCE, family_of

REPLY_LIMIT = PATIENCE
COMMANDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/protocol/commands.def")


def usage(verb):
    """Returns the error line for a request that does not have the form of its command."""
    with open(COMMANDS, encoding="ascii") as table:
        return b"CLIENT_ERROR usage: " + re.search(rf'COMMAND\(\w+, "{verb}",.* "({verb}\b[^"]*)", "', table.read())[1].encode()


class Closed(Exception):
    """The peer closed the connection."""


class Conn:
    def __init__(self, address, limit=REPLY_LIMIT):
        if isinstance(address, int):
            address = (HOST, address)
        family = family_of(address)
        self.sock = socket.socket(family)
        self.sock.settimeout(limit)
        self.sock.connect(address)
        if family != socket.AF_UNIX:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.sock.sendall(data)

    def _fill(self):
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            raise Closed(f"closed by the peer, unread: {bytes(self.buffer)!r:.200}")
        self.buffer += data

    def line(self):
        """Returns the next line without its CRLF. A line with a bare LF is returned with a mark, so that no test accepts it."""
        start = 0
        while True:
            end = self.buffer.find(b"\n", start)
            if end >= 0:
                break
            start = len(self.buffer)
            self._fill()
        raw = bytes(self.buffer[:end + 1])
        del self.buffer[:end + 1]
        return raw[:-2] if raw.endswith(b"\r\n") else raw[:-1] + b"<bare LF>"

    def block(self, size):
        """Returns exactly `size` bytes, and reads the CRLF that follows them."""
        while len(self.buffer) < size + 2:
            self._fill()
        data, tail = bytes(self.buffer[:size]), bytes(self.buffer[size:size + 2])
        del self.buffer[:size + 2]
        if tail != b"\r\n":
            raise AssertionError(f"data block of {size} bytes ends with {tail!r}")
        return data

    def rest(self):
        """Returns all bytes until the peer closes the connection."""
        try:
            while True:
                self._fill()
        except Closed:
            data = bytes(self.buffer)
            self.buffer.clear()
            return data

    def ask(self, command):
        """Sends a command (text; CRLF is appended), and returns the reply line."""
        self.send(to_bytes(command) + b"\r\n")
        return self.line().decode("utf-8", "replace")

    def values(self, command):
        """Reads the reply to a retrieval command: ({key: (flags, data[, cas])}, closing line)."""
        self.send(to_bytes(command) + b"\r\n")
        return self.read_values()

    def read_values(self):
        found = {}
        while True:
            line = self.line()
            if not line.startswith(b"VALUE "):
                return found, line.decode("utf-8", "replace")
            _, key, flags, size, *cas = line.split(b" ")
            found[key.decode()] = (int(flags), self.block(int(size)), *map(int, cas))

    def get(self, key):
        """Returns the data of the key, None for a miss. An error line raises an exception."""
        found, end = self.values(f"get {key}")
        if end != "END":
            raise AssertionError(f"get {key}: {end}")
        return found[key][1] if key in found else None

    def set(self, key, data, flags=0, exptime=0):
        self.send(b"set %s %d %d %d\r\n%s\r\n" % (to_bytes(key), flags, exptime, len(data), data))
        return self.line().decode()

    def lines_until(self, last):
        """Returns the lines up to and including `last`."""
        lines = []
        while not lines or lines[-1] != last:
            lines.append(self.line().decode("utf-8", "replace"))
        return lines

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """Closes the connection with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


def to_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def small_windows(port):
    """Opens a connection whose receive buffer in the kernel is as small as possible."""
    sock = socket.socket()
    sock.settimeout(REPLY_LIMIT)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    sock.connect((HOST, port))
    return sock
