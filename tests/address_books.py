"""Address books of contracts that are on no chain."""

from __future__ import annotations

from consilium_chain.deploying.address_book import Deployment


def made_up_book(chain_id: int = 31_337) -> Deployment:
    token, staking, beacon, tasks, shares, sponsored = (f"0x{n:040x}" for n in range(1, 7))
    return Deployment(chain_id, 0, token, staking, beacon, tasks, shares, sponsored)
