"""Transactions of a task's aggregator."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from consilium_zk.kzg import Commitment

from consilium_chain.errors import Refused
from consilium_chain.ledger.contracts import Contracts
from consilium_chain.ledger.publishing import (
    GAS_PER_BATCH,
    NOTHING_SAID,
    CohortsFate,
    Decoys,
    DisclosedCohort,
    Priced,
    PublishedCohort,
    RoundCalls,
    SaidBefore,
)
from consilium_chain.ledger.staking import Staking
from consilium_chain.ledger.structs import Role
from consilium_chain.ledger.tasks import Tasks
from consilium_chain.rounds.signed_updates import SignedUpdate, relayed_gas, update_batches
from consilium_chain.rpc.batching import batches
from consilium_chain.rpc.cell_proofs import CellProver, Sidecar
from consilium_chain.rpc.outgoing import MAX_BLOBS_PER_TRANSACTION, Pending, Receipt, Sending

STAKING_TRIES = 10
_OVERTAKEN = ("AlreadyRegistered", "StakeInsufficient", "ERC20InsufficientAllowance")


class AggregatorCalls:
    """`force`: sends a call although the contract may refuse it. `before`: the part of it that is on chain already."""

    def __init__(self, contracts: Contracts, tasks: Tasks, staking: Staking) -> None:
        self._transactions, self._contract = contracts.connection.transactions, contracts.tasks
        self._tasks, self._staking = tasks, staking
        self.prover = CellProver(0)  # an aggregator that publishes much sets one with processes

    def join(self, task: int, stake: int | None = None) -> Receipt:
        """Joins; `stake`: first brings the free stake up to this. An account's aggregators may do so at the same time,
        each for its own task: a refusal because another was first is retried.
        """
        for left in reversed(range(STAKING_TRIES)):
            try:
                if stake is not None:
                    self._staking.stake(Role.AGGREGATOR, stake)
                return self._contract.send("joinAsAggregator", task)
            except Refused as error:
                if stake is None or not left or error.name not in _OVERTAKEN:
                    raise
        raise AssertionError("the last try ends it")

    def commit_updates(self, task: int, round_: int, updates: Sequence[tuple[int, SignedUpdate]]) -> list[Receipt]:
        """Commits for hospitals that signed, in as few transactions as possible; skips those that have committed.

        updates: each with the number of its hospital's cohort. It is cheapest if those of a cohort follow one another.
        Raises Refused before a transaction costs anything; its `hospital` has the wrong update.
        """
        return [
            self._contract.send(
                "commitUpdates", task, round_, [update.to_chain(cohort) for cohort, update in batch],
                gas=relayed_gas(batch),
            )
            for batch in update_batches(updates)
        ]  # fmt: skip

    def fix_survivors(self, task: int, round_: int, survivors: int) -> Receipt:
        """`survivors`: bit map of hospitals."""
        return self._contract.send("fixSurvivors", task, round_, survivors)

    def publish_sums(
        self,
        task: int,
        round_: int,
        fate: CohortsFate,
        sums: Sequence[PublishedCohort],
        decoys: Decoys | None = None,
        force: bool = False,
        before: SaidBefore = NOTHING_SAID,
    ) -> list[Receipt]:
        """Names the updates in the sums, adds up their commitments (in a decoy round: commits to its decoys instead)
        and publishes the cohorts' blobs.

        One transaction if everything fits into six blobs and its gas, otherwise several: each is sent when its blobs'
        cell proofs are ready, and only then the first receipt is awaited.
        """
        round_calls = RoundCalls(self._contract.encode, task, round_, before)
        missing = [(cohort, blob) for cohort in sums for blob in round_calls.missing(cohort)]
        ready = iter([self.prover.sidecar(cohort.blobs[blob]) for cohort, blob in missing])
        batch = [round_calls.beginning(fate, decoys, self._tasks.round_state(task, round_).committed)]
        sidecars: list[Sidecar] = []
        pending = []
        for cohort, blob in missing:
            shown = round_calls.blob(cohort, blob, len(sidecars), decoys is not None)
            gas = sum(one.gas for one in batch) + shown.gas
            if len(sidecars) == MAX_BLOBS_PER_TRANSACTION or gas > GAS_PER_BATCH:
                pending.append(self._multicall(batch, "publish", force, sidecars))
                batch, sidecars = [], []
                shown = round_calls.blob(cohort, blob, 0, decoys is not None)
            batch.append(shown)
            sidecars.append(next(ready))
        if any(one.calls for one in batch):
            pending.append(self._multicall(batch, "publish", force, sidecars))
        return [self._transactions.receipt(one) for one in pending]

    def publish_digests(
        self,
        task: int,
        round_: int,
        fate: CohortsFate,
        sums: Sequence[PublishedCohort],
        decoys: Decoys | None = None,
        force: bool = False,
        before: SaidBefore = NOTHING_SAID,
    ) -> list[Receipt]:
        """The same by versioned hashes, on a chain without blobs: the bytes are in an artifact store."""
        round_calls = RoundCalls(self._contract.encode, task, round_, before)
        calls = [round_calls.beginning(fate, decoys, self._tasks.round_state(task, round_).committed)]
        for cohort in sums:
            calls += [round_calls.digest(cohort, blob, decoys is not None) for blob in round_calls.missing(cohort)]
        return self._in_batches(calls, "publish", force)

    def accuse_cohort(self, task: int, round_: int, cohort: int, accusation: bytes, evidence: bytes) -> Receipt:
        """Drops a cohort with a wrong sum, and asks its hospitals for dispute statements."""
        return self._contract.send("accuseCohort", task, round_, cohort, accusation, evidence)

    def name_cheaters(self, task: int, round_: int, hospitals: int) -> Receipt:
        """Names hospitals of accused cohorts, as a bit map."""
        return self._contract.send("nameCheaters", task, round_, hospitals)

    def disclose_decoys(
        self,
        task: int,
        round_: int,
        seed: bytes,
        negated_delta: Sequence[Commitment],
        cohorts: Sequence[DisclosedCohort],
        settle_gas: int,
        force: bool = False,
    ) -> list[Receipt]:
        """Discloses a decoy round's sums, and settles it if the last transaction has `settle_gas` left.

        negated_delta: the commitment to each blob of the round's negated delta.
        """
        round_calls = RoundCalls(self._contract.encode, task, round_)
        calls = [
            round_calls.disclosure(cohort, blob, seed, negated_delta)
            for cohort in cohorts
            for blob in range(len(cohort.blobs))
        ]
        settling = round_calls.settling(settle_gas)
        if sum(call.gas for call in [*calls, settling]) <= GAS_PER_BATCH:  # else by itself, once cohorts are disclosed
            calls.append(settling)
        return self._in_batches(calls, "discloseDecoys", force)

    def _in_batches(self, calls: Sequence[Priced], name: str, force: bool) -> list[Receipt]:
        """One transaction after the other, each with as many of the calls as its gas allows."""
        parts = batches([(call, call.gas) for call in calls], GAS_PER_BATCH)
        return [self._transactions.receipt(self._multicall(batch, name, force)) for batch in parts]

    def _multicall(self, batch: Sequence[Priced], name: str, force: bool, sidecars: Sequence[Sidecar] = ()) -> Pending:
        calls = list(chain.from_iterable(one.calls for one in batch))
        sending = Sending(sum(one.gas for one in batch), sidecars, force, name)
        return self._transactions.submit(self._contract.function("multicall", calls), sending)
