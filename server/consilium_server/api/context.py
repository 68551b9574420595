"""The service: shared state, and the parts that answer from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from consilium_server.api.events import Broadcaster
from consilium_server.api.nodes import NodeTable
from consilium_server.api.reading import Desk
from consilium_server.api.state import State


@dataclass
class Service(State):
    """State of one process, with its caches and its poller of events."""

    nodes: NodeTable = field(init=False)
    desk: Desk = field(init=False)
    broadcaster: Broadcaster = field(init=False)

    def __post_init__(self) -> None:
        self.nodes, self.desk, self.broadcaster = NodeTable(), Desk(self), Broadcaster(self)


def service_of(request: Request) -> Service:
    """The service of a request."""
    return cast(Service, request.app.state.service)


async def shared(request: Request) -> Service:
    """The service, as a dependency. It is `async` so that FastAPI needs no thread for it."""
    return service_of(request)
