"""The API asks its chain node at the chain's pace, and no more often than every five seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from chain_driver import LocalChain
from consilium_chain.errors import ChainUnreachable
from consilium_server.api import chain_watch
from consilium_server.api.chain_watch import LEAST_PAUSE, TICK, ChainWatch
from rehearsal.provider import provider
from slow_chain import SlowClock, slow_clock

SPAN = 300  # seconds


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    """Of this file alone: its blocks come by a clock of the tests."""
    with LocalChain() as found:
        yield found


def watched(clock: SlowClock, watch: ChainWatch, seconds: float) -> float:
    """Looks for so long, and returns the largest number of blocks that the watch was behind for a whole pause."""
    behind = 0

    def play() -> None:
        nonlocal behind
        while True:
            watch.look()
            latest = int(clock.chain.rpc("eth_blockNumber"), 16)
            behind = max(behind, latest - (watch.head or 0))
            clock.sleep(watch.pause)

    clock.run(seconds, play)
    return behind


@pytest.mark.parametrize(("block_seconds", "most"), [(12.0, 120), (2.0, 320)])
def test_requests_of_five_minutes(
    chain: LocalChain, monkeypatch: pytest.MonkeyPatch, block_seconds: float, most: int
) -> None:
    """A question every five seconds, and eleven blocks' times with each query for prices, take 360."""
    with provider(chain.node.url) as between, slow_clock(chain, block_seconds) as clock:
        monkeypatch.setattr(chain_watch, "time", clock)
        watch = ChainWatch(between.of("api"), chain.deployment)
        watched(clock, watch, 20 * block_seconds)  # the pace is learned
        before = Counter(between.asked["api"])
        behind = watched(clock, watch, SPAN)
        asked = between.asked["api"] - before
    looks = asked["eth_call"] - asked["eth_blobBaseFee"]  # a query for prices has one of each
    assert 0 < looks <= 1.1 * SPAN / max(block_seconds, LEAST_PAUSE), asked
    assert sum(asked.values()) <= most, asked
    assert behind <= max(1, LEAST_PAUSE / block_seconds + 1)
    assert watch.pause == (TICK if block_seconds > LEAST_PAUSE else LEAST_PAUSE)
    assert watch.terms is not None
    assert watch.terms.block_seconds == block_seconds
    assert (watch.token_symbol, watch.unbonding is not None) == ("CSL", True)


def test_a_node_that_fails_is_asked_anew(chain: LocalChain) -> None:
    with provider(chain.node.url) as between:
        watch = ChainWatch(between.of("api"), chain.deployment)
        watch.look()
        assert between.asked["api"]["eth_call"] > 1
    watch._connection = None
    with pytest.raises(ChainUnreachable):
        watch.look()
    watch.forget()
    told = watch.head, watch.terms, watch.pause, watch.token_symbol
    assert told == (None, None, LEAST_PAUSE, "CSL")  # a symbol never changes
