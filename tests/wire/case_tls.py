"""Certificates, and peers with TLS: clients, memcached -Z, and a server in Python that records the handshakes."""
import contextlib
import functools
import os
import socket
import ssl
import struct
import threading
import time

from case import WireTest
from harness import HOST, PATIENCE, run_program
from wire import Conn

DAY = 24 * 60 * 60


class Authority:
    """A CA and the certificates that it signs, as PEM files in a directory. They are created by the `openssl` command.

    They comply with RFC 5280, since Python 3.13 refuses others (VERIFY_X509_STRICT).
    """

    ROOT = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign", "subjectKeyIdentifier=hash")
    EC = ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
    LEAF = ("basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature", "subjectKeyIdentifier=hash",
            "authorityKeyIdentifier=keyid")

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.ca = self.path(f"{name}.pem")
        self._sign_itself(name, self.ROOT)

    def path(self, name):
        return os.path.join(self.folder, name)

    def _run(self, *args):
        done = run_program("openssl", *args)
        if done.returncode != 0:
            raise AssertionError(f"openssl {args[0]}: {done.stderr}")

    def _key(self, name, kind=EC):
        return ["-newkey", *kind, "-nodes", "-keyout", self.path(f"{name}.key")]

    def _write(self, name, lines):
        path = self.path(name)
        with open(path, "w", encoding="ascii") as out:
            out.write("".join(f"{line}\n" for line in lines))
        return path

    def _config(self, name, extensions):
        """A configuration for `openssl req` and `openssl ca`. It overrides the system's, whose extensions differ by version."""
        return self._write(f"{name}.conf", ["[req]", "distinguished_name = subject", "prompt = no", "x509_extensions = extensions",
                                            "[subject]", f"CN = {name}", "[extensions]", *extensions,
                                            "[ca]", "default_ca = own", "[own]", f"database = {self._write(f'{name}.signed', [])}",
                                            f"new_certs_dir = {self.folder}", "default_md = sha256", "policy = any",
                                            "rand_serial = yes", "unique_subject = no", "[any]", "commonName = supplied"])

    def _sign_itself(self, name, extensions, kind=EC):
        self._run("req", "-x509", "-config", self._config(name, extensions), *self._key(name, kind), "-out", self.path(f"{name}.pem"),
                  "-days", "9")

    def sign(self, name, names=f"IP:{HOST},DNS:localhost", expired=False):
        """Returns the paths of a certificate and its key."""
        request, pem = self.path(f"{name}.csr"), self.path(f"{name}.pem")
        config = self._config(name, [*self.LEAF, f"subjectAltName={names}"])
        self._run("req", "-config", config, *self._key(name), "-out", request)
        # `openssl x509` accepts dates only since version 3.4, and a negative number of days only before it.
        first, last = time.time() - 9 * DAY, time.time() + (-DAY if expired else 9 * DAY)
        self._run("ca", "-batch", "-notext", "-config", config, "-extensions", "extensions", "-in", request, "-out", pem,
                  "-cert", self.ca, "-keyfile", self.path(f"{self.name}.key"), "-startdate", utc(first), "-enddate", utc(last))
        return pem, self.path(f"{name}.key")

    def sign_itself(self, name, extensions=LEAF, kind=EC):
        """`kind`: the kind of its key, as an argument of `openssl req -newkey`."""
        self._sign_itself(name, [*extensions, f"subjectAltName=IP:{HOST}"], kind)
        return self.path(f"{name}.pem"), self.path(f"{name}.key")


def utc(seconds):
    """Returns a time in the format of certificates."""
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(seconds))


class TlsSocket:
    """A socket with TLS, with the methods that Conn uses. Unlike Python's own, it allows one thread to read while another writes."""

    def __init__(self, sock, context, session=None):
        self.sock = sock
        self.lock = threading.Lock()
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=HOST, session=session)
        self.sent = 0           # bytes of records
        self.received = bytearray()
        self.announced = False  # the peer sent a close_notify
        while not self._try(self.tls.do_handshake):
            self._flush()
            self._receive()
        self._flush()

    def _try(self, step):
        """Returns the result of the step in a list; None if more bytes from the peer are needed."""
        try:
            with self.lock:
                return [step()]
        except ssl.SSLWantReadError:
            return None

    def _flush(self):
        self.sock.sendall(self.outgoing.read())

    def _receive(self):
        data = self.sock.recv(1 << 16)
        self.received += data
        with self.lock:
            self.incoming.write(data) if data else self.incoming.write_eof()

    def sendall(self, data):
        for start in range(0, len(data), 1 << 16):
            with self.lock:
                self.tls.write(data[start:start + (1 << 16)])
                records = self.outgoing.read()
            self.sock.sendall(records)
            self.sent += len(records)

    def recv(self, size):
        while True:
            try:
                got = self._try(lambda: self.tls.read(size))
            except ssl.SSLZeroReturnError:
                self.announced = True
                return b""
            except ssl.SSLEOFError:
                return b""
            if got:
                self.announced = not got[0]
                return got[0]
            self._receive()

    def take_records(self):
        """Returns the sizes of the records that were received since the last call."""
        sizes = []
        while self.received:
            sizes.append(5 + int.from_bytes(self.received[3:5], "big"))
            del self.received[:sizes[-1]]
        return sizes

    def say_end(self):
        """Sends a close_notify. The connection stays open."""
        self._try(self.tls.unwrap)
        self._flush()

    def shutdown(self, how):
        self.say_end()
        self.sock.shutdown(how)

    def __getattr__(self, name):
        return getattr(self.sock, name)


