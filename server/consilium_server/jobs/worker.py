"""`consilium server worker`: the work of each job, in one process with Celery's worker and a beat.

The queue holds no state. Each job reads the chain, database, store and folders of aggregators, and does the missing
work. A second run does nothing. So the beat sends jobs again and again. Messages may be lost or repeated, several
workers and beats may run, and the sender runs the jobs that the broker does not accept.
"""

from __future__ import annotations

import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
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
from consilium_server.telling.delivery import teller_of
from consilium_server.verified_names import checks_of

SILENCE = 60.0  # seconds during which a repeated log line of a library is dropped
STRETCH, BUDGET = 50_000, 10.0  # blocks of one call of the indexer; seconds after which its job ends

INDEX = Job("index", 30.0, RetryPolicy(0.5, 10.0))
WATCH = Job("watch", 15.0, RetryPolicy(0.5, 10.0))
TICK = Job("tick", RECEIPT_TIMEOUT + 30.0, RetryPolicy(2.0, 120.0))
SUPERVISE = Job("conduct", 15.0, RetryPolicy(1.0, 300.0))
PINNING = Job(PIN, 120.0, RetryPolicy(2.0, 3_600.0))
TELL = Job("tell", 120.0, RetryPolicy(1.0, 60.0))
NAMES = Job("names", 120.0, RetryPolicy(1.0, 60.0))
TELL_SECONDS, NAMES_SECONDS = 5.0, 30.0  # between two runs


class Jobs:
    """The work of each job."""

    def __init__(self, settings: WorkerSettings, ledger: Ledger, database: Engine, sender: Sender) -> None:
        self._settings, self._ledger, self._database, self._sender = settings, ledger, database, sender
        self._store = settings.store
        self._runner, self._is_stopped = Runner(database), False
        self._indexer = Indexer(ledger, database, self._store)
        self._indexed = ledger.deployment.first_block
        self._mirrors = [str(location) for location in settings.artifacts[1:]]
        self.account = ledger.connection.account and ledger.address
        self.supervisor: Supervisor | None = None
        if settings.key_files is not None:
            self.supervisor = Supervisor(settings, settings.key_files, ledger, self._is_over, database)
        self._teller = None if settings.notify is None else teller_of(settings.notify, database)
        self._names = None if settings.names is None else checks_of(settings.names, database)
        self._work: Mapping[str, Callable[..., Ended]] = {
            INDEX.name: self._index, WATCH.name: self._watch, TICK.name: self._tick, SUPERVISE.name: self._supervise,
            PINNING.name: self._pin, TELL.name: self._tell, NAMES.name: self._check_names,
        }  # fmt: skip

    def stop(self) -> None:
        """Begins no job any more: the broker may have given hundreds to this process."""
        self._is_stopped = True

    def run(self, job: Job, *arguments: int) -> None:
        """Runs a job, whose arguments are a task, or a task and a round."""
        if self._is_stopped:
            return
        work = self._work[job.name]
        self._runner.run(job, "/".join(map(str, arguments)), lambda row: work(row, *arguments))

    def _index(self, row: JobRow) -> Ended:
        """Indexes up to the chain's head, or for `BUDGET` seconds: then another worker may continue."""
        end = time.monotonic() + BUDGET
        while time.monotonic() < end:
            aim = self._indexed + STRETCH
            self._indexed = self._indexer.catch_up(aim)
            if self._indexed < aim:
                break
        return Ended()

    def _watch(self, row: JobRow) -> Ended:
        """Sends all due jobs. Then raises Unavailable if the broker accepts nothing, so that the operator sees it."""
        now = self._ledger.connection.blocks.now()
        with reading(self._database) as connection:
            tasks = open_tasks(connection)
            rounds = unpinned(connection, self._mirrors, time.time()) if self._store.has_writable_mirrors else []
            looks = select(JobRow.subject, JobRow.begun_at).where(JobRow.job == SUPERVISE.name)
            looked = {subject: at for subject, at in connection.execute(looks)}
        if self.account is not None:
            for task in tasks:
                if is_overdue(task, now, self._settings.precedence_seconds):
                    self._send(TICK, (task.number,))
        if self.supervisor is not None:
            own = {task.number for task in tasks if task.aggregator == self.account}
            for number in self.supervisor.due(own | self.supervisor.unfinished(), looked):
                self._send(SUPERVISE, (number,))
        for task_and_round in rounds:
            self._send(PINNING, task_and_round)
        if self._sender.failure is not None:
            raise self._sender.failure
        return Ended()

    def _send(self, job: Job, arguments: tuple[int, ...]) -> None:
        self._sender.send(job.name, arguments, self._settings.watch_seconds)

    def _tick(self, row: JobRow, task: int) -> Ended:
        if self.account is not None:
            move_on(self._ledger, task)
        return Ended()

    def _supervise(self, row: JobRow, task: int) -> Ended:
        return Ended() if self.supervisor is None else self.supervisor.supervise(task)

    def _pin(self, row: JobRow, task: int, round_: int) -> Ended:
        with reading(self._database) as connection:
            named, mark = artifacts(connection, task, round_, self._mirrors)
        if row.mark != mark:
            pin(self._store, named)
        return Ended(mark)

    def _tell(self, row: JobRow) -> Ended:
        if self._teller is not None:
            self._teller.run(time.time())
        return Ended()

    def _check_names(self, row: JobRow) -> Ended:
        if self._names is not None:
            self._names.run(time.time())
        return Ended()

    def _is_over(self, task: int) -> bool:
        ended = select(PhaseStart.task).where(PhaseStart.task == task, PhaseStart.phase == Phase.ENDED)
        with reading(self._database) as connection:
            return connection.execute(ended).first() is not None


