"""Texts' profile (`preview`): how long they are, and what may be wrong with them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from consilium_chain.tasks.data_schemas import TextSchema
from consilium_chain.tasks.model_specs import LoraSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind

from consilium_client.data.preview import ONE_CLASS, Finding, Profile, classes_of, preview_of, repeats
from consilium_client.data.text.reader import RawTexts

FEW = 2  # words
# What is left of letters that a program could not read, and what those of UTF-8 are when read as Latin-1 or cp1252.
_SECOND = "".join(bytes(range(0x80, 0xC0)).decode(encoding, "ignore") for encoding in ("latin-1", "cp1252"))
_BROKEN = re.compile(f"\ufffd|[ÂÃ][{re.escape(_SECOND)}]|â€")


class Concern(StrEnum):
    """Possible faults of texts that can be read, in words that say what to look at."""

    CUT = (
        "texts with more words than the model reads tokens (a word is one or more), so that it never sees their end:"
        " see that what counts comes first, or ask the operator for a higher max_tokens"
    )
    FEW_WORDS = (
        "texts of one or two words: check that these are the texts, and not codes or numbers that stand for them"
    )
    BROKEN_LETTERS = (
        "texts with letters that were broken on the way (\ufffd, Ã¼): export them anew as UTF-8, or say encoding in a"
        " mapping"
    )
    DUPLICATES = "texts that repeat an earlier one: check that the export lists each once, and leaves out templates"
    CONTRADICTING = "texts that repeat an earlier one under another label: look at which label is right"
    ONE_CLASS = ONE_CLASS


@dataclass(frozen=True)
class Lengths:
    """The lengths of n texts, in one unit."""

    shortest: int = field(repr=False)
    median: float = field(repr=False)
    longest: int = field(repr=False)


@dataclass(frozen=True)
class TextProfile(Profile):
    """`tokens`: how many the task's model reads of a text at most; None where that is no matter of the task's."""

    words: Lengths
    characters: Lengths
    tokens: int | None


def profile_texts(raw: RawTexts, spec: TaskSpec) -> TextProfile:
    """The profile of texts that were read with the task's schema."""
    schema, texts = of_kind(TextSchema, spec.data), raw.texts
    words = [len(text.split()) for text in texts.texts]
    tokens = spec.model.max_tokens if isinstance(spec.model, LoraSpec) else None
    classes = classes_of(texts.labels, schema)
    repeated, contradicting = repeats(texts.texts, texts.labels)
    counts = {
        Concern.CUT: sum(count > tokens for count in words) if tokens else 0,
        Concern.FEW_WORDS: sum(count <= FEW for count in words),
        Concern.BROKEN_LETTERS: sum(bool(_BROKEN.search(text)) for text in texts.texts),
        Concern.DUPLICATES: repeated,
        Concern.CONTRADICTING: contradicting,
        Concern.ONE_CLASS: texts.rows if texts.rows in dict(classes).values() else 0,
    }
    return TextProfile(
        path=raw.path,
        kind=raw.kind,
        things=schema.things,
        rows=texts.rows,
        label=schema.label,
        label_source=raw.sources.get(schema.label),
        classes=classes,
        left_aside=raw.left_aside,
        left_aside_names=raw.left_aside_names,
        repeated=repeated,
        findings=tuple(Finding(concern, None, count, texts.rows) for concern, count in counts.items() if count),
        preview=preview_of(texts, spec),
        words=_lengths(words),
        characters=_lengths([len(text) for text in texts.texts]),
        tokens=tokens,
    )


def _lengths(lengths: list[int]) -> Lengths:
    return Lengths(min(lengths), float(np.median(lengths)), max(lengths))
