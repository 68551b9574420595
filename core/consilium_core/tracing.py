"""Spans of a node's work, which show where a round's time went. Off until the owner's settings name a collector.

Processes pass each other no context. A round's trace id, and the id of its root span, are hashes of chain, contract,
task and round: so the spans of all processes are one trace, in any collector that gets them. The aggregator sends the
root. Work outside of a round is in a trace of the task.

A span has a name, times, and `Facts`: numbers and names of the protocol. It has no rows, values, paths or texts of
exceptions, and a text that is not a plain name is left out.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypedDict, Unpack

from consilium_core.collector import Json, Sender, TracingSettings, attributes
from consilium_core.faults import Fault

_NAME = re.compile(r"[A-Za-z0-9_ .:-]{1,80}")
_INTERNAL, _ERROR = 1, 2  # OTLP's kind of a span, and its status


class Facts(TypedDict, total=False):
    """All that a span may say. `error`: a name. `transaction`: its hash."""

    task: int
    round: int
    step: str
    phase: str
    call: str
    transaction: str
    gas: int
    block: int
    blobs: int
    cohort: int
    hospitals: int
    artifacts: int
    bytes: int
    error: str


@dataclass(frozen=True)
class Party:
    """The process that sends. `task`: None if it has several, and each span names its own."""

    chain_id: int
    contract: str
    role: str
    account: str
    task: int | None = None

    def trace(self, task: int, round_: int | None) -> tuple[str, str]:
        """Ids of the trace and of its root span. The root's is empty for a trace of the task, which has none."""
        identity = f"consilium/{self.chain_id}/{self.contract.lower()}/{task}"
        identity += "" if round_ is None else f"/{round_}"
        digest = hashlib.sha256(identity.encode()).hexdigest()
        return digest[:32], "" if round_ is None else digest[32:48]


@dataclass(frozen=True)
class _Open:
    trace: str
    id: str
    task: int
    round: int | None


_tracer: tuple[Sender, Party] | None = None
_open: ContextVar[_Open | None] = ContextVar("the open span", default=None)


def _stop() -> None:
    """A forked child has no thread that sends."""
    global _tracer
    _tracer = None


os.register_at_fork(after_in_child=_stop)


@contextmanager
def traced(settings: TracingSettings, party: Party) -> Iterator[None]:
    """Within, this process's spans go to the collector. Raises KeystoreError."""
    global _tracer
    resource: dict[str, str | int] = {
        "service.name": f"consilium-{party.role}", "service.instance.id": party.account,
        "consilium.role": party.role, "consilium.account": party.account, "consilium.chain_id": party.chain_id,
        "consilium.contract": party.contract,
    }  # fmt: skip
    before, sender = _tracer, Sender(settings, resource)
    _tracer = sender, party
    try:
        yield
    finally:
        _tracer = before
        sender.close()


@contextmanager
def span(name: str, **given: Unpack[Facts]) -> Iterator[Facts]:
    """Within, a span in this thread's open span, or in the round that it names. The caller may add facts that it learns
    meanwhile to the given ones.
    """
    tracer, above = _tracer, _open.get()
    task_round = None if tracer is None else _task_round(tracer[1], given, above)
    if tracer is None or task_round is None:
        yield given
        return
    trace, root = tracer[1].trace(*task_round)
    own = _Open(trace, secrets.token_hex(8), *task_round)
    token, began, clock = _open.set(own), time.time_ns(), time.monotonic_ns()
    try:
        yield given
    except BaseException as error:
        given["error"] = error.name if isinstance(error, Fault) else type(error).__name__
        raise
    finally:
        _open.reset(token)
        parent = above.id if above and above.trace == trace else root
        tracer[0].take(_encoded(name, own, parent, began, began + time.monotonic_ns() - clock, given))


def _task_round(party: Party, facts: Facts, above: _Open | None) -> tuple[int, int | None] | None:
    """Task and round; None if the task is unknown."""
    task = facts.get("task", above.task if above else party.task)
    return None if task is None else (task, facts.get("round", above.round if above else None))


def record(name: str, began: int, *, is_root: bool = False, **facts: Unpack[Facts]) -> None:
    """A span of a round that was open from `began`, in nanoseconds of Unix time, until now."""
    tracer = _tracer
    task_round = None if tracer is None else _task_round(tracer[1], facts, None)
    if tracer is None or task_round is None:
        return
    trace, root = tracer[1].trace(*task_round)
    own = _Open(trace, root if is_root else secrets.token_hex(8), *task_round)
    tracer[0].take(_encoded(name, own, "" if is_root else root, began, max(began, time.time_ns()), facts))


def _encoded(name: str, own: _Open, parent: str, began: int, ended: int, facts: Facts) -> Json:
    """The span as OTLP's JSON, whose ids are hexadecimal."""
    said: dict[str, object] = {**facts, "task": own.task, "round": own.round}
    shown: dict[str, str | int] = {}
    for key, one in said.items():
        if isinstance(one, int) or (isinstance(one, str) and _NAME.fullmatch(one)):
            shown["error.type" if key == "error" else f"consilium.{key}"] = one
    return {
        "traceId": own.trace, "spanId": own.id, "parentSpanId": parent, "name": name, "kind": _INTERNAL,
        "startTimeUnixNano": str(began), "endTimeUnixNano": str(ended), "attributes": attributes(shown),
        "status": {"code": _ERROR} if "error" in facts else {},
    }  # fmt: skip
