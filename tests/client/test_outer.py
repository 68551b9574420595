"""The outer step against the formulas of its papers, in exact or double arithmetic, and against committed bits."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.outer_specs import AdamSpec, MeanSpec, MomentumSpec, NesterovSpec, OuterSpec, SignSpec
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models.outer import Outer, State, outer_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from pydantic import TypeAdapter
from task_files import DATA

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "outer.json").read_text(encoding="utf-8"))
SPEC = TypeAdapter[MeanSpec | MomentumSpec | AdamSpec | NesterovSpec | SignSpec](OuterSpec)
Reals = NDArray[np.float64]
VALUES = st.floats(-8, 8, width=32)
RATES, DECAYS = st.floats(1e-3, 10), st.floats(0, 0.99)


def played(outer: Outer, initial: NDArray[np.float32], means: list[Reals]) -> State:
    state = outer.begin(initial)
    for mean in means:
        state = outer.after(state, mean.__getitem__)
    return state


@st.composite
def rounds(draw: st.DrawFn) -> tuple[NDArray[np.float32], list[Reals]]:
    size, number = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    initial = draw(arrays(np.float32, size, elements=VALUES))
    return initial, [draw(arrays(np.float64, size, elements=st.floats(-4, 4))) for _ in range(number)]


@given(rounds())
def test_mean_is_fedavg_bit_for_bit(played_of: tuple[NDArray[np.float32], list[Reals]]) -> None:
    initial, means = played_of
    model = initial.copy()
    for mean in means:
        model = model + mean.astype(np.float32)
    assert played(outer_of(MeanSpec()), initial, means).model.tobytes() == model.tobytes()


@given(rounds(), RATES, DECAYS)
def test_momentum_is_fedavgm(played_of: tuple[NDArray[np.float32], list[Reals]], rate: float, decay: float) -> None:
    """Hsu et al., 2019: v_t = β v_(t-1) + Δ_t, so that after n rounds x has moved by η Σ Δ_s (1 + … + β^(n-s))."""
    initial, means = played_of
    found = played(outer_of(MomentumSpec(name="momentum", learning_rate=rate, momentum=decay)), initial, means).model
    number = len(means)
    weights = [sum(decay**power for power in range(number - s)) for s in range(number)]
    moved = sum(weight * mean for weight, mean in zip(weights, means, strict=True))
    scale = 8 + rate * sum(weight * 4 for weight in weights)
    np.testing.assert_allclose(found, initial + rate * np.asarray(moved), rtol=0, atol=1e-5 * scale)


@given(rounds(), RATES, DECAYS, DECAYS, st.floats(1e-3, 1))
def test_adam_is_fedadam(
    played_of: tuple[NDArray[np.float32], list[Reals]], rate: float, first: float, second: float, tau: float
) -> None:
    """Reddi et al., 2021, algorithm 2, in double precision: moments written as sums over all rounds."""
    initial, means = played_of
    spec = AdamSpec(name="adam", learning_rate=rate, beta1=first, beta2=second, tau=tau)
    x = initial.astype(np.float64)
    for n in range(1, len(means) + 1):
        m = (1 - first) * sum(first ** (n - 1 - s) * means[s] for s in range(n))
        v = second**n * tau**2 + (1 - second) * sum(second ** (n - 1 - s) * means[s] ** 2 for s in range(n))
        x = x + rate * m / (np.sqrt(v) + tau)
    found = played(outer_of(spec), initial, means).model
    np.testing.assert_allclose(found, x, rtol=2e-4, atol=1e-4 * (1 + rate / tau))


@given(rounds(), RATES, st.floats(0.01, 0.99))
def test_nesterov_is_diloco(played_of: tuple[NDArray[np.float32], list[Reals]], rate: float, momentum: float) -> None:
    """Douillard et al., 2023: torch's SGD(nesterov=True), in double precision, on the negative means."""
    initial, means = played_of
    weight = torch.nn.Parameter(torch.from_numpy(initial.astype(np.float64)))
    optimizer = torch.optim.SGD([weight], lr=rate, momentum=momentum, nesterov=True)
    for mean in means:
        weight.grad = torch.from_numpy(-mean)
        optimizer.step()
    spec = NesterovSpec(name="nesterov", learning_rate=rate, momentum=momentum, fading=1)
    found, scale = played(outer_of(spec), initial, means).model, 8 + rate * 4 * len(means) ** 2
    np.testing.assert_allclose(found, weight.detach().numpy(), rtol=0, atol=1e-5 * scale)


