"""The examples of a man page, as transcripts.

In the source, a block is between the comments "example" and "end". In it, a line that begins with "> " is sent, and the others
are the complete reply. YYYYMMDDHH stands for the current bucket of an hour, YYYYMMDD for that of the day, a line of three dots for
any number of lines, and three dots after an error for the rest of its line. The cas ids of a block, the token 8f3k2w0q of a lease, and
the ticket 5v1mq8d03xkw of a held element are placeholders: the values from the server are sent in their place in later lines. In data and values of a key "q|", \\n is a newline.
Macros in a block only affect the layout. The text between "config" and "end" is a part of a configuration: all
such parts of a page together configure the setlistd on which its examples are run. A block that begins with the comment
"guarded" is an example for a setlistd that requires a login. "python" begins a program, which is run on a separate port, and
"program", with the name of its language, one that test_languages.py or test_guide.py runs; "module" one that test_guide.py runs with a
client module, and "output" what each of these prints. "step" begins the input of an operator
and its output, which test_moving.py checks. "sidecar" begins commands that test_sidecar.py runs.
"""
import os
import re

from transcript import EXPECT, SEND, Step, Transcript, bucket_names

MANUALS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man")
CLIENTS, GUIDE = (os.path.join(MANUALS, name) for name in ("setlistd-clients.7", "setlistd-guide.7"))
BEGIN = re.compile(r"""^\.\\" example\b""")
GUARDED = re.compile(r"""^\.\\" guarded\b""")
CONFIG = re.compile(r"""^\.\\" config\b""")
END = re.compile(r"""^\.\\" end\b""")
PYTHON = re.compile(r"""^\.\\" python\b""")
SIDECAR = re.compile(r"""^\.\\" sidecar\b""")
STEP = re.compile(r"""^\.\\" step\b""")
PROGRAM = re.compile(r"""^\.\\" program\b""")
MODULE = re.compile(r"""^\.\\" module\b""")
OUTPUT = re.compile(r"""^\.\\" output\b""")
PROGRAMS = {kind: re.compile(rf"""^\.\\" {kind} (\w+)\n(.*?)^\.\\" end$""", re.DOTALL | re.MULTILINE) for kind in ("program", "module")}
MARKS = {"example": BEGIN, "guarded": GUARDED, "config": CONFIG, "python": PYTHON, "program": PROGRAM, "module": MODULE, "output": OUTPUT,
         "sidecar": SIDECAR, "step": STEP}
TOKEN = "8f3k2w0q"
TICKET = "5v1mq8d03xkw"
VALUE_WITH_ID = re.compile(r"(VALUE \S+ \d+ \d+ )(\d+)")
CAS_WITH_ID = re.compile(r"(cas \S+ \d+ \d+ \d+ )(\d+)")
UNESCAPED = {r"\-": "-", r"\e": "\\", r"\(aq": "'", r"\(dq": '"', r"\&": "", r"\(ti": "~", r"\(ha": "^"}
ESCAPE = re.compile("|".join(re.escape(escape) for escape in UNESCAPED))


def examples(path, wanted="example"):
    """Returns one transcript for each example, or each block of the given kind, in the order of the page."""
    blocks = [complete(new_block(path, number, lines)) for number, kind, lines in marked(path) if kind == wanted]
    for block in blocks:
        block.config = configuration(path)
    return blocks


def configuration(path):
    """Returns the lines of all configurations on a page."""
    return [unescape(text) for _, kind, lines in marked(path) if kind == "config" for _, text in lines]


def marked(path):
    """Yields the marked blocks of a page: the line where each begins, its kind, and its lines of text with their numbers."""
    found, lines = [], None
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            line = line.rstrip("\n")
            kind = next((kind for kind, mark in MARKS.items() if mark.match(line)), None)
            if kind and lines is not None or END.match(line) and lines is None:
                raise ValueError(f"{path}:{number}: an example or config inside of another, or an end without one")
            if kind:
                lines = []
                found.append((number, kind, lines))
            elif END.match(line):
                lines = None
            elif lines is not None and not line.startswith("."):
                lines.append((number, line))
    if lines is not None:
        raise ValueError(f"{path}: the last example has no end")
    return found


def programs(path, kind="program"):
    """Returns (language, text) of each program on a page; kind: "module" for those that use a client module."""
    with open(path, encoding="utf-8") as page:
        return [(language, "".join(f"{unescape(line)}\n" for line in text.splitlines() if not line.startswith(".")))
                for language, text in PROGRAMS[kind].findall(page.read())]


def new_block(path, number, lines):
    block = Transcript(path)
    block.name = f"{block.name}_line_{number}".replace("-", "_")
    block.steps = [step(text, at) for at, text in lines]
    for before, data in zip(block.steps, block.steps[1:]):
        if rb"\n" in data.data and re.match(rb"(set|cas|ms|VALUE) q\||VA \d", before.data):
            data.data = data.data.replace(rb"\n", b"\n") + (b"\r\n" if data.kind == EXPECT else b"")
            data.how = "raw"
    return block


def complete(block):
    """No request can follow quit, so the end of the connection is part of the reply."""
    sent = [step.data for step in block.steps if step.kind == SEND]
    if sent and sent[-1] == b"quit\r\n":
        block.steps.append(Step(EXPECT, b"", "close", block.steps[-1].number))
    return block


def unescape(line):
    return ESCAPE.sub(lambda match: UNESCAPED[match.group(0)], line)


def step(line, number):
    text = unescape(line)
    names = bucket_names()
    text = text.replace("YYYYMMDDHH", names["HOUR"].decode()).replace("YYYYMMDD", names["DAY"].decode())
    if text.startswith("> "):
        sent = CAS_WITH_ID.sub(r"\1${cas_\2}", text[2:]).replace(TOKEN, "${lease}").replace(TICKET, "${ticket}")
        return Step(SEND, sent.encode() + b"\r\n", number=number)
    if text == "...":
        return Step(EXPECT, b"", "any", number)
    if text == f"LEASE {TOKEN}":
        return Step(EXPECT, b"LEASE (?P<lease>[0-9a-z]{8})", "regex", number)
    if text.startswith(f"{TICKET} "):
        return Step(EXPECT, f"(?P<ticket>[0-9a-z]{{12}}){re.escape(text[len(TICKET):])}".encode(), "regex", number)
    if text.startswith("CLIENT_ERROR ") and text.endswith(" ..."):
        return Step(EXPECT, re.escape(text[:-4]).encode() + b".*", "regex", number)
    value = VALUE_WITH_ID.fullmatch(text)
    if value:
        line, cas_id = value.groups()
        return Step(EXPECT, f"{re.escape(line)}(?P<cas_{cas_id}>\\d+)".encode(), "regex", number)
    return Step(EXPECT, text.encode(), "line", number)
