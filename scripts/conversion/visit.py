"""One key in one pass: reads, compares, copies the difference."""
import time

from conversion import items
from conversion.peer import Failed, Fatal, Unknown
from conversion.state import Entry

DELETE_TRIES = 3  # setlistd may compact the items meanwhile


def pieces(words, most):
    """Yields parts of at most so many bytes."""
    part, size = [], 0
    for word in words:
        length = len(word.encode("utf-8", "surrogateescape")) + 1
        if part and size + length > most:
            yield part
            part, size = [], 0
        part.append(word)
        size += length
    if part:
        yield part


def grown(old, new):
    """Returns the elements that were pushed to the head and to the tail of a list, or None if it has changed in another way."""
    end = len(new) - len(old)
    if end >= 0 and new[:len(old)] == old:
        return [], new[len(old):]
    if end >= 0 and new[end:] == old:
        return new[:end], []
    found = [at for at in range(1, end) if new[at] == old[0] and new[at:at + len(old)] == old]
    return (new[:found[0]], new[found[0] + len(old):]) if len(found) == 1 else None


def deadline_of(info):
    """Returns when a collection expires: 0 for never, None if unknown."""
    ttl = info.get("ttl", "unknown")
    return None if ttl == "unknown" else 0 if int(ttl) < 0 else int(time.time()) + int(ttl)


