"""A task that starts from another one's model: everybody derives the same, and what cannot be derived is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain_driver import LocalChain, TaskDriver
from consilium_chain.artifacts.copying import copy_task
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import SpecInvalid
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.connection import Connection
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.start_specs import FileStart, TaskStart
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_client.errors import ClientError, ModelError
from consilium_client.models import model_of
from consilium_client.models.weights import named_tensors
from consilium_client.replay import PublicRecord
from consilium_client.start import MOST_STARTS, started_from_file
from consilium_client.task import load_task
from consilium_core.errors import ArtifactMissing
from consilium_lab.errors import LabError
from consilium_lab.simulation.run import simulate
from consilium_operators.errors import OperatorError
from consilium_operators.proposals import propose
from consilium_operators.weights import store_weights
from consilium_zk.kzg import commit
from raised_faults import raises_fault
from safetensors.numpy import save
from task_files import DATA, windows

TASK = f"""
name = "first"
{DATA}
[model]
name = "mlp"
hidden = [3]
[update]
bits = 16
value_range = 0.5
masked = false
[rounds]
rounds = 1
min_cohort_size = 1
min_hospitals = 2
max_hospitals = 2
max_weight = 128
[judging]
max_voters = 1
seats = 1
decoys = false
[money]
pool = 1000
{windows(20_000)}
"""


class Chained:
    """Tasks of one contract, played and read."""

    def __init__(self, chain: LocalChain, folder: Path) -> None:
        self.chain, self.store = chain, ArtifactStore(folder)
        self.ledger = Ledger(Connection(chain.node.url), chain.deployment)

    def propose(self, text: str) -> TaskDriver:
        raw = text.encode()
        spec = parse_task_spec(raw)
        (aggregator,) = self.chain.staked(Role.AGGREGATOR, 1)
        params = task_params(spec, self.store.put_file(raw), aggregator.address)
        return TaskDriver(
            self.chain, lanes=spec.coordinates,
            terms={name: value for name, value in vars(params).items() if name != "aggregator"},
            layout=spec.update_layout, statistics=(spec.statistics_layout, spec.statistics_values),
        )  # fmt: skip

    def play(self, task: TaskDriver, score: int = 5_000) -> TaskDriver:
        task.join(rows=[25, 300])
        for judged in (False, True):
            if judged:
                task.form()
            task.commit_all()
            for blob in task.cohort_sum(0, range(task.hospitals)).blobs:
                self.store.put_blob(blob, commit(blob))
            task.publish()
        task.draw().judge([[score]])
        return task

    def record(self, number: int) -> PublicRecord:
        return PublicRecord(self.ledger, self.store, load_task(self.ledger, self.store, number))

    def start(self, number: int, **other: Any) -> str:
        """A second task's file, which starts from task `number`."""
        named = {"chain_id": self.ledger.deployment.chain_id, "contract": self.ledger.deployment.tasks} | other
        lines = f'name = "task"\ntask = {number}\nchain_id = {named["chain_id"]}\ncontract = "{named["contract"]}"'
        return TASK.replace('"first"', f'"after {number}"') + f"[start]\n{lines}\n"


@pytest.fixture
def chained(local_chain: LocalChain, tmp_path: Path) -> Chained:
    return Chained(local_chain, tmp_path)


def test_the_first_base_is_the_other_tasks_last_model(chained: Chained) -> None:
    first = chained.play(chained.propose(TASK))
    final = chained.record(first.task).base(2)
    assert np.abs(final - chained.record(first.task).base(1)).max() > 0.001
    second = chained.play(chained.propose(chained.start(first.task)))
    record = chained.record(second.task)
    assert record.base(1).tobytes() == final.tobytes()
    assert not np.array_equal(record.base(2), final)
    third = chained.propose(chained.start(second.task))
    assert chained.record(third.task).base(1).tobytes() == record.base(2).tobytes()


@pytest.mark.parametrize("shares", [[0.9, 0.1], [0.5, 0.3, 0.2]])
def test_a_stated_prevalence_is_the_first_models_answer_without_evidence(chained: Chained, shares: list[float]) -> None:
    classes = TASK.replace('["no", "yes"]', '["no", "yes", "both"]') if len(shares) == 3 else TASK
    for model in ('name = "logistic"', 'name = "mlp"\nhidden = [3]'):
        text = classes.replace('name = "mlp"\nhidden = [3]', model)
        stated = f'{text}[start]\nname = "seed"\nprevalence = {shares}\n'
        spec, base = parse_task_spec(stated.encode()), chained.record(chained.propose(stated).task).base(1)
        own = model_of(spec)
        answers = own.evaluate(base, np.zeros((1, *own.input_shape), np.float32)).predictions
        np.testing.assert_allclose(answers, [shares], atol=1e-6)
        seed = int.from_bytes(spec_hash(stated.encode())[:8], "big")
        outputs = spec.data.outputs
        np.testing.assert_array_equal(base[:-outputs], own.initial(seed)[:-outputs])
        assert not own.initial(seed)[-outputs:].any()


def test_what_cannot_be_a_start_is_refused_to_operators_and_nodes(chained: Chained) -> None:
    unfinished = chained.propose(TASK)
    finished = chained.play(chained.propose(TASK))
    rejected = chained.play(chained.propose(TASK), score=-900_000)
    own, number = chained.start(finished.task), finished.task
    others = {
        "has not ended with a settled training round": chained.start(unfinished.task),
        "no such task": chained.start(10_000),
        "name a task of the same contract": chained.start(number, contract="0x" + "11" * 20),
        "on chain 31337: name a task": chained.start(number, chain_id=1),
        "another section data or model": own.replace("hidden = [3]", "hidden = [4]"),
        "one of both has exact statistics": own.replace('name = "after', 'statistics = "exact"\nname = "after'),
    }
    assert chained.record(chained.propose(chained.start(rejected.task)).task).base(1).size  # settled, if not accepted
    for why, text in others.items():
        with raises_fault(ClientError, "StartUnusable", match=why):
            propose(chained.ledger, chained.store, text.encode(), "0x" + "22" * 20, not_private=True)
        with raises_fault(ClientError, "StartUnusable", match=why):
            chained.record(chained.propose(text).task).base(1)


