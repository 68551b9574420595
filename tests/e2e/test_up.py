"""`consilium up`: a network that stays, into which anybody's tasks can be proposed."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from consilium_chain.rpc.local_node import free_port
from consilium_core.children import child_environment
from postgres_driver import running_postgres
from redis_driver import running_redis
from terminal_driver import terminal
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
        voters = {log.stem for log in (running.home / "logs").glob("voter-*.jsonl")}
        assert reports_handed_in(running, len(voters)) == voters, "hospitals keep no rows out, and share nothing"
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


def reports_handed_in(up: Up, expected: int) -> set[str]:
    """The parties that handed a report in, without anybody's command."""
    for _ in range(60):
        logs = {log.stem: log.read_text() for log in (up.home / "logs").glob("*.jsonl")}
        found = {name for name, log in logs.items() if '"handed-in"' in log}
        if len(found) == expected:
            break
        time.sleep(1)
    return found


def commands_in(shown: str) -> list[str]:
    """The commands below the line `Try`, each with its line breaks."""
    _, _, below = shown.partition("Try, in another terminal")
    lines = below.partition("\n")[2].partition("\n\n")[0]
    return [command.strip() for command in re.split(r"(?<!\\)\n", lines) if command.strip()]


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for the Unix sockets below, of at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="up-") as folder:
        yield Path(folder)


def test_each_printed_command_runs_as_typed(short_path: Path) -> None:
    """In a folder with a `.venv`, as a checkout is, and in a terminal whose PATH has no `consilium`."""
    (short_path / ".venv").symlink_to(sys.prefix)
    environment = child_environment() | {"PATH": "/usr/bin:/bin", "TERM": "xterm", "OMP_NUM_THREADS": "1"}
    port, chain_port = free_port(), free_port()
    start = [".venv/bin/python", "-m", "consilium_cli.main", "up", "--hospitals", "3", "--voters", "2", "--rounds", "1",
             "--port", str(port), "--chain-port", str(chain_port)]  # fmt: skip
    with terminal(start, short_path, environment) as up:
        commands = commands_in(up.wait_for("server jobs"))
        told = []
        for command in commands:
            with terminal(["sh", "-c", command], short_path, environment) as one:
                one.type("y\n")  # the only question is before a payment
                assert one.wait() == 0, one.shown
                told.append(one.shown)
        up.process.send_signal(signal.SIGINT)
        assert up.wait(60) == 130
    network, watch, verify, propose, jobs = zip(commands, told, strict=True)
    assert all(command.startswith(".venv/bin/consilium ") for command in commands[1:])
    assert "tasks" in json.loads(network[1].removeprefix("y\n"))
    for (command, said), start_, words in (
        (watch, "operator watch 1", "ended"), (verify, "verify 1", "holds"),
        (propose, "operator propose", "task 2 is proposed"), (jobs, "server jobs", "index"),
    ):  # fmt: skip
        assert start_ in command
        assert words in said, said


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
    assert "for the API (--port) is in use" in ran.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["in-use.lock"]
