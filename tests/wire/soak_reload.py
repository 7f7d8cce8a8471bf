"""The operator of the soak test, who reloads new configurations of a running proxy, some of them with a mistake."""
import random
import threading
import time

from harness import wait_until
from stored import stats
from wire import Conn

# The differences between two configurations; a new rule creates new servers and lanes. No client's keys begin like this.
CHANGES = ("", "client_buffer = 1048576", "verbose = 1", 'collection "unused-" {\n type = list\n}')
MISTAKES = ("max_keys = 0", "nonsense = 1", "max_value 1", 'collection "unused-" {', "}", 'listen = {"127.0.0.1:x"}')
REFUSED = "the new configuration was refused"


class Operator(threading.Thread):
    """Each configuration has a unique max_pipeline, which identifies it. The last one is the first one again."""

    def __init__(self, proxy, seconds, seed):
        super().__init__(daemon=True)
        self.proxy, self.end, self.dice = proxy, time.monotonic() + seconds, random.Random(f"{seed}-operator")
        self.reloads = self.refused = self.heard = 0
        self.problem = None
        self.first, self.before = proxy.config, self.settings()

    def settings(self):
        with Conn(self.proxy.port) as conn:
            return stats(conn, "stats settings")


    def give(self, max_pipeline, text):
        """Waits until a client sees the new configuration."""
        self.proxy.configure(text)
        wait_until(f"max_pipeline {max_pipeline}", lambda: self.settings()["max_pipeline"] == max_pipeline, pause=0.02)
        self.reloads += 1

    def refusals(self):
        """Returns the configurations that the log has reported since the last mistake."""
        self.log.seek(self.heard)
        return self.log.read().count(REFUSED.encode())

    def give_mistake(self):
        """Checks that the log reports the refusal, and that no thread uses any part of the configuration."""
        assert self.refusals() == 0, "a good configuration was refused"
        self.proxy.configure(f"{self.first}\nmax_pipeline = 77\n{self.dice.choice(MISTAKES)}\n")
        wait_until("a mistake is refused", lambda: self.refusals() == 1, pause=0.02)
        self.heard = self.log.tell()
        for _ in range(8):
            assert self.settings()["max_pipeline"] != "77", "a configuration with a mistake left something"
        self.refused += 1

    def run(self):
        try:
            with open(self.proxy.process.stderr_path, "rb") as self.log:
                self.heard = self.log.seek(0, 2)
                while time.monotonic() < self.end:
                    most = 500 + self.reloads % 500
                    self.give(str(most), f"{self.first}\nmax_pipeline = {most}\n{self.dice.choice(CHANGES)}\n")
                    if self.dice.random() < 0.3:
                        self.give_mistake()
                    time.sleep(self.dice.uniform(0.1, 1))
                self.give(self.before["max_pipeline"], self.first)
                wait_until("the first configuration is as before", lambda: self.settings() == self.before)
        except Exception as error:              # a thread's exception would be lost otherwise
            self.problem = f"the operator: {error!r:.500}"
