"""Measured scores: what real voters found when real hospitals' candidates were put before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from consilium_cli.economics.errors import RulesInvalid

Integers = NDArray[np.int64]


class Conduct(StrEnum):
    """What a hospital sends."""

    HONEST = "honest"
    ZERO = "zero"  # no change at all
    NOISE = "noise"  # noise of an honest update's length
    SIGN_FLIP = "sign-flip"  # its update turned round and stretched tenfold, then clipped
    LABEL_FLIP = "label-flip"  # trained on its rows with every label turned


@dataclass(frozen=True)
class Bank:
    """Scores in millionths. `scores[conduct, size, deviants]` is of cohorts of `size` hospitals of which `deviants`
    behave like that and the others honestly: (tasks, rounds, cohorts, voters). `canaries` likewise, with canaries in
    the place of cohorts. A voter is the same one throughout a round, so what its rows have in common stays in.
    """

    scores: Mapping[tuple[Conduct, int, int], Integers]
    truth: Mapping[tuple[Conduct, int, int], Integers]  # on all held-out rows: (tasks, rounds, cohorts)
    canaries: Integers
    rows_per_voter: int

    @property
    def tasks(self) -> int:
        return int(self.canaries.shape[0])

    @property
    def voters(self) -> int:
        return int(self.canaries.shape[-1])

    def of(self, conduct: Conduct, size: int, deviants: int) -> Integers:
        """Raises RulesInvalid for a cohort size that was not measured."""
        key = (Conduct.HONEST, size, 0) if deviants == 0 or conduct is Conduct.HONEST else (conduct, size, deviants)
        if key not in self.scores:
            measured = sorted({size for _, size, _ in self.scores})
            raise RulesInvalid("cohort_size", size, f"was not measured; measured are {measured}")
        return self.scores[key]

    def forecast(self, size: int) -> Integers:
        """Median honest improvement per round of a task: what anybody can learn from earlier tasks."""
        return np.asarray(np.median(self.truth[Conduct.HONEST, size, 0], axis=(0, 2)), dtype=np.int64)

    def summary(self, size: int, canary_line: int) -> list[dict[str, Any]]:
        """Per round of a task: improvement of honest cohorts, spread between cohorts, and a voter's noise."""
        truth, scores = self.truth[Conduct.HONEST, size, 0], self.scores[Conduct.HONEST, size, 0]
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
                "canary_score_mean": round(float(self.canaries[:, r].mean()) / 1e6, 4) if r else None,
                "honest_fail_canary": round(float((self.canaries[:, r] >= canary_line).mean()), 4) if r else None,
            }
            for r in range(truth.shape[1])
        ]
