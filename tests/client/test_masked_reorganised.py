"""A reorganisation before masked hospitals sign: their secret shares are for the order of hospitals that stays."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import Phase
from consilium_chain.messages import Part, ReplyCode
from consilium_chain.rounds.machine import Step
from hospital_driver import start, take
from index_driver import changeable_chain
from test_hospital_masks import answer, fix, upload
from worker_driver import until

CONFIRMATIONS = 10
BLOCKS_TO_JOIN = 3  # allowance, stake, and joining


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    with changeable_chain() as made:
        yield made


def test_secret_shares_are_for_the_order_that_stays(
    chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shares for the order before would pass for false ones, and cost a part of the bond."""
    monkeypatch.setattr("consilium_client.hospital.context.confirmations_of", lambda chain_id: CONFIRMATIONS)
    round_ = start(chain, tmp_path, 3, masked=True)
    nodes = [round_.node(index) for index in range(3)]
    with ThreadPoolExecutor(len(nodes)) as pool:
        asked = [pool.submit(round_.ask, node, Part.SIGNED) for node in nodes]
        until(lambda: all(node.updates.work.train_s for node in nodes))
        chain.mine(CONFIRMATIONS - 5)
        chain.rpc("anvil_reorg", CONFIRMATIONS - 5 + 2 * BLOCKS_TO_JOIN, [])
        for node in (nodes[2], nodes[1]):
            round_.set_ether(node, 10**18)
            take(node, Step.JOIN)
        assert [node.index for node in nodes] == [0, 2, 1]
        assert {one.result(60).code for one in asked} == {ReplyCode.SAT_OUT}
        again = [pool.submit(round_.signed, node) for node in sorted(nodes, key=lambda node: node.index)]
        chain.mine(CONFIRMATIONS)
        signed = [one.result(60) for one in again]
    round_.relay(*signed)
    assert round_.aggregator.tasks.state(round_.task).phase is Phase.UPLOADING
    chain.mine(CONFIRMATIONS)
    for node in nodes:
        upload(round_, node)
    answers = fix(round_, [0, 1, 2])
    answers.take({node.index: answer(round_, node) for node in nodes})
    assert answers.is_over(0)
    assert "share-bundle-invalid" not in capsys.readouterr().out


def test_a_masked_update_is_signed_once_its_hospitals_stay(
    chain: LocalChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_client.hospital.context.confirmations_of", lambda chain_id: CONFIRMATIONS)
    round_ = start(chain, tmp_path, 3, masked=True)
    node = round_.node(0)
    began = round_.aggregator.record.phase_block(round_.task, 0, Phase.COMMITTING)
    assert began is not None
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(round_.ask, node, Part.SIGNED)
        chain.mine(CONFIRMATIONS - 2)
        with pytest.raises(TimeoutError):
            asked.result(2)
        assert round_.aggregator.connection.blocks.number() == began + CONFIRMATIONS - 2
        chain.mine(1)
        assert asked.result(60).code is ReplyCode.SIGNED
