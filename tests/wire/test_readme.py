"""The example of access in the README: its configuration and its session, as they stand there."""
import os
import re
import socket

from case_access import USERS, setlistd
from case_tls import TlsTest
from harness import HOST, PATIENCE, free_port, wait_until
from readme import blocks
from wire import Conn


class Access(TlsTest):
    def configure(self, changes):
        config = blocks("Access")[0]
        for text, replacement in changes.items():
            self.assertEqual(config.count(text), 1, text)
            config = config.replace(text, replacement)
        return config

    def test_example(self):
        port, path = free_port(), os.path.join(self.folder, "setlistd.sock")
        config = self.configure({
            "0.0.0.0:11311": f"{HOST}:{port}", "/run/setlistd.sock": path, "/etc/setlistd/cert.pem": self.files[0],
            "/etc/setlistd/key.pem": self.files[1], "/etc/setlistd/users": self.private_file(USERS + "ann:secret\n")})
        self.setlistd([self.memcached()], config=config, tcp=False)
        wait_until("listening", PATIENCE, lambda: socket.socket().connect_ex((HOST, port)) == 0)
        for conn in (self.secured(port), Conn(path)):
            self.log_in(conn)
            self.assertEqual(conn.ask("sadd topic ann"), "STORED")
            self.assertEqual(conn.ask("flush_all"), "CLIENT_ERROR flush_all is denied here")
            self.assertEqual(conn.ask("verbosity 1"), "CLIENT_ERROR verbosity is denied here")
            conn.close()

    def log_in(self, conn):
        """The session of the README, behind a request that is refused."""
        session = blocks("Access")[1].splitlines()
        self.assertEqual(conn.ask("get k"), "CLIENT_ERROR unauthenticated")
        conn.send("".join(f"{line}\r\n" for line in session if not line.startswith(" ")).encode())
        self.assertEqual(conn.line().decode(), session[-1].strip())

    def test_open_to_the_network(self):
        """Without the users the same listener is refused, as the README says."""
        config = self.configure({"/etc/setlistd/cert.pem": self.files[0], "/etc/setlistd/key.pem": self.files[1],
                                 "0.0.0.0:11311": f"0.0.0.0:{free_port()}"})
        bad = self.private_file(re.sub(r"^auth_file.*\n", "", config, flags=re.MULTILINE))
        run = setlistd("-T", "-f", bad, "-S", HOST)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("insecure", run.stderr)
