"""Attacks of the soak test whose requests cost many times as much as their size suggests: calls, processor time or memory.

Each sends its requests over some connections, reads all replies, and disconnects after some seconds at the latest.
"""
import selectors
import time

from case_encodings import ENCODINGS, rule
from wire import Conn

PATIENCE = 20.0
CONTENDED = b"contended"        # a set that honest clients read while these clients rewrite it
TABLES, OTHER_TABLES = b"costly-tables", b"costly-tables-2"
LONG, OTHER_LONG = b"costly-long", b"costly-long-2"
LIST, FEED = b"costly-list", b"feed-costly"
ADOPTED = tuple(name.encode() for name in ENCODINGS if name != "oplog")
SPREAD, ROOM = 61803398877, 10 ** 11
LINE = 800000                   # bytes of members in a line
MEMBERS = 60000                 # of 12 bytes, which fit in a line and in one item
MANY = 150000                   # which are stored in dozens of tables
VALUE = b"v" * 1000000
RULES = "".join(rule(f"{name.decode()}-", ENCODINGS[name.decode()]) for name in ADOPTED) + f"""
collection "{FEED.decode()}" {{ type = "list" encoding = "csv" }}
events "costly-" {{ lookback = 10000 }}
"""
# How long an attacker stays if not all of its requests are answered before.
STAYS = 0.1, 1, 3, 3
WORD = 10                       # bytes of a line of BLOCK
BLOCK = b"".join(b"%09d\n" % number for number in range(700000))


def names(count, start=0, tail=b""):
    """Returns members in an order without a pattern, so that a packed table saves little."""
    return [b"m%011d%s" % (number * SPREAD % ROOM, tail) for number in range(start, start + count)]


def keys(prefix, count):
    return b" ".join(b"%s%d" % (prefix, number) for number in range(count))


class Sender:
    """A connection, and the bytes that are still to be sent. `quit` is the last request: the proxy closes the connection."""
    SPACE = bytearray(1 << 18)

    def __init__(self, port, text):
        self.conn, self.left, self.head = Conn(port, PATIENCE), memoryview(text), b""
        self.conn.sock.setblocking(False)

    def advance(self, events):
        """Returns whether the connection is closed."""
        try:
            if events & selectors.EVENT_WRITE:
                self.left = self.left[self.conn.sock.send(self.left[:1 << 20]):]
            if events & selectors.EVENT_READ:
                size = self.conn.sock.recv_into(self.SPACE)
                self.head = self.head or bytes(self.SPACE[:min(size, 80)])
                return size == 0
        except BlockingIOError:
            pass
        except OSError:
            return True
        return False

    def wants(self):
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.left else 0)

    def end(self, dice):
        dice.choice((self.conn.close, self.conn.reset))()
        if self.head.startswith((b"ERROR", b"CLIENT_ERROR")):
            raise AssertionError(f"this is no attack: {self.head}")


def send_all(port, dice, text, clients=1):
    """Each client sends the text and reads the replies, until all of them are received or the client loses patience."""
    text += b"quit\r\n"
    senders = []
    try:
        with selectors.DefaultSelector() as selector:
            for _ in range(clients):
                senders.append(Sender(port, text))
                selector.register(senders[-1].conn.sock, senders[-1].wants(), senders[-1])
            end = time.monotonic() + dice.choice(STAYS)
            while selector.get_map() and time.monotonic() < end:
                for key, events in selector.select(0.1):
                    if key.data.advance(events):
                        selector.unregister(key.fileobj)
                    elif key.data.wants() != key.events:
                        selector.modify(key.fileobj, key.data.wants(), key.data)
    finally:
        for sender in senders:
            sender.end(dice)


def have(port, key, members, verb=b"sadd", size=b"scard"):
    """Stores a set or list unless it exists: its server may have lost it."""
    with Conn(port, PATIENCE) as conn:
        if conn.ask(size + b" " + key).isdigit():
            return
        each = LINE // (len(members[0]) + 1)
        for start in range(0, len(members), each):
            reply = conn.ask(b"%s %s %s" % (verb, key, b" ".join(members[start:start + each])))
            if reply != "STORED" and not reply.startswith("SERVER_ERROR"):
                raise AssertionError(f"{verb} {key}: {reply}")


def waits_for_many(port, dice):
    """Requests with too many keys are refused. Then so many clients wait that some are refused."""
    verb = dice.choice((b"blpop", b"brpop"))
    with Conn(port, PATIENCE) as conn:
        for count in (1001, 65000):
            reply = conn.ask(b"%s 0 %s" % (verb, keys(b"w", count)))
            if reply != "CLIENT_ERROR too many keys":
                raise AssertionError(f"{verb} with {count} keys: {reply}")
        conn.send(b"rpush w7 1 2 3\r\n")
        clients, count = dice.choice(((12, 1000), (12, 1000), (200, 60)))
        send_all(port, dice, b"%s %d %s\r\n" % (verb, dice.choice((0, 1)), keys(b"w", count)), clients)


