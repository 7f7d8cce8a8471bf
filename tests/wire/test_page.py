"""The live page in a real browser, under load: its numbers change, it reports problems, and it sends requests to no other host.

Pictures of its states are written to build/test/page.
"""
import os
import re
import socket
import threading

from browser import Browser, find_browser
from case import WireTest, marks
from harness import HOST, PATIENCE, free_port, wait_until
from test_admin_port import fetch
from wire import Conn

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PICTURES = os.path.join(TOP, "build", "test", "page")
STRANGE = "<img/src=x/onerror=alert(1)>"    # a key
LONG = "session-" + "0123456789abcdef" * 12 + "-the-end"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
NUMBER = "parseFloat(document.getElementById('{}').textContent)"
TEXT = "document.getElementById('{}').textContent"
ROWS = "[...document.querySelectorAll('#{} tbody tr')]"


def row(server):
    return f"{ROWS.format('servers')}.find((tr) => tr.querySelector('.cut').dataset.whole === '{server}')"


def path(plot, name):
    """The plotted path; '' if there is none."""
    return f"(document.querySelector('#{plot} path.{name}')?.getAttribute('d') || '')"


def keys(table):
    """The keys of a table, in the order of its rows."""
    return f"[...document.querySelectorAll('#{table} .cut')].map((box) => box.dataset.whole)"


