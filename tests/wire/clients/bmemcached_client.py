"""python3-binary-memcached"""
import bmemcached

import steps


class Bmemcached(steps.Steps):
    lacks = ("append", "prepend", "touch")

    def __init__(self, port, _):
        self.packing = {} if self.defaults else {"compress_level": 0}
        self.client = bmemcached.Client([f"127.0.0.1:{port}"], socket_timeout=60)

    def set(self, key, text, ttl=0):
        return self.client.set(key, text, int(ttl), **self.packing)


steps.main(Bmemcached, bmemcached.exceptions.MemcachedException)
