"""`consilium voter` as its user types it: a home, a stake, tasks, and what is refused on the way."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from command_line import done, refused
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.keystore import LIGHT_SCRYPT_N, voter_key, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_client.errors import REFUSED, DataError
from consilium_client.home import VoterHome
from consilium_client.membership import Membership
from consilium_client.voter.node import VoterNode
from consilium_core.live import sentence
from consilium_core.logs import log_to
from consilium_core.private_files import write_private_file
from consilium_zk.tickets import public_key
from eth_utils.crypto import keccak
from raised_faults import raises_fault
from voter_driver import ROWS, TASK, FiledTask

Consilium = Callable[..., tuple[int, str]]


@dataclass
class World:
    """An account that has money and no home yet, and a folder with a table and a store."""

    chain: LocalChain
    folder: Path
    voter: Ledger
    consilium: Consilium

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def say(self, command: str, *arguments: str) -> tuple[int, str]:
        return self.consilium("voter", command, *arguments, "--home", str(self.home))

    def init(self, *more: str, operator: str = "any") -> tuple[int, str]:
        return self.say(
            "init", "--chain-url", self.chain.node.url, "--address-book", str(self.folder / "book.json"),
            "--artifacts", str(self.folder / "artifacts"), "--data", str(self.folder / "held-out.csv"),
            "--keystore", str(self.folder / "key.json"), "--password-file", str(self.folder / "password"),
            "--operator", operator, *more,
        )  # fmt: skip

    def judge(self, task: FiledTask, round_: int) -> None:
        """The round up to its settlement, judged by a node of this home."""
        home = VoterHome.open(self.home)
        node = VoterNode(home.node_settings(task.task, self.voter.folder_name(task.task)), self.voter)
        node.join()
        task.to_drawing().draw()
        for _ in range(2):
            node.poll()
        task.operator.phases.settle(task.task, round_)


@pytest.fixture
def world(consilium: Consilium, local_chain: LocalChain, tmp_path: Path) -> World:
    local_chain.deployment.write(tmp_path / "book.json")
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "held-out.csv").write_text(ROWS)
    voter = local_chain.funded()
    write_private_file(tmp_path / "password", "secret\n")
    write_keystore(tmp_path / "key.json", voter.connection.signer, "secret", LIGHT_SCRYPT_N)
    return World(local_chain, tmp_path, voter, consilium)


def test_from_nothing_to_a_rounds_reward(world: World) -> None:
    task = FiledTask(world.chain, world.folder)
    done(world.init(), world.voter.address, "encrypted", "ok chain", "warning money", "Next: consilium voter register")
    done(world.say("tasks"), "who will fall ill", "no: 0.00 tokens of stake are free")
    refused(world.say("run"), "is not a voter yet", "consilium voter register")
    refused(world.say("register"), "--stake", "no terminal to ask on", code=2)
    refused(world.say("register", "--stake", "1000"), "stake 1,000.00 tokens", "answer y, or pass --yes")
    assert not world.voter.staking.is_registered(world.voter.address, Role.VOTER)
    done(
        world.say("register", "--stake", "1000", "--commission", "2.5", "--yes"),
        "commission of 2.5 %", "register the key", "1,000.00 tokens are staked", "Next: consilium voter run",
    )  # fmt: skip
    key = public_key(voter_key(world.voter.connection.signer))
    assert world.voter.staking.voter_key_hash(world.voter.address) == keccak(key)
    done(world.say("register", "--stake", "1000"), "Nothing to do")
    done(world.say("tasks"), "joins it")
    done(world.say("status"), "ok money", "node does not run", "has not joined a task yet", "free 1,000.00")

    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    world.judge(task, 0)
    done(world.say("status"), "round 1, forming", "200.00", "statistics")
    done(world.say("tasks"), "judges it")
    world.judge(task, 1)
    done(world.say("status"), "ended", "paid")
    world.chain.pass_time(10_000)
    done(world.say("claim"), f"bonds of tasks {task.task} are free", "200.00 tokens of rewards are in 0x")
    done(world.say("claim"), "0.00 tokens of rewards are in 0x")
    assert world.voter.staking.stake_of(world.voter.address, Role.VOTER).free == 1_000 * TOKEN


def test_where_a_round_stands_is_told_by_seat_and_ballot(world: World) -> None:
    task = FiledTask(world.chain, world.folder)
    done(world.init())
    done(world.say("register", "--stake", "500", "--yes"))
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    home = VoterHome.open(world.home)
    node = VoterNode(home.node_settings(task.task, world.voter.folder_name(task.task)), world.voter)
    node.join()
    task.to_drawing().draw()
    done(world.say("status"), "scoring", "not yet known")
    node.poll()
    done(world.say("status"), "revealing", "committed, not revealed yet")
    (ballot,) = (world.home / "ballots").rglob("round-*.json")
    ballot.rename(ballot.with_suffix(".away"))
    done(world.say("status"), "committed, but the ballot is gone")
    ballot.with_suffix(".away").rename(ballot)
    node.poll()
    done(world.say("status"), "revealed")


def test_tasks_says_everything_that_keeps_the_node_out(world: World) -> None:
    FiledTask(world.chain, world.folder, TASK.replace("who will", "who of these will").replace('"age"', '"weight"'))
    done(world.init("--metric", "auc", "--max-bond", "100", "--model", "mlp", operator="0x" + "77" * 20))
    done(
        world.say("tasks"),
        "who of these will fall ill", "no: `operators` does not list its operator", "`models`", "above `max_bond` 100",
        "`metrics`", "missing: weight", "tokens of stake are free",
    )  # fmt: skip


def test_a_voter_stakes_nothing_on_data_that_are_probably_wrong(world: World) -> None:
    task = FiledTask(world.chain, world.folder)
    done(world.init())
    done(world.say("register", "--stake", "500", "--yes"))
    home = VoterHome.open(world.home)
    home.settings.data.write_text("age,sick\n" + "20,0\n90,1\n" * 10)
    done(world.say("tasks"), "age: the column gives (nearly) every label", 'leak = ["age"]')

    def node() -> VoterNode:
        settings = VoterHome.open(world.home).node_settings(task.task, world.voter.folder_name(task.task))
        return VoterNode(settings, world.voter)

    with raises_fault(DataError, "RemarksUnanswered"):
        node().join()
    assert node().membership.find() is None
    toml = world.home / "node.toml"
    plain = toml.read_text()
    toml.write_text(f"{plain}[data_accepted]\nleak = true\n")
    done(world.say("tasks"), "joins it")
    node().join()
    toml.write_text(plain)
    assert node().examples.rows == 20, "in the task it goes on"


def test_a_table_of_its_own_for_a_task_is_tried_first(world: World) -> None:
    task = FiledTask(world.chain, world.folder, TASK.replace('"age"', '"weight"'))
    done(world.init())
    done(world.say("register", "--stake", "500", "--yes"))
    refused(world.say("use-table", str(task.task), "--data", str(world.folder / "held-out.csv")), "missing: weight")
    done(world.say("use-table", str(task.task), "--data", str(world.folder / "weight.csv")), "8 rows")
    done(world.say("tasks"), "joins it")
    refused(world.say("use-table", "999999", "--data", str(world.folder / "weight.csv")), "TaskUnknown")


def test_what_is_missing_is_said_before_anything_is_sent(world: World) -> None:
    done(world.init())
    poor = world.chain.ledger(b"\x01" * 31 + b"\x02")
    (world.home / "key.json").unlink()
    write_keystore(world.home / "key.json", poor.connection.signer, "secret", LIGHT_SCRYPT_N)
    said = world.say("register", "--stake", "400", "--yes")
    refused(said, "nothing was sent", poor.address)
    lacking = re.search(r"lacks 400\.00 tokens and (0\.\d{6}) ether for gas", said[1])
    assert lacking is not None, said[1]
    assert float(lacking[1]) > 0  # by the chain's price of now
    refused(world.say("register", "--stake", "400", "--commission", "101"), "is not in the range", code=2)


def test_init_writes_nothing_that_does_not_hold(world: World) -> None:
    refused(world.say("init"), "address book .consilium/local.json does not exist")
    refused(world.init("--metric", "luck"), "the policy would be invalid", "metrics", code=REFUSED)
    refused(world.init("--data", "/nowhere/rows.csv"), "/nowhere/rows.csv does not exist", code=2)
    assert not (world.home / "node.toml").exists()
    done(world.init())
    refused(world.init(), "is already a home", "--home")


def test_stake_goes_home_and_arrives_once_it_is_unbonded(world: World) -> None:
    done(world.init())
    done(world.say("register", "--stake", "1000", "--yes"))
    had = world.voter.token.balance(world.voter.address)
    done(world.say("unstake"), "no stake is unbonding")
    refused(world.say("unstake", "300"), "nothing was done about this node's stake")
    done(world.say("unstake", "300", "--yes"), "300.00 tokens mature at 20")
    done(world.say("unstake", "5000", "--yes"), "300.00 tokens mature at", "700.00 tokens mature at")
    done(world.say("unstake", "1", "--yes"), "this node has no stake of its own")
    done(world.say("status"), "stake 0.00", "unbonding 1,000.00")
    assert world.voter.token.balance(world.voter.address) == had
    world.chain.pass_time(LOCAL_UNBONDING)
    done(world.say("unstake"), "1,000.00 tokens of stake are withdrawn")
    assert world.voter.token.balance(world.voter.address) == had + 1_000 * TOKEN
    done(world.say("unstake"), "no stake is unbonding")


def test_stake_goes_to_the_withdrawal_address_which_alone_changes_it(world: World) -> None:
    done(world.init())
    cold, other = world.chain.funded(), world.chain.funded(0).address
    write_keystore(world.folder / "cold.json", cold.connection.signer, "secret", LIGHT_SCRYPT_N)
    key = ("--keystore", str(world.folder / "cold.json"), "--password-file", str(world.folder / "password"), "--yes")

    def say(*arguments: str) -> tuple[int, str]:
        return world.say("withdrawal-address", *arguments)

    done(say(), "no withdrawal address is set")
    refused(say("0x12", "--yes"), "0x and 40 hexadecimal digits")
    refused(say(world.voter.address, "--yes"), "WithdrawalAddressInvalid")
    refused(say(cold.address), "answer y, or pass --yes")
    refused(say("--cancel"), "no change is announced", code=2)
    done(say(cold.address, "--yes"), f"paid to {cold.address}")  # before the first stake
    done(world.say("register", "--stake", "1000", "--yes"))
    refused(say(other, "--yes"), "OnlyWithdrawalAddress")
    refused(say(other, *key[:2], "--yes"), "--password-file")
    done(say(other, *key), f"paid to {cold.address}", "from 20", f"to {other}")
    done(world.say("status"), f"paid to {cold.address}", f"to {other}")
    done(say("--cancel", *key), f"paid to {cold.address}")
    assert cold.withdrawal.of(world.voter.address, Role.VOTER).next is None
    done(say(other, *key))

    had = cold.token.balance(cold.address)
    done(world.say("unstake", "300", "--yes"))
    world.chain.pass_time(LOCAL_UNBONDING - 60)
    done(world.say("unstake", "100", "--yes"))
    assert world.voter.withdrawal.payee(world.voter.address, Role.VOTER) == cold.address
    world.chain.pass_time(60)
    done(world.say("unstake"), "300.00 tokens of stake are withdrawn")
    assert (cold.token.balance(cold.address), cold.token.balance(other)) == (had, 300 * TOKEN)


def test_a_withdrawal_address_of_init_counts_from_the_first_stake_on(world: World) -> None:
    own, cold = world.voter.address, world.chain.funded()
    refused(world.init("--withdrawal-address", "0x12"), "0x and 40 hexadecimal digits", code=2)
    refused(world.init("--withdrawal-address", own), f"{own} is the node's own account")
    assert not world.home.exists()
    done(world.init("--withdrawal-address", cold.address.lower()), f"paid {cold.address}")
    done(world.say("withdrawal-address"), "no withdrawal address is set")
    done(world.say("register", "--stake", "1000", "--yes"))
    done(world.say("withdrawal-address"), f"paid to {cold.address}")
    assert cold.withdrawal.payee(own, Role.VOTER) == cold.address
    other = world.chain.funded(0).address
    cold.withdrawal.set(own, Role.VOTER, other)
    done(world.say("register", "--stake", "1200", "--yes"))  # a change is not undone
    assert cold.withdrawal.of(own, Role.VOTER).next == other


def test_a_node_logs_a_withdrawal_address_that_changes(world: World) -> None:
    done(world.init())
    done(world.say("register", "--stake", "500", "--yes"))
    task, account = FiledTask(world.chain, world.folder), world.voter.address
    state = world.voter.tasks.state(task.task)
    told: list[Mapping[str, Any]] = []

    def hear(event: str, fields: Mapping[str, Any]) -> None:
        if event == "withdrawal-address":
            told.append(fields)

    with log_to(hear):
        membership = Membership(world.voter, task.task, Role.VOTER)
        membership.log_payouts(state)  # none is set, and none announced
        cold, other = world.chain.funded(), world.chain.funded(0).address
        world.voter.withdrawal.set(account, Role.VOTER, cold.address)
        membership.log_payouts(state)
        assert told == []  # once a round
        membership.log_payouts(replace(state, round=1))
        cold.withdrawal.set(account, Role.VOTER, other)
        Membership(world.voter, task.task, Role.VOTER).log_payouts(state)  # of another process
    due = world.voter.withdrawal.of(account, Role.VOTER).next_at
    assert told == [
        {"current": cold.address, "next": None, "next_at": 0},
        {"current": cold.address, "next": other, "next_at": due},
    ]
    assert f"paid to {other} from 2" in sentence("withdrawal-address", told[1])


def test_pausing_lasts_until_it_is_taken_back(world: World) -> None:
    done(world.init())
    done(world.say("pause"), "not slashed")
    done(world.say("status"), "paused")
    done(world.say("resume"), "resumed")
    assert not VoterHome.open(world.home).paused


def test_commands_without_a_home_say_how_to_make_one(consilium: Consilium, tmp_path: Path) -> None:
    for command in ("register", "tasks", "status", "pause", "resume", "run", "claim"):
        refused(consilium("voter", command, "--home", str(tmp_path / "none")), "run `consilium voter init`", "--home")


HEAVY = ("torch", "numpy", "web3", "flwr", "pandas", "sklearn", "eth_account")


@pytest.mark.parametrize("words", [["voter", "--help"], ["voter", "init", "--help"], ["voter", "run", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    program = "import sys\nfrom consilium_cli.main import main\nsys.argv = ['consilium', *sys.argv[1:]]\n"
    program += f"try:\n    main()\nfinally:\n    print([n for n in {HEAVY} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True).stdout
    assert said.rstrip().endswith("[]")
