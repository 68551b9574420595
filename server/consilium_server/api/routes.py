"""The routes under /v1, and those for who watches over the server."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal

from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, ChainError, SpecInvalid, StoreMissing
from consilium_chain.estimate import Estimate, estimate
from consilium_chain.proposal import task_params
from consilium_chain.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_chain.views import Outcome, Phase
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sse_starlette import EventSourceResponse

from consilium_server.api import money_reads, nodes, schemas, task_reads
from consilium_server.api.context import Service, shared
from consilium_server.api.events import EVENT_ID
from consilium_server.api.limits import Buckets
from consilium_server.api.money_reads import PaymentFilter
from consilium_server.api.observed import client
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import At, FromReader, Paged, at_head
from consilium_server.api.schemas import GivenAccount, Hash, RoleName, RoundNumber, TaskNumber
from consilium_server.api.sessions import Session
from consilium_server.database.tables import OutcomeRow
from consilium_server.errors import DatabaseUnreachable, SignInMalformed, SignInRefused
from consilium_server.jobs.keeping import all_jobs, as_line

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
ZERO = "0x" + "00" * 20

_NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the client has this answer"}}
READ = documented(422, 429) | _NOT_MODIFIED
LIST = documented(400, 422, 429) | _NOT_MODIFIED
ONE = documented(404, 422, 429) | _NOT_MODIFIED
LIST_OF_ONE = documented(400, 404, 422, 429) | _NOT_MODIFIED

network = APIRouter(prefix="/v1", tags=["network"])
tasks = APIRouter(prefix="/v1", tags=["tasks"])
nodes_router = APIRouter(prefix="/v1", tags=["nodes"])
money = APIRouter(prefix="/v1", tags=["money"])
artifacts = APIRouter(prefix="/v1", tags=["artifacts"])
sessions = APIRouter(prefix="/v1", tags=["session"])
jobs_router = APIRouter(prefix="/v1", tags=["watching"])
watching = APIRouter(tags=["watching"])
ROUTERS = (network, tasks, nodes_router, money, artifacts, sessions, jobs_router, watching)

Shared = Annotated[Service, Depends(shared)]
Days = Annotated[int, Query(ge=1, le=365, description="over which the realised yield is")]


def _limited(buckets: Buckets, key: str) -> None:
    if wait := buckets.take(key):
        raise Problem("too-many-requests", f"come again in {wait} s", {"Retry-After": str(wait)})


def _media(answer: str, media_type: str, schema: dict[str, str], **more: str) -> dict[int | str, dict[str, Any]]:
    """The OpenAPI of an answer that is not JSON."""
    return {200: {"description": answer, "content": {media_type: {"schema": schema, **more}}}}


# Network


@network.get(
    "/network",
    response_model=schemas.Network,
    operation_id="getNetwork",
    summary="Statistics, and how far the index is",
    responses=READ,
)
async def get_network(reader: FromReader, service: Shared) -> Response:
    chain_head = service.chain_head

    def read(at: At) -> schemas.Network:
        phase = task_reads.latest_phases()
        phases = {n: count for n, count in at.db.execute(select(phase.c.phase, func.count()).group_by(phase.c.phase))}
        ended = select(OutcomeRow.outcome, func.count()).group_by(OutcomeRow.outcome)
        outcomes = {outcome: count for outcome, count in at.db.execute(ended)}
        everything, book, head = service.nodes.at(at, 30), service.deployment, at.head
        behind = None if chain_head is None or head.number is None else max(0, chain_head - head.number)
        return schemas.Network(
            chain_id=book.chain_id,
            contracts=schemas.Contracts(
                tasks=book.tasks, staking=book.staking, token=book.token, beacon=book.beacon
            ),
            index=schemas.Index(
                block=head.number, hash=task_reads.hexed(head.hash) if head.hash else None, latest_event_at=head.time,
                chain_head=chain_head, behind=behind,
            ),
            tasks={schemas.name(Phase(k)): v for k, v in sorted(phases.items())},
            rounds={schemas.name(Outcome(k)): v for k, v in sorted(outcomes.items())},
            pools=str(task_reads.all_pools(at)),
            stake=nodes.totals(everything.nodes),
            delegators=everything.delegators,
        )  # fmt: skip

    return await reader.answer(read, depends_on=lambda head: f"{head.number} {chain_head}")


@network.get(
    "/events",
    operation_id="streamEvents",
    summary="The chain's events as they are indexed (server-sent events)",
    response_class=EventSourceResponse,
    responses=_media(
        "Events `chain`, whose data is an event of the contracts, and `reorg`, whose data says from which block on all"
        " that was told is void; what holds now follows. Send `Last-Event-ID` to go on where a stream ended.",
        "text/event-stream",
        {"type": "string"},
        example='id: 812-3-9f2b6c0d1e2f3a4b\nevent: chain\ndata: {"name":"RoundSettled","task":1,"round":3}\n\n',
    )
    | documented(422, 429),
)
async def stream_events(
    request: Request,
    service: Shared,
    task: Annotated[TaskNumber | None, Query(description="of this task alone")] = None,
) -> EventSourceResponse:
    last_id = request.headers.get("last-event-id")
    if last_id is not None and not EVENT_ID.fullmatch(last_id):
        raise Problem("parameters-invalid", "Last-Event-ID is none of this server's: leave it out to begin now")
    settings, who, open_streams = service.settings, client(request.scope, service), service.limits.streams
    limits = settings.limits
    if open_streams[who] >= limits.streams_per_client or open_streams.total() >= limits.streams:
        raise Problem("too-many-requests", "too many streams are open: close one, or come again", {"Retry-After": "30"})
    return _Counted(
        service.broadcaster.stream(task, last_id), open_streams, who,
        ping=settings.heartbeat_seconds, send_timeout=settings.stalled_seconds,
    )  # fmt: skip


class _Counted(EventSourceResponse):
    """Counts towards its client's streams for as long as it is sent."""

    def __init__(self, content: Any, streams: Counter[str], who: str, **options: Any) -> None:
        super().__init__(content, **options)
        self._streams, self._who = streams, who

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._streams[self._who] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams[self._who] -= 1
            if not self._streams[self._who]:
                del self._streams[self._who]


