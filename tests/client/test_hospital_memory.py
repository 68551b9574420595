"""Nodes that remember: what a simulation foretells is what hospitals' nodes train, whatever they restart between."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from chain_driver import LocalChain
from consilium_chain.ledger.ledger import Ledger
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_lab.seeds import seed_of
from consilium_lab.simulation.run import simulate
from safetensors.numpy import load_file
from training_driver import ROWS, propose, task_file

EXACT = 'statistics = "exact"'
MEMORIES = {"variate": "variates", "unsent": "feedback", "local": "local"}  # a word of the task file
FOUND = "accept_floor = -1000.0\nharmful_below = -1000.0"


@pytest.mark.parametrize(
    ("training", "update", "top"),
    [
        # The fourth has both of these.
        pytest.param("control_variates = true\nsteps = 4", "bits = 8", "", marks=pytest.mark.deep),
        pytest.param("epochs = 2", "bits = 2\nfeedback = true", "", marks=pytest.mark.deep),
        ('class_weights = "balanced"', 'codec = {name = "dense"}', EXACT),
        ("control_variates = true\nsteps = 4", "bits = 2\nfeedback = true", EXACT),
        ('epochs = 3\nlocal = ["0.bias"]', "bits = 8", ""),
        ("epochs = 3", 'codec = {name = "sketch", rows = 1, columns = 1, kept = 1}', ""),
    ],
    ids=["control variates", "feedback", "class weights", "both and exact statistics", "local tensors", "sketch"],
)
def test_nodes_that_start_anew_in_each_round_train_as_a_simulation_does(
    training: str, update: str, top: str, local_chain: LocalChain, tmp_path: Path
) -> None:
    rounds, seed = 3, 7
    raw = task_file(training, update, FOUND, rounds, top)
    task = propose(local_chain, tmp_path, raw)
    nodes = [task.start(index, trial_seed=seed_of(seed, index)) for index in range(2)]
    examples = [node.training.examples for node in nodes]
    task.join(rows=ROWS).first_round()
    reader = Ledger(task.operator.connection, task.chain.deployment)
    for _ in range(rounds):
        task.form()
        for index in range(2):
            task.start(index, trial_seed=seed_of(seed, index))
        task.play_round()
    record = PublicRecord(reader, task.store, load_task(reader, task.store, task.task))
    told = simulate(
        raw, {"a": examples[0], "b": examples[1]}, {"v": examples[0].chosen(np.arange(ROWS[0]) < 20)}, seed,
        compared=False,
    )  # fmt: skip
    assert len(told.rounds) == rounds
    for one in told.rounds:
        assert record.base(one.number + 1).tobytes() == one.model.tobytes()
    homes = [sorted(path.name for path in (home.home / "memory").rglob("*") if path.is_file()) for home in task.homes]
    kinds = {kind for kind, words in MEMORIES.items() if words in training + update}
    assert homes[0] == sorted(f"{kind}-{number}" for kind in kinds for number in (2, 3))
    for home, node in zip(task.homes, nodes, strict=True):
        kept = home.home / "memory" / node.context.name
        last = np.frombuffer((kept / "local-3").read_bytes(), np.float32) if "local" in kinds else None
        node.training.forget()
        assert [path.name for path in kept.glob("*")] == ([] if last is None else ["local.safetensors"])
        if last is not None:
            assert load_file(kept / "local.safetensors")["0.bias"].tolist() == last.tolist()
            node.training.forget()
            assert (kept / "local.safetensors").stat().st_mode & 0o777 == 0o600
