"""The Grafana dashboard and Prometheus rules in this repository use only metrics that the API has."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import promql_parser as promql
import pytest
import yaml
from consilium_server.jobs.store import Ended, end, take
from deploy_driver import DEPLOY
from fastapi.testclient import TestClient
from indexed_network import TASK_FILE, IndexedNetwork, app_of
from prometheus_client.parser import text_string_to_metric_families

OPERATOR = DEPLOY / "compose" / "operator"
(SCRAPE,) = yaml.safe_load((OPERATOR / "prometheus" / "prometheus.yaml").read_text())["scrape_configs"]
(RULES,) = yaml.safe_load((OPERATOR / "prometheus" / "rules.yaml").read_text())["groups"]
BOARDS = [json.loads(path.read_text()) for path in sorted((OPERATOR / "grafana" / "dashboards").glob("*.json"))]
SOURCES = yaml.safe_load((OPERATOR / "grafana" / "datasources" / "prometheus.yaml").read_text())["datasources"]
OF_TARGETS = {"job", "instance"}  # labels that Prometheus adds

Labels = dict[str, set[str]]  # by the names of samples


def queries() -> Iterator[tuple[str, str]]:
    for rule in RULES["rules"]:
        yield rule["alert"], rule["expr"]
    for board in BOARDS:
        for panel in board["panels"]:
            for asked in panel["targets"]:
                yield f"{panel['title']} {asked['refId']}", asked["expr"]


@pytest.fixture
def told(tmp_path: Path) -> Labels:
    """The metrics of an API after some requests and a successful job."""
    network = IndexedNetwork(tmp_path)
    with network.mined():
        network.propose(1, TASK_FILE)
    row = take(network.engine, "index", "", "host:1", time.time(), 30.0)
    assert row is not None
    end(network.engine, row, row.owner, time.time(), Ended())
    with TestClient(app_of(network)) as client:
        client.get("/v1/tasks")
        text = client.get("/metrics").text
    found: Labels = {"up": set(OF_TARGETS)}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set(OF_TARGETS)).update(sample.labels)
    return found


def unknown(query: str, told: Labels) -> list[str]:
    """Metrics of a query that do not exist. Raises ValueError if the query is not PromQL."""
    faults: list[str] = []
    known: set[str] = set()

    def look(node: promql.Expr) -> None:
        if isinstance(node, promql.MatrixSelector):
            node = node.vector_selector
        if isinstance(node, promql.VectorSelector):
            name = node.name or ""
            labels = told.get(name)
            if labels is None:
                faults.append(name)
            else:
                known.update(labels)
                faults.extend(m.name for m in node.matchers.matchers if m.name not in labels)

    def look_at_labels(node: promql.Expr) -> None:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            faults.extend(label for label in node.modifier.labels if label not in known)

    parsed = promql.parse(query)
    promql.walk(parsed, look)
    promql.walk(parsed, look_at_labels)
    return faults


def test_all_that_is_asked_for_is_told(told: Labels) -> None:
    asked = dict(queries())
    assert len(asked) > 20
    assert {what: faults for what, query in asked.items() if (faults := unknown(query, told))} == {}


def test_what_nobody_tells_would_be_found(told: Labels) -> None:
    assert unknown("sum by (rout) (rate(consilium_requests_total[5m]))", told) == ["rout"]
    assert unknown('consilium_job_failures{name="tick"} > consilium_jobs_failed', told) == [
        "name",
        "consilium_jobs_failed",
    ]
    with pytest.raises(ValueError, match="unclosed"):
        unknown("rate(consilium_requests_total[5m]", told)


def test_figures_of_jobs_keep_their_own_label(told: Labels) -> None:
    """Otherwise Prometheus renames the label to `exported_job`, because its own `job` is the target's."""
    assert "job" in told["consilium_job_failures"]
    assert SCRAPE["honor_labels"] is True
    assert SCRAPE["job_name"] == "api"


def test_every_panel_asks_the_data_source_that_is_provisioned() -> None:
    (source,) = SOURCES
    assert source["url"] == "http://prometheus:9090"
    for board in BOARDS:
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        for panel in board["panels"]:
            assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24


def test_an_alert_says_what_it_is_about() -> None:
    for rule in RULES["rules"]:
        assert rule["annotations"]["summary"]
        assert rule.keys() <= {"alert", "expr", "for", "annotations"}
