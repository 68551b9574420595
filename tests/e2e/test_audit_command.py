"""`consilium verify-audit` as a data protection officer runs it: what it says, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from audit_lines import chained
from consilium_client.hospital.audit_log import AuditLog, export
from eth_account import Account

HOSPITAL = Account.from_key(b"\x21" * 32)
CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
NODE, LINK = "https://rpc.example:8545/…", "superlink.example:9092"
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def raw(tmp_path: Path) -> bytes:
    times = iter([1_700_000_000, 1_700_000_060, 1_700_003_600])
    log = AuditLog(tmp_path / "audit.jsonl", lambda: next(times))
    log.leaving("trial", NODE, bytes(100), call="resume", contract=CONTRACT)
    sent = {"calldata": "ab" * 32, "transaction": "0x" + "cd" * 32}
    log.leaving("transaction", NODE, bytes(1_100), call="resume", contract=CONTRACT, **sent)
    upload: dict[str, str | int] = {"task": 1, "round": 2, "blobs": 1, "upload": "ef" * 32}
    log.leaving("reply", LINK, bytes(131_200), code="OK", contract=CONTRACT, **upload)
    return (tmp_path / "audit.jsonl").read_bytes()


def write(path: Path, raw: bytes, change: Callable[[bytes], bytes] = lambda exported: exported) -> str:
    path.write_bytes(change(export(raw, HOSPITAL, 31_337, CONTRACT)))
    return str(path)


def test_it_says_who_signed_and_what_left_for_whom(consilium: Run, raw: bytes, tmp_path: Path) -> None:
    older = write(tmp_path / "older", b"".join(raw.splitlines(keepends=True)[:2]))
    code, said = consilium("verify-audit", write(tmp_path / "a", raw), "--extends", older)
    assert code == 0
    for part in (
        f"audit log of {HOSPITAL.address}, signed by its key",
        f"chain 31337, contract {CONTRACT}",
        "3 entries from 2023-11-14 22:13:20 UTC to 2023-11-14 23:13:20 UTC",
        "sent entries bytes reply OK 1 131,200 transaction resume 1 1,100 trial resume 1 100",
        f"recipient entries bytes {NODE} 2 1,200 {LINK} 1 131,200",
        "1 more entries",
        "not compared with the chain",
    ):
        assert part in said


def test_a_file_that_does_not_hold_ends_it_with_1_and_the_reason(consilium: Run, raw: bytes, tmp_path: Path) -> None:
    first, second, third = raw.splitlines(keepends=True)
    exported = export(raw, HOSPITAL, 31_337, CONTRACT)
    seal = exported.removeprefix(raw)
    for content, reason in (
        (raw, "line 3 of the audit log: the file does not end with the hospital's signature"),
        (b"", "does not end with the hospital's signature"),
        (exported.replace(b"1100", b"1101"), "line 3 of the audit log does not follow"),
        (first + third + seal, "line 2 of the audit log does not follow"),
        (first + second + seal, "the signature covers 3 entries"),
        (chained([first, third]) + seal, "the signature covers 3 entries"),
        (exported.replace(HOSPITAL.address.encode(), CONTRACT.encode()), f"the signature is not from {CONTRACT}"),
    ):
        (tmp_path / "changed").write_bytes(content)
        code, said = consilium("verify-audit", str(tmp_path / "changed"))
        assert (code, reason in said) == (1, True), said
    code, said = consilium("verify-audit", write(tmp_path / "g", first), "--extends", write(tmp_path / "h", raw))
    assert (code, "entry 2 of the older one is missing or different" in said) == (1, True)
    code, said = consilium("verify-audit", str(tmp_path / "nowhere"))
    assert (code, "cannot read" in said) == (1, True)


def test_what_moves_a_cursor_is_no_entry(consilium: Run, raw: bytes, tmp_path: Path) -> None:
    whole = write(tmp_path / "whole", raw, lambda e: e.replace(b"superlink", b"\\u001b[2Jlink"))
    code, said = consilium("verify-audit", whole)
    assert (code, "\x1b" in said, "not an entry of an audit log" in said) == (1, False, True)
