"""`consilium server worker` as processes, with Redis and PostgreSQL and without: no work is lost if a process dies."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain, task_params
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.rpc.local_node import free_port, free_ports
from consilium_chain.settings import read_settings
from consilium_core.children import child_environment, started_at
from consilium_server.config import AggregatorSettings, WorkerSettings
from consilium_server.database.engine import open_database, reading, writing
from consilium_server.database.tables import JobRow, Source
from consilium_server.index.rebuilding import reindex
from consilium_server.index.store import add, checkpoint
from consilium_server.jobs.store import all_jobs
from consilium_server.jobs.supervisor import Supervisor
from index_driver import Traffic, changeable_chain
from postgres_driver import Postgres
from redis_driver import PASSWORD, Redis, running_redis
from voter_driver import TASK, FiledTask
from worker_driver import SHORT_RANGES, Worker, conducted, pid_in, until

Around = dict[str, Any]


@pytest.fixture(params=["embedded", "redis and postgresql"])
def around(request: pytest.FixtureRequest) -> Around:
    """Settings of the services around a worker."""
    if request.param == "embedded":
        return {}
    redis: Redis = request.getfixturevalue("redis_server")
    redis.client().flushall()
    postgres: Postgres = request.getfixturevalue("postgres")
    return {"broker_url": redis.url, "database_url": postgres.database()}


# What these tests look at, the broker and the kind of database have no part in.
ONE_AROUND = pytest.mark.parametrize(
    "around", ["embedded", pytest.param("redis and postgresql", marks=pytest.mark.deep)], indirect=True
)


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with changeable_chain() as chain:
        yield Traffic(chain, seed=3).steps(60)


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """A chain whose time the tests control."""
    with LocalChain() as chain:
        yield chain


def reader(chain: LocalChain) -> Ledger:
    return Ledger(Connection(chain.node.url), chain.deployment)


def url_of(worker: Worker, around: Around) -> str:
    url: str = around.get("database_url", f"sqlite:///{worker.home / 'index.sqlite'}")
    return url


def same_as_anew(worker: Worker, chain: LocalChain, around: Around) -> int:
    """The number of rows; raises IndexDiffers if a fresh index has others."""
    database = open_database(url_of(worker, around))
    try:
        return reindex(reader(chain), database, None, worker.folder, replace=False)
    finally:
        database.dispose()


def indexed(worker: Worker, chain: LocalChain, around: Around) -> Callable[[], bool]:
    """True if the database has the chain's latest events."""
    latest = max(event.block for event in reader(chain).logs.between())

    def look() -> bool:
        worker.home.mkdir(exist_ok=True)
        database = open_database(url_of(worker, around))
        try:
            with reading(database) as connection:
                found = checkpoint(connection)
            return found is not None and found.number >= latest
        finally:
            database.dispose()

    return look


@pytest.mark.parametrize("kills", [2, pytest.param(15, marks=pytest.mark.deep)])
def test_a_worker_killed_at_any_moment_leaves_what_the_next_goes_on_from(
    traffic: Traffic, around: Around, tmp_path: Path, kills: int
) -> None:
    source = random.Random(len(around) + kills)
    worker = Worker(traffic.chain, tmp_path, before=SHORT_RANGES, **around)

    def has_indexed(before: int) -> bool:
        return len(worker.told("indexed")) > before + source.randrange(5)

    with worker:
        for _ in range(kills):
            until(partial(has_indexed, len(worker.told("indexed"))))
            traffic.steps(source.randint(1, 5))
            time.sleep(source.uniform(0, 0.4))
            worker.end(signal.SIGKILL)
            traffic.reorganise(source.randint(1, 20))
            traffic.steps(3).touch()  # of refused transactions and empty blocks the worker tells nothing
            worker.start()
        until(indexed(worker, traffic.chain, around))
        assert worker.end() == 0
        assert worker.told("stopped")
    assert same_as_anew(worker, traffic.chain, around) > 150
    assert PASSWORD not in worker.said


