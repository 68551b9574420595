"""The audit log's chain, its export, and what crashes, two writers and a full disk leave of it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from audit_lines import chained
from consilium_client.data.image.headers import IDENTIFYING
from consilium_client.errors import AuditError
from consilium_client.hospital import audit_log
from consilium_client.hospital.audit_log import AuditLog, export, parse_export, parse_log, read_log, require_extends
from consilium_verify.audit_log import messages_of
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from raised_faults import raises_fault

HOSPITAL, OTHER = Account.from_key(b"\x11" * 32), Account.from_key(b"\x12" * 32)
CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
TO = "https://rpc.example:8545"
COUNT = 5


def fill(log: AuditLog, count: int, salt: int = 0) -> None:
    for number in range(count):
        content = bytes([salt, number]) * (1 + number)
        log.leaving("trial", TO, content, call="commitUpdate", contract=CONTRACT)


def written(folder: Path, count: int = COUNT) -> bytes:
    path = folder / "log.jsonl"
    path.unlink(missing_ok=True)
    fill(AuditLog(path, lambda: 1_700_000_000.9), count)
    return path.read_bytes()


def signed(raw: bytes) -> bytes:
    return export(raw, HOSPITAL, 31_337, CONTRACT)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return written(tmp_path_factory.mktemp("log"))


def test_a_line_says_to_whom_how_much_and_its_digest(raw: bytes) -> None:
    lines = raw.splitlines(keepends=True)
    assert json.loads(lines[1]) == {
        "seq": 2, "at": 1_700_000_000, "previous": hashlib.sha256(lines[0]).hexdigest(), "kind": "trial", "to": TO,
        "bytes": 4, "sha256": hashlib.sha256(b"\x00\x01" * 2).hexdigest(), "call": "commitUpdate", "contract": CONTRACT,
    }  # fmt: skip
    assert [entry.seq for entry in parse_log(raw)] == list(range(1, COUNT + 1))
    assert chained(lines) == raw


def test_an_export_holds_what_the_log_held_and_who_signed(raw: bytes) -> None:
    found = parse_export(signed(raw))
    assert list(found.entries) == parse_log(raw)
    assert (found.seal.hospital, found.seal.chain_id, found.seal.contract) == (HOSPITAL.address, 31_337, CONTRACT)
    assert parse_export(signed(b"")).entries == []


def test_fields_that_identify_patients_are_named_and_are_no_message(tmp_path: Path) -> None:
    every = dict.fromkeys(IDENTIFYING, 3) | {"PatientName": 7}
    log = AuditLog(tmp_path / "log.jsonl")
    log.identifying(every)
    fill(log, 1)
    found = parse_export(signed((tmp_path / "log.jsonl").read_bytes()))
    entry = found.entries[0]
    assert isinstance(entry, audit_log.Identifying)
    assert (sorted(entry.fields.split(", ")), entry.files) == (sorted(IDENTIFYING), 7)
    assert [one.message for one in messages_of(found)] == ["trial commitUpdate"]
    with pytest.raises(ValidationError):  # a value has digits or other signs
        log.identifying({"Mustermann^Erika": 1})


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_bit_of_an_export_can_be_flipped(raw: bytes, place: int, bit: int) -> None:
    changed = bytearray(signed(raw))
    changed[place % len(changed)] ^= 1 << bit
    with pytest.raises(AuditError):
        parse_export(bytes(changed))


@given(st.data())
def test_no_line_of_a_log_can_be_changed_removed_put_in_or_moved(raw: bytes, data: st.DataObject) -> None:
    lines = raw.splitlines(keepends=True)
    place = data.draw(st.integers(0, COUNT - 2))
    match data.draw(st.sampled_from(["changed", "removed", "repeated", "moved", "foreign"])):
        case "changed":
            lines[place] = lines[place].replace(b'"bytes":', b'"bytes":1')
        case "removed":
            del lines[place]
        case "repeated":
            lines.insert(place, lines[place])
        case "moved":
            other = data.draw(st.integers(0, COUNT - 1).filter(lambda other: other != place))
            lines[place], lines[other] = lines[other], lines[place]
        case "foreign":
            lines.insert(place, chained(lines[1:2]))
    with raises_fault(AuditError, "AuditBroken") as caught:
        parse_log(b"".join(lines))
    assert 1 <= caught.value.values["line"] <= len(lines)


@given(kept=st.lists(st.integers(0, COUNT - 1), max_size=COUNT + 1).filter(lambda kept: kept != list(range(COUNT))))
def test_a_log_written_anew_is_not_what_was_signed(raw: bytes, kept: list[int]) -> None:
    lines, seal = raw.splitlines(keepends=True), signed(raw).splitlines(keepends=True)[-1]
    other = chained([lines[number] for number in kept])
    assert len(parse_log(other)) == len(kept)
    with raises_fault(AuditError, "AuditForged"):
        parse_export(other + seal)
    with raises_fault(AuditError, "AuditForged"):  # nor can another account's signature stand in for the hospital's
        parse_export(export(other, OTHER, 31_337, CONTRACT).replace(OTHER.address.encode(), HOSPITAL.address.encode()))


@given(cut=st.integers(0, 10_000))
def test_a_truncated_export_is_refused(raw: bytes, cut: int) -> None:
    whole = signed(raw)
    with raises_fault(AuditError, "AuditMalformed"):
        parse_export(whole[: cut % len(whole)])


@given(st.binary(max_size=200))
def test_bytes_of_a_stranger_are_refused_by_name(junk: bytes) -> None:
    with raises_fault(AuditError, "AuditMalformed"):
        parse_export(junk)


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"seq":1,', b'"seq":1, '),  # no other way of writing the same
        lambda line: line.replace(b'"seq":1,', b'"seq":1,"seq":1,'),
        lambda line: line.replace(b'"bytes":2', b'"bytes":2.0'),
        lambda line: line.replace(b'"bytes":2', b'"bytes":-2'),
        lambda line: line.replace(b'"kind":"trial"', b'"kind":"gift"'),
        lambda line: line.replace(b'"call":', b'"data":"x","call":'),
        lambda line: line.upper(),
    ],
)  # fmt: skip
def test_a_line_that_is_no_entry_is_named(raw: bytes, change: Callable[[bytes], bytes]) -> None:
    first, *rest = raw.splitlines(keepends=True)
    assert change(first) != first
    with raises_fault(AuditError, "AuditMalformed") as caught:
        parse_log(first + b"".join(rest[:1]) + change(first))
    assert caught.value.values["line"] == 3


def test_a_newer_export_goes_on_from_an_older_one(raw: bytes, tmp_path: Path) -> None:
    older, newer = parse_export(signed(raw)), parse_export(signed(written(tmp_path, COUNT + 2)))
    require_extends(newer, older)
    require_extends(newer, newer)
    with raises_fault(AuditError, "AuditRewritten", match="entry 6"):
        require_extends(older, newer)
    rewritten = parse_export(signed(chained(raw.splitlines(keepends=True)[1:])))
    with raises_fault(AuditError, "AuditRewritten", match="entry 1"):
        require_extends(rewritten, older)
    with raises_fault(AuditError, "AuditRewritten", match=OTHER.address):
        require_extends(parse_export(export(raw, OTHER, 31_337, CONTRACT)), older)


# On disk


def test_only_its_owner_reads_it_and_it_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    before = os.umask(0)
    try:
        fill(AuditLog(path), 2)
    finally:
        os.umask(before)
    path.chmod(0o644)
    fill(AuditLog(path), 1)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(parse_log(path.read_bytes())) == 3


@given(cut=st.integers(1, 400), whole=st.integers(0, 2))
def test_a_torn_line_is_cut_off_and_named(tmp_path_factory: pytest.TempPathFactory, cut: int, whole: int) -> None:
    folder = tmp_path_factory.mktemp("torn")
    lines = written(folder, whole + 1).splitlines(keepends=True)
    torn = lines[-1][:-1][:cut]
    path = folder / "log.jsonl"
    path.write_bytes(b"".join(lines[:-1]) + torn)
    assert read_log(path) == b"".join(lines[:-1])
    log = AuditLog(path)
    *before, last = parse_log(path.read_bytes())
    assert before == parse_log(b"".join(lines[:-1]))
    assert isinstance(last, audit_log.Recovered)
    assert (last.bytes, last.sha256) == (len(torn), hashlib.sha256(torn).hexdigest())
    fill(log, 1)
    assert len(parse_log(path.read_bytes())) == whole + 2


def test_what_another_process_tore_is_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = AuditLog(path)
    fill(log, 1)
    with path.open("ab") as other:
        other.write(b'{"seq":2,"at"')
    fill(log, 1)
    assert [entry.kind for entry in parse_log(path.read_bytes())] == ["trial", "recovered", "trial"]


def test_a_changed_log_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = AuditLog(path)
    fill(log, 3)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b'"bytes":4', b'"bytes":5'))
    with raises_fault(AuditError, "AuditBroken"):
        AuditLog(path)
    path.write_bytes(raw[:-3] + b"?}\n")
    with raises_fault(AuditError, "AuditMalformed") as caught:
        fill(log, 1)
    assert caught.value.values["line"] == 3
    path.write_bytes(raw + b"0" * audit_log.LONGEST_LINE)
    with raises_fault(AuditError, "AuditMalformed", match="line 4"):
        fill(log, 1)
    path.rename(tmp_path / "elsewhere")
    with raises_fault(AuditError, "AuditUnwritable"):
        fill(log, 1)
    with raises_fault(AuditError, "AuditUnreadable"):
        read_log(path)
    assert not path.exists()


# In processes of their own, for what ends a process or changes its limits

ASSISTANT = """
import os, resource, signal, sys
from pathlib import Path
from consilium_client.hospital.audit_log import AuditLog
from consilium_client.errors import AuditError

