"""The model card: a model's purpose, origin, checks and limits. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from consilium_chain.ledger.structs import Hospital
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.questions import TITLES, Metric
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_chain.tasks.training_specs import PrivacySpec
from consilium_client.data.standardise import LEAST_VARIANCE
from consilium_verify.report import LIMITS, Result
from numpy.typing import NDArray

from consilium_operators.card_evaluation import NONE, TITLE
from consilium_operators.card_text import joined, line
from consilium_operators.measuring import Measured
from consilium_operators.model_folder import ModelFile, Proof, RoundProof

UNITS: Mapping[str, str] = {
    "log_loss": "nats of log loss a row",
    "accuracy": "share of rows",
    "squared_error": "squared error in squared deviations of the task",
    "absolute_error": "absolute error in deviations of the task",
    "plugin": "by the plug-in",
}
"""Metrics that have one."""


def model_card(index: ModelFile, spec: TaskSpec, proof: Proof, hospitals: Sequence[Hospital]) -> str:
    """Markdown."""
    parts = [
        f"# {line(index.name)}",
        *([] if index.verified else ["**Not verified: checks of the record fail; see below.**"]),
        *_what(index, spec),
        "## Origin",
        f"Proposed by `{proof.operator}` as task {index.task} of contract `{index.contract}` on chain {index.chain_id};"
        f" task file `keccak256 {index.spec_hash}`. It is derived from the public record alone: initial parameters,"
        " plus, for each settled round, the weighted mean of the accepted cohorts' published sums.",
        *_hospitals(proof.rounds, hospitals),
        "## Quality",
        *_quality(index.measured, spec.data.asked.metrics),
        TITLE,
        NONE,
        "## Rounds and scores",
        *_rounds(proof.rounds, spec.judging.metric),
        "## Privacy",
        *_privacy(spec.privacy, spec),
        "## Standardisation",
        *_statistics(spec, np.array(index.statistics)),
        "## Checks",
        *_checks(proof.rounds),
        "## Limits",
        *(f"- {limit}" for limit in LIMITS),
        "- Scores come from the voters' own rows. They do not show how well the model works on other rows. Test it on"
        " your own rows before use. Do not let it decide about people by itself.",
    ]
    return joined(parts) + "\n"


def _what(index: ModelFile, spec: TaskSpec) -> Iterator[str]:
    final = "the task's last" if index.round == index.rounds else f"of {index.rounds}: the task is not over"
    yield (
        f"A {spec.model.name} model of {spec.parameters:,} parameters (float32), as it is after round {index.round},"
        f" {final}. SHA-256 of its parameters: `{index.sha256}`."
    )
    yield f"- answers: {line(spec.data.asked.in_words)}"
    yield f"- reads: {line(spec.data.reads)}"
    yield f"- judged by {spec.judging.in_words}"
    if local := spec.training.local:
        yield (
            f"- left out of this model: {', '.join(local)}. Each hospital has its own values, which never left it, and"
            " predicts with these. Voters judged, and figures below are, with their starting values"
        )


def _hospitals(rounds: Sequence[RoundProof], hospitals: Sequence[Hospital]) -> Iterator[str]:
    """Round 0 has statistics, and no part in the model."""
    yield "| hospital | weight | training rounds in the model |"
    yield "|---|---|---|"
    for hospital in hospitals:
        taken = [
            str(one.round) for one in rounds[1:] for c in one.cohorts if c.accepted and hospital.node in c.hospitals
        ]
        yield f"| `{hospital.node}` | {hospital.weight} | {', '.join(taken) or 'none'} |"


def _quality(measured: Measured | None, metrics: Sequence[Metric]) -> Iterator[str]:
    if measured is None:
        yield (
            "Not measured. The record has only gains by the task's metric (below), and no start to add them to. Pass"
            " held-out rows to `consilium operator download-model --measure-on`."
        )
        return
    files = "one file" if measured.sources == 1 else f"{measured.sources} files"
    yield (
        f"Measured on {measured.rows:,} held-out rows of {files} by this card's author. The record does not prove these"
        " figures, because it has no rows."
    )
    yield f"| after round | {' | '.join(TITLES[metric] for metric in metrics)} |"
    yield f"|{'---|' * (1 + len(metrics))}"
    for one in measured.rounds:
        figures = (one.of(metric) for metric in metrics)
        cells = " | ".join("–" if figure is None else f"{figure:.4f}" for figure in figures)
        yield f"| {one.round or '0, the start'} | {cells} |"


def _rounds(rounds: Sequence[RoundProof], metric: str) -> Iterator[str]:
    unit = UNITS.get(metric) or TITLES[cast(Metric, metric)]
    yield f"| round | outcome | cohort | hospitals | total weight | median gain, {unit} | accepted |"
    yield "|---|---|---|---|---|---|---|"
    for one in rounds:
        if not one.cohorts:
            yield f"| {one.round} | {one.report.subject.outcome} | – | – | – | – | – |"
        for cohort in one.cohorts:
            median = "–" if cohort.median is None else f"{cohort.median / MICRO:+.6f}"
            yield (
                f"| {one.round} | {one.report.subject.outcome} | {cohort.cohort} | {len(cohort.hospitals)} |"
                f" {sum(cohort.hospitals.values())} | {median} | {'yes' if cohort.accepted else 'no'} |"
            )
    yield "A median is the gain over the base model. The committee's voters measured it on rows that nobody trains on."


def _privacy(privacy: PrivacySpec | None, spec: TaskSpec) -> Iterator[str]:
    if privacy is None:
        yield "The task was not private: no epsilon bounds what the model reveals about a row."
    else:
        yield (
            f"All {spec.rounds.rounds} rounds together cost a row at most epsilon {privacy.epsilon:g} at delta"
            f" {privacy.delta:g} (DP-SGD on the hospitals' own nodes, which no record can prove)."
        )


def _statistics(spec: TaskSpec, sums: NDArray[np.float64]) -> Iterator[str]:
    data, exact = spec.data, spec.statistics == "exact"
    if not data.encoded:
        things = data.things.capitalize()
        yield f"{things} have none. Round 0 counted {sums[0]:,.0f}." if exact else f"{things} have none."
        return
    counts, totals, squares = np.split(sums, 3)
    if not exact:
        yield "From the schema: public constants of the task file, which do not depend on any hospital's rows."
    yield "| column | values | mean | deviation |"
    yield "|---|---|---|---|"
    for column, count, total, square in zip(data.encoded, counts, totals, squares, strict=True):
        known = max(round(count), 1)
        mean = total / known
        variance = square / known - mean**2
        deviation = f"{variance**0.5:.6f}" if variance >= LEAST_VARIANCE else "0 (switched off)"
        yield f"| {line(column.name)} | {f'{round(count):,}' if exact else '–'} | {mean:.6f} | {deviation} |"
    yield "Units: each column's public range, from 0 to 1."


def _checks(rounds: Sequence[RoundProof]) -> Iterator[str]:
    yield "Made from chain and artifact store, as `consilium verify` does; `proof.json` has the values."
    yield "| round | holds | fails | not checked | block | transaction |"
    yield "|---|---|---|---|---|---|"
    for one in rounds:
        by = {
            result: ", ".join(check.name for check in one.report.checks if check.result is result) or "–"
            for result in Result
        }
        yield (
            f"| {one.round} | {by[Result.HOLDS]} | {by[Result.FAILS]} | {by[Result.UNCHECKED]} | {one.block} |"
            f" `{one.transaction}` |"
        )
