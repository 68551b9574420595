"""Checks a home's connections: account, chain, clock, money, artifact store, sponsor. Sends nothing that costs gas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import address_of
from consilium_chain.ledger.structs import Role
from consilium_chain.settings import ChainUrls, chain_urls
from consilium_client.config import HomeSettings, HospitalHomeSettings
from consilium_client.home import Home
from consilium_core.artifacts.backends import show_location
from consilium_core.collector import TracingSettings
from consilium_core.units import WEI_PER_ETHER, ether, tokens
from consilium_core.visible_text import without_secrets

from consilium_operators.doctor import probes
from consilium_operators.doctor.checks import Check, run_checks
from consilium_operators.doctor.findings import Findings, Level, judge_store, ok, warning

LIMIT = 20.0  # seconds for all checks
LARGE_STAKE = 10_000 * WEI_PER_ETHER  # tokens have as many decimals


def check_connections(home: Home[Any, Any]) -> Findings:
    own: HomeSettings = home.settings
    sponsor = own.sponsor if isinstance(own, HospitalHomeSettings) else None
    checks = [
        Check("key file", lambda: ok("key file", f"account {address_of(own.keystore)}", {}), "the key file"),
        *chain_checks(own.chain_url, own.deployment),
        Check("money", partial(_money, own, home.role, sponsor is not None), "the chain node", ("key file", "chain")),
        Check("artifacts", partial(_stores, own), "the artifact store"),
    ]
    if sponsor is not None:
        checks.append(
            Check("sponsor", partial(probes.tls, "the sponsor", sponsor.url, sponsor.ca_certificate), sponsor.url)
        )
    checks += collector_checks(own.tracing)
    return run_checks(checks, LIMIT)


def chain_checks(urls: ChainUrls, book: Path) -> Iterator[Check]:
    """Each node by itself. The first is asked as long as it answers."""
    for index, url in enumerate(chain_urls(urls)):
        worst = Level.WARNING if index else Level.FAULT
        yield Check("chain", partial(probes.chain, url, book), f"the chain node {without_secrets(url)}", worst=worst)


def collector_checks(tracing: TracingSettings | None) -> Iterator[Check]:
    if tracing is not None:
        yield Check("tracing", partial(probes.collector, tracing), "the collector of spans", worst=Level.WARNING)


def _money(own: HomeSettings, role: Role, is_sponsored: bool) -> Findings:
    """Warnings name the steps that are missing before a task can be joined."""
    ledger, account = own.reader(), address_of(own.keystore)
    wei = ledger.connection.ether_of(account)
    balance, stake = ledger.token.balance(account), ledger.staking.stake_of(account, role).active
    says = f"{tokens(balance)} tokens, {tokens(stake)} staked, {ether(wei)} ether"
    if not wei and not is_sponsored:
        sponsor = ", or name a sponsor in node.toml" if role is Role.HOSPITAL else ""
        return warning("money", says, f"send {account} some ether for gas{sponsor}", {})
    if not balance and not stake:
        return warning("money", says, f"send {account} the tokens of a bond", {})
    if role is Role.VOTER and not ledger.staking.is_registered(account, role):
        return warning("money", says, "run `consilium voter register`", {})
    if stake >= LARGE_STAKE and ledger.withdrawal.of(account, role).current is None:
        way_out = f"protect it from a thief of this key: `consilium {role.name.lower()} withdrawal-address ADDRESS`"
        return warning("money", says, way_out, {})
    return ok("money", says, {})


def _stores(own: HomeSettings) -> Findings:
    """A node works as long as one back end answers. Raises MirrorUnsupported."""
    silent = ArtifactStore(own.artifacts).unreachable()
    return [
        found
        for location, why in zip(own.artifacts, silent, strict=True)
        for found in judge_store(show_location(location), why, is_needed=None not in silent)
    ]
