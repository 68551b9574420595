"""What keeps a standing network running, over a chain that is taken back under it, and one that ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chain_driver import LocalChain, task_params
from consilium_chain.errors import LocalNodeError
from consilium_cli.up.run import News, tend


class DoneError(Exception):
    """Ends the tending."""


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def propose(chain: LocalChain) -> int:
    return chain.treasury.propose(task_params(chain.treasury.address))


def test_blocks_that_are_gone_when_they_are_asked_for_end_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalChain() as chain:
        beyond = [1_000, 0]  # of the latest block: one that the chain took back meanwhile, then one that it has

        def turn() -> None:
            asked = chain.treasury.connection.block_number() + beyond.pop(0)
            list(chain.treasury.events(asked, asked))
            raise DoneError

        with pytest.raises(DoneError):
            tend(chain.node, turn)
    (told_once,) = told(capsys)
    assert told_once["event"] == "chain-unreachable"


def test_a_chain_that_ended_is_named_instead_of_waited_for() -> None:
    with LocalChain() as chain:

        def turn() -> None:
            chain.node.stop()
            chain.treasury.connection.block_number()

        with pytest.raises(LocalNodeError, match=r"the local chain \(anvil\) ended with exit code .*: start anew"):
            tend(chain.node, turn)


def test_what_happens_in_the_place_of_what_was_taken_back_is_news(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalChain() as chain:
        news = News(chain.treasury, {chain.treasury.address: "the operator"})
        chain.rpc("evm_setIntervalMining", 0)
        chain.rpc("evm_setAutomine", True)
        before = chain.rpc("evm_snapshot")
        task = propose(chain)
        chain.mine(10)
        assert "TaskProposed" in {event.name for event in news.tell()}
        assert chain.rpc("evm_revert", before)
        assert news.tell() == []
        assert propose(chain) == task
        assert "TaskProposed" in {event.name for event in news.tell()}
    proposed = [one for one in told(capsys) if one["event"] == "task-proposed"]
    assert [(one["task"], one["operator"]) for one in proposed] == [(task, "the operator")] * 2
