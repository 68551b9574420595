"""Points as metrics of a run on an MLflow server. Needs the extra `tracking`.

A server's user and password, or its token, come from MLflow's own variables (MLFLOW_TRACKING_USERNAME,
MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# MLflow reports its use to its makers unless it is told not to. It is told before its first import.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# Standard output has the events alone.
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")

from consilium_core.visible_text import without_secrets
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from consilium_operators.errors import OperatorError
from consilium_operators.tracking.follower import TrackedTask
from consilium_operators.tracking.points import Point, PointKey

EXPERIMENT, EXPERIMENT_VARIABLE = "consilium", "MLFLOW_EXPERIMENT_NAME"
MODEL = "model"
TASK_TAG, MODEL_TAG = "consilium.task", "consilium.model"
MOST_METRICS = 1_000  # in one request (MLflow's REST API, runs/log-batch)


class MlflowServer:
    """A task's run on the server: a later watch of the same task continues it."""

    def __init__(self, uri: str, task: TrackedTask) -> None:
        """Finds the run or creates it. Raises OperatorError (TrackingFailed)."""
        self._uri, self._client = uri, MlflowClient(tracking_uri=uri)
        with self._answering():
            experiment = self._experiment()
            self._run = self._found(experiment, task) or self._created(experiment, task)

    @property
    def location(self) -> str:
        return without_secrets(self._uri)

    def kept(self) -> dict[PointKey, float]:
        found: dict[PointKey, float] = {}
        with self._answering():
            for name in self._client.get_run(self._run).data.metrics:
                history = sorted(self._client.get_metric_history(self._run, name), key=lambda one: one.timestamp)
                found |= {(name, one.step): one.value for one in history}
        return found

    def add(self, points: Sequence[Point]) -> None:
        metrics = [Metric(one.name, one.value, 1_000 * one.time, one.step) for one in points]
        with self._answering():
            for first in range(0, len(metrics), MOST_METRICS):
                self._client.log_batch(self._run, metrics=metrics[first : first + MOST_METRICS])

    def has_model(self) -> bool:
        with self._answering():
            return MODEL_TAG in self._client.get_run(self._run).data.tags

    def add_model(self, folder: Path) -> None:
        """The tag comes last, so that an upload that was interrupted is repeated."""
        with self._answering():
            self._client.log_artifacts(self._run, str(folder), MODEL)
            self._client.set_tag(self._run, MODEL_TAG, "whole")

    def end(self) -> None:
        with self._answering():
            self._client.set_terminated(self._run, "FINISHED")

    def _experiment(self) -> str:
        name = os.environ.get(EXPERIMENT_VARIABLE) or EXPERIMENT
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found is not None else self._client.create_experiment(name))

    def _found(self, experiment: str, task: TrackedTask) -> str | None:
        runs = self._client.search_runs([experiment], f"tags.`{TASK_TAG}` = '{task.name}'")
        return str(runs[0].info.run_id) if runs else None

    def _created(self, experiment: str, task: TrackedTask) -> str:
        tags = {TASK_TAG: task.name, "consilium.chain": str(task.chain_id), "consilium.contract": task.contract}
        run = str(self._client.create_run(experiment, tags=tags, run_name=f"task {task.number}").info.run_id)
        self._client.log_batch(run, params=[Param(name, str(value)) for name, value in task.terms.items()])
        return run

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raises OperatorError (TrackingFailed), without the server's text: it may have a secret."""
        try:
            yield
        except (MlflowException, OSError) as error:
            why = getattr(error, "error_code", None) or type(error).__name__
            raise OperatorError("TrackingFailed", location=self.location, why=why) from error
