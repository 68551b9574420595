"""`hospital init` and `voter init`: ask for settings, make a home, and show its connections."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from consilium.client import Client
from consilium.homes import checked_book, checked_locations, checked_report_to, checked_sponsor, new_folder
from consilium.invites import Invitation
from consilium.machine import Level
from consilium.voter import Voter
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC, Role
from consilium_core.errors import ConfigInvalid

from consilium_cli.addresses import checked_address
from consilium_cli.doctor.screen import show_findings
from consilium_cli.nodes.asking import ask, confirmed, elsewhere
from consilium_cli.nodes.invite_screen import show_invite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANY: Literal["any"] = "any"


@dataclass(frozen=True)
class Answers:
    """The values of options. If one is None, the command asks for it, or takes a default."""

    chain_url: str | None
    address_book: Path | None
    artifacts: list[str] | None
    data: Path | None
    mapping: Path | None
    report_to: str | None
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
    withdrawal_address: str | None = None
    invite: str | None = None
    yes: bool = False


def init_home(role: Role, home: Path, options: Answers, offline: bool, like: Path | None) -> None:
    """Writes nothing before all values are known and valid."""
    if options.invite is not None and (offline or like is not None or options.address_book is not None):
        raise typer.BadParameter("goes without --address-book, --like and --offline", param_hint="--invite")
    kind: type[Client] | type[Voter] = Client if role is Role.HOSPITAL else Voter
    invite = None
    if options.invite is not None:
        invite = Invitation.open(options.invite, chain_url=options.chain_url, artifacts=options.artifacts)
    made = _like(kind, home, like, options) if like is not None else _new(kind, role, home, options, invite)
    if not offline:
        _check_home(made)
    of_hospital = "hospital tasks" if invite is None else "hospital join"
    if invite is not None and not invite.invite.shards:
        of_hospital += f" {invite.invite.task}"
    then = of_hospital if role is Role.HOSPITAL else "voter register"
    typer.echo(f"\nNext: consilium {then}{elsewhere(role, made.folder)}")


def _new(
    kind: type[Client] | type[Voter], role: Role, folder: Path, options: Answers, invite: Invitation | None
) -> Client | Voter:
    home, is_hospital = new_folder(folder), role is Role.HOSPITAL
    promise = (
        "Nothing leaves it before you have joined a task."
        if is_hospital
        else "It stakes nothing before `register`, and joins nothing before `run`."
    )
    typer.echo(f"This makes a {role}'s home in {home}. {promise}\n")
    called = "This hospital's data" if is_hospital else "This voter's held-out rows"
    if invite is None:
        values = _ask_settings(options, called)
        values |= _ask_hospitals_rules(options) if is_hospital else _ask_voters_rules(options)
    else:
        values = _take(invite, role, options, called)
    made = kind.create(
        home,
        **values,
        keystore=options.keystore,
        password_file=options.password_file,
        password=_password(home, options) if invite is None or options.keystore is not None else None,
    )
    settings = made.settings
    typer.echo(
        f"\naccount {made.account}\nkey     {settings.keystore}, encrypted; keep a copy of it and of its password\n"
        f"paid    {settings.withdrawal_address or 'this account; --withdrawal-address names another'}"
    )
    typer.echo(f"policy  {settings.policy}: the tasks that may be joined; read it, and change it as you like")
    return made


def _ask_settings(options: Answers, data_called: str) -> dict[str, Any]:
    chain_url = ask(options.chain_url, "Chain node (HTTP URL)", "--chain-url", LOCAL_RPC)
    book = checked_book(
        ask(options.address_book, "The contracts' address book (file)", "--address-book", str(LOCAL_ADDRESS_BOOK))
    )
    artifacts = options.artifacts or [ask(None, "Artifact store (folder or URL)", "--artifacts")]
    with _hinted("--artifacts"):
        checked_locations(artifacts)
    data, mapping = _data_of(options, data_called)
    if options.report_to is not None:
        with _hinted("--report-to"):
            checked_report_to(options.report_to)
    if options.withdrawal_address is not None:
        checked_address(options.withdrawal_address, "--withdrawal-address")
    return {
        "chain_url": chain_url, "address_book": book, "artifacts": artifacts, "data": data, "mapping": mapping,
        "report_to": options.report_to, "withdrawal_address": options.withdrawal_address,
    }  # fmt: skip


def _take(invite: Invitation, role: Role, options: Answers, data_called: str) -> dict[str, Any]:
    """Shows an invite with the policy that it proposes, and asks for the data. Raises InviteRefused."""
    names = ("operators", "models", "columns", "metrics", "hours", "max_bond", "max_tasks")
    rules = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    rules = {name: ANY if rule == [ANY] else rule for name, rule in rules.items()}
    invite.require_from(rules.get("operators", ANY))
    show_invite(invite, invite.policy(role) | rules, options.chain_url)
    data, mapping = _data_of(options, data_called)
    sponsor = ("sponsor_url", "sponsor_ca") if role is Role.HOSPITAL else ()
    own = ("chain_url", "artifacts", "report_to", "withdrawal_address", *sponsor)
    given = {name: getattr(options, name) for name in own}
    question = "\nMake the home with this policy?"
    return {
        "invite": invite, "data": data, "mapping": mapping, **given, **rules,
        "confirm": lambda _: confirmed(options.yes, question),
    }  # fmt: skip


def _data_of(options: Answers, called: str) -> tuple[Path, Path | None]:
    data = _existing(ask(options.data, f"{called} (file or folder)", "--data"), "--data")
    return data, None if options.mapping is None else _existing(str(options.mapping), "--mapping")


def _ask_hospitals_rules(options: Answers) -> dict[str, Any]:
    found = _ask_names(options, "trained")
    columns = _names(options.columns, "Columns that tasks may use (the task's names, or any)", "--column", ANY)
    if options.sponsor_url is not None:
        with _hinted("--sponsor-url"):
            checked_sponsor(options.sponsor_url, options.sponsor_ca)
    sponsor = {"sponsor_url": options.sponsor_url, "sponsor_ca": options.sponsor_ca}
    return {**found, "columns": columns, "hours": options.hours, **sponsor}


def _ask_voters_rules(options: Answers) -> dict[str, Any]:
    found = _ask_names(options, "judged")
    metrics = _names(options.metrics, "Metrics by which tasks may be judged (names, or any)", "--metric", ANY)
    return {**found, "metrics": metrics, "max_bond": options.max_bond, "max_tasks": options.max_tasks}


def _ask_names(options: Answers, done: str) -> dict[str, Any]:
    question = "Operators whose tasks may be joined (addresses, or any)"
    return {
        "operators": _names(options.operators, question, "--operator"),
        "models": _names(options.models, f"Model families that may be {done} (names, or any)", "--model", ANY),
    }


def _names(option: list[str] | None, question: str, flag: str, default: str | None = None) -> list[str] | str:
    words = option if option is not None else [part.strip() for part in ask(None, question, flag, default).split(",")]
    names = [name for name in words if name]
    return ANY if names == [ANY] else names


@contextmanager
def _hinted(flag: str) -> Iterator[None]:
    """Raises BadParameter about this option for a ConfigInvalid."""
    try:
        yield
    except ConfigInvalid as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


def _existing(path: str, flag: str) -> Path:
    found = Path(path).expanduser().absolute()
    if not found.exists():
        raise typer.BadParameter(f"{found} does not exist", param_hint=flag)
    return found


def _password(home: Path, options: Answers) -> Callable[[], str]:
    def asked() -> str:
        if not sys.stdin.isatty():
            raise typer.BadParameter("pass this option: there is no terminal to ask on", param_hint="--password-file")
        new = options.keystore is None
        question = "Password for a new key file" if new else f"Password of {options.keystore}"
        password = str(typer.prompt(question, hide_input=True, confirmation_prompt=new))
        typer.echo(f"The password is stored in {home / 'password'}, so that the node can start without you.")
        return password

    return asked


def _like(kind: type[Client] | type[Voter], folder: Path, like: Path, options: Answers) -> Client | Voter:
    """A home for other contracts. Raises HomeMissing, HomeTaken, DeploymentInvalid, SameContracts."""
    values = {name: value for name, value in asdict(options).items() if name != "yes"}
    book = ask(values.pop("address_book"), "The other contracts' address book", "--address-book")
    if any(value is not None for value in values.values()):
        raise typer.BadParameter(
            "goes only with --address-book, --home and --offline: all else comes from the other home",
            param_hint="--like",
        )
    made = kind.create_like(folder, like, book)
    typer.echo(
        f"The home {made.folder} is for the contracts of {book}. Account, policy and data are those of {like}:"
        " changes there apply here. Do not remove that home, and back up both."
    )
    return made


def _check_home(home: Client | Voter) -> None:
    """Ends the program if the connections have a fault."""
    found = home.connections()
    show_findings(found)
    if any(one.level is Level.FAULT for one in found):
        raise typer.Exit(1)
