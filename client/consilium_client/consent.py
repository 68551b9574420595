"""The policy file, which a node's owner writes: a node checks every task against it before it starts anything of the
task.

The policy allows only the things that it names. A hospital's node checks it when it joins a task, and again at each
start, because the policy or the program may have changed in between. The hours apply to each round. A voter's node
checks it when it joins a task by itself.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import tomli_w
from consilium_chain.tasks.limits import DAY
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.plugin_specs import Group, NamedPlugin
from consilium_chain.tasks.questions import Metric
from consilium_chain.tasks.sale_spec import SaleSpec
from consilium_chain.tasks.start_specs import Digest
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.typed_toml import Section, parse_toml
from eth_utils.address import is_hex_address
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr

from consilium_client.errors import OwnersRefusal
from consilium_client.plugins.installed import plugins_of

ANY: Literal["any"] = "any"
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def _address(text: str) -> str:
    if not is_hex_address(text):
        raise ValueError(f"{text!r} is not an account's address (0x and 40 hexadecimal digits)")
    return text.lower()


Address = Annotated[str, AfterValidator(_address)]


@dataclass(frozen=True)
class Hours:
    """From `start` (included) to `end` (excluded), local time of day; over midnight if `end` is not after `start`."""

    start: datetime.time
    end: datetime.time

    @classmethod
    def parse(cls, text: Any) -> Hours | None:
        if text is None or isinstance(text, Hours):
            return text
        found = _HOURS.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError('write hours as "19:00-07:00"')
        a, b, c, d = map(int, found.groups())
        return cls(datetime.time(a, b), datetime.time(c, d))

    def contain(self, time: datetime.time) -> bool:
        """Equal ends are the whole day."""
        if self.start < self.end:
            return self.start <= time < self.end
        return time >= self.start or time < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


class ApprovalRule(Section):
    by: list[Address] = Field(
        min_length=1, max_length=16, description="accounts, one of which must sign for each task (docs/hospital.md)"
    )


class TaskPolicy(Section):
    """The policy refuses all names that it does not list. "any" lists all names. `digest`: SHA-256 of its file."""

    _digest: str = PrivateAttr(default="")

    # Fields of a task file's money: the bond that this node would lock; slashes of it, with the fault in words.
    bond: ClassVar[str]
    slashes: ClassVar[Mapping[str, str]]
    earners: ClassVar[str]  # the nodes of this kind, as the terms of a sale name them
    computes: ClassVar[frozenset[Group]]  # of the task's plug-ins, those whose code runs here

    operators: list[Address] | Literal["any"] = Field(description='accounts whose tasks may be joined, or "any"')
    models: list[str] | Literal["any"] = Field(description='model families of the tasks, or "any"')
    programs: list[Digest] | Literal["any"] = Field(
        default=[], description='programs that may be computed, by their hash, or "any"; by default none'
    )
    authors: list[Address] = Field(
        default=[], description="accounts whose signed programs may be computed, too; by default none"
    )
    plugins: list[Digest] = Field(
        default=[],
        description="Plug-ins whose code may run, by their digest (`consilium plugin list`); by default none. Each must"
        " be installed here, too.",
    )
    max_bond: int | None = Field(
        default=None, ge=0, description="the largest part of this node's stake that a task may lock, in whole tokens"
    )
    max_days: int | None = Field(
        default=None,
        ge=1,
        description="The longest that a task may last, in days, if each phase takes its full time. The bond is locked"
        " that long, or a week longer if the beacon dies. Default: as long as the contract allows.",
    )
    max_slash_percent: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="The largest part of the bond that one fault may cost, in per cent. Default: all of it.",
    )
    share_evaluation: Literal["never", "unless_private", "always"] = Field(
        default="never",
        description="Let coarse figures of finished models on this node's held-out rows go: by `evaluate --share`, and"
        " at a task's end to `report_to` of node.toml. They carry no noise:"
        ' "unless_private" lets none of tasks with epsilon go, "always" all.',
    )
    may_be_sold: bool = Field(
        default=False,
        description="Join tasks whose finished model may be sold, by the terms under [sale] of the task file.",
    )
    min_own_percent: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="The smallest percentage of each payment for a sold model that this node's role gets: trainers for"
        " a hospital, voters for a voter. Default: any.",
    )

    @property
    def digest(self) -> str:
        return self._digest

    def require(self, spec: TaskSpec, operator: str) -> None:
        """Raises NotAllowed with every objection to a task of this file and operator."""
        self._refuse(spec, self.objections(spec, operator))

    def _refuse(self, spec: TaskSpec, objections: list[str]) -> None:
        if objections:
            raise OwnersRefusal("NotAllowed", task=spec.name, objections="; ".join(objections))

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        """One sentence for each rule that the task breaks; none if the node may join it."""
        bond, days = getattr(spec.money, self.bond), spec.windows.longest(spec.rounds.rounds) / DAY
        slashes = [(event, getattr(spec.money, name) / 100) for name, event in self.slashes.items()]
        return [
            *self._unlisted("operators", operator.lower(), f"operator {operator}"),
            *self._unlisted("models", spec.model.name, f"model {spec.model.name}"),
            *(self._of_program(spec.model) if isinstance(spec.model, ProgramSpec) else []),
            *(objection for plugin in self.needed(spec) for objection in self._of_plugin(plugin)),
            *self._above("max_bond", bond, f"it locks {bond} tokens"),
            *self._above("max_days", days, f"it may last {days:,.1f} days"),
            *(
                objection
                for event, percent in slashes
                for objection in self._above("max_slash_percent", percent, f"{event} costs {percent:g} % of the bond")
            ),
            *([] if spec.sale is None else self._of_sale(spec, spec.sale)),
        ]

    def _of_sale(self, spec: TaskSpec, sale: SaleSpec) -> list[str]:
        own = getattr(sale, f"{self.earners}_percent")
        found = self._below("min_own_percent", own, f"its {self.earners} get {own} % of each payment for its model")
        if self.may_be_sold:
            return found
        return [f"its model may be sold ({spec.in_words.sale}), but `may_be_sold` is false", *found]

    def _of_program(self, model: ProgramSpec) -> list[str]:
        """An objection if neither the program nor its author is listed."""
        unlisted = self._unlisted("programs", model.program, f"program {model.program}")
        author = model.author
        if unlisted and author is not None:
            by_author = self._unlisted("authors", author, f"author {author}")
            return [f"{unlisted[0]}, and {by_author[0]}"] if by_author else []
        return unlisted

    def needed(self, spec: TaskSpec) -> list[NamedPlugin]:
        """The task's plug-ins that a node of this kind computes."""
        return [one for one in plugins_of(spec) if one.group in self.computes]

    def _of_plugin(self, plugin: NamedPlugin) -> list[str]:
        return self._unlisted("plugins", plugin.record, f"plug-in {plugin.in_words}, {plugin.record}")

    def _unlisted(self, rule: str, name: str, words: str) -> list[str]:
        """An objection if the rule's list lacks this name of the task's."""
        listed = getattr(self, rule)
        return [] if listed == ANY or name in listed else [f"`{rule}` does not list its {words}"]

    def _above(self, rule: str, value: float, words: str) -> list[str]:
        """An objection if the value is above the rule's, where the owner has one."""
        most = getattr(self, rule)
        return [] if most is None or value <= most else [f"{words}, above `{rule}` {most:.12g}"]

    def _below(self, rule: str, value: float, words: str) -> list[str]:
        least = getattr(self, rule)
        return [] if least is None or value >= least else [f"{words}, below `{rule}` {least:.12g}"]


