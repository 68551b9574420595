"""`hospital init` and `voter init`: ask for settings, write a home, and check its connections."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

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

from consilium_cli.doctor.checks import show_findings
from consilium_cli.doctor.findings import Level
from consilium_cli.nodes.connections import check_connections
from consilium_cli.options import USUAL_HOMES, Role


@dataclass(frozen=True)
class Answers:
    """The values of options. If one is None, the command asks for it, or takes a default."""

    chain_url: str | None
    address_book: Path | None
    artifacts: list[str] | None
    data: Path | None
    mapping: Path | None
    keystore: Path | None
    password_file: Path | None
    operators: list[str] | None
    models: list[str] | None
    # Of a hospital
    columns: list[str] | None = None
    hours: str | None = None
    sponsor_url: str | None = None
    sponsor_ca: Path | None = None
    # Of a voter
    metrics: list[str] | None = None
    max_bond: int | None = None
    max_tasks: int | None = None


def init_home(
    kind: type[HospitalHome] | type[VoterHome], home: Path, given: Answers, offline: bool, like: Path | None
) -> None:
    """Writes nothing before all values are known and valid."""
    is_hospital = issubclass(kind, HospitalHome)
    if like is not None:
        made: Home[Any, Any] = _create_like(kind, home, like, given)
    else:
        home = _new_folder(home)
        if is_hospital:
            typer.echo(f"This makes a hospital's home in {home}. Nothing leaves it before you have joined a task.\n")
        else:
            typer.echo(
                f"This makes a voter's home in {home}."
                " It stakes nothing before `register`, and joins nothing before `run`.\n"
            )
        book, settings = _ask_settings(given, "This hospital's data" if is_hospital else "This voter's held-out rows")
        policy = _ask_policy(given, is_hospital)
        if given.sponsor_url is not None:
            settings["sponsor"] = _sponsor(given.sponsor_url, given.sponsor_ca)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if is_hospital:
            make_transport_key(home / "transport.key")
        made = _write_home(kind, home, given, book, settings, policy)
    if not offline:
        _check_home(made)
    typer.echo(f"\nNext: consilium {'hospital tasks' if is_hospital else 'voter register'}{elsewhere(made)}")


def _ask_policy(given: Answers, is_hospital: bool) -> dict[str, Any]:
    """Raises PolicyInvalid."""
    ask = _ask_names
    done = "trained" if is_hospital else "judged"
    policy: dict[str, Any] = {
        "operators": ask(given.operators, "Operators whose tasks may be joined (addresses, or any)", "--operator"),
        "models": ask(given.models, f"Model families that may be {done} (names, or any)", "--model", ANY),
    }
    if is_hospital:
        question = "Columns that tasks may use (the task's names, or any)"
        policy |= {"columns": ask(given.columns, question, "--column", ANY), **NEW_HOSPITAL}
        return _checked_policy(policy | _named(hours=given.hours), Policy)
    question = "Metrics by which tasks may be judged (names, or any)"
    policy |= {"metrics": ask(given.metrics, question, "--metric", ANY), **NEW_VOTER}
    return _checked_policy(policy | _named(max_bond=given.max_bond, max_tasks=given.max_tasks), VoterPolicy)


def _named(**values: object) -> dict[str, Any]:
    """The values that are not None."""
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


def _ask_settings(given: Answers, data_called: str) -> tuple[Path, dict[str, Any]]:
    """The address book's path, and the settings of every home."""
    chain_url = ask(given.chain_url, "Chain node (HTTP URL)", "--chain-url", LOCAL_RPC)
    book = Path(
        ask(given.address_book, "The contracts' address book (file)", "--address-book", str(LOCAL_ADDRESS_BOOK))
    )
    Deployment.read(book)
    artifacts = _places(given.artifacts or [ask(None, "Artifact store (folder or URL)", "--artifacts")])
    data = _existing(ask(given.data, f"{data_called} (file or folder)", "--data"), "--data")
    settings: dict[str, Any] = {"chain_url": chain_url, "artifacts": artifacts, "data": str(data)}
    if given.mapping is not None:
        settings["mapping"] = str(_existing(str(given.mapping), "--mapping"))
    return book, settings