@given(rounds(), RATES, DECAYS, st.floats(0.1, 1))
def test_a_momentum_that_fades_is_the_tasks_times_a_power_of_the_round(
    played_of: tuple[NDArray[np.float32], list[Reals]], rate: float, momentum: float, fading: float
) -> None:
    """Δ_s counts in round t with the product of the momenta of rounds s + 1 to t, and once more by that of round t."""
    initial, means = played_of
    faded = [momentum * fading**number for number in range(len(means))]
    moved = np.zeros(len(initial))
    for t in range(len(means)):
        velocity = sum((math.prod(faded[s + 1 : t + 1]) * means[s] for s in range(t + 1)), np.zeros(len(initial)))
        moved = moved + faded[t] * velocity + means[t]
    spec = NesterovSpec(name="nesterov", learning_rate=rate, momentum=momentum, fading=fading)
    found, scale = played(outer_of(spec), initial, means).model, 8 + rate * 4 * len(means) ** 2
    np.testing.assert_allclose(found, initial + rate * moved, rtol=0, atol=1e-5 * scale)


@given(rounds(), st.floats(0.1, 1))
def test_nesterov_without_momentum_at_full_rate_is_the_mean_bit_for_bit(
    played_of: tuple[NDArray[np.float32], list[Reals]], fading: float
) -> None:
    spec = NesterovSpec(name="nesterov", learning_rate=1, momentum=0, fading=fading)
    plain, still = (played(outer_of(one), *played_of).model for one in (MeanSpec(), spec))
    assert plain.tobytes() == still.tobytes()


@given(rounds(), RATES)
def test_sign_moves_each_value_by_its_means_sign(
    played_of: tuple[NDArray[np.float32], list[Reals]], rate: float
) -> None:
    initial, means = played_of
    ways = sum(np.sign(mean.astype(np.float32)) for mean in means)
    found = played(outer_of(SignSpec(name="sign", learning_rate=rate)), initial, means).model
    np.testing.assert_allclose(found, initial + rate * np.asarray(ways), rtol=0, atol=1e-5 * (8 + 5 * rate))


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["outer"]["name"])
def test_every_machine_gets_these_bits(case: dict[str, object]) -> None:
    """More values than one chunk has, so that chunks meet somewhere."""
    outer = outer_of(SPEC.validate_python(case["outer"]))
    count = np.arange(40_000)
    initial = ((count * 7919 % 2_001 - 1_000) / 500).astype(np.float32)
    means = [(count * step % 4_001 - 2_000) / 1_000 for step in (104_729, 1_299_709, 15_485_863)]
    model = played(outer, initial, means).model
    assert [float(model[place]).hex() for place in (0, 1, 32_767, 32_768, 39_999)] == case["values"]
    assert hashlib.sha256(model.tobytes()).hexdigest() == case["sha256"]


@given(rounds())
def test_a_candidate_is_the_base_and_its_own_mean_whatever_the_outer_step(
    played_of: tuple[NDArray[np.float32], list[Reals]],
) -> None:
    """Else voters would score earlier rounds, and decoys could not be told from their sums."""
    initial, means = played_of
    for spec in (MeanSpec(), MomentumSpec(name="momentum"), AdamSpec(name="adam"), NesterovSpec(name="nesterov")):
        outer = outer_of(spec)
        state = played(outer, initial, means[:-1])
        before = [moment.tobytes() for moment in state.moments]
        found = outer.candidate(state, lambda part: means[-1][part])
        assert found.tobytes() == (state.model + means[-1].astype(np.float32)).tobytes()
        assert [moment.tobytes() for moment in state.moments] == before


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('name = "lookahead"', "mean"),
        ('name = "nesterov"\nmomentum = 1.0', "momentum"),
        ('name = "nesterov"\nfading = 1.5', "fading"),
        ('name = "nesterov"\nfading = 0.0', "fading"),
        ('name = "sign"\nlearning_rate = 0.0', "learning_rate"),
        ('name = "momentum"\nmomentum = 1.0', "momentum"),
        ('name = "momentum"\nbeta1 = 0.9', "beta1"),
        ('name = "adam"\ntau = 0.0', "tau"),
        ('name = "adam"\nlearning_rate = inf', "learning_rate"),
        ('name = "adam"\nbeta2 = nan', "beta2"),
    ],
)
def test_a_task_file_with_another_outer_step_is_refused(lines: str, said: str) -> None:
    with pytest.raises(SpecInvalid, match=said):
        parse_task_spec(f'name = "t"\n{DATA}\n[model]\nname = "logistic"\n[outer]\n{lines}\n'.encode())
