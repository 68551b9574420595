"""The task file: all of an operator's settings, as a typed tree.

Hospitals and voters read it by its hash, so its bytes are the task. The contract has the part that it enforces
(`TaskParams`), and a node refuses a task whose two halves differ. The file has no code: it names models, and a node
runs only its installed ones.
"""

from __future__ import annotations

import hashlib
import json
from typing import Literal

from consilium_core.typed_toml import Section, parse_toml
from consilium_core.visible_text import Name
from consilium_zk.basis import Basis, Shared
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import ArgumentInvalid
from consilium_zk.packing import LaneLayout
from eth_utils.crypto import keccak
from pydantic import Field, model_validator

from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.fitting import require_fitting
from consilium_chain.tasks.judging_spec import JudgingSpec, RoundsSpec
from consilium_chain.tasks.model_specs import ModelSpec
from consilium_chain.tasks.money_spec import MoneySpec
from consilium_chain.tasks.outer_specs import MeanSpec, OuterSpec
from consilium_chain.tasks.sale_spec import SaleSpec
from consilium_chain.tasks.spec_words import SpecWords
from consilium_chain.tasks.start_specs import SeedStart, StartSpec
from consilium_chain.tasks.summary_spec import Part, SummarySpec, parts_of
from consilium_chain.tasks.training_specs import PrivacySpec, TrainingSpec, UpdateSpec
from consilium_chain.tasks.windows_spec import WindowsSpec

STATISTICS_BITS = 40  # round 0 sums counts and squares exactly enough for standardisation
STATISTICS_RANGE = 65_536.0  # rows per hospital that round 0 can carry


class TaskSpec(Section):
    name: Name = Field(description="1 to 80 visible characters, as others see the task")
    statistics: Literal["schema", "exact"] = Field(
        default="schema",
        description="features are standardised by the schema's public constants, or exactly: by sums over all"
        " hospitals' rows, which become public in round 0",
    )
    data: DataSchema
    model: ModelSpec
    start: StartSpec = SeedStart()
    training: TrainingSpec = TrainingSpec()
    privacy: PrivacySpec | None = None
    summary: SummarySpec | None = None
    update: UpdateSpec = UpdateSpec()
    outer: OuterSpec = MeanSpec()
    rounds: RoundsSpec = RoundsSpec()
    judging: JudgingSpec = JudgingSpec()
    money: MoneySpec = MoneySpec()
    windows: WindowsSpec = WindowsSpec()
    sale: SaleSpec | None = None  # the last, as in the file

    @property
    def parameters(self) -> int:
        return self.model.parameters(self.data)

    @property
    def coordinates(self) -> int:
        """The numbers that a hospital trains and commits to; fewer than parameters with most codecs."""
        if self.training.local:
            return _shared(self).size
        return self.update.codec.size(self.model.tensors(self.data))

    def basis(self, seed: bytes) -> Basis:
        """The map from the coordinates to the parameters. `seed`: the task file's hash, 32 bytes."""
        if self.training.local:
            return _shared(self)
        return self.update.codec.basis(self.model.tensors(self.data), seed)

    @property
    def is_arena(self) -> bool:
        """True if each hospital is alone in its cohort, and only the best moves the model."""
        return self.money.rank_decay_bps != 0

    @property
    def in_words(self) -> SpecWords:
        return SpecWords(self)

    @property
    def update_layout(self) -> LaneLayout:
        """Lanes for the largest cohort at full weight; a sign-flipped sum may be twice as large."""
        bits = self.update.bits + self.judging.decoys
        return LaneLayout(bits=bits, total_weight=self.rounds.largest_cohort * self.rounds.max_weight)

    @property
    def statistics_layout(self) -> LaneLayout:
        return LaneLayout(bits=STATISTICS_BITS, total_weight=self.rounds.max_hospitals)

    @property
    def update_blobs(self) -> int:
        return self.update_layout.blobs_for(self.coordinates)

    def update_blobs_at(self, max_weight: int) -> int:
        """An update's blobs if hospitals had this weight at most."""
        layout = LaneLayout(self.update_layout.bits, self.rounds.largest_cohort * max_weight)
        return layout.blobs_for(self.coordinates)

    @property
    def update_bytes(self) -> int:
        return self.update_blobs * BYTES_PER_BLOB

    @property
    def lanes(self) -> int:
        """Length of a training round's vector: the coordinates, and zeros up to the last lane of the last blob."""
        return self.update_blobs * self.update_layout.lanes_per_blob

    @property
    def statistics_values(self) -> int:
        """Length of round 0's vector, also if it has no statistics of rows. The summary comes after the sums, and
        classes' rows come last, if they count.
        """
        return self.data.statistics_values + self.summary_values + self.counted_classes

    @property
    def summary_parts(self) -> list[Part]:
        """The counts of the summary, in their order; none without one."""
        return [] if self.summary is None else parts_of(self.data, self.summary.bins)

    @property
    def summary_values(self) -> int:
        return sum(len(part.counts) for part in self.summary_parts)

    @property
    def summary_changed(self) -> int:
        """The most counts of the summary that one row is in."""
        return sum(part.changed for part in self.summary_parts)

    @property
    def summary_variance(self) -> int:
        """The variance of each hospital's noise on each count of the summary; 0 without noise."""
        return 0 if self.summary is None else self.summary.variance(self.summary_changed)

    @property
    def starts_counted(self) -> bool:
        """True if the first base needs round 0's counts."""
        return isinstance(self.start, SeedStart) and self.start.counted

    @property
    def counts_exactly(self) -> bool:
        """True if round 0 has sums or counts of rows without noise."""
        return self.statistics == "exact" or (self.summary is not None and self.summary.epsilon is None)

    @property
    def counted_classes(self) -> int:
        """The classes whose rows round 0 counts; 0 if none are."""
        return len(self.data.classes) if self.training.class_weights == "balanced" else 0

    @property
    def statistics_blobs(self) -> int:
        return self.statistics_layout.blobs_for(self.statistics_values)

    @model_validator(mode="after")
    def _fits_together(self) -> TaskSpec:
        require_fitting(self)
        return self


def _shared(spec: TaskSpec) -> Shared:
    try:
        return Shared(spec.model.tensors(spec.data), spec.training.local)
    except ArgumentInvalid as error:
        raise ValueError(str(error)) from None


def parse_task_spec(raw: bytes) -> TaskSpec:
    """Task file (TOML, UTF-8) to a spec. Raises SpecInvalid with every fault."""
    spec = parse_toml(raw, TaskSpec, "the task file", SpecInvalid)
    if spec.sale is not None:
        spec.sale.require_ends(raw)
    return spec


def spec_hash(raw: bytes) -> bytes:
    """keccak256 of the file's bytes, as on the chain."""
    return keccak(raw)


def section_digests(spec: TaskSpec) -> dict[str, str]:
    """SHA-256, in hexadecimal, of each section that decides how rounds end, by its name: all but name, windows and
    sale. A key that is left out counts as its default.
    """
    sections = spec.model_dump(mode="json", exclude={"name", "windows", "sale"})
    return {
        name: hashlib.sha256(json.dumps(section, sort_keys=True).encode()).hexdigest()
        for name, section in sections.items()
    }
