"""The summary of all hospitals' rows that a task may ask of round 0: counts of each column's values and of the answers.

Everything here is public: the counts that leave, their order in round 0's vector, and the noise that they get. A new
kind of data or question has no counts until `parts_of` knows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from consilium_core.typed_toml import Section
from pydantic import Field, model_validator

from consilium_chain.tasks.data_schemas import CorpusSchema, DataSchema, TableSchema, TextSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Classification, Multilabel, Question, Regression, Segmentation, Survival
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_chain.tasks.training_specs import MAX_EPSILON

MOST_BINS = 256
MOST_DEVIATION = 4_096.0  # of the noise on a count, so that hardly any noisy count leaves the lanes' range
LENGTHS = tuple(float(1 << power) for power in range(19))  # characters: ends of ranges that double
# Per cent of an image: ends of ranges, the first of which is of no pixel.
SHARES = (0.0, 0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
MISSING = "missing"
# Orders of Rényi divergence, among those of the privacy accountant, so that it finds no higher cost.
ORDERS: tuple[float, ...] = (*(1 + tenth / 10 for tenth in range(1, 100)), *range(12, 64))


@dataclass(frozen=True)
class Part:
    """The counts of one column. `counts`: their names, in order, that of missing values last if `has_missing`. `edges`:
    of a histogram, the ends of its ranges, ascending. `changed`: the most counts that one row is in. `answers`: True if
    these are the answers that the task asks for, and a start can follow from them.
    """

    column: str
    counts: tuple[str, ...]
    edges: tuple[float, ...] = ()
    has_missing: bool = False
    changed: int = 1
    answers: bool = False


class SummarySpec(Section):
    """Round 0 counts rows in all columns, over all hospitals: histograms, codes, missing values, and answers."""

    bins: Annotated[int, Field(ge=2, le=MOST_BINS)] = Field(
        default=20, description="equal parts of a column's public range, in which values are counted"
    )
    epsilon: Annotated[float, Field(gt=0, le=MAX_EPSILON)] | None = Field(
        default=None,
        description="the most that the counts may cost a row: each hospital adds noise to its own; without, exact",
    )
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=1e-5, description="chance with which epsilon may not hold; keep it below 1 / rows"
    )

    @model_validator(mode="after")
    def _is_reachable(self) -> SummarySpec:
        if self.epsilon is not None and self._cost <= 0:
            raise ValueError(f"no noise keeps epsilon {self.epsilon:g} at delta {self.delta:g}: raise one of them")
        return self

    def in_words(self, values: int, variance: int) -> str:
        """The counts that leave, for a hospital's owner."""
        noise = "exactly, without noise"
        if self.epsilon is not None:
            noise = (
                f"each with noise of a deviation of {math.sqrt(variance):.1f} rows, so that all cost a row at most"
                f" epsilon {self.epsilon:g} at delta {self.delta:g}"
            )
        return f"{values:,} counts for a summary: ranges of values, codes, missing values and answers, {noise}"

    @property
    def _cost(self) -> float:
        """The largest ρ of concentrated differential privacy that stays within epsilon at delta, by the conversion of
        Balle et al. (2020), which the accountant uses too.
        """
        epsilon, log_delta = (self.epsilon or 0.0) * (1 - 1e-9), math.log(self.delta)
        bounds = (epsilon - math.log1p(-1 / one) + (log_delta + math.log(one)) / (one - 1) for one in ORDERS)
        return max(bound / order for bound, order in zip(bounds, ORDERS, strict=True))

    def variance(self, changed: int) -> int:
        """The variance of the discrete Gaussian noise that each hospital adds to each count, if a row is in `changed`
        counts: their Euclidean sensitivity is √changed (Canonne, Kamath and Steinke 2020). 0 without noise.
        """
        return 0 if self.epsilon is None else math.ceil(changed / (2 * self._cost))


def parts_of(schema: DataSchema, bins: int) -> list[Part]:
    """The counts of a summary, in the order of round 0's vector."""
    return [Part("rows", ("all",)), *_of_columns(schema, bins), *_of_answers(schema.asked, bins)]


def _of_columns(schema: DataSchema, bins: int) -> Iterator[Part]:
    if isinstance(schema, TableSchema):
        for feature in schema.features:
            if isinstance(feature, CategoryFeature):
                yield Part(feature.name, (*feature.names, MISSING), has_missing=True)
            else:
                yield _of_range(feature.name, feature, bins)
    elif isinstance(schema, SeriesSchema):
        for feature in schema.features:  # a stay counts once, by its mean, however often it was measured
            yield _of_range(f"mean of {feature.name}", feature, bins)
        edges = equal_parts(0, schema.steps, min(bins, schema.steps))
        yield Part("steps with a measurement", ranges(edges), edges)
    elif isinstance(schema, ImageSchema):
        edges = equal_parts(0, schema.white, bins)
        for channel in schema.encoded:
            yield Part(f"mean shade, {channel.name}", ranges(edges), edges)
        if isinstance(schema.asked, Segmentation):
            for marked in schema.asked.classes[1:]:
                yield Part(f"% of an image, {marked}", ranges(SHARES), SHARES)
    elif isinstance(schema, TextSchema | CorpusSchema):
        yield Part(f"characters of {schema.text}", ranges(LENGTHS), LENGTHS)


def _of_range(name: str, feature: NumericFeature, bins: int) -> Part:
    edges = equal_parts(feature.min, feature.max, bins)
    return Part(name, (*ranges(edges), MISSING), edges, has_missing=True)


def _of_answers(asked: Question, bins: int) -> Iterator[Part]:
    if isinstance(asked, Classification):
        yield Part(asked.label, asked.classes, answers=True)
    elif isinstance(asked, Regression):
        edges = equal_parts(asked.min, asked.max, bins)
        yield Part(asked.label, ranges(edges), edges, answers=True)
    elif isinstance(asked, Survival):
        ends = [f"{bound:g}" for bound in asked.bounds]
        events = (f"{asked.event} by {end}" for end in ends)
        without = (f"last seen before {end}" for end in ends)
        yield Part(asked.event, (*events, *without, f"no {asked.event} by {ends[-1]}"), answers=True)
    elif isinstance(asked, Multilabel):
        yield Part("yes", tuple(asked.labels), changed=len(asked.labels), answers=True)


def equal_parts(low: float, high: float, bins: int) -> tuple[float, ...]:
    """The ends of the parts, (bins + 1,)."""
    return tuple(low + (high - low) * at / bins for at in range(bins + 1))


def ranges(edges: Sequence[float]) -> tuple[str, ...]:
    return tuple(f"{low:g} to {high:g}" for low, high in pairwise(edges))
