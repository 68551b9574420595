"""Hospitals without ether, the sponsor that pays for them over HTTPS, and attacks of each on the other."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chain_driver import BOND, ENCRYPTION_KEY, GAS_MONEY, TOKENS, LocalChain, TaskDriver, refused
from consilium_chain.deploying.address_book import LOCAL_UNBONDING, LOCAL_VESTING
from consilium_chain.errors import SponsorFailed
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.roles import NO_KEY
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.sponsoring.batches import (
    BATCHES_PATH,
    Authorization,
    Call,
    SignedBatch,
    Sponsor,
    authority_of,
    authorize,
    sign_batch,
)
from consilium_chain.sponsoring.carrier import Carrier
from consilium_chain.sponsoring.connection import SponsoredConnection, SponsoredTransactions
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_server.certificates import ensure_certificates
from consilium_server.sponsor.service import LARGEST_BODY, Terms, service
from consilium_server.sponsor.service import Sponsor as Payer
from eth_account import Account
from eth_account.signers.local import LocalAccount
from sponsor_driver import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

BUDGET = 10_000_000
FAR = 2**63


@dataclass
class Sponsored:
    """A task, its sponsor, and hospitals with tokens and without ether."""

    task: TaskDriver
    payer: Ledger
    sponsor: Sponsor

    @property
    def chain(self) -> LocalChain:
        return self.task.chain

    def hospital(self, sponsor: Sponsor | None = None) -> Ledger:
        account = Account.create()
        self.chain.treasury.token.transfer(account.address, TOKENS)
        deployment = self.chain.deployment
        connection = SponsoredConnection(
            self.chain.node.url, account, deployment.sponsored_account, sponsor or self.sponsor
        )
        ledger = Ledger(connection, deployment)
        self.chain.accounts[ledger.address] = ledger
        return ledger

    def join(self, hospital: Ledger, stake: int = BOND) -> Ledger:
        encryption_key = ENCRYPTION_KEY if self.task.params.masked else NO_KEY
        hospital.hospital.join(self.task.task, 10, TransportKey.generate(), encryption_key, stake=stake)
        return hospital

    def everybody_joins(self) -> TaskDriver:
        """Hospitals without ether; all others have it."""
        self.task.aggregator.aggregator.join(self.task.task)
        self.task.nodes = [self.join(self.hospital()) for _ in self.task.nodes]
        for judge in self.task.judges:
            judge.voter.join(self.task.task)
        return self.task

    def batch(self, hospital: Ledger, *calls: Call, nonce: int | None = None, deadline: int = FAR) -> SignedBatch:
        connection, transactions = hospital.connection, hospital.connection.transactions
        assert isinstance(transactions, SponsoredTransactions)
        given = transactions._done() if nonce is None else nonce
        authorization = transactions._authorization(own_transaction=False)
        return sign_batch(account_of(hospital), connection.chain_id, calls, given, deadline, authorization)

    def spent_wei(self) -> int:
        return GAS_MONEY - self.payer.connection.ether()


def account_of(ledger: Ledger) -> LocalAccount:
    assert ledger.connection.account is not None
    return ledger.connection.account


def call_of(ledger: Ledger, contract: str, name: str, *arguments: Any) -> Call:
    target = getattr(ledger.contracts, contract).contract
    return Call(to=target.address, data=bytes.fromhex(target.encode_abi(name, args=list(arguments))[2:]))


@pytest.fixture
def budget() -> int:
    return BUDGET


@pytest.fixture
def masked() -> bool:
    return False


@pytest.fixture
def scene(local_chain: LocalChain, tmp_path: Path, budget: int, masked: bool) -> Iterator[Sponsored]:
    terms: dict[str, Any] = {"pool": 1_000 * TOKEN, "rounds": 1}
    if masked:
        terms |= {"masked": True, "min_cohort_size": 3, "min_hospitals": 3}
    task = TaskDriver(local_chain, hospitals=3 if masked else 2, terms=terms)
    payer = local_chain.ledger(Account.create().key)
    local_chain.treasury.connection.transactions.send_ether(payer.address, GAS_MONEY)
    paid = Terms(task.task, local_chain.deployment.staking, budget)
    with served(service(Payer(payer, paid)), tmp_path) as sponsor:
        yield Sponsored(task, payer, sponsor)


def transactions_of(ledger: Ledger) -> int:
    return int(ledger.connection.web3.eth.get_transaction_count(ledger.connection.address))


# Without ether


def test_hospital_without_ether_stakes_works_earns_and_leaves(scene: Sponsored) -> None:
    task = scene.everybody_joins()
    first = task.nodes[0]
    task.commit_all()  # by transactions of their own
    task.publish()
    task.form().commit_all()
    task.publish()
    task.draw().judge([[20_000]])
    scene.chain.pass_time(LOCAL_VESTING)
    before = first.token.balance(first.address)
    first.staking.claim(Role.HOSPITAL)
    earned = first.token.balance(first.address) - before
    assert earned > 0
    assert task.phase is Phase.ENDED
    assert first.staking.release_bond(task.task, first.address)
    connection = first.connection
    shares, _, _ = connection.call(
        first.contracts.staking.contract.functions.positionOf(first.address, first.address, Role.HOSPITAL)
    )
    connection.transactions.send(
        first.contracts.staking.contract.functions.startUnbonding(first.address, Role.HOSPITAL, shares)
    )
    scene.chain.pass_time(LOCAL_UNBONDING)
    connection.transactions.send(first.contracts.staking.contract.functions.withdraw(0))
    assert first.token.balance(first.address) >= TOKENS + earned - 2
    for node in task.nodes:
        assert (node.connection.ether(), transactions_of(node)) == (0, 1)  # its authorization counts as one
    assert scene.spent_wei() > 0
    assert scene.chain.unaccounted() == 0


def to_disputing(scene: Sponsored) -> TaskDriver:
    """The statistics of hospitals without ether have no sum."""
    task = scene.everybody_joins()
    task.commit_all().publish(accused=[0])
    return task


@pytest.mark.parametrize("masked", [True])
def test_hospital_without_ether_submits_evidence(scene: Sponsored) -> None:
    """The longest evidence: a point for each of 255 others, then a seed."""
    task = to_disputing(scene)
    points, seeds = secrets.token_bytes(255 * 48), secrets.token_bytes(255 * 32)
    task.nodes[0].hospital.submit_evidence(task.task, 0, 0, points)
    task.pass_to_step(1).nodes[0].hospital.submit_evidence(task.task, 0, 1, seeds)
    assert task.operator.record.submitted_evidence(task.task, 0) == ({0: points}, {0: seeds})
    assert [node.connection.ether() for node in task.nodes] == [0, 0, 0]
    other = call_of(task.nodes[1], "tasks", "submitEvidence", task.task + 1, 0, 1, points)
    with pytest.raises(SponsorFailed, match="taskId of submitEvidence must be"):
        scene.sponsor.carry_out(scene.batch(task.nodes[1], other))


@pytest.mark.parametrize("masked", [True])
def test_evidence_that_a_sponsor_keeps_back_counts_for_no_other_step(scene: Sponsored) -> None:
    task = to_disputing(scene)
    hospital = task.nodes[0]
    kept = scene.batch(hospital, call_of(hospital, "tasks", "submitEvidence", task.task, 0, 0, b"points"))
    task.pass_to_step(1)
    assert refusal(scene, kept) == "WrongStep"
    hospital.hospital.submit_evidence(task.task, 0, 1, b"seeds")
    assert task.operator.record.submitted_evidence(task.task, 0) == ({}, {0: b"seeds"})
    assert refusal(scene, kept) == "BatchNonceWrong"


def test_joining_is_all_or_nothing_and_refusals_keep_their_names(scene: Sponsored) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    for _ in range(2):
        scene.join(scene.hospital())
    late = scene.hospital()
    with refused("TaskFull"):
        scene.join(late)
    assert late.token.balance(late.address) == TOKENS
    assert late.staking.stake_of(late.address, Role.HOSPITAL).active == 0
    member = scene.task.operator.tasks.hospitals(scene.task.task)[0].node
    with refused("AlreadyJoined", account=member):
        scene.join(scene.chain.accounts[member])


def node_key(hospital: Ledger, task: int) -> tuple[bytes, bytes]:
    """A node key, and the proof by which the hospital joins with it."""
    key = TransportKey.generate()
    return key.public, key.sign(hospital.messages.transport(task, key.public))


# What a sponsor does not pay for


def foreign_calls(scene: Sponsored, hospital: Ledger) -> dict[str, tuple[list[Call], str]]:
    """By name: calls that no sponsor of this task pays for, and a part of the reason."""
    task, staking = scene.task.task, scene.chain.deployment.staking
    other = scene.chain.treasury.address
    join = call_of(hospital, "tasks", "joinAsHospital", task, 10, *node_key(hospital, task), NO_KEY)
    return {
        "sends tokens": ([join, call_of(hospital, "token", "transfer", other, 1)], "token.transfer"),
        "approves another": (
            [join, call_of(hospital, "token", "approve", other, 1)],
            "spender of approve must be",
        ),
        "another task": (
            [call_of(hospital, "tasks", "joinAsHospital", task + 1, 10, *node_key(hospital, task + 1), NO_KEY)],
            "taskId of joinAsHospital must be",
        ),
        "another role": (
            [join, call_of(hospital, "staking", "register", Role.VOTER, 0, 1)],
            "role of register must be",
        ),
        "backs another": (
            [join, call_of(hospital, "staking", "delegate", other, Role.HOSPITAL, 1)],
            "node of delegate must be",
        ),
        "votes": ([join, call_of(hospital, "tasks", "joinAsVoter", task)], "tasks.joinAsVoter"),
        "settles": ([join, call_of(hospital, "tasks", "settle", task, 0)], "tasks.settle"),
        "many in one": ([call_of(hospital, "tasks", "multicall", [join.data])], "tasks.multicall"),
        "unknown contract": ([join, Call(to=other, data=bytes(4))], "an unknown function"),
        "unknown function": ([join, Call(to=staking, data=b"\x01\x02\x03\x04")], "an unknown function"),
        "cut short": ([Call(to=join.to, data=join.data[:20])], "an unknown function"),
        "no member": ([call_of(hospital, "staking", "register", Role.HOSPITAL, 0, 0)], "not a hospital of task"),
    }


FOREIGN = (
    "sends tokens", "approves another", "another task", "another role", "backs another", "votes", "settles",
    "many in one", "unknown contract", "unknown function", "cut short", "no member",
)  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_sponsor_pays_for_nothing_else(scene: Sponsored, name: str) -> None:
    hospital = scene.hospital()
    calls, why = foreign_calls(scene, hospital)[name]
    with pytest.raises(SponsorFailed, match="403: ") as caught:
        scene.sponsor.carry_out(scene.batch(hospital, *calls))
    assert why in caught.value.why
    assert scene.spent_wei() == 0


def test_all_foreign_calls_are_tried(scene: Sponsored) -> None:
    assert tuple(foreign_calls(scene, scene.hospital())) == FOREIGN


def joining(scene: Sponsored, hospital: Ledger) -> list[Call]:
    deployment, number = scene.chain.deployment, scene.task.task
    return [
        call_of(hospital, "token", "approve", deployment.staking, BOND),
        call_of(hospital, "staking", "register", Role.HOSPITAL, 0, BOND),
        call_of(hospital, "tasks", "joinAsHospital", number, 10, *node_key(hospital, number), NO_KEY),
    ]


def other_code(scene: Sponsored, hospital: Ledger) -> Authorization:
    return authorize(account_of(hospital), scene.payer.connection.chain_id, scene.chain.deployment.token, 0)


def other_nonce(scene: Sponsored, hospital: Ledger) -> Authorization:
    chain_id, code = scene.payer.connection.chain_id, scene.chain.deployment.sponsored_account
    return authorize(account_of(hospital), chain_id, code, 1)


def other_account(scene: Sponsored, hospital: Ledger) -> Authorization:
    chain_id, code = scene.payer.connection.chain_id, scene.chain.deployment.sponsored_account
    return authorize(Account.create(), chain_id, code, 0)


def other_chain(scene: Sponsored, hospital: Ledger) -> Authorization:
    return authorize(account_of(hospital), 1, scene.chain.deployment.sponsored_account, 0)


@pytest.mark.parametrize("wrong", [None, other_code, other_nonce, other_account, other_chain])
def test_sponsor_pays_nothing_for_an_account_that_would_do_nothing(
    scene: Sponsored, wrong: Callable[[Sponsored, Ledger], Authorization] | None
) -> None:
    hospital = scene.hospital()
    scene.task.aggregator.aggregator.join(scene.task.task)
    batch = scene.batch(hospital, *joining(scene, hospital))
    changed = batch.model_copy(update={"authorization": wrong and wrong(scene, hospital)})
    with pytest.raises(SponsorFailed, match=r"403: .* does not point to"):
        scene.sponsor.carry_out(changed)
    assert scene.spent_wei() == 0


@pytest.mark.parametrize("budget", [700_000])
def test_sponsor_pays_each_hospital_so_much_and_no_more(scene: Sponsored, budget: int) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    first, second = scene.join(scene.hospital()), scene.join(scene.hospital())
    approval = first.contracts.token.contract.functions.approve(scene.chain.deployment.staking, 1)
    spent = 0
    while spent < 10 and (why := failure(lambda: first.connection.transactions.send(approval))) is None:
        spent += 1
    assert why is not None
    assert "of 700,000 for each hospital are left" in why
    second.connection.transactions.send(approval)  # one hospital's thirst is not another's


def failure(action: Callable[[], object]) -> str | None:
    """The sponsor's reason for its refusal."""
    try:
        action()
    except SponsorFailed as error:
        return error.why
    return None


