"""The demo's screen, while it runs and at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from consilium_chain.ledger.structs import Phase, members
from consilium_core.units import exact_tokens, tokens
from rich import box
from rich.console import Console
from rich.status import Status
from rich.table import Table

from consilium_lab.demo.chronicle import Seen
from consilium_lab.demo.network import Network, Role

PHASES = {
    Phase.JOINING: "all parties lock a bond and join",
    Phase.FORMING: "the beacon assigns the cohorts",
    Phase.COMMITTING: "hospitals train and commit",
    Phase.UPLOADING: "hospitals upload their updates",
    Phase.PUBLISHING: "the aggregator publishes the sums",
    Phase.DISPUTING: "hospitals send evidence on a cohort without a sum",
    Phase.DRAWING: "the beacon draws the seats",
    Phase.SCORING: "the committee evaluates and commits to scores",
    Phase.REVEALING: "the committee reveals its scores",
    Phase.DISCLOSING: "the aggregator shows which sums were sign-flipped",
    Phase.SETTLING: "rewards and slashes, page by page",
}
STYLE: dict[str, Any] = {"title_justify": "left", "box": box.SIMPLE_HEAD, "title_style": "bold"}


class Screen:
    """A line for each finished phase and, on a terminal, a spinner for the present one."""

    def __init__(self, console: Console, rounds: int) -> None:
        self.console = console
        self._rounds = rounds
        self._status: Status | None = None
        self._phase: tuple[int, Phase, float] | None = None
        self._done = 0

    def begin(self, text: str) -> None:
        self._status = self.console.status(text)
        self._status.start()

    def end(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def show(self, seen: Seen, network: Network) -> None:
        """Shows an event of the chain."""
        event = seen.event
        name, values = event.name, event.values
        if name in ("UpdateCommitted", "ScoresCommitted", "ScoresRevealed", "HospitalJoined", "VoterJoined"):
            self._done += 1
            self._spin()
        if name == "PhaseStarted":
            self._finish(seen.at)
            phase = Phase(values["phase"])
            self._phase, self._done = ((values["round"], phase, seen.at) if phase in PHASES else None), 0
            self._spin()
        elif name == "RoundVoided":
            self.say(f"  [red]round {values['round']} is void[/red]: no pay, and the model does not change")
        elif name == "CohortAccused":
            self.say(f"  [red]cohort {values['cohort']} has no sum[/red]: its hospitals disclose their masks")
        elif name == "CheatersNamed":
            joined = network.treasury.tasks.hospitals(network.task)
            named = [network.party(joined[index].node) for index in members(values["hospitals"])]
            shown = ", ".join(party.name for party in named if party)
            self.say(f"  [red]named[/red] as cheaters: {shown}; the committee recomputes that")
        elif name == "Slashed":
            party = network.party(values["account"])
            who = party.name if party else values["account"]
            self.say(f"  [red]slashed[/red] {who}: {tokens(values['amount'])} tokens, burnt")
        elif name == "RoundSettled" and values["medians"]:
            dropped = network.treasury.tasks.round_state(network.task, values["round"]).dropped_cohorts
            shown = ", ".join(
                f"cohort {i}: no sum" if dropped >> i & 1 else
                f"cohort {i}: {median / 1_000_000:+.4f} {_verdict(values['acceptedCohorts'] >> i & 1)}"
                for i, median in enumerate(values["medians"])
            )  # fmt: skip
            self.say(f"  [green]round {values['round']}/{self._rounds} settled[/green]  {shown}")

    def refused(self, who: str, call: str, error: str) -> None:
        self.say(f"  [yellow]the contract refused[/yellow] {call} by {who}: [bold]{error}[/bold]")

    def _finish(self, at: float) -> None:
        if self._phase is None:
            return
        round_, phase, since = self._phase
        where = "join      " if phase is Phase.JOINING else f"round {round_}/{self._rounds} "
        count = f"  ({self._done})" if self._done else ""
        self.say(f"  [dim]{where}{PHASES[phase]:<49}{at - since:6.1f} s{count}[/dim]")

    def _spin(self) -> None:
        if self._status is not None and self._phase is not None:
            round_, phase, _ = self._phase
            count = f" · {self._done} done" if self._done else ""
            self._status.update(f"round {round_}/{self._rounds}: {PHASES[phase]}{count}")


def _verdict(accepted: int) -> str:
    return "accepted" if accepted else "rejected"


def _strangers(calls: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Two tables: refusals by call and error, and the calls that were accepted."""
    tried, refused = (sum(call[what] for call in calls) for what in ("tried", "refused"))
    title = f"Strangers: the contracts refused {refused} of {tried} calls; logs/stranger-*.jsonl has each"
    table = Table("call", "refused", "error", title=title, **STYLE)
    for call in calls:
        errors = ", ".join(f"{error} {times}" for error, times in call["errors"].items())
        table.add_row(call["call"], f"{call['refused']} of {call['tried']}", errors or "–")
    yield table
    table = Table("call", "field", "times", title="Calls of strangers that were accepted", **STYLE)
    for call in calls:
        for field, times in Counter(one["field"] for one in call["taken"]).items():
            table.add_row(call["call"], field, str(times))
    yield table


