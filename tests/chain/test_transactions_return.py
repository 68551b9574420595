"""What is sent comes onto the chain, whatever pools forget, blocks take back and fees come to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chain_driver import BOND, LocalChain, TaskDriver, refused
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc import transactions
from consilium_chain.rpc.blocks import BLOB_FEE
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.outgoing import Pending, Receipt, Sending, Unsent
from consilium_zk.blobs import Blob, from_scalars
from consilium_zk.kzg import commit
from eth_typing import HexStr
from index_driver import changeable_chain
from rehearsal.provider import Provider, provider, sidecars_of

NOBODY = "0x" + "11" * 20
GWEI = 10**9


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """Blocks come with transactions alone."""
    with changeable_chain() as made:
        yield made


@pytest.fixture
def front(chain: LocalChain, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    monkeypatch.setattr(transactions, "LOOK_AGAIN", 0.2)
    with provider(chain.node.url) as made:
        yield made


def account(chain: LocalChain, front: Provider) -> Ledger:
    signer = chain.funded().connection.signer
    return Ledger(Connection(front.of("somebody"), signer), chain.deployment)


def submit(ledger: Ledger, blobs: int = 0) -> Pending:
    """A transfer, or a transaction that carries blobs to nobody."""
    connection = ledger.connection
    if not blobs:
        return connection.transactions.submit(ledger.contracts.token.contract.functions.transfer(NOBODY, 1))
    sidecars = []
    for number in range(blobs):
        blob: Blob = from_scalars([number + 1] * 4096)
        ledger.aggregator.prover.prove(blob, commit(blob))
        sidecars.append(ledger.aggregator.prover.sidecar(blob))
    to = connection.contract("ConsiliumToken", NOBODY).address
    return connection.transactions.submit_raw(Unsent(HexStr("0x"), to, "carry", 50_000, sidecars=sidecars))


@contextmanager
def waiting(ledger: Ledger, pending: Pending) -> Iterator[list[Any]]:
    """Waits for the receipt meanwhile; what came of it is there after the block."""
    found: list[Any] = []

    def wait() -> None:
        try:
            found.append(ledger.connection.transactions.receipt(pending))
        except ChainUnreachable as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    yield found
    thread.join(60)
    assert found


def until(true: Callable[[], object]) -> None:
    end = threading.Event()
    for _ in range(1200):
        if true():
            return
        end.wait(0.05)
    raise AssertionError("not within 60 s")


@contextmanager
def unmined(chain: LocalChain) -> Iterator[None]:
    chain.rpc("evm_setAutomine", False)
    try:
        yield
    finally:
        chain.rpc("evm_setAutomine", True)


@pytest.mark.parametrize("blobs", [0, 2])
def test_what_a_pool_forgot_is_sent_again(chain: LocalChain, front: Provider, blobs: int) -> None:
    ledger = account(chain, front)
    front.dropping = 1
    pending = submit(ledger, blobs)
    receipt = ledger.connection.transactions.receipt(pending)
    assert receipt.transaction == pending.digest.to_0x_hex()
    assert front.again == {receipt.transaction: 1}


@pytest.mark.parametrize("blobs", [0, 1])
def test_what_was_in_a_block_that_is_gone_is_sent_again(chain: LocalChain, front: Provider, blobs: int) -> None:
    ledger = account(chain, front)
    pending = submit(ledger, blobs)
    until(lambda: chain.rpc("eth_getTransactionReceipt", pending.digest.to_0x_hex()))
    chain.await_pool()
    chain.rpc("anvil_reorg", 1, [])
    assert not ledger.connection.transactions.knows(pending.digest)
    receipt = ledger.connection.transactions.receipt(pending)
    assert chain.rpc("eth_getTransactionReceipt", receipt.transaction)["status"] == "0x1"


def test_blobs_travel_with_a_proof_of_each_cell(chain: LocalChain, front: Provider) -> None:
    """And a chain of Osaka takes none without."""
    pending = submit(account(chain, front), 2)
    version, blobs, commitments, proofs = sidecars_of(front.sent[pending.digest.to_0x_hex()])
    assert (version, len(blobs), len(commitments), len(proofs)) == (1, 2, 2, 256)


@pytest.mark.parametrize("blobs", [0, 1])
def test_what_offers_too_little_is_replaced(chain: LocalChain, front: Provider, blobs: int) -> None:
    ledger = account(chain, front)
    with unmined(chain):
        pending = submit(ledger, blobs)
        assert pending.own is not None
        offered = pending.own.fields["maxFeePerGas"]
        chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(3 * offered))
        chain.rpc("evm_mine")
        with waiting(ledger, pending) as found:
            until(lambda: int(chain.rpc("txpool_status")["pending"], 16))
            chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(3 * offered))
            chain.rpc("evm_mine")
    (receipt,) = found
    assert isinstance(receipt, Receipt)
    assert receipt.transaction != pending.digest.to_0x_hex()
    mined = chain.rpc("eth_getTransactionByHash", receipt.transaction)
    assert int(mined["nonce"], 16) == pending.own.fields["nonce"]
    assert int(mined["maxFeePerGas"], 16) >= 6 * offered
    if blobs:
        assert int(mined["maxFeePerBlobGas"], 16) >= 2 * pending.own.fields["maxFeePerBlobGas"]
    chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
    chain.rpc("evm_mine")


@pytest.mark.parametrize(
    ("base", "tip"), [(10**5, 10**6), (5 * 10**6, 5 * 10**6), (GWEI // 2, GWEI // 2), (30 * GWEI, GWEI)]
)
def test_a_tip_is_as_high_as_the_base_fee_and_a_gwei_at_most(chain: LocalChain, base: int, tip: int) -> None:
    """5,000,000 wei is the least base fee of Base, where a gwei more would be 200 times the price."""
    chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(base))
    chain.rpc("evm_mine")
    fees = chain.treasury.connection.fees
    assert fees.present() == base + tip
    assert fees.offer() == {"maxPriorityFeePerGas": tip, "maxFeePerGas": 2 * base + tip}
    assert fees.highest() == 2 * base + tip
    chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
    chain.rpc("evm_mine")


def test_who_watches_is_told_of_all_that_leaves(chain: LocalChain, front: Provider) -> None:
    ledger, told = account(chain, front), list[str]()

    class Witness:
        def leaving(self, kind: str, to: str, content: bytes, **what: str | int) -> None:
            if kind == "transaction":
                told.append(str(what["transaction"]))

    ledger.connection.transactions.witness = Witness()
    front.dropping = 1
    pending = submit(ledger)
    ledger.connection.transactions.receipt(pending)
    assert told == [pending.digest.to_0x_hex()] * 2


def test_a_number_that_another_transaction_took_is_told(chain: LocalChain, front: Provider) -> None:
    ledger = account(chain, front)
    front.dropping = 1
    pending = submit(ledger)
    Connection(chain.node.url, ledger.connection.signer).transactions.send_ether(NOBODY, 1)
    with pytest.raises(ChainUnreachable, match="transfer was replaced by another transaction with its number"):
        ledger.connection.transactions.receipt(pending)


def test_who_waits_behind_what_is_gone_is_told(chain: LocalChain, front: Provider) -> None:
    """The sender looks at the chain then, and what it sends next takes the number that is missing."""
    ledger = account(chain, front)
    with unmined(chain):
        first, second = submit(ledger), submit(ledger)
        chain.rpc("anvil_dropTransaction", first.digest.to_0x_hex())
        with pytest.raises(ChainUnreachable, match="transfer waits for a transaction that no longer exists"):
            ledger.connection.transactions.receipt(second)
        third = submit(ledger)
        assert third.own is not None
        assert first.own is not None
        assert third.own.fields["nonce"] == first.own.fields["nonce"]
    chain.rpc("evm_mine")
    for one in (third, second):
        ledger.connection.transactions.receipt(one)


def test_blobs_are_offered_more_than_they_cost(chain: LocalChain, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = chain.funded().connection
    assert connection.fees.highest_blob() == BLOB_FEE
    monkeypatch.setattr(connection.fees, "blob", lambda: 7 * BLOB_FEE)
    assert connection.fees.highest_blob() == 14 * BLOB_FEE


def test_a_refusal_has_its_name_where_nothing_is_traced(chain: LocalChain, front: Provider) -> None:
    task = TaskDriver(chain).join()
    ledger = account(chain, front)
    for given in (chain.ledger(ledger.connection.signer.key), ledger):
        with refused("PhaseNotOver", taskId=task.task):
            given.connection.transactions.send(
                given.contracts.tasks.contract.functions.tick(task.task), Sending(200_000, force=True)
            )
    assert front.refused["debug_traceTransaction"] == 1


# Events


def test_events_come_in_as_many_parts_as_a_provider_wants(chain: LocalChain) -> None:
    chain.mine(300)
    task = TaskDriver(chain).join().commit_all()
    chain.mine(200)
    whole = task.operator.logs.of_task("UpdateCommitted", task.task)
    assert len(whole) == 2
    with provider(chain.node.url, logs_at_once=37) as front:
        ledger = account(chain, front)
        assert ledger.logs.of_task("UpdateCommitted", task.task) == whole
        assert 1 <= front.refused["eth_getLogs"] < 40
        assert ledger.logs.of_task("UpdateCommitted", task.task) == whole
        # By now it knows where the task begins, and about how many blocks it is given.
        before = front.asked["somebody"]["eth_getLogs"]
        assert ledger.logs.of_task("UpdateCommitted", task.task) == whole
        assert front.asked["somebody"]["eth_getLogs"] - before < 20
        assert ledger.tasks.voters(task.task)[0].bond == BOND
        assert list(ledger.logs.of_staking("NodeRegistered", ledger.connection.blocks.number())) == list(
            task.operator.logs.of_staking("NodeRegistered", ledger.connection.blocks.number())
        )


def test_a_provider_that_gives_no_events_is_named(chain: LocalChain) -> None:
    with provider(chain.node.url, logs_at_once=0) as front:
        ledger = account(chain, front)
        with pytest.raises(ChainUnreachable, match="more than 0 blocks at once"):
            ledger.logs.of_task("UpdateCommitted", 1)
