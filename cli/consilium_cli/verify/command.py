"""`consilium verify`'s command line, parsed before anything heavy is imported."""

from __future__ import annotations

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


def verify_command(
    task: TaskArgument,
    round_: Annotated[
        int | None, typer.Argument(metavar="[ROUND]", min=0, help="0 for the statistics; by default the last settled")
    ] = None,
    *,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    as_json: Annotated[bool, typer.Option("--json", help="say it as JSON")] = False,
) -> None:
    """Checks a round from chain and artifacts alone, and says what is proven and what is not.

    ROUND is by default the last one settled, 0 the statistics. Ends with 1 if anything fails.
    """
    from consilium_chain.deploying.address_book import Deployment
    from consilium_chain.ledger.ledger import Ledger
    from consilium_chain.rpc.connection import Connection
    from consilium_verify.audit import audit, last_settled

    from consilium_cli.verify.screen import show

    deployment = Deployment.read(address_book)
    ledger = Ledger(Connection(rpc), deployment)
    report = audit(ledger, open_artifacts(artifacts), task, last_settled(ledger, task) if round_ is None else round_)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report)
    if not report.holds:
        raise typer.Exit(1)
