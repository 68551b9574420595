"""`consilium voter open-evaluation`, `consilium verify-evaluation`: whether a voter looked at its own rows.

Parsed before anything heavy is imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.artifacts import open_artifacts
from consilium_cli.options import (
    AddressBookOption,
    ArtifactsOption,
    RpcOption,
    TaskArgument,
)
from consilium_cli.voter.commands import HOME, HomeOption

CONSOLE_RESULTS = {True: ("holds", "green"), False: ("FAILS", "red"), None: ("not checked", "yellow")}


def open_evaluation_command(
    task: TaskArgument,
    round_: Annotated[int, typer.Argument(metavar="ROUND", min=1, help="of a ballot that this node revealed")],
    *,
    home: HomeOption = HOME,
    out: Annotated[Path, typer.Option(help="where to write what the auditor gets; as confidential as the rows")],
) -> None:
    """Writes what shows an auditor who holds this voter's rows that they were evaluated, as chance drew."""
    from consilium_chain.keystore import write_private_file
    from consilium_client.home import VoterHome
    from consilium_client.voter.ballots import Ballot, ballot_path, kept_held_out_secret
    from consilium_client.voter.disclosure import opened

    visited = VoterHome.open(home)
    ledger = visited.settings.connect()
    folder, place = visited.folder, ledger.folder_name(task)
    path = ballot_path(folder, place, round_, ledger.tasks.round_state(task, round_).seat_seed)
    opening = opened(ledger, task, Ballot.kept(path, round_), kept_held_out_secret(folder, place))
    write_private_file(out, opening.model_dump_json(indent=1))
    typer.echo(
        f"{len(opening.batches)} batches of round {round_} in {out}: for the auditor who holds these rows, and for"
        " nobody else"
    )


def verify_evaluation_command(
    file: Annotated[Path, typer.Argument(help="what `consilium voter open-evaluation` wrote")],
    *,
    data: Annotated[Path, typer.Option(help="the voter's rows, texts or images, as its node was given them")],
    mapping: Annotated[Path | None, typer.Option(help="how the file's columns become the schema's")] = None,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    drawn_only: Annotated[
        bool, typer.Option("--drawn-only", help="evaluates the drawn batches alone, and leaves the scores out")
    ] = False,
) -> None:
    """Checks, with a voter's rows in hand, that it evaluated them for its ballot. Ends with 1 if anything fails."""
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.errors import DeploymentInvalid
    from consilium_chain.ledger.ledger import Ledger
    from consilium_chain.rpc.connection import Connection
    from consilium_client.data.examples import read_examples
    from consilium_client.replay import PublicRecord
    from consilium_client.task import load_task
    from consilium_client.voter.disclosure import Opening
    from consilium_client.voter.disclosure_check import audit
    from consilium_client.voter.evaluating import Judge

    opening, book = Opening.read(file), Deployment.read(address_book)
    if (opening.chain_id, opening.contract) != (book.chain_id, book.tasks):
        raise DeploymentInvalid(
            f"{file} is of contract {opening.contract} on chain {opening.chain_id}, but {address_book} is of"
            f" {book.tasks} on chain {book.chain_id}: pass the one that fits"
        )
    ledger, store = Ledger(Connection(rpc), book), open_artifacts(artifacts)
    task = load_task(ledger, store, opening.task)
    examples = read_examples(data, task.spec.data, mapping)
    typer.echo(f"task {opening.task}, round {opening.round}, voter {opening.voter}")
    failed = False
    for finding in audit(ledger, Judge(task, PublicRecord(ledger, store, task), examples), opening, drawn_only):
        word, colour = CONSOLE_RESULTS[finding.holds]
        typer.echo(f"  {typer.style(f'{word:11}', fg=colour)}  {finding.name:12}  {finding.detail}")
        failed |= finding.holds is False
    if failed:
        raise typer.Exit(1)
