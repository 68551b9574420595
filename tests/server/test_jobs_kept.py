"""Leases, retries and logs of jobs, and each job's work without a queue."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from api_wallet import Wallet
from chain_driver import LocalChain, TaskDriver, task_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import ChainUnreachable
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import read_settings
from consilium_cli.main import app
from consilium_core.errors import ArtifactMissing, ConfigInvalid, StoreUnwritable
from consilium_core.logs import log_to
from consilium_server.config import BROKER_URL_VARIABLE, WITHIN_THE_PROCESS, WorkerSettings
from consilium_server.database.engine import connect, open_database, reading, writing
from consilium_server.database.tables import JobRow
from consilium_server.errors import ServerError, broker_unreachable
from consilium_server.index.indexer import Indexer
from consilium_server.index.rebuilding import reindex
from consilium_server.index.store import table_of
from consilium_server.jobs import pinning
from consilium_server.jobs.broker import Beat, Sender, make_app
from consilium_server.jobs.pinning import artifacts, pin, unpinned
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.jobs.runner import Job, Runner
from consilium_server.jobs.store import Ended, all_jobs, end, state_of, take
from consilium_server.jobs.ticking import OpenTask, is_overdue, move_on, open_tasks
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from indexed_network import IndexedNetwork, app_of
from pydantic import SecretStr
from raised_faults import raises_fault
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, ResponseError
from sqlalchemy import Engine, delete
from typer.testing import CliRunner
from voter_driver import FiledTask

PLAIN = Job("watch", 30.0, RetryPolicy(0.0, 0.0))

# Back-off


@given(first=st.floats(0.01, 100), most=st.floats(0.01, 10_000), failures=st.integers(1, 10**9), draw=st.floats(0, 1))
def test_a_wait_doubles_up_to_the_most_and_loses_at_most_half(
    first: float, most: float, failures: int, draw: float
) -> None:
    retry = RetryPolicy(first, most)
    whole = retry.seconds(failures, 0.0)
    assert whole <= most
    assert whole / 2 <= retry.seconds(failures, draw) <= whole
    assert whole <= retry.seconds(failures + 1, 0.0) <= 2 * whole * (1 + 1e-12)
    assert retry.seconds(0, draw) == 0
    assert retry.seconds(200, 0.0) == pytest.approx(most) or first * 2.0**64 < most


# Leases


def test_of_many_who_want_a_job_at_once_one_gets_it(database: Engine) -> None:
    taken: list[JobRow] = []

    def want(owner: str) -> None:
        if row := take(database, "index", "", owner, 100.0, 30.0):
            taken.append(row)

    threads = [threading.Thread(target=want, args=(f"worker {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    assert take(database, "index", "", "late", 129.9, 30.0) is None
    assert take(database, "tick", "1", "late", 129.9, 30.0) is not None  # another job's is free


def test_who_comes_after_a_lease_ran_out_has_the_last_word(database: Engine) -> None:
    lost = take(database, "tick", "7", "lost", 100.0, 30.0)
    second = take(database, "tick", "7", "second", 131.0, 30.0)
    assert lost is not None
    assert second is not None
    end(database, lost, "lost", 132.0, Ended("stale"))
    (row,) = all_jobs(database)
    assert (row.owner, row.mark, row.outcome, state_of(row, 132.0)) == ("second", None, None, "running")
    assert state_of(row, 162.0) == "lost"
    end(database, second, "second", 133.0, Ended("fresh"))
    (row,) = all_jobs(database)
    assert (row.mark, row.outcome, row.succeeded_at, state_of(row, 200.0)) == ("fresh", "done", 133.0, "done")


def test_a_lease_of_a_process_that_has_ended_here_holds_nobody_up(database: Engine) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    host = socket.gethostname()[:80]
    assert take(database, "index", "", f"{host}:{process.pid}:1", 100.0, 30.0) is not None
    assert take(database, "index", "", f"{host}:{os.getpid()}:2", 101.0, 30.0) is not None
    assert take(database, "index", "", f"{host}:{os.getpid()}:3", 102.0, 30.0) is None
    assert take(database, "watch", "", f"elsewhere:{process.pid}:1", 100.0, 30.0) is not None
    assert take(database, "watch", "", f"{host}:{os.getpid()}:2", 101.0, 30.0) is None


@pytest.mark.parametrize("ends", [False, True])
def test_what_was_written_by_a_clock_that_was_ahead_holds_nobody_up(ends: bool, database: Engine) -> None:
    """A clock that was an hour ahead, and was then corrected."""
    now, ahead = 1_000_000.0, 1_003_600.0
    row = take(database, "watch", "", "elsewhere:1:a", ahead, 15.0)
    assert row is not None
    if ends:
        end(database, row, "elsewhere:1:a", ahead, Ended(failure=("Away", "why"), wait=10.0))
    assert take(database, "watch", "", "elsewhere:2:b", now, 15.0) is not None
    # What is merely not quite the same time is believed: two would be at it otherwise.
    assert take(database, "watch", "", "elsewhere:3:c", now - 2.0, 15.0) is None


def test_failures_in_a_row_are_counted_and_waited_for_and_end_with_a_success(database: Engine) -> None:
    now = 1_000.0
    for count in (1, 2, 3):
        row = take(database, "pin", "1/0", "me", now, 30.0)
        assert row is not None
        end(database, row, "me", now, Ended(failure=("StoreMissing", "x" * 5_000), wait=10.0))
        (kept,) = all_jobs(database)
        assert (kept.failures, kept.outcome, kept.error) == (count, "failed", "StoreMissing")
        assert take(database, "pin", "1/0", "me", now + 9.9, 30.0) is None
        now += 10.0
    row = take(database, "pin", "1/0", "me", now, 30.0)
    assert row is not None
    end(database, row, "me", now, Ended(lasts=False))  # only set off: no success yet
    assert [(kept.failures, kept.outcome) for kept in all_jobs(database)] == [(3, "begun")]
    row = take(database, "pin", "1/0", "me", now, 30.0)
    assert row is not None
    end(database, row, "me", now, Ended())
    (kept,) = all_jobs(database)
    assert (kept.failures, kept.outcome, kept.error, kept.why) == (0, "done", None, None)


# Running


class Told:
    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, fields: Any) -> None:
        self.lines.append((event, dict(fields)))


def raising(error: Exception) -> Callable[[JobRow], Ended]:
    def work(row: JobRow) -> Ended:
        raise error

    return work


def test_whatever_a_job_raises_is_told_and_kept_and_ends_there(database: Engine) -> None:
    told, runner = Told(), Runner(database)
    job = Job("tick", 30.0, RetryPolicy(0.0, 0.0))
    with log_to(told):
        runner.run(job, "3", raising(ChainUnreachable("http://h", "Timeout")))
        runner.run(job, "3", raising(RuntimeError("s3cret")))
    assert [event for event, _ in told.lines] == ["job-failed", "job-failed"]
    (_, known), (_, unforeseen) = told.lines
    assert (known["job"], known["task"], known["error"], known["failures"]) == ("tick", 3, "ChainUnreachable", 1)
    assert "trace" not in known
    assert (unforeseen["error"], unforeseen["failures"]) == ("RuntimeError", 2)
    assert unforeseen["trace"][-1].startswith("server/test_jobs_kept.py:")
    (row,) = all_jobs(database)
    assert (row.error, row.failures) == ("RuntimeError", 2)
    assert "s3cret" not in repr(told.lines) + repr(row)
    with log_to(told):
        runner.run(job, "3", lambda row: Ended())
    assert told.lines[-1][0] == "job-recovered"


def test_a_database_that_is_away_is_waited_for_by_the_process_alone(tmp_path: Path) -> None:
    away = connect("postgresql://u:s3cret@127.0.0.1:1/x")
    told, runner, done = Told(), Runner(away), list[JobRow]()
    job = Job("index", 30.0, RetryPolicy(0.4, 0.4))

    def work(row: JobRow) -> Ended:
        done.append(row)
        return Ended()

    with log_to(told):
        for _ in range(5):
            runner.run(job, "", work)
        assert [(event, fields["error"]) for event, fields in told.lines] == [("job-failed", "DatabaseUnreachable")]
        time.sleep(0.4)
        runner.run(job, "", lambda row: Ended())
    assert [fields["failures"] for _, fields in told.lines] == [1, 2]
    assert done == []
    assert "s3cret" not in repr(told.lines)
    away.dispose()


# Settings


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis",
        "redis://",
        "amqp://u:s3cret@h",
        "redis://h:s3cret/0",
        "redis://h:0/0",
        "redis://h/0?password=s3cret",
    ],
)
def test_a_broker_that_is_none_is_not_repeated(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BROKER_URL_VARIABLE, raising=False)
    settings = WorkerSettings(
        home=Path("h"),
        chain_url="http://c",
        deployment=Path("d"),
        artifacts=(Path("a"),),
        broker_url=SecretStr(url or "x://y"),
    )
    with raises_fault(ServerError, "BrokerUrlInvalid") as caught:
        _ = settings.broker
    assert "s3cret" not in str(caught.value) + repr(settings)


def test_the_environment_goes_before_the_file_and_without_either_jobs_stay_within(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(BROKER_URL_VARIABLE, raising=False)
    places = {"home": Path("h"), "deployment": Path("d"), "artifacts": (Path("a"),)}
    base: dict[str, Any] = {"chain_url": "http://c", **places}
    assert WorkerSettings(**base).broker == WITHIN_THE_PROCESS
    named = WorkerSettings(**base, broker_url=SecretStr("redis://:a@h:1/2"))
    assert named.broker == "redis://:a@h:1/2"
    monkeypatch.setenv(BROKER_URL_VARIABLE, "rediss://:b@h:1/2")
    assert named.broker == "rediss://:b@h:1/2"


def test_what_a_broker_does_not_take_is_done_here_unless_it_comes_too_late() -> None:
    places: dict[str, Any] = {"home": Path("h"), "deployment": Path("d"), "artifacts": (Path("a"),)}
    settings = WorkerSettings(**places, chain_url="http://c", broker_url=SecretStr("redis://127.0.0.1:1/0"))
    app, told, done = make_app(settings, "jobs"), Told(), []

    def work(task: int) -> None:
        done.append((task, threading.current_thread().name))
        time.sleep(0.3)

    app.task(work, name="work")
    sender = Sender(app, 1)
    with log_to(told):
        sender.send("work", (1,), 60.0)
        sender.send("work", (2,), 0.2)  # whose turn comes when that is over
        sender.send("work", (3,), 60.0)
        until = time.monotonic() + 10.0
        while len(done) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        sender.end()
        sender.send("work", (4,), 60.0)
    assert [task for task, _ in done] == [1, 3]
    assert threading.current_thread().name not in {thread for _, thread in done}
    event, fields = told.lines[0]
    assert (event, fields["error"], fields["failures"]) == ("broker-failed", "ConnectionError", 1)
    assert 0.5 <= fields["wait"] <= 1.0
    assert sender.failure is not None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), "MISCONF"),
        (ResponseError("Command # 1 (LPUSH q s3cret) of pipeline caused error: NOREPLICAS Not enough"), "NOREPLICAS"),
        (OutOfMemoryError("command not allowed when used memory > 'maxmemory'.", status_code="OOM"), "OOM"),
        (RedisConnectionError("Error 111 connecting to redis://:s3cret@h"), "ConnectionError"),
        (ResponseError("S3CRET"), "ResponseError"),
    ],
)
def test_what_a_broker_refuses_with_is_its_code_and_none_of_its_words(error: Exception, cause: str) -> None:
    found = broker_unreachable(error)
    assert found.values["cause"] == cause
    assert "s3cret" not in str(found).lower()


class Noted(Sender):
    """Records jobs and their validity. The first call fails. The call of number `count` stops the beat."""

    def __init__(self, count: int) -> None:
        self.sent: list[tuple[str, float]] = []
        self._count = count
        self.beat: Beat | None = None

    def send(self, job: str, arguments: tuple[int, ...], seconds: float) -> None:
        self.sent.append((job, seconds))
        if self.beat is not None and len(self.sent) == self._count:
            self.beat.stop()
        if len(self.sent) == 1:
            raise ValueError("s3cret")


def test_a_beat_that_fails_says_where_and_goes_on() -> None:
    told, sender = Told(), Noted(3)
    sender.beat = Beat(sender, {"look": 0.01})
    with log_to(told):
        sender.beat.run()
    assert sender.sent == [("look", 0.01)] * 3
    ((event, fields),) = told.lines
    assert (event, fields["error"], fields["trace"][-1].endswith(" send")) == ("beat-failed", "ValueError", True)
    assert "s3cret" not in repr(told.lines)


def test_a_beat_sends_each_job_in_its_own_time_and_goes_by_no_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Noted(120)
    sender.beat = Beat(sender, {"often": 0.005, "seldom": 0.05})
    monkeypatch.setattr(time, "time", lambda: 0.0)
    sender.beat.run()
    seldom = sender.sent.count(("seldom", 0.05))
    assert 3 <= seldom <= 60
    assert sender.sent.count(("often", 0.005)) == 120 - seldom


def test_half_an_account_is_none(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text(
        'home = "h"\nchain_url = "http://c"\ndeployment = "d"\nartifacts = "a"\nkeystore = "k"\n'
    )
    with pytest.raises(ConfigInvalid, match="give both, or neither"):
        read_settings(tmp_path / "w.toml", WorkerSettings)


# Moving tasks on


def reader(chain: LocalChain) -> Ledger:
    return Ledger(Connection(chain.node.url), chain.deployment)


def nonce(ledger: Ledger) -> int:
    return int(ledger.connection.web3.eth.get_transaction_count(ledger.connection.address))


def test_who_is_overdue() -> None:
    def task(phase: Phase, deadline: int) -> OpenTask:
        return OpenTask(1, "0x", phase, deadline, 1_000)

    assert not is_overdue(task(Phase.SCORING, 2_000), 2_010, 10)
    assert is_overdue(task(Phase.SCORING, 2_000), 2_011, 10)
    # Without a deadline it is the beacon that is waited for: from the phase's beginning.
    assert not is_overdue(task(Phase.FORMING, 0), 1_070, 10)
    assert is_overdue(task(Phase.DRAWING, 0), 1_071, 10)
    assert not is_overdue(task(Phase.JOINING, 0), 10**9, 10)


def test_many_who_move_a_task_on_at_once_do_so_once(local_chain: LocalChain) -> None:
    aggregator = local_chain.funded()
    task = local_chain.treasury.operator.propose(task_params(aggregator.address, join_window=60))
    movers = [local_chain.funded(0) for _ in range(3)]
    assert all(move_on(mover, task) is None for mover in movers)  # it is not time
    local_chain.pass_time(120)
    receipts = []

    def move(mover: Ledger) -> None:
        receipts.append(move_on(mover, task))

    threads = [threading.Thread(target=move, args=(mover,)) for mover in movers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert local_chain.treasury.tasks.state(task).phase is Phase.ENDED
    assert sum(receipt is not None for receipt in receipts) == 1
    assert len(receipts) == 3
    before = sum(map(nonce, movers))
    assert [move_on(mover, task) for mover in movers] == [None] * 3
    assert sum(map(nonce, movers)) == before


def test_a_task_whose_aggregator_is_gone_is_led_to_its_end(local_chain: LocalChain) -> None:
    driver = TaskDriver(local_chain, terms={"rounds": 1}).to_committing()  # and here the aggregator stops
    mover, phases = local_chain.funded(0), []
    for _ in range(12):
        state = local_chain.treasury.tasks.state(driver.task)
        if state.phase is Phase.ENDED:
            break
        phases.append(state.phase)
        if state.deadline:
            driver.pass_deadline()
        else:
            driver.beacon()
        assert move_on(mover, driver.task) is not None
    assert local_chain.treasury.tasks.state(driver.task).phase is Phase.ENDED
    assert Phase.FORMING in phases or Phase.COMMITTING in phases
    driver.home()


def test_a_judged_round_is_settled_by_whoever_comes(local_chain: LocalChain) -> None:
    driver = TaskDriver(local_chain, terms={"rounds": 1}).to_committing().commit_all()
    driver.publish()
    mover = local_chain.funded(0)
    driver.beacon()
    assert move_on(mover, driver.task) is not None  # draws the seats
    drawn_to = driver.phase
    assert drawn_to is Phase.SCORING
    driver.vote([[0]])
    assert move_on(mover, driver.task) is not None
    assert driver.phase is Phase.ENDED
    assert driver.events("RoundSettled")
    driver.home()


# Copies


@pytest.fixture
def filed(local_chain: LocalChain, tmp_path: Path) -> FiledTask:
    task = FiledTask(local_chain, tmp_path)
    task.join()
    (voter,) = local_chain.staked(Role.VOTER, 1)
    voter.voter.join(task.task)
    return task.to_drawing()


def test_what_the_chain_names_is_copied_once_and_again_when_more_is_named(
    filed: FiledTask, local_chain: LocalChain, database: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinning, "MOST_AT_ONCE", 10**6)  # other tests' tasks come first
    mirror, locations = tmp_path / "mirror", ["mirror"]
    store = ArtifactStore([tmp_path / "artifacts", mirror])
    assert store.has_writable_mirrors
    Indexer(reader(local_chain), database, store).catch_up()
    with reading(database) as connection:
        assert filed.task in [one.number for one in open_tasks(connection)]
        lacking = [one for one in unpinned(connection, locations, 0.0) if one[0] == filed.task]
        assert lacking == [(filed.task, 0)]
        named, mark = artifacts(connection, filed.task, 0, locations)
    assert (len(named.files), len(named.blobs)) == (1, 1)
    assert pin(store, named) == 2
    assert ArtifactStore(mirror).get_file(named.files[0]) == store.get_file(named.files[0])
    assert ArtifactStore(mirror).get_blobs(named.blobs) == store.get_blobs(named.blobs)
    row = take(database, "pin", f"{filed.task}/0", "me", 1.0, 30.0)
    assert row is not None
    end(database, row, "me", 2.0, Ended(mark))
    with reading(database) as connection:
        assert (filed.task, 0) not in unpinned(connection, locations, 3.0)
        assert (filed.task, 0) in unpinned(connection, ["mirror", "another"], 3.0)


def test_what_cannot_be_copied_keeps_nothing_else_from_it(
    filed: FiledTask, local_chain: LocalChain, database: Engine, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    store = ArtifactStore([tmp_path / "artifacts", tmp_path / "file" / "below", tmp_path / "mirror"])
    Indexer(reader(local_chain), database, store).catch_up()
    with reading(database) as connection:
        named, _ = artifacts(connection, filed.task, 0, [])
    named.blobs.insert(0, bytes(31) + b"\1")  # nobody has stored it
    named.files.insert(0, bytes(32))
    (tmp_path / "mirror").mkdir()
    with pytest.raises(ArtifactMissing):
        pin(ArtifactStore([tmp_path / "artifacts", tmp_path / "mirror"]), named)
    assert ArtifactStore(tmp_path / "mirror").get_file(named.files[1])
    assert ArtifactStore(tmp_path / "mirror").get_blobs(named.blobs[1:])
    del named.blobs[0], named.files[0]
    with pytest.raises(StoreUnwritable):
        pin(store, named)


# Beside the index


def test_jobs_are_no_part_of_what_is_compared_and_outlast_a_rebuilding(
    local_chain: LocalChain, database: Engine, tmp_path: Path
) -> None:
    ledger = reader(local_chain)
    row = take(database, "index", "", "me", 1.0, 30.0)
    assert row is not None
    end(database, row, "me", 2.0, Ended("kept"))
    Indexer(ledger, database).catch_up()
    rows = reindex(ledger, database, None, tmp_path, replace=False)
    with writing(database) as connection:
        connection.execute(delete(table_of(JobRow)))
    assert reindex(ledger, database, None, tmp_path, replace=False) >= rows
    row = take(database, "index", "", "me", 1.0, 30.0)
    reindex(ledger, database, None, tmp_path, replace=True)
    assert [kept.job for kept in all_jobs(database)] == ["index"]


def test_admins_and_prometheus_hear_how_jobs_are_going(tmp_path: Path) -> None:
    network, wallet = IndexedNetwork(tmp_path), Wallet()
    now = time.time()
    for job, subject, ended in (
        ("index", "", Ended()),
        ("tick", "4", Ended(failure=("ChainUnreachable", "no chain node"), wait=60.0)),
        ("pin", "4/1", Ended("mark")),
    ):
        row = take(network.engine, job, subject, f"host:{os.getpid()}", now - 5, 30.0)
        assert row is not None
        end(network.engine, row, row.owner, now - 4, ended)
    with TestClient(app_of(network, admins=[wallet.address])) as client:
        headers = {"Authorization": f"Bearer {wallet.sign_in(client).json()['token']}"}
        found = client.get("/v1/jobs", headers=headers).json()
        assert [(one["job"], one["subject"], one["state"]) for one in found["items"]] == [
            ("tick", "4", "failed"), ("index", "", "done"), ("pin", "4/1", "done"),
        ]  # fmt: skip
        assert found["items"][0]["next_try_at"] > now
        assert (found["items"][0]["failures"], found["items"][0]["error"]) == (1, "ChainUnreachable")
        failed = client.get("/v1/jobs", headers=headers, params={"state": "failed", "limit": 1}).json()
        assert ([one["job"] for one in failed["items"]], failed["total"]) == (["tick"], 1)
        text = client.get("/metrics").text
    assert 'consilium_job_failures{job="tick"} 1.0' in text
    assert 'consilium_job_failures{job="index"} 0.0' in text
    assert 'consilium_job_seconds_since_success{job="tick"}' not in text
    (seconds,) = [line for line in text.splitlines() if line.startswith('consilium_job_seconds_since_success{job="pin')]
    assert 3 < float(seconds.split()[-1]) < 120


def test_the_command_shows_a_table_to_who_looks_and_lines_else(database_url: str, tmp_path: Path) -> None:
    config = tmp_path / "worker.toml"
    paths = {"home": str(tmp_path), "deployment": "none", "artifacts": "none", "chain_url": "http://127.0.0.1:1"}
    config.write_text(tomli_w.dumps(paths | {"database_url": database_url}))

    def said(*more: str, **environment: str) -> str:
        arguments = ["server", "jobs", "--config", str(config), *more]
        result = CliRunner().invoke(app, arguments, env=environment, catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    on_screen = {"FORCE_COLOR": "1", "COLUMNS": "200"}
    assert "no job has started yet" in said(**on_screen)
    database = open_database(database_url)
    for job, subject, ended in (
        ("watch", "", Ended(failure=("ChainUnreachable", "no [chain] node"), wait=3_600.0)),
        ("pin", "4/1", Ended("mark")),
    ):
        row = take(database, job, subject, "me", time.time(), 30.0)
        assert row is not None
        end(database, row, "me", time.time(), ended)
    database.dispose()
    assert [json.loads(line)["job"] for line in said().splitlines()] == ["watch"]
    assert [json.loads(line)["job"] for line in said("--all").splitlines()] == ["watch", "pin"]
    shown = said(**on_screen)
    assert "failed" in shown
    assert "ChainUnreachable: no [chain] node" in shown
    assert "all their artifacts are copied: 1 rounds" in shown
    assert "done" in said("--all", **on_screen)
