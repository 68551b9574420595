"""Vouchers on a real chain: a server's redemption that buyers disturb."""

from __future__ import annotations

from pathlib import Path

from chain_driver import LocalChain, refused
from consilium_chain.ledger.channels import Voucher
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.money_spec import TOKEN
from ensemble_driver import minted

DAY = 24 * 3_600


def test_no_buyer_keeps_a_server_from_the_others_money(local_chain: LocalChain, tmp_path: Path) -> None:
    """One redeems its own voucher just before the server does, another has just taken its deposit home."""
    task, server = minted(local_chain, tmp_path, 20, 10_000).task, local_chain.funded()
    buyers = [local_chain.funded(10 * TOKEN) for _ in range(3)]
    honest, spender, leaver = buyers

    def voucher(buyer: Ledger) -> Voucher:
        return buyer.channels.voucher(task, server.address, 4 * TOKEN, server.connection.blocks.now() + 30 * DAY)

    for buyer in buyers:
        buyer.channels.deposit(task, server.address, 5 * TOKEN)
    vouchers = [voucher(buyer) for buyer in (spender, leaver, honest)]
    leaver.channels.close(task, server.address)
    local_chain.pass_time(DAY)
    leaver.channels.withdraw(task, server.address)
    assert spender.channels.redeem(vouchers[:1]) == (4 * TOKEN, 4 * TOKEN // 5)
    with refused("VoucherSpent", buyer=spender.address):
        server.channels.redeem(vouchers[:2])
    assert server.channels.redeem(vouchers) == (4 * TOKEN, 4 * TOKEN // 5)
    assert [server.channels.of(task, server.address, one.address).redeemed for one in buyers] == [
        4 * TOKEN, 4 * TOKEN, 0,
    ]  # fmt: skip
    with refused("DepositTooSmall", buyer=leaver.address, amount=4 * TOKEN):
        server.channels.redeem(vouchers[1:2])
    assert local_chain.unaccounted() == 0
