"""`consilium operator invite` and `finish-invite`. Imports nothing heavy at the start."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.options import AddressBookOption, KeystoreOption, PasswordFileOption, RpcOption, TaskArgument

if TYPE_CHECKING:
    from consilium.invites import InviteTerms
    from consilium_chain.invites import SignedInvite

DAY = 86_400  # seconds


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
    operator: Annotated[
        str | None,
        typer.Option(help="account that proposed the task and signs elsewhere: a contract (EIP-1271), or a wallet's"),
    ] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Signs an invite to a task that this account proposed: everything that a hospital or a voter needs to join it."""
    if operator is not None and keystore is not None:
        raise typer.BadParameter("goes without --keystore: that account signs elsewhere", param_hint="--operator")
    terms: InviteTerms = {
        "superlink": superlink, "ca_certificate": ca_certificate, "artifacts": artifacts, "chain_url": chain_url,
        "days": days, "name": name, "sponsor_url": sponsor_url, "sponsor_ca": sponsor_ca, "report_to": report_to,
        "on_doubt": lambda at, why: typer.echo(f"The SuperLink {at} does not accept hospitals now: {why}."),
    }  # fmt: skip
    if operator is not None:
        _draft(task, operator, rpc, address_book, output, terms)
        return
    own = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    _show(own.invite(task, **terms), output, link)


def _draft(task: int, operator: str, rpc: str, address_book: Path, output: Path, terms: InviteTerms) -> None:
    from consilium.invites import draft_invite

    found = draft_invite(task, operator, rpc, address_book, **terms)
    draft, typed = (output.with_name(f"{output.name}.{end}") for end in ("draft", "json"))
    draft.write_bytes(found.written)
    typed.write_text(json.dumps(found.typed, indent=1) + "\n")
    typer.echo(f"{draft} is the invite without a signature, and {typed} the statement to sign (EIP-712).")
    typer.echo(f"Next: sign the statement by {found.operator}, then")
    typer.echo(f"      consilium operator finish-invite {draft} --signature 0x… --output {output}")


def finish_invite(
    draft: Annotated[Path, typer.Argument(help="the file that `consilium operator invite --operator` wrote")],
    *,
    signature: Annotated[str, typer.Option(help="of the statement, 0x and hexadecimal digits")],
    output: Annotated[Path, typer.Option(dir_okay=False, help="file for the invite")],
    link: Annotated[bool, typer.Option("--link", help="also print it as a link of some 2,000 characters")] = False,
    rpc: RpcOption = LOCAL_RPC,
) -> None:
    """Writes an invite whose account signs elsewhere, with its signature, if the chain takes that as the account's."""
    from consilium.invites import finish_invite as finished

    _show(finished(draft, signature, rpc), output, link)


def _show(signed: SignedInvite, output: Path, link: bool) -> None:
    output.write_bytes(signed.written)
    days = round((signed.expires_at - time.time()) / DAY)
    tasks = f"{'tasks' if signed.shards else 'task'} {signed.shown_tasks}"
    typer.echo(f"invite to {tasks} in {output}, for {days} days, signed by {signed.operator}. It has no secrets.")
    if link:
        typer.echo(signed.link)
    typer.echo("Next: send it, and tell your address by another way. A hospital runs")
    own_node = " --chain-url URL" if signed.signed_by_contract else ""
    typer.echo(f"      consilium hospital init --invite {output.name}{own_node}")
    typer.echo(f"      consilium hospital join{'' if signed.shards else f' {signed.task}'}")
