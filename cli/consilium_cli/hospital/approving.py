"""`hospital approve` and `hospital sign-approval`: a second signature on a task."""

from __future__ import annotations

from pathlib import Path

import typer
from consilium.approvals import ApprovalRequest, request_approval, take_approval
from consilium_core.visible_text import shown_lines
from rich.console import Console

from consilium_cli.asking import agrees
from consilium_cli.hospital.status import print_spec
from consilium_cli.nodes.status import opened_client


def approve(folder: Path, task: int, output: Path | None, signed: Path | None) -> None:
    """Raises as `request_approval` and `take_approval` do."""
    client = opened_client(folder)
    if signed is not None:
        found = take_approval(client, task, signed)
        typer.echo(f"task {task} is approved by {found.signer}, under the policy {found.statement.policy}")
        typer.echo(f"Next: consilium hospital join {task}")
        return
    if output is None:
        raise typer.BadParameter("pass one of them", param_hint="--output and --signed")
    statement = request_approval(client, task, output)
    typer.echo(f"{output} has the task file, the policy {statement.policy}, and the statement on both")
    typer.echo(f"Next: consilium hospital sign-approval {output.name} --output signed.json, where the signer's key is")
    typer.echo(f"      consilium hospital approve {task} --signed signed.json, here")


def sign(
    folder: Path, output: Path, key: tuple[Path | None, Path | None], made: tuple[str | None, str | None], agreed: bool
) -> None:
    """`key`: key file and password file. `made`: signer and signature of another program."""
    request = ApprovalRequest.read(folder)
    console, of = Console(highlight=False, emoji=False), request.statement
    console.print(
        f"[bold]The task[/bold], {of.task} of {of.contract} on chain {of.chain_id}, file keccak256 {of.spec}:"
    )
    print_spec(console, request.spec)
    console.print(f"\n[bold]The policy[/bold], SHA-256 {of.policy}:")
    console.print(shown_lines(request.policy), markup=False)
    console.print(f"\nThe hospital's account is {of.hospital}; prepared on {of.date}.")
    keystore, password_file = key
    signer, signature = made
    if signer is not None and signature is not None and key == (None, None):
        approval = request.signed(signer, signature)
    elif keystore is not None and password_file is not None and made == (None, None):
        if not (agreed or agrees("\nSign that this hospital may join this task under this policy?")):
            raise typer.Abort
        approval = request.sign(keystore, password_file)
    else:
        raise typer.BadParameter("pass both, or --signer and --signature", param_hint="--keystore and --password-file")
    output.write_bytes(approval.written)
    typer.echo(f"{output} has the signature of {approval.signer}; send it back")
