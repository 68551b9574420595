"""A task that an officer's key must approve: the shell's owner alone joins nothing, and a signature is of one hospital,
task file, chain and policy.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import consilium as api
import pytest
from chain_driver import LocalChain
from command_line import CommandLine, done, refused
from consilium.approvals import ApprovalRequest, request_approval, take_approval
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_chain.wallet_signatures import MOST_SIGNATURE
from consilium_client.errors import REFUSED, OwnersRefusal
from consilium_client.hospital.audit_log import parse_log
from consilium_client.second_signature import (
    MOST_BYTES,
    SignedApproval,
    Statement,
    parse_statement,
    read_approval,
    statement_bytes,
)
from consilium_core.private_files import write_private_file
from consilium_server.certificates import ensure_certificates
from eth_account import Account
from raised_faults import raises_fault
from task_files import DATA

TASK = f'name = "who will fall ill"\n{DATA}\n[model]\nname = "logistic"\n'
OFFICER = Account.from_key("0x" + "33" * 32)
STRANGER = Account.from_key("0x" + "44" * 32)
YES_CODE = "0x631626ba7e60e01b60005260206000f3"  # EIP-1271's yes to everything
HELD = Statement(
    chain_id=31_337, contract="0x" + "11" * 20, hospital="0x" + "22" * 20, task=3, spec="0x" + "ab" * 32,
    policy="0x" + "cd" * 32, date="2026-11-28",
)  # fmt: skip


@dataclass
class World:
    chain: LocalChain
    folder: Path
    tasks: list[int]
    client: api.Client
    consilium: CommandLine

    @property
    def task(self) -> int:
        return self.tasks[0]

    def set_rule(self, *by: str) -> None:
        path = self.client.settings.policy
        path.write_text(path.read_text().partition("\n[approval]")[0] + f"\n[approval]\nby = {json.dumps(by)}\n")

    def say(self, command: str, *arguments: str) -> tuple[int, str]:
        return self.consilium("hospital", command, *arguments, "--home", str(self.client.folder))

    def join(self) -> tuple[int, str]:
        ca = str(self.folder / "tls" / "ca.crt")
        link = ("--superlink", "127.0.0.1:9092", "--ca-certificate", ca)
        return self.say("join", str(self.task), *link, "--yes")

    def statement(self, task: int | None = None) -> Statement:
        """The statement that this hospital needs now."""
        out = self.folder / f"request-{len(list(self.folder.iterdir()))}"
        return request_approval(self.client, task or self.task, out)

    def signed(self, statement: Statement, account: Any = OFFICER) -> Path:
        signature = "0x" + bytes(account.sign_message(statement.message).signature).hex()
        return self.file(statement, account.address, signature)

    def file(self, statement: Statement, signer: str, signature: str) -> Path:
        path = self.folder / "signed.json"
        path.write_bytes(SignedApproval(statement=statement, signer=signer, signature=signature).written)
        return path

    def is_in(self) -> bool:
        return self.client.account in [one.node for one in self.chain.treasury.tasks.hospitals(self.task)]


@pytest.fixture
def world(consilium: CommandLine, local_chain: LocalChain, tmp_path: Path) -> World:
    store, tasks = ArtifactStore(tmp_path / "artifacts"), []
    for text in (TASK, TASK.replace("who", "and who")):
        spec = parse_task_spec(text.encode())
        (aggregator,) = local_chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
        params = task_params(spec, store.put_file(text.encode()), aggregator.address)
        tasks.append(local_chain.treasury.operator.propose(params))
    local_chain.deployment.write(tmp_path / "book.json")
    write_private_file(tmp_path / "password", "secret\n")
    write_keystore(tmp_path / "key.json", local_chain.funded().connection.signer, "secret", LIGHT_SCRYPT_N)
    write_keystore(tmp_path / "officer.json", OFFICER, "secret", LIGHT_SCRYPT_N)
    (tmp_path / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n50,1\n60,0\n" * 15)
    ensure_certificates(tmp_path / "tls")
    client = api.Client.create(
        tmp_path / "home", artifacts=tmp_path / "artifacts", data=tmp_path / "rows.csv", operators="any",
        chain_url=local_chain.node.url, address_book=tmp_path / "book.json", keystore=tmp_path / "key.json",
        password_file=tmp_path / "password",
    )  # fmt: skip
    made = World(local_chain, tmp_path, tasks, client, consilium)
    made.set_rule(OFFICER.address)
    return made


def test_an_officer_signs_elsewhere_and_the_node_joins(world: World) -> None:
    task, folder = str(world.task), world.folder / "request"
    refused(world.join(), "error (SecondSignatureMissing)", OFFICER.address.lower(), "hospital approve", code=REFUSED)
    done(world.say("approve", task, "--output", str(folder)), "sign-approval request --output signed.json")
    key = ("--keystore", str(world.folder / "officer.json"), "--password-file", str(world.folder / "password"))
    sign = ("hospital", "sign-approval", str(folder), "--output", str(world.folder / "signed.json"))
    refused(world.consilium(*sign, *key), "who will fall ill", "max_slash_percent = 20", world.client.account)
    refused(world.consilium(*sign), "--keystore and --password-file", code=2)
    assert not (world.folder / "signed.json").exists()
    done(world.consilium(*sign, *key, "--yes"), f"has the signature of {OFFICER.address}")
    refused(world.say("approve", task), code=2)
    done(world.say("approve", task, "--signed", str(world.folder / "signed.json")), "is approved by", "join")
    done(world.say("status"), world.client.policy().digest, f"second signature: {OFFICER.address.lower()}")
    assert not world.is_in()
    done(world.join(), "joined as hospital")
    entries = [one for one in parse_log((world.client.folder / "audit.jsonl").read_bytes()) if one.kind == "approved"]
    (entry,) = entries
    assert (entry.task, entry.signer, entry.policy) == (
        world.task,
        OFFICER.address,
        "0x" + world.client.policy().digest,
    )
    world.client.export_audit(world.folder / "audit")
    digest = world.client.policy().digest
    done(
        world.consilium("verify-audit", str(world.folder / "audit")), f"policy 0x{digest}: signed by {OFFICER.address}"
    )
    (consent,) = api.verify_audit(world.folder / "audit").consents
    assert (consent.task, consent.is_by_key) == (world.task, True)
    # The policy is widened after it.
    policy = world.client.settings.policy
    before = policy.read_text()
    policy.write_text(before.replace("min_rows = 50", "min_rows = 1"))
    refused(world.say("run", task), "error (SecondSignatureOfAnother)", "another `policy`", code=REFUSED)
    policy.write_text(before + "# a remark\n")
    refused(world.join(), "another `policy`", code=REFUSED)
    take_approval(world.client, world.task, world.signed(world.statement()))
    done(world.join(), "joined as hospital")


def test_a_signature_is_of_one_hospital_task_file_chain_and_policy(world: World) -> None:
    own, other = world.statement(), world.statement(world.tasks[1])
    changes: dict[str, Any] = {
        "chain_id": 1, "contract": world.chain.deployment.token, "hospital": STRANGER.address, "task": other.task,
        "spec": other.spec, "policy": "0x" + "00" * 32,
    }  # fmt: skip
    assert {*changes, "date"} == set(Statement.model_fields)
    for field, value in changes.items():
        elsewhere = Statement(**{**dict(own), field: value})
        with raises_fault(OwnersRefusal, "SecondSignatureOfAnother") as found:
            take_approval(world.client, world.task, world.signed(elsewhere))
        assert found.value.values["field"] == field
        signature = json.loads(world.signed(elsewhere).read_text())["signature"]
        with raises_fault(OwnersRefusal, "SecondSignatureForged"):  # of another statement, under the right one
            take_approval(world.client, world.task, world.file(own, OFFICER.address, signature))
    today = datetime.datetime.now(datetime.UTC).date()
    other_date = Statement(**{**dict(own), "date": str(today - datetime.timedelta(days=1))})
    signature = json.loads(world.signed(other_date).read_text())["signature"]
    with raises_fault(OwnersRefusal, "SecondSignatureForged"):
        take_approval(world.client, world.task, world.file(own, OFFICER.address, signature))
    ahead = [Statement(**{**dict(own), "date": str(today + datetime.timedelta(days=days))}) for days in (1, 2)]
    with raises_fault(OwnersRefusal, "SecondSignatureFromFuture"):
        take_approval(world.client, world.task, world.signed(ahead[1]))
    with raises_fault(OwnersRefusal, "SecondSignatureByStranger"):
        take_approval(world.client, world.task, world.signed(own, STRANGER))
    with raises_fault(OwnersRefusal, "SecondSignatureForged"):
        signature = "0x" + bytes(STRANGER.sign_message(own.message).signature).hex()
        take_approval(world.client, world.task, world.file(own, OFFICER.address, signature))
    kept = world.client.folder / "tasks" / f"{world.task}.signed.json"
    assert not kept.exists()
    take_approval(world.client, world.task, world.signed(ahead[0]))
    assert kept.stat().st_mode & 0o777 == 0o600
    # A file put there by hand is checked as well.
    kept.write_bytes(world.signed(own, STRANGER).read_bytes())
    refused(world.join(), "error (SecondSignatureByStranger)", code=REFUSED)
    kept.write_text("{}")
    refused(world.join(), "error (SecondSignatureMalformed)", code=REFUSED)
    assert not world.is_in()


def test_a_contract_signs_by_its_own_rule(world: World) -> None:
    safe = Account.from_key("0x" + "55" * 32).address
    world.set_rule(OFFICER.address, safe)
    own = world.statement()
    for length in (1, 65, MOST_SIGNATURE):
        path = world.file(own, safe, "0x" + "07" * length)
        with raises_fault(OwnersRefusal, "SecondSignatureForged"):
            take_approval(world.client, world.task, path)
    world.chain.rpc("anvil_setCode", safe, YES_CODE)
    take_approval(world.client, world.task, path)
    done(world.join(), "joined as hospital")
    world.chain.rpc("anvil_setCode", safe, "0x")  # the contract takes it back
    refused(world.say("run", str(world.task)), "error (SecondSignatureForged)", code=REFUSED)


def test_a_request_is_whole_or_is_not_signed(world: World) -> None:
    folder = world.folder / "request"
    statement = request_approval(world.client, world.task, folder)
    request = ApprovalRequest.read(folder)
    assert (request.statement, request.spec.name) == (statement, "who will fall ill")
    typed = json.loads((folder / "statement.json").read_text())  # as wallets take it
    signature = "0x" + bytes(OFFICER.sign_typed_data(full_message=typed).signature).hex()
    take_approval(world.client, world.task, world.file(statement, OFFICER.address, signature))
    for name in ("policy.toml", "task.toml", "statement.json"):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b"# ")
        with raises_fault(OwnersRefusal, "SecondSignatureMalformed"):
            ApprovalRequest.read(folder)
        (folder / name).unlink()
        with raises_fault(OwnersRefusal, "SecondSignatureMalformed", match="cannot be read"):
            ApprovalRequest.read(folder)
        (folder / name).write_bytes(before)
    for signer, text in ((OFFICER.address.lower(), signature), (OFFICER.address, "0x"), ("me", signature)):
        with raises_fault(OwnersRefusal, "SecondSignatureMalformed"):
            request.signed(signer, text)
    assert request.signed(OFFICER.address, signature.upper().replace("0X", "0x")).signature == signature
    world.set_rule("0x" + "66" * 20)
    with raises_fault(OwnersRefusal, "SecondSignatureOfAnother"):
        take_approval(world.client, world.task, world.signed(statement))
    path = world.client.settings.policy
    path.write_text(path.read_text().partition("\n[approval]")[0])
    with raises_fault(OwnersRefusal, "SecondSignatureNotNeeded"):
        request_approval(world.client, world.task, world.folder / "none")


@pytest.mark.parametrize("by", ["[]", '["me"]', '"any"', str(["0x" + "66" * 20] * 17).replace("'", '"')])
def test_a_rule_names_one_to_sixteen_accounts(world: World, by: str) -> None:
    path = world.client.settings.policy
    path.write_text(path.read_text().partition("\n[approval]")[0] + f"\n[approval]\nby = {by}\n")
    with raises_fault(OwnersRefusal, "PolicyInvalid", match="approval"):
        world.client.policy()


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["domain"].update(chainId=0), lambda tree: tree["domain"].update(chainId="31337"),
        lambda tree: tree["domain"].update(chainId=1 << 53), lambda tree: tree["domain"].update(name="ConsiliumInvite"),
        lambda tree: tree["domain"].update(version="2"), lambda tree: tree["domain"].pop("verifyingContract"),
        lambda tree: tree["message"].update(task=True), lambda tree: tree["message"].update(task=0),
        lambda tree: tree["message"].update(spec="0x"), lambda tree: tree["message"].update(policy="0x" + "AB" * 32),
        lambda tree: tree["message"].update(date="2026-02-30"), lambda tree: tree["message"].update(date="today\x07"),
        lambda tree: tree["message"].update(hospital="0x" + "ab" * 20), lambda tree: tree["message"].update(more=1),
        lambda tree: tree["types"]["Approval"].pop(), lambda tree: tree.update(primaryType="EIP712Domain"),
        lambda tree: tree.pop("message"), lambda tree: tree.update(message=[]), lambda tree: tree.update(more=1),
    ],
)  # fmt: skip
def test_only_an_approval_in_its_one_form_is_signed(change: Callable[[dict[str, Any]], object]) -> None:
    tree = json.loads(statement_bytes(HELD))
    assert parse_statement(json.dumps(tree).encode()) == HELD
    change(tree)
    with raises_fault(OwnersRefusal, "SecondSignatureMalformed"):
        parse_statement(json.dumps(tree).encode())


def test_files_of_strangers_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "signed.json"
    whole = SignedApproval(statement=HELD, signer=STRANGER.address, signature="0x" + "07" * MOST_SIGNATURE).written
    path.write_bytes(whole + b" " * (MOST_BYTES - len(whole)))
    assert read_approval(path).statement == HELD
    wrong = [
        path.read_bytes() + b" ", whole.replace(b'"0x07', b'"0x0707', 1), whole.replace(b"approval-1", b"approval-2"),
        whole.replace(b'"task": 3', b'"task": 3, "task": 3'), b"", b"[]", b"\xff", b"[" * 10_000, b"x" * 10_000_000,
        whole.replace(b'"0x0707', b'"0x0G07', 1),
    ]  # fmt: skip
    for raw in wrong:
        path.write_bytes(raw)
        with raises_fault(OwnersRefusal, "SecondSignatureMalformed") as refusal:
            read_approval(path)
        assert len(str(refusal.value)) < 3_000
    with raises_fault(OwnersRefusal, "SecondSignatureMalformed", match="cannot be read"):
        read_approval(tmp_path)
