"""Objectives: a question's loss, predictions and metrics. One for each of `consilium_chain.tasks.questions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import (
    Classification,
    Multilabel,
    NextToken,
    Question,
    Regression,
    Segmentation,
    Survival,
)
from consilium_core.kinds import of_kind

from consilium_client.models.objectives.base import Objective
from consilium_client.models.objectives.classification import Classify
from consilium_client.models.objectives.foretelling import Foretell
from consilium_client.models.objectives.multilabel import MarkEach
from consilium_client.models.objectives.regression import Regress
from consilium_client.models.objectives.segmentation import Segment
from consilium_client.models.objectives.survival import Survive

OBJECTIVES: Mapping[type[Question], Callable[[Any], Objective]] = {
    Classification: Classify, Regression: Regress, Survival: Survive, Multilabel: MarkEach,
    NextToken: lambda _: Foretell(),
}  # fmt: skip


def objective_of(schema: DataSchema) -> Objective:
    if isinstance(schema.asked, Segmentation):
        image = of_kind(ImageSchema, schema)
        return Segment(schema.asked, (image.height, image.width))
    return OBJECTIVES[type(schema.asked)](schema.asked)
