"""Rate limits per client: token buckets in memory, whose number is bounded."""

from __future__ import annotations

import ipaddress
import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from consilium_server.config import ApiSettings

ROUNDING = 1e-6  # of clocks and levels: who waits as long as it was told is let in
MOST_BUCKETS = 20_000  # the longest unused goes first


class Buckets:
    """Each key may do `burst` things at once and `per_second` in the long run. `clock` in seconds, never back."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float], most: int = MOST_BUCKETS) -> None:
        self._rate, self._burst, self._clock, self._most = per_second, burst, clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> int:
        """0, or after how many whole seconds to come again."""
        now = self._clock()
        level, at = self._levels.pop(key, (float(self._burst), now))
        level = min(self._burst, level + (now - at) * self._rate)
        wait = 0 if level >= 1 - ROUNDING else math.ceil((1 - level) / self._rate)
        self._levels[key] = (level - (wait == 0), now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait


@dataclass(frozen=True)
class Limits:
    """`requests`, `sign_ins` and `checks` by client address; `files` by account, and by client address."""

    requests: Buckets
    sign_ins: Buckets
    checks: Buckets
    files: Buckets
    streams: Counter[str]  # open, by client address

    @classmethod
    def of(cls, settings: ApiSettings, clock: Callable[[], float]) -> Limits:
        """Limits by these settings."""
        limits = settings.limits
        return cls(
            requests=Buckets(limits.requests_per_minute / 60, limits.requests_per_minute, clock),
            sign_ins=Buckets(limits.sign_ins_per_minute / 60, limits.sign_ins_per_minute, clock),
            checks=Buckets(limits.checks_per_minute / 60, limits.checks_per_minute, clock),
            files=Buckets(limits.files_per_hour / 3600, limits.files_per_hour, clock),
            streams=Counter(),
        )


def client_of(peer: str, forwarded: Sequence[str], proxies: Sequence[IPv4Network | IPv6Network]) -> str:
    """The key of a client's limits: its address, or the /64 of an IPv6 address, which one client owns.

    `forwarded`: values of X-Forwarded-For, believed from the right for as long as our own proxies wrote them.
    """
    chain = [one.strip() for value in forwarded for one in value.split(",")]
    client = peer
    while chain and _is_among(client, proxies):
        client = chain.pop()
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client[:64] if client != peer else peer
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def _is_among(client: str, proxies: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((mapped or address) in network for network in proxies)
