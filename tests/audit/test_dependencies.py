"""Licences of all that is installed or locked are known and allowed, and every version is pinned."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "audit"))

from dependencies import (  # noqa: E402  (programs, no package)
    HASHED,
    LAYERED,
    LOCKS,
    PINS,
    Dependency,
    Rules,
    hashed_pins,
    installed,
    is_allowed,
    locked,
    of_torchs_build,
    pins,
    refused,
)

RULES = Rules.read()


def chosen() -> list[Dependency]:
    """Installed packages, but for the CUDA that a machine's own build of torch may bring."""
    left_out = of_torchs_build()
    return [one for one in installed(RULES) if one.name not in left_out]


def everything() -> list[Dependency]:
    return [*chosen(), *(one for path in LOCKS for one in locked(path))]


def test_every_licence_is_known_and_allowed() -> None:
    found = everything()
    assert len(found) > 500
    assert list(refused(found, RULES)) == []


def test_no_exception_and_no_name_is_there_for_nothing() -> None:
    keys = {one.key for one in everything()}
    assert set(RULES.exceptions) <= keys
    assert all(len(one["why"]) > 20 for one in RULES.exceptions.values())
    assert set(RULES.names.values()) <= RULES.allowed


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("", "says no licence that is known"),
        ("GPL-3.0-only", "is not allowed"),
        ("MIT AND GPL-3.0-only", "is not allowed"),
        ("(MIT OR Apache-2.0) AND SSPL-1.0", "is not allowed"),
        ("SEE LICENSE IN LICENSE.txt", "no expression"),
    ],
)
def test_a_new_package_of_another_licence_is_refused(licence: str, said: str) -> None:
    stranger = Dependency("npm", "stranger", "1.0.0", licence)
    if said == "no expression":
        with pytest.raises(ValueError, match="SEE LICENSE"):
            list(refused([stranger], RULES))
    else:
        (words,) = refused([stranger], RULES)
        assert said in words


def test_an_exception_is_for_one_licence() -> None:
    (words,) = refused([Dependency("python", "psycopg", "9", "AGPL-3.0-only")], RULES)
    assert "its exception in licences.toml is for LGPL-3.0-only" in words


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("MIT", True), ("GPL-2.0-only", False), ("MIT OR GPL-2.0-only", True), ("MIT AND GPL-2.0-only", False),
        ("GPL-2.0-only OR MIT AND ISC", True), ("(GPL-2.0-only OR MIT) AND ISC", True),
        ("GPL-2.0-only AND (MIT OR ISC)", False),
        ("Apache-2.0 WITH LLVM-exception", True), ("GPL-2.0-only WITH Classpath-exception-2.0", False),
    ],
)  # fmt: skip
def test_expressions_mean_what_spdx_says(expression: str, holds: bool) -> None:
    assert is_allowed(expression, RULES.allowed) is holds


def test_every_installed_version_is_pinned() -> None:
    wanted = {name: version for path in PINS for name, version in pins(path).items()}
    strays = {one.name: (one.version, wanted.get(one.name)) for one in chosen()
              if one.version.partition("+")[0] != wanted.get(one.name)}  # fmt: skip
    assert strays == {}


def test_torchs_build_is_what_torch_asks_for_and_no_pin_names(tmp_path: Path) -> None:
    asked = {
        "torch": ["numpy>=1", "cuda-toolkit[cublas]==13; sys_platform == 'linux'", "triton==3", "absent==1"],
        "cuda_toolkit": ["nvidia-cublas==13.* ; extra == 'cublas'"], "nvidia_cublas": [], "triton": [],
        "numpy": ["of-a-pinned-one"], "of_a_pinned_one": [], "stray": ["triton"],
    }  # fmt: skip
    for name, needs in asked.items():
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        lines = [f"Name: {name}", "Version: 1", *(f"Requires-Dist: {one}" for one in needs)]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
    assert of_torchs_build([str(tmp_path)]) == {"cuda-toolkit", "nvidia-cublas", "triton"}


# Only files of an installer that is told to check hashes are checked: Makefile and container file have these alone.
INSTALLING = (ROOT / "Makefile", ROOT / "deploy" / "containers" / "Containerfile")
UNHASHED = ("torch", "--no-build-isolation -e .", "wheels/*.whl")  # torch's build is the machine's own; this project


@pytest.mark.parametrize("path", HASHED, ids=lambda path: path.name)
def test_every_pin_that_is_installed_has_hashes(path: Path) -> None:
    found = hashed_pins(path)
    assert found
    assert [name for name, (_, hashes) in found.items() if not hashes] == []


def test_a_pin_without_a_hash_is_found(tmp_path: Path) -> None:
    digest = "--hash=sha256:" + "0" * 64
    file = tmp_path / "requirements.txt"
    file.write_text(f"# why\na==1 ; python_version < '3.12' \\\n    {digest} \\\n    {digest}\nb.C==2\n")
    assert hashed_pins(file) == {"a": ("1", 2), "b-c": ("2", 0)}
    file.write_text("--extra-index-url https://example.org\na==1\n")
    with pytest.raises(ValueError, match="extra-index-url"):
        hashed_pins(file)


def test_hashed_releases_are_those_of_the_constraints() -> None:
    wanted = pins(ROOT / "constraints.txt")
    found = {name: version for path in LAYERED for name, version in pins(path).items()}
    assert len(found) > 150
    assert found == {name: version for name, version in wanted.items() if name != "torch"}


@pytest.mark.parametrize("path", INSTALLING, ids=lambda path: path.name)
def test_nothing_is_installed_unhashed_but_torch_and_this_project(path: Path) -> None:
    text = path.read_text().replace("\\\n", " ")
    commands = re.findall(r"pip (?:--python \S+ )?install .*?(?= && |; |$)", text, re.MULTILINE)
    commands += re.findall(r"\$\(PIP_HASHED\).*", text)
    assert len(commands) > 5
    strays = [one for one in commands if "--require-hashes" not in one and "$(PIP_HASHED)" not in one
              and not any(word in one for word in UNHASHED)]  # fmt: skip
    assert strays == []
    assert all("--no-deps" in one for one in commands if "--require-hashes" in one)


def test_slither_is_pinned_with_all_that_it_needs() -> None:
    assert pins(ROOT / "chain" / "contracts" / "slither-requirements.txt")["slither-analyzer"]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.name)
def test_npm_installs_one_version_with_one_content(path: Path) -> None:
    """A version is exact, also of a package in place of another, and each package is held to its hash."""
    package = json.loads(path.with_name("package.json").read_text())
    kinds = ("dependencies", "devDependencies", "optionalDependencies")
    asked = [one for kind in kinds for one in package.get(kind, {}).items()]
    for name, version in asked:
        assert re.fullmatch(r"(npm:@?[\w./-]+@)?\d+\.\d+\.\d+(-[\w.]+)?", version), name
    packages = json.loads(path.read_text())["packages"]
    assert len(packages) > len(asked) > 1
    assert [place for place, entry in packages.items() if place and not entry.get("integrity")] == []
