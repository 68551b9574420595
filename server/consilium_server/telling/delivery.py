"""Sends the outbox. A message goes out at least once, and always with the same id.

An address that fails waits for longer and longer, with all its messages, and holds up no other. A message is dropped
after `PATIENCE`, and then the address must prove itself again. A webhook is proven if it answers with the challenge in
its first message, a mail address by a one-time link.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import secrets
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from consilium_core.errors import NotSent
from consilium_core.logs import emit
from consilium_core.notify import Mailbox, MailServer, Reach, Webhook, mail, post
from sqlalchemy import Connection, Engine, delete, func, select, update

from consilium_server.config import NotifySettings
from consilium_server.database.engine import writing
from consilium_server.index.store import table_of
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.telling.outbox import fill
from consilium_server.telling.tables import ChannelRow, MessageRow

THREADS, ADDRESSES_AT_ONCE = 8, 16
MESSAGES_AT_ONCE = 100  # of one address; of more, the oldest are dropped
PATIENCE = 2 * 86_400  # seconds of an event's message
PROOFS = 3  # attempts
RETRY = RetryPolicy(30.0, 3_600.0)
MAIL_EVERY, MAILS_A_DAY = 600.0, 20  # of one address; what happens meanwhile is in the next mail
TOKEN_LIFE = 86_400  # seconds
DAY = 86_400
STOP = "stop"

_MESSAGES, _CHANNELS = table_of(MessageRow), table_of(ChannelRow)


def stop_token(channel: ChannelRow) -> str:
    """A mail's token to end all mails of its kind. It is in each mail, and stays valid."""
    tag = hmac.digest(bytes.fromhex(channel.secret), f"{STOP} {channel.account}".encode(), "sha256")
    return f"{channel.account}-{tag.hex()[:32]}"


def token_hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True)
class Batch:
    """Messages to one address, the oldest first. `token`: of a proof by mail."""

    channel: ChannelRow
    messages: Sequence[MessageRow]
    token: str = ""


@dataclass(frozen=True)
class Result:
    batch: Batch
    sent: Sequence[MessageRow]
    failure: NotSent | None = None


