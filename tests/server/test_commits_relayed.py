"""The aggregator commits for hospitals without ether, and a wrong update does not delay the others."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.signed_updates import NO_BASE, SignedUpdate, parse_signed_update
from consilium_server.aggregator import round_work
from consilium_server.aggregator.round_work import GATHER, Committer, due
from hypothesis import given
from hypothesis import strategies as st

COUNT = 3
ALL = 0b111


@pytest.fixture
def task(local_chain: LocalChain) -> TaskDriver:
    """A task whose statistics round accepts commitments."""
    return TaskDriver(local_chain, hospitals=COUNT).join_without_ether()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No update waits for another one."""
    monkeypatch.setattr(round_work, "GATHER", 0.0)


def committer(task: TaskDriver) -> Committer:
    return Committer(task.aggregator, task.task, task.round, [node.address for node in task.nodes])


def signed(task: TaskDriver, *who: int) -> dict[int, SignedUpdate]:
    """The signed updates of these hospitals, in the aggregator's form."""
    updates = {}
    for index in who:
        update = task.updates[task.round, index] = task.make_update(index)
        node = task.nodes[index]
        raw = node.hospital.sign_update(task.task, task.round, update.committed).to_wire()
        updates[index] = parse_signed_update(raw, node.address, len(update.blobs))
    return updates


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@given(missing=st.integers(0, 2**20), other=st.integers(0, 2**20), waited=st.floats(0, 2 * GATHER))
def test_due_when_all_are_here_or_somebody_has_waited(missing: int, other: int, waited: float) -> None:
    waiting = missing & other
    assert not due(0, missing, waited)
    if waiting:
        assert due(waiting, waiting, waited)
        assert due(waiting, missing, GATHER)
        assert due(waiting, missing, waited) == (waiting == missing or waited >= GATHER)


def test_all_who_signed_are_committed_by_one_transaction(task: TaskDriver, capsys: pytest.CaptureFixture[str]) -> None:
    committer(task).commit_if_due(signed(task, 0, 1, 2), task.round_state, 0, [ALL])
    assert (task.round_state.committed, task.phase) == (ALL, Phase.UPLOADING)
    (line,) = told(capsys)
    assert (line["event"], line["hospitals"], line["transactions"]) == ("relayed", 3, 1)
    task.publish()  # what was committed is what was made
    assert task.phase is Phase.FORMING


