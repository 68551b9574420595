"""The profile of texts and images before joining: concerns, and round 0's numbers as a node has them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.hospital.data_check import WIDTH, screen
from consilium_client.data.examples import Source
from consilium_client.data.image import kind as image_profile
from consilium_client.data.image.kind import ImageProfile
from consilium_client.data.image.reader import ImageSet, RawImages
from consilium_client.data.profile import Profile
from consilium_client.data.standardise import sums_of
from consilium_client.data.text import kind as text_profile
from consilium_client.data.text.kind import TextProfile
from consilium_client.data.text.reader import RawTexts, TextSet
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.console import Console
from task_files import NOTES, X_RAYS

EXACT = 'statistics = "exact"'
THREE = NOTES.replace('"ill"', '"ill", "unknown"')
TEXTS = parse_task_spec(f"{EXACT}{THREE}[rounds]\nrounds = 7\n".encode())
IMAGES = parse_task_spec((EXACT + X_RAYS).encode())
COLOUR = IMAGES.model_copy(update={"data": IMAGES.data.model_copy(update={"channels": 3})})
PRIVATE = {"epsilon": 3.0, "delta": 1e-6, "max_grad_norm": 1.0}
RANDOM = np.random.default_rng(3)
TextConcern, ImageConcern = text_profile.Concern, image_profile.Concern


def of_texts(texts: Sequence[str], labels: Sequence[int], spec: TaskSpec = TEXTS) -> TextProfile:
    held = TextSet(tuple(texts), np.array(labels))
    sources: dict[str, str | None] = {"text": "note", "found": "dx"}
    return text_profile.KIND.profile(RawTexts(Source(Path("/t.csv"), "CSV", sources, 1, ("name",)), held), spec)


def of_images(
    pixels: NDArray[np.uint8], labels: Sequence[int], sizes: Sequence[tuple[int, int]] = (), spec: TaskSpec = IMAGES
) -> ImageProfile:
    held = ImageSet(pixels, np.array(labels))
    known = np.array([*sizes, *[pixels.shape[2:]] * (len(pixels) - len(sizes))])
    return image_profile.KIND.profile(RawImages(Source(Path("/x"), "folder", left_aside=2), held, known), spec)


def concerns(found: Profile) -> list[tuple[object, int]]:
    assert {one.of for one in found.findings} <= {found.rows}
    return [(one.concern, one.count) for one in found.findings]


def said(found: Profile) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), record=True)
    console.print(screen(found))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= WIDTH
    return " ".join(text.split())


def notes(count: int) -> list[str]:
    return [f"patient number {at} is well" for at in range(count)]


def noise(count: int, channels: int = 1) -> NDArray[np.uint8]:
    return RANDOM.integers(0, 256, (count, channels, 8, 10), dtype=np.uint8)


# Texts


@pytest.mark.parametrize(
    ("more", "label", "expected"),
    [
        ([], 0, []),
        (["one two three four five six seven eight"], 0, []),
        (["one two three four five six seven eight nine"], 0, [(TextConcern.CUT, 1)]),
        (["two words", "C50.9"], 0, [(TextConcern.FEW_WORDS, 2)]),
        (["three whole words"], 0, []),
        (["es war ein Ödem", "ein Odem\u00a0der Â"], 0, []),
        (["es war ein Ã–dem", "es war \ufffd", "itâ€™s an oedema"], 0, [(TextConcern.BROKEN_LETTERS, 3)]),
        (notes(2), 0, [(TextConcern.DUPLICATES, 2), (TextConcern.CONTRADICTING, 1)]),
    ],
)
def test_each_concern_of_texts_is_counted(more: list[str], label: int, expected: list[object]) -> None:
    labels = [at % 2 for at in range(20)]
    assert concerns(of_texts(notes(20) + more, labels + [label] * len(more))) == expected


def test_texts_of_one_class_are_a_concern() -> None:
    found = of_texts(notes(3), [2, 2, 2])
    assert concerns(found) == [(TextConcern.ONE_CLASS, 3)]
    assert found.answers == (("healthy", 0), ("ill", 0), ("unknown", 3))


def test_screen_of_texts_shows_lengths_and_what_leaves_and_no_text() -> None:
    texts = [*notes(20), "Frau Mustermann " + "x " * 3000]
    found = of_texts(texts, [at % 2 for at in range(21)])
    assert (found.words.shortest, found.words.median, found.words.longest) == (5, 5.0, 3002)
    text = said(found)
    for words in (
        "/t.csv (CSV): 21 texts",
        "label found (dx in the file): 11 healthy (52%), 10 ill (48%), 0 unknown (0%)",
        "not read: 1 column(s) of the file (name)",
        "words 5 5 3,002",
        "The model reads the first 8 tokens",
        "1 of 21: texts with more words",
        "on joining the number of texts, 21, in public",
        "round 0 the number of texts, 21; 1 blob of 128 KiB; masked",
        "rounds 1 to 7 the change of",
        "never the texts",
    ):
        assert words in text
    assert "Mustermann" not in text
    assert "Σu" not in text
    assert [value for value in ("3002", "('healthy', 11)") if value in repr(found)] == []
    private = TaskSpec.model_validate(TEXTS.model_dump() | {"privacy": PRIVATE, "statistics": "schema"})
    assert "round 0 nothing about these texts" in said(of_texts(texts, [0, 1, 2] * 7, private))


# Images


def test_each_concern_of_images_is_counted() -> None:
    images = noise(20)
    labels = [at % 2 for at in range(20)]
    assert concerns(of_images(images, labels)) == []
    flat = np.full((1, 1, 8, 10), 77, np.uint8)
    assert concerns(of_images(np.concatenate([images, flat]), [*labels, 1])) == [(ImageConcern.CONSTANT, 1)]
    dark = (noise(1) % 10).astype(np.uint8)
    assert concerns(of_images(np.concatenate([images, dark]), [*labels, 1])) == [(ImageConcern.DARK, 1)]
    again = np.concatenate([images, images[:3]])
    assert concerns(of_images(again, [*labels, 0, 1, 1])) == [
        (ImageConcern.DUPLICATES, 3),
        (ImageConcern.CONTRADICTING, 1),
    ]
    assert concerns(of_images(images, [1] * 20)) == [(ImageConcern.ONE_CLASS, 20)]
    red = np.concatenate([np.full((1, 1, 8, 10), shade, np.uint8) for shade in (200, 3, 4)], axis=1)
    colours = np.concatenate([noise(2, 3), red])
    assert concerns(of_images(colours, [0, 1, 1], spec=COLOUR)) == [(ImageConcern.CONSTANT, 1)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((8, 10), []), ((80, 100), []), ((96, 100), []), ((80, 96), []),
        ((7, 10), [(ImageConcern.ENLARGED, 1)]),
        ((80, 9), [(ImageConcern.ENLARGED, 1), (ImageConcern.STRETCHED, 1)]),
        ((100, 80), [(ImageConcern.STRETCHED, 1)]), ((80, 200), [(ImageConcern.STRETCHED, 1)]),
    ],
)  # fmt: skip
def test_sizes_are_held_against_the_tasks(size: tuple[int, int], expected: list[object]) -> None:
    assert concerns(of_images(noise(6), [0, 1] * 3, [size])) == expected


@given(st.integers(1, 5), st.sampled_from([1, 3]), st.integers(0, 2**32))
def test_preview_of_images_is_what_the_node_will_send(count: int, channels: int, seed: int) -> None:
    spec = COLOUR if channels == 3 else IMAGES
    pixels = np.random.default_rng(seed).integers(0, 256, (count, channels, 8, 10), dtype=np.uint8)
    found = of_images(pixels, [0] * count, spec=spec)
    shown = np.array([[one.known, one.total, one.squares] for one in found.statistics]).T.ravel()
    np.testing.assert_array_equal(shown, sums_of(ImageSet(pixels, np.zeros(count, np.int64)), spec.data))
    assert len(shown) == spec.statistics_values


def test_screen_of_images_shows_sizes_and_what_leaves() -> None:
    images = noise(5)
    found = of_images(images, [0, 1, 1, 1, 0], [(400, 500), (2000, 2500), (80, 100)])
    assert found.sizes == ((8, 10), (80, 100), (2000, 2500))
    text = said(found)
    for words in (
        "/x (folder): 5 images",
        "classes: 2 normal (40%), 3 ill (60%)",
        "not read: 2 file(s) that its list does not name",
        "8 × 10 80 × 100 2,000 × 2,500",
        "scales them to 8 × 10 pixels, in grey",
        "No problem found",
        "channel images Σu Σu²",
        "grey 5 ",
        "the 3 sums above, rounded",
        "the change of 45 parameters by training on these images",
        "never the images",
    ):
        assert words in text
    assert "2000" not in repr(found)
    private = TaskSpec.model_validate(IMAGES.model_dump() | {"privacy": PRIVATE, "statistics": "schema"})
    shown = said(of_images(images, [0, 1, 1, 1, 0], spec=private))
    assert "round 0 nothing about these images" in shown
    assert "cost an image at most epsilon 3" in shown
    assert "Σu" not in shown
    assert " red 2 " in said(of_images(noise(2, 3), [0, 1], spec=COLOUR))