def fill(path, count, said=os.devnull):
    log = AuditLog(Path(path))
    with open(said, "a") as done:
        for number in range(count):
            content = f"{os.getpid()} {number}".encode()
            log.leaving("trial", "nobody", content, call="c", contract="0x")
            print(content.decode(), file=done, flush=True)

def in_child(work, *given):
    if (child := os.fork()) == 0:
        try:
            work(*given)
        finally:
            os._exit(0)
    return child
"""
KILLED = """
def killed_after(bytes_left, path):
    write = os.write
    def writing(file, content):
        nonlocal bytes_left
        if len(content) > bytes_left:
            write(file, content[:bytes_left])
            os.kill(os.getpid(), signal.SIGKILL)
        bytes_left -= len(content)
        return write(file, content)
    os.write = writing
    fill(path, 3, path + ".said")

for cut in range(0, 1000, 25):
    _, status = os.waitpid(in_child(killed_after, cut, sys.argv[1] + f"/{cut}"), 0)
    print(cut, os.WIFSIGNALED(status))
"""
TOGETHER = """
children = [in_child(fill, sys.argv[1] + "/log", 100) for _ in range(3)]
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""
FULL = """
log = AuditLog(Path(sys.argv[1] + "/log"))
sent = []
def send(number):
    log.leaving("trial", "nobody", bytes([number]), call="c", contract="0x")
    sent.append(number)
send(0)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(sys.argv[1] + "/log") + 50, resource.RLIM_INFINITY))
for number in (1, 2):
    try:
        send(number)
    except AuditError as error:
        print(error.values["why"])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
send(3)
print(sent)
"""


