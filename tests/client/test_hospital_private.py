"""Hospitals' nodes in a private task on a real chain: charged before they train, refused when it is spent, and what all
standardise by is nobody's rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome
from consilium_chain.rounds.machine import Step
from consilium_client.data.standardise import Standardiser, public_sums
from consilium_client.data.table.reader import Table
from consilium_client.errors import BudgetError, OwnersRefusal
from consilium_client.hospital.node import HospitalNode
from consilium_client.monitoring.figures import NodeMetrics
from consilium_client.privacy.dp_sgd import epsilon, plan
from consilium_core.errors import KeystoreError
from consilium_core.kinds import of_kind
from consilium_core.logs import log_to
from consilium_core.private_files import write_private_file
from consilium_verify.report import Name, Result
from consilium_verify.verification import verify_round
from consilium_zk.quantise import Quantiser
from hospital_driver import take
from raised_faults import raises_fault
from training_driver import GOOD, ROWS, TrainingTask, propose, task_file

PRIVACY = """
[privacy]
epsilon = 4.0
max_grad_norm = 1.0
"""


def propose_private(
    chain: LocalChain, folder: Path, privacy: str = PRIVACY, known: Sequence[Ledger] = ()
) -> TrainingTask:
    return propose(chain, folder, task_file(privacy), known)


@pytest.fixture
def task(local_chain: LocalChain, tmp_path: Path) -> TrainingTask:
    return propose_private(local_chain, tmp_path)


def events(capsys: pytest.CaptureFixture[str], *kinds: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["event"] in kinds]


def test_a_private_task_is_charged_round_by_round_and_ends_at_its_epsilon(
    task: TrainingTask, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = task.spec
    assert spec is not None
    assert spec.privacy is not None
    nodes = [task.start(index) for index in range(2)]
    task.join(rows=ROWS).first_round()
    assert [task.spent(index).charges() for index in range(2)] == [[], []]  # round 0 holds nothing of anybody's
    quantiser = Quantiser(40, 65_536.0)
    assert (task.updates[0, 0].lanes == quantiser.quantise(public_sums(spec.data), None)).all()
    own = Standardiser.from_sums(public_sums(spec.data))
    for node in nodes:
        np.testing.assert_array_equal(node.training.inputs, own.transform(of_kind(Table, node.training.examples)))
    report = verify_round(Ledger(task.operator.connection, task.chain.deployment), task.store, task.task, 0)
    assert report.holds
    assert {check.name: check.result for check in report.checks}[Name.MODEL] is Result.HOLDS
    capsys.readouterr()
    for round_ in (1, 2):
        task.form()
        for index in range(2):
            task.start(index)  # a node that starts anew knows what was spent
        task.play_round()
        mechanisms = [plan(spec, spec.privacy, rows) for rows in ROWS]
        costs = [epsilon([one] * round_, 1e-5) for one in mechanisms]
        assert [(line["round"], line["epsilon"], line["of"]) for line in events(capsys, "privacy")] == [
            (round_, cost, 4.0) for cost in costs
        ]
    assert all(3.99 <= cost <= 4.0 for cost in costs)
    metrics = NodeMetrics(task.start(0)._watched)  # a node that starts anew knows it here, too
    metrics.read_epsilon()
    at = {"task": str(task.task)}
    known = [metrics.registry.get_sample_value(f"consilium_node_{name}", at) for name in ("epsilon", "epsilon_budget")]
    assert known == [costs[0], 4.0]
    place = nodes[0].ledger.folder_name(task.task)
    assert [(one.task, one.round, one.mechanism) for one in task.spent(0).charges()] == [
        (place, round_, mechanisms[0]) for round_ in (1, 2)
    ]


def test_a_round_that_a_crash_undid_is_trained_again_and_charged_once(
    task: TrainingTask, capsys: pytest.CaptureFixture[str]
) -> None:
    task.start(0), task.start(1)
    task.join(rows=ROWS).first_round().form()
    first = task.made(0)
    (kept,) = (task.homes[0].home / "pending").rglob("round-1")
    kept.unlink()  # as if it had died in between
    task.start(0)
    again = task.made(0)
    assert first is not None
    assert again is not None
    assert first.blobs != again.blobs
    assert len(task.spent(0).charges()) == 1
    assert len({line["epsilon"] for line in events(capsys, "privacy")}) == 1


def test_a_training_rounds_update_outlasts_a_restart_though_training_is_never_the_same_twice(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    task = propose_private(local_chain, tmp_path, privacy="")
    task.start(0), task.start(1)
    task.join(rows=ROWS).first_round().form()
    first = task.made(0)
    assert first is not None
    base = task.running[0].training.record.base(1)
    trained = task.running[0].local_update(1, base)
    task.start(0)
    assert task.made(0) == first
    # Two seeds may well give so small a model the same bits; five do not.
    again = [task.running[0].local_update(1, base) for _ in range(5)]
    assert any(not np.array_equal(one, trained) for one in again)
    task.play_round()
    assert task.operator.tasks.round_state(task.task, 1).outcome is Outcome.SETTLED


def test_a_hospital_that_has_spent_its_limit_sits_out_lives_and_does_not_come_back(
    task: TrainingTask, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = task.spec
    assert spec is not None
    assert spec.privacy is not None
    one_round = epsilon([plan(spec, spec.privacy, ROWS[0])], 1e-5)
    task.start(0, max_epsilon=one_round)
    task.start(1)
    task.join(rows=ROWS).first_round().form()
    task.play_round()
    before = task.spent(0).charges()
    task.form().start(0, max_epsilon=one_round)
    capsys.readouterr()
    node = task.running[0]
    node.link.reached.set()
    take(node, Step.TRAIN)
    (refusal, failure) = events(capsys, "over-budget", "round-failed")
    assert refusal["spent"] == refusal["allowed"] == one_round < refusal["would_be"]
    assert failure["error"] == "BudgetExceeded"
    assert task.made(0) is None
    assert task.spent(0).charges() == before
    task.commit_all(only=[1]).pass_deadline()
    task.tick().publish(survivors=[1])
    task.draw().judge(GOOD)
    assert not task.operator.tasks.state(task.task).active_hospitals & 1
    nonce = node.ledger.connection.ether()
    take(node, Step.RESUME)
    assert node.ledger.connection.ether() == nonce  # no transaction


def test_a_hospital_stakes_nothing_on_a_task_that_it_cannot_see_to_its_end(task: TrainingTask) -> None:
    node = task.start(0, max_epsilon=3.0)
    with raises_fault(BudgetError, "BudgetExceeded") as caught:
        node.join()
    assert (caught.value.values["whose"], caught.value.values["allowed"]) == ("this hospital", 3.0)
    assert task.operator.tasks.hospitals(task.task) == []


def test_a_hospital_with_a_limit_takes_no_part_in_tasks_without_privacy(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    task = propose_private(local_chain, tmp_path, privacy="")
    with raises_fault(OwnersRefusal, "NotAllowed", match="not private") as caught:
        task.start(0, max_epsilon=8.0)
    assert "; " not in caught.value.values["objections"]
    assert task.start(0).training.privacy.rounds is None


def test_rows_held_out_are_not_trained_on_and_show_what_each_base_is_worth(
    task: TrainingTask, capsys: pytest.CaptureFixture[str]
) -> None:
    task.start(0), task.start(1)
    task.join(rows=ROWS).first_round()
    settings = task.homes[0].model_copy(update={"held_out": 0.4})
    node, again = HospitalNode(settings), HospitalNode(settings)
    assert node.training.own_test is not None
    assert again.training.own_test is not None
    assert node.training.examples.rows + node.training.own_test.rows == ROWS[0]
    assert 0 < node.training.own_test.rows < ROWS[0]
    assert len(node.training.inputs) == node.training.examples.rows
    np.testing.assert_array_equal(  # the same after a restart
        again.training.own_test.labels, node.training.own_test.labels
    )
    assert (settings.home / "split.salt").stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    shown: list[tuple[str, Mapping[str, object]]] = []
    with log_to(lambda *_: None, lambda *hint: shown.append(hint)):
        node.training.show_worth(0)
        node.training.show_worth(1)
    ((event, fields),) = shown
    assert (event, fields["round"], fields["rows"]) == ("worth", 1, node.training.own_test.rows)
    assert fields["log_loss"] == pytest.approx(np.log(2))  # a logistic model starts at zero
    node.training.show_worth(1)
    assert capsys.readouterr().out == ""  # what is not on a screen is nowhere


def test_a_salt_that_was_overwritten_is_named_and_not_quoted(task: TrainingTask) -> None:
    settings = task.homes[0].model_copy(update={"held_out": 0.4})
    task.start(0)
    write_private_file(settings.home / "split.salt", "not hexadecimal")
    with pytest.raises(KeystoreError, match="must contain 32 hexadecimal digits") as caught:
        HospitalNode(settings)
    assert "not hexadecimal" not in str(caught.value)
