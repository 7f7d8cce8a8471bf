"""From samples to one document, which --json writes.

    schema    1; additions do not change it
    taken     when, in UTC                       machine   cpu, cores, memory_mb, kernel
    versions  by program                         settings  seconds, rounds, conns, threads, quick
    skipped   [name, reason] for each
    rows      [{row, about, cells: [...]}]
    targets   [{number, text, wanted, got, met}]; met is null if not measured

A cell has the results of one server in one row. Numbers are medians over the rounds:

    server, op        the server, and the command
    rate              requests per second        p50_us p95_us p99_us p999_us   latency
    cpu_us            user and system time for each request, of only the server under test
    shared_cpu_us     the same of the servers that store the data, which many proxies share: the last of the processes
    processes         [{name, cpu_us, rss_kb}]: of all processes involved, the server under test first
    loadgen_cpu_us    the same of the load generator
    errors, misses    sums; failures: the sum of these and of lost requests
    ratio             setlistd's rate divided by that of this server; null without setlistd
    rounds            [{metric: value}]: those of each round
    offered           open loop: the rate at which requests became due

    pair_us           the mean time of two requests, if they come in pairs
    base_bytes        the largest observed size of a set's base, if it was watched

Cells of the rows about memory have, instead of a rate: rss_before_kb, rss_after_kb, and connections and bytes_each, or
readers, reply_bytes, growth_bytes and copies; or rss_before_kb, peak_kb and growth_mb. Those about stored bytes have
members, growth_bytes and member_bytes. memory-unread has connections, closed, rss_before_kb and peak_kb, and gets
and p99_us of another client. Those about a cold start have cold_ms, and of setlistd cold_kb and
cold_requests, the traffic between it and memcached. Those about the start of a process have start_ms.

A ratio is the median of the ratios within each round: the machine's speed changes from one to the next.
"""
import datetime
import os
import platform
import statistics

SCHEMA = 1
METRICS = ("rate", "p50_us", "p95_us", "p99_us", "p999_us", "cpu_us", "shared_cpu_us", "loadgen_cpu_us", "offered", "rss_before_kb",
           "rss_after_kb", "connections", "bytes_each", "readers", "reply_bytes", "growth_bytes", "copies", "beside",
           "peak_kb", "growth_mb", "members", "member_bytes", "cold_ms", "cold_kb", "cold_requests", "pair_us",
           "start_ms", "closed", "gets")
MAXIMA = ("base_bytes",)
SUMS = ("errors", "misses", "lost")


def build(rows, samples, settings, versions, skipped):
    """Returns the document of one run, without its targets. Samples are lists, by row, server and op."""
    document = {
        "schema": SCHEMA,
        "taken": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "machine": machine(),
        "versions": dict(sorted(versions.items())),
        "settings": settings,
        "skipped": [list(one) for one in skipped],
        "rows": [],
    }
    for row in rows:
        cells = [summary(server, op, taken) for (name, server, op), taken in samples.items() if name == row.name]
        if cells:
            _add_ratios(cells)
            document["rows"].append({"row": row.name, "about": row.about, "cells": cells})
    return document


def summary(server, op, samples):
    """Returns one cell from the samples of all rounds."""
    for sample in samples:
        if sample.get("processes"):
            sample["cpu_us"] = sample["processes"][0]["cpu_us"]
            sample["shared_cpu_us"] = sample["processes"][-1]["cpu_us"]
    rounds = [{metric: sample[metric] for metric in METRICS + MAXIMA if metric in sample} for sample in samples]
    cell = {"server": server, "op": op}
    cell.update({metric: _median(rounds, metric) for metric in METRICS if metric in rounds[0]})
    cell.update({metric: max(one[metric] for one in rounds) for metric in MAXIMA if metric in rounds[0]})
    cell["processes"] = _processes([sample["processes"] for sample in samples if sample.get("processes")])
    for metric in SUMS:
        cell[metric] = sum(sample.get(metric, 0) for sample in samples)
    cell["failures"] = sum(cell[metric] for metric in SUMS)
    cell["rounds"] = rounds
    return cell


def _median(rounds, metric):
    return round(statistics.median(one[metric] for one in rounds), 3)


def _processes(lists):
    """Returns the medians of each process; the lists are in the same order, since the server is the same."""
    return [{"name": turns[0]["name"], "cpu_us": _median(turns, "cpu_us"), "rss_kb": _median(turns, "rss_kb")}
            for turns in zip(*lists)]


def _add_ratios(cells):
    mine = next((cell for cell in cells if cell["server"].startswith("setlistd")), None)
    for cell in cells:
        cell["ratio"] = ratio_of(mine, cell, "rate")


def ratio_of(cell, over, metric, alone=False):
    """Returns the median of the ratios of all rounds, or the metric itself if it is not a ratio; None if there is none."""
    if cell is None or metric not in cell:
        return None
    if alone:
        return cell[metric]
    if over is None or not over.get(metric):
        return None
    if len(cell["rounds"]) != len(over["rounds"]) or not all(one[metric] for one in over["rounds"]):
        return round(cell[metric] / over[metric], 4)
    return round(statistics.median(one[metric] / other[metric]
                                   for one, other in zip(cell["rounds"], over["rounds"])), 4)


def cells_of(document):
    """Returns all cells, by row and server."""
    return {(row["row"], cell["server"]): cell for row in document["rows"] for cell in row["cells"]}


def machine():
    return {
        "cpu": _line_of("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int((_line_of("/proc/meminfo", "MemTotal") or "0").split()[0]) // 1024,
        "kernel": platform.release(),
    }


def _line_of(path, name):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith(name):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return None
