"""Tickets: independent arithmetic (py_ecc) against the contract and against consilium_zk."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from chain_driver import SHARED_WINDOWS, LocalChain, TaskDriver, refused
from consilium_chain.keystore import voter_key
from consilium_chain.ledger.structs import Phase, Role
from consilium_zk import tickets
from consilium_zk.constants import POSSESSION_DST, TICKET_DST
from consilium_zk.tickets import draw, seat_threshold
from eth_utils.crypto import keccak
from py_ecc.bls.hash_to_curve import hash_to_G1
from py_ecc.optimized_bls12_381 import FQ, FQ2, G2, Z1, multiply, normalize, pairing


def py_ecc_ticket(scalar: int, message: bytes, tag: bytes = TICKET_DST) -> bytes:
    point = multiply(hash_to_G1(message, tag, hashlib.sha256), scalar)
    return b"".join(int(coordinate).to_bytes(64, "big") for coordinate in normalize(point))


def words(raw: bytes) -> list[int]:
    return [int.from_bytes(raw[i : i + 64], "big") for i in range(0, len(raw), 64)]


def py_ecc_accepts(public: bytes, message: bytes, ticket: bytes) -> bool:
    """e(ticket, G2) == e(H(message), key)."""
    x, y = words(ticket)
    a, b, c, d = words(public)
    key: Any = (FQ2([a, b]), FQ2([c, d]), FQ2.one())
    signature: Any = (FQ(x), FQ(y), FQ(1))
    return bool(pairing(G2, signature) == pairing(key, hash_to_G1(message, TICKET_DST, hashlib.sha256)))


@pytest.fixture(scope="module")
def played(local_chain: LocalChain) -> TaskDriver:
    return TaskDriver(local_chain, voters=2, terms=SHARED_WINDOWS).to_scoring()


@pytest.fixture
def scoring(played: TaskDriver) -> Iterator[TaskDriver]:
    """A first training round's scores are due. What tests bring onto the chain is undone."""
    with played.chain.undone():
        yield played


def test_commit_scores_takes_py_ecc_tickets_and_py_ecc_takes_ours(scoring: TaskDriver) -> None:
    task, judge = scoring, scoring.judges[0]
    key = voter_key(judge.connection.signer)
    message = judge.messages.ticket(task.task, 1, task.round_state.seat_seed)
    onchain = judge.connection.call(judge.contracts.tasks.contract.functions.ticketMessage(task.task, 1, judge.address))
    assert bytes(onchain) == message
    independent = py_ecc_ticket(key.reveal(), message)
    assert task.ticket(0) == independent
    assert py_ecc_accepts(task.public_key(0), message, task.ticket(0))
    assert not py_ecc_accepts(task.public_key(1), message, task.ticket(0))
    task.score(0, [0], ticket=independent)
    assert task.round_state.seated == 0b01


def test_commit_scores_refuses_forged_tickets(scoring: TaskDriver) -> None:
    task, judge = scoring, scoring.judges[0]
    key, seed = voter_key(judge.connection.signer), task.round_state.seat_seed
    message = judge.messages.ticket(task.task, 1, seed)
    x, y = words(task.ticket(0))
    field = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
    forgeries = {
        "another voter's": task.ticket(1),
        "another round's": tickets.sign_ticket(key, judge.messages.ticket(task.task, 2, seed)),
        "another task's": tickets.sign_ticket(key, judge.messages.ticket(task.task + 1, 1, seed)),
        "another seed's": tickets.sign_ticket(key, judge.messages.ticket(task.task, 1, bytes(32))),
        "under the possession tag": py_ecc_ticket(key.reveal(), message, POSSESSION_DST),
        "the negated one": x.to_bytes(64, "big") + (field - y).to_bytes(64, "big"),
        "the identity": bytes(128),
        "too short": task.ticket(0)[:-1],
        "too long": task.ticket(0) + b"\0",
        "not on the curve": task.ticket(0)[:-1] + bytes([task.ticket(0)[-1] ^ 1]),
        "not reduced": (x + field).to_bytes(64, "big") + y.to_bytes(64, "big"),
    }
    for name, forged in forgeries.items():
        with refused("TicketInvalid", voter=judge.address):
            task.score(0, [0], ticket=forged)
        assert task.round_state.seated == 0, name


