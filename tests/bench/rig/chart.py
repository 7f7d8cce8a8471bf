"""The document as a bar chart (SVG), in two panels: the CPU time of the servers that store the data, and requests per second.

The longest bar of each group is the largest value. The chart has no background, and its colours follow the reader's light or dark mode.
"""
import re
from xml.sax.saxutils import escape

from .rows import SERVERS

# The part that an operator has to scale. Many proxies share these servers.
SHARED_ROWS = ("sadd-16", "hot-16", "rw-1000-16", "rw-1000000-16", "smembers-1000", "smembers-10000", "rpush-16", "get-16")
ROWS = ("get-1", "get-16", "set-16", "sadd-1", "sadd-16", "hot-16", "rw-1000-16", "rw-1000000-16", "smembers-1000",
        "smembers-10000", "evincr-16", "rpush-16")
LABELS = {"memcached": "memcached, directly", "redis": "Redis, directly", "valkey": "Valkey, directly",
          "nutcracker+redis": "nutcracker + Redis", "memcached-proxy": "memcached's proxy"}

# title, rows, metric, format of a value
PANELS = (
    ("CPU of the shared servers for 1,000 requests, in ms: shorter is better", SHARED_ROWS, "shared_cpu_us", lambda value: f"{value:.3g}"),
    ("Requests per second", ROWS, "rate", lambda value: short(value)),
)

WIDTH, COLUMN, MARGIN, GAP = 900, 430, 10, 20
NAME, VALUE = 138, 74           # room for the text before and after a bar
LINE, BAR, TITLE, SPACE = 19, 12, 26, 14

STYLE = """\
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #57606a; }
.head { font-size: 15px; font-weight: 600; fill: #1f2328; }
.title { font-weight: 600; fill: #1f2328; }
.name { text-anchor: end; }
.own { fill: #1f2328; font-weight: 600; }
.bar { fill: #b4bcc6; }
.bar.own { fill: #1f6fd6; }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1; }
  .head, .title, .own { fill: #f0f6fc; }
  .bar { fill: #4a525c; }
  .bar.own { fill: #4c9aff; }
}
"""


def svg(document):
    """Returns the whole file. Rows that were not measured, or have no peer, are omitted."""
    y, body, spoken = MARGIN + 14, [], []
    body.append(_text(MARGIN, y, "", _head(document)))
    for head, names, metric, written in PANELS:
        groups = [group for name in names if (group := _group(document, name, metric))]
        body.append(_text(MARGIN, y + 32, "head", head))
        y += 32
        columns = _columns(groups)
        for number, column in enumerate(columns):
            body += _draw_column(MARGIN + number * (COLUMN + GAP), y + SPACE, column, written)
        y += max(map(_height, columns)) + SPACE
        spoken.append(f"{head}. {_spoken(groups, written)}")
    height = y + MARGIN
    label = escape(". ".join(spoken), {chr(34): "&quot;"})
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">\n'
            f"<style>\n{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n")


def _group(document, name, metric):
    """Returns the title and the bars (server, label, value) of one row."""
    for row in document["rows"]:
        if row["row"] == name:
            cells = {cell["server"]: cell for cell in row["cells"]
                     if not cell["server"].startswith("setlistd-") and cell.get(metric) is not None}
            if "setlistd" in cells and len(cells) > 1:
                bars = [(server, _label(cells[server], cells["setlistd"]), cells[server][metric])
                        for server in SERVERS if server in cells]
                return re.sub(r" \([^)]*\)", "", row["about"]), bars
    return None


def _label(cell, own):
    """A peer that was sent another command than setlistd is labelled with it."""
    name = LABELS.get(cell["server"], cell["server"])
    return name if cell["op"] == own["op"] else f"{name.partition(',')[0]}, {cell['op']}"


def _columns(groups):
    """In two columns of similar length, in order down the first column."""
    splits = [(groups[:n], groups[n:]) for n in range(len(groups) + 1)]
    return min(splits, key=lambda columns: max(map(_height, columns)))


def _height(groups):
    return sum(TITLE + LINE * len(bars) + SPACE for _, bars in groups)


def _draw_column(x, y, column, written):
    for title, bars in column:
        yield from _draw(x, y, title, bars, written)
        y += TITLE + LINE * len(bars) + SPACE


def _draw(x, y, title, bars, written):
    most, room = max(value for *_, value in bars) or 1, COLUMN - NAME - VALUE
    yield _text(x, y + 10, "title", title)
    y += TITLE - 8
    for server, label, value in bars:
        own = " own" if server == "setlistd" else ""
        width = max(1, room * value / most)
        middle = y + LINE / 2 + 4
        yield _text(x + NAME - 8, middle, "name" + own, label)
        yield (f'<rect class="bar{own}" x="{x + NAME}" y="{y + (LINE - BAR) / 2:g}" width="{width:.1f}" '
               f'height="{BAR}" rx="2"/>')
        yield _text(x + NAME + width + 6, middle, own.strip(), written(value))
        y += LINE


def _text(x, y, kind, text):
    kind = f' class="{kind}"' if kind else ""
    return f'<text{kind} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _head(document):
    settings, versions = document["settings"], document["versions"]
    return (f"{settings['conns']} connections, {document['machine']['cores']} cores; all within one run; "
            + ", ".join(f"{name} {version}" for name, version in versions.items()))


def _spoken(groups, written):
    return "; ".join(f"{title}: " + ", ".join(f"{label} {written(value)}" for _, label, value in bars)
                     for title, bars in groups)


def short(rate):
    """Returns three digits and a unit."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if rate >= size * 0.9995:
            value = rate / size
            digits = 2 if round(value, 2) < 10 else 1 if round(value, 1) < 100 else 0
            return f"{value:.{digits}f}{unit}"
    return f"{rate:.0f}"
