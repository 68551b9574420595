"""A newcomer's table: two hundred made-up patients of four hospitals."""

from __future__ import annotations

import numpy as np
import pandas as pd

SITES = ("north", "south", "east", "west")


def patients(rows: int = 200, seed: int = 1) -> pd.DataFrame:
    """Deaths by age, creatinine, sex and smoking, with identities, gaps and four hospitals."""
    random = np.random.default_rng(seed)
    age, creatinine = random.integers(20, 95, rows), np.round(random.lognormal(0, 0.5, rows), 2)
    sex, smoker = random.choice(["F", "M"], rows), random.choice(["no", "former", "yes"], rows)
    risk = (age - 65) / 12 + 1.5 * (creatinine - 1.1) + 0.4 * (smoker == "yes") + random.normal(0, 0.8, rows)
    wbc = [f"{value:.1f}" if value > 5 else "NA" for value in random.normal(8, 2, rows)]
    return pd.DataFrame(
        {
            "patient_id": [f"P{number:04d}" for number in range(rows)], "hospital": random.choice(SITES, rows),
            "age": age, "sex": sex, "creatinine": creatinine, "wbc": wbc, "smoker": smoker,
            "died": np.where(risk > 0, "yes", "no"),
        }
    )  # fmt: skip
