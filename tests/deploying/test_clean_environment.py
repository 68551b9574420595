"""What is in the images, without an engine: the container file's own steps, in environments of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tomli_w
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.local_node import free_port
from deploy_driver import CONTAINERFILE, ROOT, as_command, containers, copied_from
from images_driver import Environment, below, build, environment

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]
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


@pytest.mark.skipif(shutil.which("npm") is None, reason="Node.js 20 or newer with npm is needed")
def test_the_dashboard_is_built_from_what_a_server_says(server: Environment, tmp_path: Path) -> None:
    built = build("dashboard-files", tmp_path, {"described": server.root}).root
    copied = [rest for role in ("api", "dashboard") for rest in containers().stages[role].all("COPY")]
    (folder,) = {rest.split()[1] for rest in copied if copied_from(rest) == "dashboard-files"}
    assert below(built, folder).joinpath("index.html").is_file()
    assert sum(1 for _ in below(built, folder).glob("assets/*.js")) > 1


def test_the_api_lives_there_and_is_healthy(server: Environment, tmp_path: Path) -> None:
    port, address = free_port(), "0x" + "11" * 20
    Deployment(31_337, 1, address, address, address, address, address, address).write(tmp_path / "deployment.json")
    config = tmp_path / "api.toml"
    values = {"home": "home", "deployment": "deployment.json", "artifacts": "artifacts", "origin": "https://a.example"}
    paths = {name: str(tmp_path / value) for name, value in values.items() if name != "origin"}
    config.write_text(tomli_w.dumps(values | paths | {"port": port}))
    for folder in ("home", "artifacts"):
        (tmp_path / folder).mkdir(mode=0o700)
    command = [str(server.folder / "bin" / "consilium"), "server", "api", "--config", str(config)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)
    try:
        probe = [server.python, str(CONTAINERFILE.with_name("healthy.py")), "api", str(port)]
        end = time.monotonic() + 60
        while subprocess.run(probe, capture_output=True).returncode:
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        assert process.wait(20) in (0, 143)
