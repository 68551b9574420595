"""Guides of a hospital's training besides its rows: control variates, patience, class weights, and its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.standardise import class_weights
from consilium_client.errors import NodeError
from consilium_client.hospital.learning import Updates
from consilium_client.hospital.memory import InProcess, Memory, OnDisk
from consilium_client.models import model_of
from consilium_client.models.fold import Fold
from consilium_client.models.metrics import log_loss
from consilium_client.models.training import Guides, learn, mean_gradient, train
from consilium_zk.basis import Basis
from consilium_zk.packing import unpack
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from raised_faults import raises_fault
from task_files import DATA

Rows = tuple[NDArray[np.float32], NDArray[np.int64]]
Reals = NDArray[np.float64]
SEED = bytes(range(32))


def spec_of(model: dict[str, Any] | None = None, update: dict[str, Any] | None = None, **training: Any) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "name": "toy",
            "statistics": "exact",
            "data": {
                "features": [{"kind": "numeric", "name": name, "min": -9, "max": 9} for name in ("a", "b", "c", "d")],
                "label": "y",
                "classes": ["no", "yes"],
            },
            "model": model or {"name": "logistic"},
            "training": {"batch_size": 1_000, "learning_rate": 0.3, **training},
            "update": {"bits": 30, "value_range": 4.0, "clip_norm": 100.0, **(update or {})},
            "rounds": {"rounds": 9},
        }
    )


def hospital(number: int, rows: int = 30) -> Rows:
    """Each sees another part of the space, and its own share of positives."""
    random = np.random.default_rng(number)
    features = random.normal(size=(rows, 4)).astype(np.float32) + np.float32(number)
    return features, (features[:, 0] > features[:, 1] + number - 1).astype(np.int64)


class Played:
    """A record of rounds that all hospitals' updates settle, each of weight 1."""

    def __init__(self, spec: TaskSpec, parts: list[Rows]) -> None:
        self.spec, self.parts, self.fold = spec, parts, Fold(spec, SEED)
        self.state = self.fold.begin(model_of(spec).initial(3))
        self.updates = [Updates(spec, self, InProcess()) for _ in parts]

    def latest_mean(self, round_: int) -> tuple[int, Reals] | None:
        return None if self.state.mean is None else (self.state.round, self.state.mean)

    def class_weights(self) -> None:
        return None

    def play(self, round_: int, present: tuple[int, ...] | None = None) -> None:
        total = np.zeros(self.spec.lanes, dtype=np.uint64)
        who = range(len(self.parts)) if present is None else present
        for index in who:
            update = self.update(round_, index)
            blobs = self.updates[index].blobs(round_, update, rounding_seed=round_)
            total += unpack(blobs, self.spec.lanes, self.spec.update_layout, 1)
        self.state = self.fold.after(self.state, round_, total, len(who))

    def update(self, round_: int, index: int) -> Reals:
        return self.updates[index].learn(round_, self.state.outer.model, self.parts[index], None, 0)

    @property
    def basis(self) -> Basis:
        return self.fold.basis


def gradient(model: Reals, rows: Rows) -> Reals:
    """Of logistic regression's mean cross-entropy, by its formula."""
    features, labels = rows
    likely = 1 / (1 + np.exp(-(features @ model[:-1] + model[-1])))
    return np.append((likely - labels) @ features, (likely - labels).sum()) / len(labels)


@pytest.mark.parametrize("steps", [1, 4])
def test_control_variates_are_scaffold(steps: int) -> None:
    """Karimireddy et al. 2020, algorithm 1, option II, with all hospitals and η_g = 1, in double precision."""
    parts, rate, rounds = [hospital(number) for number in range(3)], 0.3, 5
    game = Played(spec_of(control_variates=True, steps=steps), parts)
    x = game.state.outer.model.astype(np.float64)
    own, everybodys = [np.zeros(5) for _ in parts], np.zeros(5)
    for round_ in range(1, rounds + 1):
        game.play(round_)
        models, variates = [], []
        for c_i, rows in zip(own, parts, strict=True):
            y = x
            for _ in range(steps):
                y = y - rate * (gradient(y, rows) - c_i + everybodys)
            models.append(y)
            variates.append(c_i - everybodys + (x - y) / (steps * rate))
        everybodys = everybodys + np.mean([new - old for new, old in zip(variates, own, strict=True)], axis=0)
        x, own = np.mean(models, axis=0), variates
        np.testing.assert_allclose(game.state.outer.model, x, atol=2e-5)


