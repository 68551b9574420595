"""A plug-in that reads a hospital's own format: the rows of the file that it equals, the same checks as for a file, and
nothing else in reach."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.main import app
from consilium_client.consent import Policy, VoterPolicy
from consilium_client.data.examples import MOST_ROWS, Source
from consilium_client.data.kinds import kind_of, read_examples
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.table.reader import Table
from consilium_client.data.use import Use
from consilium_client.errors import CellError, DataError, RangeError
from consilium_client.plugins import asking, packing
from consilium_client.plugins.errors import PluginError
from consilium_client.programs import confined
from consilium_client.programs.errors import ProgramError
from hospital_driver import OPEN_POLICY
from plugin_attacks import ATTACKS, NAMES
from plugin_wheels import Site, named, processes, site_in
from raised_faults import raises_fault
from task_files import NOTES, X_RAYS
from training_driver import task_file
from typer.testing import CliRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no plug-in is computed")
READERS = """
import os

import numpy as np


def lines(path):
    with open(path, encoding="ascii") as file:
        return [line.rstrip().split("|") for line in file]


def table(path, data, arguments):
    unit = arguments.get("unit", 1.0)
    rows = lines(path)
    ages = np.array([float(age) / unit if age else np.nan for age, _ in rows])
    found = {"age": ages, "sick": [label for _, label in rows]}
    assert data["kind"] == "table" and data["classes"] == ["no", "yes"]
    return {name: found[{"Alter": "age", "Befund": "sick"}.get(name, name)] for name in data["columns"]}


def notes(path, data, arguments):
    names = sorted(os.listdir(path))
    texts = [open(os.path.join(path, name)).read() for name in names]
    return {"text": texts, "found": np.array([name.split("-")[0] for name in names])}


def scans(path, data, arguments):
    raw = np.fromfile(path, np.uint8).reshape(-1, 1 + data["height"] * data["width"])
    return {"images": raw[:, 1:].reshape(-1, data["height"], data["width"]), "labels": raw[:, 0]}
"""
POINTS = "[consilium.readers]\n" + "".join(f"{one} = test_readers:{one}\n" for one in ("table", "notes", "scans"))
# The file's text says what it does; {SECRET} is of a row.
MISBEHAVING = """
import json
import os
import struct
import sys
import time

import numpy as np


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/consilium-evil",)


def send(header, *parts):
    raw = json.dumps(header).encode()
    for fd in range(1, 32):
        try:
            os.write(fd, struct.pack("<I", len(raw)) + raw + b"".join(parts))
        except OSError:
            pass
    time.sleep(60)


def result(arrays, *parts):
    send({"kind": "result", "arrays": arrays}, *parts)


def failed(**values):
    send({"kind": "error", "error": "PluginError", "name": "PluginFailed", "values": values})


