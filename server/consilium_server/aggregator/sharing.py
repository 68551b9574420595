"""A task's aggregator on several machines of one account, which share a PostgreSQL database.

One machine has the task's lease, and renews it. Once it stopped to, another one may take the lease, and continues from
the chain, the artifacts and the secrets here. It requests all other data from hospitals again.

The lease saves work. It is not what keeps the bond: a machine that is cut off from the database goes on, and two may
act at once. The chain accepts one publication, and the secrets of every attempt at one are kept.

Secrets are encrypted with AES-256-GCM (NIST SP 800-38D). The key comes from the account's key by HKDF-SHA256
(RFC 5869), so that holders of the database alone cannot read them, and a row cannot stand for another round's.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilium_core.logs import emit
from consilium_core.private_files import write_private_file
from consilium_zk.decoys import seed_commitment
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import ColumnElement, Double, Engine, Select, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from consilium_server.aggregator.round_secrets import UNREADABLE, RoundSecrets, SecretFiles
from consilium_server.database.engine import reading, shown, updating, writing
from consilium_server.database.tables import AggregatorRow, SealedSecretsRow
from consilium_server.errors import DecoysLost, ServerError, Unavailable
from consilium_server.index.store import table_of

LEASE = 30.0  # seconds
RENEWAL = 10.0  # seconds between two renewals
OWNER = "owner"  # file in the home with this home's name as an owner of leases
NONCE_BYTES = 12
SEALING = b"CONSILIUM-V1-DECOY-SECRETS"
_AGGREGATORS, _SEALED = table_of(AggregatorRow), table_of(SealedSecretsRow)
# The database's clock, because those of machines may differ.
_NOW = cast(func.extract("epoch", func.clock_timestamp()), Double)


def owner_of(home: Path) -> str:
    """The host's name and a random part, which stays the same in this home: a restart there takes its lease again.

    `home`'s lock must be held, so that no other process has the name.
    """
    if (known := known_owner(home)) is not None:
        return known
    owner = f"{socket.gethostname()[:80]}:{secrets.token_hex(8)}"
    write_private_file(home / OWNER, owner)
    return owner


def known_owner(home: Path) -> str | None:
    """This home's name as an owner; None if it never had a lease."""
    path = home / OWNER
    return path.read_text()[:120] if path.exists() else None


@dataclass(frozen=True)
class Holder:
    """A lease's present holder, the seconds since it took the lease, and those until the lease ends."""

    owner: str
    seconds: float
    left: float


def holder(database: Engine, task_key: str) -> Holder | None:
    """The holder of a task's lease; None if it is free. `task_key`: `Ledger.folder_name` of the task.

    Raises DatabaseUnreachable.
    """
    columns = _AGGREGATORS.c
    with reading(database) as connection:
        found = connection.execute(
            select(columns.owner, _NOW - columns.since, columns.leased_until - _NOW).where(columns.task_key == task_key)
        ).first()
    return Holder(*found) if found is not None and found[2] > 0 else None


def holders(database: Engine, prefix: str) -> dict[str, tuple[int, Holder]]:
    """SuperLink's port and holder of each leased task, by its `task_key`, which begins with `prefix`.

    Raises Unavailable (DatabaseUnreachable).
    """
    columns = _AGGREGATORS.c
    with reading(database) as connection:
        rows = connection.execute(
            select(
                columns.task_key,
                columns.superlink_port,
                columns.owner,
                _NOW - columns.since,
                columns.leased_until - _NOW,
            ).where(columns.task_key.startswith(prefix, autoescape=True))
        ).all()
    return {task_key: (port, Holder(*held)) for task_key, port, *held in rows if held[2] > 0}