def test_commit_scores_refuses_another_key_with_its_own_ticket(scoring: TaskDriver) -> None:
    """A key chosen after the seed is known would make tickets grindable."""
    task, judge = scoring, scoring.judges[0]
    late = tickets.generate_secret_key(b"chosen when the seed was known..")
    message = judge.messages.ticket(task.task, 1, task.round_state.seat_seed)
    with refused("VoterKeyMismatch", voter=judge.address):
        judge.voter.commit_scores(task.task, 1, tickets.public_key(late), tickets.sign_ticket(late, message), bytes(32))


def test_commit_scores_refuses_a_ticket_that_names_another_account(scoring: TaskDriver) -> None:
    """Accounts with one key would all win a seat, or none, were the message the same for all."""
    task, judge = scoring, scoring.judges[0]
    key, seed = voter_key(judge.connection.signer), task.round_state.seat_seed
    other = judge.messages.ticket(task.task, 1, seed, voter=scoring.judges[1].address)
    assert other != judge.messages.ticket(task.task, 1, seed)
    with refused("TicketInvalid", voter=judge.address):
        task.score(0, [0], ticket=tickets.sign_ticket(key, other))


def test_register_voter_key_refuses_another_voters_proof(local_chain: LocalChain) -> None:
    ledger = local_chain.funded()
    key = tickets.generate_secret_key(b"a key with a proof for another..")
    staking, other = bytes.fromhex(local_chain.deployment.staking[2:]), bytes(20)
    proof = tickets.prove_possession(key, ledger.connection.chain_id, staking, other)
    function = ledger.contracts.staking.contract.functions.registerVoterKey(tickets.public_key(key), proof)
    with refused("ProofOfPossessionInvalid", voter=ledger.address):
        ledger.connection.transactions.send(function)


def test_register_voter_key_refuses_identity(local_chain: LocalChain) -> None:
    ledger = local_chain.funded()
    with refused("ProofOfPossessionInvalid", voter=ledger.address):
        ledger.connection.transactions.send(
            ledger.contracts.staking.contract.functions.registerVoterKey(bytes(256), bytes(128))
        )
    assert multiply(Z1, 5)[2] == FQ(0)  # what a signature under the zero key would be


def test_join_as_voter_refuses_account_without_key(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=1)
    keyless = local_chain.funded()
    keyless.staking.stake(Role.VOTER, task.params.voter_bond)
    with refused("VoterKeyMissing", voter=keyless.address):
        keyless.voter.join(task.task)


def test_commit_scores_refuses_exactly_who_lost_the_draw(local_chain: LocalChain) -> None:
    task = TaskDriver(local_chain, voters=6, terms={"seats": 3, "rounds": 1}).to_scoring()
    weight = task.round_state.seat_weight
    assert weight == 6 * task.params.voter_bond
    won = [draw(task.ticket(v)) < seat_threshold(3, task.params.voter_bond, weight) for v in range(6)]
    for voter, wins in enumerate(won):
        if wins:
            task.score(voter, [1])
            continue
        number = draw(task.ticket(voter))
        assert number == int.from_bytes(keccak(task.ticket(voter)), "big")
        limit = seat_threshold(3, task.params.voter_bond, weight)
        with refused("SeatNotWon", voter=task.judges[voter].address, draw=number, threshold=limit):
            task.score(voter, [1])
        task.judges[voter].voter.stand_down(task.task, 1)
    assert task.operator.tasks.round_state(task.task, 1).seated == sum(wins << v for v, wins in enumerate(won))
    assert task.phase is (Phase.REVEALING if any(won) else Phase.ENDED)


@pytest.mark.parametrize("again", ["score", "stand down"])
def test_commit_scores_refuses_a_second_act(scoring: TaskDriver, again: str) -> None:
    task = scoring
    task.score(0, [0])
    with refused("AlreadyActed", voter=task.judges[0].address):
        if again == "score":
            task.score(0, [5])
        else:
            task.judges[0].voter.stand_down(task.task, 1)
