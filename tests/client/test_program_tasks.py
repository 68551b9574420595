"""Tasks whose model is a program: real nodes train it, policies allow it by its hash, and its model can be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from chain_driver import LocalChain
from consilium_chain.artifacts.copying import copy_task
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.consent import Policy
from consilium_client.data.examples import Examples
from consilium_client.data.table.reader import Table
from consilium_client.errors import ModelError, OwnersRefusal
from consilium_client.models import model_of
from consilium_client.models.training import Guides, learn, train
from consilium_client.programs import library
from consilium_client.replay import PublicRecord
from consilium_client.task import load_task
from consilium_lab.seeds import seed_of
from consilium_lab.simulation.run import simulate
from consilium_operators.exporting import export
from consilium_operators.weights import store_weights
from eth_account import Account
from eth_utils.crypto import keccak
from hospital_driver import OPEN_POLICY
from pydantic import ValidationError
from raised_faults import raises_fault
from torch import nn
from training_driver import ROWS, propose, task_file

FAMILY = '[model]\nname = "logistic"\n'
ROUNDS, SEED = 2, 7
OPERATOR = "0x" + "11" * 20


def module() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 1))


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The section of a task file, and the store of the program that it names."""
    folder = tmp_path_factory.mktemp("program")
    export(module(), torch.randn(3, 1), folder / "program")
    return store_weights(ArtifactStore(folder / "artifacts"), folder / "program"), folder / "artifacts"


def file_of(section: str, training: str = "epochs = 2", update: str = "bits = 10") -> bytes:
    return task_file(training, update, "accept_floor = -1000.0\nharmful_below = -1000.0", ROUNDS).replace(
        FAMILY.encode(), section.encode()
    )


def spec_of(section: tuple[str, Path]) -> TaskSpec:
    spec = parse_task_spec(file_of(section[0]))
    library.offer(ArtifactStore(section[1]), spec)
    return spec


def test_nodes_train_a_program_as_a_simulation_does(
    section: tuple[str, Path], local_chain: LocalChain, tmp_path: Path
) -> None:
    text, artifacts = section
    raw = file_of(text)
    for path in artifacts.iterdir():
        (tmp_path / "artifacts").mkdir(exist_ok=True)
        (tmp_path / "artifacts" / path.name).write_bytes(path.read_bytes())
    task = propose(local_chain, tmp_path, raw)
    nodes = [task.start(index, trial_seed=seed_of(SEED, index)) for index in range(2)]
    examples = [node.training.examples for node in nodes]
    task.join(rows=ROWS).first_round()
    for _ in range(ROUNDS):
        task.form()
        for index in range(2):
            task.start(index, trial_seed=seed_of(SEED, index))
        task.play_round()
    reader = Ledger(task.operator.connection, task.chain.deployment)
    record = PublicRecord(reader, task.store, load_task(reader, task.store, task.task))
    told = simulated(raw, examples, [artifacts])
    for one in told.rounds:
        assert record.base(one.number + 1).tobytes() == one.model.tobytes()
    names = list(parse_task_spec(raw).model.shapes)  # type: ignore[union-attr]
    assert names[-2:] == ["1.running_mean", "1.running_var"]
    assert (record.base(3)[-8:] != record.base(1)[-8:]).all()
    copied = copy_task(reader, task.task, ArtifactStore([tmp_path / "copy", tmp_path / "artifacts"]), tmp_path / "copy")
    assert not copied.faults
    assert {path.name for path in artifacts.iterdir()} <= {path.name for path in (tmp_path / "copy").iterdir()}


def simulated(raw: bytes, examples: list[Examples], locations: list[Path]) -> Any:
    judged = {"v": examples[0].chosen(np.arange(ROWS[0]) < 20)}
    return simulate(raw, {"a": examples[0], "b": examples[1]}, judged, SEED, compared=False, locations=locations)


