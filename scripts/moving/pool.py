"""The servers of a setlistd, and what setlistd-move and setlistd-check have in common: the rate, the progress, the options."""
import argparse
import sys
import time

from moving.link import Link, secured


class Stopped(Exception):
    """A signal was received."""


class Pool:
    """The setlistd and its servers. `lost` are servers that are not read."""

    def __init__(self, options, lost=()):
        self.options, self.lost = options, lost
        self.proxy = Link(options.proxy.removeprefix("tls:"), options.login, options.context)
        self.stopped, self.began, self.shown = False, time.monotonic(), 0.0
        self.sent, self.failed, self.hosts = 0, 0, {}

    def stop(self, *_):
        self.stopped = True

    def states(self):
        """Returns the state of the setlistd's connection to each server, by name."""
        found = self.proxy.stats(b"upstream")
        return {name[:-len(":state")]: state for name, state in found if name.endswith(":state")}

    def servers(self):
        """Returns the names of all servers: each may have keys of another one, even if it is not a former server only."""
        found = self.proxy.stats(b"upstream")
        # With `dns:`, the proxy has the address of a server, and the name for its certificate.
        self.hosts = {name[:-len(":host")]: host for name, host in found if name.endswith(":host")}
        return [name for name in self.states() if name not in self.lost]

    def connect(self, server):
        return Link(server, self.options.server_login, self.options.server_context, name=self.hosts.get(server))

    def pause(self, keys):
        """Pauses to keep the rate."""
        self.sent += keys
        while True:
            if self.stopped:
                raise Stopped()
            ahead = self.sent / self.options.rate - (time.monotonic() - self.began) if self.options.rate else 0
            if ahead <= 0:
                return
            time.sleep(min(ahead, 0.1))

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.pause(0)
            time.sleep(0.05)

    def progress(self, text, done, count, began):
        now = time.monotonic()
        if now - self.shown < 1 and done < count:
            return
        self.shown = now
        speed = done / max(now - began, 1e-3)
        left = f", {speed:,.0f} a second, {(count - done) / max(speed, 1e-3):,.0f} s left" if done < count else ""
        errors = f", {self.failed:,} errors" if self.failed else ""
        self.say(f"{text}{left}{errors}", done == count)

    def say(self, text, last=True):
        if sys.stdout.isatty():
            print(f"\r{text}\x1b[K", end="\n" if last else "", flush=True)
        else:
            print(text, flush=True)


# --- options ---

def number(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("is negative")
    return value


def login_of(path):
    """Returns the user and the password in the first line of a file."""
    with open(path, "rb") as file:
        return file.readline().rstrip(b"\r\n") or None


def add_options(parser):
    """Adds the options of connections."""
    add = parser.add_argument
    add("--login", metavar="FILE", help="a file with 'user password', if the setlistd has an auth_file")
    add("--server-login", metavar="FILE", help="the same for the servers, if they run with -Y")
    add("--ca", metavar="FILE", help="the CAs of the setlistd's certificate, if ADDR begins with tls: (those of the system)")
    add("--server-tls", action="store_true", help="connect to the servers with TLS, except on Unix sockets")
    add("--server-ca", metavar="FILE", help="the CAs of their certificates (those of the system)")
    add("--no-server-verify", action="store_true", help="do not verify their certificates, as with server_tls_verify = false")
    add("--certificate", metavar="FILE", help="a certificate with its key, for a setlistd or servers that request one")
    add("proxy", nargs="?", default="127.0.0.1:11311", metavar="ADDR",
        help="the setlistd: host:port, tls:host:port or unix:path (127.0.0.1:11311)")


def open_files(parser, options):
    """Replaces the names of files in the options by what is in them."""
    try:
        options.login = options.login and login_of(options.login)
        options.server_login = options.server_login and login_of(options.server_login)
        options.context = options.server_context = None
        if options.proxy.startswith("tls:"):
            options.context = secured(options.ca, options.certificate)
        if options.server_tls:
            options.server_context = secured(options.server_ca, options.certificate, not options.no_server_verify)
    except OSError as error:
        parser.error(str(error))
    return options
