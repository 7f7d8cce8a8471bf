"""The computing parts of the benchmark: from samples to a verdict, a table, a chart, a comparison."""
import copy
import json
import os
import re
import unittest
import xml.dom.minidom

from rig import background, baseline, chart, cli, fill, results, rounds, rows, special, table, targets
from rig.targets import Target, Value

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = {"seconds": 1, "rounds": 3, "conns": 50, "threads": 1, "quick": False}


def sample(rate, cpu=5.0, p99=300.0, **more):
    return {"rate": rate, "p50_us": p99 / 3, "p95_us": p99 / 2, "p99_us": p99, "p999_us": p99 * 2, "errors": 0,
            "misses": 0, "lost": 0, "loadgen_cpu_us": 1.0,
            "processes": [{"name": "own", "cpu_us": cpu, "rss_kb": 2048}, {"name": "behind", "cpu_us": 1, "rss_kb": 1024}],
            **more}


def document(cells):
    """Returns a document from {(row, server): samples}."""
    named = {row.name: row for row in rows.ROWS}
    samples = {(row, server, "op"): taken for (row, server), taken in cells.items()}
    chosen = [named[name] for name in dict.fromkeys(row for row, _ in cells)]
    return results.build(chosen, samples, SETTINGS, {"setlistd": "1.0", "redis": "7"}, [("nutcracker", "not installed")])


USUAL = {
    ("get-1", "setlistd"): [sample(100, 4), sample(120, 6), sample(60, 5)],
    ("get-1", "memcached"): [sample(50, 5), sample(100, 5), sample(60, 5)],
    ("get-1", "nutcracker"): [sample(10), sample(10), sample(10)],
    ("get-1", "memcached-proxy"): [sample(50), sample(60), sample(30)],
}


class Summaries(unittest.TestCase):
    def setUp(self):
        self.cells = results.cells_of(document(USUAL))

    def test_medians(self):
        cell = self.cells["get-1", "setlistd"]
        self.assertEqual((cell["rate"], cell["cpu_us"], cell["shared_cpu_us"], cell["p99_us"]), (100, 5, 1, 300))
        self.assertEqual([one["rate"] for one in cell["rounds"]], [100, 120, 60])
        self.assertEqual([(one["name"], one["cpu_us"], one["rss_kb"]) for one in cell["processes"]],
                         [("own", 5, 2048), ("behind", 1, 1024)])

    def test_ratio_is_the_median_of_the_rounds(self):
        # 2, 1.2 and 1; the ratio of the medians is 1.67.
        self.assertEqual(self.cells["get-1", "memcached"]["ratio"], 1.2)
        self.assertEqual(self.cells["get-1", "setlistd"]["ratio"], 1)

    def test_a_lost_round_is_no_ratio_of_rounds(self):
        lacking = dict(USUAL)
        lacking["get-1", "memcached"] = USUAL["get-1", "memcached"][:2]
        self.assertEqual(results.cells_of(document(lacking))["get-1", "memcached"]["ratio"], round(100 / 75, 4))

    def test_errors_are_summed(self):
        wrong = {("get-1", "setlistd"): [sample(1, errors=2), sample(1), sample(1, errors=3, lost=1)]}
        made = document(wrong)
        self.assertEqual(results.cells_of(made)["get-1", "setlistd"]["errors"], 5)
        self.assertIn("ERRORS 6", "\n".join(table.lines(made)))

    def test_json_keeps_all(self):
        made = document(USUAL)
        self.assertEqual(json.loads(json.dumps(made)), made)
        self.assertEqual(made["skipped"], [["nutcracker", "not installed"]])


    def test_the_worst_of_all_rounds(self):
        cells = {("proxies20-hot", "setlistd"): [sample(1, base_bytes=size, misses=1) for size in (5, 7000, 6)]}
        made = document(cells)
        cell = results.cells_of(made)["proxies20-hot", "setlistd"]
        self.assertEqual((cell["base_bytes"], cell["failures"]), (7000, 3))
        self.assertIn("base of up to 7,000 bytes", "\n".join(table.lines(made)))

    def test_what_has_no_rate(self):
        cells = {
            ("memory-set-seq", "redis"): [{"members": 10, "growth_bytes": 45, "member_bytes": 4.5}],
            ("memory-sinter", "setlistd"): [{"rss_before_kb": 1024, "peak_kb": 3072, "growth_mb": 2.0}],
            ("cold-sismember-1000000", "setlistd"): [{"cold_ms": 1.5, "cold_kb": 20.5, "cold_requests": 3}],
            ("cold-sismember-1000000", "redis"): [{"cold_ms": 0.25}],
            ("memory-unread", "setlistd"): [{"connections": 9, "closed": 4, "rss_before_kb": 1024, "peak_kb": 2048, "gets": 77,
                                             "p99_us": 1234.0}],
        }
        shown = "\n".join(table.lines(document(cells)))
        for text in ("10 members: 4.50 bytes each", "1.0 MB before, 3.0 MB at most: 2.0 MB of growth",
                     "1.50 ms, 20.5 KB and 3 requests between it and memcached", "0.25 ms\n",
                     "9 connections, 4 of them closed: 1.0 MB before, 2.0 MB at most; another's 77 gets: p99 1,234 us"):
            self.assertIn(text, shown)

    def test_processes_of_one_kind_are_one(self):
        own = [{"name": "own", "cpu_us": cpu, "rss_kb": 10} for cpu in (1, 2, 3)]
        behind = {"name": "behind", "cpu_us": 9, "rss_kb": 90}
        self.assertEqual(rounds.together([*own, behind], [3, 1]), [{"name": "own", "cpu_us": 6, "rss_kb": 30}, behind])
        self.assertEqual(rounds.together([own[0], behind], [1, 1]), [own[0], behind])
        self.assertEqual(rounds.together([behind, *own], [1, 3]), [behind, {"name": "own", "cpu_us": 6, "rss_kb": 30}])


