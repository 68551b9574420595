"""Bases against vectors of an independent program, and as a codec has to be: linear, adjoint, the same in parts."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_zk.basis import Basis, Dense, Hashed, LowRank, Shapes
from consilium_zk.errors import ArgumentInvalid, ShapeWrong
from hypothesis import given
from hypothesis import strategies as st

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "basis.json").read_text(encoding="utf-8"))
SEED = bytes(range(32))
SHAPES: Shapes = {"a.weight": (7, 30), "a.bias": (7,), "conv": (4, 2, 3, 3), "last": (2, 4)}
PARAMETERS = 7 * 30 + 7 + 4 * 18 + 8


def of_case(case: dict[str, Any]) -> Basis:
    shapes = {name: tuple(shape) for name, shape in case["shapes"].items()}
    seed, codec = bytes.fromhex(case["seed"]), case["codec"]
    if codec["name"] == "hash":
        return Hashed(seed, sum(int(np.prod(shape)) for shape in shapes.values()), codec["buckets"])
    return LowRank(seed, shapes, codec["rank"], codec["dense"])


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: "-".join(map(str, case["codec"].values())))
def test_every_machine_gets_these_bits(case: dict[str, Any]) -> None:
    basis = of_case(case)
    coordinates = (np.arange(basis.size) * 7919 % 2_001 - 1_000) / 512
    found = basis.spread(coordinates, 0, basis.parameters) + 0.0
    assert {at: float(found[int(at)]).hex() for at in case["values"]} == case["values"]
    assert hashlib.sha256(found.astype("<f8").tobytes()).hexdigest() == case["sha256"]


@st.composite
def bases(draw: st.DrawFn) -> Basis:
    seed = draw(st.binary(min_size=32, max_size=32))
    kind = draw(st.sampled_from(["dense", "hash", "lowrank"]))
    if kind == "dense":
        return Dense(PARAMETERS)
    if kind == "hash":
        return Hashed(seed, PARAMETERS, draw(st.integers(1, PARAMETERS)))
    return LowRank(seed, SHAPES, draw(st.integers(1, 40)), draw(st.lists(st.sampled_from(list(SHAPES)), unique=True)))


def numbers(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count)


@given(bases(), st.integers(0, 2**32), st.lists(st.integers(0, PARAMETERS), max_size=6))
def test_parts_are_the_whole(basis: Basis, seed: int, cuts: list[int]) -> None:
    coordinates = numbers(basis.size, seed)
    ends = [0, *sorted(cuts), basis.parameters]
    parts = [basis.spread(coordinates, a, b) for a, b in itertools.pairwise(ends)]
    assert np.concatenate(parts).tobytes() == basis.spread(coordinates, 0, basis.parameters).tobytes()


@given(bases(), st.integers(0, 2**32))
def test_gathering_is_the_adjoint_of_spreading(basis: Basis, seed: int) -> None:
    """⟨B·z, g⟩ = ⟨z, Bᵀ·g⟩: a step on the coordinates is the gradient's own within the basis."""
    coordinates, gradient = numbers(basis.size, seed), numbers(basis.parameters, seed + 1).astype(np.float32)
    there = basis.spread(coordinates, 0, basis.parameters) @ gradient.astype(np.float64)
    back = coordinates @ basis.gather(gradient).astype(np.float64)
    assert there == pytest.approx(back, rel=1e-4, abs=1e-3)


@given(bases(), st.integers(0, 2**32), st.integers(-20, 20), st.integers(-20, 20))
def test_a_sum_of_updates_is_the_update_of_their_sum(basis: Basis, seed: int, a: int, b: int) -> None:
    """Of integers, as lanes are, and up to a last rounding of 1 / √r."""
    one, other = (np.rint(100 * numbers(basis.size, seed + k)) for k in (0, 1))
    whole = basis.spread(a * one + b * other, 0, basis.parameters)
    parts = a * basis.spread(one, 0, basis.parameters) + b * basis.spread(other, 0, basis.parameters)
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", ["hash", "lowrank"])
def test_a_learning_rate_keeps_its_meaning(kind: str) -> None:
    """E[B·Bᵀ] = I over seeds, so the mean of many draws moves as plain training does."""
    gradient = numbers(PARAMETERS, 1).astype(np.float32)
    total, draws = np.zeros(PARAMETERS), 4_000
    for draw in range(draws):
        seed = hashlib.sha256(draw.to_bytes(4, "big")).digest()
        basis: Basis = Hashed(seed, PARAMETERS, 60) if kind == "hash" else LowRank(seed, SHAPES, 6)
        total += basis.spread(basis.gather(gradient).astype(np.float64), 0, PARAMETERS)
    assert np.abs(total / draws - gradient).max() < 0.25  # five deviations of √(p/k)/√draws


def test_seeds_and_tensors_draw_different_signs() -> None:
    coordinates = np.ones(60)
    one, other = (Hashed(seed, PARAMETERS, 60).spread(coordinates, 0, PARAMETERS) for seed in (SEED, bytes(32)))
    assert 0.3 < np.mean(one != other) < 0.7
    twins = LowRank(SEED, {"a": (1, 400), "b": (1, 400)}, 1)
    both = twins.spread(np.ones(2), 0, 800)
    assert 0.3 < np.mean(both[:400] != both[400:]) < 0.7


def test_nonsense_is_refused() -> None:
    for size in (0, PARAMETERS + 1):
        with pytest.raises(ArgumentInvalid, match="size"):
            Hashed(SEED, PARAMETERS, size)
    with pytest.raises(ShapeWrong, match="seed"):
        Hashed(SEED[:31], PARAMETERS, 3)
    with pytest.raises(ArgumentInvalid, match="rank"):
        LowRank(SEED, SHAPES, 0)
    with pytest.raises(ArgumentInvalid, match=r"b\.weight"):
        LowRank(SEED, SHAPES, 2, ["b.weight"])
    for basis in (Hashed(SEED, PARAMETERS, 9), LowRank(SEED, SHAPES, 2)):
        with pytest.raises(ShapeWrong, match="coordinates"):
            basis.spread(np.zeros(basis.size + 1), 0, 1)
        with pytest.raises(ShapeWrong, match="coordinates"):
            basis.spread(np.zeros(basis.size, dtype=np.float32), 0, 1)
