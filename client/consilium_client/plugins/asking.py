"""Asks a plug-in's process for a metric's number or for a reader's data. Its code never runs in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from consilium_chain.tasks.plugin_specs import MetricPlugin, NamedPlugin, ReaderPlugin
from consilium_core.faults import FaultError
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.errors import DataError
from consilium_client.models.objectives.base import MOST_WORTH
from consilium_client.plugins.calling import CALL
from consilium_client.plugins.importing import IMPORT, failed
from consilium_client.plugins.installed import verified
from consilium_client.plugins.packing import READING, Unpackable, reason, stated_shapes
from consilium_client.programs import confined
from consilium_client.programs.confined import Header, Work
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.frames import Arrays, Shapes

ROOM: Final = 6 << 30  # bytes for libraries and results, whose sizes only the plug-in knows
OF_ARRAYS: Final = 4  # bytes for each byte that is given
READ_SECONDS: Final = 600.0
HOME: Final = "node.toml"

Found = TypeVar("Found")


def worth(spec: MetricPlugin, labels: Labels, predictions: NDArray[np.float64], seconds: float) -> float:
    """A metric of predictions (n, …) on rows with labels (n, …), more being better, within ± MOST_WORTH.

    Raises DataError (TooFewRows), PluginError, ProgramError (NotConfined).
    """
    if len(labels) == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
    given: dict[str, NDArray[Any]] = {"labels": labels, "predictions": predictions}
    memory = ROOM + OF_ARRAYS * sum(one.nbytes for one in given.values())
    work = Work("measure", given, {"worth": ((1,), "float64")}, memory, seconds)
    found = float(_asked(spec, work, CALL)["worth"][0])
    if not abs(found) <= MOST_WORTH:  # nor NaN
        raise failed(spec, CALL, f"its number is not between -{MOST_WORTH:,.0f} and {MOST_WORTH:,.0f}")
    return found


def read_data(
    spec: ReaderPlugin, path: Path, facts: Mapping[str, Any], require: Callable[[Shapes], None],
    unpack: Callable[[Arrays], Found],
) -> Found:  # fmt: skip
    """A reader's data of the file or folder at `path`. `facts`: of the task, for the reader. `require`: checks the
    arrays' shapes (as `packing` has them) before they are read. `unpack`: what it returns is returned. Both may raise
    Unpackable.

    Raises DataError (DataFileMissing), PluginError, ProgramError (NotConfined), and as `require` does.
    """
    verified(spec)
    if path.is_dir() and (path / HOME).exists():
        why = f"this folder has a node's settings ({HOME}), and a plug-in would read its key"
        raise DataError("DataFileMissing", path=path, why=why)
    path = path.resolve(strict=True)

    def wanted(stated: object) -> Shapes:
        shapes = stated_shapes(stated)
        require(shapes)
        return shapes

    def refusal(header: Header) -> FaultError:
        if (header.get("error"), header.get("name")) == ("ProgramError", "NotConfined"):
            return ProgramError("NotConfined", why="nothing keeps files from a reader (it needs Linux with Landlock)")
        values = header.get("values")
        told = values if isinstance(values, dict) else {"why": header.get("name")}
        step = IMPORT if told.get("step") == IMPORT else READING
        return failed(spec, step, reason(told.get("why")))

    values = {"path": f"{path}", "facts": dict(facts)}
    work = Work("read-data", {}, wanted, ROOM, READ_SECONDS, values, reads=path, refusal=refusal)
    try:
        return unpack(_asked(spec, work, READING))
    except Unpackable as error:
        raise failed(spec, READING, str(error)) from None
    finally:
        confined.end(spec, None)  # its process knows the rows


def _asked(spec: NamedPlugin, work: Work, step: str) -> Arrays:
    """Raises PluginError, also where the process ends or is late; ProgramError (NotConfined)."""
    try:
        return confined.computed(spec, None, work)
    except ProgramError as error:
        if error.name != "ProgramEnded":
            raise
        raise failed(spec, step, f"its process {error.values['why']}") from None
