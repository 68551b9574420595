"""Training of a task whose model is a program or a plug-in, by the process that `programs.confined` starts for it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from consilium_chain.tasks.model_specs import PluginSpec, ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_core.kinds import of_kind
from consilium_zk.basis import Basis
from numpy.typing import NDArray

from consilium_client.data.examples import Labels
from consilium_client.models import Inputs, Vector, model_of, require_finite
from consilium_client.models.computed import Computed
from consilium_client.programs.confined import Progress, Work, is_elsewhere
from consilium_client.programs.row_gradients import MOST_AT_ONCE

if TYPE_CHECKING:
    from consilium_client.models.training import Guides
    from consilium_client.privacy.dp_sgd import Mechanism

OF_GRADIENTS = 16  # bytes for each value of the rows' own gradients


def is_trained_elsewhere(spec: TaskSpec) -> bool:
    return isinstance(spec.model, ProgramSpec | PluginSpec) and is_elsewhere()


def trained(
    spec: TaskSpec, within: Basis | None, base: Vector, inputs: Inputs, labels: Labels, seed: int,
    progress: Progress, device: str, guides: Guides,
) -> NDArray[Any]:  # fmt: skip
    """As `training.learn` within a basis, or as `training.train`; raises ProgramError (ProgramEnded) too."""
    given = {"base": base, "inputs": inputs, "labels": labels}
    rows = spec.training.batch_size
    if guides.held_out is not None:
        given |= dict(zip(("held_out_inputs", "held_out_labels"), guides.held_out, strict=True))
        rows = max(rows, len(guides.held_out[1]))
    if guides.correction is not None:
        given["correction"] = guides.correction
    if guides.class_weights is not None:
        given["class_weights"] = guides.class_weights
    return _computed(spec, within, "train", {"seed": seed}, given, rows, progress, device)


def trained_privately(
    spec: TaskSpec, mechanism: Mechanism, within: Basis | None, base: Vector, inputs: Inputs,
    labels: Labels, progress: Progress, device: str,
) -> NDArray[Any]:  # fmt: skip
    """As `dp_sgd.learn_privately` within a basis, or as `dp_sgd.train_privately`; raises ProgramError (ProgramEnded)
    too. Noise is the operating system's there, too. The record of costs stays here.
    """
    given = {"base": base, "inputs": inputs, "labels": labels}
    rows = min(2 * spec.training.batch_size, len(labels))  # each is drawn by itself
    values = {"mechanism": asdict(mechanism)}
    return _computed(spec, within, "train-privately", values, given, rows, progress, device, private=True)


def _computed(
    spec: TaskSpec, within: Basis | None, kind: str, values: dict[str, Any], given: dict[str, NDArray[Any]], rows: int,
    progress: Progress, device: str, private: bool = False,
) -> NDArray[Any]:  # fmt: skip
    if isinstance(spec.model, PluginSpec):
        device = "cpu"  # no GPU's driver is among the files that its process may open
    model = of_kind(Computed, model_of(spec))  # type: ignore[type-abstract]  # any of them
    memory = model.memory(rows, *given.values())
    if private:
        memory += OF_GRADIENTS * (rows * model.parameters + MOST_AT_ONCE)
    values |= {"spec": spec.model_dump(mode="json"), "device": device, "within": within and within.seed.hex()}
    wanted = ((model.parameters,), "float32") if within is None else ((within.size,), "float64")
    work = Work(kind, given, {"found": wanted}, memory, spec.windows.commit, values, device, private)
    found = model.elsewhere(work, progress)["found"]
    require_finite("trained parameters", found)
    return found