class Targets(unittest.TestCase):
    def verdicts(self, cells, *wanted):
        return [(one["got"], one["met"]) for one in targets.evaluate(document(cells), wanted)]

    def test_against_the_better_of_two(self):
        over = Value("get-1", ("nutcracker", "memcached-proxy"))
        mine = Value("get-1", ("setlistd",))
        self.assertEqual(self.verdicts(USUAL, Target("1", "", mine, over, at_least=2),
                                       Target("1", "", mine, over, at_least=2.01)), [(2, True), (2, False)])

    def test_at_most(self):
        mine, over = Value("get-1", ("setlistd",), "cpu_us"), Value("get-1", ("memcached",), "cpu_us")
        self.assertEqual(self.verdicts(USUAL, Target("1", "", mine, over, at_most=1),
                                       Target("1", "", mine, over, at_most=0.99)), [(1, True), (1, False)])

    def test_a_bound_alone(self):
        cells = {("memory-idle", "setlistd"): [{"connections": 10, "bytes_each": 600.0, "rss_before_kb": 1,
                                                "rss_after_kb": 7}]}
        mine = Value("memory-idle", ("setlistd",), "bytes_each")
        self.assertEqual(self.verdicts(cells, Target("1", "", mine, at_most=600), Target("1", "", mine, at_most=599)),
                         [(600, True), (600, False)])
        self.assertIn("600 bytes each", "\n".join(table.lines(document(cells))))

    def test_not_measured(self):
        mine = Value("get-1", ("setlistd",))
        self.assertEqual(self.verdicts(USUAL, Target("1", "", mine, Value("get-1", ("redis",)), at_least=1)),
                         [(None, None)])
        self.assertEqual(self.verdicts(USUAL, Target("1", "", Value("set-1", ("setlistd",)), at_least=1)), [])

    def test_all_name_what_there_is(self):
        there = {row.name: {server for server, _ in row.contenders()} for row in rows.ROWS}
        for target in targets.TARGETS:
            for value in filter(None, (target.value, target.over)):
                self.assertIn(value.row, there, target.text)
                self.assertLessEqual(set(value.servers), there[value.row], target.text)
                self.assertIn(value.metric, (*results.METRICS, *results.MAXIMA, "failures"))
            self.assertEqual((target.at_least is None) + (target.at_most is None), 1, target.text)

    def test_printed(self):
        made = document(USUAL)
        made["targets"] = targets.evaluate(made)
        shown = "\n".join(table.lines(made))
        self.assertRegex(shown, r"5\.1 +get-1: rate over that of the better proxy +at least 0\.9 +2\.00  met")
        self.assertRegex(shown, r"5\.9 .* -  not measured")
        self.assertIn("skipped: nutcracker: not installed", shown)


