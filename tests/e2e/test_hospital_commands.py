"""`consilium hospital` as its user types it: a home, a look at tasks, a yes, and what is refused on the way."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chain_driver import LocalChain
from command_line import done, refused
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import LOCAL_UNBONDING
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.local_node import free_port
from consilium_chain.rpc.outgoing import Receipt
from consilium_chain.rpc.transactions import Transactions
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.errors import REFUSED
from consilium_client.home import HospitalHome
from consilium_client.hospital.transport_key import make_transport_key, transport_public_key
from consilium_core.private_files import write_private_file
from consilium_server.certificates import ensure_certificates
from eth_account.signers.local import LocalAccount
from file_server import FileServer
from task_files import DATA

TASK = f'name = "who will fall ill"\n{DATA}\n[model]\nname = "logistic"\n'
Consilium = Callable[..., tuple[int, str]]


@dataclass
class World:
    """An open task, and a hospital that has money and no home yet."""

    chain: LocalChain
    folder: Path
    task: int
    hospital: Ledger
    consilium: Consilium

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def say(self, command: str, *arguments: str) -> tuple[int, str]:
        return self.consilium("hospital", command, *arguments, "--home", str(self.home))

    def init(self, *more: str, operator: str | None = None, artifacts: Sequence[object] = ()) -> tuple[int, str]:
        places = [word for place in artifacts or [self.folder / "artifacts"] for word in ("--artifacts", str(place))]
        return self.say(
            "init", "--chain-url", self.chain.node.url, "--address-book", str(self.folder / "book.json"),
            *places, "--data", str(self.folder / "rows.csv"),
            "--keystore", str(self.folder / "key.json"), "--password-file", str(self.folder / "password"),
            "--operator", operator or self.chain.treasury.address, *more,
        )  # fmt: skip

    def join(self, *more: str) -> tuple[int, str]:
        ca = str(self.folder / "tls" / "ca.crt")
        return self.say("join", str(self.task), "--superlink", "127.0.0.1:9092", "--ca-certificate", ca, *more)

    def index(self) -> int | None:
        nodes = [one.node for one in self.chain.treasury.tasks.hospitals(self.task)]
        return nodes.index(self.hospital.address) if self.hospital.address in nodes else None


@pytest.fixture
def world(consilium: Consilium, local_chain: LocalChain, tmp_path: Path) -> World:
    spec = parse_task_spec(TASK.encode())
    store = ArtifactStore(tmp_path / "artifacts")
    (aggregator,) = local_chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    number = local_chain.treasury.operator.propose(task_params(spec, store.put_file(TASK.encode()), aggregator.address))
    local_chain.deployment.write(tmp_path / "book.json")
    hospital = local_chain.funded()
    account = hospital.connection.account
    assert isinstance(account, LocalAccount)
    write_private_file(tmp_path / "password", "secret\n")
    write_keystore(tmp_path / "key.json", account, "secret", LIGHT_SCRYPT_N)
    (tmp_path / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n50,1\n60,0\n" * 15)
    ensure_certificates(tmp_path / "tls")
    return World(local_chain, tmp_path, number, hospital, consilium)


def test_nothing_is_staked_on_data_that_are_probably_wrong(world: World) -> None:
    done(world.init())
    node, plain = world.home / "node.toml", (world.home / "node.toml").read_text()
    (world.folder / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n" * 30)
    for command in (("check-data", str(world.task)), ("join",)):
        said = world.join("--yes") if command == ("join",) else world.say(*command)
        refused(said, "age: the column gives (nearly) every label away", 'leak = ["age"]')
        assert "answer y" not in said[1]
    assert world.index() is None
    assert HospitalHome.open(world.home).approved_tasks() == []
    node.write_text(plain + '[data_accepted]\nleak = ["age"]\nduplicates = true\n')
    done(world.say("check-data", str(world.task)), "60 of 60: the column gives", "duplicates, which is no remark")
    done(
        world.join("--yes"), "Remarks about them", "60 of 60: the column gives", "the data, column age: leak, answered",
        "joined as hospital",
    )  # fmt: skip
    assert world.index() is not None


def test_from_nothing_to_a_task_and_out_of_it(world: World) -> None:
    done(world.init(), world.hospital.address, "encrypted", "ok chain", "ok money", "Next: consilium hospital tasks")
    done(world.say("tasks"), "who will fall ill", "joining", "allows it")
    done(
        world.say("show", str(world.task)),
        "logistic, 2 parameters", "age; label sick (no or yes)", "masked", "500 tokens", "policy allows it",
        "Of 60 rows like yours", "Without [privacy]",
    )  # fmt: skip
    refused(world.say("run", str(world.task)), f"consilium hospital join {world.task}", code=REFUSED)
    refused(world.join(), "answer y, or pass --yes")
    assert world.index() is None
    assert HospitalHome.open(world.home).approved_tasks() == []
    done(
        world.join("--yes"), "data fit: 60 rows", "Of 60 rows like yours", "joined as hospital",
        f"consilium hospital run {world.task}",
    )  # fmt: skip
    assert world.index() is not None
    done(world.say("status"), "joining", "does not run", "500.00", "free 0.00")
    done(world.say("pause"), "not slashed")
    done(world.say("status"), "paused")
    done(world.say("resume"), "resumed")
    refused(world.say("leave", str(world.task)), "answer y, or pass --yes")
    done(world.say("leave", str(world.task), "--yes"), "to take the bond back")
    refused(world.say("run", str(world.task)), "is not approved in this home", code=REFUSED)
    done(world.say("status"), "left", "500.00")


def test_show_counts_rows_that_are_trained_on_and_assumes_some_where_data_do_not_fit(world: World) -> None:
    done(world.init())
    (world.folder / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n50,1\n60,0\n" * 25)
    node = world.home / "node.toml"
    node.write_text(node.read_text() + "held_out = 0.2\n")
    done(world.say("show", str(world.task)), "Of 80 rows like yours")
    (world.folder / "rows.csv").write_text("years,sick\n50,0\n")
    done(world.say("show", str(world.task)), "do not fit the task", "Of 30 rows like yours")


def test_stake_goes_home_on_record(world: World) -> None:
    done(world.init())
    world.hospital.staking.stake(Role.HOSPITAL, 40 * TOKEN)
    done(world.say("unstake", "30", "--yes"), "30.00 tokens mature at 20")
    world.chain.pass_time(LOCAL_UNBONDING)
    done(world.say("unstake"), "30.00 tokens of stake are withdrawn")
    assert world.hospital.staking.stake_of(world.hospital.address, Role.HOSPITAL).active == 10 * TOKEN
    log = (world.home / "audit.jsonl").read_text().splitlines()
    sent = [entry["call"] for entry in map(json.loads, log) if entry["kind"] == "transaction"]
    assert sent == ["startUnbonding", "withdraw"]


@pytest.mark.deep
def test_a_node_key_is_changed_between_tasks(world: World) -> None:
    """A task knows the node by the key that was announced when it was joined, and by no other until it ends."""
    done(world.init())
    done(world.join("--yes"))
    key, treasury, first = world.home / "transport.key", world.chain.treasury, world.task
    announced = {first: transport_public_key(key)}
    world.hospital.staking.stake(Role.HOSPITAL, 500 * TOKEN)
    key.rename(key.with_name("transport.before"))
    make_transport_key(key)
    index = world.index()
    assert index is not None
    assert treasury.record.transport_keys(first)[index] == announced[first]

    raw = TASK.replace("who will fall ill", "who will fall ill again").encode()
    spec = parse_task_spec(raw)
    (aggregator,) = world.chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    digest = ArtifactStore(world.folder / "artifacts").put_file(raw)
    world.task = treasury.operator.propose(task_params(spec, digest, aggregator.address))
    done(world.join("--yes"), "joined as hospital")
    (second,) = treasury.record.transport_keys(world.task).values()
    assert second == transport_public_key(key) != announced[first]
    assert treasury.record.transport_keys(first)[index] == announced[first]
    _, said = world.consilium("doctor", "hospital", "--home", str(world.home), "--json")
    levels = {one["level"] for one in json.loads(said)["findings"] if one["check"] == "node-key"}
    assert levels == {"ok", "fault"}  # of the second task, and of the first, which is not over


def test_a_task_outside_the_policy_gets_no_yes(world: World) -> None:
    done(world.init(operator="0x" + "77" * 20))
    done(world.say("tasks"), "no: `operators` does not list its operator")
    done(world.say("show", str(world.task)), "policy does not allow it", "`operators`")
    refused(world.join("--yes"), "does not allow the task 'who will fall ill'", "change policy.toml", code=REFUSED)
    assert world.index() is None


def test_a_policy_changed_after_the_yes_counts(world: World) -> None:
    done(world.init())
    done(world.join("--yes"))
    policy = world.home / "policy.toml"
    policy.write_text(policy.read_text().replace('models = "any"', 'models = ["mlp"]'))
    refused(world.say("run"), "`models` does not list its model logistic", code=REFUSED)


def test_a_task_file_altered_after_the_yes_does_not_start(world: World) -> None:
    done(world.init())
    done(world.join("--yes"))
    (file,) = (world.folder / "artifacts").glob("file-*")
    file.write_text(TASK.replace("logistic", "mlp"))
    refused(world.say("run"), "does not have the hash in its name")
    file.write_text(TASK)
    approval = world.home / "tasks" / f"{world.task}.toml"
    approval.write_text(re.sub(r'spec_hash = ".{64}"', f'spec_hash = "{"0" * 64}"', approval.read_text()))
    refused(world.say("run"), "Nothing was started", "the chain names", code=REFUSED)


def test_a_yes_outlasts_a_second_one_that_fails_and_no_first_one_that_does(world: World) -> None:
    done(world.init())
    write_private_file(world.folder / "password", "wrong\n")
    refused(world.join("--yes"), "does not open with the password")
    assert HospitalHome.open(world.home).approved_tasks() == []
    write_private_file(world.folder / "password", "secret\n")
    done(world.join("--yes"))
    write_private_file(world.folder / "password", "wrong\n")
    refused(world.join("--yes"), "does not open with the password")
    assert HospitalHome.open(world.home).approved_tasks() == [world.task]


def test_a_join_that_is_cut_off_says_what_is_left_of_it_and_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first of its three transactions, which lets the staking contract take the bond."""
    done(world.init())
    sent, token = Transactions.send, world.hospital.contracts.token.contract.functions
    allowed = token.allowance(world.hospital.address, world.chain.deployment.staking)

    def cut_off(self: Transactions, function: Any) -> Receipt:
        if function.fn_name != "approve":
            raise KeyboardInterrupt
        return sent(self, function)

    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "send", cut_off)
        refused(
            world.join("--yes"),
            "interrupted",
            f"`consilium hospital leave {world.task}`",
            "unstake",
            "allowance",
            code=130,
        )
    assert world.index() is None
    assert allowed.call() == 500 * TOKEN
    assert HospitalHome.open(world.home).approved_tasks() == [world.task]
    done(world.join("--yes"), "joined as hospital")
    assert world.index() is not None
    assert allowed.call() == 0


