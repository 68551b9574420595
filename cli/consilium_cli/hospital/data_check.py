"""`consilium hospital check-data`: a profile of the hospital's data for a task, only on its own screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from consilium.data_check import ImageProfile, Profile, SeriesProfile, TableProfile, TextProfile, check_data
from consilium.task import Task
from consilium_core.kinds import of_kind
from consilium_core.visible_text import shown
from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from consilium_cli.nodes.status import opened_client

if TYPE_CHECKING:
    from consilium.data_check import Finding
    from consilium_chain.tasks.task_spec import TaskSpec
    from consilium_client.data.examples import Source

WIDTH = 100
TITLE = "bold"
NEVER = {
    "rows": "the file: its rows and cells, its codes, the names of its columns",
    "texts": "the texts: their words and letters, the names of files and columns",
    "images": "the images: their pixels, their masks, their sizes, their headers, the names of files",
    "stays": "the measurements: their values and times, the names of stays, files and columns",
}
PICTURED = {
    "rows": "the columns' histograms", "images": "a few of your patients' images", "stays": "your patients' variables"
    " over time",
}  # fmt: skip
ONE = {"rows": "a row", "texts": "a text", "images": "an image", "stays": "a stay"}
UNSCALED = {
    "rows": "the task scales by constants of its schema",
    "texts": "texts are not scaled",
    "images": "the task scales as if all shades were equally likely",
    "stays": "the task scales by constants of its schema",
}
COUNTED = {"rows": "encoded column", "images": "channel", "stays": "variable"}
SHADES = {
    "rows": "u is a value in its range, from 0 to 1",
    "images": "u is an image's mean shade, u² its mean squared shade, from 0 to 1",
    "stays": "u is a stay's mean of a variable in its range, u² its mean square, from 0 to 1",
}


def show_check(
    folder: Path, number: int | None, task_file: Path | None, data: Path | None, mapping: Path | None,
    picture: Path | None = None,
) -> None:  # fmt: skip
    """Shows the profile of the readable data, writes `picture`, then raises the first error of the data."""
    task = number if task_file is None else Task.read(task_file)
    if isinstance(task, Task) and data is not None:  # no home is needed
        found = check_data(task, data, mapping)
    else:
        found = opened_client(folder).check_data(task, data=data, mapping=mapping)
    console = Console(highlight=False)
    console.width = min(console.width, WIDTH)
    console.print(screen(found.profile))
    if picture is not None:
        try:
            found.write_picture(picture)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--picture") from None
        console.print(f"{shown(str(picture))} shows {PICTURED[found.profile.things]}. It is for you alone.")
    found.require()
    print_unneeded(console, found.unneeded)
    console.print(f"[green]The {found.profile.things} fit.[/green]")


def screen(profile: Profile) -> RenderableType:
    """For `WIDTH` columns. It shows values of the hospital's patients: print it to a terminal, never to a log."""
    return Group(
        _heading(profile),
        *_body(profile),
        _findings(profile),
        *(_round_0(profile) if profile.statistics else []),
        Text("\nData that leave this hospital", TITLE),
        _leaves(profile),
    )


def _heading(profile: Profile) -> Text:
    source, asked = profile.source, profile.spec.data.asked.columns
    text = Text.assemble((str(source.path), TITLE), f" ({_form(source)}): {profile.rows:,} {profile.things}")
    shares = ", ".join(f"{count:,} {shown(name)} ({_share(count, profile.rows)})" for name, count in profile.answers)
    named = [shown(name + source.called(name)) for name in asked if source.names.get(name)]
    unnamed = "classes" if profile.spec.data.classes else "answers"
    text.append(f"\n{'label ' + ' and '.join(named) if named else unnamed}: {shares}")
    if isinstance(profile, TableProfile | SeriesProfile) and profile.patients is not None:
        text.append(f"\npatients: {profile.patients:,}")
    if profile.repeated:
        text.append(f"\nrepeated {profile.things}: {profile.repeated:,}")
    if source.left_aside:
        is_list = source.kind == "folder" and not isinstance(profile, SeriesProfile)
        of = "file(s) that its list does not name" if is_list else "column(s) of the file"
        names = f" ({shown(source.left_aside_shortened)})" if source.left_aside_names else ""
        text.append(f"\nnot read: {source.left_aside:,} {of}{names}")
    if source.identifying:
        fields = ", ".join(f"{name} ({count:,})" for name, count in source.identifying.items())
        text.append(f"\nidentifying header fields, by files that have them: {shown(fields)}. None of them leaves")
    return text