def test_two_workers_go_on_by_themselves_whatever_becomes_of_redis(
    traffic: Traffic, redis_server: Redis, postgres: Postgres, tmp_path: Path
) -> None:
    around: Around = {"broker_url": redis_server.url, "database_url": postgres.database()}
    with Worker(traffic.chain, tmp_path / "a", **around) as first, Worker(traffic.chain, tmp_path / "b", **around):
        until(indexed(first, traffic.chain, around))
        for upset in (
            lambda: redis_server.restart(empty=False),
            lambda: redis_server.restart(empty=True),
            lambda: redis_server.client().flushall(),
        ):
            upset()
            traffic.steps(5).touch()
            until(indexed(first, traffic.chain, around))
        first.end(signal.SIGKILL)
        traffic.steps(5).touch()
        until(indexed(first, traffic.chain, around))  # by the other one
        said = first.said
    assert same_as_anew(first, traffic.chain, around) > 150
    said += (tmp_path / "b" / "said").read_text()
    assert "Connection to broker lost" in said  # by one of them at least: on a busy machine the other may sleep over it
    assert PASSWORD not in said


def row_of(worker: Worker, around: Around, job: str, subject: str) -> JobRow:
    database = open_database(url_of(worker, around))
    try:
        return next(row for row in all_jobs(database) if (row.job, row.subject) == (job, subject))
    finally:
        database.dispose()


def nonce(ledger: Ledger) -> int:
    return int(ledger.connection.web3.eth.get_transaction_count(ledger.connection.address))


def test_a_task_that_nobody_moves_on_is_moved_on_once_by_two_workers(
    chain: LocalChain, around: Around, tmp_path: Path
) -> None:
    account, stranger = chain.funded(0), chain.funded()
    task = chain.treasury.operator.propose(task_params(stranger.address, join_window=60))
    before = nonce(account)
    workers = [Worker(chain, tmp_path / name, account, **around) for name in ("a", "b")]
    with workers[0], workers[1]:
        for worker in workers:
            until(indexed(worker, chain, around))
        time.sleep(1.5)
        assert (nonce(account), chain.treasury.tasks.state(task).phase) == (before, Phase.JOINING)
        chain.pass_time(120)
        until(lambda: chain.treasury.tasks.state(task).phase is Phase.ENDED)
        time.sleep(2)
        spent = nonce(account) - before
        assert sum(len(worker.told("moved-on")) for worker in workers) == 1
    # Workers that share a database share its leases; of two that share nothing both may pay.
    assert spent == 1 or (not around and spent == 2)
    told = [line for worker in workers for line in worker.told("moved-on")]
    assert (told[0]["job"], told[0]["task"], told[0]["step"]) == ("tick", task, "tick")


