"""Compares values that are comparable between runs: ratios within one run, and CPU per request of one server."""
from . import results

FALL = 0.30
# Values of setlistd itself, which are comparable as well.
OWN = (("cpu_us", "CPU us/request"), ("bytes_each", "bytes/connection"), ("copies", "copies of the reply"),
       ("growth_mb", "MB of growth"), ("member_bytes", "bytes/member"), ("cold_ms", "ms when cold"),
       ("cold_kb", "KB when cold"), ("pair_us", "us/pair"), ("base_bytes", "bytes of the base"))


def ratios_of(document):
    """Returns setlistd's ratio to each peer, by row and peer."""
    found = {}
    for (row, server), cell in results.cells_of(document).items():
        if cell.get("ratio") and not server.startswith("setlistd"):
            found.setdefault(row, {})[server] = round(cell["ratio"], 3)
    return found


def baseline_of(document):
    """Returns the values with which later quick runs are compared."""
    return {"schema": results.SCHEMA, "fall": FALL, "versions": document["versions"], "ratios": ratios_of(document)}


def falls(baseline, document):
    """Returns the rows whose ratio is far below the baseline's: (row, peer, old, new), and how many were compared."""
    now, found, compared = ratios_of(document), [], 0
    for row, peers in baseline["ratios"].items():
        for peer, was in peers.items():
            got = now.get(row, {}).get(peer)
            if got is None:
                continue
            compared += 1
            if got < was * (1 - baseline.get("fall", FALL)):
                found.append((row, peer, was, got))
    return found, compared


def compare(old, new):
    """Returns lines with the differences between two documents: ratios to peers, and setlistd's own CPU for each request."""
    yield f"{'row':22} {'of setlistd':26} {'first':>9} {'second':>9} {'change':>8}"
    before, after = results.cells_of(old), results.cells_of(new)
    for (row, server), cell in after.items():
        other = before.get((row, server))
        if other is None:
            continue
        if server.startswith("setlistd"):
            name = "" if server == "setlistd" else f" ({server[9:]})"
            for metric, text in OWN:
                yield from _line(row, text + name, other.get(metric), cell.get(metric))
        if server != "setlistd":
            yield from _line(row, f"rate over {server}'s", other.get("ratio"), cell.get("ratio"))
    missing = sorted({row for row, _ in before} ^ {row for row, _ in after})
    if missing:
        yield f"in one of them only: {', '.join(missing)}"
    for name in sorted(set(old["versions"]) | set(new["versions"])):
        was, now = old["versions"].get(name, "not there"), new["versions"].get(name, "not there")
        if was != now:
            yield f"{name}: first {was}, second {now}"
    if old["machine"] != new["machine"]:
        yield "the machines differ: only the ratios can be compared"


def _line(row, what, was, now):
    if was and now is not None:
        yield f"{row:22} {what:26} {was:9.2f} {now:9.2f} {(now / was - 1) * 100:+7.0f}%"
