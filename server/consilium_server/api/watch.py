"""Watch lists of signed-in accounts, and the addresses where they are told of events that cost money.

A worker sends (`consilium_server.telling`). These routes only write rows: a proof for a new address is a message, too.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from consilium_core.notify import Target, Webhook
from fastapi import APIRouter, Query, Request
from pydantic import Field
from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.orm import Session

from consilium_server.api.context import Service
from consilium_server.api.observed import client_address
from consilium_server.api.problems import Problem, documented
from consilium_server.api.routing import Shared, limited
from consilium_server.api.schemas import Account, ApiModel, GivenAccount, TaskNumber
from consilium_server.api.server_routes import SignedInAccount
from consilium_server.database.engine import writing
from consilium_server.errors import Unavailable
from consilium_server.index.store import add, table_of
from consilium_server.telling.delivery import stop_token, token_hash
from consilium_server.telling.outbox import message_id
from consilium_server.telling.tables import ChannelRow, MessageRow, TellerRow, WatchRow

MOST_TASKS, MOST_NODES = 50, 50
# Requests for a proof that one mailbox or host gets, of all accounts, in so many days. Many share a host.
PROOFS = {"mailto": (3, 30), "https": (50, 1)}
GMAIL = ("gmail.com", "googlemail.com")  # it ignores dots
OFFLINE = 600  # seconds after which a worker that offered to tell counts as gone

_WATCHES, _CHANNELS, _MESSAGES = table_of(WatchRow), table_of(ChannelRow), table_of(MessageRow)

Kind = Literal["https", "mailto"]
Tasks = Annotated[list[TaskNumber], Field(max_length=MOST_TASKS)]
ConfirmToken = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="from the mail; it works once")]
StopToken = Annotated[
    str, Query(pattern=r"^0x[0-9a-fA-F]{40}-[0-9a-f]{32}$", description="from a mail; it stays valid")
]


class WatchList(ApiModel):
    tasks: Tasks
    nodes: Annotated[list[GivenAccount], Field(max_length=MOST_NODES)]


class Channel(ApiModel):
    """`asked`: a proof is on its way, or the mail's link is not used. `failed`: give the address again."""

    kind: Kind
    address: str
    state: Literal["asked", "confirmed", "failed"]


class Watch(ApiModel):
    """`offers`: kinds of addresses that this server tells now."""

    account: Account
    tasks: list[TaskNumber]
    nodes: list[Account]
    channels: list[Channel]
    offers: list[Kind]


class GivenAddress(ApiModel):
    address: Target


class NewChannel(Channel):
    secret: str = Field(description="signs webhooks (Standard Webhooks); shown once, empty for mail")


class Confirmation(ApiModel):
    token: ConfirmToken


class Done(ApiModel):
    state: Literal["confirmed", "stopped"]


watch = APIRouter(prefix="/v1", tags=["watching"])
ROUTERS = (watch,)
_OWN = documented(401, 403, 413, 422, 429, 503)


@contextmanager
def _writing(service: Service) -> Iterator[Connection]:
    engine = service.engine
    if engine.dialect.name != "sqlite":  # a writer that waits for another must see its rows then
        engine = engine.execution_options(isolation_level="READ COMMITTED")
    try:
        with writing(engine) as connection:
            yield connection
    except Unavailable as error:
        raise Problem("not-ready", "the database does not answer: try again") from error


@watch.get("/watch", operation_id="getWatch", summary="The account's watch list", responses=documented(401, 429))
def get_watch(service: Shared, who: SignedInAccount) -> Watch:
    with Session(service.engine) as db:
        return _view(db, who.account)


@watch.put("/watch", operation_id="putWatch", summary="Replaces the account's watch list", responses=_OWN)
def put_watch(request: Request, service: Shared, who: SignedInAccount, body: WatchList) -> Watch:
    limited(service.limits.checks, f"watch {client_address(request.scope, service)}")
    with _writing(service) as connection:
        others = connection.scalar(select(func.count()).select_from(_WATCHES).where(_WATCHES.c.account != who.account))
        if (others or 0) >= service.settings.limits.watch_lists:
            raise Problem("not-allowed", "this server stores no more lists: ask its operator")
        connection.execute(delete(_WATCHES).where(_WATCHES.c.account == who.account))
        if body.tasks or body.nodes:
            add(connection, [WatchRow(who.account, sorted({*body.tasks}), sorted({*body.nodes}), time.time())])
        return _view(connection, who.account)


@watch.put(
    "/watch/channels", operation_id="putChannel",
    summary="Asks an address, https or mailto, for a proof that it wants to be told. It replaces one of its kind",
    responses=_OWN,
)  # fmt: skip
def put_channel(request: Request, service: Shared, who: SignedInAccount, body: GivenAddress) -> NewChannel:
    limited(service.limits.files, f"channel {who.account}")
    limited(service.limits.files, f"channel {client_address(request.scope, service)}")
    kind: Kind = "mailto" if body.address.startswith("mailto:") else "https"
    address, now, secret = body.address.removeprefix("mailto:"), time.time(), secrets.token_hex(32)
    row = ChannelRow(who.account, kind, address, "asked", secret, None, 0, 0.0, 0, 0, now)
    with _writing(service) as connection:
        if kind not in _offers(connection):
            raise Problem("not-allowed", f"this server tells no {kind} addresses: ask its operator")
        known = connection.execute(select(_CHANNELS).where(_is(who.account, kind))).first()
        if known is not None:  # what the old address did today counts
            row.day, row.sent = known.day, known.sent
        else:
            others = connection.scalar(select(func.count()).select_from(_CHANNELS))
            if (others or 0) >= 2 * service.settings.limits.watch_lists:
                raise Problem("not-allowed", "this server stores no more addresses: ask its operator")
        mailbox = _mailbox(address) if kind == "mailto" else Webhook(address).host
        _forget(connection, who.account, kind)
        _require_unasked(connection, who.account, kind, mailbox, now)
        connection.execute(delete(_CHANNELS).where(_is(who.account, kind)))
        add(connection, [row])
        challenge = {"challenge": secrets.token_hex(16)} if kind == "https" else {}
        id_ = message_id("proof", secret)
        add(connection, [MessageRow(id_, who.account, kind, "proof", challenge, now, mailbox=mailbox)])
    return NewChannel(kind=kind, address=address, state="asked", secret=secret if kind == "https" else "")


