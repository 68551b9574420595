"""Celery for jobs: its settings, the beat, and a sender that runs the jobs that the broker does not accept.

A message only says that a job is due, and leases decide which process does it. So the sender may do it itself. If Redis
is full, read-only or away, workers do not share work, but all jobs are done.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from celery import Celery
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from consilium_chain.errors import name_of
from consilium_core.logs import emit
from kombu import Connection, Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.utils.functional import retry_over_time
from redis import Redis
from redis.exceptions import RedisError

from consilium_server.config import WITHIN_THE_PROCESS, WorkerSettings
from consilium_server.errors import Unavailable, broker_unreachable
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.jobs.runner import traced

THREADS = 8  # jobs mostly wait for chain, database and disk; each aggregator has its own process
VISIBILITY = 60  # seconds after which Redis gives an unacknowledged message to another worker
POLL = 0.1  # seconds between polls of a queue within the process
SENDING = RetryPolicy(1.0, 30.0)  # seconds between attempts to send to a broker that accepts nothing
LISTENING = 5.0  # most seconds between attempts to listen, which are more frequent than those to send
ANSWER_TIMEOUT = 10.0  # seconds


class Sender:
    """Sends the jobs of one process. `threads`: number of jobs that it runs at once itself."""

    def __init__(self, app: Celery, threads: int) -> None:
        self._app = app
        self._threads = ThreadPoolExecutor(threads, "without-broker")
        self._lock = threading.Lock()
        self._failures, self._not_before = 0, 0.0
        self.failure: Unavailable | None = None  # while the broker accepts nothing

    def send(self, job: str, arguments: tuple[int, ...], seconds: float) -> None:
        """Sends a job that is valid for so many seconds. Then the next period sends it again."""
        if not self._is_accepted(job, arguments, seconds):
            with suppress(RuntimeError):  # after `end`
                self._threads.submit(self._run, job, arguments, time.monotonic() + seconds)

    def end(self) -> None:
        """Waits for jobs that run here, and begins no more."""
        self._threads.shutdown(cancel_futures=True)

    def _is_accepted(self, job: str, arguments: tuple[int, ...], seconds: float) -> bool:
        if time.monotonic() < self._not_before:
            return False
        try:
            self._app.send_task(job, arguments, expires=seconds)
        except (OperationalError, RedisError, OSError) as error:
            self._note_failure(broker_unreachable(error.__cause__ or error))
            return False
        with self._lock:
            failures, self._failures, self.failure = self._failures, 0, None
        if failures:
            emit("broker-recovered", failures=failures)
        return True

    def _note_failure(self, failure: Unavailable) -> None:
        with self._lock:
            self._failures, self.failure = self._failures + 1, failure
            wait = SENDING.seconds(self._failures, random.random())
            self._not_before = time.monotonic() + wait
            failures = self._failures
        emit("broker-failed", error=failure.values["cause"], failures=failures, wait=round(wait, 1))

    def _run(self, job: str, arguments: tuple[int, ...], end: float) -> None:
        if time.monotonic() < end:
            self._app.tasks[job].apply(arguments)


class WaitingConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, but it also waits for a Redis that refuses to write.

    A consumer writes while it waits. So Celery's own would reconnect six times a second, and leave sockets open.
    """

    def connect(self) -> Connection:
        broker = self.app.conf.broker_url
        if broker != WITHIN_THE_PROCESS:
            with Redis.from_url(broker, socket_timeout=ANSWER_TIMEOUT, socket_connect_timeout=ANSWER_TIMEOUT) as redis:
                retry_over_time(
                    redis.setrange, (RedisError, OSError), ("consilium-writes", 0, ""),  # a write without effect
                    interval_start=1, interval_step=1, interval_max=LISTENING, callback=maybe_shutdown,
                )  # fmt: skip
        return super().connect()


class Beat(threading.Thread):
    """Sends jobs periodically, by the monotonic clock.

    Celery's own beat uses the time of day: if that was an hour ahead for a moment, it sends nothing for an hour.
    """

    def __init__(self, sender: Sender, periods: Mapping[str, float]) -> None:
        super().__init__(name="beat", daemon=True)
        self._sender, self._periods, self._stopped = sender, periods, threading.Event()

    def run(self) -> None:
        """Sends jobs until it is stopped."""
        due = dict.fromkeys(self._periods, time.monotonic())
        while not self._stopped.wait(max(0.0, min(due.values()) - time.monotonic())):
            job = min(due, key=due.__getitem__)
            due[job] = time.monotonic() + self._periods[job]
            self._send(job)

    def stop(self) -> None:
        """Ends the thread after the present job is sent."""
        self._stopped.set()

    def _send(self, job: str) -> None:
        """Sends a job, and survives any error, because all jobs depend on the beat."""
        try:
            self._sender.send(job, (), self._periods[job])
        except Exception as error:  # unexpected: the sender handles all faults of a broker
            emit("beat-failed", error=name_of(error), trace=traced(error))


def make_app(settings: WorkerSettings, queue: str) -> Celery:
    """Celery, without jobs. Raises ServerError (BrokerUrlInvalid)."""
    app = Celery("consilium", broker=settings.broker, set_as_current=False)
    app.conf.update(
        # Messages are a job's name and numbers, so that they cannot run foreign code.
        task_serializer="json", accept_content=["json"], result_backend=None, task_ignore_result=True,
        task_default_queue=queue, task_queues=[Queue(queue, Exchange("", type="direct"), routing_key=queue)],
        # Within the process Celery gets eight messages in two seconds, unless it may get all.
        task_acks_late=True, task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=0 if settings.broker == WITHIN_THE_PROCESS else 1,
        worker_pool="threads", worker_concurrency=THREADS,
        worker_enable_remote_control=False, worker_send_task_events=False, worker_hijack_root_logger=False,
        worker_redirect_stdouts=False, worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry=True, broker_connection_retry_on_startup=True, broker_connection_max_retries=None,
        broker_transport_options=_transport_options(settings.broker),
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1},
        broker_channel_error_retry=True,  # a refusal of Redis must not end the worker
        worker_consumer="consilium_server.jobs.broker:WaitingConsumer",
    )  # fmt: skip
    return app


def _transport_options(broker: str) -> dict[str, Any]:
    if broker == WITHIN_THE_PROCESS:
        return {"polling_interval": POLL}
    return {
        "visibility_timeout": VISIBILITY,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
    }
