"""The outbox: a message for each event that costs money, and for each address that is told of it.

A message's id follows from the log, its block and the address. So an event is never in it twice, also after a crash. An
event counts once `confirmations` blocks are above it. If a deeper reorganisation removes it, those that were told get
another message, which takes it back. If the event returns after that, they are told again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from consilium_chain.ledger.structs import Role
from sqlalchemy import Connection, delete, func, select, tuple_, update
from sqlalchemy.engine import Row

from consilium_server.database.tables import Block, Cohort, EventRow, Participant, TaskRow, UnbondingRow
from consilium_server.index import store
from consilium_server.index.store import table_of
from consilium_server.telling.tables import ChannelRow, MessageRow, TellerRow, WatchRow
from consilium_server.telling.words import TOLD, Told, matured, told_of

AT_ONCE, MOST_MESSAGES = 500, 20_000  # events of one transaction; messages after which it ends
MOST_WAITING = 100  # messages of one address; of more, the oldest are dropped
DEPTH = 256  # blocks that are looked at again after a deep reorganisation
DAY = 86_400
KEPT, PROOFS_KEPT = 3 * DAY, 30 * DAY  # seconds of messages that do not wait
ASKED_KEPT, LISTS_KEPT = 3 * DAY, 56 * DAY  # seconds of addresses without a proof; of lists without an address
MATURED_EVERY = 60  # seconds
ONLY = 1  # number of the one row
BEYOND = 2**31 - 1  # log index after all logs of a block

_MESSAGES, _TELLER = table_of(MessageRow), table_of(TellerRow)
_CHANNELS, _LISTS = table_of(ChannelRow), table_of(WatchRow)


class _Facts:
    """Facts that `told_of` needs, of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.parties = cache(self._parties)

    def _parties(self, task: int) -> Mapping[str, tuple[Role, int]]:
        joined = select(Participant.account, Participant.role, Participant.position).where(Participant.task == task)
        return {account: (Role(role), position) for account, role, position in self._connection.execute(joined)}

    def operator(self, task: int) -> str | None:
        return self._connection.scalar(select(TaskRow.operator).where(TaskRow.task == task))

    def cohorts(self, task: int, round_: int) -> Mapping[int, int]:
        formed = select(Cohort.item, Cohort.members).where(Cohort.task == task, Cohort.round == round_)
        return {item: map_ for item, map_ in self._connection.execute(formed)}

    def rank_floor(self, task: int) -> int | None:
        params = self._connection.scalar(select(TaskRow.params).where(TaskRow.task == task)) or {}
        return int(params["rank_floor"]) if params.get("rank_decay_bps") else None


class Watchers:
    """Confirmed addresses, by the tasks and accounts that they are told of."""

    def __init__(self, connection: Connection) -> None:
        query = select(_CHANNELS.c.account, _CHANNELS.c.kind, _LISTS.c.tasks, _LISTS.c.nodes)
        joined = query.outerjoin(_LISTS, _LISTS.c.account == _CHANNELS.c.account)
        self._of: dict[int | str, set[tuple[str, str]]] = defaultdict(set)
        for account, kind, tasks, nodes in connection.execute(joined.where(_CHANNELS.c.state == "confirmed")):
            for one in (account, *(tasks or ()), *(nodes or ())):
                self._of[one].add((account, kind))

    def of(self, told: Told) -> set[tuple[str, str]]:
        """Account and kind of each address."""
        subjects: list[int | str] = [*told.accounts] if told.task is None else [told.task, *told.accounts]
        return {one for subject in subjects for one in self._of.get(subject, ())}


