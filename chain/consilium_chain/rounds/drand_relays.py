"""Fetches drand rounds from HTTP relays. No relay is trusted: each signature is verified.

A relay is a URL with `{round}` instead of the round. This covers both versions of drand's HTTP API and any mirror
(https://docs.drand.love/developer/http-api). The answer is a JSON object with `round` and, in hexadecimal, `signature`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import httpx
from consilium_zk.drand import QUICKNET_HASH, DrandChain, RoundSignature
from consilium_zk.errors import Malformed
from pydantic import AfterValidator, AnyHttpUrl, BaseModel, Field, TypeAdapter, ValidationError

from consilium_chain.errors import RandomnessUnavailable, RelayFailed

ROUND_FIELD = "{round}"
RELAY_TIMEOUT = 5.0  # seconds for the whole exchange, so that a relay cannot drip bytes
LARGEST_ANSWER = 4096  # bytes; a round with its previous signature takes some 500

# The League of Entropy's public relays, of several operators: no single one can withhold a round.
QUICKNET_RELAYS = (
    f"https://api.drand.sh/v2/beacons/quicknet/rounds/{ROUND_FIELD}",
    f"https://drand.cloudflare.com/{QUICKNET_HASH}/public/{ROUND_FIELD}",
    f"https://api.drand.secureweb3.com:6875/{QUICKNET_HASH}/public/{ROUND_FIELD}",
    f"https://api2.drand.sh/v2/beacons/quicknet/rounds/{ROUND_FIELD}",
    f"https://api3.drand.sh/v2/beacons/quicknet/rounds/{ROUND_FIELD}",
)


def _has_round(url: str) -> str:
    if ROUND_FIELD not in url:
        raise ValueError(f"the URL of a relay must have {ROUND_FIELD} instead of the round")
    TypeAdapter(AnyHttpUrl).validate_python(url.replace(ROUND_FIELD, "1"))
    return url


RelayUrl = Annotated[str, AfterValidator(_has_round)]


class _Answer(BaseModel):
    """The used fields of a relay's answer."""

    round: Annotated[int, Field(strict=True)]
    signature: Annotated[str, Field(pattern="^[0-9a-fA-F]{96}$")]


def fetch_signature(
    relays: Sequence[str], chain: DrandChain, round: int, timeout: float = RELAY_TIMEOUT
) -> RoundSignature:
    """The round's signature from the first relay that gives it; each relay has `timeout` seconds.

    Raises RandomnessUnavailable with every relay's failure.
    """
    return asyncio.run(_fetch_in_order(relays, chain, round, timeout))


async def _fetch_in_order(relays: Sequence[str], chain: DrandChain, round: int, timeout: float) -> RoundSignature:
    failures: list[RelayFailed] = []
    # httpx's timeouts are for each read, and a relay that drips bytes would never exceed one.
    async with httpx.AsyncClient(timeout=None, headers={"Accept-Encoding": "identity"}) as client:
        for relay in relays:
            url = relay.replace(ROUND_FIELD, str(round))
            try:
                return _parse(await _download(client, url, timeout), url, chain, round)
            except RelayFailed as failure:
                failures.append(failure)
    raise RandomnessUnavailable(round, failures)


async def _download(client: httpx.AsyncClient, url: str, timeout: float) -> bytes:
    """The answer's bytes without decompression: a few compressed bytes can become gigabytes.

    Raises RelayFailed (RelayUnreachable, RelayAnswerMalformed).
    """
    raw = b""
    try:
        async with asyncio.timeout(timeout), client.stream("GET", url) as response:
            response.raise_for_status()
            async for chunk in response.aiter_raw():
                raw += chunk
                if len(raw) > LARGEST_ANSWER:
                    raise RelayFailed(
                        "RelayAnswerMalformed", url=url, why=f"the answer is longer than {LARGEST_ANSWER} bytes"
                    )
    except httpx.HTTPStatusError as error:
        raise RelayFailed("RelayUnreachable", url=url, why=f"status {error.response.status_code}") from error
    except TimeoutError as error:
        raise RelayFailed("RelayUnreachable", url=url, why=f"no answer within {timeout:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RelayFailed("RelayUnreachable", url=url, why=type(error).__name__) from error
    return raw


def _parse(raw: bytes, url: str, chain: DrandChain, round: int) -> RoundSignature:
    """Raises RelayFailed (RelayAnswerMalformed, RelayRoundWrong, RelaySignatureInvalid)."""
    try:
        answer = _Answer.model_validate_json(raw)
    except ValidationError as error:
        raise RelayFailed("RelayAnswerMalformed", url=url, why="the answer is not a drand round") from error
    if answer.round != round:
        raise RelayFailed("RelayRoundWrong", url=url, found=answer.round)
    try:
        return chain.parse_signature(round, bytes.fromhex(answer.signature))
    except Malformed as error:
        raise RelayFailed("RelaySignatureInvalid", url=url) from error
