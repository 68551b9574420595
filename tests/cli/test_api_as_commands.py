"""`import consilium` and the command line do the same: on a real chain, and with a real model."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import consilium
import numpy as np
import pandas as pd
import pytest
from chain_driver import TOKENS, LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import DeploymentInvalid, NotPossible, Refused
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_core.errors import ConfigInvalid, KeystoreError
from consilium_core.private_files import write_private_file
from consilium_operators.errors import OperatorError
from consilium_operators.model_folder import read_model
from model_driver import TABLE, written
from raised_faults import raises_fault
from typer.testing import CliRunner
from voter_driver import TASK

AGGREGATOR = "0x" + "77" * 20
NOBODY = "http://127.0.0.1:9"


def say(*arguments: object) -> str:
    ran = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.output


def logged(said: str) -> list[dict[str, Any]]:
    """Events without the time at which they were logged."""
    return [{k: v for k, v in json.loads(line).items() if k != "at"} for line in said.splitlines()]


@dataclass(frozen=True)
class Desk:
    """An operator with a key file of its own."""

    account: Ledger
    operator: consilium.Operator
    task: consilium.Task
    artifacts: Path
    url: str
    book: Path

    @property
    def place(self) -> list[object]:
        return ["--rpc", self.url, "--address-book", self.book]

    def propose(self, **more: Any) -> int:
        given: dict[str, Any] = {"aggregator": AGGREGATOR, "artifacts": [self.artifacts], "not_private": True} | more
        return self.operator.propose(self.task, **given).task


@pytest.fixture
def desk(local_chain: LocalChain, tmp_path: Path) -> Desk:
    account, book = local_chain.funded(), tmp_path / "book.json"
    local_chain.deployment.write(book)
    write_keystore(tmp_path / "key.json", account.connection.signer, "secret", LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", "secret\n")
    (tmp_path / "artifacts").mkdir()
    url = local_chain.node.url
    operator = consilium.Operator(url, book, keystore=tmp_path / "key.json", password_file=tmp_path / "password")
    return Desk(account, operator, consilium.Task.parse(TASK), tmp_path / "artifacts", url, book)


# --- an operator -----------------------------------------------------------------------------------------------------


def test_a_task_that_python_proposes_is_the_one_that_commands_show(desk: Desk) -> None:
    plans: list[Any] = []
    number = desk.propose(on_plan=plans.append)
    (plan,) = plans
    assert (plan.account, plan.tokens, plan.pool) == (desk.account.address, TOKENS, 1_000 * TOKEN)
    assert desk.operator.address == desk.account.address
    assert desk.account.token.balance(desk.account.address) == TOKENS - 1_000 * TOKEN
    digest = desk.account.tasks.params(number).spec_hash
    assert digest.hex() == desk.task.digest
    assert ArtifactStore(desk.artifacts).get_file(digest) == desk.task.raw
    funded = desk.operator.fund(number, 5)
    assert (funded.pool, funded.amount) == (1_000 * TOKEN, 5 * TOKEN)

    found = consilium.status(number, rpc=desk.url, address_book=desk.book)
    assert (found.phase, found.pool, found.hospitals, found.finished) == ("JOINING", 1_005 * TOKEN, 0, ())
    (shown,) = logged(say("operator", "watch", number, "--once", *desk.place))
    wanted = asdict(found) | {"pool": str(found.pool), "pool_left": str(found.pool_left), "task_number": number}
    del wanted["finished"]
    # The chain's clock goes on between the two.
    assert shown.pop("seconds_left") <= wanted.pop("seconds_left")
    assert shown == {"event": "status", **wanted}

    stopped = desk.operator.stop(number)
    assert stopped.last is None
    assert desk.account.token.balance(desk.account.address) == TOKENS
    events = list(consilium.watch(number, rpc=desk.url, address_book=desk.book))
    names = [event.name for event in events]
    assert (names[0], "task-funded" in names, names[-1]) == ("task-proposed", True, "task-ended")
    as_logged = [{"event": one.name, "block": one.block, "block_time": one.time, **one.values} for one in events]
    assert logged(say("operator", "watch", number, *desk.place)) == as_logged


def test_questions_are_callables_and_without_them_nothing_is_asked(desk: Desk) -> None:
    asked: list[Any] = []

    def no(plan: Any) -> bool:
        asked.append(plan)
        return False

    with raises_fault(OperatorError, "ProposalNotConfirmed"):
        desk.propose(confirm=no)
    assert asked[0].still_open == ()
    number = desk.propose(confirm=lambda plan: True)
    with raises_fault(OperatorError, "AlreadyProposed") as caught:
        desk.propose()
    assert caught.value.values == {"tasks": str(number), "last": number}
    with raises_fault(OperatorError, "AlreadyProposed"):
        desk.propose(confirm=no)
    assert asked[-1].still_open == (number,)
    assert desk.propose(again=True) == number + 1 == desk.account.tasks.count()
    for call in (desk.operator.stop, lambda task, confirm: desk.operator.fund(task, 1, confirm=confirm)):
        with raises_fault(OperatorError, "ProposalNotConfirmed"):
            call(number, confirm=no)
    assert (asked[-2].last, asked[-1].amount) == (None, TOKEN)
    assert consilium.status(number, rpc=desk.url, address_book=desk.book).phase == "JOINING"
    assert desk.operator.refund() == 0


def test_costs_with_a_chain_have_prices(desk: Desk) -> None:
    without, found = desk.task.estimate(), desk.task.estimate(desk.url, desk.book)
    assert (without.chain, without.longest) == (None, None)
    assert found.chain is not None
    assert found.chain.wei(found.operator.total) > 0
    assert found.operator == without.operator


def test_a_chain_of_ones_own_has_an_operator_without_a_key_file(tmp_path: Path) -> None:
    with consilium.LocalChain(address_book=tmp_path / "new" / "book.json") as chain:
        account = consilium.new_key(tmp_path / "key.json", tmp_path / "password")
        held = chain.fund(account, 2, 1)
        assert (held.tokens, held.wei) == (2 * TOKEN, 10**18)
        operator = consilium.Operator(chain.url, chain.address_book)
        task = consilium.Task.parse(TASK)
        given: Any = {"aggregator": account, "artifacts": [tmp_path / "artifacts"], "not_private": True}
        assert operator.propose(task, **given).task == 1
        poor = consilium.Operator(
            chain.url, chain.address_book, keystore=tmp_path / "key.json", password_file=tmp_path / "password"
        )
        with pytest.raises(consilium.Fault) as caught:
            poor.propose(task, **given)
        assert caught.value.name == "Unfunded"
        assert (caught.value.values["account"], caught.value.values["missing"]) == (account, "998.00 tokens")
        copied = consilium.fetch_artifacts(
            1, tmp_path / "copy", sources=[tmp_path / "artifacts"], rpc=chain.url, address_book=chain.address_book
        )
        assert (copied.sound, copied.wanted, copied.faults) == (1, 1, ())
        (file,) = (tmp_path / "copy").iterdir()
        file.write_bytes(b"other")
        (fault,) = consilium.check_artifacts(tmp_path / "copy").faults
        assert (fault.name, file.name in str(fault)) == ("ArtifactCorrupt", True)
    with pytest.raises(consilium.Fault) as caught:
        consilium.status(1, rpc=chain.url, address_book=chain.address_book)
    assert caught.value.name == "ChainUnreachable"


def test_errors_are_faults_with_name_and_values(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        consilium.watch(10**6, rpc=desk.url, address_book=desk.book)  # before the first event is asked for
    with pytest.raises(DeploymentInvalid) as invalid:
        consilium.Operator(desk.url, tmp_path / "none.json")
    with pytest.raises(KeystoreError) as half:
        consilium.Operator(desk.url, desk.book, keystore=tmp_path / "key.json")
    with pytest.raises(ConfigInvalid) as place:
        desk.propose(artifacts=["ftp://a.example"])
    with raises_fault(NotPossible, "AddressMistyped"):
        desk.propose(aggregator="0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
    with raises_fault(OperatorError, "PrivacyMissing") as private:
        desk.propose(not_private=False)
    with pytest.raises(consilium.Fault) as unreachable:
        consilium.verify(1, rpc=NOBODY, address_book=desk.book, artifacts=[desk.artifacts])
    for caught, name in (
        (refused, "TaskUnknown"), (invalid, "DeploymentInvalid"), (half, "KeystoreError"), (place, "ConfigInvalid"),
        (private, "PrivacyMissing"), (unreachable, "ChainUnreachable"),
    ):  # fmt: skip
        assert isinstance(caught.value, consilium.Fault)
        assert caught.value.name == name
    assert "9" in unreachable.value.values["url"]


# --- a model ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    random, path = np.random.default_rng(1), tmp_path / "rows.csv"
    lines = ["patient,age,sex,sick,site"]
    for at in range(60):
        age = "" if at == 5 else f"{random.uniform(0, 120):.1f}"
        cells = (f"p{at}", age, at % 3, random.integers(0, 3), "Bern" if at % 4 else "Basel")
        lines.append(",".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_predictions_are_the_rows_of_the_commands_file(tmp_path: Path, rows: Path) -> None:
    folder = written(tmp_path, TABLE)
    model, output = consilium.Model.read(folder), tmp_path / "out.csv"
    assert (model.name, model.sha256) == (read_model(folder).index.name, read_model(folder).index.sha256)
    found = model.predict(rows, id_column="patient")
    say("predict", folder, "--input", rows, "--output", output, "--id-column", "patient")
    pd.testing.assert_frame_equal(found, pd.read_csv(output), check_exact=True, check_dtype=False)
    model.predict(rows, id_column="patient", output=tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == output.read_bytes()
    with raises_fault(OperatorError, "OutputTaken") as caught:
        model.predict(rows, output=output)
    assert caught.value.values == {"path": output}


def test_an_evaluation_is_the_commands_result(tmp_path: Path, rows: Path) -> None:
    folder = written(tmp_path, TABLE)
    output = tmp_path / "result.json"
    found = consilium.Model.read(folder).evaluate(rows, site_column="site", seed=3)
    say("operator", "evaluate", folder, "--data", rows, "--site-column", "site", "--seed", 3, "--output", output)
    result = json.loads(output.read_text())
    assert result == json.loads(found.report.model_dump_json())
    assert found.written == ()
    for name, group in (("all", result["all_rows"]), ("Basel", result["sites"][0]), ("Bern", result["sites"][1])):
        for metric, measure in group["measures"].items():
            assert found.metrics.loc[(name, metric)].tolist() == [measure[one] for one in ("value", "low", "high")]
    assert found.calibration.groupby("class")["rows"].sum().to_dict() == dict.fromkeys(("no", "maybe", "yes"), 60)
    with pytest.raises(ValueError, match=r"result\.json"):
        consilium.Model.read(folder).evaluate(rows, output=tmp_path / "result.png")


# --- files -----------------------------------------------------------------------------------------------------------


def test_the_reference_of_task_files_is_the_commands_one() -> None:
    found = consilium.task_reference()
    assert found.markdown == say("task", "reference", "--markdown")
    keys = found.keys.set_index(["section", "key"])
    assert keys.loc[("money", "pool"), "meaning"] in found.markdown
    for text in found.examples.values():
        assert consilium.Task.parse(text).raw == text.encode()


def test_without_the_licence_nothing_is_downloaded(tmp_path: Path) -> None:
    terms: list[str] = []

    def no(licence: str) -> bool:
        terms.append(licence)
        return False

    with pytest.raises(consilium.Fault) as caught:
        consilium.fetch_data("heart", tmp_path / "heart", accept=no)
    assert (caught.value.name, "licence: CC BY" in terms[0]) == ("LicenceNotAccepted", True)
    assert not (tmp_path / "heart").exists()


def test_import_loads_nothing_heavy() -> None:
    script = (
        "import sys, consilium\n"
        "heavy = {'torch', 'web3', 'flwr', 'numpy', 'pandas', 'pydantic', 'eth_utils', 'rich'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
