"""Sends the outbox. A message goes out at least once, and always with the same id.

An address is held before it is sent anything, so that two runs never send to it at once. An address that fails waits
for longer and longer, with all its messages, and holds up no other. After `PATIENCE` its messages are dropped, and it
must prove itself again. Until it is proven, it gets nothing but the proof. A webhook is proven if it answers with the
challenge in its first message, a mail address by a one-time link.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from consilium_chain.errors import name_of
from consilium_core.errors import NotSent
from consilium_core.logs import emit
from consilium_core.notify import STRANGERS, Mailbox, MailServer, Reach, Webhook, mail, post
from sqlalchemy import Connection, Engine, case, func, select, update

from consilium_server.config import NotifySettings
from consilium_server.database.engine import writing
from consilium_server.index.store import table_of
from consilium_server.jobs.retry_delay import RetryPolicy
from consilium_server.jobs.runner import traced
from consilium_server.telling.outbox import DAY, MOST_WAITING, fill, forget_old
from consilium_server.telling.tables import ChannelRow, MessageRow, TellerRow

ADDRESSES_AT_ONCE = 16  # each in its own thread
SECONDS = 20.0  # of a run, after which no message is begun
HELD = 300.0  # seconds of an address; longer than its last message can take
PATIENCE = 2 * 86_400  # seconds of an event's message
PROOFS = 3  # attempts of a proof; least attempts before an address fails
PROOF_SHARE = 10  # one mail of so many may be a proof
RETRY = RetryPolicy(30.0, 3_600.0)
MAIL_EVERY, MAILS_A_DAY = 600.0, 20  # of one address; what happens meanwhile is in the next mail
TOKEN_LIFE = 86_400  # seconds
STOP = "stop"

_MESSAGES, _CHANNELS, _TELLER = table_of(MessageRow), table_of(ChannelRow), table_of(TellerRow)


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
        end, is_more = time.monotonic() + SECONDS, True
        while is_more and time.monotonic() < end:
            with writing(self.database) as connection:
                is_more = fill(connection, self.confirmations, self.offers, now)
        with writing(self.database) as connection:
            forget_old(connection, now)
        while time.monotonic() < end:
            with writing(self.database) as connection:
                batches = self._held(connection, now)
            if not batches:
                return
            with ThreadPoolExecutor(len(batches), "teller") as threads:
                for sent in as_completed([threads.submit(self._sent, batch, end) for batch in batches]):
                    with writing(self.database) as connection:
                        self._note(connection, sent.result(), now)

    def _held(self, connection: Connection, now: float) -> list[Batch]:
        """Messages of addresses that are due, confirmed ones first. Mails count before they leave."""
        day, left = int(now // DAY), self._left(connection, now)
        before, state, kind = dict(left), _CHANNELS.c.state, _CHANNELS.c.kind
        few_today = (_CHANNELS.c.day != day) | (_CHANNELS.c.sent < MAILS_A_DAY)
        may_mail = state.in_([one for one, mails in left.items() if mails > 0]) & few_today
        is_proof = _MESSAGES.c.kind == "proof"
        waiting = (_MESSAGES.c.account == _CHANNELS.c.account) & (_MESSAGES.c.channel == kind)
        waiting &= (_MESSAGES.c.state == "waiting") & case((state == "asked", is_proof), else_=~is_proof)
        channels = (
            select(_CHANNELS)
            .join(_MESSAGES, waiting)
            .where(_CHANNELS.c.next_at <= now, state.in_(["asked", "confirmed"]))
            .where(kind.in_(self.offers.split()), (kind == "https") | may_mail)
            .group_by(*_CHANNELS.c)
            .order_by(state.desc(), _CHANNELS.c.next_at, func.min(_MESSAGES.c.made_at))
            .limit(ADDRESSES_AT_ONCE)
        )
        batches = []
        for row in connection.execute(channels).all():
            channel = ChannelRow(**row._mapping)
            values: dict[str, Any] = {"next_at": now + HELD}
            token = ""
            if channel.kind == "mailto":
                if not left[channel.state]:
                    continue
                left[channel.state] -= 1
                values |= {"day": day, "sent": channel.sent + 1 if channel.day == day else 1}
                if channel.state == "asked":  # a new token at each attempt; the tables have its hash before it leaves
                    token = secrets.token_hex(32)
                    values |= {"token_hash": token_hash(token), "token_until": int(now) + TOKEN_LIFE}
            connection.execute(update(_CHANNELS).where(_is(channel)).values(**values))
            messages = _waiting(connection, channel)
            if channel.state == "asked":  # it counts, also if the account drops it meanwhile
                asked = update(_MESSAGES).where(_MESSAGES.c.id == messages[0].id)
                connection.execute(asked.values(attempts=messages[0].attempts + 1))
            batches.append(Batch(channel, messages, token))
        self._count(connection, day, before, left)
        return batches

    def _left(self, connection: Connection, now: float) -> dict[str, int]:
        """Mails that may leave today, by the states of addresses: strangers cannot use up those of the confirmed."""
        proofs = max(1, self.mails_per_day // PROOF_SHARE)
        left = {"confirmed": max(1, self.mails_per_day - proofs), "asked": proofs}
        used = connection.execute(select(_TELLER.c.mails, _TELLER.c.proofs).where(_TELLER.c.day == now // DAY)).first()
        if used is not None:
            left = {"confirmed": left["confirmed"] - used.mails, "asked": left["asked"] - used.proofs}
        return {state: max(0, mails) for state, mails in left.items()}

    def _count(self, connection: Connection, day: int, before: Mapping[str, int], left: Mapping[str, int]) -> None:
        if before == left:
            return
        connection.execute(update(_TELLER).where(_TELLER.c.day != day).values(day=day, mails=0, proofs=0))
        mails, proofs = (before[state] - left[state] for state in ("confirmed", "asked"))
        counted = {"mails": _TELLER.c.mails + mails, "proofs": _TELLER.c.proofs + proofs}
        connection.execute(update(_TELLER).values(**counted))
        for state, mails in left.items():
            if before[state] and not mails:
                emit("mails-used-up", addresses=state, per_day=self.mails_per_day)

    def _sent(self, batch: Batch, end: float) -> Result:
        """Sends until `end`, by the monotonic clock, but at least one message. The rest waits for the next run."""
        done: list[MessageRow] = []
        try:
            if batch.channel.kind == "mailto":
                self._mail(batch)
                done += batch.messages
            for message in batch.messages if batch.channel.kind == "https" else ():
                if done and time.monotonic() >= end:
                    break
                self._post(batch.channel, message)
                done.append(message)
        except NotSent as error:
            return Result(batch, done, error)
        except Exception as error:  # unexpected; the other addresses are told all the same
            emit("telling-failed", error=name_of(error), trace=traced(error))
            return Result(batch, done, NotSent(f"unexpected error ({name_of(error)})"))
        return Result(batch, done)

    def _post(self, channel: ChannelRow, message: MessageRow) -> None:
        """Raises NotSent."""
        content = {"id": message.id, "type": message.kind, **message.content}
        body, secret = json.dumps(content).encode(), bytes.fromhex(channel.secret)
        answer = post(Webhook(channel.address), body, message.id, int(time.time()), secret, self.reach or STRANGERS)
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
        is_proven = channel.kind == "https" and channel.state == "asked" and failure is None
        _end(connection, result.sent, "proven" if is_proven else "sent")
        if failure is not None:
            self._note_failure(connection, result, failure, now)
            return
        values: dict[str, Any] = {"next_at": now + MAIL_EVERY if channel.kind == "mailto" else now}
        if is_proven:
            values["state"] = "confirmed"
        connection.execute(update(_CHANNELS).where(_is(channel)).values(**values))

    def _note_failure(self, connection: Connection, result: Result, failure: NotSent, now: float) -> None:
        channel, message = result.batch.channel, result.batch.messages[len(result.sent)]
        failures = message.attempts + 1
        emit("not-told", channel=channel.kind, why=failure.why, failures=failures)
        is_enough = message.kind == "proof" or message.made_at < now - PATIENCE
        if failure.is_gone or (is_enough and failures >= PROOFS):
            fail(connection, channel, now)
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


def fail(connection: Connection, channel: ChannelRow, now: float) -> None:
    """The address gets nothing more until it proves itself again."""
    failed = update(_CHANNELS).where(_is(channel)).values(state="failed", changed_at=now)
    if not connection.execute(failed).rowcount:  # another took its place
        return
    waiting = _of(channel) & (_MESSAGES.c.state == "waiting")
    connection.execute(update(_MESSAGES).where(waiting).values(state="dropped"))


def _waiting(connection: Connection, channel: ChannelRow) -> list[MessageRow]:
    """The address's messages, the oldest first."""
    is_proof = _MESSAGES.c.kind == "proof"
    own = _of(channel) & (_MESSAGES.c.state == "waiting") & (is_proof if channel.state == "asked" else ~is_proof)
    newest_first = (_MESSAGES.c.made_at.desc(), _MESSAGES.c.block.desc(), _MESSAGES.c.id)
    query = select(_MESSAGES).where(own).order_by(*newest_first).limit(MOST_WAITING)
    return [MessageRow(**row._mapping) for row in connection.execute(query)][::-1]


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
