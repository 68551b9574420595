"""New contracts are deployed while a task runs on the old ones: it ends and pays there, stakes come home, and whoever
goes on with the new ones takes account, policy and privacy ledger along, and nothing else.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chain_driver import TOKENS, LocalChain, OtherContracts, refused
from consilium_chain.deploying.address_book import LOCAL_UNBONDING, Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Outcome, Phase, Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_cli.main import app
from consilium_client.config import HospitalSettings
from consilium_client.errors import BudgetError, HomeError, OwnersRefusal, PrivacyError
from consilium_client.home import Approval, HospitalHome, OwnTable, VoterHome
from consilium_client.privacy.accountant import Charge, PrivacyAccountant
from consilium_client.privacy.dp_sgd import epsilon
from consilium_client.voter.registration import has_key
from consilium_server.database.engine import open_database
from consilium_server.errors import DatabaseUnfit
from consilium_server.index.indexer import Indexer
from hospital_driver import OPEN_POLICY
from raised_faults import raises_fault
from sqlalchemy import Engine
from test_hospital_private import PRIVACY, events, propose_private
from training_driver import ROWS, TrainingTask
from typer.testing import CliRunner
from voter_driver import voter_home

SHOWN: Mapping[str, str] = {"COLUMNS": "200"}


@pytest.fixture
def local_chain(local_chain: LocalChain) -> Iterator[LocalChain]:
    """Without what is left with the other contracts: other tests count the chain's tokens, and know one deployment."""
    with local_chain.undone():
        yield local_chain


def say(*arguments: str, code: int = 0) -> str:
    ran = CliRunner().invoke(app, list(arguments), env=SHOWN)
    assert ran.exit_code == code, ran.output
    return ran.output


def home_of(task: TrainingTask, index: int, *stores: Path) -> HospitalHome:
    """A hospital's folder, with the settings that `init` would have written."""
    settings = {"chain_url": task.chain.node.url, "artifacts": [str(one) for one in stores], "data": "rows.csv"}
    return HospitalHome.create(task.homes[index].home, settings, OPEN_POLICY)


def approved(home: HospitalHome, ledger: Ledger, task: int) -> HospitalSettings:
    """The settings of a node after `join`."""
    task_key = ledger.folder_name(task)
    spec_hash = ledger.tasks.params(task).spec_hash.hex()
    given: Any = {"place": task_key, "spec_hash": spec_hash, "superlink": "127.0.0.1:1"}
    home.approve(task, Approval(**given, approved_at=datetime(2026, 1, 1, tzinfo=UTC)), b"")
    return home.node_settings(task, task_key)


def spent(home: HospitalHome) -> list[Charge]:
    return PrivacyAccountant(home.settings.privacy_file).charges()


