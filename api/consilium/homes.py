"""New homes of nodes: settings and policy are checked before anything is written."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from consilium_chain.addresses import checked_address
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.invites import SignedInvite
from consilium_chain.keystore import PASSWORD_BYTES, address_of, open_keystore, write_keystore
from consilium_client.config import ApiAddress, SponsoredSettings
from consilium_client.consent import TaskPolicy
from consilium_client.errors import DataError, HomeError, OwnersRefusal
from consilium_client.home import DEPLOYMENT_FILE, INVITE_FILE, SETTINGS_FILE, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_core.artifacts.backends import parse_locations
from consilium_core.errors import ConfigInvalid, KeystoreError
from consilium_core.private_files import read_private_file, write_private_file
from consilium_core.typed_toml import own_words
from eth_account import Account
from pydantic import TypeAdapter, ValidationError

Names = Sequence[str] | Literal["any"]
KEY_FILE, TRANSPORT_KEY_FILE, SPONSOR_FILE = "key.json", "transport.key", "sponsor.crt"


@dataclass(frozen=True)
class NewHome:
    """The values of every new home, as `Client.create` describes them."""

    folder: Path
    data: str | Path
    mapping: str | Path | None
    keystore: str | Path | None
    password_file: str | Path | None
    password: Callable[[], str] | None
    chain_url: str
    address_book: str | Path | Deployment
    artifacts: str | Path | Sequence[str | Path]
    report_to: str | None = None
    withdrawal_address: str | None = None
    invite: SignedInvite | None = None

    def settings(self) -> dict[str, Any]:
        """The content of node.toml. Raises HomeTaken, DeploymentInvalid, ConfigInvalid, DataFileMissing, TypeError, and
        NotPossible (AddressMalformed, AddressMistyped).
        """
        new_folder(self.folder)
        checked_book(self.address_book)
        if self.password_file is None and self.password is None and (self.invite is None or self.keystore is not None):
            raise TypeError("pass password_file or password")
        found = {
            "chain_url": self.chain_url,
            "artifacts": checked_locations(self.artifacts),
            "data": str(_existing(self.data)),
        }
        if self.mapping is not None:
            found["mapping"] = str(_existing(self.mapping))
        if self.report_to is not None:
            found["report_to"] = checked_report_to(self.report_to)
        if self.withdrawal_address is not None:
            found["withdrawal_address"] = self._payee(self.withdrawal_address)
        if self.password_file is not None:
            found["password_file"] = str(_absolute(self.password_file))
        return found

    def _payee(self, given: str) -> str:
        payee = checked_address(given)
        if self.keystore is not None and address_of(_absolute(self.keystore)) == payee:
            raise ConfigInvalid(f"the withdrawal address {payee} is the node's own account: name another, or none")
        return payee

    def sponsor_ca(self, url: str) -> Path | None:
        """The file in the home for the certificate that an invite has for this sponsor's URL."""
        has_one = self.invite is not None and self.invite.sponsor_url == url and self.invite.sponsor_authority
        return _absolute(self.folder) / SPONSOR_FILE if has_one else None

    def write(
        self, kind: type[HospitalHome] | type[VoterHome], settings: dict[str, Any], policy: dict[str, Any]
    ) -> Path:
        """Writes node.toml last, so that an interrupted call can be made again. Raises KeystoreError."""
        folder = new_folder(self.folder)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if kind is HospitalHome:
            make_transport_key(folder / TRANSPORT_KEY_FILE)
        self._write_key(folder)
        checked_book(self.address_book).write(folder / DEPLOYMENT_FILE)
        if self.invite is not None:
            write_private_file(folder / INVITE_FILE, self.invite.written)
            if self.invite.sponsor_authority is not None:
                write_private_file(folder / SPONSOR_FILE, self.invite.sponsor_authority)
        own, *mirrors = kind.create(folder, settings, policy).settings.artifacts
        if mirrors and isinstance(own, Path):
            own.mkdir(parents=True, exist_ok=True)
        return folder

    def _write_key(self, folder: Path) -> None:
        """The key file, and its password file if there is none."""
        password_file = folder / "password" if self.password_file is None else _absolute(self.password_file)
        key = folder / KEY_FILE
        if self.password_file is None and self.password is not None:
            write_private_file(password_file, self.password() + "\n")
        elif self.password_file is None and not password_file.exists():
            write_private_file(password_file, secrets.token_urlsafe(PASSWORD_BYTES) + "\n")
        if self.keystore is not None:
            given = _absolute(self.keystore)
            open_keystore(given, password_file)
            write_private_file(key, given.read_bytes())
        elif key.exists():  # from an interrupted call: the account may hold money already
            open_keystore(key, password_file)
        else:
            password = _read_password(password_file)
            write_keystore(key, Account.create(), password)


def new_folder(folder: str | Path) -> Path:
    """The absolute path of a home that can be made. Raises HomeTaken."""
    path = _absolute(folder)
    if (path / SETTINGS_FILE).exists():
        raise HomeError("HomeTaken", folder=path)
    return path


def checked_book(given: str | Path | Deployment) -> Deployment:
    """An address book, by default read from its path. Raises DeploymentInvalid."""
    return given if isinstance(given, Deployment) else Deployment.read(Path(given).expanduser())


def checked_locations(given: str | Path | Sequence[str | Path]) -> str | list[str]:
    """Locations of the artifact store as node.toml has them. A folder must exist, unless mirrors will fill it.

    Raises ConfigInvalid.
    """
    locations = parse_locations([given] if isinstance(given, str | Path) else given)
    paths = [str(_absolute(location)) if isinstance(location, Path) else location for location in locations]
    for path, location in list(zip(paths, locations, strict=True))[len(locations) > 1 :]:
        if isinstance(location, Path) and not Path(path).exists():
            raise ConfigInvalid(f"{path} does not exist; make this folder, or name another location")
    return paths[0] if len(paths) == 1 else paths


def checked_report_to(url: str) -> str:
    """The address of an operator's API. Raises ConfigInvalid."""
    try:
        return TypeAdapter[str](ApiAddress).validate_python(url)
    except ValidationError:
        raise ConfigInvalid("write https://HOST or https://HOST:PORT, without a path") from None


def checked_sponsor(url: str, authority: str | Path | None) -> dict[str, str]:
    """Raises ConfigInvalid."""
    sponsor = {"url": url}
    if authority is not None:
        sponsor["ca_certificate"] = str(Path(authority).absolute())
    try:
        SponsoredSettings.model_validate(sponsor)
    except ValidationError as error:
        raise ConfigInvalid(error.errors()[0]["msg"]) from None
    return sponsor


def checked_policy(rules: Mapping[str, Any], kind: type[TaskPolicy]) -> dict[str, Any]:
    """The policy, if it is valid. Raises PolicyInvalid."""
    policy = {name: list(rule) if isinstance(rule, tuple) else rule for name, rule in rules.items()}
    try:
        kind.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {own_words(fault['msg'])}" for fault in error.errors())
        raise OwnersRefusal("PolicyInvalid", why=f"the policy would be invalid: {faults}") from None
    return policy


def _absolute(path: str | Path) -> Path:
    return Path(path).expanduser().absolute()


def _existing(path: str | Path) -> Path:
    """Raises DataFileMissing."""
    found = _absolute(path)
    if not found.exists():
        raise DataError("DataFileMissing", path=found, why="it does not exist")
    return found


def _read_password(path: Path) -> str:
    """Raises KeystoreError."""
    password = read_private_file(path).rstrip("\n")
    if not password:
        raise KeystoreError(f"{path} is empty: write the password into it, as one line")
    return password
