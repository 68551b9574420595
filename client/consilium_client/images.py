"""Images with labels, from a folder of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from consilium_chain.data_schemas import ImageSchema
from numpy.typing import NDArray


@dataclass(frozen=True)
class ImageSet:
    """Pixels uint8 (n, channels, height, width) as the schema has them; labels int64 (n,), a class's number each."""

    pixels: NDArray[np.uint8] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    @property
    def rows(self) -> int:
        return len(self.labels)


def read_images(path: Path, schema: ImageSchema, *, allow_one_class: bool = True) -> ImageSet:
    raise NotImplementedError
