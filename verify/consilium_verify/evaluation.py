"""Checks a voter's disclosed evaluation with the voter's rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import DeploymentInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_client.data.kinds import read_examples
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_client.voter.disclosure import Disclosure, Finding, audit
from consilium_client.voter.evaluating import Judge


@dataclass(frozen=True)
class EvaluationCheck:
    """`voter`: its account. `findings`: each after those that it rests on."""

    task: int
    round: int
    voter: str
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """False if a check fails. One that was not made does not fail."""
        return all(finding.holds is not False for finding in self.findings)


def verify_evaluation(
    ledger: Ledger,
    store: ArtifactStore,
    disclosure: Disclosure,
    data: Path,
    mapping: Path | None = None,
    drawn_only: bool = False,
    on_start: Callable[[Disclosure], None] = lambda shown: None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> EvaluationCheck:
    """`data`: the voter's rows. `drawn_only`: evaluates only the drawn batches, and computes no scores.

    Raises DataError, DeploymentInvalid for other contracts than the disclosure's, and as `load_task` and `audit` do.
    """
    book = ledger.deployment
    if (disclosure.chain_id, disclosure.contract) != (book.chain_id, book.tasks):
        raise DeploymentInvalid(
            f"the disclosure is for contract {disclosure.contract} on chain {disclosure.chain_id}, but the address book"
            f" is for {book.tasks} on chain {book.chain_id}: pass the matching address book"
        )
    task = load_task(ledger, store, disclosure.task)
    judge = Judge(task, PublicRecord(ledger, store, task), read_examples(data, task.spec.data, mapping))
    on_start(disclosure)
    findings = []
    for finding in audit(ledger, judge, disclosure, drawn_only):
        findings.append(finding)
        on_finding(finding)
    return EvaluationCheck(disclosure.task, disclosure.round, disclosure.voter, tuple(findings))
