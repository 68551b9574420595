"""Entry point. Commands import what they need when they run: `consilium --help` loads no torch, no Flower, no web3."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from consilium_lab.demo.options import DemoOptions, demo_command
from consilium_lab.economics.options import economics_command
from consilium_lab.up.options import up_command

from consilium_cli.artifacts import app as artifacts
from consilium_cli.audit import export_audit_command, verify_audit_command
from consilium_cli.deploy import deploy_command
from consilium_cli.doctor.command import doctor_command
from consilium_cli.evaluation import open_evaluation_command, verify_evaluation_command
from consilium_cli.hospital.commands import app as hospital
from consilium_cli.jobs import jobs_command
from consilium_cli.operator.commands import app as operator
from consilium_cli.password import change_password_command
from consilium_cli.verify.command import verify_command
from consilium_cli.voter.commands import app as voter

app = typer.Typer(
    help="Federated learning whose aggregation the chain itself verifies.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
server = typer.Typer(
    help="The aggregator, who pays hospitals' gas, the index, the HTTP API, and jobs for all that.",
    no_args_is_help=True,
)
chain = typer.Typer(help="Chains and contracts.", no_args_is_help=True)
simulate = typer.Typer(help="Simulations: what would happen if.", no_args_is_help=True)
app.add_typer(hospital, name="hospital")
app.add_typer(voter, name="voter")
app.add_typer(server, name="server")
app.add_typer(chain, name="chain")
app.add_typer(operator, name="operator")
app.add_typer(simulate, name="simulate")
app.add_typer(artifacts, name="artifacts")
app.command("demo")(demo_command)
app.command("up")(up_command)
app.command("doctor")(doctor_command)
app.command("change-password")(change_password_command)
app.command("verify")(verify_command)
app.command("verify-audit")(verify_audit_command)
app.command("verify-evaluation")(verify_evaluation_command)
voter.command("open-evaluation")(open_evaluation_command)
hospital.command("export-audit")(export_audit_command)
chain.command("deploy")(deploy_command)
simulate.command("economics")(economics_command)

ConfigOption = Annotated[Path, typer.Option("--config", help="the node's configuration, a TOML file")]

__all__ = ["DemoOptions", "app", "main"]


@server.command("run")
def server_run(config: ConfigOption) -> None:
    """Starts a SuperLink and conducts the configured task until it ends."""
    from consilium_chain.settings import read_settings
    from consilium_server.aggregator.node import Aggregator
    from consilium_server.config import AggregatorSettings

    Aggregator(read_settings(config, AggregatorSettings)).run()


@server.command("sponsor")
def server_sponsor(config: ConfigOption) -> None:
    """Pays for what the configured task's hospitals sign, so that they need no ether, until it is told to stop."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import SponsorSettings
    from consilium_server.sponsor.service import run

    run(read_settings(config, SponsorSettings))


@server.command("index")
def server_index(config: ConfigOption) -> None:
    """Follows the chain into the database, until it is told to stop."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import IndexerSettings
    from consilium_server.index.run import index

    index(read_settings(config, IndexerSettings))


@server.command("reindex")
def server_reindex(
    config: ConfigOption,
    replace: Annotated[
        bool, typer.Option("--replace", help="put what was built anew in the place of all rows")
    ] = False,
) -> None:
    """Builds the database's tables anew from the chain and the artifacts, and compares them row for row.

    CONFIG is an indexer's or a worker's.
    """
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.index.run import compare

    compare(read_settings(config, WorkerSettings).indexer, replace)


@server.command("worker")
def server_worker(config: ConfigOption) -> None:
    """Indexes, moves tasks on whose time is up, runs the account's aggregators and copies artifacts, until stopped."""
    from consilium_chain.settings import read_settings
    from consilium_server.config import WorkerSettings
    from consilium_server.jobs.worker import work

    work(read_settings(config, WorkerSettings))


server.command("jobs")(jobs_command)


@server.command("api")
def server_api(config: ConfigOption) -> None:
    """Serves what is indexed over HTTP, and stores the task files of who signs in, until it is told to stop."""
    from consilium_chain.settings import read_settings
    from consilium_server.api.app import run
    from consilium_server.config import ApiSettings

    run(read_settings(config, ApiSettings))


@server.command("openapi")
def server_openapi() -> None:
    """Prints what the API takes and answers (OpenAPI 3.1), to generate clients from."""
    import json

    from consilium_server.api.app import document

    typer.echo(json.dumps(document()))


@chain.command("local")
def chain_local(
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port on loopback")] = 8545,
    address_book: Annotated[Path, typer.Option(help="where to write the contracts' addresses")] = Path(
        ".consilium/local.json"
    ),
) -> None:
    """Runs a local chain with the contracts deployed, until Ctrl-C."""
    from consilium_chain.deploying.address_book import deploy
    from consilium_chain.rpc.connection import Connection
    from consilium_chain.rpc.local_node import FAUCET_KEY, LocalNode
    from eth_account import Account

    with LocalNode(port) as node:
        deployment = deploy(Connection(node.url, Account.from_key(FAUCET_KEY)))
        address_book.parent.mkdir(parents=True, exist_ok=True)
        deployment.write(address_book)
        typer.echo(f"chain {deployment.chain_id} at {node.url}, addresses in {address_book}; Ctrl-C ends it")
        node.process.wait()


def main() -> None:
    """Runs the command line; known errors end it with exit code 1, or 3 for what a node's owner has not allowed, their
    name, by which the guides list them, and one message, without a trace.
    """
    # As exceptions, so that children are ended; explicitly, for a shell's background jobs start with SIGINT ignored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        from consilium_chain.errors import DISK_FAULTS
        from consilium_client.errors import FAILED, ClientError
        from consilium_core.faults import FaultError
        from consilium_core.visible_text import shown_lines

        name, said = error.name if isinstance(error, FaultError) else type(error).__name__, str(error)
        if isinstance(error, OSError) and error.errno in DISK_FAULTS:
            name = DISK_FAULTS[error.errno]
            said = f"{error.filename or 'a file'} could not be written ({error.strerror}): make room, and run it again"
        elif not _is_ours(error):
            raise
        typer.secho(f"error ({name}): {shown_lines(said)}", fg=typer.colors.RED, err=True)
        sys.exit(error.exit_code if isinstance(error, ClientError) else FAILED)


def _is_ours(error: Exception) -> bool:
    """Errors of this project's packages carry their cause and the way out; any other is a fault worth a trace."""
    return any(kind.__module__.startswith("consilium_") for kind in type(error).__mro__)


if __name__ == "__main__":
    main()
