"""The date at which a base expires: who writes it, and who must not."""
import threading
import time

from case_large import SLOW, LargeSetTest
from stored import stats

PLAIN = (b"", b"hello", b"+a", b"+1", b"-5 x", b"~t0", b"~t", b"hello ~t0 ", b"+a  ", b"@set.1", b"@set.4 x ", b"0")


class Dates(LargeSetTest):
    smoke = True

    def calls(self):
        """Returns what the servers have executed: reads, writes, touches."""
        found = [stats(conn) for conn in self.at.conns.values()]
        return [sum(int(each[name]) for each in found) for name in ("cmd_get", "cmd_set", "cmd_touch")]

    def made(self, line, reply):
        before = self.calls()
        self.assertEqual(self.conn.ask(line), reply, line)
        return [now - then for now, then in zip(self.calls(), before)]

    def date(self, key):
        """Returns the date of a base, which has one."""
        dates = [word for word in self.at.get(key).split(b" ") if word.startswith(b"~")]
        self.assertEqual(len(dates), 1, dates)
        return int(dates[0][2:])

    def test_calls_of_a_rewrite(self):
        """Each has one read and one write: no further reads of the time to live, no touch after it."""
        for ttl in 1000, 40 * 24 * 3600:
            self.conn.ask(f"sadd k{ttl} a b c d e f")
            self.assertEqual(self.conn.ask(f"touch k{ttl} {ttl if ttl == 1000 else int(time.time()) + ttl}"), "TOUCHED")
            self.assertEqual(self.made(f"sclaim k{ttl} g", "1"), [1, 1, 0])
            self.assertEqual(self.conn.ask(f"srem k{ttl} a"), "DELETED")
            self.assertEqual(self.made(f"scompact k{ttl}", "OK"), [2, 1, 0])
            self.assertLess(abs(self.ttl(f"k{ttl}") - ttl), SLOW)

    def test_the_clock_of_the_server(self):
        """A date is by the clock of the server; the first rewrite of a set with seconds to live converts them."""
        self.assertEqual(self.at.of("k").set("k", b"+a -a +b ", 0, 5000), "STORED")
        self.assertEqual(self.conn.ask("scompact k"), "OK")
        now = int(stats(self.at.of("k"))["time"])
        self.assertLess(abs(self.date("k") - now - 5000), SLOW)
        self.assertLessEqual(abs(self.date("k") - now - self.ttl("k")), 1)
        self.assertEqual(self.conn.ask("touch k 0"), "TOUCHED")
        self.assertEqual(self.conn.ask("sclaim k c"), "1")
        self.assertEqual((self.at.get("k"), self.ttl("k")), (b"+b +c ~t0 ", -1))

    def test_created_without_one(self):
        for line in "sadd k a b", "rpush l a b", "sset s a b":
            self.conn.ask(line)
        self.assertEqual([self.at.get(key).count(b"~") for key in "kls"], [0, 0, 0])

    def test_plain_items(self):
        """gat, gats and touch change no byte of an item, whatever it looks like. The cas id that gats returns is valid."""
        for data in PLAIN:
            with self.subTest(data=data):
                self.assertEqual(self.at.of("p").set("p", data, 3, 0), "STORED")
                for line in "gat 900 p", "gats 900 p":
                    values, end = self.conn.values(line)
                    self.assertEqual((values["p"][:2], end), ((3, data), "END"))
                    self.assertEqual(self.at.get("p"), data)
                self.assertEqual(self.ttl("p"), 900)
                self.conn.send(b"gats 900 p\r\n")
                cas = self.conn.line().split()[4]
                self.conn.lines_until("END")
                self.assertEqual(self.conn.ask(f"cas p 0 0 1 {cas.decode()}\r\nx"), "STORED")
                self.assertEqual(self.at.of("p").set("p", data, 3, 0), "STORED")
                self.conn.ask("touch p 800")
                self.assertEqual((self.at.get("p"), self.ttl("p") > 0), (data, not data.startswith(b"@set.4")))

    def test_a_base_of_a_plain_get(self):
        for line in "gat 900 k", "gats 900 k", "gat 900 x k y":
            self.assertEqual(self.at.of("k").set("k", b"+a +b ", 0, 0), "STORED")
            self.conn.send(line.encode() + b"\r\n")
            self.assertIn("VALUE k 0 19", "\n".join(self.conn.lines_until("END")), line)
            self.assertEqual(self.conn.ask("sclaim k c"), "1")
            self.assertLess(abs(self.ttl("k") - 900), SLOW)
            self.assertGreater(self.date("k"), 0)

    def test_a_base_of_a_meta_get(self):
        for line, replies in ("mg k T900 v t", ["VA 19 t900", None]), ("mg k T900 t", ["HD t900"]), ("mg aw== b T900 q", [None]):
            self.assertEqual(self.at.of("k").set("k", b"+a +b ", 0, 0), "STORED")
            self.conn.send(line.encode() + b"\r\n")
            for reply in replies:
                found = self.conn.line().decode()
                self.assertEqual(found, reply or found, line)
            self.assertEqual(self.conn.ask("sclaim k c"), "1")
            self.assertLess(abs(self.ttl("k") - 900), SLOW)
            self.assertGreater(self.date("k"), 0)
        for data in PLAIN:
            with self.subTest(data=data):
                self.assertEqual(self.at.of("p").set("p", data, 3, 0), "STORED")
                self.assertEqual(self.conn.ask("mg p T900"), "HD")
                self.assertLess(abs(self.ttl("p") - 900), SLOW)
                self.assertEqual(self.at.get("p"), data)

    def test_many_touches(self):
        """The base does not grow with each of them."""
        for key, line in (("k", "sadd k a b"), ("l", "rpush l a b")):
            self.conn.ask(line)
            for n in range(300):
                self.assertEqual(self.conn.ask(f"touch {key} {1000 + n}"), "TOUCHED")
            self.assertLess(len(self.at.get(key)), 400)
            self.assertEqual(self.conn.ask(f"touch {key} 5000"), "TOUCHED")
            self.assertLess(abs(self.ttl(key) - 5000), SLOW)
        self.assertEqual(self.conn.values("lrange l 0 -1")[0]["l"][1], b"a b")

    def test_touches_beside_rewrites(self):
        """Two proxies take elements out and touch, of a set and a list; no acknowledged touch is undone."""
        ends, problems = threading.Event(), []

        def take():
            conn = self.connect(self.proxies[1])
            while not ends.is_set():
                for line in "sadd k x", "rpush l x", "sclaim k y", "srem k y", "spop k", "lpop l":
                    conn.send(line.encode() + b"\r\n")
                    if line in ("spop k", "lpop l"):
                        conn.lines_until("END")
                    else:
                        conn.line()

        for line in "sadd k a b c d e f", "rpush l a b c d e f":
            self.conn.ask(line)
        taker = threading.Thread(target=take)
        taker.start()
        for n in range(400):
            for key in "kl":
                ttl = 1000 + 2 * SLOW * n
                if self.conn.ask(f"touch {key} {ttl}") == "TOUCHED" and self.ttl(key) not in range(ttl - SLOW, ttl + 2):
                    problems.append((key, ttl, self.ttl(key)))
        ends.set()
        taker.join()
        self.assertEqual(problems, [])
