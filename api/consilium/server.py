"""The server's processes, and the state that they keep. Each reads its own configuration, a TOML file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from consilium_server.jobs.aggregators import AggregatorMachine
    from consilium_server.jobs.store import LastRun

Process = Literal["aggregator", "sponsor", "index", "worker", "api"]


def run_server(process: Process, config: str | Path) -> None:
    """Runs a process until it is interrupted, the aggregator until its task has ended. It logs its events (`log_to`).

    Raises ConfigInvalid, KeystoreError, DeploymentInvalid, ServerError.
    """
    from consilium_chain.settings import read_settings
    from consilium_server import config as settings

    path = Path(config)
    match process:
        case "aggregator":
            from consilium_server.aggregator.node import Aggregator

            aggregated = read_settings(path, settings.AggregatorSettings)
            with aggregated.traced("aggregator", aggregated.task):
                Aggregator(aggregated).run()
        case "sponsor":
            from consilium_server.sponsor import service

            sponsored = read_settings(path, settings.SponsorSettings)
            with sponsored.traced("sponsor", sponsored.task):
                service.run(sponsored)
        case "index":
            from consilium_server.index.indexer import index

            index(read_settings(path, settings.IndexerSettings))
        case "worker":
            from consilium_server.jobs.worker import work

            work(read_settings(path, settings.WorkerSettings))
        case "api":
            from consilium_server.api import app

            app.run(read_settings(path, settings.ApiSettings))


def reindex(config: str | Path, *, replace: bool = False) -> int:
    """Builds the index again from the chain and the artifacts, and compares it row by row. Returns the number of rows.

    `config`: an indexer's or a worker's. `replace`: replaces all rows by the rebuilt ones.

    Raises ConfigInvalid, DatabaseUnfit (IndexDiffers), Unavailable (ChainMoved), ChainUnreachable.
    """
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.index.rebuilding import compare

    return compare(read_settings(Path(config), WorkerSettings).indexer, replace)


def server_jobs(config: str | Path) -> list[LastRun]:
    """The last run of each job. `config`: a worker's. Raises ConfigInvalid, Unavailable (DatabaseUnreachable)."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.jobs.store import last_runs

    return last_runs(read_settings(Path(config), WorkerSettings).url, time.time())


def server_aggregators(config: str | Path) -> list[AggregatorMachine]:
    """The tasks of a worker's account that have not ended, with the machine that has each. `config`: the worker's.

    Raises ConfigInvalid, DeploymentInvalid, Unavailable (DatabaseUnreachable).
    """
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.jobs.aggregators import aggregators

    return aggregators(read_settings(Path(config), WorkerSettings))


def openapi() -> dict[str, Any]:
    """The HTTP API's description, OpenAPI 3.1."""
    from consilium_server.api.app import document

    return document()
