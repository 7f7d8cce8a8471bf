"""The keys of a former server, and which of them are parts."""
import base64
import re
import tempfile
import time
import urllib.parse

from moving.link import Broken

BATCH = 256
# The key of a base is followed by the id of a table, an index or a segment; that of a segment has two more numbers. The digit is its place.
PART = re.compile(rb"(.+)\.(?:[ti][0-9][a-z][a-z0-9]{8}[a-z]|s[0-9][a-z][a-z0-9]{8}[a-z]\.[0-9]+\.[0-9]+)", re.DOTALL)
# The server of parts of version 0.1.0 is determined by their own keys.
NO_TEXT = re.compile(rb"[\0-\x20\x7f]")


def base_of(key):
    """Returns the key of the base that the part with this key belongs to, or None."""
    found = PART.fullmatch(key)
    return found.group(1) if found else None


def in_line(key):
    """Returns the key as written in a request: in base64 if it has bytes that only the binary protocol permits."""
    return base64.b64encode(key) + b" b" if NO_TEXT.search(key) else key


def batches(source, size=BATCH):
    batch = []
    for one in source:
        batch.append(one)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


class Spool:
    """Keys with their ages, in an unnamed file: so the memory of a pass is bounded, and a listing is not delayed by the moves."""

    def __init__(self):
        self.file, self.count = tempfile.TemporaryFile(), 0

    def add(self, key, age):
        self.file.write(b"%d %s\n" % (age, urllib.parse.quote_from_bytes(key, safe="").encode()))
        self.count += 1

    def __iter__(self):
        self.file.seek(0)
        for line in self.file:
            age, key = line.split()
            yield urllib.parse.unquote_to_bytes(key), int(age)

    def close(self):
        self.file.close()


def dump(link):
    """Yields each key of a server, with the seconds since it was last used. The connection is closed: the list may have any size.

    `all` walks the lists of least recently used items, and misses items that move between them meanwhile because they are used. `hash`
    walks the hash table and misses none, but old versions of memcached do not know it.
    """
    try:
        now, how = int(dict(link.stats())["time"]), b"hash"
        while True:
            link.send(b"lru_crawler metadump " + how + b"\r\n")
            line = link.line()
            if line.startswith((b"BADCLASS", b"CLIENT_ERROR")) and how == b"hash":
                how = b"all"
                continue
            if not line.startswith(b"BUSY"):
                break
            time.sleep(1)
        while line.startswith(b"key="):
            key, _, rest = line[len(b"key="):].partition(b" ")
            used = re.search(rb"\bla=(\d+)", rest)
            yield urllib.parse.unquote_to_bytes(key), now - int(used.group(1)) if used else 0
            line = link.line()
        if line != b"END":
            raise Broken(link.address, f"lru_crawler: {line.decode('utf-8', 'replace')}")
    finally:
        link.close()
