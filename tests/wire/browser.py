"""Headless Chromium, controlled by its own protocol over two pipes: --remote-debugging-pipe, with a NUL after each message."""
import base64
import json
import os
import select
import shutil
import tempfile
import time

from harness import PATIENCE, Process, wait_until

BINARIES = ("chromium-headless-shell", "chromium", "/usr/lib/chromium/headless_shell")


def find_browser():
    return next((path for path in map(shutil.which, BINARIES) if path), None)


class Browser:
    """A page. Records errors on its console, and the addresses that it requests."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="setlistd-browser-")
        theirs_in, self.out = os.pipe()
        self.input, theirs_out = os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4.
        command = f"exec 3<&{theirs_in} 4>&{theirs_out} \"$@\""
        self.process = Process("chromium", ["/bin/bash", "-c", command, "bash", find_browser(), "--headless", "--no-sandbox",
                                            "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
                                            "--disable-background-networking", f"--user-data-dir={self.profile}",
                                            "--remote-debugging-pipe", "about:blank"], pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.number, self.session = b"", 0, None
        self.complaints, self.requests = [], []
        self._open_page()

    def _open_page(self):
        def page():
            found = [t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page"]
            return found and found[0]["targetId"]
        target = wait_until("chromium has a page", page)
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    # --- messages

    def _read(self, limit):
        """Returns a message, or None if none arrives within the limit."""
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], limit)[0]:
                return None
            data = os.read(self.input, 1 << 20)
            if not data:
                raise AssertionError(f"chromium has gone\n{self.process.describe()}")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"])

    def ask(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            reply = self._read(max(0.0, end - time.monotonic()))
            if reply is None:
                break
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise AssertionError(f"{method}: {reply['error']}")
                return reply["result"]
            self._note(reply)
        raise AssertionError(f"{method}: no answer\n{self.process.describe()}")

    # --- the page

    def show(self, url, width=1280, height=900, dark=False):
        self.resize(width, height)
        self.dark(dark)
        self.ask("Page.navigate", url=url)

    def dark(self, dark):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def resize(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def move_mouse(self, x, y):
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key):
        for kind in "keyDown", "keyUp":
            self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    def value(self, expression):
        reply = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise AssertionError(f"{expression}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def wait(self, what, expression):
        return wait_until(what, lambda: self.value(expression), pause=0.05)

    def screenshot(self, path, whole=True):
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def stop(self):
        self.process.kill()
        os.close(self.out)
        os.close(self.input)
        shutil.rmtree(self.profile, ignore_errors=True)
