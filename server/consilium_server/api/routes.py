"""Routes under /v1 that answer from the index: the network and its events, tasks, nodes, money."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.structs import Outcome, Phase
from consilium_chain.tasks.chain_terms import ChainTerms
from consilium_chain.tasks.estimate import estimate
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec, section_digests, spec_hash
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from sqlalchemy import func, select
from sse_starlette import EventSourceResponse

from consilium_server.api import money_reads, node_reads, round_reads, schemas, standing_reads, task_reads, task_schemas
from consilium_server.api.drafts import document_of, faults_of, task_schema, text_of
from consilium_server.api.events import parse_event_id
from consilium_server.api.nodes import totals
from consilium_server.api.observed import client_address
from consilium_server.api.problems import Problem, documented
from consilium_server.api.reading import At
from consilium_server.api.routing import READ, FromReader, Shared, index_view, is_known, limited, media
from consilium_server.api.schemas import GivenAccount, TaskNumber
from consilium_server.database.tables import OutcomeRow

ZERO = "0x" + "00" * 20

network = APIRouter(prefix="/v1", tags=["network"])
ROUTERS = (network, task_reads.tasks, round_reads.rounds, standing_reads.standings, node_reads.nodes, money_reads.money)


# Network


@network.get(
    "/network", response_model=schemas.Network, operation_id="getNetwork",
    summary="Statistics of the network, and state of the index", responses=READ,
)  # fmt: skip
async def get_network(reader: FromReader, service: Shared) -> Response:
    seen = service.broadcaster
    chain_head, unbonding, symbol = seen.chain_head, seen.unbonding, seen.token_symbol

    def read(at: At) -> schemas.Network:
        phase = task_reads.latest_phases()
        phases = {n: count for n, count in at.db.execute(select(phase.c.phase, func.count()).group_by(phase.c.phase))}
        ended = select(OutcomeRow.outcome, func.count()).group_by(OutcomeRow.outcome)
        outcomes = {outcome: count for outcome, count in at.db.execute(ended)}
        everything, book, head = service.nodes.at(at, 30), service.deployment, at.head
        return schemas.Network(
            chain_id=book.chain_id,
            contracts=schemas.Contracts.model_validate(book),
            token_symbol=symbol,
            index=index_view(head, chain_head),
            tasks={schemas.name(Phase(k)): v for k, v in sorted(phases.items())},
            rounds={schemas.name(Outcome(k)): v for k, v in sorted(outcomes.items())},
            pools=str(task_reads.all_pools(at)),
            stake=totals(everything.nodes),
            delegators=everything.delegators,
            unbonding_seconds=unbonding,
        )  # fmt: skip

    return await reader.answer(read, depends_on=lambda head: f"{head.number} {chain_head} {unbonding} {symbol}")


@network.get(
    "/events",
    operation_id="streamEvents",
    summary="The chain's events as they are indexed (server-sent events)",
    response_class=EventSourceResponse,
    responses=media(
        "`chain` has an event of the contracts as its data. `reorg` has the first block that is void; the events"
        " that replace it follow. Send `Last-Event-ID` to continue an earlier stream.",
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
    header = request.headers.get("last-event-id")
    last_id = None if header is None else parse_event_id(header)
    if header is not None and last_id is None:
        raise Problem("parameters-invalid", "this server did not send this Last-Event-ID: leave it out to begin now")
    settings, address, open_streams = service.settings, client_address(request.scope, service), service.limits.streams
    limits = settings.limits
    if open_streams[address] >= limits.streams_per_client or open_streams.total() >= limits.streams:
        why = "too many streams are open: close one, or try again later"
        raise Problem("too-many-requests", why, {"Retry-After": "30"})
    return _Counted(service.broadcaster.stream(task, last_id), open_streams, address, ping=settings.heartbeat_seconds)


class _Counted(EventSourceResponse):
    """Counts towards its client's streams while it is sent."""

    def __init__(self, content: Any, streams: Counter[str], address: str, **options: Any) -> None:
        super().__init__(content, **options)
        self._streams, self._address = streams, address

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self._streams[self._address] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams[self._address] -= 1
            if not self._streams[self._address]:
                del self._streams[self._address]


