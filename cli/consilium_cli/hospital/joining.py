"""`hospital join` and `hospital leave`."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from consilium_chain.ledger.structs import Phase, Role
from consilium_client.data.kinds import read_examples
from consilium_client.errors import ConsentError, OwnersRefusal
from consilium_client.home import Approval, running_alone
from consilium_client.models import model_of
from consilium_core.connectivity import host_and_port, why_shut_out
from consilium_core.live import sentence
from consilium_core.logs import log_to
from cryptography import x509
from rich.console import Console
from rich.markup import escape

from consilium_cli.hospital.status import HospitalVisit, kept_rows, print_membership, print_task, print_verdict
from consilium_cli.nodes.staking import connected


@dataclass(frozen=True)
class Place:
    """Facts that are not on the chain: the address of a task's aggregator, and this hospital's data for the task."""

    superlink: str
    ca_certificate: Path
    data: Path | None
    mapping: Path | None


def join(folder: Path, number: int, place: Place, agreed: bool) -> None:
    """Asks for consent only if the policy allows the task, and this hospital's data fit."""
    try:
        link = host_and_port(place.superlink)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--superlink") from None
    visit = HospitalVisit.of(folder)
    task, state = visit.task(number), visit.ledger.tasks.state(number)
    console, policy = Console(highlight=False), visit.home.policy()
    print_task(console, task, state)
    print_verdict(console, policy, task.spec, state.operator)
    policy.require(task.spec, state.operator)
    model_of(task.spec).require_installed()
    mapping = place.mapping or visit.settings.mapping
    rows = read_examples(place.data or visit.settings.data, task.spec.data, mapping).rows
    policy.require_rows(task.spec, rows)
    console.print(f"[green]This hospital's data fit: {rows} rows.[/green]")
    print_membership(console, task.spec, kept_rows(visit.settings, rows))
    authority = _certificate(place.ca_certificate)
    if why := why_shut_out(*link, place.ca_certificate):
        console.print(
            f"[yellow]The SuperLink {escape(place.superlink)} does not accept this node yet: {escape(why)}.[/yellow]"
        )
    if not agreed and not (sys.stdin.isatty() and typer.confirm("\nTake part, and lock the bond?")):
        raise ConsentError("NotConfirmed", about=f"task {number}")
    approval = Approval(
        place=visit.ledger.folder_name(number),
        spec_hash=task.params.spec_hash.hex(),
        approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
        superlink=place.superlink,
        data=place.data and place.data.absolute(),
        mapping=place.mapping and place.mapping.absolute(),
    )
    had_joined = visit.own(number) is not None
    visit.home.approve(number, approval, authority)
    from consilium_client.hospital.node import HospitalNode

    settings = visit.home.node_settings(number, visit.ledger.folder_name(number))
    try:
        with log_to(lambda event, fields: console.print(sentence(event, fields))):
            HospitalNode(settings).join()
    except (KeyboardInterrupt, SystemExit):  # a sent transaction may still reach the chain, so the approval stays
        console.print(_interrupted(number))
        raise
    except Exception:
        if not had_joined:  # only a joined task stays approved
            visit.home.withdraw(number)
        raise
    console.print(f"\nNext: consilium hospital run {number}, which takes part until the task ends")


def _interrupted(number: int) -> str:
    return (
        f"\ninterrupted: `consilium hospital status` shows if task {number} was joined. The same command continues."
        f" `consilium hospital leave {number}` withdraws the approval, `consilium hospital unstake TOKENS` the stake."
        " The staking contract uses its allowance (ERC-20) only when this account stakes, and the next join sets the"
        " allowance again."
    )


def _certificate(path: Path) -> bytes:
    """Raises CertificateInvalid."""
    try:
        raw = path.read_bytes()
        x509.load_pem_x509_certificates(raw)
    except (OSError, ValueError) as error:
        raise ConsentError("CertificateInvalid", path=path) from error
    return raw


def leave(folder: Path, number: int, agreed: bool) -> None:
    """Withdraws the approval. If the task has ended, transfers its bond and rewards to the account."""
    visit = HospitalVisit.of(folder)
    state, own = visit.ledger.tasks.state(number), visit.own(number)
    if own is None:
        visit.home.withdraw(number)
        typer.echo(f"task {number} is no longer approved; this hospital had not joined it")
        return
    ended = state.phase is Phase.ENDED
    approved = number in visit.home.approved_tasks()
    if not ended and not approved:
        raise OwnersRefusal("NotApproved", task=number)
    words = (
        ""
        if ended
        else f" It is in round {state.round}: later rounds are not paid, and the bond stays locked until the task ends."
    )
    if not agreed and not (sys.stdin.isatty() and typer.confirm(f"Leave task {number}?{words}")):
        raise ConsentError("NotConfirmed", about=f"task {number}")
    with running_alone(visit.home.runtime(number), number):
        if approved:
            visit.home.leave(number)
        if not ended:
            typer.echo(
                f"left; when task {number} has ended, run `consilium hospital leave {number}` to take the bond back"
            )
            return
        ledger = connected(visit.home)
        ledger.staking.release_bond(number, ledger.address)
        ledger.staking.claim(Role.HOSPITAL)
        visit.home.forget(number)
        typer.echo("left; the bond is released, and the vested rewards are in this hospital's account")
