"""What clients and monitors of memcached expect of it: the version, the statistics, and values that are refused."""
from binary import STAT, VERSION, BinaryConn
from case import WireTest
from case_encodings import ENCODINGS, EncodingTest
from harness import setlistd
from stored import stats
from wire import Conn


class Version(WireTest):
    """The version is that of the servers, as one word, in every protocol."""
    smoke = True

    def said(self):
        """What each protocol says, without repetitions."""
        with Conn(self.proxy.port) as conn, BinaryConn(self.proxy.port) as binary:
            return {conn.ask("version").removeprefix("VERSION "), stats(conn)["version"],
                    binary.request(VERSION).value.decode(), self.binary_stats(binary)[b"version"].decode()}

    def binary_stats(self, conn):
        conn.request(STAT)
        found = {}
        while (response := conn.response()).key:
            found[response.key] = response.value
        return found

    def test_oldest_when_they_differ(self):
        self.serve([self.scripted_server(version=version) for version in (b"1.6.31", b"1.6.9", b"1.6.18")])
        self.assertEqual(self.said(), {"1.6.9"})

    def test_none_is_known(self):
        self.serve([self.scripted_server(hang_up=True)])
        self.assertEqual(self.said(), {"1.6.0"})

    def test_own(self):
        self.serve([self.scripted_server()])
        self.assertEqual("setlistd " + stats(self.conn)["setlistd_version"], setlistd("-V").stdout.strip())


class CasIds(EncodingTest):
    """Clients keep a cas id in 64 bits with a sign, or in a double."""
    smoke = True

    def test_small_enough(self):
        for name in ENCODINGS:
            for number in range(8):
                k = f"{name}.verbs-{number}"
                self.expect((f"sadd {k} ann bob", "STORED"), (f"srem {k} bob", "DELETED"))
                cas = self.conn.values(f"gets {k}")[0][k][2]
                self.assertTrue(0 < cas < 1 << 53, f"{k}: {cas}")
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas + 1}\r\nzoe"), "EXISTS", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "STORED", k)
                self.assertEqual(self.conn.ask(f"cas {k} 0 0 3 {cas}\r\nzoe"), "EXISTS", k)
                self.expect((f"sismember {k} zoe", "1"), (f"scard {k}", "1"))
