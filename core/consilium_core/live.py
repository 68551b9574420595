"""A running process's log events in words, for a terminal."""

from __future__ import annotations

import contextlib
import datetime
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from click import get_current_context
from rich.console import Console
from rich.markup import escape

from consilium_core.logs import log_to
from consilium_core.units import ether, tokens
from consilium_core.visible_text import shown_lines

Fields = Mapping[str, Any]


Words = Mapping[str, Callable[[Fields], str]]


@dataclass(frozen=True)
class Waiting:
    """The spinner's text at first and after an event, and the events' words if they are not a node's."""

    first: str
    after: Mapping[str, str] = field(default_factory=dict)
    words: Words | None = None


HOSPITAL = Waiting(
    "reading the task and the table",
    {
        "joined": "waiting for the task to begin",
        "training": "training",
        "committed": "waiting until all have committed",
        "uploading": "waiting for the sum, its scores and the next round",
        "settled": "waiting for the next round",
        "sits-out": "sitting this round out",
    },
)
# A voter has several tasks: no event tells the state of all.
VOTER = Waiting("watching the chain")


def _committed(f: Fields) -> str:
    by = "an own transaction" if f["by"] == "own" else "the aggregator's transaction"
    return f"round {f['round']}: trained {f['train_s']} s, and committed to {f['blobs']} blob(s) by {by}"


def _settled(f: Fields) -> str:
    words = (
        f"round {f['round']} is settled ({f['reason'].lower().replace('_', ' ')}): {tokens(int(f['reward']))} tokens"
    )
    return words + (f", [red]slashed {tokens(int(f['slash']))}[/red]" if int(f["slash"]) else "")


def chain_unreachable(f: Fields) -> str:
    return f"[yellow]the chain node does not answer; tries again in {f['wait_s']} s[/yellow]"


# Errors with a remedy on this machine.
WAYS_OUT = {
    "DiskFull": "no room is left on the disk that holds the home: free some",
    "DiskReadOnly": "the disk that holds the home takes no writing: mount it anew, and check it",
}
WORDS: Words = {
    "joined": lambda f: f"joined as {f['role']} {f['index']} with {f['rows']} rows",
    "in-task": lambda f: f"goes on as voter {f['index']}",
    "watching": lambda f: f"watches all tasks, {f['tasks']} so far; judges {f['judged']} of them",
    "set-aside": lambda f: f"[yellow]not joined ({f['error']}): `consilium voter tasks` says why[/yellow]",
    "task-failed": lambda f: f"[red]failed, and is tried again: {f['error']}[/red]",
    "scored": lambda f: f"round {f['round']}: judged in {f['seconds']} s, and committed to its scores",
    "revealed": lambda f: f"round {f['round']}: scores revealed",
    "stood-down": lambda f: f"round {f['round']}: drew no seat",
    "does-not-match": lambda f: f"[yellow]round {f['round']}: the publication does not match: {f['error']}[/yellow]",
    "ballot-lost": lambda f: f"[red]round {f['round']}: the committed ballot is not on this disk any more[/red]",
    "training": lambda f: f"round {f['round']}: trains",
    "committed": _committed,
    "privacy": lambda f: f"round {f['round']}: rows will have cost epsilon {f['epsilon']:.3g} of {f['of']:g}",
    "charged-late": lambda f: (
        f"[yellow]{f['place']}: {len(f['rounds'])} round(s) are on chain that were not in the privacy ledger, and are"
        " charged now[/yellow]"
    ),
    "not-charged": lambda f: (
        f"[yellow]{f['place']}: {len(f['rounds'])} round(s) are on chain that are not in the privacy ledger, and"
        f" their cost is unknown ({f['error']})[/yellow]"
    ),
    "over-budget": lambda f: f"round {f['round']}: over budget, {f['would_be']:.3g} of {f['allowed']:g}",
    "uploading": lambda f: f"round {f['round']}: hands over {f['blobs']} blob(s)",
    "settled": _settled,
    "resumed": lambda f: f"round {f['round']}: back in the task",
    "sits-out": lambda f: f"round {f['round']}: sits out ({f['why']})",
    "testified": lambda f: f"round {f['round']}: a sum failed in this cohort; sent evidence, {f['bytes']} bytes",
    "nothing-to-show": lambda f: f"round {f['round']}: its cohort's sum failed; has nothing to add to the evidence",
    "chain-unreachable": chain_unreachable,
    "superlink-unreachable": lambda f: f"[yellow]the aggregator's SuperLink {f['superlink']}: {f['why']}[/yellow]",
    "superlink-reached": lambda f: f"the aggregator's SuperLink {f['superlink']} answers again",
    "relay-ended": lambda f: (
        f"[yellow]the {f['process']} ended by itself (status {f['status']}), and is started again; its last words:"
        f" {f['log']}[/yellow]"
    ),
    "place-failed": lambda f: (
        f"[yellow]{f['artifacts']} artifact(s) not from {f['place']}: {f['error']}; another place has them[/yellow]"
    ),
    "not-kept": lambda f: f"[yellow]artifacts of mirrors cannot be kept in {f['place']}: {f['error']}[/yellow]",
    "round-failed": lambda f: f"[red]round {f['round']} failed here: {WAYS_OUT.get(f['error'], f['error'])}[/red]",
    "refused": lambda f: f"[yellow]the contract refused {f['call']}: {f['error']}[/yellow]",
    "left": lambda f: f"the task has ended; this account holds {tokens(int(f['balance']))} tokens",
}


