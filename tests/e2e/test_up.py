"""`consilium up`: a network that stays, into which anybody's tasks can be proposed."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from consilium_chain.localnode import child_environment, free_port
from postgres_driver import running_postgres
from redis_driver import running_redis

Fields = dict[str, Any]


class Up:
    """The command's process, and what it tells line by line."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.home, self.port, self.chain_port = folder / "up", free_port(), free_port()
        self.address_book = folder / "local.json"
        command = [
            sys.executable, "-m", "consilium_cli.main", "up", "--home", str(self.home), "--port", str(self.port),
            "--chain-port", str(self.chain_port), "--address-book", str(self.address_book), "--hospitals", "3",
            "--voters", "2", "--rounds", "1", *arguments,
        ]  # fmt: skip
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, start_new_session=True,
                env=child_environment() | {"OMP_NUM_THREADS": "1"} | variables,
            )  # fmt: skip
        self.told: list[Fields] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)

    def close(self) -> None:
        """Whatever still runs."""
        if self.process.poll() is None:
            for process in self.family():
                process.kill()
            self.process.kill()
            self.process.wait()
        self._listener.join(10)

    def wait_for(self, event: str, seconds: float = 150, **fields: object) -> Fields:
        """The first such line from here on."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, self.errors.read_text()
            try:
                line: Fields = json.loads(self._lines.get(timeout=0.5))
            except queue.Empty:
                continue
            self.told.append(line)
            if line["event"] == event and fields.items() <= line.items():
                return line
        raise AssertionError(f"no {event} {fields} in {seconds} s; {self.told[-12:]}; {self.errors.read_text()}")

    def get(self, path: str) -> Fields:
        answer: Fields = httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=20).raise_for_status().json()
        return answer

    def get_until(self, path: str, **fields: object) -> Fields:
        """The index follows the chain a moment later."""
        end = time.monotonic() + 30
        while not fields.items() <= (answer := self.get(path)).items():
            assert time.monotonic() < end, answer
            time.sleep(0.2)
        return answer

    def family(self, word: str = "") -> list[psutil.Process]:
        """Living processes that it started, and they, whose command line has the word."""
        found = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if word in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found


@contextmanager
def up(folder: Path, *arguments: str, **variables: str) -> Iterator[Up]:
    """Ended as by Ctrl-C, by which everything must have ended."""
    running = Up(folder, *arguments, **variables)
    try:
        yield running
        family = running.family()
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 130, running.errors.read_text()
        assert "Traceback" not in running.errors.read_text()
        _, alive = psutil.wait_procs(family, timeout=15)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    finally:
        running.close()


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
            *artifacts, "--yes", "--again",
        )  # fmt: skip
        assert "task 2 is proposed" in proposed
        running.wait_for("joining", task=2)
        running.wait_for("task-ended", task=2)
        assert running.get_until("/v1/tasks/2/rounds/1", outcome="settled")["accepted"]


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
    assert "wanted for the API, is in use" in ran.stderr
    assert os.listdir(tmp_path) == []
