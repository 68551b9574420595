"""Tells a node's owner of the node's faults and losses, at the addresses in its node.toml.

Messages say what the node's screen says. None has facts about rows. They leave from a thread for each address, so that
a dead address delays no other. The node waits for them only at its end, a few seconds.
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
from pathlib import Path
from typing import Any

from rich.text import Text

from consilium_core.errors import NotSent
from consilium_core.faults import printed_name
from consilium_core.live import UNPAID, sentence
from consilium_core.logs import emit, heard_by
from consilium_core.notify import OWNERS, Mailbox, MailServer, MailSettings, Reach, Webhook, mail, parse_target, post

# A relay's log lines and names of columns do not leave: `relay-ended` and `data-remark` are not here.
FAULTS = frozenset(
    {
        "ballot-lost", "chain-unreachable", "not-charged", "not-kept", "over-budget", "round-failed",
        "node-ended", "superlink-unreachable", "task-failed", "withdrawal-address", *UNPAID,
    }
)  # fmt: skip
UNCOUNTED = frozenset({"ballot-lost", "node-ended"})  # and slashes: strangers' tasks could spend the day's messages
MISSED = frozenset({"NOT_COMMITTED", "NOT_REVEALED", "NOT_IN_SUM", "WITHHELD"})  # reasons of `settled`
NEARLY = 0.9  # of the privacy budget
AGAIN = 3_600.0  # seconds in which the same event of a task is told once
A_DAY = 20  # messages of one day, of events that are counted
WAITING = 50  # messages
PAUSES = (0.0, 30.0, 300.0)  # seconds before each attempt
LAST_WAIT = 15.0  # seconds for the messages that are not sent when the node ends
STOPPED_WAIT = 5.0  # seconds, when it is told to end: a supervisor kills it after twenty
ENDED = ".ended-told"  # file of a home, whose time says when the owner was told last: a supervisor restarts a node


def _is_slash(event: str, fields: Mapping[str, Any]) -> bool:
    return event == "settled" and int(fields.get("slash", 0)) > 0


def costs_money(event: str, fields: Mapping[str, Any]) -> bool:
    """True for a fault of the node, and for a loss or a nearly spent budget of its owner."""
    if event == "settled":
        return _is_slash(event, fields) or fields.get("reason") in MISSED
    if event == "privacy":
        return bool(fields["epsilon"] >= NEARLY * fields["of"])
    return event in FAULTS


@dataclass(frozen=True)
class _Message:
    id: str
    event: str
    words: str


class Owner:
    """The addresses, and for each a queue of messages. `name`: of the node."""

    def __init__(
        self, targets: Sequence[str], mails: MailServer | None, name: str, reach: Reach = OWNERS,
        pauses: Sequence[float] = PAUSES, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._mails, self._name = mails, name
        self._reach, self._pauses, self._clock = reach, pauses, clock
        self._told: dict[tuple[object, ...], float] = {}
        self._day, self._count = 0, 0
        self._queues: list[queue.Queue[_Message]] = []
        for one in targets:
            self._queues.append(queue.Queue(WAITING))
            given = (parse_target(one), self._queues[-1])
            threading.Thread(target=self._send_all, args=given, name="owner", daemon=True).start()

    def hear(self, event: str, fields: Mapping[str, Any]) -> None:
        """Queues the event, if it costs money and was not told lately."""
        if not costs_money(event, fields):
            return
        is_slash = _is_slash(event, fields)
        by_round = (fields.get("round"), is_slash) if event in ("settled", "ballot-lost") else ()
        now, key = self._clock(), (event, fields.get("task"), *by_round)
        if self._told.get(key, -AGAIN) > now - AGAIN:
            return
        if not is_slash and event not in UNCOUNTED:
            if (day := int(now // 86_400)) != self._day:
                self._day, self._count = day, 0
            if self._count >= A_DAY:
                return
            self._count += 1
        self._told[key] = now
        message = _Message(secrets.token_hex(16), event, Text.from_markup(sentence(event, fields)).plain)
        for waiting in self._queues:
            try:
                waiting.put_nowait(message)
            except queue.Full:
                emit("owner-not-told", told=event, why=f"{WAITING} messages wait")

    def wait(self, seconds: float = LAST_WAIT) -> None:
        """Returns once all messages are sent or given up, at the latest after `seconds`."""
        end = time.monotonic() + seconds
        for waiting in self._queues:
            with waiting.all_tasks_done:
                while waiting.unfinished_tasks and (left := end - time.monotonic()) > 0:
                    waiting.all_tasks_done.wait(left)

    def _send_all(self, target: Webhook | Mailbox, waiting: queue.Queue[_Message]) -> None:
        while True:
            message = waiting.get()
            try:
                self._send(target, message)
            except Exception as error:  # an unknown one, too: later messages must leave
                emit("owner-not-told", told=message.event, why=printed_name(error))
            waiting.task_done()

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
def telling_owner(targets: Sequence[str], settings: MailSettings | None, name: str, home: Path) -> Iterator[None]:
    """Within, the owner is told of this process's events, and of an error that ends it. Raises KeystoreError."""
    if not targets:
        yield
        return
    owner = Owner(targets, settings.server() if settings else None, name)
    with heard_by(owner.hear):
        try:
            yield
        except Exception as error:
            if _is_due(home / ENDED):
                emit("node-ended", error=printed_name(error))
            owner.wait()
            raise
        except BaseException:  # SIGTERM or Ctrl-C
            owner.wait(STOPPED_WAIT)
            raise
        owner.wait()


def _is_due(told: Path) -> bool:
    """True once an hour, also over restarts, and always if the home keeps no file."""
    with suppress(OSError):
        if told.exists() and time.time() - told.stat().st_mtime < AGAIN:
            return False
        told.touch()
    return True