def fill(connection: Connection, confirmations: int, offers: str, now: float) -> bool:
    """Puts messages of new events into the outbox; true if there may be more. `connection`: the only writer's.

    `offers`: kinds of addresses that this worker tells, for the API to show. At the first run it begins at the present.
    """
    head = store.checkpoint(connection)
    if head is None:
        return False
    found = connection.execute(select(_TELLER)).first()
    if found is None:
        since = _newest(connection, now)
        store.add(connection, [TellerRow(ONLY, head.number, BEYOND, None, since, offers, now)])
        return False
    connection.execute(update(_TELLER).values(offers=offers, seen_at=now))
    teller = TellerRow(**found._mapping)
    if teller.hash is not None and head.number < teller.block + confirmations:
        return False  # a node that lags looks like a reorganisation
    if teller.hash is not None and _hash(connection, teller.block) != teller.hash:
        teller.block, teller.log_index, teller.hash = max(0, teller.block - DEPTH), -1, None
        _take_back(connection, teller.block, now)
    rows = _events(connection, teller, head.number - confirmations)
    newest, due = _newest(connection, now), []
    if newest - teller.matured_until >= MATURED_EVERY:
        due = list(_matured(connection, teller.matured_until, newest))
        teller.matured_until = newest
    messages: list[MessageRow] = []
    if rows or due:
        facts, watchers = _Facts(connection), Watchers(connection)
        for told, key in due:
            messages += _messages(told, watchers, key, None, None, now)
        for row in rows:
            messages += _of_event(row, facts, watchers, now)
            teller.block, teller.log_index, teller.hash = row[0].block, row[0].log_index, row[1]
            if len(messages) >= MOST_MESSAGES:
                break
        _add_new(connection, messages)
    values = {name: getattr(teller, name) for name in ("block", "log_index", "hash", "matured_until")}
    connection.execute(update(_TELLER).values(**values))
    return len(rows) == AT_ONCE or len(messages) >= MOST_MESSAGES


def forget_old(connection: Connection, now: float) -> None:
    """Deletes messages that ended, addresses that never proved themselves, and lists that reach nobody."""
    account, state, changed = _CHANNELS.c.account, _CHANNELS.c.state, _CHANNELS.c.changed_at
    unproven = state.in_(["asked", "none"]) & (changed < now - ASKED_KEPT)
    failed = (state == "failed") & (changed < now - LISTS_KEPT)
    if connection.execute(delete(_CHANNELS).where(unproven | failed)).rowcount:
        left = select(account).where(account == _MESSAGES.c.account, _CHANNELS.c.kind == _MESSAGES.c.channel)
        orphans = (_MESSAGES.c.state == "waiting") & ~left.exists()
        connection.execute(update(_MESSAGES).where(orphans).values(state="dropped"))
    reached = select(account).where(account == _LISTS.c.account, state == "confirmed").exists()
    connection.execute(delete(_LISTS).where(_LISTS.c.changed_at < now - LISTS_KEPT, ~reached))
    old = (_MESSAGES.c.kind != "proof") | (_MESSAGES.c.made_at < now - PROOFS_KEPT)
    ended = (_MESSAGES.c.state != "waiting") & (_MESSAGES.c.made_at < now - KEPT)
    connection.execute(delete(_MESSAGES).where(ended, old))


