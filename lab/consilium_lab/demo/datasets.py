"""The demo's data: real rows, texts and images, split among hospitals and voters, and written as nodes read them.

Not a part of the platform: a real hospital brings its own file. Frames have the columns of the schema and its label, in
the source's form (heart keeps each hospital's number format, and its gaps).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
import pandas as pd
import tomli_w
from consilium_chain.tasks.data_schemas import CorpusSchema, DataSchema, TableSchema, TextSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.image_schemas import ImageSchema
from consilium_client.data.examples import Examples
from consilium_client.data.kinds import read_examples
from numpy.typing import NDArray

from consilium_lab.demo.options import MEDQUAD_FILE, X_RAYS_FILE, DataSet
from consilium_lab.errors import LabError
from consilium_lab.own_table import OwnTable, in_turn

Frame: TypeAlias = pd.DataFrame


@dataclass(frozen=True)
class DemoData:
    """A split data set: a frame of training rows per hospital, of held-out rows per voter. No row is in two frames."""

    name: str
    description: str
    schema: DataSchema
    hospital_names: list[str]
    hospitals: list[Frame]
    held_out: list[Frame]


def write_rows(frame: Frame, schema: DataSchema, path: Path) -> Path:
    """Writes the file that a node reads: .npz for images, otherwise .csv. `path`: without a suffix."""
    if isinstance(schema, ImageSchema):
        file = path.with_suffix(".npz")
        np.savez(file, images=np.stack(frame["image"].to_list()), labels=frame[schema.label].to_numpy(np.int64))
    else:
        file = path.with_suffix(".csv")
        write_csv(frame, file)
    return file


def write_csv(frame: Frame, path: Path) -> None:
    """UTF-8 with a header line. A missing value is an empty cell, or `?` if the source has that."""
    frame.to_csv(path, index=False, encoding="utf-8", lineterminator="\n")


def write_mapping(frame: Frame, path: Path) -> Path | None:
    """Writes a mapping that names the columns without any value, as a node asks for; None if all have one."""
    empty = [name for name in frame.columns if frame[name].isna().all()]
    if not empty:
        return None
    path.write_text(tomli_w.dumps({"columns": {name: {"absent": True} for name in empty}}), encoding="utf-8")
    return path


def examples_of(frames: Sequence[Frame], schema: DataSchema) -> list[Examples]:
    """Examples of each frame, through the files that nodes would read."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        return [
            read_examples(write_rows(frame, schema, path), schema, write_mapping(frame, path.with_suffix(".toml")))
            for frame in frames
        ]


def of_table(own: OwnTable, description: str) -> DemoData:
    """One's own table, in the task's units, codes and names."""
    frame = pd.DataFrame({**own.table.values, own.schema.label: own.table.labels})
    for feature in own.schema.features:
        if isinstance(feature, CategoryFeature) and feature.is_named:
            frame[feature.name] = frame[feature.name].map(dict(zip(feature.codes, feature.names, strict=True)))
    return DemoData(
        name="table",
        description=description,
        schema=own.schema,
        hospital_names=list(own.dealt.hospitals),
        hospitals=[frame.iloc[rows].reset_index(drop=True) for rows in own.dealt.hospitals.values()],
        # In the table's order, as the simulation has them.
        held_out=[frame.iloc[np.sort(rows)].reset_index(drop=True) for rows in own.dealt.voters],
    )


# --- Wisconsin breast cancer: one site, so the hospitals are made by a split -----------------------------------------

WDBC_HELD_OUT = 0.3
WDBC_SMALLEST_SHARE = 0.25  # the last hospital's share, relative to the first one's

# Upper ends of the public ranges, for mean, error and worst of each measurement. All start at 0. They are round figures
# for such an instrument, with room.
WDBC_RANGES = {
    "radius": (40.0, 4.0, 50.0), "texture": (50.0, 6.0, 60.0), "perimeter": (250.0, 30.0, 300.0),
    "area": (4000.0, 600.0, 5000.0), "smoothness": (0.2, 0.04, 0.3), "compactness": (0.5, 0.2, 1.5),
    "concavity": (0.5, 0.5, 1.5), "concave_points": (0.25, 0.08, 0.4), "symmetry": (0.4, 0.1, 0.8),
    "fractal_dimension": (0.12, 0.04, 0.25),
}  # fmt: skip
# The usual value in such a range, and its deviation, as shares of the range. They are not computed from these rows.
WDBC_TYPICAL = {"mean": (0.33, 0.12), "error": (0.12, 0.08), "worst": (0.33, 0.12)}


