"""A watched task in MLflow and TensorBoard: each round's points once, however often one starts, and the model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.structs import INVALID_SCORE, Phase, Role, SlashReason
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import CARD, INDEX, MODEL, PROOF
from consilium_operators.tracking.follower import Tracking, tracked_task
from consilium_operators.tracking.mlflow_server import MlflowServer
from consilium_operators.tracking.points import Point, PointKey, points_of
from consilium_operators.tracking.tensorboard_files import TensorBoardFiles
from consilium_operators.watching import Entry, EventFeed
from mlflow_driver import RecordingMlflow
from raised_faults import raises_fault
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner
from voter_driver import TASK, FiledTask

A, B, C = ("0x" + digit * 40 for digit in "abc")
TEXT = TASK.replace("rounds = 1", "rounds = 2")


# --- the points of events ------------------------------------------------------------------------------------------


def entry(name: str, time: int, **values: object) -> Entry:
    return Entry(Event(name, {"taskId": 1, **values}, time, 0, "0x", "0x"), time, None)


def phase(round_: int, phase_: Phase, time: int) -> Entry:
    return entry("PhaseStarted", time, round=round_, phase=int(phase_), deadline=0)


EVENTS = [
    phase(0, Phase.JOINING, 0),
    entry("HospitalJoined", 1, hospital=A), entry("VoterJoined", 2, voter=B),
    entry("AggregatorJoined", 3, aggregator=C),
    phase(1, Phase.COMMITTING, 10),
    phase(1, Phase.SCORING, 25),
    entry("Slashed", 40, round=1, account=B, amount=TOKEN // 4, reason=int(SlashReason(1))),
    entry("Rewarded", 40, round=1, account=A, amount=3 * TOKEN), entry("Rewarded", 40, round=1, account=C, amount=1),
    entry("BountyPaid", 40, round=1, account=A, amount=TOKEN),
    entry("RoundSettled", 40, round=1, medians=(40_000, -30_000, INVALID_SCORE), acceptedCohorts=0b101),
    phase(2, Phase.COMMITTING, 40),
    entry("RoundVoided", 50, round=2, reason=1),
    entry("TaskEnded", 50, refund=0, burnt=0),
]  # fmt: skip
FIRST = {
    "settled": 1, "accepted/cohorts": 2, "accepted/cohort-0": 1, "accepted/cohort-1": 0, "accepted/cohort-2": 1,
    "median/cohort-0": 0.04, "median/cohort-1": -0.03, "seconds/committing": 15, "seconds/scoring": 15,
    "pay/hospitals": 3, "pay/aggregator": 1e-18, "pay/bounties": 1, "slashed/voters": 0.25, "slashes": 1,
}  # fmt: skip


def test_a_round_is_told_whole_when_the_next_begins() -> None:
    points = points_of(EVENTS)
    assert {point.name: point.value for point in points if point.step == 1} == FIRST
    assert {point.time for point in points if point.step == 1} == {40}
    assert {point.name: point.value for point in points if point.step == 2} == {
        "settled": 0, "slashes": 0, "seconds/committing": 10,
    }  # fmt: skip
    assert points_of(EVENTS[:11]) == []  # settled, and not yet over


class Kept:
    """A tracker in memory."""

    location = "here"

    def __init__(self) -> None:
        self.points: list[Point] = []

    def kept(self) -> dict[PointKey, float]:
        return {point.key: point.value for point in self.points}

    def add(self, points: Sequence[Point]) -> None:
        self.points += points

    def has_model(self) -> bool:
        return True

    def add_model(self, folder: Path) -> None: ...

    def end(self) -> None: ...


def test_each_point_is_sent_once_in_any_parts_and_after_a_new_start() -> None:
    kept = Kept()
    for parts in ([EVENTS], [EVENTS[:7], [], EVENTS[7:12], EVENTS[12:]], [[one] for one in EVENTS]):
        tracking = Tracking([kept])
        for part in parts:
            tracking.take(part, 1_000)
    assert kept.points == points_of(EVENTS)


def test_a_chain_that_is_taken_back_corrects_its_round_alone() -> None:
    kept = Kept()
    tracking = Tracking([kept])
    tracking.take(EVENTS[:12], 41)
    tracking.take([], 40)  # the block that settled the round is gone
    other = entry("RoundSettled", 45, round=1, medians=(50_000,), acceptedCohorts=1)
    tracking.take([other, phase(2, Phase.COMMITTING, 45)], 46)
    assert kept.kept()["median/cohort-0", 1] == 0.05
    assert kept.kept()["seconds/scoring", 1] == 20
    assert Counter(point.name for point in kept.points)["seconds/committing"] == 1  # the same as before


# --- a task on a chain -----------------------------------------------------------------------------------------------


@dataclass
class Played:
    """A task of two training rounds that is over: the first accepted, the second rejected."""

    chain: LocalChain
    task: FiledTask
    folder: Path

    def watch(self, *more: str) -> tuple[int, str, BaseException | None]:
        given = ["--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json"), *more]
        ran = CliRunner().invoke(app, ["operator", "watch", str(self.task.task), *given])
        return ran.exit_code, ran.output, ran.exception

    def points(self) -> list[Point]:
        feed, entries = EventFeed(self.chain.treasury, self.task.task), list[Entry]()
        while feed.next_block <= self.chain.treasury.connection.blocks.number():
            entries += [one for one in feed.read() if one.event.values.get("taskId") == self.task.task]
        return points_of(entries)

    @property
    def artifacts(self) -> str:
        return str(self.folder / "artifacts")


@pytest.fixture(scope="module")
def played(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("tracked")
    local_chain.deployment.write(folder / "book.json")
    task = FiledTask(local_chain, folder, TEXT)
    task.judges, task.voters = local_chain.staked(Role.VOTER, 1), 1
    task.join(rows=[8]).first_round()
    for score in (40_000, -30_000):
        task.form().commit_all().publish()
        task.draw().judge([[score]])
    assert task.phase is Phase.ENDED
    return Played(local_chain, task, folder)


@pytest.fixture
def server() -> Iterator[RecordingMlflow]:
    with RecordingMlflow() as running:
        yield running
        assert running.unknown == []


def in_files(folder: Path) -> list[tuple[str, int, float]]:
    """All points of all event files, also those that stand twice."""
    found = []
    for path in folder.glob("events.out.tfevents.*"):
        events = EventAccumulator(str(path), size_guidance={"scalars": 0})
        events.Reload()
        found += [
            (name, one.step, round(one.value, 6)) for name in events.Tags()["scalars"] for one in events.Scalars(name)
        ]
    return sorted(found)


def rounded(points: Sequence[Point]) -> list[tuple[str, int, float]]:
    return sorted((point.name, point.step, round(point.value, 6)) for point in points)


def test_both_get_all_rounds_and_the_model_and_nothing_twice(
    played: Played, server: RecordingMlflow, tmp_path: Path
) -> None:
    given = ("--mlflow", server.url, "--tensorboard", str(tmp_path / "board"), "--artifacts", played.artifacts)
    for _ in range(2):
        code, said, error = played.watch(*given)
        assert (code, error) == (0, None), said
        events = [json.loads(line)["event"] for line in said.splitlines()]  # nothing else is printed
        assert (events[0], events.count("round-settled"), events.count("task-ended")) == ("task-proposed", 3, 1)
    assert "tracked" not in events  # the second time there was nothing to send
    run, points = server.run, played.points()
    assert run.steps("median/cohort-0") == [(1, 0.04), (2, -0.03)]
    assert run.steps("accepted/cohorts")[1:] == [(1, 1.0), (2, 0.0)]
    assert run.steps("pay/hospitals")[0][1] == 350.0
    assert sorted((name, step, round(value, 6)) for name, step, value, _ in run.metrics) == rounded(points)
    assert {at for _, _, _, at in run.metrics} == {1_000 * point.time for point in points}
    assert (run.status, run.params["rounds"]) == ("FINISHED", "2")
    (folder,) = (tmp_path / "board").iterdir()
    assert in_files(folder) == rounded(points)
    assert folder.name == run.tags["consilium.task"]
    assert {path.name for path in (folder / "model").iterdir()} == {CARD, INDEX, MODEL, PROOF}
    (number,) = server.runs
    assert server.files == {f"{number}/model/{path.name}": path.read_bytes() for path in (folder / "model").iterdir()}
    assert server.calls["upload"] == 4  # by the first watch


def test_an_interrupted_watch_continues_where_it_ended(played: Played, server: RecordingMlflow, tmp_path: Path) -> None:
    ledger = played.chain.treasury
    task, points = tracked_task(ledger, played.task.task), played.points()
    for tracker in (MlflowServer(server.url, task), TensorBoardFiles(tmp_path / "board", task)):
        tracker.add(points[: len(points) // 2])  # a part of a round
    code, said, error = played.watch("--mlflow", server.url, "--tensorboard", str(tmp_path / "board"))
    assert (code, error) == (0, None), said
    assert len(server.runs) == 1
    assert sorted((name, step, round(value, 6)) for name, step, value, _ in server.run.metrics) == rounded(points)
    assert in_files(tmp_path / "board" / task.name) == rounded(points)
    assert server.files == {}  # no --artifacts, no model


def test_an_upload_that_failed_is_repeated(played: Played, server: RecordingMlflow) -> None:
    server.refuses.add("upload")
    given = ("--mlflow", server.url, "--artifacts", played.artifacts)
    _, _, error = played.watch(*given)
    assert isinstance(error, OperatorError)
    assert error.name == "TrackingFailed"
    server.refuses.clear()
    code, said, _ = played.watch(*given)
    assert code == 0, said
    assert len(server.files) == 4
    assert len(server.run.steps("median/cohort-0")) == 2


def test_a_server_that_refuses_is_named_without_its_text(played: Played, server: RecordingMlflow) -> None:
    server.refuses.add("runs/log-batch")
    task = tracked_task(played.chain.treasury, played.task.task)
    with raises_fault(OperatorError, "TrackingFailed", match="PERMISSION_DENIED") as caught:
        MlflowServer(server.url, task)
    assert "a text of the server" not in str(caught.value)
    assert caught.value.values["location"] == server.url


def test_nothing_is_reported_to_mlflows_makers() -> None:
    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--mlflow", "http://me:secret@127.0.0.1:1"], "MLFLOW_TRACKING_USERNAME"),
        (["--mlflow", "mlruns"], "not the URL of a server"),
        (["--artifacts", "store"], "--mlflow or --tensorboard"),
        (["--tensorboard", "board", "--once"], "without --mlflow"),
    ],
)
def test_options_that_do_not_go_are_refused(played: Played, given: list[str], words: str) -> None:
    code, said, _ = played.watch(*given)
    assert code == 2
    assert words in " ".join(said.replace("│", " ").split())
    assert "secret" not in said


@pytest.mark.parametrize(("option", "module"), [("--mlflow", "mlflow"), ("--tensorboard", "tensorboard")])
def test_a_missing_extra_is_named(played: Played, tmp_path: Path, option: str, module: str) -> None:
    script = "import sys; sys.modules[sys.argv.pop(1)] = None; from consilium_cli.main import main; main()"
    location = "http://127.0.0.1:1" if option == "--mlflow" else str(tmp_path)
    command = ["operator", "watch", str(played.task.task), "--rpc", played.chain.node.url, option, location]
    command += ["--address-book", str(played.folder / "book.json")]
    ran = subprocess.run([sys.executable, "-c", script, module, *command], capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert f"error (ExtraMissing): {module}" in ran.stderr
    assert "pip install 'consilium[tracking]'" in ran.stderr


def test_a_torn_event_file_loses_its_last_points_alone(played: Played, tmp_path: Path) -> None:
    """As after a power cut: what is left counts, and the rest is written again."""
    task, points = tracked_task(played.chain.treasury, played.task.task), played.points()
    first = TensorBoardFiles(tmp_path, task)
    first.add(points)
    first.end()
    (path,) = (tmp_path / task.name).iterdir()
    shutil.copyfile(path, tmp_path / "whole")
    path.write_bytes(path.read_bytes()[:-10])
    kept = TensorBoardFiles(tmp_path, task).kept()
    assert 0 < len(kept) < len(points)
    tracking = Tracking([TensorBoardFiles(tmp_path, task)])
    feed = EventFeed(played.chain.treasury, played.task.task)
    while feed.next_block <= played.chain.treasury.connection.blocks.number():
        own = [one for one in feed.read() if one.event.values.get("taskId") == played.task.task]
        tracking.take(own, feed.next_block)
    tracking.end()
    assert in_files(tmp_path / task.name) == rounded(points)
