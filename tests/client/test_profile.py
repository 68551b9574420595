"""The profile of a table before joining: counts, concerns, and round 0's numbers as a node has them."""

from __future__ import annotations

import io
from enum import StrEnum
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.hospital.data_check import WIDTH, screen
from consilium_client.data.mapping import parse_mapping
from consilium_client.data.profile import Finding
from consilium_client.data.standardise import sums_of
from consilium_client.data.table.kind import KIND, Concern, TableProfile
from consilium_client.data.table.reader import encoded, read_raw
from consilium_core.kinds import of_kind
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

HEART = Path(__file__).resolve().parents[3] / "shared" / "data" / "heart"

SPEC = parse_task_spec(
    b"""
name = "heart"
statistics = "exact"
[data]
label = "ill"
classes = ["healthy", "ill"]
features = [
  { name = "age", min = 20, max = 90 },
  { name = "chol", min = 0, max = 650 },
  { name = "oldpeak", min = -3, max = 7 },
  { kind = "category", name = "pain", values = [1, 2, 3] },
]
[model]
name = "mlp"
hidden = [8]
[rounds]
rounds = 7
"""
)


def read(tmp_path: Path, content: str, mapping: str = "", spec: TaskSpec = SPEC) -> TableProfile:
    path = tmp_path / "table.csv"
    path.write_text(content)
    schema = of_kind(TableSchema, spec.data)
    return KIND.profile(read_raw(path, schema, parse_mapping(mapping.encode(), schema)), spec)


def rows(*, age: object = 50, chol: object = 200, oldpeak: object = 1, pain: object = 1, ill: object = 1) -> str:
    return f"{age},{chol},{oldpeak},{pain},{ill}\n"


HEAD = "age,chol,oldpeak,pain,ill\n"
GOOD = "".join(rows(age=40 + i, chol=190 + 7 * i, oldpeak=i / 10, pain=i % 3 + 1, ill=i % 2) for i in range(20))


def concerns(found: TableProfile) -> list[tuple[StrEnum, str | None, int, int]]:
    return [(one.concern, one.column, one.count, one.of) for one in found.findings]


def test_good_table_is_of_no_concern(tmp_path: Path) -> None:
    found = read(tmp_path, HEAD + GOOD)
    assert found.findings == ()
    assert (found.rows, found.repeated, found.source.left_aside) == (20, 0, 0)
    assert found.answers == (("healthy", 10), ("ill", 10))
    age = found.columns[0]
    assert (age.smallest, age.mean, age.largest, age.missing, age.outside) == (40, 49.5, 59, 0, 0)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (rows(age=""), []),
        (rows(age="?") * 2, [(Concern.DUPLICATES, None, 1, 22)]),
        (rows(age=17) + rows(age=91), [(Concern.OUTSIDE, "age", 2, 22)]),
        (rows(pain=9) + rows(pain=0), [(Concern.UNKNOWN_CODES, "pain", 2, 22), (Concern.DUPLICATES, None, 1, 22)]),
        (rows(chol=0), [(Concern.ZEROS, "chol", 1, 21)]),
        (rows(oldpeak=0), []),  # its range begins below 0
        (
            "".join(rows(age=40 + i / 9, oldpeak="?") for i in range(21)),
            [(Concern.MOSTLY_MISSING, "oldpeak", 21, 41)],
        ),
        (
            "".join(rows(age=40 + i / 9, pain=8) for i in range(21)),
            [(Concern.UNKNOWN_CODES, "pain", 21, 41), (Concern.MOSTLY_MISSING, "pain", 21, 41)],
        ),
    ],
)  # fmt: skip
def test_each_concern_is_counted(tmp_path: Path, more: str, expected: list[object]) -> None:
    assert concerns(read(tmp_path, HEAD + GOOD + more)) == expected


def test_column_that_says_nothing_is_a_concern(tmp_path: Path) -> None:
    lines = "".join(rows(age=40 + i, chol=0, oldpeak=1.5, pain="", ill=1) for i in range(5))
    assert concerns(read(tmp_path, HEAD + lines)) == [
        (Concern.ZEROS, "chol", 5, 5),
        (Concern.CONSTANT, "oldpeak", 5, 5),
        (Concern.ALL_MISSING, "pain", 5, 5),
        (Concern.ONE_CLASS, "ill", 5, 5),
    ]
    absent = read(tmp_path, HEAD + lines, "[columns]\npain = { absent = true }\n")
    assert Concern.ALL_MISSING not in [one.concern for one in absent.findings]
    assert absent.columns[3].missing == 5


def test_natural_zeros_are_of_no_concern(tmp_path: Path) -> None:
    """For a yes and a no, and for small counts."""
    yes_and_no = "".join(rows(age=40 + i / 3, chol=i % 2, oldpeak=i, ill=i % 2) for i in range(40))
    counts = "".join(rows(age=40 + i / 3, chol=i % 4, oldpeak=i, ill=i % 2) for i in range(40))
    for lines in (yes_and_no, counts):
        assert Concern.ZEROS not in [one.concern for one in read(tmp_path, HEAD + lines).findings]


records = st.lists(
    st.tuples(
        st.floats(-50, 150) | st.just("?"), st.floats(0, 700), st.floats(-5, 9) | st.just(""),
        st.sampled_from(["?", 1, 2, 3, 4]), st.integers(0, 1),
    ),
    min_size=1, max_size=20,
)  # fmt: skip


