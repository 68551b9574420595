"""The process that computes a program: the same bits as here, an end for each fault, and nothing of the node in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.errors import DataError, ModelError
from consilium_client.models import model_of
from consilium_client.models import program as program_model
from consilium_client.models.training import Guides, learn, train
from consilium_client.privacy.dp_sgd import Mechanism, learn_privately
from consilium_client.programs import confined
from consilium_client.programs.errors import ProgramError
from program_driver import PRIVATE, both, offered, processes, stored
from raised_faults import raises_fault
from torch import nn
from training_driver import task_file

FAMILY = '[model]\nname = "logistic"\n'
RANDOM = np.random.default_rng(2)
ROWS = RANDOM.normal(size=(40, 1)).astype(np.float32), RANDOM.integers(0, 2, 40)


class Large(nn.Module):
    """Makes a tensor of a quarter of a gigabyte."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(1, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(rows) + rows.new_zeros((1 << 26,)).sum()
        return logits


MODULES: dict[str, Callable[[], nn.Module]] = {
    "small": lambda: nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 1)),
    "linear": lambda: nn.Sequential(nn.Linear(1, 2), nn.Linear(2, 1)),
    "large": Large,
    "heavy": lambda: nn.Sequential(nn.Linear(1, 2500), nn.ReLU(), nn.Linear(2500, 2500), nn.ReLU(), nn.Linear(2500, 1)),
}


def spec_of(folder: Path, training: str = "epochs = 3", update: str = "bits = 10", name: str = "small") -> TaskSpec:
    section = stored(folder, name, MODULES[name], 1)
    return offered(folder, task_file(training, update).decode().replace(FAMILY, section))


def process() -> psutil.Process:
    (found,) = processes()
    return found


def trained(spec: TaskSpec) -> Any:
    return train(spec, model_of(spec).initial(0), *ROWS, 1)


@pytest.mark.parametrize(
    ("training", "update"),
    [
        ("epochs = 3", "bits = 10"),
        ("epochs = 3", 'codec = {name = "hash", buckets = 5}'),
        ("epochs = 3", 'codec = {name = "lowrank", rank = 1}'),
        ("epochs = 3", 'codec = {name = "dct", chunk = 4, kept = 2}'),
        ("epochs = 3", 'codec = {name = "sketch", rows = 3, columns = 4}'),
        ("epochs = 9\npatience = 1\nproximal = 0.5", "bits = 10"),
        ('epochs = 3\noptimizer = "adamw"\nschedule = "linear"', 'codec = {name = "hash", buckets = 7}'),
        ("steps = 3\ncontrol_variates = true", "bits = 10"),
    ],
    ids=["dense", "hash", "low rank", "cosines", "sketch", "patience", "AdamW within hash", "control variates"],
)
def test_the_process_trains_to_the_same_bits(training: str, update: str, folder: Path) -> None:
    spec = spec_of(folder, training, update)
    correction = np.full(spec.coordinates, 0.1, np.float32) if spec.training.control_variates else None
    guides = Guides((ROWS[0][:9], ROWS[1][:9]), correction, np.array([0.5, 2], np.float32))
    base, seen = model_of(spec).initial(0), list[tuple[int, int, float]]()

    def learnt() -> Any:
        return learn(spec, spec.basis(b"\x07" * 32), base, *ROWS, 3, lambda *one: seen.append(one), guides=guides)

    found, expected = both(learnt)
    assert found.tobytes() == expected.tobytes()
    assert np.abs(found).max() > 1e-3
    half = len(seen) // 2
    assert seen[:half] == seen[half:]
    assert [done for done, _, _ in seen[:half]] == list(range(1, half + 1))


