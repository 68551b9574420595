"""A task file on the screen: its model, costs, time and warnings."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import typer
from consilium_core.units import ether, tokens
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from consilium import Task
    from consilium_chain.tasks.chain_terms import ChainTerms
    from consilium_chain.tasks.estimate import Estimate
    from consilium_chain.tasks.task_spec import TaskSpec

TYPICAL_ROWS = (100, 1_000)
SHOWN_ROWS = 30


def show(task: Task, found: Estimate) -> None:
    """Prices and times are shown for an estimate with a chain. Raises PrivacyError (EpsilonUnreachable)."""
    spec, chain = task.spec, found.chain
    _show_model(task, found)
    _show_privacy(task)
    typer.echo(f"  hospitals are shown: {task.membership_risk(SHOWN_ROWS)}")
    _show_money(spec, found)
    _show_gas(spec, found, chain)
    if chain is None:
        _show_networks(task)
    if chain is not None and found.expected is not None and found.longest is not None:
        typer.echo(f"time: about {_duration(found.expected)}, at most {_duration(found.longest)}")
        typer.echo(
            "  about: joining takes its whole window; training, uploading and judging take half of theirs; a step of"
            f" the chain takes two blocks of {chain.block_seconds:g} s. at most: each phase takes its window, and each"
            " round has a dispute"
        )
    for concern in found.concerns:
        typer.secho(f"warning ({concern.rule}): {concern.reason}", fg=typer.colors.YELLOW)


def _show_model(task: Task, found: Estimate) -> None:
    spec = task.spec
    layout, rounds = spec.update_layout, spec.rounds
    typer.echo(f"{spec.name}: valid. keccak256 {task.digest}")
    asked = f"{len(spec.data.classes)} classes" if spec.data.classes else shown(spec.data.asked.in_words)
    typer.echo(f"  {spec.in_words.size} of a {spec.model.name} model, data of kind {spec.data.kind}, {asked}")
    typer.echo(
        f"  {rounds.rounds} rounds after the statistics, {rounds.min_hospitals} to {rounds.max_hospitals} hospitals in"
        f" {rounds.cohorts} cohort(s), {spec.judging.seats} seats for {spec.judging.max_voters} voters,"
        f" judged by {spec.judging.in_words}"
    )
    if rounds.shards > 1:
        typer.echo(
            f"  {rounds.shards} shards: tasks of these terms, each with its own pool, that train one model; figures are"
            " of one shard"
        )
    typer.echo(
        f"  lanes of {layout.lane_bits} bits, {layout.lanes_per_scalar} to a scalar: {spec.update_blobs} blob(s)"
        f" an update, {spec.statistics_blobs} for the statistics"
    )
    bits = layout.bits - spec.judging.decoys
    typer.echo(
        f"    {bits} bits of a value{', 1 for decoys' if spec.judging.decoys else ''}, {layout.lane_bits - layout.bits}"
        f" for a cohort of {rounds.largest_cohort} hospitals of weight {rounds.max_weight}; at weight 1 an update takes"
        f" {spec.update_blobs_at(1)} blob(s)"
    )
    where = f"{found.published_blobs} blobs on chain" if found.published_blobs else "none on chain, by their hashes"
    typer.echo(
        f"  published: {spec.update_blobs * rounds.cohorts} blob(s) a round, {where} in all;"
        f" {found.artifact_bytes / 1e6:,.1f} MB in the artifact store. A hospital uploads"
        f" {found.upload_bytes / 1e6:,.1f} MB a round"
    )


def _show_privacy(task: Task) -> None:
    spec = task.spec
    if spec.summary is not None:
        typer.echo(f"  round 0 publishes {spec.in_words.summary}")
    if spec.privacy is None:
        typer.echo("  not private: nothing bounds what updates reveal about a hospital's rows")
        return
    bound = f"epsilon {spec.privacy.epsilon:g} at delta {spec.privacy.delta:g}"
    typer.echo(f"  private: a row costs at most {bound} over all {spec.rounds.rounds} rounds")
    for rows in TYPICAL_ROWS:
        mechanism = task.noise(rows)
        if mechanism is None:
            continue
        typer.echo(
            f"    with {rows:,} rows: {mechanism.steps} steps a round, each of {mechanism.sample_rate:.1%} of them,"
            f" noise {mechanism.noise_multiplier:.2f} times the norm {spec.privacy.max_grad_norm:g}"
        )


def _show_money(spec: TaskSpec, found: Estimate) -> None:
    money, rounds = spec.money, spec.rounds
    typer.echo(
        f"pool {money.pool:,} tokens, paid with the proposal; the part of unplayed rounds comes back\n"
        f"  bonds: hospital {money.hospital_bond:,}, voter {money.voter_bond:,}, aggregator {money.aggregator_bond:,}"
        f" (at least {money.least_aggregator_bond(rounds.rounds):,})"
    )
    shown = (
        f"hospitals {tokens(found.hospitals_pay.role)}", f"voters {tokens(found.voters_pay.role)}",
        f"aggregator {tokens(found.aggregator_pay.role)}",
    )  # fmt: skip
    typer.echo(
        f"  a round pays {', '.join(shown)} at most; if all earn alike, one of {rounds.max_hospitals} hospitals"
        f" {tokens(found.hospitals_pay.one)}, one of {spec.judging.seats} seats {tokens(found.voters_pay.one)}"
    )
    if spec.sale is not None:
        typer.echo(f"  the finished model may be sold: {spec.in_words.sale}")


def _show_gas(spec: TaskSpec, found: Estimate, chain: ChainTerms | None) -> None:
    """The last column: the price of a token at which a party's pay equals its gas."""
    rounds = spec.rounds.rounds
    table = Table(box=box.SIMPLE_HEAD, title="gas of the whole task, each", title_justify="left")
    table.add_column("party")
    for column in ("gas", "once", "a round", *(("ether", "breaks even at") if chain else ())):
        table.add_column(column, justify="right")
    rows = [
        ("operator", found.operator, None),
        ("aggregator", found.aggregator, found.aggregator_pay.one),
        ("hospital", found.hospital, found.hospitals_pay.one),
        ("hospital that commits itself", found.hospital_alone, found.hospitals_pay.one),
        ("voter that is always drawn", found.seated, found.voters_pay.one),
        ("voter that is never drawn", found.standing, None),
    ]
    for who, gas, pay in rows:
        cells = [who, f"{gas.total:,}", f"{gas.once:,}", f"{gas.rounds // (rounds + 1):,}"]
        if chain is not None:
            wei = chain.wei(gas.total)
            cells += [ether(wei), _break_even(wei, pay * rounds) if pay is not None else "–"]
        table.add_row(*cells)
    Console(highlight=False).print(table)
    if chain is not None:
        all_wei = chain.wei(found.all_gas, found.blob_gas)
        typer.echo(
            f"all parties: {found.all_gas:,} gas and {found.blob_gas:,} of blobs, {ether(all_wei)} ether at"
            f" {chain.gas_price / 10**9:.3f} gwei and {chain.blob_gas_price / 10**9:.3f} of blobs"
        )


