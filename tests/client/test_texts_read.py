"""Texts by every door: what is in is in unchanged, whichever door it took, and what is wrong is refused by name."""

from __future__ import annotations

import io
import os
import unicodedata
from collections.abc import Callable
from collections.abc import Mapping as Files
from pathlib import Path
from typing import Literal

import pyarrow
import pyarrow.parquet
import pytest
from consilium_chain.tasks.data_schemas import TextSchema
from consilium_client.data.examples import MOST_ROWS
from consilium_client.data.kinds import read_examples
from consilium_client.data.mapping import Mapping, parse_mapping
from consilium_client.data.table.csv_rows import MOST_OF_CELL
from consilium_client.data.text.reader import MOST_OF_TEXT, clean, read_raw_texts
from consilium_client.errors import DataError, ExampleError
from examples_read import read_texts
from hypothesis import given
from hypothesis import strategies as st
from raised_faults import raises_fault

SCHEMA = TextSchema(kind="text", text="note", label="found", classes=["healthy", "ill"])
SECRET = "Mustermann"
MEDQUAD = Path(__file__).resolve().parents[3] / "shared" / "data" / "medquad" / "medquad_qtype9.csv"


def mapped(text: str) -> Mapping:
    return parse_mapping(text.encode(), SCHEMA)


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def parquet(**columns: object) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"note": ["a note"], "found": ["ill"]} | columns), stream)
    return stream.getvalue()