@pytest.mark.parametrize("update", ["bits = 10", 'codec = {name = "hash", buckets = 2}'], ids=["dense", "hash"])
def test_private_training_has_the_same_bits_but_for_its_noise(update: str, folder: Path) -> None:
    spec = spec_of(folder, f"epochs = 3\n{PRIVATE}", update, "linear")
    base = model_of(spec).initial(0)

    def learnt(noise: float = 0.0) -> Any:
        assert spec.privacy is not None
        mechanism, basis = Mechanism(noise, 1.0, 3), spec.basis(b"\x07" * 32)
        return learn_privately(spec, spec.privacy, mechanism, basis, base, *ROWS)

    found, expected = both(learnt)
    assert found.tobytes() == expected.tobytes()
    assert np.abs(found).max() > 1e-3
    assert learnt(1.0).tobytes() != learnt(1.0).tobytes()  # from the system's randomness
    confined.end_all()


def test_evaluation_has_the_same_bits_in_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_model, "INPUTS_AT_ONCE", 300)
    spec, inputs = spec_of(folder), np.linspace(-2, 2, 1_000, dtype=np.float32).reshape(-1, 1)
    model = model_of(spec)
    found, expected = both(lambda: model.evaluate(model.initial(0), inputs))
    assert found.predictions.tobytes() == expected.predictions.tobytes()
    assert found.activations.tobytes() == expected.activations.tobytes()
    assert found.activations.shape == (1_000, 4)
    model.require_apart()


def test_a_program_of_many_operations_has_the_same_bits_with_all_threads(folder: Path) -> None:
    spec = spec_of(folder, "epochs = 2", name="heavy")
    model = model_of(spec)
    assert model.threads == (int(os.environ.get("OMP_NUM_THREADS", 0)) or len(os.sched_getaffinity(0)))
    found, expected = both(lambda: trained(spec))
    assert found.tobytes() == expected.tobytes()
    found, expected = both(lambda: model.evaluate(model.initial(0), ROWS[0]))
    assert found.activations.tobytes() == expected.activations.tobytes()
    confined.end_all()


def test_errors_of_training_keep_their_names(folder: Path) -> None:
    spec = spec_of(folder)
    base = model_of(spec).initial(0)
    fast = spec.model_copy(update={"training": spec.training.model_copy(update={"learning_rate": 1e38})})
    with raises_fault(ModelError, "UpdateNotFinite", "trained parameters"):
        train(fast, base, *ROWS, 1)
    kept = process().pid
    with raises_fault(DataError, "TooFewRows"):
        train(spec, base, ROWS[0][:0], ROWS[1][:0], 1)
    with raises_fault(ModelError, "ShapeMismatch", r"\(39,\)"):
        train(spec, base, ROWS[0], ROWS[1][:39], 1)
    assert process().pid == kept  # no fault of the process


# --- its end --------------------------------------------------------------------------------------------------------


def test_a_killed_process_is_named_and_the_next_call_has_another(folder: Path) -> None:
    spec, killed = spec_of(folder), list[int]()
    long = spec_of(folder, "epochs = 1000")

    def kill(done: int, steps: int, loss: float) -> None:
        if not killed:
            killed.append(process().pid)
            os.kill(killed[0], signal.SIGKILL)

    with raises_fault(ProgramError, "ProgramEnded", "SIGKILL.*the next"):
        train(long, model_of(long).initial(0), *ROWS, 1, kill)
    assert trained(spec) is not None
    assert process().pid not in killed
    between = process()  # two calls
    between.kill()
    between.wait(10)
    assert trained(spec) is not None


def test_a_process_that_hangs_is_ended_at_its_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(folder)
    trained(spec)
    monkeypatch.setattr(confined, "SPARE_SECONDS", 1.0)
    short = spec.model_copy(update={"windows": spec.windows.model_copy(update={"commit": 1})})
    hanging = process()
    hanging.suspend()
    started = time.monotonic()
    with raises_fault(ProgramError, "ProgramEnded", "longer than 2 seconds"):
        trained(short)
    assert time.monotonic() - started < 10
    assert not hanging.is_running()


def test_a_simulation_has_no_phase_to_be_late_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(folder, "epochs = 300")
    short = spec.model_copy(update={"windows": spec.windows.model_copy(update={"commit": 1})})
    monkeypatch.setattr(confined, "SPARE_SECONDS", -0.99)
    with confined.without_windows():
        trained(short)
    with raises_fault(ProgramError, "ProgramEnded", "longer than"):
        trained(short)


