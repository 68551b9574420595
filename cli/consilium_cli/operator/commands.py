"""The commands of `consilium operator`. Imports nothing heavy at the start."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium_cli.addresses import checked_address
from consilium_cli.artifacts import open_artifacts, open_quietly
from consilium_cli.options import AddressBookOption, ArtifactsOption, RpcOption, TaskArgument, YesOption
from consilium_cli.prediction import ClampOption, MappingOption, ModelArgument, warn_unverified

if TYPE_CHECKING:
    from consilium_chain.ledger.ledger import Ledger
    from consilium_operators.proposals import Dialogue
    from consilium_operators.watching import Follower
    from consilium_verify.report import Report

app = typer.Typer(help="Tasks: propose, fund, stop and watch them, and use their models.", no_args_is_help=True)

TaskFileArgument = Annotated[Path, typer.Argument(metavar="TASK.toml", help="a task file, TOML")]
KeystoreOption = Annotated[
    Path | None, typer.Option(help="encrypted key file of the operator's account; not needed on the local chain")
]
PasswordFileOption = Annotated[Path | None, typer.Option(help="file with the key file's password, mode 600")]
PORT = 8_600


def _dialogue() -> Dialogue:
    """Asks on this terminal. Without a terminal the answer is no."""
    from consilium_operators.proposals import Dialogue

    def warn(text: str) -> None:
        typer.secho(text, fg=typer.colors.YELLOW)

    return Dialogue(typer.echo, warn, lambda question: sys.stdin.isatty() and typer.confirm(question))


@app.command("check")
def check(task: TaskFileArgument) -> None:
    """Checks a task file, and shows its costs and risks. Needs no chain."""
    from consilium_operators.proposals import read_task

    from consilium_cli.operator.estimate_screen import show

    show(*read_task(task))


@app.command("propose")
def propose(
    task: TaskFileArgument,
    *,
    artifacts: ArtifactsOption,
    aggregator: Annotated[str | None, typer.Option(help="the aggregator's account; not needed for a dry run")] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show the task and its cost, but send nothing")] = False,
    yes: YesOption = False,
    not_private: Annotated[
        bool,
        typer.Option(
            "--not-private", help="propose a task without [privacy]: nothing bounds what its sums reveal about a row"
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="propose it although this account has an open task with the same file")
    ] = False,
) -> None:
    """Shows a task's cost, asks, stores its file, and proposes it. The pool is paid at once."""
    from consilium_operators import proposals
    from consilium_verify.verification import reader

    from consilium_cli.operator.estimate_screen import show

    raw, spec = proposals.read_task(task)
    found = show(raw, spec, reader(rpc, address_book).chain_terms())
    if dry_run:
        typer.echo("\ndry run: nothing was sent")
        return
    ledger = proposals.operator_ledger(rpc, address_book, keystore, password_file)
    agreed = proposals.Agreed(yes, again, not_private)
    store, named = (
        open_artifacts(artifacts),
        None if aggregator is None else checked_address(aggregator, "--aggregator"),
    )
    proposals.propose(ledger, store, raw, found, named, agreed, _dialogue())


@app.command("fund")
def fund(
    task: TaskArgument,
    amount: Annotated[int, typer.Argument(min=1, metavar="TOKENS", help="whole tokens to add")],
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    yes: YesOption = False,
) -> None:
    """Adds tokens to a task's pool while nodes join: shows the new pay of a round, asks, and pays."""
    from consilium_operators import proposals

    ledger = proposals.operator_ledger(rpc, address_book, keystore, password_file)
    proposals.fund(ledger, task, amount, yes, _dialogue())


@app.command("stop")
def stop(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
    yes: YesOption = False,
) -> None:
    """Stops a task after its current round, which is still paid. Then the rest of the pool comes back."""
    from consilium_operators import proposals

    proposals.stop(proposals.operator_ledger(rpc, address_book, keystore, password_file), task, yes, _dialogue())


