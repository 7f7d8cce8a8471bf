"""What clients and monitors of memcached expect of it: the version, the statistics, and values that are refused."""
from binary import STAT, VERSION, BinaryConn
from case import WireTest
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

    def test_oldest_of_several(self):
        self.serve([self.scripted_server(version=version) for version in (b"1.6.31", b"1.6.9", b"1.6.18")])
        self.assertEqual(self.said(), {"1.6.9"})

    def test_none_is_known(self):
        self.serve([self.scripted_server(hang_up=True)])
        self.assertEqual(self.said(), {"1.6.0"})

    def test_own(self):
        self.serve([self.scripted_server()])
        self.assertEqual("setlistd " + stats(self.conn)["setlistd_version"], setlistd("-V").stdout.strip())
