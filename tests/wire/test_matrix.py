"""Every client of the matrix, in each of its protocols: plain use, plain_verbs, commands as keys."""
import functools
import json
import os
import re
import shlex

from case import WireTest, marks
from harness import OPTIONS, run_program, wait_until
from manpage import CLIENTS as PAGE
from matrix import CLIENTS, FOLDER, PLAIN, REFUSED, RELEASES, TABLES
from matrix_steps import CONFIG, LONG, SET_PREFIX, STEPS
from program import Program, installed


@functools.cache
def debian_version(client):
    """Returns the upstream version of the installed release; empty if it is not Debian's."""
    # Debian 13 renamed the libraries whose interface has times: libmemcached11t64.
    names = () if client.npm else (client.package, f"{client.package}t64")
    for name in names:
        done = run_program("dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", name)
        status, _, version = done.stdout.partition(" ")
        if status == "installed":
            return version.rpartition(":")[2].rpartition("-")[0]
    return ""


def version_of(client):
    return debian_version(client) or client.versions[0]


class Clients(WireTest):
    compiles = True

    def client_program(self, client, protocol, *args):
        if not installed(client):
            self.skipTest(f"{client.package} is not installed")
        if not client.speaks(protocol, version_of(client)):
            self.skipTest(f"{client.package} {version_of(client)} does not speak the {protocol} protocol")
        _, peer = self.pool(2, config=CONFIG)
        self.raw = self.connect(peer)
        return Program(client, peer.port, protocol, *args)

    def ask(self, program, step):
        verb, *words = shlex.split(step)
        if verb == "ttl":
            return "yes" if 0 < int(self.raw.ask(f"mg {words[0]} t").removeprefix("HD t")) <= 1000 else "no"
        if verb == "gone":
            wait_until(f"{words[0]} expires", lambda: self.raw.ask(f"mg {words[0]}") == "EN")
            return "yes"
        answer = program.ask(verb, *[LONG.get(word, word.replace(r"\n", "\n")) for word in words])
        if words[0].startswith(SET_PREFIX) and answer.endswith(",>"):
            return f"<{','.join(sorted(answer[1:-2].split(',')))},>"
        return answer


class Matrix(Clients):
    direct = True

    def play(self, client, protocol):
        with self.client_program(client, protocol) as program:
            for mode in (PLAIN,) if OPTIONS.direct else STEPS:
                with self.subTest(mode):
                    self.play_mode(client, protocol, program, STEPS[mode])
            complaints = program.said()
        self.assertEqual(complaints, "")

    def play_mode(self, client, protocol, program, groups):
        for group in groups:
            if not client.newlines and any("\\n" in f"{step}: {answer}" for step, answer in group.steps):
                continue
            lacked = [verb for verb in group.needs if verb in client.lacks(version_of(client))]
            for verb in lacked:
                step = next(step for step, _ in group.steps if step.startswith(f"{verb} "))
                self.assertEqual(self.ask(program, step), "none", step)
            for step, answer in [] if lacked else group.steps:
                if step not in client.waits:
                    self.check(client, protocol, step, answer, self.ask(program, step))

    def check(self, client, protocol, step, wanted, answer):
        otherwise = client.otherwise(version_of(client))
        wanted = otherwise.get(f"{protocol}: {step}", otherwise.get(step, wanted))
        if wanted is REFUSED:
            verb = step.split()[0]
            silent = verb in client.silent or f"{protocol}: {verb}" in client.silent
            self.assertRegex(answer, "^(error: .*|no|missing)$" if silent else "^error: ", step)
        else:
            for name, text in LONG.items():
                answer = answer.replace(text, name)
            self.assertEqual(answer[:200].replace("\n", r"\n"), wanted, step)


class Packed(Clients):
    """If a client packs values by default, the packed value is the element, whatever its bytes are."""

    def play(self, client, protocol):
        with self.client_program(client, protocol, "defaults") as program:
            self.assertEqual(self.ask(program, "set q|rpush1|packed MANY"), "yes")
            self.assertEqual(self.raw.ask("llen packed"), "1")
            self.assertNotEqual(self.raw.get("q|lindex|packed|0"), LONG["MANY"].encode())


class Manual(WireTest):
    """The tables of clients in setlistd-clients(7) equal the matrix, and their versions are the installed ones."""
    smoke = True

    def test_tables(self):
        with open(PAGE, encoding="utf-8") as text:
            lines = text.read().splitlines()
        for rows in TABLES:
            start = lines.index(rows[1]) - 1 if rows[1] in lines else 0
            self.assertEqual(lines[start:start + len(rows)], rows)
            self.assertEqual(lines[start + len(rows)], ".El")

    @marks(smoke=False)
    def test_versions_of_debian(self):
        """The versions of this machine's release; elsewhere others may be installed."""
        with open("/etc/os-release", encoding="utf-8") as text:
            codename = re.search(r"(?m)^VERSION_CODENAME=(.*)", text.read())
        if not codename or codename.group(1) not in RELEASES:
            self.skipTest("the table has no column for this release")
        column = list(RELEASES).index(codename.group(1))
        for client in CLIENTS:
            if not client.npm and installed(client):
                self.assertEqual(debian_version(client), client.versions[column], client.package)

    def test_versions_of_npm(self):
        with open(os.path.join(FOLDER, "package-lock.json"), encoding="utf-8") as text:
            packages = json.load(text)["packages"]
        for client in CLIENTS:
            if client.npm:
                self.assertEqual(packages[f"node_modules/{client.package.split()[1]}"]["version"], client.versions[0])


def add(group, client, protocol):
    # Smoke tests skip second protocols, and clients that are compiled, which takes long in a new work tree.
    @marks(smoke=client.build is None and protocol == client.protocols[0])
    def test(self):
        self.play(client, protocol)
    name = "_".join(re.findall(r"\w+", client.name.lower()))
    test.__name__ = f"test_{name}_{protocol}"
    setattr(group, test.__name__, test)


for each in CLIENTS:
    for spoken in each.protocols:
        add(Matrix, each, spoken)
        if each.packed:
            add(Packed, each, spoken)
