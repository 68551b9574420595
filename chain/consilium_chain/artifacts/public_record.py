"""The artifacts of a task that the chain names, so that anybody can copy all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from consilium_zk.errors import EvidenceMalformed

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome, members
from consilium_chain.rounds.disputes import parse_shown
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.start_specs import FileStart
from consilium_chain.tasks.task_spec import parse_task_spec

_UNKNOWN = bytes(32)


@dataclass(frozen=True)
class Named:
    """Digests without repetition. `files`: by keccak256, the task file first. `evidence`: those of them with evidence.
    `blobs`: by versioned hash.
    """

    files: tuple[bytes, ...]
    evidence: tuple[bytes, ...]
    blobs: tuple[bytes, ...]


def artifacts_of(ledger: Ledger, task: int) -> Named:
    """The artifacts of all rounds so far. Raises Refused (TaskUnknown)."""
    params = ledger.tasks.params(task)
    files, evidence, blobs = [params.spec_hash], [], []
    for round_ in range(STATISTICS_ROUND, ledger.tasks.state(task).round + 1):
        state = ledger.tasks.round_state(task, round_)
        count = params.statistics_blobs if round_ == STATISTICS_ROUND else params.update_blobs
        settled = state.viable_cohorts if state.outcome is Outcome.SETTLED else 0
        for cohort in members(state.published_cohorts | settled):
            blobs += ledger.tasks.expected_blob_hashes(task, round_, cohort, count)
        if params.masked:
            on_chain = ledger.record.shares_on_chain(task, round_)
            files += [digest for digest in ledger.record.share_digests(task, round_).values() if digest not in on_chain]
            evidence += [accused.evidence for accused in ledger.record.accusations(task, round_).values()]
    return Named(_once(files + evidence), _once(evidence), _once(digest for digest in blobs if digest != _UNKNOWN))


def shown_uploads(evidence: bytes) -> tuple[bytes, ...]:
    """The uploads that an evidence file names, blob by blob, as files; empty if it is malformed and proves nothing."""
    try:
        return _once(digest for upload in parse_shown(evidence).uploads.values() for digest in upload)
    except EvidenceMalformed:
        return ()


def named_files(task_file: bytes) -> tuple[bytes, ...]:
    """The files that a task file names: a program, and parts of weights; empty if it names none or is no task file."""
    try:
        spec = parse_task_spec(task_file)
    except SpecInvalid:
        return ()
    model = spec.model.digests if isinstance(spec.model, ProgramSpec) else []
    return _once([*model, *(spec.start.digests if isinstance(spec.start, FileStart) else [])])


def _once(digests: Iterable[bytes]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(digests))
