"""What a node's owner allows: the policy file, held against a task before anything of it starts.

The policy is the owner's own and says yes to what it names, to nothing else. A hospital's is looked at when a task is
joined and again whenever a node starts, since both it and the program may have changed in between; the hours hold for
every round anew. A voter's is looked at when a task is joined, which its node does by itself.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from consilium_chain.task_spec import Metric, TaskSpec
from consilium_chain.typed_toml import parse_toml
from eth_utils.address import is_hex_address
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from consilium_client.errors import NotAllowed, PolicyInvalid

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
    """What is not named here is not allowed; "any" names everything."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)
    bond: ClassVar[str]  # of a task file's money: the one that this node would lock

    operators: Annotated[
        list[Address] | Literal["any"], Field(description='accounts whose tasks may be joined, or "any"')
    ]
    models: Annotated[list[str] | Literal["any"], Field(description='model families of the tasks, or "any"')]
    max_bond: Annotated[
        int | None, Field(ge=0, description="most that a task may lock of this node's stake, in whole tokens")
    ] = None

    def require(self, spec: TaskSpec, operator: str) -> None:
        """Raises NotAllowed with every objection to a task of this file and operator."""
        if found := self.objections(spec, operator):
            raise NotAllowed(spec.name, found)

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
        return found


class Policy(TaskPolicy):
    """A hospital's."""

    bond = "hospital_bond"

    columns: Annotated[
        list[str] | Literal["any"], Field(description='columns of the task\'s schema that may be used, or "any"')
    ]
    masked_only: Annotated[bool, Field(description="refuse tasks whose aggregator sees single updates")] = True
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
        return found


class VoterPolicy(TaskPolicy):
    """A voter's."""

    bond = "voter_bond"

    metrics: Annotated[list[Metric] | Literal["any"], Field(description='metrics to judge by, or "any"')]
    max_tasks: Annotated[int, Field(ge=1, description="of how many tasks at once this node is a voter")] = 4

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        found = super().objections(spec, operator)
        if self.metrics != ANY and spec.judging.metric not in self.metrics:
            found.append(f"the metric {spec.judging.metric} is not among `metrics`")
        return found


PolicyType = TypeVar("PolicyType", bound=TaskPolicy)


def read_policy(path: Path, kind: type[PolicyType]) -> PolicyType:
    """Raises PolicyInvalid with every fault and where it stands."""
    what = f"the policy {path}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PolicyInvalid(f"{what} cannot be read: {error.strerror}; without it nothing is allowed") from error
    return parse_toml(raw, kind, what, PolicyInvalid)
