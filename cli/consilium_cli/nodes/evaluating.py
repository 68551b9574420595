"""A node's own evaluation on its screen."""

from __future__ import annotations

from pathlib import Path

import typer
from consilium.node_evaluation import NodeEvaluation

from consilium_cli.evaluation_screen import of_node, show


def show_own(found: NodeEvaluation, share: Path | None) -> None:
    show(of_node(found.details))
    if found.report is None:
        typer.echo("Nothing left this machine. To share rounded figures: --share FILE (docs/privacy.md)")
        return
    typer.echo(
        f"{share}: signed by {found.report.node}, of {found.report.found.all_rows.rows} rows. Read it, and send it to"
        " the task's operator"
    )
    if found.details.alone and found.report.alone is None:
        typer.echo("It is the report that this node signed before, which has no metrics of your rows alone")
