"""Wheels of plug-ins, made and installed as installers do it, and tasks that name them."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import py_compile
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomli_w
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.plugins import computing
from consilium_client.plugins.installed import digest_of_wheel
from consilium_client.programs import confined
from training_driver import task_file

FAMILY = '[model]\nname = "logistic"\n'
START = f'[start]\nname = "file"\nparts = ["{"ab" * 32}"]\n'
NAME, NAME_OF_CODE, VERSION = "test-plugin", "test_plugin", "1.0"
FOLDER = "test_plugin-1.0.dist-info"
PERCEPTRON = """
from torch import nn


def build(data, arguments):
    width = arguments.get("hidden", 4)
    return nn.Sequential(nn.Linear(data["columns"], width), nn.ReLU(), nn.Linear(width, data["outputs"]))
"""
SHAPES = {"0.weight": [4, 1], "0.bias": [4], "2.weight": [1, 4], "2.bias": [1]}


def hash_of(raw: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()


def wheel(
    folder: Path, code: str = PERCEPTRON, more: Mapping[str, str] | None = None, entry: str = "test_plugin:build",
    package: str = "test_plugin", points: str = "",
) -> Path:  # fmt: skip
    """A wheel of a package with this code. `more`: other files, by their paths. `points`: its entry_points.txt, if it
    has others than a model.
    """
    metadata, name = f"{package}-{VERSION}.dist-info", package.replace("_", "-")
    files = {
        f"{package}/__init__.py": code,
        **(more or {}),
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{metadata}/entry_points.txt": (
            points or f"[consilium.models]\nperceptron = {entry.replace(NAME_OF_CODE, package)}\n"
        ),
    }
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows([path, hash_of(text.encode()), len(text.encode())] for path, text in files.items())
    writer.writerow([f"{metadata}/RECORD", "", ""])
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{package}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as into:
        for path, text in {**files, f"{metadata}/RECORD": lines.getvalue()}.items():
            into.writestr(path, text)
    return made


def unpack(made: Path, into: Path) -> Path:
    """As an installer does, without its notes."""
    with zipfile.ZipFile(made) as source:
        source.extractall(into)
    return into


def pip_install(made: Path, into: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-cache-dir", "--quiet"]
    subprocess.run([*command, "--target", str(into), str(made)], check=True, capture_output=True, timeout=120)


def named(made: Path, entry: str) -> dict[str, Any]:
    """The section that names an entry point of a wheel."""
    record = digest_of_wheel(made)
    return {
        "distribution": record.distribution, "version": record.version, "entry": entry, "record": record.digest,
    }  # fmt: skip


def model_of_wheel(made: Path, **changes: Any) -> PluginSpec:
    return PluginSpec.model_validate({"name": "plugin", **named(made, "perceptron"), "shapes": SHAPES, **changes})


def section_of(model: PluginSpec) -> str:
    return tomli_w.dumps({"model": model.model_dump(exclude_defaults=True)})


def task_of(model: PluginSpec, training: str = "epochs = 3", update: str = "bits = 10") -> TaskSpec:
    raw = task_file(training, update)
    return parse_task_spec(raw.replace(FAMILY.encode(), f"{START}{section_of(model)}".encode()))


class Site:
    """A folder where wheels are installed, on the path of this process and of those that it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder, folder / "site"
        self.site.mkdir()

    def put(self, package: str, code: str, points: str = "") -> Path:
        """Installs a wheel, and returns it."""
        more = {f"{package}/table.txt": "1,2"}
        made = wheel(self.folder / "wheels", code, more, package=package, points=points)
        unpack(made, self.site)
        self._poison(package)
        return made

    def install(self, package: str, code: str, **changes: Any) -> TaskSpec:
        """A task with the model of a wheel that is installed."""
        return task_of(model_of_wheel(self.put(package, code), **changes))

    def _poison(self, package: str) -> None:
        """A compiled file that Python takes in the place of the package's own code, whatever that is."""
        evil, folder = self.folder / "evil.py", self.site / package
        evil.write_text("raise SystemExit('poisoned')")
        into = folder / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
        py_compile.compile(str(evil), str(into), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        evil.unlink()


@contextmanager
def site_in(folder: Path) -> Iterator[Site]:
    """It leaves no process behind, and nothing of it was imported here: this process stands for the node."""
    with pytest.MonkeyPatch.context() as patch:
        made = Site(folder)
        patch.syspath_prepend(str(made.site))
        patch.setenv("PYTHONPATH", f"{made.site}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
        yield made
        confined.end_all()
        assert processes() == []
        assert [name for name in sys.modules if name.partition(".")[0] in os.listdir(made.site)] == []


def processes() -> list[psutil.Process]:
    """Those that compute plug-ins."""
    return [one for one in psutil.Process().children() if computing.__name__ in " ".join(one.cmdline())]
