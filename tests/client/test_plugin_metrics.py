"""A plug-in's metric: the built-in one's scores, an end for each fault, and nothing of the voter in reach."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tomli_w
from consilium.client import Client
from consilium_chain.errors import SpecInvalid
from consilium_chain.tasks.judging_spec import JudgingSpec
from consilium_chain.tasks.limits import MICRO
from consilium_chain.tasks.plugin_specs import MetricPlugin
from consilium_chain.tasks.task_spec import TaskSpec, parse_task_spec
from consilium_cli.main import app
from consilium_client.consent import Policy, VoterPolicy
from consilium_client.data.table.reader import Table
from consilium_client.errors import DataError
from consilium_client.models.objectives.base import MOST_WORTH
from consilium_client.models.worth import require_metric_installed, worth_of
from consilium_client.plugins import asking
from consilium_client.plugins.errors import PluginError
from consilium_client.programs import confined
from consilium_lab.simulation.run import simulate
from hospital_driver import OPEN_POLICY
from plugin_attacks import ATTACKS, NAMES
from plugin_wheels import Site, named, site_in
from raised_faults import raises_fault
from training_driver import task_file
from typer.testing import CliRunner

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no plug-in is computed")
ACCURACY = """
import numpy as np


def hits(labels, probabilities, share=1.0):
    likeliest = probabilities.shape[1] - 1 - np.argmax(probabilities[:, ::-1], axis=1)
    return np.float64(share) * np.mean(likeliest == labels)
"""
WHAT = (
    "nothing", "raises", "exits", "nan", "infinite", "too large", "a text", "complex", "an array", "an object",
    "a whole number", "a number", "takes memory", "counts calls", "draws", "orders", "reversed", "sleeps", "ends",
)  # fmt: skip
# Its argument says what it does; without one, the first label does.
MISBEHAVING = (
    f"""
WHAT = {WHAT}
"""
    + """
import os
import sys
import time

import numpy as np


class Number(float):
    def __float__(self):
        raise RuntimeError("a row's secret")


calls = 0


def misbehave(labels, probabilities, what=None):
    global calls
    calls += 1
    what = what or WHAT[labels[0]]
    if what == "raises":
        raise RuntimeError(f"a row's secret: {labels}")
    if what == "exits":
        sys.exit(0)
    if what == "ends":
        os._exit(3)
    if what == "sleeps":
        time.sleep(600)
    if what == "takes memory":
        return float(len(np.ones(1 << 34)))
    if what == "counts calls":
        return calls
    if what == "draws":
        return float(np.random.rand())
    if what == "orders":
        return float(labels[0] + probabilities[0, 0])
    if what == "reversed":
        return -np.mean(probabilities[np.arange(len(labels)), labels])
    results = {
        "nan": float("nan"), "infinite": float("-inf"), "too large": 500_001, "a text": "1.0", "nothing": None,
        "complex": 1j, "an array": np.ones(2), "an object": object(), "a whole number": 10**400, "a number": Number(1),
    }
    return results[what]
