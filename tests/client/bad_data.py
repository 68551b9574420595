"""A ward's table, notes and pictures, ways to break them, and the case of a kind of bad data."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from consilium_chain.tasks.start_specs import SeedStart
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from PIL import Image
from task_files import NOTES, X_RAYS

SECRET = "Mustermann"  # of a patient
ROWS = 120

RANGES = {
    "age": (0, 120, 60, 15), "temp": (30, 45, 37, 0.7), "skin": (0, 150, 33, 2), "sbp": (40, 260, 130, 20),
    "dbp": (30, 200, 80, 12), "chol": (0, 650, 220, 50), "glucose": (0, 650, 100, 25), "height": (0, 250, 170, 10),
    "weight": (0, 400, 75, 15), "hb": (0, 200, 14, 2), "lactate": (0, 20, 2, 1),
}  # fmt: skip
MODEL = '[model]\nname = "logistic"\n'
TABLE_FILE = (
    b'name = "a ward"\n[data]\nlabel = "ill"\nclasses = ["no", "yes"]\nfeatures = [\n'
    + "".join(
        f'{{ name = "{name}", min = {low}, max = {high}, mean = {mean}, deviation = {deviation} }},\n'
        for name, (low, high, mean, deviation) in RANGES.items()
    ).encode()
    + b'{ kind = "category", name = "sex", values = ["female", "male"] },\n'
    + b'{ kind = "category", name = "pain", values = [1, 2, 3] },\n]\n'
    + MODEL.encode()
)
TABLE = parse_task_spec(TABLE_FILE)
TEXTS, IMAGES = parse_task_spec(NOTES.encode()), parse_task_spec(X_RAYS.encode())
TEXTS_OF_RARE = TEXTS.model_copy(update={"start": SeedStart(prevalence=[0.9, 0.1])})

RARE = TABLE.model_copy(update={"start": SeedStart(prevalence=[0.9, 0.1])})
IMAGES_OF_RARE = IMAGES.model_copy(update={"start": SeedStart(prevalence=[0.9, 0.1])})


def asking(question: str, metric: str = "log_loss") -> TaskSpec:
    """The ward's columns with another question."""
    head, _, rest = TABLE_FILE.partition(b'label = "ill"\nclasses = ["no", "yes"]\n')
    judging = f'[judging]\nmetric = "{metric}"\n'
    return parse_task_spec(head + f"question = {{ {question} }}\n".encode() + rest + judging.encode())


STAY = asking('kind = "regression", label = "stay", min = 0, max = 60, mean = 20, deviation = 12', "r2")
DEATH = asking('kind = "survival", time = "days", event = "died", bounds = [30, 60, 90]')
BOTH = asking('kind = "multilabel", labels = ["cough", "fever"]')
Columns = dict[str, list[str]]


def good() -> Columns:
    """A ward's 120 patients, of whom nothing is wrong."""
    random = np.random.default_rng(11)
    columns = {
        name: [f"{value:.3f}" for value in np.clip(random.normal(mean, deviation * 0.8, ROWS), low + 0.1, high)]
        for name, (low, high, mean, deviation) in RANGES.items()
    }
    columns["sex"] = list(random.choice(["female", "male"], ROWS))
    columns["pain"] = list(random.choice(["1", "2", "3"], ROWS))
    columns["ill"] = [str(number) for number in random.permutation([0, 1] * (ROWS // 2))]
    return columns


GOOD = good()


def written(columns: Columns, delimiter: str = ",") -> bytes:
    lines = [delimiter.join(columns), *map(delimiter.join, zip(*columns.values(), strict=True))]
    return ("\n".join(lines) + "\n").encode()


# --- Ways to break it ------------------------------------------------------------------------------------------------


def cell(column: str, text: str) -> bytes:
    """In the fifth row, which is line 6."""
    return written(GOOD | {column: [*GOOD[column][:4], text, *GOOD[column][5:]]})


def numbers(column: str, change: Callable[[float], float], rows: Sequence[int] = range(ROWS)) -> bytes:
    values = [f"{change(float(text)):.3f}" if at in rows else text for at, text in enumerate(GOOD[column])]
    return written(GOOD | {column: values})


def by_label(column: str, no: str, yes: str, mistakes: int = 0) -> bytes:
    values = [yes if label == "1" else no for label in GOOD["ill"]]
    return written(GOOD | {column: [no] * mistakes + values[mistakes:]})


def line(number: int, text: str) -> bytes:
    lines = written(GOOD).decode().splitlines()
    lines[number - 1] = text
    return ("\n".join(lines) + "\n").encode()


def with_rows(*rows: Sequence[str]) -> bytes:
    return written(GOOD) + "".join(",".join(row) + "\n" for row in rows).encode()


def row(at: int, label: str | None = None) -> list[str]:
    cells = [column[at] for column in GOOD.values()]
    return cells if label is None else [*cells[:-1], label]


def other(label: str) -> str:
    return "0" if label == "1" else "1"


def parquet(columns: dict[str, Any]) -> bytes:
    pyarrow.parquet.write_table(pyarrow.table(columns), stream := io.BytesIO())
    return stream.getvalue()


def typed() -> dict[str, Any]:
    texts = {"sex"}
    return {name: values if name in texts else list(map(float, values)) for name, values in GOOD.items()}


def drawn(seed: int, height: int = 8, width: int = 10, low: int = 60) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(low, 256, (height, width), dtype=np.uint8)


def png(pixels: Any, kind: str = "PNG", **options: Any) -> bytes:
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(stream := io.BytesIO(), kind, **options)
    return stream.getvalue()


def npz(**arrays: Any) -> bytes:
    np.savez(stream := io.BytesIO(), allow_pickle=True, **arrays)
    return stream.getvalue()


Files = dict[str, bytes]


def notes(**more: str) -> Files:
    """A folder of ten texts; by name, others in the class ill."""
    plain = {
        f"{('healthy', 'ill')[at % 2]}/{at}.txt": f"The patient number {at} was seen on the ward.".encode()
        for at in range(10)
    }
    return plain | {f"ill/{name}.txt": text.encode() for name, text in more.items()}


def pictures(**more: bytes) -> Files:
    plain = {f"{('normal', 'ill')[at % 2]}/{at}.png": png(drawn(at)) for at in range(10)}
    return plain | {f"ill/{name}.png": content for name, content in more.items()}


# --- The cases -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bad:
    """`says`: the error's name, or the concern's key; `at`: what the message names beside the file; `column`: of the
    concern. `asks`: the node joins only with an answer. `readable`: the file was read to its end.
    """

    content: bytes | Files
    says: str
    at: str = ""
    spec: TaskSpec = field(default=TABLE, repr=False)
    mapping: str = ""
    column: str | None = None
    asks: bool | None = None
    voter: bool = False

    @property
    def readable(self) -> bool:
        return self.asks is not None or self.says in ("ColumnOutOfRange", "ColumnAllMissing", "OneClassOnly")


def asks(content: bytes | Files, concern: str, column: str | None = None, **more: Any) -> Bad:
    return Bad(content, concern, column=column, asks=True, **more)


def told(content: bytes | Files, concern: str, column: str | None = None, **more: Any) -> Bad:
    return Bad(content, concern, column=column, asks=False, **more)