def test_a_table_that_does_not_fit_gets_no_question(world: World) -> None:
    done(world.init())
    (world.folder / "rows.csv").write_text("age,sick,name\n50,0,Doe\n")
    result = world.join("--yes")
    refused(result, "unexpected: name")
    assert "Doe" not in result[1]
    assert (world.index(), HospitalHome.open(world.home).approved_tasks()) == (None, [])


def test_a_home_with_an_own_folder_and_mirrors(world: World) -> None:
    source, own = world.folder / "artifacts", world.folder / "own"
    gone = f"http://127.0.0.1:{free_port()}"
    with FileServer(source) as mirror:
        done(
            world.init(artifacts=[own, f"{gone}/hush", mirror.url]),
            f"ok artifacts {own} answers", f"warning artifacts {gone}/…: ", f"{mirror.url[:-10]}/… answers",
        )  # fmt: skip
        mirror.asked.clear()
        for _ in range(2):
            code, said = world.say("show", str(world.task))
            assert (code, "who will fall ill" in said, "hush" in said) == (0, True, False)
        (file,) = source.iterdir()
        assert mirror.asked == {file.name: 1}
        assert (world.home / "artifacts" / file.name).read_bytes() == file.read_bytes()
        assert list(own.iterdir()) == []  # its owner's