def test_batch_that_was_changed_or_sent_again_is_refused_and_costs_nothing(scene: Sponsored) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    hospital = scene.hospital()
    batch = scene.batch(hospital, *joining(scene, hospital))
    other = call_of(
        hospital, "tasks", "joinAsHospital", scene.task.task, 11, *node_key(hospital, scene.task.task), NO_KEY
    )
    changed = [
        (batch.model_copy(update={"calls": (*batch.calls[:2], other)}), "BatchSignatureInvalid"),
        (batch.model_copy(update={"deadline": FAR - 1}), "BatchSignatureInvalid"),
        (scene.batch(hospital, *batch.calls, nonce=1), "BatchNonceWrong"),
        (scene.batch(hospital, *batch.calls, deadline=1), "BatchExpired"),
    ]
    for wrong, name in changed:
        assert refusal(scene, wrong) == name
    assert scene.spent_wei() == 0
    scene.sponsor.carry_out(batch)
    spent = scene.spent_wei()
    assert refusal(scene, batch.model_copy(update={"authorization": None})) == "BatchNonceWrong"
    with pytest.raises(SponsorFailed, match="does not point to"):  # the authorization, too, was used
        scene.sponsor.carry_out(batch)
    assert scene.spent_wei() == spent


def refusal(scene: Sponsored, batch: SignedBatch) -> str:
    """The name of the chain's error for a batch that the sponsor refuses."""
    answer = scene.sponsor.carry_out(batch)
    assert not hasattr(answer, "transaction"), answer
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its name is what is asked for
        Carrier(scene.payer.connection).gas_of(batch)
    return str(getattr(caught.value, "name", caught.value))


