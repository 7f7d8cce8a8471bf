"""Clients of one key take turns: a client with one request does not wait for all requests that others have pipelined."""
import threading

from case_scripted import ScriptedTest

CLIENTS, PIPELINED = 10, 64


class LaneTurns(ScriptedTest):
    """The server counts the calls before the one of the single request. Time does not matter."""
    smoke = True

    def test_one_append_among_rewrites(self):
        """All requests are queued while the server does not answer the first call."""
        calls, released = [], threading.Event()

        def note(link, request):
            released.wait()
            calls.append(request.verb + b" " + (request.data or b""))
            link.send(link.answer(request))
        self.scripted.faults[b"k"] = note
        watcher = self.connect(self.proxy)
        others = [self.connect(self.proxy) for _ in range(CLIENTS)]
        for number, other in enumerate(others):
            other.send(f"sset k m{number}\r\n".encode() * PIPELINED)
        watcher.ask("version")  # The requests have arrived by now. If some have not, the test cannot fail.
        self.conn.send(b"sadd k single\r\n")
        watcher.ask("version")
        released.set()
        self.assertEqual(self.conn.line(), b"STORED")
        for other in others:
            self.assertEqual([other.line() for _ in range(PIPELINED)], [b"STORED"] * PIPELINED)
        place = next(place for place, call in enumerate(calls) if b"+single" in call)
        self.assertLess(place, 4 * CLIENTS)
        self.assertGreater(len(calls), CLIENTS * PIPELINED)
