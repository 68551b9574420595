"""`consilium up`: a network that stays, into which anybody's tasks can be proposed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import child_environment
from postgres_driver import running_postgres
from redis_driver import running_redis
from up_driver import Up, up


def consilium(up: Up, *arguments: str) -> str:
    """A command of somebody in another terminal."""
    rpc = ["--rpc", f"http://127.0.0.1:{up.chain_port}", "--address-book", str(up.address_book)]
    command = [sys.executable, "-m", "consilium_cli.main", *arguments, *rpc]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=child_environment(), cwd=up.home)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_network_stays_plays_what_is_proposed_and_replaces_a_lost_worker(tmp_path: Path) -> None:
    with up(tmp_path) as running:
        where = running.wait_for("up")
        assert where["task"] == 1
        running.wait_for("task-ended", task=1)
        assert running.get_until("/v1/tasks/1/rounds/1", outcome="settled")["accepted"]
        artifacts = ["--artifacts", where["artifacts"]]
        assert "holds" in consilium(running, "verify", "1", *artifacts)

        (worker,) = running.family("server worker")
        worker.kill()
        assert running.wait_for("process-ended", process="worker")["code"] == -signal.SIGKILL
        proposed = consilium(
            running, "operator", "propose", str(running.home / "task.toml"), "--aggregator", where["aggregator"],
            *artifacts, "--yes", "--again", "--not-private",
        )  # fmt: skip
        assert "task 2 is proposed" in proposed
        running.wait_for("joining", task=2)
        running.wait_for("task-ended", task=2)
        assert running.get_until("/v1/tasks/2/rounds/1", outcome="settled")["accepted"]


@pytest.mark.deep  # test_internet.py has both, too, in each `make test`
def test_network_on_redis_and_postgresql_has_no_other_database(tmp_path: Path) -> None:
    with running_postgres() as postgres, running_redis(tmp_path / "redis") as redis:
        given = {"CONSILIUM_DATABASE_URL": postgres.database(), "CONSILIUM_BROKER_URL": redis.url}
        with up(tmp_path, **given) as running:
            running.wait_for("up")
            running.wait_for("task-ended", task=1)
            assert running.get_until("/v1/tasks/1/rounds/1", outcome="settled")["accepted"]
            assert list(running.home.rglob("*.sqlite")) == list(running.home.rglob("superlink.sqlite"))


@pytest.mark.parametrize(
    ("flag", "url", "variable"),
    [
        ("--redis", "redis://:hunter2@127.0.0.1:6379/0", "CONSILIUM_BROKER_URL"),
        ("--database", "postgresql://me:hunter2@127.0.0.1/consilium", "CONSILIUM_DATABASE_URL"),
        ("--database", "postgresql://127.0.0.1/consilium?password=hunter2", "CONSILIUM_DATABASE_URL"),
    ],
)
def test_password_on_the_command_line_is_refused_unrepeated(flag: str, url: str, variable: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "consilium_cli.main", "up", flag, url]
    environment = child_environment() | {"COLUMNS": "200"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)
    assert ran.returncode == 2
    assert variable in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr
    assert os.listdir(tmp_path) == []


def test_taken_port_is_named_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "consilium_cli.main", "up", "--port", str(taken.getsockname()[1])]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=child_environment())
    assert ran.returncode == 1
    assert "for the API is in use" in ran.stderr
    assert os.listdir(tmp_path) == []
