"""The worth of a model's predictions by a task's metric, built in or a plug-in's. All worths are computed here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.data.examples import Labels
from consilium_client.models.objectives import objective_of
from consilium_client.models.objectives.base import Predictions
from consilium_client.plugins import asking
from consilium_client.plugins.installed import verified

Worth = Callable[[Labels, Predictions], float]


def worth_of(spec: TaskSpec) -> Worth:
    """A function of labels (n, …) and predictions (n, …), more being better.

    It raises ShapeMismatch, TooFewRows; of a plug-in also PluginError, ProgramError (NotConfined).
    """
    plugin = spec.judging.plugin
    if plugin is None:
        return objective_of(spec.data).measures[cast(Metric, spec.judging.metric)].worth
    return partial(asking.worth, plugin, seconds=spec.windows.score)


def require_metric_installed(spec: TaskSpec) -> None:
    """Raises PluginError unless the plug-in of the task's metric is installed, if there is one."""
    if spec.judging.plugin is not None:
        verified(spec.judging.plugin)