def test_a_program_that_takes_more_memory_than_its_limit_costs_its_call(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = spec_of(folder, name="large"), spec_of(folder)
    confined.end_all()
    with monkeypatch.context() as low:
        low.setattr(confined, "BASE", 1 << 26)
        low.setattr(program_model, "OF_VALUES", 0)
        with pytest.raises(ProgramError) as caught:
            trained(large)
        assert caught.value.name in ("ProgramFailed", "ProgramEnded")
        assert trained(small).shape == (13,)  # this process goes on, with the same limit
    assert trained(large).shape == (2,)
    confined.end_all()


def test_a_progress_that_fails_leaves_no_answer_behind(folder: Path) -> None:
    spec = spec_of(folder)

    def fail(done: int, steps: int, loss: float) -> None:
        raise ModelError("WeightsUnusable", why="the screen is gone")

    with raises_fault(ModelError, "WeightsUnusable"):
        train(spec, model_of(spec).initial(0), *ROWS, 1, fail)
    found, expected = both(lambda: trained(spec))
    assert found.tobytes() == expected.tobytes()


def test_an_idle_process_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "IDLE_SECONDS", 0.5)
    confined.end_all()
    spec = spec_of(folder)
    trained(spec)
    for one in processes():
        one.wait(20)
    assert trained(spec) is not None


WAITS = """
import sys, time
from pathlib import Path
import numpy as np
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models import model_of
from consilium_client.programs import library
spec = parse_task_spec(Path(sys.argv[1]).read_bytes())
library.offer(ArtifactStore(Path(sys.argv[2])), spec)
model = model_of(spec)
model.evaluate(model.initial(0), np.zeros((3, 1), np.float32))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends with its next answer")
def test_the_process_ends_with_its_node_also_with_a_killed_one_and_while_it_hangs(folder: Path, tmp_path: Path) -> None:
    section = stored(folder, "small", MODULES["small"], 1)
    (tmp_path / "task.toml").write_bytes(task_file("epochs = 1").replace(FAMILY.encode(), section.encode()))
    command = [sys.executable, "-c", WAITS, str(tmp_path / "task.toml"), str(folder / "artifacts")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as node:
        assert node.stdout is not None
        assert node.stdout.readline() == b"ready\n"
        (child,) = psutil.Process(node.pid).children()
        child.suspend()
        node.kill()
    child.wait(20)


# --- its answers ----------------------------------------------------------------------------------------------------

FALSE = """
import os, struct, sys, time
from consilium_client.programs.frames import receive_arrays, receive_header, send, stated

requests, answers = sys.stdin.buffer, sys.stdout.buffer


def read():
    header = receive_header(requests)
    receive_arrays(requests, stated(header))


def raw(text, length=None):
    answers.write(struct.pack("<I", len(text) if length is None else length) + text)
    answers.flush()


def fault(error, name, values):
    send(answers, {"kind": "error", "error": error, "name": name, "values": values})


