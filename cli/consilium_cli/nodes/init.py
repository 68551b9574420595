"""`hospital init` and `voter init`: ask for settings, write a home, and try its connections."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import typer
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import open_keystore, write_keystore
from consilium_client.config import SponsoredSettings
from consilium_client.consent import ANY, NEW_HOSPITAL, NEW_VOTER, Policy, TaskPolicy, VoterPolicy
from consilium_client.errors import HomeError, OwnersRefusal
from consilium_client.home import SETTINGS_FILE, Home, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_core.artifacts.backends import parse_places
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.errors import ConfigInvalid, KeystoreError
from consilium_core.private_files import read_private_file, write_private_file
from eth_account import Account
from pydantic import ValidationError

from consilium_cli.nodes.answers import Result, show_answers, try_connections
from consilium_cli.options import HOSPITAL_HOME, VOTER_HOME

HomeType = TypeVar("HomeType", bound=Home[Any, Any])


@dataclass(frozen=True)
class Given:
    """The values of flags; None is asked for, or has a default."""

    chain_url: str | None
    address_book: Path | None
    artifacts: list[str] | None
    data: Path | None
    mapping: Path | None
    keystore: Path | None
    password_file: Path | None
    operators: list[str] | None
    models: list[str] | None


@dataclass(frozen=True)
class HospitalGiven(Given):
    columns: list[str] | None
    hours: str | None
    sponsor_url: str | None
    sponsor_ca: Path | None


@dataclass(frozen=True)
class VoterGiven(Given):
    metrics: list[str] | None
    max_bond: int | None
    max_tasks: int | None


def init_hospital(home: Path, given: HospitalGiven, offline: bool, like: Path | None) -> None:
    """Nothing is written before everything is known."""
    if like is not None:
        _init_like(HospitalHome, home, like, given, offline)
    else:
        home = _new_folder(home)
        typer.echo(f"A hospital's home in {home}. Nothing leaves it before you have joined a task.\n")
        book, settings = _ask_settings(given, "This hospital's data, a file or a folder")
        policy = _policy(given, "trained")
        question = "Columns that may be used (the task's names, or any)"
        policy |= {"columns": _ask_names(given.columns, question, "--column", ANY), **NEW_HOSPITAL}
        policy = _checked_policy(policy | _named(hours=given.hours), Policy)
        if given.sponsor_url is not None:
            settings["sponsor"] = _sponsor(given.sponsor_url, given.sponsor_ca)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_transport_key(home / "transport.key")
        _write_home(HospitalHome, home, given, book, settings, policy, offline)
    typer.echo(f"\nNext: consilium hospital tasks{elsewhere(home, HOSPITAL_HOME)}")


def init_voter(home: Path, given: VoterGiven, offline: bool, like: Path | None) -> None:
    """Nothing is written before everything is known."""
    if like is not None:
        _init_like(VoterHome, home, like, given, offline)
    else:
        home = _new_folder(home)
        typer.echo(
            f"A voter's home in {home}. It stakes nothing before you register, and joins nothing before you run.\n"
        )
        book, settings = _ask_settings(given, "This voter's table of held-out rows")
        policy = _policy(given, "judged")
        question = "Metrics that may be judged by (names, or any)"
        policy |= {"metrics": _ask_names(given.metrics, question, "--metric", ANY), **NEW_VOTER}
        policy = _checked_policy(policy | _named(max_bond=given.max_bond, max_tasks=given.max_tasks), VoterPolicy)
        _write_home(VoterHome, home, given, book, settings, policy, offline)
    typer.echo(f"\nNext: consilium voter register{elsewhere(home, VOTER_HOME)}")


def _policy(given: Given, done: str) -> dict[str, Any]:
    """The rules that hospitals and voters share. `done`: trained or judged."""
    ask = _ask_names
    return {
        "operators": ask(given.operators, "Operators whose tasks may be joined (addresses, or any)", "--operator"),
        "models": ask(given.models, f"Model families that may be {done} (names, or any)", "--model", ANY),
    }


def _named(**values: object) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in values.items() if value is not None}


def _sponsor(url: str, authority: Path | None) -> dict[str, Any]:
    sponsor: dict[str, Any] = {"url": url}
    if authority is not None:
        sponsor["ca_certificate"] = str(authority.absolute())
    try:
        SponsoredSettings.model_validate(sponsor)
    except ValidationError as error:
        raise typer.BadParameter(error.errors()[0]["msg"], param_hint="--sponsor-url") from None
    return sponsor


def _new_folder(folder: Path) -> Path:
    """The absolute path of a home that can be made. Raises HomeTaken."""
    folder = folder.expanduser().absolute()
    if (folder / SETTINGS_FILE).exists():
        raise HomeError("HomeTaken", folder=folder)
    return folder


def _ask_settings(given: Given, table: str) -> tuple[Path, dict[str, Any]]:
    """The address book's path, and the settings of every home. `table`: names the data in the question."""
    chain_url = ask(given.chain_url, "Chain node (HTTP URL)", "--chain-url", LOCAL_RPC)
    book = Path(ask(given.address_book, "The contracts' address book", "--address-book", str(LOCAL_ADDRESS_BOOK)))
    Deployment.read(book)
    artifacts = _places(given.artifacts or [ask(None, "Artifact store (folder or URL)", "--artifacts")])
    data = _existing(ask(given.data, table, "--data"), "--data")
    settings: dict[str, Any] = {"chain_url": chain_url, "artifacts": artifacts, "data": str(data)}
    if given.mapping is not None:
        settings["mapping"] = str(_existing(str(given.mapping), "--mapping"))
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
            _existing(path, "--artifacts")
    return paths[0] if len(paths) == 1 else paths


