"""Names of accounts that another side verifies: the host of a profile's site by a file there, and a primary ENS name.

A worker asks, because the hosts are strangers' (`consilium_core.notify`). The API shows the names that were verified
within `KEPT`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from http.client import HTTPS_PORT
from typing import Any

from consilium_chain.ens import EnsNames
from consilium_chain.errors import ChainUnreachable
from consilium_chain.profiles import WELL_KNOWN, host_of
from consilium_core.errors import NotSent
from consilium_core.notify import STRANGERS, Reach, Webhook, get
from sqlalchemy import Connection, Engine, and_, delete, select, union, update
from sqlalchemy.orm import Session

from consilium_server.config import NameSettings
from consilium_server.database.engine import reading, writing
from consilium_server.database.tables import PoolRow, ProfileRow, TaskRow, VerifiedNameRow
from consilium_server.index import store

DOMAIN, ENS = "domain", "ens"
MOST_BYTES = 65_536  # of the file: the addresses of 1,400 accounts
AT_ONCE = 16  # names, each in its own thread
MOST_NEW = 1_000  # accounts that one run takes up
SECONDS = 20.0  # of a run, after which no name is begun
HELD = 300.0  # seconds of a name; longer than its answer can take
VERIFIED, NOT_VERIFIED = 86_400.0, 3_600.0  # seconds to the next question
KEPT = 3 * 86_400  # seconds of a verified name whose host does not answer any more
_NAMES = store.table_of(VerifiedNameRow)


@dataclass(frozen=True)
class Answer:
    """`name`: the verified one, empty without any, None if the question had no answer."""

    row: VerifiedNameRow
    name: str | None


@dataclass(frozen=True)
class NameChecks:
    """Asks for names that are due. `reach`, `ens`: None if this worker does not ask for their kind.

    `port`: of all hosts.
    """

    database: Engine
    reach: Reach | None
    ens: EnsNames | None
    port: int = HTTPS_PORT

    def run(self, now: float) -> None:
        """One turn. Raises Unavailable, DatabaseUnfit."""
        end = time.monotonic() + SECONDS
        with reading(self.database) as connection:
            are_new = bool(self._new(connection))
        if are_new:
            with writing(self.database) as connection:
                store.add(connection, self._new(connection))
        while time.monotonic() < end:
            with writing(self.database) as connection:
                rows = self._held(connection, now)
            if not rows:
                return
            with ThreadPoolExecutor(len(rows), "names") as threads:
                for answer in as_completed([threads.submit(self._asked, row) for row in rows]):
                    with writing(self.database) as connection:
                        self._note(connection, answer.result(), now)

    def _new(self, connection: Connection) -> list[VerifiedNameRow]:
        """Rows of accounts that have none yet."""
        of_kind: dict[str, Any] = {}
        if self.reach is not None:
            of_kind[DOMAIN] = select(ProfileRow.account).where(ProfileRow.signed["site"].as_string() != "")
        if self.ens is not None:
            of_kind[ENS] = union(select(PoolRow.node), select(TaskRow.operator))
        rows = []
        for kind, accounts in of_kind.items():
            (account,) = accounts.subquery().c
            known = select(_NAMES.c.account).where(_NAMES.c.kind == kind)
            missing = select(account).where(account.not_in(known)).limit(MOST_NEW)
            rows += [VerifiedNameRow(one, kind, "", 0, 0.0) for one in connection.scalars(missing)]
        return rows

    def _held(self, connection: Connection, now: float) -> list[VerifiedNameRow]:
        """Names that are due, held so that no other worker asks for them."""
        kinds = [kind for kind, means in ((DOMAIN, self.reach), (ENS, self.ens)) if means is not None]
        query = select(_NAMES).where(_NAMES.c.next_at <= now, _NAMES.c.kind.in_(kinds)).order_by(_NAMES.c.next_at)
        rows = [VerifiedNameRow(**row._mapping) for row in connection.execute(query.limit(AT_ONCE))]
        for row in rows:
            connection.execute(update(_NAMES).where(_is(row)).values(next_at=now + HELD))
            if row.kind == DOMAIN:
                row.name = host_of(connection.scalar(_site(row.account)) or "")
        return rows

    def _asked(self, row: VerifiedNameRow) -> Answer:
        try:
            if row.kind == ENS:
                return Answer(row, "" if self.ens is None else self.ens.name_of(row.account) or "")
            if self.reach is None or not row.name:
                return Answer(row, "")
            file = get(Webhook(f"https://{row.name}:{self.port}{WELL_KNOWN}"), MOST_BYTES, self.reach)
            return Answer(row, row.name if row.account.lower() in addresses(file) else "")
        except (NotSent, ChainUnreachable):
            return Answer(row, None)

    def _note(self, connection: Connection, answer: Answer, now: float) -> None:
        """Without an answer the name stays as it is, until `KEPT`. A row that changed meanwhile is left alone."""
        values: dict[str, Any] = {"next_at": now + (VERIFIED if answer.name else NOT_VERIFIED)}
        if answer.name is not None:
            values |= {"name": answer.name, "verified_at": int(now)}
        is_held = _is(answer.row) & (_NAMES.c.next_at == now + HELD)
        connection.execute(update(_NAMES).where(is_held).values(**values))


def checks_of(settings: NameSettings, database: Engine) -> NameChecks:
    ens = None if settings.ens_url is None else EnsNames(settings.ens_url)
    return NameChecks(database, STRANGERS if settings.domains else None, ens)


def names_of(db: Session, accounts: Sequence[str], now: float) -> list[VerifiedNameRow]:
    """Verified names of these accounts."""
    return _verified(db, VerifiedNameRow.account.in_(accounts), len(accounts) * 2, now)


def names_with(db: Session, words: str, most: int, now: float) -> list[VerifiedNameRow]:
    """Verified names that have the words, which are in lower case."""
    return _verified(db, VerifiedNameRow.name.contains(words, autoescape=True), most, now)


def _verified(db: Session, where: Any, most: int, now: float) -> list[VerifiedNameRow]:
    """A domain counts while it is that of its profile's site."""
    query = select(VerifiedNameRow, ProfileRow.signed["site"].as_string())
    query = query.outerjoin(ProfileRow, ProfileRow.account == VerifiedNameRow.account)
    query = query.where(where, VerifiedNameRow.name != "", VerifiedNameRow.verified_at > now - KEPT)
    rows = db.execute(query.order_by(VerifiedNameRow.account, VerifiedNameRow.kind).limit(most))
    return [row for row, site in rows if row.kind == ENS or row.name == host_of(site or "")]


def forget_domain(connection: Connection, account: str) -> None:
    """A new profile's site is asked for at once."""
    connection.execute(delete(_NAMES).where(_NAMES.c.account == account, _NAMES.c.kind == DOMAIN))


def addresses(file: bytes) -> set[str]:
    """The file's lines that are addresses, in lower case. Other lines may be comments."""
    return set(re.findall(r"(?m)^0x[0-9a-f]{40}$", file.decode("ascii", "replace").lower().replace("\r\n", "\n")))


def _site(account: str) -> Any:
    return select(ProfileRow.signed["site"].as_string()).where(ProfileRow.account == account)


def _is(row: VerifiedNameRow) -> Any:
    return and_(_NAMES.c.account == row.account, _NAMES.c.kind == row.kind)
