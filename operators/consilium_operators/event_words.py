"""A task's events in words, for the screens of `consilium operator watch` and `consilium up`."""

from __future__ import annotations

from collections.abc import Callable

from consilium_chain.ledger.structs import DOES_NOT_MATCH, INVALID_SCORE, Outcome
from consilium_chain.rounds.deadlines import in_words
from consilium_chain.tasks.limits import MICRO
from consilium_core.live import CHAIN_UNREACHABLE, Fields, Waiting, Words
from consilium_core.units import tokens

from consilium_operators.watching import DEADLINE_MISSED


def _phase(f: Fields) -> str:
    words = {
        "JOINING": "open to join", "FORMING": "the beacon assigns the cohorts",
        "COMMITTING": "hospitals train and commit",
        "UPLOADING": "hospitals upload their updates", "PUBLISHING": "the aggregator publishes the sums",
        "DISPUTING": "hospitals send evidence on a cohort without a sum", "DRAWING": "the beacon draws the seats",
        "SCORING": "the committee judges", "REVEALING": "the committee reveals its scores",
        "DISCLOSING": "the aggregator shows which sums were sign-flipped",
        "SETTLING": "rewards and slashes are settled",
        "ENDED": "over",
    }  # fmt: skip
    phase = words.get(f["phase"], f["phase"].lower())
    return phase if f["phase"] in ("JOINING", "ENDED") else f"[bold]round {f['round']}[/bold]: {phase}"


def _score(value: int) -> str:
    if value in (INVALID_SCORE, DOES_NOT_MATCH):
        return "no valid model" if value == INVALID_SCORE else "does not match"
    return f"{value / MICRO:+.4f}"


def _medians(f: Fields, accepted: str) -> str:
    if not f["medians"]:
        return "nothing was judged"
    return ", ".join(
        f"cohort {k} {_score(median)} {'[green]accepted[/green]' if k in f[accepted] else '[red]rejected[/red]'}"
        for k, median in enumerate(f["medians"])
    )


def _status(f: Fields) -> str:
    left = "" if f["seconds_left"] is None else f", {f['seconds_left']:,} s left"
    aggregator = "" if f["aggregator"] else "no aggregator yet, "
    return (
        f"task {f['task_number']}: round {f['round']} of {f['rounds']}, {f['phase'].lower()}{left}; {aggregator}"
        f"{f['hospitals']} of {f['max_hospitals']} hospitals, {f['voters']} of {f['max_voters']} voters;"
        f" {tokens(int(f['pool_left']))} of {tokens(int(f['pool']))} tokens are left in the pool"
    )


def _round(f: Fields) -> str:
    if f["outcome"] == Outcome.VOID.name:
        return f"round {f['round']}: [red]void[/red] ({_spaced(f['reason'])})"
    return f"round {f['round']}: settled, {_medians(f, 'accepted')}, {f['revealed']} of {f['seated']} seats revealed"


def _spaced(name: str) -> str:
    return name.lower().replace("_", " ")


def _of(words: str) -> Callable[[Fields], str]:
    return lambda f: f"round {f['round']}: {words.format(**f)}"


EVENTS: Words = {
    "task-proposed": lambda f: f"proposed by {f['operator']}, with a pool of {tokens(int(f['pool']))} tokens",
    "task-funded": lambda f: (
        f"its operator added {tokens(int(f['amount']))} tokens: the pool now has {tokens(int(f['pool']))}"
    ),
    "aggregator-joined": lambda f: f"the aggregator {f['aggregator']} joined",
    "hospital-joined": lambda f: f"{f['hospital']} joined as hospital {f['index']}",
    "voter-joined": lambda f: f"{f['voter']} joined as voter {f['index']}",
    "hospital-absent": _of("{hospital} did not take part"),
    "hospital-resumed": lambda f: f"{f['hospital']} is back",
    "phase-started": _phase,
    DEADLINE_MISSED: lambda f: f"[yellow]late[/yellow]: {in_words(f)}",
    "cohorts-formed": lambda f: (
        f"round {f['round']}: {len(f['members'])} cohort(s): "
        + "; ".join(f"{k} of hospitals {', '.join(map(str, cohort))}" for k, cohort in enumerate(f["members"]))
    ),
    "update-committed": _of("{hospital} committed"),
    "survivors-fixed": lambda f: f"round {f['round']}: {len(f['survivors'])} update(s) are in the sums",
    "shares-published": _of("{hospital} committed by its own transaction, with its secret shares"),
    "points-shown": _of("the commitments of cohort {cohort} are shown, blob {blob}"),
    "cohort-summed": _of("commitments of cohort {cohort} are added up, blob {blob}"),
    "cohort-published": _of("the sum of cohort {cohort} is published, blob {blob}"),
    "evidence-submitted": _of("{hospital} submitted evidence"),
    "cohort-dropped": _of("[red]cohort {cohort} has no sum[/red]"),
    "cohort-accused": _of("[red]cohort {cohort} is accused[/red]: its sum does not hold"),
    "cheaters-named": _of("[red]hospitals {hospitals} are named[/red] as cheaters"),
    "decoys-set": _of("its decoys are set"),
    "cohort-disclosed": _of("the sum of cohort {cohort} is disclosed"),
    "seats-drawn": _of("the seats are drawn"),
    "scores-committed": _of("{voter} has a seat, and committed to its scores"),
    "voter-stood-down": _of("{voter} has no seat"),
    "scores-revealed": lambda f: f"round {f['round']}: {f['voter']} revealed {', '.join(map(_score, f['scores']))}",
    "round-settled": lambda f: (
        f"[bold green]round {f['round']} is settled[/bold green]: {_medians(f, 'acceptedCohorts')}"
    ),
    "round-voided": lambda f: f"[bold red]round {f['round']} is void[/bold red] ({_spaced(f['reason'])})",
    "rewarded": lambda f: f"round {f['round']}: {f['account']} earns {tokens(int(f['amount']))} tokens",
    "slashed": lambda f: (
        f"round {f['round']}: [red]{f['account']} loses {tokens(int(f['amount']))} tokens[/red]"
        f" ({_spaced(f['reason'])})"
    ),
    "bounty-paid": lambda f: (
        f"round {f['round']}: {f['account']} earns {tokens(int(f['amount']))} tokens for ending a phase"
    ),
    "task-stopped": lambda f: f"its operator stopped it in round {f['round']}: no further one begins",
    "task-ended": lambda f: (
        f"[bold]the task has ended[/bold]; {tokens(int(f['refund']))} tokens go back to its operator,"
        f" {tokens(int(f['burnt']))} that rounds did not pay are burnt"
    ),
    "bond-released": lambda f: f"the bond of {f['account']} is free",
    "tracked": "{points} points are in {place}",
    "model-tracked": "the model, its card and its proof are in {place}",
    "no-model-tracked": "the task has no model: it ended before its first training round was over",
    "chain-unreachable": CHAIN_UNREACHABLE,
    "status": _status,
    "round": _round,
}
WATCHED = Waiting("reading the chain", dict.fromkeys(EVENTS, "waiting for the next event"), EVENTS)
