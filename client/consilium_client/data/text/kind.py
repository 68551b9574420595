"""Texts, as one of the kinds of examples. Their profile: how long they are, and their possible faults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
from consilium_chain.tasks.model_specs import OnEncoder
from consilium_chain.tasks.task_spec import TaskSpec
from numpy.typing import NDArray

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.foreign import named_way
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import Mapping, read_mapping
from consilium_client.data.profile import INVERTED, ONE_CLASS, Profile, findings_of, inverted, repeats, statistics_of
from consilium_client.data.text.reader import RawTexts, Schema, TextSet, read_raw_texts, read_texts_in_use, text_of
from consilium_client.data.use import Use, Used

FEW = 2  # words
# The replacement character of letters that a program could not read, and UTF-8 letters read as Latin-1 or cp1252.
_SECOND = "".join(bytes(range(0x80, 0xC0)).decode(encoding, "ignore") for encoding in ("latin-1", "cp1252"))
_BROKEN = re.compile(f"\ufffd|[ÂÃ][{re.escape(_SECOND)}]|â€")


class Concern(StrEnum):
    """Possible faults of readable texts, with the check to make."""

    CUT = (
        "texts with more words than the model reads tokens (a word is one or more tokens), so it never sees their end:"
        " check that the important part comes first, or ask the operator for a higher max_tokens"
    )
    FEW_WORDS = "texts of one or two words: check that these are texts, not codes or numbers"
    BROKEN_LETTERS = (
        "texts with broken letters (\ufffd, Ã¼): export them again as UTF-8, or write the encoding into a mapping"
    )
    DUPLICATES = "texts that repeat an earlier one: check that the export has each text once, and no templates"
    CONTRADICTING = "texts that repeat an earlier one under another label: check which label is right"
    LEAK = (
        "one word gives (nearly) every label away: check that the texts do not have the label itself, and were written"
        " before the diagnosis"
    )
    SAME_LENGTH = "long texts that all end at the same length, as where a program cuts them: export them whole"
    MARKUP = "texts with marks of web pages or of Word (<p>, &nbsp;, {\\rtf): export them as plain text"
    INVERTED = INVERTED
    ONE_CLASS = ONE_CLASS


ASKING = {*Concern} - {Concern.CUT, Concern.FEW_WORDS, Concern.ONE_CLASS}
LEAST, LEAKS = 10, 0.99  # texts of a class; share of right guesses of the rarer classes
LEAST_CUT, LONG, OFTEN = 3, 200, 0.05  # texts of one length; its characters; share of all texts
_MARKUP = re.compile(r"</?(?:p|br|div|span|html|body|td|table)\b[^<]{0,200}>|&(?:nbsp|amp|lt|gt|[aou]uml);|\{\\rtf")
MOST_SHORT = 0.2  # of the texts: if more have few words, they ask, too


@dataclass(frozen=True)
class Lengths:
    """The lengths of n texts, in one unit."""

    shortest: int = field(repr=False)
    median: float = field(repr=False)
    longest: int = field(repr=False)


@dataclass(frozen=True)
class TextProfile(Profile):
    """`tokens`: the most that the task's model reads of a text; None if the model has no such limit."""

    words: Lengths
    characters: Lengths
    tokens: int | None


def _lengths(lengths: list[int]) -> Lengths:
    return Lengths(min(lengths), float(np.median(lengths)), max(lengths))


def tells(texts: Sequence[str], labels: NDArray[np.int64]) -> bool:
    """True if one word's presence is enough to guess nearly all labels (n,) of the rarer classes."""
    totals = Counter(labels.tolist())
    if len(totals) < 2 or min(totals.values()) < LEAST:
        return False
    found: dict[str, Counter[int]] = {}
    for text, label in zip(texts, labels.tolist(), strict=True):
        for word in {*re.findall(r"\w+", text.lower())}:
            found.setdefault(word, Counter())[label] += 1
    rarer = len(texts) - max(totals.values())
    most_right = len(texts) - (1 - LEAKS) * rarer
    return any(
        max(there.values()) + max(count - there[label] for label, count in totals.items()) >= most_right
        for there in found.values()
    )


def cut_off(texts: Sequence[str]) -> int:
    """Counts the texts of the greatest length, if they are many and long."""
    longest, count = max(Counter(map(len, texts)).items())
    return count if longest >= LONG and count >= max(LEAST_CUT, OFTEN * len(texts)) else 0


class TextKind(Kind[RawTexts, Schema]):
    def read(self, path: Path, schema: Schema, mapping: Path | None) -> RawTexts:
        is_own = path.is_dir() and mapping is not None and named_way(mapping, schema) is None
        return read_raw_texts(path, schema, Mapping() if is_own else read_mapping(mapping, schema))

    def examples(self, raw: RawTexts, schema: Schema) -> TextSet:
        return raw.texts

    def profile(self, raw: RawTexts, spec: TaskSpec) -> TextProfile:
        texts = raw.texts
        words = [len(text.split()) for text in texts.texts]
        tokens = spec.model.max_tokens if isinstance(spec.model, OnEncoder) else None
        answers = answers_of(spec.data)
        repeated, contradicting = repeats(texts.texts, texts.label_bytes)
        counts: dict[StrEnum, int] = {
            Concern.CUT: sum(count > tokens for count in words) if tokens else 0,
            Concern.FEW_WORDS: sum(count <= FEW for count in words),
            Concern.BROKEN_LETTERS: sum(bool(_BROKEN.search(text)) for text in texts.texts),
            Concern.LEAK: texts.rows * any(tells(texts.texts, one) for one in answers.classes(texts.labels)),
            Concern.SAME_LENGTH: cut_off(texts.texts),
            Concern.MARKUP: sum(bool(_MARKUP.search(text)) for text in texts.texts),
            Concern.INVERTED: texts.rows * inverted(answers.counts(texts.labels), spec),
            Concern.DUPLICATES: repeated,
            Concern.CONTRADICTING: 0 if answers.vary else contradicting,
            Concern.ONE_CLASS: texts.rows if answers.alike(texts.labels) else 0,
        }
        are_short = counts[Concern.FEW_WORDS] > MOST_SHORT * texts.rows
        findings = findings_of(counts, texts.rows, ASKING | ({Concern.FEW_WORDS} if are_short else set()))
        characters = _lengths([len(text) for text in texts.texts])
        statistics = statistics_of(texts, spec)
        return TextProfile(
            raw.source, spec, texts.rows, answers.counts(texts.labels), repeated, findings, statistics,
            _lengths(words), characters, tokens,
        )  # fmt: skip

    def in_use(self, path: Path, schema: Schema, use: Use) -> Used:
        return read_texts_in_use(path, schema, use)

    def requested(self, rows: Sequence[Row], schema: Schema, refusal: Refusal, clamp: bool = False) -> TextSet:
        """Texts have no range, so `clamp` changes nothing."""
        for at, row in enumerate(rows, 1):
            if not isinstance(row[schema.text], str):
                raise refusal(f"{REQUEST.where(at, schema.text)}: the value is not a text")
        texts = (text_of(row[schema.text], REQUEST, at, schema.text) for at, row in enumerate(rows, 1))
        return TextSet(tuple(texts), unlabelled(rows))


KIND = TextKind()
