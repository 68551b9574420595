"""Bases against vectors of an independent program, and as a codec has to be: linear, adjoint, the same in parts."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_zk.basis import CHUNKS, Basis, Cosines, CountSketch, Dense, Hashed, LowRank, Shapes, Shared
from consilium_zk.errors import ArgumentInvalid, ShapeWrong
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dct

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "basis.json").read_text(encoding="utf-8"))
SEED = bytes(range(32))
SHAPES: Shapes = {"a.weight": (7, 30), "a.bias": (7,), "conv": (4, 2, 3, 3), "last": (2, 4)}
PARAMETERS = 7 * 30 + 7 + 4 * 18 + 8


def of_case(case: dict[str, Any]) -> Basis:
    shapes = {name: tuple(shape) for name, shape in case["shapes"].items()}
    seed, codec = bytes.fromhex(case["seed"]), case["codec"]
    if codec["name"] == "hash":
        return Hashed(seed, sum(int(np.prod(shape)) for shape in shapes.values()), codec["buckets"])
    if codec["name"] == "dct":
        return Cosines(seed, shapes, codec["chunk"], codec["kept"])
    if codec["name"] == "sketch":
        return CountSketch(seed, shapes["only"][0], codec["rows"], codec["columns"], codec["kept"])
    return LowRank(seed, shapes, codec["rank"], codec["dense"])


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: "-".join(map(str, case["codec"].values())))
def test_every_machine_gets_these_bits(case: dict[str, Any]) -> None:
    basis = of_case(case)
    coordinates = (np.arange(basis.size) * 7919 % 2_001 - 1_000) / 512
    if isinstance(basis, CountSketch):
        found = np.concatenate(basis.decoded(coordinates)) + 0.0
    else:
        found = basis.spread(coordinates, 0, basis.parameters) + 0.0
    assert {at: float(found[int(at)]).hex() for at in case["values"]} == case["values"]
    assert hashlib.sha256(found.astype("<f8").tobytes()).hexdigest() == case["sha256"]


@st.composite
def bases(draw: st.DrawFn) -> Basis:
    seed = draw(st.binary(min_size=32, max_size=32))
    kind = draw(st.sampled_from(["dense", "hash", "lowrank", "dct", "shared"]))
    if kind == "dense":
        return Dense(PARAMETERS)
    if kind == "hash":
        return Hashed(seed, PARAMETERS, draw(st.integers(1, PARAMETERS)))
    if kind == "shared":
        return Shared(SHAPES, draw(st.lists(st.sampled_from(list(SHAPES)), unique=True, max_size=len(SHAPES) - 1)))
    if kind == "dct":
        chunk = draw(st.sampled_from(CHUNKS[:8]))
        return Cosines(seed, SHAPES, chunk, draw(st.integers(1, chunk - 1)))
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


@pytest.mark.parametrize("kind", ["hash", "lowrank", "dct"])
def test_a_learning_rate_keeps_its_meaning(kind: str) -> None:
    """E[B·Bᵀ] = I over seeds, so the mean of many draws moves as plain training does."""
    gradient = numbers(PARAMETERS, 1).astype(np.float32)
    total, draws = np.zeros(PARAMETERS), 4_000
    for draw in range(draws):
        seed = hashlib.sha256(draw.to_bytes(4, "big")).digest()
        bases: dict[str, Callable[[bytes], Basis]] = {
            "hash": lambda seed: Hashed(seed, PARAMETERS, 60),
            "lowrank": lambda seed: LowRank(seed, SHAPES, 6),
            "dct": lambda seed: Cosines(seed, SHAPES, 8, 2),
        }
        basis = bases[kind](seed)
        total += basis.spread(basis.gather(gradient).astype(np.float64), 0, PARAMETERS)
    assert np.abs(total / draws - gradient).max() < 0.25  # five deviations of √(p/k)/√draws


def test_seeds_and_tensors_draw_different_signs() -> None:
    coordinates = np.ones(60)
    one, other = (Hashed(seed, PARAMETERS, 60).spread(coordinates, 0, PARAMETERS) for seed in (SEED, bytes(32)))
    assert 0.3 < np.mean(one != other) < 0.7
    twins = LowRank(SEED, {"a": (1, 400), "b": (1, 400)}, 1)
    both = twins.spread(np.ones(2), 0, 800)
    assert 0.3 < np.mean(both[:400] != both[400:]) < 0.7


def test_all_cosines_but_one_leave_the_part_of_that_one() -> None:
    """With a factor of √(8 / 7), as scipy's DCT has it; a rest of a tensor stays whole."""
    basis, values = Cosines(SEED, {"only": (3, 9)}, 8, 7), numbers(27, 0)
    through = basis.spread(basis.gather(values.astype(np.float32)).astype(np.float64), 0, 27)
    np.testing.assert_allclose(through[24:], values[24:], rtol=1e-6)
    missing = dct((through[:24] * 7 / 8 - values[:24]).reshape(3, 8), norm="ortho")
    assert (np.abs(missing) > 1e-5).any(axis=0).sum() == 1


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from([1, 3, 5]), st.integers(5, 60))
def test_a_sketch_of_a_sum_is_the_sum_of_sketches_and_decoding_loses_nothing(
    seed: int, kept: int, rows: int, columns: int
) -> None:
    basis = CountSketch(SEED, 60, rows, columns, kept)
    one, other = (np.rint(100 * numbers(60, seed + k)) for k in (0, 1))
    whole = basis.sketched(one + other)
    np.testing.assert_array_equal(whole, basis.sketched(one) + basis.sketched(other))
    found, rest = basis.decoded(whole)
    assert np.count_nonzero(found) <= kept
    np.testing.assert_array_equal(basis.sketched(found) + rest, whole)
    sizes = np.abs(basis.spread(whole, 0, 60))
    assert sizes[found == 0].max(initial=0) <= np.abs(found[found != 0]).min(initial=np.inf)


