"""Masks that a finished model predicts: a file for each case of a folder of images, as a segmentation's masks are."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Segmentation
from consilium_client.data.image.cases import Unmarked, read_unmarked, unmarked
from consilium_client.data.image.reader import ImageSet
from consilium_client.models.metrics import predicted
from consilium_core.kinds import of_kind
from consilium_core.private_files import write_private_file
from numpy.typing import NDArray
from PIL import Image

from consilium_operators.prediction import Predictor
from consilium_operators.prediction_file import Predictions, require_free


def write_masks(predictor: Predictor, images: Path, output: Path) -> Predictions:
    """Writes a new folder with a mask for each case: NIfTI with the case's axes and affine, or PNG, of the images' own
    size. Returns the number of voxels or pixels of each class, a row for each mask.

    Nothing is written if a case has a fault. Raises DataError, OperatorError (OutputTaken).
    """
    require_free(output)
    schema = of_kind(ImageSchema, predictor.saved.spec.data)
    classes = of_kind(Segmentation, schema.asked).classes
    rows, root = list[list[object]](), images.absolute().parent
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=".masks-") as folder:
        (written := Path(folder) / "masks").mkdir(mode=0o700)
        for case in unmarked(images, schema):
            found = read_unmarked(root, case, schema)
            marks = _marks(predictor, found)
            name = f"{case.name}.nii.gz" if found.volume else f"{case.name}.png"
            write_private_file(written / name, _content(found, marks))
            rows.append([name, *np.bincount(marks.ravel(), minlength=len(classes)).tolist()])
        written.rename(output)
    return Predictions(["file", *classes], rows)


def _marks(predictor: Predictor, found: Unmarked) -> NDArray[np.uint8]:
    """Each pixel's class, uint8 (n, height, width) of the images' own size. Images of a single shade have none."""
    count, _, height, width = found.pixels.shape
    marks = np.zeros((count, *found.size), np.uint8)
    for start in range(0, count, predictor.most_rows):
        pixels = found.pixels[start : start + predictor.most_rows]
        examples = ImageSet(pixels, np.zeros((len(pixels), height, width), np.uint8))
        called = predicted(predictor.evaluation(examples).predictions).astype(np.uint8)
        for at, one in enumerate(called, start):
            scaled = Image.fromarray(one).resize(found.size[::-1], Image.Resampling.NEAREST)
            marks[at] = 0 if found.blank[at] else np.asarray(scaled)
    return marks


def _content(found: Unmarked, marks: NDArray[np.uint8]) -> bytes:
    if found.volume:
        return gzip.compress(found.volume.with_marks(marks), mtime=0)
    Image.fromarray(marks[0]).save(stream := io.BytesIO(), "PNG")
    return stream.getvalue()