def misbehave(path, data, arguments):
    with open(path) as file:
        what, secret = file.read().split("|")
    ages, sick = np.array([50.0, 60.0]), np.array([0, 1])
    if what == "raises":
        raise RuntimeError(secret)
    if what == "raises a class":
        raise type(secret, (Exception,), {})
    if what == "exits":
        sys.exit(secret)
    if what == "ends":
        os._exit(3)
    if what == "sleeps":
        time.sleep(600)
    if what == "takes memory":
        return {"age": np.ones(1 << 34), "sick": sick}
    if what == "forges an error":
        failed(plugin="x", step="its import", why=secret)
    if what == "forges another error":
        send({"kind": "error", "error": "DataError", "name": "DataFileMissing", "values": {"path": secret, "why": ""}})
    if what == "forges a refusal":
        send({"kind": "error", "error": "ProgramError", "name": "NotConfined", "values": {"why": secret}})
    if what == "states too much":
        result({"numbers:age": [[1 << 31], "float64"], "numbers:sick": [[1 << 31], "float64"]})
    if what == "states no shapes":
        result({"numbers:age": [["2"], "float64"]})
    if what == "states objects":
        result({"numbers:age": [[2], "object"]})
    if what == "states a secret":
        result({f"numbers:{secret}": [[2], "float64"]}, bytes(16))
    if what == "lies about lengths":
        lengths = np.array([1 << 62, 1 << 62, 1 << 62, 1 << 62, 2])
        arrays = {"letters:sick": [[2], "uint8"], "lengths:sick": [[5], "int64"], "numbers:age": [[5], "float64"]}
        result(arrays, b"no", lengths.tobytes(), bytes(40))
    if what == "sends no letters":
        arrays = {"letters:sick": [[2], "uint8"], "lengths:sick": [[1], "int64"], "numbers:age": [[1], "float64"]}
        result(arrays, bytes([0xff, 0xfe]), np.array([2]).tobytes(), bytes(8))
    if what == "sends lengths alone":
        result({"lengths:sick": [[1], "int64"], "numbers:age": [[1], "float64"]}, bytes(16))
    if what == "sends no answer":
        send([])
    results = {
        "nothing": None,
        "objects": {"age": np.array([Evil(), 1]), "sick": sick},
        "unequal": {"age": ages[:1], "sick": sick},
        "unasked": {"age": ages, "sick": sick, secret: ages},
        "missing": {"age": ages}, "infinite": {"age": ages * np.inf, "sick": sick},
        "a class more": {"age": ages, "sick": sick + 1}, "a class between": {"age": ages, "sick": sick / 2},
        "no label": {"age": ages, "sick": np.array([np.nan, 1])},
        "a text of a label": {"age": ages, "sick": ["no", secret]},
        "letters": {"age": ["50", secret], "sick": sick}, "no rows": {"age": ages[:0], "sick": sick[:0]},
        "many rows": {"age": np.ones(65_536), "sick": np.ones(65_536)},
        "all missing": {"age": ages * np.nan, "sick": sick},
    }
    return results[what]


def paint(path, data, arguments):
    with open(path) as file:
        what, secret = file.read().split("|")
    images, labels = np.zeros((2, 8, 10), np.uint8), np.array([0, 1])
    results = {
        "floats": (images / 2, labels), "flat": (images[0], labels), "one more": (images, np.zeros(3, np.int64)),
        "below": (images, labels - 1), "empty": (images[:0], labels[:0]), "no pixels": (images[:, :0], labels),
        "objects": (images, labels.astype(object)), "a large one": (np.zeros((1, 8193, 8193), np.uint8), labels[:1]),
    }
    return dict(zip(("images", "labels"), results[what]))
"""
SECRET = "a_patients_value_4711"
TABLE = parse_task_spec(task_file("epochs = 1"))
TEXTS, IMAGES = parse_task_spec(NOTES.encode()), parse_task_spec(X_RAYS.encode())
ROWS = "50|yes\n60.5|no\n|no\n130|yes\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_in(tmp_path_factory.mktemp("readers")) as made:
        yield made


@pytest.fixture(scope="module")
def readers(site: Site) -> dict[str, dict[str, Any]]:
    made = site.put("test_readers", READERS, POINTS)
    return {one: named(made, one) for one in ("table", "notes", "scans")}


@pytest.fixture(scope="module")
def misbehaving(site: Site) -> dict[str, dict[str, Any]]:
    points = "[consilium.readers]\nmisbehave = test_misreading:misbehave\npaint = test_misreading:paint\n"
    made = site.put("test_misreading", MISBEHAVING, points)
    return {one: named(made, one) for one in ("misbehave", "paint")}


def through(schema: DataSchema, reader: dict[str, Any], **arguments: Any) -> DataSchema:
    """A task's data with this reader."""
    values = schema.model_dump() | {"reader": {**reader, "arguments": arguments}}
    return type(schema).model_validate(values)


def mapping_of(folder: Path, reader: dict[str, Any], **more: Any) -> Path:
    path = folder / "mapping.toml"
    path.write_text(tomli_w.dumps({"reader": reader, **more}))
    return path


