"""A test of what the daemon holds: one server, one setlistd, and a connection that watches it."""
import threading

import scripted
from case import WireTest
from harness import PATIENCE, wait_until
from stored import stats
from wire import small_windows


class BoundsTest(WireTest):
    def serve(self, config="", **kwargs):
        self.server = self.memcached()
        self.proxy = self.setlistd([self.server], config=config, **kwargs)
        self.watcher = self.connect(self.proxy)
        self.assertEqual(self.watcher.ask("mn"), "MN")

    def serve_scripted(self, config=""):
        self.server = self.scripted_server()
        self.proxy = self.setlistd([self.server], config=config)
        self.watcher = self.connect(self.proxy)
        wait_until("the server is greeted", PATIENCE, lambda: self.watcher.get("key-0"))

    def hold(self, key):
        """The server answers a request for this key once the event is set."""
        event = threading.Event()
        self.addCleanup(event.set)
        self.server.faults[key.encode()] = scripted.held(event)
        return event

    def deaf(self):
        """A connection that takes next to nothing."""
        sock = small_windows(self.proxy.port)
        self.addCleanup(sock.close)
        return sock

    def wait_for(self, counter, least=1):
        wait_until(counter, PATIENCE, lambda: int(stats(self.watcher)[counter]) >= least, pause=0.05)
