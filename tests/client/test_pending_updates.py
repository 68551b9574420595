"""A committed update survives its process; what is not whole is not an update."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_client.errors import PendingUpdateLost
from consilium_client.pending import PendingUpdates
from consilium_zk.blobs import Blob, from_scalars
from consilium_zk.constants import BLS_MODULUS

BLOBS = [from_scalars([value] * 4096) for value in (0, 5, BLS_MODULUS - 1)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    PendingUpdates(tmp_path / "pending").write(3, BLOBS)
    return tmp_path / "pending"


def test_pending_updates_survive_a_restart(folder: Path) -> None:
    assert PendingUpdates(folder).read(3) == BLOBS


def test_pending_updates_are_for_their_owner_alone(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_pending_updates_keep_the_latest_round_only(folder: Path) -> None:
    again = PendingUpdates(folder)
    again.write(4, BLOBS[:1])
    assert again.read(4) == BLOBS[:1]
    with pytest.raises(PendingUpdateLost, match="round 3 is not on this disk"):
        again.read(3)
    assert [path.name for path in folder.iterdir()] == ["round-4"]


@pytest.mark.parametrize("cut", [1, 32, 131_072 // 2, 131_072 * 3])
def test_pending_updates_refuse_a_truncated_file(folder: Path, cut: int) -> None:
    file = folder / "round-3"
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(PendingUpdateLost):
        PendingUpdates(folder).read(3)


def test_pending_updates_refuse_a_file_with_rubbish_of_the_right_length(folder: Path) -> None:
    (folder / "round-3").write_bytes(b"\xff" * 131_072)
    with pytest.raises(PendingUpdateLost):
        PendingUpdates(folder).read(3)


def test_pending_updates_left_half_written_do_not_count(tmp_path: Path) -> None:
    pending = PendingUpdates(tmp_path)
    (tmp_path / "writing").write_bytes(Blob(BLOBS[0])[:1000])  # a crash before the file was given its name
    with pytest.raises(PendingUpdateLost):
        pending.read(0)
    pending.write(0, BLOBS[:1])
    assert pending.read(0) == BLOBS[:1]
