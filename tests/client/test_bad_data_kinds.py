"""More than a hundred kinds of bad data at the door: each is refused or remarked, with file, row and field.

No word and no number of a row is in what is said or logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lifelines.datasets
import numpy as np
import pytest
import sklearn.datasets
from bad_data import (
    GOOD,
    IMAGES,
    IMAGES_OF_RARE,
    MODEL,
    ROWS,
    SECRET,
    TABLE,
    TEXTS,
    TEXTS_OF_RARE,
    Bad,
    Files,
    asks,
    drawn,
    notes,
    npz,
    parquet,
    pictures,
    png,
    told,
    written,
)
from bad_tables import CELLS, FILES, QUESTIONS, READABLE
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.door import admitted, answers_to
from consilium_client.data.table.doubts import mixed
from consilium_client.data.table.kind import KIND as TABLES
from consilium_client.errors import DataError
from consilium_core.kinds import of_kind
from consilium_core.logs import log_to
from consilium_operators.drafting import likely_draft, read_sample
from consilium_operators.task_text import mapping_text
from PIL import Image
from raised_faults import raises_fault

CLASS_OF = "healthy", "ill"
NOTE = "The patient number 3 was seen on the ward."
OF_TEXTS = {
    "a text that is empty": Bad(notes(a=""), "TextEmpty", "ill/a.txt", TEXTS),
    "a text as long as a book": Bad(notes(a=SECRET * 20_000), "TextTooLong", "ill/a.txt", TEXTS),
    "a text with a zero byte": Bad(notes(a=f"{SECRET}\0"), "NullByte", "a.txt, line 1", TEXTS),
    "a Word file by another name": Bad(notes() | {"ill/a.txt": b"PK\x03\x04"}, "FileKindWrong", "a.txt", TEXTS),
    "a text in Latin-1": Bad(notes() | {"ill/a.txt": b"M\xfcller"}, "EncodingWrong", "a.txt, line 1", TEXTS),
    "a PDF among texts": Bad(notes() | {"ill/a.pdf": b"%PDF"}, "FileUnexpected", "ill/a.pdf", TEXTS),
    "a class that is none": Bad(notes() | {"sick/a.txt": b"x"}, "ClassFolderUnknown", "sick", TEXTS),
    "a listed file that lacks": Bad(
        {"labels.csv": b"file,label\na.txt,ill\n"}, "ListedFileMissing", "labels.csv, line 2", TEXTS
    ),
    "a file listed twice": Bad(
        {"labels.csv": b"file,label\na.txt,ill\na.txt,healthy\n", "a.txt": b"x"}, "ListedTwice", "line 3", TEXTS
    ),
    "a file listed outside": Bad({"labels.csv": b"file,label\n../a,ill\n"}, "LeadsOutside", "line 2", TEXTS),
    "a label of texts that is no class": Bad(
        f"text,found\n{NOTE},ill\n{NOTE},{SECRET}\n".encode(), "LabelUnknown", "line 3, column found", TEXTS
    ),
    "texts that are numbers": Bad(
        parquet({"text": [57.25], "found": ["ill"]}), "TextIsNumber", "row 1, column text", TEXTS
    ),
    "texts with broken letters": asks(notes(a="Der Patient hustet laut Ã¼ber Nacht."), "broken_letters", spec=TEXTS),
    "texts that repeat": asks(notes(a=NOTE), "duplicates", spec=TEXTS),
    "texts of both classes": asks(
        notes() | {"healthy/a.txt": NOTE.encode()}, "contradicting", spec=TEXTS
    ),
    "codes in place of texts": asks(notes(a="J18", b="I10", c="I21"), "few_words", spec=TEXTS),
    "a text of one word": told(notes(a="unremarkable"), "few_words", spec=TEXTS),
    "texts with their label": asks(
        {f"{name}/{at}.txt": f"Note {at}. Result: {name}.".encode() for at in range(12) for name in ("healthy", "ill")},
        "leak", spec=TEXTS,
    ),
    "texts that a program cut": asks(
        notes(**{name: (f"{name} was seen and " * 90)[:255] for name in ("Anna", "Bert", "Carl")}), "same_length",
        spec=TEXTS,
    ),
    "texts of a web page": asks(notes(a="<p>The patient</p> coughs&nbsp;loudly."), "markup", spec=TEXTS),
    "texts of Word": asks(notes(a=r"{\rtf1\ansi The patient coughs loudly.}"), "markup", spec=TEXTS),
    "texts with inverted labels": asks(
        {f"{CLASS_OF[at % 20 > 0]}/{at}.txt": f"The patient number {at} was seen.".encode() for at in range(60)},
        "inverted", spec=TEXTS_OF_RARE,
    ),
    "texts longer than the model reads": told(notes(), "cut", spec=TEXTS),
}  # fmt: skip

LABELS = np.arange(10, dtype=np.uint8) % 2
STACK = np.stack([drawn(at) for at in range(10)])
OF_IMAGES = {
    "an image of no bytes": Bad(pictures(a=b""), "ImageEmpty", "ill/a.png", IMAGES),
    "an image that is none": Bad(pictures(a=SECRET.encode()), "ImageKindWrong", "ill/a.png", IMAGES),
    "an image that is cut off": Bad(pictures(a=png(drawn(20))[:-40]), "ImageUnreadable", "ill/a.png", IMAGES),
    "an image of several pages": Bad(
        pictures(a=png(Image.fromarray(drawn(20)), "TIFF", save_all=True, append_images=[Image.fromarray(drawn(21))])),
        "ImageInParts", "ill/a.png", IMAGES,
    ),
    "an image of 16 bits": Bad(
        pictures(a=png(drawn(20).astype(np.uint16) * 200)), "ImageTooDeep", "ill/a.png", IMAGES
    ),
    "an image in CMYK": Bad(
        pictures(a=png(Image.new("CMYK", (10, 8)), "JPEG")), "ImageColoursWrong", "ill/a.png", IMAGES
    ),
    "a transparent image": Bad(
        pictures(a=png(Image.new("RGBA", (10, 8), (1, 2, 3, 4)))), "ImageTransparent", "ill/a.png", IMAGES
    ),
    "a text among images": Bad(pictures() | {"ill/a.txt": b"x"}, "FileUnexpected", "ill/a.txt", IMAGES),
    "an archive without labels": Bad(npz(images=STACK), "ArraysWrong", "labels", IMAGES),
    "an archive of floats": Bad(npz(images=STACK / 255, labels=LABELS), "ArraysWrong", "images", IMAGES),
    "an archive with a label too few": Bad(npz(images=STACK, labels=LABELS[1:]), "ArraysWrong", "9 labels", IMAGES),
    "an archive with a label of no class": Bad(
        npz(images=STACK, labels=LABELS + 1), "LabelOutOfSchema", "row 2", IMAGES
    ),
    "images without content": asks(pictures(a=png(np.full((8, 10), 99, np.uint8))), "constant", spec=IMAGES),
    "images that are black": asks(pictures(a=png(drawn(20) // 64)), "dark", spec=IMAGES),
    "images that repeat": asks(pictures(a=png(drawn(1))), "duplicates", spec=IMAGES),
    "images of both classes": asks(pictures(a=png(drawn(2))), "contradicting", spec=IMAGES),
    "images with inverted labels": asks(
        npz(images=np.stack([drawn(at) for at in range(60)]), labels=np.array([0, *[1] * 19] * 3, np.uint8)),
        "inverted", spec=IMAGES_OF_RARE,
    ),
    "thumbnails": told(pictures(a=png(drawn(20, 4, 5))), "enlarged", spec=IMAGES),
    "images of other proportions": told(pictures(a=png(drawn(20, 40, 10))), "stretched", spec=IMAGES),
}  # fmt: skip

KINDS = FILES | CELLS | READABLE | QUESTIONS | OF_TEXTS | OF_IMAGES


HONEST = {
    "as it is": written(GOOD),
    "with a byte order mark": b"\xef\xbb\xbf" + written(GOOD),
    "with lines of Windows": written(GOOD).replace(b"\n", b"\r\n"),
    "with spaces behind codes": written(GOOD | {"sex": [f"{text} " for text in GOOD["sex"]]}),
    "with blank lines at its end": written(GOOD) + b"\n\n",
    "sorted by label": written(
        {name: [cells[at] for at in np.argsort(GOOD["ill"], kind="stable")] for name, cells in GOOD.items()}
    ),
}


def put(folder: Path, content: bytes | Files) -> Path:
    path = folder / "data"
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    for name, inside in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(inside)
    return path


def put_mapping(folder: Path, text: str) -> Path | None:
    if not text:
        return None
    path = folder / "mapping.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_bad_data_stop_at_the_door_or_are_remarked(tmp_path: Path, kind: str) -> None:
    bad = KINDS[kind]
    path, mapping = put(tmp_path, bad.content), put_mapping(tmp_path, bad.mapping)
    events: list[object] = []

    def enter(answers: dict[str, bool | list[str]]) -> Any:
        return admitted(path, bad.spec, mapping, answers, held_out=bad.voter)

    with log_to(lambda *event: events.append(event)):
        if bad.asks is None:
            with pytest.raises(DataError) as refused:
                enter({})
            assert refused.value.name == bad.says
            assert bad.at in str(refused.value)
            if bad.says not in ("TooManyRows", "MappingInvalid"):
                assert str(path) in str(refused.value)
            nothing_leaks(bad, refused.value)
            return
        if bad.asks:
            with raises_fault(DataError, "RemarksUnanswered") as unanswered:
                enter({})
            assert (bad.says, bad.column) in unanswered.value.values["concerns"]
            assert f"{bad.says} = " in str(unanswered.value)
            nothing_leaks(bad, unanswered.value)
            found = enter(dict.fromkeys([key for key, _ in unanswered.value.values["concerns"]], True))
        else:
            found = enter({})
        assert (bad.says, bad.column, bad.asks) in [(one.key, one.column, one.asks) for one in found.remarks]
        found.tell()
    assert found.unneeded == ()
    assert any(f"'concern': '{bad.says}'" in str(event) for event in events)
    assert leaked(bad, str(events)) == []
    assert leaked(bad, repr(found)) == []


def leaked(bad: Bad, said: str) -> list[str]:
    """Words of the data that are in what is said: names, and numbers of three digits and more."""
    raw = bad.content if isinstance(bad.content, bytes) else b"\n".join(bad.content.values())
    known = {word for word in _words(raw[:20_000].decode("latin-1")) if len(word) > 3 and re.search(r"\d", word)}
    return [word for word in _words(said) if word == SECRET or word in known - {bad.says, *_words(bad.at)}]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w.'-]*\w", text))


def nothing_leaks(bad: Bad, error: BaseException | None) -> None:
    while error is not None:
        assert leaked(bad, str(error)) == []
        assert SECRET not in repr(error.args)
        error = error.__cause__ or error.__context__


def test_there_are_a_hundred_kinds_and_thirty_are_readable() -> None:
    assert len(KINDS) == sum(map(len, (FILES, CELLS, READABLE, QUESTIONS, OF_TEXTS, OF_IMAGES))) > 100
    assert sum(bad.readable for bad in KINDS.values()) >= 30


@pytest.mark.parametrize("form", HONEST)
def test_the_good_table_is_of_no_concern(tmp_path: Path, form: str) -> None:
    found = admitted(put(tmp_path, HONEST[form]), TABLE, None, {})
    assert (found.remarks, found.unneeded, found.examples.rows) == ((), (), ROWS)


def test_an_answer_is_of_its_columns_and_is_told_when_nothing_needs_it(tmp_path: Path) -> None:
    gaps = GOOD | {"chol": ["0"] * 9 + GOOD["chol"][9:], "hb": ["-99"] * 9 + GOOD["hb"][9:]}
    path = put(tmp_path, written(gaps | {"sbp": ["0", "0", *GOOD["sbp"][2:]]}))
    given: list[tuple[dict[str, bool | list[str]], set[tuple[str, str]]]] = [
        ({}, {("zeros", "chol"), ("zeros", "sbp"), ("placeholders", "hb")}),
        ({"zeros": ["chol"]}, {("zeros", "sbp"), ("placeholders", "hb")}),
        ({"zeros": ["chol", "sbp"], "placeholders": False}, {("placeholders", "hb")}),
        ({"zeros": False, "placeholders": True}, {("zeros", "chol"), ("zeros", "sbp")}),
    ]  # fmt: skip
    for answers, open_ in given:
        with raises_fault(DataError, "RemarksUnanswered") as caught:
            admitted(path, TABLE, None, answers)
        assert set(caught.value.values["concerns"]) == open_
    assert 'zeros = ["sbp", "chol"]' in str(caught.value)
    found = admitted(path, TABLE, None, {"zeros": ["chol", "sbp", "age"], "placeholders": True, "duplicates": True})
    assert found.unneeded == ("zeros of age", "duplicates")
    assert answers_to(found.remarks) == {"zeros": ["sbp", "chol"], "placeholders": ["hb"]}
    events: list[Any] = []
    with log_to(lambda event, fields: events.append((event, dict(fields)))):
        found.tell()
    assert ("answer-unneeded", {"answer": "duplicates"}) in [
        (event, {"answer": f.get("answer")}) for event, f in events
    ]


def test_coarse_columns_have_equal_rows_by_chance(tmp_path: Path) -> None:
    """A hundred rows of two questions: they are told, and ask nothing."""
    spec = parse_task_spec(
        b'name = "two questions"\n[data]\nlabel = "ill"\nclasses = ["no", "yes"]\nfeatures = [\n'
        b'{ kind = "category", name = "sex", values = ["f", "m"] }, { name = "pain", min = 0, max = 10 } ]\n'
        + MODEL.encode()
    )
    random = np.random.default_rng(0)
    rows = [f"{random.choice(['f', 'm'])},{random.integers(0, 11)},{random.integers(0, 2)}" for _ in range(100)]
    found = admitted(put(tmp_path, ("sex,pain,ill\n" + "\n".join(rows) + "\n").encode()), spec, None, {})
    assert {(one.key, one.asks) for one in found.remarks} == {("duplicates", False), ("contradicting", False)}


def test_real_data_get_the_remarks_that_they_deserve(tmp_path: Path) -> None:
    """Each set's columns by the draft of its own file. A panel of countries has rows that a later year repeats."""
    frames = {
        name: getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame for name in ("wine", "breast_cancer")
    }
    frames["diabetes"] = sklearn.datasets.load_diabetes(as_frame=True, scaled=False).frame
    frames["diabetes"]["target"] = (frames["diabetes"]["target"] > 140).astype(int)
    of_survival = ("dd", "g3", "gbsg2", "leukemia", "lung", "lymph_node", "rossi")
    frames |= {name: getattr(lifelines.datasets, f"load_{name}")() for name in of_survival}
    found = {}
    for name, frame in frames.items():
        frame.to_csv(path := tmp_path / f"{name}.csv", index=False)
        made = likely_draft(read_sample(path))
        spec = TaskSpec.model_validate({"name": name, "data": made.schema.model_dump(), "model": {"name": "logistic"}})
        raw = TABLES.read(
            path, of_kind(TableSchema, made.schema), put_mapping(tmp_path, mapping_text(made.mapping, path.name))
        )
        found[name] = {one.key for one in TABLES.profile(raw, spec).findings if one.asks}
    assert {name: keys for name, keys in found.items() if keys} == {"dd": {"near_duplicates"}}


