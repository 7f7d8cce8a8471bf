"""A client's TLS session that can send key updates, which Python's ssl cannot: libssl is called directly."""
import ctypes
import ctypes.util
import functools
import ssl

WANT_READ, ZERO_RETURN = 2, 6  # of SSL_get_error
NOT_REQUESTED = 0              # of SSL_key_update: the peer need not update its own key


@functools.cache
def library(name, *functions):
    """The functions that return pointers need a type, since ctypes would convert the results to int."""
    path = ctypes.util.find_library(name)
    found = path and ctypes.CDLL(path)
    for function in functions if found else ():
        getattr(found, function).restype = ctypes.c_void_p
    return found


class Context:
    """Used as an ssl.SSLContext by TlsSocket; nothing is verified."""

    def __init__(self):
        self.ssl = library("ssl", "TLS_client_method", "SSL_CTX_new", "SSL_new")
        self.crypto = library("crypto", "BIO_new", "BIO_s_mem", "BIO_ctrl_pending")
        self.is_usable = bool(self.ssl and self.crypto)

    def wrap_bio(self, incoming, outgoing, server_hostname=None, session=None):
        del server_hostname, session
        return Session(self.ssl, self.crypto, incoming, outgoing)


class Session:
    """Used as an ssl.SSLObject. Like its context, it is never freed: the process of the test ends soon."""

    def __init__(self, libssl, libcrypto, incoming, outgoing):
        self.libssl, self.libcrypto, self.incoming, self.outgoing = libssl, libcrypto, incoming, outgoing
        method = ctypes.c_void_p(libssl.TLS_client_method())
        self.session = ctypes.c_void_p(libssl.SSL_new(ctypes.c_void_p(libssl.SSL_CTX_new(method))))
        memory = ctypes.c_void_p(libcrypto.BIO_s_mem())
        self.near, self.far = (ctypes.c_void_p(libcrypto.BIO_new(memory)) for _ in range(2))
        libssl.SSL_set_bio(self.session, self.near, self.far)
        libssl.SSL_set_connect_state(self.session)

    def _step(self, function, *args):
        """Calls a function of libssl. Passes it received bytes before, and sends the bytes that it wrote after."""
        data = self.incoming.read()
        if data:
            self.libcrypto.BIO_write(self.near, data, len(data))
        done = getattr(self.libssl, function)(self.session, *args)
        error = self.libssl.SSL_get_error(self.session, done)
        out = ctypes.create_string_buffer(self.libcrypto.BIO_ctrl_pending(self.far) or 1)
        size = self.libcrypto.BIO_read(self.far, out, len(out))
        self.outgoing.write(out.raw[:max(size, 0)])
        if done > 0:
            return done
        if error == WANT_READ:
            raise ssl.SSLEOFError() if self.incoming.eof else ssl.SSLWantReadError()
        raise ssl.SSLZeroReturnError() if error == ZERO_RETURN else ssl.SSLError(f"{function}: error {error}")

    def do_handshake(self):
        self._step("SSL_do_handshake")

    def read(self, size):
        data = ctypes.create_string_buffer(size)
        count = self._step("SSL_read", data, size)
        return data.raw[:count]

    def write(self, data):
        return self._step("SSL_write", data, len(data))

    def unwrap(self):
        self._step("SSL_shutdown")

    def update_keys(self, count):
        for _ in range(count):
            self._step("SSL_key_update", NOT_REQUESTED)
            self._step("SSL_do_handshake")
