"""A client for setlistd, over pymemcache: sets, lists, counters, leases, and cache tags.

    from setlistd import Setlistd
    c = Setlistd("127.0.0.1:11311")
    c.sadd("topic-1", "ann", "bob")        # True
    c.smembers("topic-1")                  # {'ann', 'bob'}
    c.load("topic-2", lambda: database.members("topic-2"))

The methods have the names and arguments of the commands in setlistd-protocol(7), and return sets,
lists, numbers and booleans. None means that the key or an element is missing. Every error is an
exception: Error with the text of setlistd, or an OSError of the connection, such as TimeoutError.

Elements are str, bytes or numbers, and str in results. Bytes that are not UTF-8 become surrogates,
which are sent as the same bytes; with encoding=None results are bytes. Threads can share an object.
setlistd needs the option commands = "q|". A word that is sent in the key, such as the element of
lpos, cannot be empty, and all of them together have at most 240 bytes.
"""
import collections
import functools
import os
import re
import time

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheError, MemcacheUnexpectedCloseError

# (key, element ...): True, or False if the key is missing.
ADDING = "sadd saddx srem sset rpush rpushx lpush lpushx"
# The last argument is one element, or the last number: True, or False for NOT_FOUND or 0.
CHANGING = "sclaim smove lset lrem ltrim lack lfail"
NUMBERS = """scard scount sunioncard sintercard sdiffcard sunionstore sinterstore sdiffstore llen
    lpos linsert evincr evlimit sexpire sttl"""
SETS = "smembers sunion sinter sdiff"
LISTS = "lrange lmpop srange sscan stake"
ONE = "lindex lmove rpoplpush blpop brpop blmove"  # Those that wait: for ever if it is 0 seconds.
ONE_OR_LIST = "lpop rpop spop srandmember"  # A list if there is a count.

QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"|([^ ]+)')
RENDERING = 60  # Seconds within which an item with tags is rendered; later it is not stored.
Job = collections.namedtuple("Job", "key element ticket deliveries")


class Error(Exception):
    """setlistd has refused a command. The text is that of setlistd."""


class Busy(Error):
    """Another client was loading the key for the whole time."""