class Rows(unittest.TestCase):
    def test_all_name_what_there_is(self):
        with open(os.path.join(HERE, "workload.c"), encoding="utf-8") as file:
            ops = set(re.findall(r'^\t\{ "([a-z0-9-]+)", LOAD_', file.read(), re.M))
        self.assertIn("get", ops)
        for row in rows.ROWS:
            for server, op in row.contenders():
                self.assertIn(server, rows.SERVERS, row.name)
                self.assertIn(op, ops if row.measure == "load" else ("",), row.name)
            self.assertIn(row.measure, ("load", *special.KINDS))
            self.assertIn(row.fill, ("", *fill.KINDS))
            self.assertIn(row.beside, ("", *background.KINDS))
        self.assertEqual(len({row.name for row in rows.ROWS}), len(rows.ROWS))
        for _, names, *_ in chart.PANELS:
            self.assertLessEqual(set(names), {row.name for row in rows.ROWS})

    def test_names(self):
        self.assertEqual([row.name for row in rows.select(["sadd"])][:2], ["sadd-1", "sadd-16"])
        self.assertEqual([row.name for row in rows.select(["get-1"])], ["get-1"])
        self.assertRaises(ValueError, rows.select, ["ge"])

    def test_quick(self):
        for row in rows.select([], quick=True):
            servers = [server for server, _ in row.contenders(quick=True)]
            self.assertEqual(servers[0], "setlistd")
            self.assertGreater(len(servers), 1, row.name)


class Baselines(unittest.TestCase):
    def setUp(self):
        self.made = document(USUAL)
        self.stored = baseline.baseline_of(self.made)

    def test_nothing_fell(self):
        self.assertEqual(baseline.falls(self.stored, self.made), ([], 3))

    def test_a_fall(self):
        slower = {key: [sample(one["rate"] * (0.65 if key[1] == "setlistd" else 1)) for one in taken]
                  for key, taken in USUAL.items()}
        found, compared = baseline.falls(self.stored, document(slower))
        self.assertEqual(([fall[:2] for fall in found], compared),
                         ([("get-1", "memcached"), ("get-1", "nutcracker"), ("get-1", "memcached-proxy")], 3))

    def test_who_is_not_there_is_not_compared(self):
        fewer = {key: taken for key, taken in USUAL.items() if key[1] in ("setlistd", "nutcracker")}
        self.assertEqual(baseline.falls(self.stored, document(fewer)), ([], 1))

    def test_the_stored_one_is_of_quick_rows(self):
        stored = cli.read(cli.BASELINE)
        quick = {row.name: {server for server, _ in row.contenders(True)} for row in rows.select([], quick=True)}
        for row, peers in stored["ratios"].items():
            self.assertLessEqual(set(peers), quick[row])

    def test_compare(self):
        other = copy.deepcopy(self.made)
        results.cells_of(other)["get-1", "memcached"]["ratio"] = 0.6
        other["versions"]["redis"] = "8"
        shown = "\n".join(baseline.compare(self.made, other))
        self.assertRegex(shown, r"get-1 +rate over memcached's +1\.20 +0\.60 +-50%")
        self.assertRegex(shown, r"get-1 +CPU us/request +5\.00 +5\.00 +\+0%")
        self.assertIn("redis: first 7, second 8", shown)


