"""The parts of README.md that tests run."""
import os
import re

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")


def section(title):
    """Returns the text below a heading, or before the first heading."""
    with open(README, encoding="utf-8") as text:
        if not title:
            return text.read().split("\n## ", 1)[0] + "\n"
        return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text.read(), re.DOTALL | re.MULTILINE)[1]


def blocks(title=None):
    """Returns the indented blocks of a section, or of the text before its first heading, each as one text."""
    return [re.sub("^    ", "", block, flags=re.MULTILINE)
            for block in re.findall(r"(?:^    .*\n)+", section(title), re.MULTILINE)]


def links():
    """Returns the targets of links and pictures."""
    with open(README, encoding="utf-8") as text:
        return re.findall(r"\]\(([^)]+)\)", text.read())


def programs():
    """Returns (language, text) of each fenced block."""
    with open(README, encoding="utf-8") as text:
        return re.findall(r"^```(\w+)\n(.*?)^```$", text.read(), re.MULTILINE | re.DOTALL)
