"""Texts with labels, from a table or from a folder of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from consilium_chain.data_schemas import TextSchema
from numpy.typing import NDArray


@dataclass(frozen=True)
class TextSet:
    """`labels`: int64 (n,), a class's number each."""

    texts: tuple[str, ...] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)

    @property
    def rows(self) -> int:
        return len(self.labels)


def read_texts(path: Path, schema: TextSchema, *, allow_one_class: bool = True) -> TextSet:
    raise NotImplementedError