def test_of_many_copies_at_once_one_is_paid_for(scene: Sponsored) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    hospital = scene.hospital()
    batch = scene.batch(hospital, *joining(scene, hospital))

    def send(_: int) -> str:
        try:
            return type(scene.sponsor.carry_out(batch)).__name__
        except SponsorFailed:
            return "SponsorFailed"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert answers.count("Carried") == 1
    assert transactions_of(scene.payer) == 1


BODIES = {
    "empty": (b"", 400),
    "no JSON": (b"{", 400),
    "not an object": (b"[]", 400),
    "other fields": (b'{"account": "0x00"}', 400),
    "too large": (b" " * (LARGEST_BODY + 1), 413),
}


@pytest.mark.parametrize("name", BODIES)
def test_bytes_that_are_no_batch_are_refused_in_words(scene: Sponsored, name: str) -> None:
    body, status = BODIES[name]
    answered, words = scene.sponsor._post(body)
    assert answered == status
    assert b"batch" in words


def test_sponsor_without_ether_says_that_it_cannot_pay(scene: Sponsored) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    scene.chain.rpc("anvil_setBalance", scene.payer.address, "0x0")
    with pytest.raises(SponsorFailed, match="503: this sponsor cannot send the batch now"):
        scene.join(scene.hospital())


