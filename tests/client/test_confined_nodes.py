"""Nodes whose program's process dies: it costs that round, and they go on with the next."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Phase
from consilium_chain.rounds.machine import Step
from consilium_chain.transport_keys import TransportKey
from consilium_client.programs import confined
from consilium_client.voter.node import VoterNode
from consilium_core.logs import log_to
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from hospital_driver import take
from torch import nn
from training_driver import GOOD, ROWS, propose, task_file
from voter_driver import TASK, FiledTask, voter_home

FAMILY = '[model]\nname = "logistic"\n'
Told = list[tuple[str, dict[str, Any]]]


class Screen:
    """Kills the process that computes, once it is told to, at the first step that it shows."""

    armed = False

    def __call__(self, event: str, fields: Any) -> None:
        if event == "training" and self.armed:
            self.armed = False
            kill_processes()


def kill_processes() -> None:
    for one in psutil.Process().children():
        if confined.MODULE in one.cmdline():
            os.kill(one.pid, signal.SIGKILL)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def told(screen: Screen) -> Iterator[Told]:
    heard: Told = []
    with log_to(lambda event, fields: heard.append((event, dict(fields))), screen):
        yield heard
    confined.end_all()


@pytest.fixture
def section(tmp_path: Path) -> str:
    export(nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1)), torch.zeros(2, 1), tmp_path / "program")
    return store_weights(ArtifactStore(tmp_path / "artifacts"), tmp_path / "program")


def test_a_hospital_whose_process_dies_loses_that_round_and_trains_in_the_next(
    section: str, local_chain: LocalChain, tmp_path: Path, screen: Screen, told: Told
) -> None:
    floor = "accept_floor = -1000.0\nharmful_below = -1000.0"
    raw = task_file("epochs = 500", judging=floor, rounds=2).replace(FAMILY.encode(), section.encode())
    task = propose(local_chain, tmp_path, raw)
    nodes = [task.start(index) for index in range(2)]
    task.join(rows=ROWS).first_round().form()
    screen.armed = True
    take(nodes[0], Step.TRAIN)
    assert ("round-failed", {"round": 1, "error": "ProgramEnded"}) in told
    assert ("program-ended", {"why": "was ended by the signal SIGKILL"}) in told
    take(nodes[0], Step.TRAIN)  # not again in this round
    assert task.made(0) is None
    task.commit_all(only=[1])
    task.pass_deadline()
    task.tick()
    take(nodes[0], Step.RESUME)
    task.publish()
    task.draw().judge(GOOD)
    task.form()
    take(nodes[0], Step.TRAIN)
    assert task.made(0) is not None
    assert [event for event, _ in told if event == "round-failed"] == ["round-failed"]


def test_a_voter_whose_process_dies_takes_no_seat_in_that_round_and_is_not_slashed(
    section: str, local_chain: LocalChain, tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = TASK[TASK.index("[model]") : TASK.index("[", TASK.index("[model]") + 1)]
    task = FiledTask(local_chain, tmp_path, TASK.replace(family, section).replace("rounds = 1\n", "rounds = 3\n"))
    home, account = voter_home(local_chain, tmp_path / "voter", programs="any", models=["program"])
    node = VoterNode(home.node_settings(task.task, account.folder_name(task.task)), account)
    node.join()
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    task.to_drawing().draw()
    node.poll()  # the statistics: nothing is computed
    node.poll()
    task.operator.phases.settle(task.task, 0)

    task.to_drawing().draw()
    with monkeypatch.context() as broken:
        broken.setattr(confined, "MODULE", "a_module_that_ends_at_once")
        for _ in range(2):
            node.poll()
    failed = [fields for event, fields in told if event == "round-failed"]
    assert failed == [{"round": 1, "error": "ProgramEnded"}]
    assert task.phase == Phase.SCORING
    task.pass_deadline()
    task.tick()
    assert task.events("Slashed") == []

    task.to_drawing().draw()
    node.poll()
    node.poll()
    assert [fields["round"] for event, fields in told if event == "revealed"] == [0, 2]
