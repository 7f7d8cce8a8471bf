"""A name server on an address of the loopback interface, and replacements for files of the system that setlistd reads."""
import ipaddress
import os
import random
import socket
import struct
import threading

from harness import PATIENCE, run_program

KINDS = {1: "A", 28: "AAAA"}
NAME_ERROR, TRUNCATED = 3, 0x0200


class NameServer:
    """Replies with the addresses in `names`, {name: [addresses of both families]}; other names do not exist.

    With `mute` it never replies. `answers` decides for a single query, (name, kind) -> bool. Queries without a reply are kept;
    `release` answers them later, with the data from the time of the query. With `truncate` a reply over UDP is empty and marked as truncated.
    `asked` has each query as (name, kind), `asked_by_tcp` those over TCP.

    Raises OSError if it may not bind port 53, the only port that resolvers use.
    """

    def __init__(self, **names):
        self.names, self.mute, self.truncate = dict(names), False, False
        self.asked, self.asked_by_tcp, self.held = [], [], []
        self.answers = lambda name, kind: True
        self.address = "127.%d.%d.%d" % tuple(random.randint(1, 254) for _ in range(3))
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.sock.bind((self.address, 53))
            self.listener.bind((self.address, 53))
        except OSError:
            self.sock.close()
            self.listener.close()
            raise
        self.listener.listen()
        self.threads = [threading.Thread(target=serve, daemon=True) for serve in (self._serve, self._serve_tcp)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.sock.sendto(b"", (self.address, 53))
        self.listener.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(PATIENCE)
        self.sock.close()
        self.listener.close()

    def release(self):
        """Replies to all queries from now on, and to the pending ones."""
        self.mute, self.answers = False, lambda name, kind: True
        while self.held:
            self.sock.sendto(*self.held.pop(0))

    def count(self, name, kind="A"):
        return self.asked.count((name, kind))

    def _serve(self):
        while True:
            query, peer = self.sock.recvfrom(4096)
            if not query:
                return
            name, kind, _ = self._question(query)
            if self.mute or not self.answers(name, kind):
                self.held.append((self._answer(query, self.truncate), peer))
            else:
                self.sock.sendto(self._answer(query, self.truncate), peer)
            self.asked.append((name, kind))

    def _serve_tcp(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn, conn.makefile("rb") as queries:
                while length := queries.read(2):
                    query = queries.read(struct.unpack("!H", length)[0])
                    self.asked_by_tcp.append(self._question(query)[:2])
                    answer = self._answer(query, False)
                    conn.sendall(struct.pack("!H", len(answer)) + answer)

    @staticmethod
    def _question(query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii").lower())
            at += 1 + query[at]
        return ".".join(labels), KINDS.get(struct.unpack("!H", query[at + 1:at + 3])[0], "?"), at + 5

    def _answer(self, query, truncated):
        name, kind, end = self._question(query)
        found = self.names.get(name)
        addresses = [ipaddress.ip_address(address) for address in found or []]
        addresses = [] if truncated else [a.packed for a in addresses if kind == ("A" if a.version == 4 else "AAAA")]
        flags = 0x8180 | (NAME_ERROR if found is None else 0) | (TRUNCATED if truncated else 0)
        header = struct.pack("!2sHHHHH", query[:2], flags, 1, len(addresses), 0, 0)
        # 0xc00c: the name of the question. The question is returned unchanged, in its upper and lower case.
        answers = b"".join(struct.pack("!H", 0xc00c) + query[end - 4:end] + struct.pack("!IH", 0, len(packed)) + packed
                           for packed in addresses)
        return header + query[12:end] + answers


def command_with(files):
    """Returns a command that runs a program with other files instead of these files of the system: {its path: path of the other one}.

    Returns () without the permission to do so. Change a file by writing to it, not by renaming another one.
    """
    mounts = "".join(f"mount --bind '{other}' {path} && " for path, other in files.items())
    under = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", mounts + 'exec "$@"', "sh"]
    try:
        done = run_program(*under, "true")
    except OSError:
        return ()
    return under if done.returncode == 0 else ()