# What a hospital need not believe


def posts(answer: Callable[[SignedBatch], Response]) -> Starlette:
    async def batches(request: Request) -> Response:
        return answer(SignedBatch.model_validate_json(await request.body()))

    return Starlette(routes=[Route(BATCHES_PATH, batches, methods=["POST"])])


@dataclass
class Liar:
    """A sponsor that sends a transaction, and gives a false answer."""

    scene: Sponsored

    def no_json(self, batch: SignedBatch) -> Response:
        return Response("yes")

    def other_fields(self, batch: SignedBatch) -> Response:
        return Response('{"transaction": "0x00"}')

    def nothing_sent(self, batch: SignedBatch) -> Response:
        return self._named("ab" * 32)

    def something_else(self, batch: SignedBatch) -> Response:
        sent = self.scene.payer.connection.transactions.send(
            self.scene.payer.contracts.token.contract.functions.approve(self.scene.payer.address, 1)
        )
        return self._named(sent.transaction[2:])

    def anothers_batch(self, batch: SignedBatch) -> Response:
        other = self.scene.hospital()
        call = call_of(other, "token", "approve", self.scene.payer.address, 1)
        return self._sent(self.scene.batch(other, call))

    def without_authorization(self, batch: SignedBatch) -> Response:
        return self._sent(batch.model_copy(update={"authorization": None}))

    def _sent(self, batch: SignedBatch) -> Response:
        connection = self.scene.payer.connection
        return self._named(connection.transactions.receipt(Carrier(connection).carry_out(batch)).transaction[2:])

    @staticmethod
    def _named(digest: str) -> Response:
        return Response(f'{{"transaction": "0x{digest}"}}')


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (Liar.no_json, "its answer is malformed"),
        (Liar.other_fields, "its answer is malformed"),
        (Liar.nothing_sent, "names a transaction that the chain lacks"),
        (Liar.something_else, "names another transaction"),
        (Liar.anothers_batch, "names another transaction"),
        (Liar.without_authorization, "left out this account's authorization"),
    ],
)
def test_hospital_sees_that_its_batch_was_not_carried_out(
    scene: Sponsored, tmp_path: Path, lie: Callable[[Liar, SignedBatch], Response], why: str
) -> None:
    scene.task.aggregator.aggregator.join(scene.task.task)
    liar = Liar(scene)
    with served(posts(lambda batch: lie(liar, batch)), tmp_path / "liar") as sponsor:
        hospital = scene.hospital(sponsor)
        with pytest.raises(SponsorFailed, match=why):
            scene.join(hospital)
        assert scene.task.operator.tasks.hospitals(scene.task.task) == []
        # With ether it needs no sponsor, and is in the end where an honest one would have brought it.
        scene.chain.treasury.connection.transactions.send_ether(hospital.address, GAS_MONEY)
        scene.join(hospital)
    assert [h.node for h in scene.task.operator.tasks.hospitals(scene.task.task)] == [hospital.address]
    assert hospital.staking.stake_of(hospital.address, Role.HOSPITAL).active == BOND