def test_training_is_the_same_bit_by_bit_of_one_seed_with_dropout(section: tuple[str, Path]) -> None:
    spec = spec_of(section)
    base, random = model_of(spec).initial(0), np.random.default_rng(1)
    inputs, labels = random.normal(size=(33, 1)).astype(np.float32), random.integers(0, 2, 33)  # a last batch of one
    first, again, other = (train(spec, base, inputs, labels, seed) for seed in (1 << 100, 1 << 100, 5))
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_evaluation_is_in_double_precision_and_shows_what_the_last_layer_takes(section: tuple[str, Path]) -> None:
    spec = spec_of(section)
    model, inputs = model_of(spec), np.linspace(-2, 2, 300, dtype=np.float32).reshape(-1, 1)
    found = model.evaluate(model.initial(0), inputs)
    own = module().double().eval()
    with torch.no_grad():
        hidden = own[:-1](torch.from_numpy(inputs).double())
        logits = own[-1](hidden)
    np.testing.assert_allclose(found.activations, hidden, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.predictions[:, 1], torch.sigmoid(logits)[:, 0], rtol=0, atol=1e-12)


def test_a_program_for_other_data_is_refused(section: tuple[str, Path], tmp_path: Path) -> None:
    for at, (inputs, outputs) in enumerate([(2, 1), (1, 3)]):
        export(nn.Linear(inputs, outputs), torch.randn(3, inputs), tmp_path / f"{at}")
        text = store_weights(ArtifactStore(tmp_path / "artifacts"), tmp_path / f"{at}")
        spec = parse_task_spec(file_of(text))
        library.offer(ArtifactStore(tmp_path / "artifacts"), spec)
        with raises_fault(ModelError, "ShapeMismatch"):
            model_of(spec)


def test_the_policy_allows_programs_by_their_hash(section: tuple[str, Path]) -> None:
    spec = parse_task_spec(file_of(section[0]))
    assert isinstance(spec.model, ProgramSpec)
    own = spec.model.program
    for allowed, programs in ((True, "any"), (True, [own]), (False, []), (False, ["00" * 32])):
        policy = Policy.model_validate({**OPEN_POLICY, "programs": programs})
        if allowed:
            policy.require(spec, OPERATOR)
        else:
            with raises_fault(OwnersRefusal, "NotAllowed", f"`programs` does not list its program {own}"):
                policy.require(spec, OPERATOR)
    usual = {name: value for name, value in OPEN_POLICY.items() if name != "programs"}
    with raises_fault(OwnersRefusal, "NotAllowed", "`programs`"):
        Policy.model_validate(usual).require(spec, OPERATOR)
    with pytest.raises(ValidationError):
        Policy.model_validate({**OPEN_POLICY, "programs": ["my program"]})


def test_the_policy_allows_programs_of_an_author_who_signed_them(section: tuple[str, Path], tmp_path: Path) -> None:
    """For the weights that the author signed, too. A signature of another statement is another account's."""
    author, other = Account.create(), Account.create()
    export(module(), torch.randn(3, 1), tmp_path / "program")
    signed = store_weights(ArtifactStore(tmp_path / "artifacts"), tmp_path / "program", author)
    spec = parse_task_spec(file_of(signed))
    assert isinstance(spec.model, ProgramSpec)
    assert spec.model.author == author.address.lower()

    def objections(model: ProgramSpec, **rules: Any) -> list[str]:
        policy = Policy.model_validate({**OPEN_POLICY, "programs": [], **rules})
        return policy.objections(spec.model_copy(update={"model": model}), OPERATOR)

    by_author = {"authors": [author.address]}
    assert objections(spec.model, **by_author) == []
    assert objections(spec.model, programs=[spec.model.program]) == []
    (said,) = objections(spec.model, authors=[other.address])
    assert said == (
        f"`programs` does not list its program {spec.model.program}, and `authors` does not list its author"
        f" {author.address.lower()}"
    )
    for changes in (
        {"signature": None}, {"program": "ab" * 32}, {"weights": ["ab" * 32]}, {"frozen": ["ab" * 32]},
        {"signature": "00" * 65}, {"signature": "ff" * 65}, {"signature": spec.model.signature[:-2] + "1d"},  # type: ignore[index]
    ):  # fmt: skip
        assert objections(spec.model.model_copy(update=changes), **by_author), changes
    with pytest.raises(ValidationError):
        Policy.model_validate({**OPEN_POLICY, "authors": "any"})


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (("[training]", '[privacy]\nepsilon = 8.0\nmax_grad_norm = 1.0\n[training]'), "moves without a gradient"),
        (("bits = 10", 'bits = 10\ncodec = {name = "hash", buckets = 3}'), "moves without a gradient"),
        (("epochs = 2", "steps = 2\ncontrol_variates = true"), "moves without a gradient"),
        (('"1.running_var"', '"9.running_var"'), "moving has 9.running_var, and shapes does not"),
        (("[4, 1]", "[0, 1]"), "greater than or equal to 1"),
        (("program = \"", 'program = "0x'), "program"),
    ],
    ids=["private", "a codec", "control variates", "another name", "no size", "another hash"],
)  # fmt: skip
def test_what_a_program_cannot_do_is_refused_in_the_task_file(
    section: tuple[str, Path], lines: tuple[str, str], why: str
) -> None:
    text = file_of(section[0]).decode()
    assert lines[0] in text
    with pytest.raises(Exception, match=why):
        parse_task_spec(text.replace(*lines, 1).encode())