def touches_tables(port, dice):
    have(port, TABLES, names(MANY))
    one_line = b"gat 0" + (b" " + TABLES) * 4000 + b"\r\n"
    send_all(port, dice, dice.choice((b"gat 0 %s\r\n" % TABLES * 1024, one_line)), dice.choice((1, 1, 10)))


def counts_buckets(port, dice):
    line = dice.choice((b"evcount x 2018010100 2018032523\r\n", b"evlast costly-x 10 2020010100\r\n"))
    send_all(port, dice, line * 50, dice.choice((20, 50)))


def joins_for_a_number(port, dice):
    if dice.random() < 0.5:
        pair = TABLES, OTHER_TABLES
        have(port, TABLES, names(MANY))
        have(port, OTHER_TABLES, names(MEMBERS, MANY - MEMBERS // 2))
    else:
        pair = LONG, OTHER_LONG
        have(port, LONG, names(5000, tail=b"l" * 216))
        have(port, OTHER_LONG, names(5000, 2500, tail=b"l" * 216))
    line = b"%s 2 %s %s\r\n" % (dice.choice((b"sintercard", b"sunioncard", b"sdiffcard")), *pair)
    send_all(port, dice, line * 100, dice.choice((1, 50)))


def adopted_key(port, encoding):
    """A set of its own for each proxy: their servers differ, so they would find some of its items at the same server, and others not."""
    return b"%s-costly-%d" % (encoding, port)


def reads_adopted(port, dice):
    """Sets and lists of almost 1 MB, which are one item or a few."""
    if dice.random() < 0.2:
        have(port, FEED, names(MEMBERS), b"rpush", b"llen")
        line = dice.choice((b"lpos %s none\r\n", b"lpos %s none rank -1\r\n", b"lindex %s 30000\r\n", b"lrange %s 100 300\r\n")) % FEED
    else:
        key = adopted_key(port, dice.choice(ADOPTED))
        have(port, key, names(MEMBERS), b"sset")
        line = dice.choice((b"sscan %s 20\r\n", b"sscan %s 20 m5\r\n", b"sscan %s 9 match *none*\r\n", b"srange %s m2 m9 20\r\n",
                            b"srandmember %s 20\r\n", b"sscan %s 100000\r\n")) % key
    send_all(port, dice, line * 30, dice.choice((1, 1, 10)))


def writes_adopted(port, dice):
    key = adopted_key(port, dice.choice((b"csv", b"indexed", dice.choice(ADOPTED))))
    have(port, OTHER_TABLES, names(MEMBERS, MANY - MEMBERS // 2))
    have(port, key, names(MEMBERS), b"sset")
    change = b"".join(b"sadd %s n%d\r\nsrem %s n%d\r\n" % (key, number, key, number) for number in range(10))
    send_all(port, dice, dice.choice((b"sunionstore %s-2 %s\r\n" % (key, OTHER_TABLES), change + b"scompact %s\r\n" % key)) * 10)


def sends_long_blocks(port, dice):
    """Their keys are commands in one of the two setlistd. The other one sends the data to a server, which refuses it if it is too large."""
    verb, words = dice.choice((b"sadd", b"rpush", b"sset")), dice.choice((100000, 400000, 700000))
    key = b"costly-block-" + verb
    data = BLOCK[:words * WORD - 1]
    send_all(port, dice, b"set q|%s|%s 0 0 %d\r\n%s\r\ndelete %s\r\n" % (verb, key, len(data), data, key), dice.choice((1, 1, 3)))


def rewrites_one_key(port, dice):
    """All clients change one set or list."""
    have(port, LIST, names(20000), b"rpush", b"llen")
    send_all(port, dice, dice.choice((
        b"sadd %s m\r\nscompact %s\r\n" % (CONTENDED, CONTENDED) * 512, b"lset %s 10000 x\r\n" % LIST * 50,
        b"lrem %s 1 none\r\n" % LIST * 50, b"linsert %s after x y\r\nlrem %s 1 y\r\n" % (LIST, LIST) * 30)), 10)


def reads_missing_keys(port, dice):
    send_all(port, dice, dice.choice((b"smembers ", b"sunion ", b"gat 0 ")) + keys(b"none-", 60000) + b"\r\n", dice.choice((1, 4, 25)))


def sends_values(port, dice):
    send_all(port, dice, b"set costly-value-%d 0 0 %d\r\n%s\r\n" % (dice.randrange(8), len(VALUE), VALUE) * 3, 50)


COSTS = (waits_for_many, touches_tables, counts_buckets, joins_for_a_number, reads_adopted, writes_adopted, sends_long_blocks,
         rewrites_one_key, reads_missing_keys, sends_values)
