"""A task's rounds in one process: by the nodes' code, on given rows."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from consilium_chain.ledger.structs import members
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.data.examples import Examples
from consilium_client.data.table.reader import Table
from consilium_client.hospital.learning import Updates
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import deal_wdbc, examples_of
from consilium_lab.demo.references import row_weight
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_lab.errors import LabError
from consilium_lab.simulation import record
from consilium_lab.simulation.run import PlayedRound, Simulation, simulate
from consilium_zk.blobs import combine
from numpy.typing import NDArray
from raised_faults import raises_fault
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

PHASES = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 600)
TASK = """
name = "who will fall ill"
[data]
label = "ill"
classes = ["no", "yes"]
[[data.features]]
name = "age"
min = 0
max = 100
[model]
name = "logistic"
[training]
epochs = 2
learning_rate = 0.5
[rounds]
rounds = 5
cohorts = 1
min_hospitals = 3
max_hospitals = 3
[judging]
seats = 2
max_voters = 2
min_reveals = 1
"""


def named(parts: list[Examples], kind: str) -> dict[str, Examples]:
    return {f"{kind}-{index}": part for index, part in enumerate(parts)}


class Dealt:
    """The demo's rows: three hospitals, two voters."""

    def __init__(self, **settings: Any) -> None:
        self.data = deal_wdbc(3, 2, 0)
        chosen: dict[str, Any] = {"rounds": 4, "cohorts": 1, "seats": 2, "windows": PHASES} | settings
        given = TaskSettings(**chosen)
        self.raw = task_toml(self.data, given).encode()
        self.hospitals = named(examples_of(self.data.hospitals, self.data.schema), "hospital")
        self.voters = named(examples_of(self.data.held_out, self.data.schema), "voter")

    def play(self, seed: int = 0, compared: bool = False) -> Simulation:
        return simulate(self.raw, self.hospitals, self.voters, seed, compared=compared)


@pytest.fixture(scope="module")
def dealt() -> Dealt:
    return Dealt()


@pytest.fixture(scope="module")
def played(dealt: Dealt) -> Simulation:
    return dealt.play(compared=True)


