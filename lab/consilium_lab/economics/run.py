"""Runs the simulation, and writes the whole result and the short one with the figures of page and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from consilium_lab.economics.bank import Bank
from consilium_lab.economics.findings import break_evens, captures, crossings, honest_below
from consilium_lab.economics.measure import TASKS, measure
from consilium_lab.economics.operators import REJECTIONS
from consilium_lab.economics.options import EconomicsOptions, Scenario
from consilium_lab.economics.rules import RECOMMENDED, Unpaid
from consilium_lab.economics.scenarios import HOSPITALS, VOTERS_TERMS, VOTES, OperatorRow, Row, Setting, rows_of
from consilium_lab.result_files import columns_of, laid_out

MEASURING = "measuring scores of real candidates"
SHOWN_SHARE = 0.2
GROUPED_BY = (
    "scenario", "unit", "terms", "late", "cohort_size", "seats", "min_reveals", "money", "party", "by",
)  # fmt: skip
DIGITS = {"honest_mean": 2, "deviant_mean": 2, "if_honest": 2}  # of all others 3
SHARES_SHOWN = (0.1, 0.2)  # of voters that do not evaluate
HOSPITAL_SHARES_SHOWN = (0.1, 0.2, 0.45)
UNSHOWN_PARTY = "voters, hospitals, aggregator"


@dataclass(frozen=True)
class EconomicsResult:
    """`report`: the whole result, ready for JSON. `written`: files."""

    rows: list[Row]
    report: dict[str, Any]
    written: list[Path]

    @property
    def usual(self) -> list[Row]:
        """A row for each scenario and terms: usual cohorts, whole tasks, and about a fifth of all deviate."""
        return usual(self.rows)


def run_economics(
    options: EconomicsOptions, on_progress: Callable[[str, int, int], None] = lambda step, done, of: None
) -> EconomicsResult:
    """`on_progress` gets the present step, the number of finished ones, and of all. Raises LabError."""
    on_progress(MEASURING, 0, TASKS)
    bank = measure(options.seed, progress=lambda done: on_progress(MEASURING, done, TASKS))
    setting, rows = Setting(bank, options.rounds, options.seed), list[Row]()
    for done, scenario in enumerate(options.scenarios):
        on_progress(f"playing {scenario}", done, len(options.scenarios))
        rows.extend(rows_of(scenario, setting))
    on_progress("playing", len(options.scenarios), len(options.scenarios))
    report = as_report(options, setting, rows)
    raw = options.output.parent / "raw" / options.output.name
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text(as_text(report), encoding="utf-8")
    options.output.write_text(f"{laid_out(brief(report, rows))}\n", encoding="utf-8")
    written = [options.output, raw]
    if options.plots is not None:
        from consilium_lab.economics.plots import draw_plots  # loads matplotlib

        written += draw_plots(rows, report["crossings"], options.plots)
    return EconomicsResult(rows, report, written)


def as_report(options: EconomicsOptions, setting: Setting, rows: Sequence[Row]) -> dict[str, Any]:
    """The whole result, ready for JSON. Rounds, seed and scenarios determine it."""
    return {
        "what": "mean payoff per round of honest and dishonest players, in tokens; see docs/economics.md",
        "rounds": options.rounds,
        "seed": options.seed,
        "terms": {name: asdict(rules) for name, rules in VOTERS_TERMS.items()},
        "measured": measured(setting.bank),
        "crossings": crossings(rows, setting),
        "break_evens": break_evens(rows),
        "captures": captures(),
        "honest_below": honest_below(setting),
        "rows": [row.as_json() for row in rows],
    }


def as_text(report: dict[str, Any]) -> str:
    """JSON with one line per row, so that diffs show changed rows."""
    head = json.dumps({name: value for name, value in report.items() if name != "rows"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in report["rows"])
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{rows}\n ]\n}}\n'


def measured(bank: Bank) -> dict[str, Any]:
    return {
        "what": "federated averaging on the Wisconsin breast cancer data, cohorts of four, scores in nats of log loss",
        "tasks": bank.tasks,
        "rows_per_voter": bank.rows_per_voter,
        "rounds": bank.summary(RECOMMENDED.cohort_size),
    }


def usual(rows: Sequence[Row]) -> list[Row]:
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        if isinstance(row, OperatorRow) and row.money != Unpaid.BURNT:
            continue
        key = (row.scenario, row.terms)
        closer = key not in found or abs(row.share - SHOWN_SHARE) < abs(found[key].share - SHOWN_SHARE)
        if closer and row.terms in VOTERS_TERMS and row.cohort_size == RECOMMENDED.cohort_size and not row.late:
            found[key] = row
    return list(found.values())


def brief(report: dict[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """The result with only the rows and fields that page or pictures show. Rows that agree in `GROUPED_BY` become one,
    with lists of values. A row without seats, decoy rate or cohort size has those of its terms; a `committee` has the
    recommended terms with other seats.
    """
    short = [one for row in rows if (one := _shown(row)) is not None]
    return {
        **report,
        "measured": {**report["measured"], "rounds": columns_of(report["measured"]["rounds"], ())},
        "break_evens": columns_of(report["break_evens"], ("scenario",)),
        "captures": columns_of(report["captures"], ("voters", "seats")),
        "rows": columns_of(short, GROUPED_BY),
    }


def _shown(row: Row) -> dict[str, Any] | None:
    """A row's fields; None if neither page nor pictures show it."""
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
    elif row.scenario in VOTES and row.terms == "demo" and row.decoy_rate < 1:
        kept = ("terms", "late", "share", "decoy_rate", "deviant_mean", "if_honest")
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
