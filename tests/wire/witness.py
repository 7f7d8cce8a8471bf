"""Clients that keep a proxy busy during an operation, and detect each lost or wrong reply."""
import threading

from harness import wait_until
from wire import Closed, Conn


class Strict(Conn):
    """A reset is not accepted as the end of the connection."""

    def _fill(self):
        data = self.sock.recv(1 << 18)
        if not data:
            raise Closed(f"closed by the peer, unread: {bytes(self.buffer)!r:.200}")
        self.buffer += data


class Load:
    """Clients that send sixteen requests at a time and check the replies: each reply contains the key of its request.

    With may_close, the server may close a connection after any reply, and the client opens another one; but it may not
    refuse or reset a connection, or cut a reply.
    """
    CONNECTIONS, BATCH, THREADS = 50, 16, 5

    def __init__(self, port, may_close=False):
        self.port, self.may_close = port, may_close
        self.stop, self.faults, self.answered, self.number = threading.Event(), [], 0, 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(self.THREADS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def wait(self):
        """Waits until it has made progress, or has found an error."""
        wait_until("the load gets on", lambda start=self.answered: self.faults or self.answered > start)

    def batch(self, who, round_number):
        kinds = (
            lambda tag, i: (f"mg none-{who}-{i} O{tag}", f"EN O{tag}"),
            lambda tag, i: (f"ms key-{who}-{i} 1 O{tag}\r\nx", f"HD O{tag}"),
            lambda _, i: (f"sadd set-{who % 7} m{who}.{i}.{round_number % 50}", "STORED"),
            lambda tag, i: (f"md none-{who} O{tag}", f"NF O{tag}"),
        )
        return [kinds[i % len(kinds)](f"{who}-{round_number % 50}-{i}", i) for i in range(self.BATCH)]

    def exchange(self, conn, who, round_number):
        requests = self.batch(who, round_number)
        conn.send("".join(f"{text}\r\n" for text, _ in requests).encode())
        for text, expected in requests:
            line = conn.line().decode()
            if line != expected:
                self.faults.append(f"{text!r}: {line!r}")
            with self.lock:
                self.answered += 1

    def run(self, number):
        try:
            self.work(number)
        except OSError as error:
            self.faults.append(f"{type(error).__name__}: {error}")

    def work(self, number):
        conns = {who: Strict(self.port) for who in range(number, self.CONNECTIONS, self.THREADS)}
        round_number = 0
        while not self.stop.is_set() and not self.faults:
            round_number += 1
            for who, conn in conns.items():
                try:
                    self.exchange(conn, who, round_number)
                except Closed as error:
                    if not self.may_close or conn.buffer:
                        self.faults.append(f"client {who}: {error}")
                    conn.close()
                    conns[who] = Strict(self.port)
        for conn in conns.values():
            conn.close()
