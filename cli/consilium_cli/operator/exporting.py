"""`consilium operator export-onnx`: a model as files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import consilium
import typer

from consilium_cli.prediction import LocalOption, MappingOption, ModelArgument


def export_onnx(
    folder: ModelArgument,
    local: LocalOption = None,
    int8: Annotated[
        Path | None,
        typer.Option(metavar="LABELLED", help="also write model-int8.onnx, measured on these rows with their labels"),
    ] = None,
    mapping: MappingOption = None,
) -> None:
    """Writes a model as model.onnx into its folder, with all scaling inside, and compares it with PyTorch."""
    found = None if int8 is None else consilium.export_onnx_int8(folder, int8, mapping=mapping, local=local)
    difference = consilium.export_onnx(folder, local=local) if found is None else found.difference
    typer.echo(f"{folder / 'model.onnx'}: probabilities differ from PyTorch's by at most {difference:.1e}")
    if found is None:
        return
    sizes = f"{found.int8_bytes:,} bytes, and {found.float_bytes:,} of model.onnx"
    typer.echo(f"{folder / 'model-int8.onnx'}: {sizes}; on {found.rows:,} rows")
    for name, (before, after) in found.metrics.items():
        typer.echo(f"  {name.replace('_', ' ')} {after:.4f}, and {before:.4f} of model.onnx")