def together(parts: dict[str, Examples]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    tables = [of_kind(Table, part) for part in parts.values()]
    return np.concatenate([one.features for one in tables]), np.concatenate([one.labels for one in tables])


def test_it_is_as_good_as_scikit_learn_on_all_rows(dealt: Dealt, played: Simulation) -> None:
    (x, y), (test_x, test_y) = together(dealt.hospitals), together(dealt.voters)
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(max_iter=1_000).fit(scaler.transform(x), y)
    reference = accuracy_score(test_y, model.predict(scaler.transform(test_x)))
    assert played.rounds[-1].metrics["accuracy"] > reference - 0.04
    assert abs(played.rounds[-1].metrics["accuracy"] - played.references.pooled["accuracy"]) < 0.04
    assert played.rounds[-1].metrics["log_loss"] < played.start["log_loss"] / 2


def test_money_is_the_contracts(played: Simulation) -> None:
    pool = played.spec.money.pool * TOKEN
    assert 0 < sum(played.paid.values()) <= pool
    assert set(played.slashed.values()) == {0}
    assert played.paid["hospital-0"] > played.paid["hospital-2"], "it has more rows"
    assert all(one.settlement.accepted == 1 for one in played.rounds)
    assert all(one.settlement.decoy_medians[0] < one.settlement.medians[0] for one in played.rounds[:2])


def test_the_same_seed_gives_the_same_cohorts() -> None:
    dealt = Dealt(cohorts=2, masked=False, rounds=2)
    first, again, other = (dealt.play(seed) for seed in (1, 1, 2))
    cohorts = [[one.cohorts for one in found.rounds] for found in (first, again, other)]
    assert cohorts[0] == cohorts[1] != cohorts[2]


@pytest.mark.parametrize("cohorts", [1, 3])
def test_the_next_base_is_the_weighted_mean_within_a_quantiser_step(
    dealt: Dealt, monkeypatch: pytest.MonkeyPatch, cohorts: int
) -> None:
    """With updates that are known, and all accepted."""
    own = Dealt(cohorts=cohorts, masked=False, rounds=1)
    for name, value in (("accept_floor", -1.0), ("harmful_below", -2.0)):
        own.raw = re.sub(f"{name} = .*".encode(), f"{name} = {value}".encode(), own.raw)
    spec = parse_task_spec(own.raw)
    updates = {part.rows: 0.01 * (1 + index) for index, part in enumerate(own.hospitals.values())}
    monkeypatch.setattr(Updates, "learn", lambda own, round_, base, rows, *_: np.full(len(base), updates[len(rows[1])]))
    found = simulate(own.raw, own.hospitals, own.voters, compared=False)
    weights = [row_weight(part.rows, spec) for part in own.hospitals.values()]
    taken = [index for k in members(found.rounds[0].settlement.accepted) for index in found.rounds[0].cohorts[k]]
    assert len(taken) == 3, "all are accepted"
    means = [list(updates.values())[index] for index in taken]
    expected = np.average(means, weights=[weights[index] for index in taken])
    step = spec.update.value_range / (2 ** (spec.update.bits - 1) - 1)
    assert np.abs(found.model - expected).max() < 2 * step


def test_a_poisoner_alone_in_its_cohort_is_rejected_and_earns_nothing() -> None:
    dealt = Dealt(cohorts=3, masked=False)
    honest = dealt.hospitals["hospital-2"]
    poisoned = dataclasses.replace(honest, labels=1 - honest.labels)
    found = simulate(dealt.raw, dealt.hospitals | {"hospital-2": poisoned}, dealt.voters, compared=False)
    for one in found.rounds:
        (own,) = (k for k, cohort in enumerate(one.cohorts) if cohort == [2])
        assert not one.settlement.accepted >> own & 1
    assert found.paid["hospital-2"] == 0 < found.slashed["hospital-2"]
    assert min(found.paid["hospital-0"], found.paid["hospital-1"]) > 0


def test_a_hospital_without_a_bond_left_is_out_of_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on chain, where the slash that takes the rest of a bond ends its owner's part."""
    dealt = Dealt(cohorts=3, masked=False)
    honest = dealt.hospitals["hospital-2"]
    poisoned = dataclasses.replace(honest, labels=1 - honest.labels)
    dealt.raw = re.sub(rb"harmful_slash_bps = .*", b"", dealt.raw)
    dealt.raw = dealt.raw.replace(b"[money]", b"[money]\nharmful_slash_bps = 10_000")
    found = simulate(dealt.raw, dealt.hospitals | {"hospital-2": poisoned}, dealt.voters, compared=False)
    assert found.slashed["hospital-2"] == found.spec.money.hospital_bond * TOKEN
    assert [sorted(index for cohort in one.cohorts for index in cohort) for one in found.rounds] == [[0, 1, 2]] + [
        [0, 1]
    ] * 3


def test_private_tasks_train_with_noise() -> None:
    dealt = Dealt(epsilon=8.0, rounds=2)
    first, again = dealt.play(), dealt.play()
    assert first.spec.privacy is not None
    assert not np.array_equal(first.model, again.model)
    assert first.rounds[-1].metrics["accuracy"] > 0.6


def test_a_sum_that_is_not_the_committed_one_is_named(dealt: Dealt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "combine", lambda blobs, factors: combine(blobs, [factors[0] + 1, *factors[1:]]))
    with raises_fault(LabError, "SumMismatched"):
        dealt.play()


def test_numbers_of_parties_are_the_tasks(dealt: Dealt) -> None:
    with raises_fault(LabError, "SimulationInvalid", match="1 hospitals take part, and the task needs 3 to"):
        simulate(dealt.raw, {"a": dealt.hospitals["hospital-0"]}, dealt.voters)
    with raises_fault(LabError, "SimulationInvalid", match="--voter"):
        simulate(dealt.raw, dealt.hospitals, {})


def rows(path: Path, count: int, seed: int) -> Path:
    random = np.random.default_rng(seed)
    ages = random.integers(20, 90, count)
    path.write_text("age,ill\n" + "".join(f"{age},{int(age > 55)}\n" for age in ages))
    return path


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "task.toml").write_text(TASK)
        for seed, name in enumerate("abcvw"):
            rows(folder / f"{name}.csv", 60, seed)
        (folder / "one.csv").write_text("age,ill\n40,1\n50,1\n")
        (folder / "other.csv").write_text("years,ill\n40,1\n50,0\n")
        (folder / "years.toml").write_text('[columns]\nage = { column = "years" }\n')

    def run(self, text: str) -> Result:
        given = [part.replace("@", f"{self.folder}/") for part in text.split()]
        return CliRunner().invoke(app, ["simulate", *given], env={"COLUMNS": "80"})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


