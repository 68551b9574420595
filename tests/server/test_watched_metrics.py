"""The Grafana dashboards and Prometheus rules of an operator use only metrics that the API has."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from consilium_chain.ledger.structs import Phase
from consilium_server.api.metrics import Metrics
from consilium_server.jobs.store import Ended, end, take
from consilium_server.jobs.ticking import OpenTask
from deploy_driver import DEPLOY
from fastapi.testclient import TestClient
from indexed_network import TASK_FILE, IndexedNetwork, app_of
from watched_driver import SOURCE, Labels, boards_of, check_board, check_rule, queries, rules_of, told_by, unknown

OPERATOR = DEPLOY / "compose" / "operator"
(SCRAPE,) = yaml.safe_load((OPERATOR / "prometheus" / "prometheus.yaml").read_text())["scrape_configs"]
RULES = rules_of(OPERATOR / "prometheus" / "rules.yaml")
BOARDS = boards_of(OPERATOR / "grafana" / "dashboards")
SOURCES = yaml.safe_load((OPERATOR / "grafana" / "datasources" / "prometheus.yaml").read_text())["datasources"]


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
        return told_by(client.get("/metrics").text)


def test_all_that_is_asked_for_is_told(told: Labels) -> None:
    asked = dict(queries(RULES, BOARDS))
    assert len(asked) > 30
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


def test_boards_and_rules_are_whole() -> None:
    (source,) = SOURCES
    assert source["url"] == "http://prometheus:9090"
    assert {name: source[name] for name in SOURCE} == SOURCE
    assert {board["uid"] for board in BOARDS} == {"consilium", "consilium-operator"}
    for board in BOARDS:
        check_board(board)
    for rule in RULES:
        check_rule(rule)


def test_open_tasks_are_counted_by_phase_and_the_longest_overdue_one_is_told() -> None:
    metrics = Metrics()
    tasks = [OpenTask(1, "0xA", Phase.SCORING, 90, 0), OpenTask(2, "0xA", Phase.SCORING, 60, 0)]
    tasks += [OpenTask(3, "0xB", Phase.FORMING, 0, 0), OpenTask(4, "0xB", Phase.JOINING, 200, 0)]

    def values() -> list[float | None]:
        value = metrics.registry.get_sample_value
        phases = [value("consilium_open_tasks", {"phase": one}) for one in ("scoring", "forming", "joining")]
        return [*phases, value("consilium_phase_overdue_seconds")]

    metrics.note_tasks(tasks, 100.0)
    assert values() == [2, 1, 1, 40]
    metrics.note_tasks([], 100.0)
    assert values() == [0, 0, 0, 0]