def nobody(folder: Path) -> Sponsor:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{unused.getsockname()[1]}"
    return Sponsor(url, ensure_certificates(folder).authority)


def test_without_its_sponsor_a_hospital_pays_for_itself(
    scene: Sponsored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_chain.sponsoring.batches.CONNECT_RETRIES", 0)
    scene.task.aggregator.aggregator.join(scene.task.task)
    hospital = scene.hospital(nobody(tmp_path))
    with pytest.raises(SponsorFailed, match="ConnectError"):
        scene.join(hospital)
    scene.chain.treasury.connection.transactions.send_ether(hospital.address, GAS_MONEY)
    scene.join(hospital)
    assert [h.node for h in scene.task.operator.tasks.hospitals(scene.task.task)] == [hospital.address]
    # And it stays an account like any other.
    plain = scene.chain.ledger(account_of(hospital).key)
    plain.token.transfer(scene.chain.treasury.address, 1)
    scene.chain.treasury.connection.transactions.send_ether(hospital.address, 1)
    with pytest.raises(SponsorFailed, match="ConnectError"):
        Sponsor(scene.sponsor.url, ensure_certificates(tmp_path / "other").authority).carry_out(
            scene.batch(hospital, call_of(hospital, "token", "approve", hospital.address, 1))
        )


# Signatures


def test_authority_is_who_signed_and_nobody_for_what_the_chain_does_not_take() -> None:
    account = Account.create()
    signed = authorize(account, 5, "0x" + "11" * 20, 7)
    assert authority_of(signed) == account.address
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high = (order - int.from_bytes(signed.s, "big")).to_bytes(32, "big")
    assert authority_of(signed.model_copy(update={"s": high, "y_parity": 1 - signed.y_parity})) is None
    assert authority_of(signed.model_copy(update={"r": bytes(32)})) is None
    assert authority_of(signed.model_copy(update={"r": b"\xff" * 32})) is None
    for change in ({"chain_id": 6}, {"nonce": 8}, {"address": "0x" + "22" * 20}):
        assert authority_of(signed.model_copy(update=change)) != account.address
