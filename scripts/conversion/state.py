"""The state file: the members of each key that were copied."""
import fcntl
import json
import os
import threading
import time

from conversion.peer import Fatal


class Entry:
    """The state of a key: where in the file its members are, and its progress."""
    __slots__ = ("spots", "passed", "begun", "deadline", "intent")

    def __init__(self):
        self.spots, self.passed, self.begun, self.deadline, self.intent = [], 0, False, None, None


class State:
    """The state file: a header and records, one JSON object per line. Records are only appended.

    Fields of a key "k": "b" copying has begun, "a" members added or elements pushed at the tail, "h" elements pushed at the head,
    "r" members removed, "n" all earlier records are void, "i" a push that is about to be made, "d" when it expires (0 for never),
    "p" the last completed pass. Without a key: "pass" has begun, or with "end" is complete.
    """

    def __init__(self, path, header, is_list, dry):
        self.path, self.is_list, self.dry = path, is_list, dry
        self.keys, self.passes, self.open_pass, self.records = {}, 0, False, 0
        self.lock, self.synced = threading.Lock(), time.monotonic()
        if dry and not os.path.exists(path):
            self.file = open(os.devnull, "r+b")
            return
        self.file = open(path, "rb" if dry else "a+b")
        try:
            fcntl.flock(self.file, fcntl.LOCK_SH if dry else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Fatal(f"{path}: another run uses it") from error
        if not os.path.samestat(os.stat(path), os.fstat(self.file.fileno())):
            raise Fatal(f"{path}: another run uses it")
        self.load(header)
        if not dry and self.records > 4 * len(self.keys) + 100:
            self.rewrite(header)

    def load(self, header):
        self.file.seek(0)
        at = 0
        for number, line in enumerate(self.file):
            if not line.endswith(b"\n"):
                break  # a run was killed while it wrote this
            try:
                record = json.loads(line)
                if number:
                    self.take(record, at, len(line))
            except (ValueError, KeyError) as error:
                raise Fatal(f"{self.path}:{number + 1}: not a line of a state file") from error
            if number == 0 and record != header:
                raise Fatal(f"{self.path} belongs to another conversion, or is not a state file: {line.decode(errors='replace').strip()}")
            at += len(line)
        if not self.dry:
            self.file.truncate(at)
            if at == 0:
                self.append(header)

    def take(self, record, at, size):
        self.records += 1
        if "pass" in record:
            self.passes, self.open_pass = record["pass"], "end" not in record
            return
        entry = self.keys.setdefault(record["k"], Entry())
        entry.begun = True
        if "n" in record:
            entry.spots, entry.deadline, entry.intent = [], None, None
        if not record.keys().isdisjoint("ahr"):
            entry.spots.append((at, size))
            entry.intent = None
        entry.intent = record.get("i", entry.intent)
        entry.deadline = record.get("d", entry.deadline)
        entry.passed = record.get("p", entry.passed)

    def append(self, record):
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        at = self.file.seek(0, os.SEEK_END)
        self.file.write(line)
        self.file.flush()
        return at, len(line)

    def write(self, record):
        """Writes a record immediately, so that it survives this process, and flushes the file to disk from time to time."""
        with self.lock:
            try:
                self.take(record, *self.append(record))
                if time.monotonic() - self.synced > 0.25:
                    self.sync()
            except OSError as error:
                raise Fatal(f"{self.path}: {error}") from error

    def sync(self):
        if not self.dry:
            os.fsync(self.file.fileno())
        self.synced = time.monotonic()

    def members(self, key):
        """Returns the members of a key that were copied, in order."""
        found = {}
        head, tail = [], []
        for at, size in self.keys[key].spots if key in self.keys else ():
            record = json.loads(os.pread(self.file.fileno(), size, at))
            if self.is_list:
                head, tail = record.get("h", []) + head, tail + record.get("a", [])
            for member in record.get("r", ()):
                found.pop(member, None)
            found.update(dict.fromkeys(record.get("a", ())))
        return head + tail if self.is_list else found

    def rewrite(self, header):
        """Writes one record for each key to a new file, which replaces the old one."""
        old, path = self.file, self.path + ".new"
        records = [{"pass": self.passes, **({} if self.open_pass else {"end": 1})}] if self.passes else []
        new = open(path, "w+b")
        fcntl.flock(new, fcntl.LOCK_EX)
        for record in [header, *records]:
            new.write(json.dumps(record).encode() + b"\n")
        for key, entry in self.keys.items():
            record = {"k": key, "a": list(self.members(key)), "p": entry.passed}
            record.update({"d": entry.deadline} if entry.deadline is not None else {})
            record.update({"i": entry.intent} if entry.intent else {})
            new.write(json.dumps(record).encode() + b"\n")
        new.flush()
        os.fsync(new.fileno())
        os.rename(path, self.path)
        self.file = new
        old.close()
        self.keys, self.records = {}, 0
        self.load(header)