@dataclass(frozen=True)
class Teller:
    """Fills and sends the outbox. `origin`: the API's address, for links. `mails`: None if it sends no mail.

    `mails_per_day`: of all addresses together.
    """

    database: Engine
    origin: str
    confirmations: int
    reach: Reach | None
    mails: MailServer | None
    mails_per_day: int

    @property
    def offers(self) -> str:
        found = (("https", self.reach), ("mailto", self.mails))
        return " ".join(kind for kind, means in found if means is not None)

    def run(self, now: float) -> None:
        """One turn: takes up new events, and sends to addresses that are due. Raises Unavailable, DatabaseUnfit."""
        is_more = True
        while is_more:
            with writing(self.database) as connection:
                is_more = fill(connection, self.confirmations, self.offers, now)
        with writing(self.database) as connection:
            drop_old(connection, now)
            batches = [self._with_token(connection, batch, now) for batch in self._due(connection, now)]
        if not batches:
            return
        with ThreadPoolExecutor(THREADS, "teller") as threads:
            for result in threads.map(self._sent, batches):
                with writing(self.database) as connection:
                    self._note(connection, result, now)

    def _due(self, connection: Connection, now: float) -> list[Batch]:
        kinds = self.offers.split()
        if self._mails_today(connection, now) >= self.mails_per_day:
            kinds = [kind for kind in kinds if kind != "mailto"]
        waiting = (_MESSAGES.c.account == _CHANNELS.c.account) & (_MESSAGES.c.channel == _CHANNELS.c.kind)
        first = func.min(_MESSAGES.c.made_at)
        channels = (
            select(_CHANNELS)
            .join(_MESSAGES, waiting & (_MESSAGES.c.state == "waiting"))
            .where(_CHANNELS.c.next_at <= now, _CHANNELS.c.kind.in_(kinds))
            .group_by(*_CHANNELS.c)
            .order_by(_CHANNELS.c.next_at, first)
            .limit(ADDRESSES_AT_ONCE)
        )
        return [self._batch(connection, ChannelRow(**row._mapping)) for row in connection.execute(channels).all()]

    def _batch(self, connection: Connection, channel: ChannelRow) -> Batch:
        query = select(_MESSAGES).where(_of(channel), _MESSAGES.c.state == "waiting")
        newest_first = query.order_by(_MESSAGES.c.made_at.desc(), _MESSAGES.c.block.desc(), _MESSAGES.c.id)
        rows = [MessageRow(**row._mapping) for row in connection.execute(newest_first)]
        _end(connection, rows[MESSAGES_AT_ONCE:], "dropped")
        return Batch(channel, rows[:MESSAGES_AT_ONCE][::-1])

    def _mails_today(self, connection: Connection, now: float) -> int:
        today = select(func.coalesce(func.sum(_CHANNELS.c.sent), 0)).where(_CHANNELS.c.day == now // DAY)
        return int(connection.scalar(today) or 0)

    def _with_token(self, connection: Connection, batch: Batch, now: float) -> Batch:
        """A proof by mail gets a new token at each attempt. The tables have its hash before it leaves."""
        if batch.channel.kind != "mailto" or batch.messages[0].kind != "proof":
            return batch
        token = secrets.token_hex(32)
        values = {"token_hash": token_hash(token), "token_until": int(now) + TOKEN_LIFE}
        connection.execute(update(_CHANNELS).where(_is(batch.channel)).values(**values))
        return replace(batch, token=token)

    def _sent(self, batch: Batch) -> Result:
        done: list[MessageRow] = []
        try:
            if batch.channel.kind == "mailto":
                self._mail(batch)
                done += batch.messages
            for message in batch.messages if batch.channel.kind == "https" else ():
                self._post(batch.channel, message)
                done.append(message)
        except NotSent as error:
            return Result(batch, done, error)
        return Result(batch, done)

    def _post(self, channel: ChannelRow, message: MessageRow) -> None:
        """Raises NotSent."""
        content = {"id": message.id, "type": message.kind, **message.content}
        body, secret = json.dumps(content).encode(), bytes.fromhex(channel.secret)
        answer = post(Webhook(channel.address), body, message.id, int(time.time()), secret, self.reach or Reach())
        if message.kind == "proof" and answer.strip() != message.content["challenge"].encode():
            raise NotSent("it did not answer with the challenge")

    def _mail(self, batch: Batch) -> None:
        """Raises NotSent."""
        if self.mails is None:
            raise NotSent("this server sends no mail")
        channel, first = batch.channel, batch.messages[0]
        account, page = channel.account, f"{self.origin}/#/told"
        if batch.token:
            subject, lines = "Confirm this address", [
                f"Account {account} wants to be told here of events that cost it money. If that is you, open:",
                f"{page}?confirm={batch.token}",
                "The link works once, for a day. If it is not you, do nothing: no other mail comes.",
            ]  # fmt: skip
            self.mails.send(mail(self.mails.sender, Mailbox(channel.address), subject, _text(lines), first.id))
            return
        token, many = stop_token(channel), len(batch.messages)
        subject = "1 event" if many == 1 else f"{many} events"
        lines = [_line(message, self.origin) for message in batch.messages]
        lines.append(f"Account {account} watches this. To get no more mails, open:\n{page}?stop={token}")
        stop = f"{self.origin}/v1/watch/stop?token={token}"
        self.mails.send(mail(self.mails.sender, Mailbox(channel.address), subject, _text(lines), first.id, stop))

    def _note(self, connection: Connection, result: Result, now: float) -> None:
        channel, failure = result.batch.channel, result.failure
        _end(connection, result.sent, "sent")
        if failure is not None:
            self._note_failure(connection, result, failure, now)
            return
        values: dict[str, Any] = {"next_at": now}
        if channel.kind == "mailto":
            sent = channel.sent + 1 if channel.day == now // DAY else 1
            next_at = now + MAIL_EVERY if sent < MAILS_A_DAY else (now // DAY + 1) * DAY
            values = {"day": int(now // DAY), "sent": sent, "next_at": next_at}
        if channel.kind == "https" and result.sent[0].kind == "proof":
            values["state"] = "confirmed"
        connection.execute(update(_CHANNELS).where(_is(channel)).values(**values))

    def _note_failure(self, connection: Connection, result: Result, failure: NotSent, now: float) -> None:
        channel, message = result.batch.channel, result.batch.messages[len(result.sent)]
        failures = message.attempts + 1
        emit("not-told", channel=channel.kind, why=failure.why, failures=failures)
        if failure.is_gone or (message.kind == "proof" and failures >= PROOFS):
            fail(connection, channel)
            return
        one = _MESSAGES.c.id == message.id
        connection.execute(update(_MESSAGES).where(one, _MESSAGES.c.state == "waiting").values(attempts=failures))
        wait = RETRY.seconds(failures, random.random())
        connection.execute(update(_CHANNELS).where(_is(channel)).values(next_at=now + wait))


def teller_of(settings: NotifySettings, database: Engine) -> Teller:
    """Raises KeystoreError."""
    reach = Reach(ports=frozenset(settings.webhook_ports)) if settings.webhooks else None
    mails, per_day = (settings.mail.server(), settings.mail.per_day) if settings.mail else (None, 0)
    return Teller(database, settings.origin, settings.confirmations, reach, mails, per_day)


def fail(connection: Connection, channel: ChannelRow) -> None:
    """The address gets nothing more until it proves itself again."""
    connection.execute(update(_CHANNELS).where(_is(channel)).values(state="failed"))
    waiting = _of(channel) & (_MESSAGES.c.state == "waiting")
    connection.execute(update(_MESSAGES).where(waiting).values(state="dropped"))


def drop_old(connection: Connection, now: float) -> None:
    """Gives up addresses whose messages have waited too long."""
    old = select(_MESSAGES.c.account, _MESSAGES.c.channel).where(
        _MESSAGES.c.state == "waiting", _MESSAGES.c.made_at < now - PATIENCE
    )
    for account, kind in connection.execute(old.distinct()).all():
        found = connection.execute(
            select(_CHANNELS).where(_CHANNELS.c.account == account, _CHANNELS.c.kind == kind)
        ).first()
        if found is None:
            waiting = (_MESSAGES.c.account == account) & (_MESSAGES.c.channel == kind)
            connection.execute(delete(_MESSAGES).where(waiting, _MESSAGES.c.state == "waiting"))
        else:
            fail(connection, ChannelRow(**found._mapping))


def _is(channel: ChannelRow) -> Any:
    """The same address: another that took its place has another secret."""
    return (
        (_CHANNELS.c.account == channel.account)
        & (_CHANNELS.c.kind == channel.kind)
        & (_CHANNELS.c.secret == channel.secret)
    )


def _of(channel: ChannelRow) -> Any:
    return (_MESSAGES.c.account == channel.account) & (_MESSAGES.c.channel == channel.kind)


def _end(connection: Connection, messages: Iterable[MessageRow], state: str) -> None:
    ids = [message.id for message in messages]
    if ids:
        waiting = _MESSAGES.c.id.in_(ids) & (_MESSAGES.c.state == "waiting")
        connection.execute(update(_MESSAGES).where(waiting).values(state=state))


def _line(message: MessageRow, origin: str) -> str:
    content = message.content
    before = "Taken back, because the chain was reorganised: " if message.kind == "withdrawn" else ""
    link = "" if content["task"] is None else f"\n{origin}/#/tasks/{content['task']}"
    return f"{before}{content['words']}{link}"


def _text(lines: Iterable[str]) -> str:
    return "\n\n".join(lines) + "\n"
