"""A step of the installation: its stamp stands for what is there, and a fault is one line with the way out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "setup" / "run_step.py"


class Step:
    """Runs steps in a folder of their own; `fake` makes a program that prints and ends as it is told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fake(self, name: str, says: str = "", code: int = 0, does: str = "") -> str:
        path = self.folder / "fakes" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{does}\ncat <<'END'\n{says}\nEND\nexit {code}\n")
        path.chmod(0o755)
        return str(path)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


def test_a_stamp_is_written_after_the_commands_and_holds_the_choice(step: Step) -> None:
    stamp = step.folder / "stamp"
    done = step.run("stamp", "--holds", "cpu", "--says", "installing", "--do", "touch", "made")
    assert (done.returncode, done.stderr) == (0, "installing\n")
    assert stamp.read_text() == "cpu\n"
    made = (step.folder / "made").stat().st_mtime_ns
    assert step.run("stamp", "--holds", "cpu", "--says", "installing", "--do", "touch", "made").stderr == ""
    assert (step.folder / "made").stat().st_mtime_ns == made, "nothing is done twice"
    assert step.run("stamp", "--holds", "cuda", "--do", "touch", "made").returncode == 0
    assert stamp.read_text() == "cuda\n"
    assert (step.folder / "made").stat().st_mtime_ns > made, "another choice installs again"


def test_it_is_done_again_if_a_source_is_newer_or_the_result_is_gone(step: Step) -> None:
    (step.folder / "lock").write_text("1")
    given = ("stamp", "--of", "lock", "--holds", "x", "--there", "made", "run it again", "--do", "sh", "-c")
    assert step.run(*given, "echo a >> made").returncode == 0
    assert step.run(*given, "echo b >> made").returncode == 0
    assert (step.folder / "made").read_text() == "a\n"
    later = time.time() + 10
    os.utime(step.folder / "lock", (later, later))
    assert step.run(*given, "echo c >> made").returncode == 0
    assert (step.folder / "made").read_text() == "a\nc\n"
    (step.folder / "made").unlink()
    os.utime(step.folder / "stamp", (later, later))
    assert step.run(*given, "echo d >> made").returncode == 0
    assert (step.folder / "made").read_text() == "d\n"