# --- its data ---------------------------------------------------------------------------------------------------------


def test_a_readers_table_is_that_of_the_file_that_it_equals(readers: dict[str, Any], tmp_path: Path) -> None:
    """Named by the task, or by the owner's mapping, which stands in its place and may rename and convert."""
    (tmp_path / "own.ehr").write_text(ROWS)
    (tmp_path / "rows.csv").write_text("age,sick\n50,1\n60.5,0\n,0\n130,1\n")
    expected = read_examples(tmp_path / "rows.csv", TABLE.data)
    assert isinstance(expected, Table)
    by_task = through(TABLE.data, readers["table"])
    columns = {"age": {"column": "Alter", "scale": 2.0}, "sick": {"column": "Befund", "codes": {"no": 0, "yes": 1}}}
    mapping = mapping_of(tmp_path, {**readers["table"], "arguments": {"unit": 2.0}}, columns=columns)
    for schema, own in ((by_task, None), (TABLE.data, mapping), (by_task, mapping)):
        found = read_examples(tmp_path / "own.ehr", schema, own)
        assert list(found.row_bytes()) == list(expected.row_bytes())
    (tmp_path / "plain.toml").write_text("")  # a mapping without a reader: an ordinary file
    assert list(read_examples(tmp_path / "rows.csv", by_task, tmp_path / "plain.toml").contents()) == list(
        expected.contents()
    )
    raw = kind_of(by_task).read(tmp_path / "own.ehr", by_task, None)
    assert raw.source == Source(
        tmp_path / "own.ehr", "plug-in", {"age": "age", "sick": "sick"}, reader="test-readers 1.0, its reader table"
    )
    assert processes() == []  # they knew the rows