class TlsConn(Conn):
    """A client's side of a connection with TLS; `session` is one to resume."""

    def __init__(self, address, context, session=None, **kwargs):
        super().__init__(address, **kwargs)
        self.sock = TlsSocket(self.sock, context, session)


class TlsServer:
    """Accepts connections with TLS, replies like an empty memcached with meta commands, and records each handshake.

    Each connection has a thread. `context` may be replaced between two connections.
    """

    def __init__(self, context):
        self.context = context
        self.resumed, self.errors, self.conns = [], [], []
        self.listener = socket.create_server((HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.name = f"{HOST}:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            conn = self.context.wrap_socket(sock, server_side=True)
            self.conns.append(conn)
            self.resumed.append(conn.session_reused)
            for line in conn.makefile("rb"):
                conn.sendall(self._answer(line.strip()))
        except (OSError, ValueError) as error:
            self.errors.append(error)

    @staticmethod
    def _answer(line):
        fixed = {b"version": b"VERSION 1.6.18\r\n", b"mn": b"MN\r\n", b"stats settings": b"STAT item_size_max 1048576\r\nEND\r\n"}
        if line.startswith(b"mg "):
            return b"EN\r\n"
        return fixed.get(line, b"ERROR\r\n")

    def cut(self):
        """Breaks all connections, but not the listener."""
        conns, self.conns = self.conns, []
        for conn in conns:
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock = socket.socket(fileno=conn.detach())
            with contextlib.suppress(OSError):  # the peer may have closed it
                sock.shutdown(socket.SHUT_RD)  # so that the thread stops reading
            sock.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


class TlsTest(WireTest):
    @functools.cached_property
    def folder(self):
        return self.scratch()

    @functools.cached_property
    def authority(self):
        return Authority(self.folder)

    @functools.cached_property
    def files(self):
        """Returns the certificate of all servers in these tests, and its key."""
        return self.authority.sign("server")

    def memcached_tls(self, *extra, files=None, ca=None):
        certificate, key = files or self.files
        os.chmod(key, 0o644)
        options = f"ssl_chain_cert={certificate},ssl_key={key}" + (f",ssl_ca_cert={ca},ssl_verify_mode=2" if ca else "")
        return self.memcached("-Z", "-o", options, *extra)

    def listening(self, more=""):
        """Returns the configuration of a listener with TLS."""
        return 'tls_certificate = "%s"\ntls_key = "%s"\n' % self.files + f"{more}\n"

    def verifying(self, more=""):
        """Returns the configuration of TLS to the servers."""
        return f'server_tls = true\nserver_tls_ca = "{self.authority.ca}"\n{more}\n'

    def setlistd_tls(self, servers, *args, config="", **kwargs):
        """Starts a setlistd whose only listener has TLS."""
        return self.setlistd(servers, "-l", f"tls:{HOST}", *args, config=self.listening(config), **kwargs)

    def serve_tls(self, config="", *args, server=()):
        """Starts a setlistd with TLS in front of one memcached. Returns a client's connection to it."""
        self.proxy = self.setlistd_tls([self.memcached(*server)], *args, config=config)
        return self.secured(self.proxy)

    def check_large_values(self, conn):
        """Returns the size of a record, and sizes near it, among others."""
        for size in (1, 16300, 16383, 16384, 16385, 16400, 100000, 1 << 20, (8 << 20) - 1000):
            data = os.urandom(size)
            self.assertEqual(conn.set("k", data), "STORED", size)
            self.assertEqual(conn.get("k"), data, size)

    def context(self, certificate=None):
        """Returns a client's context, which trusts the CA; `certificate`: its own certificate, with the key."""
        context = ssl.create_default_context(cafile=self.authority.ca)
        # A missing close_notify is an error, if Python has an option for this.
        context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)
        if certificate:
            context.load_cert_chain(*certificate)
        return context

    def server_context(self, files=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*(files or self.files))
        return context

    def secured(self, peer, context=None, **kwargs):
        conn = TlsConn(getattr(peer, "port", peer), context or self.context(), **kwargs)
        self.addCleanup(conn.close)
        return conn


class Secured(TlsTest):
    """A mixin for other test classes: their tests run with TLS, where they use these functions."""

    def setlistd(self, servers, *args, config="", **kwargs):
        return super().setlistd(servers, "-l", f"tls:{HOST}", *args, config=self.listening(config), **kwargs)

    def connect(self, peer, **kwargs):
        return self.secured(peer, **kwargs)

    def deaf(self):
        return TlsSocket(super().deaf(), self.context())
