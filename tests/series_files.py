"""Writes series as hospitals have them, and reads them as a node does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from consilium_chain.tasks.series_schema import SeriesSchema
from consilium_client.data.mapping import Mapping, parse_mapping
from consilium_client.data.series.kind import KIND
from consilium_client.data.series.reader import RawStays, read_raw
from consilium_client.data.series.stays import Stays

VARIABLES = {"heart_rate": (0.0, 250.0), "lactate": (0.0, 30.0)}
SCHEMA = SeriesSchema.model_validate({
    "kind": "series", "label": "died", "classes": ["no", "yes"], "steps": 6, "step": 2.0,
    "features": [{"name": name, "min": low, "max": high} for name, (low, high) in VARIABLES.items()],
})  # fmt: skip


def folder_of(path: Path, measurements: str | bytes, outcomes: str = "stay,died\n1,0\n2,1\n") -> Path:
    path.mkdir(exist_ok=True)
    raw = measurements.encode() if isinstance(measurements, str) else measurements
    (path / "measurements.csv").write_bytes(raw)
    (path / "outcomes.csv").write_text(outcomes)
    return path


def stays_of(path: Path, schema: SeriesSchema = SCHEMA, mapping: str | None = None) -> Stays:
    return KIND.examples(raw_of(path, schema, mapping), schema)


def raw_of(path: Path, schema: SeriesSchema = SCHEMA, mapping: str | None = None) -> RawStays:
    return read_raw(path, schema, None if mapping is None else parsed(mapping, schema))


def parsed(mapping: str, schema: SeriesSchema = SCHEMA) -> Mapping:
    return parse_mapping(mapping.encode(), schema)


def drawn(seed: int, stays: int = 12, each: int = 20, variables: Sequence[str] = (*VARIABLES,)) -> pd.DataFrame:
    """Measurements at times from before the first step to after the last, some of them missing; shuffled."""
    random, rows = np.random.default_rng(seed), stays * each
    frame = pd.DataFrame({"stay": random.integers(1, stays + 1, rows), "time": random.uniform(-2, 15, rows).round(2)})
    for at, name in enumerate(variables):
        values = random.uniform(0, 30, rows).round(1)
        frame[name] = np.where(random.random(rows) < (0.7, 0.2)[at % 2], values, np.nan)
    return frame.drop_duplicates(["stay", "time"])


def answers(stays: int = 12) -> pd.DataFrame:
    return pd.DataFrame({"stay": range(1, stays + 1), "died": [at % 2 for at in range(stays)]})


def write(path: Path, measurements: pd.DataFrame, outcomes: pd.DataFrame, kind: str = "csv", **options: Any) -> Path:
    path.mkdir(exist_ok=True)
    for name, frame in (("measurements", measurements), ("outcomes", outcomes)):
        if kind == "csv":
            frame.to_csv(path / f"{name}.csv", index=False, **options)
        else:
            frame.to_parquet(path / f"{name}.parquet", index=False, **options)
    return path


def resampled(measurements: pd.DataFrame, stays: int, schema: SeriesSchema = SCHEMA) -> np.ndarray[Any, Any]:
    """The same by pandas: each variable's last value in a step, in its own unit, float64 (n, variables, steps)."""
    found = np.full((stays, len(schema.features), schema.steps), np.nan)
    began = pd.Timestamp(0)
    for stay, own in measurements[measurements["time"] >= 0].groupby("stay"):
        own = own.set_index(began + pd.to_timedelta(own["time"], unit="h")).sort_index()
        last = own[schema.inputs].resample(pd.Timedelta(hours=schema.step), origin="epoch").last()
        for at, row in last.iterrows():
            step = int((pd.Timestamp(str(at)) - began) / pd.Timedelta(hours=schema.step))
            if step < schema.steps:
                found[int(str(stay)) - 1, :, step] = row
    return found