ALL = "@task.toml --site A=@a.csv --site B=@b.csv --site C=@c.csv --voter V=@v.csv --voter W=@w.csv"


def test_the_command_shows_rounds_and_money_in_80_columns(desk: Desk) -> None:
    ran = desk.run(f"{ALL} --output @result/r.json")
    assert ran.exit_code == 0, ran.output
    assert all(len(line) <= 80 or str(desk.folder) in line for line in ran.output.splitlines())
    for words in (
        "together 0.",
        "all rows in one place 0.",
        "accuracy alone",
        "aggregator",
        "Next: consilium operator",
    ):
        assert words in ran.output
    found = json.loads((desk.folder / "result" / "r.json").read_text())
    assert found["rounds"][0]["accepted"] == [True]
    assert found["rounds"][-1]["metrics"]["accuracy"] > 0.85
    assert sum(map(int, found["paid"].values())) > 0


def test_a_mapping_is_of_the_party_that_it_names(desk: Desk) -> None:
    ran = desk.run(f"{ALL.replace('C=@c', 'C=@other')} --mapping C=@years.toml")
    assert ran.exit_code == 0, ran.output


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ALL.replace("A=@a.csv", "@a.csv"), "is not NAME=PATH"),
        (ALL.replace("B=@b.csv", "A=@b.csv"), "the name 'A' is given twice"),
        (ALL.replace("@a.csv", "@none.csv"), "does not exist"),
        (ALL.replace("V=@v.csv", "A=@v.csv"), "A is a site, too"),
        (ALL + " --mapping X=@a.csv", "X is neither a site nor a voter"),
    ],
)
def test_what_is_mistyped_is_named(desk: Desk, given: str, words: str) -> None:
    ran = desk.run(given)
    assert ran.exit_code == 2
    assert words in " ".join(ran.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (ALL.replace("@task.toml", "@none.toml"), "SpecInvalid"),
        (ALL.replace(" --site C=@c.csv", ""), "SimulationInvalid"),
        (ALL.replace("@c.csv", "@other.csv"), "ColumnsWrong"),
        (ALL.replace("@v.csv", "@one.csv"), "OneClassOnly"),
    ],
)
def test_what_does_not_fit_is_an_error_of_its_own_name(desk: Desk, given: str, name: str) -> None:
    ran = desk.run(given)
    assert getattr(ran.exception, "name", type(ran.exception).__name__) == name


def test_economics_is_still_its_own_command(desk: Desk) -> None:
    assert "honesty" in desk.run("economics --help").output
    assert "--site" in desk.run("task --help").output
    assert "No such command 'economic'" in desk.run("economic").output


def test_each_round_is_told_as_it_is_played(dealt: Dealt) -> None:
    told: list[PlayedRound] = []
    found = simulate(dealt.raw, dealt.hospitals, dealt.voters, on_round=told.append)
    assert told == found.rounds