@pytest.mark.parametrize(
    ("training", "update"),
    [
        ("epochs = 3", "bits = 10"),
        ("epochs = 3", 'codec = {name = "hash", buckets = 5}'),
        ("epochs = 3", 'codec = {name = "lowrank", rank = 1}'),
        ("epochs = 9\npatience = 1", "bits = 10"),
        ("steps = 4\nproximal = 0.5", "bits = 10"),
        ('epochs = 3\noptimizer = "adamw"\nschedule = "linear"', 'codec = {name = "hash", buckets = 7}'),
        ("epochs = 2", 'codec = {name = "dct", chunk = 4, kept = 2}'),
        ("epochs = 2", 'codec = {name = "sketch", rows = 3, columns = 3, kept = 4}'),
    ],
    ids=["dense", "hash", "low rank", "patience", "proximal", "AdamW within hash", "dct", "sketch"],
)
def test_a_program_learns_as_the_family_that_it_equals(training: str, update: str, tmp_path: Path) -> None:
    export(nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1)), torch.zeros(2, 1), tmp_path / "program")
    store = ArtifactStore(tmp_path / "artifacts")
    own = parse_task_spec(file_of(store_weights(store, tmp_path / "program"), training, update))
    library.offer(store, own)
    family = parse_task_spec(file_of('[model]\nname = "mlp"\nhidden = [4]\n', training, update))
    random, base = np.random.default_rng(2), model_of(own).initial(0)
    rows = random.normal(size=(40, 1)).astype(np.float32), random.integers(0, 2, 40)
    guides = Guides(held_out=(rows[0][:9], rows[1][:9]))
    found = [learn(spec, spec.basis(bytes(32)), base, *rows, 3, guides=guides) for spec in (own, family)]
    assert np.abs(found[1]).max() > 1e-3
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def started(raw: bytes) -> nn.Sequential:
    """A module that starts where this task of the family does."""
    made = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1))
    initial = model_of(parse_task_spec(raw)).initial(int.from_bytes(keccak(raw)[:8], "big"))
    nn.utils.vector_to_parameters(torch.from_numpy(initial), made.parameters())
    return made


@pytest.mark.parametrize(
    ("training", "update"),
    [
        ('epochs = 2\nlocal = ["2.weight", "2.bias"]', "bits = 10"),
        ("control_variates = true\nsteps = 4", "bits = 4\nvalue_range = 0.1\nfeedback = true"),
    ],
    ids=["local tensors", "control variates and feedback"],
)
def test_a_task_of_a_program_goes_as_that_of_the_family_that_it_equals(
    training: str, update: str, tmp_path: Path
) -> None:
    """Over all rounds, with what hospitals remember, from the same start."""
    family = file_of('[model]\nname = "mlp"\nhidden = [4]\n', training, update)
    export(started(family), torch.zeros(2, 1), tmp_path / "program")
    own = file_of(store_weights(ArtifactStore(tmp_path / "artifacts"), tmp_path / "program"), training, update)
    random = np.random.default_rng(2)
    values = [random.random((rows, 1)) for rows in ROWS]
    examples: list[Examples] = [Table(one, (one[:, 0] > random.random(len(one))).astype(np.int64)) for one in values]
    played = [simulated(raw, examples, [tmp_path / "artifacts"]).rounds for raw in (own, family)]
    for one, other in zip(*played, strict=True):
        np.testing.assert_allclose(one.model, other.model, rtol=0, atol=1e-6)
    assert np.abs(played[0][-1].model - played[0][0].model).max() > 1e-3