def _write_home(
    kind: type[HomeType],
    folder: Path,
    given: Given,
    book: Path,
    settings: dict[str, Any],
    policy: dict[str, Any],
    offline: bool,
) -> None:
    """Writes node.toml last: after a break the command can be run again."""
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
    typer.echo(f"policy  {made.settings.policy}: the tasks that may be joined; read it, and change it as you like")
    if not offline:
        _try_home(made)


def _init_like(kind: type[HomeType], folder: Path, like: Path, given: Given, offline: bool) -> None:
    """A home for other contracts. Raises HomeMissing, HomeTaken, DeploymentInvalid, SameContracts."""
    said = asdict(given)
    book = Path(ask(said.pop("address_book"), "The other contracts' address book", "--address-book"))
    if any(value is not None for value in said.values()):
        raise typer.BadParameter(
            "takes --address-book, --home and --offline beside it: the other home has all else", param_hint="--like"
        )
    made = kind.create_like(folder, kind.open(like), book)
    typer.echo(f"A home in {made.folder} for the contracts of {book}. Account, policy and data are those of {like}:")
    typer.echo("Changes there count here. It has to stay; back up both.")
    if not offline:
        _try_home(made)


def _try_home(home: Home[Any, Any]) -> None:
    """Ends the program if a node could not do its work."""
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
    raise typer.BadParameter("is needed: there is no terminal to ask on", param_hint=flag)


def _existing(path: str, flag: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise typer.BadParameter(f"{found} does not exist", param_hint=flag)
    return found


def _ask_names(given: list[str] | None, question: str, flag: str, default: str | None = None) -> list[str] | str:
    said = given if given is not None else [part.strip() for part in ask(None, question, flag, default).split(",")]
    names = [name for name in said if name]
    return ANY if names == [ANY] else names


def _checked_policy(policy: dict[str, Any], kind: type[TaskPolicy]) -> dict[str, Any]:
    """The same policy. It is checked here, so that no home has one that does not hold. Raises PolicyInvalid."""
    try:
        kind.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise OwnersRefusal("PolicyInvalid", why=f"the policy would not hold: {faults}") from None
    return policy


def _key(home: Path, given: Given, settings: dict[str, Any]) -> str:
    """Writes the key file, and its password file if there is none. Returns the account's address."""
    if given.password_file is not None:
        settings["password_file"] = str(given.password_file.expanduser().absolute())
    password_file = Path(settings.get("password_file", home / "password"))
    if given.password_file is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("is needed: there is no terminal to ask on", param_hint="--password-file")
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