read()
send(answers, {"kind": "result"})
read()
"""
ANSWERS = {
    "a header without end": "raw(b'{', 0xFFFFFFFF)",
    "no JSON": "raw(b'nonsense')",
    "a list": "raw(b'[]')",
    "a nest": "raw(b'[' * 100_000)",
    "no kind": "raw(b'{}')",
    "another kind": "send(answers, {'kind': 'pickle'})",
    "progress that goes back": "for _ in 'xy': send(answers, {'kind': 'progress', 'done': 1, 'steps': 3, 'loss': 0.1})",
    "progress beyond its end": "send(answers, {'kind': 'progress', 'done': 4, 'steps': 3, 'loss': 0.1})",
    "progress in words": "send(answers, {'kind': 'progress', 'done': 'x', 'steps': 3, 'loss': 0.1})",
    "too few values": "send(answers, {'kind': 'result'}); answers.write(bytes(7)); answers.flush(); os._exit(0)",
    "an error without values": "fault('ModelError', 'UpdateNotFinite', {})",
    "an error that is none": "fault('ModelError', 'Unheard', {})",
    "an error's name that is none": "fault('ModelError', 'a b', {})",
    "an error of words for numbers": "fault('ProgramError', 'ProgramTooLarge', "
    "{'what': 'x', 'found': 'x', 'most': 'x', 'unit': 'x'})",
    "an error with a list of lists": "fault('ModelError', 'WeightsUnusable', {'why': [[[1]]]})",
    "an error that moves the cursor": "fault('ModelError', 'WeightsUnusable', {'why': chr(27) + '[2J'})",
    "an error that fills the screen": "fault('ModelError', 'WeightsUnusable', {'why': 'x' * 10_000})",
    "an error of another room": "fault('SystemExit', 'SystemExit', {})",
    "nothing": "os._exit(3)",
}


@pytest.fixture
def false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts another program in the process's place."""

    def put(text: str) -> None:
        (tmp_path / "false_process.py").write_text(text)
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        monkeypatch.setattr(confined, "MODULE", "false_process")

    confined.end_all()
    yield put
    confined.end_all()


@pytest.mark.parametrize("kind", ANSWERS)
def test_false_answers_are_one_named_error(kind: str, folder: Path, false: Callable[[str], None]) -> None:
    false(f"{FALSE}\n{ANSWERS[kind]}\ntime.sleep(60)\n")
    spec = spec_of(folder)
    started = time.monotonic()
    with raises_fault(ProgramError, "ProgramEnded"):
        trained(spec)
    assert time.monotonic() - started < 30


def test_without_limits_nothing_is_computed(folder: Path, false: Callable[[str], None]) -> None:
    false(
        "import platform\nplatform.machine = lambda: 'riscv64'\n"
        "from consilium_client.programs.computing import main\nmain()\n"
    )
    with raises_fault(ProgramError, "NotConfined", "riscv64.*leave out"):
        trained(spec_of(folder))


def test_a_process_that_cannot_be_started_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    confined.end_all()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with raises_fault(ProgramError, "ProgramEnded", "could not be started: No such file"):
        trained(spec_of(folder))


def test_values_that_are_not_finite_are_refused(folder: Path, false: Callable[[str], None]) -> None:
    false(f"{FALSE}\nimport numpy\nsend(answers, {{'kind': 'result'}}, {{'x': numpy.full(13, numpy.nan, 'f4')}})")
    with raises_fault(ModelError, "UpdateNotFinite"):
        trained(spec_of(folder))


SHOWS = """
import json, os, sys
fds = "/proc/self/fd/"
links = {at: os.readlink(fds + at) for at in os.listdir(fds) if os.path.exists(fds + at)}
json.dump({"environment": dict(os.environ), "open": links, "arguments": sys.argv[1:]}, open(PATH, "w"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_process_has_no_secret_of_its_node(
    folder: Path, tmp_path: Path, false: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("a key")
    monkeypatch.setenv("CONSILIUM_PASSWORD", "a password")
    with (tmp_path / "key").open() as key:
        os.set_inheritable(key.fileno(), True)
        false(f"PATH = {str(tmp_path / 'shown')!r}\n{SHOWS}")
        with raises_fault(ProgramError, "ProgramEnded"):
            trained(spec_of(folder))
    shown = json.loads((tmp_path / "shown").read_text())
    allowed = {
        "PATH",
        "HOME",
        "LANG",
        "LC_CTYPE",
        "TMPDIR",
        "PYTHONPATH",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
    }
    assert set(shown["environment"]) <= allowed | set(confined.NUMBERS) | set(confined.OF_GPU) | {
        "FLWR_TELEMETRY_ENABLED", "FLWR_DISABLE_UPDATE_CHECK"
    }  # fmt: skip
    assert [one.partition(":")[0] for at, one in sorted(shown["open"].items()) if at in "012"] == [
        "pipe", "pipe", "/dev/null",
    ]  # fmt: skip
    assert not [one for one in shown["open"].values() if "key" in one]
    assert len(shown["arguments"]) == 4
