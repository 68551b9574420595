"""The model that a task starts from: another task's, or a file's."""

from __future__ import annotations

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, Phase
from consilium_chain.tasks.start_specs import FileStart, TaskStart
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.errors import ClientError
from consilium_client.models import Vector
from consilium_client.models.weights import parse_weights
from consilium_client.task import JoinedTask, load_task

MOST_STARTS = 8  # tasks that start one from the other


def started_from(
    ledger: Ledger, store: ArtifactStore, spec: TaskSpec, start: TaskStart, depth: int = 0
) -> tuple[JoinedTask, int]:
    """The task that a task starts from, and its last training round with an outcome. `depth`: tasks that start from
    this one, one from the other.

    Raises ClientError (StartUnusable), and as `load_task` does.
    """
    if depth >= MOST_STARTS:
        raise _unusable(start, f"and {MOST_STARTS} tasks start one from the other already: start from a seed")
    own = ledger.deployment.chain_id, ledger.deployment.tasks
    if (start.chain_id, start.contract.lower()) != (own[0], own[1].lower()):
        raise _unusable(start, f"but this task is of {own[1]} on chain {own[0]}: name a task of the same contract")
    if start.task > ledger.tasks.count():
        raise _unusable(start, "but the contract has no such task: correct its number")
    state = ledger.tasks.state(start.task)
    outcomes = [ledger.tasks.round_state(start.task, one).outcome for one in range(state.round + 1)]
    if state.phase is not Phase.ENDED or Outcome.SETTLED not in outcomes[STATISTICS_ROUND + 1 :]:
        raise _unusable(start, "which has not ended with a settled training round: wait, or name another")
    other = load_task(ledger, store, start.task)
    data, others = (one.data.model_copy(update={"reader": None}) for one in (spec, other.spec))
    if (other.spec.model, others) != (spec.model, data):
        raise _unusable(start, "which has another section data or model: copy both from its file")
    if not other.spec.statistics == spec.statistics == "schema":
        raise _unusable(start, 'but one of both has exact statistics: both need statistics = "schema"')
    return other, max(number for number, outcome in enumerate(outcomes) if outcome is not Outcome.PENDING)


def started_from_file(store: ArtifactStore, spec: TaskSpec, start: FileStart) -> Vector:
    """The file's parameters, float32 (p,). Raises ModelError (WeightsUnusable), ArtifactMissing, ArtifactCorrupt."""
    return parse_weights(b"".join(map(store.get_file, start.digests)), spec)


def _unusable(start: TaskStart, why: str) -> ClientError:
    return ClientError("StartUnusable", task=start.task, contract=start.contract, chain_id=start.chain_id, why=why)
