"""A model's inputs as `model.json` has them, so that other programs compute the same from a row's values. Pure.

An input is (value − subtract) · multiply of a column's value, which lies from min to max; of 1 if a column's value is
`code` or if it is missing, otherwise of 0; or of a channel's shades, from 0 to 255, of 16 bits to 65,535. A missing
value is 0 elsewhere. A series has each input in each step: a variable's last value so far, or 1 if it was measured in
that step, otherwise 0. Texts have no such inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema, TableSchema
from consilium_chain.tasks.features import CategoryFeature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.standardise import Standardiser
from consilium_core.kinds import of_kind
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FiniteFloat


class _Scaled(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    subtract: FiniteFloat
    multiply: FiniteFloat


class NumericInput(_Scaled):
    """Of a column of numbers."""

    column: str
    min: FiniteFloat
    max: FiniteFloat


class CodeInput(_Scaled):
    """A column of codes: `codes` are all that the column may have. `names`: of the codes, if rows have these."""

    column: str
    code: FiniteFloat
    codes: tuple[FiniteFloat, ...]
    names: tuple[str, ...] | None = None


class MissingInput(_Scaled):
    """1 if a column's value is missing, otherwise 0."""

    column: str
    is_missing: Literal[True] = True


class ChannelInput(_Scaled):
    """Of all pixels of an image in one channel."""

    channel: str


class VariableInput(_Scaled):
    """A series' variable in each step: its last value so far."""

    variable: str
    min: FiniteFloat
    max: FiniteFloat


class MeasuredInput(_Scaled):
    """1 in steps with a measurement of a variable, otherwise 0."""

    variable: str
    is_measured: Literal[True] = True


Input = NumericInput | CodeInput | MissingInput | ChannelInput | VariableInput | MeasuredInput


def model_inputs(schema: DataSchema, sums: NDArray[np.float64]) -> tuple[Input, ...]:
    """In the order of the model's inputs. `sums`: round 0's, float64 (schema.statistics_values,)."""
    if not schema.encoded:
        return ()
    standard = Standardiser.from_sums(sums)
    means, factors = standard.mean.tolist(), standard.inverse_deviation.tolist()
    if isinstance(schema, TableSchema):
        return tuple(_of_table(schema, means, factors))
    if isinstance(schema, SeriesSchema):
        return (*_of_series(schema, means, factors), *map(_measured, schema.inputs))
    white = of_kind(ImageSchema, schema).white
    return tuple(
        ChannelInput(channel=column.name, subtract=white * mean, multiply=factor / white)
        for column, mean, factor in zip(schema.encoded, means, factors, strict=True)
    )


def _of_series(schema: SeriesSchema, means: list[float], factors: list[float]) -> Iterator[Input]:
    for feature, mean, factor in zip(schema.features, means, factors, strict=True):
        width = feature.max - feature.min
        yield VariableInput(
            variable=feature.name, min=feature.min, max=feature.max, subtract=feature.min + mean * width,
            multiply=factor / width,
        )  # fmt: skip


def _measured(variable: str) -> MeasuredInput:
    return MeasuredInput(variable=variable, subtract=0, multiply=1)


def _of_table(schema: TableSchema, means: list[float], factors: list[float]) -> Iterator[Input]:
    scales = zip(means, factors, strict=True)
    for feature in schema.features:
        if isinstance(feature, CategoryFeature):
            names = tuple(feature.names) if feature.is_named else None
            for code in feature.codes[1:]:  # the first has no input of its own
                mean, factor = next(scales)
                yield CodeInput(
                    column=feature.name, code=code, codes=tuple(feature.codes), names=names, subtract=mean,
                    multiply=factor,
                )  # fmt: skip
            continue
        mean, factor = next(scales)
        width = feature.max - feature.min
        yield NumericInput(
            column=feature.name, min=feature.min, max=feature.max, subtract=feature.min + mean * width,
            multiply=factor / width,
        )  # fmt: skip
        if feature.missing == "indicator":
            mean, factor = next(scales)
            yield MissingInput(column=feature.name, subtract=mean, multiply=factor)
