"""Approves and joins a task, and leaves it."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_client.data.kinds import read_examples
from consilium_client.errors import ConsentError, OwnersRefusal
from consilium_client.home import Approval, HospitalHome, running_alone
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.models import model_of
from consilium_core.connectivity import host_and_port, why_shut_out
from consilium_core.live import sentence
from consilium_core.logs import log_to
from cryptography import x509
from rich.console import Console
from rich.markup import escape

from consilium_cli.hospital.status import Visit, kept_rows, print_membership, print_task, print_verdict


@dataclass(frozen=True)
class Place:
    """Facts that the chain does not have: the address of a task's aggregator, and this hospital's data for it."""

    superlink: str
    ca_certificate: Path
    data: Path | None
    mapping: Path | None


def join(folder: Path, number: int, place: Place, agreed: bool) -> None:
    """Asks only if the policy allows the task and this hospital's data fit it."""
    try:
        link = host_and_port(place.superlink)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--superlink") from None
    visit = Visit.of(folder)
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
        console.print(f"[yellow]The SuperLink {escape(place.superlink)} lets no node in yet: {escape(why)}.[/yellow]")
    if not agreed and not (sys.stdin.isatty() and typer.confirm("\nTake part in it, and lock the bond?")):
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
    except (KeyboardInterrupt, SystemExit):  # a sent transaction may come onto the chain yet, so the approval stays
        console.print(_cut_off(number))
        raise
    except Exception:
        if not had_joined:  # an approval is of a joined task; a hospital that is in it already goes on
            visit.home.withdraw(number)
        raise
    console.print(f"\nNext: consilium hospital run {number}, which takes part until the task ends")


def _cut_off(number: int) -> str:
    return (
        f"\ninterrupted: `consilium hospital status` shows if task {number} was joined. The same command goes on from"
        f" here. `consilium hospital leave {number}` withdraws the approval, `consilium hospital unstake TOKENS` the"
        " stake. The staking contract takes tokens of its allowance (ERC-20) only when this account stakes, and the"
        " next join sets the allowance anew."
    )


def _certificate(path: Path) -> bytes:
    """Raises CertificateInvalid."""
    try:
        raw = path.read_bytes()
        x509.load_pem_x509_certificates(raw)
    except (OSError, ValueError) as error:
        raise ConsentError("CertificateInvalid", path=path) from error
    return raw


def on_record(folder: Path) -> Ledger:
    """A contract client of this hospital's account, with every transaction in its audit log."""
    settings = HospitalHome.open(folder).settings
    ledger = settings.connect()
    ledger.connection.transactions.witness = AuditLog(settings.home / AUDIT_FILE)
    return ledger


def leave(folder: Path, number: int, agreed: bool) -> None:
    """Withdraws the approval. The bond and the rewards of an ended task come into the account, another's at its end."""
    visit = Visit.of(folder)
    state, own = visit.ledger.tasks.state(number), visit.own(number)
    if own is None:
        visit.home.withdraw(number)
        typer.echo(f"task {number} is no longer approved; this hospital had not joined it")
        return
    ended = state.phase is Phase.ENDED
    approved = number in visit.home.approved_tasks()
    if not ended and not approved:
        raise OwnersRefusal("NotApproved", task=number)
    words = "" if ended else f" It is in round {state.round}: no further one is paid, and the bond waits for its end."
    if not agreed and not (sys.stdin.isatty() and typer.confirm(f"Leave task {number}?{words}")):
        raise ConsentError("NotConfirmed", about=f"task {number}")
    with running_alone(visit.home.runtime(number), number):
        if approved:
            visit.home.leave(number)
        if not ended:
            typer.echo(f"left; once task {number} has ended, `consilium hospital leave {number}` brings the bond back")
            return
        ledger = on_record(folder)
        ledger.staking.release_bond(number, ledger.address)
        ledger.staking.claim(Role.HOSPITAL)
        visit.home.forget(number)
        typer.echo("left; bond released, and what has vested of the rewards is in this hospital's account")
