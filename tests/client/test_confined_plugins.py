"""The process that computes a plug-in: a family's bits, an end for each fault, and nothing of the node in reach."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.main import app
from consilium_client.data.table.reader import Table
from consilium_client.errors import ModelError
from consilium_client.models import model_of
from consilium_client.models.plugin import OfPlugin
from consilium_client.models.training import Guides, learn, train
from consilium_client.models.weights import named_tensors, parse_weights
from consilium_client.plugins import landlock
from consilium_client.plugins.errors import PluginError
from consilium_client.programs import confined
from consilium_client.programs.errors import ProgramError
from consilium_lab.simulation.run import simulate
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import read_model
from consilium_operators.onnx_file import add_onnx
from consilium_operators.prediction import Predictor
from consilium_operators.weights import store_weights
from model_driver import written
from plugin_attacks import ATTACKS, NAMES
from plugin_wheels import FAMILY, PERCEPTRON, START, Site, section_of, site_in, task_of
from raised_faults import raises_fault
from safetensors.numpy import save_file
from training_driver import task_file
from typer.testing import CliRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no plug-in is computed")
MLP = '[model]\nname = "mlp"\nhidden = [4]\n'
RANDOM = np.random.default_rng(2)
DATA = RANDOM.normal(size=(40, 1)).astype(np.float32), RANDOM.integers(0, 2, 40)
NORMED = """
from torch import nn


def build(data, arguments):
    return nn.Sequential(nn.Linear(data["columns"], 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 1))
"""
# Its first row's value says what forward does.
MISBEHAVING = """
import os
import sys
import time

import torch
from torch import nn


class Misbehaving(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(1, 1)
        self.last.weight.data.fill_(int.from_bytes(os.urandom(3), "big"))  # from no seed

    def forward(self, rows):
        what = int(rows[0, 0]) - 10
        if what == 1:
            raise RuntimeError("a row's secret: " + str(rows))
        if what == 2:
            return rows.new_zeros(len(rows), 2)
        if what == 3:
            return "logits"
        if what == 4:
            sys.exit(0)
        if what == 5:
            return self.last(rows) * float("nan")
        if what == 6:
            os._exit(3)
        if what == 7:
            time.sleep(600)
        return self.last(rows)


def build(data, arguments):
    return Misbehaving()
"""
PROBE = """
import torch
from torch import nn

AT_IMPORT = tried(None)
with open(os.path.join(os.path.dirname(__file__), "table.txt")) as own:  # its own files it may read
    OWN = own.read()


class Probing(nn.Module):
    def __init__(self):
        super().__init__()
        self.imported, self.computed = nn.Parameter(torch.tensor(AT_IMPORT)), None

    def forward(self, rows):
        if self.computed is None:
            self.computed = sum(tried(None))
        return rows[:, :1] * 0 + self.imported.sum() * 0 + self.computed


def build(data, arguments):
    assert OWN == "1,2"
    return Probing()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("plugins")
    with site_in(folder) as made:
        yield made


@pytest.fixture(scope="module")
def perceptron(site: Site) -> TaskSpec:
    return site.install("test_plugin", PERCEPTRON)


def of(spec: TaskSpec) -> OfPlugin:
    found = model_of(spec)
    assert isinstance(found, OfPlugin)
    return found


def again(spec: TaskSpec, training: str, update: str) -> TaskSpec:
    return task_of(spec.model, training, update)  # type: ignore[arg-type]  # a plug-in's


# --- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("training", "update"),
    [
        ("epochs = 3", "bits = 10"),
        ("epochs = 3", 'codec = {name = "hash", buckets = 5}'),
        ("epochs = 3", 'codec = {name = "lowrank", rank = 1}'),
        ("epochs = 3", 'codec = {name = "sketch", rows = 3, columns = 4}'),
        ('epochs = 9\npatience = 1\nproximal = 0.5\noptimizer = "adamw"', "bits = 10"),
        ("steps = 3\ncontrol_variates = true", "bits = 10"),
    ],
    ids=["dense", "hash", "low rank", "sketch", "patience and AdamW", "control variates"],
)
def test_a_plug_in_learns_to_the_bits_of_the_family_that_it_equals(
    training: str, update: str, perceptron: TaskSpec
) -> None:
    """The family is computed by this process. A plug-in never reaches a GPU."""
    family = parse_task_spec(task_file(training, update).replace(FAMILY.encode(), MLP.encode()))
    own, base = again(perceptron, training, update), model_of(family).initial(4)
    correction = np.full(own.coordinates, 0.1, np.float32) if own.training.control_variates else None
    guides = Guides((DATA[0][:9], DATA[1][:9]), correction, np.array([0.5, 2], np.float32))
    found, expected = (
        learn(spec, spec.basis(b"\x07" * 32), base, *DATA, 3, device=device, guides=guides)
        for spec, device in ((own, "cuda"), (family, "cpu"))
    )
    assert found.tobytes() == expected.tobytes()
    assert np.abs(found).max() > 1e-3