def test_a_file_of_weights_is_the_first_base_of_everybody(chained: Chained, tmp_path: Path) -> None:
    """As another task's downloaded model, in parts, which travel with the task's other artifacts."""
    spec = parse_task_spec(TASK.encode())
    values = np.random.default_rng(3).standard_normal(spec.parameters).astype(np.float32)
    (tmp_path / "model.safetensors").write_bytes(save(named_tensors(spec, values)))
    section = store_weights(chained.store, tmp_path / "model.safetensors")
    task = chained.play(chained.propose(TASK + section))
    assert chained.record(task.task).base(1).tobytes() == values.tobytes()
    assert not np.array_equal(chained.record(task.task).base(2), values)
    (part,) = parse_task_spec((TASK + section).encode()).start.digests  # type: ignore[union-attr]
    copied = copy_task(chained.ledger, task.task, ArtifactStore([tmp_path / "copy", tmp_path]), tmp_path / "copy")
    assert copied.faults == ()
    assert ArtifactStore(tmp_path / "copy").get_file(part) == (tmp_path / "model.safetensors").read_bytes()


def test_a_file_of_more_than_one_part_is_put_together_again(
    chained: Chained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium_operators.weights.MOST_FILE_BYTES", 100)
    spec = parse_task_spec(TASK.encode())
    raw = save(named_tensors(spec, model_of(spec).initial(7)))
    (tmp_path / "model.safetensors").write_bytes(raw)
    text = TASK + store_weights(chained.store, tmp_path / "model.safetensors")
    start = parse_task_spec(text.encode()).start
    assert isinstance(start, FileStart)
    assert len(start.parts) == -(-len(raw) // 100)
    found = started_from_file(chained.store, spec, start)
    assert found.tobytes() == model_of(spec).initial(7).tobytes()


def test_weights_that_are_not_of_the_model_are_refused(chained: Chained, tmp_path: Path) -> None:
    spec = parse_task_spec(TASK.encode())
    whole = named_tensors(spec, model_of(spec).initial(7))
    name = next(iter(whole))
    wrong = {
        "it is not a safetensors file": b"PK\x03\x04 pickled",
        "names, shapes and types": save(whole | {name: whole[name][:, :0]}),
        "names, shapes and types of": save(whole | {name: whole[name].astype(np.float16)}),
        "not finite": save(whole | {name: whole[name] * np.float32(np.nan)}),
        "more than the .* of its tensors": save(whole) + bytes(1 << 21),
    }
    for why, raw in wrong.items():
        (tmp_path / "weights").write_bytes(raw)
        text = TASK + store_weights(chained.store, tmp_path / "weights")
        with raises_fault(ModelError, "WeightsUnusable", match=why):
            propose(chained.ledger, chained.store, text.encode(), "0x" + "22" * 20, not_private=True)
        with raises_fault(ModelError, "WeightsUnusable", match=why):
            chained.record(chained.propose(text).task).base(1)
    (tmp_path / "weights").write_bytes(b"")
    with raises_fault(OperatorError, "WeightsTooLong"):
        store_weights(chained.store, tmp_path / "weights")
    gone = TASK + '[start]\nname = "file"\nparts = ["' + "11" * 32 + '"]\n'
    with pytest.raises(ArtifactMissing):
        propose(chained.ledger, chained.store, gone.encode(), "0x" + "22" * 20, not_private=True)


def test_a_long_line_of_starts_is_refused(chained: Chained, monkeypatch: pytest.MonkeyPatch) -> None:
    first = chained.play(chained.propose(TASK))
    depth = MOST_STARTS
    start = TaskStart(
        name="task", task=first.task, chain_id=chained.ledger.deployment.chain_id,
        contract=chained.ledger.deployment.tasks,
    )  # fmt: skip
    spec = parse_task_spec(TASK.encode()).model_copy(update={"start": start})
    joined = load_task(chained.ledger, chained.store, first.task)
    deep = PublicRecord(chained.ledger, chained.store, type(joined)(joined.number, spec, joined.params), depth)
    with raises_fault(ClientError, "StartUnusable", match="8 tasks start one from the other"):
        deep.base(1)


def test_a_simulation_says_that_it_has_no_chain_to_start_from(chained: Chained) -> None:
    with raises_fault(LabError, "StartNotSimulated"):
        simulate(chained.start(3).encode(), {}, {})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('name = "task"\ntask = 0\nchain_id = 1\ncontract = "0x' + "11" * 20 + '"', r"start\.task"),
        ('name = "task"\ntask = 1\nchain_id = 1\ncontract = "11"', r"contract"),
        ('name = "task"\ntask = 1', r"chain_id"),
        ('name = "file"', r"start\.file\.parts|parts"),
        ('name = "file"\nparts = []', r"parts"),
        ('name = "file"\nparts = ["0x11"]', r"parts"),
        ('name = "seed"\nprevalence = [0.7, 0.2]', r"add up to 0\.9"),
        ('name = "web"', r"start"),
    ],
)
def test_a_start_that_is_nonsense_is_refused(lines: str, said: str) -> None:
    with pytest.raises(SpecInvalid, match=said):
        parse_task_spec(f"{TASK}[start]\n{lines}\n".encode())
