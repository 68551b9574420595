"""`consilium operator download-model`: derives a model from the public record, checks each round, and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Hospital, Outcome, members
from consilium_chain.rpc.event_logs import Event
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask, load_task
from consilium_operators.errors import NotVerified, OutputTaken
from consilium_operators.model_card import model_card
from consilium_operators.model_folder import (
    CohortProof,
    ModelFile,
    Proof,
    RoundProof,
    named_tensors,
    write_model,
)
from consilium_operators.watching import reader, rounds_over
from consilium_verify.audit import audit
from consilium_verify.report import Report, Result, derived

from consilium_cli.artifacts import open_artifacts


def download(
    number: int, output: Path, artifacts: Sequence[str], rpc: str, address_book: Path, unverified: bool
) -> None:
    """Raises NotVerified with nothing written, OutputTaken, RecordIncomplete, and what `load_task` raises."""
    if output.exists():
        raise OutputTaken(output)
    ledger, store = reader(rpc, address_book), open_artifacts(artifacts)
    joined = load_task(ledger, store, number)
    rounds = rounds_with_outcome(ledger, number)
    if not rounds or rounds[-1] == STATISTICS_ROUND:
        raise RecordIncomplete(f"no training round of task {number} is over yet: there is no model of it")
    record = PublicRecord(ledger, store, joined)
    proofs = _checked(ledger, store, joined, record, rounds)
    failed = {one.round: fails for one in proofs if (fails := _failing(one.report))}
    if failed and not unverified:
        raise NotVerified(number, failed)
    parameters, sums = record.base(rounds[-1] + 1), record.statistics()
    digest = derived("model", parameters).sha256
    raw = store.get_file(joined.params.spec_hash)
    index = ModelFile(
        task=number, name=joined.spec.name, chain_id=ledger.connection.chain_id, contract=ledger.deployment.tasks,
        spec_hash=joined.params.spec_hash.hex(), task_file=raw.decode(), round=rounds[-1], rounds=joined.params.rounds,
        verified=not failed, sha256=digest, statistics=tuple(sums.tolist()), files={},
    )  # fmt: skip
    proof = Proof(
        task=number, operator=ledger.tasks.state(number).operator, chain_id=index.chain_id, contract=index.contract,
        spec_hash=index.spec_hash, model_sha256=digest, rounds=tuple(proofs),
    )  # fmt: skip
    card = model_card(index, joined.spec, proof, ledger.tasks.hospitals(number))
    write_model(output, index, named_tensors(joined.spec, parameters), card, proof)
    typer.echo(f"{parameters.size:,} parameters after round {index.round} of {index.rounds}, SHA-256 {digest}")
    if failed:
        typer.secho(f"NOT VERIFIED: {len(failed)} round(s) fail, as {output / 'model-card.md'} says", fg="red")
    typer.echo(f"Next: consilium operator serve-model {output}")


def rounds_with_outcome(ledger: Ledger, task: int) -> list[int]:
    """Ascending."""
    over = rounds_over(ledger.tasks.state(task))
    return [round_ for round_ in over if ledger.tasks.round_state(task, round_).outcome is not Outcome.PENDING]


def _checked(
    ledger: Ledger, store: ArtifactStore, joined: JoinedTask, record: PublicRecord, rounds: Sequence[int]
) -> list[RoundProof]:
    """Says of each round what was found, as soon as it is."""
    number, found = joined.number, []
    hospitals = ledger.tasks.hospitals(number)
    endings = {
        event.values["round"]: event
        for name in ("RoundSettled", "RoundVoided")
        for event in ledger.logs.of_task(name, number)
    }
    for round_ in rounds:
        report = audit(ledger, store, number, round_, record)
        found.append(_proof(ledger, joined, round_, report, hospitals, endings[round_]))
        fails, open_ = _failing(report), [c.name for c in report.checks if c.result is Result.UNCHECKED]
        words = f"FAILS: {', '.join(fails)}" if fails else "holds"
        unchecked = f" (not checked: {', '.join(open_)})" if open_ else ""
        typer.secho(f"round {round_} of {joined.params.rounds}, {report.subject.outcome}: {words}{unchecked}",
                    fg="red" if fails else None)  # fmt: skip
    return found


def _failing(report: Report) -> list[str]:
    return [str(check.name) for check in report.checks if check.result is Result.FAILS]


def _proof(
    ledger: Ledger, joined: JoinedTask, round_: int, report: Report, hospitals: Sequence[Hospital], ending: Event
) -> RoundProof:
    state, params = ledger.tasks.round_state(joined.number, round_), joined.params
    statistics = round_ == STATISTICS_ROUND
    count = params.statistics_blobs if statistics else params.update_blobs
    cohorts = []
    for cohort in members(state.viable_cohorts if state.outcome is Outcome.SETTLED else 0):
        present = ledger.tasks.cohort_members(joined.number, round_, cohort) & state.survivors
        hashes = ledger.tasks.expected_blob_hashes(joined.number, round_, cohort, count)
        chosen = [hospitals[index] for index in members(present)]
        cohorts.append(
            CohortProof(
                cohort=cohort,
                hospitals={hospital.node: 1 if statistics else hospital.weight for hospital in chosen},
                versioned_hashes=tuple("0x" + one.hex() for one in hashes),
                turned=bool(state.turned_cohorts >> cohort & 1),
                accepted=statistics or bool(state.accepted_cohorts >> cohort & 1),
                median=state.medians[cohort] if cohort < len(state.medians) else None,
            )
        )
    return RoundProof(
        round=round_, block=ending.block, transaction=ending.transaction, cohorts=tuple(cohorts), report=report
    )
