"""The document as text."""

HEAD = (f"{'row':22} {'server':17} {'requests/s':>11} {'p50':>7} {'p95':>7} {'p99':>7} {'p99.9':>8} {'setlistd':>8} "
        f"{'load':>5}  CPU us/request and resident MB of each process")

# At the end, if the cell has it.
MORE = (("pair_us", "pair {:,.1f} us"), ("base_bytes", "base of up to {:,.0f} bytes"), ("beside", "{:,.0f} beside it"))

# Cells without a rate: the text of the first metric that a cell has.
SPECIAL = (
    ("cold_kb", "{cold_ms:,.2f} ms, {cold_kb:,.1f} KB and {cold_requests:.0f} requests between it and memcached"),
    ("cold_ms", "{cold_ms:,.2f} ms"),
    ("start_ms", "{start_ms:,.0f} ms to the first reply"),
    ("member_bytes", "{members:,.0f} members: {member_bytes:.2f} bytes each"),
    ("growth_mb", "{before:.1f} MB before, {peak:.1f} MB at most: {growth_mb:.1f} MB of growth"),
    ("closed", "{connections:,.0f} connections, {closed:,.0f} of them closed: {before:.1f} MB before, {peak:.1f} MB at most; "
               "another's {gets:,.0f} gets: p99 {p99_us:,.0f} us"),
    ("bytes_each", "{connections:,.0f} connections: {before:.1f} MB before, {after:.1f} MB after: {bytes_each:,.0f} bytes each"),
    ("copies", "{readers:.0f} readers of {reply:.0f} KB each: {before:.1f} MB before, {after:.1f} MB after: "
               "{copies:.1f} copies of the reply"),
)
UNITS = (("before", "rss_before_kb"), ("after", "rss_after_kb"), ("peak", "peak_kb"), ("reply", "reply_bytes"))


def lines(document):
    """Returns all of it: the rows, the rows about memory, the skipped ones, the targets."""
    settings = document["settings"]
    yield (f"{document['machine']['cpu']}, {document['machine']['cores']} cores; "
           + ", ".join(f"{name} {version}" for name, version in document["versions"].items()))
    yield (f"{settings['conns']} connections, {settings['rounds']} x {settings['seconds']:g} s, medians; "
           "latency in microseconds")
    yield ""
    yield HEAD
    for row in document["rows"]:
        for number, cell in enumerate(row["cells"]):
            yield from _cell(row["row"] if number == 0 else "", cell, number)
    yield ""
    yield "setlistd: its rate over that of the line. load: how busy the load generator kept its core; near 100% it is"
    yield "what may limit the rate."
    if document["skipped"]:
        yield ""
        yield from (f"skipped: {what}: {why}" for what, why in document["skipped"])
    if document.get("targets"):
        yield ""
        yield from _targets(document["targets"])


def _cell(name, cell, number):
    if "rate" not in cell:
        yield f"{name:22} {cell['server']:17} {_special(cell)}"
        return
    ratio = f"{cell['ratio']:8.2f}" if cell.get("ratio") and number > 0 else " " * 8
    processes = "  ".join(f"{one['name']} {one['cpu_us']:.2f} {one['rss_kb'] / 1024:.0f}M" for one in cell["processes"])
    percentiles = " ".join(f"{cell[metric]:{width},.0f}" for metric, width in
                           (("p50_us", 7), ("p95_us", 7), ("p99_us", 7), ("p999_us", 8)))
    rate = f"{cell['rate']:,.0f}" if cell["rate"] >= 100 else f"{cell['rate']:.1f}"
    more = "".join(f"  {text.format(cell[metric])}" for metric, text in MORE if metric in cell)
    wrong = f"  ERRORS {cell['errors'] + cell['lost']}" if cell["errors"] or cell["lost"] else ""
    busy = cell["loadgen_cpu_us"] * cell["rate"] / 1e4
    yield f"{name:22} {cell['server']:17} {rate:>11} {percentiles} {ratio} {busy:4.0f}%  {processes}{more}{wrong}"


def _special(cell):
    text = next(text for metric, text in SPECIAL if metric in cell)
    return text.format(**cell, **{name: cell[metric] / 1024 for name, metric in UNITS if metric in cell})


def _targets(targets):
    width = max(len(target["text"]) for target in targets)
    yield f"{'point':6} {'target':{width}} {'wanted':>15} {'got':>12}"
    for target in targets:
        got = "-" if target["got"] is None else f"{target['got']:,.2f}"
        verdict = {None: "not measured", True: "met", False: "NOT MET"}[target["met"]]
        yield f"{target['number']:6} {target['text']:{width}} {target['wanted']:>15} {got:>12}  {verdict}"
    met = sum(target["met"] is True for target in targets)
    measured = sum(target["met"] is not None for target in targets)
    yield f"{met} of {measured} targets met" + (f", {len(targets) - measured} not measured"
                                                if measured < len(targets) else "")
