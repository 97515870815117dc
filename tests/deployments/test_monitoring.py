"""Alert rules and dashboards name metrics that exist, and Prometheus' own tool accepts them.

Each alert has a page and a test.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from deepgrid.observability.metrics import Metrics
from deepgrid.operator.operator_metrics import OperatorMetrics
from deepgrid.services.service_metrics import ServiceMetrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployments" / "monitoring"
PAGE = ROOT / "docs" / "how-to" / "alerts.md"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]
]
NAMES = [rule["alert"] for rule in RULES]
BOARDS: dict[str, dict[str, Any]] = {
    file.stem: json.loads(file.read_text()) for file in sorted((FOLDER / "dashboards").glob("*.json"))
}
REGISTRIES: dict[str, type[Metrics | OperatorMetrics | ServiceMetrics]] = {
    "supervisor": Metrics,
    "operator": OperatorMetrics,
    "services": ServiceMetrics,
}
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def served_names(registry: CollectorRegistry) -> set[str]:
    """Return the names that a query can use."""
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return {family.name + end for family in registry.collect() for end in endings.get(family.type, ("",))}


def run_promtool(*command: str) -> None:
    promtool = shutil.which("promtool") or shutil.which(ROOT / ".grid" / "debian" / "usr" / "bin" / "promtool")
    if promtool is None:
        pytest.skip("promtool is not there; tools/fetch-debian unpacks it")
    done = subprocess.run([promtool, *command], check=False, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def expressions(board: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_an_alert_names_metrics_that_exist(rule: dict[str, Any]) -> None:
    known = set[str]().union(*(served_names(kind().registry) for kind in REGISTRIES.values()))
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
    run_promtool(*command)


def test_every_alert_has_a_test() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    tested = {case["alertname"] for one in tests for case in one["alert_rule_test"] if case["exp_alerts"]}
    assert tested == set(NAMES)


def test_each_role_has_a_dashboard_of_its_own_id() -> None:
    assert set(BOARDS) == set(REGISTRIES)
    assert {role: board["uid"] for role, board in BOARDS.items()} == {role: f"deepgrid-{role}" for role in BOARDS}
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize("role", BOARDS)
def test_a_dashboard_names_metrics_of_its_role(role: str) -> None:
    """Metrics have the selectors of the role, because all roles serve `up` and the process's metrics."""
    known = served_names(REGISTRIES[role]().registry) | {"process_resident_memory_bytes"}
    for expression in expressions(BOARDS[role]):
        named = set(re.findall(r"\b(?:deepgrid|process)_\w+|\bup(?=\{)", expression))
        assert named and named <= known | {"up"}, expression
        selectors = re.findall(r"\b(deepgrid_\w+|process_\w+|up)\{(.*?)\}", expression)
        assert {name for name, _ in selectors} == named, f"a metric without a selector in {expression}"
        for name, labels in selectors:
            assert 'instance=~"$instance"' in labels
            assert name.startswith("deepgrid_") or f'job="deepgrid-{role}"' in labels


@pytest.mark.parametrize("role", BOARDS)
def test_a_panel_says_what_it_shows_in_which_unit(role: str) -> None:
    panels = BOARDS[role]["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        alerts = re.findall(r"\balert (\w+)", panel["description"])
        assert set(alerts) <= set(NAMES)


@pytest.mark.parametrize("role", BOARDS)
def test_panels_do_not_overlap(role: str) -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in BOARDS[role]["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24


@pytest.mark.parametrize("role", BOARDS)
def test_a_dashboard_asks_which_data_source_and_holds_no_address(role: str) -> None:
    board = BOARDS[role]
    assert "://" not in json.dumps(board)
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource" and variables["datasource"]["query"] == "prometheus"
    assert variables["instance"]["query"] == f'label_values(up{{job="deepgrid-{role}"}}, instance)'
    assert [one["datasource"] for one in (*board["panels"], variables["instance"])] == [SOURCE] * (
        len(board["panels"]) + 1
    )


@pytest.mark.parametrize("role", BOARDS)
def test_promtool_parses_the_expressions_of_a_dashboard(role: str, tmp_path: Path) -> None:
    """The expressions are checked as recording rules.

    Grafana replaces `$__rate_interval` by a duration before the query.
    """
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "1m")}
        for number, expression in enumerate(expressions(BOARDS[role]))
    ]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": role, "rules": rules}]}))
    run_promtool("check", "rules", str(file))


def test_the_example_for_grafana_provisions_a_prometheus_and_the_folder() -> None:
    sources = yaml.safe_load((FOLDER / "grafana" / "datasources.yml").read_text())["datasources"]
    assert [one["type"] for one in sources] == ["prometheus"]
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["global"]["scrape_interval"]
    assert sources[0]["jsonData"]["timeInterval"] == scrape
    (provider,) = yaml.safe_load((FOLDER / "grafana" / "dashboards.yml").read_text())["providers"]
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()
    assert provider["type"] == "file" and provider["options"]["path"] in page