def port_of(database: Engine, task_key: str, choose: Callable[[dict[str, int]], int]) -> int:
    """The SuperLink's port of a task, the same on all machines, so that each machine's proxy can name it beforehand.

    choose: gives the port if there is none, by those of other tasks. Raises DatabaseUnreachable, SchemaTooNew.
    """
    with writing(database) as connection:
        rows = connection.execute(select(_AGGREGATORS.c.task_key, _AGGREGATORS.c.superlink_port))
        ports: dict[str, int] = {row.task_key: row.superlink_port for row in rows}
        if task_key not in ports:
            ports[task_key] = choose(ports)
            connection.execute(insert(_AGGREGATORS).values(_unowned(task_key, ports[task_key])))
        return ports[task_key]


def _unowned(task_key: str, port: int) -> dict[str, object]:
    return {"task_key": task_key, "superlink_port": port, "owner": "", "since": 0.0, "leased_until": 0.0}


def take(database: Engine, task_key: str, port: int, owner: str) -> bool:
    """Takes a task's lease for `LEASE` seconds if it is free or the owner's. `port`: of a task that has none yet.

    A worker takes it for the process that it starts. Raises DatabaseUnreachable.
    """
    columns = _AGGREGATORS.c
    fresh = {"owner": owner, "since": _NOW, "leased_until": _NOW + LEASE}
    taken = (
        insert(_AGGREGATORS)
        .values(_unowned(task_key, port) | fresh)
        .on_conflict_do_update(
            index_elements=[columns.task_key],
            set_=fresh,
            where=(columns.owner == owner) | (columns.leased_until < _NOW),
        )
        .returning(columns.task_key)
    )
    with updating(database) as connection:
        return connection.execute(taken).first() is not None


class Lease:
    """Held within `with`: taken at its begin, renewed by a thread, released at its end."""

    def __init__(
        self,
        database: Engine,
        task_key: str,
        port: int,
        owner: str,
        renewal: float = RENEWAL,
        reached: Callable[[], None] = lambda: None,
    ) -> None:
        """`renewal`: seconds between two renewals. `reached`: called after each that reached the database."""
        self._database, self._task_key, self._port, self._owner = database, task_key, port, owner
        self._renewal, self._reached, self._ends = renewal, reached, threading.Event()
        self._lost = False
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Lease:
        """Raises ServerError (LeaseHeld), DatabaseUnreachable."""
        if not take(self._database, self._task_key, self._port, self._owner):
            held = holder(self._database, self._task_key)
            raise ServerError("LeaseHeld", task_key=self._task_key, owner=held.owner if held else "another machine")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        try:
            with updating(self._database) as connection:
                connection.execute(update(_AGGREGATORS).where(self._mine).values(leased_until=0.0))
        except Unavailable as error:  # it ends by itself
            emit("lease-not-renewed", error=str(error))

    def require(self) -> None:
        """Raises ServerError (LeaseLost) if another machine has taken the lease."""
        if self._lost:
            raise ServerError("LeaseLost", task_key=self._task_key)

    @property
    def _mine(self) -> ColumnElement[bool]:
        return (_AGGREGATORS.c.task_key == self._task_key) & (_AGGREGATORS.c.owner == self._owner)

    def _keep(self) -> None:
        """Renews the lease until its end or loss. Without the database the machine goes on, and says so once."""
        is_told = False
        while not self._ends.wait(self._renewal):
            renewed = update(_AGGREGATORS).where(self._mine).values(leased_until=_NOW + LEASE)
            try:
                with updating(self._database) as connection:
                    is_mine = connection.execute(renewed).rowcount > 0
                self._reached()
                self._lost, is_told = not is_mine, False
            except Unavailable as error:
                if not is_told:
                    emit("lease-not-renewed", error=str(error))
                is_told = True
            if self._lost:
                return


