"""A task's model: derived from the public record, with every round checked, and written with its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Hospital, Outcome, members
from consilium_chain.rpc.event_logs import Event
from consilium_client.replay import PublicRecord
from consilium_client.task import JoinedTask, load_task
from consilium_verify.report import Report, derived
from consilium_verify.verification import rounds_with_outcome, verify_task

from consilium_operators.errors import OperatorError
from consilium_operators.model_card import model_card
from consilium_operators.model_folder import CohortProof, ModelFile, Proof, RoundProof, named_tensors, write_model


def download(
    ledger: Ledger,
    store: ArtifactStore,
    number: int,
    output: Path,
    unverified: bool,
    tell: Callable[[Report], None] = lambda report: None,
) -> ModelFile:
    """Writes the model of a task into `output`; `tell` gets each round's report as soon as it is made. With
    `unverified` the model is written although checks fail, and its files say so.

    Raises OperatorError (OutputTaken, NotVerified), RecordIncomplete, and what `load_task` raises: nothing is written.
    """
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
    joined = load_task(ledger, store, number)
    rounds = rounds_with_outcome(ledger, number)
    if not rounds or rounds[-1] == STATISTICS_ROUND:
        raise RecordIncomplete(f"no training round of task {number} is over yet: there is no model of it")
    record = PublicRecord(ledger, store, joined)
    checked = verify_task(ledger, store, number, record, tell)
    if checked.failed and not unverified:
        told = "; ".join(f"round {round_}: {', '.join(names)}" for round_, names in checked.failed.items())
        raise OperatorError("NotVerified", task=number, failed=told, first=min(checked.failed))
    parameters, sums = record.base(rounds[-1] + 1), record.statistics()
    digest = derived("model", parameters).sha256
    raw = store.get_file(joined.params.spec_hash)
    index = ModelFile(
        task=number, name=joined.spec.name, chain_id=ledger.connection.chain_id, contract=ledger.deployment.tasks,
        spec_hash=joined.params.spec_hash.hex(), task_file=raw.decode(), round=rounds[-1], rounds=joined.params.rounds,
        verified=not checked.failed, sha256=digest, statistics=tuple(sums.tolist()), files={},
    )  # fmt: skip
    hospitals = ledger.tasks.hospitals(number)
    proof = Proof(
        task=number, operator=ledger.tasks.state(number).operator, chain_id=index.chain_id, contract=index.contract,
        spec_hash=index.spec_hash, model_sha256=digest, rounds=_proofs(ledger, joined, checked.rounds, hospitals),
    )  # fmt: skip
    card = model_card(index, joined.spec, proof, hospitals)
    write_model(output, index, named_tensors(joined.spec, parameters), card, proof)
    return index


def _proofs(
    ledger: Ledger, joined: JoinedTask, reports: Sequence[Report], hospitals: Sequence[Hospital]
) -> tuple[RoundProof, ...]:
    endings = {
        event.values["round"]: event
        for name in ("RoundSettled", "RoundVoided")
        for event in ledger.logs.of_task(name, joined.number)
    }
    return tuple(_proof(ledger, joined, report, hospitals, endings[report.subject.round]) for report in reports)


def _proof(
    ledger: Ledger, joined: JoinedTask, report: Report, hospitals: Sequence[Hospital], ending: Event
) -> RoundProof:
    round_, params = report.subject.round, joined.params
    state = ledger.tasks.round_state(joined.number, round_)
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
                flipped=bool(state.flipped_cohorts >> cohort & 1),
                accepted=statistics or bool(state.accepted_cohorts >> cohort & 1),
                median=state.medians[cohort] if cohort < len(state.medians) else None,
            )
        )
    return RoundProof(
        round=round_, block=ending.block, transaction=ending.transaction, cohorts=tuple(cohorts), report=report
    )
