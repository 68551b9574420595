"""Whole tasks: what is published, what is paid, and where every token is."""

from __future__ import annotations

import numpy as np
import pytest
from chain_driver import BOND, LAYOUT, LocalChain, TaskDriver
from consilium_chain.deploying.address_book import LOCAL_VESTING
from consilium_chain.ledger.structs import Outcome, Phase, Role, SlashReason, members
from consilium_zk.kzg import commit, versioned_hash
from consilium_zk.packing import unpack


def earned(task: TaskDriver, account: str) -> int:
    """Rewards of an account's nodes that were not claimed, and refunds."""
    ledger = task.operator
    block = ledger.connection.blocks.number()
    rewards = (
        ledger.staking.claimable(account, account, r, block) + ledger.staking.unvested(account, r, block) for r in Role
    )
    return sum(rewards) + ledger.tasks.refundable(account, block)


def test_whole_task_publishes_exact_sums_and_pays_out_everything(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, hospitals=3, voters=2, terms={"rounds": 1, "cohorts": 2})
    task.join(rows=[5, 31, 1_000])
    assert [h.weight for h in task.operator.tasks.hospitals(task.task)] == [1, 4, 16]
    task.first_round()
    assert task.operator.tasks.round_state(task.task, 0).outcome is Outcome.SETTLED
    task.form().commit_all()
    sums = [task.cohort_sum(cohort, range(3)) for cohort in range(2)]
    task.publish()
    for cohort, published in enumerate(sums):
        present = task.cohort(cohort)
        weights = [task.weight(i, 1) for i in present]
        parts = [w * task.updates[1, i].lanes.astype(object) for w, i in zip(weights, present, strict=True)]
        exact = sum(parts[1:], start=parts[0])
        assert unpack(published.blobs, task.lanes, LAYOUT, sum(weights)).tolist() == list(exact)
        (expected,) = task.operator.tasks.expected_blob_hashes(task.task, 1, cohort, 1)
        assert expected == versioned_hash(commit(published.blobs[0]))
    before = {address: earned(task, address) for address in local_chain.accounts}
    task.draw().judge([[20_000, 10_000], [20_000, 10_000]])

    assert task.phase is Phase.ENDED
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.outcome, state.medians, state.accepted_cohorts) == (Outcome.SETTLED, (20_000, 10_000), 0b11)
    # Hospitals share 7000 of 10001 by weight times improvement; every share is rounded down, the rest is burnt.
    gains = {i: task.weight(i, 1) * state.medians[c] for c in range(2) for i in task.cohort(c)}
    owed = {task.nodes[i].address: 7_000 * gain // sum(gains.values()) for i, gain in gains.items()}
    owed |= {judge.address: 2_000 // 2 for judge in task.judges} | {task.aggregator.address: 1_000}
    (ended,) = task.events("TaskEnded")
    assert (ended["refund"], ended["burnt"]) == (0, 10_001 - sum(owed.values()))
    paid = {event["account"]: event["amount"] for event in task.events("Rewarded")}
    assert paid == owed
    after = {address: earned(task, address) for address in local_chain.accounts}
    # What is read while it vests loses less than a unit to rounding, in each of the two places where it is counted.
    assert all(owed[who] - 2 <= after[who] - before[who] <= owed[who] + 2 for who in owed), (before, after, owed)
    assert local_chain.unaccounted() == 0

    locked = {n.address: n.staking.stake_of(n.address, Role.HOSPITAL).locked for n in task.nodes}
    task.home()
    assert {n.address: n.staking.stake_of(n.address, Role.HOSPITAL).locked for n in task.nodes} == {
        who: amount - BOND for who, amount in locked.items()
    }
    local_chain.pass_time(LOCAL_VESTING)
    nodes = [(node, Role.HOSPITAL) for node in task.nodes] + [(judge, Role.VOTER) for judge in task.judges]
    for ledger, role in [*nodes, (task.aggregator, Role.AGGREGATOR)]:
        wallet, owing = (
            ledger.token.balance(ledger.address),
            ledger.staking.claimable(ledger.address, ledger.address, role),
        )
        ledger.staking.claim(role)
        assert ledger.token.balance(ledger.address) == wallet + owing
        assert ledger.staking.claimable(ledger.address, ledger.address, role) == 0
    refund = task.operator.tasks.refundable(task.operator.address)
    wallet = task.operator.token.balance(task.operator.address)
    task.operator.operator.claim_refund()
    assert task.operator.token.balance(task.operator.address) == wallet + refund
    assert local_chain.unaccounted() == 0


def test_update_of_several_blobs_settles_with_every_blob_published(local_chain: LocalChain) -> None:
    task = TaskDriver(
        local_chain, lanes=LAYOUT.lanes_per_blob + 7, terms={"update_blobs": 2, "statistics_blobs": 2, "rounds": 1}
    )
    task.join().first_round().form().commit_all()
    published = task.cohort_sum(0, range(2))
    task.publish()
    hashes = task.operator.tasks.expected_blob_hashes(task.task, 1, 0, 2)
    assert hashes == [versioned_hash(commit(blob)) for blob in published.blobs]
    assert task.round_state.published_cohorts == 1
    weights = [task.weight(i, 1) for i in range(2)]
    exact = sum(w * task.updates[1, i].lanes for i, w in enumerate(weights))
    np.testing.assert_array_equal(unpack(published.blobs, task.lanes, LAYOUT, sum(weights)), exact)


def test_harmful_cohort_is_slashed_and_left_out_of_the_model(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, hospitals=2, voters=1, terms={"cohorts": 2, "rounds": 1})
    task.to_scoring()
    (good,), (bad,) = task.cohort(0), task.cohort(1)
    task.judge([[30_000, -60_000]])
    state = task.operator.tasks.round_state(task.task, 1)
    assert (state.medians, state.accepted_cohorts) == ((30_000, -60_000), 0b01)
    bonds = [h.bond for h in task.operator.tasks.hospitals(task.task)]
    assert (bonds[good], bonds[bad]) == (BOND, BOND * 8 // 10)
    slash = {"account": task.nodes[bad].address, "amount": BOND // 5, "reason": SlashReason.HARMFUL_COHORT}
    assert [{k: e[k] for k in slash} for e in task.events("Slashed")] == [slash]
    paid = {e["account"]: e["amount"] for e in task.events("Rewarded")}
    assert paid[task.nodes[good].address] == 7_000
    assert task.nodes[bad].address not in paid
    assert local_chain.unaccounted() == 0


@pytest.mark.parametrize(("score", "accepted", "slashed"), [(-10_000, 1, 0), (-10_001, 0, 0), (-50_001, 0, 2)])
def test_settle_holds_thresholds_to_the_last_millionth(
    local_chain: LocalChain, score: int, accepted: int, slashed: int
) -> None:
    task = TaskDriver(local_chain, terms={"rounds": 1}).to_scoring()
    task.judge([[score]])
    assert task.operator.tasks.round_state(task.task, 1).accepted_cohorts == accepted
    assert len(task.events("Slashed")) == slashed


def test_cohorts_are_dealt_by_the_published_shuffle(local_chain: LocalChain) -> None:
    from eth_utils.crypto import keccak

    task = TaskDriver(local_chain, hospitals=7, terms={"cohorts": 3, "min_hospitals": 1, "max_hospitals": 8})
    task.join().pass_deadline()
    task.tick().commit_all(only=[0, 2, 3, 4, 5, 6])  # index 1 is absent, so cards are not indices
    task.pass_deadline()
    task.tick().publish()
    task.form()
    state = task.round_state
    assert state.members == 0b1111101
    cards = list(members(state.members))
    cohorts = [0] * 3
    for i in reversed(range(len(cards))):
        chosen = int.from_bytes(keccak(state.cohort_seed + i.to_bytes(32, "big")), "big") % (i + 1)
        cohorts[i % 3] |= 1 << cards[chosen]
        cards[chosen] = cards[i]
    assert [task.operator.tasks.cohort_members(task.task, 1, c) for c in range(3)] == cohorts
    assert sorted(c.bit_count() for c in cohorts) == [2, 2, 2]
