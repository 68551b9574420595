"""Wheels of plug-ins, made and installed as installers do it, and tasks that name them."""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from consilium_chain.tasks.model_specs import PluginSpec
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_client.plugins.installed import digest_of_wheel
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
