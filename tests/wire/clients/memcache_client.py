"""python3-memcache. It keeps the tokens of `gets` itself, one for each key."""
import memcache

import scenario


class Memcache(scenario.Scenario):
    def __init__(self, port):
        self.client = memcache.Client([f"127.0.0.1:{port}"], cache_cas=True, socket_timeout=60)

    @staticmethod
    def text_of(data):
        return data.decode() if isinstance(data, bytes) else data

    def gets(self, key):
        return self.text_of(self.client.gets(key)), self.client.cas_ids[key.encode()]

    def cas(self, key, text, token):
        self.client.cas_ids[key.encode()] = token
        return self.client.cas(key, text)


scenario.main(Memcache)
