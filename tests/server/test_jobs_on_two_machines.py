"""Workers of one account with a home each share its tasks: one aggregator a task, on the same port wherever it is."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from consilium_chain.rpc.local_node import free_ports
from consilium_chain.settings import read_settings
from consilium_server.config import AggregatorSettings, WorkerSettings
from consilium_server.jobs.aggregators import aggregators
from postgres_driver import Postgres
from redis_driver import Redis
from worker_driver import Worker, conducted, pid_in, until


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """A chain whose time the tests control."""
    with LocalChain() as chain:
        yield chain


def test_the_tasks_of_a_lost_machine_go_to_the_other_one(
    chain: LocalChain, redis_server: Redis, postgres: Postgres, tmp_path: Path
) -> None:
    account, url = chain.funded(), postgres.database()
    tasks = [conducted(chain, tmp_path, account, f"shared task {n}") for n in range(2)]
    redis_server.client().flushall()
    settings: dict[str, Any] = {
        "artifacts": [str(tmp_path / "artifacts")], "first_superlink_port": free_ports(2), "database_url": url,
        "broker_url": redis_server.url,
    }  # fmt: skip
    task_keys = [chain.treasury.folder_name(task) for task in tasks]
    one, two = (Worker(chain, tmp_path / name, account, **settings) for name in ("one", "two"))

    def ports(worker: Worker) -> dict[str, int]:
        configs = worker.home.glob("tasks/*/node.toml")
        return {file.parent.name: read_settings(file, AggregatorSettings).superlink_port for file in configs}

    with one, two:
        until(lambda: all(chain.treasury.tasks.state(task).aggregator_joined for task in tasks))
        until(lambda: len(one.told("aggregator-started") + two.told("aggregator-started")) == 2)
        before = ports(one) | ports(two)
        shown = [aggregators(read_settings(worker.config, WorkerSettings)) for worker in (one, two)]
        for mine, others in zip(*shown, strict=True):
            assert mine.superlink_port == before[chain.treasury.folder_name(mine.task)]
            assert mine.machine == socket.gethostname()
            assert mine.is_here is not others.is_here
        assert [found.task for found in shown[0]] == tasks
        assert sorted(before) == sorted(task_keys)
        assert len(set(before.values())) == 2
        time.sleep(3.0)  # several looks of each worker at each task
        started = one.told("aggregator-started") + two.told("aggregator-started")
        assert len(started) == 2

        # The machine with a task is lost. Its other half, if it has one, had its own task and goes on.
        lost, left = (one, two) if task_keys[0] in ports(one) else (two, one)
        moving = [task_key for task_key in task_keys if task_key in ports(lost)]
        groups = [pid for task_key in moving if (pid := pid_in(lost.home / "tasks" / task_key)) is not None]
        lost.end(signal.SIGKILL)
        for group in groups:
            os.killpg(group, signal.SIGKILL)
        until(lambda: set(ports(left)) == set(task_keys))
        until(lambda: len(left.told("aggregator-started")) == 2)
        assert ports(left) == before
        journals = [left.home / "tasks" / task_key / "journal" for task_key in moving]
        until(lambda: all(b'"event": "joined"' in journal.read_bytes() for journal in journals))

        # It comes back: its tasks stay where they are.
        lost.start()
        until(lambda: len(lost.told("working")) == 2)
        time.sleep(5.0)
        assert len(lost.told("aggregator-started")) == len(moving)
        assert [pid_in(lost.home / "tasks" / task_key) for task_key in moving] == [None] * len(moving)


def test_what_one_machine_has_no_room_for_another_one_takes(
    chain: LocalChain, postgres: Postgres, tmp_path: Path
) -> None:
    account, url = chain.funded(), postgres.database()
    tasks = [conducted(chain, tmp_path, account, f"task {n} of a full machine") for n in range(3)]
    settings: dict[str, Any] = {
        "artifacts": [str(tmp_path / "artifacts")], "first_superlink_port": free_ports(3), "database_url": url,
    }  # fmt: skip
    one = Worker(chain, tmp_path / "one", account, **settings, max_aggregators=2)
    two = Worker(chain, tmp_path / "two", account, **settings, max_aggregators=1)
    with one:
        until(lambda: len(one.told("aggregator-started")) == 2)
        full = until(lambda: [line for line in one.told("job-failed") if line["error"] == "MachineFull"])[0]
        assert "this machine runs 2: raise max_aggregators" in full["why"]
        shown = aggregators(read_settings(one.config, WorkerSettings))
        assert [found.task for found in shown if found.is_here] == sorted({*tasks} - {full["task"]})
        with two:
            until(lambda: all(chain.treasury.tasks.state(task).aggregator_joined for task in tasks))
            shown = aggregators(read_settings(two.config, WorkerSettings))
            assert [found.task for found in shown] == tasks
            assert [found.task for found in shown if found.is_here] == [full["task"]]
            assert len({found.superlink_port for found in shown}) == 3
            assert len(one.told("aggregator-started")) == 2
            assert len(two.told("aggregator-started")) == 1