def show_tables(console: Console, report: dict[str, Any]) -> None:
    """The result: rounds, money, model."""
    columns = ("round", "outcome", "proven", "accepted", "revealed", "slashed", report["metric_name"])
    rounds = Table(title="Rounds: cohorts, committee, and the model at the start of each round", **STYLE)
    for column in columns:
        rounds.add_column(column, no_wrap=column not in ("outcome", "slashed"), overflow="fold")
    for entry in report["rounds"]:
        if entry["kind"] == "statistics":
            continue
        cohorts = entry["cohorts"]
        verified = sum(c["sum_verified_on_chain"] for c in cohorts)
        void = f"[red]void: {(entry['void_reason'] or '').replace('_', ' ')}[/red]"
        rounds.add_row(
            str(entry["index"]),
            entry["outcome"] if entry["outcome"] != "void" else void,
            f"{verified} of {len(cohorts)}",
            f"{sum(c['accepted'] for c in cohorts)} of {len(cohorts)}",
            f"{len(entry['revealed'])} of {len(entry['committee'])}",
            "\n".join(sorted({s["who"] for s in entry["slashes"]})) or "–",
            f"{entry['base_metric']:.3f}" if entry["base_metric"] is not None else "–",
        )
    console.print(rounds)

    money = Table(title="Balances, in tokens", **STYLE)
    for column in ("account", "role", "rows", "change", "after"):
        is_number = column in ("rows", "change", "after")
        money.add_column(column, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in report["balances"].values():
        before, after = int(row["before"]), int(row["after"])
        colour = "green" if after > before else "red" if after < before else "white"
        change = f"[{colour}]{tokens(after - before)}[/{colour}]"
        role = row["role"] if row["honest"] else f"{row['role']}, [yellow]{row['does']}[/yellow]"
        if row["role"] == Role.OPERATOR:
            role += ", paid the pool"
        rows = "" if row["rows"] is None else str(row["rows"])
        money.add_row(row["name"], role, rows, change, tokens(after))
    console.print(money)
    for words in report["pay"]:
        console.print(words, highlight=False)

    if report["strangers"]:
        console.print(*_strangers(report["strangers"]))
    difference = report["conservation"]["difference"]
    console.print(
        f"Money: {tokens(int(report['conservation']['minted']))} tokens minted,"
        f" {tokens(int(report['conservation']['burnt']))} burnt; difference to all accounts: [bold]{difference}[/bold]",
        highlight=False,
    )
    for words in report["missed"]:
        console.print(f"[yellow]Late[/yellow]: {words}", highlight=False)
    final = report["final_metric"]
    console.print(
        f"Model: {report['metric_name']} on everybody's held-out rows [bold]{final:.3f}[/bold]"
        f" (pooled training {report['pooled_metric']:.3f}, hospitals alone {report['local_only_metric']:.3f})"
        if final is not None
        else f"Model: none. {report['why_no_model']}",
        highlight=False,
    )
    console.print(report["privacy"], highlight=False)
    if sales := report.get("sales"):
        console.print(
            f"Sales: {sales['sold']:,} predictions for {exact_tokens(int(sales['paid']))} tokens; lost {sales['lost']},"
            f" difference [bold]{sales['difference']}[/bold]; {sales['gas_per_prediction']:g} gas each;"
            f" 95 in 100 within {sales['p95_ms']:g} ms",
            highlight=False,
        )