# Tasks


@tasks.get(
    "/tasks",
    response_model=schemas.Page[schemas.TaskSummary],
    operation_id="listTasks",
    summary="Tasks, the latest first",
    responses=LIST,
)
async def list_tasks(
    reader: FromReader,
    asked: Paged,
    phase: schemas.PhaseName | None = None,
    operator: GivenAccount | None = None,
    aggregator: GivenAccount | None = None,
    text: Annotated[
        str | None,
        Query(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", description="somewhere in the task file"),
    ] = None,
    sort: Literal["task", "-task", "pool", "-pool"] = "-task",
) -> Response:
    wanted = task_reads.TaskFilter(phase, operator, aggregator, text, sort)
    return await reader.answer(lambda at: task_reads.list_tasks(at, wanted, asked))


@tasks.get(
    "/tasks/{task}",
    response_model=schemas.Task,
    operation_id="getTask",
    summary="A task: terms, file, money, who takes part",
    responses=ONE,
)
async def get_task(reader: FromReader, task: TaskNumber) -> Response:
    return await reader.answer(lambda at: task_reads.one_task(at, task))


@tasks.get(
    "/tasks/{task}/rounds",
    response_model=schemas.Page[schemas.RoundSummary],
    operation_id="listRounds",
    summary="A task's rounds, the latest first",
    responses=LIST_OF_ONE,
)
async def list_rounds(reader: FromReader, asked: Paged, task: TaskNumber) -> Response:
    return await reader.answer(lambda at: task_reads.list_rounds(at, task, asked))


@tasks.get(
    "/tasks/{task}/rounds/{round}",
    response_model=schemas.Round,
    operation_id="getRound",
    summary="A round: cohorts, commitments, committee, outcome, payments, evidence",
    responses=ONE,
)
async def get_round(
    reader: FromReader, task: TaskNumber, round_: Annotated[RoundNumber, Path(alias="round")]
) -> Response:
    return await reader.answer(lambda at: task_reads.one_round(at, task, round_))


@tasks.get(
    "/tasks/{task}/rounds/{round}/proof",
    response_model=schemas.Proof,
    operation_id="getProof",
    summary="What is needed to check a round again",
    responses=ONE,
)
async def get_proof(
    reader: FromReader, task: TaskNumber, round_: Annotated[RoundNumber, Path(alias="round")]
) -> Response:
    return await reader.answer(lambda at: task_reads.proof(at, task, round_))


@tasks.post(
    "/tasks/check",
    operation_id="checkTask",
    summary="What a task file comes to; nothing is stored",
    responses=documented(413, 422, 429),
)
def check_task(request: Request, service: Shared, given: schemas.TaskText) -> schemas.Check:
    _limited(service.limits.checks, client(request.scope, service))
    raw = given.text.encode()
    try:
        spec = parse_task_spec(raw)
    except (SpecInvalid, ZkError) as error:
        return schemas.Check(hash=task_reads.hexed(spec_hash(raw)), holds=False, problem=str(error), task=None)
    return schemas.Check(
        hash=task_reads.hexed(spec_hash(raw)), holds=True, problem=None, task=_checked(spec, estimate(spec), raw)
    )


def _checked(spec: TaskSpec, found: Estimate, raw: bytes) -> schemas.CheckedTask:
    def gas(of: Any) -> schemas.Gas:
        return schemas.Gas(once=of.once, rounds=of.rounds)

    def pay(of: Any) -> schemas.Pay:
        return schemas.Pay(role=str(of.role), one=str(of.one))

    return schemas.CheckedTask(
        spec=task_reads.spec_view(spec),
        terms=task_reads.terms_view(vars(task_params(spec, spec_hash(raw), ZERO))),
        gas=schemas.GasEstimate(
            operator=gas(found.operator), aggregator=gas(found.aggregator), hospital=gas(found.hospital),
            seated_voter=gas(found.seated), standing_voter=gas(found.standing), all=found.all_gas,
        ),
        published_blobs=found.published_blobs, artifact_bytes=found.artifact_bytes,
        hospitals=pay(found.hospitals_pay), voters=pay(found.voters_pay), aggregator=pay(found.aggregator_pay),
        concerns=[schemas.Concern(rule=one.rule, reason=one.reason) for one in found.concerns],
    )  # fmt: skip


# Nodes


@nodes_router.get(
    "/nodes",
    response_model=schemas.Page[schemas.NodeSummary],
    operation_id="listNodes",
    summary="Nodes, by stake",
    responses=LIST,
)
async def list_nodes(
    reader: FromReader,
    asked: Paged,
    role: RoleName | None = None,
    account: GivenAccount | None = None,
    days: Days = 30,
    sort: Literal[
        "node", "assets", "active", "commission", "rewarded", "burnt", "rounds", "yield",
        "-node", "-assets", "-active", "-commission", "-rewarded", "-burnt", "-rounds", "-yield",
    ] = "-assets",
) -> Response:  # fmt: skip
    return await reader.answer(lambda at: nodes.list_nodes(at, role, account, days, sort, asked))


@nodes_router.get(
    "/nodes/{node}/{role}",
    response_model=schemas.Node,
    operation_id="getNode",
    summary="A node, its slashes and tasks",
    responses=ONE,
)
async def get_node(reader: FromReader, node: GivenAccount, role: RoleName, days: Days = 30) -> Response:
    return await reader.answer(lambda at: nodes.one_node(at, node, role, days))


@nodes_router.get(
    "/nodes/{node}/{role}/history",
    response_model=schemas.Page[schemas.PoolChange],
    operation_id="listNodeHistory",
    summary="How a node's pool of stake changed, the latest first",
    responses=LIST,
)
async def list_node_history(reader: FromReader, asked: Paged, node: GivenAccount, role: RoleName) -> Response:
    return await reader.answer(lambda at: nodes.list_pool_changes(at, node, role, asked))


# Money


@money.get(
    "/delegations",
    response_model=schemas.Page[schemas.Delegation],
    operation_id="listDelegations",
    summary="Who has which shares of whom",
    responses=LIST,
)
async def list_delegations(
    reader: FromReader,
    asked: Paged,
    delegator: GivenAccount | None = None,
    node: GivenAccount | None = None,
    role: RoleName | None = None,
) -> Response:
    return await reader.answer(lambda at: money_reads.list_delegations(at, delegator, node, role, asked))


@money.get(
    "/payments",
    response_model=schemas.Page[schemas.Payment],
    operation_id="listPayments",
    summary="Rewards, slashes, bounties, refunds",
    responses=LIST,
)
async def list_payments(
    reader: FromReader,
    asked: Paged,
    account: GivenAccount | None = None,
    kind: Literal["reward", "slash", "bounty", "refund"] | None = None,
    task: Annotated[TaskNumber | None, Query()] = None,
) -> Response:
    wanted = PaymentFilter(account, kind, task)
    return await reader.answer(lambda at: money_reads.list_payments(at, wanted, asked))


@money.get(
    "/accounts/{account}/unbondings",
    response_model=schemas.Page[schemas.Unbonding],
    operation_id="listUnbondings",
    summary="Stake on its way home",
    responses=LIST,
)
async def list_unbondings(reader: FromReader, asked: Paged, account: GivenAccount) -> Response:
    return await reader.answer(lambda at: money_reads.list_unbondings(at, account, asked))


@money.get(
    "/accounts/{account}/history",
    response_model=schemas.Page[schemas.Entry],
    operation_id="listHistory",
    summary="What an account was paid, lost, staked and took home, the latest first",
    responses=LIST,
)
async def list_history(reader: FromReader, asked: Paged, account: GivenAccount) -> Response:
    return await reader.answer(lambda at: money_reads.list_history(at, account, asked))


@money.get(
    "/accounts/{account}/history.csv",
    operation_id="exportHistory",
    summary="The same, whole, as CSV (RFC 4180)",
    response_class=StreamingResponse,
    responses=_media("a header, and a line for each entry", "text/csv", {"type": "string"}) | READ,
)
def export_history(reader: FromReader, service: Shared, account: GivenAccount) -> Response:
    with at_head(service) as at:
        headers = reader.headers(at.head)
    if reader.is_known(headers):
        return Response(status_code=304, headers=headers)

    def lines() -> Iterator[str]:
        with at_head(service) as at:
            yield from money_reads.history_csv(at, account)

    name = f'attachment; filename="consilium-{account}.csv"'
    return StreamingResponse(lines(), headers=headers | {"Content-Disposition": name}, media_type="text/csv")


# Artifacts

_BYTES = _media("its bytes", "application/octet-stream", {"type": "string", "format": "binary"})
_ARTIFACT = documented(404, 422, 429, 503) | _NOT_MODIFIED


@artifacts.get(
    "/artifacts/files/{hash}",
    operation_id="getFile",
    summary="A file by its keccak256, checked",
    response_class=Response,
    responses=_BYTES | _ARTIFACT,
)
def get_file(request: Request, service: Shared, hash_: Annotated[Hash, Path(alias="hash")]) -> Response:
    return _artifact(request, hash_, lambda digest: service.store.get_file(digest))


@artifacts.get(
    "/artifacts/blobs/{hash}",
    operation_id="getBlob",
    summary="A blob by its versioned hash (EIP-4844), checked: 131,072 bytes",
    response_class=Response,
    responses=_BYTES | _ARTIFACT,
)
def get_blob(request: Request, service: Shared, hash_: Annotated[Hash, Path(alias="hash")]) -> Response:
    return _artifact(request, hash_, lambda digest: service.store.get_blobs([digest])[0])


def _artifact(request: Request, hash_: str, read: Any) -> Response:
    headers = FOREVER | {"ETag": f'"{hash_}"'}
    if headers["ETag"] in [one.strip() for one in request.headers.get("if-none-match", "").split(",")]:
        return Response(status_code=304, headers=headers)
    try:
        raw = read(bytes.fromhex(hash_[2:]))
    except ArtifactMissing as error:
        raise Problem("artifact-missing", f"nobody has stored {hash_} here: ask another mirror") from error
    except ArtifactCorrupt as error:
        raise Problem("artifact-missing", f"what is stored as {hash_} is not that: ask another mirror") from error
    except (StoreMissing, OSError) as error:
        raise Problem("not-ready", "this server's artifact store does not answer: ask another mirror") from error
    return Response(raw, headers=headers, media_type="application/octet-stream")


# Sessions

bearer = HTTPBearer(auto_error=False, description="a token of `POST /v1/session`")


def session(service: Shared, given: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Session:
    """Who is signed in. Raises Problem."""
    found = service.sessions.session_of(given.credentials, int(time.time())) if given else None
    if found is None:
        told = "sign in with POST /v1/session, and send its token as Authorization: Bearer"
        raise Problem("sign-in-required", told, {"WWW-Authenticate": "Bearer"})
    return found


SignedInAccount = Annotated[Session, Depends(session)]


@sessions.get(
    "/session/nonce", operation_id="getNonce", summary="What a message to sign must hold", responses=documented(429)
)
def get_nonce(request: Request, service: Shared) -> schemas.Nonce:
    _limited(service.limits.sign_ins, client(request.scope, service))
    now = int(time.time())
    return service.sessions.challenge(now)


@sessions.post(
    "/session",
    operation_id="signIn",
    summary="Sign-In with Ethereum (EIP-4361)",
    responses=documented(400, 403, 413, 422, 429),
)
def sign_in(request: Request, service: Shared, given: schemas.SignIn) -> schemas.SignedIn:
    _limited(service.limits.sign_ins, client(request.scope, service))
    try:
        token, found = service.sessions.sign_in(given.message, bytes.fromhex(given.signature[2:]), int(time.time()))
    except SignInMalformed as error:
        raise Problem("sign-in-malformed", str(error)) from error
    except SignInRefused as error:
        raise Problem("sign-in-refused", str(error), faults=[{"where": error.what, "what": str(error)}]) from error
    return schemas.SignedIn(
        account=found.account, role=service.sessions.role_of(found), expires_at=found.expires_at, token=token
    )


@sessions.get("/session", operation_id="getSession", summary="Who is signed in", responses=documented(401, 429))
def get_session(service: Shared, who: SignedInAccount) -> schemas.SessionView:
    return schemas.SessionView(account=who.account, role=service.sessions.role_of(who), expires_at=who.expires_at)


@artifacts.put(
    "/artifacts/files",
    operation_id="putTaskFile",
    summary="Stores a task file that holds, so that a wallet can propose it",
    responses=documented(401, 403, 413, 422, 429, 503),
)
def put_task_file(
    request: Request, service: Shared, who: SignedInAccount, given: schemas.TaskText
) -> schemas.StoredFile:
    allowed = service.settings.operators
    if allowed is not None and who.account not in allowed and service.sessions.role_of(who) != "admin":
        raise Problem("not-allowed", f"{who.account} may not store files here: ask this server's operator, or another")
    _limited(service.limits.files, who.account)
    _limited(service.limits.files, client(request.scope, service))
    raw = given.text.encode()
    try:
        parse_task_spec(raw)
    except (SpecInvalid, ZkError) as error:
        raise Problem("task-file-invalid", str(error)) from error
    try:
        digest = service.store.put_file(raw)
    except (ChainError, OSError) as error:
        told = f"the artifact store takes nothing now ({type(error).__name__}): try again, then tell the operator"
        raise Problem("not-ready", told) from error
    return schemas.StoredFile(hash=task_reads.hexed(digest), size=len(raw))


# Watching over the server


@jobs_router.get(
    "/jobs",
    operation_id="listJobs",
    summary="How the server's jobs are going, what fails first; for admins",
    responses=documented(401, 403, 422, 429, 503),
)
def list_jobs(
    service: Shared,
    who: SignedInAccount,
    state: Annotated[schemas.JobState | None, Query(description="these alone")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="jobs, at most")] = 200,
) -> schemas.Jobs:
    if service.sessions.role_of(who) != "admin":
        raise Problem("not-allowed", f"{who.account} is no admin here: ask this server's operator")
    now = time.time()
    try:
        lines = [as_line(row, now) for row in all_jobs(service.engine)]
    except DatabaseUnreachable as error:
        raise Problem("not-ready", "the database does not answer: see that it runs") from error
    lines = [line for line in lines if state is None or line["state"] == state]
    lines.sort(key=lambda line: line["state"] not in ("failed", "lost"))
    items = [schemas.JobView.model_validate(line) for line in lines[:limit]]
    return schemas.Jobs(items=items, total=len(lines))


@watching.get("/health", operation_id="health", summary="Whether the process lives")
async def health() -> schemas.Health:
    return schemas.Health(status="ok")


@watching.get(
    "/ready",
    operation_id="ready",
    summary="Whether the database answers, and the index is not too far behind",
    responses=documented(503),
)
def ready(service: Shared) -> schemas.Index:
    try:
        with at_head(service) as at:
            head = at.head
    except SQLAlchemyError as error:
        raise Problem(
            "not-ready", f"the database does not answer ({type(error).__name__}): see that it runs"
        ) from error
    if service.broadcaster.has_failed:
        raise Problem("not-ready", "what follows the index has ended: the server's log says why; start it again")
    if head.number is None:
        raise Problem("not-ready", "nothing is indexed yet: see that the indexer runs")
    chain_head, most = service.chain_head, service.settings.most_behind
    if service.settings.chain_url is not None and chain_head is None:
        raise Problem("not-ready", "the chain node does not answer: see that it runs")
    behind = None if chain_head is None else max(0, chain_head - head.number)
    if behind is not None and behind > most:
        raise Problem("not-ready", f"the index lacks {behind} blocks, more than {most}: see that the indexer runs")
    return schemas.Index(
        block=head.number, hash=task_reads.hexed(head.hash), latest_event_at=head.time, chain_head=chain_head,
        behind=behind,
    )  # fmt: skip


@watching.get(
    "/metrics",
    operation_id="metrics",
    summary="For Prometheus",
    response_class=Response,
    responses=_media("text format", "text/plain", {"type": "string"}),
)
def metrics(service: Shared) -> Response:
    with suppress(DatabaseUnreachable):  # then what was last known stands
        service.metrics.note_jobs(all_jobs(service.engine), time.time())
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
