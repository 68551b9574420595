"""A simulation's result as JSON, and as one HTML page with pictures."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.questions import TITLES
from consilium_chain.tasks.task_spec import section_digests
from consilium_core.units import decimals, tokens
from consilium_zk.constants import BYTES_PER_BLOB

from consilium_lab.demo.references import row_weight
from consilium_lab.pages import (
    RED,
    curve_of,
    percent,
    svg,
    table_of,
    tiles_of,
    write_document,
)
from consilium_lab.pay import Earner, Share, pay_in_words
from consilium_lab.simulation.references import References
from consilium_lab.simulation.run import PlayedRound, Simulation

SCHEMA = "consilium.simulation/1"
ENDED_EARLY = "The task ended early: too few hospitals were left to take part."


def costs(result: Simulation) -> dict[str, int]:
    """Estimates for the whole task on a chain. `gas`: of all parties. Bytes: of a hospital's uploads, of artifacts."""
    spec, found = result.spec, estimate(result.spec)
    uploads = spec.statistics_blobs + spec.rounds.rounds * spec.update_blobs
    return {
        "gas": found.all_gas, "hospital_gas": found.hospital.total, "hospital_upload_bytes": uploads * BYTES_PER_BLOB,
        "artifact_bytes": found.artifact_bytes, "chain_blobs": found.published_blobs,
    }  # fmt: skip


def as_json(result: Simulation) -> dict[str, Any]:
    """Money in the token's smallest unit, as text; scores in millionths. `bases`: as in the demo's report.
    `sections`: digests, by which the dashboard knows the task. `judged`: for each cohort, true if it has a sum.
    """
    privacy = result.spec.privacy
    return {
        "schema": SCHEMA,
        "task": result.spec.name,
        "sections": section_digests(result.spec),
        "metric": result.metric,
        "rows": dict(result.rows),
        "start": _finite(result.start),
        "rounds": [
            {
                "round": one.number,
                "cohorts": [[result.hospitals[index] for index in cohort] for cohort in one.cohorts],
                "medians": list(one.settlement.medians), "decoy_medians": list(one.settlement.decoy_medians),
                "accepted": [bool(one.settlement.accepted >> k & 1) for k in range(len(one.cohorts))],
                "judged": [bool(one.settlement.medians) and k in one.viable for k in range(len(one.cohorts))],
                "absent": [result.hospitals[index] for index in sorted(one.absent)],
                "paid": str(one.settlement.paid),
                "slashed": [
                    result.hospitals[index] for index in range(len(result.hospitals))
                    if one.settlement.account(Role.HOSPITAL, index).slash
                ],
                "void": one.settlement.void.name, "metrics": _finite(one.metrics),
            }
            for one in result.rounds
        ],
        "bases": result.bases,
        **references_as_json(result.references),
        "epsilon": None if privacy is None else privacy.epsilon,
        "paid": {name: str(paid) for name, paid in result.paid.items()},
        "slashed": {name: str(slashed) for name, slashed in result.slashed.items()},
        "estimated": costs(result),
    }  # fmt: skip


def references_as_json(references: References) -> dict[str, Any]:
    """Metrics of the reference trainings; null where a metric is not known."""
    return {
        "pooled": _finite(references.pooled), "averaged": _finite(references.averaged),
        "alone": {name: _finite(metrics) for name, metrics in references.alone.items()},
    }  # fmt: skip


def reference_tiles(references: References, metric: str) -> list[tuple[str, str]]:
    return [(figured(metric, value), name) for value, name, _, _ in references.lines(metric)]


def figured(metric: str, value: float) -> str:
    """A share in percent, any other value as a number."""
    return percent(value) if metric == "accuracy" else decimals(value)


def _finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no NaN: the AUC of rows of one class is null."""
    return {name: value if math.isfinite(value) else None for name, value in metrics.items()}


def has_ended_early(result: Simulation) -> bool:
    return len(result.rounds) < result.spec.rounds.rounds


def verdict(result: Simulation, played: PlayedRound) -> str:
    """A round's cohorts with their medians, and the hospitals that missed it, in words."""
    settlement = played.settlement
    if settlement.medians:
        words = [_cohort_in_words(result, played, number) for number in range(len(played.cohorts))]
    else:
        words = [f"void: {settlement.void.name.lower().replace('_', ' ')}"]
    if played.absent:
        words.append(f"absent: {', '.join(result.hospitals[index] for index in sorted(played.absent))}")
    return "; ".join(words)