class Setlistd:
    def __init__(self, server="127.0.0.1:11311", prefix="q|", timeout=3.0, login=None,
                 encoding="utf-8", **options):
        """login: (user, password). options: of pymemcache's Client, such as tls_context."""
        self._prefix, self._separator = prefix.encode(), prefix[-1:].encode()
        self._timeout, self._login, self._encoding = timeout, login, encoding
        self._options = dict(options, default_noreply=False, no_delay=True)
        self._server, self._idle = server, []
        self._special = re.compile(rb"[\x00-\x20\x7f%%%s]" % re.escape(self._separator))

    def saddex(self, key, seconds, *members):
        return self._add("saddex", key, *members, words=[seconds])

    def sismember(self, key, member):
        return (self.smismember(key, member) or [None])[0]

    def smismember(self, key, *members):
        """Returns a list of booleans, or None."""
        if all(members) and len(self._key("smismember", (key, *members))) <= 250:
            found = self._get("smismember", key, *members)
            return None if found is None else [bit == b"1" for bit in found.split()]
        found = [self._set("sismember1", [key], member) for member in members]
        return found if any(found) or self.scard(key) is not None else None

    def evcount(self, event, first="now", last=None):
        """Returns a dict of the buckets and their counts, oldest first."""
        lines = self._get("evcount", event, first, last or first).decode().splitlines()
        return {bucket: int(count) for _, bucket, count in map(str.split, lines)}

    def get(self, key):
        return self._str(self._call("get", key))

    def set(self, key, value, ttl=0):
        return self._call("set", key, self._bytes(value), ttl)

    def delete(self, key):
        return self._call("delete", key)

    def remember(self, key, tags, ttl, render):
        """Returns the value of the item. If it is missing, it is rendered, and stored for `ttl`
        seconds, 0: for ever. Each tag is the key of a set, which has the keys of such items.
        """
        value, cas = self._call("gets", key)
        if value is None:
            self._call("add", key, b"", RENDERING)
            value, cas = self._call("gets", key)
        if not value:
            for tag in tags:  # Before it is rendered, so that each later `invalidate` finds it.
                self.saddex(tag, ttl and ttl + 2 * RENDERING, key)
            value = self._bytes(render())
            if cas:  # It is not stored if the empty item was deleted meanwhile.
                self._call("cas", key, value, cas, ttl)
        return self._str(value)

    def invalidate(self, tag):
        """Deletes all items with this tag. Call it after the data have changed."""
        while keys := self.stake(tag):
            self._call("delete_many", [self._bytes(key) for key in keys])

    def reserve(self, key, seconds, wait=0.001):
        """Returns a job, an element that is given back after so many seconds unless it is done. Its
        `deliveries` are how often it was reserved. None: there is none within `wait` seconds.
        """
        found = split(self._get("blhold*", wait, key, seconds) or b"")
        return Job(key, self._str(found[2]), found[0].decode(), int(found[1])) if found else None

    def done(self, job):
        """Returns False if the time of the job is over: another client may have it."""
        return self.lack(job.key, job.ticket)

    def fail(self, job):
        """Gives the job back at once, to the other end of the list."""
        return self.lfail(job.key, job.ticket)

    def load(self, key, loader, timeout=10.0, lease=60):
        """Returns the members of the set. If it is missing, one client calls its loader, which has
        `lease` seconds to return them. All others wait, for at most `timeout` seconds.
        """
        end, pause = time.monotonic() + timeout, 0.005
        while (found := self.smembers(key)) is None:
            answer = self._get("slease", key, lease).decode().split()
            if answer[0] == "LEASE":
                return self._fill(key, loader, answer[1])
            if time.monotonic() > end:
                raise Busy(f"another client is loading {key}")
            if answer[0] == "WAIT":
                time.sleep(pause := min(2 * pause, 0.1))
        return found

    def _fill(self, key, loader, token):
        try:
            loaded = list(loader())
            self._add("sload", key, *loaded, words=[token])
            self._set("sfill", [key, token], b"")
        except BaseException:
            self.delete(key)  # The next client need not wait until the lease ends.
            raise
        found = self.smembers(key)  # Others may have changed it meanwhile.
        return {self._str(self._bytes(member)) for member in loaded} if found is None else found

    def _call(self, method, *args, wait=None):
        """Calls pymemcache. wait: the seconds that the command may wait, 0: for ever."""
        limit = self._timeout if wait is None else wait + self._timeout if wait else None
        try:
            client = self._idle.pop()
        except IndexError:
            client = Client(self._server, connect_timeout=self._timeout, **self._options)
        client.timeout = limit
        try:
            if client.sock is not None:
                client.sock.settimeout(limit)
            elif self._login:
                client.set("auth", " ".join(self._login))
            return getattr(client, method)(*args)
        except MemcacheUnexpectedCloseError:
            raise ConnectionResetError("setlistd has closed the connection") from None
        except MemcacheError as error:
            text = error.args[0] if error.args else type(error).__name__
            raise Error(text.decode() if isinstance(text, bytes) else text) from None
        except BaseException:
            client.close()
            raise
        finally:
            self._idle.append(client)

    def _key(self, verb, words):
        """Returns the key that is this command. No word of it can be empty."""
        words = [self._bytes(word) for word in words]
        if b"" in words:
            raise Error("an empty element cannot be a word of a key")
        return self._prefix + self._separator.join(
            [verb.encode(), *(self._special.sub(lambda byte: b"%%%02X" % byte[0][0], word)
                              for word in words)])

    def _get(self, verb, *words):
        wait = words[0] if verb[0] == "b" else None
        if wait is not None:
            words = f"{wait:.3f}", *words[1:]
        return self._call("get", self._key(verb, words), wait=wait)

    def _set(self, verb, words, data):
        """Returns False for NOT_STORED."""
        return self._call("set", self._key(verb, words), self._bytes(data))

    def _add(self, verb, key, *elements, words=()):
        """Elements with newlines, which separate the others, take a command each."""
        elements = [self._bytes(element) for element in elements]
        if not any(b"\n" in element for element in elements):
            return self._set(verb, [key, *words], b"".join(element + b"\n" for element in elements))
        if verb != "sset":
            return all([self._set(verb + "1", [key, *words], element) for element in elements])
        other = f"{key}-{os.urandom(6).hex()}"
        self._add("sadd", other, *elements)
        self._get("sunionstore", key, other)
        return self.delete(other)

    def _change(self, verb, *words):
        return self._set(verb + "1", words[:-1], words[-1])

    def _number(self, verb, *words):
        found = self._get(verb, *words)
        return None if found is None else int(found)

    def _one(self, verb, *words):
        return self._str(self._get(verb, *words))

    def _one_or_list(self, verb, key, *count):
        return self._list(verb, key, *count) if count else self._one(verb, key)

    def _list(self, verb, *words):
        return list(map(self._str, split(self._get(verb + "*", *words) or b"")))

    def _members(self, verb, *words):
        found = self._get(verb + "*", *words)
        return None if found is None else set(map(self._str, split(found)))

    def _bytes(self, element):
        if isinstance(element, bytes):
            return element
        return str(element).encode(self._encoding or "utf-8", "surrogateescape")

    def _str(self, element):
        if element is None or not self._encoding:
            return element
        return element.decode(self._encoding, "surrogateescape")


for names, way in ((ADDING, Setlistd._add), (CHANGING, Setlistd._change), (SETS, Setlistd._members),
                   (NUMBERS, Setlistd._number), (LISTS, Setlistd._list), (ONE, Setlistd._one),
                   (ONE_OR_LIST, Setlistd._one_or_list)):
    for name in names.split():
        setattr(Setlistd, name, functools.partialmethod(way, name))


def split(text):
    """Returns the elements of a reply: words, some in quotes, in which all escapes are Python's."""
    if b'"' not in text:
        return text.split()
    return [word or quoted.decode("unicode_escape").encode("latin-1")
            for quoted, word in QUOTED.findall(text)]
