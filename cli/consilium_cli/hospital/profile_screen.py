"""A table's profile on the hospital's own screen: what was read, what may be wrong with it, and what would leave."""

from __future__ import annotations

from consilium_chain.data_schemas import CategoryFeature
from consilium_client.errors import shortened
from consilium_client.profile import ColumnProfile, Finding, Preview, Profile
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

WIDTH = 100
TITLE = "bold"


def screen(profile: Profile) -> RenderableType:
    """Made for `WIDTH` columns; shows values of the hospital's patients, so print it to a terminal and to no log."""
    return Group(
        _heading(profile),
        Text("\nThe task's columns, in its own units", TITLE),
        _columns(profile),
        _findings(profile),
        *([] if profile.preview.privacy else _round_0(profile.preview)),
        Text("\nWhat leaves this hospital", TITLE),
        _leaves(profile),
    )


def _heading(profile: Profile) -> Text:
    text = Text.assemble((str(profile.path), TITLE), f" ({profile.kind}): {profile.rows:,} rows")
    shares = ", ".join(f"{count:,} {name} ({_share(count, profile.rows)})" for name, count in profile.classes)
    text.append(f"\nlabel {profile.label}{_called(profile.label, profile.label_source)}: {shares}")
    if profile.duplicates:
        text.append(f"\nrows that repeat an earlier one: {profile.duplicates:,}")
    if profile.left_aside:
        names = f" ({shortened(profile.left_aside_names)})" if profile.left_aside_names else ""
        text.append(f"\nleft aside, unread: {profile.left_aside} of the file's columns{names}")
    return text


def _columns(profile: Profile) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("column", "in the file", "the task knows"):
        table.add_column(title, overflow="fold")
    for title in ("missing", "outside", "smallest", "mean", "largest"):
        table.add_column(title, justify="right", no_wrap=True)
    for column in profile.columns:
        table.add_row(
            Text(column.feature.name),
            Text(column.source if column.source is not None else "absent"),
            _known(column),
            _counted(column.missing, column.rows),
            _counted(column.outside or column.unknown, column.rows),
            *map(_number, (column.smallest, column.mean, column.largest)),
        )
    return table


def _known(column: ColumnProfile) -> str:
    if isinstance(column.feature, CategoryFeature):
        return ", ".join(f"{value:g}" for value in column.feature.values)
    return f"{column.feature.min:g} to {column.feature.max:g}"


def _findings(profile: Profile) -> RenderableType:
    if not profile.findings:
        return Text("Nothing seems to be wrong with it", style="green")
    grid = Table.grid(padding=(0, 2))
    for finding in profile.findings:
        grid.add_row("", Text(finding.column or "rows", "yellow"), Text(_said(finding), overflow="fold"))
    return Group(Text("To look at", TITLE), grid)


def _said(finding: Finding) -> str:
    return f"{finding.count:,} of {finding.of:,}: {finding.concern}"


def _round_0(preview: Preview) -> list[RenderableType]:
    return [
        Text("\nRound 0: what is computed from these rows, so that all hospitals scale alike", TITLE),
        _statistics(preview),
        Text("  u is a value in its range, from 0 to 1. These numbers are shown here alone."),
    ]


def _statistics(preview: Preview) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("encoded column", overflow="fold")
    for title in ("rows with a value", "Σu", "Σu²"):
        table.add_column(title, justify="right", no_wrap=True)
    for one in preview.statistics:
        table.add_row(Text(one.column), f"{one.known:,.0f}", f"{one.total:,.4f}", f"{one.squares:,.4f}")
    return table


def _leaves(profile: Profile) -> Table:
    preview = profile.preview
    seen = (
        "masked: nobody else can read it; the sum over a cohort's hospitals is public"
        if preview.masked
        else "NOT masked: the aggregator reads it; the sum over a cohort's hospitals is public"
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_row("", "on joining", f"the number of rows, {profile.rows:,}, in public: it gives this hospital's weight")
    if preview.privacy is None:
        words = f"the {3 * len(preview.statistics)} sums above, rounded to multiples of {preview.step:.2g};"
        words += f" {_blobs(preview.statistics_blobs, preview.statistics_bytes)}; {seen}"
        noise = ""
    else:
        words = "nothing of these rows: the task scales by its schema's ranges"
        bound = f"epsilon {preview.privacy.epsilon:g} at delta {preview.privacy.delta:g}"
        noise = f" with noise, so that all rounds together cost a row {bound} at most;"
    grid.add_row("", "round 0", words)
    grid.add_row(
        "",
        f"rounds 1 to {preview.rounds}" if preview.rounds > 1 else "round 1",
        f"the change of {preview.parameters:,} parameters by training on these rows,{noise} clipped to a norm of"
        f" {preview.clip_norm:g}, rounded to {preview.bits} bits in ±{preview.value_range:g};"
        f" {_blobs(preview.update_blobs, preview.update_bytes)} each; {seen}",
    )
    grid.add_row("", "never", "the file: its rows and cells, its codes, the names of its columns")
    return grid


def _blobs(count: int, size: int) -> str:
    return f"{count} blob{'s' if count > 1 else ''} of {size // count // 1024} KiB"


def _called(name: str, source: str | None) -> str:
    return f" ({source} in the file)" if source not in (None, name) else ""


def _counted(count: int, of: int) -> str:
    return f"{count:,} ({_share(count, of)})" if count else "–"


def _share(count: int, of: int) -> str:
    return f"{count / of:.0%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