def deal_wdbc(hospitals: int, voters: int, seed: int) -> DemoData:
    """Wisconsin Diagnostic Breast Cancer (569 rows, 30 measurements of cell nuclei), from scikit-learn's copy.

    30 % is held out, stratified, and split evenly among the voters. The rest is split unevenly among the hospitals: the
    first gets four times as much as the last. All get both classes. Raises LabError (DemoTooManyParties).
    """
    from sklearn.datasets import load_breast_cancer  # takes a second to import

    source = load_breast_cancer()
    features = [
        NumericFeature(
            name=f"{kind}_{name}", min=0.0, max=uppers[index], mean=mean * uppers[index],
            deviation=deviation * uppers[index],
        )
        for index, (kind, (mean, deviation)) in enumerate(WDBC_TYPICAL.items())
        for name, uppers in WDBC_RANGES.items()
    ]  # fmt: skip
    frame = pd.DataFrame(source.data, columns=[one.name for one in features])  # same order as scikit-learn's
    frame["malignant"] = 1 - source.target  # scikit-learn calls benign 1
    schema = TableSchema(features=[*features], label="malignant", classes=["benign", "malignant"])
    generator = np.random.default_rng(seed)
    labels = frame["malignant"].to_numpy()
    held_out, training = _hold_out(labels, WDBC_HELD_OUT, generator)
    shares = np.linspace(1.0, WDBC_SMALLEST_SHARE, max(hospitals, 0))
    training_parts = _deal_by_shares(training, labels, shares, "hospitals")
    return DemoData(
        name="wdbc",
        description="Wisconsin Diagnostic Breast Cancer: is a breast mass malignant, by its cells' nuclei",
        schema=schema,
        hospital_names=[f"hospital-{i + 1}" for i in range(hospitals)],
        hospitals=[frame.iloc[part].reset_index(drop=True) for part in training_parts],
        held_out=_deal_to_voters(frame, held_out, labels, voters),
    )


# --- UCI heart disease: four real hospitals -------------------------------------------------------------------------

HEART_HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
HEART_COLUMNS = (
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca", "thal",
    "num",
)  # fmt: skip
HEART_UNUSED = ("slope", "ca", "thal", "num")  # the first three are nearly all missing outside Cleveland
HEART_HELD_OUT = 1 / 3
HEART_MOST_NUM = 4
# Means and deviations are round figures for adults who are examined for chest pain. Yes and no are equally likely.
HEART_SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=20, max=90, mean=55, deviation=10),
        NumericFeature(name="sex", min=0, max=1, mean=0.5, deviation=0.5),
        CategoryFeature(kind="category", name="cp", values=[1, 2, 3, 4]),
        NumericFeature(name="trestbps", min=60, max=220, mean=130, deviation=18),
        NumericFeature(name="chol", min=0, max=650, mean=220, deviation=50),
        NumericFeature(name="fbs", min=0, max=1, mean=0.5, deviation=0.5),
        CategoryFeature(kind="category", name="restecg", values=[0, 1, 2]),
        NumericFeature(name="thalach", min=50, max=220, mean=140, deviation=25),
        NumericFeature(name="exang", min=0, max=1, mean=0.5, deviation=0.5),
        NumericFeature(name="oldpeak", min=-3, max=7, mean=1, deviation=1),
    ],
    label="disease",
    classes=["healthy", "disease"],
)


def deal_heart(data_dir: Path, voters: int, seed: int, *, complete_rows_only: bool = False) -> DemoData:
    """UCI Heart Disease as four hospitals: Cleveland, Budapest, Switzerland, Long Beach.

    `data_dir` has the four `processed.*.data` files. A third of each hospital's rows is held out, stratified, and split
    so that each voter has rows of several hospitals and both classes. Raises LabError.
    """
    if not data_dir.is_dir():
        raise _missing(DataSet.HEART, data_dir, "this directory does not exist")
    generator = np.random.default_rng(seed)
    hospitals, held_out = [], []
    for name in HEART_HOSPITALS:
        frame = _read_heart(data_dir / f"processed.{name}.data")
        if complete_rows_only:
            frame = frame[~frame.eq("?").any(axis=1)].reset_index(drop=True)
        out, stay = _hold_out(_labels(frame, "disease"), HEART_HELD_OUT, generator)
        hospitals.append(frame.iloc[stay].reset_index(drop=True))
        held_out.append(frame.iloc[out])
    everyone = pd.concat(held_out, ignore_index=True)
    labels = _labels(everyone, "disease")
    return DemoData(
        name="heart",
        description="UCI Heart Disease, four hospitals of 1988: is a coronary artery narrowed by more than half",
        schema=HEART_SCHEMA,
        hospital_names=list(HEART_HOSPITALS),
        hospitals=hospitals,
        held_out=_deal_to_voters(everyone, np.arange(len(everyone)), labels, voters),
    )


