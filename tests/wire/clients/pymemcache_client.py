"""python3-pymemcache"""
from pymemcache.client.base import Client

import scenario


class Pymemcache(scenario.Scenario):
    def __init__(self, port):
        self.client = Client(("127.0.0.1", port), timeout=60, connect_timeout=60, default_noreply=False)

    def get_many(self, keys):
        return {key: self.text_of(data) for key, data in self.client.get_many(keys).items()}


scenario.main(Pymemcache)
