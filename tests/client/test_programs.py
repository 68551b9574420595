"""Programs: an exported module computes and learns as the module does, and its file has one form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from consilium_client.programs.description import described
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.exporting import exported
from consilium_client.programs.interpreter import Interpreter
from consilium_client.programs.measuring import measured
from consilium_client.programs.operators import TENSORS
from consilium_client.programs.program import Call, Input, Node, Program, Tensor, parse_program, written
from program_modules import IMAGES, MODULES, ROWS, convolutions, interpreted, made
from raised_faults import raises_fault
from torch import nn
from torch.nn.functional import cross_entropy


def logits_of(module: nn.Module, rows: torch.Tensor, outputs: str | None) -> torch.Tensor:
    found = module(rows)
    logits: torch.Tensor = found if outputs is None else getattr(found, outputs)
    return logits


@pytest.mark.parametrize("name", MODULES)
def test_three_steps_of_training_are_the_modules_own(name: str) -> None:
    """Logits, gradients, running means and the trained tensors equal eager PyTorch's, and the evaluation after them."""
    module, found, example, outputs = made(name)
    program, labels = interpreted(found).train(), torch.arange(ROWS) % 2
    module.train()
    own = {one: value for one, value in module.named_parameters() if value.requires_grad}
    of_module = torch.optim.SGD(own.values(), 0.1, momentum=0.9)
    of_program = torch.optim.SGD(program.parameters(), 0.1, momentum=0.9)
    for _ in range(3):
        for computed, optimizer in ((logits_of(module, example, outputs), of_module), (program(example), of_program)):
            optimizer.zero_grad()
            cross_entropy(computed, labels).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    assert set(found.program.trainable) <= set(own)
    for at, learnt in zip(found.program.trainable, program.trained, strict=True):
        np.testing.assert_allclose(learnt.detach(), own[at].detach(), rtol=1e-4, atol=1e-6)
    buffers = dict(module.named_buffers())
    for at, moved in program.moving.items():
        np.testing.assert_allclose(moved, buffers[at], rtol=1e-4, atol=1e-6)
    module.eval(), program.eval()
    with torch.no_grad():
        for rows in (example, example[:1]):
            expected = logits_of(module, rows, outputs)
            np.testing.assert_allclose(program(rows), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODULES)
def test_a_program_is_written_and_read_again_byte_by_byte(name: str) -> None:
    _, found, *_ = made(name)
    assert parse_program(found.raw) == found.program
    assert written(found.program) == found.raw
    assert made(name)[1].raw == found.raw


def test_double_precision_reaches_every_tensor_and_node() -> None:
    _, found, example, _ = made("convolutions")
    program = interpreted(found).double().eval()
    types = []
    with torch.no_grad():
        values = program.computed(example.double(), lambda _, value: types.append(value.dtype))
    assert set(types) == {torch.float64}
    with torch.no_grad():
        np.testing.assert_allclose(values[-1], interpreted(found).eval()(example), rtol=1e-4, atol=1e-6)


def test_results_are_given_up_after_their_last_use() -> None:
    _, found, example, _ = made("convolutions")
    program = interpreted(found).eval()
    values = program.computed(example, kept=found.program.features)
    kept = {at for at, one in enumerate(values) if one is not None}
    assert kept == {found.program.features, len(found.program.nodes) - 1}


def test_a_view_needs_no_strides() -> None:
    """They differ between devices: some attention gives its result transposed."""
    view = Program((2, 3), "float32", 6, {"w": (6, 6)}, {}, {}, (
        Call("transpose.int", (Input(), 1, 2), {}), Call("view.default", (Node(0), (-1, 6)), {}),
        Call("linear.default", (Node(1), Tensor("w")), {}),
    ))  # fmt: skip
    rows = torch.randn(4, 2, 3)
    assert torch.equal(Interpreter(view, {"w": torch.eye(6)})(rows), rows.transpose(1, 2).reshape(4, 6))


def test_dropout_and_batch_norm_know_whether_the_model_trains() -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 2))
    program, rows = interpreted(exported(module, torch.randn(3, 4))), torch.randn(8, 4)
    assert not torch.equal(program.train()(rows), program(rows))
    assert torch.equal(program.eval()(rows), program(rows))
    norms = interpreted(exported(convolutions(), torch.randn(IMAGES)))
    before = norms.moving["1.running_mean"].clone()
    norms.eval()(torch.randn(IMAGES))
    assert torch.equal(norms.moving["1.running_mean"], before)
    norms.train()(torch.randn(IMAGES))
    assert not torch.equal(norms.moving["1.running_mean"], before)


def test_a_variance_that_rounding_left_below_zero_counts_as_zero() -> None:
    _, found, example, _ = made("convolutions")
    program = interpreted(found).eval()
    program.moving["1.running_var"].fill_(-1e-3)
    assert torch.isfinite(program(example)).all()


