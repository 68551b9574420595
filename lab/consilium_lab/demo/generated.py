"""Generated rows, for a demo of a question that no free data set of several hospitals asks: nobody's data."""

from __future__ import annotations

import numpy as np
import pandas as pd
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.questions import Survival

from consilium_lab.demo.datasets import DemoData

ROWS, HELD_OUT = 1_200, 0.3
HAZARDS = {"age": 0.4, "marker": 0.7, "treated": -0.8, "stage": 0.5}  # of the log hazard: by deviation, or by step
MEDIAN_DAYS, LAST_NEWS = 700.0, (90.0, 1_500.0)  # of an average patient; of the day that follow-up ends

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=18, max=100, mean=60, deviation=12),
        NumericFeature(name="marker", min=0, max=60, mean=20, deviation=6),
        CategoryFeature(kind="category", name="treated", values=["no", "yes"]),
        CategoryFeature(kind="category", name="stage", values=[1, 2, 3]),
    ],
    question=Survival(
        kind="survival", time="days", event="recurred", bounds=[180, 365, 545, 730, 1095], unit="days"
    ),
)  # fmt: skip


def deal_recurrence(hospitals: int, voters: int, seed: int) -> DemoData:
    """Days until a recurrence, exponential with proportional hazards; follow-up ends on a uniform day.

    The hospitals' mean ages differ, and the first has twice as many rows as the last.
    """
    random = np.random.default_rng(seed)
    shares = np.linspace(1.0, 0.5, hospitals)
    ends = np.rint(np.cumsum(shares) / shares.sum() * ROWS * (1 - HELD_OUT)).astype(int)
    sites = np.searchsorted(ends, np.arange(ROWS), side="right")  # the last one is the voters', of any age
    rows = _drawn(random, ROWS, np.append(random.normal(0, 4, hospitals), 0.0)[sites])
    *parts, held_out = (rows[sites == site] for site in range(hospitals + 1))
    return DemoData(
        name="recurrence",
        description="generated rows of no real patient: how long until a tumour recurs",
        schema=SCHEMA,
        hospital_names=[f"hospital-{number + 1}" for number in range(hospitals)],
        hospitals=[part.reset_index(drop=True) for part in parts],
        held_out=[held_out.iloc[at::voters].reset_index(drop=True) for at in range(voters)],
    )


def _drawn(random: np.random.Generator, rows: int, older: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pd.DataFrame:
    """`older`: years by which the mean age of each row's site is above 60, (n,)."""
    age = np.clip(random.normal(60 + older, 12), 18, 100)
    marker = np.clip(random.normal(20, 6, rows), 0, 60)
    treated, stage = random.integers(0, 2, rows), random.integers(1, 4, rows)
    by_column = {"age": (age - 60) / 12, "marker": (marker - 20) / 6, "treated": treated - 0.5, "stage": stage - 2}
    hazard = np.log(2) / MEDIAN_DAYS * np.exp(sum(HAZARDS[name] * value for name, value in by_column.items()))
    until, last = random.exponential(1 / hazard), random.uniform(*LAST_NEWS, rows)
    return pd.DataFrame(
        {
            "age": age.round(1), "marker": marker.round(2), "treated": np.where(treated, "yes", "no"), "stage": stage,
            "days": np.ceil(np.minimum(until, last)).astype(int), "recurred": (until <= last).astype(int),
        }
    )  # fmt: skip
