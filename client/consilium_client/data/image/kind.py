"""Images, as one of the kinds of examples."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from pathlib import Path

from consilium_chain.tasks.data_schemas import ImageSchema
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.image.profile import ImageProfile, profile_images
from consilium_client.data.image.reader import ImageSet, RawImages, read_raw_images, room
from consilium_client.data.kinds import Kind

IMAGE = "image"  # the column of a request


class ImageKind(Kind[RawImages, ImageSchema]):
    def read(self, path: Path, schema: ImageSchema, mapping: Path | None) -> RawImages:
        return read_raw_images(path, schema)

    def examples(self, raw: RawImages, schema: ImageSchema) -> ImageSet:
        return raw.images

    def profile(self, raw: RawImages, spec: TaskSpec) -> ImageProfile:
        return profile_images(raw, spec)

    def requested(self, rows: Sequence[Row], schema: ImageSchema, refusal: Refusal) -> ImageSet:
        """A value is the base64 of a file."""
        from consilium_client.data.image.files import decoded, fitted

        pixels, _ = room(len(rows), schema)
        for at, row in enumerate(rows, 1):
            value, where = row[IMAGE], f"row {at}, column {IMAGE}"
            try:
                raw = base64.b64decode(value, validate=True) if isinstance(value, str) else None
            except (binascii.Error, ValueError):
                raw = None
            if raw is None:
                raise refusal(f"{where}: the value is no base64 of an image file")
            pixels[at - 1] = fitted(decoded(io.BytesIO(raw), REQUEST, where), schema)
        return ImageSet(pixels, unlabelled(rows))


KIND = ImageKind()
