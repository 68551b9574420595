"""A model as `consilium operator download-model` writes it, of no training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_client.data.mapping import Mapping
from consilium_client.data.standardise import public_sums
from consilium_client.models.objectives import objective_of
from consilium_client.models.weights import shared_tensors, vector_of
from consilium_client.programs.library import Files
from consilium_operators.model_folder import ModelFile, Proof, write_model
from consilium_operators.model_inputs import model_inputs
from consilium_verify.report import derived

TABLE = """
name = "table"
[data]
label = "sick"
classes = ["no", "maybe", "yes"]
[[data.features]]
name = "age"
min = 0.0
max = 120.0
[[data.features]]
kind = "category"
name = "sex"
values = [0, 1, 2]
[model]
name = "mlp"
hidden = [4]
"""


def written(
    folder: Path,
    text: str,
    mapping: Mapping | None = None,
    program: Files | None = None,
    scale: float = 0.3,
    task: tuple[int, int, str] = (1, 1, "0x"),
) -> Path:
    """A model of random parameters of this deviation, with a public task's statistics. `task`: its number, chain and
    contract.
    """
    number, chain_id, contract = task
    spec = parse_task_spec(text.encode())
    parameters = np.random.default_rng(1).normal(size=spec.parameters, scale=scale).astype(np.float32)
    tensors = shared_tensors(spec, parameters)
    index = ModelFile(
        task=number, name=spec.name, chain_id=chain_id, contract=contract,
        spec_hash=spec_hash(text.encode()).hex(), task_file=text,
        round=1, rounds=1, verified=True, sha256=derived("", vector_of(tensors)).sha256,
        statistics=tuple(public_sums(spec.data).tolist()), classes=tuple(spec.data.classes),
        answers=objective_of(spec.data).answers,
        inputs=model_inputs(spec.data, public_sums(spec.data)), mapping=mapping, files={},
    )  # fmt: skip
    proof = Proof(
        task=number, operator="0x", chain_id=chain_id, contract=contract, spec_hash=index.spec_hash,
        model_sha256=index.sha256, rounds=(),
    )  # fmt: skip
    write_model(folder / "model", index, tensors, "# a card\n", proof, program)
    return folder / "model"
