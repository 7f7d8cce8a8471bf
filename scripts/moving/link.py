"""A connection to a setlistd or a memcached, on which requests are sent many at a time."""
import socket
import ssl


class Broken(Exception):
    """The peer at `address` is unreachable, or its reply is invalid."""

    def __init__(self, address, what):
        super().__init__(f"{address}: {what}")
        self.address = address


class Link:
    """A connection, opened by the constructor, with TLS over TCP if there is a context. Requests and replies are bytes. A failure raises Broken.

    `name` is the name in the certificate, if it is not the host of the address.
    """

    def __init__(self, address, login=None, context=None, patience=60, name=None):
        self.address = address
        try:
            if address.startswith("unix:"):
                self.sock = socket.socket(socket.AF_UNIX)
                self.sock.settimeout(patience)
                self.sock.connect(address[5:])
            else:
                host, _, port = address.rpartition(":")
                host = host.strip("[]")
                self.sock = socket.create_connection((host, int(port)), patience)
                self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if context:
                    self.sock = context.wrap_socket(self.sock, server_hostname=(name or host).rstrip("."))
        except (OSError, ValueError) as error:
            raise Broken(address, error) from error
        self.file = self.sock.makefile("rb", 1 << 16)
        if login:
            self.send(b"set login 0 0 %d\r\n%s\r\n" % (len(login), login))
            if self.line() != b"STORED":
                raise Broken(address, "the login was refused")

    def close(self):
        self.file.close()
        self.sock.close()

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise Broken(self.address, error) from error

    def line(self):
        try:
            line = self.file.readline()
        except OSError as error:
            raise Broken(self.address, error) from error
        if not line.endswith(b"\n"):
            raise Broken(self.address, "it closed the connection")
        return line.rstrip(b"\r\n")

    def ask(self, requests):
        """Sends requests. Returns one line for each, in order."""
        requests = list(requests)
        self.send(b"".join(request + b"\r\n" for request in requests))
        return [self.line() for _ in requests]

    def read(self, key):
        """Reads the value of a key, which is in the form of a request. False: the reply is an error."""
        reply = self.ask([b"mg %s v" % key])[0]
        if reply.startswith(b"VA "):
            try:
                self.file.read(int(reply.split(b" ")[1]) + 2)
            except OSError as error:
                raise Broken(self.address, error) from error
        return reply[:2] in (b"VA", b"EN")

    def values(self, keys):
        """Yields the value of each key, which is in the form of a request; None if it is missing."""
        self.send(b"".join(b"mg %s v\r\n" % key for key in keys))
        for _ in keys:
            reply = self.line()
            if reply.startswith(b"VA "):
                size = int(reply.split(b" ")[1])
                try:
                    value = self.file.read(size + 2)
                except OSError as error:
                    raise Broken(self.address, error) from error
                if len(value) < size + 2:
                    raise Broken(self.address, "it closed the connection")
                yield value[:size]
            elif reply == b"EN":
                yield None
            else:
                raise Broken(self.address, reply.decode("utf-8", "replace"))

    def stats(self, group=b""):
        """Returns pairs of a name and a text. A name may occur several times."""
        self.send(b"stats " + group + b"\r\n" if group else b"stats\r\n")
        found, line = [], self.line()
        while line.startswith(b"STAT "):
            _, name, text = line.split(b" ", 2)
            found.append((name.decode(), text.decode("utf-8", "replace")))
            line = self.line()
        if line != b"END":
            raise Broken(self.address, f"stats: {line.decode('utf-8', 'replace')}")
        return found


def secured(ca, certificate, verify=True):
    """Returns a TLS context: with a file of CAs, or else those of the system, and a file with a certificate and its key."""
    context = ssl.create_default_context(cafile=ca)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate)
    return context
