"""A running process's log events as sentences, for a terminal."""

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
Words = Mapping[str, str | Callable[[Fields], str]]
"""By event: a template of its fields (`str.format`), or a function of them."""


@dataclass(frozen=True)
class Waiting:
    """The spinner's text at first and after an event; `words`: the events' sentences, by default a node's."""

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
# A voter has several tasks: no single event gives the state of all.
VOTER = Waiting("watching the chain")


def _committed(f: Fields) -> str:
    by = "its own transaction" if f["by"] == "own" else "the aggregator's transaction"
    return f"round {f['round']}: trained {f['train_s']} s, and committed to {f['blobs']} blob(s) by {by}"


def _settled(f: Fields) -> str:
    words = (
        f"round {f['round']} is settled ({f['reason'].lower().replace('_', ' ')}): {tokens(int(f['reward']))} tokens"
    )
    return words + (f", [red]slashed {tokens(int(f['slash']))}[/red]" if int(f["slash"]) else "")


def _withdrawal_address(f: Fields) -> str:
    paid = f["current"] or "this account"
    if not f["next"]:
        return f"[yellow]stake and rewards are paid to {paid}[/yellow]"
    when = f"{datetime.datetime.fromtimestamp(f['next_at'], datetime.UTC):%Y-%m-%d %H:%M} UTC"
    return f"[yellow]stake and rewards are paid to {f['next']} from {when} on, until then to {paid}[/yellow]"


CHAIN_UNREACHABLE = "[yellow]the chain node does not answer; next try in {wait_s} s[/yellow]"


# Errors with a remedy on this machine.
WAYS_OUT = {
    "DiskFull": "the disk with the home folder is full: free some space",
    "DiskReadOnly": "the disk with the home folder is read-only: check it, and mount it again",
}
WORDS: Words = {
    "joined": "joined as {role} {index} with {rows} rows",
    "shard-closed": "[yellow]takes no more hospitals ({error}); another shard of its model may[/yellow]",
    "in-task": "continues as voter {index}",
    "watching": "watches all tasks, {tasks} so far; judges {judged} of them",
    "data-remark": lambda f: (
        f"[yellow]the data{f['column'] and ', column ' + f['column']}: {f['concern']}"
        f"{', answered in node.toml' if f['answered'] else ''}[/yellow]"
    ),
    "answer-unneeded": "[yellow]data_accepted in node.toml answers {answer}, which is no remark: remove it[/yellow]",
    "set-aside": "[yellow]not joined ({error}): `consilium voter tasks` says why[/yellow]",
    "task-failed": "[red]failed with {error}; tries again[/red]",
    "scored": "round {round}: judged in {seconds} s, and committed to its scores",
    "revealed": "round {round}: scores revealed",
    "stood-down": "round {round}: drew no seat",
    "does-not-match": "[yellow]round {round}: the publication does not match: {error}[/yellow]",
    "ballot-lost": "[red]round {round}: the committed ballot is no longer on this disk[/red]",
    "training": "round {round}: trains",
    "committed": _committed,
    "privacy": ("round {round}: the rows' privacy cost becomes epsilon {epsilon:.3g} of {of:g}"),
    "charged-late": lambda f: (
        f"[yellow]{f['place']}: {len(f['rounds'])} round(s) on chain were missing in the privacy ledger, and"
        " are charged now[/yellow]"
    ),
    "not-charged": lambda f: (
        f"[yellow]{f['place']}: {len(f['rounds'])} round(s) on chain are missing in the privacy ledger, and"
        f" their cost is unknown ({f['error']})[/yellow]"
    ),
    "over-budget": ("round {round}: over the privacy budget: epsilon would be {would_be:.3g} of {allowed:g}"),
    "uploading": "round {round}: uploads {blobs} blob(s)",
    "settled": _settled,
    "resumed": "round {round}: back in the task",
    "sits-out": "round {round}: sits out ({why})",
    "evidence-submitted": "round {round}: a sum failed in this cohort; sent evidence, {bytes} bytes",
    "nothing-to-show": "round {round}: its cohort's sum failed; this hospital has no evidence to add",
    "chain-unreachable": CHAIN_UNREACHABLE,
    "blocks-told": "the chain node {node} tells new blocks",
    "blocks-polled": "[yellow]the chain node {node} tells no new blocks ({error}); this node asks for them[/yellow]",
    "chain-node-changed": "[yellow]the chain node {node} is asked now, not {before} ({error})[/yellow]",
    "chain-node-unused": "[yellow]the chain node {node} cannot be used now ({error})[/yellow]",
    "superlink-unreachable": "[yellow]the aggregator's SuperLink {superlink}: {why}[/yellow]",
    "superlink-reached": "the aggregator's SuperLink {superlink} answers again",
    "relay-ended": (
        "[yellow]the relay ended with status {status}, and is started again; its last log lines: {log}[/yellow]"
    ),
    "place-failed": ("[yellow]{place} did not give {artifacts} artifact(s): {error}; another location did[/yellow]"),
    "not-kept": "[yellow]cannot keep copies of artifacts in {place}: {error}[/yellow]",
    "round-failed": lambda f: f"[red]round {f['round']} failed here: {WAYS_OUT.get(f['error'], f['error'])}[/red]",
    "refused": "[yellow]the contract refused {call}: {error}[/yellow]",
    "handed-in": "its signed report of the model is at {to}",
    "not-shared": "no report of the model left ({error}); to allow one: {allow}",
    "not-handed-in": "[yellow]its report of the model is not handed in: {error}. By hand: {by_hand}[/yellow]",
    "node-ended": "[red]the node, or a start of it, ended with {error}[/red]",
    "metrics-served": "Prometheus reads this node's metrics at {at}",
    "metrics-not-served": (
        "[yellow]no metrics: {at} and the ports after it, {ports} in all, cannot be used here; free one, or change"
        " `metrics` in node.toml[/yellow]"
    ),
    "owner-not-told": "[yellow]its owner is not told of {told}: {why}[/yellow]",
    "tracing": "spans of its work go to {to}",
    "spans-not-sent": "[yellow]the collector {to} takes no spans: {why}; this node goes on[/yellow]",
    "spans-sent-again": "the collector {to} takes spans again; {spans} were dropped",
    "spans-lost": "[yellow]{spans} span(s) did not reach the collector {to}[/yellow]",
    "withdrawal-address": _withdrawal_address,
    "left": lambda f: f"the task has ended; this account holds {tokens(int(f['balance']))} tokens",
}


