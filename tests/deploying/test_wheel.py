"""A wheel, built from the source distribution and installed into an environment without the checkout."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.rpc.local_node import find_anvil
from consilium_client.home import SETTINGS_FILE
from patients import patients
from task_files import of_few_rounds

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = [ROOT / folder for folder in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
GENERATED = [ROOT / "chain/consilium_chain/contracts/Tasks.json", ROOT / "server/consilium_server/dashboard/index.html"]
TASK = ROOT / "docs/operator.md"


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and third-party packages from this one. `folder`: an empty one to work in."""

    environment: Path
    folder: Path

    def run(self, *command: str, path: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        given = {"PATH": os.pathsep.join([str(self.environment / "bin"), *path, "/usr/bin", "/bin"]), "COLUMNS": "100"}
        return subprocess.run(
            command, cwd=self.folder, env=given | {"HOME": str(self.folder)}, capture_output=True, text=True,
            stdin=subprocess.DEVNULL, timeout=280,
        )  # fmt: skip

    def done(self, *command: str, path: Sequence[str] = ()) -> str:
        ran = self.run(*command, path=path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


def built(target: str, source: Path, to: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(to)]
    ran = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    (found,) = to.iterdir()
    return found


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution."""
    if missing := [path.name for path in GENERATED if not path.is_file()]:
        pytest.skip(f"{missing} not built: run `make dashboard`")
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(built("sdist", ROOT, folder / "built")) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.glob("consilium-*")
    return source


@pytest.fixture(scope="module")
def installed(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    wheel = built("wheel", unpacked, folder / "built")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(environment), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    (own,) = environment.glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")]
    (own / "others.pth").write_text("\n".join(others))  # Python reads no .pth file in these: no editable project
    work = folder / "work"
    work.mkdir()
    example = re.search(r"```toml\n(.*?)```", TASK.read_text(), re.DOTALL)
    assert example is not None
    (work / "task.toml").write_text(example.group(1))
    return Installed(environment, work)


def test_every_room_is_the_wheels_own(installed: Installed) -> None:
    names = ", ".join(room.name for room in ROOMS)
    shown = installed.done("python", "-c", f"import {names}; print(*[m.__file__ for m in ({names})])")
    assert len(shown.split()) == len(ROOMS)
    assert all(path.startswith(str(installed.environment)) for path in shown.split())


def test_contracts_and_dashboard_are_inside(installed: Installed) -> None:
    (own,) = installed.environment.glob("lib/python*/site-packages")
    for path in GENERATED:
        assert (own / path.relative_to(ROOT / path.relative_to(ROOT).parts[0])).read_bytes() == path.read_bytes()


def test_a_hospital_makes_its_home(installed: Installed) -> None:
    (installed.folder / "rows.csv").write_text("age,sick\n40,0\n60,1\n")
    (installed.folder / "password").write_text("a password\n")
    (installed.folder / "password").chmod(0o600)
    place = "0x" + "11" * 20
    (installed.folder / "store").mkdir()
    Deployment(31_337, 1, place, place, place, place, place, place).write(installed.folder / "book.json")
    asked = [
        "--home", "home", "--chain-url", "http://127.0.0.1:1", "--data", "rows.csv", "--artifacts", "store",
        "--password-file", "password", "--operator", "any", "--model", "any", "--column", "any", "--offline",
        "--address-book", "book.json",
    ]  # fmt: skip
    assert "home" in installed.done("consilium", "hospital", "init", *asked)
    assert (installed.folder / "home" / SETTINGS_FILE).exists()


def test_an_operator_checks_a_task_file(installed: Installed) -> None:
    assert "gas" in installed.done("consilium", "operator", "check", "task.toml")


def test_a_newcomer_simulates_a_table_of_their_own(installed: Installed) -> None:
    patients().to_csv(installed.folder / "own.csv", index=False)
    shown = installed.done("consilium", "task", "new", "--from", "own.csv", "--output", "own.toml")
    (line,) = (line for line in shown.splitlines() if line.startswith("Next: "))
    drafted = installed.folder / "own.toml"
    drafted.write_text(of_few_rounds(drafted.read_text()))
    assert "together 0." in installed.done(*line.removeprefix("Next: ").split())


@pytest.mark.parametrize(
    "command", ["hospital", "voter", "operator", "task", "server", "chain", "verify", "demo", "up", "doctor"]
)
def test_every_role_has_its_help(installed: Installed, command: str) -> None:
    assert "Usage" in installed.done("consilium", command, "--help")


@pytest.mark.parametrize(
    ("command", "module", "extra"),
    [("demo", "psutil", "demo"), ("server", "fastapi", "server"), ("operator", "scipy", "client,server")],
)
def test_a_missing_extra_is_named(installed: Installed, command: str, module: str, extra: str) -> None:
    """`-c`: with the module hidden, as if it were not installed."""
    arguments = {"demo": ["--rounds", "1"], "server": ["api", "--config", "x"], "operator": ["check", "task.toml"]}[
        command
    ]
    script = "import sys; sys.modules[sys.argv.pop(1)] = None; from consilium_cli.main import main; main()"
    ran = installed.run("python", "-c", script, module, command, *arguments)
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False), ran.stderr
    assert f"error (ExtraMissing): {module}" in ran.stderr
    assert f"pip install 'consilium[{extra}]'" in ran.stderr


@pytest.mark.parametrize("command", ["demo", "up"])
def test_without_anvil_one_line_says_how_to_get_it(installed: Installed, command: str) -> None:
    ran = installed.run("consilium", command)
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1), ran.stderr
    pinned = json.loads((ROOT / "chain/contracts/package.json").read_text())["devDependencies"]["@foundry-rs/anvil"]
    way = rf"npm install --global --prefix {installed.environment} @foundry-rs/anvil-\w+-\w+@{re.escape(pinned)}`"
    assert re.match(rf"error \(LocalNodeError\): .*`{way}", ran.stderr)


def test_anvil_in_the_environment_is_found_off_the_path(installed: Installed) -> None:
    anvil, python = (installed.environment / "bin" / name for name in ("anvil", "python"))
    anvil.symlink_to(find_anvil())
    script = "from consilium_chain.rpc.local_node import find_anvil; print(find_anvil())"
    try:
        assert installed.done("env", "-u", "PATH", str(python), "-c", script) == f"{anvil}\n"
    finally:
        anvil.unlink()


@pytest.mark.deep
def test_the_demo_runs_with_anvil_on_the_path(installed: Installed) -> None:
    shown = installed.done("consilium", "demo", "--rounds", "1", "--hospitals", "3", "--voters", "2",
                           path=[str(Path(find_anvil()).parent)])  # fmt: skip
    assert "Report" in shown


def test_without_the_generated_parts_nothing_is_built(unpacked: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(unpacked, source)
    (source / GENERATED[0].relative_to(ROOT)).unlink()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    ran = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert ran.returncode != 0
    assert "Tasks.json not built yet: run `make wheel`" in ran.stderr


def imported(file: Path) -> set[str]:
    """The packages that a module imports anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names.add(node.module.partition(".")[0])
    return names


def declared(extras: Sequence[str]) -> set[str]:
    project = PROJECT["project"]
    lines = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    return {re.split(r"[\[<>=~!; ]", line)[0].lower().replace("_", "-") for line in lines}


def test_every_import_is_declared() -> None:
    """In the dependencies, or an extra that its room has: a need of a need may go with its next version."""
    nodes = ["client", "server"]
    extras = {
        "client": ["client", "text"], "server": ["server"], "verify": ["client"],
        "operators": [*nodes, "demo", "onnx", "tracking"],
        "lab": [*nodes, "demo"], "api": ["client", "text"], "cli": [*nodes, "demo"],
    }  # fmt: skip
    distributions = packages_distributions()
    missing = {}
    for room in ROOMS:
        allowed = declared(extras.get(room.parent.name, []))
        files = list(room.rglob("*.py"))
        for name in set().union(*map(imported, files)) - set(sys.stdlib_module_names):
            owners = {one.lower().replace("_", "-") for one in distributions.get(name, [])}
            if name.partition("_")[0] != "consilium" and not owners & allowed:
                missing[f"{room.name}: {name}"] = sorted(owners)
    assert missing == {}
