"""The service: state that the requests of one process share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from fastapi import Request
from sqlalchemy import Engine

from consilium_server.api.events import Broadcaster
from consilium_server.api.limits import Limits
from consilium_server.api.metrics import Metrics
from consilium_server.api.nodes import NodeTable
from consilium_server.api.reading import SharedReads
from consilium_server.api.sessions import Seal, Sessions
from consilium_server.api.task_names import TaskNames
from consilium_server.config import ApiSettings


@dataclass(frozen=True)
class Service:
    """State of one process, with its caches and its poller of events and of the chain."""

    settings: ApiSettings
    deployment: Deployment
    engine: Engine
    store: ArtifactStore
    seal: Seal
    sessions: Sessions
    limits: Limits
    metrics: Metrics
    nodes: NodeTable
    names: TaskNames
    reads: SharedReads
    broadcaster: Broadcaster


def service_of(request: Request) -> Service:
    """The service of a request."""
    return cast(Service, request.app.state.service)


async def shared(request: Request) -> Service:
    """The service, as a dependency. It is `async` so that FastAPI needs no thread for it."""
    return service_of(request)
