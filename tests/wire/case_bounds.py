"""The base of tests of the daemon's limits: one server, one setlistd, and a connection that observes it."""
from case import WireTest
from harness import wait_until
from stored import stat


class BoundsTest(WireTest):
    def serve(self, config="", *args, servers=1, **kwargs):
        self.watcher = super().serve(servers, *args, config=config, **kwargs)
        self.server = self.servers[-1]
        self.assertEqual(self.watcher.ask("mn"), "MN")

    def serve_scripted(self, config=""):
        self.serve(config, servers=[self.scripted_server()])
        wait_until("the server is greeted", lambda: self.watcher.get("key-0"))


    def wait_for(self, counter, least=1):
        wait_until(counter, lambda: self.count(counter) >= least, pause=0.05)

    def count(self, counter):
        return stat(self.watcher, "stats", counter)