def test_a_hospital_ends_its_task_and_goes_on_with_other_contracts(
    local_chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = propose_private(local_chain, tmp_path / "old")
    home = home_of(old, 0, tmp_path / "old" / "artifacts", tmp_path / "new" / "artifacts")
    account = old.nodes[0]
    old.start(0), old.start(1)
    old.join(rows=ROWS).first_round().form().play_round()

    # Others are deployed, and there is a home for them that shares what has to be one.
    others = OtherContracts(local_chain)
    book = tmp_path / "book.json"
    others.deployment.write(book)
    said = say(
        "hospital", "init", "--home", str(tmp_path / "second"), "--like", str(home.folder), "--address-book", str(book)
    )
    assert "ok money" in " ".join(said.split())
    second = HospitalHome.open(tmp_path / "second")
    written = tomllib.loads((second.folder / "node.toml").read_text())
    assert written["keystore"] == str(home.folder / "key.json")
    assert (second.settings.policy, second.settings.data) == (home.settings.policy, home.settings.data)
    assert Deployment.read(second.settings.deployment) == others.deployment
    assert sorted(path.name for path in second.folder.iterdir()) == ["deployment.json", "node.toml"]
    assert say("hospital", "init", "--home", str(tmp_path / "third"), "--like", str(home.folder), code=2)

    # The same hospital in a task of theirs, while the old one goes on.
    same = others.ledger(account.connection.signer.key)
    others.accounts[same.address] = same
    new = propose_private(others, tmp_path / "new", known=[same])
    new.homes[0] = approved(second, same, new.task)
    with raises_fault(BudgetError, "BudgetExceeded") as over:  # what the old contracts' round has cost is counted
        new.start(0, max_epsilon=4.5).join()
    assert (
        0
        < over.value.values["spent"]
        == epsilon([one.mechanism for one in spent(home)], 1e-5)
        < 4.5
        < over.value.values["would_be"]
    )
    new.start(0, max_epsilon=8.0), new.start(1)
    new.join(rows=ROWS).first_round().form().play_round()
    old.start(0, max_epsilon=8.0)
    old.form().play_round()
    assert old.phase is Phase.ENDED
    assert [old.operator.tasks.round_state(old.task, one).outcome for one in range(3)] == [Outcome.SETTLED] * 3
    paid = [old.operator.tasks.explain(old.task, one, account.address).reward for one in (1, 2)]
    assert all(paid)
    places = [
        (old.operator.folder_name(old.task), 1),
        (same.folder_name(new.task), 1),
        (old.operator.folder_name(old.task), 2),
    ]
    assert [one.key for one in spent(home)] == places
    assert spent(second) == spent(home)
    cost = epsilon([one.mechanism for one in spent(home)], 1e-5)
    assert f"rows have cost epsilon {cost:.3g} of 8.0" in say("hospital", "status", "--home", str(second.folder))

    # What is staked with the old contracts comes home by the old home.
    stake = account.staking.stake_of(account.address, Role.HOSPITAL).active
    rewards = account.staking.claimable(account.address, account.address, Role.HOSPITAL)
    rewards += account.staking.unvested(account.address, Role.HOSPITAL)
    assert rewards + 2 >= sum(paid)
    balance = account.token.balance(account.address) + stake + rewards
    account.staking.release_bond(old.task, account.address)
    assert "tokens mature at" in say("hospital", "unstake", "1000000", "--yes", "--home", str(home.folder))
    local_chain.pass_time(LOCAL_UNBONDING)
    account.staking.claim(Role.HOSPITAL)
    assert "of stake are withdrawn" in say("hospital", "unstake", "--home", str(home.folder))
    assert account.staking.stake_of(account.address, Role.HOSPITAL).active == 0
    assert abs(balance - account.token.balance(account.address)) <= 2  # what vests is rounded down
    logged = [json.loads(line)["contract"] for line in (home.folder / "audit.jsonl").read_text().splitlines()]
    assert others.deployment.tasks not in logged

    # The ledger is lost, and all of it comes back, of both contracts.
    before = {one.key: one.mechanism for one in spent(home)}
    home.settings.privacy_file.unlink()
    capsys.readouterr()
    new.start(0, max_epsilon=8.0)
    assert {one.key: one.mechanism for one in spent(home)} == before
    told = {line["place"]: line["rounds"] for line in events(capsys, "charged-late")}
    assert told == {same.folder_name(new.task): [1], old.operator.folder_name(old.task): [1, 2]}


def test_a_home_for_the_same_contracts_is_refused(local_chain: LocalChain, tmp_path: Path) -> None:
    task = propose_private(local_chain, tmp_path)
    home = home_of(task, 0, tmp_path / "artifacts")
    others = OtherContracts(local_chain)
    others.deployment.write(tmp_path / "book.json")
    with raises_fault(HomeError, "SameContracts", match="other contracts"):
        HospitalHome.create_like(tmp_path / "second", home, home.settings.deployment)
    assert not (tmp_path / "second").exists()
    second = HospitalHome.create_like(tmp_path / "second", home, tmp_path / "book.json")
    for book in (home.settings.deployment, tmp_path / "book.json"):  # nor back again by way of the second
        with raises_fault(HomeError, "SameContracts"):
            HospitalHome.create_like(tmp_path / "third", second, book)
    with raises_fault(HomeError, "HomeTaken"):
        HospitalHome.create_like(second.folder, home, tmp_path / "book.json")

    # An address book that is changed under a home: what was approved is of the old contracts.
    approved(home, task.nodes[0], task.task)
    others.deployment.write(home.settings.deployment)
    with raises_fault(OwnersRefusal, "ApprovalStale", match=local_chain.deployment.tasks):
        home.node_settings(task.task, others.treasury.folder_name(task.task))


def test_rows_kept_from_training_are_the_same_under_other_contracts(local_chain: LocalChain, tmp_path: Path) -> None:
    task = propose_private(local_chain, tmp_path)
    home = home_of(task, 0, tmp_path / "artifacts")
    task.homes[0] = task.homes[0].model_copy(update={"held_out": 0.4})
    task.start(0)
    others = OtherContracts(local_chain)
    others.deployment.write(tmp_path / "book.json")
    second = HospitalHome.create_like(tmp_path / "second", home, tmp_path / "book.json")
    salts = [(one.folder / "split.salt").read_text() for one in (home, second)]
    assert salts[0] == salts[1]
    assert (second.folder / "split.salt").stat().st_mode & 0o777 == 0o600


def test_what_the_chain_knows_and_no_file_explains_is_not_passed_over(
    local_chain: LocalChain, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ledger that is an older copy, and a task whose file is gone: with a bound on all tasks no node starts."""
    first = propose_private(local_chain, tmp_path / "first")
    first.start(0), first.start(1)
    first.join(rows=ROWS).first_round().form().play_round()
    second = propose_private(local_chain, tmp_path / "second", PRIVACY.replace("4.0", "3.5"), known=first.nodes[:1])
    with raises_fault(PrivacyError, "ChargesUnknown", match=r"add a mirror") as caught:
        second.start(0, max_epsilon=8.0)
    assert (caught.value.values["task_key"], caught.value.values["rounds"]) == (
        first.nodes[0].folder_name(first.task),
        "0, 1",
    )
    capsys.readouterr()
    second.start(0)  # without such a bound it is told
    assert [line["rounds"] for line in events(capsys, "not-charged")] == [[0, 1]]
    second.store.put_file(first.store.get_file(first.params.spec_hash))
    second.start(0, max_epsilon=8.0)
    assert [one.key for one in second.spent(0).charges()] == [(first.nodes[0].folder_name(first.task), 1)]


def test_a_voter_judges_for_both_from_two_homes(local_chain: LocalChain, tmp_path: Path) -> None:
    home, account = voter_home(local_chain, tmp_path / "voter")
    home.use_table(account.folder_name(1), OwnTable(data=tmp_path / "other.csv"))
    others = OtherContracts(local_chain)
    others.deployment.write(tmp_path / "book.json")
    (tmp_path / "artifacts").mkdir(exist_ok=True)
    say(
        "voter", "init", "--home", str(tmp_path / "second"), "--like", str(home.folder),
        "--address-book", str(tmp_path / "book.json"), "--offline",
    )  # fmt: skip
    second = VoterHome.open(tmp_path / "second")
    same = second.settings.connect()
    assert (same.address, has_key(same)) == (account.address, False)
    say("voter", "register", "--stake", "1000", "--yes", "--home", str(second.folder))
    assert has_key(same)
    assert has_key(account)  # each contract has its own proof that it has the key
    assert second.node_settings(1, same.folder_name(1)).data == home.settings.data  # the old task 1's table is not its
    stake = account.staking.stake_of(account.address, Role.VOTER)
    assert (stake.active, same.staking.stake_of(same.address, Role.VOTER).active) == (10_000 * TOKEN, 1_000 * TOKEN)


def test_a_delegator_takes_its_stake_from_the_old_contracts_to_the_new(local_chain: LocalChain) -> None:
    node, delegator = local_chain.funded(), local_chain.funded()
    node.staking.stake(
        Role.HOSPITAL, TOKEN
    )  # and was never paid or slashed, so that a share is worth what was paid for it
    staking = delegator.contracts.staking.contract.functions
    delegator.connection.transactions.send(
        delegator.contracts.token.contract.functions.approve(delegator.deployment.staking, 5 * TOKEN)
    )
    delegator.connection.transactions.send(staking.delegate(node.address, Role.HOSPITAL, 5 * TOKEN))
    others = OtherContracts(local_chain)
    same = others.ledger(delegator.connection.signer.key)
    same.connection.transactions.send(
        same.contracts.token.contract.functions.approve(others.deployment.staking, 5 * TOKEN)
    )
    with refused("NodeUnknown"):  # nodes are to register there first
        same.connection.transactions.send(
            same.contracts.staking.contract.functions.delegate(node.address, Role.HOSPITAL, 5 * TOKEN)
        )
    shares, _, _ = delegator.connection.call(staking.positionOf(delegator.address, node.address, Role.HOSPITAL))
    delegator.connection.transactions.send(staking.startUnbonding(node.address, Role.HOSPITAL, shares))
    local_chain.pass_time(LOCAL_UNBONDING)
    delegator.staking.withdraw([one.request for one in delegator.staking.unbondings(delegator.address)])
    assert delegator.token.balance(delegator.address) == TOKENS
    again = others.ledger(node.connection.signer.key)
    again.staking.stake(Role.HOSPITAL, TOKEN)
    same.connection.transactions.send(
        same.contracts.staking.contract.functions.delegate(node.address, Role.HOSPITAL, 5 * TOKEN)
    )
    assert same.staking.stake_of(node.address, Role.HOSPITAL).active == 6 * TOKEN


def test_an_index_is_of_one_deployment(
    local_chain: LocalChain, database: Engine, database_url: str, tmp_path: Path
) -> None:
    """Neither indexer nor API takes up the new contracts' address book over the old ones' tables."""
    Indexer(Ledger(local_chain.treasury.connection, local_chain.deployment), database).catch_up()
    others = OtherContracts(local_chain)
    with raises_fault(DatabaseUnfit, "SourceMismatch", match=others.deployment.tasks):
        Indexer(Ledger(others.treasury.connection, others.deployment), database).catch_up()
    config = serving(tmp_path, database_url, others.deployment)
    ran = CliRunner().invoke(app, ["server", "api", "--config", str(config)])
    assert isinstance(ran.exception, DatabaseUnfit)
    assert ran.exception.name == "SourceMismatch"
    empty = open_database(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    Indexer(Ledger(others.treasury.connection, others.deployment), empty).catch_up()
    empty.dispose()


def serving(folder: Path, database_url: str, deployment: Deployment) -> Path:
    deployment.write(folder / "deployment.json")
    config = folder / "api.toml"
    config.write_text(
        f'home = "{folder}/home"\ndatabase_url = "{database_url}"\ndeployment = "{folder}/deployment.json"\n'
        f'artifacts = "{folder}/artifacts"\norigin = "http://127.0.0.1"\n'
    )
    return config
