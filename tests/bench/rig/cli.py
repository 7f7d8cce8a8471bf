"""The command line of scripts/bench."""
import argparse
import json
import os
import signal
import sys

from . import baseline, chart, instructions, results, table, targets
from .peers import Failed, Lab, raise_descriptors, say
from .rounds import Run, build_loadgen
from .rows import SERVERS, select

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
BASELINE = os.path.join(ROOT, "tests/bench/baseline.json")
INSTRUCTIONS = os.path.join(ROOT, "tests/bench/instructions.json")
ABOUT = """\
Measures setlistd beside its peers, all loaded by the same generator in one run. The machine's speed changes from minute
to minute, so the servers take turns for several rounds, medians are shown, and only ratios within one run mean
anything. What is not installed is skipped by name.
"""
STATUS = """\
Exit status: 0 all replies were right (and with --quick no ratio fell far below the baseline), 1 not so, or something
failed, 2 usage.
"""
# Rounds and seconds: all rows take about sixteen minutes, the quick run less than forty seconds.
FULL, QUICK = (3, 0.5), (3, 0.25)


def parse(argv):
    parser = argparse.ArgumentParser(prog="scripts/bench", description=ABOUT, epilog=STATUS)
    add = parser.add_argument
    add("--quick", action="store_true", help="a few rows, and compare their ratios with the baseline's")
    add("--instructions", action="store_true",
        help="do not time, but count setlistd's instructions for each request, and compare them with tests/bench/instructions.json")
    add("--row", action="append", default=[], metavar="NAME", help="only row NAME, or rows NAME-... (may be repeated)")
    add("--server", action="append", default=[], choices=SERVERS, metavar="NAME",
        help="only this server (may be repeated): " + ", ".join(SERVERS))
    add("--seconds", type=_positive, metavar="S", help=f"length of one measurement ({FULL[1]})")
    add("--rounds", type=_count, metavar="N", help=f"number of measurements of each kind; the median is used ({FULL[0]})")
    add("--conns", type=_count, default=50, metavar="N", help="connections (50)")
    add("--threads", type=_count, default=1, metavar="N", help="worker threads of setlistd (1); setlistd-t2 has two")
    add("--setlistd", default=os.path.join(ROOT, "setlistd"), metavar="PATH", help="the program to measure")
    add("--memcached-proxy", metavar="PATH", help="a memcached that was built with its proxy (memcached)")
    add("--json", metavar="FILE", help="also write the results to FILE; tests/bench/rig/results.py describes the format")
    add("--svg", metavar="FILE", help="also draw a chart of some rows")
    add("--from", dest="source", metavar="FILE", help="do not measure, but show the results in this file of --json")
    add("--compare", nargs=2, metavar=("A", "B"), help="do not measure, but show the differences between two files")
    add("--baseline", metavar="FILE", help="the file that --quick or --instructions compares with, instead of the one in tests/bench")
    add("--write-baseline", action="store_true", help="with --quick or --instructions: store the results as the new baseline")
    add("--list", action="store_true", help="list the rows and exit")
    options = parser.parse_args(argv)
    rounds, seconds = QUICK if options.quick else FULL
    options.rounds, options.seconds = options.rounds or rounds, options.seconds or seconds
    if options.write_baseline and not (options.quick or options.instructions):
        parser.error("--write-baseline goes with --quick or --instructions")
    options.baseline = options.baseline or (INSTRUCTIONS if options.instructions else BASELINE)
    try:
        options.rows = () if options.instructions else select(options.row, options.quick)
    except ValueError as wrong:
        parser.error(str(wrong))
    return options


def _positive(text):
    return _number(text, float, lambda value: 0 < value <= 3600)


def _count(text):
    return _number(text, int, lambda value: value >= 1)


def _number(text, kind, good):
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not good(value):
        raise argparse.ArgumentTypeError(f"bad number {text!r}")
    return value


def main(argv=None):
    options = parse(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return run(options)
    except Failed as why:
        say(str(why))
    except (OSError, ValueError, KeyError) as why:
        say(f"{type(why).__name__}: {why}")
    except KeyboardInterrupt:
        return 130
    return 1


def run(options):
    if options.instructions:
        return instructions.run(ROOT, os.path.abspath(options.setlistd), options.baseline, options.row, options.write_baseline)
    if options.list:
        print("\n".join(f"{row.name:22} {row.about}" for row in options.rows))
        return 0
    if options.compare:
        print("\n".join(baseline.compare(*map(read, options.compare))))
        return 0
    status = 0
    if options.source:
        document = read(options.source)
        document["targets"] = targets.evaluate(document)
    else:
        document, status = measure(options)
    print("\n".join(table.lines(document)))
    if options.json:
        write(options.json, json.dumps(document, indent=1) + "\n")
    if options.svg:
        write(options.svg, chart.svg(document))
    return status


def measure(options):
    """Measures. Returns the document and the exit status."""
    settings = {"seconds": options.seconds, "rounds": options.rounds, "conns": options.conns,
                "threads": options.threads, "quick": options.quick}
    raise_descriptors(8192)
    loadgen = build_loadgen(ROOT)
    with Lab(os.path.abspath(options.setlistd), options.threads, options.memcached_proxy) as lab:
        document, wrong = measure_once(lab, settings, loadgen, options.rows, options)
        fallen = guard(lab, settings, loadgen, document, options) if options.quick else False
    document["targets"] = [] if options.quick else targets.evaluate(document)
    return document, 1 if wrong or fallen else 0


def measure_once(lab, settings, loadgen, rows, options):
    one = Run(lab, settings, loadgen)
    one.measure(rows, options.quick, options.server)
    if not one.samples:
        raise Failed("nothing was measured")
    skipped = list(lab.missing.items()) + one.skipped
    return results.build(rows, one.samples, settings, lab.versions, skipped), one.wrong


def guard(lab, settings, loadgen, document, options):
    """Compares with the baseline, or writes it. Rows below it are measured again before they are reported. Returns true if any is below."""
    if options.write_baseline:
        write(options.baseline, json.dumps(baseline.baseline_of(document), indent=1) + "\n")
        return False
    stored = read(options.baseline)
    found, compared = baseline.falls(stored, document)
    if found:
        again = [row for row in options.rows if row.name in {name for name, *_ in found}]
        say("measured once more: " + ", ".join(row.name for row in again))
        second, _ = measure_once(lab, settings, loadgen, again, options)
        still = {(row, peer) for row, peer, *_ in baseline.falls(stored, second)[0]}
        found = [fall for fall in found if fall[:2] in still]
    for row, peer, was, got in found:
        say(f"FELL: {row}: setlistd's rate over that of {peer} is {got:.2f}, the baseline says {was:.2f}")
    say(f"{compared} ratios compared with the baseline, {len(found)} fell by more than {stored['fall']:.0%}")
    return bool(found) or not compared


def read(path):
    with open(path, encoding="utf-8") as file:
        try:
            found = json.load(file)
        except ValueError as broken:
            raise Failed(f"{path}: {broken}") from broken
    if not isinstance(found, dict) or found.get("schema") != results.SCHEMA:
        raise Failed(f"{path}: not a file of this program, or of another version of it")
    return found


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