def _read_heart(path: Path) -> Frame:
    """A raw file as a frame of text: features as in the file, `disease` 0 or 1."""
    try:
        text = path.read_text(encoding="ascii")
    except OSError as error:
        raise _missing(DataSet.HEART, path, error.strerror or "cannot be read") from error
    except UnicodeDecodeError as error:
        raise _malformed(path, 1, "the file is not plain ASCII text") from error
    rows = []
    for line, row in enumerate(csv.reader(text.splitlines()), start=1):
        if not row:
            continue
        if len(row) != len(HEART_COLUMNS):
            raise _malformed(path, line, f"{len(row)} columns instead of {len(HEART_COLUMNS)}")
        cells = dict(zip(HEART_COLUMNS, (cell.strip() for cell in row), strict=True))
        for column, cell in cells.items():
            if not _is_number(cell) and (cell != "?" or column == "num"):
                raise _malformed(path, line, f"column {column} has neither a number nor a question mark")
        if not 0 <= float(cells["num"]) <= HEART_MOST_NUM:
            raise _malformed(path, line, f"column num is outside 0 to {HEART_MOST_NUM}")
        kept = {column: cell for column, cell in cells.items() if column not in HEART_UNUSED}
        rows.append({**kept, "disease": "1" if float(cells["num"]) > 0 else "0"})
    if not rows:
        raise _malformed(path, 1, "the file holds no rows")
    return pd.DataFrame(rows)


def _require_file(path: Path, data: DataSet) -> None:
    if not path.is_file():
        raise _missing(data, path, "this file does not exist")


def _missing(data: DataSet, path: Path, why: str) -> LabError:
    return LabError("DemoDataMissing", path=path, why=why, data=data, needs=data.needs)


def _malformed(path: Path, line: int, why: str) -> LabError:
    """`line` counts from 1. `why` must not repeat a cell."""
    return LabError("DemoDataMalformed", path=path, line=line, why=why)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# --- MedQuAD: the type of a question, from its answer. Institutes are the hospitals ----------------------------------

MEDQUAD_INSTITUTES = ("GARD", "GHR", "MedlinePlus", "NINDS", "NIDDK", "SeniorHealth", "NCI", "NHLBI", "CDC")
MEDQUAD_ROWS = 160  # of each institute, so that a round takes seconds on a laptop
MEDQUAD_HELD_OUT = 160


def deal_medquad(
    data_dir: Path,
    hospitals: int,
    voters: int,
    seed: int,
    rows: int | None = MEDQUAD_ROWS,
    held_out_rows: int | None = MEDQUAD_HELD_OUT,
) -> DemoData:
    """MedQuAD: answers of nine institutes of health to questions of nine types. The largest institutes come first.

    `data_dir` has medquad_qtype9.csv, with its own split into training and test. `rows`: drawn from each institute.
    `held_out_rows`: drawn from all test rows. None takes all. Raises LabError.
    """
    path = data_dir / MEDQUAD_FILE
    _require_file(path, DataSet.MEDQUAD)
    if hospitals > len(MEDQUAD_INSTITUTES):
        raise LabError("DemoTooManyParties", who="hospitals", asked=hospitals, at_most=len(MEDQUAD_INSTITUTES))
    frame = pd.read_csv(path, encoding="utf-8")
    if missing := {"institute", "qtype", "text", "split"} - set(frame.columns):
        raise _malformed(path, 1, f"the column {sorted(missing)[0]} is missing")
    generator, named = np.random.default_rng(seed), list(MEDQUAD_INSTITUTES[:hospitals])
    classes = sorted(frame["qtype"].unique())
    test = frame[(frame["split"] == "test") & frame["institute"].isin(named)]

    def some(part: Frame, count: int | None) -> Frame:
        drawn = generator.permutation(len(part))[:count]
        return part.iloc[drawn][["text", "qtype"]].reset_index(drop=True)

    held_out = some(test, held_out_rows)
    labels = np.array([classes.index(name) for name in held_out["qtype"]], dtype=np.int64)
    training = frame[frame["split"] == "train"]
    return DemoData(
        name="medquad",
        description="MedQuAD, institutes of health as hospitals: which of nine questions does a text answer",
        schema=TextSchema(kind="text", text="text", label="qtype", classes=classes),
        hospital_names=named,
        hospitals=[some(training[training["institute"] == name], rows) for name in named],
        held_out=_deal_to_voters(held_out, np.arange(len(held_out)), labels, voters),
    )


