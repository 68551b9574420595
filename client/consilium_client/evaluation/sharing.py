"""Lets a node's evaluation go: as its policy allows, in coarse figures, once for each task.

A second report on other rows would, together with the first, say more about the rows that differ. So the first one is
kept in the home, and given again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from consilium_chain.evaluations.measures import Bin, Calibration, Evaluated, Group, Importance, Measure
from consilium_chain.evaluations.site_report import (
    DECIMALS,
    LEAST_ROWS,
    MOST_FIGURE,
    TENS,
    NodeRole,
    SiteContent,
    SiteReport,
    sign,
)
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
from consilium_chain.tasks.questions import Metric, NextToken, Regression
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.private_files import write_private_file
from eth_account.signers.local import LocalAccount

from consilium_client.consent import TaskPolicy
from consilium_client.errors import ClientError, OwnersRefusal
from consilium_client.evaluation.measuring import wilson
from consilium_client.evaluation.own import OwnEvaluation

LEAST_OF_ANSWER = 10  # rows, where there are any
LEAST_IN_BIN, LEAST_OF_EACH = 10, 3  # a bin whose rows all have one answer would say each row's


def share(
    own: OwnEvaluation,
    role: NodeRole,
    policy: TaskPolicy,
    account: LocalAccount,
    kept: Path,
) -> SiteReport:
    """The report that this node shares of the task; it is in the file `kept` on return.

    Raises OwnersRefusal (SharingNotAllowed), ClientError (SharingTooEarly, TooFewToShare).
    """
    require_allowed(policy, own.spec)
    if not own.has_ended:
        raise ClientError("SharingTooEarly", task=own.subject.task)
    if kept.exists():
        return SiteReport.model_validate_json(kept.read_bytes())
    if why := too_few(own.found.all_rows, own.spec.data):
        raise ClientError("TooFewToShare", why=why)
    content = SiteContent(
        **dict(own.subject), role=role, node=account.address, found=coarse(own.found, own.spec.data),
        start=_measures(own.start), alone=None if own.alone is None else _measures(own.alone),
    )  # fmt: skip
    report = sign(content, account)
    write_private_file(kept, report.written)
    return report


def require_allowed(policy: TaskPolicy, spec: TaskSpec) -> None:
    """Raises OwnersRefusal (SharingNotAllowed)."""
    if policy.share_evaluation == "always":
        return
    if policy.share_evaluation == "never":
        why = '`share_evaluation` is "never"'
    elif spec.privacy is not None:
        why = 'the task is private, and `share_evaluation` is "unless_private": the figures are outside its epsilon'
    else:
        return
    raise OwnersRefusal("SharingNotAllowed", why=why)


def too_few(group: Group, schema: DataSchema) -> str:
    """The reason in words why a figure of these rows would say too much of some; empty if there is none."""
    if group.rows < LEAST_ROWS:
        return f"{group.rows} rows are held out, and a figure needs {LEAST_ROWS}"
    if isinstance(schema.asked, Regression | NextToken):
        return ""
    for name, count in group.classes.items():
        if 0 < min(count, group.rows - count) < LEAST_OF_ANSWER:
            fewer = min(count, group.rows - count)
            return f"{fewer} rows have another answer to {name} than the others, and a figure needs {LEAST_OF_ANSWER}"
    return ""


def coarse(found: Evaluated, schema: DataSchema) -> Evaluated:
    """Rounded, and without the parts that are of too few rows."""
    named = set(schema.classes) | set(schema.asked.columns)

    def group(one: Group) -> Group:
        classes = {name: _tens(count) for name, count in one.classes.items() if name in named}
        return Group(name=one.name, rows=_tens(one.rows), classes=classes, measures=_measures(one.measures))

    importance = (
        Importance(column=one.column, mean=_coarse(one.mean), low=_coarse(one.low), high=_coarse(one.high))
        for one in found.importance
        if max(map(abs, (one.mean, one.low, one.high))) < MOST_FIGURE
    )
    return Evaluated(
        all_rows=group(found.all_rows), calibration=tuple(map(_curve, found.calibration)),
        subgroups=tuple(map(group, _large_enough(found.subgroups, schema))), importance_by=found.importance_by,
        importance=tuple(importance),
    )  # fmt: skip


def _large_enough(groups: Iterable[Group], schema: DataSchema) -> Iterable[Group]:
    """Subgroups of columns whose values all have enough rows: a missing one would follow from the others."""
    for column in schema.subgroups if isinstance(schema, TableSchema) else []:
        of_column = [one for one in groups if (one.name or "").startswith((f"{column} = ", f"{column} missing"))]
        if not any(too_few(one, schema) for one in of_column):
            yield from of_column


def _curve(curve: Calibration) -> Calibration:
    return Calibration(
        class_name=curve.class_name, error=_coarse(curve.error), bins=tuple(map(_bin, filter(_is_mixed, curve.bins)))
    )


def _is_mixed(one: Bin) -> bool:
    of_class = round(one.observed * one.rows)
    return one.rows >= LEAST_IN_BIN and min(of_class, one.rows - of_class) >= LEAST_OF_EACH


def _bin(one: Bin) -> Bin:
    """With an interval of the coarse figures, which says nothing more of the rows."""
    rows, observed = _tens(one.rows), _coarse(one.observed)
    low, high = wilson(observed, rows)
    return Bin(
        above=_coarse(one.above), up_to=_coarse(one.up_to), rows=rows, predicted=_coarse(one.predicted),
        observed=observed, low=_coarse(low), high=_coarse(high),
    )  # fmt: skip


def _measures(found: Mapping[Metric, Measure]) -> dict[Metric, Measure]:
    """A diverged model's figures have no meaning, as None says."""

    def rounded(value: float | None) -> float | None:
        return None if value is None or abs(value) >= MOST_FIGURE else _coarse(value)

    return {
        name: Measure(value=rounded(one.value), low=rounded(one.low), high=rounded(one.high))
        for name, one in found.items()
    }


def _coarse(value: float) -> float:
    return round(value, DECIMALS) + 0.0  # no -0.0


def _tens(count: int) -> int:
    return count - count % TENS
