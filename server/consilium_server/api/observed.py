"""Middleware of every request: its id, security headers, limits, a log line and metrics."""

from __future__ import annotations

import logging
import re
import secrets
import time

from anyio import move_on_after
from consilium_chain.errors import name_of
from consilium_core.logs import emit
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from consilium_server.api.context import Service
from consilium_server.api.dashboard import connections
from consilium_server.api.limits import client_of
from consilium_server.api.problems import Problem, answer
from consilium_server.errors import AnswerBroken

REQUEST_ID = re.compile(r"[A-Za-z0-9._\-]{1,64}", re.ASCII)
UNKNOWN_ROUTE = "unknown"
UNLIMITED = ("/health", "/ready", "/metrics")  # for monitoring
# A page of this server loads nothing from elsewhere, except icons that wallets hand over as data. It may compile
# WebAssembly, for predictions; it may not evaluate texts. An answer of the API is not a page.
PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; connect-src {connections};"
    " object-src 'none'; "
)
API_POLICY = "default-src 'none'; "
FRAMES = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def client_address(scope: Scope, service: Service) -> str:
    """The key of the limits that this request counts towards."""
    peer = scope["client"][0] if scope.get("client") else "local"
    return client_of(peer, Headers(scope=scope).getlist("x-forwarded-for"), service.settings.proxies)


class Edge:
    """The outermost middleware: every answer has an id, safe headers, a log line and a count.

    An unexpected failure is a 500, with its trace on standard error by the request's id. An answer that its client does
    not read is broken off.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._metrics = app, service.metrics
        self._stalled_seconds = service.settings.stalled_seconds
        self._page_policy = PAGE_POLICY.format(connections=connections(service.settings))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent_id = Headers(scope=scope).get("x-request-id", "")
        request_id = sent_id if REQUEST_ID.fullmatch(sent_id) else secrets.token_hex(8)
        began = time.perf_counter()
        status: int | None = None
        until_answer = 0.0
        is_complete = False

        async def sending(message: Message) -> None:
            nonlocal status, until_answer, is_complete
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            if message["type"] == "http.response.start":
                status, until_answer = message["status"], time.perf_counter() - began
                _add_headers(MutableHeaders(scope=message), request_id, self._page_policy)
            with move_on_after(self._stalled_seconds) as waiting:
                await send(message)
            if waiting.cancelled_caught:
                raise AnswerBroken("ClientStalled", seconds=self._stalled_seconds)

        try:
            await self._app(scope, receive, sending)
            if not is_complete:  # a stream that ends because the server does
                await sending({"type": "http.response.body"})
        except Exception as error:
            if _is_of(error, AnswerBroken):
                emit("answer-broken-off", request=request_id, error=name_of(_first(error)))
                return
            emit("request-failed", request=request_id, error=name_of(error))
            logging.getLogger(__name__).exception("request %s", request_id)
            if status is None:
                why = f"see request {request_id} in the server's log: try again, then tell the server's operator"
                await answer("fault", why)(scope, receive, sending)
        finally:
            self._note(scope, request_id, status or 499, until_answer, time.perf_counter() - began)

    def _note(self, scope: Scope, request_id: str, status: int, until_answer: float, seconds: float) -> None:
        route, method = route_of(scope), scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.seconds.labels(route).observe(until_answer)
        about = {k: v for k, v in scope.get("path_params", {}).items() if k in ("task", "round") and v.isdecimal()}
        emit(
            "request", request=request_id, method=method, route=route, status=status,
            milliseconds=round(1000 * seconds, 1), **about,
        )  # fmt: skip


def _is_of(error: Exception, kind: type[Exception]) -> bool:
    """True if it is of this kind, or a group of such errors: an event and a heartbeat may both be late."""
    if isinstance(error, ExceptionGroup):
        return all(_is_of(one, kind) for one in error.exceptions)
    return isinstance(error, kind)


def _first(error: Exception) -> Exception:
    return _first(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def route_of(scope: Scope) -> str:
    """The route's template, of which there are few; not the path, of which there are many."""
    return str(getattr(scope.get("route"), "path", "") or UNKNOWN_ROUTE)


def _add_headers(headers: MutableHeaders, request_id: str, page_policy: str) -> None:
    headers["X-Request-Id"] = request_id
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Referrer-Policy"] = "no-referrer"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    if (kind := headers.get("content-type")) is not None:  # with a 304, what the browser has keeps its policy
        is_page = kind.startswith(("text/html", "text/javascript"))  # a worker has its script's
        headers["Content-Security-Policy"] = (page_policy if is_page else API_POLICY) + FRAMES
    headers.setdefault("Cache-Control", "no-store")


class Gate:
    """Checks rates and sizes of requests. It is inside CORS, so that pages of other sites can read a refusal."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNLIMITED:
            await self._app(scope, receive, send)
            return
        wait = self._service.limits.requests.take(client_address(scope, self._service))
        if wait:
            refusal = answer("too-many-requests", f"try again in {wait} s", {"Retry-After": str(wait)})
            await refusal(scope, receive, send)
            return
        largest = self._service.settings.limits.largest_body
        too_large = f"a request may have at most {largest} bytes: send less"
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > largest:
            await answer("request-too-large", too_large)(scope, receive, send)
            return
        arrived = 0

        async def receiving() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > largest:
                raise Problem("request-too-large", too_large)
            return message

        await self._app(scope, receiving, send)
