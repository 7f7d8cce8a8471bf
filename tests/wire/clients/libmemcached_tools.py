"""libmemcached-tools: memccp, memccat, memcrm and memctouch, each in a separate process."""
import os
import subprocess
import sys
import tempfile

import steps


class ToolError(Exception):
    pass


class Tools(steps.Steps):
    lacks = ("gets", "append", "prepend", "cas", "incr", "decr")

    def __init__(self, port, binary):
        self.options = [f"--servers=127.0.0.1:{port}"] + (["--binary"] if binary else [])

    def run(self, tool, *args, **kwargs):
        return subprocess.run([tool, *self.options, *args], capture_output=True, text=True, check=False, **kwargs)

    def get(self, key):
        """memccat prints a line end after the value. For a missing key it prints nothing, and its status varies."""
        done = self.run("memccat", key)
        if "ERROR" in done.stderr:
            raise ToolError(done.stderr)
        return done.stdout[:-1] if done.returncode == 0 else None

    def multi(self, *keys):
        return [self.get(key) for key in keys]

    def copy(self, key, text, *args):
        """The name of the file is the key."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, key)
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
            done = self.run("memccp", *args, path)
        if "ERROR" in done.stderr:
            raise ToolError(done.stderr)
        return done.returncode == 0

    def set(self, key, text, ttl=0):
        return self.copy(key, text, f"--expire={ttl}")

    def add(self, key, text):
        return self.copy(key, text, "--add")

    def touch(self, key, ttl):
        return self.run("memctouch", f"--expire={ttl}", key).returncode == 0

    def delete(self, key):
        return self.run("memcrm", key).returncode == 0


steps.main(Tools, ToolError)
