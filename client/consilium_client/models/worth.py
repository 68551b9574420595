"""The worth of a model's probabilities by a task's metric, built in or a plug-in's. All worths are computed here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import numpy as np
from consilium_chain.tasks.data_schemas import Metric
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.models.metrics import WORTH
from consilium_client.plugins import asking
from consilium_client.plugins.installed import verified

Worth = Callable[[NDArray[np.int64], NDArray[np.float64]], float]


def worth_of(spec: TaskSpec) -> Worth:
    """A function of labels (n,) and probabilities (n, classes), more being better.

    It raises ShapeMismatch, TooFewRows; of a plug-in also PluginError, ProgramError (NotConfined).
    """
    plugin = spec.judging.plugin
    if plugin is None:
        return WORTH[cast(Metric, spec.judging.metric)]
    return partial(asking.worth, plugin, seconds=spec.windows.score)


def require_metric_installed(spec: TaskSpec) -> None:
    """Raises PluginError unless the plug-in of the task's metric is installed, if there is one."""
    if spec.judging.plugin is not None:
        verified(spec.judging.plugin)
