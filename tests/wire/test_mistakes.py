"""Common mistakes in telnet sessions and configurations: each is answered with a hint."""
from case import WireTest
from harness import HOST, setlistd
from stored import stats

TYPED = {
    "SADD a b": "ERROR no such command; names are in lower case: use sadd",
    "Get a": "ERROR no such command; names are in lower case: use get",
    "del a": "ERROR no such command; use delete",
    "keys *": "ERROR no such command; memcached cannot list keys: keep them in a set",
    "expire a 5": "ERROR no such command; use touch <key> <seconds>",
    "hset a b c": "ERROR no such command; there are no hashes: use one item for each field",
    "ZADD a 1 b": "ERROR no such command; there are no sorted sets: use sadd and srange, which is in byte order",
    "ping": "ERROR no such command; use version",
    "TTL a": "ERROR no such command; use sinfo, or mg <key> t for an item",
    "exists a": "ERROR no such command; use scard, llen or get",
    "mget a b": "ERROR no such command; use get, which takes several keys",
    "multi": "ERROR no such command; there are no transactions: each command changes one key",
    "select 1": "ERROR no such command; there is one key space: use prefixes of keys",
    "nonsense": "ERROR",
    "sadd a": "CLIENT_ERROR usage: sadd <key> <member>+ [noreply]",
    "smembers": "CLIENT_ERROR usage: smembers <key>+",
    "sintercard a b": "CLIENT_ERROR invalid count",
    "lrange a 0": "CLIENT_ERROR usage: lrange <key> <start> <stop>",
    "spop a many": "CLIENT_ERROR invalid count",
    "sscan a 0": "CLIENT_ERROR usage: sscan <key> <count> [<after>] [match <pattern>]",
    "help smember": "CLIENT_ERROR no such command; did you mean smembers or sismember?",
    "get": "ERROR",
}
TIME = "must be a decimal number from 1 to 600000, optionally with a unit: ms, s, min, h, d"
WRITTEN = {
    "thread = 2": "1: unknown option thread; did you mean threads or thread_load?",
    "threads = 100": "1: threads = 100: must be a decimal number from 1 to 64",
    "threads = 2;": "1: an option ends at the end of its line, without a ;",
    "\nlog = \"stderr\";": "2: an option ends at the end of its line, without a ;",
    "threads 2": "1: missing equal sign after option 'threads'",
    "listen = [\"127.0.0.1:5\"]": "1: a list is written in { }, not in [ ]",
    "deny = [ ]": "1: a list is written in { }, not in [ ]",
    "deny = {\"get\" \"set\"}": "1: unexpected token 'set'; is a comma missing before it?",
    "deny = {\"flushall\"}": "1: deny: \"flushall\" is not a command; did you mean flush_all?",
    "deny = {\"get\"": "2: premature end of file",
    "request_timeout = 2x": f"1: request_timeout = 2x: {TIME}",
    "request_timeout = 11min": f"1: request_timeout = 11min: {TIME}",
    "max_connections = 2K": "1: max_connections = 2K: must be a decimal number from 1 to 1000000",
    "client_memory = 9G9": "1: client_memory = 9G9: must be a decimal number from 0 to 1099511627776, optionally with a unit: K, M, G",
    "former_servers = {\"memcached://a:11211\"}": "1: former_servers: \"memcached://a:11211\": a scheme such as memcached:// is not allowed; use host:port",
    "former_servers = {\"a:1;b:2\"}": "1: former_servers: \"a:1;b:2\": addresses are separated by commas, not by ;",
    "former_servers = {\"a:1 b:2\"}": "1: former_servers: \"a:1 b:2\": only weight=N may follow a server; servers are separated by commas",
    "former_servers = {\"a:1,b:2\"}": "1: former_servers: \"a:1,b:2\": write each server as a string of its own",
    "\ufeffthreads = 2": "1: the file begins with a byte order mark; save it as UTF-8 without one",
    "listen = {\"127.0.0.1:99999\"}": "1: listen: \"127.0.0.1:99999\": bad port (1 to 65535)",
    "collection \"a-\" { ttl = 100d }": "1: ttl = 100d: must be a decimal number from 0 to 2592000, optionally with a unit: s, min, h, d",
    "set \"a-\" { }": "1: unknown option set; a rule is a section: collection \"tags-\" { type = \"list\" }",
}
GOOD = ("request_timeout = 2s", "idle_timeout = 7d", "client_memory = 64M", "cache_memory = 1gb", "log_size = 4K", "lease_time = 1min",
        "commands_delimiter = ;", "collection \"a-\" { ttl = 1h delimiter = ; }", "threads = 2 # not 1;")


class Mistakes(WireTest):
    smoke = True

    def test_typed(self):
        self.serve(1)
        for line, reply in TYPED.items():
            with self.subTest(line):
                self.assertEqual(self.conn.ask(line), reply)
        self.assertEqual(self.conn.ask("sadd a b"), "STORED")

    def check(self, text):
        path = self.private_file(text + "\n")
        return path, setlistd("-T", "-f", path, "-S", f"{HOST}:1")

    def test_written(self):
        for text, error in WRITTEN.items():
            with self.subTest(text):
                path, done = self.check(text)
                self.assertEqual((done.returncode, done.stderr), (1, f"{path}:{error}\n"))

    def test_good(self):
        """Units, and texts that only look like mistakes."""
        for text in GOOD:
            with self.subTest(text):
                self.assert_good(self.check(text)[1])

    def test_units(self):
        """The value is the one that counts without a unit."""
        self.serve(1, config="request_timeout = 2s\nclient_memory = 64M\nlease_time = 1min")
        found = stats(self.conn, "stats settings")
        self.assertEqual((found["request_timeout"], found["client_memory"], found["lease_time"]), ("2000", "67108864", "60"))
