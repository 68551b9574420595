"""The result in brief: the figures of page and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consilium_lab.economics.operators import REJECTIONS
from consilium_lab.economics.options import Scenario
from consilium_lab.economics.scenarios import HOSPITALS, VOTES, OperatorRow, Row
from consilium_lab.result_files import columns_of

GROUPED_BY = (
    "scenario", "unit", "terms", "late", "cohort_size", "seats", "min_reveals", "money", "party", "by",
)  # fmt: skip
DIGITS = {"honest_mean": 2, "deviant_mean": 2, "if_honest": 2}  # of all others 3
SHARES_SHOWN = (0.1, 0.2)  # of voters that do not look
HOSPITAL_SHARES_SHOWN = (0.1, 0.2, 0.45)
UNSHOWN_PARTY = "voters, hospitals, aggregator"


def brief(report: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The whole result with those rows and fields alone that page or pictures show. Rows that agree in `GROUPED_BY` are
    one, and a list has a value for each of them. Where a row has no seats, canary rate or cohort size, its terms say
    them; those of a `committee` are the recommended ones with other seats.
    """
    told = [one for row in rows if (one := _shown(row)) is not None]
    return {
        **report,
        "measured": {**report["measured"], "rounds": columns_of(report["measured"]["rounds"], ())},
        "break_evens": columns_of(report["break_evens"], ("scenario",)),
        "captures": columns_of(report["captures"], ("voters", "seats")),
        "rows": columns_of(told, GROUPED_BY),
    }


def _shown(row: Row) -> dict[str, Any] | None:
    """A row's fields; None if neither page nor picture has it."""
    amounts = ("honest_mean", "deviant_mean", "if_honest")
    kept: tuple[str, ...]
    if isinstance(row, OperatorRow):
        if row.party == UNSHOWN_PARTY:
            return None
        by = "rejection" if row.trick in REJECTIONS else "rating"
        return _fields(row, "terms", "money", "party") | {"by": by} | _fields(row, "share", "if_honest", "gain")
    if row.terms == "committee":
        drawn_with_errors = ("gain_se",) if row.min_reveals > 1 else ()
        kept = ("terms", "seats", "min_reveals", "share", "gain", *drawn_with_errors)
    elif row.scenario in VOTES and row.terms == "demo" and row.canary_rate < 1:
        kept = ("terms", "late", "share", "canary_rate", "deviant_mean", "if_honest")
    elif row.scenario in VOTES:
        crowd = row.scenario == Scenario.FORECAST and row.terms == "demo" and not row.late
        if row.share not in SHARES_SHOWN[: 1 if row.late else None] and not crowd:
            return None
        kept = ("terms", "late", "share", *amounts)
    elif row.scenario in HOSPITALS:
        if row.share not in HOSPITAL_SHARES_SHOWN:
            return None
        kept = ("terms", "cohort_size", "share", *amounts, "gain_se")
    elif row.scenario == Scenario.SYBIL:
        kept = ("terms", "seats", "min_reveals", "share", *amounts, "detail")
    elif row.scenario == Scenario.FRAMING:
        kept = ("terms", "share", *amounts, "held", "framed")
    else:
        kept = ("unit", "terms", "share", *amounts)
    return _fields(row, *kept)


def _fields(row: Row, *names: str) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    rounded = {name: round(one, DIGITS.get(name, 3)) if isinstance(one, float) else one for name, one in values.items()}
    return {"scenario": str(row.scenario), **rounded}
