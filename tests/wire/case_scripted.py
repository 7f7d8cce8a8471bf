"""The base of the tests with a server that misbehaves: no reply may ever reach the wrong request.

A request gets its own value (each names its key) or an error that names the server, never anything else; where the framing is
in doubt the connection to the server is closed; a new one serves the next request.
"""
import scripted
from case import WireTest
from scripted import value_of
from harness import PATIENCE, wait_until

CONFIG = "retry_min = 10\nretry_max = 200"
# Where a limit is to pass. A machine that stands still lets it pass anywhere, so more than "own value or error" can be said
# there only of what is never answered.
HASTY = f"{CONFIG}\nrequest_timeout = 400"
# Whoever waits for a limit here waits too long for the test.
NEVER = f"{CONFIG}\nrequest_timeout = 600000"


class ScriptedTest(WireTest):
    def setUp(self):
        self.serve()

    def serve(self, config=CONFIG, patient=True, **kwargs):
        """One scripted server, a setlistd in front of it, and a connection; those of before are ended."""
        self.end_serving()
        self.serve_before([self.scripted_server(**kwargs)], config, patient=patient)

    def serve_before(self, servers, config=CONFIG, **kwargs):
        """A setlistd in front of these, and a connection; the first of them is the scripted one."""
        self.scripted = servers[0]
        super().serve(servers, config=config, **kwargs)

    def serve_hastily(self, config=HASTY, **kwargs):
        """With limits that may pass. The server is greeted: what is asked now is sent to it."""
        self.serve(config=config, **kwargs)
        self.usable_again()

    def end_serving(self):
        if getattr(self, "proxy", None):
            self.conn.close()
            self.proxy.stop()
            self.processes.remove(self.proxy)
            self.scripted.stop()

    def error(self, what):
        return f"SERVER_ERROR upstream {self.scripted.name} {what}"

    def fault(self, key, action, once=True):
        self.scripted.faults[key.encode()] = scripted.one_shot(action) if once else action

    def own_or_error(self, keys, conn=None):
        """Read one reply for each `get key` in turn. Returns {key: error line or None}."""
        conn = conn or self.conn
        outcome = {}
        for key in keys:
            found, end = conn.read_values()
            if end == "END":
                self.assertEqual(set(found), {key}, f"reply to get {key}")
                self.assertEqual(found[key][1], value_of(key.encode()), f"reply to get {key}")
                outcome[key] = None
            else:
                self.assertEqual(found, {}, f"reply to get {key}")
                self.assertTrue(end.startswith(f"SERVER_ERROR upstream {self.scripted.name} "), f"get {key}: {end}")
                outcome[key] = end
        return outcome

    def ask_all(self, keys, conn=None):
        (conn or self.conn).send(b"".join(b"get %s\r\n" % key.encode() for key in keys))

    def asked(self, keys, conn=None):
        self.ask_all(keys, conn)
        return self.own_or_error(keys, conn)

    def asked_one(self, key="key-1"):
        return self.asked([key])[key]

    def recovers_from(self, key="key-1"):
        """The connection that the key was asked for by is closed, and the next one serves."""
        self.was_closed(key)
        self.usable_again()


    def usable_again(self):
        """Each key is answered with its own value."""
        def good():
            keys = ["key-after-1", "key-after-2", "key-after-3"]
            return not any(self.asked(keys).values())
        wait_until("setlistd is usable again", good, pause=0.02)

    def was_sent(self, key, times, line):
        """So often, and not once more."""
        wait_until(f"{line} arrives", lambda: len(self.scripted.requests_for(key)) >= times)
        self.assertEqual(len(self.scripted.requests_for(key)), times, f"{line} was sent again")

    def was_closed(self, key):
        link = wait_until(f"a request for {key} arrives", lambda: self.scripted.link_with(key))
        self.assertTrue(link.closed_by_peer.wait(PATIENCE), "setlistd kept a connection whose framing is in doubt")