class Chart(unittest.TestCase):
    def parse(self, cells, **changes):
        made = document(cells)
        made.update(changes)
        return xml.dom.minidom.parseString(chart.svg(made))

    def test_bars(self):
        """The rows about the CPU time of servers are first."""
        drawn = self.parse({("get-16", server): taken for (_, server), taken in USUAL.items()})
        bars = [(one.getAttribute("class"), float(one.getAttribute("width"))) for one in drawn.getElementsByTagName("rect")]
        self.assertEqual([kind for kind, _ in bars], ["bar own", "bar", "bar", "bar"] * 2)
        self.assertEqual({width for _, width in bars[:4]}, {bars[0][1]}, "of all the last process takes as much")
        self.assertAlmostEqual(bars[5][1] / bars[4][1], 0.6, 2)
        self.assertAlmostEqual(bars[7][1] / bars[4][1], 0.5, 2)
        texts = [one.firstChild.data for one in drawn.getElementsByTagName("text")]
        self.assertLessEqual({"get of 100 bytes, 16 in flight", "setlistd", "nutcracker", "1", "60"}, set(texts))

    def test_inside_the_picture(self):
        cells = {(row, server): taken for _, names, *_ in chart.PANELS for row in names for (_, server), taken in USUAL.items()}
        drawn = self.parse(cells)
        height = float(drawn.documentElement.getAttribute("height"))
        bars = drawn.getElementsByTagName("rect")
        self.assertEqual(len(bars), sum(len(names) for _, names, *_ in chart.PANELS) * 4)
        lowest = 0
        for bar in bars:
            x, y, width = (float(bar.getAttribute(name)) for name in ("x", "y", "width"))
            lowest = max(lowest, y + chart.BAR)
            self.assertLess(x + width + chart.VALUE - 10, chart.WIDTH)
        self.assertLess(lowest, height)
        places = {(bar.getAttribute("x"), bar.getAttribute("y")) for bar in bars}
        self.assertEqual(len(places), len(bars), "none covers another")

    def test_both_modes_and_nothing_from_outside(self):
        text = chart.svg(document(USUAL))
        self.assertIn("prefers-color-scheme: dark", text)
        self.assertEqual(re.findall(r"https?://[^\"]*", text), ["http://www.w3.org/2000/svg"])

    def test_special_characters(self):
        self.parse(USUAL, versions={"<a>&\"b\"": "1"})

    def test_nobody_to_compare_with(self):
        self.assertEqual(len(self.parse({("get-1", "setlistd"): [sample(1)]}).getElementsByTagName("rect")), 0)

    def test_short(self):
        self.assertEqual([chart.short(rate) for rate in (0, 567, 999.4, 9999, 76098, 306622, 999949, 1105644, 12345678)],
                         ["0", "567", "999", "10.0 k", "76.1 k", "307 k", "1.00 M", "1.11 M", "12.3 M"])


class Turns(unittest.TestCase):
    class Lab:
        """Servers that reply, and servers that are missing."""
        def __init__(self, unknown=()):
            self.unknown, self.missing = unknown, {name: "not installed" for name in ("redis", "valkey", "nutcracker+redis")}
            self.servers = {}

        def get(self, name):
            if name not in self.missing:
                self.servers[name] = self
            return self.servers.get(name)

        def ask(self, line):
            return "ERROR" if line.split()[0] in self.unknown else "STORED"

        def drop_data(self):
            pass

    def order(self, names, unknown=(), only=()):
        """Records what is measured, in which order."""
        seen = []
        run = rounds.Run(self.Lab(unknown), dict(SETTINGS, rounds=2), "loadgen")
        rounds.say = lambda _: None
        run._measure = lambda row, server, op: seen.append((row.name, server, op))
        run.measure(rows.select(names), only=only)
        return seen, run.skipped

    def test_servers_take_turns(self):
        seen, skipped = self.order(["sadd-16"])
        once = [("sadd-16", "setlistd", "sadd"), ("sadd-16", "setlistd-t2", "sadd"), ("sadd-16", "memcached", "append")]
        self.assertEqual((seen, skipped), (once + once[::-1], []))

    def test_once_is_in_the_first_round(self):
        seen, _ = self.order(["memory-set-seq", "memory-idle"], only=("setlistd",))
        self.assertEqual([name for name, *_ in seen], ["memory-set-seq", "memory-idle", "memory-idle"])

    def test_pairs_have_a_time(self):
        run = rounds.Run(None, dict(SETTINGS, seconds=1), "loadgen")
        run._load = lambda *_: {"rate": 4000.0}
        asked = {row.name: run._loaded(row, None, row.op) for row in rows.select(["pop", "sadd-1"])}
        self.assertEqual(asked, {"pop-1000": {"rate": 4000.0, "pair_us": 500.0},
                                 "pop-1000000": {"rate": 4000.0, "pair_us": 500.0}, "sadd-1": {"rate": 4000.0}})

    def test_an_unknown_command_is_skipped_by_name(self):
        seen, skipped = self.order(["rpush-1", "set-1"], unknown=("rpush",), only=("setlistd",))
        self.assertEqual(seen, [("set-1", "setlistd", "set")] * 2)
        self.assertEqual(skipped, [("rpush-1", "setlistd does not know rpush")])
