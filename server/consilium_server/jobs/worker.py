"""`consilium server worker`: the work of each job, in one process with Celery's worker and a beat.

The queue holds no state. Each job looks at chain, database, store and folders of aggregators, and does the missing
work; done twice it does nothing. So beat sends jobs again and again, messages may be lost or come twice, there may be
several workers and beats, and the sender runs the jobs that the broker does not take.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from urllib.parse import unquote, urlsplit

from celery import Celery
from celery.worker import state as celery_state
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.transactions import RECEIPT_TIMEOUT
from consilium_core.logs import emit
from sqlalchemy import Engine, select

from consilium_server.config import WorkerSettings
from consilium_server.database.engine import open_database, reading, shown
from consilium_server.database.tables import JobRow, PhaseStart
from consilium_server.index.indexer import Indexer
from consilium_server.jobs.broker import THREADS, Beat, Sender, make_app
from consilium_server.jobs.pinning import PIN, artifacts, pin, unpinned
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.jobs.runner import Job, Runner
from consilium_server.jobs.store import Ended
from consilium_server.jobs.supervisor import Supervisor
from consilium_server.jobs.ticking import is_overdue, move_on, open_tasks

SILENCE = 60.0  # seconds in which what libraries log is told once
STRETCH, BUDGET = 50_000, 10.0  # blocks of one go of the indexer; seconds after which a job of it ends

INDEX = Job("index", 30.0, RetryPolicy(0.5, 10.0))
WATCH = Job("watch", 15.0, RetryPolicy(0.5, 10.0))
TICK = Job("tick", RECEIPT_TIMEOUT + 30.0, RetryPolicy(2.0, 120.0))
SUPERVISE = Job("conduct", 15.0, RetryPolicy(1.0, 300.0))
PINNING = Job(PIN, 120.0, RetryPolicy(2.0, 3_600.0))


class Jobs:
    """The work of each job."""

    def __init__(self, settings: WorkerSettings, ledger: Ledger, database: Engine, sender: Sender) -> None:
        self._settings, self._ledger, self._database, self._sender = settings, ledger, database, sender
        self._store = settings.store
        self._runner = Runner(database)
        self._indexer = Indexer(ledger, database, self._store)
        self._indexed = ledger.deployment.first_block
        self._mirrors = [str(place) for place in settings.artifacts[1:]]
        self.account = ledger.connection.account and ledger.address
        self.supervisor: Supervisor | None = None
        if settings.key_files is not None:
            self.supervisor = Supervisor(settings, settings.key_files, ledger, self._is_over)

    def index(self) -> None:
        self._runner.run(INDEX, "", self._index)

    def watch(self) -> None:
        self._runner.run(WATCH, "", self._watch)

    def tick(self, task: int) -> None:
        self._runner.run(TICK, str(task), lambda row: self._tick(task))

    def supervise(self, task: int) -> None:
        if self.supervisor is not None:
            supervisor = self.supervisor
            self._runner.run(SUPERVISE, str(task), lambda row: supervisor.supervise(task))

    def pin(self, task: int, round_: int) -> None:
        self._runner.run(PINNING, f"{task}/{round_}", lambda row: self._pin(row, task, round_))

    def _index(self, row: JobRow) -> Ended:
        """Indexes up to the chain's head, or for a while: then another worker may go on."""
        end = time.monotonic() + BUDGET
        while time.monotonic() < end:
            aim = self._indexed + STRETCH
            self._indexed = self._indexer.catch_up(aim)
            if self._indexed < aim:
                break
        return Ended()

    def _watch(self, row: JobRow) -> Ended:
        """Sends all due jobs. Then raises Unavailable if the broker takes nothing, so that it shows."""
        now = self._ledger.connection.blocks.now()
        with reading(self._database) as connection:
            tasks = open_tasks(connection)
            lacking = unpinned(connection, self._mirrors, time.time()) if self._store.has_writable_mirrors else []
        if self.account is not None:
            for task in tasks:
                if task.aggregator == self.account:
                    self._send(SUPERVISE, (task.number,))
                if is_overdue(task, now, self._settings.precedence_seconds):
                    self._send(TICK, (task.number,))
        for place in lacking:
            self._send(PINNING, place)
        if self.supervisor is not None:
            self.supervisor.reap()
        if self._sender.failure is not None:
            raise self._sender.failure
        return Ended()

    def _send(self, job: Job, arguments: tuple[int, ...]) -> None:
        self._sender.send(job.name, arguments, self._settings.watch_seconds)

    def _tick(self, task: int) -> Ended:
        if self.account is not None:
            move_on(self._ledger, task)
        return Ended()

    def _pin(self, row: JobRow, task: int, round_: int) -> Ended:
        with reading(self._database) as connection:
            named, mark = artifacts(connection, task, round_, self._mirrors)
        if row.mark != mark:
            pin(self._store, named)
        return Ended(mark)

    def _is_over(self, task: int) -> bool:
        ended = select(PhaseStart.task).where(PhaseStart.task == task, PhaseStart.phase == Phase.ENDED)
        with reading(self._database) as connection:
            return connection.execute(ended).first() is not None


