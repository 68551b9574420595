"""Each pixel's class: Dice against MONAI's and scikit-learn's, a row's own loss, a U-Net that learns, privately too."""

from __future__ import annotations

import monai.losses
import monai.metrics
import numpy as np
import pytest
import sklearn.metrics
import torch
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.answers import answers_of
from consilium_client.data.image.reader import ImageSet
from consilium_client.data.standardise import public_sums
from consilium_client.errors import DataError, ModelError
from consilium_client.models import model_of
from consilium_client.models.metrics import accuracy, brier, log_loss
from consilium_client.models.objectives.segmentation import Segment
from consilium_client.models.torch_parameters import flatten
from consilium_client.models.training import train
from consilium_client.voter.fingerprints import TOLERANCE, deviation, fingerprint, values_of
from numpy.typing import NDArray
from private_steps import NORM, moved_by_the_last
from raised_faults import raises_fault
from torch.nn.functional import cross_entropy, one_hot

CLASSES = ["background", "oedema", "tumour"]
TASK = """
name = "masks"
[data]
kind = "images"
height = 16
width = 16
channels = 2
question = { kind = "segmentation", classes = ["background", "oedema", "tumour"] }
[model]
name = "unet"
widths = [4, 8]
[training]
epochs = 8
batch_size = 8
learning_rate = 0.01
optimizer = "adamw"
[judging]
metric = "dice"
"""


def spec_of(**changed: str) -> TaskSpec:
    text = TASK
    for old, new in changed.items():
        text = "\n".join(new if line.startswith(f"{old} =") else line for line in text.splitlines())
    return parse_task_spec(text.encode())


def blobs(count: int, seed: int = 0) -> ImageSet:
    """Squares that differ in their channel, and noise. A fifth of the images have none."""
    random = np.random.default_rng(seed)
    pixels, masks = random.integers(0, 80, (count, 2, 16, 16), dtype=np.uint8), np.zeros((count, 16, 16), np.uint8)
    for image, mask in zip(pixels, masks, strict=True):
        for number in range(random.integers(0, 3) if random.random() < 0.8 else 0, 3):
            if number:
                y, x = random.integers(0, 11, 2)
                mask[y : y + 5, x : x + 5] = number
                image[:, y : y + 5, x : x + 5] = 40
                image[number - 1, y : y + 5, x : x + 5] += np.uint8(120)
    return ImageSet(pixels, masks)


