"""Stake and rewards: `voter register`, `voter claim`, and `unstake` for both."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import typer
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, Unbonding
from consilium_chain.tasks.task_spec import TOKEN
from consilium_client.errors import ConsentError
from consilium_client.home import HospitalHome, VoterHome
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.voter import registration
from consilium_core.units import ether, tokens
from consilium_operators.proposals import require_funds

from consilium_cli.nodes.init import ask, elsewhere

GAS = 380_000  # of approving, registering and the key, together
GAS_LIMIT = 900_000  # of the costliest of them: an account must hold the most that it may cost
PERCENT = 100  # basis points


def register(folder: Path, stake: int | None, commission: float | None, agreed: bool) -> None:
    """Raises Unfunded before anything is sent, NotConfirmed."""
    home = VoterHome.open(folder)
    ledger = home.settings.connect()
    account, staked = ledger.address, ledger.staking.stake_of(ledger.address, Role.VOTER).active
    is_voter = ledger.staking.is_registered(account, Role.VOTER)
    now = ledger.staking.commission(account, Role.VOTER)
    typer.echo(
        f"account {account}\n"
        f"holds   {tokens(ledger.token.balance(account))} tokens, {ether(ledger.connection.ether())} ether\n"
        f"staked  {tokens(staked)} tokens as a voter, commission {now / PERCENT:g} %"
    )
    if stake is None:
        stake = 0 if is_voter else int(ask(None, "Whole tokens to stake in total", "--stake"))
    more = max(stake * TOKEN - staked, 0)
    bps = now if commission is None else round(commission * PERCENT)
    to_do = _to_do(ledger, more, bps, now, is_voter)
    if not to_do:
        typer.echo(f"\nNothing to do. Next: consilium voter run{elsewhere(home)}")
        return
    require_funds(ledger, more, GAS_LIMIT)
    cost = GAS * ledger.connection.fees.highest()
    typer.echo("\nto do   " + "\n        ".join(to_do))
    typer.echo(f"        for at most {ether(cost)} ether of gas")
    if not agreed and not (sys.stdin.isatty() and typer.confirm("\nDo this?")):
        raise ConsentError("NotConfirmed", about="this voter's stake and key")
    before = ledger.connection.ether()
    registration.register(ledger, stake * TOKEN, bps)
    left = ledger.staking.stake_of(account, Role.VOTER)
    typer.echo(
        f"\ndone for {ether(before - ledger.connection.ether())} ether: {tokens(left.active)} tokens are staked,"
        f" {tokens(left.free)} of them free for bonds"
    )
    typer.echo(f"\nNext: consilium voter run{elsewhere(home)}")


def _to_do(ledger: Ledger, more: int, bps: int, now: int, is_voter: bool) -> list[str]:
    """The steps, in words. A rise of the commission takes effect after the unbonding period."""
    found = []
    if not is_voter:
        found.append(f"become a voter, with a commission of {bps / PERCENT:g} %")
    elif bps != now:
        found.append(f"commission {bps / PERCENT:g} %" + (", after the unbonding period" * (bps > now)))
    if more:
        found.append(f"stake {tokens(more)} tokens; unstaking takes the unbonding period")
    if not registration.has_key(ledger):
        found.append("register the key that draws this voter's seats, with a proof of possession")
    return found


def claim(folder: Path) -> None:
    """Takes a voter's vested rewards, and its bonds of ended tasks, into its account."""
    ledger = VoterHome.open(folder).settings.connect()
    before, released = ledger.token.balance(ledger.address), []
    for task in ledger.record.tasks_of_voter(ledger.address):
        if ledger.tasks.state(task).phase is Phase.ENDED and ledger.staking.release_bond(task, ledger.address):
            released.append(str(task))
    ledger.staking.claim(Role.VOTER)
    claimed = ledger.token.balance(ledger.address) - before
    if released:
        typer.echo(f"bonds of tasks {', '.join(released)} are free")
    unvested = ledger.staking.unvested(ledger.address, Role.VOTER)
    later = f"; {tokens(unvested)} more have not vested yet" if unvested else ""
    typer.echo(f"{tokens(claimed)} tokens of rewards are in the account{later}")


def connected(home: HospitalHome | VoterHome) -> Ledger:
    """A client with the home's account. It records a hospital's transactions in the audit log."""
    ledger: Ledger = home.settings.connect()
    if isinstance(home, HospitalHome):
        ledger.connection.transactions.witness = AuditLog(home.settings.home / AUDIT_FILE)
    return ledger


def unstake(home: HospitalHome | VoterHome, whole_tokens: int | None, agreed: bool) -> None:
    """Withdraws matured stake, then unstakes more, and prints the stake that is unbonding. Raises NotConfirmed."""
    ledger, role = connected(home), home.role
    matured, _ = _unbondings(ledger, role)
    if matured:
        before = ledger.token.balance(ledger.address)
        ledger.staking.withdraw([one.request for one in matured])
        typer.echo(f"{tokens(ledger.token.balance(ledger.address) - before)} tokens of stake are in the account")
    if whole_tokens is not None:
        _start(ledger, role, whole_tokens * TOKEN, agreed)
    _, waiting = _unbondings(ledger, role)
    for one in waiting:
        typer.echo(f"{tokens(one.amount)} tokens mature at {_local_time(one.matures_at)}: run `unstake` again then")
    if not matured and not waiting and whole_tokens is None:
        typer.echo("no stake is unbonding: `unstake TOKENS` starts it")


def _unbondings(ledger: Ledger, role: Role) -> tuple[list[Unbonding], list[Unbonding]]:
    """The matured and the immature unbondings of a node's own stake."""
    now = ledger.connection.blocks.now()
    own = [one for one in ledger.staking.unbondings(ledger.address) if (one.node, one.role) == (ledger.address, role)]
    return [one for one in own if one.matures_at <= now], [one for one in own if one.matures_at > now]


def _start(ledger: Ledger, role: Role, amount: int, agreed: bool) -> None:
    stake = ledger.staking.stake_of(ledger.address, role)
    words = (
        f"This unstakes {tokens(min(amount, stake.active))} of {tokens(stake.active)} staked tokens. They earn nothing"
        f" from then on, but can be slashed until they mature. {tokens(stake.locked)} are locked until their tasks end."
    )
    if not agreed and not (sys.stdin.isatty() and typer.confirm(f"{words} Do this?")):
        raise ConsentError("NotConfirmed", about="this node's stake")
    if not ledger.staking.unstake(role, amount):
        typer.echo("this node has no stake of its own")


def _local_time(time: int) -> str:
    return datetime.datetime.fromtimestamp(time).astimezone().isoformat(" ", "minutes")
