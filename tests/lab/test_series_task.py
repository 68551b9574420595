"""A whole small task on time series: rounds, judging and pay, from folders as hospitals and voters have them."""

from __future__ import annotations

from pathlib import Path

import consilium
import numpy as np
import pandas as pd
from series_files import write

TASK = b"""
name = "icu"
statistics = "exact"
[data]
kind = "series"
label = "died"
classes = ["no", "yes"]
steps = 6
step = 2
[[data.features]]
name = "heart_rate"
min = 0
max = 250
[[data.features]]
name = "lactate"
min = 0
max = 30
[model]
name = "tcn"
channels = [4]
[training]
epochs = 3
learning_rate = 0.1
batch_size = 8
[rounds]
rounds = 2
min_hospitals = 3
max_hospitals = 3
rows_per_weight = 10
[judging]
metric = "log_loss"
[money]
pool = 1_000
"""


def rising(path: Path, seed: int, stays: int = 60) -> Path:
    """The heart rate of those who die rises."""
    random = np.random.default_rng(seed)
    died = random.integers(0, 2, stays)
    frame = pd.DataFrame({"stay": np.repeat(np.arange(stays), 8), "time": random.uniform(0, 12, stays * 8).round(2)})
    slope = np.where(died[frame["stay"]] == 1, 8, -2)
    frame["heart_rate"] = (80 + slope * frame["time"] + random.normal(0, 5, len(frame))).clip(0, 250).round(1)
    frame["lactate"] = np.where(random.random(len(frame)) < 0.2, random.uniform(0, 20, len(frame)).round(2), np.nan)
    return write(path, frame, pd.DataFrame({"stay": range(stays), "died": died}), "parquet" if seed % 2 else "csv")


def test_hospitals_learn_from_series_and_are_paid(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_bytes(TASK)
    task = consilium.Task.read(tmp_path / "task.toml")
    sites = {f"hospital {at}": rising(tmp_path / f"h{at}", at) for at in range(3)}
    voters = {f"voter {at}": rising(tmp_path / f"v{at}", 10 + at) for at in range(5)}
    found = consilium.simulate(task, sites=sites, voters=voters, seed=1)
    assert found.bases == consilium.simulate(task, sites=sites, voters=voters, seed=1).bases
    assert found.rounds["accepted"].sum() > 0
    assert found.metrics["auc"]["together"] > max(0.8, found.metrics["auc"]["start"])
    assert (found.parties["slashed"] == 0).all()
    assert found.parties["paid"]["hospital 0"] > 0