def message_id(*parts: object) -> str:
    """32 hexadecimal digits."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def _hash(connection: Connection, block: int) -> bytes | None:
    return connection.scalar(select(Block.hash).where(Block.number == block))


def _newest(connection: Connection, now: float) -> int:
    """Time of the newest block with events, because what matures later may not be in the tables yet."""
    found = connection.scalar(select(Block.time).order_by(Block.number.desc()).limit(1))
    return min(int(now), 0 if found is None else found)


def _events(connection: Connection, teller: TellerRow, until: int) -> list[tuple[EventRow, bytes, int]]:
    events = table_of(EventRow)
    position = (events.c.block, events.c.log_index)
    query = (
        select(events, Block.hash, Block.time)
        .join(Block, Block.number == events.c.block)
        .where(tuple_(*position) > (teller.block, teller.log_index), events.c.block <= until, events.c.name.in_(TOLD))
        .order_by(*position)
        .limit(AT_ONCE)
    )
    return [(_event(row), row.hash, row.time) for row in connection.execute(query)]


def _event(row: Row[Any]) -> EventRow:
    return EventRow(**{name: value for name, value in row._mapping.items() if name not in ("hash", "time")})


def _of_event(row: tuple[EventRow, bytes, int], facts: _Facts, watchers: Watchers, now: float) -> Iterator[MessageRow]:
    event, hash_, time = row
    told = told_of(event, time, facts)
    if told is not None:
        yield from _messages(told, watchers, f"{hash_.hex()} {event.log_index}", event.block, hash_, now)


def _messages(
    told: Told, watchers: Watchers, key: str, block: int | None, hash_: bytes | None, now: float
) -> Iterator[MessageRow]:
    content = {"kind": told.kind, "words": told.words, "task": told.task, "round": told.round, "block": block}
    for account, channel in sorted(watchers.of(told)):
        id_ = message_id(key, account, channel)
        yield MessageRow(id_, account, channel, "event", content, now, block=block, block_hash=hash_)


def _matured(connection: Connection, since: int, until: int) -> Iterator[tuple[Told, str]]:
    """Unbonding that matured in (since, until], and was not redelegated before."""
    due = (UnbondingRow.matures_at > since, UnbondingRow.matures_at <= until)
    last = store.latest(UnbondingRow, [UnbondingRow.delegator, UnbondingRow.request], *due)
    for row in connection.execute(
        select(last.c.delegator, last.c.request, last.c.node, last.c.matures_at, last.c.shares)
    ):
        if row.shares:
            yield matured(row.delegator, row.node, row.matures_at), f"matured {row.delegator} {row.request}"


def _add_new(connection: Connection, messages: Iterable[MessageRow]) -> None:
    rows = {one.id: one for one in messages}
    ids = list(rows)
    for start in range(0, len(ids), AT_ONCE):
        for known in connection.scalars(select(_MESSAGES.c.id).where(_MESSAGES.c.id.in_(ids[start : start + AT_ONCE]))):
            again = _again(connection, rows.pop(known))
            if again is not None:
                rows[again.id] = again
    if rows:
        store.add(connection, rows.values())
        _drop_surplus(connection)


def _again(connection: Connection, message: MessageRow) -> MessageRow | None:
    """The message under another id if its event is back after it was taken back. None if they know of it."""
    while connection.scalar(select(_MESSAGES.c.id).where(_MESSAGES.c.id == message.id)) is not None:
        withdrawn = _MESSAGES.c.id == message_id("withdrawn", message.id)
        if connection.scalar(select(_MESSAGES.c.state).where(withdrawn)) != "sent":
            connection.execute(delete(_MESSAGES).where(withdrawn))
            return None
        message.id = message_id("again", message.id)
    return message


def _drop_surplus(connection: Connection) -> None:
    newest = (_MESSAGES.c.made_at.desc(), _MESSAGES.c.block.desc(), _MESSAGES.c.id)
    position = func.row_number().over(partition_by=(_MESSAGES.c.account, _MESSAGES.c.channel), order_by=newest)
    ranked = select(_MESSAGES.c.id, position.label("position")).where(_MESSAGES.c.state == "waiting").subquery()
    surplus = select(ranked.c.id).where(ranked.c.position > MOST_WAITING)
    connection.execute(update(_MESSAGES).where(_MESSAGES.c.id.in_(surplus)).values(state="dropped"))


def _take_back(connection: Connection, block: int, now: float) -> None:
    """Forgets waiting messages of events that are no longer on the chain, and takes back those that were sent."""
    there = select(Block.number).where(Block.number == _MESSAGES.c.block, Block.hash == _MESSAGES.c.block_hash)
    gone = (_MESSAGES.c.block >= block) & (_MESSAGES.c.kind == "event") & ~there.exists()
    connection.execute(delete(_MESSAGES).where(gone, _MESSAGES.c.state == "waiting"))
    same = (_CHANNELS.c.account == _MESSAGES.c.account) & (_CHANNELS.c.kind == _MESSAGES.c.channel)
    reached = select(_CHANNELS.c.account).where(same, _CHANNELS.c.state == "confirmed").exists()
    sent = connection.execute(select(_MESSAGES).where(gone, reached, _MESSAGES.c.state == "sent")).all()
    withdrawn = [
        MessageRow(
            message_id("withdrawn", row.id),
            row.account,
            row.channel,
            "withdrawn",
            {**row.content, "withdraws": row.id},
            now,
        )
        for row in sent
    ]
    _add_new(connection, withdrawn)
