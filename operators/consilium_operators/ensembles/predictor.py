"""An ensemble in use: the mean of its members' answers, by their weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_client.data.examples import Examples
from consilium_client.data.use import Used

from consilium_operators.ensembles.folder import SavedEnsemble
from consilium_operators.prediction import Answered, Predictor


class EnsemblePredictor:
    """`most_rows`: as many as every member takes. Members scale their inputs by their own statistics."""

    def __init__(self, saved: SavedEnsemble, clamp: bool = False) -> None:
        """`clamp`: as `Predictor` has it. Raises ModelNotInstalled, EncoderAltered."""
        self.saved, self.clamp = saved, clamp
        self._members = [Predictor(one, clamp) for one in saved.models]
        self.most_rows = min(one.most_rows for one in self._members)

    @property
    def task(self) -> int:
        """The ensemble's number."""
        return self.saved.index.number

    @property
    def sha256(self) -> str:
        return self.saved.index.sha256

    @property
    def schema(self) -> DataSchema:
        return self.saved.schema

    @property
    def answers(self) -> tuple[str, ...]:
        """Names of the predictions' columns."""
        return self._members[0].answers

    @property
    def about(self) -> Mapping[str, Any]:
        index = self.saved.index
        shares = zip(self.saved.models, index.members, self.saved.weights, strict=True)
        members = [
            {"task": one.index.task, "name": one.index.name, "round": one.index.round, "sha256": one.index.sha256,
             "gain": member.gain, "weight": weight}
            for one, member, weight in shares
        ]  # fmt: skip
        cards = "\n\n".join(one.card for one in self.saved.models)
        return {
            "name": self.saved.name, "task": index.number, "chain_id": index.chain_id,
            "verified": self.saved.verified, "sha256": index.sha256, "members": members, "card": cards,
        }  # fmt: skip

    def require_answers(self) -> None:
        """Raises OperatorError (ForetellsTokens, MarksPixels)."""
        for one in self._members:
            one.require_answers()

    def read(self, path: Path, mapping: Path | None = None, own: str | None = None, labelled: bool = False) -> Used:
        """As `Predictor` has it; without `mapping` by the first member's."""
        return self._members[0].read(path, mapping, own, labelled)

    def answered(self, examples: Examples) -> Answered:
        """Raises UpdateNotFinite."""
        found = [one.answered(examples) for one in self._members]
        weighted = [one.predictions * weight for one, weight in zip(found, self.saved.weights, strict=True)]
        return Answered(np.sum(weighted, axis=0), tuple(of for one in found for of in one.activations))
