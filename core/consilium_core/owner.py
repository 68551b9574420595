"""Tells a node's owner of the node's faults and losses, at the addresses in its node.toml.

Messages say what the node's screen says. None has facts about rows. The node never waits for them: they leave from a
thread of their own, which ends with the process.
"""

from __future__ import annotations

import json
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from consilium_core.errors import NotSent
from consilium_core.live import UNPAID, sentence
from consilium_core.logs import emit, heard_by
from consilium_core.notify import OWNERS, Mailbox, MailServer, MailSettings, Reach, Webhook, mail, parse_target, post

# A relay's log lines and names of columns do not leave: `relay-ended` and `data-remark` are not here.
FAULTS = frozenset(
    {
        "ballot-lost", "chain-unreachable", "not-charged", "not-kept", "over-budget", "round-failed", "set-aside",
        "superlink-unreachable", "task-failed", *UNPAID,
    }
)  # fmt: skip
MISSED = frozenset({"NOT_COMMITTED", "NOT_REVEALED", "NOT_IN_SUM", "WITHHELD"})  # reasons of `settled`
NEARLY = 0.9  # of the privacy budget
AGAIN = 3_600.0  # seconds in which the same event of a task is told once
A_DAY = 20  # messages of one day
WAITING = 50  # messages
PAUSES = (0.0, 30.0, 300.0)  # seconds before each attempt


def costs_money(event: str, fields: Mapping[str, Any]) -> bool:
    """True for a fault of the node, and for a loss or a nearly spent budget of its owner."""
    if event == "settled":
        return int(fields.get("slash", 0)) > 0 or fields.get("reason") in MISSED
    if event == "privacy":
        return bool(fields["epsilon"] >= NEARLY * fields["of"])
    return event in FAULTS


@dataclass(frozen=True)
class _Message:
    id: str
    event: str
    words: str


class Owner:
    """The addresses, and a queue of what they are told. `name`: of the node."""

    def __init__(
        self, targets: Sequence[str], mails: MailServer | None, name: str, reach: Reach = OWNERS,
        pauses: Sequence[float] = PAUSES, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._targets, self._mails, self._name = [parse_target(one) for one in targets], mails, name
        self._reach, self._pauses, self._clock = reach, pauses, clock
        self._queue: queue.Queue[_Message] = queue.Queue(WAITING)
        self._told: dict[tuple[str, object], float] = {}
        self._day, self._count = 0, 0
        threading.Thread(target=self._send_all, name="owner", daemon=True).start()

    def hear(self, event: str, fields: Mapping[str, Any]) -> None:
        """Queues the event, if it costs money and was not told lately."""
        if not costs_money(event, fields):
            return
        now, key = self._clock(), (event, fields.get("task"))
        if self._told.get(key, -AGAIN) > now - AGAIN:
            return
        if (day := int(now // 86_400)) != self._day:
            self._day, self._count = day, 0
        if self._count >= A_DAY:
            return
        self._told[key], self._count = now, self._count + 1
        words = Text.from_markup(sentence(event, fields)).plain
        with suppress(queue.Full):
            self._queue.put_nowait(_Message(secrets.token_hex(16), event, words))

    def wait(self) -> None:
        """Returns once the queue is empty."""
        self._queue.join()

    def _send_all(self) -> None:
        while True:
            message = self._queue.get()
            for target in self._targets:
                self._send(target, message)
            self._queue.task_done()

    def _send(self, target: Webhook | Mailbox, message: _Message) -> None:
        why = ""
        for pause in self._pauses:
            time.sleep(pause)
            try:
                self._send_once(target, message)
                return
            except NotSent as error:
                why = error.why
        emit("owner-not-told", told=message.event, why=why)

    def _send_once(self, target: Webhook | Mailbox, message: _Message) -> None:
        """Raises NotSent."""
        if isinstance(target, Webhook):
            about = {"node": self._name, "kind": message.event, "words": message.words}
            content = {"id": message.id, "type": "node", **about}
            post(target, json.dumps(content).encode(), message.id, int(time.time()), None, self._reach)
        elif self._mails is None:
            raise NotSent("node.toml has no [mail]")
        else:
            text = f"{self._name}: {message.words}\n"
            self._mails.send(mail(self._mails.sender, target, f"Consilium: {message.event}", text, message.id))


@contextmanager
def telling_owner(targets: Sequence[str], settings: MailSettings | None, name: str) -> Iterator[None]:
    """Within, the owner is told of this process's events. Raises KeystoreError."""
    if not targets:
        yield
        return
    owner = Owner(targets, settings.server() if settings else None, name)
    with heard_by(owner.hear):
        yield
