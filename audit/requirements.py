"""Writes the requirement files with the SHA-256 of every file of each pinned release, from `constraints.txt`, by uv.

Run it after a pin was changed: `.venv/bin/python audit/requirements.py`. It asks the package index that uv is set up
with, names none, and a release has the same hashes on any mirror. pip installs these files with --require-hashes.

Files are layers, so that each release stands once: to install `server`, install `base` and `server`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dependencies import ROOT, SEPARATE, canonical

FOLDER = ROOT / "requirements"
CONSTRAINTS = ROOT / "constraints.txt"
PYTHON = "3.11"  # the oldest; markers say what later ones need
# By file: the extra whose packages it has, and the files that have been installed before it.
LAYERS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "base": (None, ()),
    "server": ("server", ("base",)),
    "client": ("client", ("base",)),
    "onnx": ("onnx", ("base", "client")),
    "demo": ("demo", ("base", "server", "client", "onnx")),
    "text": ("text", ("base", "client")),
    "dev": ("dev", ("base", "server", "client", "onnx", "demo", "text")),
}
# By file: packages of an environment of its own, or of none of the extras.
ALONE = {
    "build": ("hatchling", "editables"),  # builds this project; pip would fetch it unhashed
    "site": ("mkdocs-material", "mkdocstrings[python]", "ruff"),  # the documentation's site: `make site`
}
# A machine's torch may be a build of its own (without CUDA, say), whose file is not the index's: it is installed apart,
# by its exact version. So are the libraries of the builds that have CUDA.
APART = re.compile(r"torch|triton|(cuda|nvidia)-.*")
ELSEWHERE = re.compile(r"(?!.*!=).*sys_platform == '(win32|emscripten)'")  # systems that nothing here is installed on


@dataclass(frozen=True)
class Pin:
    """`block`: its lines in a file, with marker and hashes."""

    name: str
    block: str


def compiled(arguments: Sequence[str], given: str | None = None) -> list[Pin]:
    """The packages that uv resolves, for all systems. Raises CalledProcessError."""
    said = ["--quiet", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    asked = ["--generate-hashes", "--universal", f"--python-version={PYTHON}", *arguments]
    said = ["--quiet", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
    asked = ["--generate-hashes", "--universal", f"--python-version={PYTHON}", *arguments]
    command = [sys.executable, "-m", "uv", "pip", "compile", *said, *asked]
    run = subprocess.run(command, cwd=ROOT, input=given, stdout=subprocess.PIPE, text=True, check=True)
    return list(split(run.stdout))


def split(text: str) -> Iterator[Pin]:
    for block in re.findall(r"^[A-Za-z0-9].*(?:\n    .*)*", text, re.MULTILINE):
        name = canonical(re.split(r"[=\[ ;]", block, maxsplit=1)[0])
        if not APART.fullmatch(name) and not ELSEWHERE.match(block.partition("\n")[0]):
            yield Pin(name, block)


def of_extra(extra: str | None) -> list[Pin]:
    chosen = [] if extra is None else [f"--extra={extra}"]
    return compiled([*chosen, "--constraints", str(CONSTRAINTS), "pyproject.toml"])


def written(pins: Iterable[Pin], comment: str) -> str:
    return f"{comment}\n" + "".join(f"{pin.block}\n" for pin in pins)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    found = {name: of_extra(extra) for name, (extra, _) in LAYERS.items()}
    for name, (_, below) in LAYERS.items():
        known = {pin for one in below for pin in found[one]}
        comment = (
            f"# By audit/requirements.py, from constraints.txt. Install before it: {', '.join(below) or 'nothing'}."
        )
        (FOLDER / f"{name}.txt").write_text(written((pin for pin in found[name] if pin not in known), comment))
    for name, packages in ALONE.items():
        alone = compiled(["--constraints", str(CONSTRAINTS), "-"], "\n".join(packages))
        (FOLDER / f"{name}.txt").write_text(written(alone, "# By audit/requirements.py, from constraints.txt."))
    for path in SEPARATE:
        lines = path.read_text().splitlines()
        comment = "\n".join(line for line in lines if line.startswith("#"))
        given = "\n".join(line.partition(" ")[0] for line in lines if "==" in line and not line.startswith("#"))
        path.write_text(written(compiled(["--no-deps", "-"], given), comment))


if __name__ == "__main__":
    main()
