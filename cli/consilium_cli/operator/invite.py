"""`consilium operator invite`. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import AddressBookOption, KeystoreOption, PasswordFileOption, RpcOption, TaskArgument


def invite(
    task: TaskArgument,
    *,
    output: Annotated[Path, typer.Option(dir_okay=False, help="file for the invite")],
    superlink: Annotated[
        list[str],
        typer.Option(
            help="the SuperLink as hospitals reach it: host:port, with /9100 behind a proxy; again for each shard after"
            " TASK, in order, to invite to all"
        ),
    ],
    ca_certificate: Annotated[Path, typer.Option(help="certificate of the authority that signed the SuperLink's, PEM")],
    artifacts: Annotated[
        list[str], typer.Option(help="public URL of an artifact store; may be repeated, by digest it must")
    ],
    chain_url: Annotated[
        str | None, typer.Option(help="public URL of a chain node, for hospitals; by default --rpc")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=90, help="days until it expires")] = 14,
    name: Annotated[str, typer.Option(help="the operator's name, to show")] = "",
    sponsor_url: Annotated[str, typer.Option(help="https://host:port of the sponsor that pays hospitals' gas")] = "",
    sponsor_ca: Annotated[
        Path | None, typer.Option(help="certificate of the authority that signed the sponsor's, PEM")
    ] = None,
    report_to: Annotated[str, typer.Option(help="https address of the operator's API, for reports")] = "",
    link: Annotated[bool, typer.Option("--link", help="also print it as a link of some 2,000 characters")] = False,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Signs an invite to a task that this account proposed: everything that a hospital or a voter needs to join it."""
    operator = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    signed = operator.invite(
        task, superlink=superlink, ca_certificate=ca_certificate, artifacts=artifacts, chain_url=chain_url, days=days,
        name=name, sponsor_url=sponsor_url, sponsor_ca=sponsor_ca, report_to=report_to,
        on_doubt=lambda link, why: typer.echo(f"The SuperLink {link} does not accept hospitals now: {why}."),
    )  # fmt: skip
    output.write_bytes(signed.written)
    tasks = f"{'tasks' if signed.shards else 'task'} {signed.shown_tasks}"
    typer.echo(f"invite to {tasks} in {output}, for {days} days, signed by {signed.operator}. It has no secrets.")
    if link:
        typer.echo(signed.link)
    typer.echo("Next: send it, and tell your address by another way. A hospital runs")
    typer.echo(f"      consilium hospital init --invite {output.name}")
    typer.echo(f"      consilium hospital join{'' if signed.shards else f' {task}'}")
