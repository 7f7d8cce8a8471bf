"""The row about the start of a proxy: how long until it answers the first request."""
import time

from .peers import PATIENCE, Failed, connect

KEY = "k0000001"


def first_answer(lab, name):
    """Milliseconds from the start of a process to the reply to the first request, which waits for it on a connection."""
    server, started = lab.start_another(name)
    with lab.ending(server):
        with _connected(server, started) as conn, conn.makefile("rb") as replies:
            conn.sendall(f"get {KEY}\r\n".encode())
            reply = replies.readline()
            took = time.monotonic() - started
    if reply != b"END\r\n":
        raise Failed(f"{name} answers its first request with {reply!r}")
    return {"start_ms": took * 1e3}


def _connected(server, started):
    while True:
        try:
            return connect(server.port)
        except OSError as why:
            if time.monotonic() > started + PATIENCE or server.process.poll() is not None:
                raise Failed(f"{server.name} does not listen") from why
            time.sleep(0.001)


KINDS = {"start": first_answer}