@watch.delete(
    "/watch/channels/{kind}", operation_id="deleteChannel", summary="Forgets the address",
    responses=documented(401, 422, 429, 503),
)  # fmt: skip
def delete_channel(service: Shared, who: SignedInAccount, kind: Kind) -> Watch:
    with _writing(service) as connection:
        _forget(connection, who.account, kind)
        return _view(connection, who.account)


@watch.post(
    "/watch/confirm", operation_id="confirmChannel", summary="Confirms a mail address by the token of its mail",
    responses=documented(404, 413, 422, 429, 503),
)  # fmt: skip
def confirm(request: Request, service: Shared, body: Confirmation) -> Done:
    limited(service.limits.sign_ins, client_address(request.scope, service))
    hashed = _CHANNELS.c.token_hash == token_hash(body.token)
    asked = hashed & (_CHANNELS.c.token_until > int(time.time())) & (_CHANNELS.c.state == "asked")
    with _writing(service) as connection:
        secret = connection.scalar(select(_CHANNELS.c.secret).where(asked))
        done = connection.execute(update(_CHANNELS).where(asked).values(state="confirmed", token_hash=None, next_at=0))
        proof = _MESSAGES.c.id == message_id("proof", secret)
        if done.rowcount:
            connection.execute(update(_MESSAGES).where(proof).values(state="proven"))
    if done.rowcount == 0:
        raise Problem("not-found", "this link is used up, or older than a day: give the address again")
    return Done(state="confirmed")


@watch.post(
    "/watch/stop", operation_id="stopMails", summary="Ends mails, by the token of a mail (RFC 8058)",
    responses=documented(404, 422, 429, 503),
)  # fmt: skip
def stop(request: Request, service: Shared, token: StopToken) -> Done:
    limited(service.limits.sign_ins, client_address(request.scope, service))
    account = token[:42]
    with _writing(service) as connection:
        found = connection.execute(select(_CHANNELS).where(_is(account, "mailto"))).first()
        if found is None or not secrets.compare_digest(stop_token(ChannelRow(**found._mapping)), token):
            raise Problem("not-found", "this address gets no mails by this link")
        _forget(connection, account, "mailto")
    return Done(state="stopped")


def _is(account: str, kind: str) -> Any:
    return (_CHANNELS.c.account == account) & (_CHANNELS.c.kind == kind)


def _offers(db: Session | Connection) -> list[Kind]:
    found = db.execute(select(TellerRow.offers, TellerRow.seen_at)).first()
    offered = found.offers.split() if found is not None and found.seen_at > time.time() - OFFLINE else []
    return [kind for kind in ("https", "mailto") if kind in offered]


def _view(db: Session | Connection, account: str) -> Watch:
    lists = db.execute(select(_WATCHES).where(_WATCHES.c.account == account)).first()
    own = (_CHANNELS.c.account == account) & (_CHANNELS.c.state != "none")
    channels = db.execute(select(_CHANNELS).where(own).order_by(_CHANNELS.c.kind))
    return Watch(
        account=account, tasks=lists.tasks if lists else [], nodes=lists.nodes if lists else [],
        channels=[Channel.model_validate(row) for row in channels], offers=_offers(db),
    )  # fmt: skip


def _mailbox(address: str) -> str:
    """Addresses that reach one mailbox at most providers have the same one: without capitals, +tag and Gmail's dots."""
    local, _, host = address.lower().partition("@")
    name = local.partition("+")[0] or local
    return f"{name.replace('.', '') if host in GMAIL else name}@{host}"


def _require_unasked(connection: Connection, account: str, kind: Kind, mailbox: str, now: float) -> None:
    """Raises Problem if proofs were asked of it often enough. Its owner may ask again.

    Rows stay as long, also without their channel. What was dropped before an attempt asked nobody.
    """
    (most, days), state = PROOFS[kind], _MESSAGES.c.state
    of_it = (_MESSAGES.c.mailbox == mailbox) & (_MESSAGES.c.channel == kind)
    own = of_it & (_MESSAGES.c.account == account) & (state == "proven")
    if connection.scalar(select(func.count()).where(own)):
        return
    asked = of_it & (_MESSAGES.c.made_at > now - days * 86_400) & ((state != "dropped") | (_MESSAGES.c.attempts > 0))
    if (connection.scalar(select(func.count()).where(asked)) or 0) >= most:
        what = "mailbox" if kind == "mailto" else "host"
        why = f"this {what} was asked for a proof {most} times in {days} days: try again in some days"
        raise Problem("too-many-requests", why, {"Retry-After": str(86_400)})


def _forget(connection: Connection, account: str, kind: str) -> None:
    """Drops what waits, so that it reaches no other address. Proofs stay, and count; so do the day's mails."""
    values = {"state": "none", "address": "", "secret": secrets.token_hex(32), "token_hash": None}
    connection.execute(update(_CHANNELS).where(_is(account, kind)).values(**values, changed_at=time.time()))
    waiting = (_MESSAGES.c.account == account) & (_MESSAGES.c.channel == kind) & (_MESSAGES.c.state == "waiting")
    connection.execute(update(_MESSAGES).where(waiting).values(state="dropped"))
