"""python3-pymemcache"""
from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError

import steps


class Pymemcache(steps.Steps):
    def __init__(self, port, _):
        self.client = Client(("127.0.0.1", port), timeout=60, connect_timeout=60, default_noreply=False)


steps.main(Pymemcache, MemcacheError)
