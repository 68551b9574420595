"""Authentication: nonces that are spent once, and short-lived sessions as signed tokens. No cookies, no table of users.

The server signs tokens with one secret, which is in a file that all its processes share. Without the file all sessions
end, and nothing else is lost. Spent nonces are in a table of the database that does not belong to the index. It may be
emptied once its rows have expired.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import BigInteger, Column, Engine, MetaData, String, Table, delete, insert
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.schema import CreateTable

from consilium_server.api.schemas import Nonce
from consilium_server.api.siwe import Accepts, SignInMessage, Site, parse_message, require_valid
from consilium_server.errors import RequestRefused, ServerError

NONCE_SECONDS = 600
SESSION_SECONDS = 3600
SECRET_BYTES = 32
TAG_BYTES = 32
_NONCE_RANDOM, _NONCE_TAG = 16, 16  # bytes

SPENT = Table(
    "spent_nonces",
    MetaData(),  # its own: neither the index's migrations nor `reindex` know this table
    Column("nonce", String(96), primary_key=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
)


@dataclass(frozen=True)
class Session:
    """`expires_at` in seconds since the epoch."""

    account: str
    expires_at: int
    role: Literal["signed-in", "admin"]


def ensure_secret(path: Path) -> bytes:
    """Reads the 32 bytes in the file. Makes the file with mode 600 if it is missing. Raises SecretExposed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(SECRET_BYTES))
    try:
        os.link(temporary, path)  # whole or not at all: two processes may start at the same time
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ServerError("SecretExposed", path=str(path), why="is readable by others")
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise ServerError("SecretExposed", path=str(path), why=f"does not hold {SECRET_BYTES} bytes")
    return secret


class Seal:
    """Authenticates data that this server issued. A purpose keeps one kind of data from being used as another."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def tag(self, purpose: str, content: bytes) -> bytes:
        """32 bytes."""
        key = hmac.digest(self._secret, purpose.encode(), "sha256")
        return hmac.digest(key, content, "sha256")

    def fits(self, purpose: str, content: bytes, tag: bytes) -> bool:
        """True if the tag is of this content and purpose."""
        return hmac.compare_digest(self.tag(purpose, content)[: len(tag)], tag)

    def sealed(self, purpose: str, content: bytes) -> str:
        """The content with its tag, as base64url text."""
        return base64.urlsafe_b64encode(self.tag(purpose, content) + content).rstrip(b"=").decode()

    def opened(self, purpose: str, text: str) -> bytes | None:
        """The content that this server sealed for this purpose; None if it did not."""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError:
            return None
        tag, content = raw[:TAG_BYTES], raw[TAG_BYTES:]
        return content if len(tag) == TAG_BYTES and self.fits(purpose, content, tag) else None


class Sessions:
    """Signs accounts in. Raises RequestRefused (SignInMalformed, SignInRefused)."""

    def __init__(
        self, seal: Seal, engine: Engine, site: Site, admins: frozenset[str], contract_accepts: Accepts | None = None
    ) -> None:
        self._seal, self._engine, self._site, self._admins = seal, engine, site, admins
        self._contract_accepts = contract_accepts
        if engine.dialect.name != "sqlite":  # a process that waits for another's nonce must see it then
            self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        self._purpose = f"session {site.chain_id} {site.origin}"
        _make_table(self._engine)

    def challenge(self, now: int) -> Nonce:
        """The nonce is lower-case hexadecimal: its expiry, 16 random bytes, and the tag of both."""
        expires_at = now + NONCE_SECONDS
        content = expires_at.to_bytes(8, "big") + secrets.token_bytes(_NONCE_RANDOM)
        nonce = (content + self._seal.tag("nonce", content)[:_NONCE_TAG]).hex()
        site = self._site
        return Nonce(
            nonce=nonce, expires_at=expires_at, domain=site.domain, uri=site.origin + "/", chain_id=site.chain_id
        )

    def sign_in(self, raw: str, signature: bytes, now: int) -> tuple[str, Session]:
        """A token and its session. The nonce is spent last, so that an invalid message spends none."""
        message = parse_message(raw)
        expires_at = self._nonce_expiry(message.nonce, now)
        require_valid(message, signature, self._site, now, self._contract_accepts)
        self._spend(message.nonce, expires_at, now)
        session = self._session(message.address, _session_end(message, now))
        content = json.dumps([session.account, session.expires_at]).encode()
        return self._seal.sealed(self._purpose, content), session

    def session_of(self, token: str, now: int) -> Session | None:
        """The session of a token; None if the token is not this server's, or has expired."""
        content = self._seal.opened(self._purpose, token)
        if content is None:
            return None
        session = self._session(*json.loads(content))
        return session if session.expires_at > now else None

    def _session(self, account: str, expires_at: int) -> Session:
        return Session(account, expires_at, "admin" if account in self._admins else "signed-in")

    def _nonce_expiry(self, nonce: str, now: int) -> int:
        raw = bytes.fromhex(nonce) if len(nonce) == 2 * (8 + _NONCE_RANDOM + _NONCE_TAG) and _is_hex(nonce) else b""
        content, tag = raw[:-_NONCE_TAG], raw[-_NONCE_TAG:]
        if not raw or not self._seal.fits("nonce", content, tag):
            why = "this server did not issue its nonce: request one with GET /v1/session/nonce"
            raise RequestRefused("SignInRefused", what="nonce", why=why)
        expires_at = int.from_bytes(content[:8], "big")
        if expires_at <= now:
            raise RequestRefused("SignInRefused", what="nonce", why="its nonce has expired: request another one")
        return expires_at

    def _spend(self, nonce: str, expires_at: int, now: int) -> None:
        try:
            with self._engine.begin() as connection:
                connection.execute(delete(SPENT).where(SPENT.c.expires_at <= now))
                connection.execute(insert(SPENT).values(nonce=nonce, expires_at=expires_at))
        except IntegrityError as error:
            why = "its nonce was used before: request another one"
            raise RequestRefused("SignInRefused", what="nonce", why=why) from error


def _session_end(message: SignInMessage, now: int) -> int:
    end = now + SESSION_SECONDS
    return end if message.expiration_time is None else min(end, int(message.expiration_time))


def _make_table(engine: Engine) -> None:
    try:
        with engine.begin() as connection:
            connection.execute(CreateTable(SPENT, if_not_exists=True))
            for index in SPENT.indexes:
                index.create(connection, checkfirst=True)
    except (IntegrityError, OperationalError, ProgrammingError):  # another process makes it at the same time
        with engine.begin() as connection:
            connection.execute(delete(SPENT).where(SPENT.c.expires_at < 0))


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)
