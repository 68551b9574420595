"""A key file gets another password, and nothing else about it changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_chain.keystore import LIGHT_SCRYPT_N, change_password, open_keystore, write_keystore
from consilium_cli.main import app
from consilium_core.errors import KeystoreError
from consilium_core.private_files import write_private_file
from eth_account import Account
from typer.testing import CliRunner


@pytest.fixture
def key(tmp_path: Path) -> Path:
    write_keystore(tmp_path / "key.json", Account.from_key(b"\x05" * 32), "before", LIGHT_SCRYPT_N)
    write_private_file(tmp_path / "password", "before\n")
    write_private_file(tmp_path / "new", "after\n")
    return tmp_path / "key.json"


def test_the_command_changes_the_password_and_keeps_the_key(key: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    write_private_file(copy, key.read_bytes())
    command = ["change-password", str(key), "--password-file", str(tmp_path / "password")]
    ran = CliRunner().invoke(app, [*command, "--new-password-file", str(tmp_path / "new")])
    assert ran.exit_code == 0, ran.output
    assert Account.from_key(b"\x05" * 32).address in ran.output
    assert "before\n" not in ran.output
    assert "after" not in ran.output
    assert bytes(open_keystore(key, tmp_path / "new").key) == b"\x05" * 32
    assert key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(KeystoreError, match=r"does not open with the password in .*password"):
        open_keystore(key, tmp_path / "password")
    assert open_keystore(copy, tmp_path / "password")  # of which the command says so
    assert "Copies of the key file still open with the old password" in ran.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.json", "key.json", "new", "password"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("wrong\n", "after\n", "does not open with the password"),
        ("before\n", "\n", "has no password: write one line into it"),
        ("before\n", "before\n", "has the present password of "),
    ],
)
def test_what_is_refused_changes_nothing(key: Path, tmp_path: Path, old: str, new: str, words: str) -> None:
    before = key.read_bytes()
    write_private_file(tmp_path / "password", old)
    write_private_file(tmp_path / "new", new)
    with pytest.raises(KeystoreError, match=words):
        change_password(key, tmp_path / "password", tmp_path / "new", LIGHT_SCRYPT_N)
    assert key.read_bytes() == before


def test_a_password_that_others_can_read_is_none(key: Path, tmp_path: Path) -> None:
    (tmp_path / "new").chmod(0o640)
    with pytest.raises(KeystoreError, match="can be read by others"):
        change_password(key, tmp_path / "password", tmp_path / "new", LIGHT_SCRYPT_N)
