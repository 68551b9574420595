"""The routes under /v1 that answer from the index: the network and its events, tasks, nodes, money."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any, Literal

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import Outcome, Phase
from consilium_chain.tasks.estimate import ChainTerms, Estimate, estimate
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, spec_hash
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from sqlalchemy import func, select
from sse_starlette import EventSourceResponse

from consilium_server.api import money_reads, nodes, round_reads, schemas, task_reads, task_schemas
from consilium_server.api.events import parse_event_id
from consilium_server.api.money_reads import PaymentFilter
from consilium_server.api.observed import client
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import At
from consilium_server.api.routing import NOT_MODIFIED, READ, FromReader, Paged, Shared, get, limited, media
from consilium_server.api.schemas import GivenAccount, RoleName, RoundNumber, TaskNumber
from consilium_server.database.tables import OutcomeRow

ZERO = "0x" + "00" * 20

LIST = documented(400, 422, 429) | NOT_MODIFIED
ONE = documented(404, 422, 429) | NOT_MODIFIED
LIST_OF_ONE = documented(400, 404, 422, 429) | NOT_MODIFIED

network = APIRouter(prefix="/v1", tags=["network"])
tasks = APIRouter(prefix="/v1", tags=["tasks"])
nodes_router = APIRouter(prefix="/v1", tags=["nodes"])
money = APIRouter(prefix="/v1", tags=["money"])
ROUTERS = (network, tasks, nodes_router, money)

Days = Annotated[int, Query(ge=1, le=365, description="days over which the yield is realised")]


# Network


@get(network, "/network", schemas.Network, "getNetwork", "Statistics of the network, and state of the index", READ)
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
                block=head.number, hash=schemas.hexed(head.hash) if head.hash else None, latest_event_at=head.time,
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
    responses=media(
        "Events `chain`, whose data is an event of the contracts, and `reorg`, whose data names the first block"
        " that is void; the events that replace it follow. Send `Last-Event-ID` to continue an earlier stream.",
        "text/event-stream",
        {"type": "string"},
        example='id: 812-3-9f2b6c0d1e2f3a4b\nevent: chain\ndata: {"name":"RoundSettled","task":1,"round":3}\n\n',
    )
    | documented(422, 429),
)
async def stream_events(
    request: Request,
    service: Shared,
    task: Annotated[TaskNumber | None, Query(description="only events of this task")] = None,
) -> EventSourceResponse:
    named = request.headers.get("last-event-id")
    last_id = None if named is None else parse_event_id(named)
    if named is not None and last_id is None:
        raise Problem("parameters-invalid", "Last-Event-ID is none of this server's: leave it out to begin now")
    settings, who, open_streams = service.settings, client(request.scope, service), service.limits.streams
    limits = settings.limits
    if open_streams[who] >= limits.streams_per_client or open_streams.total() >= limits.streams:
        raise Problem("too-many-requests", "too many streams are open: close one, or come again", {"Retry-After": "30"})
    return _Counted(service.broadcaster.stream(task, last_id), open_streams, who, ping=settings.heartbeat_seconds)


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


@get(tasks, "/tasks", schemas.Page[task_schemas.TaskSummary], "listTasks", "Tasks, the latest first", LIST)
async def list_tasks(
    reader: FromReader,
    asked: Paged,
    phase: schemas.PhaseName | None = None,
    operator: GivenAccount | None = None,
    aggregator: GivenAccount | None = None,
    text: Annotated[
        str | None,
        Query(
            min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$", description="text that the task file contains"
        ),
    ] = None,
    sort: Literal["task", "-task", "pool", "-pool"] = "-task",
) -> Response:
    wanted = task_reads.TaskFilter(phase, operator, aggregator, text, sort)
    return await reader.answer(lambda at: task_reads.list_tasks(at, wanted, asked))


@get(tasks, "/tasks/{task}", task_schemas.Task, "getTask", "A task: terms, file, money, participants", ONE)
async def get_task(reader: FromReader, task: TaskNumber) -> Response:
    return await reader.answer(lambda at: task_reads.one_task(at, task))


@get(
    tasks, "/tasks/{task}/rounds", schemas.Page[task_schemas.RoundSummary], "listRounds",
    "A task's rounds, the latest first", LIST_OF_ONE,
)  # fmt: skip
async def list_rounds(reader: FromReader, asked: Paged, task: TaskNumber) -> Response:
    return await reader.answer(lambda at: round_reads.list_rounds(at, task, asked))


@get(
    tasks, "/tasks/{task}/rounds/{round}", task_schemas.Round, "getRound",
    "A round: cohorts, commitments, committee, outcome, payments, evidence", ONE,
)  # fmt: skip
async def get_round(
    reader: FromReader, task: TaskNumber, round_: Annotated[RoundNumber, Path(alias="round")]
) -> Response:
    return await reader.answer(lambda at: round_reads.one_round(at, task, round_))


@get(
    tasks, "/tasks/{task}/rounds/{round}/proof", task_schemas.Proof, "getProof",
    "Data to check a round again", ONE,
)  # fmt: skip
async def get_proof(
    reader: FromReader, task: TaskNumber, round_: Annotated[RoundNumber, Path(alias="round")]
) -> Response:
    return await reader.answer(lambda at: round_reads.proof(at, task, round_))


@tasks.post(
    "/tasks/check", operation_id="checkTask", summary="Checks a task file and estimates its cost; nothing is stored",
    responses=documented(413, 422, 429),
)  # fmt: skip
def check_task(request: Request, service: Shared, given: task_schemas.TaskText) -> task_schemas.Check:
    limited(service.limits.checks, client(request.scope, service))
    raw = given.text.encode()
    try:
        spec = parse_task_spec(raw)
    except (SpecInvalid, ZkError) as error:
        return task_schemas.Check(hash=schemas.hexed(spec_hash(raw)), holds=False, problem=str(error), task=None)
    return task_schemas.Check(
        hash=schemas.hexed(spec_hash(raw)), holds=True, problem=None, task=_checked(spec, service.chain_terms, raw)
    )


def _checked(spec: TaskSpec, chain: ChainTerms | None, raw: bytes) -> task_schemas.CheckedTask:
    found = estimate(spec, chain)

    def gas(of: Any) -> task_schemas.Gas:
        return task_schemas.Gas(once=of.once, rounds=of.rounds)

    def pay(of: Any) -> task_schemas.Pay:
        return task_schemas.Pay(role=str(of.role), one=str(of.one))

    return task_schemas.CheckedTask(
        spec=task_reads.spec_view(spec),
        terms=task_reads.terms_view(vars(task_params(spec, spec_hash(raw), ZERO))),
        gas=task_schemas.GasEstimate(
            operator=gas(found.operator), aggregator=gas(found.aggregator), hospital=gas(found.hospital),
            seated_voter=gas(found.seated), standing_voter=gas(found.standing), all=found.all_gas,
        ),
        published_blobs=found.published_blobs, artifact_bytes=found.artifact_bytes,
        hospitals=pay(found.hospitals_pay), voters=pay(found.voters_pay), aggregator=pay(found.aggregator_pay),
        concerns=[task_schemas.Concern(rule=one.rule, reason=one.reason) for one in found.concerns],
        present=_present(found, chain),
    )  # fmt: skip


def _present(found: Estimate, chain: ChainTerms | None) -> task_schemas.Present | None:
    if chain is None or found.expected is None or found.longest is None:
        return None
    return task_schemas.Present(
        gas_price=str(chain.gas_price), blob_gas_price=str(chain.blob_gas_price), expected_seconds=found.expected,
        longest_seconds=found.longest,
    )  # fmt: skip


# Nodes


@get(nodes_router, "/nodes", schemas.Page[schemas.NodeSummary], "listNodes", "Nodes, by stake", LIST)
async def list_nodes(
    reader: FromReader,
    service: Shared,
    asked: Paged,
    role: RoleName | None = None,
    account: GivenAccount | None = None,
    days: Days = 30,
    sort: Literal[
        "node", "assets", "active", "commission", "rewarded", "burnt", "rounds", "yield",
        "-node", "-assets", "-active", "-commission", "-rewarded", "-burnt", "-rounds", "-yield",
    ] = "-assets",
) -> Response:  # fmt: skip
    return await reader.answer(
        lambda at: nodes.list_nodes(service.nodes.at(at, days).nodes, role, account, sort, asked)
    )


@get(nodes_router, "/nodes/{node}/{role}", schemas.Node, "getNode", "A node, its slashes and tasks", ONE)
async def get_node(
    reader: FromReader, service: Shared, node: GivenAccount, role: RoleName, days: Days = 30
) -> Response:
    return await reader.answer(lambda at: nodes.one_node(at, service.nodes.at(at, days).nodes, node, role))


@get(
    nodes_router, "/nodes/{node}/{role}/history", schemas.Page[schemas.PoolChange], "listNodeHistory",
    "Changes of a node's pool of stake, the latest first", LIST,
)  # fmt: skip
async def list_node_history(reader: FromReader, asked: Paged, node: GivenAccount, role: RoleName) -> Response:
    return await reader.answer(lambda at: nodes.list_pool_changes(at, node, role, asked))


# Money


@get(money, "/delegations", schemas.Page[schemas.Delegation], "listDelegations", "Delegators' shares of nodes", LIST)
async def list_delegations(
    reader: FromReader,
    asked: Paged,
    delegator: GivenAccount | None = None,
    node: GivenAccount | None = None,
    role: RoleName | None = None,
) -> Response:
    return await reader.answer(lambda at: money_reads.list_delegations(at, delegator, node, role, asked))


@get(money, "/payments", schemas.Page[schemas.Payment], "listPayments", "Rewards, slashes, bounties, refunds", LIST)
async def list_payments(
    reader: FromReader,
    asked: Paged,
    account: GivenAccount | None = None,
    kind: Literal["reward", "slash", "bounty", "refund"] | None = None,
    task: Annotated[TaskNumber | None, Query()] = None,
) -> Response:
    wanted = PaymentFilter(account, kind, task)
    return await reader.answer(lambda at: money_reads.list_payments(at, wanted, asked))


@get(
    money, "/accounts/{account}/unbondings", schemas.Page[schemas.Unbonding], "listUnbondings",
    "Stake that is being withdrawn", LIST,
)  # fmt: skip
async def list_unbondings(reader: FromReader, asked: Paged, account: GivenAccount) -> Response:
    return await reader.answer(lambda at: money_reads.list_unbondings(at, account, asked))


@get(
    money, "/accounts/{account}/history", schemas.Page[schemas.Entry], "listHistory",
    "An account's payments, slashes, stake and withdrawals, the latest first", LIST,
)  # fmt: skip
async def list_history(reader: FromReader, asked: Paged, account: GivenAccount) -> Response:
    return await reader.answer(lambda at: money_reads.list_history(at, account, asked))


@money.get(
    "/accounts/{account}/history.csv", operation_id="exportHistory", summary="The whole history as CSV (RFC 4180)",
    response_class=StreamingResponse,
    responses=media("a header, and a line for each entry", "text/csv", {"type": "string"}) | READ,
)  # fmt: skip
async def export_history(reader: FromReader, service: Shared, account: GivenAccount) -> Response:
    desk = service.desk
    headers, first = await desk.page(lambda at: (reader.headers(at.head), money_reads.first_csv_page(at, account)))
    if reader.is_known(headers):
        return Response(status_code=304, headers=headers)

    async def pages() -> AsyncIterator[str]:
        page = first
        yield page.text
        while page.place is not None:
            page = await desk.page(partial(money_reads.next_csv_page, account=account, before=page))
            yield page.text

    name = f'attachment; filename="consilium-{account}.csv"'
    return StreamingResponse(pages(), headers=headers | {"Content-Disposition": name}, media_type="text/csv")
