"""Errors for clients: problem details (RFC 9457), each with a stable type and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from consilium_server.errors import RequestRefused

MEDIA_TYPE: Final = "application/problem+json"
_SCHEMA = {"$ref": "#/components/schemas/Problem"}

# By type: status and title. A type is never renamed, and its meaning never changed.
TYPES: Final[dict[str, tuple[int, str]]] = {
    "cursor-invalid": (400, "This cursor belongs to another request"),
    "sign-in-malformed": (400, "This is not a message of Sign-In with Ethereum"),
    "sign-in-required": (401, "Sign in first"),
    "not-allowed": (403, "This account may not do this"),
    "sign-in-refused": (403, "This signed message is refused"),
    "not-found": (404, "Not found"),
    "artifact-missing": (404, "No store has this artifact"),
    "method-not-allowed": (405, "This address does not accept this method"),
    "profile-outdated": (409, "A later profile is stored"),
    "request-too-large": (413, "The request is too large"),
    "parameters-invalid": (422, "The request is not valid"),
    "site-report-invalid": (422, "The site's report is not valid"),
    "task-file-invalid": (422, "The task file is not valid"),
    "too-many-requests": (429, "Too many requests"),
    "fault": (500, "The server failed"),
    "not-ready": (503, "The server cannot answer this now"),
}

REFUSALS: Final = {  # types by the name of the fault
    "CursorInvalid": "cursor-invalid",
    "SignInMalformed": "sign-in-malformed",
    "SignInRefused": "sign-in-refused",
}


class Problem(HTTPException):
    """Ends a request with one of `TYPES`. `detail` says what is wrong and what to do."""

    def __init__(
        self, kind: str, detail: str, headers: Mapping[str, str] | None = None, faults: Sequence[dict[str, str]] = ()
    ) -> None:
        self.kind, self.faults = kind, faults
        super().__init__(TYPES[kind][0], detail, headers)


def body(kind: str, detail: str, faults: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """The problem as JSON."""
    status, title = TYPES[kind]
    problem = {"type": f"urn:consilium:problem:{kind}", "title": title, "status": status, "detail": detail}
    return problem | ({"faults": list(faults)} if faults else {})


def answer(
    kind: str, detail: str, headers: Mapping[str, str] | None = None, faults: Sequence[dict[str, str]] = ()
) -> JSONResponse:
    """The problem as a response."""
    all_headers = {"Cache-Control": "no-store", **(headers or {})}
    return JSONResponse(body(kind, detail, faults), TYPES[kind][0], all_headers, media_type=MEDIA_TYPE)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI of these statuses."""
    return {
        status: {
            "description": "; ".join(f"{title} (`{kind}`)" for kind, (code, title) in TYPES.items() if code == status),
            "content": {MEDIA_TYPE: {"schema": _SCHEMA}},
        }
        for status in statuses
    }


PROBLEM_SCHEMA: Final[dict[str, Any]] = {
    "title": "Problem",
    "description": "RFC 9457. `type` is stable within a version of the API; `detail` says what to do.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "enum": [f"urn:consilium:problem:{kind}" for kind in TYPES]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "faults": {
            "type": "array",
            "description": "invalid parts, by place",
            "items": {
                "type": "object",
                "required": ["where", "what"],
                "properties": {"where": {"type": "string"}, "what": {"type": "string"}},
            },
        },
    },
    "example": body("not-found", "the index has no task 9: /v1/tasks lists all tasks"),
}


def add_handlers(app: FastAPI) -> None:
    """Makes every error of the application a problem."""

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error, Problem):
            return answer(error.kind, error.detail, error.headers, error.faults)
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = (error.headers or {}).get("Allow", "")
            return answer("method-not-allowed", f"use {allowed or 'another method'} here", error.headers)
        if error.status_code == HTTPStatus.NOT_FOUND:
            return answer("not-found", "this address does not exist: /v1/openapi.json lists all addresses")
        # The only other case is a body that Starlette or FastAPI cannot read.
        return answer("parameters-invalid", "the request's body cannot be read: see /v1/openapi.json for its format")

    @app.exception_handler(RequestRefused)
    async def refused(request: Request, error: RequestRefused) -> JSONResponse:
        faults = [{"where": str(error.values["what"]), "what": str(error)}] if "what" in error.values else []
        return answer(REFUSALS[error.name], str(error), faults=faults)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [{"where": ".".join(map(str, one["loc"])), "what": str(one["msg"])} for one in error.errors()]
        shown = "; ".join(f"{fault['where']}: {fault['what']}" for fault in faults[:5])
        return answer("parameters-invalid", f"{shown}; see /v1/openapi.json for the valid values", faults=faults)
