"""The command line takes each `consilium` command of the documentation. Those that need neither a chain nor a network
run, as typed, on files that the tests make: at a terminal where they ask, and else in this process, which has imported
once what each process of its own would import for seconds.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
from pathlib import Path
from typing import Protocol

import click
import pytest
from command_line import CommandLine, consilium, done, own_signals
from consilium_chain.deploying.address_book import Deployment
from consilium_cli.main import app
from consilium_client.hospital.audit_log import AuditLog
from consilium_lab.demo.options import parse_attack
from documented import ROOT, Documented, commands, documented, leaf, options, parsed, unknown
from model_driver import written
from task_files import of_few_rounds
from typed import typed
from typer.main import get_command

__all__ = ["consilium", "own_signals"]

FOUND = list(documented())
WHOLE = [one for one in FOUND if one.whole]
TASK = (ROOT / "docs" / "operator.md").read_text().partition("```toml\n")[2].partition("```")[0]
SITES = 6
# The guides say `simulate FILE`, and `resume` without its group. `openapi` is for `make dashboard`.
UNMENTIONED = {"hospital resume", "voter resume", "server openapi", "simulate task"}
INIT = {
    "Chain node": "", "address book (file)": "", "Artifact store": "artifacts", "(file or folder)": "rows.csv",
    "Operators whose": "any", "Model families": "", "{}": "", "Password for": "a password", "Repeat for": "a password",
}  # fmt: skip


def command_line() -> click.Group:
    """A new one for each test, in which no path must exist."""
    group = get_command(app)
    assert isinstance(group, click.Group)
    for _, command in commands(group):
        for one in command.params:
            if isinstance(one.type, click.Path):
                one.type.exists = False
    return group


def shown(one: Documented) -> str:
    return f"{one.page}: {one.text}"


class Run(Protocol):
    def __call__(self, text: str, answers: dict[str, str] | None = None, code: int = 0) -> str: ...


@pytest.fixture
def run(consilium: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command that the documentation has, in exactly these words, in `tmp_path`; returns what it said."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def run(text: str, answers: dict[str, str] | None = None, code: int = 0) -> str:
        assert text in {one.text for one in FOUND}, f"the documentation has no `consilium {text}`"
        words = text.replace("[", "").replace("]", "")
        if answers is not None:
            return typed(tmp_path, f"consilium {words}", answers, code)
        found, said = consilium(*map(os.path.expanduser, shlex.split(words)))
        assert found == code, f"{text}: exit code {found}\n{said}"
        return said

    return run


def write_rows(path: Path, columns: str = "age,chol,sick,clinic", count: int = 720) -> None:
    """Rows of docs/operator.md's task, of six clinics."""
    numbers = random.Random(0)
    lines = [columns]
    for at in range(count):
        age, chol = numbers.randint(20, 90), round(numbers.uniform(3, 9), 1)
        sick = "yes" if age / 10 + chol + numbers.gauss(0, 1) > 11.5 else "no"
        values = {"age": age, "chol": chol, "sick": sick, "clinic": f"clinic-{at % SITES}"}
        lines.append(",".join(str(values[name]) for name in columns.split(",")))
    path.write_text("\n".join(lines) + "\n")


def write_contracts(folder: Path) -> None:
    """Address books of two deployments that no chain has."""
    (folder / ".consilium").mkdir()
    for name, digit in ((".consilium/local.json", "1"), ("new.json", "2")):
        place = f"0x{digit * 40}"
        Deployment(31_337, 1, place, place, place, place, place, place).write(folder / name)


def test_commands_are_found() -> None:
    assert len(WHOLE) > 60
    assert len(FOUND) > 180
    assert {"docs/hospital.md", "docs/voter.md", "docs/operator.md", "docs/containers.md"} <= {
        one.page for one in WHOLE
    }
    texts = {shown(one) for one in WHOLE}
    assert "docs/demo.md: demo --attack lazy" in texts
    assert "docs/containers.md: hospital join 3" in texts
    assert any(text.startswith("docs/doctor.md: doctor aggregator --config ") for text in texts)


@pytest.mark.parametrize("one", WHOLE, ids=shown)
def test_a_whole_command_is_taken_as_typed(one: Documented) -> None:
    parsed(command_line(), one.words)


