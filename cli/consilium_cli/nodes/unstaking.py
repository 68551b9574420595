"""Stake that goes home: out of a node's pool at once, into its account once the unbonding period has passed."""

from __future__ import annotations

import datetime
import sys

import typer
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role, Unbonding
from consilium_chain.tasks.task_spec import TOKEN
from consilium_client.errors import NotConfirmed
from consilium_core.units import tokens


def unstake(ledger: Ledger, role: Role, whole_tokens: int | None, agreed: bool) -> None:
    """Takes home what has matured, then starts to unbond, and says what is still on its way. Raises NotConfirmed."""
    matured, _ = _mine(ledger, role)
    if matured:
        before = ledger.token.balance(ledger.address)
        ledger.staking.withdraw([one.request for one in matured])
        typer.echo(f"{tokens(ledger.token.balance(ledger.address) - before)} tokens of stake came home")
    if whole_tokens is not None:
        _start(ledger, role, whole_tokens * TOKEN, agreed)
    _, waiting = _mine(ledger, role)
    for one in waiting:
        typer.echo(f"{tokens(one.amount)} tokens come home from {_said(one.matures_at)} on: run `unstake` again then")
    if not matured and not waiting and whole_tokens is None:
        typer.echo("no stake is on its way home: `unstake TOKENS` sends some")


def _mine(ledger: Ledger, role: Role) -> tuple[list[Unbonding], list[Unbonding]]:
    """What has matured of a node's own stake, and what has not."""
    now = ledger.connection.blocks.now()
    own = [one for one in ledger.staking.unbondings(ledger.address) if (one.node, one.role) == (ledger.address, role)]
    return [one for one in own if one.matures_at <= now], [one for one in own if one.matures_at > now]


def _start(ledger: Ledger, role: Role, amount: int, agreed: bool) -> None:
    stake = ledger.staking.stake_of(ledger.address, role)
    words = (
        f"{tokens(min(amount, stake.active))} of {tokens(stake.active)} staked tokens go home, and earn nothing any"
        f" more; until then a slash reaches them. {tokens(stake.locked)} are locked in tasks, and stay till these end."
    )
    if not agreed and not (sys.stdin.isatty() and typer.confirm(f"{words} Do it?")):
        raise NotConfirmed("this node's stake")
    if not ledger.staking.unstake(role, amount):
        typer.echo("nothing of its own is staked here")


def _said(time: int) -> str:
    return datetime.datetime.fromtimestamp(time).astimezone().isoformat(" ", "minutes")
