"""Objectives: a question's loss, predictions and metrics. One for each of `consilium_chain.tasks.questions`."""

from __future__ import annotations

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.questions import Classification, Multilabel, NextToken, Regression, Survival

from consilium_client.models.objectives.base import Objective
from consilium_client.models.objectives.classification import Classify
from consilium_client.models.objectives.foretelling import Foretell
from consilium_client.models.objectives.multilabel import MarkEach
from consilium_client.models.objectives.regression import Regress
from consilium_client.models.objectives.survival import Survive


def objective_of(schema: DataSchema) -> Objective:
    asked = schema.asked
    if isinstance(asked, Classification):
        return Classify(asked)
    if isinstance(asked, Regression):
        return Regress(asked)
    if isinstance(asked, Survival):
        return Survive(asked)
    if isinstance(asked, Multilabel):
        return MarkEach(asked)
    if isinstance(asked, NextToken):
        return Foretell()
    raise TypeError(f"no objective of {type(asked).__name__}")