def test_a_norm_without_running_means_takes_its_rows_also_in_evaluation() -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv1d(2, 3, 3), nn.InstanceNorm1d(3), nn.Flatten(), nn.Linear(12, 2)).eval()
    example = torch.randn(4, 2, 6)
    program = interpreted(exported(module, example)).eval()
    np.testing.assert_allclose(program(example).detach(), module(example).detach(), rtol=1e-5, atol=1e-6)


def test_costs_are_those_of_a_step() -> None:
    _, found, *_ = made("perceptron")
    few, many = measured(found.program, 2), measured(found.program, 200)
    assert (few.operations, many.operations) == (2 * 2 * (7 * 8 + 8 * 3), 200 * 2 * (7 * 8 + 8 * 3))
    assert many.values == 100 * few.values == 200 * (8 + 8 + 8 + 3)
    words = dict(described(found.program, 16))
    assert words["takes"] == "7 float32 for each row"
    assert words["holds"] == f"{7 * 8 + 8 + 16 + 8 * 3 + 3} trained values, 0 that layers write, and 0 frozen"
    assert words["layers"].splitlines()[0].split() == ["linear", "8", "0.weight,", "0.bias"]


def test_every_allowed_operator_exists_and_writes_nothing_in_place() -> None:
    for name in TENSORS:
        kind, _, overload = name.partition(".")
        schema = getattr(getattr(torch.ops.aten, kind), overload)._schema
        written_to = [one.name for one in schema.arguments if one.alias_info is not None and one.alias_info.is_write]
        assert written_to in ([], ["running_mean", "running_var"]), name


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.second.weight = self.first.weight

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(torch.tanh(self.second(torch.tanh(self.first(rows)))))
        return logits


def test_tied_weights_stay_one_tensor() -> None:
    torch.manual_seed(1)
    module, rows = Tied(), torch.randn(3, 4)
    found = exported(module, rows)
    assert [*found.program.trainable] == ["first.weight", "first.bias", "second.bias", "last.weight", "last.bias"]
    program = interpreted(found)
    for computed in (module(rows), program(rows)):
        computed.sum().backward()
    own, expected = program.trained[0].grad, module.first.weight.grad
    assert own is not None
    assert expected is not None
    np.testing.assert_allclose(own, expected, rtol=1e-5)


def test_export_leaves_the_module_as_it_was() -> None:
    for trains in (True, False):
        module = convolutions().train(trains)
        exported(module, torch.randn(IMAGES))
        assert {one.training for one in module.modules()} == {trains}


def test_a_norm_that_its_author_keeps_still_moves_nothing() -> None:
    torch.manual_seed(1)
    module, rows = convolutions(), torch.randn(IMAGES)
    norm = module.get_submodule("1").eval()
    found = exported(module, rows)
    assert not norm.training
    assert module.training
    assert not found.program.moving
    assert {"1.running_mean", "1.running_var"} <= set(found.program.frozen)
    np.testing.assert_allclose(interpreted(found).train()(rows).detach(), module(rows).detach(), rtol=1e-4, atol=1e-6)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(rows if rows.sum() > 0 else -rows)
        return logits


class Drawing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(rows + torch.randn_like(rows))
        return logits


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.last(rows), rows


class Shared(nn.Module):
    """Writes in place into something that an earlier view still shows."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        copy = rows.clone()
        view = copy[:, :2]
        copy.mul_(3)
        logits: torch.Tensor = self.last(torch.cat([view, view], 1))
        return logits


@pytest.mark.parametrize(
    ("module", "example", "outputs", "why"),
    [
        (Branching(), torch.randn(3, 4), None, "cannot trace it: .*data-dependent"),
        (Drawing(), torch.randn(3, 4), None, "needs the operator randn_like.default"),
        (Two(), torch.randn(3, 4), None, "no tensor of rows and logits: name these by outputs="),
        (Shared(), torch.randn(3, 4), None, "changes a tensor that it shares"),
        (nn.Linear(4, 2).half(), torch.randn(3, 4).half(), None, "not two or more rows of float32"),
        (nn.Linear(4, 2), torch.randn(1, 4), None, "not two or more rows"),
        (nn.Linear(4, 2).requires_grad_(False), torch.randn(3, 4), None, "no trainable tensor"),
    ],
    ids=["branches", "draws", "two results", "shared memory", "half precision", "one row", "nothing to train"],
)  # fmt: skip
def test_a_module_that_no_program_can_be_is_refused_in_words(
    module: nn.Module, example: torch.Tensor, outputs: str | None, why: str
) -> None:
    with pytest.raises(ProgramError, match=why):
        exported(module, example, outputs)


def test_the_place_of_the_logits_can_be_named() -> None:
    assert exported(Two(), torch.randn(3, 4), 0).program.outputs == 2


def test_rows_must_not_be_fixed() -> None:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(4, 2)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.last(rows.reshape(3, 4))
            return logits

    with raises_fault(ProgramError, "ProgramMalformed", "cannot be computed"):
        exported(Fixed(), torch.randn(3, 4))
