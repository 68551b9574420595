"""`consilium operator serve-model`: a model's predictions over HTTP, for this machine only.

Requests are never logged, and no answer repeats their values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from consilium_chain.errors import name_of
from consilium_chain.rpc.local_node import require_free_port
from consilium_client.errors import CellError, ClientError, RangeError
from consilium_core.kinds import of_kind
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from consilium_operators.errors import RowsInvalid
from consilium_operators.model_folder import SavedModel
from consilium_operators.prediction import Answering, Predictor, columns, named

LARGEST_BODY = 1 << 24  # bytes
MOST_AT_ONCE = 32  # connections
PREDICT = "/predict"
# A foreign page in a browser here must not reach the server by its own host name (DNS rebinding).
HOSTS = ("127.0.0.1", "localhost")


def serve(
    saved: SavedModel, port: int, clamp: bool = False, on_start: Callable[[str], None] = lambda url: None
) -> None:
    """Runs until it is stopped. `clamp`: values outside the model's range count as in training.

    `on_start` gets the URL.
    Raises ModelNotInstalled, LocalNodeError for a port in use.
    """
    predictor = Predictor(saved, clamp)
    predictor.require_answers()
    require_free_port(port, "the model")
    on_start(f"http://127.0.0.1:{port}")
    uvicorn.run(
        service(predictor), host="127.0.0.1", port=port, log_level="warning", access_log=False, ws="none",
        limit_concurrency=MOST_AT_ONCE,
    )  # fmt: skip


def service(predictor: Predictor) -> Starlette:
    """GET / describes the model; POST /predict answers rows. Errors are problem+json (RFC 9457) with their names."""
    alone = threading.Lock()  # models set torch's threads for the whole process

    def answer(body: bytes) -> Response:
        try:
            with alone:
                found = predictor.predict(body)
        except (RowsInvalid, ClientError) as error:
            return problem(error)
        return JSONResponse({"predictions": named(found, predictor)})

    async def predict(request: Request) -> Response:
        try:
            body = await body_of(request)
        except RowsInvalid as error:
            return problem(error)
        return await run_in_threadpool(answer, body)

    async def what(_: Request) -> Response:
        return JSONResponse(description(predictor))

    return Starlette(
        routes=[Route("/", what, methods=["GET"]), Route(PREDICT, predict, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False)],
        exception_handlers={HTTPException: http_problem},
    )


async def body_of(request: Request, at_most: int = LARGEST_BODY) -> bytes:
    """Raises RowsInvalid."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RowsInvalid("MediaTypeWrong")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > at_most:
            raise RowsInvalid("BodyTooLarge", at_most=at_most)
    return body


def description(predictor: Answering) -> dict[str, Any]:
    """The model, for its users."""
    schema = predictor.schema
    return {
        **predictor.about,
        "classes": schema.classes,
        "answers": predictor.answers,
        "columns": columns(schema),
        "clamp": predictor.clamp,
        "data": schema.model_dump(mode="json", exclude={"reader"}),
        "predict": {"post": PREDICT, "most_rows": predictor.most_rows, "most_bytes": LARGEST_BODY},
    }


def problem(error: RowsInvalid | ClientError) -> Response:
    """The answer to a request that is not valid."""
    status = error.status if isinstance(error, RowsInvalid) else 422
    cell = {one: error.values[one] for one in ("row", "column")} if isinstance(error, CellError) else {}
    cell |= error.bounds if isinstance(error, RangeError) else {}
    return problem_of(status, name_of(error), str(error), cell)


def http_problem(_: Request, error: Exception) -> Response:
    refused = of_kind(HTTPException, error)
    return problem_of(refused.status_code, refused.detail, f"GET / describes the model; rows go to POST {PREDICT}", {})


def problem_of(status: int, title: str, detail: str, cell: dict[str, Any]) -> Response:
    content = {"type": "about:blank", "title": title, "status": status, "detail": detail, **cell}
    return JSONResponse(content, status, media_type="application/problem+json")
