"""Publishes a node's profile at a server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import ProfileInvalid, ProfileRefused
from consilium_chain.keystore import open_keystore
from consilium_chain.profiles import parse_profile, sign_profile, verification_file
from consilium_core.visible_text import shown

from consilium.node import Node

TIMEOUT = 20.0  # seconds
LONGEST_REASON = 300  # characters


class Published(NamedTuple):
    """`verification_file`: URL at the profile's site, which verifies accounts by lines there; empty without a site."""

    name: str
    account: str
    verification_file: str


def publish_profile(node: Node[Any], file: str | Path, server: str) -> Published:
    """Signs the profile in a TOML file with the node's key, and sends it to a server's API (its URL).

    Raises ProfileInvalid, ProfileRefused, KeystoreError, DeploymentInvalid.
    """
    try:
        profile = parse_profile(Path(file).read_bytes())
    except OSError as error:
        raise ProfileInvalid(f"the profile {file} cannot be read: {error.strerror}") from error
    settings, book = node.settings, Deployment.read(node.settings.deployment)
    account = open_keystore(settings.keystore, settings.password_file)
    signed = sign_profile(profile, account, book.chain_id, book.staking, int(time.time()))
    try:
        answer = httpx.put(
            f"{server.rstrip('/')}/v1/profiles/{account.address}", content=signed.model_dump_json(),
            headers={"Content-Type": "application/json"}, timeout=TIMEOUT,
        )  # fmt: skip
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProfileRefused(server, f"no answer ({type(error).__name__}); check the URL") from error
    if answer.status_code != httpx.codes.OK:
        raise ProfileRefused(server, _reason(answer))
    return Published(signed.name, account.address, verification_file(signed.site))


def _reason(answer: httpx.Response) -> str:
    try:
        return shown(str(answer.json()["detail"]), LONGEST_REASON)
    except (ValueError, KeyError, TypeError):
        return f"HTTP status {answer.status_code}; check the URL"
