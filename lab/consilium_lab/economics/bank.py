"""Measured scores: real voters' scores of real hospitals' candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilium_lab.errors import LabError

Integers = NDArray[np.int64]


NO_MODEL = 1 - 2**31  # score of a decoy out of range, for INVALID_SCORE: products of it stay within 64 bits


class Conduct(StrEnum):
    """The update that a hospital sends."""

    HONEST = "honest"
    ZERO = "zero"  # no change at all
    NOISE = "noise"  # noise of an honest update's length
    SIGN_FLIP = "sign-flip"  # its update times −10, then clipped
    LABEL_FLIP = "label-flip"  # trained on its rows with every label flipped


Kind = tuple[Conduct, int, int]


@dataclass(frozen=True)
class Bank:
    """Scores in millionths. `scores[conduct, size, deviants]`: scores of cohorts of `size` hospitals, of which
    `deviants` behave so and the others are honest, (tasks, rounds, cohorts, voters). `decoys`: the same of those
    cohorts' decoys. A voter keeps its rows throughout a round, so its scores are correlated.
    """

    scores: Mapping[Kind, Integers]
    decoys: Mapping[Kind, Integers]
    truth: Mapping[Kind, Integers]  # the scores on all held-out rows: (tasks, rounds, cohorts)
    rows_per_voter: int

    @property
    def tasks(self) -> int:
        return len(self._honest(1))

    @property
    def voters(self) -> int:
        return int(self._honest(1).shape[-1])

    def of(self, conduct: Conduct, size: int, deviants: int) -> tuple[Integers, Integers]:
        """Scores of such cohorts and of their decoys. Raises LabError (RulesInvalid) for an unmeasured size."""
        key = (Conduct.HONEST, size, 0) if deviants == 0 or conduct is Conduct.HONEST else (conduct, size, deviants)
        if key not in self.scores:
            measured = sorted({size for _, size, _ in self.scores})
            why = f"was not measured; measured are {measured}"
            raise LabError("RulesInvalid", field="cohort_size", value=size, why=why)
        return self.scores[key], self.decoys[key]

    def forecast(self, size: int) -> Integers:
        """Median honest improvement per round of a task, as earlier tasks show it."""
        return np.asarray(np.median(self.truth[Conduct.HONEST, size, 0], axis=(0, 2)), dtype=np.int64)

    def honest_fails(self, size: int, cohorts: int, late: bool) -> float:
        """Chance that an honest voter rates a decoy no worse than its sum in a round of so many cohorts."""
        part = slice(-1 if late else None, None)
        scores, decoys = self.of(Conduct.HONEST, size, 0)
        fails = (scores[:, part] <= decoys[:, part]).mean()
        return float(1 - (1 - fails) ** cohorts)

    def _honest(self, size: int) -> Integers:
        return self.scores[Conduct.HONEST, size, 0]

    def summary(self, size: int) -> list[dict[str, Any]]:
        """Per round of a task: improvement of honest cohorts, spread between cohorts, a voter's noise, and
        voters' scores of the decoys.
        """
        truth, scores = self.truth[Conduct.HONEST, size, 0], self._honest(size)
        decoys = self.decoys[Conduct.HONEST, size, 0]
        noise = (scores - truth[..., None]) / 1e6
        centred = noise - noise.mean(axis=2, keepdims=True)
        return [
            {
                "round": r + 1,
                "improvement_mean": round(float(truth[:, r].mean()) / 1e6, 4),
                "improvement_sd_between_cohorts": round(float(truth[:, r].std(axis=-1).mean()) / 1e6, 4),
                "voter_noise_sd": round(float(noise[:, r].std()), 4),
                "of_which_common_to_a_voters_scores": round(
                    float(np.sqrt(max(noise[:, r].var() - centred[:, r].var(), 0))), 4
                ),
                "voter_noise_kurtosis": round(float((noise[:, r] ** 4).mean() / noise[:, r].var() ** 2), 1),
                "decoy_score_median": round(float(np.median(decoys[:, r])) / 1e6, 4),
                "decoys_out_of_range": round(float((decoys[:, r] == NO_MODEL).mean()), 4),
                "honest_rate_decoy_no_worse": round(float((scores[:, r] <= decoys[:, r]).mean()), 6),
            }
            for r in range(truth.shape[1])
        ]
