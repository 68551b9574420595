"""What a stranger wrote into a task file, on the terminal of whoever looks at it."""

from __future__ import annotations

import io
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from chain_driver import task_params
from consilium_chain.ledger.structs import Phase, TaskState
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.hospital.status import HOSPITAL, print_spec, print_task, print_verdict
from consilium_cli.voter.status import VOTER
from consilium_client.consent import Policy
from consilium_client.task import JoinedTask
from consilium_core.children import child_environment
from consilium_core.live import sentence
from consilium_core.visible_text import INVISIBLE
from rich.console import Console
from rich.text import Text
from task_files import SALE

OPERATOR = "0x" + "12" * 20
TURNED, LINK, CLEARED = "\u202edlrow\u202c", "[link=https://evil.example]here[/link]", "\x1b[2J"
LINKED = "[link=https://evil.example]age[/link]U+001B[2J"
# As a TOML file may have them, and a schema's names may be.
HOSTILE = """name = "who falls ill [bold]soon[/bold]"
[data]
label = "sick\\u202e"
classes = ["no", "[red]yes"]
[[data.features]]
name = "[link=https://evil.example]age[/link]\\u001b[2J"
min = 0.0
max = 120.0
[model]
name = "logistic"
"""


def is_visible(text: str) -> bool:
    return all(unicodedata.category(character) not in INVISIBLE for character in text.replace("\n", ""))


@pytest.fixture
def screen() -> Console:
    """A terminal, which would obey escapes and markup."""
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=200, highlight=False)


def said(screen: Console) -> str:
    file = screen.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def hostile() -> tuple[JoinedTask, TaskState]:
    spec = parse_task_spec(HOSTILE.encode())
    state = TaskState(
        operator=OPERATOR, phase=Phase.JOINING, round=0, deadline=0, shard=0, aggregator_joined=False, pool_left=0,
        stopping=False, forfeited=0, active_hospitals=0, active_voters=0,
    )  # fmt: skip
    return JoinedTask(1, spec, task_params(OPERATOR)), state


def test_show_prints_a_strangers_names_visibly_and_obeys_none(screen: Console) -> None:
    print_task(screen, *hostile(), program=[])
    assert is_visible(said(screen))
    assert "who falls ill [bold]soon[/bold]" in said(screen)
    assert f"{LINKED}; label sickU+202E (no or [red]yes)" in said(screen)


def test_a_task_shows_the_terms_of_a_sale_and_its_epsilon(screen: Console) -> None:
    task, state = hostile()
    print_task(screen, task, state, program=[])
    assert "for sale" not in said(screen)
    private = "[privacy]\nepsilon = 3.0\nmax_grad_norm = 1.0\n"
    spec = parse_task_spec(f"{HOSTILE}{private}{SALE}".encode())
    terms = "of each payment the server gets 20 %, the operator 10 %, trainers 55 %, voters 15 %"
    print_task(screen, JoinedTask(1, spec, task.params), state, program=[])
    print_spec(screen, spec)
    shown = " ".join(said(screen).split())
    assert shown.count(f"for sale the finished model: {terms}; buyers see that epsilon was 3") == 2
    assert terms in HOSPITAL.summary(spec)
    assert terms in VOTER.summary(spec)
    assert "sale" not in HOSPITAL.summary(task.spec) + VOTER.summary(task.spec)


def test_verdict_prints_a_strangers_columns_visibly(screen: Console) -> None:
    policy = Policy(operators="any", models="any", columns=["weight"])
    print_verdict(screen, policy, hostile()[0].spec, OPERATOR)
    assert is_visible(said(screen))
    assert f"it uses {LINKED}, sickU+202E, which `columns` does not list" in said(screen)


def test_what_a_node_tells_is_shown_visibly() -> None:
    found = sentence("not-joined", {"why": TURNED + LINK + CLEARED}, {"not-joined": lambda f: str(f["why"])})
    assert Text.from_markup(found).plain == f"U+202EdlrowU+202C{LINK}U+001B[2J"
    assert Text.from_markup(found).spans == []


def test_an_error_about_a_strangers_file_is_told_visibly(tmp_path: Path) -> None:
    (tmp_path / "task.toml").write_text(HOSTILE.replace("min = 0.0", "min = 200.0"))
    command = [sys.executable, "-m", "consilium_cli.main", "operator", "check", str(tmp_path / "task.toml")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=child_environment())
    assert (ran.returncode, f"feature {LINKED}: min must be below max" in ran.stderr) == (1, True), ran.stderr
    assert is_visible(ran.stderr)
