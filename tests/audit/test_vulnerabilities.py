"""What is known of pinned packages is said and fails; so does silence, unless that is allowed.

npm is the real one, with a registry of this test's own. A small program stands for pip-audit, which tests do not
install; its reports are as version 2.10.1 writes them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "audit"))

from vulnerabilities import (  # noqa: E402  (programs, no package)
    IGNORED,
    QUESTIONS,
    IgnoredMalformed,
    NoAnswer,
    Question,
    answer,
    ignored,
    plain,
)

NPM, *_, PIP_AUDIT = QUESTIONS
ADVISORY = {
    "id": 1096, "url": "https://github.com/advisories/GHSA-aaaa-bbbb-cccc", "title": "It \x1b[2Jbreaks",
    "severity": "high", "vulnerable_versions": "<2.0.0", "cwe": [], "cvss": {"score": 7.5, "vectorString": None},
}  # fmt: skip
LOCK: dict[str, Any] = {
    "name": "tried", "version": "1.0.0", "lockfileVersion": 3, "requires": True,
    "packages": {
        "": {"name": "tried", "version": "1.0.0", "devDependencies": {"wrapper": "1.0.0"}},
        "node_modules/brittle": {"version": "1.0.0", "dev": True},
        "node_modules/wrapper": {"version": "1.0.0", "dev": True, "dependencies": {"brittle": "1.0.0"}},
    },
}  # fmt: skip
VULN = {"id": "PYSEC-2026-1", "fix_versions": ["2.0"], "aliases": ["CVE-2026-1", "GHSA-dddd-eeee-ffff"]}


def pip_report(*vulns: dict[str, Any]) -> str:
    return json.dumps({"dependencies": [{"name": "idna", "version": "1.0", "vulns": vulns}], "fixes": []})


class Registry(ThreadingHTTPServer):
    """Answers a question for advisories with `status` and `advisories`, or never; has no package to give."""

    def __init__(self) -> None:
        self.status, self.advisories, self.hangs = 200, b"{}", False
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), _Request)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"


class _Request(BaseHTTPRequestHandler):
    server: Registry

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.hangs:
            self.server.over.wait()
        else:
            self._send(self.server.status, self.server.advisories)

    def do_GET(self) -> None:
        self._send(404, b"{}")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


class Checkout:
    """The program with lists of its own, in a folder of its own."""

    def __init__(self, folder: Path, registry: Registry) -> None:
        self._folder, self._registry = folder, registry
        (folder / "audit").mkdir()
        for name in ("vulnerabilities.py", "dependencies.py"):
            shutil.copy(ROOT / "audit" / name, folder / "audit" / name)
        self.ignored = folder / "audit" / "ignored.txt"
        self.ignored.write_text("# nothing\n")
        for place in (folder / "chain" / "contracts", folder / "dashboard", folder / "docs" / "site"):
            place.mkdir(parents=True)
            (place / "package.json").write_text(json.dumps(LOCK["packages"][""]))
            (place / "package-lock.json").write_text(json.dumps(LOCK))
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(sys.executable)
        self.pip_audit(f"echo '{pip_report()}'")

    def pip_audit(self, script: str) -> None:
        """Beside the Python that runs, as in an environment."""
        path = self._folder / "bin" / "pip-audit"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def audit(self, *arguments: str, **settings: str) -> tuple[int, list[str]]:
        npm = {
            "npm_config_registry": self._registry.url, "npm_config_noproxy": "127.0.0.1",
            "npm_config_cache": str(self._folder / "cache"), "npm_config_userconfig": str(self._folder / "npmrc"),
        }  # fmt: skip
        done = subprocess.run(
            [self._folder / "bin" / "python", self._folder / "audit" / "vulnerabilities.py", *arguments],
            env=os.environ | npm | settings, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.fixture
def checkout(tmp_path: Path, registry: Registry) -> Checkout:
    return Checkout(tmp_path, registry)


def test_nothing_known(checkout: Checkout) -> None:
    status, said = checkout.audit()
    assert status == 0
    assert said[-4:] == [
        "npm audit, chain/contracts: nothing known, of 2 packages",
        "npm audit, dashboard: nothing known, of 2 packages",
        "npm audit, docs/site: nothing known, of 2 packages",
        "pip-audit, constraints.txt: nothing known, of 1 packages",
    ]


def test_an_advisory_of_npm_is_known_once_whatever_the_machine_leaves_out(
    checkout: Checkout, registry: Registry
) -> None:
    registry.advisories = json.dumps({"brittle": [ADVISORY]}).encode()
    status, said = checkout.audit(NODE_ENV="production", npm_config_offline="true", npm_config_audit_level="none")
    assert status == 1
    assert said.count("  brittle <2.0.0: GHSA-aaaa-bbbb-cccc, high: It [2Jbreaks") == 3
    assert [line.partition(": ")[2] for line in said[-4:-1]] == ["1 known, of 2 packages"] * 3


def test_who_does_not_answer_fails(checkout: Checkout, registry: Registry) -> None:
    registry.status = 405
    status, said = checkout.audit()
    assert status == 2
    assert said[-4].startswith("npm audit, chain/contracts: no answer: 405 Method Not Allowed")
    assert said[-1] == "pip-audit, constraints.txt: nothing known, of 1 packages"


def test_what_is_known_outweighs_who_does_not_answer(checkout: Checkout, registry: Registry) -> None:
    registry.status = 405
    checkout.pip_audit(f"echo '{pip_report(VULN)}'; exit 1")
    status, said = checkout.audit("--where-answered")
    assert status == 1
    assert "  idna 1.0: PYSEC-2026-1, CVE-2026-1, GHSA-dddd-eeee-ffff: mended in 2.0" in said
    assert said[-1] == "pip-audit, constraints.txt: 1 known, of 1 packages"


def test_ids_with_a_reason_are_passed_over(checkout: Checkout, registry: Registry) -> None:
    registry.advisories = json.dumps({"brittle": [ADVISORY]}).encode()
    checkout.pip_audit(f"echo '{pip_report(VULN)}'; exit 1")
    checkout.ignored.write_text(
        "GHSA-aaaa-bbbb-cccc only parses our own files, 2026-11-23\nCVE-2026-1 not called, 2026-11-23\n"
    )
    status, said = checkout.audit()
    assert status == 0
    assert [line.partition(": ")[2] for line in said[-4:]] == [
        "nothing known, of 2 packages; 1 passed over by ignored.txt",
        "nothing known, of 2 packages; 1 passed over by ignored.txt",
        "nothing known, of 2 packages; 1 passed over by ignored.txt",
        "nothing known, of 1 packages; 1 passed over by ignored.txt",
    ]


def test_who_hangs_is_left_and_ended_with_all_it_started(
    checkout: Checkout, registry: Registry, tmp_path: Path
) -> None:
    registry.hangs = True
    checkout.pip_audit(f"sleep 600 & echo $! > {tmp_path}/child; wait")
    status, said = checkout.audit("--where-answered", "--timeout", "1")
    assert status == 0  # because it is allowed
    assert [line.partition(": ")[2] for line in said[-3:]] == ["no answer: nothing within 1 s"] * 3
    child = Path("/proc") / (tmp_path / "child").read_text().strip()
    end = time.monotonic() + 5
    while child.exists() and "State:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_programs_that_are_not_there_give_no_answer(checkout: Checkout, tmp_path: Path) -> None:
    (tmp_path / "bin" / "pip-audit").unlink()
    status, said = checkout.audit(PATH=str(tmp_path))
    assert status == 2
    assert all("does not start: No such file or directory" in line for line in said[-3:])


def test_a_line_without_a_reason_is_refused_before_anybody_is_asked(checkout: Checkout) -> None:
    checkout.ignored.write_text("GHSA-aaaa-bbbb-cccc\n")
    status, said = checkout.audit("--where-answered")
    assert status == 2
    assert said[-1].endswith("error: ignored.txt: no id with a reason: GHSA-aaaa-bbbb-cccc")
    assert not any(line.startswith("asking") for line in said)


def test_the_ignored_file_is_one(tmp_path: Path) -> None:
    assert all(name.isprintable() for name in ignored(IGNORED))
    (tmp_path / "list").write_text("# why\n\nCVE-1 not called\n CVE-2 indented\n")
    with pytest.raises(IgnoredMalformed, match="CVE-2"):
        ignored(tmp_path / "list")


@pytest.mark.parametrize(
    ("status", "errors", "words"),
    [
        (1, "WARNING:pip_audit._cli:--no-deps is supported\nERROR:pip_audit._cli:idna: Dependency not found on PyPI\n",
         "ERROR:pip_audit._cli:idna: Dependency not found on PyPI"),
        (1, 'Traceback (most recent call):\n  File "x.py"\nOSError: disk \x1b[31mfull\n', "OSError: disk [31mfull"),
        (-9, "", "exit status -9: it said nothing"),
        (2, "usage: pip-audit\n", "exit status 2: usage: pip-audit"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_in_its_own_words(status: int, errors: str, words: str) -> None:
    with pytest.raises(NoAnswer) as caught:
        answer(PIP_AUDIT, status, "", errors)
    assert str(caught.value).endswith(words)


def npm_said(vulnerabilities: str, packages: str = "3", version: int = 2) -> str:
    metadata = f'{{"dependencies": {{"total": {packages}}}}}'
    return f'{{"auditReportVersion": {version}, "vulnerabilities": {vulnerabilities}, "metadata": {metadata}}}'


@pytest.mark.parametrize("question", [NPM, PIP_AUDIT], ids=["npm", "pip-audit"])
def test_what_is_no_report_is_no_answer(question: Question) -> None:
    for said in (
        "", "<html>", "null", "7", '"error"', "[]", "{}", "[" * 100_000, "9" * 10_000, pip_report(VULN)[:-9],
        '{"error": 7}', '{"error": {}}', '{"error": {"summary": "", "detail": ""}}', '{"message": ["\\ud800"]}',
        npm_said("{}", version=1), npm_said("[]"), npm_said("{}", packages="0"), npm_said("{}", packages="true"),
        npm_said('{"a": {"via": ["b"]}}'), npm_said('{"a": {"via": [7]}}'), npm_said('{"a": {"via": [{}]}}'),
        '{"dependencies": []}', '{"dependencies": {"idna": {}}}',
        '{"dependencies": [{"name": "idna", "skip_reason": "not found"}]}',
        pip_report({"id": [], "aliases": [], "fix_versions": []}), pip_report({"id": "CVE-1"}),
    ):  # fmt: skip
        for status in (0, 1):
            with pytest.raises(NoAnswer) as caught:
                answer(question, status, said, "")
            assert str(caught.value).isprintable(), said


def test_a_report_with_another_exit_status_is_no_answer() -> None:
    assert answer(PIP_AUDIT, 0, pip_report(), "").findings == ()
    with pytest.raises(NoAnswer, match="exit status 2"):
        answer(PIP_AUDIT, 2, pip_report(), "")


def test_foreign_words_stay_on_one_line() -> None:
    assert plain("a\r\n\tb\x1b[2J\u202e c") == "a b [2J c"
    assert len(plain("x" * 10_000)) < 400
