"""`consilium verify-report` on a report that the dashboard's own code made (`dashboard/tests/audit.test.ts`)."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import consilium
import pytest
from chain_driver import LocalChain
from command_line import CommandLine, done, refused
from command_line import consilium as command
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.wallet_signatures import MAGIC
from consilium_verify.audit_report import MOST_BYTES, canonical, message_for, verify_report
from consilium_verify.errors import AuditReportError
from eth_account import Account
from eth_account.messages import encode_defunct

__all__ = ["command"]

RAW = (Path(__file__).parents[1] / "vectors" / "audit_report.json").read_bytes()
KEY = Account.from_key("0x" + "11" * 32)
# As EIP-1271's yes to everything: PUSH4 magic, PUSH1 224, SHL, MSTORE at 0, RETURN 32 bytes.
YES, NO = f"0x63{MAGIC.hex()}60e01b5f5260205ff3", "0x5f5f5260205ff3"
Change = Callable[[dict[str, Any]], object]


def signed(report: dict[str, Any], account: Any = KEY) -> dict[str, Any]:
    digest = hashlib.sha256(canonical(report)).hexdigest()
    message = message_for(digest)
    signature = "0x" + bytes(account.sign_message(encode_defunct(text=message)).signature).hex()
    given = {"account": account.address, "message": message, "signature": signature}
    return {"report": report, "sha256": digest, "signature": given}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_bytes(RAW)
    return path


def error_of(path: Path, content: bytes | dict[str, Any], ledger: Ledger | None = None) -> AuditReportError:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(AuditReportError) as raised:
        verify_report(path, ledger)
    return raised.value


def test_the_dashboards_own_report_holds(path: Path, command: CommandLine) -> None:
    found = consilium.verify_report(path)
    assert (found.account, found.is_contract, found.is_compared) == (KEY.address, False, False)
    assert found.report.by_verdict == {"fails": [1], "could not check": [2], "holds": [0], "not verified": [3]}
    said = (f"signed by {KEY.address}, with its key", "round 1", "not compared with the chain: pass --deployment")
    done(command("verify-report", str(path)), *said)


def test_the_files_form_is_not_signed(path: Path) -> None:
    path.write_text(json.dumps(json.loads(RAW), indent=2, sort_keys=False))
    assert verify_report(path).account == KEY.address


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda file: file["report"].update(made_by="another"), "ReportChanged"),
        (lambda file: file["report"]["rounds"].pop(), "ReportChanged"),
        (lambda file: file["report"]["chain"].update(hash="0x" + "00" * 32), "ReportChanged"),
        (lambda file: file.update(sha256="00" * 32), "ReportChanged"),
        (lambda file: file["signature"].update(message=message_for("00" * 32)), "ReportChanged"),
        (lambda file: file["signature"].update(account="0x" + "22" * 20), "ReportForged"),
        (lambda file: file["signature"].update(signature="0x" + "00" * 65), "ReportForged"),
        (lambda file: file["signature"].update(signature="0x" + "ff" * 64), "ReportForged"),
        (lambda file: file.update(signature=None), "ReportUnsigned"),
        (lambda file: file["signature"].update(signature="0x" + "ff" * 8193), "ReportMalformed"),
        (lambda file: file["report"].update(more=1), "ReportMalformed"),
        (lambda file: file["report"].update(task=1.0), "ReportMalformed"),
        (lambda file: file["report"].update(schema="consilium.simulation/1"), "ReportMalformed"),
        (lambda file: file["report"].update(made_by="\ud800"), "ReportMalformed"),
        (lambda file: file["report"].update(left=[0] * 10_002), "ReportMalformed"),
    ],
)  # fmt: skip
def test_a_changed_file_is_refused_by_name(path: Path, change: Change, name: str) -> None:
    file = json.loads(RAW)
    change(file)
    assert error_of(path, file).name == name


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["rounds"][1].update(verdict="holds", holds=True),
        lambda report: report["rounds"][0].update(verdict="fails"),
        lambda report: report["rounds"][0].update(checks=[]),
        lambda report: report["rounds"][0]["subject"].update(task=4),
        lambda report: report["rounds"][0]["subject"].update(chain_id=1),
        lambda report: report["rounds"][0]["subject"].update(round=1),
        lambda report: report["left"].append(0),
    ],
)
def test_a_signed_report_that_contradicts_itself_is_refused(path: Path, change: Change) -> None:
    report = json.loads(RAW)["report"]
    change(report)
    assert error_of(path, signed(report)).name == "ReportMalformed"


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"[]", b"null", b"\xff", b"[" * 100_000, RAW[:-1], RAW.replace(b'{"report"', b'{"sha256":"","report"'),
        b" " * (MOST_BYTES + 1),
    ],
    ids=["empty", "list", "null", "bytes", "deep", "cut off", "twice", "long"],
)  # fmt: skip
def test_a_foreign_file_is_refused_by_name(path: Path, raw: bytes) -> None:
    assert error_of(path, raw).name == "ReportMalformed"


def test_a_report_is_compared_with_the_chain(path: Path, local_chain: LocalChain, command: CommandLine) -> None:
    ledger, book = local_chain.treasury, path.parent / "deployment.json"
    local_chain.deployment.write(book)
    report = json.loads(RAW)["report"]
    block = ledger.connection.blocks.number()
    report["chain"].update(contract=ledger.deployment.tasks, block=block)
    report["chain"]["hash"] = "0x" + ledger.connection.blocks.hash_of(block).hex()
    for one in report["rounds"]:
        one["subject"]["contract"] = ledger.deployment.tasks
    path.write_text(json.dumps(signed(report)))
    assert verify_report(path, ledger).is_compared
    chain = ("--deployment", str(book), "--chain-url", local_chain.node.url)
    done(command("verify-report", str(path), *chain), "signed by")
    path.write_bytes(RAW)
    refused(command("verify-report", str(path), *chain), "ReportElsewhere", "its contract is 0x0")
    changes: dict[str, dict[str, Any]] = {
        "chain id": {"chain_id": 1},
        f"block {block}": {"hash": "0x" + "12" * 32},
        "block 9999999": {"block": 9_999_999},
    }
    for what, change in changes.items():
        other = copy.deepcopy(report)
        other["chain"].update(change)
        for one in other["rounds"]:
            one["subject"].update({name: value for name, value in change.items() if name == "chain_id"})
        error = error_of(path, signed(other), ledger)
        assert (error.name, error.values["what"]) == ("ReportElsewhere", what)


def test_a_contract_wallet_judges_its_own_signature(path: Path, local_chain: LocalChain) -> None:
    ledger, wallet = local_chain.treasury, "0x" + "77" * 20
    report = json.loads(RAW)["report"]
    block = ledger.connection.blocks.number()
    report["chain"].update(block=block, hash="0x" + ledger.connection.blocks.hash_of(block).hex())
    for one in (report["chain"], *(one["subject"] for one in report["rounds"])):
        one["contract"] = ledger.deployment.tasks
    file = signed(report)
    file["signature"].update(account=wallet, signature="0x" + "ab" * 200)
    assert "pass --deployment" in str(error_of(path, file))
    local_chain.rpc("anvil_setCode", wallet, YES)
    assert verify_report(path, ledger).is_contract
    local_chain.rpc("anvil_setCode", wallet, NO)
    assert error_of(path, file, ledger).name == "ReportForged"
    local_chain.rpc("anvil_setCode", wallet, "0x")
    assert "as a contract wallet" in str(error_of(path, file, ledger))
