"""The tags of cached pages of the client modules: several processes of two languages at once."""
import os
import subprocess

import modules
from case import WireTest
from harness import wait_until
from matrix import CLIENTS
from program import installed
from wire import Conn

CLIENT = {"python": "pymemcache", "php": "php-memcached"}
BEGIN = {"python": 'from setlistd import Setlistd\nc = Setlistd("127.0.0.1:%d")\n',
         "php": "<?php require 'Setlistd.php'; $c = new Setlistd('127.0.0.1', %d);\n"}
TAGS, PAGES, ROUNDS = 4, 6, 300
# The database is a memcached of its own: tag-N has the version of the data that the tag stands for. done-N is the version before whose
# invalidation no page may be returned any more. Page N has two tags, and is the versions that it was rendered from.
PYTHON = r'''
import random, sys, time
from pymemcache.client.base import Client
database = Client("127.0.0.1:" + sys.argv[2], default_noreply=False)
what, number, rounds, tags, pages = sys.argv[1], *map(int, sys.argv[3:])
dice, hits = random.Random(number), 0

def versions(kind, some):
    return [int(database.get(f"{kind}-{tag}")) for tag in some]

def read(page):
    global hits
    some, hit = [page % tags, (page + 1) % tags], True
    def render():
        nonlocal hit
        hit, found = False, versions("tag", some)
        time.sleep(dice.choice((0, 0, 0.001, 0.005)))
        return " ".join(map(str, found))
    least = versions("done", some)
    found = c.remember(f"/page/{page}", [f"pages-{tag}" for tag in some], 3600, render)
    hits += hit
    if any(int(version) < one for version, one in zip(found.split(), least)):
        sys.exit(f"page {page} is {found}, and its tags {some} were invalidated at {least}")

if what == "read":
    while database.get("end") is None or rounds > 0:
        read(dice.randrange(pages))
        rounds -= 1
    for page in [*range(pages)] * 2:
        read(page)
    print(hits)
else:
    for _ in range(rounds):
        version = database.incr(f"tag-{number}", 1)
        c.invalidate(f"pages-{number}")
        if what == "invalidate":
            database.set(f"done-{number}", str(version))
        time.sleep(dice.choice((0, 0.002, 0.01)))
'''
PHP = r'''
$database = new Memcached();
$database->addServer('127.0.0.1', (int)$argv[2]);
[, $what, , $number, $rounds, $tags, $pages] = $argv;
mt_srand((int)$number);
$hits = 0;
function versions($database, $kind, $some) {
    return array_map(fn($tag) => (int)$database->get("$kind-$tag"), $some);
}
if ($what === 'read') {
    $last = array_merge(range(0, $pages - 1), range(0, $pages - 1));
    while ($database->get('end') === false || $rounds > 0 || $last) {
        $page = $rounds > 0 || $database->get('end') === false ? mt_rand(0, $pages - 1) : array_shift($last);
        [$some, $hit] = [[$page % $tags, ($page + 1) % $tags], true];
        $least = versions($database, 'done', $some);
        $found = $c->remember("/page/$page", array_map(fn($tag) => "pages-$tag", $some), 3600, function () use (&$hit, $database, $some) {
            [$hit, $found] = [false, versions($database, 'tag', $some)];
            usleep([0, 0, 1000, 5000][mt_rand(0, 3)]);
            return implode(' ', $found);
        });
        $hits += (int)$hit;
        foreach (explode(' ', $found) as $i => $version)
            if ($version < $least[$i]) {
                fwrite(STDERR, "page $page is $found, and its tags were invalidated at " . implode(' ', $least));
                exit(1);
            }
        $rounds--;
    }
    print($hits);
} else {
    for (; $rounds > 0; $rounds--) {
        $version = $database->increment("tag-$number");
        $c->invalidate("pages-$number");
        if ($what === 'invalidate')
            $database->set("done-$number", (string)$version);
        usleep([0, 2000, 10000][mt_rand(0, 2)]);
    }
}
'''