def test_hospitals_wait_for_others_but_not_for_long(task: TaskDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    relaying, updates = committer(task), signed(task, 0, 1)
    relaying.commit_if_due({}, task.round_state, 0, [ALL])
    for clock[0] in (200.0, 200.0 + GATHER / 2):  # nobody was waiting before
        relaying.commit_if_due(updates, task.round_state, 0, [ALL])
        assert task.round_state.committed == 0
    clock[0] = 200.0 + GATHER
    relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert task.round_state.committed == 0b011
    relaying.commit_if_due(updates | signed(task, 2), task.round_state, 0, [ALL])  # the last one waits for nobody
    assert task.round_state.committed == ALL


def test_nobody_waits_for_who_will_not_sign(task: TaskDriver) -> None:
    committer(task).commit_if_due(signed(task, 0, 2), task.round_state, 0b010, [ALL])
    assert task.round_state.committed == 0b101


def test_who_signed_is_committed_again_where_the_block_is_gone(task: TaskDriver) -> None:
    """Also hospitals that have sent everything by then, and owe no reply."""
    relaying, updates = committer(task), signed(task, 0, 1, 2)
    before = task.chain.rpc("evm_snapshot")
    relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert task.round_state.committed == ALL
    assert task.chain.rpc("evm_revert", before)
    assert task.round_state.committed == 0
    relaying.commit_if_due(updates, task.round_state, ALL, [ALL])
    assert task.round_state.committed == ALL


def other_round(task: TaskDriver, update: SignedUpdate, index: int) -> SignedUpdate:
    node = task.nodes[index]
    return node.hospital.sign_update(task.task, task.round + 1, task.updates[task.round, index].committed)


def other_hospital(task: TaskDriver, update: SignedUpdate, index: int) -> SignedUpdate:
    """An update that another hospital signed, through this hospital's Flower node."""
    neighbour = task.nodes[index - 1]
    raw = neighbour.hospital.sign_update(task.task, task.round, task.updates[task.round, index - 1].committed).to_wire()
    return parse_signed_update(raw, task.nodes[index].address, 1)


def other_points(task: TaskDriver, update: SignedUpdate, index: int) -> SignedUpdate:
    return replace(update, point_hashes=tuple(task.updates[task.round, index - 1].committed.point_hashes))


WRONG = [
    (other_round, "SignatureInvalid"),
    (other_hospital, "SignatureInvalid"),
    (other_points, "SignatureInvalid"),
]


@pytest.mark.parametrize(("wrong", "name"), WRONG, ids=[make.__name__ for make, _ in WRONG])
def test_a_wrong_update_is_left_out_and_named(
    task: TaskDriver, wrong: Any, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    relaying, updates = committer(task), signed(task, 0, 1, 2)
    updates[1] = wrong(task, updates[1], 1)
    relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert task.round_state.committed == 0b101
    first, second = told(capsys)
    assert (first["event"], first["hospital"], first["error"]) == ("update-refused", 1, name)
    assert (second["event"], second["hospitals"]) == ("relayed", 2)
    relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert told(capsys) == []  # it is not tried again


def based(task: TaskDriver, *bases: bytes) -> dict[int, SignedUpdate]:
    """Signed updates of the first hospitals that state these bases."""
    updates = {}
    for index, base in enumerate(bases):
        update = task.updates[task.round, index] = task.make_update(index)
        updates[index] = task.nodes[index].hospital.sign_update(
            task.task, task.round, replace(update.committed, base=base)
        )
    return updates


@pytest.mark.parametrize("other", [b"\2" * 32, NO_BASE], ids=["another", "none"])
def test_a_hospital_that_trained_from_another_base_than_most_is_left_out_and_named(
    task: TaskDriver, other: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    relaying, updates = committer(task), based(task, b"\1" * 32, other, b"\1" * 32)
    for _ in range(2):
        relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert task.round_state.committed == 0b101
    first, second = told(capsys)
    assert (first["event"], first["hospital"], first["error"]) == ("update-refused", 1, "BaseDiffers")
    assert first["base"] == other.hex()
    assert (second["event"], second["hospitals"]) == ("relayed", 2)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("count", [2, 3])
def test_without_a_majority_of_all_no_base_is_refused(task: TaskDriver, count: int) -> None:
    """Else one hospital, which is faster than the others, could keep them out."""
    bases = [bytes([number + 1]) * 32 for number in range(count)]
    committer(task).commit_if_due(based(task, *bases), task.round_state, ALL, [ALL])
    assert task.round_state.committed == (1 << count) - 1


def test_all_wrong_updates_are_named(task: TaskDriver, capsys: pytest.CaptureFixture[str]) -> None:
    updates = signed(task, 0, 1, 2)
    updates = {index: other_round(task, update, index) for index, update in updates.items()}
    committer(task).commit_if_due(updates, task.round_state, 0, [ALL])
    assert task.round_state.committed == 0
    assert [line["hospital"] for line in told(capsys)] == [0, 1, 2]


def test_who_committed_meanwhile_is_no_fault(
    task: TaskDriver, local_chain: LocalChain, capsys: pytest.CaptureFixture[str]
) -> None:
    updates, before = signed(task, 0, 1, 2), task.round_state
    local_chain.rpc("anvil_setBalance", task.nodes[1].address, hex(10**18))
    task.send_commitment(1, task.updates[0, 1].committed)
    committer(task).commit_if_due(updates, before, 0, [ALL])
    assert task.round_state.committed == ALL
    assert [line["event"] for line in told(capsys)] == ["relayed"]


def test_commitments_closed_meanwhile_are_no_fault(task: TaskDriver, capsys: pytest.CaptureFixture[str]) -> None:
    updates, before = signed(task, 0, 1, 2), task.round_state
    task.aggregator.aggregator.commit_updates(task.task, 0, [(0, update) for update in updates.values()])
    committer(task).commit_if_due(updates, before, 0, [ALL])
    assert task.phase is Phase.UPLOADING
    assert told(capsys) == []


@pytest.mark.usefixtures("at_once")
def test_a_hospital_of_its_own_is_not_committed_again(task: TaskDriver, capsys: pytest.CaptureFixture[str]) -> None:
    relaying, updates = committer(task), signed(task, 0)
    for _ in range(2):
        relaying.commit_if_due(updates, task.round_state, 0, [ALL])
    assert [line["hospitals"] for line in told(capsys)] == [1]