def write_folder(folder: Path, files: Files[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


# What is read


written = st.text(st.characters(codec="utf-8", exclude_characters="\0")).filter(lambda text: clean(text) != "")


@given(st.lists(st.tuples(written, st.sampled_from(SCHEMA.classes)), min_size=1, max_size=8))
def test_all_doors_lead_to_the_same_texts(
    tmp_path_factory: pytest.TempPathFactory, examples: list[tuple[str, str]]
) -> None:
    place = tmp_path_factory.mktemp("texts")
    csv, columns, folder = place / "t.csv", place / "t.parquet", place / "files"
    lines = [f"{quoted(text)},{name}\r\n" for text, name in examples]
    csv.write_bytes(("note,found\r\n" + "".join(lines)).encode())
    columns.write_bytes(parquet(note=[text for text, _ in examples], found=[name for _, name in examples]))
    names = [f"{at:03}.txt" for at in range(len(examples))]
    listed = "file,label\n" + "".join(f"{file},{name}\n" for file, (_, name) in zip(names, examples, strict=True))
    write_folder(folder, {"labels.csv": listed} | {f: text for f, (text, _) in zip(names, examples, strict=True)})
    expected = tuple(clean(text) for text, _ in examples)
    for path in (csv, columns, folder):
        found = read_texts(path, SCHEMA)
        assert found.texts == expected
        assert [SCHEMA.classes[label] for label in found.labels] == [name for _, name in examples]


def test_cells_of_several_lines_and_other_forms_of_one_text_are_one_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    decomposed = unicodedata.normalize("NFD", 'Röntgen: ö\n\nZweiter Absatz, mit "Zitat"')
    composed = unicodedata.normalize("NFC", decomposed)
    assert decomposed != composed
    rows = [decomposed, composed, composed.replace("\n", "\r\n"), f"  {composed}\t\n", composed.replace("\n", "\r")]
    path.write_bytes(b"found,note\n" + "".join(f"ill,{quoted(row)}\n" for row in rows).encode())
    assert read_texts(path, SCHEMA).texts == (composed,) * len(rows)


def test_compatible_characters_stay_apart(tmp_path: Path) -> None:
    """Texts that only look alike may differ in meaning: 10² is not 102."""
    path = tmp_path / "t.csv"
    path.write_text("note,found\n10²,ill\n102,ill\nﬁne,ill\nfine,ill\n")
    assert read_texts(path, SCHEMA).texts == ("10²", "102", "ﬁne", "fine")


def test_mapping_leads_to_texts_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("Nr;Befund;Diagnose\n1;Kein Ödem;o.B.\n2;Ödem;krank\n3;Ödem;path.\n".encode("cp1252"))
    mapping = mapped(
        "[file]\ndelimiter = ';'\nencoding = 'cp1252'\n[columns]\nnote = 'Befund'\n"
        "found = { column = 'Diagnose', codes = { 'o.B.' = 'healthy', 'krank' = 'ill', 'path.' = 'ill' } }\n"
    )
    raw = read_raw_texts(path, SCHEMA, mapping)
    assert raw.texts.texts == ("Kein Ödem", "Ödem", "Ödem")
    assert raw.texts.labels.tolist() == [0, 1, 1]
    assert (raw.source.kind, raw.source.left_aside, raw.source.left_aside_names) == ("CSV", 1, ("Nr",))
    by_position = mapped("[file]\nheader = false\n[columns]\nnote = 2\nfound = 1\n")
    path.write_text("ill,a note\nhealthy,another\n")
    assert read_texts(path, SCHEMA, by_position).labels.tolist() == [1, 0]


def test_names_of_classes_that_are_numbers_are_found_in_parquet(tmp_path: Path) -> None:
    schema = TextSchema(kind="text", text="note", label="found", classes=["1", "2.5", "1234567890"])
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(note=["a", "b", "c"], found=[1234567890, 1, 2.5]))
    assert read_texts(path, schema).labels.tolist() == [2, 0, 1]


def test_folder_is_read_in_the_order_of_names_whatever_made_it(tmp_path: Path) -> None:
    schema = TextSchema(kind="text", label="found", classes=["zz", "Röntgen"])
    names = ["b", "ä", "B", "a10", "a2", "Z"]
    orders = []
    forms: list[tuple[Literal["NFC", "NFD"], list[str]]] = [("NFC", names), ("NFD", names[::-1])]
    for at, (form, order) in enumerate(forms):
        files = {
            unicodedata.normalize(form, f"{kind}/{n}.TXT"): f"{kind} {n}" for n in order for kind in schema.classes
        }
        folder = write_folder(tmp_path / str(at), {**files, ".DS_Store": b"\0", "zz/.hidden.exe": b"\0"})
        found = read_texts(folder, schema)
        orders.append((found.texts, found.labels.tolist()))
    assert orders[0] == orders[1]
    expected = sorted(f"Röntgen {n}" for n in names) + sorted(f"zz {n}" for n in names)
    assert list(orders[0][0]) == expected
    assert orders[0][1] == [1] * len(names) + [0] * len(names)


def test_listed_files_may_be_deeper_and_others_are_counted(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "f",
        {"labels.csv": "label,file\nill,deep/er/b.txt\nhealthy,./a.txt\n", "deep/er/b.txt": "b", "a.txt": "a",
         "c.txt": "c", "deep/notes.md": "#"},
    )  # fmt: skip
    raw = read_raw_texts(folder, SCHEMA)
    assert (raw.texts.texts, raw.texts.labels.tolist(), raw.source.left_aside) == (("a", "b"), [0, 1], 2)


def test_links_within_the_folder_are_followed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "f", {"ill/a.txt": "a", "healthy/b.txt": "b"})
    (folder / "ill" / "c.txt").symlink_to("../healthy/b.txt")
    (tmp_path / "linked").symlink_to(folder)  # whoever names the folder may call it what they like
    assert read_texts(tmp_path / "linked", SCHEMA).texts == ("b", "a", "b")


def test_mapping_of_a_home_is_not_looked_at_for_a_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "f", {"ill/a.txt": "a"})
    assert read_examples(folder, SCHEMA, tmp_path / "none.toml").rows == 1


# What is refused

HEAD = "note,found\n"
CODED = "[columns]\nfound = { column = 'dx', codes = { B = 'healthy', M = 'ill' } }\n"

