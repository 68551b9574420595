"""Parts that routes share: declarations, reads with validators, answers in OpenAPI, and rate limits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel

from consilium_server.api.context import Service, service_of, shared
from consilium_server.api.limits import Buckets
from consilium_server.api.paging import LARGEST_PAGE, PageRequest
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import Head, Read
from consilium_server.api.schemas import Index

BLOCK_HEADER = "X-Consilium-Block"
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the client already has this answer"}}
READ = documented(422, 429) | NOT_MODIFIED
LIST = documented(400, 422, 429) | NOT_MODIFIED
ONE = documented(404, 422, 429) | NOT_MODIFIED
LIST_OF_ONE = documented(400, 404, 422, 429) | NOT_MODIFIED

ReadFunction = TypeVar("ReadFunction", bound=Callable[..., BaseModel])
Shared = Annotated[Service, Depends(shared)]


def limited(buckets: Buckets, key: str) -> None:
    """Counts a request. Raises Problem if there are too many."""
    if wait := buckets.take(key):
        raise Problem("too-many-requests", f"try again in {wait} s", {"Retry-After": str(wait)})


def media(answer: str, media_type: str, schema: dict[str, str], **more: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI of an answer that is not JSON."""
    return {200: {"description": answer, "content": {media_type: {"schema": schema, **more}}}}


def is_known(request: Request, tag: str) -> bool:
    """True if If-None-Match names this validator, by the weak comparison of RFC 9110 (13.1.2)."""
    known = ",".join(request.headers.getlist("if-none-match")).split(",")
    return tag in [one.strip().removeprefix("W/") for one in known]


@contextmanager
def from_store(what: str) -> Iterator[None]:
    """Raises Problem where the artifact store does not give `what` in the block."""
    try:
        yield
    except ArtifactMissing as error:
        raise Problem("artifact-missing", f"{what} is not in this server's store: use another mirror") from error
    except ArtifactCorrupt as error:
        raise Problem("artifact-missing", f"the file stored as {what} is damaged: use another mirror") from error
    except (StoreMissing, OSError) as error:
        raise Problem("not-ready", "this server's artifact store does not answer: use another mirror") from error


def index_view(head: Head, chain_head: int | None) -> Index:
    """State of the index for the API. `chain_head`: the chain node's latest block, if known."""
    behind = None if chain_head is None or head.number is None else max(0, chain_head - head.number)
    values = {"block": head.number, "hash": head.hash or None, "latest_event_at": head.time}
    return Index.model_validate(values | {"chain_head": chain_head, "behind": behind})


class Reader:
    """Access of one request to the tables, and the headers of its answer."""

    def __init__(self, request: Request) -> None:
        self._request, self._service = request, service_of(request)

    async def answer(self, read: Read, *, depends_on: Callable[[Head], str] = lambda head: "") -> Response:
        """The answer of `read` at the head, or 304 if the client has it. `depends_on`: other inputs of the answer."""
        reads = self._service.reads
        head = await reads.head()
        headers = self.headers(head, depends_on(head))
        if is_known(self._request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        at, body = await reads.answer(headers["ETag"], head, read)
        if at != head:
            headers = self.headers(at, depends_on(at))
        return Response(body, headers=headers, media_type="application/json")

    def headers(self, head: Head, depends_on: str = "") -> dict[str, str]:
        """Headers of an answer at a head: validator, caching and block."""
        question = f"{self._request.url.path}?{_sorted_query(self._request, ())}"
        tag = hashlib.sha256("\0".join((question, depends_on, head.state)).encode()).hexdigest()[:32]
        headers = {"ETag": f'"{tag}"', "Cache-Control": "public, no-cache"}
        return headers if head.number is None else headers | {BLOCK_HEADER: str(head.number)}


def _sorted_query(request: Request, without: tuple[str, ...]) -> str:
    return "&".join(sorted(f"{k}={v}" for k, v in request.query_params.multi_items() if k not in without))


async def reader(request: Request) -> Reader:
    """The request's reader, as a dependency."""
    return Reader(request)


async def page_request(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="most rows of a page")] = 50,
    cursor: Annotated[
        str | None, Query(max_length=512, description="`next` of the page before; without it, the first page")
    ] = None,
) -> PageRequest:
    """The requested page, as a dependency."""
    scope = f"{request.url.path}?{_sorted_query(request, ('limit', 'cursor'))}"
    return PageRequest(scope, limit, cursor, service_of(request).seal)


FromReader = Annotated[Reader, Depends(reader)]
Paged = Annotated[PageRequest, Depends(page_request)]


def read_route(
    router: APIRouter, path: str, operation_id: str, summary: str, responses: dict[int | str, dict[str, Any]]
) -> Callable[[ReadFunction], ReadFunction]:
    """A route that answers with the model that a function reads from the index.

    The function's first argument is the tables at one head. FastAPI gives the others, by their annotations.
    """

    def add(read: ReadFunction) -> ReadFunction:
        async def handler(reader: Reader, **arguments: Any) -> Response:
            return await reader.answer(lambda at: read(at, **arguments))

        hints = get_type_hints(read, include_extras=True)
        parameters = [Parameter("reader", Parameter.KEYWORD_ONLY, annotation=FromReader)]
        for one in list(signature(read).parameters.values())[1:]:
            parameters.append(one.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[one.name]))
        handler.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        add_route = router.get(
            path, response_model=hints["return"], operation_id=operation_id, summary=summary, responses=responses
        )
        add_route(handler)
        return read

    return add
