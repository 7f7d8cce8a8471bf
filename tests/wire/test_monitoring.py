"""The alerts and the dashboard for Prometheus and Grafana: their expressions, against the metrics that there are."""
import json
import os
import re
import shutil
import urllib.request

import yaml

from harness import HOST, PATIENCE, free_port, wait_until
from test_package import Package, read, run

RULES, DASHBOARD, CASES = "conf/prometheus-rules.yml", "conf/grafana.json", "tests/wire/prometheus-rules.test.yml"
# The labels that Prometheus adds to each sample, and its own sample.
ADDED_LABELS, OWN = {"job", "instance"}, "up"
GRAFANA_VARIABLES = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*"}


class Monitoring(Package):
    smoke = True

    def metrics(self):
        """Returns {name of a sample: its labels} of setlistd's metrics."""
        admin = free_port()
        proxy = self.setlistd([self.memcached()], config=f'admin = "{HOST}:{admin}"\n')
        self.assertEqual(self.connect(proxy).ask("sadd k a"), "STORED")

        def get():
            with urllib.request.urlopen(f"http://{HOST}:{admin}/metrics", timeout=PATIENCE) as reply:
                return reply.read().decode()
        found = {}
        for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", wait_until("metrics", get), re.MULTILINE):
            found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
        return found

    def rules(self):
        groups = yaml.safe_load(read(RULES))["groups"]
        return [rule["expr"] for group in groups for rule in group["rules"]]

    def panels(self):
        return [panel for panel in json.loads(read(DASHBOARD))["panels"] if panel["targets"]]

    def dashboard(self):
        found = [target["expr"] for panel in self.panels() for target in panel["targets"]]
        for name, value in GRAFANA_VARIABLES.items():
            found = [expression.replace(name, value) for expression in found]
        return found

    def test_what_they_name_exists(self):
        metrics = self.metrics()
        expressions = self.rules() + self.dashboard()
        self.assertGreater(len(expressions), 20)
        for expression in expressions:
            self.assertNotIn("$", expression)
            names = set(re.findall(r"\b(?:setlistd|process)_\w+", expression))
            self.assertTrue(names or OWN in expression, expression)
            labels = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(", ")}
            for name in names:
                self.assertIn(name, metrics, expression)
                self.assertLessEqual(labels - ADDED_LABELS, metrics[name], expression)

    def test_legends(self):
        """A legend names labels that its expression keeps."""
        for panel in self.panels():
            for target in panel["targets"]:
                for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                    self.assertRegex(target["expr"], rf"\bby \((\w+, )*{label}\b")

    def promtool(self, *arguments, **kwargs):
        if not shutil.which("promtool"):
            self.skipTest("there is no promtool (package prometheus)")
        return run("promtool", *arguments, **kwargs)

    def test_rules_are_good(self):
        done = self.promtool("check", "rules", os.path.abspath(os.path.join(os.path.dirname(__file__), "../..", RULES)))
        self.assertEqual(done.returncode, 0, done)

    def test_expressions_of_the_dashboard_are_good(self):
        rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(self.dashboard())]
        path = self.file(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        done = self.promtool("check", "rules", path)
        self.assertEqual(done.returncode, 0, done)

    def test_alerts_fire(self):
        """When they should fire, and for what."""
        for name in (RULES, CASES):
            shutil.copy(os.path.join(os.path.dirname(__file__), "../..", name), self.folder)
        done = self.promtool("test", "rules", os.path.basename(CASES), cwd=self.folder)
        self.assertEqual(done.returncode, 0, done)
