"""A task file's settings in words, for screens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium_chain.tasks.codec_specs import DenseCodec

if TYPE_CHECKING:
    from consilium_chain.tasks.task_spec import TaskSpec


@dataclass(frozen=True)
class SpecWords:
    _spec: TaskSpec

    @property
    def size(self) -> str:
        """The model's size, and an update's if a codec makes it another one."""
        codec = self._spec.update.codec
        if self._spec.training.local:
            return f"{self._spec.parameters:,} parameters, of which {self._spec.coordinates:,} are shared"
        if isinstance(codec, DenseCodec):
            return f"{self._spec.parameters:,} parameters"
        return f"{self._spec.parameters:,} parameters as {self._spec.coordinates:,} numbers (codec {codec.name})"

    @property
    def summary(self) -> str:
        """The counts that leave a hospital for the summary; "" without one."""
        summary = self._spec.summary
        if summary is None:
            return ""
        return summary.in_words(self._spec.summary_values, self._spec.summary_variance)

    @property
    def seen(self) -> str:
        """The parties that see a hospital's update."""
        if self._spec.is_arena:
            return "NOT masked: this is an arena, and each trainer's update is public"
        if self._spec.update.masked:
            return "masked: only the cohort's sum becomes visible"
        return "NOT masked: the aggregator sees it"

    @property
    def pay(self) -> str:
        """The rule by which hospitals share their part of the pool."""
        decay = self._spec.money.rank_decay_bps
        return f"by rank: each earns {decay / 100:g} % of the one before" if decay else "by their improvement"

    @property
    def sale(self) -> str:
        """The terms by which the model may be sold; "" if it can never be."""
        if self._spec.sale is None:
            return ""
        seen = "" if self._spec.privacy is None else f"; buyers see that epsilon was {self._spec.privacy.epsilon:g}"
        return f"{self._spec.sale.in_words}{seen}"