def test_init_asks_nobody_where_nobody_is_and_writes_nothing_then(world: World) -> None:
    refused(world.say("init"), "address book .consilium/local.json does not exist")
    book = ("--address-book", str(world.folder / "book.json"))
    refused(world.say("init", *book), "--artifacts", "no terminal to ask on", code=2)
    refused(world.init("--data", "/nowhere/rows.csv"), "/nowhere/rows.csv does not exist", code=2)
    refused(world.init(artifacts=["https://key:hush@mirror.example"]), "credentials", code=2)
    refused(world.init("--hours", "at night"), "19:00-07:00", code=REFUSED)
    refused(world.init("--sponsor-url", "http://sponsor.example"), "https://", code=2)
    for url in ("http://api.example", "https://api.example/v1"):
        refused(world.init("--report-to", url), "--report-to", "without a path", code=2)
    refused(world.init("--password-file", str(world.folder / "none")), "none does not exist")
    write_private_file(world.folder / "wrong", "wrong\n")
    refused(world.init("--password-file", str(world.folder / "wrong")), "does not open with the password")
    assert not (world.home / "node.toml").exists()
    done(world.init("--report-to", "https://api.example"))
    settings = tomllib.loads((world.home / "node.toml").read_text())
    assert (settings["report_to"], "share_evaluation" in settings) == ("https://api.example", False)
    assert 'share_evaluation = "never"' in (world.home / "policy.toml").read_text()
    refused(world.init(), "is already a home", "--home")