def add_jobs(app: Celery, jobs: Jobs) -> None:
    """Adds the jobs to the application. Celery makes a class of each function, so these are not methods."""

    def add(job: Job) -> None:
        def run(*arguments: int) -> None:
            jobs.run(job, *arguments)

        app.task(run, name=job.name)

    for job in (INDEX, WATCH, TICK, SUPERVISE, PINNING, TELL, NAMES):
        add(job)
    app.finalize()


class JournalHandler(logging.Handler):
    """Logs the lines of libraries, without the broker's password. Drops repeated lines for `SILENCE` seconds."""

    def __init__(self, broker: str) -> None:
        super().__init__(logging.WARNING)
        password = urlsplit(broker).password
        self._secrets = {password, unquote(password)} if password else set()
        self._silent_until: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        line = (record.getMessage().strip().splitlines() or [""])[0]
        for secret in self._secrets:
            line = line.replace(secret, "…")
        now = time.monotonic()
        self._silent_until = {words: end for words, end in self._silent_until.items() if end > now}
        if line in self._silent_until:
            return
        self._silent_until[line] = now + SILENCE
        error = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else None
        emit("log", logger=record.name, level=record.levelname.lower(), said=line[:500], error=error)


def work(settings: WorkerSettings) -> None:
    """Does jobs until a signal to stop, and then ends this account's aggregators.

    Raises the errors of the settings, ServerError (BrokerUrlInvalid), DatabaseUnfit, Unavailable, ChainUnreachable.
    Later errors are failures of single jobs.
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

    def stop(number: int, frame: FrameType | None) -> None:
        """Ends the worker once the running jobs have ended. They are short."""
        jobs.stop()
        celery_state.should_stop = 0

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    telling = {} if settings.notify is None else {TELL.name: TELL_SECONDS}
    naming = {} if settings.names is None else {NAMES.name: NAMES_SECONDS}
    every = {INDEX.name: settings.index_seconds, WATCH.name: settings.watch_seconds, **telling, **naming}
    beat = Beat(sender, every)
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
    if worker.exitcode:  # a fatal error that Celery has logged
        sys.exit(worker.exitcode)


def _log_to_journal(broker: str) -> None:
    root = logging.getLogger()
    root.handlers = [JournalHandler(broker)]
    root.setLevel(logging.WARNING)
