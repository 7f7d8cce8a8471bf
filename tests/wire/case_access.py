"""Shared by the tests of access: users, a setlistd that requires a login, a request for each command."""
from case import WireTest
from stored import stats

USERS = "foo:bar\nann:a:b\n"
RIGHT = b"set auth 0 0 7\r\nfoo bar\r\n"
WRONG = b"set auth 0 0 7\r\nfoo baz\r\n"
UNAUTHENTICATED = "CLIENT_ERROR unauthenticated"




def usages(conn):
    """The commands, with the usage of each."""
    conn.send(b"help\r\n")
    return {line.split()[0]: line.strip().split("  ")[0] for line in conn.lines_until("END") if line.startswith(" ")}


def request_of(name, usage):
    """Returns a request that matches the grammar of the command, as bytes."""
    if name == "ms":
        return b"ms k 2\r\nmn\r\n"
    if "<bytes>" in usage:
        return b"%s k 0 0 2%s\r\nmn\r\n" % (name.encode(), b" 7" if name == "cas" else b"")
    arguments = {"incr": "k 1", "decr": "k 1", "touch": "k 10", "gat": "10 k", "gats": "10 k", "verbosity": "1", "evincr": "k"}
    return f"{name} {arguments.get(name, 'k' if '<' in usage else '')}".strip().encode() + b"\r\n"


class AuthTest(WireTest):
    def setUp(self):
        self.serve()

    def serve(self, *args, config="", users=USERS):
        (self.server,), self.proxy = self.pool(1, "-v", *args, config=f'auth_file = "{self.private_file(users)}"\n{config}')
        self.watcher = self.user()

    def user(self):
        conn = self.connect(self.proxy)
        conn.send(RIGHT)
        self.assertEqual(conn.line(), b"STORED")
        return conn

    def count(self, name):
        return int(stats(self.watcher, "stats")[name])

    def seen_by_server(self):
        """Returns the requests that the server received, without the proxy's own commands for versions and settings."""
        found = stats(self.connect(self.server), "stats")
        return {name: found[name] for name in ("cmd_get", "cmd_set", "cmd_touch", "cmd_meta", "delete_misses", "incr_misses",
                                               "cmd_flush", "curr_items")}