def without_labels(labelled: DemoData) -> DemoData:
    """The texts of `deal_medquad` alone, each once in a frame, for a language model."""

    def alone(frame: Frame) -> Frame:
        return frame[["text"]].drop_duplicates(ignore_index=True)

    return replace(
        labelled, name="medquad-texts",
        description="MedQuAD, institutes of health as hospitals: which token of a text comes next",
        schema=CorpusSchema(kind="corpus"), hospitals=[alone(one) for one in labelled.hospitals],
        held_out=[alone(one) for one in labelled.held_out],
    )  # fmt: skip


# --- PneumoniaMNIST: one hospital's chest X-rays, split ---------------------------------------------------------------

PNEUMONIA_FILE = X_RAYS_FILE
PNEUMONIA_ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")


def deal_pneumonia(data_dir: Path, hospitals: int, voters: int, seed: int) -> DemoData:
    """PneumoniaMNIST: children's chest X-rays of 28 × 28 pixels. Hospitals get uneven shares, as in `deal_wdbc`; voters
    get its test images. Raises LabError.
    """
    path = data_dir / PNEUMONIA_FILE
    _require_file(path, DataSet.PNEUMONIA)
    with np.load(path, allow_pickle=False) as arrays:
        if missing := [name for name in PNEUMONIA_ARRAYS if name not in arrays]:
            raise _malformed(path, 1, f"the array {missing[0]} is missing")
        images, labels, test_images, test_labels = (arrays[name] for name in PNEUMONIA_ARRAYS)
    frame, test = (
        pd.DataFrame({"image": list(pixels), "label": given.ravel().astype(np.int64)})
        for pixels, given in ((images, labels), (test_images, test_labels))
    )
    generator = np.random.default_rng(seed)
    shares = np.linspace(1.0, WDBC_SMALLEST_SHARE, max(hospitals, 0))
    parts = _deal_by_shares(generator.permutation(len(frame)), frame["label"].to_numpy(), shares, "hospitals")
    return DemoData(
        name="pneumonia",
        description="PneumoniaMNIST, chest X-rays of children: is there a pneumonia",
        schema=ImageSchema(kind="images", height=28, width=28, classes=["normal", "pneumonia"]),
        hospital_names=[f"hospital-{i + 1}" for i in range(hospitals)],
        hospitals=[frame.iloc[part].reset_index(drop=True) for part in parts],
        held_out=_deal_to_voters(test, generator.permutation(len(test)), test["label"].to_numpy(), voters),
    )


# --- splits --------------------------------------------------------------------------------------------------------


def _labels(frame: Frame, label: str) -> NDArray[np.int64]:
    return np.asarray(frame[label].astype(int), dtype=np.int64)


def _hold_out(
    labels: NDArray[np.int64], share: float, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers (held out, kept) in random order. Each class is split in the same share."""
    out, stay = [], []
    for label in (0, 1):
        rows = generator.permutation(np.flatnonzero(labels == label))
        cut = round(share * len(rows))
        out.append(rows[:cut])
        stay.append(rows[cut:])
    return np.concatenate(out), generator.permutation(np.concatenate(stay))


def _deal_by_shares(
    rows: NDArray[np.int64], labels: NDArray[np.int64], shares: NDArray[np.float64], who: str
) -> list[NDArray[np.int64]]:
    """Splits rows in proportion to `shares`, class by class. Each part has at least one row of each class."""
    of_class = [rows[labels[rows] == label] for label in (0, 1)]
    at_most = min(len(part) for part in of_class)
    if not 1 <= len(shares) <= at_most:
        raise LabError("DemoTooManyParties", who=who, asked=len(shares), at_most=at_most)
    dealt: list[list[NDArray[np.int64]]] = [[] for _ in shares]
    for part in of_class:
        spare = len(part) - len(shares)
        ends = np.rint(np.cumsum(shares) / shares.sum() * spare).astype(int) + np.arange(1, len(shares) + 1)
        for pile, piece in zip(dealt, np.split(part, ends[:-1]), strict=True):
            pile.append(piece)
    return [np.concatenate(pile) for pile in dealt]


def _deal_to_voters(frame: Frame, rows: NDArray[np.int64], labels: NDArray[np.int64], voters: int) -> list[Frame]:
    """Row by row in turn, class by class, so that every voter gets rows of two classes and of each hospital."""
    return [frame.iloc[part].reset_index(drop=True) for part in in_turn(rows, labels, voters)]