def test_a_readers_texts_and_images_are_examples(readers: dict[str, Any], tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ill-1.hl7").write_text(" fever\r\n")
    (notes / "healthy-1.hl7").write_text("well")
    texts = read_examples(notes, through(TEXTS.data, readers["notes"]))
    assert (texts.texts, texts.labels.tolist()) == (("well", "fever"), [0, 1])  # type: ignore[attr-defined]
    by_mapping = read_examples(notes, TEXTS.data, mapping_of(tmp_path, readers["notes"]))
    assert list(by_mapping.contents()) == list(texts.contents())
    pixels = np.arange(160, dtype=np.uint8).reshape(2, 80)
    (tmp_path / "scans.raw").write_bytes(b"".join(bytes([at]) + one.tobytes() for at, one in enumerate(pixels)))
    for schema, own in (
        (through(IMAGES.data, readers["scans"]), None),
        (IMAGES.data, mapping_of(tmp_path, readers["scans"])),
    ):
        images = read_examples(tmp_path / "scans.raw", schema, own)
        assert list(images.contents()) == [one.tobytes() for one in pixels]
        assert images.labels.tolist() == [0, 1]
    with raises_fault(DataError, "MappingInvalid", "images have no columns"):
        read_examples(tmp_path / "scans.raw", IMAGES.data, mapping_of(tmp_path, readers["scans"], columns={"a": "b"}))


def test_rows_for_a_finished_model_go_through_a_mappings_reader(readers: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "own.ehr").write_text(ROWS)
    raw = mapping_of(tmp_path, readers["table"]).read_bytes()
    mapping, kind = parse_mapping(raw, TABLE.data), kind_of(TABLE.data)
    used = kind.in_use(tmp_path / "own.ehr", TABLE.data, Use(mapping, clamp=True, labelled=True))
    assert used.examples.labels.tolist() == [1, 0, 0, 1]
    assert used.source.reader.startswith("test-readers 1.0")
    with raises_fault(RangeError, "ValueOutOfRange", "row 4, column age"):
        kind.in_use(tmp_path / "own.ehr", TABLE.data, Use(mapping))


# --- hostile results --------------------------------------------------------------------------------------------------


def doing(what: str, folder: Path, data: DataSchema, mapping: Path | None = None) -> Any:
    (folder / "data").write_text(f"{what}|{SECRET}")
    return read_examples(folder / "data", data, mapping)


FAILURES = {
    "raises": "reading its data: RuntimeError; tell", "raises a class": packing.RAISED, "exits": "SystemExit; tell",
    "ends": "its process ended with the status 3", "takes memory": "MemoryError", "nothing": packing.NO_MAPPING,
    "objects": packing.NO_COLUMN, "unequal": packing.UNEQUAL, "unasked": packing.UNASKED,
    "forges an error": f"its import: {packing.RAISED}", "forges another error": packing.RAISED,
    "states too much": packing.TOO_LARGE, "states no shapes": packing.BROKEN,
    "states objects": packing.BROKEN, "states a secret": packing.UNASKED, "lies about lengths": packing.BROKEN,
    "sends no letters": packing.BROKEN, "sends lengths alone": packing.BROKEN,
    "sends no answer": "an answer that is none",
}  # fmt: skip
REFUSALS = {
    "missing": "ColumnsWrong", "infinite": "ValueNotFinite", "a class more": "LabelOutOfSchema",
    "a class between": "LabelOutOfSchema", "no label": "LabelOutOfSchema", "a text of a label": "LabelOutOfSchema",
    "letters": "ValueNotNumeric", "no rows": "DataFileEmpty", "many rows": "TooManyRows",
    "all missing": "ColumnAllMissing",
}  # fmt: skip
OF_IMAGES = {
    "floats": packing.NO_IMAGES, "objects": packing.NO_IMAGES, "flat": "shape", "one more": "2 images, but 3 labels",
    "below": "not one of the task's classes", "empty": "no rows", "no pixels": "shape", "a large one": "pixels",
}  # fmt: skip


def test_a_result_that_is_none_fails_by_name_without_a_word_of_the_data(
    misbehaving: dict[str, Any], tmp_path: Path
) -> None:
    data = through(TABLE.data, misbehaving["misbehave"])
    for what, why in FAILURES.items():
        with pytest.raises(PluginError, match=f"test-misreading 1.0 failed in .*{why}") as raised:
            doing(what, tmp_path, data)
        assert raised.value.name == "PluginFailed"
        assert SECRET not in f"{raised.value} {raised.value.values}", what
    with pytest.raises(ProgramError, match="Landlock") as refused:
        doing("forges a refusal", tmp_path, data)
    assert SECRET not in f"{refused.value}"
    assert not os.path.exists("/tmp/consilium-evil")
    assert processes() == []


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ("text", packing.NO_MAPPING), ({0: [1.0]}, packing.NO_MAPPING), ({"age": object()}, packing.NO_COLUMN),
        ({"age": np.ones(2) * 1j}, packing.NO_COLUMN), ({"age": np.ones((1, 2))}, packing.NO_COLUMN),
        ({"age": ["no", "\ud800"]}, packing.NO_COLUMN), ({"age": ["no", 1]}, packing.NO_COLUMN),
        ({"age": np.array([b"1"])}, packing.NO_COLUMN), ({"age": np.array(["2020"], "M8[D]")}, packing.NO_COLUMN),
    ],
)  # fmt: skip
def test_a_process_sends_numbers_and_texts_alone(found: object, why: str) -> None:
    with pytest.raises(packing.Unpackable, match=why):
        packing.packed(found, {"kind": "table"})


