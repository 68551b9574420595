"""A new account for an aggregator or an operator: both of its files, and nothing that was there before is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from consilium_chain.keystore import LIGHT_SCRYPT_N, make_keystore, open_keystore
from consilium_cli.main import app
from consilium_core.errors import KeystoreError
from consilium_core.private_files import write_private_file
from typer.testing import CliRunner


def test_the_command_makes_both_files_and_says_the_next_steps(tmp_path: Path) -> None:
    key, password = tmp_path / "made" / "key.json", tmp_path / "made" / "password"
    ran = CliRunner().invoke(app, ["new-key", str(key), "--password-file", str(password)])
    assert ran.exit_code == 0, ran.output
    account = open_keystore(key, password)
    assert [path.stat().st_mode & 0o777 for path in (key, password)] == [0o600, 0o600]
    assert account.address in ran.output
    assert f"consilium chain local fund {account.address} --tokens" in ran.output
    assert f"--keystore {key} --password-file {password}" in ran.output
    assert f'password_file = "{password}"' in ran.output
    secret = password.read_text().strip()
    assert len(secret) == 32
    assert secret not in ran.output
    assert account.key.hex() not in ran.output


def test_an_existing_key_file_is_never_overwritten(tmp_path: Path) -> None:
    key, password = tmp_path / "key.json", tmp_path / "password"
    first = make_keystore(key, password, LIGHT_SCRYPT_N)
    before = key.read_bytes(), password.read_bytes()
    with pytest.raises(KeystoreError, match=r"key\.json exists already and stays as it is"):
        make_keystore(key, password, LIGHT_SCRYPT_N)
    assert (key.read_bytes(), password.read_bytes()) == before
    assert open_keystore(key, password).address == first


def test_an_existing_password_is_used_as_it_is(tmp_path: Path) -> None:
    write_private_file(tmp_path / "password", "ours\n")
    address = make_keystore(tmp_path / "key.json", tmp_path / "password", LIGHT_SCRYPT_N)
    assert open_keystore(tmp_path / "key.json", tmp_path / "password").address == address
    assert (tmp_path / "password").read_text() == "ours\n"


@pytest.mark.parametrize(("text", "mode", "words"), [("\n", 0o600, "is empty"), ("ours\n", 0o644, "chmod 600")])
def test_a_password_file_that_is_no_use_leaves_no_key(tmp_path: Path, text: str, mode: int, words: str) -> None:
    password = tmp_path / "password"
    password.write_text(text)
    password.chmod(mode)
    with pytest.raises(KeystoreError, match=words):
        make_keystore(tmp_path / "key.json", password, LIGHT_SCRYPT_N)
    assert not (tmp_path / "key.json").exists()