def test_control_variates_reach_the_pooled_optimum_where_averages_drift() -> None:
    parts = [hospital(number, rows=60) for number in range(3)]
    pooled = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def slope(**training: Any) -> float:
        game = Played(spec_of(steps=20, **training), parts)
        for round_ in range(1, 10):
            game.play(round_)
        return float(np.linalg.norm(gradient(game.state.outer.model.astype(np.float64), pooled)))

    assert slope(control_variates=True) < slope() / 2


def test_a_gradient_follows_from_an_update_and_its_rounds_rate() -> None:
    training = spec_of(control_variates=True, steps=2, schedule="linear").training
    found = mean_gradient(training, 10, 6, np.array([1.0, -2.0]))
    np.testing.assert_allclose(found, np.array([-1.0, 2.0]) / (2 * 0.15))


def test_a_hospital_that_was_away_corrects_by_its_own_last_gradient() -> None:
    parts = [hospital(number) for number in range(3)]
    game = Played(spec_of(control_variates=True, steps=3), parts)
    for number in range(3):
        assert game.updates[number]._guides(1, None).correction is None
    first = game.update(1, 2)
    game.play(1)
    game.play(2, present=(0, 1))
    correction, mean = game.updates[2]._guides(3, None).correction, game.latest_mean(3)
    assert correction is not None
    assert mean is not None
    assert mean[0] == 2
    np.testing.assert_allclose(correction, (first - mean[1]) / (3 * 0.3), rtol=1e-4, atol=1e-5)
    newcomer = Updates(game.spec, game, InProcess())
    assert newcomer._guides(3, None).correction is None


@pytest.mark.parametrize("codec", [{"name": "dense"}, {"name": "hash", "buckets": 30}], ids=lambda codec: codec["name"])
def test_patience_ends_at_the_pass_of_least_loss_on_held_out_rows(codec: dict[str, Any]) -> None:
    """Few rows to train on, whose labels are chance: each pass but the first few makes it worse elsewhere."""
    random = np.random.default_rng(1)
    features, labels = random.normal(size=(12, 4)).astype(np.float32), random.integers(0, 2, 12)
    out = random.normal(size=(200, 4)).astype(np.float32), random.integers(0, 2, 200)
    mlp, update = {"name": "mlp", "hidden": [16]}, {"codec": codec}
    spec = spec_of(mlp, update, epochs=60, patience=3, batch_size=4)
    basis, base, losses = Fold(spec, SEED).basis, model_of(spec).initial(3), list[float]()
    for epochs in range(1, 61):
        longer = spec_of(mlp, update, epochs=epochs, batch_size=4)
        model = base + basis.spread(learn(longer, basis, base, features, labels, 5), 0, basis.parameters)
        losses.append(log_loss(out[1], model_of(spec).evaluate(model.astype(np.float32), out[0]).predictions))
    best = next(at for at in range(60) if min(losses[at + 1 : at + 4], default=np.inf) >= min(losses[: at + 1]))
    steps: list[int] = []
    found = learn(
        spec, basis, base, features, labels, 5, lambda done, *_: steps.append(done), guides=Guides(held_out=out)
    )
    expected = learn(spec_of(mlp, update, epochs=best + 1, batch_size=4), basis, base, features, labels, 5)
    assert 0 < best < 40
    assert steps[-1] == 3 * (best + 4)  # three batches a pass
    np.testing.assert_array_equal(found, expected)


