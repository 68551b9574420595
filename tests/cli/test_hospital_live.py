"""What a running node tells on a terminal: every event that it can tell has its words."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import pytest
from consilium import joining
from consilium_chain.rpc import retry, several_nodes, socket_provider
from consilium_client import membership
from consilium_client.data import door
from consilium_client.evaluation import handing_in
from consilium_client.hospital import hooks, relay_link, round_updates, training
from consilium_client.hospital import node as hospital
from consilium_client.monitoring import serving
from consilium_client.privacy import accountant
from consilium_client.voter import judging
from consilium_client.voter import node as voter
from consilium_core import collector, owner
from consilium_core.artifacts import store
from consilium_core.live import UNPAID, WORDS, sentence, worth
from consilium_core.logs import emit, hint, log_to
from rich.text import Text

# As the node fills them in: amounts as text.
FIELDS = {
    "superlink": "fl.example:9092",
    "index": 0, "rows": 7, "round": 2, "blobs": 1, "train_s": 0.5, "commit_s": 0.1, "by": "relay", "gas": 1,
    "bytes": 9,
    "reason": "NO_IMPROVEMENT",
    "reward": str(3 * 10**18), "slash": str(10**18), "why": "hours", "tries": 2, "wait_s": 1.5,
    "epsilon": 1.234, "of": 3.0, "spent": 2.5, "would_be": 3.1, "allowed": 3.0,
    "error": "Name[d]", "call": "commitUpdate", "balance": str(5 * 10**18), "wei": "1", "step": 0, "role": "hospital",
    "place": "https://mirror.example/…", "artifact": "file-00", "artifacts": 3,
    "rounds": [1, 2], "seconds": 0.25, "tasks": 3, "judged": 1, "account": "0x77", "missing": "2",
    "status": 1, "log": "/home/logs/relay.log",
    "to": "https://api.example", "allow": "a rule of the policy", "by_hand": "a command",
    "at": "127.0.0.1:9464", "ports": 8,
    "current": "", "next": "0x78", "next_at": 1_795_000_000,
    "node": "wss://chain.example", "before": "https://other.example", "told": "slash", "spans": 3,
    "concern": "duplicates", "column": "", "answered": True, "answer": "duplicates",
}  # fmt: skip


def told_by_the_node() -> Iterator[tuple[str, set[str]]]:
    """Names of events and of their fields, as they stand in the node's code."""
    hospitals = hospital, round_updates, hooks, relay_link, training
    for module in (
        store,
        door,
        *hospitals,
        accountant,
        retry,
        several_nodes,
        socket_provider,
        owner,
        membership,
        voter,
        judging,
        handing_in,
        serving,
        collector,
        joining,
    ):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "emit":
                (name,) = node.args
                if isinstance(name, ast.Constant):
                    yield str(name.value), {word.arg for word in node.keywords if word.arg}


@pytest.mark.parametrize(("event", "given"), sorted((event, tuple(sorted(f))) for event, f in told_by_the_node()))
def test_an_event_is_told_with_what_the_node_gives_it(event: str, given: tuple[str, ...]) -> None:
    fields = {name: (FIELDS | {"task": 3})[name] for name in given} | ({"by": "own"} if event == "committed" else {})
    said = Text.from_markup(sentence(event, fields)).plain
    assert said
    assert "Name[d]" in said or "error" not in given


def test_the_node_tells_all_that_there_are_words_for() -> None:
    events = {event for event, _ in told_by_the_node()}
    assert set(WORDS) <= events
    for event in UNPAID:
        assert "0.000001 ether" in sentence(event, FIELDS)


def test_amounts_are_told_in_tokens() -> None:
    said = Text.from_markup(sentence("settled", FIELDS)).plain
    assert said == "round 2 is settled (no improvement): 3.00 tokens, slashed 1.00"


def test_what_is_told_goes_to_the_screen_and_afterwards_to_the_journal(capsys: pytest.CaptureFixture[str]) -> None:
    heard, seen = [], []
    with log_to(
        lambda event, fields: heard.append((event, dict(fields))), lambda event, fields: seen.append(dict(fields))
    ):
        emit("resumed", round=1)
        hint("training", step=1)
    assert (heard, seen, capsys.readouterr().out) == ([("resumed", {"round": 1})], [{"step": 1}], "")
    hint("training", step=2)  # losses are of rows, and journals travel
    emit("resumed", round=2)
    (line,) = capsys.readouterr().out.splitlines()
    assert '"event": "resumed", "round": 2' in line


def test_of_several_tasks_each_line_names_its_own() -> None:
    said = Text.from_markup(sentence("scored", {"task": 3, "round": 2, "gas": 1, "seconds": 0.25})).plain
    assert said == "task 3: round 2: judged in 0.25 s, and committed to its scores"


def test_what_a_model_is_worth_here_has_words_and_no_event() -> None:
    said = worth({"round": 3, "rows": 40, "accuracy": 0.875, "log_loss": 0.31})
    assert said == "round 3: the base model on 40 held-out rows: accuracy 0.875, log loss 0.310"
    assert "worth" not in {event for event, _ in told_by_the_node()} | set(WORDS)
