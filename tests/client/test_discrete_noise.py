"""Discrete Gaussian noise: the exact distribution, and the cost that the accountant gives it."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from consilium_chain.tasks.summary_spec import ORDERS, SummarySpec
from consilium_client.privacy import discrete_noise
from consilium_client.privacy.dp_sgd import Mechanism, epsilon
from numpy.typing import NDArray
from scipy.stats import chisquare

DRAWS = 20_000


def chances(variance: int, reach: int) -> NDArray[np.float64]:
    """Of -reach … reach, normed over so many that the rest has no weight."""
    far = np.arange(-40 * math.isqrt(variance) - 40, 40 * math.isqrt(variance) + 41)
    weights = np.exp(-(far.astype(float) ** 2) / (2 * variance))
    found: NDArray[np.float64] = weights[np.abs(far) <= reach] / weights.sum()
    return found


@pytest.mark.parametrize("variance", [1, 2, 7, 246])
def test_draws_have_the_exact_distribution(variance: int) -> None:
    below = random.Random(variance).randrange
    drawn = [discrete_noise.discrete_gaussian(variance, below) for _ in range(DRAWS)]
    reach = 2 * math.isqrt(variance) + 1
    expected = chances(variance, reach) * DRAWS
    counts = Counter(drawn)
    seen = np.array([counts[value] for value in range(-reach, reach + 1)])
    both = [np.append(one, DRAWS - one.sum()) for one in (seen, expected)]
    assert chisquare(*both).pvalue > 1e-3
    assert abs(np.mean(drawn)) < 4 * math.sqrt(variance / DRAWS)


@pytest.mark.parametrize("scale", [1, 5])
def test_discrete_laplace_has_the_exact_distribution(scale: int) -> None:
    below = random.Random(scale).randrange
    counts = Counter(discrete_noise.discrete_laplace(scale, below) for _ in range(DRAWS))
    far = np.arange(-60 * scale, 60 * scale + 1)
    weights = np.exp(-np.abs(far) / scale)
    reach = 4 * scale
    expected = weights[np.abs(far) <= reach] / weights.sum() * DRAWS
    seen = np.array([counts[value] for value in range(-reach, reach + 1)])
    both = [np.append(one, DRAWS - one.sum()) for one in (seen, expected)]
    assert chisquare(*both).pvalue > 1e-3


def test_a_draw_asks_the_operating_system_for_integers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def below(most: int) -> int:
        asked.append(most)
        return random.Random(len(asked)).randrange(most)

    assert discrete_noise.noise(20, 50, below).dtype == np.int64
    assert {type(most) for most in asked} == {int}
    assert not discrete_noise.noise(5, 0).any()
    assert discrete_noise.noise(30, 10_000).any()  # of the operating system


@pytest.mark.parametrize("changed", [2, 15, 200])
@pytest.mark.parametrize("bound", [0.3, 1.0, 8.0])
def test_the_noise_costs_what_the_task_allows_and_hardly_less(bound: float, changed: int) -> None:
    variance = SummarySpec(epsilon=bound, delta=1e-6).variance(changed)
    cost = epsilon([Mechanism(math.sqrt(variance / changed), 1.0, 1)], 1e-6)
    assert cost <= bound
    less = math.sqrt((variance - max(1, variance // 20)) / changed)  # a twentieth less variance
    assert epsilon([Mechanism(less, 1.0, 1)], 1e-6) > bound or variance < 20


@pytest.mark.parametrize("variance", [3, 40])
def test_the_accountants_divergence_bounds_that_of_the_drawn_distribution(variance: int) -> None:
    """Of two neighbours' counts, which differ by one: at every order that the accountant tries."""
    far = np.arange(-3_000, 3_001).astype(float)
    for order in (2.0, 8.0, 63.0):
        assert order in ORDERS
        logs, shifted = -(far**2) / (2 * variance), -((far - 1) ** 2) / (2 * variance)
        mixed = order * logs + (1 - order) * shifted
        total = np.logaddexp.reduce(mixed) - order * np.logaddexp.reduce(logs)
        total -= (1 - order) * np.logaddexp.reduce(shifted)
        assert total / (order - 1) <= order / (2 * variance) + 1e-12
