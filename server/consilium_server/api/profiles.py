"""Nodes' profiles, which their accounts signed. They are not facts of the chain: a server has those that it was sent.

Clients need not trust the server: each profile has its signature.
"""

from __future__ import annotations

import time
from typing import Annotated, Literal

from consilium_chain.profiles import MOST_BYTES, SignedProfile
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from consilium_server.api.context import Service
from consilium_server.api.observed import client_address
from consilium_server.api.problems import Problem, documented
from consilium_server.api.routing import Shared, limited
from consilium_server.api.schemas import Account, ApiModel, GivenAccount, Time
from consilium_server.database.engine import writing
from consilium_server.database.tables import PoolRow, ProfileRow
from consilium_server.errors import Unavailable
from consilium_server.index import store
from consilium_server.verified_names import forget_domain, names_of

MOST_ACCOUNTS = 100  # of a request: proxies take a line of 8 KiB
CLOCK_SKEW = 300  # seconds


class Profile(ApiModel):
    """Texts of a node about itself, signed by its account (EIP-712). Nobody checked them. `updated_at`: signed, too."""

    account: Account
    name: str
    institution: str
    country: str = Field(description="ISO 3166-1 alpha-2, or empty")
    site: str = Field(description="https URL, or empty")
    contact: str = Field(description="e-mail address, or empty")
    updated_at: Time
    signature: str


class VerifiedName(ApiModel):
    """A name that another side verifies: the host of the profile's site, by a file there, or a primary ENS name."""

    account: Account
    kind: Literal["domain", "ens"]
    name: str
    verified_at: Time


class Profiles(ApiModel):
    items: list[Profile]
    names: list[VerifiedName]


profiles = APIRouter(prefix="/v1", tags=["nodes"])
ROUTERS = (profiles,)


@profiles.get(
    "/profiles", operation_id="listProfiles",
    summary="Signed profiles and verified names of these accounts, if they have any",
    responses=documented(422, 429),
)  # fmt: skip
def list_profiles(
    service: Shared,
    response: Response,
    account: Annotated[list[GivenAccount], Query(min_length=1, max_length=MOST_ACCOUNTS)],
) -> Profiles:
    response.headers["Cache-Control"] = "no-cache"
    with Session(service.engine) as db:
        rows = db.scalars(select(ProfileRow).where(ProfileRow.account.in_(account)).order_by(ProfileRow.account)).all()
        names = [VerifiedName.model_validate(row, from_attributes=True) for row in names_of(db, account, time.time())]
    return Profiles(items=[_view(row.account, row.signed) for row in rows], names=names)


@profiles.put(
    "/profiles/{account}", operation_id="putProfile",
    summary="Stores a node's profile: signed by its account (EIP-712), and newer than the stored one",
    responses=documented(403, 409, 413, 422, 429, 503),
)  # fmt: skip
def put_profile(request: Request, service: Shared, account: GivenAccount, body: SignedProfile) -> Profile:
    limited(service.limits.files, f"profile {client_address(request.scope, service)}")
    if int(request.headers.get("content-length", 0)) > MOST_BYTES:
        raise Problem("request-too-large", f"a profile has at most {MOST_BYTES:,} bytes: send only its fields")
    book = service.deployment
    if body.updated_at > time.time() + CLOCK_SKEW:
        raise Problem("not-allowed", "its time is in the future: check the clock of your computer")
    if not body.is_by(account, book.chain_id, book.staking):
        why = f"{account} did not sign it for chain {book.chain_id} and staking contract {book.staking}"
        raise Problem("not-allowed", f"{why}: sign with the node's account")
    try:
        _store(service, account, body)
    except Unavailable as error:
        raise Problem("not-ready", "the database does not answer: try again") from error
    return _view(account, body.model_dump())


def _store(service: Service, account: str, profile: SignedProfile) -> None:
    """Replaces an earlier profile. Raises Problem, DatabaseUnreachable."""
    words = f"{profile.name}\n{profile.institution}".casefold()
    row = ProfileRow(account, profile.updated_at, words, profile.model_dump())
    engine = service.engine
    if engine.dialect.name != "sqlite":  # a writer that waits for another must see its row then
        engine = engine.execution_options(isolation_level="READ COMMITTED")
    with writing(engine) as connection:
        if connection.scalar(select(PoolRow.node).where(PoolRow.node == account).limit(1)) is None:
            raise Problem("not-allowed", f"the index has no node {account}: register it first")
        known = connection.scalar(select(ProfileRow.updated_at).where(ProfileRow.account == account))
        if known is not None and known >= profile.updated_at:
            raise Problem("profile-outdated", f"a profile of {known} is stored: sign one with a later time")
        connection.execute(delete(store.table_of(ProfileRow)).where(ProfileRow.account == account))
        store.add(connection, [row])
        forget_domain(connection, account)


def _view(account: str, signed: dict[str, object]) -> Profile:
    return Profile.model_validate({**signed, "account": account})
