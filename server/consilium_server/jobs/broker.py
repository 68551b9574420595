"""Sends jobs to the broker for any free worker, and runs them here if the broker does not take them.

A message only says that a job is due, and leases decide who does it. So the sender may as well do it. A Redis that is
full, read-only or away then costs the sharing of work, and nothing stands still.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from celery import Celery
from celery.worker.consumer import Consumer
from celery.worker.state import maybe_shutdown
from consilium_core.logs import emit
from kombu import Connection
from kombu.exceptions import OperationalError
from kombu.utils.functional import retry_over_time
from redis import Redis
from redis.exceptions import RedisError

from consilium_server.config import WITHIN_THE_PROCESS
from consilium_server.errors import Unavailable, broker_unreachable
from consilium_server.jobs.retry_delay import RetryPolicy

ASKING = RetryPolicy(1.0, 30.0)  # between messages for a broker that takes none
LISTENING = 5.0  # seconds at most between looks whether one can be listened to: sooner than it is sent to
PATIENCE = 10.0  # seconds for an answer


class Sender:
    """Sends the jobs of one process. `threads`: number of jobs that it runs at once itself."""

    def __init__(self, app: Celery, threads: int) -> None:
        self._app = app
        self._threads = ThreadPoolExecutor(threads, "without-broker")
        self._lock = threading.Lock()
        self._failures, self._not_before = 0, 0.0
        self.failure: Unavailable | None = None  # while the broker takes nothing

    def send(self, job: str, arguments: tuple[int, ...], seconds: float) -> None:
        """Sends a job that is good for so many seconds: until the next round, which sends it again."""
        if not self._taken(job, arguments, seconds):
            with suppress(RuntimeError):  # told to end
                self._threads.submit(self._do, job, arguments, time.monotonic() + seconds)

    def end(self) -> None:
        """Waits for jobs that run here, and begins no others."""
        self._threads.shutdown(cancel_futures=True)

    def _taken(self, job: str, arguments: tuple[int, ...], seconds: float) -> bool:
        if time.monotonic() < self._not_before:
            return False
        try:
            self._app.send_task(job, arguments, expires=seconds)
        except (OperationalError, RedisError, OSError) as error:
            self._failed(broker_unreachable(error.__cause__ or error))
            return False
        with self._lock:
            failures, self._failures, self.failure = self._failures, 0, None
        if failures:
            emit("broker-recovered", failures=failures)
        return True

    def _failed(self, failure: Unavailable) -> None:
        with self._lock:
            self._failures, self.failure = self._failures + 1, failure
            wait = ASKING.seconds(self._failures, random.random())
            self._not_before = time.monotonic() + wait
            failures = self._failures
        emit("broker-failed", error=failure.values["cause"], failures=failures, wait=round(wait, 1))

    def _do(self, job: str, arguments: tuple[int, ...], end: float) -> None:
        if time.monotonic() < end:
            self._app.tasks[job].apply(arguments)


class PatientConsumer(Consumer):  # type: ignore[misc]
    """Celery's consumer, which also waits for a Redis that refuses to write.

    Celery's own would connect six times a second, for a consumer writes while it waits, and leave sockets open.
    """

    def connect(self) -> Connection:
        broker = self.app.conf.broker_url
        if broker != WITHIN_THE_PROCESS:
            with Redis.from_url(broker, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE) as redis:
                retry_over_time(
                    redis.setrange, (RedisError, OSError), ("consilium-writes", 0, ""),  # a write that changes nothing
                    interval_start=1, interval_step=1, interval_max=LISTENING, callback=maybe_shutdown,
                )  # fmt: skip
        return super().connect()