# Tasks


@task_reads.tasks.get(
    "/task-schema", operation_id="getTaskSchema", summary="JSON schema of task files, for forms",
    responses=documented(429),
)  # fmt: skip
async def get_task_schema() -> dict[str, Any]:
    return task_schema()


@task_reads.tasks.post(
    "/tasks/check", operation_id="checkTask",
    summary="Checks a task file and estimates its cost; nothing is stored. Writes the file of a document",
    responses=documented(413, 422, 429),
)  # fmt: skip
def check_task(
    request: Request, service: Shared, body: task_schemas.TaskText | task_schemas.TaskDocument
) -> task_schemas.Check:
    limited(service.limits.checks, client_address(request.scope, service))
    text = body.text if isinstance(body, task_schemas.TaskText) else _written(body.document)
    raw = text.encode()
    task, problem, faults = None, None, []
    try:
        task = _checked(parse_task_spec(raw), service.broadcaster.chain_terms, raw)
    except (SpecInvalid, ZkError) as error:
        problem, faults = str(error), faults_of(error)
    values = {"holds": task is not None, "problem": problem, "faults": faults, "task": task}
    given = {"hash": schemas.hexed(spec_hash(raw)), "text": text, "document": document_of(raw)}
    return task_schemas.Check.model_validate(given | values)


def _written(document: dict[str, Any]) -> str:
    """Its file. Raises Problem if no file can say it."""
    try:
        return task_schemas.TaskText(text=text_of(document)).text
    except ValueError as error:  # nested too deep; too long; half a surrogate pair
        why = "the document makes no task file: it is empty, too long, nested too deep, or has text that is not Unicode"
        raise Problem("parameters-invalid", why) from error


def _checked(spec: TaskSpec, chain: ChainTerms | None, raw: bytes) -> task_schemas.CheckedTask:
    cost = estimate(spec, chain)
    present = None
    if chain is not None:
        prices = {"gas_price": chain.gas_price, "blob_gas_price": chain.blob_gas_price}
        present = prices | {"expected_seconds": cost.expected, "longest_seconds": cost.longest}
    values: dict[str, Any] = {
        "spec": task_reads.spec_view(spec),
        "sections": section_digests(spec),
        "terms": task_reads.terms_view(vars(task_params(spec, spec_hash(raw), ZERO))),
        "gas": {
            "operator": cost.operator, "aggregator": cost.aggregator, "hospital": cost.hospital,
            "seated_voter": cost.seated, "standing_voter": cost.standing, "all": cost.all_gas,
        },
        "published_blobs": cost.published_blobs, "artifact_bytes": cost.artifact_bytes,
        "hospitals": cost.hospitals_pay, "voters": cost.voters_pay, "aggregator": cost.aggregator_pay,
        "concerns": cost.concerns, "present": present,
    }  # fmt: skip
    return task_schemas.CheckedTask.model_validate(values)


# Money


@money_reads.money.get(
    "/accounts/{account}/history.csv", operation_id="exportHistory", summary="The whole history as CSV (RFC 4180)",
    response_class=StreamingResponse,
    responses=media("a header, and a line for each entry", "text/csv", {"type": "string"}) | READ,
)  # fmt: skip
async def export_history(request: Request, reader: FromReader, service: Shared, account: GivenAccount) -> Response:
    reads = service.reads
    headers, name, first = await reads.page(lambda at: (
        reader.headers(at.head), money_reads.csv_name(at, account), money_reads.first_csv_page(at, account)
    ))  # fmt: skip
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)

    async def pages() -> AsyncIterator[str]:
        page = first
        yield page.text
        while page.position is not None:
            page = await reads.page(partial(money_reads.next_csv_page, account=account, before=page))
            yield page.text

    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(pages(), headers=headers | disposition, media_type="text/csv")
