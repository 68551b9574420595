"""Images of 16 bits and of many channels: read exactly, held as uint16, and the same u from 0 to 1 everywhere.

Tasks of 8 bits, whose files have none of these keys, keep all their meaning.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.image.kind import KIND
from consilium_client.data.image.reader import MOST_BYTES, ImageSet, Pixels, most_images, read_raw_images
from consilium_client.data.standardise import Standardiser, public_sums, sums_of
from consilium_client.errors import DataError, ExampleError
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_operators.model_inputs import ChannelInput, model_inputs
from numpy.typing import NDArray
from PIL import Image
from raised_faults import raises_fault
from task_files import X_RAYS
from test_images_read import archive, png, saved, write_folder

DEEP = ImageSchema(kind="images", classes=["normal", "ill"], height=8, width=10, bits=16)
PLAIN = DEEP.model_copy(update={"bits": 8})
FIVE = PLAIN.model_copy(update={"channels": 5})
UNITS = PLAIN.model_copy(update={"window": WindowSpec(center=32_768, width=16_384)})
PERCENT = PLAIN.model_copy(update={"window": WindowSpec(low=0, high=100)})
RANDOM = np.random.default_rng(11)
VALUES = RANDOM.integers(0, 65_536, (8, 10), dtype=np.uint16)
SHADES = RANDOM.integers(0, 256, (8, 10), dtype=np.uint8)
COLOURS = RANDOM.integers(0, 256, (8, 10, 3), dtype=np.uint8)


def one(tmp_path: Path, content: bytes, schema: ImageSchema) -> NDArray[Any]:
    image: NDArray[Any] = read_raw_images(write_folder(tmp_path, {"ill/a.png": content}), schema).images.pixels[0]
    return image


# Reading


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_kept_to_the_last(tmp_path: Path, kind: str) -> None:
    found = one(tmp_path, saved(VALUES, kind), DEEP)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found[0], VALUES)


def test_a_tiff_of_the_other_byte_order_and_a_turned_one_are_read(tmp_path: Path) -> None:
    Image.fromarray(VALUES.astype(">u2")).save(stream := io.BytesIO(), "TIFF")
    np.testing.assert_array_equal(one(tmp_path / "a", stream.getvalue(), DEEP)[0], VALUES)
    exif = Image.Exif()
    exif[0x0112] = 3
    turned = one(tmp_path / "b", saved(VALUES, exif=exif), DEEP)
    np.testing.assert_array_equal(turned[0], np.rot90(VALUES, 2))


@pytest.mark.parametrize("image", [SHADES, np.stack([SHADES] * 3, axis=-1)], ids=["grey", "grey as RGB"])
def test_8_bits_are_the_same_shades_of_16(tmp_path: Path, image: NDArray[np.uint8]) -> None:
    np.testing.assert_array_equal(one(tmp_path, saved(image), DEEP)[0], SHADES.astype(int) * 257)


def test_a_window_is_cut_out_of_16_bits(tmp_path: Path) -> None:
    for schema in (UNITS, UNITS.model_copy(update={"bits": 16})):
        wanted: NDArray[Any] = np.clip((VALUES.astype(float) - 24_576) / 16_384, 0, 1) * schema.white
        assert np.abs(one(tmp_path / f"{schema.bits}", saved(VALUES), schema)[0] - wanted).max() < 0.51
    low, high = float(VALUES.min()), float(VALUES.max())
    wanted = (VALUES - low) / (high - low) * 255
    assert np.abs(one(tmp_path / "p", saved(VALUES), PERCENT)[0] - wanted).max() < 0.51


def test_16_bits_are_averaged_down_without_losing_any(tmp_path: Path) -> None:
    big = VALUES.repeat(4, 0).repeat(4, 1)
    found = one(tmp_path, saved(big), DEEP)[0].astype(float)
    eighth = one(tmp_path / "8", saved((big >> 8).astype(np.uint8)), PLAIN)[0].astype(float)
    assert np.abs(found / 257 - eighth).max() < 1.5
    assert (found % 257 != 0).mean() > 0.9


@pytest.mark.parametrize("kind", [np.uint16, ">u2"])
@pytest.mark.parametrize("channels", [1, 2, 3, 16])
def test_archives_have_16_bits_and_many_channels(tmp_path: Path, kind: Any, channels: int) -> None:
    images = RANDOM.integers(0, 65_536, (4, 8, 10, channels), dtype=np.uint16)
    schema = DEEP.model_copy(update={"channels": channels})
    path = archive(tmp_path / "a.npz", images=images.astype(kind), labels=np.array([0, 1, 1, 0]))
    found = read_raw_images(path, schema).images
    np.testing.assert_array_equal(found.pixels, images.transpose(0, 3, 1, 2))
    assert found.labels.tolist() == [0, 1, 1, 0]


def test_archives_of_8_bits_have_many_channels_too(tmp_path: Path) -> None:
    images = RANDOM.integers(0, 256, (3, 16, 20, 5), dtype=np.uint8)
    path = archive(tmp_path / "a.npz", images=images, labels=np.array([0, 1, 1]))
    found = read_raw_images(path, FIVE).images.pixels
    assert found.shape == (3, 5, 8, 10)
    for at in range(5):  # each channel is brought to size as a grey image is, but rounded once
        grey = archive(tmp_path / f"{at}.npz", images=images[..., at], labels=np.array([0, 1, 1]))
        alone = read_raw_images(grey, PLAIN).images.pixels[:, 0]
        assert np.abs(found[:, at].astype(int) - alone).max() <= 1


def test_hounsfield_units_of_an_archive_are_windowed(tmp_path: Path) -> None:
    units = RANDOM.integers(-1024, 2000, (2, 8, 10), dtype=np.int16)
    path = archive(tmp_path / "a.npz", images=units, labels=np.array([0, 1]))
    schema = PLAIN.model_copy(update={"window": WindowSpec(center=40, width=400)})
    wanted = np.clip((units.astype(float) + 160) / 400, 0, 1) * 255
    assert np.abs(read_raw_images(path, schema).images.pixels[:, 0] - wanted).max() < 0.51


ARRAYS: dict[str, tuple[NDArray[Any], ImageSchema]] = {
    "16 bits, and the task has 8": (VALUES[None], PLAIN),
    "8 bits, and the window has units": (SHADES[None], UNITS),
    "signed, and no window has units": (VALUES[None].astype(np.int16), DEEP),
    "32 bits": (VALUES[None].astype(np.uint32), DEEP),
    "floats": (VALUES[None].astype(np.float32), UNITS),
    "colour of 16 bits, and the task is grey": (np.stack([VALUES] * 3, -1)[None], DEEP),
    "two channels, and the task has five": (
        SHADES[None, ..., None].repeat(2, -1),
        PLAIN.model_copy(update={"channels": 5}),
    ),
    "grey, and the task has five channels": (SHADES[None], FIVE),
    "17 channels": (SHADES[None, ..., None].repeat(17, -1), PLAIN),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_other_arrays_are_refused_by_their_shape_and_type(tmp_path: Path, case: str) -> None:
    images, schema = ARRAYS[case]
    path = archive(tmp_path / "a.npz", images=images, labels=np.array([1]))
    with raises_fault(DataError, "ArraysWrong", match=f"type {images.dtype}"):
        read_raw_images(path, schema)


FILES: dict[str, tuple[bytes, ImageSchema, str]] = {
    "8 bits, and the window has units": (saved(SHADES), UNITS, "ImageTooShallow"),
    "colour of 8 bits": (saved(COLOURS), DEEP, "ImageNotGrey"),
    "colour in a window of percents": (saved(COLOURS), PERCENT, "ImageNotGrey"),
    "colour of 16 bits": (png(8, 10, depth=16, kind=2), DEEP, "ImageTooDeep"),
    "16 bits, and the task has 8": (saved(VALUES), PLAIN, "ImageTooDeep"),
    "32 bits": (saved(VALUES.astype(np.int32), "TIFF"), DEEP, "ImageTooDeep"),
    "floats": (saved(VALUES.astype(np.float32), "TIFF"), DEEP, "ImageTooDeep"),
    "16 bits, transparent by value": (saved(VALUES, transparency=int(VALUES[0, 0])), DEEP, "ImageTransparent"),
    "16 bits, cut off": (saved(VALUES)[:-30], DEEP, "ImageUnreadable"),
}


@pytest.mark.parametrize("case", FILES)
def test_other_files_are_refused_by_name(tmp_path: Path, case: str) -> None:
    content, schema, error = FILES[case]
    with raises_fault(ExampleError, error):
        one(tmp_path, content, schema)


def test_no_image_file_has_five_channels(tmp_path: Path) -> None:
    with raises_fault(DataError, "FileUnexpected"):
        one(tmp_path, saved(SHADES), FIVE)
    with raises_fault(DataError, "ArraysWrong", match="5 channels"):
        KIND.requested([{"image": ""}], FIVE, ValueError)


def test_the_memory_of_16_bits_is_counted() -> None:
    large = ImageSchema(kind="images", classes=["a", "b"], height=512, width=512, channels=3, bits=16)
    assert most_images(large) == MOST_BYTES // (512 * 512 * 3 * 2)


# Meaning


def images_of(pixels: Pixels) -> ImageSet:
    return ImageSet(pixels, np.arange(len(pixels)) % 2)


def test_a_deep_image_has_its_shades_and_no_others_bytes() -> None:
    values = images_of(VALUES[None, None])
    (row,) = values.row_bytes()
    assert row == bytes(4) + b"\x01\0\0\0\x08\0\0\0\x0a\0\0\0" + VALUES.astype("<u2").tobytes()
    swapped = ImageSet(VALUES[None, None].astype(">u2"), values.labels)
    assert list(swapped.row_bytes()) == [row]
    assert list(swapped.contents()) == [VALUES.astype("<u2").tobytes()]
    shallow = images_of((VALUES >> 8).astype(np.uint8)[None, None])
    assert next(shallow.row_bytes()) != row
    twice = images_of(np.frombuffer(VALUES.tobytes(), np.uint8).reshape(1, 1, 8, 20))
    assert next(twice.row_bytes()) != row  # the same bytes, as an image twice as wide


def test_the_same_shades_have_the_same_sums_and_inputs_in_either_depth() -> None:
    pixels = RANDOM.integers(0, 256, (6, 2, 8, 10), dtype=np.uint8)
    shallow, deep = images_of(pixels), images_of(pixels.astype(np.uint16) * 257)
    schema = DEEP.model_copy(update={"channels": 2})
    np.testing.assert_allclose(sums_of(deep, schema), shallow.sums(), rtol=1e-12)
    sums = shallow.sums()
    inputs = [Standardiser.from_sums(sums).transform_images(one) for one in (shallow, deep)]
    np.testing.assert_allclose(inputs[0], inputs[1], rtol=0, atol=1e-5)
    found = [one for one in model_inputs(schema, sums) if isinstance(one, ChannelInput)]
    assert [one.channel for one in found] == ["channel 1", "channel 2"]
    by_hand = np.stack([(deep.pixels[:, at] - one.subtract) * one.multiply for at, one in enumerate(found)], 1)
    np.testing.assert_allclose(by_hand, inputs[1], rtol=0, atol=1e-5)


def spec(**data: Any) -> TaskSpec:
    return TaskSpec.model_validate({
        "name": "deep", "model": {"name": "cnn", "channels": [4]},
        "data": {"kind": "images", "classes": ["no", "yes"], "height": 8, "width": 8, "bits": 16, **data},
        "training": {"epochs": 8, "batch_size": 16, "learning_rate": 0.1},
    })  # fmt: skip


def test_a_network_learns_from_the_bits_that_8_have_not() -> None:
    """All its shades are within one shade of 8 bits; only exact sums bring them apart."""
    task, labels = spec(channels=2, window=None), np.arange(80) % 2
    lying = np.where(np.arange(8) % 4 < 2, 200, 30)[:, None] * np.ones(8)
    pixels = np.stack([lying.T if label else lying for label in labels])[:, None].repeat(2, 1).astype(np.uint16)
    assert len(np.unique(pixels >> 8)) == 1
    examples, model = ImageSet((pixels << 8).astype(np.uint16), labels), model_of(task)
    inputs = model.inputs(examples, public_sums(task.data))
    trained = train(task, model.initial(0), inputs, labels, seed=1)
    found = model.evaluate(trained, inputs).predictions
    assert (found.argmax(axis=1) == labels).mean() > 0.95


OLD = X_RAYS.encode()


def test_files_of_old_tasks_keep_their_meaning() -> None:
    """The row encoding is in digests that hospitals have on disk (`privacy.exact_statistics`)."""
    schema = parse_task_spec(OLD).data
    assert schema.row_encoding == b'{"kind":"images","height":8,"width":10,"channels":1}'
    assert schema.in_words == "images, 8 × 10 pixels; classes normal or ill"
    assert schema.reads == "images of 8 × 10 pixels, 1 channel(s)"
    colour = parse_task_spec(OLD.replace(b"height", b"channels = 3\nheight")).data
    assert colour.in_words == "images, 8 × 10 pixels, in colour; classes normal or ill"
    assert colour.row_encoding == b'{"kind":"images","height":8,"width":10,"channels":3}'


def test_what_makes_other_pixels_is_in_the_row_encoding() -> None:
    several = [PLAIN, DEEP, UNITS, PERCENT, DEEP.model_copy(update={"window": UNITS.window})]
    assert len({one.row_encoding for one in several}) == len(several)
    assert PLAIN.model_copy(update={"modality": "CT"}).row_encoding == PLAIN.row_encoding
    words = "images, 8 × 10 pixels, 16 bits, window of center 32768 and width 16384, CT; classes normal or ill"
    assert DEEP.model_copy(update={"window": UNITS.window, "modality": "CT"}).in_words == words
    assert PERCENT.reads.endswith("1 channel(s), window from 0 % to 100 % of an image's pixels")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("window = { center = 40 }", "either center and width, or low and high"),
        ("window = { center = 40, width = 400, low = 1, high = 99 }", "either center and width, or low and high"),
        ("window = { center = 40, width = 0 }", "greater than 0"),
        ("window = { center = 40, width = inf }", "finite"),
        ("window = { low = 60, high = 40 }", "low must be below high"),
        ("window = { low = 0, high = 101 }", "less than or equal to 100"),
        ("window = {}", "either center and width, or low and high"),
        ("bits = 12", "bits"),
        ("channels = 17", "16"),
        ("channels = 0", "1"),
        ("modality = 'ct scan'", "modality"),
    ],
)  # fmt: skip
def test_a_task_file_with_such_a_window_is_refused(line: str, words: str) -> None:
    with pytest.raises(SpecInvalid, match=words):
        parse_task_spec(OLD.replace(b"height = 8", f"{line}\nheight = 8".encode()))
