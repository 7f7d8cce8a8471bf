#!/usr/bin/python3
"""Shows how large the tag of cached pages stays whose members expire, beside one whose members do not.

tests/wire/tag_hours.py SETLISTD [HOURS [PAGES]]

An hour takes 3.6 seconds: so many pages are added in each second, and each lives for four seconds. After the last hour none is added,
and the tag is only read. The stored bytes are those of all items on the server.
"""
import sys

sys.dont_write_bytecode = True

import os
import random
import time

from harness import OPTIONS, Memcached, Setlistd
from stored import Servers, Stored
from wire import Conn

HOUR, LIFE, QUIET, EACH = 3.6, 4, 2.5, 10


class Run:
    def __init__(self, setlistd):
        OPTIONS.setlistd = os.path.abspath(setlistd)
        self.server = Memcached()
        self.proxy = Setlistd([self.server.name])
        self.conn, self.at, self.added = Conn(self.proxy.port), Servers([self.server], self.proxy), 0

    def close(self):
        self.at.close()
        self.conn.close()
        self.proxy.stop()
        self.server.kill()

    def add(self):
        pages = b" ".join(b"/page/%d/%08x" % (number, random.getrandbits(32)) for number in range(self.added, self.added + EACH))
        self.conn.send(b"saddex tag %d %s\r\nsadd permanent %s\r\n" % (LIFE, pages, pages))
        if (self.conn.line(), self.conn.line()) != (b"STORED", b"STORED"):
            sys.exit("an addition has failed")
        self.added += EACH

    def stored(self, key):
        found = Stored(self.at, key)
        return len(found.base or b"") + sum(found.sizes().values())

    def show(self, hour):
        numbers = [(self.conn.ask(f"scard {key}"), self.stored(key)) for key in ("tag", "permanent")]
        print(f"{hour:5.1f} {self.added:9}" + "".join(f"{count:>11} {size:11}" for count, size in numbers), flush=True)

    def play(self, hours, rate):
        print(" hour     pages    members       bytes  permanent       bytes")
        begun, shown = time.monotonic(), 0
        while shown <= hours + QUIET:
            now = time.monotonic() - begun
            if now >= shown * HOUR:
                self.show(shown)
                shown += 0.5
            if now < hours * HOUR and self.added < rate * now:
                self.add()
            else:
                time.sleep(0.005)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run = Run(sys.argv[1])
    try:
        run.add()
        run.play(float(sys.argv[2]) if len(sys.argv) > 2 else 8, int(sys.argv[3]) if len(sys.argv) > 3 else 1500)
    finally:
        run.close()


main()
