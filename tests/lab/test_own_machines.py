"""Rounds as if every hospital had its own machine: what the definition promises, and Flower's rounds counted by it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.task_spec import spec_hash
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.quantise import Quantiser, clip_norm
from hypothesis import given
from hypothesis import strategies as st

from bench.e2e import round as bench_round
from bench.e2e.own_machines import ServerClock, Stage, hospital_seconds, round_seconds, server_seconds

BENCH = Path(__file__).parents[2] / "bench"

# Integers, in milliseconds say: what is added up in another order is then the same.
SECONDS = st.integers(0, 10**6)


@st.composite
def rounds(draw: st.DrawFn) -> list[Stage]:
    """One to five stages of the same hospitals."""
    hospitals = draw(st.integers(1, 6))
    stages = draw(
        st.lists(st.tuples(SECONDS, st.lists(SECONDS, min_size=hospitals, max_size=hospitals)), min_size=1, max_size=5)
    )
    return [Stage(str(number), server, 0, [*cpu]) for number, (server, cpu) in enumerate(stages)]


@given(rounds())
def test_a_round_waits_for_the_slowest_hospital_and_for_nobody_twice(stages: list[Stage]) -> None:
    """No less than any one hospital's whole work, no more than all work in turn; exactly that for a lone one."""
    of_each = [sum(one) for one in zip(*(stage.cpu_s for stage in stages), strict=True)]
    server = sum(stage.server_s for stage in stages)
    assert server + max(of_each) <= round_seconds(stages) <= server + sum(of_each)
    assert round_seconds(stages) == server_seconds(stages) + hospital_seconds(stages)
    if len(of_each) == 1:
        assert round_seconds(stages) == server + of_each[0]


@given(rounds(), st.randoms())
def test_who_is_slow_in_one_stage_need_not_be_in_the_next(stages: list[Stage], shuffle: random.Random) -> None:
    shuffled = [Stage(one.name, one.server_s, 0, shuffle.sample(one.cpu_s, len(one.cpu_s))) for one in stages]
    assert round_seconds(shuffled) == round_seconds(stages)


@given(rounds())
def test_as_many_equal_hospitals_again_cost_hospitals_nothing(stages: list[Stage]) -> None:
    doubled = [Stage(one.name, one.server_s, 0, one.cpu_s * 2) for one in stages]
    assert round_seconds(doubled) == round_seconds(stages)


@given(rounds())
def test_waiting_in_stages_never_shortens_a_round(stages: list[Stage]) -> None:
    """What one exchange could do costs no less in several."""
    cpu_s = [sum(one) for one in zip(*(stage.cpu_s for stage in stages), strict=True)]
    at_once = Stage("all", sum(stage.server_s for stage in stages), 0, cpu_s)
    assert round_seconds([at_once]) <= round_seconds(stages)


def test_a_stage_without_hospitals_is_the_servers_alone() -> None:
    assert round_seconds([Stage("setup", 2.0)]) == 2.0
    assert round_seconds([]) == 0


@given(st.lists(st.tuples(st.booleans(), SECONDS, SECONDS)))
def test_clock_credits_the_server_with_everything_but_waiting(passed: list[tuple[bool, int, int]]) -> None:
    wall, cpu = [0], [0]
    clock, stage = ServerClock(lambda: wall[0], lambda: cpu[0]), Stage("all")
    for waited, wall_s, cpu_s in passed:
        wall[0] += wall_s
        cpu[0] += cpu_s
        if waited:
            clock.skip()
        else:
            clock.credit(stage)
    assert stage.server_s == sum(wall_s for waited, wall_s, _ in passed if not waited)
    assert stage.server_cpu_s == sum(cpu_s for waited, _, cpu_s in passed if not waited)


# Flower's own rounds