def worth(f: Fields) -> str:
    """For a screen only: facts about a hospital's own rows stay out of logs."""
    values = (
        f"{name.replace('_', ' ')} {value:.3f}" for name, value in f.items() if name not in ("round", "rows") and value
    )
    return f"round {f['round']}: the base model on {f['rows']} held-out rows: {', '.join(values)}"


UNPAID = ("not-committed", "not-resumed", "evidence-not-submitted", "not-voted", "not-claimed")


def sentence(event: str, fields: Fields, words: Words = WORDS) -> str:
    """The event as rich's markup. An unknown event is shown as it is."""
    if "task" in fields:  # of a process that is in several
        others = {name: value for name, value in fields.items() if name != "task"}
        return f"task {fields['task']}: {sentence(event, others, words)}"
    fields = {name: escape(shown_lines(value)) if isinstance(value, str) else value for name, value in fields.items()}
    if event in UNPAID:
        wei = ether(int(fields["wei"]))
        return f"[red]{event}: could not pay for {fields['call']} ({fields['error']}); {wei} ether left[/red]"
    if event in words:
        said = words[event]
        return said.format(**fields) if isinstance(said, str) else said(fields)
    return f"{event} {', '.join(f'{name} {value}' for name, value in fields.items())}".strip()


def on_terminal(waiting: Waiting) -> contextlib.AbstractContextManager[None]:
    """Within, log events go to the terminal as sentences; without a terminal, to standard output as JSON lines."""
    return _on_terminal(waiting) if sys.stdout.isatty() else contextlib.nullcontext()


def log_to_stderr() -> None:
    """Until the command ends, log events go to standard error as sentences: standard output has only the result."""
    if (context := get_current_context(silent=True)) is not None:
        console = Console(stderr=True, highlight=False)
        context.with_resource(log_to(lambda event, fields: console.print(sentence(event, fields))))


def of_block(fields: Fields) -> str | None:
    """The time of an event's block; None for an event without one."""
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
