"""The base of the tests with a misbehaving server: no reply may ever be returned for another request.

A request is answered with its own value (each value contains its key), or with an error that names the server. When the framing
is in doubt, the connection to the server is closed, and a new one serves the next request.
"""
import scripted
from case import WireTest
from scripted import value_of
from harness import PATIENCE, wait_until

CONFIG = "retry_min = 10\nretry_max = 200"
# For tests in which a timeout must occur. On a machine that stalls it may occur anywhere, so such a test can expect more than "own value or
# error" only for a request that is never answered.
HASTY = f"{CONFIG}\nrequest_timeout = 400"
# A test that waits for such a timeout would exceed its own limit.
NEVER = f"{CONFIG}\nrequest_timeout = 600000"


class ScriptedTest(WireTest):
    def setUp(self):
        self.serve()

    def serve(self, config=CONFIG, patient=True, **kwargs):
        """Starts a scripted server, a setlistd in front of it, and a connection; earlier ones are stopped."""
        self.end_serving()
        self.serve_before([self.scripted_server(**kwargs)], config, patient=patient)

    def serve_before(self, servers, config=CONFIG, **kwargs):
        """Starts a setlistd in front of these servers, and a connection. The first server is the scripted one."""
        self.scripted = servers[0]
        super().serve(servers, config=config, **kwargs)

    def serve_hastily(self, config=HASTY, **kwargs):
        """Starts them with short timeouts. The greeting is complete: later requests are sent immediately."""
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
        """Reads one reply for each `get key` in turn. Returns {key: error line or None}."""
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
        """Checks that the connection on which the key was requested is closed, and that the next one works."""
        self.was_closed(key)
        self.usable_again()


    def usable_again(self):
        """Checks that each key is answered with its own value."""
        def good():
            keys = ["key-after-1", "key-after-2", "key-after-3"]
            return not any(self.asked(keys).values())
        wait_until("setlistd is usable again", good, pause=0.02)

    def was_sent(self, key, times, line):
        """Checks that the key was requested exactly this number of times."""
        wait_until(f"{line} arrives", lambda: len(self.scripted.requests_for(key)) >= times)
        self.assertEqual(len(self.scripted.requests_for(key)), times, f"{line} was sent again")

    def was_closed(self, key):
        link = wait_until(f"a request for {key} arrives", lambda: self.scripted.link_with(key))
        self.assertTrue(link.closed_by_peer.wait(PATIENCE), "setlistd kept a connection whose framing is in doubt")