def _cohort_in_words(result: Simulation, played: PlayedRound, number: int) -> str:
    cohort, settlement = played.cohorts[number], played.settlement
    present = ", ".join(result.hospitals[index] for index in cohort if index not in played.absent)
    if number not in played.viable:
        return f"{present or 'none'}: too few for a sum"
    rejected = "" if settlement.accepted >> number & 1 else " rejected"
    return f"{present} {settlement.medians[number] / MICRO:+.4f}{rejected}"


def picture(result: Simulation) -> Any:
    """A matplotlib figure of the first shown metric, beside pooled rows, plain FedAvg, and each hospital alone."""
    metric = result.metric
    before = ["start", "statistics"] if result.spec.statistics == "exact" else ["start"]
    values = [result.start[metric] for _ in before] + [one.metrics[metric] for one in result.rounds]
    figure = curve_of([*before, *(f"after {one.number}" for one in result.rounds)], values, TITLES[metric],
                      result.references.lines(metric))  # fmt: skip
    for x, one in enumerate(result.rounds, len(before) - 1):
        if not one.settlement.medians:
            figure.axes[0].axvspan(x, x + 1, color=RED, alpha=0.08)
    return figure


def pay_of(result: Simulation) -> list[str]:
    """The rule of pay, and its surprises, in words."""
    return pay_in_words(earners(result), result.spec.rounds, is_arena=result.spec.is_arena)


def earners(result: Simulation) -> list[Earner]:
    """Hospitals with their settled rounds."""
    found = []
    for index, name in enumerate(result.hospitals):
        accounts = {one.number: one.settlement.account(Role.HOSPITAL, index) for one in result.rounds}
        shares = {number: Share(account.reward, account.reason) for number, account in accounts.items()}
        found.append(Earner(name, result.rows[name], row_weight(result.rows[name], result.spec), shares))
    return found


def write_page(path: Path, result: Simulation) -> None:
    """One HTML file that loads nothing."""
    metric, shown = result.metric, result.spec.data.asked.shown
    last, spent = result.rounds[-1].metrics if result.rounds else result.start, costs(result)
    tiles = [
        (figured(metric, last[metric]), f"{TITLES[metric]}, together"),
        *reference_tiles(result.references, metric),
        (f"{spent['gas'] / 1e6:,.1f} M", "gas of all parties, estimated"),
        (f"{spent['hospital_upload_bytes'] / 1e6:,.1f} MB", "uploads of a hospital"),
    ]
    privacy = result.spec.privacy
    noise = (
        "Without privacy: nothing bounds how much the sums show of a row."
        if privacy is None
        else f"All rounds together cost a row at most epsilon {privacy.epsilon:g} at delta {privacy.delta:g}."
    )
    rounds = [
        f"<td>{one.number}"
        + "".join(f"<td class=n>{decimals(one.metrics[name])}" for name in shown)
        + f"<td>{html.escape(verdict(result, one))}"
        for one in result.rounds
    ]
    alone = result.references.alone
    money = [
        f"<td>{html.escape(name)}<td class=n>{result.rows.get(name, '')}<td class=n>{tokens(paid)}"
        f"<td class=n>{tokens(result.slashed[name])}"
        f"<td class=n>{figured(metric, alone[name][metric]) if name in alone else ''}"
        for name, paid in result.paid.items()
    ]
    rows, held_out = (sum(result.rows[name] for name in names) for names in (result.hospitals, result.voters))
    steps = ["consilium operator check TASK"]
    steps += ["consilium demo --data table --file TABLE"] if result.spec.data.kind == "table" else []
    head = "<th>round" + "".join(f"<th class=n>{TITLES[name]}" for name in shown)
    head += "<th>improvement by cohort, voters' median"
    parts = [
        f"<h1>Simulated: {html.escape(result.spec.name)}</h1>",
        f"<p class=sub>{rows} rows of {len(result.hospitals)} hospitals, {held_out} held out by {len(result.voters)}"
        f" voters; {html.escape(result.spec.data.asked.in_words)}; no chain</p>",
        tiles_of(tiles), f"<p class=note>{noise}</p>",
        f"<p class='note bad'>{ENDED_EARLY}</p>" if has_ended_early(result) else "",
        "<h2>The model, round by round</h2>", svg(picture(result)), table_of(head, rounds),
        "<h2>Rows and pay</h2>",
        table_of("<th>party<th class=n>rows<th class=n>paid, tokens<th class=n>slashed<th class=n>alone", money),
        "".join(f"<p>{html.escape(words)}</p>" for words in pay_of(result)),
        "<h2>Next: costs and risks, then a chain</h2><pre class=wrap>" + "\n".join(steps) + "</pre>",
    ]  # fmt: skip
    write_document(path, f"Consilium simulation: {html.escape(result.spec.name)}", parts)
