"""`consilium predict`: a finished model's answers for one's own rows. Imports nothing heavy at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import consilium
import typer

ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="folder that `operator download-model` wrote")]
FinishedArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="folder that `operator download-model` or `ensemble export` wrote")
]
MappingOption = Annotated[
    Path | None,
    typer.Option(help="file that maps the data's columns to the task's, TOML (docs/data.md); by default the model's"),
]
ClampOption = Annotated[
    bool,
    typer.Option(
        "--clamp",
        help="count a value outside the model's range as the nearest bound, and an unknown code as missing, instead of"
        " refusing it",
    ),
]


LocalOption = Annotated[
    Path | None,
    typer.Option(help="your own local tensors, of a task that has them: memory/TASK_KEY/local.safetensors in a home"),
]


def predict_command(
    model: FinishedArgument,
    *,
    input_: Annotated[Path, typer.Option("--input", help="rows: CSV or Parquet; a folder of texts or images")],
    output: Annotated[Path, typer.Option(help="new file for a prediction for each row, CSV; new folder for masks")],
    mapping: MappingOption = None,
    id_column: Annotated[str | None, typer.Option(help="column of the input to copy into the output")] = None,
    clamp: ClampOption = False,
    local: LocalOption = None,
) -> None:
    """Predicts a class, and each class's probability, for each row. The rows need no label, and stay here."""
    used = _read(model, local)
    warn_unverified(used.verified)
    found = used.predict(input_, mapping=mapping, id_column=id_column, clamp=clamp, output=output)
    typer.echo(f"{output}: {len(found):,} predictions of {used.name}")


def _read(folder: Path, local: Path | None) -> consilium.Model | consilium.EnsembleModel:
    if not consilium.is_ensemble(folder):
        return consilium.Model.read(folder, local=local)
    if local is not None:
        raise typer.BadParameter("an ensemble has no local tensors; leave it out", param_hint="--local")
    return consilium.EnsembleModel.read(folder)


def warn_unverified(verified: bool) -> None:
    if not verified:
        typer.secho("this model is NOT VERIFIED: its card lists the checks that fail", fg=typer.colors.RED, err=True)
