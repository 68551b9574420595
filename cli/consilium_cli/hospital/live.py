"""What a running node tells, in words for whoever sits before the terminal."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from consilium_chain.journal import told_to
from consilium_chain.units import ether, tokens
from rich.console import Console
from rich.markup import escape

Fields = Mapping[str, Any]

# What comes next is waited for by others: the spinner says whom.
WAITING = {
    "joined": "waiting for the task to begin",
    "training": "training",
    "committed": "waiting until all have committed",
    "uploading": "waiting for the sum, its judges and the next round",
    "settled": "waiting for the next round",
    "sits-out": "sitting this round out",
}


def _committed(f: Fields) -> str:
    by = "an own transaction" if f["by"] == "own" else "the aggregator's transaction"
    return f"round {f['round']}: trained {f['train_s']} s, and committed to {f['blobs']} blob(s) by {by}"


def _settled(f: Fields) -> str:
    words = (
        f"round {f['round']} is settled ({f['reason'].lower().replace('_', ' ')}): {tokens(int(f['reward']))} tokens"
    )
    return words + (f", [red]slashed {tokens(int(f['slash']))}[/red]" if int(f["slash"]) else "")


WORDS: dict[str, Callable[[Fields], str]] = {
    "joined": lambda f: f"joined as hospital {f['index']} with {f['rows']} rows",
    "training": lambda f: f"round {f['round']}: trains",
    "committed": _committed,
    "privacy": lambda f: f"round {f['round']}: rows will have cost epsilon {f['epsilon']:.3g} of {f['of']:g}",
    "over-budget": lambda f: f"round {f['round']}: over budget, {f['would_be']:.3g} of {f['allowed']:g}",
    "uploading": lambda f: f"round {f['round']}: hands over {f['blobs']} blob(s)",
    "settled": _settled,
    "resumed": lambda f: f"round {f['round']}: back in the task",
    "sits-out": lambda f: f"round {f['round']}: sits out ({f['why']})",
    "testified": lambda f: f"round {f['round']}: a sum failed in this cohort; testified, {f['bytes']} bytes",
    "chain-unreachable": lambda f: f"[yellow]the chain node does not answer; tries again in {f['wait_s']} s[/yellow]",
    "round-failed": lambda f: f"[red]round {f['round']} failed here: {f['error']}[/red]",
    "refused": lambda f: f"[yellow]the contract refused {f['call']}: {f['error']}[/yellow]",
    "left": lambda f: f"the task has ended; this account holds {tokens(int(f['balance']))} tokens",
}
UNPAID = ("not-committed", "not-resumed", "not-testified", "not-claimed")


def sentence(event: str, fields: Fields) -> str:
    """Markup. What is not known here is shown as it is."""
    fields = {name: escape(value) if isinstance(value, str) else value for name, value in fields.items()}
    if event in UNPAID:
        wei = ether(int(fields["wei"]))
        return f"[red]{event}: {fields['call']} could not be paid for ({fields['error']}); {wei} ether are left[/red]"
    if event in WORDS:
        return WORDS[event](fields)
    return f"{event} {', '.join(f'{name} {value}' for name, value in fields.items())}".strip()


@contextlib.contextmanager
def on_terminal() -> Iterator[None]:
    """A line for each thing that happens, and below it what is waited for."""
    console = Console(highlight=False)
    with console.status("reading the task and the table") as status:

        def tell(event: str, fields: Mapping[str, object]) -> None:
            console.print(f"[dim]{datetime.datetime.now():%H:%M:%S}[/dim]  {sentence(event, fields)}")
            if event in WAITING:
                status.update(WAITING[event])

        def show(event: str, fields: Mapping[str, Any]) -> None:
            status.update(f"{event}: step {fields['step']} of {fields['of']}, loss {fields['loss']:.3f}")

        with told_to(tell, show):
            yield
