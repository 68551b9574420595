"""Does what people would do: a network's hospitals join every task that they can (`hospital join`), and a task's model
is derived after each round (`operator download-model`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil
from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase
from consilium_chain.rpc.event_logs import Event
from consilium_chain.settings import read_settings
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema, TextSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.errors import OwnersRefusal
from consilium_core.errors import ArtifactMissing
from consilium_core.logs import emit
from consilium_server.api.models import model_folder, references_file
from consilium_server.config import AggregatorSettings
from consilium_server.jobs.supervisor import SETTINGS, task_folder

from consilium_lab.demo.capacity import PARTY_MIB
from consilium_lab.demo.homes import approve
from consilium_lab.demo.processes import Processes
from consilium_lab.up.network import StandingNetwork


class TaskJoiner:
    """Joins tasks in the order of their numbers. Tries each until it is joined, or cannot be."""

    def __init__(self, network: StandingNetwork, processes: Processes) -> None:
        self._network, self._processes = network, processes
        self._seen = 0
        self._open: list[int] = []
        self._too_large: set[int] = set()  # tasks for which memory did not suffice

    def turn(self) -> None:
        count = self._network.operator.tasks.count()
        self._open += range(self._seen + 1, count + 1)
        self._seen = count
        for task in list(self._open):
            if self._is_done(task):
                self._open.remove(task)  # at once, so that it is not joined twice if the chain fails for the next

    def _is_done(self, task: int) -> bool:
        """True if the task is joined, or can never be."""
        ledger = self._network.operator
        if ledger.tasks.state(task).phase is not Phase.JOINING:
            return True
        params = ledger.tasks.params(task)
        if params.aggregator != self._network.aggregator:
            emit("not-joined", task=task, why=f"its aggregator is not this network's ({self._network.aggregator})")
            return True
        try:
            spec = parse_task_spec(self._network.store.get_file(params.spec_hash))
        except ArtifactMissing:
            return False
        except SpecInvalid:
            return True
        if why := self._unfit(spec) or self._refused(spec, ledger.tasks.state(task).operator):
            emit("not-joined", task=task, why=why)
            return True
        folder = task_folder(self._network.worker, ledger, task)
        if not (folder / SETTINGS).exists():
            return False  # its aggregator is still starting
        settings = read_settings(folder / SETTINGS, AggregatorSettings)
        if not self._has_memory(task):
            return False
        self._join(task, params.spec_hash, settings.superlink_port, settings.tls_folder / "ca.crt")
        return True

    def _unfit(self, spec: TaskSpec) -> str | None:
        own = self._network.spec
        if spec.data != own.data:
            return "it needs other data than this network's hospitals have"
        if spec.model.name != own.model.name:
            return f"its model is {spec.model.name}, but these hospitals allow {own.model.name}"
        if own.update.masked and not spec.update.masked:
            return "its updates are not masked"
        return None

    def _refused(self, spec: TaskSpec, operator: str) -> str | None:
        """The objections of a hospital's policy. If one objects, no hospital joins."""
        for name, home in self._network.hospitals.items():
            try:
                home.policy().require(spec, operator)
            except OwnersRefusal as error:
                return f"{name}: {error.values.get('objections', error)}"
        return None

    def _has_memory(self, task: int) -> bool:
        needed = len(self._network.hospitals) * PARTY_MIB["hospital"]
        available = psutil.virtual_memory().available >> 20
        if available < needed and task not in self._too_large:
            self._too_large.add(task)
            emit("no-memory", task=task, needed_mib=needed, available_mib=available)
        return bool(available >= needed)

    def _join(self, task: int, spec_hash: bytes, port: int, authority: Path) -> None:
        for name, home in self._network.hospitals.items():
            approve(home, self._network.operator, task, spec_hash, port, authority)
            run: list[Any] = ["hospital", "run", str(task), "--home", os.fspath(home.folder)]
            self._processes.start(f"{name}-task-{task}", "consilium_cli.main", *run)
        emit("joining", task=task, hospitals=len(self._network.hospitals))


class ModelDeriver:
    """Derives a task's model for the API after each training round, and measures it on the voters' rows. At the end
    of a task about tables it trains the references, too: on all rows in one place, and on each hospital's alone.
    """

    def __init__(self, network: StandingNetwork, processes: Processes) -> None:
        self._network, self._processes = network, processes
        self._due: dict[int, None] = {}  # tasks, in the order of their rounds' ends

    def turn(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.name in ("RoundSettled", "RoundVoided") and event.values["round"] != STATISTICS_ROUND:
                self._due[event.values["taskId"]] = None
            if event.name == "TaskEnded":
                self._compare(event.values["taskId"])
        for task in [task for task in self._due if _process(task) not in self._processes.running()]:
            self._derive(task)
            del self._due[task]

    def _derive(self, task: int) -> None:
        network = self._network
        settings, more, data = network.settings, list[str](), self._data(task)
        if data == network.spec.data:  # else the voters' rows are of another kind
            more = [argument for path in network.held_out for argument in ("--measure-on", os.fspath(path))]
        if data is not None and not isinstance(data, TextSchema):
            more.append("--onnx")
        self._processes.start(
            _process(task), "consilium_cli.main", "operator", "download-model", str(task), "--replace",
            "--output", os.fspath(model_folder(network.models, task)), "--artifacts", os.fspath(settings.artifacts),
            "--rpc", settings.chain_url, "--address-book", os.fspath(network.options.address_book), *more,
        )  # fmt: skip

    def _compare(self, task: int) -> None:
        network, raw = self._network, self._file(task)
        if raw is None or self._data(task) != network.spec.data or not isinstance(network.spec.data, TableSchema):
            return  # the rows are of another kind, or training takes long
        network.models.mkdir(exist_ok=True)
        file = network.models / f"task-{task}.toml"
        file.write_bytes(raw)
        self._processes.start(
            f"references-of-task-{task}", "consilium_lab.demo.compared", "--task", os.fspath(file),
            "--artifacts", os.fspath(network.settings.artifacts), "--seed", "0",
            "--hospitals", *[os.fspath(home.folder) for home in network.hospitals.values()],
            "--voters", *map(os.fspath, network.voters.values()),
            "--output", os.fspath(references_file(network.models, task)),
        )  # fmt: skip

    def _file(self, task: int) -> bytes | None:
        """The task file; None if it is not in the store."""
        try:
            return self._network.store.get_file(self._network.operator.tasks.params(task).spec_hash)
        except ArtifactMissing:
            return None

    def _data(self, task: int) -> DataSchema | None:
        """The schema of the task's rows; None without a valid file."""
        raw = self._file(task)
        try:
            return None if raw is None else parse_task_spec(raw).data
        except SpecInvalid:
            return None


def _process(task: int) -> str:
    return f"model-of-task-{task}"