class Visit:
    """One key in one pass."""

    def __init__(self, run, source, target, key):
        self.run, self.options, self.state, self.tally = run, run.options, run.state, run.tally
        self.source, self.target = source, target
        self.is_list = self.options.type == "list"
        prefix = self.options.from_prefix
        if not key.startswith(prefix):
            raise Failed(f"does not begin with {prefix}")
        if not key or any(byte <= " " or byte == "\x7f" for byte in key):
            raise Failed("is not a valid key")
        self.key, self.new = key, self.options.to_prefix + key[len(prefix):]
        self.entry = self.state.keys.get(key) or Entry()
        self.wrote, self.count, self.deadline, self.expiring = False, None, None, False

    def write(self, **record):
        if not self.options.dry_run:
            self.state.write({"k": self.key, **record})
            self.entry = self.state.keys[self.key]
            self.wrote = True

    def read(self):
        """Returns the old collection; None if it is missing, or is about to expire."""
        info = self.source.read(f"sinfo {self.key}", self.source.stats)
        self.deadline = deadline_of(info or {})
        self.expiring = bool(self.deadline) and self.deadline - time.time() <= 2
        if info is None or self.expiring:
            return None
        return self.source.collection(self.key, self.is_list)

    def carry(self):
        now = self.read()
        seen = self.state.members(self.key)
        if now is None:
            self.tally.add("missing", 1)
            # If it is created again, it is another one: members that it lacks were not removed.
            if seen and not self.expiring:
                self.write(n=1)
            return
        if not self.entry.begun or self.options.merge or (self.options.final and seen):
            self.look(seen)
            seen = self.state.members(self.key) if self.entry.begun else {}
        if self.is_list:
            self.carry_list(now, list(seen))
        else:
            self.carry_set(now, seen)
        self.keep_time()
        if self.wrote:
            self.write(p=self.run.number)
        self.tally.add("done", 1)

    def look(self, seen):
        """Checks the new collection, if its existence matters."""
        count = self.count = self.target.count(self.new, self.is_list)
        if count is not None and not self.entry.begun and (self.is_list or not self.options.merge):
            raise Failed(f"{self.new} exists, but is not in the state file"
                         + ("" if self.is_list else " (--merge adds to it)"))
        if count is None and seen:
            self.gone()

    def gone(self):
        if not self.options.merge:
            raise Failed(f"{self.new} has disappeared since it was written (--merge copies {self.key} again)")
        self.tally.add("anew", 1)
        self.write(n=1)
        if self.options.dry_run:
            self.entry = Entry()

    def lost(self):
        """Called when a write finds that the new collection is missing."""
        self.gone()
        raise Failed(f"{self.new} had disappeared; the next pass copies {self.key} again")

    def carry_set(self, now, seen):
        current = set(now)
        added = [member for member in now if member not in seen]
        removed = [member for member in seen if member not in current]
        if not self.options.dry_run and added + removed and not self.entry.begun:
            self.write(b=1)
        exists = bool(seen)
        for words in pieces(removed, self.run.piece):
            self.apply("srem", words, r=words)
        for words in pieces(added, self.run.piece):
            self.apply("saddx" if exists else "sadd", words, a=words)
            if not exists:
                exists = True
                self.keep_time(created=not self.options.merge)
        if self.options.final and not self.options.dry_run:
            self.verify(added, removed, len(now))

    def apply(self, verb, words, **record):
        if not self.options.dry_run:
            if not self.target.write(verb, self.new, words):
                self.lost()
            self.write(**record)
        self.tally.add("removed" if verb == "srem" else "added", len(words))

    def verify(self, added, removed, size):
        """Checks that the members were written."""
        if not added and not removed and self.count not in (None, size):
            self.tally.add("differ", 1)
        for words, wanted in ((added, "1"), (removed, "0")):
            for part in pieces(words, self.run.piece):
                found = self.target.read(f"smismember {self.new} {' '.join(part)}")
                wrong = [word for word, bit in zip(part, (found or "").split(" ")) if bit != wanted]
                if found is None or wrong:
                    raise Failed(f"verification failed: {len(wrong)} members are not as written, such as {' '.join(wrong[:3])}"
                                 " (did clients change them?)")

    def carry_list(self, now, seen):
        if self.entry.intent:
            self.settle(seen)
            seen = self.state.members(self.key)
        change = grown(seen, now)
        if change is None:
            raise Failed("since it was copied, the list has changed in other ways than by pushes to its ends")
        head, tail = change
        for verb, field, words in (("rpush", "a", tail), ("lpush", "h", head[::-1])):
            for part in pieces(words, self.run.piece):
                self.push(verb + ("x" if seen else ""), field, part)
                self.tally.add("added", len(part))
                seen = seen or part
                self.keep_time()

    def push(self, verb, field, part):
        """Pushes elements. A push is not idempotent, so it is recorded before and after it, in the order of the list."""
        record = {field: part[::-1] if field == "h" else part}
        self.write(i=record)
        if self.options.dry_run:
            return
        try:
            there = self.target.write(verb, self.new, part)
        except Unknown:
            raise
        except (Failed, Fatal):
            self.write(i=None)
            raise
        if not there:
            self.write(i=None)
            self.lost()
        self.write(**record)

    def settle(self, seen):
        """Determines whether a push that was recorded before the last run ended took effect."""
        (field, items), = self.entry.intent.items()
        now = self.target.collection(self.new, True) or []
        if now == (items + seen if field == "h" else seen + items):
            self.write(**{field: items})
        elif now != seen:
            raise Failed(f"a run ended while it pushed to {self.new}, which has changed since: it is unknown whether it"
                         " has the items (delete it, and copy it again with --merge)")

    def keep_time(self, created=False):
        """Sets the time to live of the new collection to that of the old one, if it has changed."""
        before, after, options = self.entry.deadline, self.deadline, self.options
        if options.dry_run or options.no_ttl or after is None or not self.entry.spots:
            return
        if before is not None and (before == after or (before and after and abs(before - after) <= 2)):
            return
        encoding = (self.target.read(f"sinfo {self.new}", self.target.stats) or {}).get("encoding")
        # If removals expire before the additions, removed members return. A new collection has no removals.
        if encoding == "paired" and options.to_removed is None and not created:
            raise Failed("its time to live has changed, and cannot be set on two items without --to-removed")
        left = max(1, after - int(time.time())) if after else 0
        keys = items.names(self.target, self.new, encoding, options.to_prefix, options.to_removed)
        # With plain_verbs, the key refers to all of them.
        keys += [] if self.new in keys else [self.new]
        longer = not after or (before or 0) < after
        if items.touch(self.target, keys, left if left <= 30 * 86400 else after, longer):
            self.tally.add("times", 1)
            self.write(d=after)
        elif self.state.members(self.key):
            self.lost()

    def delete(self):
        """Deletes the old collection if it has not changed since it was copied."""
        for _ in range(DELETE_TRIES):
            info = self.source.read(f"sinfo {self.key}", self.source.stats) or {}
            keys = items.names(self.source, self.key, info.get("encoding"), self.options.from_prefix,
                               self.options.from_removed)
            tokens = items.tokens(self.source, keys)
            now = self.read()
            if not now:
                return
            if self.target.count(self.new, self.is_list) is None:
                raise Failed(f"not deleted: {self.new} has disappeared")
            seen = self.state.members(self.key)
            if now != seen if self.is_list else set(now) != seen.keys():
                break
            if self.deleted(tokens):
                self.tally.add("deleted", 1)
                self.write(n=1)
                return
        raise Failed("not deleted: it has changed")

    def deleted(self, tokens):
        """Deletes the items if they have not changed. Returns False if the first one has."""
        for number, (key, (token, _)) in enumerate(tokens.items()):
            reply = self.source.read(f"md {key} C{token} Pitem")
            if reply not in ("HD", "EX", "NF"):
                raise Failed(f"not deleted: md: {reply}")
            if number and reply == "EX":
                raise Failed(f"it changed while it was being deleted; the item {key} was kept")
            if number == 0 and reply != "HD":
                return False
        return bool(tokens)
