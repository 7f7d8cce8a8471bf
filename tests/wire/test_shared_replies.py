"""Large replies that are written from one text in memory: their order among others, and their memory."""
import socket

from case import WireTest
from harness import built_with_sanitizer

MEMBERS = 10000
READERS = 60


class SharedReplyTest(WireTest):
    def setUp(self):
        self.serve(2)
        self.members = [b"member-%07d" % n for n in range(MEMBERS)]
        self.reply = self.load("k", self.members)

    def load(self, key, members):
        for start in range(0, len(members), 500):
            line = b"sadd %s %s\r\n" % (key.encode(), b" ".join(members[start:start + 500]))
            self.conn.send(line)
            self.assertEqual(self.conn.line(), b"STORED")
        self.assertEqual(self.conn.ask(f"scompact {key}"), "OK")
        found, _ = self.conn.values(f"smembers {key}")
        (flags, data), = found.values()
        self.assertEqual(sorted(data.split(b" ")), sorted(members))
        return b"VALUE %s %d %d\r\n%s\r\nEND\r\n" % (key.encode(), int(flags), len(data), data)


    @staticmethod
    def read(sock, size, at_once=65536):
        data = bytearray()
        while len(data) < size:
            piece = sock.recv(min(at_once, size - len(data)))
            if not piece:
                break
            data += piece
        return bytes(data)


class Order(SharedReplyTest):
    smoke = True

    def test_among_others(self):
        """Large, small and empty replies, in the order of the requests, although read in small pieces."""
        other = self.load("other", [b"x-%d" % n for n in range(3000)])
        self.assertEqual(self.conn.ask("set plain 0 0 5\r\nhello"), "STORED")
        plain = b"VALUE plain 0 5\r\nhello\r\nEND\r\n"
        asked = b"smembers k\r\nget plain\r\nsmembers other\r\nsmembers k\r\nsmembers none\r\nsmembers none k\r\nmn\r\n"
        wanted = self.reply + plain + other + self.reply + b"END\r\n" + self.reply + b"MN\r\n"
        sock = self.deaf()
        for at_once in (1000, 65536):
            sock.sendall(asked)
            self.assertEqual(self.read(sock, len(wanted), at_once), wanted)

    def test_both_in_one_reply(self):
        other = self.load("other", [b"x-%d" % n for n in range(3000)])
        wanted = self.reply[:-5] + other[:-5] + self.reply
        self.conn.send(b"smembers k other k\r\n")
        self.assertEqual(self.conn.block(len(wanted) - 2), wanted[:-2])

    def test_changed_while_it_is_read(self):
        """A reply does not change after it was composed."""
        sock = self.deaf()
        sock.sendall(b"smembers k\r\n")
        first = self.read(sock, 1000, 1000)
        for n in range(3):
            self.assertEqual(self.conn.ask(f"srem k member-000000{n}"), "DELETED")
            self.assertEqual(self.conn.ask("scard k"), str(MEMBERS - n - 1))
        self.assertEqual(first + self.read(sock, len(self.reply) - 1000), self.reply)

    def test_reader_goes(self):
        for _ in range(5):
            sock = self.deaf()
            sock.sendall(b"smembers k\r\nsmembers k\r\n")
            self.read(sock, 500, 500)
            sock.close()
        self.assertEqual(self.conn.ask("scard k"), str(MEMBERS))


class Memory(SharedReplyTest):
    alone = True
    smoke = True
    plain = True


    def test_slow_readers(self):
        if built_with_sanitizer():
            self.skipTest("what a sanitizer keeps is not what the daemon needs")
        before = self.proxy.status_kib("VmRSS")
        readers = [self.deaf() for _ in range(READERS)]
        for sock in readers:
            sock.sendall(b"smembers k\r\n")
        for sock in readers:
            self.assertTrue(sock.recv(1, socket.MSG_PEEK))
        self.assertLess(1024 * (self.proxy.status_kib("VmRSS") - before), READERS / 4 * len(self.reply))
        for sock in readers:
            self.assertEqual(self.read(sock, len(self.reply)), self.reply)
