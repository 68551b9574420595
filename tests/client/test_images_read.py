"""Images by every door: what is in is in unchanged, whichever door it took, and what is wrong is refused by name."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.examples import MOST_ROWS
from consilium_client.data.image import MOST_PIXELS
from consilium_client.data.image.reader import MOST_BYTES, ImageSet, most_images, read_raw_images
from consilium_client.data.kinds import read_examples
from consilium_client.errors import DataError, ExampleError, FolderError
from examples_read import read_images
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from raised_faults import raises_fault
from test_texts_read import FOLDERS, TABLES

GREY = ImageSchema(kind="images", classes=["normal", "ill"], height=8, width=10)
COLOUR = ImageSchema(kind="images", classes=["normal", "ill"], height=8, width=10, channels=3)
PNEUMONIA = Path(__file__).resolve().parents[3] / "shared" / "data" / "pneumoniamnist" / "pneumoniamnist_rebuilt.npz"
SECRET = "Mustermann"

RANDOM = np.random.default_rng(7)
SHADES = RANDOM.integers(0, 256, (8, 10), dtype=np.uint8)
COLOURS = RANDOM.integers(0, 256, (8, 10, 3), dtype=np.uint8)


def saved(image: Image.Image | NDArray[Any], kind: str = "PNG", **options: Any) -> bytes:
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(stream := io.BytesIO(), kind, **options)
    return stream.getvalue()


def png(width: int, height: int, depth: int = 8, kind: int = 0) -> bytes:
    """A header, and no pixels."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    data = b"IDAT" + zlib.compress(SECRET.encode())
    parts = [struct.pack(">I", len(p) - 4) + p + struct.pack(">I", zlib.crc32(p)) for p in (header, data, b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def one(tmp_path: Path, content: bytes, schema: ImageSchema = GREY, name: str = "a.png") -> NDArray[np.uint8]:
    """(channels, height, width) of the only image in a folder."""
    found = read_images(write_folder(tmp_path, {f"ill/{name}": content}), schema)
    assert found.labels.tolist() == [1]
    image: NDArray[np.uint8] = found.pixels[0]
    return image


def archive(path: Path, **arrays: Any) -> Path:
    np.savez_compressed(path, allow_pickle=True, **arrays)
    return path


# What is read


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
@pytest.mark.parametrize("name", ["a.png", "a.JPG", "a.tif"])
def test_pixels_of_the_right_size_are_kept_whatever_the_files_name(tmp_path: Path, kind: str, name: str) -> None:
    np.testing.assert_array_equal(one(tmp_path / "grey", saved(SHADES, kind), GREY, name)[0], SHADES)
    colour = one(tmp_path / "colour", saved(COLOURS, kind), COLOUR, name)
    np.testing.assert_array_equal(colour.transpose(1, 2, 0), COLOURS)


def test_jpeg_is_read(tmp_path: Path) -> None:
    smooth = np.add.outer(np.arange(8) * 5, np.arange(10) * 9).astype(np.uint8)
    found = one(tmp_path, saved(smooth, "JPEG", quality=95), name="a.jpeg")
    assert np.abs(found[0].astype(int) - smooth).max() <= 4


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.fromarray(SHADES > 127), np.where(SHADES > 127, 255, 0)),
        (Image.fromarray(SHADES).convert("P"), SHADES),
        (Image.merge("LA", [Image.fromarray(SHADES), Image.new("L", (10, 8), 255)]), SHADES),
        (Image.merge("RGBA", [*Image.fromarray(COLOURS).split(), Image.new("L", (10, 8), 255)]), None),
        (Image.fromarray(COLOURS), None),
    ],
    ids=["bilevel", "palette", "opaque grey", "opaque colour", "colour"],
)
def test_other_kinds_of_pixels_become_grey(tmp_path: Path, image: Image.Image, expected: NDArray[Any] | None) -> None:
    if expected is None:
        weighed = COLOURS @ np.array([0.299, 0.587, 0.114])
        assert np.abs(one(tmp_path, saved(image))[0] - weighed).max() <= 0.51
    else:
        np.testing.assert_array_equal(one(tmp_path, saved(image))[0], expected)


