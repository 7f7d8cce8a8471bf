"""python3-binary-memcached"""
import bmemcached

import steps


class Bmemcached(steps.Steps):
    lacks = ("append", "prepend", "touch")

    def __init__(self, port, _):
        self.client = bmemcached.Client([f"127.0.0.1:{port}"], socket_timeout=60)


steps.main(Bmemcached, bmemcached.exceptions.MemcachedException)