@given(records)
def test_preview_is_what_the_node_will_send(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[object, ...]]
) -> None:
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_text(HEAD + "".join(",".join(map(str, line)) + "\n" for line in lines))
    schema = of_kind(TableSchema, SPEC.data)
    raw = read_raw(path, schema)
    found = KIND.profile(raw, SPEC)
    shown = np.array([[one.known, one.total, one.squares] for one in found.statistics]).T.ravel()
    np.testing.assert_array_equal(shown, sums_of(encoded(raw, schema), schema))
    assert [one.column for one in found.statistics] == ["age", "chol", "oldpeak", "pain = 2", "pain = 3"]
    assert len(shown) == SPEC.statistics_values
    for column in found.columns:
        assert column.missing + column.unknown <= found.rows
    assert max(map(len, said(found).splitlines())) <= WIDTH


def test_preview_counts_what_an_update_takes(tmp_path: Path) -> None:
    words = " ".join(said(read(tmp_path, HEAD + GOOD)).split())
    assert "rounds 1 to 7 the change of 57 parameters" in words  # 5 * 8 + 8 + 9
    assert "rounded to 16 bits" in words
    assert f"rounded to multiples of {65_536 / 2**39:.2g}; 1 blob of 128 KiB; masked" in words
    assert words.count("1 blob of 128 KiB") == 2  # in round 0, and in each later one


@pytest.mark.parametrize("privacy", [None, {"epsilon": 3.0, "delta": 1e-6, "max_grad_norm": 1.0}])
def test_a_task_that_scales_by_its_schema_is_shown_to_take_nothing_of_the_rows_in_round_0(
    tmp_path: Path, privacy: dict[str, float] | None
) -> None:
    spec = TaskSpec.model_validate(SPEC.model_dump() | {"statistics": "schema", "privacy": privacy})
    found = read(tmp_path, HEAD + GOOD, spec=spec)
    assert found.statistics == ()
    shown = " ".join(said(found).split())
    assert "Σu" not in shown
    assert "round 0 nothing about these rows" in shown
    assert ("epsilon 3 at delta 1e-06" in shown) == (privacy is not None)
    assert "epsilon" not in said(read(tmp_path, HEAD + GOOD))


def test_representation_holds_no_values(tmp_path: Path) -> None:
    """If a log gets one by accident."""
    shown = repr(read(tmp_path, HEAD + GOOD + rows(age=31.4159, chol=1.4142)))
    assert "name='chol'" in shown
    assert [value for value in ("31.4159", "1.4142", str(10 / 21), "('ill', 11)") if value in shown] == []


def said(found: TableProfile) -> str:
    console = Console(width=WIDTH, file=io.StringIO(), record=True)
    console.print(screen(found))
    return console.export_text()


def test_screen_shows_the_table_and_what_leaves(tmp_path: Path) -> None:
    text = said(
        read(
            tmp_path,
            "name,Alter,chol,oldpeak,pain,ill\n" + "".join(f"Maier [red],{line}\n" for line in GOOD.splitlines())
            + "Huber,?,0,1,9,1\n",
            '[columns]\nage = "Alter"\n',
        )
    )  # fmt: skip
    words = " ".join(text.split())
    for expected in (
        "21 rows",
        "10 healthy (48%), 11 ill (52%)",
        "not read: 1 column(s) of the file (name)",
        "Alter",
        "20 to 90",
        "1 (5%)",
        "1 of 21: zeros that look like missing values",
        "1 of 21: codes that the task does not know",
        "pain = 2",
        "the number of rows, 21, in public",
        "the 15 sums above",
        "rounds 1 to 7",
        "57 parameters",
        "1 blob of 128 KiB",
        "masked: no other party can read it",
    ):
        assert expected in words
    assert "Maier" not in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_screen_says_where_nothing_is_masked(tmp_path: Path) -> None:
    bare = SPEC.model_copy(update={"update": SPEC.update.model_copy(update={"masked": False})})
    words = " ".join(said(read(tmp_path, HEAD + GOOD, spec=bare)).split())
    assert "NOT masked: the aggregator reads it" in words
    assert "No problem found" in words


@pytest.mark.skipif(not HEART.is_dir(), reason=f"no UCI heart files at {HEART}")
def test_swiss_cholesterol_is_a_concern() -> None:
    spec = parse_task_spec(
        b"""
name = "heart"
[data]
label = "disease"
classes = ["healthy", "disease"]
features = [
  { name = "trestbps", min = 60, max = 220 },
  { name = "chol", min = 0, max = 650 },
  { name = "fbs", min = 0, max = 1 },
]
[model]
name = "logistic"
"""
    )
    schema = of_kind(TableSchema, spec.data)
    mapping = parse_mapping(
        b"""
[file]
header = false
[columns]
trestbps = 4
chol = 5
fbs = 6
disease = { column = 14, codes = { "0" = 0, "1" = 1, "2" = 1, "3" = 1, "4" = 1 } }
""",
        schema,
    )
    found = {
        name: KIND.profile(read_raw(HEART / f"processed.{name}.data", schema, mapping), spec)
        for name in ("cleveland", "switzerland", "va")
    }
    assert Finding(Concern.ZEROS, "chol", 123, 123) in found["switzerland"].findings
    assert Finding(Concern.MOSTLY_MISSING, "fbs", 75, 123) in found["switzerland"].findings
    assert Finding(Concern.ZEROS, "chol", 49, 200) in found["va"].findings
    assert Finding(Concern.ZEROS, "trestbps", 1, 200) in found["va"].findings
    assert Finding(Concern.OUTSIDE, "trestbps", 1, 200) in found["va"].findings
    assert not [one for one in found["cleveland"].findings if one.concern is Concern.ZEROS]
    assert found["cleveland"].source.left_aside == 10