def test_without_held_out_rows_patience_changes_nothing() -> None:
    features, labels = hospital(1)
    patient, plain = spec_of(epochs=3, patience=1), spec_of(epochs=3)
    base, none = model_of(plain).initial(3), (features[:0], labels[:0])
    expected = train(plain, base, features, labels, 5)
    for guides in (Guides(), Guides(held_out=none)):
        np.testing.assert_array_equal(train(patient, base, features, labels, 5, guides=guides), expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_weighted_row_counts_as_so_many_rows(classes: int) -> None:
    labels = np.arange(12) % classes
    features = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    spec = spec_of(epochs=4)
    if classes > 2:
        names = [str(number) for number in range(classes)]
        spec = spec.model_copy(update={"data": spec.data.model_copy(update={"classes": names})})
    base, weights = model_of(spec).initial(3), np.ones(classes, dtype=np.float32)
    weights[0] = 3
    several = np.repeat(np.arange(12), np.where(labels == 0, 3, 1))
    found = train(
        spec, base, features, labels, 5, guides=Guides(class_weights=(weights * 12 / len(several)).astype(np.float32))
    )
    expected = train(spec, base, features[several], labels[several], 5)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_class_weights_balance_all_hospitals_rows() -> None:
    spec = spec_of(class_weights="balanced")
    assert (spec.statistics_values, spec.counted_classes) == (spec.data.statistics_values + 2, 2)
    rows = np.array([90.0, 10.0])
    found = class_weights(np.append(np.zeros(spec.data.statistics_values), rows + 1e-6), spec)
    assert found is not None
    np.testing.assert_allclose(found * rows, [50, 50], rtol=1e-6)
    lone = class_weights(np.append(np.zeros(spec.data.statistics_values), [7.0, -1e-7]), spec)
    assert lone is not None
    assert lone.tolist() == [1, 0]
    assert class_weights(np.zeros(spec.data.statistics_values), spec_of()) is None


@given(st.integers(0, 2**32), st.sampled_from([2, 3, 5, 8]), st.lists(st.booleans(), min_size=1, max_size=6))
def test_with_feedback_all_that_was_learned_is_sent_or_kept(seed: int, bits: int, rounds: list[bool]) -> None:
    """Σ sent + the last unsent = Σ quantised updates, in integers, from round to round; and the sum opens to Σ sent."""
    spec = spec_of(update={"bits": bits, "value_range": 0.5, "clip_norm": 1.0, "feedback": True})
    random, memory = np.random.default_rng(seed), InProcess()
    updates, fold = Updates(spec, Played(spec, []), memory), Fold(spec, SEED)
    quantiser, carried = fold._quantiser, np.zeros(5)
    fine = quantiser.step / 65_536
    for number, is_large in enumerate(rounds, 1):
        update = random.normal(size=5) * (10.0 if is_large else 0.1)
        lanes = unpack(updates.blobs(number, update, 0), spec.lanes, spec.update_layout, 1)
        sent = lanes.astype(np.int64) - quantiser.offset
        assert not sent[5:].any()
        kept = memory.recall("unsent", number + 1, 5)
        assert kept is not None
        whole = update + carried
        whole = whole * min(1.0, 1.0 / float(np.linalg.norm(whole)))
        given = sent[:5] * 65_536 + kept[1]
        assert np.abs(given - whole / fine).max() <= 0.5 + 1e-6
        assert np.abs(sent).max() <= quantiser.offset
        carried = kept[1] * fine
        assert np.linalg.norm(carried) <= 1.0 + 5 * quantiser.step


def test_feedback_says_in_time_what_few_bits_cannot_say_at_once() -> None:
    """A step of ±0.5 or nothing: without feedback, an update of 0.1 is lost in each of twenty rounds."""
    spec = spec_of(update={"bits": 2, "value_range": 0.5, "clip_norm": 9.0, "feedback": True})
    updates, fold, said = Updates(spec, Played(spec, []), InProcess()), Fold(spec, SEED), np.zeros(5)
    for number in range(1, 21):
        lanes = unpack(updates.blobs(number, np.full(5, 0.1), 0), spec.lanes, spec.update_layout, 1)
        said += fold._quantiser.dequantise_mean(lanes[:5], 1)
    np.testing.assert_allclose(said, 2.0, atol=0.25)


def test_local_tensors_stay_and_are_each_hospitals_own() -> None:
    mlp, parts = {"name": "mlp", "hidden": [3]}, [hospital(number) for number in range(2)]
    spec = spec_of(mlp, local=["2.weight", "2.bias"], epochs=2)
    assert (spec.parameters, spec.coordinates) == (19, 15)
    assert spec.in_words.size == "19 parameters, of which 15 are shared"
    game, initial = Played(spec, parts), model_of(spec).initial(3)
    expected = [initial.copy() for _ in parts]
    for round_ in (1, 2):
        shared = []
        for index, (features, labels) in enumerate(parts):
            start = np.concatenate([game.state.outer.model[:15], expected[index][15:]])
            np.testing.assert_array_equal(game.updates[index].own_model(round_, game.state.outer.model), start)
            expected[index] = train(spec, start, features, labels, 0)
            shared.append(expected[index][:15].astype(np.float64) - start[:15])
        before = game.state.outer.model
        game.play(round_)
        np.testing.assert_allclose(game.state.outer.model[:15], before[:15] + np.mean(shared, axis=0), atol=1e-6)
        np.testing.assert_array_equal(game.state.outer.model[15:], initial[15:])
    assert not np.array_equal(expected[0][15:], expected[1][15:])


@pytest.mark.parametrize("kind", ["disk", "process"])
def test_a_round_made_again_begins_from_the_same_memory(kind: str, tmp_path: Path) -> None:
    memory: Memory = OnDisk(tmp_path) if kind == "disk" else InProcess()
    assert memory.recall("unsent", 5, 3) is None
    for round_ in (1, 2, 4, 4):
        memory.keep("unsent", round_, np.full(3, round_))
        memory.keep("variate", round_, np.full(3, -round_))
    for before, expected in ((5, 4), (4, 2), (3, 2), (2, None)):
        found = memory.recall("unsent", before, 3)
        assert (found and (found[0], found[1].tolist())) == (expected and (expected, [expected] * 3))


def test_memory_on_disk_is_its_owners_alone_and_ends_with_the_task(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    memory = OnDisk(folder)
    memory.forget()
    memory.keep("variate", 1, np.arange(3.0))
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]
    with raises_fault(NodeError, "MemoryDamaged"):
        memory.recall("variate", 2, 4)
    memory.forget()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("[training]\ncontrol_variates = true", "set steps"),
        ('[training]\ncontrol_variates = true\nsteps = 5\noptimizer = "adamw"', "adamw"),
        ("[training]\ncontrol_variates = true\nsteps = 5\nproximal = 0.1", "proximal"),
        ("[training]\ncontrol_variates = true\nsteps = 5\npatience = 2", "patience"),
        ("[training]\npatience = 0", "patience"),
        ('[training]\nclass_weights = "balanced"', "exact"),
        ('[training]\nclass_weights = "rare"', "class_weights"),
        ("[training]\npatience = 2\n[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0", "patience"),
        (
            "[training]\ncontrol_variates = true\nsteps = 5\n[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0",
            "control_variates",
        ),
        ("[update]\nfeedback = true\nbits = 20", "16 or less"),
        ('[training]\nlocal = ["1.weight"]', "must be one of 0.weight, 0.bias"),
        ('[training]\nlocal = ["0.weight", "0.bias"]', "some of them"),
        ('[training]\nlocal = ["0.bias"]\ncontrol_variates = true\nsteps = 2', "local"),
        ('[training]\nlocal = ["0.bias"]\n[update.codec]\nname = "hash"\nbuckets = 1', "codec hash"),
        ('[training]\nlocal = ["0.bias"]\n[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0', "noise"),
    ],
)
def test_choices_that_do_not_go_together_are_refused(lines: str, said: str) -> None:
    text = f'name = "t"\n{DATA}\n[model]\nname = "logistic"\n[money]\naggregator_bond = 9000\n{lines}\n'
    with pytest.raises(SpecInvalid, match=said):
        parse_task_spec(text.encode())
