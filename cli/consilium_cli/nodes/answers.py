"""Tries a home's connections: chain, contracts, store, sponsor, clock. It sends nothing that costs gas."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_client.config import HomeSettings, HospitalHomeSettings, SponsoredSettings
from consilium_client.home import Home
from consilium_core.artifacts.backends import Place, show_place
from consilium_core.connectivity import why_unreachable
from consilium_core.errors import CoreError, MirrorUnsupported
from consilium_core.units import ether, tokens
from rich.console import Console
from rich.table import Table
from rich.text import Text

PATIENCE = 5.0  # seconds for a connection
SKEW = 120  # seconds between this machine's clock and the chain's that are no fault


class Result(StrEnum):
    OK = "ok"
    TO_DO = "to do"  # before a task is joined
    NO = "no"  # the node could not do its work


COLOURS = {Result.OK: "green", Result.TO_DO: "yellow", Result.NO: "bold red"}


@dataclass(frozen=True)
class Answer:
    what: str
    result: Result
    words: str


def try_connections(home: Home[Any, Any]) -> list[Answer]:
    settings: HomeSettings = home.settings
    found = [_tried("key file", lambda: f"account {address_of(settings.keystore)}")]
    try:
        ledger = settings.reader()
    except CoreError as error:
        return [*found, Answer("chain", Result.NO, str(error)), *_store_and_sponsor(settings)]
    found.append(
        _tried("chain", lambda: f"{ledger.tasks.count()} tasks on chain {ledger.connection.chain_id} at"
               f" {ledger.connection.shown_url}")
    )  # fmt: skip
    found.append(_tried("clock", lambda: _clock(ledger)))
    if found[0].result is Result.OK:
        found.append(_tried("money", lambda: _money(ledger, settings, home.role)))
    return found + _store_and_sponsor(settings)


def show_answers(answers: Sequence[Answer]) -> None:
    table = Table.grid(padding=(0, 2))
    for answer in answers:
        table.add_row(Text(answer.result, COLOURS[answer.result]), answer.what, Text(answer.words, overflow="fold"))
    Console(highlight=False).print(table)


class _Unanswered(Exception):
    """A connection failed; the message says why."""


class _ToDo(Exception):
    """A step is missing before a task can be joined; the message names it."""


def _tried(what: str, question: Callable[[], str]) -> Answer:
    try:
        return Answer(what, Result.OK, question())
    except _ToDo as missing:
        return Answer(what, Result.TO_DO, str(missing))
    except (CoreError, _Unanswered) as error:
        return Answer(what, Result.NO, str(error))


def _clock(ledger: Ledger) -> str:
    skew = round(time.time()) - ledger.connection.blocks.now()
    if abs(skew) > SKEW:
        raise _ToDo(
            f"this machine's clock is {abs(skew)} s {'ahead of' if skew > 0 else 'behind'} the chain's latest block:"
            " set it (NTP), or wait until the chain node is up to date; deadlines go by the chain's"
        )
    return f"{abs(skew)} s from the chain's latest block"


def _money(ledger: Ledger, settings: HomeSettings, role: Role) -> str:
    account = address_of(settings.keystore)
    wei = ledger.connection.ether_of(account)
    balance, stake = ledger.token.balance(account), ledger.staking.stake_of(account, role).active
    held = f"{tokens(balance)} tokens, {tokens(stake)} staked, {ether(wei)} ether"
    if not wei and _sponsor_of(settings) is None:
        sponsor = ", or name a sponsor in node.toml" if role is Role.HOSPITAL else ""
        raise _ToDo(f"{held}: send {account} some ether for gas{sponsor}")
    if not balance and not stake:
        raise _ToDo(f"{held}: send {account} the tokens of a bond")
    if role is Role.VOTER and not ledger.staking.is_registered(account, role):
        raise _ToDo(f"{held}: run `consilium voter register`")
    return held


def _sponsor_of(settings: HomeSettings) -> SponsoredSettings | None:
    return settings.sponsor if isinstance(settings, HospitalHomeSettings) else None


def _store_and_sponsor(settings: HomeSettings) -> list[Answer]:
    found = _stores(settings)
    if (sponsor := _sponsor_of(settings)) is not None:
        found.append(_tried("sponsor", lambda: _sponsor(sponsor)))
    return found


def _stores(settings: HomeSettings) -> list[Answer]:
    """A mirror that does not answer keeps no node from its work as long as another place does."""
    what = "artifact store"
    try:
        silent = ArtifactStore(settings.artifacts).unreachable()
    except MirrorUnsupported as error:
        return [Answer(what, Result.NO, str(error))]
    failed = Result.TO_DO if None in silent else Result.NO
    found = []
    for place, why in zip(settings.artifacts, silent, strict=True):
        shown = show_place(place)
        if why is not None:
            found.append(Answer(what, failed, f"{shown}: {why}; name another in node.toml"))
        else:
            found.append(_tried(what, partial(_words_of, place)))
    return found


def _words_of(place: Place) -> str:
    if not isinstance(place, Path):
        return f"{show_place(place)} answers"
    try:
        return f"{sum(1 for _ in place.iterdir())} artifacts in {place}"
    except OSError as error:
        raise _Unanswered(f"{place}: {error.strerror}; name another in node.toml") from error


def _sponsor(sponsor: SponsoredSettings) -> str:
    parts = urlsplit(sponsor.url)
    host, port = parts.hostname or "", parts.port or 443
    if why := why_unreachable(host, port, sponsor.ca_certificate):
        raise _Unanswered(f"{host}:{port}: {why}")
    return f"{host}:{port} answers, and its certificate holds"
