"""Training within a codec's basis, and the models that everybody derives from such updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.errors import ModelError
from consilium_client.models import Vector, model_of
from consilium_client.models.fold import Fold
from consilium_client.models.metrics import log_loss
from consilium_client.models.training import learn, train
from consilium_client.privacy.dp_sgd import Mechanism, learn_privately, train_privately
from consilium_zk.basis import Basis, CountSketch
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray
from raised_faults import raises_fault
from task_files import DATA

SEED = bytes(range(32))
HASH, LOW = {"name": "hash", "buckets": 40}, {"name": "lowrank", "rank": 1}
DCT, SKETCH = {"name": "dct", "chunk": 8, "kept": 3}, {"name": "sketch", "columns": 13, "rows": 3, "kept": 20}
SILENT = Mechanism(noise_multiplier=1e-12, sample_rate=1.0, steps=1)


def spec_of(codec: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **training: Any) -> TaskSpec:
    return TaskSpec.model_validate(
        {
            "name": "toy",
            "data": {
                "features": [{"kind": "numeric", "name": name, "min": -9, "max": 9} for name in ("a", "b", "c", "d")],
                "label": "y",
                "classes": ["no", "yes"],
            },
            "model": model or {"name": "mlp", "hidden": [16]},
            "training": {"epochs": 20, "batch_size": 8, "learning_rate": 0.1, **training},
            "update": {"codec": codec} if codec else {},
        }
    )


def basis_of(spec: TaskSpec) -> Basis:
    return spec.update.codec.basis(spec.model.tensors(spec.data), SEED)


def rows(count: int = 100) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    features = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    return features, (features[:, 0] > features[:, 1] * features[:, 2]).astype(np.int64)


def moved(spec: TaskSpec, base: Vector, coordinates: NDArray[np.float64]) -> Vector:
    found: Vector = base + basis_of(spec).spread(coordinates, 0, spec.parameters).astype(np.float32)
    return found


def test_without_a_codec_an_update_is_the_difference_that_training_makes() -> None:
    spec, (features, labels) = spec_of(), rows()
    base = model_of(spec).initial(3)
    found = learn(spec, basis_of(spec), base, features, labels, seed=1)
    expected = train(spec, base, features, labels, seed=1).astype(np.float64) - base
    assert (found.tobytes(), spec.coordinates) == (expected.tobytes(), spec.parameters)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("codec", [HASH, LOW, DCT], ids=lambda codec: codec["name"])
def test_training_within_a_basis_learns(codec: dict[str, Any], optimizer: str) -> None:
    spec, (features, labels) = spec_of(codec, optimizer=optimizer, learning_rate=0.05), rows()
    base = model_of(spec).initial(3)
    found = learn(spec, basis_of(spec), base, features, labels, seed=1)
    assert found.shape == (spec.coordinates,)
    assert spec.coordinates < spec.parameters
    trained = moved(spec, base, found)
    losses = [log_loss(labels, model_of(spec).evaluate(one, features).predictions) for one in (base, trained)]
    assert losses[1] < 0.75 * losses[0]


@pytest.mark.parametrize("codec", [HASH, LOW, DCT], ids=lambda codec: codec["name"])
def test_a_step_is_the_gradients_part_within_the_basis(codec: dict[str, Any]) -> None:
    """One batch: the gathered step of plain training. Two: the second begins where the first led, with its decay."""
    features, labels = rows(12)
    settings: dict[str, Any] = {"batch_size": 12, "learning_rate": 0.5}
    one, two = (spec_of(codec, epochs=epochs, weight_decay=0.1, **settings) for epochs in (1, 2))
    basis, base = basis_of(one), model_of(one).initial(3)

    def plain_step(at: Vector) -> NDArray[np.float32]:
        return basis.gather(train(spec_of(epochs=1, **settings), at, features, labels, seed=0) - at)

    first = learn(one, basis, base, features, labels, seed=0)
    np.testing.assert_allclose(first, plain_step(base), atol=1e-6)
    second = learn(two, basis, base, features, labels, seed=0)
    np.testing.assert_allclose(second, 0.95 * first + plain_step(moved(one, base, first)), atol=1e-5)


def test_the_proximal_term_pulls_within_the_basis() -> None:
    features, labels = rows()
    near, far = (spec_of(HASH, proximal=mu, learning_rate=0.01) for mu in (50.0, 0.0))
    base = model_of(near).initial(3)
    lengths = [float(np.linalg.norm(learn(one, basis_of(one), base, features, labels, seed=0))) for one in (near, far)]
    assert lengths[0] < lengths[1] / 3


def test_a_sketch_is_of_the_change_that_plain_training_makes() -> None:
    spec, (features, labels) = spec_of(SKETCH), rows()
    base, basis = model_of(spec).initial(3), basis_of(spec)
    assert isinstance(basis, CountSketch)
    whole = train(spec, base, features, labels, seed=1).astype(np.float64) - base
    np.testing.assert_array_equal(learn(spec, basis, base, features, labels, seed=1), basis.sketched(whole))


def test_all_parts_of_a_sketched_change_move_the_model_in_time() -> None:
    """One update, and then nothing: rounds decode the rest, until the model has moved by all of it."""
    spec = spec_of({"name": "sketch", "columns": 60, "rows": 5, "kept": 3}, {"name": "mlp", "hidden": [64]})
    fold, base = Fold(spec, SEED), model_of(spec).initial(3)
    quantiser, state = Quantiser(spec.update.bits, spec.update.value_range), fold.begin(base)
    assert isinstance(fold.basis, CountSketch)
    change = np.zeros(spec.parameters)
    change[:6] = np.linspace(0.5, 1, 6)
    sketch, weight = fold.basis.sketched(change), 3
    for round_ in range(1, 20):
        lanes = quantiser.quantise(sketch if round_ == 1 else np.zeros_like(sketch)) * np.uint64(weight)
        padded = np.pad(lanes, (0, 5), constant_values=quantiser.offset * weight)
        alone = fold.candidate(state, padded, weight) - state.outer.model
        assert np.count_nonzero(alone) == (3 if round_ == 1 else 0)
        state = fold.after(state, round_, padded, weight)
        moved = state.outer.model - base
        assert round_ > 1 or np.count_nonzero(moved) == 3
    np.testing.assert_allclose(moved, change, atol=0.01)


def test_training_that_runs_away_is_named() -> None:
    spec, (features, labels) = spec_of(HASH, learning_rate=1e30), rows()
    with raises_fault(ModelError, "UpdateNotFinite"), np.errstate(all="ignore"):
        learn(spec, basis_of(spec), model_of(spec).initial(3), features, labels, seed=0)


@pytest.mark.parametrize("codec", [HASH, LOW, DCT], ids=lambda codec: codec["name"])
def test_a_private_step_is_gathered_after_its_noise(codec: dict[str, Any]) -> None:
    private = {"privacy": {"epsilon": 8.0, "max_grad_norm": 0.5}, "money": {"aggregator_bond": 10_000}}
    training = {"training": {"epochs": 1, "batch_size": 12, "learning_rate": 0.5}}
    spec, plain = (
        TaskSpec.model_validate(one.model_dump(exclude={"privacy", "money", "training"}) | private | training)
        for one in (spec_of(codec), spec_of())
    )
    assert spec.privacy is not None
    assert plain.privacy is not None
    (features, labels), base = rows(12), model_of(spec).initial(3)
    found = learn_privately(spec, spec.privacy, SILENT, basis_of(spec), base, features, labels)
    whole = train_privately(plain, plain.privacy, SILENT, base, features, labels) - base
    np.testing.assert_allclose(found, basis_of(spec).gather(whole), atol=1e-6)
    same = learn_privately(plain, plain.privacy, SILENT, basis_of(plain), base, features, labels)
    np.testing.assert_allclose(same, whole, atol=1e-6)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('name = "topk"', "masks would not cancel"),
        ('name = "zip"', "codec"),
        ('name = "hash"', "buckets"),
        ('name = "hash"\nbuckets = 0', "buckets"),
        ('name = "hash"\nbuckets = 2', "save nothing in a model of 2 parameters"),
        ('name = "lowrank"\nrank = 1', "rank 1 saves nothing"),
        ('name = "lowrank"\nrank = 1\ndense = ["1.weight"]', "must be one of 0.weight, 0.bias"),
        ('name = "lowrank"\nrank = 0', "rank"),
        ('name = "dense"\nbuckets = 3', "buckets"),
        ('name = "dct"\nkept = 2', "no tensor of this model has 64 values"),
        ('name = "dct"\nkept = 64', "64 numbers of each 64 values save nothing"),
        ('name = "dct"\nchunk = 60\nkept = 2', "no power of two"),
        ('name = "dct"', "kept"),
        ('name = "sketch"\ncolumns = 1\nkept = 1', "save nothing in a model of 2 parameters"),
        ('name = "sketch"\ncolumns = 1\nrows = 2\nkept = 1', "set rows to 1 or 3"),
        ('name = "sketch"\ncolumns = 1\nrows = 1\nkept = 2', "cannot show 2 parameters"),
    ],
)
def test_a_codec_that_is_nonsense_is_refused(lines: str, said: str) -> None:
    text = f'name = "t"\n{DATA}\n[model]\nname = "logistic"\n[update.codec]\n{lines}\n'
    with pytest.raises(SpecInvalid, match=said):
        parse_task_spec(text.encode())


def test_blobs_and_bytes_are_those_of_the_coordinates() -> None:
    images = {"data": {"kind": "images", "classes": ["a", "b"], "height": 28, "width": 28}, "model": {"name": "cnn"}}
    few, many = (
        TaskSpec.model_validate({"name": "t", **images, "update": {"codec": codec}})
        for codec in ({"name": "hash", "buckets": 467}, {"name": "dense"})
    )
    assert (few.parameters, few.coordinates, few.update_blobs) == (23_361, 467, 1)
    assert (many.coordinates, many.update_bytes // many.update_blobs) == (23_361, 131_072)
