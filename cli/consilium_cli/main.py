"""Entry point. Commands import heavy modules when they run: `consilium --help` loads no torch, no Flower, no web3."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import consilium
import typer

from consilium_cli.arena import arena_command
from consilium_cli.artifacts import app as artifacts
from consilium_cli.chain import app as chain
from consilium_cli.data import app as data
from consilium_cli.doctor.command import doctor_command
from consilium_cli.ensembles import app as ensemble
from consilium_cli.hospital.commands import app as hospital
from consilium_cli.lab import demo_command, economics_command, up_command
from consilium_cli.market import buy_command, serve_command, verify_receipt_command
from consilium_cli.operator.commands import app as operator
from consilium_cli.plugin import app as plugin
from consilium_cli.prediction import predict_command
from consilium_cli.server import app as server
from consilium_cli.shares import app as shares
from consilium_cli.simulation import TaskByDefault, simulate_task_command
from consilium_cli.task import app as task
from consilium_cli.verify import verify_audit_command, verify_command, verify_evaluation_command, verify_report_command
from consilium_cli.voter.commands import app as voter

app = typer.Typer(
    help="Federated learning whose aggregation the chain itself verifies.",
    no_args_is_help=True,
    suggest_commands=False,  # click does it, too
    pretty_exceptions_enable=False,
)
simulate = typer.Typer(
    cls=TaskByDefault, help="Simulations: of a task on your own data, and of its economics.", no_args_is_help=True
)
app.add_typer(hospital, name="hospital")
app.add_typer(voter, name="voter")
app.add_typer(server, name="server")
app.add_typer(chain, name="chain")
app.add_typer(operator, name="operator")
app.add_typer(task, name="task")
app.add_typer(shares, name="shares")
app.add_typer(ensemble, name="ensemble")
app.add_typer(simulate, name="simulate")
app.add_typer(artifacts, name="artifacts")
app.add_typer(data, name="data")
app.add_typer(plugin, name="plugin")
app.command("demo")(demo_command)
app.command("up")(up_command)
app.command("doctor")(doctor_command)
app.command("arena")(arena_command)
app.command("predict")(predict_command)
app.command("serve")(serve_command)
app.command("buy")(buy_command)
app.command("verify")(verify_command)
app.command("verify-audit")(verify_audit_command)
app.command("verify-evaluation")(verify_evaluation_command)
app.command("verify-report")(verify_report_command)
app.command("verify-receipt")(verify_receipt_command)
simulate.command("task")(simulate_task_command)
simulate.command("economics")(economics_command)


@app.command("new-key")
def new_key_command(
    key_file: Annotated[Path, typer.Argument(help="new encrypted key file (Web3 Secret Storage)")] = Path("key.json"),
    password_file: Annotated[
        Path,
        typer.Option(help="file with its password, one line, mode 600; if there is none, a random password is written"),
    ] = Path("password"),
) -> None:
    """Makes an account for an aggregator or an operator: an encrypted key file and its password file."""
    address = consilium.new_key(key_file, password_file)
    key, password = key_file.absolute(), password_file.absolute()
    typer.echo(f"account  {address}\nkey      {key}, encrypted\npassword {password}")
    typer.echo("Keep copies of both files: without them all tokens of the account are lost.")
    typer.echo("Next: send it ether and tokens. On a local chain:")
    typer.echo(f"        consilium chain local fund {address} --tokens 100000")
    typer.echo("      as an operator:")
    typer.echo(f"        consilium operator propose TASK.toml --keystore {key} --password-file {password} …")
    typer.echo("      as an aggregator, write into its configuration:")
    typer.echo(f'        keystore = "{key}"\n        password_file = "{password}"')


@app.command("change-password")
def change_password_command(
    key_file: Annotated[Path, typer.Argument(help="encrypted key file (Web3 Secret Storage), of any role")],
    password_file: Annotated[Path, typer.Option(help="file with its password, one line, mode 600")],
    new_password_file: Annotated[Path, typer.Option(help="file with its new password, one line, mode 600")],
) -> None:
    """Encrypts a key file again with a new password. The account and its key stay the same."""
    address = consilium.change_password(key_file, password_file, new_password_file)
    typer.echo(f"{key_file}, the key of {address}, now opens with the password in {new_password_file}")
    typer.echo(f"Next: mv {new_password_file} {password_file}, before you start again any process that uses them.")
    typer.echo("Running processes go on. Copies of the key file still open with the old password: replace them.")


# The extra of each group of commands; the others need `client`.
EXTRAS = {
    "demo": "demo", "simulate": "demo", "up": "demo", "server": "server", "doctor": "client,server",
    "operator": "client,server", "task": "demo",
}  # fmt: skip
EXTRAS_OF_MODULES = {"mlflow": "tracking", "tensorboard": "tracking"}

# Ways out by errno, for a path that somebody chose.
PATH_FAULTS = {
    errno.EACCES: "give this user access to it, or name another path",
    errno.EPERM: "give this user access to it, or name another path",
    errno.EEXIST: "a folder is needed here, and this is a file: name another path",
    errno.ENOTDIR: "a part of it is a file, not a folder: name another path",
    errno.EISDIR: "a file is needed here, and this is a folder: name another path",
}


def main() -> None:
    """Runs the command line."""
    run(app)


def run(work: Callable[[], object]) -> None:
    """Does the work. A known error ends this process with one message, which has the error's name in the guides, and
    with exit code 1, or 3 if a node's owner has not allowed it.
    """
    # Exceptions, so that child processes are ended. SIGINT too: a shell's background jobs start with it ignored.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        work()
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("consilium_"):
            raise
        extra = EXTRAS_OF_MODULES.get(error.name.partition(".")[0]) or EXTRAS.get(sys.argv[1], "client")
        message = f"{error.name} is not installed, and this command needs it; run `pip install 'consilium[{extra}]'`"
        typer.secho(f"error (ExtraMissing): {message}", fg=typer.colors.RED, err=True)
        sys.exit(1)
    except Exception as error:
        from consilium_chain.errors import DISK_FAULTS
        from consilium_client.errors import FAILED, ClientError
        from consilium_core.faults import printed_name
        from consilium_core.visible_text import shown_lines

        name, message = printed_name(error), str(error)
        if isinstance(error, OSError) and error.errno in DISK_FAULTS:
            name = DISK_FAULTS[error.errno]
            path, why = error.filename or "a file", error.strerror
            message = f"{path} could not be written ({why}): free some space, and run the command again"
        elif isinstance(error, OSError) and (way_out := _way_out(error)):
            name, message = "PathUnusable", f"{error.filename} cannot be used ({error.strerror}): {way_out}"
        elif not _is_ours(error):
            raise
        typer.secho(f"error ({name}): {shown_lines(message)}", fg=typer.colors.RED, err=True)
        sys.exit(error.exit_code if isinstance(error, ClientError) else FAILED)


def _way_out(error: OSError) -> str | None:
    """For a path that somebody chose. A missing file whose folder is there is a bug, and needs a trace."""
    if not isinstance(error.filename, str):
        return None
    if error.errno == errno.ENOENT:
        return None if Path(error.filename).parent.exists() else "make its folder first, or correct the path"
    return PATH_FAULTS.get(error.errno or 0)


def _is_ours(error: Exception) -> bool:
    """True for errors of this project: they say their cause and the remedy. Others are bugs, and need a trace."""
    return any(kind.__module__.startswith("consilium_") for kind in type(error).__mro__)


if __name__ == "__main__":
    main()
