"""Builds the files that the demo reads from the publishers' files, byte for byte the same on each machine."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from consilium_lab.errors import LabError

# By folder of MedQuAD: the institute. Its other folders have no answers.
MEDQUAD_FOLDERS = {
    "1_CancerGov_QA": "NCI", "2_GARD_QA": "GARD", "3_GHR_QA": "GHR", "4_MPlus_Health_Topics_QA": "MedlinePlus",
    "5_NIDDK_QA": "NIDDK", "6_NINDS_QA": "NINDS", "7_SeniorHealth_QA": "SeniorHealth", "8_NHLBI_QA_XML": "NHLBI",
    "9_CDC_QA": "CDC",
}  # fmt: skip
MEDQUAD_TYPES = (
    "causes", "exams and tests", "information", "inheritance", "outlook", "prevention", "susceptibility", "symptoms",
    "treatment",
)  # fmt: skip
MEDQUAD_COLUMNS = ("institute", "docid", "qid", "focus", "qtype", "text", "split")
LONGEST_ANSWER, SHORTEST_ANSWER = 600, 40  # characters
TEST_SHARE = 5  # one document in so many
LARGEST_DOCUMENT = 4 << 20  # bytes; the largest of MedQuAD has a tenth of it
DAMAGED = (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, OSError, EOFError, ValueError, KeyError)
ARRAYS = tuple(f"{split}_{kind}" for split in ("train", "val", "test") for kind in ("images", "labels"))
NORMAL, PNEUMONIA = 0, 1


def arrays_sha256(path: Path) -> str:
    """The SHA-256 of an .npz file's arrays, in order of their names. Raises LabError (DataUnreadable)."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                digest.update(name.encode())
                digest.update(archive.read(name))
    except DAMAGED as error:
        raise LabError("DataUnreadable", path=path) from error
    return digest.hexdigest()


def build_medquad(archive: Path, output: Path) -> None:
    """Writes the table of answers from GitHub's archive of MedQuAD. Raises LabError (DataUnreadable)."""
    text, known = io.StringIO(newline=""), set[str]()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(MEDQUAD_COLUMNS)
    try:
        for row in _answers(archive):
            if row[5] not in known:
                known.add(row[5])
                table.writerow(row)
    except DAMAGED as error:
        raise LabError("DataUnreadable", path=archive) from error
    output.write_text(text.getvalue(), encoding="utf-8", newline="")


def _answers(archive: Path) -> Iterator[tuple[str, ...]]:
    order = list(MEDQUAD_FOLDERS)
    with zipfile.ZipFile(archive) as files:
        paths = ((PurePosixPath(entry.filename), entry) for entry in files.infolist())
        documents = [
            (order.index(path.parent.name), path.name, entry)
            for path, entry in paths
            if path.suffix == ".xml" and path.parent.name in MEDQUAD_FOLDERS
        ]
        for index, _, entry in sorted(documents, key=lambda one: one[:2]):
            if entry.file_size > LARGEST_DOCUMENT:
                raise LabError("DataUnreadable", path=archive)
            yield from _answers_of(order[index], ElementTree.fromstring(files.read(entry)))


def _answers_of(folder: str, document: ElementTree.Element) -> Iterator[tuple[str, ...]]:
    number = document.get("id")  # one document has none, and counts as "None"
    digest = hashlib.sha256(f"{folder}/{number}".encode()).digest()
    split = "test" if int.from_bytes(digest, "big") % TEST_SHARE == 0 else "train"
    focus = _one_line(document.findtext("Focus"))
    for pair in document.iter("QAPair"):
        question = pair.find("Question")
        kind = "" if question is None else question.get("qtype", "")
        text = _one_line(pair.findtext("Answer"))
        if len(text) > LONGEST_ANSWER:
            text = text[:LONGEST_ANSWER].rsplit(" ", 1)[0]
        if question is not None and kind in MEDQUAD_TYPES and len(text) >= SHORTEST_ANSWER:
            yield MEDQUAD_FOLDERS[folder], number or "", question.get("qid", ""), focus, kind, text, split


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def build_pneumonia(normal: Path, rest: Path, output: Path) -> None:
    """Writes the images of both copies: of training the normal ones of `normal`, and all others of `rest`.

    Raises LabError (DataUnreadable).
    """
    first, second = _arrays(normal), _arrays(rest)
    images, labels = zip(_of_class(first, NORMAL), _of_class(second, PNEUMONIA), strict=True)
    # The legacy generator gives the same order with every version of numpy (NEP 19).
    order = np.random.RandomState(0).permutation(sum(map(len, labels)))
    arrays = {**second, "train_images": np.concatenate(images)[order], "train_labels": np.concatenate(labels)[order]}
    with output.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{name: arrays[name] for name in ARRAYS})


def _arrays(path: Path) -> dict[str, NDArray[np.uint8]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: np.asarray(arrays[name], dtype=np.uint8) for name in ARRAYS}
    except DAMAGED as error:
        raise LabError("DataUnreadable", path=path) from error


def _of_class(arrays: dict[str, NDArray[np.uint8]], label: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    kept = arrays["train_labels"].ravel() == label
    return arrays["train_images"][kept], arrays["train_labels"][kept]
