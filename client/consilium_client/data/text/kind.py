"""Texts, as one of the kinds of examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from consilium_chain.tasks.data_schemas import TextSchema
from consilium_chain.tasks.task_spec import TaskSpec

from consilium_client.data.examples import REQUEST, Refusal, Row, unlabelled
from consilium_client.data.kinds import Kind
from consilium_client.data.mapping import read_mapping
from consilium_client.data.text.profile import TextProfile, profile_texts
from consilium_client.data.text.reader import RawTexts, TextSet, read_raw_texts, text_of


class TextKind(Kind[RawTexts, TextSchema]):
    def read(self, path: Path, schema: TextSchema, mapping: Path | None) -> RawTexts:
        return read_raw_texts(path, schema, None if path.is_dir() else read_mapping(mapping, schema))

    def examples(self, raw: RawTexts, schema: TextSchema) -> TextSet:
        return raw.texts

    def profile(self, raw: RawTexts, spec: TaskSpec) -> TextProfile:
        return profile_texts(raw, spec)

    def requested(self, rows: Sequence[Row], schema: TextSchema, refusal: Refusal) -> TextSet:
        texts = []
        for at, row in enumerate(rows, 1):
            value, where = row[schema.text], f"row {at}, column {schema.text}"
            if not isinstance(value, str):
                raise refusal(f"{where}: the value is no text")
            texts.append(text_of(value, REQUEST, where, at))
        return TextSet(tuple(texts), unlabelled(rows))


KIND = TextKind()
