"""python3-memcache. It keeps the tokens of `gets` itself, one for each key."""
import memcache

import steps


class Memcache(steps.Steps):
    def __init__(self, port, _):
        self.client = memcache.Client([f"127.0.0.1:{port}"], cache_cas=True, socket_timeout=60)

    def gets(self, key):
        text = self.text_of(self.client.gets(key))
        self.token = self.client.cas_ids.get(key.encode())
        return text

    def cas(self, key, text):
        self.client.cas_ids[key.encode()] = self.token
        return self.client.cas(key, text)


steps.main(Memcache)
