"""A request in the three protocols of clients: text, meta and binary. Their replies are represented in the same form.

An outcome is ("value", flags, data), ("miss",), ("done",), ("not stored",), ("exists",), ("number", n) or ("error", text).
"""
import binary
from wire import Conn, to_bytes

READS = ("get", "gat")
MODES = {"set": "S", "add": "E", "replace": "R", "append": "A", "prepend": "P", "cas": "S"}
TEXT, META, BINARY = FORMS = ("text", "meta", "binary")
# Errors of the binary protocol whose text is memcached's.
TEXTS = {b"Non-numeric server-side value for incr or decr": b"cannot increment or decrement non-numeric value",
         b"Unknown command": b"ERROR",
         b"Too large.": b"object too large for cache"}


class Request:
    """number: the id of cas, or the delta of incr and decr."""

    def __init__(self, verb, key, data=b"", flags=0, exptime=0, number=0):
        self.verb, self.key, self.data = verb, to_bytes(key), to_bytes(data)
        self.flags, self.exptime, self.number = flags, exptime, number

    def named(self, old, new):
        """Returns the same request with another key."""
        return Request(self.verb, *(part.replace(to_bytes(old), to_bytes(new)) for part in (self.key, self.data)), self.flags,
                       self.exptime, self.number)

    def text(self):
        if self.verb in READS:
            time = b" %d" % self.exptime if self.verb == "gat" else b""
            return b"%ss%s %s\r\n" % (self.verb.encode(), time, self.key)
        if self.verb in MODES:
            cas = b" %d" % self.number if self.verb == "cas" else b""
            return b"%s %s %d %d %d%s\r\n%s\r\n" % (self.verb.encode(), self.key, self.flags, self.exptime, len(self.data), cas,
                                                    self.data)
        number = {"delete": b"", "touch": b" %d" % self.exptime}.get(self.verb, b" %d" % self.number)
        return b"%s %s%s\r\n" % (self.verb.encode(), self.key, number)

    def meta(self):
        if self.verb in READS:
            return b"mg %s O1 v f c s k%s\r\n" % (self.key, b" T%d" % self.exptime if self.verb == "gat" else b"")
        if self.verb == "touch":
            return b"mg %s T%d\r\n" % (self.key, self.exptime)
        if self.verb == "delete":
            return b"md %s\r\n" % self.key
        if self.verb in ("incr", "decr"):
            return b"ma %s D%d M%s v\r\n" % (self.key, self.number, self.verb[:1].encode())
        cas = b" C%d" % self.number if self.verb == "cas" else b""
        return b"ms %s %d F%d T%d M%s%s\r\n%s\r\n" % (self.key, len(self.data), self.flags, self.exptime, MODES[self.verb].encode(),
                                                      cas, self.data)

    def binary(self):
        if self.verb in ("set", "add", "replace", "cas"):
            opcode = {"add": binary.ADD, "replace": binary.REPLACE}.get(self.verb, binary.SET)
            return binary.store(opcode, self.key, self.data, self.flags, self.exptime,
                                cas=self.number if self.verb == "cas" else 0)
        if self.verb in ("append", "prepend"):
            return binary.packet(binary.APPEND if self.verb == "append" else binary.PREPEND, self.key, value=self.data)
        if self.verb in ("incr", "decr"):
            return binary.count(binary.INCR if self.verb == "incr" else binary.DECR, self.key, self.number)
        if self.verb in ("gat", "touch"):
            return binary.touch(binary.GAT if self.verb == "gat" else binary.TOUCH, self.key, self.exptime)
        return binary.packet(binary.DELETE if self.verb == "delete" else binary.GET, self.key)


class Speaker:
    """A connection in one of the protocols. `cas` is the id of the last value."""

    def __init__(self, form, port):
        self.form, self.cas = form, None
        self.conn = (binary.BinaryConn if form == BINARY else Conn)(port)

    def ask(self, request):
        self.conn.send(getattr(request, self.form)())
        return getattr(self, f"_{self.form}")(request)

    def close(self):
        self.conn.close()

    def _text(self, request):
        line = self.conn.line()
        if line.startswith(b"VALUE "):
            _, key, flags, size, cas = line.split(b" ")
            assert key == request.key, line
            self.cas, data = int(cas), self.conn.block(int(size))
            assert self.conn.line() == b"END"
            return ("value", int(flags), data)
        if line.isdigit():
            return ("number", int(line))
        words = {b"END": "miss", b"NOT_FOUND": "miss", b"NOT_STORED": "not stored", b"EXISTS": "exists"}
        words |= dict.fromkeys((b"STORED", b"DELETED", b"TOUCHED"), "done")
        return (words[line],) if line in words else error(line)

    def _meta(self, request):
        line = self.conn.line()
        code, *flags = line.split(b" ")
        if code == b"VA":
            size = int(flags[0])
            data = self.conn.block(size)
            if request.verb not in READS:
                assert len(flags) == 1, line
                return ("number", int(data))
            given = dict((flag[:1], flag[1:]) for flag in flags[1:])
            self.cas = int(given.pop(b"c"))
            value = ("value", int(given.pop(b"f")), data)
            assert given == {b"O": b"1", b"k": request.key, b"s": flags[0]} and flags[1] == b"O1", line
            return value
        words = {b"EN": "miss", b"NF": "miss", b"NS": "not stored", b"EX": "exists", b"HD": "done"}
        if code not in words:
            return error(line)
        assert flags == ([b"O1", b"k" + request.key] if request.verb in READS else []), line
        return (words[code],)

    def _binary(self, request):
        response = self.conn.response()
        if response.status == 0:
            if request.verb in ("incr", "decr"):
                return ("number", int.from_bytes(response.value, "big"))
            if request.verb not in READS:
                return ("done",)
            self.cas = response.cas
            return ("value", int.from_bytes(response.extras, "big"), response.value)
        word = {1: "miss", 2: "exists", 5: "not stored"}.get(response.status)
        if (request.verb, word) in (("add", "exists"), ("replace", "miss")):
            word = "not stored"
        return (word,) if word else error(TEXTS.get(response.value, response.value))


def error(line):
    return ("error", line.removeprefix(b"CLIENT_ERROR ").removeprefix(b"SERVER_ERROR ").decode())
