"""An exported program as files: its folder, its section of a task file, and its finished model in use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import consilium
import numpy as np
import pytest
import torch
from consilium.sources import open_store
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.models import model_of
from consilium_client.programs import confined, library
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.library import Files
from consilium_core.errors import ArtifactMissing
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import PROGRAM, PROGRAM_FROZEN, PROGRAM_WEIGHTS, read_model
from consilium_operators.prediction import Predictor, examples_of, rows_of
from model_driver import TABLE, written
from raised_faults import raises_fault
from torch import nn

FAMILY = '[model]\nname = "mlp"\nhidden = [4]\n'


def module() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3))


@pytest.fixture
def exported(tmp_path: Path) -> consilium.ExportedProgram:
    return consilium.export(module(), torch.zeros(2, 3), tmp_path / "program")


@pytest.fixture
def text(exported: consilium.ExportedProgram, tmp_path: Path) -> str:
    """A task file that names the program."""
    section = consilium.store_weights(exported.folder, artifacts=[tmp_path / "artifacts"])
    assert FAMILY in TABLE
    return TABLE.replace(FAMILY, section)


def test_the_store_gets_both_files_and_the_task_file_a_section(
    exported: consilium.ExportedProgram, text: str, tmp_path: Path
) -> None:
    spec = parse_task_spec(text.encode())
    assert isinstance(spec.model, ProgramSpec)
    assert exported.parameters == spec.parameters == 3 * 5 + 5 + 5 * 3 + 3
    assert [*spec.model.tensors(spec.data)] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    files = library.files_of(ArtifactStore(tmp_path / "artifacts"), spec.model)
    assert files.graph == (exported.folder / "program.json").read_bytes()
    assert files.weights == (exported.folder / "weights.safetensors").read_bytes()
    assert "\n".join(text.splitlines()[-5:]).startswith('[model.shapes]\n"0.weight" = [5, 3]')


def test_a_folder_is_never_written_over(exported: consilium.ExportedProgram) -> None:
    with raises_fault(OperatorError, "OutputTaken"):
        consilium.export(module(), torch.zeros(2, 3), exported.folder)


def test_a_finished_program_predicts_from_its_folder_alone(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = parse_task_spec(text.encode())
    assert isinstance(spec.model, ProgramSpec)
    folder = written(tmp_path, text, program=library.files_of(ArtifactStore(tmp_path / "artifacts"), spec.model))
    monkeypatch.setattr(library, "_SOURCES", {})
    monkeypatch.setattr(library, "_LOADED", {})
    saved = read_model(folder)
    body = json.dumps({"rows": [{"age": 61, "sex": 1}, {"age": None, "sex": 0}]}).encode()
    inputs = model_of(spec).inputs(examples_of(rows_of(body, spec.data, 9), spec.data), saved.sums)
    own = module().double()
    with torch.no_grad():
        for into, values in zip(own.parameters(), saved.tensors.values(), strict=True):
            into.copy_(torch.from_numpy(values))
        expected = torch.softmax(own(torch.from_numpy(inputs).double()), 1)
    np.testing.assert_allclose(Predictor(saved).predict(body), expected, rtol=0, atol=1e-12)
    (folder / PROGRAM).write_bytes((folder / PROGRAM).read_bytes().replace(b"tanh", b"relu"))
    with pytest.raises(OperatorError):
        read_model(folder)


def test_a_folder_with_the_weights_of_another_program_is_refused(text: str, tmp_path: Path) -> None:
    spec = parse_task_spec(text.encode())
    assert isinstance(spec.model, ProgramSpec)
    files = library.files_of(ArtifactStore(tmp_path / "artifacts"), spec.model)
    folder = written(tmp_path, text, program=Files(files.graph, files.weights))
    (folder / PROGRAM_WEIGHTS).write_bytes(files.weights[:-4] + bytes(4))
    with raises_fault(OperatorError, "ModelFolderInvalid"):
        read_model(folder)


def on_a_base(seed: int) -> nn.Sequential:
    """Its first layer is frozen, and the same for every seed."""
    torch.manual_seed(3)
    base = nn.Linear(3, 4).requires_grad_(False)
    torch.manual_seed(seed)
    return nn.Sequential(base, nn.Tanh(), nn.Linear(4, 3))


def of(text: str) -> tuple[TaskSpec, ProgramSpec]:
    spec = parse_task_spec(text.encode())
    assert isinstance(spec.model, ProgramSpec)
    return spec, spec.model


def put(folder: Path, seed: int, store: Path) -> str:
    """A task file with a program on the base."""
    consilium.export(on_a_base(seed), torch.zeros(2, 3), folder)
    return TABLE.replace(FAMILY, consilium.store_weights(folder, artifacts=[store]))


def test_a_hospital_that_has_the_frozen_base_downloads_none_of_it(tmp_path: Path) -> None:
    """Two programs on one base name the same file. Its owner's store need not have it."""
    first, second = (put(tmp_path / f"{seed}", seed, tmp_path / "operator") for seed in (1, 2))
    (spec, model), (_, other) = of(first), of(second)
    assert model.frozen == other.frozen
    assert model.weights != other.weights
    assert spec.parameters == 4 * 3 + 3
    for one in model.frozen:
        (found,) = (tmp_path / "operator").rglob(f"*{one}*")
        found.unlink()
    with pytest.raises(ArtifactMissing):
        library.files_of(ArtifactStore(tmp_path / "operator"), model)
    consilium.store_weights(tmp_path / "2" / "frozen.safetensors", artifacts=[tmp_path / "own"])
    both = open_store([str(tmp_path / "own"), str(tmp_path / "operator")])
    library.keep(library.files_of(both, model), model)
    with confined.computing_here():
        built = model_of(spec).module(model_of(spec).initial(0))
        assert torch.allclose(built(torch.ones(2, 3)), on_a_base(1)(torch.ones(2, 3)))


