"""A name server on the loopback interface, and files that setlistd sees in place of those of the system."""
import os
import random
import socket
import struct
import threading

from harness import PATIENCE, run_program

TYPE_A, NAME_ERROR = 1, 3


class NameServer:
    """Answers with what `names` has, {name: [IPv4 addresses]}; all others do not exist. With `mute` it answers nothing.

    Raises OSError where it may not have port 53, on which alone name servers are asked.
    """

    def __init__(self, **names):
        self.names, self.mute, self.asked = dict(names), False, []
        self.address = "127.%d.%d.%d" % tuple(random.randint(1, 254) for _ in range(3))
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.sock.bind((self.address, 53))
        except OSError:
            self.sock.close()
            raise
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def stop(self):
        self.sock.sendto(b"", (self.address, 53))
        self.thread.join(PATIENCE)
        self.sock.close()

    def _serve(self):
        while True:
            query, peer = self.sock.recvfrom(4096)
            if not query:
                return
            name, end = self._name(query)
            self.asked.append(name)
            if not self.mute:
                self.sock.sendto(self._answer(query, name, end), peer)

    @staticmethod
    def _name(query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("ascii").lower())
            at += 1 + query[at]
        return ".".join(labels), at + 1

    def _answer(self, query, name, end):
        kind = struct.unpack("!H", query[end:end + 2])[0]
        found = self.names.get(name)
        addresses = found or [] if kind == TYPE_A else []
        header = struct.pack("!2sHHHHH", query[:2], 0x8180 | (NAME_ERROR if found is None else 0), 1, len(addresses), 0, 0)
        # 0xc00c: the name of the question. The question itself goes back as it came, in its upper and lower case.
        answers = b"".join(struct.pack("!HHHIH4s", 0xc00c, TYPE_A, 1, 0, 4, socket.inet_aton(address))
                           for address in addresses)
        return header + query[12:end + 4] + answers


def command_with(files):
    """A command that runs a program which sees other files in place of these of the system: {its path: path of the other one}.

    Gives () without the right to do so. A file is changed by writing to it, not by renaming another one.
    """
    mounts = "".join(f"mount --bind '{other}' {path} && " for path, other in files.items())
    under = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", mounts + 'exec "$@"', "sh"]
    try:
        done = run_program(*under, "true")
    except OSError:
        return ()
    return under if done.returncode == 0 else ()