@pytest.mark.parametrize(
    "stated",
    [
        None, [], {"numbers:age": [[1 << 30] * 3, "float64"]}, {"numbers:age": [[-1], "float64"]},
        {"numbers:age": [[True], "float64"]}, {"numbers:age": [2, "float64"]}, {"numbers:age": [[2], ["float64"]]},
        {"numbers:age": [[2], "float32"]}, {"numbers:age": [[2, 1], "float64"]}, {"age": [[2], "float64"]},
        {"letters:age": [[2], "uint8"]}, {"lengths:age": [[2], "int64"]}, {"numbers:sick": [[2], "float64"]},
        {"numbers:age": [[2], "float64"], "letters:age": [[2], "uint8"], "lengths:age": [[2], "int64"]},
    ],
)  # fmt: skip
def test_a_node_refuses_other_shapes_than_those_of_columns(stated: object) -> None:
    with pytest.raises(packing.Unpackable):
        packing.rows_of_columns(packing.stated_shapes(stated), ["age"])


def test_columns_go_through_the_same_checks_as_a_files(misbehaving: dict[str, Any], tmp_path: Path) -> None:
    data = through(TABLE.data, misbehaving["misbehave"])
    for what, name in REFUSALS.items():
        with pytest.raises(DataError) as raised:
            doing(what, tmp_path, data)
        assert raised.value.name == name, what
        assert SECRET not in f"{raised.value}"
        if isinstance(raised.value, CellError):
            assert "row " in f"{raised.value}"
    assert MOST_ROWS < 65_536


def test_images_go_through_the_same_checks_as_an_archives(misbehaving: dict[str, Any], tmp_path: Path) -> None:
    data = through(IMAGES.data, misbehaving["paint"])
    for what, why in OF_IMAGES.items():
        with pytest.raises((DataError, PluginError), match=why):
            doing(what, tmp_path, data)


def test_a_reader_that_hangs_is_ended(
    misbehaving: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "SPARE_SECONDS", 1.0)
    monkeypatch.setattr(asking, "READ_SECONDS", 1.0)
    started = time.monotonic()
    with raises_fault(PluginError, "PluginFailed", "its process took longer than 2 seconds"):
        doing("sleeps", tmp_path, through(TABLE.data, misbehaving["misbehave"]))
    assert time.monotonic() - started < 30
    assert processes() == []


# --- what is out of reach ---------------------------------------------------------------------------------------------


