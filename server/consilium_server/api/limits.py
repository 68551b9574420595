"""Rate limits per client: token buckets in memory, whose number is bounded."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from consilium_server.config import ApiLimits

ROUNDING = 1e-6  # of clocks and levels: a client that waits the stated time is admitted
MOST_BUCKETS = 20_000  # the longest unused is dropped first


class Buckets:
    """Each key may make `burst` requests at once, and `per_second` in the long run. `clock`: monotonic seconds."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float], most: int = MOST_BUCKETS) -> None:
        self._rate, self._burst, self._clock, self._most = per_second, burst, clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Takes a token. Returns 0, or the whole seconds to wait until there is one."""
        now = self._clock()
        level, at = self._levels.pop(key, (float(self._burst), now))
        level = min(self._burst, level + (now - at) * self._rate)
        wait = 0 if level >= 1 - ROUNDING else math.ceil((1 - level) / self._rate)
        self._levels[key] = (level - (wait == 0), now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait


class Limits:
    """`requests`, `sign_ins` and `checks` by client address; `files` by account, and by client address.

    `streams`: number of open streams, by client address.
    """

    def __init__(self, limits: ApiLimits, clock: Callable[[], float]) -> None:
        def buckets(most: int, seconds: int) -> Buckets:
            return Buckets(most / seconds, most, clock)

        self.requests = buckets(limits.requests_per_minute, 60)
        self.sign_ins = buckets(limits.sign_ins_per_minute, 60)
        self.checks = buckets(limits.checks_per_minute, 60)
        self.files = buckets(limits.files_per_hour, 3600)
        self.streams: Counter[str] = Counter()


def client_of(peer: str, forwarded: Sequence[str], proxies: Sequence[IPv4Network | IPv6Network]) -> str:
    """The key of a client's limits: its address, or the /64 of an IPv6 address, which one client owns.

    `forwarded`: values of X-Forwarded-For, trusted from the right as far as our own proxies wrote them.
    """
    chain = [one.strip() for value in forwarded for one in value.split(",")]
    client, address = peer, _address(peer)
    while chain and address is not None and any(address in network for network in proxies):
        client = chain.pop()
        address = _address(client)
    if address is None:
        return client[:64] if client != peer else peer
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> 64 << 64, 64)))
    return str(address)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, as IPv4 if it is one that is mapped to IPv6; None for other text."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