# Middle and spread of a column's logarithms, and its values in the other unit.
WIDE: dict[str, tuple[float, float, Callable[[Any], Any]]] = {
    "glucose": (130, 0.4, lambda value: value / 18.016),
    "creatinine": (1.1, 0.5, lambda value: value * 88.42),
    "triglycerides": (140, 0.5, lambda value: value / 88.57),
    "temperature": (31, 0.1, lambda value: 1.8 * value + 32),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("share", [0.15, 0.5, 0.85])
def test_a_second_unit_is_seen_however_wide_both_are(name: str, share: float) -> None:
    middle, spread, other_unit = WIDE[name]
    for seed in range(20):
        random = np.random.default_rng(seed)
        values = middle * np.exp(random.normal(0, spread, 400))
        assert mixed(values, name) is None
        is_other = random.random(400) < share
        found = mixed(np.where(is_other, other_unit(values), values), name)
        assert found is not None
        conversion, size = found
        assert name in conversion.words or "°" in conversion.words
        assert abs(size - min(is_other.sum(), 400 - is_other.sum())) <= 8


def test_skewed_and_wide_columns_of_one_unit_hardly_ever_get_a_remark() -> None:
    found = []
    for seed in range(40):
        random, rows = np.random.default_rng(seed), (25, 60, 200, 1_000)[seed % 4]
        columns = [
            random.normal(50, 10, rows), np.exp(random.normal(0, 1.5, rows)), random.exponential(1, rows),
            10 ** random.uniform(-2, 3, rows), random.pareto(1.2, rows), random.standard_cauchy(rows),
        ]  # fmt: skip
        found += [mixed(values, "x") is not None for values in columns]
    assert sum(found) <= len(found) / 100
