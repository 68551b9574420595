"""Points as TensorBoard's event files. Needs the extra `tracking`."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from consilium_operators.tracking.follower import TrackedTask
from consilium_operators.tracking.points import Point, PointKey

MODEL = "model"
EVENTS = "events.out.tfevents.*"
ALL = 0  # EventAccumulator's "keep every point"


class TensorBoardFiles:
    """A task's folder in TensorBoard's --logdir."""

    def __init__(self, folder: Path, task: TrackedTask) -> None:
        self._folder = folder / task.name
        self._writer: SummaryWriter | None = None

    @property
    def location(self) -> str:
        return str(self._folder)

    def kept(self) -> dict[PointKey, float]:
        found: dict[PointKey, float] = {}
        # One file after the other: the last one has corrections.
        for path in sorted(self._folder.glob(EVENTS), key=lambda path: path.stat().st_mtime_ns):
            events = EventAccumulator(str(path), size_guidance={"scalars": ALL})
            events.Reload()
            for name in events.Tags()["scalars"]:
                found |= {(name, event.step): event.value for event in events.Scalars(name)}
        return found

    def add(self, points: Sequence[Point]) -> None:
        if self._writer is None:
            self._writer = SummaryWriter(str(self._folder))
        for point in points:
            self._writer.add_scalar(point.name, point.value, point.step, walltime=point.time)
        self._writer.flush()

    def has_model(self) -> bool:
        return (self._folder / MODEL).exists()

    def add_model(self, folder: Path) -> None:
        """TensorBoard has no artefacts: the files lie beside the points."""
        draft = self._folder / f"{MODEL}.draft"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(folder, draft)
        draft.rename(self._folder / MODEL)

    def end(self) -> None:
        if self._writer is not None:
            self._writer.close()