def test_a_start_is_drawn_from_its_seed_and_judged_as_the_family(perceptron: TaskSpec) -> None:
    model = of(perceptron)
    plain = subprocess.run([sys.executable, "-c", "import test_plugin"], capture_output=True, text=True, check=False)
    assert plain.stderr.strip() == "poisoned"  # as any other process would have it
    first, same, other = (model.initial(seed) for seed in (1 << 60, 1 << 60, 5))
    assert first.tobytes() == same.tobytes() != other.tobytes()
    family = model_of(parse_task_spec(task_file("epochs = 1").replace(FAMILY.encode(), MLP.encode())))
    rows = np.linspace(-2, 2, 600, dtype=np.float32).reshape(-1, 1)
    found, expected = model.evaluate(first, rows), family.evaluate(first, rows)
    np.testing.assert_allclose(found.predictions, expected.predictions, rtol=0, atol=1e-14)
    assert found.activations.shape == (600, 1)
    with raises_fault(PluginError, "PluginElsewhere"):
        model.module(first)


def test_a_task_of_a_plug_in_goes_as_that_of_the_family_that_it_equals(perceptron: TaskSpec, tmp_path: Path) -> None:
    """Over all rounds, from a start in the store, with what hospitals remember; and the model can be used."""
    save_file(named_tensors(perceptron, of(perceptron).initial(7)), tmp_path / "start.safetensors")
    start = store_weights(ArtifactStore(tmp_path / "artifacts"), tmp_path / "start.safetensors")
    training, update = "control_variates = true\nsteps = 4", "bits = 4\nvalue_range = 0.1\nfeedback = true"
    raw = task_file(training, update, "accept_floor = -1000.0\nharmful_below = -1000.0").decode()
    own, family = (
        raw.replace(FAMILY, f"{start}\n{section}\n")
        for section in (section_of(perceptron.model), MLP)  # type: ignore[arg-type]  # a plug-in's
    )
    values = [RANDOM.random((rows, 1)) for rows in (30, 45)]
    tables = [Table(one, (one[:, 0] > RANDOM.random(len(one))).astype(np.int64)) for one in values]
    played = [
        simulate(text.encode(), dict(zip("ab", tables, strict=True)), {"v": tables[0]}, 7, compared=False,
                 locations=[tmp_path / "artifacts"]).rounds
        for text in (own, family)
    ]  # fmt: skip
    for one, other in zip(*played, strict=True):
        assert one.model.tobytes() == other.model.tobytes()
    assert np.abs(played[0][-1].model - played[0][0].model).max() > 1e-3
    folder = written(tmp_path / "released", own)
    assert Predictor(read_model(folder)).predictions(tables[0]).shape == (30, 2)
    with raises_fault(OperatorError, "OnnxImpossible", "it is a plug-in"):
        add_onnx(folder)


def test_the_contracts_suite_finds_moving_tensors_and_writes_a_task(site: Site, tmp_path: Path) -> None:
    shapes = {"0.weight": [4, 1], "0.bias": [4], "1.weight": [4], "1.bias": [4], "3.weight": [1, 4], "3.bias": [1]}
    moving = ["1.running_mean", "1.running_var"]
    spec = site.install("normed", NORMED, shapes=shapes | {name: [4] for name in moving}, moving=moving)
    (tmp_path / "task.toml").write_bytes(task_file("epochs = 1"))
    start = tmp_path / "start.safetensors"
    said = say(0, "test", "normed", "--task-file", tmp_path / "task.toml", "--weights", start)
    assert [line.partition("  ")[0] for line in said.splitlines()[:8]] == ["holds"] * 8
    assert "FAILS" not in said
    assert "rows beside a row: do not change its result" in said
    section = said[said.index("[model]") :]
    raw = task_file("epochs = 3").decode().replace(FAMILY, f"{START}{section}")
    assert parse_task_spec(raw.encode()).model == spec.model
    base = parse_weights(start.read_bytes(), spec)
    assert base.tobytes() == of(spec).initial(0).tobytes()
    np.testing.assert_array_equal(base[-8:], [0] * 4 + [1] * 4)
    first, same, other = (train(spec, base, *DATA, seed) for seed in (3, 3, 4))
    assert first.tobytes() == same.tobytes() != other.tobytes()
    assert (first[-8:] != base[-8:]).all()


