"""The shades that nodes read of an image are those that a browser computes (`dashboard/src/predict/pixels.ts`).

Pillow brings the width of these images first to its size.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.image.shades import fitted
from PIL import Image

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "pixels.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda one: f"{one['before']} to {one['after']}")
def test_an_image_is_brought_to_the_tasks_size_and_channels(vector: dict[str, Any]) -> None:
    """Its byte k is k² · 7 + k · 31, modulo 251, of RGB row by row."""
    height, width = vector["before"]
    at = np.arange(height * width * 3, dtype=np.int64)
    drawn = ((at * at * 7 + at * 31) % 251).astype(np.uint8).reshape(height, width, 3)
    channels, height, width = vector["after"]
    schema = ImageSchema(kind="images", classes=["no", "yes"], channels=channels, height=height, width=width)
    pixels = fitted(Image.fromarray(drawn), schema)
    assert pixels.reshape(-1)[:8].tolist() == vector["first"]
    assert hashlib.sha256(pixels.tobytes()).hexdigest() == vector["sha256"]
