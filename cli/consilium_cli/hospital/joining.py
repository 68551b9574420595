"""Saying yes to a task, and taking it back."""

from __future__ import annotations

import datetime
import sys
from dataclasses import dataclass
from pathlib import Path

import typer
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_client.data.examples import read_examples
from consilium_client.errors import CertificateInvalid, NotApproved, NotConfirmed
from consilium_client.home import Approval, HospitalHome, running_alone
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.models import model_of
from consilium_core.connectivity import host_and_port, why_shut_out
from consilium_core.live import sentence
from consilium_core.logs import told_to
from cryptography import x509
from rich.console import Console
from rich.markup import escape

from consilium_cli.hospital.status import Visit, kept_rows, print_membership, print_task, print_verdict


@dataclass(frozen=True)
class Place:
    """What the chain does not say: where a task's aggregator is reached, and which of this hospital's tables fits."""

    superlink: str
    ca_certificate: Path
    data: Path | None
    mapping: Path | None


def join(folder: Path, number: int, place: Place, agreed: bool) -> None:
    """What is not allowed, or does not fit this hospital's data, never gets as far as a question."""
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
        raise NotConfirmed(f"task {number}")
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
        with told_to(lambda event, fields: console.print(sentence(event, fields))):
            HospitalNode(settings).join()
    except (KeyboardInterrupt, SystemExit):  # what was sent may come onto the chain yet, and the yes to it stays
        console.print(_cut_off(number))
        raise
    except Exception:
        if not had_joined:  # a yes is to what was joined; whoever is in the task goes on
            visit.home.withdraw(number)
        raise
    console.print(f"\nNext: consilium hospital run {number}, which takes part until the task ends")


def _cut_off(number: int) -> str:
    return (
        f"\ncut off: `consilium hospital status` says whether task {number} was joined. The same command goes on from"
        f" here; `consilium hospital leave {number}` takes the yes back, `consilium hospital unstake TOKENS` what was"
        " staked. Of tokens that the staking contract may take (an ERC-20 allowance) it takes none but by this"
        " account's own staking, and the next join sets it anew."
    )


def _certificate(path: Path) -> bytes:
    """Raises CertificateInvalid."""
    try:
        raw = path.read_bytes()
        x509.load_pem_x509_certificates(raw)
    except (OSError, ValueError) as error:
        raise CertificateInvalid(path) from error
    return raw


def on_record(folder: Path) -> Ledger:
    """This hospital's account, whose every transaction its audit log has."""
    settings = HospitalHome.open(folder).settings
    ledger = settings.connect()
    ledger.connection.transactions.witness = AuditLog(settings.home / AUDIT_FILE)
    return ledger


def leave(folder: Path, number: int, agreed: bool) -> None:
    """Takes the yes back. An ended task's bond and rewards come home; of another's the bond waits for its end."""
    visit = Visit.of(folder)
    state, own = visit.ledger.tasks.state(number), visit.own(number)
    if own is None:
        visit.home.withdraw(number)
        typer.echo(f"task {number} is no longer approved; this hospital had not joined it")
        return
    ended = state.phase is Phase.ENDED
    approved = number in visit.home.approved_tasks()
    if not ended and not approved:
        raise NotApproved(number)
    words = "" if ended else f" It is in round {state.round}: no further one is paid, and the bond waits for its end."
    if not agreed and not (sys.stdin.isatty() and typer.confirm(f"Leave task {number}?{words}")):
        raise NotConfirmed(f"task {number}")
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
