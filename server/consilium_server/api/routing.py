"""Shared parts of routes: declarations, answers in OpenAPI, and rate limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends

from consilium_server.api.context import Service, shared
from consilium_server.api.limits import Buckets
from consilium_server.api.problems import Problem, documented

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
