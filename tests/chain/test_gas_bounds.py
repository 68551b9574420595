"""What calls full of curve operations are sent with: their own bounds, above what a real chain says that they take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver, Update, refused
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import CohortsFate, PublishedCohort
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.signed_updates import SignedUpdate
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import BY_ESTIMATE, GAS_MARGIN, TRANSACTION_GAS_LIMIT, Pending, Receipt, Sending
from consilium_chain.rpc.transactions import Transactions
from consilium_zk.blobs import Blob, add
from consilium_zk.kzg import commit, versioned_hash
from consilium_zk.packing import LaneLayout
from decoy_driver import DecoyDriver
from web3.contract.contract import ContractFunction

MOST_BLOBS = 128
TRANSACTION = 21_000  # what each costs, whatever it does
LAYOUT = LaneLayout(bits=16, total_weight=256)


class Watched(Transactions):
    """Notes what each bounded call takes by the node's estimate, and by its bound."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.endpoint, connection.signing, connection.fees)
        self.noted: list[tuple[int, int]] = []

    def submit(self, function: ContractFunction, sending: Sending = BY_ESTIMATE) -> Pending:
        if sending.gas is not None and not sending.sidecars:
            sent: Any = {
                "from": self.signing.address,
                "to": function.address,
                "data": function._encode_transaction_data(),
            }
            self.noted.append((self.endpoint.web3.eth.estimate_gas(sent), sending.gas))
        return super().submit(function, sending)


def watched(ledger: Ledger) -> Ledger:
    connection = Connection(ledger.connection.endpoint.url, ledger.connection.account)
    connection.transactions = Watched(connection)
    return Ledger(connection, ledger.deployment)


def require_bounded(ledger: Ledger) -> None:
    """All that it sent since the last time, of which there is something, took less than was said."""
    transactions = ledger.connection.transactions
    assert isinstance(transactions, Watched)
    noted, transactions.noted = transactions.noted, []
    assert noted
    assert all(estimate <= gas + TRANSACTION for estimate, gas in noted)
    assert all(gas + GAS_MARGIN <= TRANSACTION_GAS_LIMIT for _, gas in noted)


class Wide(TaskDriver):
    """A statistics round of many blobs, each hospital's all the same: what they cost does not go by their values."""

    def __init__(self, chain: LocalChain, hospitals: int, blobs: int, digests: bool = False, **terms: Any) -> None:
        terms |= {"statistics_blobs": blobs, "digests": digests}
        super().__init__(chain, hospitals, terms=terms)

    def make_update(self, index: int, round_: int | None = None) -> Update:
        number = self.round if round_ is None else round_
        one = super().make_update(index, number).blobs[0]
        blobs = [one] * self.params.statistics_blobs
        points = [commit(one)] * len(blobs)
        return Update(self.random.integers(0, 1, 1, dtype="u8"), blobs, points, self.committed(index, number, points))

    def wide_sum(self, survivors: Sequence[int]) -> PublishedCohort:
        updates = [self.updates[0, index] for index in survivors]
        total: Blob = add([update.blobs[0] for update in updates])
        blobs = self.params.statistics_blobs
        commitments = self.commitments(0, survivors)
        return PublishedCohort(0, [total] * blobs, commitments, [versioned_hash(commit(total))] * blobs)

    @cached_property
    def signed(self) -> list[SignedUpdate]:
        found = []
        for index, node in enumerate(self.nodes):
            self.updates[0, index] = self.make_update(index)
            found.append(node.hospital.sign_update(self.task, 0, self.updates[0, index].committed))
        return found

    def commit_relayed(self) -> list[Receipt]:
        return self.aggregator.aggregator.commit_updates(self.task, 0, [(0, update) for update in self.signed])

    def show(self, survivors: Sequence[int] | None = None) -> list[Receipt]:
        """Publishes, with these survivors, who are all by default."""
        present = list(range(self.hospitals)) if survivors is None else survivors
        send = (
            self.aggregator.aggregator.publish_digests
            if self.params.digests
            else self.aggregator.aggregator.publish_sums
        )
        return send(self.task, 0, CohortsFate(sum(1 << i for i in present)), [self.wide_sum(present)])

    def watch(self) -> Wide:
        self.aggregator, self.nodes = watched(self.aggregator), [watched(node) for node in self.nodes]
        return self


@pytest.mark.parametrize(
    ("blobs", "share_bundle"),
    [
        (1, 0), (16, 20_000), (MOST_BLOBS, 0),
        *(pytest.param(*one, marks=pytest.mark.deep) for one in ((2, 0), (5, 1_000))),
    ],
)  # fmt: skip
def test_commit_is_bounded(local_chain: LocalChain, blobs: int, share_bundle: int) -> None:
    task = Wide(local_chain, 2, blobs).watch()
    task.join()
    update = task.make_update(0)
    dealt = replace(update.committed, share_bundle=b"\xa5" * share_bundle)
    for index, given in ((0, dealt), (1, task.make_update(1).committed)):  # the second ends the phase
        task.send_commitment(index, given)
        require_bounded(task.nodes[index])
    assert task.phase is Phase.UPLOADING


@pytest.mark.parametrize(("hospitals", "blobs"), [(3, 1), (4, 6), (3, MOST_BLOBS)])
def test_relayed_commits_are_bounded(local_chain: LocalChain, hospitals: int, blobs: int) -> None:
    task = Wide(local_chain, hospitals, blobs).watch()
    task.join()
    task.commit_relayed()
    require_bounded(task.aggregator)
    assert task.phase is Phase.UPLOADING


