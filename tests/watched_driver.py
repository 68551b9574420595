"""Names in Prometheus rules and Grafana boards, held against the metrics that a process has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml
from prometheus_client.parser import text_string_to_metric_families

OF_TARGETS = {"job", "instance"}  # labels that Prometheus adds
SOURCE = {"type": "prometheus", "uid": "prometheus"}
UNITS = {"short", "s", "d", "bytes", "percentunit", "reqps"}

Labels = dict[str, set[str]]  # by the names of samples
Read = dict[str, Any]


def rules_of(path: Path) -> list[Read]:
    (group,) = yaml.safe_load(path.read_text())["groups"]
    return list(group["rules"])


def boards_of(folder: Path) -> list[Read]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def queries(rules: Sequence[Read], boards: Sequence[Read]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        yield rule["alert"], rule["expr"]
    for board in boards:
        for panel in board["panels"]:
            for asked in panel["targets"]:
                yield f"{board['uid']}: {panel['title']} {asked['refId']}", asked["expr"]


def told_by(*texts: str) -> Labels:
    """Names and labels of the samples in these answers of `/metrics`."""
    found: Labels = {"up": set(OF_TARGETS)}
    for text in texts:
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


def check_rule(rule: Read) -> None:
    assert rule["annotations"]["summary"]
    assert rule.keys() <= {"alert", "expr", "for", "annotations"}


def check_board(board: Read) -> None:
    """The fields that Grafana's schema of a dashboard needs, with panels side by side."""
    assert board["uid"]
    assert board["title"]
    assert board["schemaVersion"] >= 36
    assert board["editable"] is False
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["type"] in ("stat", "timeseries")
        assert panel["title"]
        assert panel["datasource"] == SOURCE
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["fieldConfig"]["overrides"] == []
        assert len({asked["refId"] for asked in panel["targets"]}) == len(panel["targets"]) > 0
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken
        taken |= cells
