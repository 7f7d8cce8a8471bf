"""What a set really is on its servers: its base, the segments that the base refers to, and whatever else lies about.

The tests read it from memcached directly, past setlistd, and find the server of an item by asking `route`.
"""
import re

from wire import Conn

REF = re.compile(rb"@([cd][0-9a-z]{11}\.\d+\.\d+)$")


class Servers:
    """Connections to the memcached servers themselves, and one to a setlistd that says which of them holds a key."""

    def __init__(self, servers, proxy):
        self.conns = {server.name: Conn(server.port) for server in servers}
        self.router = Conn(proxy.port)

    def close(self):
        for conn in [*self.conns.values(), self.router]:
            conn.close()

    def of(self, key):
        """A connection to the server that holds the key."""
        reply = self.router.ask(f"route {key}")
        word, said, name = reply.split(" ")
        if (word, said) != ("ROUTE", key):
            raise AssertionError(f"route {key}: {reply}")
        return self.conns[name]

    def get(self, key):
        return self.of(key).get(key)

    def meta(self, key, flags):
        """The flags of `mg` on the key: {letter: rest of the word}; None for a miss."""
        reply = self.of(key).ask(f"mg {key} {flags}").split()
        return None if reply[0] == "EN" else {word[0]: word[1:] for word in reply[1:]}

    def delete(self, key):
        return self.of(key).ask(f"delete {key}")

    def item_count(self):
        """The items on all servers together."""
        return sum(stat(conn, "stats", "curr_items") for conn in self.conns.values())


def stats(conn, command):
    """All of a `stats` reply: {name: text}."""
    conn.send(command.encode() + b"\r\n")
    return dict(line.split(" ", 2)[1:] for line in conn.lines_until("END")[:-1])


def stat(conn, command, name):
    return int(stats(conn, command)[name])


def counter(conn, name):
    """One of the counters of a setlistd."""
    return stat(conn, "stats collections", name)


class Stored:
    """A set as it is stored right now."""

    def __init__(self, servers, key):
        self.key = key
        self.base = servers.get(key)
        self.refs, self.log = split(self.base or b"")
        self.segment_keys = [f"{key}.{ref}" for ref in self.refs]
        self.segments = {name: servers.get(name) for name in self.segment_keys}

    def sizes(self):
        return {name: len(data) for name, data in self.segments.items() if data is not None}

    def bytes(self):
        return len(self.base) + sum(self.sizes().values())


def split(base):
    """The ids that a base refers to, and the log behind them."""
    tokens = base.split(b" ")
    ids = []
    for token in tokens:
        match = REF.match(token)
        if not match:
            break
        ids.append(match.group(1).decode())
    return ids, b" ".join(tokens[len(ids):])