def test_a_new_key_is_made_where_none_is_named_and_kept_when_init_was_cut_off(world: World) -> None:
    def init(url: str) -> tuple[int, str]:
        return world.say(
            "init", "--chain-url", url, "--address-book", str(world.folder / "book.json"),
            "--artifacts", str(world.folder / "artifacts"), "--data", str(world.folder / "rows.csv"),
            "--password-file", str(world.folder / "password"), "--operator", "any",
        )  # fmt: skip

    done(init(world.chain.node.url), "warning money", "send 0x")
    key = (world.home / "key.json").read_bytes()
    assert b"secret" not in key
    (world.home / "node.toml").unlink()
    refused(init(f"http://127.0.0.1:{free_port()}"), "no chain", "no chain node answers")
    assert (world.home / "key.json").read_bytes() == key
    settings = tomllib.loads((world.home / "node.toml").read_text())
    assert "secret" not in json.dumps(settings)


def test_commands_without_a_home_say_how_to_make_one(consilium: Consilium, tmp_path: Path) -> None:
    for command in ("tasks", "status", "pause", "resume", "run"):
        refused(
            consilium("hospital", command, "--home", str(tmp_path / "none")), "run `consilium hospital init`", "--home"
        )


HEAVY = ("torch", "numpy", "web3", "flwr", "pandas", "sklearn", "eth_account")


@pytest.mark.parametrize("words", [["--help"], ["hospital", "--help"], ["hospital", "init", "--help"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    """Loading torch alone takes seconds."""
    program = "import sys\nfrom consilium_cli.main import main\nsys.argv = ['consilium', *sys.argv[1:]]\n"
    program += f"try:\n    main()\nfinally:\n    print([n for n in {HEAVY} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True).stdout
    assert said.rstrip().endswith("[]")
