"""Every client of the matrix, in each of its protocols: plain use, plain_verbs, commands as keys."""
import shlex

from case import WireTest
from harness import OPTIONS, PATIENCE, wait_until
from matrix import CLIENTS, PLAIN, REFUSED
from matrix_steps import CONFIG, LONG, SET_PREFIX, STEPS
from program import Program, installed


class Matrix(WireTest):
    direct = True

    def play(self, client, protocol):
        if not installed(client):
            self.skipTest(f"{client.package} is not installed")
        _, peer = self.pool(2, config=CONFIG)
        self.raw = self.connect(peer)
        with Program(client, peer.port, protocol) as program:
            for mode in (PLAIN,) if OPTIONS.direct else STEPS:
                with self.subTest(mode):
                    self.play_mode(client, protocol, program, STEPS[mode])
            complaints = program.said()
        self.assertEqual(complaints, "")

    def play_mode(self, client, protocol, program, groups):
        for group in groups:
            lacked = [verb for verb in group.needs if verb in client.lacks]
            for verb in lacked:
                step = next(step for step, _ in group.steps if step.startswith(f"{verb} "))
                self.assertEqual(self.ask(program, step), "none", step)
            for step, answer in [] if lacked else group.steps:
                if step not in client.waits:
                    self.check(client, protocol, step, answer, self.ask(program, step))

    def check(self, client, protocol, step, wanted, answer):
        wanted = client.otherwise.get(f"{protocol}: {step}", client.otherwise.get(step, wanted))
        if wanted is REFUSED:
            verb = step.split()[0]
            silent = verb in client.silent or f"{protocol}: {verb}" in client.silent
            self.assertRegex(answer, "^(error: .*|no|missing)$" if silent else "^error: ", step)
        else:
            for name, text in LONG.items():
                answer = answer.replace(text, name)
            self.assertEqual(answer[:200], wanted, step)

    def ask(self, program, step):
        verb, *words = shlex.split(step)
        if verb == "ttl":
            return "yes" if 0 < int(self.raw.ask(f"mg {words[0]} t").removeprefix("HD t")) <= 1000 else "no"
        if verb == "gone":
            wait_until(f"{words[0]} expires", PATIENCE, lambda: self.raw.ask(f"mg {words[0]}") == "EN")
            return "yes"
        answer = program.ask(verb, *[LONG.get(word, word) for word in words])
        if words[0].startswith(SET_PREFIX) and answer.endswith(",>"):
            return f"<{','.join(sorted(answer[1:-2].split(',')))},>"
        return answer


def add(client, protocol):
    def test(self):
        self.play(client, protocol)
    name = "".join(letter if letter.isalnum() else "_" for letter in client.name.lower())
    test.__name__ = f"test_{name}_{protocol}"
    setattr(Matrix, test.__name__, test)


for each in CLIENTS:
    for spoken in each.protocols:
        add(each, spoken)
