"""Proposals, funding and the end of tasks on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from consilium_core.units import WEI_PER_ETHER, ether, tokens

from consilium_cli.asking import agrees

if TYPE_CHECKING:
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_operators.proposals import Funding, Proposal, Proposed, Stop


def show_plan(plan: Proposal) -> None:
    typer.echo(
        f"\naccount {plan.account}\n"
        f"holds   {tokens(plan.tokens)} tokens, {ether(plan.wei)} ether\n"
        f"pays    {tokens(plan.pool)} tokens into the pool, and about {ether(plan.gas_wei)} ether of gas"
    )
    if plan.free_stake < plan.bond:
        typer.secho(
            f"warning (aggregator): {plan.aggregator} has {tokens(plan.free_stake)} tokens of free stake. It cannot"
            f" join before it has staked its bond of {tokens(plan.bond)}",
            fg=typer.colors.YELLOW,
        )
    if plan.ended and not plan.still_open:
        typer.echo(f"        again: task {', '.join(map(str, plan.ended))} had the same file, and has ended")


def agrees_to(plan: Proposal, yes: bool, again: bool) -> bool:
    """Asks, unless options have answered. `--yes` alone does not pay for a second task with the same file."""
    if plan.still_open and not again:
        numbers = ", ".join(map(str, plan.still_open))
        question = f"\nTask {numbers} has the same file, and has not ended. Pay for another task?"
        return not yes and agrees(question)
    return yes or agrees(f"\nPropose it, and pay {tokens(plan.pool)} tokens?")


def show_proposed(proposed: Proposed, spec: TaskSpec, aggregator: str | None) -> None:
    number, last = proposed.task, proposed.task + proposed.shards - 1
    subject = f"task {number} is" if last == number else f"tasks {number} to {last}, the shards of one model, are"
    each = "" if last == number else f"; to all {proposed.shards} with a --superlink of each"
    typer.echo(f"\n{subject} proposed, for {ether(proposed.gas_wei)} ether of gas")
    typer.echo(
        f"Next: hospitals, voters and the aggregator {aggregator} join within {spec.windows.join:,} s;\n"
        f"      its file must also be in their artifact stores\n"
        f"      consilium operator invite {number} --output FILE …, for hospitals and voters{each}\n"
        f"      consilium operator watch {number}\n"
        f"      consilium operator download-model {number} --output DIR, when it has ended"
    )


def show_funding(plan: Funding) -> None:
    before, after, room = plan.before, plan.after, plan.room
    most = "any number of tokens" if room is None else f"at most {room // WEI_PER_ETHER:,} whole tokens"
    typer.echo(
        f"task {plan.task}: a pool of {tokens(plan.pool)} tokens becomes one of {tokens(plan.pool + plan.amount)}\n"
        f"  a round pays at most: hospitals {tokens(before.hospitals)}, then {tokens(after.hospitals)};"
        f" voters {tokens(before.voters)}, then {tokens(after.voters)};"
        f" aggregator {tokens(before.aggregator)}, then {tokens(after.aggregator)}\n"
        f"  the aggregator's bond of {tokens(plan.aggregator_bond)} tokens allows {most} to be added\n"
        f"account {plan.account}\n"
        f"holds   {tokens(plan.tokens)} tokens, {ether(plan.wei)} ether"
    )


def in_question(stop: Stop) -> str:
    words = "It ends at once"
    if stop.last is not None:
        words = f"It is in round {stop.round}: rounds up to {stop.last} still take place, and are paid"
    return f"Stop task {stop.task}? {words}. Then bonds are released, and the rest of the pool comes back."