TABLES: dict[str, tuple[str | bytes, str, str, str]] = {
    "no bytes": ("", "", "DataFileEmpty", ""),
    "header only": (HEAD, "", "DataFileEmpty", ""),
    "no header": (f"{SECRET},ill\n", "", "HeaderMissing", "line 1"),
    "column unexpected": (f"note,found,name\nx,ill,{SECRET}\n", "", "ColumnsWrong", "unexpected: name"),
    "column missing": ("note\nx\n", "", "ColumnsWrong", "missing: found"),
    "mapped column missing": (f"{HEAD}{SECRET},ill\n", CODED, "ColumnsWrong", "missing: dx"),
    "latin-1": (f"{HEAD}x,ill\n{SECRET}\xfc,ill\n".encode("latin-1"), "", "EncodingWrong", "line 3"),
    "utf-16": (f"{HEAD}{SECRET},ill\n".encode("utf-16"), "", "EncodingWrong", "UTF-16"),
    "zip": (b"PK\x03\x04" + SECRET.encode(), "", "FileKindWrong", "zip archive"),
    "zero byte": (f"{HEAD}{SECRET}\0,ill\n", "", "NullByte", "line 2"),
    "zero byte in parquet": (parquet(note=[f"{SECRET}\0"]), "", "NullByte", "line 1"),
    "open quote": (f'{HEAD}"{SECRET},ill\nx,ill\n', "", "QuoteNotClosed", "line 2"),
    "long": (f"{HEAD}{'x' * (MOST_OF_CELL + 1)},ill\n", "", "LineTooLong", "line 2"),
    "long over lines": (f'{HEAD}"{SECRET}' + "x\n" * MOST_OF_CELL + '",ill\n', "", "QuoteNotClosed", "line 2"),
    "long in parquet": (parquet(note=[SECRET * 20_000]), "", "TextTooLong", "row 1, column note"),
    "empty": (f"{HEAD}x,ill\n,ill\n", "", "TextEmpty", "line 3, column note"),
    "blank lines": (f'{HEAD}"\n \n",ill\n', "", "TextEmpty", "line 4, column note"),
    "empty, mapped": ("name,found\n,ill\n", "[columns]\nnote = 'name'", "TextEmpty", "column note (name in the file)"),
    "null": (parquet(note=pyarrow.array([None], "string")), "", "TextEmpty", "row 1, column note"),
    "number": (parquet(note=[5718.0]), "", "TextIsNumber", "row 1, column note"),
    "dates": (parquet(note=pyarrow.array([571], pyarrow.date32())), "", "ColumnTypeWrong", "column note"),
    "bytes": (parquet(note=pyarrow.array([SECRET.encode()], pyarrow.binary())), "", "ColumnTypeWrong", "binary"),
    "no utf-8 in parquet": (
        parquet(note=pyarrow.array([b"\xff" + SECRET.encode()], pyarrow.binary()).view(pyarrow.string())), "",
        "ParquetUnreadable", "damaged",
    ),
    "cut off": (parquet(note=[SECRET])[:-9], "", "ParquetUnreadable", "damaged"),
    "label unknown": (f"{HEAD}x,ill\nx,{SECRET}\n", "", "LabelUnknown", "line 3, column found"),
    "label in capitals": (f"{HEAD}x,ILL\n", "", "LabelUnknown", "line 2, column found"),
    "label's number": (f"{HEAD}x,1\n", "", "LabelUnknown", "line 2, column found"),
    "label empty": (f"{HEAD}x,\n", "", "LabelUnknown", "line 2, column found"),
    "label null": (parquet(found=pyarrow.array([None], "string")), "", "LabelUnknown", "row 1, column found"),
    "label's code unknown": (f"note,dx\nx,{SECRET}\n", CODED, "CodeUnknown", "line 2, column found (dx in the file)"),
    "too many": (HEAD + "x,ill\n" * (MOST_ROWS + 1), "", "TooManyRows", str(MOST_ROWS)),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_bad_table_of_texts_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, mapping, error, words = TABLES[case]
    path = write_folder(tmp_path, {"t": content}) / "t"
    with pytest.raises(DataError) as caught:
        read_texts(path, SCHEMA, mapped(mapping) if mapping else None)
    assert caught.value.name == error
    assert words in str(caught.value)
    nothing_leaks(caught.value)


def both_forms(folder: Path) -> None:
    for form in ("NFC", "NFD"):
        write_folder(folder, {f"ill/{unicodedata.normalize(form, 'ö')}.txt": "x"})


def linked(folder: Path, name: str, to: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder.parent / "secret.txt").write_text(SECRET)
    (folder / name).symlink_to(to)


def piped(folder: Path) -> None:
    (folder / "ill").mkdir()
    os.mkfifo(folder / "ill" / "a.txt")


def listed(*lines: str, **files: str) -> dict[str, str | bytes]:
    return {"labels.csv": "file,label\n" + "".join(f"{line}\n" for line in lines), **files}


FOLDERS: dict[str, tuple[dict[str, str | bytes] | Callable[[Path], None], str, str]] = {
    "nothing in it": ({}, "DataFileEmpty", "put files into the folder"),
    "no file of a class": (lambda folder: (folder / "ill").mkdir(), "DataFileEmpty", "put files into the folder"),
    "class unknown": ({"healthy/a.txt": "x", "healty/a.txt": "x"}, "ClassFolderUnknown", "f/healty"),
    "file beside": ({"ill/a.txt": "x", "notes.txt": "x"}, "FileUnexpected", "f/notes.txt"),
    "file of another kind": ({"ill/a.pdf": SECRET}, "FileUnexpected", "f/ill/a.pdf"),
    "folder in a class": ({"ill/more/a.txt": "x"}, "FileUnexpected", "f/ill/more"),
    "pipe": (piped, "FileUnexpected", "f/ill/a.txt"),
    "link out": (lambda folder: linked(folder, "ill/a.txt", "../../secret.txt"), "LeadsOutside", "f/ill/a.txt"),
    "link out of a class": (lambda folder: linked(folder, "ill", ".."), "LeadsOutside", "f/ill"),
    "list linked out": (lambda folder: linked(folder, "labels.csv", "../secret.txt"), "LeadsOutside", "labels.csv"),
    "names alike": (both_forms, "NamesAlike", "f/ill/ö.txt"),
    "empty": ({"ill/a.txt": "x", "ill/b.txt": ""}, "TextEmpty", "f, ill/b.txt"),
    "blank": ({"ill/b.txt": " \r\n"}, "TextEmpty", "f, ill/b.txt"),
    "byte order mark alone": ({"ill/b.txt": b"\xef\xbb\xbf"}, "TextEmpty", "f, ill/b.txt"),
    "long": ({"ill/a.txt": SECRET * 20_000}, "TextTooLong", "f, ill/a.txt"),
    "very long": ({"ill/a.txt": SECRET * 100_000}, "TextTooLong", "f, ill/a.txt"),
    "latin-1": ({"ill/a.txt": f"x\n{SECRET}\xfc".encode("latin-1")}, "EncodingWrong", "a.txt, line 2"),
    "utf-16": ({"ill/a.txt": SECRET.encode("utf-16")}, "EncodingWrong", "a.txt, line 1"),
    "zero byte": ({"ill/a.txt": f"x\n{SECRET}\0"}, "NullByte", "a.txt, line 2"),
    "word file": ({"ill/a.txt": b"PK\x03\x04" + SECRET.encode()}, "FileKindWrong", "a.txt"),
    "listed and not there": (listed("a.txt,ill"), "ListedFileMissing", "f/a.txt (labels.csv, line 2)"),
    "listed without a name": (listed(",ill"), "ListedFileMissing", "f (labels.csv, line 2)"),
    "list lists itself": (listed("labels.csv,ill"), "ListedFileMissing", "labels.csv, line 2"),
    "folder listed": (listed("d,ill") | {"d/a.txt": "x"}, "ListedFileMissing", "f/d (labels.csv, line 2)"),
    "listed twice": (listed("a.txt,ill", "./a.txt,healthy") | {"a.txt": "x"}, "ListedTwice", "labels.csv, line 3"),
    "listed above": (listed("../a.txt,ill") | {"../a.txt": SECRET}, "LeadsOutside", "labels.csv, line 2"),
    "listed by root": (listed("/etc/passwd,ill"), "LeadsOutside", "labels.csv, line 2"),
    "listed through": (listed("d/../../a.txt,ill") | {"d/b.txt": "x", "../a.txt": SECRET}, "LeadsOutside", "line 2"),
    "listed of another kind": (listed("a.pdf,ill") | {"a.pdf": SECRET}, "FileUnexpected", "f/a.pdf"),
    "listed label unknown": (listed("a.txt,ills") | {"a.txt": "x"}, "LabelUnknown", "labels.csv, line 2, column label"),
    "list of other columns": ({"labels.csv": "name,class\na,ill\n"}, "HeaderMissing", "labels.csv"),
    "list with more columns": ({"labels.csv": "file,label,age\na,ill,5718\n"}, "ColumnsWrong", "unexpected: age"),
    "list empty": ({"labels.csv": ""}, "DataFileEmpty", "labels.csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDERS)
def test_bad_folder_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, error, words = FOLDERS[case]
    folder = tmp_path / "f"
    folder.mkdir()
    if isinstance(content, dict):
        write_folder(folder, content)
    else:
        content(folder)
    with pytest.raises(DataError) as caught:
        read_texts(folder, SCHEMA)
    assert caught.value.name == error
    assert words in str(caught.value)
    nothing_leaks(caught.value)


def nothing_leaks(error: BaseException | None) -> None:
    said = str(error)
    assert "; " in said
    assert len(said) < 600
    while error is not None:
        assert SECRET not in str(error).replace(SECRET + ".txt", "")
        assert "5718" not in str(error)
        assert SECRET not in repr(error.args)
        error = error.__cause__ or error.__context__


def test_bounds_are_those_that_messages_name() -> None:
    assert f"{MOST_OF_TEXT:,} characters" in str(ExampleError("TextTooLong", path=Path("f"), at="a"))


@pytest.mark.parametrize(
    "text",
    [
        "[columns]\nfound = { codes = { B = 'sick' } }",
        "[columns]\nfound = { codes = { B = 1 } }",
        "[columns]\nfound = { codes = { B = 'ill', ' B' = 'healthy' } }",
        "[columns]\nfound = { absent = true }",
        "[columns]\nnote = { absent = true }",
        "[columns]\nnote = { codes = { a = 'ill' } }",
        "[columns]\nnote = { scale = 2.0 }",
        "[columns]\nnote = { missing = ['-'] }",
        "[columns]\nnote = 'found'",
        "[columns]\nage = 'Alter'",
        "[file]\nheader = false",
    ],
)
def test_mapping_that_does_not_fit_texts_is_refused(text: str) -> None:
    with raises_fault(DataError, "MappingInvalid"):
        mapped(text)


def test_what_is_not_there_or_not_enough_is_refused(tmp_path: Path) -> None:
    with raises_fault(DataError, "DataFileMissing"):
        read_texts(tmp_path / "none", SCHEMA)
    folder = write_folder(tmp_path / "f", {"ill/a.txt": "x", "ill/b.txt": "y"})
    assert read_texts(folder, SCHEMA).rows == 2
    with raises_fault(DataError, "OneClassOnly"):
        read_examples(folder, SCHEMA, allow_one_class=False)
    user = os.geteuid()
    try:
        (folder / "ill" / "b.txt").chmod(0)
        if user == 0:  # who may read everything
            os.seteuid(65_534)
        with raises_fault(DataError, "DataFileMissing", match="Permission denied"):
            read_texts(folder, SCHEMA)
    finally:
        os.seteuid(user)


@pytest.mark.skipif(not MEDQUAD.is_file(), reason=f"no MedQuAD at {MEDQUAD}")
def test_medquad_is_read_by_its_own_columns() -> None:
    classes = [
        "causes", "exams and tests", "information", "inheritance", "outlook", "prevention", "susceptibility",
        "symptoms", "treatment",
    ]  # fmt: skip
    schema = TextSchema(kind="text", text="text", label="qtype", classes=classes)
    with raises_fault(DataError, "ColumnsWrong") as caught:
        read_texts(MEDQUAD, schema)
    assert caught.value.values["unexpected"] == ("institute", "docid", "qid", "focus", "split")
    raw = read_raw_texts(MEDQUAD, schema, parse_mapping(b"", schema))
    assert (raw.texts.rows, raw.source.left_aside) == (12_855, 5)
    counts = [raw.texts.labels.tolist().count(number) for number in range(len(classes))]
    assert counts == [704, 648, 4465, 983, 360, 206, 316, 2745, 2428]
    assert raw.texts.texts[1].startswith("Signs and symptoms of adult ALL include fever")
