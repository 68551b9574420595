"""What is in the images, without an engine that builds them: the container file's own steps, followed here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from deploy_driver import CONTAINERFILE, ROOT, containers, copied_from

PREFIX = "/opt/consilium"


@dataclass
class Environment:
    """`folder`: where the image has PREFIX. `root`: what stands for the image's."""

    folder: Path
    root: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def run(self, *command: str) -> str:
        found = subprocess.run(command, cwd=self.root, env=environment(), capture_output=True, text=True, timeout=600)
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


def build(stage: str, root: Path, made: Mapping[str, Path] = MappingProxyType({})) -> Environment:
    """Follows WORKDIR, COPY, ARG and RUN from the stage's image on, with `root` as the image's root. `made`: roots of
    stages that it copies from.

    Of the container file's steps these are not as they stand: `pip` and `python` are this interpreter's, contracts are
    this checkout's, and torch comes from the index that pip is set up with.
    """
    workdir, values = Path("/"), {}
    for part in containers().line(stage):
        for instruction, rest in part.steps:
            if instruction == "WORKDIR":
                workdir = Path(rest)
                below(root, workdir).mkdir(parents=True, exist_ok=True)
            elif instruction == "COPY":
                copy(rest, root, workdir, made)
            elif instruction == "ARG":
                name, _, value = rest.partition("=")
                values[name] = value
            elif instruction == "RUN":
                line = re.sub(r'--index-url "\$\{TORCH_INDEX\}" ', "", rest).replace(PREFIX, str(below(root, PREFIX)))
                line = re.sub(r"(^|&& |then |do )python ", rf"\g<1>{sys.executable} ", line)
                line = re.sub(r"(^|&& |then |do )pip ", rf"\g<1>{sys.executable} -m pip ", line)
                run = subprocess.run(
                    ["sh", "-euc", line], cwd=below(root, workdir), env=environment() | values, capture_output=True,
                    text=True,
                )  # fmt: skip
                assert run.returncode == 0, f"{line}\n{run.stderr[-4000:]}"
    return Environment(below(root, PREFIX), root)


def below(root: Path, path: Path | str) -> Path:
    return root / Path(path).relative_to("/")


def copy(rest: str, root: Path, workdir: Path, made: Mapping[str, Path]) -> None:
    """Of this checkout only what git does not ignore, as the container file's .dockerignore has it."""
    stage = copied_from(rest)
    *sources, where = (word for word in rest.split() if not word.startswith("--"))
    target = below(root, workdir / where)
    for source in sources:
        if stage == "contracts":
            origin = ROOT / Path(source).relative_to("/src")
        elif stage is not None:
            origin = below(made[stage], source)
        else:
            origin = ROOT / source
        into = target / origin.name if where.endswith("/") and origin.is_file() else target
        into.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_file():
            shutil.copy(origin, into)
        elif stage is not None:
            shutil.copytree(origin, into, dirs_exist_ok=True)
        else:
            listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."]
            for name in subprocess.run(listing, cwd=origin, capture_output=True, text=True, check=True).stdout.split():
                (into / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(origin / name, into / name)


# Without an engine, what one would do: a root file system of its own, a user without capabilities, a process 1.
ROOT_FILES = ("passwd", "group", "hosts", "nsswitch.conf", "ld.so.cache", "ssl", "localtime", "resolv.conf")
SETUP = """
set -eu
root=$1; shift
mount --make-rprivate /
mount -t tmpfs -o mode=755,size=16m tmpfs "$root"
for name in bin lib lib64 sbin; do [ ! -L /$name ] || cp -P /$name "$root/$name"; done
mkdir -p "$root/etc" "$root/proc" "$root/dev/shm" "$root/tmp"
for name in {files}; do [ ! -e /etc/$name ] || cp -rL /etc/$name "$root/etc/"; done
for device in null urandom random zero; do
    touch "$root/dev/$device"
    mount --bind /dev/$device "$root/dev/$device"
done
mount -t tmpfs -o mode=1777,size=64m,noexec,nosuid,nodev tmpfs "$root/tmp"
mount -t tmpfs -o mode=1777,size=64m,noexec,nosuid,nodev tmpfs "$root/dev/shm"
while [ "$1" != -- ]; do  # mode, what, where
    if [ -d "$2" ]; then mkdir -p "$root$3"; else mkdir -p "$(dirname "$root$3")"; touch "$root$3"; fi
    mount --bind "$2" "$root$3"
    [ "$1" = rw ] || mount -o remount,bind,ro "$root$3"
    shift 3
done
shift
mount -t proc proc "$root/proc"
mount -o remount,ro "$root"
exec chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --inh-caps=-all \\
    --bounding-set=-all "$@"
"""


@dataclass
class Container:
    """One that is not: `environment` where the image has it, and `mounts` as triples of mode, what and where."""

    environment: Environment
    mounts: list[tuple[str, Path, str]]
    root: Path  # an empty folder
    variables: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        base = Path(sys.base_prefix)
        own = [
            ("ro", Path("/usr"), "/usr"), ("ro", base, str(base)), ("ro", self.environment.folder, PREFIX),
            ("ro", CONTAINERFILE.with_name("healthy.py"), "/opt/healthy.py"),
        ]  # fmt: skip
        mounts = [str(word) for mount in own + self.mounts for word in mount]
        script = SETUP.replace("{files}", " ".join(ROOT_FILES))
        inside = ["env", "-i", "-C", "/var/lib/consilium", *(f"{k}={v}" for k, v in self.variables.items()), *arguments]
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts"]
        return [*apart, "sh", "-c", script, "sh", str(self.root), *mounts, "--", *inside]

    def start(self, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
        with log.open("ab") as said:
            return subprocess.Popen(
                self.command(f"{PREFIX}/bin/python", "-m", "consilium_cli.main", *arguments), stdout=said, stderr=said
            )

    def healthy(self, check: str) -> bool:
        """By the HEALTHCHECK of the container file."""
        words: list[str] = json.loads(check.split("CMD ", 1)[1])
        ran = subprocess.run(self.command(f"{PREFIX}/bin/python", *words[1:]), capture_output=True, timeout=120)
        return ran.returncode == 0


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("described", tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return build("client-packages", tmp_path_factory.mktemp("client"))
