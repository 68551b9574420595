"""`hospital join` and `hospital leave`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium import log_to
from consilium.node_results import Departure, Phase
from consilium_core.connectivity import fleet_address
from consilium_core.live import sentence
from rich.console import Console
from rich.markup import escape

from consilium_cli.hospital.data_check import print_unneeded, remarks
from consilium_cli.hospital.status import print_membership, print_task, print_verdict
from consilium_cli.nodes.asking import confirmed
from consilium_cli.nodes.status import opened_client

if TYPE_CHECKING:
    from consilium.node_results import Joining
    from consilium_chain.ledger.structs import TaskState
    from consilium_client.task import JoinedTask


def join(
    folder: Path,
    number: int | None,
    invite: str | None,
    link: tuple[str | None, Path | None],
    data: Path | None,
    mapping: Path | None,
    agreed: bool,
) -> None:
    """Asks for consent only if the policy allows the task, and this hospital's data fit. `number`: None for a task of
    the invite. `link`: the SuperLink, and the certificate of its authority.
    """
    superlink, ca_certificate = link
    if (superlink is None) != (ca_certificate is None) or (superlink is not None and invite is not None):
        raise typer.BadParameter("pass both or an invite", param_hint="--superlink and --ca-certificate")
    if superlink is not None and number is None:
        raise typer.BadParameter("goes only with the number of its task", param_hint="--superlink")
    try:
        if superlink is not None:
            fleet_address(superlink)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--superlink") from None
    client, console = opened_client(folder), Console(highlight=False)
    shown: list[JoinedTask] = []
    sending = False

    def show(task: JoinedTask, state: TaskState) -> None:
        nonlocal sending
        sending = False
        shown.append(task)
        print_task(console, task, state, client.program(task), client.plugin(task))
        print_verdict(console, client.policy(), task.spec, state.operator)

    def confirm(found: Joining) -> bool:
        nonlocal sending
        console.print(f"[green]This hospital's data fit: {found.rows} rows.[/green]")
        if found.remarks:
            console.print("Remarks about them:", remarks(found.remarks, shown[-1].spec.data.things))
        print_unneeded(console, found.unneeded)
        print_membership(console, found.membership)
        if found.shut_out:
            why = escape(found.shut_out)
            console.print(f"[yellow]The SuperLink {found.superlink} does not accept this node yet: {why}.[/yellow]")
        sending = confirmed(agreed, f"\nTake part in task {found.task}, and lock the bond?")
        return sending

    try:
        with log_to(lambda event, fields: console.print(sentence(event, fields))):
            joined = client.join(
                number, superlink=superlink, ca_certificate=ca_certificate, invite=invite, data=data, mapping=mapping,
                on_task=show, confirm=confirm,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        if sending:
            console.print(_interrupted(shown[-1].number))
        raise
    console.print(f"\nNext: consilium hospital run {joined}, which takes part until the task ends")


def _interrupted(number: int) -> str:
    return (
        f"\ninterrupted: `consilium hospital status` shows if task {number} was joined. The same command continues."
        f" `consilium hospital leave {number}` withdraws the approval, `consilium hospital unstake TOKENS` the stake."
        " The staking contract uses its allowance (ERC-20) only when this account stakes, and the next join sets the"
        " allowance again."
    )


def leave(folder: Path, number: int, agreed: bool) -> None:
    """Withdraws the approval. If the task has ended, transfers its bond and rewards to the account."""

    def confirm(state: TaskState) -> bool:
        words = (
            f" It is in round {state.round}: later rounds are not paid, and the bond stays locked until the task ends."
        )
        return confirmed(agreed, f"Leave task {number}?{'' if state.phase is Phase.ENDED else words}")

    said = {
        Departure.NOT_JOINED: f"task {number} is no longer approved; this hospital had not joined it",
        Departure.BOND_LOCKED: (
            f"left; when task {number} has ended, run `consilium hospital leave {number}` to take the bond back"
        ),
        Departure.PAID: "left; the bond is released, and the vested rewards are in this hospital's account",
    }
    typer.echo(said[opened_client(folder).leave(number, confirm=confirm)])