HOSPITALS, ROWS = 3, 100
STAGES = {"plain": ["train"], "secaggplus": ["setup", "share_keys", "collect_masked_vectors", "unmask"]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("round")
    data = bench_round.deal(HOSPITALS, ROWS, 0)
    bench_round.prepare(home, data, bench_round.training_spec(data, 100_000))
    return home


def features_and_labels(home: Path, index: int) -> tuple[Any, Any]:
    with np.load(home / f"rows-{index}.npz", allow_pickle=False) as table:
        return table["features"], table["labels"]


def run(home: Path, name: str, rows: list[str], secure: dict[str, float]) -> tuple[dict[str, Any], Any]:
    (told,), model = bench_round.run(home / name, rows, 1, secure)
    assert list(told["stages"]) == ["configure", *STAGES[name]]
    return told, model


def test_flowers_rounds_differ_by_what_secagg_rounds_and_are_counted_whole(home: Path) -> None:
    """Flower's default: 2²² steps over [−8, 8], of parameters times rows / 1,000; each hospital is off by a step."""
    rows = [str(home / f"rows-{index}.npz") for index in range(HOSPITALS)]
    plain, expected = run(home, "plain", rows, {})
    secure, found = run(home, "secaggplus", rows, {"num_shares": 1.0})
    weight = round(ROWS / 1000 * 2**22) / 2**22
    assert 0 < np.abs(found - expected).max() <= 16 / 2**22 / weight * 1.01  # and float32's own rounding
    for told in (plain, secure):
        stages = told["stages"].values()
        assert told["round_s"] == pytest.approx(sum(one["server_s"] + one["client_cpu_s"] for one in stages))
        assert 0 < told["train_cpu_s"] < told["client_cpu_s"]
        assert told["server_s"] < told["wall_s"]
        assert 50 < told["peak_rss_mb"]["server"] < told["peak_rss_mb"]["client"]  # only hospitals load torch
    parameters = len(expected)
    assert plain["stages"]["train"]["up_mb"] * 2**20 == pytest.approx(4 * parameters, rel=0.01)
    assert secure["stages"]["collect_masked_vectors"]["up_mb"] * 2**20 == pytest.approx(8 * parameters, rel=0.01)


def test_a_hospital_that_dies_ends_the_measurement(home: Path) -> None:
    rows = [str(home / f"rows-{index}.npz") for index in range(HOSPITALS - 1)]
    with pytest.raises(RuntimeError, match=f"hospital {HOSPITALS} ended in round 1"):
        bench_round.run(home / "dead", [*rows, str(home / "nothing.npz")], 1, {})


# The platform's own round


@pytest.mark.deep
def test_a_private_round_is_of_the_same_training_and_is_counted_whole(home: Path) -> None:
    """Masked, summed and read from the public record: the mean of what all hospitals learnt, but for the rounding."""
    data = bench_round.deal(HOSPITALS, ROWS, 0)
    spec = bench_round.training_spec(data, 100_000, rounds=1)
    whole = spec.training.model_copy(update={"batch_size": ROWS})  # one batch: the rows' secret order changes nothing
    spec = spec.model_copy(update={"training": whole})
    (told,), found = bench_round.run_private(home / "private", data, spec)
    task_file = (home / "private" / "task.toml").read_bytes()
    base = model_of(spec).initial(int.from_bytes(spec_hash(task_file)[:8], "big"))
    trained = [train(spec, base, *features_and_labels(home, index), 1) for index in range(HOSPITALS)]
    expected = np.mean([clip_norm(one - base, spec.update.clip_norm) for one in trained], axis=0)
    step = Quantiser(spec.update.bits, spec.update.value_range).step
    assert np.abs(expected).max() > 2 * step
    assert np.abs(found - base - expected).max() <= 1.01 * step
    stages = told["stages"]
    assert list(stages) == ["configure", "update", "upload", "unmask"]
    assert told["round_s"] == pytest.approx(sum(one["server_s"] + one["client_cpu_s"] for one in stages.values()))
    assert 0 < told["train_cpu_s"] < told["client_cpu_s"]
    assert told["server_s"] < told["wall_s"]
    assert stages["upload"]["up_mb"] * 2**20 == pytest.approx(spec.update_blobs * BYTES_PER_BLOB, rel=0.01)
    for stage in stages.values():
        assert sum(stage["server_parts_s"].values()) <= stage["server_s"]