def worth(f: Fields) -> str:
    """For a screen alone: facts of a hospital's own rows stay out of logs."""
    return (
        f"round {f['round']}: its base on the {f['rows']} rows kept from training: accuracy {f['accuracy']:.3f},"
        f" log loss {f['log_loss']:.3f}"
    )


UNPAID = ("not-committed", "not-resumed", "not-testified", "not-voted", "not-claimed")


def sentence(event: str, fields: Fields, words: Words = WORDS) -> str:
    """Markup. An unknown event is shown as it is."""
    fields = {name: escape(shown_lines(value)) if isinstance(value, str) else value for name, value in fields.items()}
    if "task" in fields:  # of a process that is in several
        return f"task {fields.pop('task')}: {sentence(event, fields, words)}"
    if event in UNPAID:
        wei = ether(int(fields["wei"]))
        return f"[red]{event}: {fields['call']} could not be paid for ({fields['error']}); {wei} ether are left[/red]"
    if event in words:
        return words[event](fields)
    return f"{event} {', '.join(f'{name} {value}' for name, value in fields.items())}".strip()


def on_terminal(waiting: Waiting) -> contextlib.AbstractContextManager[None]:
    """Within, log events go to the terminal in words; without a terminal, to standard output as JSON lines."""
    return _on_terminal(waiting) if sys.stdout.isatty() else contextlib.nullcontext()


def log_to_stderr() -> None:
    """Until the command ends, log events go to standard error in words: standard output has the result alone."""
    if (context := get_current_context(silent=True)) is not None:
        console = Console(stderr=True, highlight=False)
        context.with_resource(log_to(lambda event, fields: console.print(sentence(event, fields))))


def of_block(fields: Fields) -> str | None:
    """The time of an event's block, which may be days ago; None for an event without one."""
    at = fields.get("block_time")
    return None if at is None else f"{datetime.datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}"


@contextlib.contextmanager
def _on_terminal(waiting: Waiting) -> Iterator[None]:
    """A line for each event, and below it the spinner."""
    console = Console(highlight=False)
    with console.status(waiting.first) as status:

        def print_line(said: str, time: str | None = None) -> None:
            console.print(f"[dim]{time or f'{datetime.datetime.now():%H:%M:%S}'}[/dim]  {said}")

        def tell(event: str, fields: Mapping[str, Any]) -> None:
            print_line(sentence(event, fields, waiting.words or WORDS), of_block(fields))
            if event in waiting.after:
                status.update(waiting.after[event])

        def show(event: str, fields: Mapping[str, Any]) -> None:
            if event == "worth":
                print_line(worth(fields))
                return
            status.update(f"{event}: step {fields['step']} of {fields['of']}, loss {fields['loss']:.3f}")

        with log_to(tell, show):
            yield
