"""Key files of accounts: Web3 Secret Storage, encrypted."""

from __future__ import annotations

from pathlib import Path


def new_key(key_file: str | Path, password_file: str | Path) -> str:
    """Makes an account in a new key file. Returns its address. Without a password file, a random password is written.

    Raises KeystoreError.
    """
    from consilium_chain.keystore import make_keystore

    return make_keystore(Path(key_file), Path(password_file))


def change_password(key_file: str | Path, password_file: str | Path, new_password_file: str | Path) -> str:
    """Encrypts a key file again, with the password in another file. Returns the account's address.

    Raises KeystoreError.
    """
    from consilium_chain.keystore import change_password

    return change_password(Path(key_file), Path(password_file), Path(new_password_file))