@pytest.mark.parametrize("one", [one for one in FOUND if not one.whole], ids=shown)
def test_a_mentioned_command_and_its_options_exist(one: Documented) -> None:
    assert unknown(command_line(), one.words) == []


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("hospital initialise", "No such command"),
        ("hospital join 3 --superlinks a:1", "No such option"),
        ("hospital show", "Missing argument"),
        ("hospital show three", "not a valid"),
        ("voter register --stake", "requires an argument"),
        ("operator watch 3 4", "unexpected extra argument"),
    ],
)
def test_a_wrong_command_is_found(words: str, error: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parsed(command_line(), words.split())
    assert error in caught.value.format_message()


def test_a_wrong_option_of_an_incomplete_command_is_found() -> None:
    assert unknown(command_line(), ["hospital", "join", "--superlinks", "--home"]) == ["--superlinks"]


def test_every_command_is_mentioned() -> None:
    group = command_line()
    mentioned = {tuple(one.words[:size]) for one in FOUND for size in (1, 2, 3)}
    every = {name for name, command in commands(group) if not isinstance(command, click.Group)}
    assert {name for name in every if tuple(name.split()) not in mentioned} == UNMENTIONED


def test_every_command_has_help_and_its_options_and_arguments_have_too() -> None:
    for name, command in commands(command_line()):
        assert command.help, name
        for one in command.params:
            assert getattr(one, "help", None), f"{name} {one.name}"


def test_a_newcomer_drafts_a_task_and_simulates_it(tmp_path: Path, run: Run) -> None:
    write_rows(tmp_path / "rows.csv")
    run("task new --from rows.csv --sites clinic")
    assert "gas" in run("operator check task.toml")
    drafted = tmp_path / "task.toml"
    drafted.write_text(of_few_rounds(drafted.read_text()))
    assert "all rows in one place" in run("simulate task.toml --table rows.csv --sites clinic")


def test_the_task_file_of_the_guide_is_simulated_with_a_file_for_each_party(
    tmp_path: Path, consilium: CommandLine
) -> None:
    (tmp_path / "task.toml").write_text(of_few_rounds(TASK))
    parties = [*(f"--site {name}={name}.csv" for name in "ABCDEF"), *(f"--voter {name}={name}.csv" for name in "VWXYZ")]
    for party in parties:
        write_rows(tmp_path / party.partition("=")[2], "age,chol,sick", 120)
    done(consilium("simulate", "task.toml", *shlex.split(" ".join(parties))), "epsilon 8")


def test_attacks_of_the_demo_exist() -> None:
    attacks = {one.words[one.words.index("--attack") + 1] for one in FOUND if "--attack" in one.words}
    assert len(attacks) > 3
    assert all(parse_attack(attack) for attack in attacks)


def test_an_account_is_made_and_its_password_changed(tmp_path: Path, run: Run) -> None:
    assert "consilium chain local fund 0x" in run("new-key key.json --password-file password")
    (tmp_path / "new").touch(mode=0o600)
    (tmp_path / "new").write_text("another password\n")
    changed = run("change-password key.json --password-file password --new-password-file new")
    assert "now opens with the password in new" in changed


def test_a_hospital_makes_homes_and_exports_its_audit_log(tmp_path: Path, run: Run) -> None:
    """Without a chain, the checks at the end of `init` find a fault."""
    write_contracts(tmp_path)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "artifacts").mkdir()
    answers = {question.format("Columns that"): answer for question, answer in INIT.items()}
    assert "no chain node answers" in run("hospital init", answers, code=1)
    home = tmp_path / "home" / ".consilium" / "hospital"
    assert (home / "policy.toml").exists()
    assert "chain" in run("doctor hospital", code=1)
    run("hospital pause")
    log = AuditLog(home / "audit.jsonl")
    log.leaving("trial", "http://127.0.0.1:8545", b"\1", call="commitUpdate", contract="0x" + "1" * 40)
    run("hospital export-audit --output hospital.audit")
    run("verify-audit hospital.audit")
    shutil.copy(tmp_path / "hospital.audit", tmp_path / "last-month.audit")
    log.leaving("trial", "http://127.0.0.1:8545", b"\2", call="commitUpdate", contract="0x" + "1" * 40)
    (tmp_path / "hospital.audit").unlink()
    run("hospital export-audit --output hospital.audit")
    run("verify-audit hospital.audit --extends last-month.audit")
    second = "hospital init --like ~/.consilium/hospital --home ~/.consilium/hospital-2 --address-book new.json"
    run(second, code=1)
    assert (home.with_name("hospital-2") / "node.toml").exists()


def test_a_voter_makes_a_home(tmp_path: Path, run: Run) -> None:
    write_contracts(tmp_path)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "artifacts").mkdir()
    answers = {question.format("Metrics by"): answer for question, answer in INIT.items()}
    assert "no chain node answers" in run("voter init", answers, code=1)
    assert (tmp_path / "home" / ".consilium" / "voter" / "policy.toml").exists()
    run("voter pause")


def test_a_model_is_used(tmp_path: Path, run: Run) -> None:
    written(tmp_path, TASK).rename(tmp_path / "heart")
    write_rows(tmp_path / "rows.csv", "age,chol")
    write_rows(tmp_path / "labelled.csv")
    run("predict heart --input rows.csv --output predictions.csv")
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 721
    shown = run("operator evaluate heart --data labelled.csv --site-column clinic --output result.json")
    assert "clinic-5" in shown


def test_a_copy_of_artifacts_is_checked(tmp_path: Path, run: Run) -> None:
    (tmp_path / "copy").mkdir()
    assert "0 of 0 artifacts match" in run("artifacts check copy")


def test_help_of_the_demo_shows_every_option(run: Run) -> None:
    help_text = run("demo --help")
    _, demo, _ = leaf(command_line(), ["demo"])
    assert {one for one in options(demo) if one not in help_text} == set()


@pytest.mark.deep
def test_the_economics_are_simulated(tmp_path: Path) -> None:
    text = "simulate economics [--rounds 1000] [--seed 0] [--scenario NAME] [--output FILE] [--plots FOLDER]"
    assert text in {one.text for one in FOUND}
    typed(tmp_path, "consilium simulate economics --rounds 20 --seed 0 --output FILE --plots FOLDER")
    assert (tmp_path / "FILE").exists()
