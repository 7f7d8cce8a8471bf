"""Transcripts: a client's requests and the expected replies, in a file that reads like a session.

# a comment                 to the end of the line, only at its beginning
> text                      send the line; CRLF is appended
>> "a\\x00b" * 3 + "\\r\\n"     send exactly these bytes
< text                      the next line received is this
<< "a\\r\\nb" * 2             the next bytes received are these
<~ regular expression       the next line matches as a whole; (?P<name>...) can be used as ${name} later
<set a b c                  the next line has these words, in any order
<...                        any number of lines, up to one that the next expectation matches
<close                      the peer closes the connection, and sends nothing before that

!differential               the replies of memcached itself must be the same
!nosplit                    do not replay it cut in pieces (large data)
!noburst                    do not replay it in one write (a reply depends on time, or on another connection)
!servers N                  number of memcached servers behind setlistd (2)
!memcached ARGS             more arguments for each memcached
!args ARGS                  more arguments for setlistd
!conf LINE                  a line of setlistd's configuration file
!let NAME EXPRESSION        a name for bytes, used as ${NAME}
!connect NAME               open a connection and continue with it (the first one is called main)
!use NAME                   continue with a connection that was opened before
!fresh                      close the connection and continue with a new one
!retry                      the lines from here to !end are repeated, each time on a fresh connection, until all of them
are as expected
"""
import ast
import os
import re
import time

SEND, EXPECT, CONNECT, USE, FRESH, RETRY, END = "send", "expect", "connect", "use", "fresh", "retry", "end"
NAME = re.compile(rb"\$\{(\w+)\}")


class Step:
    """One step. `kind` is one of the words above; `how` distinguishes expectations."""

    def __init__(self, kind, data=b"", how="line", number=0):
        self.kind, self.data, self.how, self.number = kind, data, how, number


class Transcript:
    def __init__(self, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.differential = False
        self.split = self.burst = True
        self.servers = 2
        self.memcached_args, self.args, self.config = [], [], []
        self.names = bucket_names()
        self.steps = []

    def captures(self):
        return any(step.how == "regex" and b"(?P<" in step.data for step in self.steps)

    def one_connection(self):
        return all(step.kind in (SEND, EXPECT) for step in self.steps)

    def burstable(self):
        """Returns whether everything can be sent in one write: no request depends on a reply."""
        return self.burst and self.split and self.one_connection() and not self.captures()


def bucket_names(now=None):
    """Returns the current buckets of the event counters, as names for transcripts."""
    now = time.gmtime(now)
    return {"DAY": time.strftime("%Y%m%d", now).encode(),
            "HOUR": time.strftime("%Y%m%d%H", now).encode()}


def load(path):
    script = Transcript(path)
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            try:
                _add_line(script, line.rstrip("\n"), number)
            except (ValueError, SyntaxError) as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return script


def _add_line(script, line, number):
    if not line.strip() or line.startswith("#"):
        return
    if line.startswith("!"):
        _add_directive(script, line[1:].split(None, 1), number)
        return
    mark, _, text = line.partition(" ")
    if mark == ">":
        script.steps.append(Step(SEND, text.encode() + b"\r\n", number=number))
    elif mark == ">>":
        script.steps.append(Step(SEND, evaluate(text), number=number))
    elif mark in EXPECTATIONS:
        how = EXPECTATIONS[mark]
        data = evaluate(text) if how == "raw" else text.encode()
        script.steps.append(Step(EXPECT, data, how, number))
    else:
        raise ValueError(f"not understood: {line!r}")


EXPECTATIONS = {"<": "line", "<<": "raw", "<~": "regex", "<set": "words", "<...": "any", "<close": "close"}


def _add_directive(script, words, number):
    name, rest = words[0], (words[1] if len(words) > 1 else "")
    if name == "differential":
        script.differential = True
    elif name == "nosplit":
        script.split = False
    elif name == "noburst":
        script.burst = False
    elif name == "servers":
        script.servers = int(rest)
    elif name == "memcached":
        script.memcached_args += rest.split()
    elif name == "args":
        script.args += rest.split()
    elif name == "conf":
        script.config.append(rest)
    elif name == "let":
        key, _, expression = rest.partition(" ")
        script.names[key] = evaluate(expression)
    elif name in (CONNECT, USE, FRESH, RETRY, END):
        script.steps.append(Step(name, rest, number=number))
    else:
        raise ValueError(f"no such directive: !{name}")


def evaluate(text):
    """Evaluates bytes from string literals, + and *; ${name} in a literal is kept."""
    return _bytes_of(ast.parse(text.strip(), mode="eval").body)


def _bytes_of(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.encode("latin-1")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _bytes_of(node.left) + _bytes_of(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Constant):
        return _bytes_of(node.left) * int(node.right.value)
    raise ValueError("only string literals, + and * N")


def substitute(data, names, escape=False):
    """Substitutes the values of ${name}; for a regular expression they are escaped."""
    def value(match):
        found = names[match.group(1).decode()]
        return re.escape(found) if escape else found
    return NAME.sub(value, data)
