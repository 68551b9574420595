"""`consilium arena` and `consilium task new --arena`: ranks on a real chain, and a drafted arena."""

from __future__ import annotations

import json
from pathlib import Path

import consilium
import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.ledger.structs import Phase
from consilium_cli.main import app
from consilium_operators.errors import OperatorError
from raised_faults import raises_fault
from typer.testing import CliRunner

FLOOR = 300
POOL = 100_000


def ran(chain: LocalChain, folder: Path, *arguments: str) -> str:
    book = folder / "book.json"
    chain.deployment.write(book)
    options = ["--rpc", chain.node.url, "--address-book", str(book)]
    found = CliRunner().invoke(app, ["arena", *arguments, *options], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def by_cohort(task: TaskDriver, medians: list[int]) -> list[int]:
    """Scores by cohort of the medians by hospital."""
    return [medians[task.cohort(cohort)[0]] for cohort in range(len(medians))]


def test_ranks_and_pay_are_those_of_the_chain(local_chain: LocalChain, tmp_path: Path) -> None:
    terms = {"cohorts": 4, "rank_decay_bps": 8_500, "rank_floor": FLOOR, "pool": POOL, "max_weight": 1}
    task = TaskDriver(local_chain, hospitals=4, terms=terms).join().first_round().form()
    nodes = [node.address for node in task.nodes]
    assert "0 of 2 rounds are settled; round 1 is committing" in ran(local_chain, tmp_path, str(task.task))
    task.commit_all().publish()
    task.draw().judge([by_cohort(task, [FLOOR - 1, 9_000, FLOOR, 20_000])])
    task.form().commit_all([0, 1, 3])
    task.pass_deadline()
    task.tick().publish()
    task.draw()
    open_ = json.loads(ran(local_chain, tmp_path, str(task.task), "--json"))
    assert (open_["round"], open_["phase"], open_["floor"]) == (2, "scoring", 0.0003)
    assert [one["trainer"] for one in open_["trainers"]] == [nodes[3], nodes[1], nodes[2], nodes[0]]
    assert [[found["rank"] for found in one["rounds"]] for one in open_["trainers"]] == [[1], [2], [3], [None]]
    assert open_["trainers"][0]["rounds"][0]["improvement"] == 0.02

    task.judge([[{0: 70_000, 1: -9, 3: 500}.get(task.cohort(c)[0], 0) for c in range(4)]])
    assert task.phase is Phase.ENDED
    found = consilium.arena(task.task, rpc=local_chain.node.url, address_book=tmp_path / "book.json")
    by_address = {one.address: one for one in found.trainers}
    assert [by_address[node].wins for node in nodes] == [1, 0, 0, 1]
    second = [by_address[node].results[1] for node in nodes]
    assert [one and one.rank for one in second] == [1, None, None, 2]
    assert [one is None for one in second] == [False, False, True, False]  # it sent no update
    for node in nodes:
        earned = sum(local_chain.treasury.tasks.explain(task.task, round_, node).reward for round_ in (1, 2))
        assert by_address[node].earned == earned
    results = [by_address[node].results[0] for node in (nodes[3], nodes[1], nodes[2])]
    first = [one.reward for one in results if one is not None]
    whole = sum(first)
    assert [round(one / whole, 3) for one in first] == [0.389, 0.330, 0.281]
    assert "it has ended" in ran(local_chain, tmp_path, str(task.task))


def test_another_task_is_named(local_chain: LocalChain, tmp_path: Path) -> None:
    task = TaskDriver(local_chain)
    local_chain.deployment.write(tmp_path / "book.json")
    with raises_fault(OperatorError, "NotAnArena"):
        consilium.arena(task.task, rpc=local_chain.node.url, address_book=tmp_path / "book.json")


@pytest.mark.parametrize("extra", [[], ["--metric", "auc"], ["--epsilon", "8"]])
def test_a_drafted_arena_is_one(tmp_path: Path, extra: list[str]) -> None:
    rows = "\n".join(f"{50 + n % 7},{n % 3},{n % 2}" for n in range(60))
    (tmp_path / "rows.csv").write_text(f"age,stage,died\n{rows}\n")
    output = tmp_path / "task.toml"
    command = ["task", "new", "--from", str(tmp_path / "rows.csv"), "--output", str(output), "--arena", "8", "--yes"]
    found = CliRunner().invoke(app, [*command, *extra], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    spec = consilium.Task.read(output).spec
    assert spec.is_arena
    assert (spec.rounds.cohorts, spec.rounds.max_hospitals, spec.rounds.max_weight) == (8, 8, 1)
    assert spec.money.rank_decay_bps == 8_500
    assert not spec.update.masked
    consilium.Task.read(output).require_fair()
