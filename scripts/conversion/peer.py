"""A client's connection to a setlistd."""
import re
import socket
import time

TRIES = 8          # of a request whose connection fails, over about ten seconds
ERROR_TRIES = 5    # of a request that setlistd answers with SERVER_ERROR
NOREPLY = "noreply"
# An element in a reply, which has quotes if it needs them. It is sent back as it is.
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^ ]+')


class Failed(Exception):
    """A key cannot be copied."""


class Unknown(Failed):
    """A key cannot be copied, and it is unknown whether a write took effect."""


class Fatal(Exception):
    """No key can be copied."""


class Peer:
    """A connection to a setlistd, opened on first use. Keys and members are text, with surrogates for bytes that are not UTF-8."""

    def __init__(self, address):
        self.address, self.sock, self.file = address, None, None

    def open(self):
        if self.sock:
            return
        if self.address.startswith("unix:"):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(30)
            self.sock.connect(self.address[5:])
        else:
            host, _, port = self.address.rpartition(":")
            self.sock = socket.create_connection((host.strip("[]"), int(port)), 30)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def close(self):
        for part in (self.file, self.sock):
            if part:
                part.close()
        self.sock = self.file = None

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("closed by setlistd")
        return line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def block(self, size):
        data = self.file.read(size + 2)
        if len(data) != size + 2 or not data.endswith(b"\r\n"):
            raise ConnectionError("closed by setlistd within a reply")
        return data[:-2].decode("utf-8", "surrogateescape")

    def value(self):
        """Returns the members of the only VALUE, None if there is none, or an error line."""
        found, line = None, self.line()
        while line.startswith("VALUE "):
            text = self.block(int(line.split(" ")[3]))
            found, line = WORD.findall(text), self.line()
        return found if line == "END" else line

    def item(self):
        """Reads the reply to mg with v and c. Returns the item's CAS token and its bytes, None if it is missing, or an error line."""
        line = self.line()
        words = line.split(" ")
        if words[0] == "VA":
            return words[2][1:], self.block(int(words[1]))
        return None if words[0] == "EN" else line

    def stats(self):
        found, line = {}, self.line()
        while line.startswith("STAT "):
            _, name, text = line.split(" ", 2)
            found[name], line = text, self.line()
        return found if line == "END" else line

    def ask(self, request, read=None, repeat=True):
        """Sends a request and returns its reply. A failed request is retried, unless it must not take effect twice (`repeat`)."""
        failure, sent = None, False
        for attempt in range(TRIES):
            if attempt:
                time.sleep(min(0.05 * 2 ** attempt, 3))
            try:
                sent = False
                self.open()
                sent = True
                self.sock.sendall((request + "\r\n").encode("utf-8", "surrogateescape"))
                reply = (read or self.line)()
            except OSError as error:
                self.close()
                if sent and not repeat:
                    raise Unknown(f"{error}, outcome unknown") from error
                failure = Fatal(f"{self.address}: {error}")
                continue
            if not isinstance(reply, str) or not reply.startswith("SERVER_ERROR"):
                return reply
            failure = (Unknown if "unknown" in reply else Failed)(reply)
            if attempt + 1 >= ERROR_TRIES or not (repeat or reply.endswith(("unavailable", "busy"))):
                break
        raise failure

    def read(self, request, read=None):
        """Returns a reply that is not an error; None if the collection is missing."""
        reply = self.ask(request, read)
        if reply == "ERROR":
            raise Fatal(f"{self.address}: unknown command {request.split(' ')[0]}")
        if isinstance(reply, str) and reply.startswith("CLIENT_ERROR"):
            raise Failed(f"{request.split(' ')[0]}: {reply}")
        return None if reply == "NOT_FOUND" else reply

    def collection(self, key, is_list):
        if is_list:
            return None if self.read(f"llen {key}") is None else self.read(f"lrange {key} 0 -1", self.value) or []
        return self.read(f"smembers {key}", self.value)

    def count(self, key, is_list):
        reply = self.read(f"{'llen' if is_list else 'scard'} {key}")
        return None if reply is None else int(reply)

    def write(self, verb, key, words):
        """Adds, removes or pushes words. Returns False if the collection is missing."""
        done, push = "DELETED" if verb == "srem" else "STORED", "push" in verb
        if NOREPLY in words and not push:
            words = [NOREPLY] + [word for word in words if word != NOREPLY]
        request, read = f"{verb} {key} {' '.join(words)}", None
        if words[-1] == NOREPLY:
            # As the last word of a line it would be the option. So the option follows it, and a second command reads the result.
            look = f"lindex {key} {-1 if verb[0] == 'r' else 0}" if push else f"sismember {key} {NOREPLY}"
            good = [NOREPLY] if push else "1" if done == "STORED" else "0"
            request += f" {NOREPLY}\r\n{look}"

            def read():
                reply = self.value() if push else self.line()
                return done if reply == good else "NOT_FOUND" if reply is None else f"{look}: {reply}"
        reply = self.ask(request, read, repeat=not push)
        if reply not in (done, "NOT_FOUND"):
            raise (Unknown if read else Failed)(f"{verb}: {reply}")
        return reply == done
