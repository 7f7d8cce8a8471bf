"""A scripted memcached, which replies correctly by itself, and incorrectly where a test asks for it.

Without a script it has an item for every key that begins with "key". The value contains the key, so that a reply to the wrong
request is detected. A test sets a fault for a key: a function that is called with (link, request) instead of the reply. Each
connection is served by its own thread. All requests are recorded for the test.
"""
import contextlib
import fcntl
import select
import socket
import struct
import termios
import threading
import time

from harness import HOST, PATIENCE, free_port, wait_until
from wire import to_bytes

STORAGE = (b"set", b"add", b"replace", b"append", b"prepend", b"cas", b"ms")
RETRIEVAL = (b"get", b"gets", b"gat", b"gats")
ANSWER_LIMIT = 900


def value_of(key):
    """Returns the value of a key, which contains the key."""
    return b"value of " + key


class Request:
    """A received command: its words, its key, its data block (None if it has none, or has not been read yet)."""

    def __init__(self, words, data=None):
        self.words, self.data = words, data
        self.verb = words[0] if words else b""
        self.keys = words[2:] if self.verb in (b"gat", b"gats") else words[1:2]
        if self.verb in (b"get", b"gets"):
            self.keys = words[1:]
        self.key = self.keys[0] if self.keys else b""


class Link:
    """The server's side of one connection from setlistd."""

    def __init__(self, server, sock):
        self.server, self.sock = server, sock
        self.buffer = bytearray()
        self.requests = []
        self.closed_by_peer = threading.Event()
        self.open = True

    # --- operations for faults

    def send(self, data):
        self.sock.sendall(data)

    def drip(self, data, pause=0.001):
        """Sends each byte by itself."""
        for index in range(len(data)):
            self.sock.sendall(data[index:index + 1])
            time.sleep(pause)

    def close(self):
        self.open = False
        for act in (lambda: self.sock.shutdown(socket.SHUT_RDWR), self.sock.close):
            with contextlib.suppress(OSError):
                act()


    def answer(self, request):
        """Returns the correct reply, as bytes."""
        return self.server.answer(request)

    # --- reading

    def fill(self):
        try:
            data = self.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.closed_by_peer.set()
            raise EOFError
        self.buffer += data

    def line(self):
        while b"\n" not in self.buffer:
            self.fill()
        end = self.buffer.index(b"\n")
        line = bytes(self.buffer[:end]).rstrip(b"\r")
        del self.buffer[:end + 1]
        return line

    def body(self, size):
        while len(self.buffer) < size + 2:
            self.fill()
        data = bytes(self.buffer[:size])
        del self.buffer[:size + 2]
        return data

    # --- serving

    def serve(self):
        try:
            if self.server.greeting:
                self.send(self.server.greeting)
            if self.server.hang_up:
                return
            while self.open:
                self.handle(self.line())
        except TimeoutError:
            pass
        except (EOFError, OSError):
            if self.open:
                self.closed_by_peer.set()
        finally:
            self.close()

    def handle(self, line):
        request = Request(line.split())
        early = self.server.header_faults.get(request.key)
        if early and request.verb in STORAGE:
            early(self, request)
        if request.verb in STORAGE and self.open:
            request.data = self.body(body_size(request))
        self.requests.append(request)
        if early and request.verb in STORAGE:
            return
        fault = self.server.faults.get(request.key)
        if fault and request.keys:
            fault(self, request)
        elif not self.server.mute:
            if self.server.delay:
                time.sleep(self.server.delay)
            self.send(self.answer(request))


def arrive(sock):
    """Waits until the peer has acknowledged all bytes."""
    wait_until("what was sent arrives", lambda: not struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0])


def body_size(request):
    return int(request.words[2 if request.verb == b"ms" else 4])


class ScriptedServer:
    def __init__(self, meta=True, version=b"1.6.18", greeting=b"", hang_up=False, mute=False, delay=0, port=None,
                 host=HOST, clock=0):
        self.meta, self.version = meta, version
        self.greeting, self.hang_up, self.mute, self.delay = greeting, hang_up, mute, delay
        self.clock = clock  # seconds by which its clock is ahead
        self.host, self.port = host, port or free_port()
        self.faults, self.header_faults = {}, {}
        self.links = []
        self.listener = None
        self.start()

    @property
    def name(self):
        return f"{self.host}:{self.port}"

    def start(self):
        self.listener = socket.create_server((self.host, self.port), backlog=64)
        self.accepting = threading.Thread(target=self._accept, args=(self.listener,), daemon=True)
        self.accepting.start()

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(ANSWER_LIMIT)
            link = Link(self, sock)
            self.links.append(link)
            threading.Thread(target=link.serve, daemon=True).start()

    def stop_listening(self):
        # shutdown wakes the accepting thread; close does not
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join()           # a connection that was just accepted is now one of the links

    def drop_links(self):
        for link in list(self.links):
            link.close()

    def stop(self):
        self.stop_listening()
        self.drop_links()

    def link_with(self, key):
        """Returns the connection on which the first request for this key arrived."""
        key = to_bytes(key)
        return next((link for link in self.links if any(key in request.keys for request in link.requests)), None)

    def requests_for(self, key):
        key = to_bytes(key)
        return [r for link in self.links for r in link.requests if key in r.keys]

    # --- correct replies

    def answer(self, request):
        verb = request.verb
        if verb == b"version":
            return b"VERSION " + self.version + b"\r\n"
        if verb == b"stats":
            return (b"STAT maxbytes 67108864\r\nSTAT item_size_max 1048576\r\nSTAT cas_enabled yes\r\nEND\r\n"
                    if request.words[1:2] == [b"settings"] else b"STAT time %d\r\nEND\r\n" % (time.time() + self.clock))
        if verb in RETRIEVAL:
            return b"".join(self.block(verb, key) for key in request.keys) + b"END\r\n"
        if self.meta and verb in (b"mn", b"mg", b"ms", b"md", b"ma", b"me"):
            return self.meta_answer(request)
        return CLASSIC.get(verb, b"ERROR\r\n")

    def block(self, verb, key):
        if not key.startswith(b"key"):
            return b""
        value = value_of(key)
        cas = b" 7" if verb in (b"gets", b"gats") else b""
        return b"VALUE %s 0 %d%s\r\n%s\r\n" % (key, len(value), cas, value)

    def meta_answer(self, request):
        if request.verb == b"mn":
            return b"MN\r\n"
        if request.verb != b"mg":
            return b"HD\r\n"
        if not request.key.startswith(b"key"):
            echoed = [self.meta_flag(flag, request, b"") for flag in request.words[2:] if flag[:1] in b"kO"]
            return b" ".join([b"EN"] + echoed) + b"\r\n"
        value = value_of(request.key)
        flags = b"".join(b" " + self.meta_flag(flag, request, value) for flag in request.words[2:]
                         if flag[:1] in b"kfctsO")
        if b"v" not in request.words[2:]:
            return b"HD%s\r\n" % flags
        return b"VA %d%s\r\n%s\r\n" % (len(value), flags, value)

    @staticmethod
    def meta_flag(flag, request, value):
        known = {b"k": b"k" + request.key, b"f": b"f0", b"c": b"c7", b"t": b"t-1", b"s": b"s%d" % len(value)}
        return known.get(flag, flag)


