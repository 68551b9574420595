"""A task as a node sees it: its file, checked against its terms on chain."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import SpecMismatch
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import TaskParams
from consilium_chain.tasks.proposal import keeps, task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec

from consilium_client.programs.library import offer


@dataclass(frozen=True)
class JoinedTask:
    """A task whose file has the hash and the terms that are on chain. The pool may be larger than in the file, because
    its operator can add to it while others join.
    """

    number: int
    spec: TaskSpec
    params: TaskParams


def load_task(ledger: Ledger, store: ArtifactStore, number: int) -> JoinedTask:
    """Raises ArtifactMissing, ArtifactCorrupt, SpecInvalid, SpecMismatch, Refused (TaskUnknown)."""
    params = ledger.tasks.params(number)
    raw = store.get_file(params.spec_hash)
    spec = parse_task_spec(raw)
    if not keeps(params, task_params(spec, params.spec_hash, params.aggregator)):
        raise SpecMismatch(
            f"the terms of task {number} on chain differ from its file; do not join, and ask its operator"
        )
    offer(store, spec)
    return JoinedTask(number, spec, params)