@ONE_AROUND
def test_copies_reach_a_mirror_once_it_can_be_written_to_and_what_fails_is_seen(
    chain: LocalChain, around: Around, tmp_path: Path
) -> None:
    task = FiledTask(chain, tmp_path)
    task.join()
    chain.staked(Role.VOTER, 1)[0].voter.join(task.task)
    task.to_drawing()
    down = tmp_path / "down"
    down.write_text("no folder")
    store, mirror = str(tmp_path / "artifacts"), down / "mirror"
    own = f"{task.task}/0"
    with Worker(chain, tmp_path / "worker", **around, artifacts=[store, str(mirror)]) as worker:
        until(lambda: any(line.get("task") == task.task for line in worker.told("job-failed")))
        failed = row_of(worker, around, "pin", own)
        assert (failed.error, failed.failures >= 1) == ("StoreUnwritable", True)
        down.unlink()
        until(lambda: row_of(worker, around, "pin", own).outcome == "done")
        assert [line["artifacts"] for line in worker.told("pinned") if line["task"] == task.task] == [2]
        seen = worker.jobs()["pin", own]
        assert (seen["state"], seen["failures"], seen["error"]) == ("done", 0, None)
    checked = subprocess.run(
        [sys.executable, "-m", "consilium_cli.main", "artifacts", "check", str(mirror)],
        env=child_environment(), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (checked.returncode, checked.stdout.split(" ")[0] >= "2") == (0, True), checked
    assert ArtifactStore(mirror).get_file(task.params.spec_hash) == TASK.encode()
    task.pass_deadline()


# Conducting


def members_of(group: int) -> list[int]:
    """Running processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, own = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


@ONE_AROUND
def test_each_task_of_the_account_has_its_aggregator_whoever_is_killed(
    chain: LocalChain, around: Around, tmp_path: Path
) -> None:
    account, port = chain.funded(), free_ports(2)
    tasks = [conducted(chain, tmp_path, account, f"task {n} {len(around)}") for n in range(2)]
    settings: dict[str, Any] = {"artifacts": [str(tmp_path / "artifacts")], "first_superlink_port": port}
    settings["tracing"] = {"endpoint": "http://127.0.0.1:1"}  # nobody listens, and nothing waits for it
    with Worker(chain, tmp_path / "worker", account, **around, **settings) as worker:
        folders = [worker.home / "tasks" / chain.treasury.folder_name(task) for task in tasks]
        until(lambda: all(chain.treasury.tasks.state(task).aggregator_joined for task in tasks))
        found = [read_settings(folder / "node.toml", AggregatorSettings) for folder in folders]
        assert {one.superlink_port for one in found} == {port, port + 1}
        assert [one.task for one in found] == tasks
        assert {one.tracing and one.tracing.endpoint for one in found} == {"http://127.0.0.1:1"}
        first, second = (pid_in(folder) for folder in folders)
        assert first is not None
        assert second is not None
        assert len(members_of(first)) >= 2  # and its SuperLink

        # An aggregator is killed: its SuperLink goes, too, and another starts on the same port.
        os.kill(first, signal.SIGKILL)
        again = until(lambda: (pid := pid_in(folders[0])) != first and pid)
        assert again
        assert members_of(first) == []
        assert read_settings(folders[0] / "node.toml", AggregatorSettings) == found[0]
        failed = [line for line in worker.told("job-failed") if line["job"] == "conduct"]
        assert [(line["task"], line["error"]) for line in failed] == [(tasks[0], "AggregatorEnded")]
        until(lambda: b'"event": "joined"' in (folders[0] / "journal").read_bytes().split(b"started-by-worker")[-1])

        # A worker is killed: aggregators live, and the next worker starts none.
        worker.end(signal.SIGKILL)
        started = len(worker.told("aggregator-started"))
        worker.start()
        until(lambda: len(worker.told("working")) == 2)
        until(lambda: row_of(worker, around, "conduct", str(tasks[1])).begun_at > worker.told("working")[1]["at"])
        assert [pid_in(folder) for folder in folders] == [again, second]
        assert len(worker.told("aggregator-started")) == started == 3

        # It is told to stop: nothing is left.
        assert worker.end() == 0
        assert [members_of(pid) for pid in (again, second)] == [[], []]
        assert len(worker.told("aggregator-ended")) == 2
        assert not any(line.get("trace") for line in worker.told("job-failed"))


def test_a_bond_comes_back_although_the_aggregator_and_its_worker_died_as_the_task_ended(
    chain: LocalChain, tmp_path: Path
) -> None:
    account = chain.funded()
    task = conducted(chain, tmp_path, account, "a task that ends alone")

    def bonded() -> int:
        return account.staking.stake_of(account.address, Role.AGGREGATOR).locked

    settings: dict[str, Any] = {"artifacts": [str(tmp_path / "artifacts")], "first_superlink_port": free_port()}
    with Worker(chain, tmp_path / "worker", account, **settings) as worker:
        folder = worker.home / "tasks" / chain.treasury.folder_name(task)
        until(lambda: chain.treasury.tasks.state(task).aggregator_joined)
        assert bonded() > 0
        aggregator = pid_in(folder)
        assert aggregator is not None
        worker.end(signal.SIGKILL)
        os.killpg(aggregator, signal.SIGKILL)
        chain.pass_time(chain.treasury.tasks.params(task).join_window + 1)
        chain.treasury.phases.tick(task)
        assert chain.treasury.tasks.state(task).phase is Phase.ENDED
        worker.start()
        until(lambda: bonded() == 0)
        until(lambda: b'"event": "left"' in (folder / "journal").read_bytes())
        assert not list(folder.glob("superlink.sqlite*"))
        time.sleep(3.0)  # several looks at the folder
        assert len(worker.told("aggregator-started")) == 2


def test_tasks_that_waited_longest_come_first_and_those_that_run_wait(chain: LocalChain, tmp_path: Path) -> None:
    """So that those that always fail, or that run, keep no other from its aggregator."""
    settings = read_settings(Worker(chain, tmp_path, chain.funded()).config, WorkerSettings)
    settings.home.mkdir()
    ledger, database = reader(chain), open_database(settings.url)
    assert settings.key_files is not None
    supervisor = Supervisor(settings, settings.key_files, ledger, lambda task: False, database)
    database.dispose()

    def folder_of(name: str, file: str, content: str = "") -> None:
        folder = settings.home / "tasks" / name
        folder.mkdir(parents=True)
        (folder / file).write_text(content)

    folder_of(ledger.folder_name(5), "pid", f"{os.getpid()} {started_at(os.getpid())}")
    folder_of(ledger.folder_name(6), "pid", f"{os.getpid()} {1 + (started_at(os.getpid()) or 0)}")
    folder_of(ledger.folder_name(7), "superlink.sqlite")
    folder_of(ledger.folder_name(8).replace("0x", "0y"), "superlink.sqlite")
    folder_of("lost+found", "superlink.sqlite")
    now = time.time()
    looked = {"3": now - 2, "4": now - 60, "5": now - 3, "6": now - 3}
    assert supervisor.due([3, 4, 5, 6, 7], looked) == [7, 4, 6, 3]
    assert supervisor.due([5], {"5": now - 60}) == [5]
    assert supervisor.unfinished() == {7}


def test_a_redis_that_takes_no_writes_costs_no_aggregator_and_no_job(chain: LocalChain, tmp_path: Path) -> None:
    account = chain.funded()
    task = conducted(chain, tmp_path, account, "whatever Redis does")
    with running_redis(tmp_path / "redis") as redis, redis.client() as client:
        settings: dict[str, Any] = {"artifacts": [str(tmp_path / "artifacts")], "first_superlink_port": free_port()}
        with Worker(chain, tmp_path / "worker", account, broker_url=redis.url, **settings) as worker:
            folder = worker.home / "tasks" / chain.treasury.folder_name(task)

            def begun_since(then: float, job: str, subject: str) -> bool:
                return row_of(worker, {}, job, subject).begun_at > then

            def done_again(*jobs: str) -> None:
                """Waits until each of these jobs has a run that began after this call."""
                now = time.time()
                for job in jobs:
                    subject = str(task) if job == "conduct" else ""
                    until(partial(begun_since, now, job, subject))

            def failed(error: str) -> None:
                until(lambda: (told := worker.told("broker-failed")) and told[-1]["error"] == error)

            until(lambda: chain.treasury.tasks.state(task).aggregator_joined)
            first = pid_in(folder)
            assert first is not None
            assert not worker.told("broker-failed")

            # As with a full disk nothing is written, and who waits for messages is refused, too.
            client.config_set("min-replicas-to-write", 1)
            failed("NOREPLICAS")
            until(lambda: any("broker lost" in line["said"] for line in worker.told("log")))
            done_again("index", "watch", "conduct")
            assert row_of(worker, {}, "watch", "").error == "BrokerUnreachable"
            assert pid_in(folder) == first
            assert members_of(first)
            assert not worker.told("stopped")

            # Who is killed meanwhile is started again: a worker, and its aggregator.
            worker.end(signal.SIGKILL)
            os.killpg(first, signal.SIGKILL)
            worker.start()
            second = until(lambda: (pid := pid_in(folder)) != first and pid)
            assert second
            assert not worker.told("broker-recovered")
            client.config_set("min-replicas-to-write", 0)
            until(lambda: worker.told("broker-recovered"))
            until(lambda: row_of(worker, {}, "watch", "").outcome == "done")

            # It is full, then gone.
            client.config_set("maxmemory", 1)
            failed("OOM")
            redis.kill()
            failed("ConnectionError")
            done_again("index", "conduct")
            assert pid_in(folder) == second
            assert worker.end() == 0
            assert members_of(second) == []
            assert PASSWORD not in worker.said
            assert not any("trace" in line for line in worker.told("job-failed") + worker.told("beat-failed"))


def test_the_password_of_a_broker_that_refuses_it_is_in_no_output(
    traffic: Traffic, redis_server: Redis, tmp_path: Path
) -> None:
    wrong = redis_server.url.replace(PASSWORD, "wr0ng-p%40ss")
    with Worker(traffic.chain, tmp_path, broker_url=wrong) as worker:
        until(lambda: worker.told("broker-failed"))
        time.sleep(1)
        worker.end(signal.SIGKILL)
        assert "wr0ng" not in worker.said
        assert "p@ss" not in worker.said


def test_a_database_of_other_contracts_is_refused_at_the_start(traffic: Traffic, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'index.sqlite'}"
    database = open_database(url)
    with writing(database) as connection:
        add(connection, [Source(1, "0x" + 40 * "0")])
    database.dispose()
    with Worker(traffic.chain, tmp_path / "worker", database_url=url) as worker:
        until(lambda: "error (SourceMismatch)" in worker.said)
