"""python3-pylibmc. It is used with bytes: text would be flagged as text, and be returned as bytes if `append` created the item."""
import pylibmc

import steps


class Pylibmc(steps.Steps):
    def __init__(self, port, binary):
        self.client = pylibmc.Client([f"127.0.0.1:{port}"], binary=binary,
                                     behaviors={"cas": True, "connect_timeout": 60000, "_poll_timeout": 60000})

    @staticmethod
    def data_of(text):
        return text.encode()

    def incr(self, key, number):
        try:
            return self.client.incr(key, int(number))
        except pylibmc.NotFound:
            return None

    def touch(self, key, ttl):
        try:
            return self.client.touch(key, int(ttl))
        except pylibmc.NotFound:
            return False


steps.main(Pylibmc, pylibmc.Error)
