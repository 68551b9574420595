"""The HTTP API: reads of the index for all, and stored files for signed-in accounts."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import chain
from typing import Any

import anyio.to_thread
import uvicorn
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.local_node import require_free_port
from consilium_core.logs import emit
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from sqlalchemy import Engine
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

from consilium_server.api import (
    models,
    problems,
    profiles,
    reports,
    routes,
    sale_routes,
    search,
    server_routes,
    statistics,
    watch,
)
from consilium_server.api.context import Service
from consilium_server.api.contract_wallets import ContractWallets
from consilium_server.api.dashboard import built, serve
from consilium_server.api.events import Broadcaster
from consilium_server.api.limits import Limits
from consilium_server.api.metrics import Metrics
from consilium_server.api.nodes import NodeTable
from consilium_server.api.observed import Edge, Gate
from consilium_server.api.reading import THREADS, SharedReads, open_engine
from consilium_server.api.routing import BLOCK_HEADER
from consilium_server.api.sessions import Seal, Sessions, ensure_secret
from consilium_server.api.siwe import Site
from consilium_server.api.task_names import TaskNames
from consilium_server.config import ApiSettings
from consilium_server.database.engine import reading
from consilium_server.index.store import has_source

PARTS = (routes, models, sale_routes, reports, statistics, profiles, search, watch, server_routes)
_UNCOMPRESSED = re.compile(r"/v1/(events$|artifacts/|tasks/\d+/model/)")
ENDING = 5  # seconds that open answers have after the signal to stop
DESCRIPTION = """Tasks, rounds, nodes and money of the chain, indexed. Clients need not trust this server: all
answers are functions of the chain's events up to the block in `X-Consilium-Block`, and rounds have evidence.

Amounts are decimal text of the token's smallest unit (10^18 in one token); times are whole seconds since the epoch;
enumerations are the contracts' names in lower case. Lists come in pages: send `next` as `cursor` for the next one.
Answers have strong ETags: send them as `If-None-Match`. Every error is a problem (RFC 9457) with a stable `type`.
"""


def make_service(settings: ApiSettings, engine: Engine) -> Service:
    """Builds the state that all requests share. Raises DeploymentInvalid, ServerError (SecretExposed)."""
    deployment = Deployment.read(settings.deployment)
    seal, metrics = Seal(ensure_secret(settings.home / "api.secret")), Metrics()
    site = Site(settings.origin, deployment.chain_id)
    accepts = ContractWallets(settings.chain_url).accepts if settings.chain_url is not None else None
    return Service(
        settings=settings,
        deployment=deployment,
        engine=engine,
        store=settings.store,
        seal=seal,
        sessions=Sessions(seal, engine, site, frozenset(settings.admins), accepts),
        limits=Limits(settings.limits, time.monotonic),
        metrics=metrics,
        nodes=NodeTable(),
        names=TaskNames(),
        reads=SharedReads(engine, deployment),
        broadcaster=Broadcaster(settings, deployment, engine, metrics),
    )


def document() -> dict[str, Any]:
    """The OpenAPI document, which is the same for every server."""
    return _openapi(_routed())


def build(service: Service) -> FastAPI:
    """The application: routes, error handlers and middleware."""
    app = _routed()
    app.state.service = service
    problems.add_handlers(app)
    settings = service.settings
    if settings.dashboard is not None:
        serve(app, settings.dashboard, service.deployment, settings)
    # The last one added is the outermost. Level 9 takes half as long again for 14 MB of WebAssembly, and saves 0.4 %.
    app.add_middleware(Compressing, minimum_size=1_000, compresslevel=6)
    app.add_middleware(Gate, service=service)
    app.add_middleware(
        CORSMiddleware, allow_origins=list(settings.cors_origins), allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["Authorization", "Content-Type", "If-None-Match", "Last-Event-ID", "X-Request-Id"],
        expose_headers=["ETag", BLOCK_HEADER, "X-Request-Id", "Retry-After"],
    )  # fmt: skip
    app.add_middleware(Edge, service=service)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


class Compressing(GZipMiddleware):
    """Models and artifacts stay as they are: they hardly shrink, and a reader may ask for a part of their bytes. So do
    events: else a stream would begin with the first of them.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_excepted = scope["type"] == "http" and _UNCOMPRESSED.match(scope["path"]) is not None
        await (self.app if is_excepted else super().__call__)(scope, receive, send)


def _routed() -> FastAPI:
    app = FastAPI(
        title="Consilium", version="1", description=DESCRIPTION, lifespan=_lifespan, openapi_url="/v1/openapi.json",
        docs_url=None, redoc_url=None,  # their pages load scripts from other sites
    )  # fmt: skip
    for router in chain.from_iterable(part.ROUTERS for part in PARTS):
        app.router.routes += router.routes  # with `include_router` each request would build its handler again
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schema["components"]["schemas"]["Problem"] = problems.PROBLEM_SCHEMA
        for unused in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(unused, None)
        app.openapi_schema = schema
    return app.openapi_schema


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    service: Service = app.state.service
    following = asyncio.create_task(service.broadcaster.run())
    try:
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        # Threads continue to read, and would leave their connections open.
        underway = [*service.broadcaster.underway(), *service.reads.underway()]
        if underway:
            await asyncio.wait(underway, timeout=ENDING)


def run(settings: ApiSettings) -> None:
    """Serves until a signal to stop. Raises ServerError, DeploymentInvalid, LocalNodeError (the port is in use)."""
    engine = open_engine(settings.url)
    service = make_service(settings.model_copy(update={"dashboard": settings.dashboard or built()}), engine)
    try:
        with reading(engine) as connection:
            has_source(engine, connection, service.deployment)
    except BaseException:
        engine.dispose()
        raise
    app = build(service)
    require_free_port(settings.port, "the API")
    emit("serving", host=settings.host, port=settings.port, origin=settings.origin)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=ENDING,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):  # as `uvicorn.run`: Ctrl-C is a normal end
        uvicorn.Server(config).run(sockets=listening(settings))


def listening(settings: ApiSettings) -> list[socket.socket]:
    """Sockets at all addresses of the host. Raises OSError.

    On Linux the system closes the connection of a client that has read nothing for `stalled_seconds`.
    """
    sockets = []
    for family, kind, protocol, _, address in socket.getaddrinfo(
        settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        one = socket.socket(family, kind, protocol)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # accepted connections inherit it
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * settings.stalled_seconds))
        one.bind(address)
        sockets.append(one)
    return sockets