def _form(source: Source) -> str:
    return f"read by the plug-in {source.reader}" if source.reader else source.kind


def _body(profile: Profile) -> list[RenderableType]:
    if isinstance(profile, TableProfile):
        return [Text("\nThe task's columns, in the task's units", TITLE), _columns(profile)]
    if isinstance(profile, TextProfile):
        return [Text("\nLengths", TITLE), *_lengths(profile)]
    if isinstance(profile, SeriesProfile):
        return [Text("\nThe task's variables, in the task's units", TITLE), *_variables(profile)]
    return [Text("\nSizes and shades", TITLE), *_sizes(of_kind(ImageProfile, profile))]


def _columns(profile: TableProfile) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("column", "in the file", "allowed"):
        table.add_column(title, overflow="fold")
    for title in ("missing", "outside", "smallest", "mean", "largest"):
        table.add_column(title, justify="right", no_wrap=True)
    for column in profile.columns:
        table.add_row(
            Text(shown(column.feature.name)),
            Text(shown(column.source) if column.source is not None else "absent"),
            shown(column.range_in_words),
            _counted(column.missing, column.rows),
            _counted(column.outside or column.unknown, column.rows),
            *map(_number, (column.smallest, column.mean, column.largest)),
        )
    return table


def _variables(profile: SeriesProfile) -> list[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("variable", "in the file", "allowed"):
        table.add_column(title, overflow="fold")
    for title in ("stays, steps", "outside", "smallest", "mean", "largest"):
        table.add_column(title, justify="right", no_wrap=True)
    for one, shares in zip(profile.variables, profile.shares, strict=True):
        table.add_row(
            Text(shown(one.feature.name)),
            Text(shown(one.source) if one.source is not None else "absent"),
            f"{one.feature.min:g} to {one.feature.max:g}",
            f"{_share(one.stays, one.of)}, {shares.mean():.0%}",
            _counted(one.outside, one.measurements),
            *map(_number, (one.smallest, one.mean, one.largest)),
        )
    words = (
        "  The first numbers are the shares of stays with a measurement, and of steps with one. The node"
        f" reads {profile.schema.steps_in_words}; it ignores {profile.after:,} later measurement(s).\n"
    )
    return [table, Text(words)]


def _lengths(profile: TextProfile) -> list[RenderableType]:
    table = _spread("shortest", "median", "longest")
    for name, of in (("words", profile.words), ("characters", profile.characters)):
        table.add_row(name, f"{of.shortest:,}", f"{of.median:,g}", f"{of.longest:,}")
    if profile.tokens is None:
        return [table]
    return [table, Text(f"  The model reads the first {profile.tokens:,} tokens of a text; a word has one or more.\n")]


def _sizes(profile: ImageProfile) -> list[RenderableType]:
    table = _spread("smallest", "median", "largest")
    table.add_row("height × width, pixels", *(f"{height:,} × {width:,}" for height, width in profile.sizes))
    schema = profile.schema
    table.add_row(f"mean shade, 0 (black) to {schema.white:,}", *(f"{shade:,.0f}" for shade in profile.shades))
    for name, shares in profile.marked.items():
        table.add_row(f"part of an image that is {shown(name)}", *(f"{share:.2%}" for share in shares))
    colours = {1: "in grey", 3: "in colour"}.get(schema.channels, f"in {schema.channels} channels")
    window = f", in a {schema.window}" if schema.window else ""
    return [table, Text(f"  The node scales them to {schema.height:,} × {schema.width:,} pixels, {colours}{window}.\n")]


def _spread(*titles: str) -> Table:
    table = Table("", box=box.SIMPLE_HEAD)
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _findings(profile: Profile) -> RenderableType:
    if not profile.findings:
        return Text("No problem found", style="green")
    return Group(Text("Please check", TITLE), remarks(profile.findings, profile.things))


def remarks(findings: Sequence[Finding], things: str) -> Table:
    """`things`: the examples in a word."""
    grid = Table.grid(padding=(0, 2))
    for finding in findings:
        words = Text(shown(f"{finding.count:,} of {finding.of:,}: {finding}"), overflow="fold")
        grid.add_row("", Text(shown(finding.column or things), "yellow"), words)
    return grid


def print_unneeded(console: Console, unneeded: Sequence[str]) -> None:
    for answer in unneeded:
        words = f"data_accepted in node.toml answers {answer}, which is no remark of these data: remove it."
        console.print(Text(shown(words), "yellow"))


def _round_0(profile: Profile) -> list[RenderableType]:
    things = profile.things
    return [
        Text(f"\nRound 0: sums of these {things}, so that all hospitals scale in the same way", TITLE),
        _statistics(profile),
        Text(f"  {SHADES[things]}. These numbers are shown only here."),
    ]


def _statistics(profile: Profile) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(COUNTED[profile.things], overflow="fold")
    for title in ("rows with a value" if profile.things == "rows" else profile.things, "Σu", "Σu²"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in profile.statistics:
        table.add_row(Text(shown(one.column)), f"{one.known:,.0f}", f"{one.total:,.4f}", f"{one.squares:,.4f}")
    return table


def _leaves(profile: Profile) -> Table:
    spec, things = profile.spec, profile.things
    seen = (
        "masked: no other party can read it; the sum over a cohort's hospitals is public"
        if spec.update.masked
        else "NOT masked: the aggregator reads it; the sum over a cohort's hospitals is public"
    )
    if spec.is_arena:
        seen = spec.in_words.seen
    noise = ""
    if spec.privacy is not None:
        bound = f"epsilon {spec.privacy.epsilon:g} at delta {spec.privacy.delta:g}"
        noise = f" with noise, so that all rounds together cost {ONE[things]} at most {bound};"
    grid = Table.grid(padding=(0, 2))
    count = f"the number of {things}, {profile.rows:,}"
    grid.add_row("", "on joining", f"{count}, in public: it determines this hospital's weight")
    grid.add_row("", "round 0", _leaves_in_round_0(profile, count, seen))
    grid.add_row(
        "",
        f"rounds 1 to {spec.rounds.rounds}" if spec.rounds.rounds > 1 else "round 1",
        f"the change of {spec.in_words.size} by training on these {things},{noise} clipped to a norm of"
        f" {spec.update.clip_norm:g}, rounded to {spec.update.bits} bits in ±{spec.update.value_range:g};"
        f" {_blobs(spec, spec.update_blobs)} each; {seen}",
    )
    grid.add_row("", "never", NEVER[things])
    return grid


def _leaves_in_round_0(profile: Profile, count: str, seen: str) -> str:
    spec = profile.spec
    if spec.summary is not None:
        sums = f"the {3 * len(profile.statistics)} sums above, and " if profile.statistics else ""
        return f"{sums}{spec.in_words.summary}; {_blobs(spec, spec.statistics_blobs)}; {seen}"
    if spec.statistics != "exact":
        return f"nothing about these {profile.things}: {UNSCALED[profile.things]}"
    if profile.statistics:
        count = f"the {3 * len(profile.statistics)} sums above, rounded to multiples of {profile.statistics_step:.2g}"
    return f"{count}; {_blobs(spec, spec.statistics_blobs)}; {seen}"


def _blobs(spec: TaskSpec, count: int) -> str:
    return f"{count} blob{'s' if count > 1 else ''} of {spec.update_bytes // spec.update_blobs // 1024} KiB"


def _counted(count: int, of: int) -> str:
    return f"{count:,} ({_share(count, of)})" if count else "–"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