def drawn(rows: int, seed: int = 1, absent: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """Masks without the last `absent` classes, and probabilities that know a little of them."""
    random = np.random.default_rng(seed)
    masks = random.integers(0, 3 - absent, (rows, 16, 16)).astype(np.uint8)
    logits = random.normal(size=(rows, 3, 16, 16)) + 1.5 * np.moveaxis(np.eye(3)[masks], -1, 1)
    return masks, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


OBJECTIVE = Segment(Segmentation(kind="segmentation", classes=CLASSES), (16, 16))


@pytest.mark.parametrize("absent", [0, 1])
def test_dice_is_monais_and_scikit_learns_f1_of_the_classes_that_are_there(absent: int) -> None:
    masks, likely = drawn(7, absent=absent)
    found = OBJECTIVE.measures["dice"].of(masks, likely)
    called = likely.argmax(axis=1)
    present = list(range(1, 3 - absent))
    assert found == pytest.approx(
        sklearn.metrics.f1_score(masks.ravel(), called.ravel(), labels=present, average="macro")
    )
    metric = monai.metrics.DiceMetric(include_background=False, reduction="mean", ignore_empty=True)
    flat = [torch.from_numpy(one.astype(np.int64)).reshape(1, 1, -1) for one in (called, masks)]
    metric(*(one_hot(one[:, 0], 3).movedim(-1, 1) for one in flat))  # all pixels together, as one image
    assert found == pytest.approx(metric.aggregate().item(), abs=1e-6)


def test_a_class_that_nobody_marked_counts_nowhere_and_no_marks_are_perfect() -> None:
    masks, likely = drawn(3, absent=1)
    dice = OBJECTIVE.measures["dice"]
    before = dice.of(masks, likely) or 0
    likely[0, :, 0, 0] = (0, 0, 1)  # one wrong pixel of the absent class
    assert dice.of(masks, likely) == pytest.approx(before, abs=0.01)
    empty = np.zeros_like(masks)
    assert dice.of(empty, likely) is None
    assert dice.worth(empty, likely) == 1.0


def test_other_metrics_are_those_of_all_pixels_as_rows() -> None:
    masks, likely = drawn(5)
    rows, of_rows = masks.ravel().astype(np.int64), np.moveaxis(likely, 1, -1).reshape(-1, 3)
    found = OBJECTIVE.measured(masks, likely)
    for name, metric in (("accuracy", accuracy), ("log_loss", log_loss), ("brier", brier)):
        assert found[name] == pytest.approx(metric(rows, of_rows)), name
    some = np.array([4, 0, 0, 2])
    assert OBJECTIVE.measured_again(masks, likely)(some) == pytest.approx(OBJECTIVE.measured(masks[some], likely[some]))
    with raises_fault(ModelError, "ShapeMismatch"):
        OBJECTIVE.measured(masks[:, :8], likely)
    with raises_fault(DataError, "TooFewRows"):
        OBJECTIVE.measured(masks[:0], likely[:0])


def test_a_rows_loss_is_cross_entropy_and_monais_dice_of_its_own_classes() -> None:
    random = np.random.default_rng(4)
    logits = torch.from_numpy(random.normal(size=(4, 3, 16, 16)))
    masks = torch.from_numpy(random.integers(0, 3, (4, 16, 16)).astype(np.uint8))
    masks[2], masks[3] = 0, masks[3].clamp(max=1)
    found = [OBJECTIVE.loss(logits[at : at + 1], masks[at : at + 1], "sum").item() for at in range(4)]
    soft = monai.losses.DiceLoss(
        include_background=False, to_onehot_y=True, softmax=True, reduction="none", smooth_nr=1, smooth_dr=1
    )
    overlap = soft(logits, masks[:, None].long()).reshape(4, 2)
    entropy = cross_entropy(logits, masks.long(), reduction="none").mean(dim=(1, 2))
    expected = entropy + torch.stack([overlap[0].mean(), overlap[1].mean(), torch.tensor(0.0), overlap[3, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    for reduction, value in (("sum", sum(found)), ("mean", sum(found) / 4)):  # no row's loss depends on another's
        assert OBJECTIVE.loss(logits, masks, reduction).item() == pytest.approx(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("widths", [[4, 8], [3, 5, 7]])
def test_module_holds_the_parameters_by_the_specs_names(widths: list[int]) -> None:
    spec = spec_of(widths=f"widths = {widths}")
    model = model_of(spec)
    parameters = np.random.default_rng(0).normal(size=spec.parameters).astype(np.float32)
    module = model.module(parameters)
    np.testing.assert_array_equal(flatten(module), parameters)
    shapes = {name: tuple(one.shape) for name, one in module.named_parameters()}
    assert list(shapes.items()) == list(spec.model.tensors(spec.data).items())
    assert module(torch.zeros(2, 2, 16, 16)).shape == (2, 3, 16, 16)
    torch.manual_seed(1)
    np.testing.assert_array_equal(model.initial(3), model.initial(3))


def test_it_learns_masks_and_repeats_itself() -> None:
    spec, images, others = spec_of(), blobs(80), blobs(40, 1)
    model, sums = model_of(spec), public_sums(spec.data)
    inputs = model.inputs(images, sums)
    trained = train(spec, model.initial(0), inputs, images.labels, seed=1)
    evaluation = model.evaluate(trained, model.inputs(others, sums))
    dice = model.objective.measures["dice"]
    assert dice.worth(*evaluation.answers(others.labels)) > 0.8
    assert evaluation.predictions.shape == (40, 3, 16, 16)
    np.testing.assert_array_equal(trained, train(spec, model.initial(0), inputs, images.labels, seed=1))


def test_fingerprints_show_the_model_and_the_rows() -> None:
    spec, images = spec_of(), blobs(12)
    model = model_of(spec)
    inputs, parameters = model.inputs(images, public_sums(spec.data)), model.initial(0)
    found = model.evaluate(parameters, inputs).activations
    assert found.shape == (12, 4)
    shown = fingerprint(found)
    assert len(shown) == 8 * values_of(found.size)
    again = model.evaluate(parameters, inputs[::-1].copy()).activations[::-1]
    assert deviation(shown, again) < TOLERANCE
    moved = (parameters.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)  # as bfloat16
    assert deviation(shown, model.evaluate(moved, inputs).activations) > TOLERANCE
    assert deviation(shown, model.evaluate(parameters, inputs[[1, *range(1, 12)]]).activations) > TOLERANCE


def test_no_image_moves_a_private_step_by_more_than_the_norm() -> None:
    spec = spec_of(optimizer='optimizer = "sgd"', learning_rate="learning_rate = 1.0", batch_size="batch_size = 10")
    images = blobs(11)
    inputs = model_of(spec).inputs(images, public_sums(spec.data))
    inputs[10] *= 1_000
    assert moved_by_the_last(spec, inputs, images.labels) == pytest.approx(NORM / 10, rel=1e-3)


def test_images_with_a_class_are_counted_and_one_class_is_no_answer() -> None:
    images, answers = blobs(30), answers_of(spec_of().data)
    counts = dict(answers.counts(images.labels))
    assert list(counts) == CLASSES
    assert counts["tumour"] == sum(bool((mask == 2).any()) for mask in images.labels)
    assert not answers.alike(images.labels)
    assert answers.alike(np.zeros((3, 16, 16), np.uint8))
    assert len(set(images.relabelled(images.labels ^ 1).row_bytes()) & set(images.row_bytes())) == 0


QUESTION = 'question = { kind = "segmentation", classes = ["background", "oedema", "tumour"] }'
PLUGIN = f'{{ distribution = "d", version = "1", record = "{"0" * 64}", entry = "m" }}'
OF_PLUGIN = f'distribution = "d"\nversion = "1"\nentry = "m"\nrecord = "{"0" * 64}"'
AGE = '[[data.features]]\nname = "age"\nmin = 0\nmax = 9'


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": 'kind = "text"', "height": "", "width": "", "channels": ""}, "asks of pixels, and texts have none"),
        ({"name": 'name = "cnn"', "widths": ""}, "needs unet"),
        ({"question": 'label = "ill"\nclasses = ["no", "yes"]', "metric": ""}, "any other question another model"),
        ({"height": "height = 17"}, "that 2 divides"),
        ({"widths": "widths = [4]"}, "widths"),
        ({"question": QUESTION.replace("tumour", "oedema")}, "a class appears twice"),
        ({"question": QUESTION.replace(', "oedema", "tumour"', "")}, "classes"),
        ({"metric": f'metric = "plugin"\nplugin = {PLUGIN}'}, "metric reads no masks"),
        ({"question": f"{QUESTION}\nreader = {PLUGIN}"}, "a plug-in reads no masks"),
        ({"name": 'name = "plugin"', "widths": f"{OF_PLUGIN}\nshapes = {{ a = [1] }}"}, "take unet or a program"),
        ({"metric": 'metric = "auc"'}, "auc has no meaning for this data's question"),
    ],
)  # fmt: skip
def test_a_segmentation_that_makes_no_sense_is_refused(changed: dict[str, str], why: str) -> None:
    with pytest.raises(SpecInvalid, match=why):
        spec_of(**changed)


def test_a_table_has_no_pixels() -> None:
    text = f'name = "t"\n[data]\n{QUESTION}\n{AGE}\n[model]\nname = "logistic"\n'
    with pytest.raises(SpecInvalid, match="asks of pixels, and rows have none"):
        parse_task_spec(text.encode())
