"""The document as a bar chart (SVG): requests a second, the longest bar of each group being the fastest server.

It has no background, and its colours go with the reader's light or dark mode.
"""
import re
from xml.sax.saxutils import escape

from .rows import SERVERS

ROWS = ("get-1", "get-16", "set-16", "sadd-1", "sadd-16", "hot-16", "rw-1000-16", "rw-1000000-16", "smembers-1000",
        "smembers-10000", "evincr-16", "rpush-16")
LABELS = {"memcached": "memcached, directly", "redis": "Redis, directly", "valkey": "Valkey, directly",
          "nutcracker+redis": "nutcracker + Redis", "memcached-proxy": "memcached's proxy"}

WIDTH, COLUMN, MARGIN, GAP = 900, 430, 10, 20
NAME, VALUE = 138, 74           # room for the text before and behind a bar
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


def svg(document, names=ROWS):
    """The whole file. Rows that were not measured, or have nobody to compare with, are left out."""
    groups = [group for name in names if (group := _group(document, name))]
    columns = _columns(groups)
    head = _head(document)
    top = MARGIN + 22 + 18
    height = top + max([_height(column) for column in columns] + [0]) + MARGIN
    body = [_text(MARGIN, MARGIN + 14, "head", "Requests per second"), _text(MARGIN, MARGIN + 32, "", head)]
    for number, column in enumerate(columns):
        y = top + SPACE
        for title, bars in column:
            body += _draw(MARGIN + number * (COLUMN + GAP), y, title, bars)
            y += TITLE + LINE * len(bars) + SPACE
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(_spoken(groups), {chr(34): "&quot;"})}">\n'
            f"<style>\n{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n")


def _group(document, name):
    """The title and the bars (server, label, rate) of one row."""
    for row in document["rows"]:
        if row["row"] == name:
            cells = {cell["server"]: cell for cell in row["cells"] if not cell["server"].startswith("setlistd-")}
            if "setlistd" in cells and len(cells) > 1:
                bars = [(server, _label(cells[server], cells["setlistd"]), cells[server]["rate"])
                        for server in SERVERS if server in cells]
                return re.sub(r" \([^)]*\)", "", row["about"]), bars
    return None


def _label(cell, own):
    """Whoever was asked for something else than setlistd is named with it."""
    name = LABELS.get(cell["server"], cell["server"])
    return name if cell["op"] == own["op"] else f"{name.partition(',')[0]}, {cell['op']}"


def _columns(groups):
    """In two columns, as even as can be, the order going down the first."""
    splits = [(groups[:n], groups[n:]) for n in range(len(groups) + 1)]
    return min(splits, key=lambda columns: max(map(_height, columns)))


def _height(groups):
    return sum(TITLE + LINE * len(bars) + SPACE for _, bars in groups)


def _draw(x, y, title, bars):
    most, room = max(rate for *_, rate in bars) or 1, COLUMN - NAME - VALUE
    yield _text(x, y + 10, "title", title)
    y += TITLE - 8
    for server, label, rate in bars:
        own = " own" if server == "setlistd" else ""
        width = max(1, room * rate / most)
        middle = y + LINE / 2 + 4
        yield _text(x + NAME - 8, middle, "name" + own, label)
        yield (f'<rect class="bar{own}" x="{x + NAME}" y="{y + (LINE - BAR) / 2:g}" width="{width:.1f}" '
               f'height="{BAR}" rx="2"/>')
        yield _text(x + NAME + width + 6, middle, own.strip(), short(rate))
        y += LINE


def _text(x, y, kind, text):
    kind = f' class="{kind}"' if kind else ""
    return f'<text{kind} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _head(document):
    settings, versions = document["settings"], document["versions"]
    return (f"{settings['conns']} connections, {document['machine']['cores']} cores; all within one run; "
            + ", ".join(f"{name} {version}" for name, version in versions.items()))


def _spoken(groups):
    return "; ".join(f"{title}: " + ", ".join(f"{label} {short(rate)}" for _, label, rate in bars)
                     for title, bars in groups)


def short(rate):
    """Three digits and a unit."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if rate >= size * 0.9995:
            value = rate / size
            digits = 2 if round(value, 2) < 10 else 1 if round(value, 1) < 100 else 0
            return f"{value:.{digits}f}{unit}"
    return f"{rate:.0f}"
