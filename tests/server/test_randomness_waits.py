"""An aggregator continues while relays do not have a drand round yet."""

from __future__ import annotations

import json
from typing import Any

import pytest
from consilium_chain.errors import RandomnessUnavailable, RelayFailed
from consilium_chain.rounds.machine import Step
from consilium_server.aggregator.node import Aggregator

DRAND_ROUND = 1000
FAILURE = RelayFailed("RelayUnreachable", url="https://drand.example/1000", why="no answer within 5 s")


class Recorded:
    """A substitute for the ledger and its connection: no relay has the round, and the chain continues."""

    def __init__(self) -> None:
        self.connection = self.blocks = self.phases = self
        self.calls: list[tuple[str, int]] = []

    def form_cohorts(self, task: int, request: int) -> None:
        self.calls.append(("form_cohorts", request))
        raise RandomnessUnavailable(request, [FAILURE])

    draw_seats = form_cohorts

    def number(self) -> int:
        return 7

    def wait_after(self, seen: int) -> int:
        self.calls.append(("wait_after", seen))
        return seen + 1


class Fields:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize("step", [Step.FORM_COHORTS, Step.DRAW_SEATS])
def test_attempt_tells_of_missing_randomness_and_waits_for_a_block(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    aggregator = Aggregator.__new__(Aggregator)
    aggregator.number = 1
    aggregator.ledger = ledger = Recorded()  # type: ignore[assignment]
    aggregator._attempt(step, Fields(round=3), Fields(beacon_request=DRAND_ROUND))  # type: ignore[arg-type]
    assert ledger.calls == [("form_cohorts", DRAND_ROUND), ("wait_after", 7)]
    told = json.loads(capsys.readouterr().out)
    assert (told["event"], told["round"], told["drand_round"]) == ("randomness-unavailable", 3, DRAND_ROUND)
    assert told["relays"] == ["RelayUnreachable"]
