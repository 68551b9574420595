"""The task file: all of an operator's settings, as a typed tree.

Hospitals and voters read it by its hash, so its bytes are the task. The contract has the part that it enforces
(`TaskParams`), and a node refuses a task whose two halves differ. The file has no code: it names models, and a node
runs only its installed ones.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Literal

from consilium_core.typed_toml import Section, parse_toml
from consilium_core.visible_text import Name
from consilium_zk.basis import Basis, Shared
from consilium_zk.constants import BYTES_PER_BLOB, MAX_BITS
from consilium_zk.errors import ArgumentInvalid
from consilium_zk.packing import LaneLayout
from eth_utils.crypto import keccak
from pydantic import Field, model_validator

from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.codec_specs import DenseCodec
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.judging_spec import MIN_MASKED, JudgingSpec, RoundsSpec
from consilium_chain.tasks.model_specs import ModelSpec
from consilium_chain.tasks.money_spec import SLASH_PER_FEE, TOKEN, MoneySpec
from consilium_chain.tasks.outer_specs import MeanSpec, OuterSpec
from consilium_chain.tasks.plugin_specs import require_metric
from consilium_chain.tasks.questions import Regression, Segmentation
from consilium_chain.tasks.sale_spec import SaleSpec
from consilium_chain.tasks.start_specs import SeedStart, StartSpec
from consilium_chain.tasks.summary_spec import MOST_DEVIATION, Part, SummarySpec, parts_of
from consilium_chain.tasks.training_specs import PrivacySpec, TrainingSpec, UpdateSpec
from consilium_chain.tasks.windows_spec import WindowsSpec

# The contract's own limits (`TaskRules.sol`), repeated so that a file is refused before anybody pays for it.
MAX_BLOBS = 128
TICKS_PER_ROUND, BOUNTIES_BPS = 4, 100  # all bounties that a task can come to pay, in basis points of its pool
GRACE_BPS = 5_000  # by how much of its window the aggregator may overrun a phase, without its fee
# Settling goes in pages, bounded by the highest cost of their steps (`Settling.sol`).
PAGE_GAS, GAS_PER_NODE, GAS_PER_SCORE = 9_000_000, 90_000, 4_000
STATISTICS_BITS = 40  # round 0 sums counts and squares exactly enough for standardisation
STATISTICS_RANGE = 65_536.0  # rows per hospital that round 0 can carry
MICRO = 1_000_000  # scores are integers in millionths
DAY = 86_400  # seconds
# The contract's own limits again.
MAX_DAYS = 180  # that a task may last at worst
BEACON_DAYS = 7  # without the beacon's value, after which a task ends
LEAST_HARM = 0.01  # how far below zero `harmful_below` lies at least


def settle_gas(nodes: int, scores: int) -> int:
    """The most gas for settling a round, by its hospitals and voters and by the scores on their ballots, which are read
    twice: to judge cohorts, and to pay voters.
    """
    return nodes * GAS_PER_NODE + 2 * scores * GAS_PER_SCORE


def grace(window: int) -> int:
    """Seconds by which the aggregator may overrun a phase of this window."""
    return window * GRACE_BPS // 10_000


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
            return self._shared().size
        return self.update.codec.size(self.model.tensors(self.data))

    def basis(self, seed: bytes) -> Basis:
        """The map from the coordinates to the parameters. `seed`: the task file's hash, 32 bytes."""
        if self.training.local:
            return self._shared()
        return self.update.codec.basis(self.model.tensors(self.data), seed)

    def _shared(self) -> Shared:
        try:
            return Shared(self.model.tensors(self.data), self.training.local)
        except ArgumentInvalid as error:
            raise ValueError(str(error)) from None

    @property
    def size_in_words(self) -> str:
        """The model's size, and an update's if a codec makes it another one."""
        codec = self.update.codec
        if self.training.local:
            return f"{self.parameters:,} parameters, of which {self.coordinates:,} are shared"
        if isinstance(codec, DenseCodec):
            return f"{self.parameters:,} parameters"
        return f"{self.parameters:,} parameters as {self.coordinates:,} numbers (codec {codec.name})"

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
    def summary_in_words(self) -> str:
        """The counts that leave a hospital for the summary; "" without one."""
        return "" if self.summary is None else self.summary.in_words(self.summary_values, self.summary_variance)

    @property
    def sale_in_words(self) -> str:
        """The terms by which the model may be sold; "" if it can never be."""
        if self.sale is None:
            return ""
        seen = "" if self.privacy is None else f"; buyers see that epsilon was {self.privacy.epsilon:g}"
        return f"{self.sale.in_words}{seen}"

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
        r, j, m = self.rounds, self.judging, self.money
        self.model.require_fits(self.data)
        require_metric(j.metric, j.plugin, self.data.asked.metrics)
        if self.training.class_weights == "balanced" and not self.data.classes:
            raise ValueError(f"data of kind {self.data.kind} has no classes to balance: set class_weights = 'equal'")
        if j.plugin is not None and isinstance(self.data.asked, Segmentation):
            raise ValueError("a plug-in's metric reads no masks: judge by dice or log_loss")
        if j.least_of_class and isinstance(self.data.asked, Regression):
            raise ValueError("an amount has no classes: remove least_of_class")
        self.model.require_start(self.start.name)
        if isinstance(self.start, SeedStart):
            self.start.require_fits(self.model.name, self.model.ends_with_bias, len(self.data.classes))
            counts = self.counted_classes or any(part.answers for part in self.summary_parts)
            if self.start.counted and not counts:
                raise ValueError(
                    "a counted start needs counts of the answers: add a [summary], or state the prevalence instead"
                )
        if r.min_hospitals > r.max_hospitals:
            raise ValueError(f"min_hospitals {r.min_hospitals} is above max_hospitals {r.max_hospitals}")
        if r.min_hospitals < r.min_cohort_size:
            raise ValueError(
                f"min_hospitals {r.min_hospitals} is below min_cohort_size {r.min_cohort_size}: raise min_hospitals"
            )
        if self.update.masked and r.min_cohort_size < MIN_MASKED:
            raise ValueError(
                f"masked updates need cohorts of at least {MIN_MASKED}: in a cohort of two, each hospital learns the"
                f" other's update from the sum; raise min_cohort_size from {r.min_cohort_size}, or set masked = false"
            )
        if r.cohorts * r.min_cohort_size > r.max_hospitals:
            raise ValueError(
                f"{r.cohorts} cohorts of at least {r.min_cohort_size} need {r.cohorts * r.min_cohort_size} hospitals,"
                f" but at most {r.max_hospitals} may join: lower cohorts or min_cohort_size"
            )
        if self.sale is not None and r.shards > 1:
            raise ValueError(f"a model of {r.shards} shards cannot be sold yet: remove [sale], or set shards = 1")
        if j.min_voters > j.max_voters:
            raise ValueError(f"min_voters {j.min_voters} is above max_voters {j.max_voters}")
        if j.seats > j.max_voters:
            raise ValueError(f"{j.seats} seats are more than the {j.max_voters} voters that may join: lower seats")
        if j.min_reveals > j.seats:
            raise ValueError(f"min_reveals {j.min_reveals} is above the {j.seats} seats: lower min_reveals")
        if j.least_of_class is not None and j.least_of_class * len(self.data.classes) > (j.least_rows or 0):
            raise ValueError(
                f"least_of_class {j.least_of_class} for {len(self.data.classes)} class(es) needs a least_rows of"
                f" {j.least_of_class * len(self.data.classes)} or more: raise least_rows"
            )
        if j.harmful_below > j.accept_floor:
            raise ValueError("harmful_below is above accept_floor: a cohort could be accepted and slashed at once")
        if round(j.harmful_below * MICRO) > -round(LEAST_HARM * MICRO):
            raise ValueError(
                f"harmful_below {j.harmful_below:g} is too near to zero: chance alone would slash honest hospitals; set"
                f" it to {-LEAST_HARM:g} or less"
            )
        if self.privacy is not None and self.statistics == "exact":
            raise ValueError(
                "exact statistics are sums without noise, which epsilon does not bound: set statistics ="
                ' "schema", or remove [privacy]'
            )
        if self.privacy is not None and not self.model.learns_privately:
            raise ValueError(
                f'the model {self.model.name} has no form with noise: set it to "lora", or remove [privacy]'
            )
        self._require_summary_fits()
        private = self.privacy is not None
        self.model.require_alongside(self.update.codec.name, self.training.control_variates, private)
        self.training.require_alongside(self.privacy, self.statistics, self.update.codec)
        longest = self.windows.longest(r.rounds) + BEACON_DAYS * DAY
        if longest > MAX_DAYS * DAY:
            raise ValueError(
                f"the task may last {longest / DAY:,.1f} days (with {BEACON_DAYS} for a dead beacon), more than the"
                f" {MAX_DAYS} for which a task may lock bonds: lower rounds or windows"
            )
        if j.decoys and self.update.bits == MAX_BITS:
            raise ValueError(
                f"decoys need one bit more than the {MAX_BITS} of the update: lower bits to {MAX_BITS - 1}"
            )
        if j.decoys and round(j.decoy_margin * MICRO) < 1:
            raise ValueError("decoys need a decoy_margin of at least a millionth: without it, equal pairs count")
        shares = m.hospital_share_bps + m.voter_share_bps + m.aggregator_share_bps
        if shares != 10_000:
            raise ValueError(f"the three shares add up to {shares} basis points: they must add up to 10000")
        slash, fee = m.aggregator_slash, m.aggregator_fee(r.rounds)
        if slash < SLASH_PER_FEE * fee:
            raise ValueError(
                f"an aggregator that does not publish a round loses {slash / TOKEN:g} tokens, less than twice its"
                f" {fee / TOKEN:g} for a round, so it could afford that: raise aggregator_bond or"
                f" not_published_slash_bps, or lower aggregator_share_bps"
            )
        bounties, most = m.tick_bounty * TICKS_PER_ROUND * (r.rounds + 1) * 10_000, m.pool * BOUNTIES_BPS
        if bounties > most:
            raise ValueError(
                f"a tick_bounty of {m.tick_bounty} may cost more than a hundredth of the pool of {m.pool} over"
                f" {r.rounds} rounds: lower it to {most // (TICKS_PER_ROUND * (r.rounds + 1) * 10_000)}"
            )
        # Lanes too wide for a cohort's weight are refused here too, by their own error.
        if self.summary is not None and self.statistics_blobs > MAX_BLOBS:
            raise ValueError(
                f"the {self.statistics_values:,} values of round 0 take {self.statistics_blobs} blobs, more than the"
                f" {MAX_BLOBS} of a task: lower bins under [summary]"
            )
        blobs = max(self.update_blobs, self.statistics_blobs)
        if blobs > MAX_BLOBS:
            raise ValueError(
                f"an update takes {blobs} blobs, more than the {MAX_BLOBS} of a task: lower bits, choose a codec, or"
                f" shrink the model"
            )
        self._require_weights_add_up()
        return self

    def _require_weights_add_up(self) -> None:
        """Raises ValueError if the sum over all hospitals of the model could be too large for `Quantiser`."""
        rounds = self.rounds
        most = (1 << 62) >> (self.update.bits - 1)
        if rounds.shards * rounds.max_hospitals * rounds.max_weight >= most:
            largest = (most - 1) // (rounds.shards * rounds.max_hospitals)
            raise ValueError(
                f"{rounds.shards * rounds.max_hospitals} hospitals of weight {rounds.max_weight} are too many to add up"
                f" updates of {self.update.bits} bits: lower max_weight to {largest}"
            )

    def _require_summary_fits(self) -> None:
        """Raises ValueError if other sections of the task file rule out its summary."""
        summary, privacy = self.summary, self.privacy
        if summary is None:
            return
        if summary.epsilon is None:
            if privacy is not None:
                raise ValueError(
                    "the epsilon of [privacy] does not bound a summary without noise: set epsilon under [summary], or"
                    " remove one of both"
                )
            return
        if self.statistics == "exact":
            raise ValueError(
                'noise in the summary hides nothing beside exact statistics: set statistics = "schema", or remove'
                " epsilon from [summary]"
            )
        if privacy is not None and not (summary.epsilon < privacy.epsilon and summary.delta == privacy.delta):
            raise ValueError(
                f"the summary costs a part of the task's epsilon {privacy.epsilon:g} at delta {privacy.delta:g}: set a"
                " lower epsilon and the same delta under [summary]"
            )
        if math.sqrt(self.summary_variance) > MOST_DEVIATION:
            raise ValueError(
                f"the summary's noise has a deviation of {math.sqrt(self.summary_variance):,.0f} rows at each hospital,"
                f" above {MOST_DEVIATION:,.0f}: raise its epsilon, or leave out columns"
            )


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