def test_grey_becomes_three_equal_channels(tmp_path: Path) -> None:
    np.testing.assert_array_equal(one(tmp_path, saved(SHADES), COLOUR), np.stack([SHADES] * 3))


TURNED: dict[int, Callable[[NDArray[Any]], NDArray[Any]]] = {
    1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud, 5: np.transpose,
    6: lambda a: np.rot90(a, -1), 7: lambda a: np.rot90(a.T, 2), 8: np.rot90,
}  # fmt: skip


@pytest.mark.parametrize("orientation", TURNED)
def test_stored_orientation_is_applied(tmp_path: Path, orientation: int) -> None:
    upright = TURNED[orientation](SHADES)
    schema = ImageSchema(kind="images", classes=["normal", "ill"], height=upright.shape[0], width=upright.shape[1])
    exif = Image.Exif()
    exif[0x0112] = orientation
    np.testing.assert_array_equal(one(tmp_path, saved(SHADES, exif=exif), schema)[0], upright)


def test_other_sizes_are_averaged_down_and_their_size_is_told(tmp_path: Path) -> None:
    """Not one pixel in four picked out: of a board of black and white the mean is left."""
    board = np.where(np.indices((32, 40)).sum(axis=0) % 2, 255, 0).astype(np.uint8)
    raw = read_raw_images(write_folder(tmp_path, {"ill/a.png": saved(board), "ill/b.png": saved(SHADES)}), GREY)
    assert raw.sizes.tolist() == [[32, 40], [8, 10]]
    assert np.abs(raw.images.pixels[0, 0, 1:-1, 1:-1].astype(int) - 127).max() <= 1
    np.testing.assert_array_equal(raw.images.pixels[1, 0], SHADES)


pictures = st.integers(1, 6).flatmap(
    lambda count: st.tuples(
        st.binary(min_size=count * 80, max_size=count * 80), st.lists(st.integers(0, 1), min_size=count, max_size=count)
    )
)


@given(pictures)
def test_archive_and_folders_lead_to_the_same_images(
    tmp_path_factory: pytest.TempPathFactory, given_: tuple[bytes, list[int]]
) -> None:
    raw, labels = given_
    place = tmp_path_factory.mktemp("images")
    images = np.frombuffer(raw, np.uint8).reshape(-1, 8, 10)
    npz = archive(place / "a.npz", images=images, labels=np.array(labels))
    files = {f"{at}.png": saved(image) for at, image in enumerate(images)}
    lines = [f"{at}.png,{GREY.classes[label]}\n" for at, label in enumerate(labels)]
    listed = write_folder(place / "listed", {"labels.csv": ("file,label\n" + "".join(lines)).encode(), **files})
    for path in (npz, listed):
        found = read_images(path, GREY)
        np.testing.assert_array_equal(found.pixels[:, 0], images)
        assert found.labels.tolist() == labels
    named = {f"{GREY.classes[label]}/{at}.png": files[f"{at}.png"] for at, label in enumerate(labels)}
    by_class = read_images(write_folder(place / "named", named), GREY)
    order = sorted(range(len(labels)), key=lambda at: (GREY.classes[labels[at]], at))
    np.testing.assert_array_equal(by_class.pixels[:, 0], images[order])


@pytest.mark.parametrize("shape", [(8, 10), (8, 10, 1), (8, 10, 3), (16, 20)])
def test_archive_of_any_known_shape_is_brought_to_the_schemas(tmp_path: Path, shape: tuple[int, ...]) -> None:
    images = RANDOM.integers(0, 256, (3, *shape), dtype=np.uint8)
    path = archive(tmp_path / "a.npz", images=np.asfortranarray(images), labels=np.array([0, 1, 1], np.uint8))
    raw = read_raw_images(path, COLOUR)
    assert raw.images.pixels.shape == (3, 3, 8, 10)
    assert raw.sizes.tolist() == [list(shape[:2])] * 3
    if shape == (8, 10, 3):
        np.testing.assert_array_equal(raw.images.pixels, images.transpose(0, 3, 1, 2))


