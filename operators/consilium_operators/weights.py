"""Files of weights in the artifact store, for tasks that start from them."""

from __future__ import annotations

from pathlib import Path

import tomli_w
from consilium_chain.artifacts.store import MOST_FILE_BYTES, ArtifactStore
from consilium_chain.tasks.start_specs import MOST_PARTS, FileStart

from consilium_operators.errors import OperatorError


def store_weights(store: ArtifactStore, file: Path) -> str:
    """Stores the file in parts; returns the section `[start]` of these. Raises OperatorError (WeightsTooLong)."""
    size, most = file.stat().st_size, MOST_PARTS * MOST_FILE_BYTES
    if not 0 < size <= most:
        raise OperatorError("WeightsTooLong", path=file, size=size, most=most)
    with file.open("rb") as source:
        parts = [store.put_file(part).hex() for part in iter(lambda: source.read(MOST_FILE_BYTES), b"")]
    return tomli_w.dumps({"start": FileStart(name="file", parts=parts).model_dump()})
