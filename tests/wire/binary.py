"""memcached's binary protocol: requests to bytes, and a connection that reads responses."""
import struct
import threading
from collections import namedtuple

from wire import Conn, to_bytes

(GET, SET, ADD, REPLACE, DELETE, INCR, DECR, QUIT, FLUSH, GETQ, NOOP, VERSION, GETK, GETKQ, APPEND, PREPEND, STAT, SETQ, ADDQ,
 REPLACEQ, DELETEQ, INCRQ, DECRQ, QUITQ, FLUSHQ, APPENDQ, PREPENDQ, VERBOSITY, TOUCH, GAT, GATQ) = range(0x1f)
SASL_LIST, SASL_AUTH, SASL_STEP, GATK, GATKQ = range(0x20, 0x25)
NO_INITIAL = 0xffffffff

Response = namedtuple("Response", "opcode status opaque cas extras key value")


def packet(opcode, key=b"", extras=b"", value=b"", cas=0, opaque=0, body=None, magic=0x80):
    """Returns a request. `body` is a body length to claim instead of the correct one."""
    key = to_bytes(key)
    size = len(extras) + len(key) + len(value) if body is None else body
    return struct.pack(">BBHBBHIIQ", magic, opcode, len(key), len(extras), 0, 0, size, opaque, cas) + extras + key + value


def store(opcode, key, value, flags=0, exptime=0, **rest):
    return packet(opcode, key, struct.pack(">II", flags, exptime), value, **rest)


def count(opcode, key, delta=1, initial=0, exptime=NO_INITIAL, **rest):
    return packet(opcode, key, struct.pack(">QQI", delta, initial, exptime), **rest)


def touch(opcode, key, exptime, **rest):
    return packet(opcode, key, struct.pack(">I", exptime), **rest)


class BinaryConn(Conn):
    def take(self, size):
        while len(self.buffer) < size:
            self._fill()
        taken = bytes(self.buffer[:size])
        del self.buffer[:size]
        return taken

    def response(self):
        magic, opcode, key, extras, kind, status, body, opaque, cas = struct.unpack(">BBHBBHIIQ", self.take(24))
        if (magic, kind) != (0x81, 0) or key + extras > body:
            raise AssertionError(f"no response: magic {magic}, type {kind}, {key} + {extras} of {body} bytes")
        text = self.take(body)
        return Response(opcode, status, opaque, cas, text[:extras], text[extras:extras + key], text[extras + key:])

    def request(self, *args, **kwargs):
        """Sends a request and returns its response."""
        self.send(packet(*args, **kwargs))
        return self.response()

    def until_noop(self, opaque):
        """Returns all responses up to that of the no-op with this opaque."""
        found = []
        while not found or (found[-1].opcode, found[-1].opaque) != (NOOP, opaque):
            found.append(self.response())
        return found

    def send_cut(self, data, sizes):
        """Sends repeatedly in pieces of these sizes, while another thread reads."""
        def run():
            at = 0
            while at < len(data):
                for size in sizes:
                    self.send(data[at:at + size])
                    at += size
        thread = threading.Thread(target=run)
        thread.start()
        return thread
