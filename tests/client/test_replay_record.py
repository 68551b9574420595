"""The model that everybody derives from chain and artifact store: the same bits everywhere."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chain_driver import LAYOUT, LocalChain, TaskDriver
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import RecordIncomplete, SpecMismatch
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role, members
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.outer_specs import AdamSpec, MomentumSpec
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.data.standardise import public_sums
from consilium_client.models import model_of
from consilium_client.models.outer import outer_of
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_zk.kzg import commit
from consilium_zk.packing import pack
from task_files import DATA, windows

TASK = f"""
name = "replayed"
statistics = "exact"
{DATA}
[model]
name = "mlp"
hidden = [3]
[update]
bits = 16
value_range = 0.5
masked = false
[rounds]
rounds = 3
cohorts = 2
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 256
[judging]
max_voters = 1
seats = 1
decoys = false
[money]
pool = 1000
{windows(20_000)}
""".encode()


def driver(chain: LocalChain, spec: TaskSpec, store: ArtifactStore, raw: bytes = TASK) -> TaskDriver:
    """A task on chain whose terms are those of its file."""
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1)
    params = task_params(spec, store.put_file(raw), aggregator.address)
    statistics = (spec.statistics_layout, spec.statistics_values)
    return TaskDriver(
        chain,
        lanes=spec.parameters,
        terms={name: value for name, value in vars(params).items() if name != "aggregator"},
        layout=LAYOUT,
        statistics=statistics,
    )


def publish(task: TaskDriver, store: ArtifactStore) -> None:
    for cohort in members(task.round_state.viable_cohorts):
        for blob in task.cohort_sum(cohort, range(task.hospitals)).blobs:
            store.put_blob(blob, commit(blob))
    task.publish()


def fresh(task: TaskDriver, store: ArtifactStore) -> PublicRecord:
    """As a new process would derive it, with nothing but the chain and the store."""
    ledger = Ledger(Connection(task.chain.node.url), task.chain.deployment)
    return PublicRecord(ledger, store, load_task(ledger, store, task.task))


def test_public_record_gives_the_same_bits_and_the_exact_mean(local_chain: LocalChain, tmp_path: Path) -> None:
    store, spec = ArtifactStore(tmp_path), parse_task_spec(TASK)
    assert spec.update_layout == LAYOUT
    task = driver(local_chain, spec, store).join(rows=[25, 300])
    record = fresh(task, store)
    first = record.base(1)
    assert first.tobytes() == fresh(task, store).base(1).tobytes()
    with pytest.raises(RecordIncomplete, match="round 0"):
        record.statistics()
    task.commit_all()
    publish(task, store)
    exact = task.updates[0, 0].lanes + task.updates[0, 1].lanes
    step = 65_536.0 / (2**39 - 1)
    np.testing.assert_allclose(
        record.statistics(), (exact.astype(np.float64) - 2 * (2**39 - 1)) * step, rtol=0, atol=2 * step
    )

    # Round 1: one cohort is accepted, the other is not; only the first moves the model.
    with pytest.raises(RecordIncomplete, match="round 1"):
        record.base(2)
    task.form().commit_all()
    publish(task, store)
    task.draw().judge([[5_000, -900_000]])
    accepted = list(members(task.operator.tasks.cohort_members(task.task, 1, 0)))
    lanes = task.updates[1, accepted[0]].lanes.astype(np.float64)
    moved = ((lanes - (2**15 - 1)) * (0.5 / (2**15 - 1))).astype(np.float32)
    np.testing.assert_array_equal(record.base(2), first + moved)
    state = task.operator.tasks.round_state(task.task, 1)
    (candidate,) = record.candidates(1, 0, state)
    np.testing.assert_array_equal(candidate, first + moved)

    # Round 2: both are; the mean is by weight (3 and 30 steps of ten rows). Round 3 is void and changes nothing.
    task.form().commit_all()
    publish(task, store)
    task.draw().judge([[5_000, 5_000]])
    weights = [task.weight(i, 2) for i in range(2)]
    assert weights == [3, 30]
    first, second = (w * task.updates[2, i].lanes.astype(object) for i, w in enumerate(weights))
    total = first + second
    mean = np.array([float(int(t) - 33 * (2**15 - 1)) for t in total]) * (0.5 / (2**15 - 1)) / 33
    np.testing.assert_allclose(record.base(3), record.base(2) + mean, rtol=0, atol=1e-6)
    task.form().pass_deadline()
    task.tick()
    bases = [record.base(r).tobytes() for r in range(1, 5)]
    assert bases[2] == bases[3]
    for _ in range(2):
        again = fresh(task, store)
        assert again.base(4).tobytes() == bases[3]  # derived in one go
        assert sorted(again._states) == [1, 3, 4]  # each is as large as the model
        assert [again.base(r).tobytes() for r in range(1, 5)] == bases


@pytest.mark.parametrize("outer", [MomentumSpec(name="momentum"), AdamSpec(name="adam")])
def test_public_record_moves_by_the_tasks_outer_step_and_shows_candidates_without_it(
    local_chain: LocalChain, tmp_path: Path, outer: MomentumSpec | AdamSpec
) -> None:
    lines = "\n".join(f"{name} = {value!r}".replace("'", '"') for name, value in outer.model_dump().items())
    raw = TASK + f"[outer]\n{lines}\n".encode()
    store, spec = ArtifactStore(tmp_path), parse_task_spec(raw)
    assert spec.outer == outer
    task = driver(local_chain, spec, store, raw).join(rows=[25, 300]).commit_all()
    publish(task, store)
    record, step = fresh(task, store), outer_of(outer)
    state = step.begin(record.base(1))
    for round_ in (1, 2):
        task.form().commit_all()
        publish(task, store)
        (candidate,) = record.candidates(round_, 0, task.operator.tasks.round_state(task.task, round_))
        (one,) = members(task.operator.tasks.cohort_members(task.task, round_, 0))
        lanes = task.updates[round_, one].lanes.astype(np.float64)
        mean = (lanes - (2**15 - 1)) * (0.5 / (2**15 - 1))
        assert candidate is not None
        np.testing.assert_array_equal(candidate, state.model + mean.astype(np.float32))
        task.draw().judge([[5_000, -900_000]])
        state = step.after(state, mean.__getitem__)
        np.testing.assert_array_equal(record.base(round_ + 1), state.model)
        differs = not np.array_equal(state.model, candidate)
    assert differs  # by the last round: FedAvgM's first step is FedAvg's
    assert fresh(task, store).base(3).tobytes() == record.base(3).tobytes()


def test_sums_read_ahead_are_not_read_again(local_chain: LocalChain, tmp_path: Path) -> None:
    """While they are judged: what is derived then is the same, and the store may be gone."""
    store, spec = ArtifactStore(tmp_path / "store"), parse_task_spec(TASK)
    task = driver(local_chain, spec, store).join(rows=[25, 300]).commit_all()
    publish(task, store)
    task.form().commit_all()
    publish(task, store)
    shutil.copytree(tmp_path / "store", tmp_path / "gone")
    record = fresh(task, ArtifactStore(tmp_path / "gone"))
    record.sums.read_ahead(1, task.round_state)
    task.draw().judge([[5_000, -900_000]])
    shutil.rmtree(tmp_path / "gone")
    moved = record.base(2)
    assert moved.tobytes() == fresh(task, store).base(2).tobytes() != record.base(1).tobytes()


def test_public_record_takes_lanes_out_of_range_for_no_model(local_chain: LocalChain, tmp_path: Path) -> None:
    store, spec = ArtifactStore(tmp_path), parse_task_spec(TASK)
    task = driver(local_chain, spec, store).join(rows=[25, 300])
    task.commit_all()
    publish(task, store)
    task.form()
    too_much = np.full(spec.parameters, 2**17, dtype=np.uint64)  # fits its lane, but is no honest value
    for index in range(2):
        update = task.update_of(index, 1, too_much, pack(too_much, LAYOUT, total_weight=5)) if index == 0 else None
        task.commit(index, update)
    publish(task, store)
    state = task.round_state
    record = fresh(task, store)
    theirs = [list(members(task.operator.tasks.cohort_members(task.task, 1, c))) for c in range(2)]
    bad = theirs.index([0])
    assert record.sums.cohort_sum(1, bad, state) is None
    assert record.candidates(1, bad, state) == [None]
    (good,) = record.candidates(1, 1 - bad, state)
    assert good is not None
    # Even if bribed voters accept it, it does not enter the model.
    task.draw().judge([[1, 1]])
    np.testing.assert_array_equal(record.base(2), good)


def test_public_record_standardises_by_the_schema_whatever_round_0_brought(
    local_chain: LocalChain, tmp_path: Path
) -> None:
    store = ArtifactStore(tmp_path)
    raw = TASK.replace(b'statistics = "exact"', b"")
    spec = parse_task_spec(raw)
    task = driver(local_chain, spec, store, raw).join().commit_all()
    publish(task, store)
    np.testing.assert_array_equal(fresh(task, store).statistics(), public_sums(spec.data))


def test_public_record_refuses_missing_and_changed_artifacts(local_chain: LocalChain, tmp_path: Path) -> None:
    store, spec = ArtifactStore(tmp_path), parse_task_spec(TASK)
    task = driver(local_chain, spec, store).join().commit_all()
    publish(task, store)
    (file,) = tmp_path.glob("blob-*")
    kept = file.read_bytes()
    file.write_bytes(kept[:31] + bytes([kept[31] ^ 1]) + kept[32:])
    with pytest.raises(ArtifactCorrupt):
        fresh(task, store).statistics()
    file.unlink()
    with pytest.raises(ArtifactMissing):
        fresh(task, store).statistics()


def test_load_task_refuses_terms_that_are_not_the_files(local_chain: LocalChain, tmp_path: Path) -> None:
    store, spec = ArtifactStore(tmp_path), parse_task_spec(TASK)
    operator = local_chain.treasury
    params = task_params(spec, store.put_file(TASK), operator.address)
    number = operator.operator.propose(replace(params, hospital_bond=params.hospital_bond + 1))
    with pytest.raises(SpecMismatch, match="do not join, and ask its operator"):
        load_task(operator, store, number)


@pytest.mark.parametrize("hidden", [[3], [4, 2]])
def test_initial_parameters_are_the_same_bits_for_everybody(hidden: list[int]) -> None:
    spec = parse_task_spec(TASK.replace(b"hidden = [3]", f"hidden = {hidden}".encode()))
    one, other = (model_of(spec).initial(seed=5) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert one.tobytes() != model_of(spec).initial(seed=6).tobytes()
