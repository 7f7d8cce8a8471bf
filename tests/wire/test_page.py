"""The live page in a real browser, under load: its numbers move, it shows what is wrong, and it asks nobody else."""
import threading

from browser import Browser, find_browser
from case import WireTest
from harness import HOST, PATIENCE, free_port, wait_until
from test_admin_port import fetch
from wire import Conn

STRANGE = "<img/src=x/onerror=alert(1)>"    # a key
NUMBER = "parseFloat(document.getElementById('{}').textContent)"


def state(server):
    return f"[...document.querySelectorAll('#servers tr')].find((tr) => tr.children[1].textContent === '{server}')?.dataset.state"


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
                conn.values(f"get key-{number % 100} {STRANGE}")
                conn.ask(f"sadd topic-{number % 5} member-{number}")

    def stop(self):
        self.enough.set()
        self.join(PATIENCE)


class Live(WireTest):
    def setUp(self):
        if not find_browser():
            self.skipTest("there is no chromium")
        self.servers = [self.memcached() for _ in range(3)]
        self.admin = free_port()
        self.proxy = self.setlistd(self.servers, "-a", f"{HOST}:{self.admin}", config="slow_threshold = 1")
        wait_until("ready", lambda: fetch(self.admin, "/readyz")[0] == 200)
        self.load = Clients(self.proxy.port)
        self.load.start()
        self.addCleanup(self.load.stop)
        self.browser = Browser()
        self.addCleanup(self.browser.stop)

    def show(self, **kwargs):
        self.browser.show(f"http://{HOST}:{self.admin}/", **kwargs)
        self.browser.wait("all servers are shown as up", "document.querySelectorAll('#servers tr[data-state=up]').length === 3")

    def test_numbers_move_and_nothing_is_wrong(self):
        self.show()
        value, wait = self.browser.value, self.browser.wait
        wait("there is a rate", NUMBER.format("rate") + " > 0")
        wait("there are latencies", NUMBER.format("p99") + " > 0")
        wait("the plot is drawn", "document.querySelectorAll('#rates path')[1]?.getAttribute('d')?.includes('L')")
        plot = value("document.querySelectorAll('#rates path')[1].getAttribute('d')")
        wait("the plot moves", f"document.querySelectorAll('#rates path')[1].getAttribute('d') !== '{plot}'")
        self.assertEqual(value("document.getElementById('status').dataset.level"), "good")
        # A stranger's key is text.
        wait("the hot keys are shown", f"document.getElementById('hot-requests').textContent.includes('{STRANGE}')")
        self.assertEqual(value("document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.complaints, [])
        own = f"http://{HOST}:{self.admin}/"
        self.assertEqual(set(self.browser.requests), {own, own + "stats.json"})

    def test_a_server_that_dies_turns_red(self):
        self.show()
        name = self.servers[1].name
        self.servers[1].kill()
        self.browser.wait("it is red", f"{state(name)} === 'down'")
        self.browser.wait("the verdict says so", "document.getElementById('verdict').textContent === '1 of 3 servers is down'")
        self.assertEqual(self.browser.value("document.getElementById('status').dataset.level"), "bad")
        self.assertIn(name, self.browser.value("document.getElementById('reasons').textContent"))
        self.servers[1].start()
        self.browser.wait("it is green", "document.getElementById('status').dataset.level === 'good'")

    def test_an_end_of_setlistd_is_seen(self):
        self.show()
        self.load.stop()
        self.proxy.stop()
        self.browser.wait("it says so", "document.getElementById('verdict').textContent === 'setlistd does not answer'")

    def test_nothing_is_cut_off_on_a_phone(self):
        for dark in False, True:
            self.show(width=360, height=740, dark=dark)
            self.browser.wait("all is shown", "document.querySelectorAll('#slow, #largest, #hot-bytes').length === 3 && "
                              f"document.getElementById('hot-requests').textContent.includes('{STRANGE}')")
            self.assertEqual(self.browser.value("document.documentElement.scrollWidth"), 360)
            self.assertEqual(self.browser.value("[...document.querySelectorAll('section')].filter((s) => s.scrollWidth > s.clientWidth).length"), 0)

    def test_nothing_is_asked_while_nobody_looks(self):
        self.show()
        self.browser.value("Object.defineProperty(document, 'visibilityState', { get: () => window.seen || 'hidden', configurable: true }), 0")
        # What was under way comes to its end; after some turns of the page's own clock nothing more is asked.
        self.browser.value("new Promise((resolve) => setTimeout(resolve, 2500))")
        asked = len(self.browser.requests)
        self.browser.value("new Promise((resolve) => setTimeout(resolve, 3500))")
        self.assertEqual(len(self.browser.requests), asked)
        self.browser.value("window.seen = 'visible', document.dispatchEvent(new Event('visibilitychange')), 0")
        wait_until("it asks again", lambda: self.browser.value("0") == 0 and len(self.browser.requests) > asked)
