"""What is in the images, without an engine that builds them: the container file's own steps, followed here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy_driver import CONTAINERFILE, ROOT, containers, copied_from

PREFIX = "/opt/consilium"


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