def test_a_sketch_finds_the_large_among_the_many_and_the_first_of_equals() -> None:
    basis = CountSketch(SEED, 2_000, 5, 200, 10)
    values = numbers(2_000, 1) / 50
    places = [3, 500, 501, 1_000, 1_999]
    values[places] = [9, -8, 7, -6, 5]
    found, _ = basis.decoded(basis.sketched(values))
    np.testing.assert_allclose(found[places], values[places], atol=0.3)
    lone, _ = CountSketch(SEED, 50, 1, 1, 3).decoded(np.array([2.0]))
    assert np.flatnonzero(lone).tolist() == [0, 1, 2]


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
    for local in (["b"], list(SHAPES)):
        with pytest.raises(ArgumentInvalid, match="local"):
            Shared(SHAPES, local)
    for chunk, kept, said in ((6, 2, "chunk"), (2_048, 2, "chunk"), (8, 8, "kept"), (8, 0, "kept")):
        with pytest.raises(ArgumentInvalid, match=said):
            Cosines(SEED, SHAPES, chunk, kept)
    for rows, kept, said in ((2, 1, "rows"), (-1, 1, "rows"), (3, 0, "kept"), (3, PARAMETERS + 1, "kept")):
        with pytest.raises(ArgumentInvalid, match=said):
            CountSketch(SEED, PARAMETERS, rows, 9, kept)
    sketch = CountSketch(SEED, PARAMETERS, 3, 9, 5)
    for basis in (Hashed(SEED, PARAMETERS, 9), LowRank(SEED, SHAPES, 2), Cosines(SEED, SHAPES, 8, 2), sketch):
        with pytest.raises(ShapeWrong, match="coordinates"):
            basis.spread(np.zeros(basis.size + 1), 0, 1)
        with pytest.raises(ShapeWrong, match="coordinates"):
            basis.spread(np.zeros(basis.size, dtype=np.float32), 0, 1)