def _places(given: list[str]) -> str | list[str]:
    """In the form of node.toml. A folder must exist, except if mirrors will fill it."""
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
    kind: type[HospitalHome] | type[VoterHome],
    folder: Path,
    given: Answers,
    book: Path,
    settings: dict[str, Any],
    policy: dict[str, Any],
) -> Home[Any, Any]:
    """Writes node.toml last, so that an interrupted command can be run again."""
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
    return made


def _create_like(
    kind: type[HospitalHome] | type[VoterHome], folder: Path, like: Path, given: Answers
) -> Home[Any, Any]:
    """A home for other contracts. Raises HomeMissing, HomeTaken, DeploymentInvalid, SameContracts."""
    values = asdict(given)
    book = Path(ask(values.pop("address_book"), "The other contracts' address book", "--address-book"))
    if any(value is not None for value in values.values()):
        raise typer.BadParameter(
            "goes only with --address-book, --home and --offline: all else comes from the other home",
            param_hint="--like",
        )
    made: Home[Any, Any] = cast(Any, kind).create_like(folder, kind.open(like), book)
    typer.echo(
        f"The home {made.folder} is for the contracts of {book}. Account, policy and data are those of {like}:"
        " changes there apply here. Do not remove that home, and back up both."
    )
    return made


def _check_home(home: Home[Any, Any]) -> None:
    """Ends the program if the connections have a fault."""
    found = check_connections(home)
    show_findings(found)
    if any(one.level is Level.FAULT for one in found):
        raise typer.Exit(1)


def elsewhere(home: Home[Any, Any]) -> str:
    """The option that the next command needs for this folder, or an empty text."""
    return "" if home.folder == USUAL_HOMES[Role(home.whose())].expanduser() else f" --home {home.folder}"


def ask(given: object, question: str, flag: str, default: str | None = None) -> str:
    if given is not None:
        return str(given)
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is not None:
        return default
    raise typer.BadParameter("pass this option: there is no terminal to ask on", param_hint=flag)


def _existing(path: str, flag: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise typer.BadParameter(f"{found} does not exist", param_hint=flag)
    return found


def _ask_names(given: list[str] | None, question: str, flag: str, default: str | None = None) -> list[str] | str:
    words = given if given is not None else [part.strip() for part in ask(None, question, flag, default).split(",")]
    names = [name for name in words if name]
    return ANY if names == [ANY] else names


def _checked_policy(policy: dict[str, Any], kind: type[TaskPolicy]) -> dict[str, Any]:
    """Returns the policy if it is valid, so that no home gets another. Raises PolicyInvalid."""
    try:
        kind.model_validate(policy)
    except ValidationError as error:
        faults = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in error.errors())
        raise OwnersRefusal("PolicyInvalid", why=f"the policy would be invalid: {faults}") from None
    return policy


def _key(home: Path, given: Answers, settings: dict[str, Any]) -> str:
    """Writes the key file, and its password file if there is none. Returns the account's address."""
    if given.password_file is not None:
        settings["password_file"] = str(given.password_file.expanduser().absolute())
    password_file = Path(settings.get("password_file", home / "password"))
    if given.password_file is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("pass this option: there is no terminal to ask on", param_hint="--password-file")
        new = given.keystore is None
        question = "Password for a new key file" if new else f"Password of {given.keystore}"
        write_private_file(password_file, typer.prompt(question, hide_input=True, confirmation_prompt=new) + "\n")
        typer.echo(f"The password is stored in {password_file}, so that the node can start without you.")
    if given.keystore is not None:
        account = open_keystore(given.keystore.expanduser(), password_file)
        write_private_file(home / "key.json", given.keystore.expanduser().read_bytes())
        return str(account.address)
    if (home / "key.json").exists():  # from an interrupted init: the account may hold money already
        return str(open_keystore(home / "key.json", password_file).address)
    password = _read_password(password_file)
    account = Account.create()
    write_keystore(home / "key.json", account, password)
    return str(account.address)


def _read_password(path: Path) -> str:
    """Raises KeystoreError."""
    password = read_private_file(path).rstrip("\n")
    if not password:
        raise KeystoreError(f"{path} is empty: write the password into it, as one line")
    return password
