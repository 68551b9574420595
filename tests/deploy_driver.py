"""Reads what `deploy/` ships: the container file's stages, and compose files as `docker compose` would fill them in."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
CONTAINERFILE = DEPLOY / "containers" / "Containerfile"
ROLES = ("api", "worker", "aggregator", "hospital", "voter", "dashboard")
DIGEST = re.compile(r"[a-z0-9./-]+:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}")


@dataclass
class Stage:
    """`base`: an image, or the name of an earlier stage. `steps`: instructions with what follows them, in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str | None:
        return next((rest for name, rest in reversed(self.steps) if name == instruction), None)

    def all(self, instruction: str) -> list[str]:
        return [rest for name, rest in self.steps if name == instruction]


@dataclass
class Containers:
    """`arguments`: before the first stage."""

    arguments: dict[str, str]
    stages: dict[str, Stage]

    def line(self, target: str) -> list[Stage]:
        """The stages that a target is made of, the first one first."""
        found = []
        name = target
        while name in self.stages:
            found.append(self.stages[name])
            name = self.stages[name].base
        return found[::-1]

    def last(self, target: str, instruction: str) -> str | None:
        return next((found for stage in reversed(self.line(target)) if (found := stage.last(instruction))), None)

    def all(self, target: str, instruction: str) -> list[str]:
        return [rest for stage in self.line(target) for rest in stage.all(instruction)]

    def image(self, target: str) -> str:
        """What a target begins with."""
        return self.line(target)[0].base

    def needs(self, target: str) -> set[str]:
        """Names of all stages that something of is in a target, its own included."""
        found: set[str] = set()
        waiting = [target]
        while waiting:
            for stage in self.line(waiting.pop()):
                if stage.name not in found:
                    found.add(stage.name)
                    waiting += [copied for copied in map(copied_from, stage.all("COPY")) if copied]
        return found


def copied_from(rest: str) -> str | None:
    match = re.match(r"--from=(\S+)", rest)
    return match[1] if match else None


def containers(text: str | None = None) -> Containers:
    lines = (text or CONTAINERFILE.read_text()).splitlines()
    joined = "\n".join(line for line in lines if not line.lstrip().startswith("#")).replace("\\\n", " ")
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for line in filter(None, map(str.strip, joined.splitlines())):
        instruction, rest = line.split(None, 1)
        if instruction == "ARG" and stage is None:
            name, _, value = rest.partition("=")
            arguments[name] = value
        elif instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            base = re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], base)
            stage = stages[name] = Stage(name, base)
        else:
            assert stage is not None
            stage.steps.append((instruction, re.sub(r"\s+", " ", rest)))
    return Containers(arguments, stages)


def as_command(written: str) -> list[str]:
    """Of CMD and ENTRYPOINT in their JSON form."""
    found: list[str] = json.loads(written)
    return found


class Missing(Exception):
    """A variable that has no default, with what is said of it."""


VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<kind>:-|:\?)(?P<rest>[^}]*))?\}")


def filled(text: str, given: dict[str, str]) -> str:
    """Raises Missing."""

    def value(found: re.Match[str]) -> str:
        name, kind, rest = found["name"], found["kind"], found["rest"] or ""
        if given.get(name):
            return given[name]
        if kind == ":-":
            return rest
        raise Missing(f"{name}: {rest}")

    return VARIABLE.sub(value, text)


def compose(path: Path, given: dict[str, str]) -> dict[str, Any]:
    """A compose file with its variables filled in."""

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(one) for key, one in node.items()}
        if isinstance(node, list):
            return [walk(one) for one in node]
        return filled(node, given) if isinstance(node, str) else node

    found: dict[str, Any] = walk(yaml.safe_load(path.read_text()))
    return found


def words(command: str | list[str] | None) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command or [])