def assisted(work: str, folder: Path) -> list[str]:
    """The program's output, line by line."""
    done = subprocess.run([sys.executable, "-c", ASSISTANT + work, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def digests(raw: bytes) -> list[str]:
    return [entry.sha256 for entry in parse_log(raw) if isinstance(entry, audit_log.Trial)]


def test_a_kill_at_any_write_leaves_a_log_that_goes_on_and_holds_all_that_left(tmp_path: Path) -> None:
    ends = [line.split() for line in assisted(KILLED, tmp_path)]
    assert {killed for _, killed in ends} == {"True", "False"}
    recovered = 0
    for cut, killed in ends:
        path = tmp_path / cut
        log = AuditLog(path)
        said = (tmp_path / f"{cut}.said").read_text().splitlines() if (tmp_path / f"{cut}.said").exists() else []
        assert digests(path.read_bytes()) == [hashlib.sha256(one.encode()).hexdigest() for one in said]
        assert killed == "True" or len(said) == 3
        fill(log, 1)
        recovered += any(entry.kind == "recovered" for entry in parse_log(path.read_bytes()))
    assert recovered > len(ends) // 3


def test_processes_that_write_at_once_make_one_chain(tmp_path: Path) -> None:
    assisted(TOGETHER, tmp_path)
    assert len(set(digests((tmp_path / "log").read_bytes()))) == 300


def test_what_a_full_disk_cannot_record_is_not_sent(tmp_path: Path) -> None:
    assert assisted(FULL, tmp_path) == ["File too large", "File too large", "[0, 3]"]
    raw = (tmp_path / "log").read_bytes()
    assert digests(raw) == [hashlib.sha256(bytes([number])).hexdigest() for number in (0, 3)]
    assert [entry.kind for entry in parse_log(raw)] == ["trial", "trial"]
