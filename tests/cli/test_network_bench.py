"""The network in Flower's simulation engine: what its grid promises, and a small one through its whole round."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity
from hypothesis import given
from hypothesis import strategies as st

from bench.e2e import network, network_drawing
from bench.e2e.network_parts import AT_ONCE, Waves
from bench.e2e.network_setting import Size

BENCH = Path(__file__).parents[2] / "bench"


class Engine:
    """Answers what it is told to, and keeps what it was handed, in order."""

    def __init__(self) -> None:
        self.handed: list[int] = []  # nodes
        self.open: dict[str, Message] = {}
        self.ready: set[str] = set()

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        numbers = []
        for message in messages:
            numbers.append(f"engine-{len(self.handed)}")
            message.metadata.__dict__["_message_id"] = numbers[-1]
            self.handed.append(message.metadata.dst_node_id)
            self.open[numbers[-1]] = message
        return numbers

    def get_node_ids(self) -> list[int]:
        return []

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        found = [number for number in message_ids if number in self.ready]
        self.ready -= set(found)
        return [Message(RecordDict(), reply_to=self.open.pop(number)) for number in found]


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_run_id", 1), ("_node_id", 1), ("_task_id", 0)):
        monkeypatch.setattr(TaskIdentity, name, value)


def request(node: int) -> Message:
    return Message(RecordDict({"request": ConfigRecord({"round": 0})}), dst_node_id=node, message_type="train")


@given(st.integers(1, 3 * AT_ONCE), st.integers(1, 3), st.randoms())
def test_no_hospital_is_asked_for_its_next_part_before_all_have_given_their_last(
    nodes: int, parts: int, chance: random.Random
) -> None:
    engine = Engine()
    waves = Waves(engine, AT_ONCE)
    asked = [node for _ in range(parts) for node in range(2, nodes + 2)]
    waiting = dict(zip(waves.push_messages([request(node) for node in asked]), asked, strict=True))
    while waiting:
        assert 0 < len(engine.open) <= AT_ONCE
        engine.ready = set(chance.sample(sorted(engine.open), chance.randint(1, len(engine.open))))
        expected = sorted(engine.open[number].metadata.dst_node_id for number in engine.ready)
        replies = waves.pull_messages(list(waiting))
        assert sorted(waiting.pop(reply.metadata.reply_to_message_id) for reply in replies) == expected
    rounds = [engine.handed[start : start + nodes] for start in range(0, len(asked), nodes)]
    assert all(sorted(one) == sorted(set(asked)) for one in rounds)
    assert waves.traffic.replies == waves.traffic.requests == len(asked)


@pytest.mark.deep  # the engine alone takes half a minute to start
@pytest.mark.parametrize("is_one_model", [False, True])
def test_a_small_network_goes_through_its_round_and_everything_is_counted(is_one_model: bool, tmp_path: Path) -> None:
    # As many seats as voters: nobody is left to chance.
    size = Size(tasks=2, hospitals=6, voters=2, delegators=5, cohorts=1, seats=1, is_one_model=is_one_model)
    told: dict[str, Any] = network.measure_size(size)
    assert [(task["survivors"], task["committed"]) for task in told["seats"]] == [(3, 3), (3, 3)]
    by_role = told["gas_by_role_and_phase"]
    assert sum(sum(phases.values()) for phases in by_role.values()) == told["gas_all"]
    assert by_role["delegator"].keys() >= {"staking", "delegating"}
    assert by_role["aggregator"].keys() >= {"committing", "publishing", "disclosing"}
    assert told["gas_by_call"]["joinAsHospital"]["count"] == 6
    assert told["gas_by_call"]["joinAsVoter"]["count"] == 2
    assert told["largest_transaction"]["gas"] < told["transaction_gas_limit"]
    assert told["blobs"] == 4  # a sum of the statistics and one of updates for each task
    assert told["flower"]["requests"] == 2 * 6 * 3
    assert told["claims"]["aggregator"] == told["models"] == (1 if is_one_model else 2)
    for name in ("network", "thousand"):
        network_drawing.draw(told, tmp_path, name)
