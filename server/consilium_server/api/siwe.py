"""Parses and checks messages of Sign-In with Ethereum (EIP-4361), by the EIP's exact grammar. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from consilium_chain.wallet_signatures import signer_of
from eth_account.messages import encode_defunct
from eth_utils.address import is_checksum_address

from consilium_server.errors import RequestRefused

LONGEST_MESSAGE = 4096  # characters
CLOCK_SKEW = 60  # seconds that a wallet's clock may run ahead

# RFC 3986, appendix A, with registered names and IP literals by their characters.
_UNRESERVED, _SUB = r"A-Za-z0-9\-._~", r"!$&'()*+,;="
_PCT = r"%[0-9A-Fa-f]{2}"
_PCHAR = rf"(?:[{_UNRESERVED}{_SUB}:@]|{_PCT})"
_HOST = rf"(?:\[[0-9A-Fa-f:.]+\]|(?:[{_UNRESERVED}{_SUB}]|{_PCT})+)"
_AUTHORITY = rf"(?:(?:[{_UNRESERVED}{_SUB}:]|{_PCT})*@)?{_HOST}(?::[0-9]*)?"
_SCHEME = r"[A-Za-z][A-Za-z0-9+\-.]*"
_URI = rf"{_SCHEME}:(?://{_AUTHORITY}(?=[/?\#\n]|$))?(?:{_PCHAR}|[/?])*(?:\#(?:{_PCHAR}|[/?])*)?"
_TIME = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+\-]\d\d:\d\d)"  # RFC 3339
_STATEMENT = rf"[{_UNRESERVED}{_SUB}:/?\#\[\]@ ]*"

_MESSAGE = re.compile(
    rf"(?:(?P<scheme>{_SCHEME})://)?(?P<domain>{_AUTHORITY}) wants you to sign in with your Ethereum account:\n"
    rf"(?P<address>0x[0-9A-Fa-f]{{40}})\n"
    rf"\n"
    rf"(?:(?P<statement>{_STATEMENT})\n)?"
    rf"\n"
    rf"URI: (?P<uri>{_URI})\n"
    rf"Version: 1\n"
    rf"Chain ID: (?P<chain_id>[0-9]{{1,20}})\n"
    rf"Nonce: (?P<nonce>[A-Za-z0-9]{{8,}})\n"
    rf"Issued At: (?P<issued_at>{_TIME})"
    rf"(?:\nExpiration Time: (?P<expiration_time>{_TIME}))?"
    rf"(?:\nNot Before: (?P<not_before>{_TIME}))?"
    rf"(?:\nRequest ID: (?P<request_id>{_PCHAR}*))?"
    rf"(?:\nResources:(?P<resources>(?:\n- {_URI})*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class SignInMessage:
    """A parsed message. Times in seconds since the epoch. `raw`: the signed text."""

    raw: str
    scheme: str | None
    domain: str
    address: str
    statement: str | None
    uri: str
    chain_id: int
    nonce: str
    issued_at: float
    expiration_time: float | None
    not_before: float | None
    request_id: str | None
    resources: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """The site that a message must name: the origin as the user sees it (`https://example.org`), and the chain."""

    origin: str
    chain_id: int

    @property
    def scheme(self) -> str:
        return urlsplit(self.origin).scheme

    @property
    def domain(self) -> str:
        return urlsplit(self.origin).netloc


def parse_message(raw: str) -> SignInMessage:
    """Parses a message. Raises RequestRefused (SignInMalformed)."""
    if len(raw) > LONGEST_MESSAGE:
        raise _malformed(f"it has more than {LONGEST_MESSAGE} characters")
    match = _MESSAGE.fullmatch(raw)
    if match is None:
        raise _malformed("it does not follow the grammar of EIP-4361")
    fields: dict[str, Any] = match.groupdict()
    if not is_checksum_address(fields["address"]):
        raise _malformed("its account is not in the form of EIP-55: check its capitals")
    try:
        urlsplit(fields["uri"])
    except ValueError as error:  # brackets around text that is not an IPv6 address
        raise _malformed("the host in its URI is invalid") from error
    times = {name: fields[name] and _seconds(fields[name]) for name in ("issued_at", "expiration_time", "not_before")}
    resources = tuple(line[2:] for line in (fields["resources"] or "").split("\n")[1:])
    parsed = {"raw": raw, "chain_id": int(fields["chain_id"]), "resources": resources}
    return SignInMessage(**(fields | times | parsed))


def _seconds(text: str) -> float:
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except (ValueError, OverflowError) as error:  # a 13th month; the year 0 in a zone east of Greenwich
        raise _malformed(f"{text} is not a valid time") from error


Accepts = Callable[[SignInMessage, bytes], bool]


def require_valid(
    message: SignInMessage, signature: bytes, site: Site, now: float, contract_accepts: Accepts | None = None
) -> None:
    """Checks all of a message except its nonce. `contract_accepts`: asks the account's own contract, if its key did not
    sign. Raises RequestRefused (SignInRefused).
    """
    if message.domain != site.domain or message.scheme not in (None, site.scheme):
        raise _refused("domain", f"it is for {message.domain}, but this server is {site.origin}")
    uri = urlsplit(message.uri)
    if (uri.scheme, uri.netloc) != (site.scheme, site.domain):
        raise _refused("uri", f"its URI does not belong to {site.origin}")
    if message.chain_id != site.chain_id:
        raise _refused("chain", f"it is for chain {message.chain_id}: switch the wallet to {site.chain_id}")
    if message.issued_at > now + CLOCK_SKEW:
        raise _refused("issued-at", "its time of issue is in the future: check the clock of your computer")
    if message.expiration_time is not None and message.expiration_time <= now:
        raise _refused("expired", "it has expired: sign another one")
    if message.not_before is not None and message.not_before > now:
        raise _refused("not-before", "it is not valid yet: wait, or sign another one")
    is_signed = signer_of(encode_defunct(text=message.raw), signature) == message.address
    if not is_signed and not (contract_accepts and contract_accepts(message, signature)):
        raise _refused("signature", f"{message.address} did not sign it: sign with that account")


def _malformed(why: str) -> RequestRefused:
    return RequestRefused("SignInMalformed", why=why)


def _refused(what: str, why: str) -> RequestRefused:
    return RequestRefused("SignInRefused", what=what, why=why)
