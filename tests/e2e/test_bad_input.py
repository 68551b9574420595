"""What a user may get wrong on the command line: a message that names cause and way out, and no trace."""

from __future__ import annotations

import datetime
import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from chain_driver import LocalChain
from command_line import CommandLine
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import LIGHT_SCRYPT_N, address_of, write_keystore
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.voter.registration import register
from consilium_core.private_files import write_private_file
from eth_account import Account
from task_files import DATA

TASK = f"""
name = "a task"
{DATA}
[model]
name = "logistic"
""".encode()


USAGE = {
    "unknown data": (["--data", "mnist"], ["mnist", "wdbc", "heart"]),
    "unknown attack": (["--attack", "bribe"], ["bribe", "sign-flip", "silent"]),
    "attack count 0": (["--attack", "noise:0"], ["noise:0", "at least 1"]),
    "attack count negative": (["--attack", "noise:-1"], ["at least 1"]),
    "attack count no number": (["--attack", "noise:many"], ["KIND:COUNT"]),
    "attack without kind": (["--attack", ":2"], ["KIND:COUNT"]),
    "all hospitals attack": (["--attack", "noise:6"], ["one hospital", "lower the attack's COUNT"]),
    "all voters attack": (["--attack", "lazy:3", "--attack", "silent:2"], ["one voter", "lower the attack's COUNT"]),
    "strangers with a cheat": (["--attack", "stranger", "--cheat", "change-blob"], ["--attack stranger", "--cheat"]),
    "as many strangers as voters": (["--attack", "stranger:5"], ["5 strangers", "5 voters", "raise --voters"]),
    "strangers in small cohorts": (["--attack", "stranger", "--cohorts", "2"], ["7 hospitals", "raise --hospitals"]),
    "unknown cheat": (["--cheat", "steal"], ["steal", "change-blob"]),
    "heart without folder": (["--data", "heart"], ["--data-dir", "processed.*.data"]),
    "heart with five hospitals": (
        ["--data", "heart", "--data-dir", ".", "--hospitals", "5"],
        ["leave --hospitals at 4"],
    ),
    "cohorts above hospitals": (["--cohorts", "7", "--no-masks"], ["7 cohorts", "there are 6"]),
    "cohorts too small to mask": (["--cohorts", "3"], ["9 hospitals", "there are 6", "--no-masks"]),
    "seats above voters": (["--seats", "6"], ["6 seats", "5 voters", "lower --seats"]),
    "kill after the end": (["--kill-in-round", "3", "--rounds", "2"], ["after the last round, 2"]),
    "no rounds": (["--rounds", "0"], ["--rounds", "1<=x"]),
    "one hospital": (["--hospitals", "1"], ["--hospitals", "2<=x"]),
    "no voters": (["--voters", "0"], ["--voters"]),
    "port 0": (["--chain-port", "0"], ["--chain-port"]),
    "negative seed": (["--seed", "-1"], ["--seed"]),
    "unknown option": (["--poison"], ["--poison"]),
}


@pytest.mark.parametrize("case", sorted(USAGE))
def test_demo_refuses_bad_options(consilium: CommandLine, case: str, tmp_path: Path) -> None:
    arguments, words = USAGE[case]
    code, said = consilium("demo", "--output", str(tmp_path / "out"), *arguments)
    assert code == 2
    assert [word for word in words if word not in said] == []
    assert not (tmp_path / "out").exists()


def refused(result: tuple[int, str], words: Sequence[str]) -> None:
    code, said = result
    assert code == 1, said
    assert re.search(r"error \(\w+\): ", said)
    assert [word for word in words if word not in said] == []


