"""`consilium arena`: the ranks of an arena's trainers. Imports nothing heavy at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.units import exact_tokens, tokens

from consilium_cli.options import AddressBookOption, RpcOption, TaskArgument

if TYPE_CHECKING:
    from consilium_operators.arena import Arena, Standing

ABSENT = "–"


def arena_command(
    task: TaskArgument,
    *,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object instead of a table")] = False,
) -> None:
    """Shows an arena's trainers: their ranks and improvements by round, and their pay, as the chain has them."""
    found = consilium.arena(task, rpc=rpc, address_book=address_book)
    if as_json:
        import json

        typer.echo(json.dumps(_content(found), indent=2))
        return
    _show(found)


def _show(found: Arena) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    played = f"{len(found.settled)} of {found.rounds} rounds are settled"
    now = "it has ended" if found.phase.name == "ENDED" else f"round {found.round} is {found.phase.name.lower()}"
    console.print(f"arena of task {found.task}: {played}; {now}")
    console.print(
        f"A rank earns {found.decay:.0%} of the one before. An improvement below {found.least_improvement:g} has none."
    )
    if not found.trainers:
        console.print(f"no trainer has joined yet. Next: consilium operator watch {found.task}")
        return
    rounds = [f"round {number}" for number in found.settled]
    table = Table("trainer", *rounds, "won", "tokens", box=box.SIMPLE_HEAD)
    for one in found.trainers:
        cells = [_cell(result) for result in one.results]
        table.add_row(one.address, *cells, str(one.wins), tokens(one.earned))
    console.print(table)
    if rounds:
        console.print("Each round: rank, and the improvement of the metric that voters' median measured.")


def _cell(result: Standing | None) -> str:
    if result is None:
        return ABSENT
    return f"{result.rank or ABSENT}  {result.improvement:+.4f}"


def _content(found: Arena) -> dict[str, object]:
    """Amounts are decimal numbers of whole tokens, as texts."""
    return {
        "task": found.task,
        "decay": found.decay,
        "floor": found.least_improvement,
        "phase": found.phase.name.lower(),
        "round": found.round,
        "rounds": found.rounds,
        "trainers": [
            {
                "trainer": one.address,
                "earned": exact_tokens(one.earned),
                "won": one.wins,
                "rounds": [
                    {
                        "round": number,
                        "rank": result.rank,
                        "improvement": result.improvement,
                        "earned": exact_tokens(result.reward),
                    }
                    for number, result in zip(found.settled, one.results, strict=True)
                    if result is not None
                ],
            }
            for one in found.trainers
        ],
    }