"""
)
LABELS = np.array([0, 1, 1, 0, 1])
LIKELY = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_in(tmp_path_factory.mktemp("metrics")) as made:
        yield made


@pytest.fixture(scope="module")
def accurate(site: Site) -> dict[str, Any]:
    return named(site.put("test_accuracy", ACCURACY, "[consilium.metrics]\nhits = test_accuracy:hits\n"), "hits")


@pytest.fixture(scope="module")
def misbehaving(site: Site) -> dict[str, Any]:
    made = site.put("test_misbehaving", MISBEHAVING, "[consilium.metrics]\nbad = test_misbehaving:misbehave\n")
    return named(made, "bad")


def judged_by(section: dict[str, Any] | None, judging: str = "", rounds: int = 2) -> TaskSpec:
    return parse_task_spec(raw_of(section, judging, rounds))


def raw_of(section: dict[str, Any] | None, judging: str = "", rounds: int = 2) -> bytes:
    metric = 'metric = "accuracy"' if section is None else 'metric = "plugin"'
    table = "" if section is None else tomli_w.dumps({"judging": {"plugin": section}})
    return task_file("epochs = 3", judging=f"{metric}\n{judging}", rounds=rounds) + table.encode()


def worth(section: dict[str, Any], **arguments: Any) -> float:
    return worth_of(judged_by({**section, "arguments": arguments}))(LABELS, LIKELY)


# --- its numbers ------------------------------------------------------------------------------------------------------


def test_a_plug_ins_metric_scores_as_the_built_in_one_that_it_equals(accurate: dict[str, Any]) -> None:
    """The whole way: voters' ballots, medians, verdicts and pay of a simulated task."""
    assert worth(accurate) == worth_of(judged_by(None))(LABELS, LIKELY) == 0.8
    assert worth(accurate, share=-2) == -1.6
    random = np.random.default_rng(3)
    values = [random.random((rows, 1)) for rows in (60, 45)]
    tables = [Table(one, (one[:, 0] > random.random(len(one))).astype(np.int64)) for one in values]
    floors = "accept_floor = -1000.0\nharmful_below = -1000.0"
    own, built_in = (
        simulate(raw_of(one, floors), dict(zip("ab", tables, strict=True)), {"v": tables[0]}, 7, compared=False).rounds
        for one in (accurate, None)
    )
    assert [one.settlement for one in own] == [one.settlement for one in built_in]
    assert any(median != 0 for one in own for median in one.settlement.medians)


def test_scores_are_within_the_contracts_bounds(accurate: dict[str, Any]) -> None:
    """A score is the difference of two worths. The task file's thresholds, which the contract takes, go as far."""
    largest = 2 * MOST_WORTH
    (bound,) = {one.le for one in JudgingSpec.model_fields["accept_floor"].metadata if hasattr(one, "le")}
    assert largest == bound
    assert largest * MICRO < 2**63 - 2
    assert worth(accurate, share=625_000) == 500_000
    with raises_fault(PluginError, "PluginFailed", "its call: its number is not between -500,000 and 500,000"):
        worth(accurate, share=-625_001)
    with raises_fault(DataError, "TooFewRows"):
        worth_of(judged_by(accurate))(LABELS[:0], LIKELY[:0])


# --- its end ----------------------------------------------------------------------------------------------------------


