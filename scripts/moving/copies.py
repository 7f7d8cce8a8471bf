"""What the two copies of a key contain, and whether they differ: see src/collection/copies/copy.h for the base of a copy."""
import re

DIGITS = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
SECOND = b".~copy"
LOG = re.compile(rb"(?:^|(?<= ))~[osc]")
HEADER = re.compile(rb"~o(.{8}) (?:~f.{8} )?(~g )?", re.DOTALL)
RUN = re.compile(rb"(?:^|(?<= ))@([ti][0-9][a-z][a-z0-9]{8}[a-z])\.")
DATED = re.compile(rb"(.*)\x02[0-9]{10}", re.DOTALL)
ID, CHECK, DATES, COUNT = 12, 8, 12, 4    # bytes in an index


def second_of(key):
    """Returns the key of the second copy of a base or counter."""
    return key + SECOND


def milliseconds(stamp):
    """Returns the time of a stamp: 6 of its 48 bits are a counter."""
    number = 0
    for digit in stamp:
        number = number << 6 | DIGITS.index(digit)
    return number >> 6


class Copy:
    """The base of a copy: its closed part, and the last word about each member of its log. A value that is no base raises ValueError."""

    def __init__(self, value):
        found = LOG.search(value)
        log = value[found.start():] if found else b""
        self.closed = value[:found.start()] if found else value
        header = HEADER.match(log)
        if log.startswith(b"~o") and not header:
            raise ValueError("no horizon")
        self.horizon = milliseconds(header[1]) if header else 0
        self.gone = bool(header and header[2])
        self.words = {}
        self.read(log[header.end() if header else 0:], header[1] if header else b"--------")

    def read(self, log, horizon):
        """A group is ~s or ~c with a stamp, words, and ~e. Words in no group follow the largest stamp before them."""
        stamp, largest, stray, group = None, (horizon, 0), False, {}
        for token in log.split(b" ")[:-1] if log else []:
            if token[:2] in (b"~s", b"~c") and len(token) == 10:
                stamp = (token[2:], 0)
                largest, stray = max(largest, stamp), False
                if token[1:2] == b"c" and token[2:] > horizon:
                    self.gone = False
            elif token == b"~e":
                self.keep(group, stamp)
                stamp, group = None, {}
            elif stamp:
                group[self.member(token)] = token
            else:
                if not stray:
                    largest, stray = (largest[0], largest[1] + 1), True
                self.keep({self.member(token): token}, largest)
        self.words = {member: word for member, word in self.words.items() if word[0] > (horizon, 0)}

    @staticmethod
    def member(token):
        if token[:1] == b"~":
            return b"~ "
        dated = DATED.fullmatch(token[1:])
        return dated[1] if dated else token[1:]

    def keep(self, group, stamp):
        """Of two words with the same stamp the removal counts: - follows + in the order of bytes."""
        for member, token in group.items():
            old = self.words.get(member)
            # Words in no group that follow each other have one stamp, and the last one counts.
            if not old or stamp > old[0] or stamp == old[0] and (stamp[1] or token > old[1]):
                self.words[member] = stamp, token

    def parts(self):
        return set(RUN.findall(self.closed))


def tables_of(index):
    """Returns the ids of the tables in an index: see src/collection/text/fences.h. An invalid one raises ValueError."""
    at, end, found = 2, len(index), set()
    if index.startswith(b"I2"):
        end -= COUNT + DATES * int.from_bytes(index[-COUNT:], "little")
    try:
        while at < end:
            found.add(index[at:at + ID])
            at += ID + CHECK
            for _ in range(4):
                number = shift = 0
                while True:
                    byte = index[at]
                    number |= (byte & 0x7f) << shift
                    at, shift = at + 1, shift + 7
                    if byte < 0x80:
                        break
            at += number
    except IndexError as error:
        raise ValueError("the index is cut off") from error
    return found


def number_of(value):
    """Returns the number of a counter, after which memcached may leave spaces; None if it is none."""
    text = value.rstrip(b" ")
    return int(text) if text.isdigit() and len(text) <= 20 else None


def difference(values, now, youngest):
    """Returns how two values differ, None if they do not. None is a value that is missing.

    Words that are younger than `youngest` milliseconds may be on their way to the other copy.
    """
    if values[0] == values[1]:
        return None
    try:
        copies = [None if value is None else Copy(value) for value in values]
    except ValueError:
        return "missing" if None in values else "value"
    if None in copies:
        there = copies[0] or copies[1]
        # A set that is gone is deleted on one server after the other.
        return None if there.gone else "missing"
    a, b = copies
    if a.gone and b.gone:
        return None
    if (a.horizon, a.closed, a.gone) != (b.horizon, b.closed, b.gone):
        return "base"
    for member in a.words.keys() | b.words.keys():
        words = [copy.words.get(member) for copy in copies]
        if words[0] != words[1] and max(milliseconds(word[0][0]) for word in words if word) < now - youngest:
            return "words"
    return None
