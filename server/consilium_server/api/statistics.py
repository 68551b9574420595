"""The statistics that round 0 of a task counted over all its hospitals' rows, from the sum that the chain accepted.

Clients need not trust them: `consilium operator statistics` checks round 0 before it computes the same.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import STATISTICS_ROUND, Outcome
from consilium_chain.tasks.summary_counts import SummaryColumn, published_counts, summary_from
from consilium_core.visible_text import shown
from consilium_zk.errors import ZkError
from fastapi import APIRouter, Request, Response
from numpy.typing import NDArray
from sqlalchemy import select

from consilium_server.api import task_schemas
from consilium_server.api.problems import documented
from consilium_server.api.reading import At, at_head
from consilium_server.api.round_reads import blobs_of, round_events, survivors_of
from consilium_server.api.routing import NOT_MODIFIED, FromReader, Shared, from_store, is_known
from consilium_server.api.schemas import TaskNumber
from consilium_server.api.task_reads import shards_of, spec_of, task_row
from consilium_server.database.tables import OutcomeRow

MOST_COLUMNS = 256
MOST_KEPT = 64  # tasks' statistics

statistics = APIRouter(prefix="/v1", tags=["tasks"])
ROUTERS = (statistics,)


class Sum(NamedTuple):
    """The sum of a round 0. `blobs`: versioned hashes, as the contract derived them from the commitments."""

    blobs: tuple[bytes, ...]
    hospitals: int


class Counted(NamedTuple):
    """The sums of a model's round 0: one of each shard. `text`: the task file."""

    text: str
    sums: tuple[Sum, ...]


# In a thread of its own, and off the database while a mirror answers: a slow one holds up no other request.
@statistics.get(
    "/tasks/{task}/statistics", response_model=task_schemas.AllStatistics, operation_id="getStatistics",
    summary="The statistics of all hospitals' rows together, once round 0 has counted them: none or one",
    responses=documented(404, 422, 429, 503) | NOT_MODIFIED,
)  # fmt: skip
def get_statistics(request: Request, service: Shared, reader: FromReader, task: TaskNumber) -> Response:
    with at_head(service.engine, service.deployment) as at:
        found, headers = _counted(at, task), reader.headers(at.head)
    if is_known(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    told = None if found is None else _told(service.store, found)
    answer = task_schemas.AllStatistics(items=[] if told is None else [told])
    return Response(answer.model_dump_json(), headers=headers, media_type="application/json")


def _counted(at: At, task: int) -> Counted | None:
    """None of a task without a summary, or before a round 0 is settled. Raises Problem for an unknown task."""
    row = task_row(at, task)
    spec = None if row.text is None else spec_of(row.text)[0]
    if spec is None or spec.summary is None:
        return None
    settled = select(OutcomeRow.task).where(
        OutcomeRow.task.in_(shards_of(at, row)),
        OutcomeRow.round == STATISTICS_ROUND,
        OutcomeRow.outcome == Outcome.SETTLED,
    )
    sums = tuple(_sum(at, one) for one in sorted(at.db.scalars(settled)))
    return Counted(row.text, sums) if sums else None


def _sum(at: At, task: int) -> Sum:
    events = round_events(at, task, STATISTICS_ROUND)
    expected = tuple(bytes.fromhex(one.expected[2:]) for one in blobs_of(events, 0) if one.expected)
    return Sum(expected, survivors_of(events).bit_count())


@lru_cache(MOST_KEPT)
def _told(store: ArtifactStore, found: Counted) -> task_schemas.Statistics | None:
    """None without a summary. A sum that is out of range or not of the task file's size is left out. Raises Problem."""
    spec, _ = spec_of(found.text)
    if spec is None or spec.summary is None:
        return None
    hospitals, counts = 0, list[NDArray[np.int64]]()
    for one in found.sums:
        with from_store("a blob of round 0's sum"):
            blobs = store.get_blobs(one.blobs)
        with suppress(ZkError):
            counts.append(published_counts(blobs, one.hospitals, spec))
            hospitals += one.hospitals
    if not counts:
        return None
    summary = summary_from(np.sum(counts, axis=0), hospitals, spec)
    columns = [_column(one) for one in summary.columns[:MOST_COLUMNS]]
    return task_schemas.Statistics(
        hospitals=summary.hospitals, rows=summary.rows, things=spec.data.things, deviation=summary.deviation,
        epsilon=spec.summary.epsilon, delta=spec.summary.delta if spec.summary.epsilon else None, columns=columns,
        left_out=len(summary.columns) - len(columns),
    )  # fmt: skip


def _column(found: SummaryColumn) -> task_schemas.StatisticsColumn:
    names, counts = zip(*found.counts, strict=True)
    return task_schemas.StatisticsColumn(
        name=shown(found.name), is_answer=found.is_answer, edges=found.edges,
        names=[] if found.edges else [shown(one) for one in names], counts=counts, values=found.values,
        missing=found.missing, mean=found.mean, quartiles=found.quartiles, width=found.width,
    )  # fmt: skip