CLASSIC = {b"set": b"STORED\r\n", b"add": b"STORED\r\n", b"replace": b"STORED\r\n", b"append": b"STORED\r\n",
           b"prepend": b"STORED\r\n", b"cas": b"STORED\r\n", b"delete": b"DELETED\r\n", b"touch": b"TOUCHED\r\n",
           b"incr": b"5\r\n", b"decr": b"3\r\n", b"flush_all": b"OK\r\n", b"verbosity": b"OK\r\n"}


class FullBacklog:
    """A port where connections are neither accepted nor refused: the backlog of the listener is kept full."""

    def __init__(self):
        self.listener = socket.socket()
        self.port = free_port()
        self.listener.bind((HOST, self.port))
        self.listener.listen(0)
        self.fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((HOST, self.port))
            self.fillers.append(filler)
        if not select.select([], self.fillers, [], PATIENCE)[1]:
            raise AssertionError("nobody was let into the queue")

    @property
    def name(self):
        return f"{HOST}:{self.port}"

    def stop(self):
        for sock in self.fillers + [self.listener]:
            sock.close()


# --- faults: instead of the correct reply

def raw(data):
    """Sends exactly these bytes; {key} and {value} stand for the key and its correct value."""
    def fault(link, request):
        value = value_of(request.key)
        filled = data.replace(b"{key}", request.key).replace(b"{value}", value)
        link.send(filled.replace(b"{size}", b"%d" % len(value)))
    return fault


LARGE = b"x" * 1000000


def large(link, request):
    """Sends a large value instead of the correct one."""
    link.send(b"VA %d k%s f0\r\n%s\r\n" % (len(LARGE), request.key, LARGE))


def silence(link, request):
    """Never replies."""


def late(seconds):
    """Sends the correct reply too late; later requests are delayed too."""
    def fault(link, request):
        time.sleep(seconds)
        link.send(link.answer(request))
    return fault


class Held:
    """Sends the correct reply to each request for a key after the key is released; later requests are delayed too."""

    def __init__(self, server, key):
        self.key, self.asked, self.free, self.links = key.encode(), threading.Event(), threading.Event(), []
        server.faults[self.key] = self.answer

    def answer(self, link, request):
        self.asked.set()
        self.free.wait(PATIENCE)
        link.send(link.answer(request))
        self.links.append(link)

    def get(self, conn, times=1, more=b""):
        """Sends requests on the connection; on return the server has received the first of them."""
        conn.send(b"get %s\r\n" % self.key * times + more)
        self.wait()

    def wait(self):
        wait_until(f"a request for {self.key} arrives", self.asked.is_set)

    def release(self):
        self.free.set()

    def come(self):
        """Releases the key; on return the first reply has arrived."""
        self.release()
        wait_until("the answer is sent", lambda: self.links)
        arrive(self.links[0].sock)


def dripped(link, request):
    link.drip(link.answer(request))


def die(link, request):
    """Closes the connection after all replies were received: otherwise the kernel would discard those that it still buffers."""
    arrive(link.sock)
    link.close()


def gather(answers):
    """Holds back the correct reply for later."""
    def fault(link, request):
        answers.append(link.answer(request))
    return fault


def send_and_die(answers, at):
    """Sends all replies in one piece and closes the connection, once the event is set."""
    def fault(link, request):
        at.wait(PATIENCE)
        link.send(b"".join(answers))
        link.close()
    return fault


def die_after(part):
    """Sends this many bytes of the correct reply, then closes the connection."""
    def fault(link, request):
        link.send(link.answer(request)[:part])
        link.close()
    return fault


def twice(link, request):
    """Sends the correct reply twice."""
    link.send(link.answer(request) * 2)


def one_shot(fault):
    """Applies a fault only to the first request for the key."""
    state = {"done": False}

    def first_only(link, request):
        if state["done"]:
            link.send(link.answer(request))
        else:
            state["done"] = True
            fault(link, request)
    return first_only
