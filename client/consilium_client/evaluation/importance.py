"""Parts of an evaluation that need a table's columns: the importance of each, and its subgroups. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import fmean

import numpy as np
from consilium_chain.evaluations.measures import Importance
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, Feature
from numpy.typing import NDArray

from consilium_client.data.table.reader import Table

REPEATS = 10

Worth = Callable[[Table], float]


def importances(table: Table, schema: TableSchema, worth: Worth, seed: int) -> tuple[Importance, ...]:
    """One for each column, the most important first. `worth`: more is better."""
    whole = worth(table)
    found = []
    for at, (feature, block) in enumerate(_blocks(schema)):
        random = np.random.default_rng([seed, at])
        drops = []
        for _ in range(REPEATS):
            features = table.features.copy()
            features[:, block] = features[random.permutation(table.rows)][:, block]
            drops.append(whole - worth(replace(table, features=features)))
        found.append(Importance(column=feature.name, mean=fmean(drops), low=min(drops), high=max(drops)))
    return tuple(sorted(found, key=lambda one: -one.mean))


def subgroups(table: Table, schema: TableSchema) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The rows (n,) of each value of the schema's `subgroups`, by name; without empty ones."""
    for feature, block in _blocks(schema):
        if feature.name in schema.subgroups and isinstance(feature, CategoryFeature):
            codes = table.features[:, block][:, : len(feature.values) - 1]
            missing: NDArray[np.bool_] = np.asarray(np.isnan(codes).any(axis=1))
            indices = np.where(codes.any(axis=1), 1 + np.argmax(codes, axis=1), 0)
            for index, name in enumerate(feature.names):
                own: NDArray[np.bool_] = ~missing & (indices == index)
                if own.any():
                    yield f"{feature.name} = {name}", own
            if missing.any():
                yield f"{feature.name} missing", missing


def _blocks(schema: TableSchema) -> Iterator[tuple[Feature, slice]]:
    """Each feature's columns of the encoded rows."""
    widths = [len(list(feature.encoded)) for feature in schema.features]
    for feature, (start, end) in zip(schema.features, pairwise(accumulate(widths, initial=0)), strict=True):
        yield feature, slice(start, end)
