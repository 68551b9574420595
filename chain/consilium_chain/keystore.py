"""Encrypted key files (Web3 Secret Storage v3), and a voter's BLS key derived from the wallet's.

A password comes from a file that only its owner can read, never from a command line or the environment.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Annotated, Literal, Self

from consilium_core.errors import KeystoreError
from consilium_core.private_files import read_private_file, sync_folder, write_new_private_file, write_private_file
from consilium_zk.tickets import SecretKey, generate_secret_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import is_hex_address, to_checksum_address
from eth_utils.exceptions import ValidationError as KeyInvalid
from pydantic import AliasChoices, BaseModel, Field, ValidationError, model_validator

STANDARD_SCRYPT_N = 2**18
PASSWORD_BYTES = 24  # of randomness in a password that this program makes
LIGHT_SCRYPT_N = 2**12  # for throwaway keys on a local chain; geth's --lightkdf
# Twice geth's standard scrypt, and ten times eth_keyfile's PBKDF2: the file itself sets the cost of opening it.
MOST_SCRYPT_BYTES = 1 << 29
MOST_SCRYPT_WORK = 1 << 23
MOST_ITERATIONS = 10_000_000

Hex = Annotated[str, Field(pattern=r"^(0x)?([0-9a-fA-F]{2})*$", max_length=1_024)]


class _Scrypt(BaseModel):
    dklen: Literal[32]
    n: Annotated[int, Field(ge=2)]
    r: Annotated[int, Field(ge=1)]
    p: Annotated[int, Field(ge=1)]
    salt: Hex

    @model_validator(mode="after")
    def _affordable(self) -> Self:
        if 128 * self.n * self.r > MOST_SCRYPT_BYTES or self.n * self.r * self.p > MOST_SCRYPT_WORK:
            raise ValueError("scrypt would take more memory or time than that of any wallet")
        return self


class _Pbkdf2(BaseModel):
    dklen: Literal[32]
    c: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)]
    prf: Literal["hmac-sha256"]
    salt: Hex


class _CipherParams(BaseModel):
    iv: Annotated[str, Field(pattern=r"^(0x)?[0-9a-fA-F]{1,32}$")]


class _Crypto(BaseModel):
    cipher: Literal["aes-128-ctr"]
    cipherparams: _CipherParams
    ciphertext: Hex
    kdf: Literal["scrypt", "pbkdf2"]
    kdfparams: _Scrypt | _Pbkdf2
    mac: Hex


class _KeyFile(BaseModel):
    crypto: Annotated[_Crypto, Field(validation_alias=AliasChoices("crypto", "Crypto"))]
    version: Literal[3]


class _Addressed(BaseModel):
    address: str


def write_keystore(path: Path, account: LocalAccount, password: str, scrypt_n: int = STANDARD_SCRYPT_N) -> None:
    """Writes the account's key, encrypted, into a private file."""
    encrypted = Account.encrypt(account.key, password, kdf="scrypt", iterations=scrypt_n)
    write_private_file(path, json.dumps(encrypted))


def make_keystore(path: Path, password_file: Path, scrypt_n: int = STANDARD_SCRYPT_N) -> str:
    """Writes the key of a new account, and a random password if there is no password file; returns the address.

    Raises KeystoreError: then no file that was there is changed.
    """
    if path.exists():
        raise KeystoreError(f"{path} exists already and stays as it is: pass another path for the new key file")
    if not password_file.exists():
        write_new_private_file(password_file, secrets.token_urlsafe(PASSWORD_BYTES) + "\n")
    password = read_private_file(password_file).rstrip("\n")
    if not password:
        raise KeystoreError(f"{password_file} is empty: write the password into it, as one line, or remove it")
    account = Account.create()
    encrypted = Account.encrypt(account.key, password, kdf="scrypt", iterations=scrypt_n)
    write_new_private_file(path, json.dumps(encrypted))
    return str(account.address)


def open_keystore(path: Path, password_file: Path) -> LocalAccount:
    """The account in a key file. Raises KeystoreError."""
    password = read_private_file(password_file).rstrip("\n")
    text = read_private_file(path)
    try:
        file = _KeyFile.model_validate_json(text).model_dump()
        account: LocalAccount = Account.from_key(Account.decrypt(file, password))
    except (ValueError, KeyError, KeyInvalid):  # unchained: it may quote the file
        raise KeystoreError(
            f"{path} does not open with the password in {password_file}; check that both are of the same account"
        ) from None
    return account


def change_password(path: Path, password_file: Path, new_password_file: Path, scrypt_n: int = STANDARD_SCRYPT_N) -> str:
    """Encrypts a key file anew, and replaces it once the new one opens; returns its account. Raises KeystoreError."""
    account = open_keystore(path, password_file)
    password = read_private_file(new_password_file).rstrip("\n")
    if not password:
        raise KeystoreError(f"{new_password_file} has no password: write one line into it")
    if password == read_private_file(password_file).rstrip("\n"):
        raise KeystoreError(f"{new_password_file} has the present password of {path}: write another one into it")
    made = path.with_name(path.name + ".new")
    write_keystore(made, account, password, scrypt_n)
    open_keystore(made, new_password_file)
    made.replace(path)
    sync_folder(path.parent)
    return str(account.address)


def address_of(path: Path) -> str:
    """The account of a key file, without its password. Raises KeystoreError."""
    try:
        address = _Addressed.model_validate_json(read_private_file(path)).address
    except ValidationError:
        address = ""
    if not is_hex_address(address):
        raise KeystoreError(f"{path} is not a key file: it has no address of an account")
    return to_checksum_address(address)


def voter_key(account: LocalAccount) -> SecretKey:
    """The BLS key of a voter, derived from the account's key (HKDF, RFC 5869): one secret instead of two."""
    seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"CONSILIUM-V1-VOTER-KEY").derive(bytes(account.key))
    return generate_secret_key(seed)
