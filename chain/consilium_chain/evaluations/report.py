"""The report at a task's end: the model on the operator's labelled rows, and on those of the task's nodes that share
their figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from consilium_chain.evaluations.measures import Calibration, Group, Importance, Plain
from consilium_chain.evaluations.site_report import Address, NodeRole, SiteReport
from consilium_chain.tasks.questions import Metric

MOST_BYTES = 1 << 23
MOST_NODES = 1 << 10


class NodeEntry(Plain):
    """A hospital or voter of the task. `report`: None if it shares none."""

    node: Address
    role: NodeRole
    report: SiteReport | None = None


def node_entries(members: Mapping[NodeRole, Sequence[str]], shared: Iterable[SiteReport]) -> tuple[NodeEntry, ...]:
    """All nodes of the task, each with its report if one of the `shared` is its own. The first one of a node counts."""
    by_node: dict[tuple[str, str], SiteReport] = {}
    for one in shared:
        by_node.setdefault((one.role, one.node.lower()), one)
    return tuple(
        NodeEntry(node=node, role=role, report=by_node.get((role, node.lower())))
        for role, nodes in members.items()
        for node in nodes
    )


class EvaluationReport(Plain):
    """`metric`: the task's. `sha256`: of the model's parameters. `all_rows`: the operator's; None if it has none. Each
    part without `nodes` is of these rows.
    """

    format: Literal["consilium-model-evaluation-1"] = "consilium-model-evaluation-1"
    task: int
    name: str
    round: int
    verified: bool
    sha256: str
    metric: Metric | Literal["plugin"]
    seed: int
    resamples: int
    level: float = 0.95
    all_rows: Group | None
    sites: tuple[Group, ...] = ()
    calibration: tuple[Calibration, ...] = ()
    subgroups: tuple[Group, ...] = ()
    importance_by: Metric | None = None
    importance: tuple[Importance, ...] = ()
    nodes: Annotated[tuple[NodeEntry, ...], Field(max_length=MOST_NODES)] = ()

    @property
    def shared(self) -> list[SiteReport]:
        return [one.report for one in self.nodes if one.report is not None]
