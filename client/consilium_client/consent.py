"""The policy file, which a node's owner writes: every task is held against it before anything of the task starts.

The policy is the owner's own and says yes to what it names, to nothing else. A hospital's is looked at when a task is
joined and again whenever a node starts, since both it and the program may have changed in between; the hours hold for
every round anew. A voter's is looked at when a task is joined, which its node does by itself.
"""

from __future__ import annotations

import datetime
import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import tomli_w
from consilium_chain.tasks.task_spec import DAY, Metric, TaskSpec
from consilium_core.typed_toml import parse_toml
from eth_utils.address import is_hex_address
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from consilium_client.errors import OwnersRefusal

ANY: Literal["any"] = "any"
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def _address(text: str) -> str:
    if not is_hex_address(text):
        raise ValueError(f"{text!r} is no account's address: 0x and 40 hexadecimal digits")
    return text.lower()


Address = Annotated[str, AfterValidator(_address)]


@dataclass(frozen=True)
class Hours:
    """From `start` (included) to `end` (excluded), local time of day; over midnight where end is not after start."""

    start: datetime.time
    end: datetime.time

    @classmethod
    def parse(cls, text: Any) -> Hours:
        if isinstance(text, Hours):
            return text
        found = _HOURS.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError('hours are written "19:00-07:00"')
        a, b, c, d = map(int, found.groups())
        return cls(datetime.time(a, b), datetime.time(c, d))

    def contain(self, time: datetime.time) -> bool:
        """Equal ends are the whole day."""
        if self.start < self.end:
            return self.start <= time < self.end
        return time >= self.start or time < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


class TaskPolicy(BaseModel):
    """All that is not named here is refused; "any" names everything."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    # Of a task file's money: the bond that this node would lock, and what an event takes of it, in words.
    bond: ClassVar[str]
    slashes: ClassVar[Mapping[str, str]]

    operators: Annotated[
        list[Address] | Literal["any"], Field(description='accounts whose tasks may be joined, or "any"')
    ]
    models: Annotated[list[str] | Literal["any"], Field(description='model families of the tasks, or "any"')]
    max_bond: Annotated[
        int | None, Field(ge=0, description="most that a task may lock of this node's stake, in whole tokens")
    ] = None
    max_days: Annotated[
        int | None,
        Field(
            ge=1,
            description="The longest that a task may last, in days, if each phase takes as long as it may. The bond is"
            " locked that long, or a week longer if the beacon dies. Without, as long as the contract allows.",
        ),
    ] = None
    max_slash_percent: Annotated[
        float | None,
        Field(
            ge=0,
            le=100,
            description="The most that one fault may take of the bond, in per cent. Without, all of it.",
        ),
    ] = None

    def require(self, spec: TaskSpec, operator: str) -> None:
        """Raises NotAllowed with every objection to a task of this file and operator."""
        if found := self.objections(spec, operator):
            raise OwnersRefusal("NotAllowed", task=spec.name, objections="; ".join(found))

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        """In words, one for each rule that the task does not keep; none where it may be joined."""
        found = []
        if self.operators != ANY and operator.lower() not in self.operators:
            found.append(f"its operator {operator} is not among `operators`")
        if self.models != ANY and spec.model.name not in self.models:
            found.append(f"the model {spec.model.name} is not among `models`")
        bond = getattr(spec.money, self.bond)
        if self.max_bond is not None and bond > self.max_bond:
            found.append(f"it locks {bond} tokens, above `max_bond` {self.max_bond}")
        days = spec.windows.longest(spec.rounds.rounds) / DAY
        if self.max_days is not None and days > self.max_days:
            found.append(f"it may last {days:,.1f} days, above `max_days` {self.max_days}")
        for name, event in self.slashes.items():
            percent = getattr(spec.money, name) / 100
            if self.max_slash_percent is not None and percent > self.max_slash_percent:
                found.append(
                    f"{event} costs {percent:g} % of the bond, above `max_slash_percent` {self.max_slash_percent:g}"
                )
        return found


class Policy(TaskPolicy):
    """A hospital's."""

    bond = "hospital_bond"
    slashes = {"harmful_slash_bps": "a harmful update", "withheld_slash_bps": "an update that is not handed over"}

    columns: Annotated[
        list[str] | Literal["any"], Field(description='columns of the task\'s schema that may be used, or "any"')
    ]
    masked_only: Annotated[bool, Field(description="refuse tasks whose aggregator sees single updates")] = True
    exact_statistics: Annotated[
        bool,
        Field(
            description="Whether exact counts, sums and sums of squares of this hospital's rows may leave, where a task"
            " asks for them. They carry no noise. Two such sums over nearly the same rows show the rows that differ, so"
            " this node refuses to give the second. It cannot refuse what others do: if all other hospitals of a task"
            " tell theirs, or take part in another task without this one, this hospital's own sums are known."
        ),
    ] = False
    min_rows: Annotated[
        int | None,
        Field(
            ge=1,
            description="The least rows of this hospital that take part. An update of few rows says much of each.",
        ),
    ] = None
    min_steps: Annotated[
        int | None,
        Field(
            ge=1,
            description="The least steps of training in a round, in tasks without epsilon. An update of one step is a"
            " sum of the rows' gradients, and shows best which rows were there.",
        ),
    ] = None
    min_cohort: Annotated[
        int | None,
        Field(
            ge=1,
            description="The least hospitals whose updates are added up before they are seen. A larger sum says less"
            " of each.",
        ),
    ] = None
    min_harm: Annotated[
        float | None,
        Field(
            ge=0,
            description="How far below zero a cohort must score, at least, before a task slashes it. Chance alone moves"
            " honest scores around zero.",
        ),
    ] = None
    max_rounds: Annotated[int | None, Field(ge=1, description="of one task; without, any number")] = None
    max_epsilon: Annotated[
        float | None,
        Field(
            gt=0,
            description="the most that all tasks together may cost a row; without, each task's own budget is all that"
            " holds. With it, private tasks only",
        ),
    ] = None
    delta: Annotated[float, Field(gt=0, lt=1, description="the delta at which max_epsilon counts")] = 1e-5
    hours: Annotated[
        Hours | None,
        BeforeValidator(lambda text: None if text is None else Hours.parse(text)),
        Field(description='local time of day in which rounds are trained, as "19:00-07:00"; without, always'),
    ] = None

    def allows_now(self, now: datetime.datetime) -> bool:
        """`now`: local time."""
        return self.hours is None or self.hours.contain(now.time())

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        found = super().objections(spec, operator)
        if self.columns != ANY and (forbidden := [name for name in spec.data.used if name not in self.columns]):
            found.append(f"it uses {', '.join(forbidden)}, not among `columns`")
        if self.masked_only and not spec.update.masked:
            found.append("its aggregator would see single updates, and `masked_only` is true")
        if self.max_rounds is not None and spec.rounds.rounds > self.max_rounds:
            found.append(f"it has {spec.rounds.rounds} rounds, above `max_rounds` {self.max_rounds}")
        if self.max_epsilon is not None and spec.privacy is None:
            found.append(f"it is not private, so that it could cost rows more than `max_epsilon` {self.max_epsilon:g}")
        if spec.statistics == "exact" and not self.exact_statistics:
            found.append("it wants exact statistics of this hospital's rows, and `exact_statistics` is false")
        if self.min_cohort is not None and spec.rounds.min_cohort_size < self.min_cohort:
            found.append(
                f"its cohorts may have {spec.rounds.min_cohort_size} hospital(s), below `min_cohort` {self.min_cohort}"
            )
        if self.min_harm is not None and spec.judging.harmful_below > -self.min_harm:
            found.append(
                f"it slashes cohorts that score below {spec.judging.harmful_below:g}, nearer to zero than `min_harm`"
                f" {self.min_harm:g}"
            )
        return found

    def require_rows(self, spec: TaskSpec, rows: int) -> None:
        """Raises NotAllowed with every objection to this task on so many rows of this hospital's."""
        if found := self.objections_to_rows(spec, rows):
            raise OwnersRefusal("NotAllowed", task=spec.name, objections="; ".join(found))

    def objections_to_rows(self, spec: TaskSpec, rows: int) -> list[str]:
        found = []
        if self.min_rows is not None and rows < self.min_rows:
            found.append(f"it would train on {rows} of this hospital's rows, below `min_rows` {self.min_rows}")
        steps = spec.training.epochs * math.ceil(rows / spec.training.batch_size)
        if self.min_steps is not None and spec.privacy is None and steps < self.min_steps:
            found.append(f"a round is {steps} step(s) of training on {rows} rows, below `min_steps` {self.min_steps}")
        return found