@app.command("refund")
def refund(
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Transfers the rest of ended tasks' pools to the operator's account."""
    from consilium_operators import proposals

    proposals.refund(proposals.operator_ledger(rpc, address_book, keystore, password_file), _dialogue())


@app.command("watch")
def watch(
    task: TaskArgument,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    once: Annotated[bool, typer.Option("--once", help="print the task's state and end")] = False,
    mlflow: Annotated[
        str | None, typer.Option(help="URL of an MLflow server that gets a point of each round", metavar="URI")
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="folder (TensorBoard's --logdir) that gets a point of each round")
    ] = None,
    artifacts: Annotated[
        list[str] | None,
        typer.Option(
            help="artifact store, a folder or URL: at the end the model and its proof go to the trackers, too"
        ),
    ] = None,
) -> None:
    """Prints a task's events from its proposal on, until it ends. You can stop it and start it again at any time.

    In words on a terminal, otherwise one JSON object per line. Tracked points are not doubled by a second start.
    """
    from consilium_core.live import on_terminal
    from consilium_operators.watching import WATCHED, Watcher
    from consilium_verify.verification import reader

    tracks = mlflow is not None or tensorboard is not None
    if artifacts and not tracks:
        raise typer.BadParameter("goes only with --mlflow or --tensorboard", param_hint="--artifacts")
    if once and tracks:
        raise typer.BadParameter("goes without --mlflow and --tensorboard", param_hint="--once")
    if mlflow is not None:
        _check_server(mlflow)
    with on_terminal(WATCHED):
        ledger = reader(rpc, address_book)
        if once:
            Watcher(ledger, task).log_status()
        else:
            follower = _tracking(ledger, task, mlflow, tensorboard, artifacts) if tracks else None
            Watcher(ledger, task, follower).run()


def _check_server(uri: str) -> None:
    """Raises typer.BadParameter, without the URI: it may have a password."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(uri)
        is_server = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_server = False
    if not is_server:
        raise typer.BadParameter("this is not the URL of a server: write http://… or https://…", param_hint="--mlflow")
    if "@" in parts.netloc:
        raise typer.BadParameter(
            "leave user and password out, and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD",
            param_hint="--mlflow",
        )


def _tracking(
    ledger: Ledger, task: int, mlflow: str | None, tensorboard: Path | None, artifacts: list[str] | None
) -> Follower:
    """Raises Refused (TaskUnknown), OperatorError (TrackingFailed)."""
    from consilium_operators.tracking.follower import Tracker, Tracking, tracked_task

    tracked, trackers = tracked_task(ledger, task), list[Tracker]()
    if tensorboard is not None:
        from consilium_operators.tracking.tensorboard_files import TensorBoardFiles

        trackers.append(TensorBoardFiles(tensorboard, tracked))
    if mlflow is not None:
        from consilium_operators.tracking.mlflow_server import MlflowServer

        trackers.append(MlflowServer(mlflow, tracked))
    if not artifacts:
        return Tracking(trackers)
    from consilium_operators.download import download

    store = open_quietly(artifacts)
    return Tracking(trackers, lambda output: download(ledger, store, task, output))


@app.command("download-model")
def download_model(
    task: TaskArgument,
    *,
    output: Annotated[Path, typer.Option(help="new folder for the model, its card and its proof")],
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="write the model although checks fail; its files say so")
    ] = False,
    mapping: Annotated[
        Path | None, typer.Option(help="mapping to write into the model, for its users' files (docs/data.md)")
    ] = None,
    measure_on: Annotated[
        list[Path] | None,
        typer.Option(help="file or folder of held-out rows, to measure accuracy after each round; may be repeated"),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="write over an earlier model of this task")] = False,
) -> None:
    """Derives a task's model from chain and artifacts, checks each round as `consilium verify` does, and writes it."""
    from consilium_operators.download import Options, download
    from consilium_verify.verification import reader

    options = Options(unverified, measure_on or (), replace, mapping)
    index = download(reader(rpc, address_book), open_artifacts(artifacts), task, output, options, _show_round)
    typer.echo(f"the model after round {index.round} of {index.rounds}, SHA-256 of its parameters {index.sha256}")
    if index.measured is not None:
        start, *_, last = index.measured.rounds
        typer.echo(
            f"accuracy on {index.measured.rows} held-out rows: {last.accuracy:.3f}, before the first round"
            f" {start.accuracy:.3f}"
        )
    if not index.verified:
        typer.secho(f"NOT VERIFIED: checks fail; {output / 'model-card.md'} lists them", fg="red")
    typer.echo(f"Next: consilium operator serve-model {output}")
    typer.echo(f"      consilium operator evaluate {output} --data labelled.csv")
    typer.echo(f"      consilium predict {output} --input rows.csv --output predictions.csv")


def _show_round(report: Report) -> None:
    from consilium_verify.report import Result

    fails, unchecked, subject = report.named(Result.FAILS), report.named(Result.UNCHECKED), report.subject
    words = f"FAILS: {', '.join(fails)}" if fails else "holds"
    aside = f" (not checked: {', '.join(unchecked)})" if unchecked else ""
    line = f"round {subject.round} of {subject.rounds}, {subject.outcome}: {words}{aside}"
    typer.secho(line, fg="red" if fails else None)


@app.command("serve-model")
def serve_model(
    folder: ModelArgument,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port on loopback")] = PORT,
    clamp: ClampOption = False,
) -> None:
    """Serves a model's predictions over HTTP, on this machine only, until Ctrl-C. Rows go to POST /predict."""
    from consilium_operators.model_server import serve

    serve(folder, port, clamp)


@app.command("evaluate")
def evaluate(
    model: ModelArgument,
    *,
    data: Annotated[Path, typer.Option(help="labelled data: CSV or Parquet; a folder of texts or images")],
    mapping: MappingOption = None,
    site_column: Annotated[str | None, typer.Option(help="column of the data that names each row's site")] = None,
    output: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="new file for the result, JSON; the curve's picture goes beside it, PNG"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="seed of the intervals' draws")] = 0,
    clamp: ClampOption = False,
) -> None:
    """Measures a model on labelled rows: metrics with 95 % intervals, calibration, and each site apart."""
    from consilium_operators.evaluation import evaluate
    from consilium_operators.model_folder import read_model
    from consilium_operators.prediction import Predictor
    from consilium_operators.prediction_file import require_free
    from rich.console import Console

    from consilium_cli.operator.evaluation_screen import show, write

    if output is not None:
        if output.suffix == ".png":
            raise typer.BadParameter(
                "pass a name such as result.json; the picture goes beside it", param_hint="--output"
            )
        require_free(output)
        require_free(output.with_suffix(".png"))
    predictor = Predictor(read_model(model), clamp)
    warn_unverified(predictor.saved.index.verified)
    used = predictor.read(data, mapping, site_column, labelled=True)
    probabilities = predictor.probabilities(used.examples)
    report = evaluate(predictor.saved, used.examples.labels, probabilities, used.own, seed)
    show(Console(), report)
    if output is not None:
        write(report, output)