class Clients(threading.Thread):
    """A load, however slow, until it is stopped."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.enough = port, threading.Event()

    def run(self):
        with Conn(self.port) as conn:
            number = 0
            while not self.enough.wait(0.002):
                number += 1
                self.work(conn, number)

    def work(self, conn, number):
        conn.values(f"get key-{number % 100} {STRANGE} {LONG}")
        conn.ask(f"sadd topic-{number % 5} member-{number}")

    def stop(self):
        self.enough.set()
        self.join(PATIENCE)


class Gets(Clients):
    """Requests of one key, which each of them has this number of times."""

    def __init__(self, port, times):
        super().__init__(port)
        self.request = "get" + " only" * times

    def work(self, conn, number):
        conn.values(self.request)


class PageCase(WireTest):
    def setUp(self):
        if not find_browser():
            self.skipTest("there is no chromium")
        self.servers = self.begin_servers()
        self.admin = free_port()
        self.proxy = self.setlistd(self.servers, "-a", f"{HOST}:{self.admin}", config=self.config())
        wait_until("ready", lambda: fetch(self.admin, "/readyz")[0] == 200)
        self.browser = Browser()
        self.addCleanup(self.browser.stop)

    def config(self):
        return "slow_threshold = 1"

    def begin_servers(self):
        return [self.memcached() for _ in range(3)]

    def begin_load(self, kind=Clients, *args):
        self.load = kind(self.proxy.port, *args)
        self.load.start()
        self.addCleanup(self.load.stop)

    def show(self, **kwargs):
        self.browser.show(f"http://{HOST}:{self.admin}/", **kwargs)
        self.browser.wait("all servers are shown as up", f"document.querySelectorAll('#servers tr[data-state=up]').length === {len(self.servers)}")

    def picture(self, name, width, dark=False):
        """Keeps one, at this width, and leaves the page so. Nothing is cut off."""
        os.makedirs(PICTURES, exist_ok=True)
        self.browser.resize(**width)
        self.browser.dark(dark)
        self.browser.wait("it is as wide", f"innerWidth === {width['width']} && matchMedia('(prefers-color-scheme: dark)').matches === {str(dark).lower()}")
        self.assertEqual(self.browser.value("document.documentElement.scrollWidth"), width["width"])
        self.assertEqual(self.browser.value("[...document.querySelectorAll('section')].filter((s) => s.scrollWidth > s.clientWidth).length"), 0)
        self.browser.screenshot(os.path.join(PICTURES, name + ".png"))

    def level(self):
        return self.browser.value("document.getElementById('status').dataset.level")

    def visible(self, node):
        """Returns an expression that is true if the element is visible."""
        return self.browser.value(f"(() => {{ const r = ({node}).getBoundingClientRect(); return r.width > 2 && r.height > 2; }})()")

    def point_at(self, node):
        """Moves the mouse to the middle of an element: an expression."""
        self.browser.value(f"({node}).scrollIntoView({{ block: 'center' }}), 0")
        # The scrolling is over in the second frame from now.
        self.browser.value("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(0))))")
        x, y = self.browser.value(f"(() => {{ const r = ({node}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()")
        self.browser.move_mouse(x, y)

    def hover(self, node, what, expression):
        """Points at an element until this has an effect: the page may grow between reading its position and the move."""
        wait_until(what, lambda: self.browser.value(expression) or self.point_at(node), pause=0.05)

    def looks(self, times=1):
        """Waits until the page has received this number of further replies."""
        for _ in range(times):
            seen = self.browser.value("before.time_ms")
            self.browser.wait("it reads again", f"before.time_ms !== {seen}")


class Live(PageCase):
    @marks(smoke=True)
    def test_numbers_move_and_nothing_is_wrong(self):
        self.show()
        self.assertIn("None yet.", self.browser.value(TEXT.format("hot-requests")))
        self.picture("empty", WIDE)
        self.begin_load()
        value, wait = self.browser.value, self.browser.wait
        wait("there is a rate", NUMBER.format("rate") + " > 0")
        wait("there are latencies", NUMBER.format("p99") + " > 0")
        wait("the plot is drawn", path("rates", "one") + ".includes('L')")
        plot = value(path("rates", "one"))
        wait("the plot moves", f"{path('rates', 'one')} !== '{plot}'")
        self.assertEqual(self.level(), "good")
        self.assertEqual(value(TEXT.format("reasons")), "")
        # A hostile key is shown as text.
        wait("the hot keys are shown", f"document.getElementById('hot-requests').textContent.includes('{STRANGE}')")
        self.assertEqual(value("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.complaints, [])
        own = f"http://{HOST}:{self.admin}/"
        self.assertEqual(set(self.browser.requests), {own, own + "stats.json"})
        for name, width in (("wide", WIDE), ("phone", PHONE)):
            for dark in False, True:
                self.picture(name + ("-dark" if dark else ""), width, dark)

    @marks(smoke=True)
    def test_whose_it_is(self):
        self.show()
        whose = f"{socket.gethostname()} {HOST}:{self.proxy.port}"
        self.assertEqual(self.browser.value(TEXT.format("whose")), whose)
        self.assertEqual(self.browser.value("document.title"), f"All 3 servers are up · {whose} · setlistd")

    def test_a_reload_of_the_page_loses_nothing(self):
        self.begin_load()
        self.show()
        self.browser.wait("requests are shown", NUMBER.format("rate") + " > 0")
        self.load.stop()
        self.browser.wait("there are none any more", TEXT.format("rate") + " === '0'")
        self.show()
        # The lowest place is that of 0.
        self.browser.wait("they are in the plot", f"/ [0-5]?[0-9][.][0-9](L|$)/.test({path('rates', 'one')})")
        self.assertEqual(self.browser.value(TEXT.format("rate")), "0")
        self.assertRegex(self.browser.value("document.getElementById('latencies').getAttribute('aria-label')"), "p50: now –, least [0-9]|p50: now [0-9]")

    def test_lines_to_read_latencies_by(self):
        self.begin_load()
        self.show()
        self.browser.wait("there are latencies", NUMBER.format("p99") + " > 0")
        marks = self.browser.value("[...document.querySelectorAll('#latencies i')].map((i) => [parseFloat(i.style.top), i.textContent])")
        units = {"µs": 1, "ms": 1000, "s": 10 ** 6}
        found = [(top, int(text.split()[0]) * units[text.split()[1]]) for top, text in marks]
        self.assertGreaterEqual(len(found), 3)
        steps = [(round(a[0] - b[0], 1), b[1] / a[1]) for a, b in zip(found, found[1:], strict=False)]
        self.assertEqual(set(steps), {(round(100 / (len(found) - 1), 1), 10)})
        # Its values in words, for screen readers.
        for plot, words in (("latencies", r"p50: now .* p99: now "), ("rates", r"requests: now [0-9].* failed calls: now 0, least 0, most 0")):
            self.assertRegex(self.browser.value(f"document.getElementById('{plot}').getAttribute('aria-label')"), words)
        self.hover("document.getElementById('rates')", "it says what was there", r"/\d\d:\d\d:\d\d · .* requests · .* failed calls/.test(document.querySelector('#rates ~ .at').textContent)")

    def test_slow_requests_have_an_age(self):
        self.show()
        conn = self.connect(self.proxy)
        self.assertIn("· 1 ms or longer · ", self.browser.value(TEXT.format("threshold")))
        with self.servers[0].process.paused(), self.servers[1].process.paused(), self.servers[2].process.paused():
            conn.send(b"get held-back\r\n")
            self.looks(2)
        conn.read_values()
        self.browser.wait("it is shown", "document.querySelector('#slow .cut')?.dataset.whole === 'held-back'")
        age = "parseInt(document.querySelector('#slow td').textContent)"
        seen = self.browser.value(age)
        self.browser.wait("it grows older", f"{age} > {seen}")
        self.assertRegex(self.browser.value("document.querySelector('#slow td').textContent"), r"^\d+\ss$|min")

    def test_nothing_is_asked_while_nobody_looks(self):
        self.show()
        self.browser.value("Object.defineProperty(document, 'visibilityState', { get: () => window.seen || 'hidden', configurable: true }), 0")
        # Requests in flight are completed; after some turns of the page's own clock no more are sent.
        self.browser.value("new Promise((resolve) => setTimeout(resolve, 2500))")
        asked = len(self.browser.requests)
        self.browser.value("new Promise((resolve) => setTimeout(resolve, 3500))")
        self.assertEqual(len(self.browser.requests), asked)
        self.browser.value("window.seen = 'visible', document.dispatchEvent(new Event('visibilitychange')), 0")
        wait_until("it asks again", lambda: self.browser.value("0") == 0 and len(self.browser.requests) > asked)


class Outage(PageCase):
    def listen(self):
        """Records what a screen reader would announce from now on."""
        self.browser.value("window.said = [], new MutationObserver(() => said.push(document.getElementById('spoken').textContent))"
                           ".observe(document.getElementById('spoken'), { childList: true, characterData: true, subtree: true }), 0")

    def test_a_server_that_dies_turns_red(self):
        self.begin_load()
        self.show()
        name, value, wait = self.servers[1].name, self.browser.value, self.browser.wait
        self.listen()
        self.servers[1].kill()
        wait("it is red", f"{row(name)}?.dataset.state === 'down'")
        wait("the verdict says so", TEXT.format("verdict") + " === '1 of 3 servers is down'")
        self.assertEqual(self.level(), "bad")
        wait("it says why", f"/^for (\\d+\\smin )?\\d+\\ss: Connection refused$/.test({row(name)}.querySelector('.why').textContent)")
        wait("so does the banner", f"{TEXT.format('reasons')}.startsWith('{name} has been down for ') && {TEXT.format('reasons')}.includes('Connection refused')")
        wait("failed calls are counted", NUMBER.format("failed") + " > 0")
        wait("they are in the plot of the requests", path("rates", "fail") + ".includes('L') && " + path("rates", "one") + ".includes('L')")
        wait("they are in the banner", rf"/\d calls? per second fails?/.test({TEXT.format('reasons')})")
        wait("they are in the table", f"parseFloat({row(name)}.cells[3].textContent) > 0")
        self.assertIn("⚠ 1 of 3 servers is down · ", value("document.title"))
        for name_of_picture, width in (("outage", WIDE), ("outage-phone", PHONE)):
            self.picture(name_of_picture, width)
            for node in f"{row(name)}.cells[3]", f"{row(name)}.querySelector('.why')", "document.getElementById('failed')", "document.querySelector('#rates svg')":
                self.assertTrue(self.visible(node), node)
        # However often its numbers have changed, it was announced once.
        self.looks(2)
        self.assertEqual(value("said"), [f"1 of 3 servers is down: {name}"])
        self.servers[1].start()
        wait("it is green", "document.getElementById('status').dataset.level === 'good'")
        self.assertEqual(value("said")[-1], "All 3 servers are up")
        self.assertEqual(value(f"{row(name)}.querySelector('.why').textContent"), "")
        self.assertIn("L", value(path("rates", "fail")))

    def test_an_end_of_setlistd_turns_all_grey(self):
        self.begin_load()
        self.show()
        self.browser.wait("the plot is drawn", path("rates", "one") + ".includes('L')")
        self.load.stop()
        self.listen()
        self.proxy.stop()
        value, wait = self.browser.value, self.browser.wait
        wait("it says so", TEXT.format("verdict") + " === 'setlistd does not respond'")
        self.assertEqual(value("getComputedStyle(document.querySelector('main')).filter"), "grayscale(1)")
        self.assertEqual(self.level(), "gone")
        self.assertRegex(value(TEXT.format("reasons")), r"^The last reply was at \d\d:\d\d:\d\d, .* ago[.] ")
        self.assertRegex(value(TEXT.format("fresh")), r"^last reply \d\d:\d\d:\d\d$")
        self.assertIn(socket.gethostname(), value("document.title"))
        first = value(TEXT.format("reasons"))
        wait("it says how long ago", f"{TEXT.format('reasons')} !== {first!r}")
        self.assertEqual(value("said"), ["setlistd does not respond"])
        self.assertIn("L", value(path("rates", "one")))
        self.picture("gone", WIDE)
        self.picture("gone-phone-dark", PHONE, dark=True)


    def test_setlistd_that_stands_still_and_goes_on(self):
        self.show()
        with self.proxy.process.paused():
            self.browser.wait("all is grey", "document.body.hasAttribute('data-gone')")
            self.assertRegex(self.browser.value(TEXT.format("reasons")), r"No reply in 5 s[.]$")
        self.browser.wait("all is well", TEXT.format("verdict") + " === 'All 3 servers are up'")
        self.assertEqual(self.browser.value("getComputedStyle(document.querySelector('main')).filter"), "none")
        self.browser.wait("it is live", f"{TEXT.format('fresh')}.startsWith('live')")


class Names(PageCase):
    """Servers that were never up: the text of the banner for many of them, and long names on a phone."""
    smoke = True

    def begin_servers(self):
        return [f"unix:/nonexistent/rack-17/cache-production/memcached-{i}.sock" for i in range(5)] + [self.memcached()]

    def show(self, **kwargs):
        self.browser.show(f"http://{HOST}:{self.admin}/", **kwargs)
        self.browser.wait("five are down", f"document.getElementById('verdict')?.textContent === '5 of 6 servers are down'")

    def test_one_line_for_one_reason(self):
        self.show()
        first = ", ".join(self.servers[:3])
        self.browser.wait("the banner has a line", "document.querySelectorAll('#reasons li').length === 1")
        self.browser.wait("with all of them", f"{TEXT.format('reasons')}.startsWith('{first} and 2 more have been down for ')")
        self.assertIn(": No such file or directory", self.browser.value(TEXT.format("reasons")))
        self.picture("long-names-phone", PHONE)
        for name in self.servers[:5]:
            inside = f"(() => {{ const r = {row(name)}.querySelector('.short').getBoundingClientRect(), c = {row(name)}.cells[2].getBoundingClientRect(); return r.right <= c.left + 1; }})()"
            self.assertTrue(self.browser.value(inside), name)
            self.assertIsNone(self.browser.value(f"{row(name)}.querySelector('.full')"))


class Threads(PageCase):
    def config(self):
        return "threads = 2"

    def begin_servers(self):
        return [self.scripted_server()]

    def test_a_thread_without_a_connection(self):
        self.show()
        self.assertEqual(self.level(), "good")
        server = self.servers[0]
        server.hang_up = True
        server.links[0].close()
        name, why = server.name, r"1 of 2 threads has no connection, for (\d+\smin )?\d+\ss: ."
        self.browser.wait("the row says so", f"{row(name)}?.dataset.state === 'up' && /^{why}/.test({row(name)}.querySelector('.why').textContent)")
        self.browser.wait("so does the banner", f"/^{name}: {why}/.test({TEXT.format('reasons')})")
        self.assertEqual((self.browser.value(TEXT.format("verdict")), self.level()), ("Some threads are not connected", "warn"))
        self.assertEqual(self.browser.value(TEXT.format("spoken")), f"Some threads are not connected: {name}")
        server.hang_up = False
        self.browser.wait("all is well", f"{TEXT.format('verdict')} === 'The server is up'")


class Tables(PageCase):
    def ask(self, key, times):
        """Each one counts; one of 64 is sampled, by chance."""
        conn = self.connect(self.proxy)
        for _ in range(times):
            conn.values("get" + f" {key}" * 100)

    def test_rows_keep_their_place_under_the_pointer(self):
        self.ask("first", 100)
        self.ask("second", 30)
        self.show()
        value, wait, shown = self.browser.value, self.browser.wait, keys("hot-requests") + ".join(' ')"
        wait("both are shown", f"{shown} === 'first second'")
        self.hover("document.querySelectorAll('#hot-requests .cut')[1]", "the pointer holds them",
                   "document.getElementById('hot-requests').hasAttribute('data-held')")
        self.ask("second", 300)
        self.ask("third", 300)
        wait("the page knows the new order", "before.hot_by_requests.keys[2]?.key === 'first'")
        self.looks()
        self.assertEqual(value(shown), "first second")
        self.assertIn("rows keep their place", value("getComputedStyle(document.querySelector('#hot-requests h2'), '::after').content"))
        share = "parseFloat(document.querySelectorAll('#hot-requests tbody tr')[1].lastChild.textContent)"
        wait("the numbers go on", f"{share} > 30")
        self.browser.move_mouse(2, 2)
        wait("it is sorted again", f"{keys('hot-requests')}.indexOf('first') === 2")
        value("document.querySelector('#hot-bytes .cut').tabIndex = 0, document.querySelector('#hot-bytes .cut').focus(), 0")
        wait("the focus holds them too", "document.getElementById('hot-bytes').hasAttribute('data-held')")

    def test_rates_of_hot_keys_are_parts_of_the_current_rates(self):
        self.show()
        # Idle seconds count for averages since the start, which are not shown.
        self.looks(3)
        shown = "tables['{}'].shown[0]?.[1].rate"
        for times in 1, 4:
            self.begin_load(Gets, times)
            self.browser.wait("there are rates", f"parseFloat({TEXT.format('rate')}) > 0 && {shown.format('hot-requests')} > 0 && {shown.format('hot-bytes')} > 0")
            for _ in range(3):
                self.looks()
                live, requests, cell, rate = self.browser.value(
                    f"[plots.rates.points.at(-1).requests, {shown.format('hot-requests')}, "
                    f"document.querySelector('#hot-requests tbody tr').cells[1].textContent, {TEXT.format('rate')}]")
                self.assertAlmostEqual(requests, live * times, delta=0.02 * live * times)
                if times == 1:
                    self.assertEqual(cell, rate)
            self.load.stop()
            self.browser.wait("there are no requests", f"{TEXT.format('rate')} === '0' && {shown.format('hot-requests')} === 0")
            self.assertEqual(self.connect(self.proxy).ask("stats reset"), "RESET")
            self.browser.wait("the keys are gone", "before.hot_by_requests.keys.length === 0")

    def test_slow_requests_of_one_key_share_a_row(self):
        self.show()
        conn = self.connect(self.proxy)
        with self.servers[0].process.paused(), self.servers[1].process.paused(), self.servers[2].process.paused():
            conn.send(b"get one\r\nget one\r\nset one 0 0 1\r\nx\r\nget another\r\n")
            self.looks()
        for _ in range(2):
            conn.read_values()
        conn.line()
        conn.read_values()
        rows = f"{ROWS.format('slow')}.map((tr) => [tr.querySelector('.cut').dataset.whole, tr.cells[3].textContent]).sort()"
        self.browser.wait("all are recorded", "before.slow.filter((s) => s.key === 'one' || s.key === 'another').length === 4")
        self.looks()
        self.assertEqual([row for row in self.browser.value(rows) if row[0] in ("one", "another")], [["another", "1"], ["one", "3"]])

    def test_long_keys_are_whole_when_somebody_looks(self):
        self.ask(LONG, 40)
        self.ask(STRANGE, 40)
        box = f"[...document.querySelectorAll('#hot-requests .cut')].find((box) => box.dataset.whole === '{LONG}')"
        for width in WIDE, PHONE:
            self.show(**width)
            self.browser.wait("it is shown, and cut", f"Boolean({box}?.querySelector('.full'))")
            self.browser.move_mouse(2, 2)
            head, tail = f"{box}.querySelector('.head')", f"{box}.querySelector('.short').lastChild"
            self.assertTrue(self.browser.value(f"{head}.scrollWidth > {head}.clientWidth && {head}.clientWidth > 20"))
            self.assertEqual(self.browser.value(f"{tail}.textContent"), LONG[-12:])
            self.assertTrue(self.browser.value(f"{tail}.scrollWidth <= {tail}.clientWidth + 1"))
            full = f"{box}.querySelector('.full')"
            self.assertFalse(self.visible(full))
            self.hover(box, "it is whole", f"{full}.getBoundingClientRect().width > 200")
            self.assertEqual(self.browser.value(f"{full}.textContent"), LONG)
            if width is WIDE:
                self.picture("long-key", WIDE)
            self.browser.move_mouse(2, 2)
            self.browser.wait("it is cut again", f"{full}.getBoundingClientRect().width < 3")
            self.browser.value(f"{box}.focus(), 0")
            self.browser.wait("it is whole", f"{full}.getBoundingClientRect().width > 200")
            self.assertTrue(self.browser.value(f"(() => {{ const r = {full}.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth; }})()"))
        # One that has room is not cut, and is no stop of the tabulator.
        short = box.replace(LONG, STRANGE)
        self.show(**WIDE)
        self.browser.wait("it is shown", f"Boolean({short})")
        self.assertEqual(self.browser.value(f"[{short}.tabIndex, {short}.textContent]"), [-1, STRANGE])

    def test_terms_are_explained(self):
        self.ask("k", 40)
        for width in WIDE, PHONE:
            self.show(**width)
            tip, value = "document.getElementById('tip')", self.browser.value
            for term in "failed calls", "p99", "Memory", "Share":
                node = f"[...document.querySelectorAll('.term')].find((n) => n.textContent === '{term}' && n.offsetParent)"
                self.browser.wait("it is shown", f"Boolean({node})")
                self.browser.move_mouse(2, 2)
                self.browser.wait("no tip", f"{tip}.hidden")
                self.hover(node, "the tip is shown", f"!{tip}.hidden && {tip}.textContent === TERMS['{term}']")
                self.assertTrue(value(f"(() => {{ const r = {tip}.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && r.bottom <= innerHeight; }})()"))
            value("document.querySelector('#about .term').focus(), 0")
            self.browser.wait("the focus shows it", f"!{tip}.hidden && {tip}.textContent === TERMS.ring")
            self.browser.press("Escape")
            self.browser.wait("Escape hides it", f"{tip}.hidden")
        self.assertEqual(value("[...document.querySelectorAll('th')].filter((th) => !['col', 'row'].includes(th.scope)).length"), 0)
        self.assertGreater(value("document.querySelectorAll('th[scope=row]').length"), 3)
        with open(os.path.join(TOP, "man", "setlistd.8"), encoding="utf-8") as manual:
            section = manual.read().split(".Sh ADMIN PORT")[1].split(".Sh ")[0]
        self.assertEqual(value("Object.keys(TERMS)"), re.findall(r"(?m)^\.It Sy (.+)$", section))


class Moving(PageCase):
    smoke = True

    def config(self):
        return f'former_servers = {{"{self.servers[0].name}"}}\nmove_at = "2100-01-01T00:00:00Z"'

    def test_it_says_that_keys_will_move(self):
        self.show()
        self.browser.wait("it says when", f"/^Keys moved0they begin to move in \\d+\\sd \\d+\\sh$/.test({TEXT.format('facts')}.match(/Keys moved.*/)?.[0])")
        self.assertRegex(self.browser.value(TEXT.format("about")), "ring [0-9a-f]{8} · from ring [0-9a-f]{8}$")
