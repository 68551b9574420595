"""The door between a node's data and a task: nothing is staked on data that are probably wrong.

A fault of the data is a DataError. Other findings are remarks, which every joining repeats. Some of them ask: the node
joins only if its owner has answered them by name, under [data_accepted] of its settings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.logs import emit
from consilium_core.visible_text import shown

from consilium_client.data.examples import Examples, Source
from consilium_client.data.kinds import kind_of, require_held_out
from consilium_client.data.profile import Finding
from consilium_client.errors import DataError

Answers = Mapping[str, bool | Sequence[str]]
"""By a finding's key: true, or the columns for which it is right."""


@dataclass(frozen=True)
class Admitted:
    """Examples that may join. `remarks`: all findings. `unneeded`: answers that answer none of them, in words."""

    examples: Examples = field(repr=False)
    remarks: tuple[Finding, ...]
    unneeded: tuple[str, ...]

    def tell(self) -> None:
        """Logs the remarks without any number, as logs travel."""
        for remark in self.remarks:
            emit("data-remark", concern=remark.key, column=remark.column or "", answered=remark.asks)
        for answer in self.unneeded:
            emit("answer-unneeded", answer=answer)


def admitted(
    path: Path, spec: TaskSpec, mapping: Path | None, answers: Answers, *, held_out: bool = False,
    on_source: Callable[[Source], None] = lambda source: None,
) -> Admitted:  # fmt: skip
    """As `read_examples` reads them. `held_out`: of a voter. `on_source` gets what was read.

    Raises DataError, also RemarksUnanswered.
    """
    kind = kind_of(spec.data)
    raw = kind.read(path, spec.data, mapping)
    on_source(raw.source)
    examples = kind.examples(raw, spec.data)
    if held_out:
        require_held_out(examples, path, spec)
    remarks = kind.profile(raw, spec).findings
    require_answered(path, remarks, answers, spec.data.things)
    return Admitted(examples, remarks, tuple(unneeded(remarks, answers)))


def require_answered(path: Path, remarks: Sequence[Finding], answers: Answers, things: str) -> None:
    """Raises RemarksUnanswered, with the lines to add. `things`: the examples in a word."""
    unanswered = [one for one in remarks if one.asks and not _is_answered(one, answers)]
    if unanswered:
        keys = {one.key for one in unanswered}
        lines = answers_to(one for one in remarks if one.key in keys)
        raise DataError(
            "RemarksUnanswered",
            path=path,
            remarks="; ".join(f"{shown(one.column or things)}: {one}" for one in unanswered),
            answers=", ".join(f"{name} = {_toml(answer)}" for name, answer in lines.items()),
            concerns=tuple((one.key, one.column) for one in unanswered),
        )


def answers_to(remarks: Iterable[Finding]) -> dict[str, bool | list[str]]:
    """The answers that all of these need."""
    answers: dict[str, bool | list[str]] = {}
    for one in remarks:
        if one.asks and one.column is None:
            answers[one.key] = True
        elif one.asks and one.column is not None:
            known = answers.setdefault(one.key, [])
            if isinstance(known, list) and one.column not in known:
                known.append(one.column)
    return answers


def unneeded(remarks: Sequence[Finding], answers: Answers) -> Iterator[str]:
    """Answers to remarks that there are not, or that do not ask, in words."""
    asked = {(one.key, one.column) for one in remarks if one.asks}
    for key, answer in answers.items():
        if isinstance(answer, bool):
            if answer and key not in {name for name, _ in asked}:
                yield key
        else:
            yield from (f"{key} of {column}" for column in answer if (key, column) not in asked)


def _is_answered(remark: Finding, answers: Answers) -> bool:
    answer = answers.get(remark.key, False)
    return answer if isinstance(answer, bool) else remark.column in answer


def _toml(answer: bool | list[str]) -> str:
    """JSON's texts and lists are TOML's, too."""
    return json.dumps(answer, ensure_ascii=False)
