"""python3-pylibmc. It is given bytes: text would be flagged as text, and come back as bytes where `append` created the item."""
import pylibmc

import scenario


class Pylibmc(scenario.Scenario):
    def __init__(self, port):
        self.client = pylibmc.Client([f"127.0.0.1:{port}"], binary=False,
                                     behaviors={"cas": True, "connect_timeout": 60000, "_poll_timeout": 60000})

    @staticmethod
    def data_of(text):
        return text.encode()


scenario.main(Pylibmc)