def add_jobs(app: Celery, jobs: Jobs) -> None:
    """Adds the jobs to the application."""
    for job, work in (
        (INDEX, jobs.index), (WATCH, jobs.watch), (TICK, jobs.tick), (SUPERVISE, jobs.supervise), (PINNING, jobs.pin),
    ):  # fmt: skip
        app.task(_function(work), name=job.name)
    app.finalize()


def _function(work: Callable[..., None]) -> Callable[..., None]:
    """A function for Celery, which makes a class of it and would leave a method without its object."""

    def run(*arguments: int) -> None:
        work(*arguments)

    return run


class JournalHandler(logging.Handler):
    """Logs the lines of libraries, without the broker's password; a repeated one only after a while."""

    def __init__(self, broker: str) -> None:
        super().__init__(logging.WARNING)
        password = urlsplit(broker).password
        self._secrets = {password, unquote(password)} if password else set()
        self._silent_until: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        said = (record.getMessage().strip().splitlines() or [""])[0]
        for secret in self._secrets:
            said = said.replace(secret, "…")
        now = time.monotonic()
        self._silent_until = {words: end for words, end in self._silent_until.items() if end > now}
        if said in self._silent_until:
            return
        self._silent_until[said] = now + SILENCE
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        emit("log", logger=record.name, level=record.levelname.lower(), said=said[:500], error=error)


def work(settings: WorkerSettings) -> None:
    """Does jobs until it is told to stop, and then ends this account's aggregators. Raises what the settings raise,
    ServerError (BrokerUrlInvalid), DatabaseUnfit, Unavailable, ChainUnreachable. Later errors are failures of single
    jobs.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    broker = settings.broker
    ledger, database = settings.connect(), open_database(settings.url, THREADS + 2)
    Indexer(ledger, database).require_own()
    account = str((ledger.connection.account and ledger.address) or "")
    # Workers share the jobs of one deployment and account.
    queue = f"consilium-{ledger.connection.chain_id}-{ledger.deployment.tasks}{account and '-'}{account}"
    app = make_app(settings, queue)
    sender = Sender(app, THREADS)
    jobs = Jobs(settings, ledger, database, sender)
    add_jobs(app, jobs)
    _log_to_journal(broker)
    emit(
        "working", database=shown(database), broker=app.connection().as_uri(), chain=ledger.connection.shown_url,
        account=account or None, host=socket.gethostname(),
    )  # fmt: skip
    worker = app.WorkController(without_gossip=True, without_mingle=True, without_heartbeat=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    beat = Beat(sender, {INDEX.name: settings.index_seconds, WATCH.name: settings.watch_seconds})
    beat.start()
    try:
        worker.start()
    finally:
        beat.stop()
        sender.end()
        if jobs.supervisor is not None:
            jobs.supervisor.end_all()
        database.dispose()
        emit("stopped")
    if worker.exitcode:  # what Celery cannot go on from, which it has told
        sys.exit(worker.exitcode)


def _log_to_journal(broker: str) -> None:
    root = logging.getLogger()
    root.handlers = [JournalHandler(broker)]
    root.setLevel(logging.WARNING)


def _stop(number: int, frame: FrameType | None) -> None:
    """Running jobs are waited for; they are short."""
    celery_state.should_stop = 0
