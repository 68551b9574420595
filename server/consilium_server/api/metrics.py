"""Metrics of the API's process, for Prometheus."""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Sequence
from functools import partial

from consilium_chain.ledger.structs import Phase
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from consilium_server.database.tables import JobRow
from consilium_server.jobs.ticking import OpenTask

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Metrics of this process, in the text format of Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        count, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.requests = count("consilium_requests_total", "requests answered", ("route", "method", "status"))
        self.seconds = Histogram(
            "consilium_request_seconds", "until an answer begins", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.index_head = gauge("consilium_index_head_block", "block up to which all is indexed")
        self.chain_head = gauge("consilium_chain_head_block", "latest block of the chain node")
        self.lag = gauge("consilium_index_lag_blocks", "blocks that the index is behind")
        self.subscribers = gauge("consilium_event_subscribers", "open streams of events")
        self.dropped = count("consilium_event_subscribers_dropped_total", "streams closed because of a slow client")
        self.reorgs = count("consilium_reorgs_total", "reorganisations seen")
        since, failures = "since a job of this name last succeeded", "in a row, of the job of this name that fails most"
        self.job_seconds = gauge("consilium_job_seconds_since_success", since, ("job",))
        self.job_failures = gauge("consilium_job_failures", failures, ("job",))
        self.open_tasks = gauge("consilium_open_tasks", "tasks that have not ended, by phase", ("phase",))
        overdue = "since the deadline of the phase that should have ended first; 0 without any"
        self.overdue = gauge("consilium_phase_overdue_seconds", overdue)

    def note_jobs(self, rows: Sequence[JobRow], now: float) -> None:
        """Updates the metrics of jobs from their rows; `now` in seconds since the epoch."""
        for job in {row.job for row in rows}:
            own = [row for row in rows if row.job == job]
            self.job_failures.labels(job).set(max(row.failures for row in own))
            if succeeded := [row.succeeded_at for row in own if row.succeeded_at is not None]:
                self.job_seconds.labels(job).set(max(0.0, now - max(succeeded)))

    def note_tasks(self, tasks: Sequence[OpenTask], now: float) -> None:
        """Updates the metrics of open tasks; `now` in seconds since the epoch."""
        counts = Counted(task.phase for task in tasks)
        for phase in Phase:
            if phase not in (Phase.NONE, Phase.ENDED):
                self.open_tasks.labels(phase.name.lower()).set(counts[phase])
        self.overdue.set(max((now - task.deadline for task in tasks if 0 < task.deadline < now), default=0.0))

    def text(self) -> bytes:
        """All metrics, for one scrape."""
        return generate_latest(self.registry)
