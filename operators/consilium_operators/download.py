"""Derives a task's model from the public record, checks every round, and writes it with its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome
from consilium_chain.rpc.event_logs import Event
from consilium_client.data.mapping import read_mapping
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_verify.report import Report, derived
from consilium_verify.verification import published, rounds_with_outcome, verify_task

from consilium_operators.errors import OperatorError
from consilium_operators.model_card import model_card
from consilium_operators.model_folder import CohortProof, ModelFile, Proof, RoundProof, named_tensors, write_model
from consilium_operators.model_inputs import model_inputs


def download(
    ledger: Ledger,
    store: ArtifactStore,
    number: int,
    output: Path,
    unverified: bool,
    on_report: Callable[[Report], None] = lambda report: None,
    mapping: Path | None = None,
) -> ModelFile:
    """Writes the model of a task into `output`. `on_report` is called with each round's report. With `unverified` the
    model is written although checks fail, and its files say so. `mapping`: a file that the model then holds.

    Raises OperatorError (OutputTaken, NotVerified), RecordIncomplete, DataError (MappingInvalid), and the errors of
    `load_task`; then it writes nothing.
    """
    if output.exists():
        raise OperatorError("OutputTaken", path=output)
    joined = load_task(ledger, store, number)
    held = read_mapping(mapping, joined.spec.data)
    rounds = rounds_with_outcome(ledger, number)
    if not rounds or rounds[-1] == STATISTICS_ROUND:
        raise RecordIncomplete(f"task {number} has no model yet: its first training round is not over")
    record = PublicRecord(ledger, store, joined)
    checked = verify_task(ledger, store, number, record, on_report)
    if checked.failed and not unverified:
        failed = "; ".join(f"round {round_}: {', '.join(names)}" for round_, names in checked.failed.items())
        raise OperatorError("NotVerified", task=number, failed=failed, first=min(checked.failed))
    parameters, sums = record.base(rounds[-1] + 1), record.statistics()
    digest = derived("model", parameters).sha256
    raw = store.get_file(joined.params.spec_hash)
    index = ModelFile(
        task=number, name=joined.spec.name, chain_id=ledger.connection.chain_id, contract=ledger.deployment.tasks,
        spec_hash=joined.params.spec_hash.hex(), task_file=raw.decode(), round=rounds[-1], rounds=joined.params.rounds,
        verified=not checked.failed, sha256=digest, statistics=tuple(sums.tolist()),
        classes=tuple(joined.spec.data.classes), inputs=model_inputs(joined.spec.data, sums), mapping=held, files={},
    )  # fmt: skip
    proof = Proof(
        task=number, operator=ledger.tasks.state(number).operator, chain_id=index.chain_id, contract=index.contract,
        spec_hash=index.spec_hash, model_sha256=digest, rounds=_proofs(ledger, number, checked.rounds),
    )  # fmt: skip
    card = model_card(index, joined.spec, proof, ledger.tasks.hospitals(number))
    write_model(output, index, named_tensors(joined.spec, parameters), card, proof)
    return index


def _proofs(ledger: Ledger, task: int, reports: Sequence[Report]) -> tuple[RoundProof, ...]:
    endings = {
        event.values["round"]: event
        for name in ("RoundSettled", "RoundVoided")
        for event in ledger.logs.of_task(name, task)
    }
    return tuple(_proof(ledger, task, report, endings[report.subject.round]) for report in reports)


def _proof(ledger: Ledger, task: int, report: Report, ending: Event) -> RoundProof:
    round_ = report.subject.round
    state = ledger.tasks.round_state(task, round_)
    cohorts = tuple(
        CohortProof(
            cohort=one.cohort,
            hospitals=dict(one.weights),
            versioned_hashes=tuple("0x" + digest.hex() for digest in one.hashes),
            flipped=one.is_flipped,
            accepted=round_ == STATISTICS_ROUND or bool(state.accepted_cohorts >> one.cohort & 1),
            median=state.medians[one.cohort] if one.cohort < len(state.medians) else None,
        )
        for one in (published(ledger, task, round_) if state.outcome is Outcome.SETTLED else [])
    )
    return RoundProof(round=round_, block=ending.block, transaction=ending.transaction, cohorts=cohorts, report=report)