def _show_networks(task: Task) -> None:
    costs = task.network_costs()
    table = Table(box=box.SIMPLE_HEAD, title="dollars for the whole task at low/middle/high fees", title_justify="left")
    table.add_column("network")
    for column in ("all parties", "aggregator", "a hospital", "a voter"):
        table.add_column(column, justify="right")
    for network in dict.fromkeys(one.network for one in costs):
        levels = [one for one in costs if one.network == network]
        cents = [
            [one.all_cents for one in levels],
            *([one.parties[party].cents for one in levels] for party in ("aggregator", "hospital", "seated")),
        ]
        table.add_row(network, *("/".join(map(_dollars, of_levels)) for of_levels in cents))
    Console(highlight=False).print(table)
    fees = task.assumed_fees()
    typer.echo(
        f"assumed on {fees.date:%-d %B %Y}: ether at ${fees.ether_dollars:,}, and low, usual and an hour's high fees."
        " These are upper bounds, without stores and chain nodes"
    )


def _dollars(cents: int) -> str:
    """To a cent below ten dollars."""
    return f"{cents / 100:,.2f}" if cents < 1_000 else f"{cents / 100:,.0f}"


def _break_even(wei: int, earned: int) -> str:
    """In ether a token."""
    return f"{wei / earned:.3g} ether/token" if earned else "never"


def _duration(seconds: float) -> str:
    """Rounded up to a second, or of more than an hour to a minute."""
    rounded = round(seconds + 0.5) if seconds < 3_600 else -(-seconds // 60) * 60
    return str(datetime.timedelta(seconds=int(rounded)))