class Policy(TaskPolicy):
    """A hospital's."""

    bond = "hospital_bond"
    slashes: ClassVar = {
        "harmful_slash_bps": "a harmful update",
        "withheld_slash_bps": "an update that is not handed over",
    }
    earners = "trainers"
    computes = frozenset(("models", "readers"))

    columns: list[str] | Literal["any"] = Field(description='columns of the task\'s schema that may be used, or "any"')
    masked_only: bool = Field(default=True, description="refuse tasks whose aggregator sees single updates")
    arenas: bool = Field(
        default=False,
        description="Join arenas, where each hospital trains alone: everybody sees its update. `masked_only` and"
        " `min_cohort` do not apply to them.",
    )
    exact_statistics: bool = Field(
        default=False,
        description="Allow exact counts, sums and sums of squares of this hospital's rows to leave, if a task asks for"
        " them. They carry no noise. Two such sums over nearly the same rows show the rows that differ, so this node"
        " refuses to give the second. It cannot refuse for others: if all other hospitals of a task tell theirs, or"
        " take part in another task without this one, this hospital's own sums are known.",
    )
    summaries: Literal["no", "noisy", "exact"] = Field(
        default="no",
        description="Allow counts of this hospital's rows to leave, if a task asks for a summary: histograms, codes,"
        ' missing values, and answers. "noisy": with noise that bounds what they reveal about a row. "exact": also'
        " without, under the same rules as exact statistics.",
    )
    min_rows: int | None = Field(
        default=None,
        ge=1,
        description="The smallest number of this hospital's rows that takes part. An update of few rows says much about"
        " each.",
    )
    min_steps: int | None = Field(
        default=None,
        ge=1,
        description="The smallest number of training steps in a round, in tasks without epsilon. An update of one step"
        " is a sum of the rows' gradients, and says most about the rows.",
    )
    min_cohort: int | None = Field(
        default=None,
        ge=1,
        description="The smallest number of hospitals whose updates are added up before anybody sees them. A larger sum"
        " says less about each.",
    )
    min_harm: float | None = Field(
        default=None,
        ge=0,
        description="The smallest distance below zero at which a task may slash a cohort for its score. Chance alone"
        " moves honest scores around zero.",
    )
    max_rounds: int | None = Field(
        default=None, ge=1, description="the largest number of rounds of one task; default: any number"
    )
    max_epsilon: float | None = Field(
        default=None,
        gt=0,
        description="the most that all tasks together may cost a row, which allows private tasks only; default: each"
        " task's own budget is the only bound",
    )
    delta: float = Field(default=1e-5, gt=0, lt=1, description="the delta at which max_epsilon counts")
    hours: Annotated[
        Hours | None,
        BeforeValidator(Hours.parse),
        Field(description='local time of day in which rounds are trained, as "19:00-07:00"; without, always'),
    ] = None
    approval: ApprovalRule | None = Field(
        default=None, description="second signature that each task needs; by default none"
    )

    def allows_now(self, now: datetime.datetime) -> bool:
        """`now`: local time."""
        return self.hours is None or self.hours.contain(now.time())

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        rounds, smallest = spec.rounds.rounds, spec.rounds.min_cohort_size
        found = [
            *super().objections(spec, operator),
            *self._above("max_rounds", rounds, f"it has {rounds} rounds"),
        ]
        if spec.is_arena:
            if not self.arenas:
                found.append("it is an arena, where each hospital's update is public, but `arenas` is false")
        else:
            found += self._below("min_cohort", smallest, f"its cohorts may have {smallest} hospital(s)")
            if self.masked_only and not spec.update.masked:
                found.append("its aggregator would see single updates, but `masked_only` is true")
        if self.columns != ANY and (forbidden := [name for name in spec.data.used if name not in self.columns]):
            found.append(f"it uses {', '.join(forbidden)}, which `columns` does not list")
        if self.max_epsilon is not None and spec.privacy is None:
            found.append(f"it is not private, so it could cost rows more than `max_epsilon` {self.max_epsilon:g}")
        if spec.statistics == "exact" and not self.exact_statistics:
            found.append("it needs exact statistics of this hospital's rows, but `exact_statistics` is false")
        if spec.summary is not None:
            asked = "exact" if spec.summary_variance == 0 else "noisy"
            if self.summaries not in ("exact", asked):
                found.append(f'it needs {asked} counts of this hospital\'s rows, but `summaries` is "{self.summaries}"')
        harmful = spec.judging.harmful_below
        if self.min_harm is not None and harmful > -self.min_harm:
            found.append(
                f"it slashes cohorts that score below {harmful:g}, which is closer to zero than `min_harm`"
                f" {self.min_harm:g}"
            )
        return found

    def require_rows(self, spec: TaskSpec, rows: int) -> None:
        """Raises NotAllowed with every objection to this task on so many rows of this hospital's."""
        self._refuse(spec, self.objections_to_rows(spec, rows))

    def objections_to_rows(self, spec: TaskSpec, rows: int) -> list[str]:
        found = self._below("min_rows", rows, f"it would train on {rows} of this hospital's rows")
        if spec.privacy is None:
            steps = spec.training.steps_on(rows)
            found += self._below("min_steps", steps, f"a round is {steps} step(s) of training on {rows} rows")
        return found