@pytest.mark.parametrize(("hospitals", "blobs"), [(1, 1), (2, MOST_BLOBS), pytest.param(3, 24, marks=pytest.mark.deep)])
def test_sums_by_digest_are_bounded(local_chain: LocalChain, hospitals: int, blobs: int) -> None:
    task = Wide(local_chain, hospitals, blobs, digests=True).watch()
    task.join()
    assert_sums_are_bounded(task)


def assert_sums_are_bounded(task: Wide) -> None:
    task.commit_relayed()
    require_bounded(task.aggregator)
    task.show()
    require_bounded(task.aggregator)
    assert task.phase is Phase.DRAWING


MANY = 24


@pytest.fixture(scope="module")
def joined(local_chain: LocalChain) -> Wide:
    task = Wide(local_chain, MANY, 1, digests=True)
    task.join()
    assert len(task.signed) == MANY
    return task


@pytest.fixture
def many(joined: Wide) -> Iterator[Wide]:
    """Many hospitals that have joined and signed. What tests bring onto the chain is undone."""
    with joined.chain.undone():
        yield copy(joined)


def test_sums_of_many_by_digest_are_bounded(many: Wide) -> None:
    assert_sums_are_bounded(many.watch())


def test_slashes_of_who_withheld_are_bounded(many: Wide) -> None:
    many.watch().commit_relayed()
    require_bounded(many.aggregator)
    many.show([3])
    many.draw().judge([[0]])
    require_bounded(many.aggregator)
    assert len(many.events("Slashed")) == MANY - 1


def test_blobs_of_many_hospitals_are_sent_with_gas_enough(local_chain: LocalChain) -> None:
    """Six blobs' sums in one transaction, of a round in which some withheld their uploads."""
    task = Wide(local_chain, MANY, 6).watch()
    task.join()
    task.commit_relayed()
    (receipt,) = task.show(range(20))
    assert receipt.gas_used > 2_000_000
    assert task.phase is Phase.SETTLING
    limit = int(local_chain.rpc("eth_getTransactionByHash", receipt.transaction)["gas"], 16)
    assert receipt.gas_used < limit <= TRANSACTION_GAS_LIMIT


@pytest.mark.parametrize(("cohorts", "blobs", "flipped"), [(1, 1, 1), (8, 1, 0b10101010), (2, 8, 0b01)])
def test_decoy_rounds_are_bounded(local_chain: LocalChain, cohorts: int, blobs: int, flipped: int) -> None:
    terms = {"cohorts": cohorts, "update_blobs": blobs, "digests": True}
    task = DecoyDriver(
        local_chain, hospitals=max(cohorts, 2), flipped=flipped, terms=terms, statistics=(LAYOUT, 50)
    ).to_committing()  # fmt: skip
    task.aggregator = watched(task.aggregator)
    task.commit_all().publish()
    require_bounded(task.aggregator)
    assert isinstance(task, DecoyDriver)
    task.draw().vote([task.ballot([60_000] * cohorts, [-80_000] * cohorts)])
    task.open()
    require_bounded(task.aggregator)
    assert (task.round, task.phase) == (2, Phase.FORMING)


# What is refused


def test_refused_call_is_named_and_nothing_is_sent(many: Wide) -> None:
    """Also where the contract, to name the last of many, takes more gas than the call's bound."""
    task, updates = many, [(0, update) for update in many.signed]
    wrong = replace(many.signed[-1], base=b"\x01" * 32)
    sent = nonces(task)
    with refused("SignatureInvalid", hospital=wrong.hospital):
        task.aggregator.aggregator.commit_updates(task.task, 0, [*updates[:-1], (0, wrong)])
    with refused("NotInCohort", hospital=task.nodes[0].address):
        task.nodes[0].hospital.commit_update(task.task, 0, 1, task.updates[0, 0].committed)
    assert nonces(task) == sent
    task.aggregator.aggregator.commit_updates(task.task, 0, updates)
    sums = task.wide_sum(range(MANY))
    sent = nonces(task)
    with refused("BlobMismatch", cohort=0, blob=0):
        fate = CohortsFate(int("1" * MANY, 2))
        task.aggregator.aggregator.publish_digests(task.task, 0, fate, [replace(sums, digests=[b"\x01" * 32])])
    assert nonces(task) == sent
    assert task.phase is Phase.UPLOADING


def nonces(task: TaskDriver) -> list[int]:
    """How many transactions everybody has sent."""
    accounts = [task.aggregator.address, *(node.address for node in task.nodes)]
    return [int(task.chain.rpc("eth_getTransactionCount", account, "pending"), 16) for account in accounts]


def test_bound_that_is_too_low_costs_an_estimate_and_nothing_else(local_chain: LocalChain) -> None:
    task = Wide(local_chain, 3, MOST_BLOBS)
    task.join()
    encoded = [update.to_chain(0) for update in task.signed]
    function = task.aggregator.contracts.tasks.contract.functions.commitUpdates(task.task, 0, encoded)
    receipt = task.aggregator.connection.transactions.send(function, Sending(0))
    assert receipt.gas_used > GAS_MARGIN
    assert task.phase is Phase.UPLOADING


def test_nothing_is_sent_with_more_gas_than_a_transaction_may_have(local_chain: LocalChain) -> None:
    ledger = local_chain.treasury
    approval = ledger.contracts.token.contract.functions.approve(ledger.address, 1)
    for force in (False, True):
        receipt = ledger.connection.transactions.send(approval, Sending(10**9, force=force))
        found = local_chain.rpc("eth_getTransactionByHash", receipt.transaction)
        assert int(found["gas"], 16) == TRANSACTION_GAS_LIMIT


def test_what_no_node_tries_needs_a_bound() -> None:
    with pytest.raises(ValueError, match="needs a gas bound"):
        Sending(force=True)
