"""An update survives its process, signature and all; what is not whole is not an update."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_chain.rounds.signed_updates import sign_update
from consilium_client.errors import NodeError
from consilium_client.hospital.round_updates import PendingUpdate, PendingUpdates
from consilium_zk.blobs import Blob, from_scalars
from consilium_zk.constants import BLS_MODULUS
from consilium_zk.kzg import commit, point_hashes
from eth_account import Account
from raised_faults import raises_fault

ACCOUNT = Account.from_key(b"\x07" * 32)
BLOBS = [from_scalars([value] * 4096) for value in (0, 5, BLS_MODULUS - 1)]

SEED = bytes(range(32))


def update_of(blobs: list[Blob]) -> PendingUpdate:
    points = [commit(blob) for blob in blobs]
    contract = Account.from_key(b"\x01" * 32).address
    hashes = point_hashes(1, bytes(20), 7, 3, bytes(20), points)
    return PendingUpdate(sign_update(ACCOUNT, 1, contract, 7, 3, hashes), points, blobs, SEED)


UPDATE, OTHER = update_of(BLOBS), update_of(BLOBS[:1])


def pending(folder: Path) -> PendingUpdates:
    return PendingUpdates(folder, ACCOUNT.address)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pending(tmp_path / "pending").write(3, UPDATE)
    return tmp_path / "pending"


def test_pending_updates_survive_a_restart(folder: Path) -> None:
    assert pending(folder).read(3) == UPDATE


def test_pending_updates_are_for_their_owner_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_pending_updates_keep_the_latest_round_only(folder: Path) -> None:
    again = pending(folder)
    again.write(4, OTHER)
    assert (again.read(4), again.read(3)) == (OTHER, None)
    assert [path.name for path in folder.iterdir()] == ["round-4"]


@pytest.mark.parametrize(
    "cut",
    [
        1,
        32,
        131_072 // 2,
        131_072 * 3,
        131_072 * 3 + 48 * 3,
        131_072 * 3 + 80 * 3,
        131_072 * 3 + 80 * 3 + 128,
        131_072 * 3 + 80 * 3 + 128 + 32,
    ],
)
def test_pending_updates_refuse_a_truncated_file(folder: Path, cut: int) -> None:
    """Rather than let the node sign another update of the round."""
    file = folder / "round-3"
    file.write_bytes(file.read_bytes()[:-cut])
    with raises_fault(NodeError, "PendingUpdateLost", match="round 3 is no longer on this disk"):
        pending(folder).read(3)


@pytest.mark.parametrize("start", [192, 240])
def test_pending_updates_refuse_a_file_with_rubbish_of_the_right_length(folder: Path, start: int) -> None:
    """In point and blob."""
    pending(folder).write(3, OTHER)
    raw = bytearray((folder / "round-3").read_bytes())
    raw[start : start + 32] = b"\xff" * 32
    (folder / "round-3").write_bytes(raw)
    with raises_fault(NodeError, "PendingUpdateLost"):
        pending(folder).read(3)


def test_pending_updates_left_half_written_do_not_count(tmp_path: Path) -> None:
    kept = pending(tmp_path)
    (tmp_path / "writing").write_bytes(Blob(BLOBS[0])[:1000])  # a crash before the file was given its name
    assert kept.read(0) is None
    kept.write(0, OTHER)
    assert kept.read(0) == OTHER