def test_a_metric_that_misbehaves_costs_its_call_by_name(
    misbehaving: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = judged_by(misbehaving)
    faults = {
        "raises": "RuntimeError; tell", "exits": "SystemExit; tell", "nan": "between", "infinite": "between",
        "too large": "between", "a text": "str, and no number", "nothing": "NoneType, and no number",
        "complex": "complex, and no number", "an array": "ndarray, and no number", "an object": "object, and no number",
        "a whole number": "OverflowError", "a number": "RuntimeError; tell", "takes memory": "MemoryError",
        "ends": "its process ended with the status 3",
    }  # fmt: skip
    for what, why in faults.items():
        with raises_fault(PluginError, "PluginFailed", f"test-misbehaving 1.0 failed in its call: .*{why}"):
            worth_of(spec)(np.full(5, WHAT.index(what)), LIKELY)
    monkeypatch.setattr(confined, "SPARE_SECONDS", 1.0)
    metric = MetricPlugin.model_validate(misbehaving)
    started = time.monotonic()
    with raises_fault(PluginError, "PluginFailed", "its process took longer than 2 seconds"):
        asking.worth(metric, np.full(5, WHAT.index("sleeps")), LIKELY, 1)
    assert time.monotonic() - started < 30


def test_nothing_of_the_voter_is_in_reach_of_a_metric(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.folder / "key").write_text("a key")
    monkeypatch.setenv("CONSILIUM_PASSWORD", "a password")
    code = f"FOLDER = {str(site.folder)!r}\n{ATTACKS}\n" + (
        "IMPORTED = tried(None)\n\n\ndef probe(labels, probabilities):\n"
        "    at = labels[0]\n"
        "    return len(IMPORTED) if at < 0 else IMPORTED[at] + tried(None)[at]\n"
    )
    probing = named(site.put("test_probing", code, "[consilium.metrics]\nprobe = test_probing:probe\n"), "probe")
    found = worth_of(judged_by(probing))
    assert found(np.full(5, -1), LIKELY) == len(NAMES)
    assert {name: done for at, name in enumerate(NAMES) if (done := found(np.full(5, at), LIKELY))} == {}
    assert (site.folder / "key").read_text() == "a key"
    assert not (site.folder / "key.copy").exists()


# --- consent ----------------------------------------------------------------------------------------------------------


def test_voters_allow_a_metric_by_its_digest_and_hospitals_are_shown_it(accurate: dict[str, Any]) -> None:
    spec, operator, record = judged_by(accurate), "0x" + "11" * 20, accurate["record"]
    rules: dict[str, Any] = {"operators": "any", "models": "any", "metrics": ["log_loss"]}
    assert VoterPolicy.model_validate(rules | {"plugins": [record]}).objections(spec, operator) == []
    for plugins in ([], ["ab" * 32]):
        (objection,) = VoterPolicy.model_validate(rules | {"plugins": plugins}).objections(spec, operator)
        assert objection == f"`plugins` does not list its plug-in test-accuracy 1.0, {record}"
    assert VoterPolicy.model_validate(rules).objections(judged_by(None), operator) == [
        "`metrics` does not list its metric accuracy"
    ]
    policy = Policy.model_validate(OPEN_POLICY)
    assert policy.objections(spec, operator) == []  # its code does not run at a hospital
    home: Any = SimpleNamespace(policy=lambda: policy)
    assert dict(Client.plugin(home, SimpleNamespace(spec=spec))) == {  # type: ignore[arg-type]  # a joined task
        "plug-in": "test-accuracy 1.0, its metric hits", "digest": record, "arguments": "none",
        "runs": "at voters, and not here",
    }  # fmt: skip


def test_a_voter_needs_the_metric_of_the_digest(accurate: dict[str, Any]) -> None:
    require_metric_installed(judged_by(None))
    require_metric_installed(judged_by(accurate))
    with raises_fault(PluginError, "PluginOther", "ab" * 32):
        require_metric_installed(judged_by({**accurate, "record": "ab" * 32}))
    with raises_fault(PluginError, "PluginMissing"):
        require_metric_installed(judged_by({**accurate, "distribution": "nowhere"}))
    with raises_fault(PluginError, "PluginOther"):  # also where nobody asked before
        worth_of(judged_by({**accurate, "record": "cd" * 32}))(LABELS, LIKELY)


def test_metric_and_section_go_together(accurate: dict[str, Any]) -> None:
    alone = task_file("epochs = 3", judging='metric = "plugin"')
    beside = raw_of(accurate).replace(b'metric = "plugin"', b'metric = "accuracy"')
    for raw in (alone, beside):
        with pytest.raises(SpecInvalid, match="go together"):
            parse_task_spec(raw)
    assert judged_by(accurate).judging.in_words == "hits of the plug-in test-accuracy 1.0"
    assert "plugin" not in judged_by(None).model_dump(exclude_none=True)["judging"]


# --- the author's tests -----------------------------------------------------------------------------------------------


def say(code: int, *arguments: object) -> str:
    ran = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["plugin", *map(str, arguments)], catch_exceptions=False)
    assert ran.exit_code == code, ran.output
    return ran.output


def test_the_contracts_suite_of_a_metric(accurate: dict[str, Any], misbehaving: dict[str, Any]) -> None:
    said = say(0, "test", "test-accuracy", "--classes", 3)
    assert "FAILS" not in said
    assert "good predictions score: 0.9" in said
    section = said[said.index("[judging]") :]
    values = judged_by(None).model_dump()
    judging = values["judging"] | tomllib.loads(section)["judging"]
    assert TaskSpec.model_validate(values | {"judging": judging}) == judged_by(accurate)
    assert "  metrics hits\n" in say(0, "list")
    faults = {
        "nan": "it gives a finite number, without files, keys and network: PluginFailed",
        "counts calls": "the same rows have the same number: two calls differ",
        "orders": "the order of rows",
    }
    for what, why in faults.items():
        last = say(1, "test", "test-misbehaving", "--argument", f'what="{what}"').splitlines()[-1]
        assert last.startswith(f"FAILS  {why}"), last
    assert "looks reversed" in say(0, "test", "test-misbehaving", "--argument", 'what="reversed"')
    assert "FAILS" not in say(0, "test", "test-misbehaving", "--argument", 'what="draws"')  # each call draws alike