class Tags(WireTest):
    smoke = True

    def setUp(self):
        for language in CLIENT:
            if not installed(next(client for client in CLIENTS if client.name == CLIENT[language])):
                self.skipTest(f"{CLIENT[language]} is not installed")
        self.servers = [self.memcached() for _ in range(2)]
        self.proxies = [self.setlistd(self.servers, config='commands = "q|"') for _ in range(2)]
        server = self.memcached()
        self.database, self.port = self.connect(server), server.port
        self.folder, self.running = self.scratch(), []

    def start(self, language, proxy, *args):
        source = os.path.join(self.folder, f"{len(self.running)}.{language}")
        with open(source, "w", encoding="utf-8") as out:
            out.write(BEGIN[language] % self.proxies[proxy].port + (PYTHON if language == "python" else PHP))
        module, = [module for module in modules.ALL if module.language == language]
        what, *numbers = map(str, args)
        child = subprocess.Popen([*module.command(source), what, str(self.port), *numbers], env=modules.PROGRAM_ENVIRONMENT, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.running.append(child)
        self.addCleanup(self.end, child)
        return child

    @staticmethod
    def end(child):
        child.kill()
        child.wait()
        child.stdout.close()

    def finish(self, child):
        said = child.stdout.read()
        self.assertEqual(child.wait(), 0, said)
        return said

    def begin(self):
        for tag in range(TAGS):
            for kind in "tag", "done":
                self.assertEqual(self.database.set(f"{kind}-{tag}", b"0"), "STORED")

    def page(self, number):
        return self.connect(self.proxies[0]).get(f"/page/{number}")

    def test_no_page_survives(self):
        """While pages are read by four processes, one for each tag invalidates it again and again: no page is older than what has been
        invalidated, and many are from the cache."""
        self.begin()
        readers = [self.start(language, proxy, "read", proxy, 50, TAGS, PAGES) for language in CLIENT for proxy in range(2)]
        writers = [self.start(("python", "php")[tag % 2], tag // 2, "invalidate", tag, ROUNDS, TAGS, PAGES) for tag in range(TAGS)]
        for child in writers:
            self.assertEqual(self.finish(child), "")
        self.assertEqual(self.database.set("end", b"1"), "STORED")
        hits = [int(self.finish(child)) for child in readers]
        self.assertGreater(min(hits), 0)
        self.assert_all_new()

    def test_several_of_one_tag(self):
        """After all of them have ended, no page is left that is older than the last version."""
        self.begin()
        readers = [self.start(language, 0, "read", proxy, 50, TAGS, PAGES) for proxy, language in enumerate(CLIENT)]
        writers = [self.start(language, proxy, "quietly", 0, ROUNDS // 3, TAGS, PAGES) for language in CLIENT for proxy in range(2)]
        for child in writers:
            self.assertEqual(self.finish(child), "")
        self.assertEqual(self.database.set("end", b"1"), "STORED")
        for child in readers:
            self.finish(child)
        self.assert_all_new()

    def assert_all_new(self):
        versions = [self.database.get(f"tag-{tag}") for tag in range(TAGS)]
        pages = [self.page(number) for number in range(PAGES)]
        for number, page in enumerate(pages):
            # An empty one is that of a client that could not store its page.
            if page:
                self.assertEqual(page.split(), [versions[number % TAGS], versions[(number + 1) % TAGS]], number)
        self.assertTrue(any(pages))

    def test_tags_shrink(self):
        """The members of a tag expire, and its set gets smaller without any invalidation."""
        conn = self.connect(self.proxies[0])
        # All at once: on a slow machine, the last of many additions would follow a compaction, and be too few for another one.
        self.assertEqual(conn.ask("saddex pages-x 1 " + " ".join(f"/page/{number}" for number in range(300))), "STORED")
        wait_until("they have expired", lambda: conn.ask("scard pages-x") == "0", pause=0.05)

        def small():
            self.assertEqual(conn.ask("scard pages-x"), "0")
            return self.bytes_of("pages-x") < 100
        wait_until("it is smaller", small, pause=0.05)

    def bytes_of(self, key):
        with Conn(self.proxies[0].port) as conn:
            conn.send(f"sinfo {key}\r\n".encode())
            return next(int(line.split()[2]) for line in conn.lines_until("END") if line.startswith("STAT bytes "))
