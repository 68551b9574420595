"""The task file's reference, from its schema: each key with its kind, bounds, default and meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from consilium_chain.tasks.task_spec import TaskSpec

Schema = dict[str, Any]

NOTES = {
    "data": "The shape of all rows, texts or images. It is public: take nothing in it from anybody's rows.",
    "data.features": "One for each column of a table, each under its own [[data.features]].",
    "summary": "Without this section round 0 counts nothing of rows, unless statistics are exact.",
    "privacy": "Without this section nothing bounds how much the sums show of a row.",
    "data.question": "Instead of label and classes.",
    "data.reader": "Without a mapping, hospitals and voters read their files by it.",
    "judging": "Scores are improvements over the round's base, in the metric's own unit.",
    "money": "Shares and slashes are basis points, hundredths of a percent.",
    "sale": "Without this section the model can never be sold. It ends the file: these four lines in this order, and"
    " nothing else, because the chain proves them by the file's hash.",
}
EXAMPLES = {
    "a table": """\
name = "who will fall ill"
[data]
label = "ill"
classes = ["no", "yes"]
[[data.features]]
name = "age"
min = 0
max = 120
[[data.features]]
kind = "category"
name = "smoker"
values = [0, 1, 2]
[model]
name = "logistic"
""",
    "texts": """\
name = "what a question asks for"
[data]
kind = "text"
text = "question"
label = "topic"
classes = ["symptoms", "treatment"]
[model]
name = "lora"
""",
    "images": """\
name = "pneumonia on chest X-rays"
[data]
kind = "images"
classes = ["normal", "pneumonia"]
height = 28
width = 28
[model]
name = "cnn"
""",
}


@dataclass(frozen=True)
class Key:
    """`kind`: its type and bounds in words. `default`: as TOML has it; None for a key that must be there."""

    name: str
    kind: str
    default: str | None
    meaning: str


@dataclass(frozen=True)
class Part:
    """A section of the file. `title`: as it is written, with the key that chooses its form."""

    section: str
    title: str
    notes: tuple[str, ...]
    keys: tuple[Key, ...]


def reference() -> list[Part]:
    """All sections, in the order of the schema."""
    schema = TaskSpec.model_json_schema()
    top = [(name, field) for name, field in schema["properties"].items() if not _forms(field, schema)]
    parts = [Part("", "at the top", (), tuple(_key(name, field, schema) for name, field in top))]
    for name, field in schema["properties"].items():
        for form in _forms(field, schema):
            parts += [one for one in _parts(name, form, schema) if one not in parts]  # kinds share some
    return parts


def _forms(field: Schema, schema: Schema) -> list[Schema]:
    """The sections that a key can be; several where another key chooses."""
    named = [field, *field.get("allOf", []), *field.get("anyOf", []), *field.get("oneOf", [])]
    named += [
        one for inner in field.get("anyOf", []) for one in inner.get("oneOf", [])
    ]  # of a section that may be left out
    return [schema["$defs"][one["$ref"].rsplit("/", 1)[1]] for one in named if "$ref" in one]


def _parts(section: str, form: Schema, schema: Schema) -> Iterator[Part]:
    fields = form["properties"]
    chooser = next((name for name in ("kind", "name") if "const" in fields.get(name, {})), None)
    brackets = f"[[{section}]]" if section == "data.features" else f"[{section}]"
    title = f'{brackets} {chooser} = "{fields[chooser]["const"]}"' if chooser else brackets
    notes = tuple(note for note in (" ".join(form.get("description", "").split()), NOTES.get(section, "")) if note)
    within = {name: forms for name, field in fields.items() if (forms := _forms(field, schema))}
    keys = tuple(_key(name, field, form) for name, field in fields.items() if name != chooser and name not in within)
    yield Part(section, title, notes, keys)
    for name, forms in within.items():
        for one in forms:
            yield from _parts(f"{section}.{name}", one, schema)
    for inner in _forms(fields.get("features", {}).get("items", {}), schema):
        yield from _parts(f"{section}.features", inner, schema)


def _key(name: str, field: Schema, of: Schema) -> Key:
    must = name in of.get("required", ())
    default = None if must else _toml(field.get("default"))
    return Key(name, _kind(field), default, " ".join(field.get("description", "").split()))


def _kind(field: Schema) -> str:
    if "const" in field:
        return f'"{field["const"]}"'
    if "enum" in field:
        return " or ".join(_toml(one) for one in field["enum"])
    if "anyOf" in field:
        return _kind(next(one for one in field["anyOf"] if one.get("type") != "null"))
    if field.get("type") == "array":
        items = "sections" if "$ref" in str(field["items"]) else _kind(field["items"])
        bounds = _bounds(field.get("minItems"), field.get("maxItems"))
        return f"list of {items}" + (f", {bounds} of them" if bounds else "")
    if field.get("type") == "object":
        values = field["additionalProperties"]
        return "table of plain values" if "anyOf" in values else f"table of names, each a {_kind(values)}"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
    kind = words[field["type"]]
    if kind == "text":
        bounds = _bounds(field.get("minLength"), field.get("maxLength"))
        return f"{kind}, {bounds} characters" if bounds else kind
    low, high = field.get("minimum"), field.get("maximum")
    open_low, open_high = field.get("exclusiveMinimum"), field.get("exclusiveMaximum")
    bounds = ", ".join(
        words
        for words in (
            _bounds(low, high),
            "" if open_low is None else f"above {_toml(open_low)}",
            "" if open_high is None else f"below {_toml(open_high)}",
        )
        if words
    )
    return f"{kind}, {bounds}" if bounds else kind


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{_toml(low)} to {_toml(high)}"
    if low is not None:
        return f"{_toml(low)} or more"
    return "" if high is None else f"at most {_toml(high)}"


def _toml(value: Any) -> str:
    """A value as the file has it. Large whole numbers with groups."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_toml(one)}' for name, one in value.items())}}}"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:g}"
    return f"{int(value):_}" if abs(value) >= 10_000 else f"{int(value)}"


def as_markdown() -> str:
    """The whole reference as a page."""
    lines = [
        "# The task file, key by key",
        "",
        "Written by `consilium task reference --markdown`. [operator.md](operator.md) explains a whole file, and"
        " `consilium task new --from sample.csv`",
        "drafts one. A default of – means that the key may be left out.",
    ]
    for part in reference():
        lines += ["", f"## `{part.title}`" if part.section else f"## {part.title.capitalize()}", ""]
        lines += [note for note in part.notes]
        if part.keys:
            lines += ["", "| key | kind | default | meaning |", "|---|---|---|---|"]
        for key in part.keys:
            default = "**must be there**" if key.default is None else f"`{key.default}`" if key.default != "–" else "–"
            lines.append(f"| `{key.name}` | {key.kind} | {default} | {key.meaning} |")
    for name, text in EXAMPLES.items():
        lines += ["", f"## The shortest file for {name}", "", "```toml", text.rstrip("\n"), "```"]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"