class VoterPolicy(TaskPolicy):
    """A voter's."""

    bond = "voter_bond"
    slashes = {"not_revealed_slash_bps": "a ballot that is not revealed", "failed_canary_slash_bps": "a failed canary"}

    metrics: Annotated[list[Metric] | Literal["any"], Field(description='metrics to judge by, or "any"')]
    max_tasks: Annotated[int, Field(ge=1, description="of how many tasks at once this node is a voter")] = 4

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        found = super().objections(spec, operator)
        if self.metrics != ANY and spec.judging.metric not in self.metrics:
            found.append(f"the metric {spec.judging.metric} is not among `metrics`")
        return found


PolicyType = TypeVar("PolicyType", bound=TaskPolicy)

# What `init` writes of rules that most owners have no opinion on yet; a task file's own defaults keep them.
NEW_LIMITS: Mapping[str, int | float] = {"max_days": 60}
NEW_HOSPITAL: Mapping[str, bool | int | float] = {
    "masked_only": True, "exact_statistics": False, "min_rows": 50, "min_steps": 4, "min_cohort": 3, "min_harm": 0.02,
    "max_slash_percent": 20, **NEW_LIMITS,
}  # fmt: skip
NEW_VOTER: Mapping[str, int | float] = {"max_slash_percent": 50, **NEW_LIMITS}


def policy_toml(policy: Mapping[str, Any], kind: type[TaskPolicy]) -> str:
    """The file's text, with what each rule means above it."""
    parts = []
    for name, value in policy.items():
        words = textwrap.wrap(kind.model_fields[name].description or "", 98)
        parts.append("\n".join([*(f"# {line}" for line in words), tomli_w.dumps({name: value})]))
    return "\n".join(parts)


def read_policy(path: Path, kind: type[PolicyType]) -> PolicyType:
    """Raises PolicyInvalid with every fault and where it stands."""
    what = f"the policy {path}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise OwnersRefusal(
            "PolicyInvalid", why=f"{what} cannot be read: {error.strerror}; without it nothing is allowed"
        ) from error
    return parse_toml(raw, kind, what, lambda why: OwnersRefusal("PolicyInvalid", why=why))