class VoterPolicy(TaskPolicy):
    """A voter's."""

    bond = "voter_bond"
    slashes: ClassVar = {
        "not_revealed_slash_bps": "a ballot that is not revealed",
        "failed_decoy_slash_bps": "a failed decoy",
    }
    earners = "voters"
    computes = frozenset(("models", "metrics", "readers"))

    metrics: list[Metric] | Literal["any"] = Field(
        description='metrics to judge by, or "any"; for one of a plug-in, `plugins` lists it'
    )
    max_tasks: int = Field(default=4, ge=1, description="the largest number of tasks that this node judges at once")

    def objections(self, spec: TaskSpec, operator: str) -> list[str]:
        metric, found = spec.judging.metric, super().objections(spec, operator)
        return found if spec.judging.plugin else [*found, *self._unlisted("metrics", metric, f"metric {metric}")]


PolicyType = TypeVar("PolicyType", bound=TaskPolicy)

# `init` writes these limits, on which most owners have no opinion yet. A task file's defaults keep them.
NEW_LIMITS: Mapping[str, bool | int | float | str] = {
    "max_days": 60, "share_evaluation": "never", "may_be_sold": False,
}  # fmt: skip
NEW_HOSPITAL: Mapping[str, bool | int | float | str] = {
    "masked_only": True, "arenas": False, "exact_statistics": False, "summaries": "no", "min_rows": 50,
    "min_steps": 4, "min_cohort": 3, "min_harm": 0.02, "max_slash_percent": 20, **NEW_LIMITS,
}  # fmt: skip
NEW_VOTER: Mapping[str, bool | int | float | str] = {"max_slash_percent": 50, **NEW_LIMITS}


def policy_toml(policy: Mapping[str, Any], kind: type[TaskPolicy]) -> str:
    """The file's text, with an explanation above each rule."""
    parts = []
    for name, value in policy.items():
        words = textwrap.wrap(kind.model_fields[name].description or "", 98)
        parts.append("\n".join([*(f"# {line}" for line in words), tomli_w.dumps({name: value})]))
    return "\n".join(parts)


def read_policy(path: Path, kind: type[PolicyType]) -> PolicyType:
    """Raises PolicyInvalid with every fault, and where it is."""
    what = f"the policy {path}"
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise OwnersRefusal(
            "PolicyInvalid", why=f"{what} cannot be read: {error.strerror}; without it nothing is allowed"
        ) from error
    policy = parse_toml(raw, kind, what, lambda why: OwnersRefusal("PolicyInvalid", why=why))
    policy._digest = hashlib.sha256(raw).hexdigest()
    return policy
