"""Images with other channels than 1 or 3: a grey file for each, beside a class or in a list."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.image.kind import KIND
from consilium_client.data.image.reader import read_raw_images
from consilium_client.data.use import Use
from consilium_client.errors import DataError
from nifti_files import write_cases
from numpy.typing import NDArray
from PIL import Image
from raised_faults import raises_fault

SCHEMA = ImageSchema(kind="images", height=8, width=8, channels=4, classes=["no", "yes"])
PLANES = np.random.default_rng(1).integers(0, 256, (3, 4, 8, 8), dtype=np.uint8)


def png(pixels: NDArray[Any]) -> bytes:
    Image.fromarray(pixels).save(stream := io.BytesIO(), "PNG")
    return stream.getvalue()


def files(under: tuple[str, ...] = ("no/", "yes/x/", "yes/")) -> dict[str, bytes]:
    names = [
        (f"{place}scan{at}_000{channel}.png", at, channel) for at, place in enumerate(under) for channel in range(4)
    ]
    return {name: png(PLANES[at, channel]) for name, at, channel in names}


def test_a_file_for_each_channel_makes_one_image(tmp_path: Path) -> None:
    found = read_raw_images(write_cases(tmp_path / "classes", files()), SCHEMA).images
    order = [0, 2, 1]  # by name
    np.testing.assert_array_equal(found.pixels, PLANES[order])
    assert found.labels.tolist() == [0, 1, 1]
    listed = "file,label\n" + "".join(f"{name},no\n" for name in files(("", "", "")))
    again = read_raw_images(
        write_cases(tmp_path / "listed", files(("", "", "")) | {"labels.csv": listed.encode()}), SCHEMA
    )
    np.testing.assert_array_equal(again.images.pixels, PLANES)
    used = KIND.in_use(tmp_path / "classes", SCHEMA, Use())
    assert used.names == ("no/scan0_0000.png", "yes/scan2_0000.png", "yes/x/scan1_0000.png")


SMALL = {"no/scan0_0002.png": png(np.zeros((8, 9), np.uint8))}


@pytest.mark.parametrize(
    ("changed", "fault", "place"),
    [
        ({"no/scan0_0002.png": None}, "ChannelMissing", "no/scan0_0002"),
        ({"no/scan0_0004.png": b"x"}, "FileUnexpected", "no/scan0_0004.png"),
        ({"no/scan.png": b"x"}, "FileUnexpected", "no/scan.png"),
        ({"no/_0001.png": b"x"}, "FileUnexpected", "no/_0001.png"),
        ({"no/scan0_0001.bmp": b"x"}, "NamesAlike", "no/scan0_0001"),
        (SMALL, "FilesApart", "no/scan0_0002.png"),
        ({"labels.csv": b"file,label\nno/scan0_0000.png,no\nno/scan0_0001.png,yes\nno/scan0_0002.png,no\n"
                        b"no/scan0_0003.png,no\n"}, "ChannelsDiffer", "no/scan0_0001.png"),
    ],
)  # fmt: skip
def test_incomplete_channels_are_refused_by_name(
    changed: dict[str, bytes | None], fault: str, place: str, tmp_path: Path
) -> None:
    found = {name: content for name, content in (files() | changed).items() if content is not None}
    with raises_fault(DataError, fault, place):
        read_raw_images(write_cases(tmp_path, found), SCHEMA)
