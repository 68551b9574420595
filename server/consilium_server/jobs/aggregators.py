"""The tasks of a worker's account, with the machine that has each."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.settings import read_settings

from consilium_server.aggregator.sharing import holders, known_owner
from consilium_server.config import POSTGRESQL, SUPERLINK_DATABASE, AggregatorSettings, WorkerSettings
from consilium_server.database.engine import open_database
from consilium_server.jobs.processes import Started
from consilium_server.jobs.supervisor import SETTINGS, TASKS


@dataclass(frozen=True)
class AggregatorMachine:
    """`machine`: the host that has the task; None if none has. `is_here`: it runs in this worker's home.
    `superlink_port`: the same on all machines. `seconds`: since the machine has the task.
    """

    task: int
    machine: str | None
    is_here: bool
    superlink_port: int
    seconds: float | None


def aggregators(settings: WorkerSettings) -> list[AggregatorMachine]:
    """Tasks that have not ended, as far as this home and the shared database know of them, by number.

    Raises DeploymentInvalid, Unavailable (DatabaseUnreachable), DatabaseUnfit.
    """
    deployment = Deployment.read(settings.deployment)
    prefix = deployment.folder_name(0).removesuffix("0")
    found = {one.task: one for one in _here(settings, prefix)}
    if settings.url.startswith(POSTGRESQL):
        database = open_database(settings.url)
        try:
            held = holders(database, prefix)
        finally:
            database.dispose()
        for task_key, (port, holder) in held.items():
            task = int(task_key.removeprefix(prefix))
            is_here = holder.owner == known_owner(settings.home / TASKS / task_key)
            host = holder.owner.rpartition(":")[0]
            found[task] = AggregatorMachine(task, host, is_here, port, holder.seconds)
    return [found[task] for task in sorted(found)]


def _here(settings: WorkerSettings, prefix: str) -> list[AggregatorMachine]:
    machines = []
    for config in (settings.home / TASKS).glob(f"{prefix}*/{SETTINGS}"):
        started, own = Started(config.parent), read_settings(config, AggregatorSettings)
        if started.runs:
            found = AggregatorMachine(own.task, socket.gethostname(), True, own.superlink_port, started.seconds)
        elif (config.parent / SUPERLINK_DATABASE).exists():
            found = AggregatorMachine(own.task, None, False, own.superlink_port, None)
        else:
            continue  # the task has ended
        machines.append(found)
    return machines
