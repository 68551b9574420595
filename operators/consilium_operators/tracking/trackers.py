"""Opens the trackers of a task that is watched."""

from __future__ import annotations

from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger

from consilium_operators.tracking.follower import Tracker, Tracking, tracked_task


def open_tracking(
    ledger: Ledger, task: int, mlflow: str | None, tensorboard: Path | None, store: ArtifactStore | None
) -> Tracking:
    """`mlflow`: a server's URL. `tensorboard`: a folder. `store`: for the model; without it no model is tracked.

    Raises Refused (TaskUnknown), OperatorError (TrackingFailed), ModuleNotFoundError without the extra `tracking`.
    """
    tracked, trackers = tracked_task(ledger, task), list[Tracker]()
    if tensorboard is not None:
        from consilium_operators.tracking.tensorboard_files import TensorBoardFiles

        trackers.append(TensorBoardFiles(tensorboard, tracked))
    if mlflow is not None:
        from consilium_operators.tracking.mlflow_server import MlflowServer

        trackers.append(MlflowServer(mlflow, tracked))
    if store is None:
        return Tracking(trackers)
    from consilium_operators.download import download

    return Tracking(trackers, lambda output: download(ledger, store, task, output))
