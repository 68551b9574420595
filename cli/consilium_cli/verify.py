"""`consilium verify`, `verify-audit`, `verify-report` and `verify-evaluation`: checks from public records.

The exit code is 0 or 1. Imports nothing heavy at the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.artifacts import locations_to_read
from consilium_cli.options import AddressBookOption, ArtifactsOption, RpcOption, TaskArgument

if TYPE_CHECKING:
    from consilium import Audit
    from consilium_client.voter.disclosure import Disclosure, Finding
    from consilium_verify.audit_report import SignedReport
    from consilium_verify.report import Report
    from rich.console import Console

DeploymentOption = Annotated[
    Path | None,
    typer.Option(help="file with the contracts' addresses, JSON; compares the file with the chain"),
]
ChainOption = Annotated[
    str,
    typer.Option(
        envvar="CONSILIUM_RPC_URL",
        help="URL of a chain node (http or ws), for --deployment; if the URL holds a key, set the variable instead",
    ),
]

WIDTH = 100
STYLES = {"holds": "green", "FAILS": "bold red", "not checked": "yellow"}
WORDS = {True: "holds", False: "FAILS", None: "not checked"}


# A round


def verify_command(
    task: TaskArgument,
    round_: Annotated[
        int | None,
        typer.Argument(metavar="[ROUND]", min=0, help="0 is the statistics; by default the last settled round"),
    ] = None,
    *,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    as_json: Annotated[bool, typer.Option("--json", help="print the report as JSON")] = False,
) -> None:
    """Checks a round from the chain and the artifacts alone. Lists what is proven, and what is not.

    Ends with exit code 1 if a check fails.
    """
    locations = locations_to_read(artifacts)
    report = consilium.verify(task, round_, artifacts=locations, rpc=rpc, address_book=address_book)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        _show(report)
    if not report.holds:
        raise typer.Exit(1)


def _show(report: Report) -> None:
    """Failed checks first, then the others, derived values, and the two lists."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    console.width = min(console.width, WIDTH)
    subject = report.subject
    console.print(f"Task {subject.task}, round {subject.round} of {subject.rounds}: {subject.outcome}", style="bold")
    console.print(f"chain {subject.chain_id} at {subject.node}\ncontract {subject.contract}")
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for check in report.failed_first:
        detail = Text(check.detail, overflow="fold")
        table.add_row("", Text(check.result, STYLES[check.result]), check.name, detail)
    console.print("\nChecks", style="bold")
    console.print(table)
    if report.derived:
        console.print("\nDerived values, to compare with others: SHA-256 of their bytes, little-endian", style="bold")
        for one in report.derived:
            console.print(f"  {one.what}, {one.values} × {one.type}\n  {one.sha256}")
    _list(console, "Proven", report.proven)
    _list(console, "Not proven", report.not_proven)
    if report.holds:
        console.print("\nNo check fails", style="bold green")
    else:
        console.print(f"\nFAILS: {', '.join(report.failed)}", style="bold red")


