"""What routes have in common: their answers as OpenAPI has them, and what each client may do how often."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends

from consilium_server.api.context import Service, shared
from consilium_server.api.limits import Buckets
from consilium_server.api.problems import Problem, documented

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the client has this answer"}}
READ = documented(422, 429) | NOT_MODIFIED

Shared = Annotated[Service, Depends(shared)]


def limited(buckets: Buckets, key: str) -> None:
    """Raises Problem."""
    if wait := buckets.take(key):
        raise Problem("too-many-requests", f"come again in {wait} s", {"Retry-After": str(wait)})


def media(answer: str, media_type: str, schema: dict[str, str], **more: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI of an answer that is not JSON."""
    return {200: {"description": answer, "content": {media_type: {"schema": schema, **more}}}}