# --- what is out of reach --------------------------------------------------------------------------------------------


def test_nothing_of_the_node_is_in_reach_at_its_import_and_in_its_forward(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site.folder / "key").write_text("a key")
    monkeypatch.setenv("CONSILIUM_PASSWORD", "a password")
    code = f"FOLDER = {str(site.folder)!r}\n{ATTACKS}{PROBE}"
    names = NAMES
    assert len(names) == 31
    model = of(site.install("probing", code, shapes={"imported": [len(names)]}))
    tried = model.initial(0)
    assert {name: done for name, done in zip(names, tried, strict=True) if done} == {}
    assert model.evaluate(tried, DATA[0][:2]).activations.tolist() == [[0.0], [0.0]]
    assert sorted(os.listdir(site.folder)) == ["key", "site", "wheels"]
    assert (site.folder / "key").read_text() == "a key"
    model.require_installed()  # its code is as it was


def test_without_landlock_no_plug_in_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(sys, "platform", "darwin")
        with raises_fault(ProgramError, "NotConfined", "only Linux"):
            landlock.require_linux()
    monkeypatch.setattr(landlock, "_call", lambda number, *arguments: -1)
    monkeypatch.setattr(Path, "iterdir", lambda self: iter([self]))
    with raises_fault(ProgramError, "NotConfined", "no Landlock"):
        landlock.read_only(set())
    monkeypatch.undo()
    with raises_fault(ProgramError, "NotConfined", "threads already"):
        monkeypatch.setattr(Path, "iterdir", lambda self: iter([self, self]))
        landlock.read_only(set())


# --- its end --------------------------------------------------------------------------------------------------------


def test_a_plug_in_that_misbehaves_costs_its_call_by_name(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = site.install("misbehaving", MISBEHAVING, shapes={"last.weight": [1, 1], "last.bias": [1]})
    model = of(spec)
    base = model.initial(0)

    def called(what: int) -> None:
        model.evaluate(base, np.full((3, 1), 10 + what, np.float32))

    called(0)
    for what, why in ((1, "RuntimeError; tell"), (2, r"\(3, 2\)"), (3, "no tensor"), (4, "SystemExit")):
        with raises_fault(PluginError, "PluginFailed", why):
            called(what)
    with raises_fault(ModelError, "UpdateNotFinite"):
        called(5)
    with raises_fault(ModelError, "UpdateNotFinite"):
        train(spec, base, np.full((3, 1), 15, np.float32), np.array([0, 1, 0]), 1)
    (tmp_path / "task.toml").write_bytes(task_file("epochs = 1"))
    said = say(1, "test", "misbehaving", "--task-file", tmp_path / "task.toml")
    assert said.splitlines()[-1].startswith("FAILS  a seed draws one start: two builds of one seed differ")
    assert "misbehaving 1.0" in say(0, "list")
    with raises_fault(ProgramError, "ProgramEnded", "status 3.*the next"):
        called(6)
    monkeypatch.setattr(confined, "SPARE_SECONDS", 1.0)
    model.window = 1
    started = time.monotonic()
    with raises_fault(ProgramError, "ProgramEnded", "longer than 2 seconds"):
        called(7)
    assert time.monotonic() - started < 60  # with the start of another process


def say(code: int, *arguments: object) -> str:
    ran = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["plugin", *map(str, arguments)], catch_exceptions=False)
    assert ran.exit_code == code, ran.output
    return ran.output


def test_an_import_that_fails_or_hangs_costs_the_call_by_name(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with raises_fault(PluginError, "PluginFailed", "its import: PermissionError"):
        of(site.install("calling", "import socket\nsocket.socket()")).initial(0)
    monkeypatch.setattr(confined, "SPARE_SECONDS", 0.0)
    monkeypatch.setattr(confined, "START_SECONDS", 7.0)
    with raises_fault(ProgramError, "ProgramEnded", "longer than"):
        of(site.install("hanging", "import time\ntime.sleep(600)")).initial(0)


def test_other_tensors_than_the_task_files_are_refused(perceptron: TaskSpec) -> None:
    shapes = {name: list(shape) for name, shape in perceptron.model.tensors(perceptron.data).items()}
    assert of(perceptron).described() == {"shapes": shapes, "moving": []}
    other = perceptron.model.model_copy(update={"shapes": {"0.weight": [4, 1]}})
    with raises_fault(PluginError, "PluginFailed", "not those of the task file"):
        of(perceptron.model_copy(update={"model": other})).initial(0)
