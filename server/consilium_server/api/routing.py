"""Shared parts of routes: declarations, reads with validators, answers in OpenAPI, and rate limits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response

from consilium_server.api.context import Service, service_of, shared
from consilium_server.api.limits import Buckets
from consilium_server.api.paging import LARGEST_PAGE, Asked
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import Head, Read

BLOCK_HEADER = "X-Consilium-Block"
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the client already has this answer"}}
READ = documented(422, 429) | NOT_MODIFIED

Handler = TypeVar("Handler", bound=Callable[..., Any])
Shared = Annotated[Service, Depends(shared)]


def get(
    router: APIRouter,
    path: str,
    model: Any,
    operation_id: str,
    summary: str,
    responses: dict[int | str, dict[str, Any]],
) -> Callable[[Handler], Handler]:
    """A route whose handler answers with what it read of the index, as JSON of this model."""
    return router.get(path, response_model=model, operation_id=operation_id, summary=summary, responses=responses)


def limited(buckets: Buckets, key: str) -> None:
    """Counts a request. Raises Problem if there are too many."""
    if wait := buckets.take(key):
        raise Problem("too-many-requests", f"come again in {wait} s", {"Retry-After": str(wait)})


def media(answer: str, media_type: str, schema: dict[str, str], **more: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI of an answer that is not JSON."""
    return {200: {"description": answer, "content": {media_type: {"schema": schema, **more}}}}


class Reader:
    """Access of one request to the tables, and the headers of its answer."""

    def __init__(self, request: Request) -> None:
        self._request, self._service = request, service_of(request)

    async def answer(self, read: Read, *, depends_on: Callable[[Head], str] = lambda head: "") -> Response:
        """The answer of `read` at the head, or 304 if the client has it. `depends_on`: other inputs of the answer."""
        desk = self._service.desk
        head = await desk.head()
        headers = self.headers(head, depends_on(head))
        if self.is_known(headers):
            return Response(status_code=304, headers=headers)
        at, found = await desk.answer(headers["ETag"], head, read)
        if at != head:
            headers = self.headers(at, depends_on(at))
        return Response(found, headers=headers, media_type="application/json")

    def is_known(self, headers: dict[str, str]) -> bool:
        """True if the client has the answer with these headers."""
        return headers["ETag"] in _known(self._request)

    def headers(self, head: Head, depends_on: str = "") -> dict[str, str]:
        """Headers of an answer at a head: validator, caching and block."""
        question = f"{self._request.url.path}?{_sorted_query(self._request, ())}"
        tag = hashlib.sha256("\0".join((question, depends_on, head.state)).encode()).hexdigest()[:32]
        told = {"ETag": f'"{tag}"', "Cache-Control": "public, no-cache"}
        return told if head.number is None else told | {BLOCK_HEADER: str(head.number)}


def _known(request: Request) -> list[str]:
    """Validators that If-None-Match names; by the weak comparison that it calls for."""
    given = ",".join(request.headers.getlist("if-none-match"))
    return [one.strip().removeprefix("W/") for one in given.split(",")]


def _sorted_query(request: Request, without: tuple[str, ...]) -> str:
    return "&".join(sorted(f"{k}={v}" for k, v in request.query_params.multi_items() if k not in without))


async def reader(request: Request) -> Reader:
    """The request's reader, as a dependency."""
    return Reader(request)


async def asked(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="most rows of a page")] = 50,
    cursor: Annotated[
        str | None, Query(max_length=512, description="`next` of the page before; without it, the first page")
    ] = None,
) -> Asked:
    """The requested page, as a dependency."""
    scope = f"{request.url.path}?{_sorted_query(request, ('limit', 'cursor'))}"
    return Asked(scope, limit, cursor, service_of(request).seal)


FromReader = Annotated[Reader, Depends(reader)]
Paged = Annotated[Asked, Depends(asked)]