def test_a_folder_without_its_frozen_file_is_no_program(tmp_path: Path) -> None:
    consilium.export(on_a_base(1), torch.zeros(2, 3), tmp_path / "program")
    (tmp_path / "program" / "frozen.safetensors").unlink()
    with raises_fault(OperatorError, "ProgramFolderInvalid", "frozen.safetensors"):
        consilium.store_weights(tmp_path / "program", artifacts=[tmp_path / "artifacts"])


def test_a_model_on_a_frozen_base_is_used_from_its_folder_and_refused_with_another(tmp_path: Path) -> None:
    text = put(tmp_path / "program", 1, tmp_path / "artifacts")
    files = library.files_of(ArtifactStore(tmp_path / "artifacts"), of(text)[1])
    folder = written(tmp_path, text, program=files)
    assert read_model(folder).spec == of(text)[0]
    (folder / PROGRAM_FROZEN).write_bytes(files.frozen[:-4] + bytes(4))
    with raises_fault(OperatorError, "ModelFolderInvalid"):
        read_model(folder)


def test_a_task_that_leaves_out_the_frozen_file_is_refused(tmp_path: Path) -> None:
    spec, model = of(put(tmp_path / "program", 1, tmp_path / "artifacts"))
    files, bare = (
        library.files_of(ArtifactStore(tmp_path / "artifacts"), model),
        model.model_copy(update={"frozen": []}),
    )
    library.keep(Files(files.graph, files.weights), bare)
    with raises_fault(ProgramError, "ProgramMalformed", "frozen"):
        library.loaded(bare, spec.data)


WATCHED = """
import sys
from pathlib import Path

opened = []
sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
from consilium.sources import open_store
from consilium_chain.artifacts.store import ArtifactStore
from consilium_core.errors import ArtifactMissing
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models import model_of
from consilium_client.models.training import train
from consilium_client.programs.confined import computing_here
from consilium_client.programs.library import offer
import numpy as np

spec = parse_task_spec(Path(sys.argv[1]).read_bytes())
offer(ArtifactStore(Path(sys.argv[2])), spec)
model = model_of(spec)
base = model.initial(0)
with computing_here():  # as the process does that computes a program
    train(spec, base, np.zeros((4, 3), np.float32), np.zeros(4, np.int64), 0)
    before, modules = len(opened), set(sys.modules)
    train(spec, base, np.ones((40, 3), np.float32), np.zeros(40, np.int64), 0)
print([name for name in opened[before:]], sorted(set(sys.modules) - modules))
print(any("author" in name for name in [*sys.modules, *opened]))
"""


def test_a_process_that_trains_a_program_opens_no_file_and_imports_nothing_of_its_author(tmp_path: Path) -> None:
    (tmp_path / "author.py").write_text(
        "import torch\n\nclass Own(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.last = torch.nn.Linear(3, 3)\n\n    def forward(self, rows):\n"
        "        return self.last(torch.sin(rows))\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from author import Own  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    consilium.export(Own(), torch.zeros(2, 3), tmp_path / "program")
    section = consilium.store_weights(tmp_path / "program", artifacts=[tmp_path / "artifacts"])
    assert "author" not in section + (tmp_path / "program" / "program.json").read_text()
    (tmp_path / "task.toml").write_text(TABLE.replace(FAMILY, section))
    ended = subprocess.run(
        [sys.executable, "-c", WATCHED, tmp_path / "task.toml", tmp_path / "artifacts"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.stdout == "[] []\nFalse\n", ended.stderr
