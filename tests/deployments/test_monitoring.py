"""The alert rules name metrics that exist, their pages exist, and Prometheus' own tool accepts and tests them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deepgrid.observability.metrics import Metrics
from deepgrid.operator.round_metrics import RoundMetrics
from deepgrid.services.service_metrics import ServiceMetrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployments" / "monitoring"
PAGE = ROOT / "docs" / "how-to" / "alerts.md"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
NAMES = [rule["alert"] for rule in RULES]


def served_names(registry: CollectorRegistry) -> set[str]:
    """The names that a query can use."""
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return {family.name + end for family in registry.collect() for end in endings.get(family.type, ("",))}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_names_metrics_that_exist(rule: dict[str, Any]) -> None:
    known = set[str]().union(*(served_names(kind().registry) for kind in (Metrics, RoundMetrics, ServiceMetrics)))
    named = set(re.findall(r"\bdeepgrid_\w+", rule["expr"]))
    assert named <= known
    assert named or rule["expr"].startswith("up{job=")


def test_each_alert_has_a_section_that_says_what_to_do() -> None:
    sections = re.findall(r"^## (\w+)$", PAGE.read_text(), re.M)
    assert sections == NAMES
    assert [rule["annotations"]["runbook_url"] for rule in RULES] == [
        f"docs/how-to/alerts.md#{name.lower()}" for name in NAMES
    ]


def test_the_example_scrapes_the_jobs_that_the_rules_ask_for() -> None:
    jobs = {one["job_name"] for one in yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"]}
    assert jobs == set(re.findall(r'job="([\w-]+)"', (FOLDER / "alerts.yml").read_text()))


@pytest.mark.parametrize(
    "command",
    [("check", "config", "prometheus.yml"), ("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")],
)
def test_promtool_accepts_the_rules_and_their_tests_pass(command: tuple[str, ...]) -> None:
    promtool = shutil.which("promtool") or shutil.which(ROOT / ".grid" / "debian" / "usr" / "bin" / "promtool")
    if promtool is None:
        pytest.skip("promtool is not there; tools/fetch-debian unpacks it")
    done = subprocess.run([promtool, *command], check=False, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_test() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    tested = {case["alertname"] for one in tests for case in one["alert_rule_test"] if case["exp_alerts"]}
    assert tested == set(NAMES)