# What is refused


def cmyk() -> bytes:
    return saved(Image.fromarray(COLOURS).convert("CMYK"), "JPEG")


def animated(kind: str) -> bytes:
    frames = [Image.fromarray(255 - SHADES)]
    return saved(Image.fromarray(SHADES), kind, save_all=True, append_images=frames)


def clear(mode: str) -> bytes:
    image = Image.fromarray(COLOURS).convert(mode)
    image.putalpha(Image.fromarray(SHADES))
    return saved(image)


def clear_palette() -> bytes:
    return saved(Image.fromarray(SHADES).convert("P"), transparency=int(SHADES[0, 0]))


def broken_exif() -> bytes:
    return saved(SHADES, "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\x12\x01\x03\0\xff\xff\xff\xff" * 4)


FILES: dict[str, tuple[bytes, str]] = {
    "no bytes": (b"", "ImageEmpty"),
    "text": (SECRET.encode(), "ImageKindWrong"),
    "gif": (saved(SHADES, "GIF"), "ImageKindWrong"),
    "webp": (saved(COLOURS, "WEBP"), "ImageKindWrong"),
    "postscript": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n" + SECRET.encode(), "ImageKindWrong"),
    "dicom": (bytes(128) + b"DICM" + SECRET.encode(), "DicomFieldWrong"),
    "png signature alone": (b"\x89PNG\r\n\x1a\n", "ImageUnreadable"),
    "png cut off": (saved(COLOURS)[:-40], "ImageUnreadable"),
    "png damaged": (saved(COLOURS).replace(b"IDAT", b"IDAT\xff\xff", 1), "ImageUnreadable"),
    "png without pixels": (png(8, 10), "ImageUnreadable"),
    "jpeg cut off": (saved(COLOURS, "JPEG")[:-30], "ImageUnreadable"),
    "jpeg header alone": (b"\xff\xd8\xff\xe0\0\x10JFIF", "ImageUnreadable"),
    "bmp cut off": (saved(COLOURS, "BMP")[:-30], "ImageUnreadable"),
    "tiff cut off": (saved(COLOURS, "TIFF")[:100], "ImageUnreadable"),
    "bomb": (png(1 << 13, (1 << 13) + 1), "ImageTooLarge"),
    "bomb that Pillow warns of": (png(10_000, 10_000), "ImageTooLarge"),
    "bomb that Pillow refuses": (png(100_000, 100_000), "ImageTooLarge"),
    "bomb of a bmp": (
        b"BM" + bytes(12) + struct.pack("<IiiHHIIiiII", 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0), "ImageTooLarge",
    ),
    "animated png": (animated("PNG"), "ImageInParts"),
    "pages of a tiff": (animated("TIFF"), "ImageInParts"),
    "pictures of a jpeg": (animated("MPO"), "ImageInParts"),
    "16 bits": (saved(SHADES.astype(np.uint16) * 257), "ImageTooDeep"),
    "16 bits of colour": (png(8, 10, depth=16, kind=2), "ImageTooDeep"),
    "16 bits of colour and alpha": (png(8, 10, depth=16, kind=6), "ImageTooDeep"),
    "16 bits of a tiff": (saved(SHADES.astype(np.uint16), "TIFF"), "ImageTooDeep"),
    "32 bits": (saved(SHADES.astype(np.int32), "TIFF"), "ImageTooDeep"),
    "floats": (saved(SHADES.astype(np.float32), "TIFF"), "ImageTooDeep"),
    "cmyk": (cmyk(), "ImageColoursWrong"),
    "lab": (saved(Image.merge("LAB", Image.fromarray(COLOURS).split()), "TIFF"), "ImageColoursWrong"),
    "transparent": (clear("RGBA"), "ImageTransparent"),
    "transparent grey": (clear("LA"), "ImageTransparent"),
    "transparent palette": (clear_palette(), "ImageTransparent"),
    "transparent grey by colour": (saved(SHADES, transparency=int(SHADES[0, 0])), "ImageTransparent"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_bad_image_is_refused_by_name_and_nothing_is_read(tmp_path: Path, case: str) -> None:
    content, error = FILES[case]
    folder = write_folder(tmp_path, {"ill/a.png": saved(SHADES), "ill/b.png": content, "normal/c.png": saved(SHADES)})
    with pytest.raises(DataError) as caught:
        read_images(folder, GREY)
    assert caught.value.name == error
    assert str(caught.value).startswith(f"{folder}, ill/b.png: ")
    nothing_leaks(caught.value)


@contextlib.contextmanager
def suppressed(*names: str) -> Iterator[None]:
    try:
        yield
    except DataError as error:
        if error.name not in names:
            raise


def test_tags_that_are_no_tags_do_not_end_the_program(tmp_path: Path) -> None:
    """Read as it lies, or refused by name."""
    with suppressed("ImageUnreadable"):
        assert one(tmp_path, broken_exif()).shape == (1, 8, 10)


@given(st.binary(max_size=300), st.integers(0, 5), st.integers(0, 300))
def test_foreign_bytes_are_pixels_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, kind: int, at: int
) -> None:
    whole = [saved(SHADES), saved(COLOURS, "JPEG"), saved(SHADES, "BMP"), saved(SHADES, "TIFF"), cmyk(), b""][kind]
    folder = write_folder(tmp_path_factory.mktemp("f"), {"ill/a.png": whole[:at] + noise + whole[at + len(noise) :]})
    with contextlib.suppress(ExampleError):
        assert read_images(folder, GREY).pixels.shape == (1, 1, 8, 10)


@given(st.binary(max_size=40), st.integers(0, 1200), st.integers(0, 40))
def test_archive_of_foreign_bytes_is_images_or_a_named_error(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, left_out: int
) -> None:
    whole = npz(images=np.stack([SHADES] * 3), labels=np.array([0, 1, 1]))
    path = tmp_path_factory.mktemp("a") / "a.npz"
    path.write_bytes(whole[:at] + noise + whole[at + left_out :])
    with suppressed("ArraysWrong", "LabelOutOfSchema", "ImageTooLarge", "TooManyRows"):
        assert read_images(path, GREY).pixels.shape[1:] == (1, 8, 10)


FOLDER_FAULTS: dict[str, tuple[dict[str, bytes], str, str]] = {
    "nothing in it": ({".DS_Store": b""}, "DataFileEmpty", "put files into the folder"),
    "class unknown": ({"sick/a.png": saved(SHADES)}, "ClassFolderUnknown", "sick"),
    "file of another kind": ({"ill/a.png": saved(SHADES), "ill/Thumbs.db": b"x"}, "FileUnexpected", "ill/Thumbs.db"),
    "text among images": ({"ill/a.txt": b"x"}, "FileUnexpected", "ill/a.txt"),
    "listed label unknown": (
        {"labels.csv": b"file,label\na.png,2\n", "a.png": saved(SHADES)}, "LabelUnknown", "labels.csv, line 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDER_FAULTS)
def test_bad_folder_of_images_is_refused_by_name(tmp_path: Path, case: str) -> None:
    files, error, words = FOLDER_FAULTS[case]
    with pytest.raises(DataError) as caught:
        read_images(write_folder(tmp_path, files), GREY)
    assert caught.value.name == error
    assert words in str(caught.value)


def member(content: bytes, name: str = "images.npy") -> bytes:
    """An archive with this for one of its arrays."""
    with zipfile.ZipFile(stream := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as packed:
        for which in ("images.npy", "labels.npy"):
            np.save(own := io.BytesIO(), SHADES[None] if which == "images.npy" else np.array([1]))
            packed.writestr(which, content if which == name else own.getvalue())
    return stream.getvalue()


def npy_header(shape: tuple[int, ...], kind: str = "|u1") -> bytes:
    np.lib.format.write_array_header_1_0(
        stream := io.BytesIO(), {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    np.savez(stream := io.BytesIO(), allow_pickle=True, **arrays)
    return stream.getvalue()


ARRAYS: dict[str, tuple[bytes, str, str]] = {
    "a table": (f"image,label\n{SECRET},1\n".encode(), "ArraysWrong", "neither a folder nor"),
    "no bytes": (b"", "ArraysWrong", "neither a folder nor"),
    "another archive": (member(b"").replace(b"labels.npy", b"letter.doc"), "ArraysWrong", "images and labels"),
    "arrays of three parts": (
        npz(train_images=SHADES[None], train_labels=np.array([1])), "ArraysWrong", "images and labels",
    ),
    "one more array": (npz(images=SHADES[None], labels=np.array([1]), names=[SECRET]), "ArraysWrong", "and no others"),
    "cut off": (npz(images=SHADES[None], labels=np.array([1]))[:-30], "ArraysWrong", "cut off"),
    "no array": (member(SECRET.encode()), "ArraysWrong", "damaged"),
    "array cut off": (member(npy_header((9, 8, 10)) + SECRET.encode()), "ArraysWrong", "damaged"),
    "array with a tail": (member(npy_header((1, 2, 2)) + SECRET.encode()), "ArraysWrong", "damaged"),
    "pickle": (npz(images=np.array([{"name": SECRET}]), labels=np.array([1])), "ArraysWrong", "object"),
    "pickle under another header": (
        member(npy_header((1,), "|O") + b"cos\nsystem\n(S'false'\ntR."), "ArraysWrong", "object",
    ),
    "floats": (npz(images=SHADES[None] / 255, labels=np.array([1])), "ArraysWrong", "float64"),
    "16 bits": (npz(images=SHADES[None].astype(np.uint16), labels=np.array([1])), "ArraysWrong", "uint16"),
    "flat": (npz(images=SHADES, labels=np.array([1])), "ArraysWrong", "(8, 10)"),
    "four channels": (npz(images=np.zeros((1, 8, 10, 4), np.uint8), labels=np.array([1])), "ArraysWrong", "10, 4)"),
    "no pixels": (npz(images=np.zeros((1, 0, 10), np.uint8), labels=np.array([1])), "ArraysWrong", "(1, 0, 10)"),
    "labels in a column": (npz(images=SHADES[None], labels=np.array([[1]])), "ArraysWrong", "labels has type int64"),
    "labels that are names": (npz(images=SHADES[None], labels=np.array([SECRET])), "ArraysWrong", "type <U10"),
    "labels that are floats": (npz(images=SHADES[None], labels=np.array([1.0])), "ArraysWrong", "float64"),
    "fewer labels": (npz(images=SHADES[None], labels=np.array([1, 1])), "ArraysWrong", "1 images, but 2 labels"),
    "label two": (npz(images=np.stack([SHADES] * 2), labels=np.array([1, 2])), "LabelOutOfSchema", "row 2"),
    "label below": (npz(images=SHADES[None], labels=np.array([-1])), "LabelOutOfSchema", "row 1"),
    "label huge": (npz(images=SHADES[None], labels=np.array([2**64 - 1], np.uint64)), "LabelOutOfSchema", "row 1"),
    "no images": (npz(images=SHADES[None][:0], labels=np.array([], int)), "DataFileEmpty", "no rows"),
    "too many": (member(npy_header((MOST_ROWS + 1, 8, 10))), "TooManyRows", str(MOST_ROWS)),
    "too many labels": (member(npy_header((MOST_ROWS + 1,), "|u1"), "labels.npy"), "TooManyRows", str(MOST_ROWS)),
    "too large together": (member(npy_header((65, 1 << 13, 1 << 13))), "TooManyRows", "at most 64;"),
    "bomb": (member(npy_header((1, 1 << 14, 1 << 13))), "ImageTooLarge", "images: "),
}  # fmt: skip


@pytest.mark.parametrize("case", ARRAYS)
def test_bad_archive_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, error, words = ARRAYS[case]
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_images(tmp_path / "a.npz", GREY)
    assert caught.value.name == error
    assert words in str(caught.value)
    nothing_leaks(caught.value)


def nothing_leaks(error: BaseException | None) -> None:
    said = str(error)
    assert "; " in said
    assert len(said) < 600
    while error is not None:
        assert SECRET not in str(error)
        assert SECRET not in repr(error.args)
        error = error.__cause__ or error.__context__


def test_what_is_not_there_or_not_enough_is_refused(tmp_path: Path) -> None:
    with raises_fault(DataError, "DataFileMissing"):
        read_images(tmp_path / "none", GREY)
    folder = write_folder(tmp_path / "f", {"ill/a.png": saved(SHADES)})
    with raises_fault(DataError, "OneClassOnly"):
        read_examples(folder, GREY, allow_one_class=False)


def test_bounds_are_those_that_messages_name_and_memory_has_one() -> None:
    assert f"more than {MOST_PIXELS:,} pixels" in str(ExampleError("ImageTooLarge", path=Path("f"), at="a"))
    large = ImageSchema(kind="images", classes=["a", "b"], height=512, width=512, channels=3)
    assert most_images(GREY) == MOST_ROWS
    assert most_images(large) * 512 * 512 * 3 <= MOST_BYTES < (most_images(large) + 1) * 512 * 512 * 3


def test_every_error_about_folders_and_examples_has_a_case() -> None:
    tables = [error for _, _, error, _ in TABLES.values()]
    folders = [error for _, error, _ in [*FOLDERS.values(), *FOLDER_FAULTS.values(), *ARRAYS.values()]]
    known = {"ArraysWrong", "LabelUnknown", *FolderError.MESSAGES, *ExampleError.MESSAGES}
    others = ("Dicom", "Nifti", "Mask", "Channel", "FilesApart")  # test_dicom_read, test_volumes_read, …
    elsewhere = {"ImageNotGrey", "ImageTooShallow", *(name for name in known if name.startswith(others))}
    assert known - elsewhere <= {*tables, *folders, *(error for _, error in FILES.values())}


# Real images


def pneumonia(part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    with np.load(PNEUMONIA, allow_pickle=False) as arrays:
        return arrays[f"{part}_images"], arrays[f"{part}_labels"][:, 0].astype(np.int64)


@pytest.mark.skipif(not PNEUMONIA.is_file(), reason=f"no PneumoniaMNIST at {PNEUMONIA}")
def test_pneumoniamnist_is_the_same_as_an_archive_and_as_files(tmp_path: Path) -> None:
    schema = ImageSchema(kind="images", classes=["normal", "pneumonia"], height=28, width=28)
    images, labels = pneumonia("val")
    whole = read_images(archive(tmp_path / "val.npz", images=images, labels=labels), schema)
    np.testing.assert_array_equal(whole.pixels[:, 0], images)
    sample = {f"{schema.classes[labels[at]]}/{at:04}.png": saved(images[at]) for at in range(0, len(images), 7)}
    found = read_images(write_folder(tmp_path / "f", sample), schema)
    order = [int(name[-8:-4]) for name in sorted(sample)]
    np.testing.assert_array_equal(found.pixels[:, 0], images[order])
    np.testing.assert_array_equal(found.labels, labels[order])
    assert isinstance(found, ImageSet)
    rows = list(whole.row_bytes())
    assert list(found.row_bytes()) == [rows[at] for at in order]
    with raises_fault(DataError, "ArraysWrong"):
        read_images(PNEUMONIA, schema)


def test_image_of_another_user_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {"ill/a.png": saved(SHADES)})
    (folder / "ill" / "a.png").chmod(0)
    user = os.geteuid()
    try:
        if user == 0:  # who may read everything
            os.seteuid(65_534)
        with raises_fault(DataError, "DataFileMissing", match="Permission denied"):
            read_images(folder, GREY)
    finally:
        os.seteuid(user)
