"""What keeps a standing network running, over a chain that is taken back under it, and one that ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from chain_driver import LocalChain, task_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import LocalNodeError
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.errors import REFUSED
from consilium_client.home import HospitalHome
from consilium_lab.demo.datasets import DemoData
from consilium_lab.demo.homes import NetworkSettings
from consilium_lab.demo.options import DataSet
from consilium_lab.demo.processes import Processes
from consilium_lab.up.network import StandingNetwork
from consilium_lab.up.options import UpOptions
from consilium_lab.up.run import LASTING, LONGEST_PAUSE, MOST_STARTS, News, Restarts, run_forever
from consilium_lab.up.supervisor import ModelDeriver, TaskJoiner
from task_files import DATA


class DoneError(Exception):
    """Ends the loop."""


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def propose(chain: LocalChain) -> int:
    return chain.treasury.operator.propose(task_params(chain.treasury.address))


def test_blocks_that_are_gone_when_they_are_asked_for_end_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalChain() as chain:
        beyond = [1_000, 0]  # of the latest block: one that the chain took back meanwhile, then one that it has

        def turn() -> None:
            asked = chain.treasury.connection.blocks.number() + beyond.pop(0)
            list(chain.treasury.logs.between(asked, asked))
            raise DoneError

        with pytest.raises(DoneError):
            run_forever(chain.node, turn)
    (told_once,) = told(capsys)
    assert told_once["event"] == "chain-unreachable"


def test_a_chain_that_ended_is_named_instead_of_waited_for() -> None:
    with LocalChain() as chain:

        def turn() -> None:
            chain.node.stop()
            chain.treasury.connection.blocks.number()

        with pytest.raises(LocalNodeError, match=r"the local chain \(anvil\) ended with exit code .*; start it anew"):
            run_forever(chain.node, turn)


def test_what_happens_in_the_place_of_what_was_taken_back_is_news(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalChain() as chain:
        news = News(chain.treasury, {chain.treasury.address: "the operator"})
        chain.rpc("evm_setIntervalMining", 0)
        chain.rpc("evm_setAutomine", True)
        before = chain.rpc("evm_snapshot")
        task = propose(chain)
        chain.mine(10)
        assert "TaskProposed" in {event.name for event in news.log_new()}
        assert chain.rpc("evm_revert", before)
        assert news.log_new() == []
        assert propose(chain) == task
        assert "TaskProposed" in {event.name for event in news.log_new()}
    proposed = [one for one in told(capsys) if one["event"] == "task-proposed"]
    assert [(one["task"], one["operator"]) for one in proposed] == [(task, "the operator")] * 2


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Children that run `ends.py`: it ends at once with the exit code that it is given."""
    monkeypatch.chdir(tmp_path)  # where `python -m` looks first
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(int(sys.argv[1]))\n")
    with Processes(tmp_path / "logs") as processes:
        yield processes


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def ended(processes: Processes, count: int = 1) -> None:
    until = time.monotonic() + 30
    while len(processes.lost()) < count:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_node_whose_owner_refuses_the_task_is_started_once(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    restarts = Restarts(tmp_path / "logs", processes, clock)
    processes.start("hospital-1-task-2", "ends", str(REFUSED))
    ended(processes)
    for _ in range(20):
        clock.now += LONGEST_PAUSE
        restarts.turn()
    assert processes.running() == []
    assert [(one["event"], one["process"]) for one in told(capsys)] == [("process-refused", "hospital-1-task-2")]


def test_process_that_fails_is_started_again_later_each_time_and_given_up(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    restarts = Restarts(tmp_path / "logs", processes, clock)
    processes.start("hospital-1-task-2", "ends", "1")
    for _ in range(MOST_STARTS + 3):
        ended(processes)
        restarts.turn()
        clock.now += LONGEST_PAUSE
        restarts.turn()
    said = told(capsys)
    assert [one["again_in_s"] for one in said[:-1]] == [2, 4, 8, 16, 32, 60, 60, 60]
    assert (said[-1]["event"], said[-1]["starts"]) == ("process-given-up", MOST_STARTS + 1)


def test_server_is_never_given_up_and_one_that_lasted_starts_anew_soon(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    restarts = Restarts(tmp_path / "logs", processes, clock)
    processes.serve("api", "ends", "0")
    for _ in range(MOST_STARTS + 3):
        ended(processes)
        restarts.turn()
        clock.now += LONGEST_PAUSE
        restarts.turn()
    ended(processes)
    clock.now += LASTING
    restarts.turn()
    assert [one["again_in_s"] for one in told(capsys)] == [2, 4, 8, 16, 32, *[60] * (MOST_STARTS - 2), 2]


def test_processes_that_fall_together_start_one_by_one(processes: Processes, tmp_path: Path) -> None:
    clock = Clock()
    restarts = Restarts(tmp_path / "logs", processes, clock)
    (tmp_path / "stays.py").write_text("import pathlib, sys, time\nif pathlib.Path('up').exists(): time.sleep(60)\n")
    for name in ("voter-1", "voter-2", "voter-3"):
        processes.serve(name, "stays")
    ended(processes, 3)
    (tmp_path / "up").touch()
    restarts.turn()
    clock.now += LONGEST_PAUSE
    for count in (1, 2, 3):
        restarts.turn()
        assert len(processes.running()) == count


def network_of(chain: LocalChain, folder: Path, hospitals: dict[str, HospitalHome]) -> StandingNetwork:
    store, raw = ArtifactStore(folder / "artifacts"), f'name = "theirs"\n{DATA}\n[model]\nname = "logistic"\n'
    settings = NetworkSettings(chain.node.url, folder / "deployment.json", folder / "artifacts", chain.treasury.address)
    return StandingNetwork(
        options=options(folder), data=cast(DemoData, None), task_file=folder / "task.toml",
        spec=parse_task_spec(raw.encode()), operator=chain.treasury, store=store, settings=settings,
        aggregator=chain.treasury.address, hospitals=hospitals, voters={}, held_out=[folder / "voter-1.csv"],
    )  # fmt: skip


def test_task_that_a_policy_refuses_starts_no_hospital(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with LocalChain() as chain:
        chain.deployment.write(tmp_path / "deployment.json")
        settings = {"chain_url": chain.node.url, "deployment": str(tmp_path / "deployment.json"),
                    "artifacts": str(tmp_path / "artifacts"), "data": "rows.csv"}  # fmt: skip
        policy = {"operators": [chain.treasury.address], "models": "any", "columns": "any"}
        home = HospitalHome.create(tmp_path / "hospital-1", settings, policy)
        network, stranger = network_of(chain, tmp_path, {"hospital-1": home}), chain.funded()
        digest = network.store.put_file(f'name = "theirs"\n{DATA}\n[model]\nname = "logistic"\n'.encode())
        task = stranger.operator.propose(task_params(network.aggregator, spec_hash=digest))
        capsys.readouterr()
        tending = TaskJoiner(network, processes)
        tending.turn()
        tending.turn()
    (said,) = told(capsys)
    assert (said["event"], said["task"]) == ("not-joined", task)
    assert said["why"] == f"hospital-1: `operators` does not list its operator {stranger.address}"
    assert processes.running() == []


class Started:
    """Notes which processes are started, and starts none."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.names: list[str] = []

    def start(self, name: str, _module: str, *arguments: str) -> None:
        self.names.append(name)
        self.commands.append(list(arguments))

    def running(self) -> list[str]:
        return self.names


def test_a_model_is_derived_after_each_training_round_and_measured_if_the_rows_fit(tmp_path: Path) -> None:
    def ended(task: int, round_: int, name: str = "RoundSettled") -> Event:
        return Event(
            name=name, values={"taskId": task, "round": round_}, block=1, index=0, transaction="0x", contract="0x"
        )

    with LocalChain() as chain:
        network, started = network_of(chain, tmp_path, {}), Started()
        own = network.store.put_file(f'name = "own"\n{DATA}\n[model]\nname = "logistic"\n'.encode())
        for digest in (own, bytes(31) + b"1"):  # the second one's file is not in the store
            chain.treasury.operator.propose(task_params(network.aggregator, spec_hash=digest))
        deriver = ModelDeriver(network, cast(Processes, started))
        deriver.turn([ended(1, 0)])
        assert started.commands == []  # statistics are not a model
        deriver.turn([ended(1, 1), ended(2, 1, "RoundVoided")])
        deriver.turn([ended(1, 2), ended(1, 3)])
        assert started.names == ["model-of-task-1", "model-of-task-2"]  # the first one still runs
        started.names.remove("model-of-task-1")
        deriver.turn([])
        deriver.turn([])
        assert started.names == ["model-of-task-2", "model-of-task-1"]
        deriver.turn([ended(1, 3, "TaskEnded"), ended(2, 3, "TaskEnded")])  # the second one's rows are unknown
    assert started.names[2:] == ["references-of-task-1"]
    assert started.commands.pop()[-2:] == ["--output", str(tmp_path / "models" / "task-1-references.json")]
    assert (tmp_path / "models" / "task-1.toml").read_bytes().startswith(b'name = "own"')
    measured = [
        command[command.index("--measure-on") + 1 :] for command in started.commands if "--measure-on" in command
    ]
    assert measured == [[str(tmp_path / "voter-1.csv"), "--onnx"]] * 2
    assert ["--onnx" in command for command in started.commands] == [True, False, True]  # unknown rows may be texts
    assert all("--replace" in command for command in started.commands)


def options(folder: Path) -> UpOptions:
    return UpOptions(
        home=folder, address_book=folder / "book.json", data=DataSet.WDBC, data_dir=None, hospitals=1, voters=0,
        rounds=1, task=False, port=1, chain_port=1, broker_url=None, database_url=None,
    )  # fmt: skip