def test_a_failed_or_interrupted_step_leaves_no_stamp(step: Step) -> None:
    (step.folder / "stamp").write_text("old\n")
    assert step.run("stamp", "--holds", "x", "--do", "false").returncode == 1
    assert not (step.folder / "stamp").exists()
    command = [sys.executable, str(SCRIPT), "stamp", "--holds", "x", "--do", "sh", "-c", "touch began; sleep 60"]
    process = subprocess.Popen(command, cwd=step.folder, stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not (step.folder / "began").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(30) == 143
    if process.stderr:
        process.stderr.close()
    assert not (step.folder / "stamp").exists()


def test_what_a_stamp_stands_for_must_be_there(step: Step) -> None:
    done = step.run("stamp", "--holds", "x", "--there", "bin/*", "install anvil by hand", "--do", "true")
    assert done.returncode == 1
    assert done.stderr == "error (StepFailed): install anvil by hand\n"
    assert not (step.folder / "stamp").exists()


PIP_DOWN = """WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...)': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch
ERROR: No matching distribution found for torch"""


@pytest.mark.parametrize(
    ("program", "says", "name", "way_out"),
    [
        ("pip", PIP_DOWN, "RegistrySilent", "set PIP_INDEX_URL"),
        ("npm", "npm error code ECONNREFUSED", "RegistrySilent", "set NPM_CONFIG_REGISTRY"),
        ("npm", "npm error code E503", "RegistrySilent", "npm config get registry"),
        ("pip", "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "DiskFull",
         "free 3 GB"),
        ("npm", "npm error ENOSPC: no space left on device, write", "DiskFull", "TMPDIR"),
        ("pip", "ERROR: No matching distribution found for torch==2.13.0", "PackageMissing", "PYTHON=/path/to"),
        ("pip", "THESE PACKAGES DO NOT MATCH THE HASHES", "HashWrong", "unset PIP_INDEX_URL"),
        ("npm", "npm error code EINTEGRITY", "HashWrong", "NPM_CONFIG_REGISTRY"),
        ("pip", "SSLError: CERTIFICATE_VERIFY_FAILED", "CertificateUnknown", "PIP_CERT"),
        ("npm", "npm error code SELF_SIGNED_CERT_IN_CHAIN", "CertificateUnknown", "NODE_EXTRA_CA_CERTS"),
        ("npm", "npm error EACCES: permission denied", "FolderNotWritable", "the owner"),
        ("npm", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "MemoryShort",
         "swap space"),
        ("python", "Error: ensurepip is not available", "VenvMissing", "python3-venv"),
        ("npm", "something new", "StepFailed", "exit code 7"),
    ],
)  # fmt: skip
def test_a_fault_is_the_last_line_with_the_way_out(
    step: Step, program: str, says: str, name: str, way_out: str
) -> None:
    done = step.run("stamp", "--holds", "x", "--do", step.fake(program, says, 7))
    assert done.returncode == 1
    *before, last = done.stderr.splitlines()
    assert before == says.splitlines(), "the program's own words stay"
    assert last.startswith(f"error ({name}): ")
    assert way_out in last
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(
    subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="only root may mount a small disk of its own",
)
def test_a_full_disk_is_no_success_even_if_the_program_says_so(step: Step) -> None:
    """npm 11 says that it added packages, and their files are cut off."""
    (step.folder / "modules").mkdir()
    fills = ["sh", "-c", "head -c 9000000 /dev/zero > modules/anvil 2>/dev/null; echo added 1 package"]
    given = ["stamp", "--holds", "x", "--fills", "modules", "--there", "modules/anvil", "install it", "--do", *fills]
    mounted = 'mount -t tmpfs -o size=4m none "$1" && cd "$1" && mkdir modules && shift && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mounted, "sh", str(step.folder), sys.executable, str(SCRIPT), *given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "added 1 package"
    assert done.stderr.splitlines()[-1].startswith(f"error (DiskFull): the disk is full (0.0 GB free in {step.folder},")


def test_a_fallback_is_announced(step: Step) -> None:
    notice = "the index gave no torch: it comes from the usual registry"
    done = step.run("stamp", "--holds", "x", "--try", notice, step.fake("pip", PIP_DOWN, 1), "--do", "touch", "made")
    assert (done.returncode, done.stderr) == (0, f"notice: {notice}\n")
    assert (step.folder / "made").exists()


def test_a_program_that_is_missing_is_named(step: Step) -> None:
    done = step.run("stamp", "--holds", "x", "--do", "no-such-program", "install")
    assert (done.returncode, done.stderr.startswith("error (ProgramMissing): no-such-program is not installed")) == (
        1,
        True,
    )


def test_a_second_one_waits_and_finds_it_done(step: Step) -> None:
    given = [
        sys.executable,
        str(SCRIPT),
        "stamp",
        "--holds",
        "x",
        "--do",
        "sh",
        "-c",
        "touch began; sleep 2; echo a >> made",
    ]
    first = subprocess.Popen(given, cwd=step.folder)
    end = time.monotonic() + 30
    while not (step.folder / "began").exists() and time.monotonic() < end:
        time.sleep(0.05)
    done = step.run(*given[2:])
    assert first.wait(30) == 0
    assert (done.returncode, done.stderr) == (0, "waiting: another command installs into this folder\n")
    assert (step.folder / "made").read_text() == "a\n"


def test_a_broken_environment_is_made_again(step: Step) -> None:
    python = step.folder / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    assert step.run("stamp", "--holds", "x", "--venv", "env", "--do", str(python), "-c", "pass").returncode == 0
    assert re.match(r"Python 3\.", subprocess.run([python, "--version"], capture_output=True, text=True).stdout)
