"""Routes to the server's own data: artifacts, sign-in, jobs, health and metrics."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.errors import CoreError
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.exc import SQLAlchemyError

from consilium_server.api import schemas, task_schemas
from consilium_server.api.observed import client_address
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import at_head
from consilium_server.api.routing import NOT_MODIFIED, Shared, from_store, index_view, is_known, limited, media
from consilium_server.api.schemas import Hash
from consilium_server.api.sessions import Session
from consilium_server.database.engine import reading, require_known
from consilium_server.errors import DatabaseUnfit, Unavailable
from consilium_server.index.store import has_source
from consilium_server.jobs.store import LastRun, all_jobs
from consilium_server.jobs.ticking import open_tasks

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}

artifacts = APIRouter(prefix="/v1", tags=["artifacts"])
sessions = APIRouter(prefix="/v1", tags=["session"])
jobs_router = APIRouter(prefix="/v1", tags=["watching"])
watching = APIRouter(tags=["watching"])
ROUTERS = (artifacts, sessions, jobs_router, watching)

# Artifacts

_BYTES = media("the bytes of the file", "application/octet-stream", {"type": "string", "format": "binary"})
_ARTIFACT = documented(404, 422, 429, 503) | NOT_MODIFIED


@artifacts.get(
    "/artifacts/files/{hash}", operation_id="getFile", summary="A checked file by its keccak256",
    response_class=Response, responses=_BYTES | _ARTIFACT,
)  # fmt: skip
def get_file(request: Request, service: Shared, hash_: Annotated[Hash, Path(alias="hash")]) -> Response:
    return _artifact(request, hash_, lambda digest: service.store.get_file(digest))


@artifacts.get(
    "/artifacts/blobs/{hash}", operation_id="getBlob",
    summary="A checked blob by its versioned hash (EIP-4844): 131,072 bytes", response_class=Response,
    responses=_BYTES | _ARTIFACT,
)  # fmt: skip
def get_blob(request: Request, service: Shared, hash_: Annotated[Hash, Path(alias="hash")]) -> Response:
    return _artifact(request, hash_, lambda digest: service.store.get_blobs([digest])[0])


def _artifact(request: Request, hash_: str, read: Any) -> Response:
    headers = FOREVER | {"ETag": f'"{hash_}"'}
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    with from_store(hash_):
        raw = read(bytes.fromhex(hash_[2:]))
    return Response(raw, headers=headers, media_type="application/octet-stream")


# Sessions

bearer = HTTPBearer(auto_error=False, description="a token of `POST /v1/session`")


def session(service: Shared, sent: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Session:
    """The session of the request. Raises Problem."""
    valid = service.sessions.session_of(sent.credentials, int(time.time())) if sent else None
    if valid is None:
        why = "sign in with POST /v1/session, and send its token as Authorization: Bearer"
        raise Problem("sign-in-required", why, {"WWW-Authenticate": "Bearer"})
    return valid


SignedInAccount = Annotated[Session, Depends(session)]


@sessions.get(
    "/session/nonce", operation_id="getNonce", summary="Values of a message to sign", responses=documented(429)
)
def get_nonce(request: Request, service: Shared) -> schemas.Nonce:
    limited(service.limits.sign_ins, client_address(request.scope, service))
    return service.sessions.challenge(int(time.time()))


@sessions.post(
    "/session", operation_id="signIn", summary="Sign-In with Ethereum (EIP-4361)",
    responses=documented(400, 403, 413, 422, 429),
)  # fmt: skip
def sign_in(request: Request, service: Shared, body: schemas.SignIn) -> schemas.SignedIn:
    limited(service.limits.sign_ins, client_address(request.scope, service))
    token, begun = service.sessions.sign_in(body.message, bytes.fromhex(body.signature[2:]), int(time.time()))
    return schemas.SignedIn(**vars(begun), token=token)


@sessions.get("/session", operation_id="getSession", summary="The signed-in account", responses=documented(401, 429))
def get_session(who: SignedInAccount) -> schemas.SessionView:
    return schemas.SessionView.model_validate(who)


@artifacts.put(
    "/artifacts/files", operation_id="putTaskFile",
    summary="Stores a valid task file, so that a wallet can propose it",
    responses=documented(401, 403, 413, 422, 429, 503),
)  # fmt: skip
def put_task_file(
    request: Request, service: Shared, who: SignedInAccount, body: task_schemas.TaskText
) -> task_schemas.StoredFile:
    allowed = service.settings.operators
    if allowed is not None and who.account not in allowed and who.role != "admin":
        raise Problem("not-allowed", f"{who.account} may not store files here: ask this server's operator")
    limited(service.limits.files, who.account)
    limited(service.limits.files, client_address(request.scope, service))
    raw = body.text.encode()
    try:
        parse_task_spec(raw)
    except (SpecInvalid, ZkError) as error:
        raise Problem("task-file-invalid", str(error)) from error
    try:
        digest = service.store.put_file(raw)
    except (CoreError, OSError) as error:
        why = f"the artifact store refuses to write now ({type(error).__name__}): try again, then tell the operator"
        raise Problem("not-ready", why) from error
    return task_schemas.StoredFile(hash=schemas.hexed(digest), size=len(raw))


# Monitoring


@jobs_router.get(
    "/jobs", operation_id="listJobs", summary="State of the server's jobs, failed ones first; for admins only",
    responses=documented(401, 403, 422, 429, 503),
)  # fmt: skip
def list_jobs(
    service: Shared,
    who: SignedInAccount,
    state: Annotated[schemas.JobState | None, Query(description="only jobs in this state")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="most jobs of the answer")] = 200,
) -> schemas.Jobs:
    if who.role != "admin":
        raise Problem("not-allowed", f"{who.account} is not an admin of this server: ask its operator")
    now = time.time()
    try:
        runs = [LastRun.of(row, now) for row in all_jobs(service.engine)]
    except Unavailable as error:
        raise Problem("not-ready", "the database does not answer: check that it runs") from error
    runs = [run for run in runs if state is None or run.state == state]
    runs.sort(key=lambda run: run.state not in ("failed", "lost"))
    items = [schemas.JobView.model_validate(asdict(run)) for run in runs[:limit]]
    return schemas.Jobs(items=items, total=len(runs))


@watching.get("/health", operation_id="health", summary="Says that the process runs")
async def health() -> schemas.Health:
    return schemas.Health(status="ok")


@watching.get(
    "/ready", operation_id="ready",
    summary="Ready if the database answers, live events flow, and the index is not too far behind",
    responses=documented(503),
)  # fmt: skip
def ready(service: Shared) -> schemas.Index:
    try:
        with at_head(service.engine, service.deployment) as at:
            head = at.head
            require_known(service.engine, at.db)
            has_source(service.engine, at.db, service.deployment)
    except DatabaseUnfit as error:
        raise Problem("not-ready", str(error)) from error
    except SQLAlchemyError as error:
        raise Problem(
            "not-ready", f"the database does not answer ({type(error).__name__}): check that it runs"
        ) from error
    if service.broadcaster.has_failed:
        raise Problem("not-ready", "the poller of events has ended: the server's log says why; restart the server")
    if (failure := service.broadcaster.failure) is not None:
        why = f"live events wait for the database, whose last error was {failure}: check that it runs"
        raise Problem("not-ready", why)
    if head.number is None:
        raise Problem("not-ready", "nothing is indexed yet: check that the indexer runs")
    chain_head, most = service.broadcaster.chain_head, service.settings.most_behind
    if service.settings.chain_url is not None and chain_head is None:
        raise Problem("not-ready", "the chain node does not answer: check that it runs")
    index = index_view(head, chain_head)
    if index.behind is not None and index.behind > most:
        why = f"the index is {index.behind} blocks behind, more than {most}: check that the indexer runs"
        raise Problem("not-ready", why)
    return index


@watching.get(
    "/metrics", operation_id="metrics", summary="Metrics for Prometheus", response_class=Response,
    responses=media("text format", "text/plain", {"type": "string"}),
)  # fmt: skip
def metrics(service: Shared) -> Response:
    with suppress(Unavailable):  # then the last known values stay
        service.metrics.note_jobs(all_jobs(service.engine), time.time())
        with reading(service.engine) as connection:
            service.metrics.note_tasks(open_tasks(connection), time.time())
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
