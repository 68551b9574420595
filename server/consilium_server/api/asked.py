"""A task's question in the API's answers, in parts from which a page makes a sentence in its own language."""

from __future__ import annotations

from typing import Any

from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_chain.tasks.questions import Classification, Multilabel, Question, Regression, Segmentation, Survival
from consilium_core.visible_text import shown

from consilium_server.api.task_schemas import MOST_ANSWERS, Asked


def asked_view(data: DataSchema) -> Asked:
    """The question of a data schema."""
    found: dict[str, Any] = {"target": "", "answers": (), "unit": "", "up_to": None, "deviation": None}
    found |= _parts(data.asked)
    answers = found.pop("answers")
    return Asked(
        **found | {"target": shown(found["target"]), "unit": shown(found["unit"])},
        of=data.kind, inputs=len(data.inputs), modality=data.modality if isinstance(data, ImageSchema) else None,
        answers=[shown(one) for one in answers[:MOST_ANSWERS]], answers_in_all=len(answers),
    )  # fmt: skip


def _parts(asked: Question) -> dict[str, Any]:
    match asked:
        case Classification():
            return {"kind": "classification", "target": asked.label, "answers": asked.classes}
        case Regression():
            return {"kind": "regression", "target": asked.label, "unit": asked.unit, "deviation": asked.deviation}
        case Survival():
            return {"kind": "survival", "target": asked.event, "unit": asked.unit, "up_to": asked.bounds[-1]}
        case Multilabel():
            return {"kind": "multilabel", "answers": asked.labels}
        case Segmentation():
            return {"kind": "segmentation", "answers": asked.classes}
        case _:
            return {"kind": "next_token"}