def test_a_reader_reaches_its_path_alone(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    for folder in (data, home):
        folder.mkdir()
    (home / "key").write_text("a key")
    (data / "one").write_text("1")
    (data / "out").symlink_to(home / "key")
    (tmp_path / "data.other").write_text("other data")
    monkeypatch.setenv("CONSILIUM_PASSWORD", "a password")
    code = f"FOLDER = {str(home)!r}\n{ATTACKS}\n" + (
        "def more(path):\n"
        "    one = os.path.join(path, 'one')\n"
        "    return [lambda: open(os.path.join(path, 'out')).read(), lambda: open(path + '.other').read(),\n"
        "            lambda: open(os.path.join(path, '..', 'home', 'key')).read(), lambda: open(one, 'r+'),\n"
        "            lambda: open(os.path.join(path, 'new'), 'w'), lambda: os.unlink(one),\n"
        "            lambda: os.truncate(one, 0), lambda: os.rename(one, one + '2'), lambda: os.chmod(one, 0),\n"
        "            lambda: os.listdir(path + '/..')]\n\n\n"
        "AT_IMPORT = tried(None)\n\n\n"
        "def probe(path, data, arguments):\n"
        "    assert os.listdir(path) and open(os.path.join(path, 'one')).read() == '1'\n"
        "    found = AT_IMPORT + tried(None)\n"
        "    for attempt in more(path):\n"
        "        try:\n"
        "            attempt()\n"
        "            found.append(1.0)\n"
        "        except OSError:\n"
        "            found.append(0.0)\n"
        "    import numpy as np\n"
        "    return {'age': np.array(found), 'sick': np.zeros(len(found))}\n"
    )
    made = site.put("test_prying", code, "[consilium.readers]\nprobe = test_prying:probe\n")
    table = read_examples(data, through(TABLE.data, named(made, "probe")))
    assert isinstance(table, Table)
    names = [f"{name} at its import" for name in NAMES] + NAMES + [f"{at}" for at in range(10)]
    assert [name for name, done in zip(names, table.features[:, 0], strict=True) if done] == []
    assert (home / "key").read_text() == "a key"
    assert sorted(os.listdir(data)) == ["one", "out"]


def test_no_reader_gets_a_nodes_home(readers: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text("")
    data = through(TABLE.data, readers["table"])
    with raises_fault(DataError, "DataFileMissing", "would read its key"):
        read_examples(tmp_path, data)
    with raises_fault(DataError, "DataFileMissing", "no such file"):
        read_examples(tmp_path / "nowhere", data)


# --- consent ----------------------------------------------------------------------------------------------------------


def test_a_tasks_reader_needs_consent_and_the_files_of_its_digest(readers: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "own.ehr").write_text(ROWS)
    values, operator, record = TABLE.model_dump(), "0x" + "11" * 20, readers["table"]["record"]
    task = TaskSpec.model_validate(values | {"data": through(TABLE.data, readers["table"])})
    objection = f"`plugins` does not list its plug-in test-readers 1.0, {record}"
    for_voters: dict[str, Any] = {"operators": "any", "models": "any", "metrics": "any"}
    for kind, rules in ((Policy, OPEN_POLICY), (VoterPolicy, for_voters)):
        assert kind.model_validate(rules).objections(task, operator) == [objection]
        assert kind.model_validate(rules | {"plugins": [record]}).objections(task, operator) == []
    with raises_fault(PluginError, "PluginOther"):
        read_examples(tmp_path / "own.ehr", through(TABLE.data, {**readers["table"], "record": "ab" * 32}))
    with raises_fault(PluginError, "PluginMissing", "2.0 is not installed"):
        read_examples(tmp_path / "own.ehr", through(TABLE.data, {**readers["table"], "version": "2.0"}))
    with raises_fault(PluginError, "PluginMalformed", "no reader nothing"):
        read_examples(tmp_path / "own.ehr", through(TABLE.data, {**readers["table"], "entry": "nothing"}))
    with raises_fault(DataError, "MappingInvalid", "header = false"):
        own = mapping_of(tmp_path, readers["table"], file={"header": False}, columns={"age": 1, "sick": 2})
        read_examples(tmp_path / "own.ehr", TABLE.data, own)


def test_commands_test_a_reader_and_show_its_data(readers: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_bytes(task_file("epochs = 1"))
    (tmp_path / "own.ehr").write_text(ROWS)

    def say(code: int, *arguments: object) -> str:
        ran = CliRunner(env={"COLUMNS": "400"}).invoke(app, [*map(str, arguments)], catch_exceptions=False)
        assert ran.exit_code == code, ran.output
        return ran.output

    test = ("plugin", "test", "test-readers", "--entry")
    given = ("--task-file", tmp_path / "task.toml", "--data", tmp_path / "own.ehr")
    said = say(0, *test, "table", *given)
    assert "holds  it reads the data, without other files, keys and network: 4 rows: 2 no, 2 yes\n" in said
    assert "please check  age: 1 of 4: values outside the task's range" in said
    assert "FAILS" not in said
    (tmp_path / "mapping.toml").write_text(said[said.index("[reader]") :])
    assert "a reader needs a task file and data" in say(2, *test, "table")
    assert "PluginFailed" in say(1, *test, "notes", *given).splitlines()[-1]
    with raises_fault(PluginError, "PluginMalformed", "by --entry: table, notes, scans"):
        say(1, "plugin", "test", "test-readers", *given)
    assert "  readers table, notes, scans\n" in say(0, "plugin", "list")
    check = ("hospital", "check-data", "--task-file", tmp_path / "task.toml", "--data", tmp_path / "own.ehr")
    shown = say(0, *check, "--mapping", tmp_path / "mapping.toml")
    assert "(read by the plug-in test-readers 1.0, its reader table): 4 rows" in " ".join(shown.split())
