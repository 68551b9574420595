"""Every dependency by name, version and licence: of this Python environment, and of npm's lock files.

Nothing is asked of anybody.

SPDX licence expressions: SPDX 3.0.1, annex B.
"""

from __future__ import annotations

import base64
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCKS = tuple(ROOT / folder / "package-lock.json" for folder in ("chain/contracts", "dashboard", "docs/site"))
PINS = (ROOT / "constraints.txt", ROOT / "client" / "encoders.txt")
LAYERED = tuple(sorted((ROOT / "requirements").glob("*.txt")))
# Of environments apart from this one's.
SEPARATE = (ROOT / "chain" / "contracts" / "slither-requirements.txt", ROOT / "audit" / "pip-audit.txt")
# All that pip installs, with --require-hashes.
HASHED = (*LAYERED, *SEPARATE, ROOT / "client" / "encoders.txt", ROOT / "tests" / "deploying" / "helm-requirements.txt")
OWN = "consilium"
INSTALLERS = ("pip", "setuptools")  # which a virtual environment begins with
LONGEST_NAME = 60  # characters of a `License` field that names one; else it is the whole text

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)(\[[a-z0-9,-]+\])?==(?P<version>[^\s;,*]+)( ; [^#\\]+?)?"
    r"(?P<hashes>(?: --hash=sha256:[0-9a-f]{64})*)"
)
_NAME = re.compile(r"[A-Za-z0-9_.-]+")  # which a requirement begins with (PEP 508)
_TOKENS = re.compile(r"\s*(\(|\)|[^\s()]+)")


@dataclass(frozen=True)
class Dependency:
    """licence: an SPDX expression, or "" where the package says none that is known. sha512: in hexadecimal, of npm's
    archives."""

    ecosystem: str
    name: str
    version: str
    licence: str
    sha512: str = ""

    @property
    def key(self) -> str:
        return f"{self.ecosystem}:{self.name}"


@dataclass(frozen=True)
class Rules:
    """Of `licences.toml`."""

    allowed: frozenset[str]
    names: dict[str, str]
    exceptions: dict[str, dict[str, str]]

    @classmethod
    def read(cls) -> Rules:
        table = tomllib.loads(Path(__file__).with_name("licences.toml").read_text())
        return cls(frozenset(table["allowed"]), table["names"], table["exceptions"])


def canonical(name: str) -> str:
    """A Python distribution's name as indices compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed(rules: Rules) -> list[Dependency]:
    """What is installed beside this project and the installers."""
    found = {canonical(one.name): Dependency("python", canonical(one.name), one.version, _licence(one, rules))
             for one in distributions()}  # fmt: skip
    return [found[name] for name in sorted(found) if name not in (OWN, *INSTALLERS)]


def of_torchs_build(path: list[str] | None = None) -> frozenset[str]:
    """By canonical name, what the machine's build of torch asks for and no pin names: the libraries of one with CUDA.
    Such a build is its machine's choice, under terms that its owner takes. `path`: where distributions are, by default
    this environment.
    """
    there = {canonical(one.name): one for one in (distributions() if path is None else distributions(path=path))}
    pinned = {name for file in PINS for name in pins(file)}
    found, open_ = set[str](), [name for name in there if name == "torch"]
    while open_:
        for needed in there[open_.pop()].requires or []:
            name = canonical(_NAME.match(needed)[0])  # type: ignore[index]
            if name in there and name not in found | pinned:
                found.add(name)
                open_.append(name)
    return frozenset(found)


def _licence(one: Distribution, rules: Rules) -> str:
    """PEP 639's expression; or the field that is older, if it is one; or the classifiers, if they name one each."""
    meta: Any = one.metadata
    if expression := meta.get("License-Expression"):
        return str(expression)
    field = str(meta.get("License") or "").strip()
    if field in rules.names:
        return rules.names[field]
    if len(field) <= LONGEST_NAME and field and set(identifiers(field)) <= rules.allowed:
        return field
    said = [text.split(" :: ")[-1] for text in meta.get_all("Classifier") or [] if text.startswith("License ::")]
    return " OR ".join(sorted({rules.names[name] for name in said if name in rules.names}))


def locked(path: Path) -> list[Dependency]:
    """What a lock file of npm names, whether it is installed on this platform or not."""
    found = []
    for folder, entry in json.loads(path.read_text())["packages"].items():
        if folder:
            name = folder.rpartition("node_modules/")[2]
            digest = base64.b64decode(entry["integrity"].removeprefix("sha512-")).hex()
            found.append(Dependency("npm", name, entry["version"], entry.get("license", ""), digest))
    return sorted(set(found), key=lambda one: (one.name, one.version))


def pins(path: Path) -> dict[str, str]:
    """By canonical name, the one version that a requirements file allows. Raises ValueError at another line."""
    return {name: version for name, (version, _) in hashed_pins(path).items()}


def hashed_pins(path: Path) -> dict[str, tuple[str, int]]:
    """The same, with the number of files whose hash may come. Raises ValueError."""
    found = {}
    for line in re.sub(r"[ ]?\\\n *", " ", path.read_text()).splitlines():
        if line and not line.startswith("#"):
            match = _PIN.fullmatch(line)
            if match is None:
                raise ValueError(f"{path.name}: {line}")
            found[canonical(match["name"])] = match["version"], match["hashes"].count("--hash=")
    return found


def identifiers(expression: str) -> list[str]:
    """Of licences; an exception that goes with one only ever allows more."""
    tokens = _TOKENS.findall(expression)
    return [token for at, token in enumerate(tokens)
            if token not in ("(", ")", "AND", "OR", "WITH") and (at == 0 or tokens[at - 1] != "WITH")]  # fmt: skip


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Whether one may use it under allowed licences alone: all that AND joins, one of what OR does.

    Raises ValueError where it is no expression.
    """
    tokens = _TOKENS.findall(expression)

    def alternatives() -> bool:
        found = joined()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            found = joined() or found
        return found

    def joined() -> bool:
        found = one()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        token = tokens.pop(0) if tokens else ")"
        if token == "(":
            found = alternatives()
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(expression)
            return found
        if token in (")", "AND", "OR", "WITH"):
            raise ValueError(expression)
        if tokens[:1] == ["WITH"]:
            del tokens[:2]
        return token in allowed

    result = alternatives()
    if tokens:
        raise ValueError(expression)
    return result


def refused(found: list[Dependency], rules: Rules) -> Iterator[str]:
    """In words, each whose licence is unknown or not allowed."""
    for one in found:
        excepted = rules.exceptions.get(one.key)
        if excepted is not None:
            if one.licence not in ("", excepted["licence"]):
                yield f"{one.key} is {one.licence}, and its exception in licences.toml is for {excepted['licence']}"
        elif not one.licence:
            yield f"{one.key} {one.version} says no licence that is known: look, and add what it is to licences.toml"
        elif not is_allowed(one.licence, rules.allowed):
            yield f"{one.key} {one.version} is {one.licence}, which is not allowed: do without, or add an exception"
