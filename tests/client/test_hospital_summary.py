"""A task's summary by hospitals' nodes on a real chain: masked sums, noise drawn once, its cost, and the start."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome
from consilium_chain.tasks.summary_counts import columns_of, summed_counts
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE
from consilium_cli.main import app
from consilium_client.data.examples import joined
from consilium_client.data.summary import counts_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import ClientError
from consilium_client.hospital.audit_log import AUDIT_FILE, Counted, parse_log
from consilium_client.models import model_of
from consilium_client.privacy.dp_sgd import epsilon, of_summary, plan
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_core.kinds import of_kind
from consilium_operators.errors import OperatorError
from consilium_operators.summary import summarised
from consilium_verify.verification import verify_round
from consilium_zk.packing import pack, unpack
from consilium_zk.quantise import Quantiser
from hospital_driver import start
from raised_faults import raises_fault
from test_hospital_masks import answer, fix, summed, uploads
from training_driver import ROWS, TrainingTask, propose, task_file
from typer.testing import CliRunner

NOISY = "[summary]\nbins = 12\nepsilon = 1.0\n"
COUNTED = '[summary]\nbins = 12\n[start]\nname = "seed"\ncounted = true\n'


def test_masked_sums_are_the_counts_of_all_rows_together(local_chain: LocalChain, tmp_path: Path) -> None:
    round_ = start(local_chain, tmp_path, 3, masked=True, sections="[summary]\nbins = 6\n", summaries="exact")
    nodes = [round_.node(index) for index in range(3)]
    spec = nodes[0].task.spec
    parts = uploads(round_, nodes)
    answers = fix(round_, [0, 1, 2])
    answers.take({node.index: answer(round_, node) for node in nodes})
    total = summed(round_, parts, answers)
    lanes = unpack(total.blobs, spec.statistics_values, spec.statistics_layout, 3)
    sums = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).dequantise_sum(lanes, 3)
    pooled = joined([node.training.examples for node in nodes])
    np.testing.assert_array_equal(summed_counts(sums, spec), counts_of(pooled, spec))
    entries = parse_log((round_.settings[0].home / AUDIT_FILE).read_bytes())
    (entry,) = (one for one in entries if isinstance(one, Counted))
    assert (entry.task, entry.counts, entry.variance) == (round_.task, spec.summary_values, 0)


def reader(task: TrainingTask) -> PublicRecord:
    ledger = Ledger(task.operator.connection, task.chain.deployment)
    return PublicRecord(ledger, task.store, load_task(ledger, task.store, task.task))


def test_noise_is_drawn_once_whatever_happens_before_it_leaves(local_chain: LocalChain, tmp_path: Path) -> None:
    task = propose(local_chain, tmp_path, task_file(NOISY))
    spec = task.spec
    assert spec is not None
    task.start(0), task.start(1)
    task.join(rows=ROWS)
    first = task.make_update(0).lanes
    exact = counts_of(task.running[0].training.examples, spec)
    step = Quantiser(STATISTICS_BITS, STATISTICS_RANGE)
    drawn = summed_counts(step.dequantise_sum(first, 1), spec) - exact
    assert 0 < np.abs(drawn).max() < 8 * np.sqrt(spec.summary_variance)
    (kept,) = (task.homes[0].home / "pending").rglob("round-0")
    kept.unlink()  # as if it had died in between; and the rows change
    rows = task.homes[0].data.read_text().splitlines()
    task.homes[0].data.write_text("\n".join(rows[:-3]) + "\n")
    task.start(0)
    np.testing.assert_array_equal(task.make_update(0).lanes, first)
    assert [(one.round, one.mechanism) for one in task.spent(0).charges()] == [(0, of_summary(spec))]
    task.commit_all().publish()
    counts, hospitals = reader(task).summary()
    assert hospitals == 2
    assert np.abs(counts - exact - counts_of(task.running[1].training.examples, spec)).max() < 200


def test_a_private_task_with_a_noisy_summary_ends_at_its_epsilon(local_chain: LocalChain, tmp_path: Path) -> None:
    privacy = "[privacy]\nepsilon = 4.0\nmax_grad_norm = 1.0\n"
    task = propose(local_chain, tmp_path, task_file(privacy + NOISY, rounds=1))
    spec = task.spec
    assert spec is not None
    assert spec.privacy is not None
    task.start(0), task.start(1)
    task.join(rows=ROWS).first_round().form()
    task.play_round()
    counted, trained = of_summary(spec), plan(spec, spec.privacy, ROWS[0])
    assert counted is not None
    assert [(one.round, one.mechanism) for one in task.spent(0).charges()] == [(0, counted), (1, trained)]
    assert 3.9 < epsilon([counted, trained], 1e-5) <= 4.0
    assert 0.9 < epsilon([counted], 1e-5) <= 1.0
    (task.homes[0].home / "privacy.jsonl").unlink()  # lost: the chain knows of both rounds
    task.start(0)
    assert sorted((one.round, one.mechanism) for one in task.spent(0).charges()) == [(0, counted), (1, trained)]


def test_everybody_starts_from_the_counted_base_rate(local_chain: LocalChain, tmp_path: Path) -> None:
    task = propose(local_chain, tmp_path, task_file(COUNTED, rounds=1))
    nodes = [task.start(index) for index in range(2)]
    task.join(rows=ROWS)
    before = nodes[0].training.record.base_digest(0)
    task.first_round().form()
    rows = joined([node.training.examples for node in nodes])
    record = reader(task)
    own, spec = model_of(nodes[0].task.spec), nodes[0].task.spec
    found = own.evaluate(record.base(1), np.zeros((1, *own.input_shape), np.float32)).predictions
    assert found[0, 1] == pytest.approx(rows.labels.mean(), abs=1e-6)
    assert (record.base_digest(0), record.base_digest(1) == before) == (before, False)
    (answers,) = (one for one in columns_of(record.summary()[0], spec) if one.part.answers)
    assert answers.counts.tolist() == np.bincount(rows.labels).tolist()
    task.play_round()
    ledger = Ledger(task.operator.connection, task.chain.deployment)
    for round_ in (0, 1):
        assert verify_round(ledger, task.store, task.task, round_).holds
    shown = summarised(ledger, task.store, task.task)
    assert (shown.hospitals, shown.rows, shown.deviation) == (2, rows.rows, 0)
    age, sick = shown.columns
    assert [sum(count for _, count in one.counts) for one in (age, sick)] == [rows.rows, rows.rows]
    assert age.missing == 0
    assert age.quartiles is not None
    exact = np.quantile([120 * one for (one,) in of_kind(Table, rows).features], [0.25, 0.5, 0.75])
    np.testing.assert_allclose(age.quartiles, exact, atol=10)
    home = task.homes[0]
    common = [
        "operator", "statistics", str(task.task), "--artifacts", str(task.folder / "artifacts"), "--rpc",
        str(home.chain_url), "--address-book", str(home.deployment),
    ]  # fmt: skip
    picture = tmp_path / "summary.png"
    told = CliRunner().invoke(app, [*common, "--picture", str(picture)], catch_exceptions=False)
    assert f"{rows.rows} rows of 2 hospitals; exact counts, without noise" in told.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    as_json = CliRunner().invoke(app, [*common, "--json"], catch_exceptions=False)
    assert json.loads(as_json.stdout)["columns"][1]["counts"] == [list(one) for one in sick.counts]
    lost = ArtifactStore(tmp_path / "lost")
    lost.put_file(task.store.get_file(task.params.spec_hash))
    with raises_fault(OperatorError, "SummaryNotVerified", match=f"consilium verify {task.task} 0"):
        summarised(ledger, lost, task.task)


def test_a_hospital_with_an_impossible_count_stops_the_summary_and_not_the_task(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    task = propose(local_chain, tmp_path, task_file(COUNTED, rounds=1))
    nodes = [task.start(index) for index in range(2)]
    task.join(rows=ROWS)
    layout, others = nodes[0].task.spec.statistics_layout, task.make_update(0).lanes
    lanes = np.full_like(others, layout.max_sum(1) // 2)
    lanes[5] = (1 << layout.lane_bits) - 1 - int(others[5])
    task.commit(0)
    task.commit(1, task.update_of(1, 0, lanes, pack(lanes, layout, total_weight=2)))
    task.publish()
    record = reader(task)
    with raises_fault(ClientError, "StatisticsOutOfRange"):
        record.summary()
    assert record.base_digest(1) == record.base_digest(0)
    task.form().play_round()
    assert task.operator.tasks.round_state(task.task, 1).outcome is Outcome.SETTLED
