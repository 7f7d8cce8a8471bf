"""python3-pylibmc with the binary protocol. What comes of a `set` and a `get`."""
import sys

import pylibmc

client = pylibmc.Client([f"127.0.0.1:{sys.argv[1]}"], binary=True)
try:
    client.set("key", "value")
    print(f"served: {client.get('key')!r}")
except pylibmc.Error as error:
    print(f"refused: {error}")
