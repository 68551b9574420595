"""A hospital's part of a task file: its training, its privacy, and the encoding of its updates."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from consilium_core.typed_toml import Section
from consilium_zk.constants import MAX_BITS, MIN_BITS
from pydantic import Field, field_validator, model_validator

from consilium_chain.tasks.codec_specs import REFUSED, CodecSpec, DenseCodec, SketchCodec

UINT32 = 2**32 - 1
MAX_STEPS = 1_000_000  # of a hospital in a round
MAX_EPSILON = 100.0  # beyond, it promises nothing
MOST_FEEDBACK_BITS = 16


class TrainingSpec(Section):
    optimizer: Literal["sgd", "adamw"] = Field(
        default="sgd", description="optimiser of local training; momenta begin anew each round"
    )
    epochs: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="passes over a hospital's rows in a round"
    )
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] | None = Field(
        default=None, description="steps of a round, the same for few and many rows; without it, epochs count"
    )
    batch_size: Annotated[int, Field(ge=1, le=UINT32)] = Field(
        default=16, description="rows of a step; with [privacy] their expected number"
    )
    learning_rate: Annotated[float, Field(gt=0)] = Field(default=0.05, description="length of a step")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="how the learning rate falls from round to round, towards zero after the last"
    )
    weight_decay: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="pull of each step towards zero, times the weights"
    )
    precision: Literal["float32", "mixed"] = Field(
        default="float32",
        description="mixed: layers multiply in bfloat16 in training, for wide layers on a GPU; weights, updates"
        " and judging stay as they are",
    )
    proximal: Annotated[float, Field(ge=0, le=1_000)] = Field(
        default=0.0, description="FedProx's μ: each step is pulled back to the round's base by μ times the distance"
    )
    control_variates: bool = Field(
        default=False,
        description="SCAFFOLD: each step is corrected by how a hospital's last update differed from the mean of all",
    )
    patience: Annotated[int, Field(ge=1, le=1_000)] | None = Field(
        default=None,
        description="passes after which training ends early, unless a hospital's own held-out rows have a lower loss",
    )
    local: list[str] = Field(
        default=[],
        description="names of tensors that each hospital trains for itself, and never sends; all others judge the model"
        " with their starting values",
    )
    class_weights: Literal["equal", "balanced"] = Field(
        default="equal",
        description="balanced: a row counts by how rare its class is in all hospitals; exact statistics count classes",
    )

    def steps_on(self, rows: int) -> int:
        """A round's steps on this many rows."""
        return self.epochs * -(-rows // self.batch_size) if self.steps is None else self.steps

    def rate_in(self, round_: int, rounds: int) -> float:
        """The learning rate of training round `round_`, from 1 on, of `rounds`."""
        done = (round_ - 1) / rounds
        factors = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
        return self.learning_rate * factors[self.schedule]

    def require_alongside(self, privacy: PrivacySpec | None, statistics: str, codec: CodecSpec) -> None:
        """Raises ValueError if other sections of the task file rule out a choice of this one."""
        if privacy is not None and self.patience is not None:
            raise ValueError(
                "patience reads held-out rows without noise, which epsilon does not bound: remove patience or [privacy]"
            )
        if privacy is not None and self.control_variates:
            raise ValueError("control_variates have no form with noise yet: remove them or [privacy]")
        if self.class_weights == "balanced" and statistics != "exact":
            raise ValueError(
                "balanced class_weights need the classes' rows, which only exact statistics count: set statistics ="
                ' "exact", or class_weights = "equal"'
            )
        if self.local and not isinstance(codec, DenseCodec):
            raise ValueError(
                f"local tensors have no form within the codec {codec.name} yet: remove local, or set its name to"
                ' "dense"'
            )
        if self.local and privacy is not None:
            raise ValueError("local tensors have no form with noise yet: remove local or [privacy]")
        if self.control_variates and isinstance(codec, SketchCodec):
            raise ValueError(
                "control_variates need the mean of all updates, and a sketch shows only its largest values: choose"
                " another codec, or remove control_variates"
            )

    @model_validator(mode="after")
    def _counts_once(self) -> TrainingSpec:
        if self.steps is not None and self.epochs != 1:
            raise ValueError(f"steps {self.steps} and epochs {self.epochs} are both set: remove one of them")
        return self

    @model_validator(mode="after")
    def _compares_like(self) -> TrainingSpec:
        if not self.control_variates:
            return self
        if self.steps is None:
            raise ValueError(
                "control_variates compare updates of as many steps: set steps, the same for all hospitals, and remove"
                " epochs"
            )
        unlike = [
            name
            for name, is_unlike in (
                ('optimizer = "adamw"', self.optimizer != "sgd"),
                ("proximal", self.proximal > 0),
                ("patience", self.patience is not None),
                ("local", bool(self.local)),
            )
            if is_unlike
        ]
        if unlike:
            raise ValueError(
                f"control_variates read gradients from updates, and {unlike[0]} makes an update something else: remove"
                " one of them"
            )
        return self


class PrivacySpec(Section):
    """Differential privacy of each row of a hospital, over all rounds of the task. `training.batch_size` is then the
    expected number of rows of a step: each row is drawn independently, with the same chance.
    """

    epsilon: Annotated[float, Field(gt=0, le=MAX_EPSILON)] = Field(
        description="the most that the whole task may cost a row"
    )
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=1e-5, description="chance with which epsilon may not hold; keep it below 1 / rows"
    )
    max_grad_norm: Annotated[float, Field(gt=0)] = Field(description="L2 norm that a row's gradient is clipped to")


class UpdateSpec(Section):
    """The encoding of an update in integers: clipped to an L2 norm, each value to [-range, range] in `bits` bits."""

    bits: Annotated[int, Field(ge=MIN_BITS, le=MAX_BITS)] = Field(
        default=16, description="of each value of an update; fewer bits make fewer blobs"
    )
    value_range: Annotated[float, Field(gt=0)] = Field(
        default=4.0, description="largest absolute value; about twice an honest update's largest"
    )
    clip_norm: Annotated[float, Field(gt=0)] = Field(
        default=8.0, description="L2 norm that an update is clipped to; about twice an honest one's"
    )
    publication: Literal["blobs", "digests"] = Field(
        default="blobs", description="sums go on chain as blobs, or only their hashes do"
    )
    feedback: bool = Field(
        default=False, description="a hospital adds to its next update the part that few bits could not say"
    )
    masked: bool = Field(default=True, description="the aggregator learns a cohort's sum, but no single update")
    codec: CodecSpec = DenseCodec()

    @model_validator(mode="after")
    def _leaves_a_part(self) -> UpdateSpec:
        if self.feedback and self.bits > MOST_FEEDBACK_BITS:
            raise ValueError(
                f"{self.bits} bits leave next to nothing unsaid: remove feedback, or lower bits to"
                f" {MOST_FEEDBACK_BITS} or less"
            )
        return self

    @field_validator("codec", mode="before")
    @classmethod
    def _is_linear(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(name := value.get("name"), str) and name in REFUSED:
            raise ValueError(REFUSED[name])
        return value
