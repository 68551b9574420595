"""The account that gets a node's own stake and rewards: `withdrawal-address`."""

from __future__ import annotations

import datetime
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium.withdrawal import set_withdrawal_address, withdrawal_address

from consilium_cli.nodes.asking import confirmed

if TYPE_CHECKING:
    from consilium.client import Client
    from consilium.voter import Voter
    from consilium.withdrawal import Change, WithdrawalAddress


@dataclass(frozen=True)
class WithKey:
    """The key file of the present withdrawal address; without, the node's key signs."""

    keystore: Path | None
    password_file: Path | None


def change_or_show(node: Client | Voter, address: str | None, cancel: bool, key: WithKey, agreed: bool) -> None:
    """Raises BadParameter, and as `set_withdrawal_address` does."""
    if cancel and address is not None:
        raise typer.BadParameter("goes without an address", param_hint="--cancel")
    found = withdrawal_address(node)
    if cancel:
        if found.current is None or found.next is None:
            raise typer.BadParameter("no change is announced", param_hint="--cancel")
        address = found.current
    if address is not None:
        found = set_withdrawal_address(
            node, address, **asdict(key), confirm=lambda change: confirmed(agreed, f"{_warning(change)} Do this?")
        )
    typer.echo(paid_to(found))


def paid_to(found: WithdrawalAddress) -> str:
    """In words: a line, and another for an announced change."""
    present = found.current or "this node's account: no withdrawal address is set"
    if found.next is None:
        return f"stake and rewards are paid to {present}"
    return f"stake and rewards are paid to {present}\nfrom {local_time(found.next_at)} on, to {found.next}"


def _warning(change: Change) -> str:
    to, present = change.address, change.present
    if present.current is None:
        return (
            f"From now on this node's own stake and rewards are paid to {to}. Then only that account can change this,"
            " so losing its key loses the money."
        )
    if to == present.current:
        return f"This takes back the change to {present.next}."
    days = datetime.timedelta(seconds=change.delay)
    return f"In {days}, this node's own stake and rewards will be paid to {to} instead of {present.current}."


def local_time(time: int) -> str:
    return datetime.datetime.fromtimestamp(time).astimezone().isoformat(" ", "minutes")