class SharedSecrets:
    """Secrets on this machine's disk, and in the database, encrypted: each alone is enough.

    Both machines' attempts are in the database, because each one's publication may reach the chain. While it does not
    answer, rounds go on with the disk, and `share` copies their secrets later.
    """

    def __init__(self, files: SecretFiles, database: Engine, task_key: str, account_key: bytes) -> None:
        """`account_key`: the 32 bytes of the account's private key."""
        self._files, self._database, self._task_key = files, database, task_key
        kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=SEALING + task_key.encode())
        self._cipher = AESGCM(kdf.derive(account_key))
        self._unshared: dict[int, RoundSecrets] = {}
        self.shown = f"{shown(database)}, {files.shown}"

    def latest(self, round_: int) -> RoundSecrets | None:
        attempts = self._attempts(round_)
        return attempts[-1] if attempts else None

    def of(self, round_: int, commitment: bytes | None, survivors: int) -> RoundSecrets:
        attempts = self._attempts(round_)
        published = [one for one in attempts if commitment in (None, seed_commitment(one.seed))]
        if not published:
            raise DecoysLost("DecoysLost", path=self.shown)
        return next((one for one in published if one.survivors == survivors), published[-1])

    def store(self, round_: int, found: RoundSecrets) -> None:
        self._files.store(round_, found)
        self._unshared[round_] = found
        try:
            self.share()
        except Unavailable as error:
            emit("secrets-not-shared", round=round_, error=str(error))

    def share(self) -> None:
        """Copies secrets of this machine that are not in the database. Raises DatabaseUnreachable.

        It waits for no writer, and goes on after an upgrade by the other machine: the bond depends on it.
        """
        for round_, found in list(self._unshared.items()):
            with updating(self._database) as connection:
                connection.execute(
                    insert(_SEALED).values(task_key=self._task_key, round=round_, sealed=b"").on_conflict_do_nothing()
                )
                others = self._opened(round_, connection.scalar(self._row(round_).with_for_update())) or []
                kept = [one for one in others if (one.seed, one.survivors) != (found.seed, found.survivors)]
                text = json.dumps([one.to_json() for one in [*kept, found]]).encode()
                nonce = secrets.token_bytes(NONCE_BYTES)
                sealed = nonce + self._cipher.encrypt(nonce, text, self._context(round_))
                connection.execute(update(_SEALED).where(self._at(round_)).values(sealed=sealed))
            if self._unshared.get(round_) is found:
                del self._unshared[round_]

    def forget(self) -> None:
        """Deletes the task's rows, once it has ended. They stay, without harm, if the database does not answer."""
        self._unshared.clear()
        try:
            with updating(self._database) as connection:
                for table in (_SEALED, _AGGREGATORS):
                    connection.execute(delete(table).where(table.c.task_key == self._task_key))
        except Unavailable as error:
            emit("rows-left", error=str(error))

    def _context(self, round_: int) -> bytes:
        return f"{self._task_key}/{round_}".encode()

    def _attempts(self, round_: int) -> list[RoundSecrets]:
        """Those in the database, and this machine's own, which are the latest if they are not there.

        Raises DecoysLost if neither can be read, and one exists.
        """
        try:
            with reading(self._database) as connection:
                sealed = connection.scalar(self._row(round_))
        except Unavailable as error:
            emit("secrets-not-shared", round=round_, error=str(error))
            sealed = None
        attempts = self._opened(round_, sealed)
        try:
            own = self._files.latest(round_)
        except DecoysLost:  # damaged
            if attempts is None:
                raise
            own = None
        if attempts is None and sealed is not None and own is None:
            raise DecoysLost("DecoysLost", path=shown(self._database))
        known = {(one.seed, one.survivors) for one in attempts or []}
        if own is None or (own.seed, own.survivors) in known:
            return attempts or []
        self._unshared.setdefault(round_, own)  # of a process that ended before it could
        return [*(attempts or []), own]

    def _at(self, round_: int) -> ColumnElement[bool]:
        return (_SEALED.c.task_key == self._task_key) & (_SEALED.c.round == round_)

    def _row(self, round_: int) -> Select[Any]:
        return select(_SEALED.c.sealed).where(self._at(round_))

    def _opened(self, round_: int, sealed: bytes | None) -> list[RoundSecrets] | None:
        """None without a row, or if it is damaged, or of another account, task or round."""
        if sealed is None:
            return None
        try:
            text = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], self._context(round_))
            return [RoundSecrets.of_json(one) for one in json.loads(text)]
        except (InvalidTag, *UNREADABLE):
            return None