HEART_FILES = [f"processed.{name}.data" for name in ("cleveland", "hungarian", "switzerland", "va")]
ROW = "63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,0.0,6.0,0\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["processed.cleveland.data", "consilium data fetch heart --to DIR"]),
        (b"", ["processed.cleveland.data", "holds no rows", "download the file again"]),
        (b"63.0,1.0\n", ["line 1", "2 columns instead of 14"]),
        (ROW.encode() + ROW.replace("145.0", "Doe Jane").encode(), ["line 2", "trestbps"]),
        (ROW.replace(",0\n", ",9\n").encode(), ["line 1", "num is outside 0 to 4"]),
        (b"\xff\xfe", ["not plain ASCII"]),
    ],
    ids=["missing", "empty", "short row", "no number", "label out of range", "binary"],
)
def test_demo_names_fault_of_heart_files(
    consilium: CommandLine, tmp_path: Path, text: bytes | None, words: list[str]
) -> None:
    folder = tmp_path / "heart"
    folder.mkdir()
    for name in HEART_FILES:
        if text is not None:
            (folder / name).write_bytes(text)
    result = consilium("demo", "--data", "heart", "--data-dir", str(folder), "--output", str(tmp_path / "out"))
    refused(result, words)
    assert "Doe" not in result[1]


