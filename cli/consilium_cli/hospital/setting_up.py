"""`consilium hospital init`: what is asked, what is written, and whether what it names answers."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from consilium_chain.deployment import Deployment
from consilium_chain.errors import KeystoreError
from consilium_chain.keystore import open_keystore, read_private_file, write_keystore, write_private_file
from consilium_client.config import SponsoredSettings
from consilium_client.consent import ANY, Policy
from consilium_client.errors import HomeTaken, PolicyInvalid
from consilium_client.home import SETTINGS_FILE, HospitalHome
from consilium_client.transport_key import make_transport_key
from eth_account import Account
from pydantic import ValidationError

from consilium_cli.hospital.answers import Result, show_answers, try_connections

LOCAL_CHAIN = "http://127.0.0.1:8545"


@dataclass(frozen=True)
class Given:
    """What flags say; None is asked for, or has a default."""

    chain_url: str | None
    address_book: Path | None
    artifacts: Path | None
    data: Path | None
    mapping: Path | None
    keystore: Path | None
    password_file: Path | None
    operators: list[str] | None
    models: list[str] | None
    columns: list[str] | None
    hours: str | None
    sponsor_url: str | None
    sponsor_ca: Path | None


def init(home: Path, given: Given, offline: bool) -> None:
    """Nothing is written before everything is known, and node.toml last: what was cut off can be run again."""
    home = home.expanduser().absolute()
    if (home / SETTINGS_FILE).exists():
        raise HomeTaken(home)
    typer.echo(f"A hospital's home in {home}. Nothing leaves it before you have joined a task.\n")
    chain_url = _ask(given.chain_url, "Chain node (HTTP URL)", "--chain-url", LOCAL_CHAIN)
    book = Path(_ask(given.address_book, "The contracts' address book", "--address-book", ".consilium/local.json"))
    Deployment.read(book)
    artifacts = _existing(_ask(given.artifacts, "Folder of the artifact store", "--artifacts"), "--artifacts")
    data = _existing(_ask(given.data, "This hospital's table", "--data"), "--data")
    policy = _policy(given)
    settings: dict[str, Any] = {"chain_url": chain_url, "artifacts": str(artifacts), "data": str(data)}
    if given.mapping is not None:
        settings["mapping"] = str(_existing(str(given.mapping), "--mapping"))
    if given.sponsor_url is not None:
        sponsor: dict[str, Any] = {"url": given.sponsor_url}
        if given.sponsor_ca is not None:
            sponsor["ca_certificate"] = str(given.sponsor_ca.absolute())
        try:
            SponsoredSettings.model_validate(sponsor)
        except ValidationError as error:
            raise typer.BadParameter(error.errors()[0]["msg"], param_hint="--sponsor-url") from None
        settings["sponsor"] = sponsor
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    address = _key(home, given, settings)
    shutil.copyfile(book, home / "deployment.json")
    make_transport_key(home / "transport.key")
    made = HospitalHome.create(home, settings, policy)
    typer.echo(
        f"\naccount {address}\nkey     {made.settings.keystore}, encrypted; keep a copy of it and of its password"
    )
    typer.echo(f"policy  {made.settings.policy}: what may be joined; read it, and change it as you like")
    if not offline:
        answers = try_connections(made)
        show_answers(answers)
        if any(answer.result is Result.NO for answer in answers):
            raise typer.Exit(1)
    where = "" if home == Path("~/.consilium/hospital").expanduser() else f" --home {home}"
    typer.echo(f"\nNext: consilium hospital tasks{where}")


def _ask(given: object, question: str, flag: str, default: str | None = None) -> str:
    if given is not None:
        return str(given)
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is not None:
        return default
    raise typer.BadParameter("is needed, for nobody can be asked here", param_hint=flag)


def _existing(path: str, flag: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise typer.BadParameter(f"{found} does not exist", param_hint=flag)
    return found


def _policy(given: Given) -> dict[str, Any]:
    """As written: checked here, so that a home never has a policy that does not hold. Raises PolicyInvalid."""
    policy: dict[str, Any] = {
        "operators": _names(given.operators, "Operators whose tasks may be joined (addresses, or any)", "--operator"),
        "models": _names(given.models, "Model families that may be trained (names, or any)", "--model", ANY),
        "columns": _names(given.columns, "Columns that may be used (the task's names, or any)", "--column", ANY),
        "masked_only": True,
    }
    if given.hours is not None:
        policy["hours"] = given.hours
    try:
        Policy.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise PolicyInvalid(f"the policy would not hold: {faults}") from None
    return policy


def _names(given: list[str] | None, question: str, flag: str, default: str | None = None) -> list[str] | str:
    said = given if given is not None else [part.strip() for part in _ask(None, question, flag, default).split(",")]
    names = [name for name in said if name]
    return ANY if names == [ANY] else names


def _key(home: Path, given: Given, settings: dict[str, Any]) -> str:
    """Writes the key file, and where its password is not in a file already, that. Returns the account's address."""
    if given.password_file is not None:
        settings["password_file"] = str(given.password_file.expanduser().absolute())
    password_file = Path(settings.get("password_file", home / "password"))
    if given.password_file is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("is needed, for nobody can be asked here", param_hint="--password-file")
        new = given.keystore is None
        question = "Password for a new key file" if new else f"Password of {given.keystore}"
        write_private_file(password_file, typer.prompt(question, hide_input=True, confirmation_prompt=new) + "\n")
        typer.echo(f"The password is kept in {password_file}, for the node to start without you.")
    if given.keystore is not None:
        account = open_keystore(given.keystore.expanduser(), password_file)
        write_private_file(home / "key.json", given.keystore.expanduser().read_bytes())
        return str(account.address)
    if (home / "key.json").exists():  # of an init that was cut off: its key may hold money already
        return str(open_keystore(home / "key.json", password_file).address)
    password = _read_password(password_file)
    account = Account.create()
    write_keystore(home / "key.json", account, password)
    return str(account.address)


def _read_password(path: Path) -> str:
    """Raises KeystoreError."""
    password = read_private_file(path).rstrip("\n")
    if not password:
        raise KeystoreError(f"{path} holds no password: write one line into it")
    return password
