"""`consilium hospital export-audit`, `consilium verify-audit`: what left a hospital, for who answers for its data."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilium_cli.hospital.commands import HOME, HomeOption

if TYPE_CHECKING:
    from consilium_chain.rpc.event_logs import Event
    from consilium_chain.rpc.outgoing import Sent
    from consilium_client.hospital.audit_log import Entry, Export


def export_audit_command(
    output: Annotated[Path, typer.Option(help="where to write the export")],
    home: HomeOption = HOME,
) -> None:
    """Writes what left this hospital's node to a file, signed by its key, for `consilium verify-audit`."""
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.keystore import open_keystore, write_private_file
    from consilium_client.home import HospitalHome
    from consilium_client.hospital.audit_log import AUDIT_FILE, export, read_log

    settings = HospitalHome.open(home).settings
    deployment = Deployment.read(settings.deployment)
    account = open_keystore(settings.keystore, settings.password_file)
    exported = export(read_log(settings.home / AUDIT_FILE), account, deployment.chain_id, deployment.tasks)
    write_private_file(output, exported)
    typer.echo(f"{len(exported.splitlines()) - 1} entries, signed by {account.address}, in {output}")


def verify_audit_command(
    file: Annotated[Path, typer.Argument(help="what `consilium hospital export-audit` wrote")],
    extends: Annotated[
        Path | None, typer.Option(help="an older export of this hospital's, all of which must be in the file")
    ] = None,
    deployment: Annotated[
        Path | None,
        typer.Option(
            help="the contracts' addresses, JSON: also looks whether all that this hospital did on chain is in the file"
        ),
    ] = None,
    chain_url: Annotated[
        str,
        typer.Option(
            envvar="CONSILIUM_RPC_URL",
            help="HTTP endpoint of a chain node, for --deployment; one with a key belongs into the variable",
        ),
    ] = "http://127.0.0.1:8545",
) -> None:
    """Checks a hospital's audit log, and says what left it, and for whom. Ends with 1 where the file does not hold."""
    from consilium_client.hospital.audit_log import parse_export, require_extends

    checked = parse_export(_read(file))
    for line in summary(checked):
        typer.echo(line)
    if extends is not None:
        older = parse_export(_read(extends))
        require_extends(checked, older)
        typer.echo(f"\ngoes on from {extends}: {len(checked.entries) - len(older.entries)} more entries")
    if deployment is None:
        typer.echo("\nnot compared with the chain: pass --deployment")
    else:
        typer.echo(f"\non chain: {_compare(checked, deployment, chain_url)} of this hospital's, all in the log")


def _read(file: Path) -> bytes:
    from consilium_client.errors import AuditUnreadable

    try:
        return file.read_bytes()
    except OSError as error:
        raise AuditUnreadable(file, error.strerror or type(error).__name__) from error


def summary(checked: Export) -> Iterator[str]:
    seal, entries = checked.seal, checked.entries
    yield f"audit log of {seal.hospital}, signed by its key"
    yield f"chain {seal.chain_id}, contract {seal.contract}"
    times = [entry.at for entry in entries]
    span = f" from {_time(min(times))} to {_time(max(times))}" if times else ""
    yield f"{seal.count} entries{span}"
    yield f"head {seal.head}"
    left = [entry for entry in entries if entry.kind != "recovered"]
    yield from _table("what left", [(_what(entry), entry.bytes) for entry in left])
    yield from _table("for whom", [(entry.to, entry.bytes) for entry in left])
    if torn := len(entries) - len(left):
        yield f"\n{torn} line(s) that a crash cut off: nothing of what they were of had left"


def _what(entry: Entry) -> str:
    match entry.kind:
        case "reply":
            return f"reply {entry.code}"
        case "recovered":
            return entry.kind
        case _:
            return f"{entry.kind} {entry.call}"


def _table(title: str, sizes: Iterable[tuple[str, int]]) -> Iterator[str]:
    """A line for each name: how many entries, and their bytes."""
    counts: dict[str, list[int]] = {}
    for name, size in sizes:
        counts.setdefault(name, []).append(size)
    width = max(map(len, counts), default=0)
    yield f"\n{title:{width + 2}} {'entries':>9} {'bytes':>15}"
    for name in sorted(counts):
        yield f"  {name:{width}} {len(counts[name]):>9,} {sum(counts[name]):>15,}"


def _time(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _compare(checked: Export, address_book: Path, chain_url: str) -> str:
    """Raises AuditIncomplete, DeploymentInvalid, ChainUnreachable."""
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.errors import DeploymentInvalid
    from consilium_chain.ledger.ledger import Ledger
    from consilium_chain.rpc.connection import Connection
    from consilium_client.errors import AuditIncomplete

    book, seal = Deployment.read(address_book), checked.seal
    if (book.chain_id, book.tasks) != (seal.chain_id, seal.contract):
        raise DeploymentInvalid(
            f"the log is of contract {seal.contract} on chain {seal.chain_id}, but {address_book} is of {book.tasks} on"
            f" chain {book.chain_id}: pass the one that fits"
        )
    ledger = Ledger(Connection(chain_url), book)
    missing, own = unrecorded(checked, ledger.logs.naming(seal.hospital), cache(ledger.connection.transactions.sent))
    if missing:
        raise AuditIncomplete(seal.hospital, missing)
    return f"{own} transaction(s)"


def unrecorded(checked: Export, events: Iterable[Event], sent: Callable[[str], Sent]) -> tuple[list[str], int]:
    """What a hospital did on chain and its log does not hold, in words, and how many transactions it had a part in.

    An own transaction must be in the log by its hash, one that a sponsor carried out by its calldata, and where another
    committed for the hospital, a signed update of that round must have left it. `events` are those that name it, `sent`
    gives the transaction of one.
    """
    hospital = checked.seal.hospital
    transactions = {entry.transaction for entry in checked.entries if entry.kind == "transaction"}
    batches = {entry.calldata for entry in checked.entries if entry.kind == "batch"}
    signed = {
        (entry.contract, entry.task, entry.round)
        for entry in checked.entries
        if entry.kind == "reply" and entry.code == "SIGNED"
    }
    missing: dict[str, str] = {}
    own = set()
    for event in events:
        transaction = sent(event.transaction)
        if transaction.sender == hospital:
            known = event.transaction in transactions
        elif transaction.to == hospital:
            known = hashlib.sha256(transaction.data).hexdigest() in batches
        elif event.name == "UpdateCommitted":
            known = (event.contract, event.values["taskId"], event.values["round"]) in signed
        else:
            continue  # what others did to it: rewards, slashes, delegations
        own.add(event.transaction)
        if not known:
            missing.setdefault(event.transaction, f"{event.name} in block {event.block}, {event.transaction}")
    return list(missing.values()), len(own)