def test_demo_names_missing_heart_folder(consilium: CommandLine, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    refused(
        consilium("demo", "--data", "heart", "--data-dir", missing), [missing, "this directory does not exist", "wdbc"]
    )


def test_demo_names_chain_port_in_use(consilium: CommandLine, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = consilium("demo", "--chain-port", port, "--output", str(tmp_path / "out"))
    refused(result, [f"port {port}", "in use", "choose another port"])


@pytest.fixture
def node_folder(tmp_path: Path, local_chain: LocalChain) -> Path:
    """A voter's and a hospital's home that hold, but for what a test breaks."""
    store = ArtifactStore(tmp_path / "artifacts")
    spec = parse_task_spec(TASK)
    operator = local_chain.treasury
    number = operator.operator.propose(task_params(spec, store.put_file(TASK), operator.address))
    local_chain.deployment.write(tmp_path / "book.json")
    voter = local_chain.funded()
    write_keystore(tmp_path / "key.json", voter.connection.signer, "right", LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", "right")
    (tmp_path / "data.csv").write_text("age,sick\n50,0\n60,1\n")
    config = {
        "home": str(tmp_path),
        "chain_url": local_chain.node.url,
        "deployment": str(tmp_path / "book.json"),
        "artifacts": str(tmp_path / "artifacts"),
        "keystore": str(tmp_path / "key.json"),
        "password_file": str(tmp_path / "password"),
        "task": number,
        "data": str(tmp_path / "data.csv"),
    }
    policy = {"operators": "any", "models": "any"}
    common = {key: value for key, value in config.items() if key not in ("home", "task")}
    VoterHome.create(tmp_path / "voter", common, policy | {"metrics": "any"})
    register(voter, spec.money.voter_bond * TOKEN, 0)
    hospital = HospitalHome.create(tmp_path / "hospital", common, policy | {"columns": "any"})
    approval = Approval(
        place=operator.folder_name(number),
        spec_hash=operator.tasks.params(number).spec_hash.hex(),
        approved_at=datetime.datetime.now(datetime.UTC),
        superlink="127.0.0.1:1",
    )
    hospital.approve(number, approval, b"")
    mine = {key: value for key, value in config.items() if key not in ("artifacts", "data")}
    (tmp_path / "sponsor.toml").write_text(tomli_w.dumps(mine | {"port": free_port()}))
    return tmp_path


def judge(folder: Path) -> tuple[str, ...]:
    """The command that judges the task."""
    task = tomllib.loads((folder / "sponsor.toml").read_text())["task"]
    return ("voter", "run", "--home", str(folder / "voter"), "--task", str(task))


def change(folder: Path, old: str, new: str, file: str) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))


def test_server_names_missing_and_malformed_config(consilium: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    refused(consilium("server", "run", "--config", str(path)), [str(path), "does not exist"])
    path.write_text("home = ")
    refused(consilium("server", "run", "--config", str(path)), [str(path), "is not TOML"])
    path.write_text("home = '/tmp'\ntask = 'one'\nextra = 1\n")
    refused(consilium("server", "run", "--config", str(path)), ["task: ", "extra: ", "chain_url: Field required"])
    code, said = consilium("server", "run")
    assert code == 2
    assert "--config" in said


def test_voter_names_missing_and_malformed_home(consilium: CommandLine, tmp_path: Path) -> None:
    run = ("voter", "run", "--home", str(tmp_path))
    refused(consilium(*run), [str(tmp_path), "is not a voter's home", "consilium voter init"])
    (tmp_path / "node.toml").write_text("home = ")
    refused(consilium(*run), ["node.toml", "is not TOML"])
    (tmp_path / "node.toml").write_text("task = 1\nextra = 1\n")
    refused(consilium(*run), ["task: ", "extra: ", "chain_url: Field required"])


def test_node_names_unreachable_chain(consilium: CommandLine, node_folder: Path, local_chain: LocalChain) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    for file, run in (
        ("voter/node.toml", judge(node_folder)),
        ("hospital/node.toml", ("hospital", "run", "--home", str(node_folder / "hospital"))),
    ):
        change(node_folder, local_chain.node.url, dead, file)
        refused(consilium(*run), [dead, "no chain node answers", "pass another URL"])


BAD_DATA: dict[str, tuple[str | None, list[str]]] = {
    "missing": (None, ["data.csv", "no such file", "pass the path"]),
    "column missing": ("age\n50\n", ["missing: sick", "rename these columns"]),
    "column too many": ("age,sick,name\n50,0,Doe\n", ["unexpected: name"]),
    "no header": ("50,0\n60,1\n", ["line 1", "none of the expected column names"]),
    "nan": ("age,sick\nnan,0\n60,1\n", ["line 2, column age", "not a finite number", "leave the cell empty"]),
    "infinite": ("age,sick\n50,0\ninf,1\n", ["line 3, column age", "not a finite number"]),
    "text": ("age,sick\nDoe,0\n60,1\n", ["line 2, column age", "not a number"]),
    "label": ("age,sick\n50,2\n", ["line 2", "not one of the task's classes"]),
    "one class": ("age,sick\n50,1\n60,1\n", ["every row has the same sick", "Add rows with other answers"]),
    "empty": ("age,sick\n", ["no rows"]),
}


@pytest.mark.parametrize("case", sorted(BAD_DATA))
def test_voter_names_fault_of_its_data(consilium: CommandLine, node_folder: Path, case: str) -> None:
    text, words = BAD_DATA[case]
    (node_folder / "data.csv").unlink()
    if text is not None:
        (node_folder / "data.csv").write_text(text)
    result = consilium(*judge(node_folder))
    refused(result, words)
    assert "Doe" not in result[1]


@pytest.mark.parametrize("node", ["hospital", "voter"])
def test_node_names_fault_of_its_mapping_and_reads_its_data_by_it(
    consilium: CommandLine, node_folder: Path, node: str
) -> None:
    config, mapping = node_folder / node / "node.toml", node_folder / "mapping.toml"
    config.write_text(f"mapping = '{mapping}'\n{config.read_text()}")
    run = judge(node_folder) if node == "voter" else (node, "run", "--home", str(config.parent))
    refused(consilium(*run), ["mapping.toml cannot be read", "No such file"])
    mapping.write_text("[columns]\nweight = 'kg'\n")
    refused(consilium(*run), ["mapping does not fit the task", "weight"])
    mapping.write_text("[file]\ndelimiter = ';'\n[columns]\nsick = { column = 'Krank', codes = { n = 0, j = 1 } }\n")
    (node_folder / "data.csv").write_text("Name;age;Krank\nDoe;50;n\nRoe;60;Doe\n")
    result = consilium(*run)
    refused(result, ["line 3, column sick (Krank in the file)", "add it to the column's codes"])
    assert "Doe" not in result[1]


def test_voter_names_fault_of_its_other_files(consilium: CommandLine, node_folder: Path) -> None:
    run = judge(node_folder)
    book = Deployment.read(node_folder / "book.json")
    (node_folder / "book.json").write_text(json.dumps(vars(book) | {"chain_id": 1}))
    refused(consilium(*run), ["address book is of chain 1", "pass the address book or the URL that matches"])
    (node_folder / "book.json").write_text("{")
    refused(consilium(*run), ["book.json is malformed"])
    (node_folder / "book.json").unlink()
    refused(consilium(*run), ["book.json does not exist", "deploy first"])
    book.write(node_folder / "book.json")
    (node_folder / "password").write_text("wrong")
    refused(consilium(*run), ["does not open with the password"])
    (node_folder / "password").chmod(0o644)
    refused(consilium(*run), ["can be read by others", "chmod 600"])
    (node_folder / "password").unlink()
    refused(consilium(*run), ["password does not exist"])


def test_voter_names_unknown_task_and_missing_task_file(consilium: CommandLine, node_folder: Path) -> None:
    run = judge(node_folder)
    for file in (node_folder / "artifacts").iterdir():
        file.unlink()
    refused(consilium(*run), ["artifact file-", "add another mirror"])
    refused(consilium(*run[:-1], "999999"), ["TaskUnknown", "999999"])


def test_voter_without_ether_is_told_so(consilium: CommandLine, node_folder: Path, local_chain: LocalChain) -> None:
    local_chain.rpc("anvil_setBalance", address_of(node_folder / "key.json"), "0x0")
    refused(consilium(*judge(node_folder)), ["rejected commitHeldOut", "EtherMissing", "send it"])


def test_an_account_that_is_no_voter_is_told_so(consilium: CommandLine, node_folder: Path) -> None:
    (node_folder / "key.json").unlink()
    write_keystore(node_folder / "key.json", Account.create(), "right", LIGHT_SCRYPT_N)
    refused(consilium(*judge(node_folder)), ["is not a voter yet", "consilium voter register"])


def test_voter_names_address_book_of_a_chain_started_anew(consilium: CommandLine, node_folder: Path) -> None:
    """A local chain has the same id every time, and nothing at yesterday's addresses."""
    book = Deployment.read(node_folder / "book.json")
    replace(book, tasks="0x" + "77" * 20).write(node_folder / "book.json")
    result = consilium(*judge(node_folder))
    refused(result, ["no contract at 0x7777", "started anew", "deploy again, or pass the right address book"])


def test_program_ends_with_a_message_and_without_a_trace(tmp_path: Path) -> None:
    """As a user starts it: in a process of its own."""
    command = [sys.executable, "-m", "consilium_cli.main", "server", "run", "--config", str(tmp_path / "none.toml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    said = f"the configuration {tmp_path / 'none.toml'} does not exist; pass the right path"
    assert done.stderr.strip() == f"error (ConfigInvalid): {said}"


def test_hospital_names_what_is_wrong_with_its_sponsor(consilium: CommandLine, node_folder: Path) -> None:
    run = ("hospital", "run", "--home", str(node_folder / "hospital"))
    file = node_folder / "hospital" / "node.toml"
    sponsor = {"url": f"https://127.0.0.1:{free_port()}", "ca_certificate": str(node_folder / "sponsor.crt")}
    file.write_text(file.read_text() + tomli_w.dumps({"sponsor": sponsor}))
    refused(consilium(*run), ["sponsor.crt", "No such file", "tls/ca.crt in its home"])
    (node_folder / "sponsor.crt").write_text("-----BEGIN")
    refused(consilium(*run), ["sponsor.crt", "it has no certificate"])
    change(node_folder, "https://127", "http://127", "hospital/node.toml")
    refused(consilium(*run), ["sponsor.url", "https://"])


def test_sponsor_names_what_it_cannot_start_with(consilium: CommandLine, node_folder: Path) -> None:
    path = node_folder / "sponsor.toml"
    run = ("server", "sponsor", "--config", str(path))
    refused(consilium("server", "sponsor", "--config", str(node_folder / "none.toml")), ["none.toml does not exist"])
    port = int(re.findall(r"port = (\d+)", path.read_text())[0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        refused(consilium(*run), [f"port {port} for the sponsor is in use"])
    path.write_text(re.sub(r"task = \d+", "task = 999999", path.read_text()))
    refused(consilium(*run), ["TaskUnknown", "999999"])
    path.write_text(re.sub(r"port = \d+", "port = 0\ngas_per_hospital = 1", path.read_text()))
    refused(consilium(*run), ["port: ", "gas_per_hospital: "])
