"""A node's signed report: what is refused, whoever made it, and what it cannot hold."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from consilium_chain.errors import SiteReportInvalid
from consilium_chain.evaluations.measures import Bin, Calibration, Evaluated, Group, Importance, Measure
from consilium_chain.evaluations.site_report import (
    LEAST_ROWS,
    MOST_BYTES,
    MOST_FIGURE,
    SiteContent,
    SiteReport,
    Subject,
    parse_site_report,
    sign,
)
from consilium_chain.tasks.task_spec import parse_task_spec
from eth_account import Account

SCHEMA = parse_task_spec(b"""
name = "reported"
[data]
label = "sick"
classes = ["no", "yes"]
subgroups = ["sex"]
[[data.features]]
name = "age"
min = 0
max = 100
[[data.features]]
kind = "category"
name = "sex"
values = ["female", "male"]
[model]
name = "logistic"
""").data
NODE, OTHER = Account.from_key(b"\1" * 32), Account.from_key(b"\2" * 32)
SUBJECT = Subject(
    chain_id=31337, contract="0x" + "ab" * 20, task=3, spec_hash="5e" * 32, round=2, sha256="1f" * 32
)  # fmt: skip
AUC = Measure(value=0.81, low=0.7, high=0.9)


def group(name: str | None = None, rows: int = 120) -> Group:
    return Group(name=name, rows=rows, classes={"no": 70, "yes": 50}, measures={"auc": AUC})


def found(**changes: Any) -> Evaluated:
    bin_ = Bin(above=0.2, up_to=0.3, rows=40, predicted=0.26, observed=0.3, low=0.18, high=0.46)
    values: dict[str, Any] = {
        "all_rows": group(), "calibration": (Calibration(class_name="yes", error=0.04, bins=(bin_,)),),
        "subgroups": (group("sex = female", 60),), "importance_by": "auc",
        "importance": (Importance(column="age", mean=0.2, low=0.15, high=0.25),),
    }  # fmt: skip
    return Evaluated(**values | changes)


def content(**changes: Any) -> SiteContent:
    values = {**dict(SUBJECT), "role": "hospital", "node": NODE.address, "found": found(), "start": {"auc": AUC}}
    return SiteContent(**values | changes)


def test_a_report_is_read_as_it_was_signed() -> None:
    report = sign(content(), NODE)
    assert parse_site_report(report.written) == report
    report.require_of(SUBJECT, [OTHER.address, NODE.address], SCHEMA)
    report.require_of(SUBJECT, [NODE.address.lower()], SCHEMA)


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    values = json.loads(sign(content(), NODE).written)
    change(values)
    return json.dumps(values).encode()


ALTERED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a metric": lambda v: v["found"]["all_rows"]["measures"]["auc"].update(value=0.99),
    "the start": lambda v: v["start"]["auc"].update(value=0.1),
    "rows": lambda v: v["found"]["all_rows"].update(rows=990),
    "an importance": lambda v: v["found"]["importance"][0].update(mean=0.9),
    "the task": lambda v: v.update(task=4),
    "the chain": lambda v: v.update(chain_id=1),
    "the contract": lambda v: v.update(contract="0x" + "cd" * 20),
    "the model": lambda v: v.update(sha256="2f" * 32),
    "the role": lambda v: v.update(role="voter"),
    "the node": lambda v: v.update(node=OTHER.address),
    "the signature": lambda v: v.update(signature=sign(content(task=4), NODE).signature),
    "another's signature": lambda v: v.update(signature=sign(content(), OTHER).signature),
    "no signature": lambda v: v.update(signature="0x" + "00" * 65),
}


@pytest.mark.parametrize("change", ALTERED.values(), ids=list(ALTERED))
def test_nothing_can_be_altered_after_the_signature(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(SiteReportInvalid, match="signature is not by the node"):
        parse_site_report(changed(change))


MALFORMED: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "Invalid JSON"),
    "too long": (b" " * (MOST_BYTES + 1), "more than"),
    "more keys": (changed(lambda v: v.update(rows=[[61, 1]])), "rows: Extra inputs"),
    "rows inside": (changed(lambda v: v["found"].update(predictions=[0.1, 0.9])), "Extra inputs"),
    "not finite": (changed(lambda v: v["start"]["auc"].update(value="NaN")), "finite"),
    "another format": (changed(lambda v: v.update(format="consilium-site-report-2")), "format"),
}


@pytest.mark.parametrize(("raw", "why"), MALFORMED.values(), ids=list(MALFORMED))
def test_another_file_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(SiteReportInvalid, match=why):
        parse_site_report(raw)


@pytest.mark.parametrize("value", [MOST_FIGURE, -MOST_FIGURE, 1e21])
def test_a_figure_that_no_page_can_show_is_refused_even_if_its_node_signed_it(value: float) -> None:
    just_below = Measure(value=math.nextafter(MOST_FIGURE, 0) // 1, low=None, high=None)
    assert parse_site_report(sign(content(start={"auc": just_below}), NODE).written).start == {"auc": just_below}
    large = {"auc": Measure(value=0.5, low=0.4, high=value)}
    for changes in (
        {"start": large},
        {"alone": large},
        {"found": found(all_rows=group().model_copy(update={"measures": large}))},
    ):
        with pytest.raises(SiteReportInvalid, match=r"a figure is 1e\+15 or larger"):
            parse_site_report(sign(content(**changes), NODE).written)


FINER: dict[str, tuple[Evaluated, str]] = {
    "a third decimal": (found(importance=(Importance(column="age", mean=0.123, low=0.1, high=0.2),)), "2 decimals"),
    "a row more": (found(all_rows=group(rows=121)), "whole ten"),
    "few rows": (found(all_rows=group(rows=LEAST_ROWS - 10)), f"fewer than {LEAST_ROWS} rows"),
    "few rows of a subgroup": (found(subgroups=(group("sex = male", 10),)), f"fewer than {LEAST_ROWS} rows"),
}


@pytest.mark.parametrize(("fine", "why"), FINER.values(), ids=list(FINER))
def test_finer_figures_are_no_report_even_if_their_node_would_sign_them(fine: Evaluated, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        content(found=fine)
    loose = SiteReport.model_construct(**dict(content()), signature="")
    loose = loose.model_copy(update={"found": fine})
    with pytest.raises(SiteReportInvalid, match=why):
        parse_site_report(loose.model_copy(update={"signature": "0x" + "00" * 65}).model_dump_json().encode())


MISPLACED: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "another task's report": ({"task": 4}, [NODE.address], "its task is 4, and here it is 3"),
    "another model's": ({"sha256": "2f" * 32}, [NODE.address], "its sha256"),
    "another contract's": ({"contract": "0x" + "cd" * 20}, [NODE.address], "its contract"),
    "another file's": ({"spec_hash": "6e" * 32}, [NODE.address], "its spec_hash"),
    "an earlier round's": ({"round": 1}, [NODE.address], "its round is 1"),
    "a node that never joined": ({}, [OTHER.address], "is no hospital of task 3"),
    "a column that the task lacks": (
        {"found": found(importance=(Importance(column="<b>", mean=0.2, low=0.1, high=0.3),))}, [NODE.address],
        "the task has no <b>",
    ),
    "a subgroup that it lacks": (
        {"found": found(subgroups=(group("name = Meier", 60),))}, [NODE.address], "the task has no name = Meier",
    ),
    "a metric of another question": (
        {"found": found(all_rows=group().model_copy(update={"measures": {"r2": AUC}}))}, [NODE.address], "no r2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "members", "why"), MISPLACED.values(), ids=list(MISPLACED))
def test_a_signed_report_is_of_its_task_alone(changes: dict[str, Any], members: list[str], why: str) -> None:
    report = parse_site_report(sign(content(**changes), NODE).written)
    with pytest.raises(SiteReportInvalid, match=why):
        report.require_of(SUBJECT, members, SCHEMA)