def _list(console: Console, title: str, lines: Iterable[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    console.print(f"\n{title}", style="bold")
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row("  ·", Text(line))
    console.print(grid)


# A hospital's audit log


def verify_audit_command(
    file: Annotated[Path, typer.Argument(help="file that `consilium hospital export-audit` wrote")],
    extends: Annotated[
        Path | None, typer.Option(help="an older export of the same hospital; the file must contain all of its entries")
    ] = None,
    deployment: DeploymentOption = None,
    chain_url: ChainOption = LOCAL_RPC,
) -> None:
    """Checks a hospital's audit log, and lists each kind of message and each recipient.

    Ends with exit code 1 if the log does not hold.
    """
    found = consilium.verify_audit(file, extends=extends, rpc=chain_url, address_book=deployment, on_log=_show_log)
    if found.added is not None:
        typer.echo(f"\nextends {extends}: {found.added} more entries")
    if found.transactions is None:
        typer.echo("\nnot compared with the chain: pass --deployment to do so")
    else:
        typer.echo(f"\non chain: {found.transactions} transaction(s) of this hospital, all in the log")


def _show_log(audit: Audit) -> None:
    for line in _summary(audit):
        typer.echo(line)


def _summary(audit: Audit) -> Iterator[str]:
    seal, entries, sent = audit.log.seal, audit.log.entries, audit.sent
    yield f"audit log of {seal.hospital}, signed by its key"
    yield f"chain {seal.chain_id}, contract {seal.contract}"
    times = [entry.at for entry in entries]
    span = f" from {_time(min(times))} to {_time(max(times))}" if times else ""
    yield f"{seal.count} entries{span}"
    yield f"head {seal.head}"
    yield from _table("sent", [(one.message, one.bytes) for one in sent])
    yield from _table("recipient", [(one.to, one.bytes) for one in sent])
    for one in audit.consents:
        by = "signed by" if one.is_by_key else "not signed by the key of, perhaps by the contract"
        yield f"\ntask {one.task} under policy {one.policy}: {by} {one.signer}"
    if torn := sum(one.kind == "recovered" for one in entries):
        yield f"\n{torn} line(s) were cut off by a crash: their messages were not sent"


def _table(title: str, sizes: Iterable[tuple[str, int]]) -> Iterator[str]:
    """A line for each name: the number of entries, and their bytes."""
    counts: dict[str, list[int]] = {}
    for name, size in sizes:
        counts.setdefault(name, []).append(size)
    width = max(map(len, counts), default=0)
    yield f"\n{title:{width + 2}} {'entries':>9} {'bytes':>15}"
    for name in sorted(counts):
        yield f"  {name:{width}} {len(counts[name]):>9,} {sum(counts[name]):>15,}"


def _time(at: int) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


# A report of the dashboard's audit


def verify_report_command(
    file: Annotated[Path, typer.Argument(help="report that the dashboard's audit page signed and downloaded, JSON")],
    deployment: DeploymentOption = None,
    chain_url: ChainOption = LOCAL_RPC,
) -> None:
    """Checks who signed a report of the dashboard's audit, and shows its verdicts. It does not repeat the audit.

    Ends with exit code 1 if the signature does not hold.
    """
    found = consilium.verify_report(file, rpc=chain_url, address_book=deployment)
    for line in _reported(found):
        typer.echo(line)


def _reported(found: SignedReport) -> Iterator[str]:
    from consilium_core.visible_text import shown

    report, kind = found.report, "as a contract wallet" if found.is_contract else "with its key"
    chain = report.chain
    yield f"signed by {found.account}, {kind}"
    yield f"SHA-256 {found.sha256}"
    yield f"task {report.task} on chain {chain.chain_id}, contract {chain.contract}, block {chain.block}"
    yield f"from {report.started_at} to {report.ended_at}, by {shown(report.made_by)}, at {shown(chain.node)}"
    for verdict, rounds in report.by_verdict.items():
        if rounds:
            yield f"  {verdict:15} round {', '.join(map(str, rounds))}"
    if not found.is_compared:
        yield "\nnot compared with the chain: pass --deployment to do so"
    yield "The signature says who answers for this report. To check a round yourself: consilium verify TASK ROUND"


# A voter's evaluation


def verify_evaluation_command(
    file: Annotated[Path, typer.Argument(help="file that `consilium voter disclose-evaluation` wrote")],
    *,
    data: Annotated[
        Path, typer.Option(help="the voter's rows, texts or images, in the form in which its node read them")
    ],
    mapping: Annotated[
        Path | None, typer.Option(help="file that maps the columns of the data to the schema's, TOML")
    ] = None,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    drawn_only: Annotated[
        bool, typer.Option("--drawn-only", help="evaluate only the drawn batches, and do not compute the scores")
    ] = False,
) -> None:
    """Checks, with a voter's rows, that the voter evaluated them for its ballot.

    Ends with exit code 1 if a check fails.
    """
    found = consilium.verify_evaluation(
        file, data=data, mapping=mapping, artifacts=locations_to_read(artifacts), rpc=rpc, address_book=address_book,
        drawn_only=drawn_only, on_start=_show_disclosure, on_finding=_show_finding,
    )  # fmt: skip
    if not found.holds:
        raise typer.Exit(1)


def _show_disclosure(disclosure: Disclosure) -> None:
    typer.echo(f"task {disclosure.task}, round {disclosure.round}, voter {disclosure.voter}")


def _show_finding(finding: Finding) -> None:
    word = WORDS[finding.holds]
    styled = typer.style(f"{word:11}", fg=STYLES[word].removeprefix("bold "))
    typer.echo(f"  {styled}  {finding.name:12}  {finding.detail}")
