"""State that all routes of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.tasks.estimate import ChainTerms
from fastapi import Request
from sqlalchemy import Engine

from consilium_server.api.sessions import Seal, Sessions
from consilium_server.config import ApiSettings

if TYPE_CHECKING:
    from consilium_server.api.events import Broadcaster
    from consilium_server.api.limits import Limits
    from consilium_server.api.nodes import NodeTable
    from consilium_server.api.observed import Metrics
    from consilium_server.api.reading import Desk


@dataclass
class Service:
    """State of one process: settings, database, caches and limits."""

    settings: ApiSettings
    deployment: Deployment
    engine: Engine
    store: ArtifactStore
    seal: Seal
    sessions: Sessions
    limits: Limits
    metrics: Metrics
    broadcaster: Broadcaster
    nodes: NodeTable
    desk: Desk
    chain_head: int | None = field(default=None)  # the latest block that the chain node told of
    chain_terms: ChainTerms | None = field(default=None)  # as it told of them last


def service_of(request: Request) -> Service:
    """The service of a request."""
    return cast(Service, request.app.state.service)


async def shared(request: Request) -> Service:
    """The service, as a dependency. It is `async` so that FastAPI needs no thread for it."""
    return service_of(request)
