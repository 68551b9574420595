"""`init`: what is asked, what is written, and whether what it names answers."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer
from consilium_chain.artifacts.backends import parse_places
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import ConfigInvalid, KeystoreError
from consilium_chain.keystore import open_keystore, read_private_file, write_keystore, write_private_file
from consilium_client.consent import ANY, TaskPolicy
from consilium_client.errors import HomeError, OwnersRefusal
from consilium_client.home import SETTINGS_FILE, Home
from eth_account import Account
from pydantic import ValidationError

from consilium_cli.nodes.answers import Result, show_answers, try_connections

LOCAL_CHAIN = "http://127.0.0.1:8545"
HomeType = TypeVar("HomeType", bound=Home[Any, Any])


@dataclass(frozen=True)
class Given:
    """What flags say; None is asked for, or has a default."""

    chain_url: str | None
    address_book: Path | None
    artifacts: list[str] | None
    data: Path | None
    mapping: Path | None
    keystore: Path | None
    password_file: Path | None
    operators: list[str] | None
    models: list[str] | None


def new_folder(folder: Path) -> Path:
    """Where a home may be made. Raises HomeTaken."""
    folder = folder.expanduser().absolute()
    if (folder / SETTINGS_FILE).exists():
        raise HomeError("HomeTaken", folder=folder)
    return folder


def ask_settings(given: Given, table: str) -> tuple[Path, dict[str, Any]]:
    """The address book's path, and what node.toml says in every home. `table`: what the data is, in a question."""
    chain_url = ask(given.chain_url, "Chain node (HTTP URL)", "--chain-url", LOCAL_CHAIN)
    book = Path(ask(given.address_book, "The contracts' address book", "--address-book", ".consilium/local.json"))
    Deployment.read(book)
    artifacts = _places(given.artifacts or [ask(None, "Artifact store (folder or URL)", "--artifacts")])
    data = existing(ask(given.data, table, "--data"), "--data")
    settings: dict[str, Any] = {"chain_url": chain_url, "artifacts": artifacts, "data": str(data)}
    if given.mapping is not None:
        settings["mapping"] = str(existing(str(given.mapping), "--mapping"))
    return book, settings


def _places(given: list[str]) -> str | list[str]:
    """As node.toml has them. A folder has to be there, but for one that mirrors will fill."""
    try:
        places = parse_places(given)
    except ConfigInvalid as error:
        raise typer.BadParameter(str(error), param_hint="--artifacts") from None
    paths = [str(place.expanduser().absolute()) if isinstance(place, Path) else place for place in places]
    for path, place in list(zip(paths, places, strict=True))[len(places) > 1 :]:
        if isinstance(place, Path):
            existing(path, "--artifacts")
    return paths[0] if len(paths) == 1 else paths


def write_home(
    kind: type[HomeType], folder: Path, given: Given, book: Path, settings: dict[str, Any], policy: dict[str, Any]
) -> HomeType:
    """Writes node.toml last: what was cut off can be run again."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    address = _key(folder, given, settings)
    shutil.copyfile(book, folder / "deployment.json")
    made = kind.create(folder, settings, policy)
    own, *mirrors = made.settings.artifacts
    if mirrors and isinstance(own, Path):
        own.mkdir(parents=True, exist_ok=True)
    typer.echo(
        f"\naccount {address}\nkey     {made.settings.keystore}, encrypted; keep a copy of it and of its password"
    )
    typer.echo(f"policy  {made.settings.policy}: what may be joined; read it, and change it as you like")
    return made


def init_like(kind: type[HomeType], folder: Path, like: Path, given: Given, offline: bool) -> None:
    """Raises HomeMissing, HomeTaken, DeploymentInvalid, SameContracts."""
    said = asdict(given)
    book = Path(ask(said.pop("address_book"), "The other contracts' address book", "--address-book"))
    if any(value is not None for value in said.values()):
        raise typer.BadParameter(
            "takes --address-book, --home and --offline beside it: all else is as there", param_hint="--like"
        )
    made = kind.create_like(folder, kind.open(like), book)
    typer.echo(f"A home in {made.folder} for the contracts of {book}. Account, policy and data are those of {like}:")
    typer.echo("what is changed there counts here; it has to stay, and backups are of both.")
    if not offline:
        try_home(made)


def try_home(home: Home[Any, Any]) -> None:
    """Ends the program where a node could not do its work."""
    answers = try_connections(home)
    show_answers(answers)
    if any(answer.result is Result.NO for answer in answers):
        raise typer.Exit(1)


def elsewhere(folder: Path, usual: Path) -> str:
    """The option that the next command needs, if it needs one."""
    return "" if folder == usual.expanduser() else f" --home {folder}"


def ask(given: object, question: str, flag: str, default: str | None = None) -> str:
    if given is not None:
        return str(given)
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is not None:
        return default
    raise typer.BadParameter("is needed, for nobody can be asked here", param_hint=flag)


def existing(path: str, flag: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise typer.BadParameter(f"{found} does not exist", param_hint=flag)
    return found


def ask_names(given: list[str] | None, question: str, flag: str, default: str | None = None) -> list[str] | str:
    said = given if given is not None else [part.strip() for part in ask(None, question, flag, default).split(",")]
    names = [name for name in said if name]
    return ANY if names == [ANY] else names


def checked_policy(policy: dict[str, Any], kind: type[TaskPolicy]) -> dict[str, Any]:
    """As written: checked here, so that a home never has a policy that does not hold. Raises PolicyInvalid."""
    try:
        kind.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise OwnersRefusal("PolicyInvalid", why=f"the policy would not hold: {faults}") from None
    return policy


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
