"""A folder of labelled files: it has a folder for each class, or a labels.csv (header `file,label`, or `file` and the
columns of a question's answer).

Names are compared and sorted in Unicode's composed form, because file systems keep different forms. So the order is the
same everywhere. Names that begin with a dot are ignored: operating systems create such files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from consilium_chain.tasks.data_schemas import DataSchema

from consilium_client.data.answers import answers_of
from consilium_client.data.examples import Labels, Source
from consilium_client.data.mapping import FileFormat
from consilium_client.data.table.cells import DEFAULT, composed
from consilium_client.data.table.columns import positions
from consilium_client.data.table.csv_rows import CsvRows
from consilium_client.errors import DataError, FolderError

LIST = "labels.csv"


@dataclass(frozen=True)
class LabelledFile:
    """`name`: within the folder, parts separated by /, NFC. `answer`: a number for each column of the question."""

    path: Path
    name: str
    answer: tuple[float, ...]


@dataclass(frozen=True)
class Listing:
    """A folder's examples by name. `left_aside`: the number of files that its list does not name."""

    files: tuple[LabelledFile, ...]
    left_aside: int = 0

    def labels(self, schema: DataSchema) -> Labels:
        """As `answers` makes them."""
        columns = np.array([file.answer for file in self.files]).T
        return answers_of(schema).labels(dict(zip(schema.asked.columns, columns, strict=True)))


def _no_other(path: Path) -> bool:
    return False


def labelled_files(
    folder: Path, schema: DataSchema, endings: Sequence[str], at_most: int,
    told: Callable[[Path], bool] = _no_other, nested: bool = False,
) -> Listing:  # fmt: skip
    """The files with these endings (".png", in any case). `told`: tells a file by its content, if not by its ending.
    `nested`: class folders may have folders within.

    Raises FolderError, DataFileEmpty, TooManyRows, the errors of CSV files and of answers, LabelUnknown; and OSError.
    """
    if (folder / LIST).exists():
        require_inside(folder, LIST, folder / LIST)
        found = _listed(folder, schema)
    elif schema.classes:
        found = _by_class(folder, _numbers(schema), nested)
    else:
        why = f"without classes it must list each file with its answer (file,{','.join(schema.asked.columns)})"
        raise DataError("DataFileMissing", path=folder / LIST, why=why)
    if not found.files:
        raise DataError("DataFileEmpty", path=folder)
    if len(found.files) > at_most:
        raise DataError("TooManyRows", rows=len(found.files), at_most=at_most)
    for file in found.files:
        require_example(folder, file.name, file.path, endings, told)
    return found


def unlabelled_files(
    folder: Path, endings: Sequence[str], at_most: int, told: Callable[[Path], bool] = _no_other
) -> list[tuple[str, Path]]:
    """All files with these endings in a folder and in the folders within, by name. A labels.csv is left aside.

    `told`: as above. Raises FolderError, DataFileEmpty, TooManyRows; and OSError.
    """
    files = {name: path for name, path in _within(folder, folder).items() if name != LIST and not path.is_dir()}
    if not files:
        raise DataError("DataFileEmpty", path=folder)
    if len(files) > at_most:
        raise DataError("TooManyRows", rows=len(files), at_most=at_most)
    for name, path in files.items():
        require_example(folder, name, path, endings, told)
    return sorted(files.items())


def require_example(
    folder: Path, name: str, path: Path, endings: Sequence[str], told: Callable[[Path], bool] = _no_other
) -> None:
    """Raises LeadsOutside, FileUnexpected."""
    require_inside(folder, name, path)
    if not (path.is_file() and (name.lower().endswith(tuple(endings)) or told(path))):  # reading a pipe would never end
        raise FolderError("FileUnexpected", file=folder / name)


def _within(subfolder: Path, folder: Path, under: str = "") -> dict[str, Path]:
    """All entries of a part of `folder`, and of the folders within it, by name. Raises FolderError (NamesAlike)."""
    paths: dict[str, Path] = {}
    for part, _, _ in os.walk(subfolder, onerror=_raise):  # it does not follow links
        inner = Path(part).relative_to(subfolder).as_posix()
        paths |= named_paths(Path(part), folder, under if inner == "." else composed(f"{under}{inner}/"))
    return paths


def _by_class(folder: Path, numbers: dict[str, int], nested: bool) -> Listing:
    files = []
    for name, inside in named_paths(folder, folder).items():
        if not inside.is_dir():
            raise FolderError("FileUnexpected", file=folder / name)
        if name not in numbers:
            raise FolderError("ClassFolderUnknown", file=folder / name)
        require_inside(folder, name, inside)
        entries = named_paths(inside, folder, f"{name}/")
        if nested:  # a link to a folder is not followed, and refused as an example
            within = _within(inside, folder, f"{name}/")
            entries = {name: path for name, path in within.items() if path.is_symlink() or not path.is_dir()}
        files += [LabelledFile(path, entry, (float(numbers[name]),)) for entry, path in entries.items()]
    return Listing(tuple(sorted(files, key=lambda file: file.name)))


def _numbers(schema: DataSchema) -> dict[str, int]:
    return {composed(name): number for number, name in enumerate(schema.classes)}


def _listed(folder: Path, schema: DataSchema) -> Listing:
    paths = {name: path for name, path in _within(folder, folder).items() if not path.is_dir()}
    files: dict[str, LabelledFile] = {}
    with (folder / LIST).open("rb") as file:
        rows = CsvRows(file, folder / LIST, FileFormat())
        answering = ["label"] if schema.classes else schema.asked.columns
        at = positions(rows, folder / LIST, {name: name for name in ("file", *answering)}, strict=True)
        source, numbers, answers = Source(folder / LIST, "CSV"), _numbers(schema), answers_of(schema)
        for line, (written, *cells) in rows.cells(list(at.values())):
            where = f"{folder / written} ({LIST}, line {line})"
            name = composed(PurePosixPath(written).as_posix())
            if name.startswith("/") or ".." in PurePosixPath(name).parts:
                raise FolderError("LeadsOutside", file=where)
            if name not in paths or name == LIST:
                raise FolderError("ListedFileMissing", file=where)
            if name in files:
                raise FolderError("ListedTwice", file=where)
            answer = list[float]()
            for column, cell in zip(answering, cells, strict=True):
                found: float | str
                if schema.classes:
                    found = float(numbers[composed(cell)]) if composed(cell) in numbers else "LabelUnknown"
                else:
                    found = answers.accepted(column, cell, DEFAULT.number(cell))
                if isinstance(found, str):
                    raise source.cell_error(found, line, column)
                answer.append(found)
            files[name] = LabelledFile(paths[name], name, tuple(answer))
    return Listing(tuple(files[name] for name in sorted(files)), left_aside=len(paths) - len(files) - 1)


def named_paths(subfolder: Path, folder: Path, under: str = "") -> dict[str, Path]:
    """The paths in one part of `folder`, by their names there. Raises FolderError (NamesAlike)."""
    found: dict[str, Path] = {}
    for path in sorted(subfolder.iterdir()):
        if path.name.startswith("."):
            continue
        name = under + composed(path.name)
        if name in found:
            raise FolderError("NamesAlike", file=folder / name)
        found[name] = path
    return found


def require_inside(folder: Path, name: str, path: Path) -> None:
    """Follows links. Raises LeadsOutside."""
    root = os.path.realpath(folder)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise FolderError("LeadsOutside", file=folder / name)


def _raise(error: OSError) -> None:
    raise error
