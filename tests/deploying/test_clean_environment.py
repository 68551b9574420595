"""What is in the images, without an engine: the container file's own steps, in environments of their own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomli_w
from consilium_chain.deployment import Deployment
from consilium_chain.localnode import free_port
from deploy_driver import CONTAINERFILE, ROOT, as_command, containers, copied_from

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]
PREFIX = "/opt/consilium"
EXTRAS_OF_TEXTS = {"peft", "tokenizers", "transformers"}
IMPORT_ALL = """
import importlib, pkgutil, sys
for package in sys.argv[2:]:
    for found in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        if "migrations.versions" in found.name or found.name.endswith(("migrations.env", "__main__")):
            continue
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] not in sys.argv[1].split(","):
                raise
print("torch" in sys.modules)
"""


@dataclass
class Environment:
    """`folder`: where the image has PREFIX."""

    folder: Path
    sources: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def run(self, *command: str) -> str:
        found = subprocess.run(
            command, cwd=self.sources.parent, env=environment(), capture_output=True, text=True, timeout=600
        )
        assert found.returncode == 0, found.stderr[-4000:]
        return found.stdout

    def installed(self) -> dict[str, str]:
        listed = self.run(sys.executable, "-m", "pip", "--python", self.python, "list", "--format=freeze")
        return {
            name.lower().replace("_", "-"): version for name, _, version in (x.partition("==") for x in listed.split())
        }


def environment() -> dict[str, str]:
    """Without what would let it see this checkout's packages."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def build(stage: str, folder: Path) -> Environment:
    """Follows COPY, ARG and RUN from the stage's image on. Of the container file's steps these are not as they stand:
    `pip` is this interpreter's, contracts are this checkout's, and torch comes from the index that pip is set up with.
    """
    sources, target = folder / "src", folder / "opt"
    sources.mkdir(parents=True)
    values: dict[str, str] = {}
    for part in containers().line(stage):
        for instruction, rest in part.steps:
            if instruction == "COPY":
                copy(rest, sources)
            elif instruction == "ARG":
                name, _, value = rest.partition("=")
                values[name] = value
            elif instruction == "RUN":
                line = re.sub(r'--index-url "\$\{TORCH_INDEX\}" ', "", rest).replace(PREFIX, str(target))
                line = re.sub(r"(^|&& |then )python ", rf"\g<1>{sys.executable} ", line)
                line = re.sub(r"(^|&& |then )pip ", rf"\g<1>{sys.executable} -m pip ", line)
                run = subprocess.run(
                    ["sh", "-euc", line], cwd=sources, env=environment() | values, capture_output=True, text=True
                )
                assert run.returncode == 0, f"{line}\n{run.stderr[-4000:]}"
    return Environment(target, sources)


def copy(rest: str, sources: Path) -> None:
    words = [word for word in rest.split() if not word.startswith("--")]
    if copied_from(rest) is not None:
        assert copied_from(rest) == "contracts"
        words[0] = words[-1]
    for source in words[:-1]:
        there = sources / words[-1] if words[-1] != "./" else sources / source
        if (ROOT / source).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "dashboard", *([] if copied_from(rest) else ["contracts"]))
            shutil.copytree(ROOT / source, there, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / source, there)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("described", tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("client-packages", tmp_path_factory.mktemp("client"))


def pinned(name: str) -> str | None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = {one.partition("==")[0].lower().replace("_", "-"): one.partition("==")[2] for one in lines}
    return found.get(name)


def test_a_servers_image_has_what_is_pinned_and_no_torch(server: Environment) -> None:
    installed = server.installed()
    assert not installed.keys() & {"torch", "opacus", "pandas", "scikit-learn", "transformers", "pip", "pytest"}
    assert {name: version for name, version in installed.items() if version != pinned(name)} == {"consilium": "0.1.0"}
    assert server.run(
        server.python, "-c", IMPORT_ALL, "", "consilium_server", "consilium_chain", "consilium_zk"
    ).split() == ["False"]
    server.run(sys.executable, "-m", "pip", "--python", server.python, "check")


def test_a_nodes_image_has_what_is_pinned(client: Environment) -> None:
    installed = client.installed()
    differ = {name: version for name, version in installed.items() if version.partition("+")[0] != pinned(name)}
    assert differ == {"consilium": "0.1.0"}
    assert not [name for name in installed if name.startswith("nvidia")]
    assert not installed.keys() & {"fastapi-cli", "celery", "sqlalchemy-utils", "pytest", "pip"}
    packages = ("consilium_client", "consilium_chain", "consilium_zk")
    assert client.run(client.python, "-c", IMPORT_ALL, ",".join(EXTRAS_OF_TEXTS), *packages).split() == ["True"]
    client.run(sys.executable, "-m", "pip", "--python", client.python, "check")


@pytest.mark.parametrize("role", ["api", "worker", "aggregator", "hospital", "voter"])
def test_a_role_runs_its_command(role: str, request: pytest.FixtureRequest) -> None:
    found: Environment = request.getfixturevalue("client" if role in ("hospital", "voter") else "server")
    command = as_command(containers().last(role, "CMD") or "")
    said = found.run(str(found.folder / "bin" / "consilium"), *command, "--help")
    assert f"consilium {command[0]} {command[1]}" in said


def test_the_dashboard_is_built_from_what_a_server_says(server: Environment) -> None:
    assert '"openapi"' in (server.sources / "openapi.json").read_text()
    assert (server.sources / "trusted_setup.txt").stat().st_size > 100_000


def test_the_api_lives_there_and_is_healthy(server: Environment, tmp_path: Path) -> None:
    port, address = free_port(), "0x" + "11" * 20
    Deployment(31_337, 1, address, address, address, address, address).write(tmp_path / "deployment.json")
    config = tmp_path / "api.toml"
    values = {"home": "home", "deployment": "deployment.json", "artifacts": "artifacts", "origin": "https://a.example"}
    paths = {name: str(tmp_path / value) for name, value in values.items() if name != "origin"}
    config.write_text(tomli_w.dumps(values | paths | {"port": port}))
    for folder in ("home", "artifacts"):
        (tmp_path / folder).mkdir(mode=0o700)
    command = [server.folder / "bin" / "consilium", "server", "api", "--config", config]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)
    try:
        probe = [server.python, CONTAINERFILE.with_name("healthy.py"), "api", str(port)]
        end = time.monotonic() + 60
        while subprocess.run(probe, capture_output=True).returncode:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        assert process.wait(20) in (0, 143)
