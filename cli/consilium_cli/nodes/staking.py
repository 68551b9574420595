"""Stake and rewards: `voter register`, `voter claim`, and `unstake` for both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium_core.defaults import Role
from consilium_core.units import ether, tokens

from consilium_cli.nodes.asking import ask, confirmed, elsewhere
from consilium_cli.nodes.status import opened_voter
from consilium_cli.nodes.withdrawal import local_time

if TYPE_CHECKING:
    from consilium.client import Client
    from consilium.node_results import Registration, Unstaking
    from consilium.voter import Voter


def register(folder: Path, stake: int | None, commission: float | None, agreed: bool) -> None:
    """Raises Unfunded before anything is sent, NotConfirmed."""
    voter = opened_voter(folder)
    now = voter.balance()
    typer.echo(
        f"account {voter.account}\n"
        f"holds   {tokens(now.tokens)} tokens, {ether(now.ether)} ether\n"
        f"staked  {tokens(now.staked)} tokens as a voter, commission {now.commission:g} %"
    )
    if stake is None:
        stake = 0 if now.is_voter else int(ask(None, "Whole tokens to stake in total", "--stake"))

    def confirm(steps: Registration) -> bool:
        typer.echo("\nto do   " + "\n        ".join(_to_do(steps)))
        typer.echo(f"        for at most {ether(steps.gas)} ether of gas")
        return confirmed(agreed, "\nDo this?")

    done = voter.register(stake, commission, confirm=confirm)
    then = f"Next: consilium voter run{elsewhere(Role.VOTER, voter.folder)}"
    if done is None:
        typer.echo(f"\nNothing to do. {then}")
        return
    typer.echo(
        f"\ndone for {ether(done.paid)} ether: {tokens(done.stake.active)} tokens are staked,"
        f" {tokens(done.stake.free)} of them free for bonds"
    )
    typer.echo(f"\n{then}")


def _to_do(steps: Registration) -> list[str]:
    found = []
    if steps.becomes_voter:
        found.append(f"become a voter, with a commission of {steps.commission:g} %")
    elif steps.commission != steps.present:
        later = ", after the unbonding period" * (steps.commission > steps.present)
        found.append(f"commission {steps.commission:g} %{later}")
    if steps.stakes:
        found.append(f"stake {tokens(steps.stakes)} tokens; unstaking takes the unbonding period")
    if steps.makes_key:
        found.append("register the key that draws this voter's seats, with a proof of possession")
    return found


def claim(folder: Path) -> None:
    """Pays out a voter's vested rewards, and frees its bonds of ended tasks."""
    found = opened_voter(folder).claim()
    if found.released:
        typer.echo(f"bonds of tasks {', '.join(map(str, found.released))} are free")
    later = f"; {tokens(found.unvested)} more have not vested yet" if found.unvested else ""
    typer.echo(f"{tokens(found.rewards)} tokens of rewards are in {found.payee}{later}")


def unstake(node: Client | Voter, whole_tokens: int | None, agreed: bool) -> None:
    """Withdraws matured stake, then unstakes more, and prints the stake that is unbonding. Raises NotConfirmed."""
    if withdrawn := node.withdraw():
        typer.echo(f"{tokens(withdrawn)} tokens of stake are withdrawn")

    def confirm(asked: Unstaking) -> bool:
        return confirmed(agreed, f"{_warning(asked)} Do this?")

    if whole_tokens is not None and not node.unstake(whole_tokens, confirm=confirm):
        typer.echo("this node has no stake of its own")
    waiting = node.unbondings()
    for one in waiting:
        typer.echo(f"{tokens(one.amount)} tokens mature at {local_time(one.matures_at)}: run `unstake` again then")
    if not withdrawn and not waiting and whole_tokens is None:
        typer.echo("no stake is unbonding: `unstake TOKENS` starts it")


def _warning(asked: Unstaking) -> str:
    amount, stake = tokens(asked.amount), asked.stake
    return (
        f"This unstakes {amount} of {tokens(stake.active)} staked tokens. They earn nothing from then on, but can be"
        f" slashed until they mature. {tokens(stake.locked)} are locked until their tasks end."
    )
