"""Derives a task's model from the public record, checks every round, and writes it with its proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_client.data.mapping import read_mapping
from consilium_client.models.objectives import objective_of
from consilium_client.models.weights import shared_tensors, vector_of
from consilium_client.programs.library import files_of
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_verify.report import Report, derived
from consilium_verify.verification import published, rounds_with_outcome, verify_task

from consilium_operators.errors import OperatorError
from consilium_operators.measuring import measure
from consilium_operators.model_card import model_card
from consilium_operators.model_folder import (
    CohortProof,
    ModelFile,
    Proof,
    RoundProof,
    read_model,
    write_model,
)
from consilium_operators.model_inputs import model_inputs


@dataclass(frozen=True)
class Options:
    """`unverified`: writes the model although checks fail; its files say so. `measure_on`: files of held-out rows.

    `replace`: writes over an earlier model of the same task. `mapping`: a file that the model then holds.
    """

    unverified: bool = False
    measure_on: Sequence[Path] = ()
    replace: bool = False
    mapping: Path | None = None


def download(
    ledger: Ledger,
    store: ArtifactStore,
    number: int,
    output: Path,
    options: Options = Options(),
    on_report: Callable[[Report], None] = lambda report: None,
) -> ModelFile:
    """Writes the model of a task into `output`. `on_report` is called with each round's report.

    Raises OperatorError (OutputTaken, NotVerified), RecordIncomplete, DataError (MappingInvalid), and the errors of
    `load_task` and `measure`; then it writes nothing.
    """
    if output.exists() and not (options.replace and _is_model_of(output, ledger, number)):
        raise OperatorError("OutputTaken", path=output)
    joined = load_task(ledger, store, number)
    held = read_mapping(options.mapping, joined.spec.data)
    rounds = rounds_with_outcome(ledger, number)
    if not rounds or rounds[-1] == STATISTICS_ROUND:
        raise RecordIncomplete(f"task {number} has no model yet: its first training round is not over")
    record = PublicRecord(ledger, store, joined)
    checked = verify_task(ledger, store, number, record, on_report)
    if checked.failed and not options.unverified:
        failed = "; ".join(f"round {round_}: {', '.join(names)}" for round_, names in checked.failed.items())
        raise OperatorError("NotVerified", task=number, failed=failed, first=min(checked.failed))
    parameters, sums = record.base(rounds[-1] + 1), record.statistics()
    measured = measure(record, joined, rounds[-1], options.measure_on) if options.measure_on else None
    tensors = shared_tensors(joined.spec, parameters)
    digest = derived("model", vector_of(tensors)).sha256
    raw = store.get_file(joined.params.spec_hash)
    index = ModelFile(
        task=number, name=joined.spec.name, chain_id=ledger.connection.chain_id, contract=ledger.deployment.tasks,
        spec_hash=joined.params.spec_hash.hex(), task_file=raw.decode(), round=rounds[-1], rounds=joined.params.rounds,
        verified=not checked.failed, sha256=digest, statistics=tuple(sums.tolist()),
        classes=tuple(joined.spec.data.classes), answers=objective_of(joined.spec.data).answers,
        inputs=model_inputs(joined.spec.data, sums), mapping=held and held.without_query(),
        measured=measured, files={},
    )  # fmt: skip
    proof = Proof(
        task=number, operator=ledger.tasks.state(number).operator, chain_id=index.chain_id, contract=index.contract,
        spec_hash=index.spec_hash, model_sha256=digest, rounds=_proofs(ledger, number, checked.rounds),
    )  # fmt: skip
    card = model_card(index, joined.spec, proof, ledger.tasks.hospitals(number))
    model = joined.spec.model
    write_model(output, index, tensors, card, proof, files_of(store, model) if isinstance(model, ProgramSpec) else None)
    return index


def _is_model_of(folder: Path, ledger: Ledger, task: int) -> bool:
    """True if the folder has a model of this task of the ledger's contract."""
    try:
        found = read_model(folder).index
    except OperatorError:
        return False
    return (found.task, found.chain_id, found.contract) == (
        task,
        ledger.connection.chain_id,
        ledger.deployment.tasks,
    )


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
