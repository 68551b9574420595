"""The commands of `consilium operator`. Imports nothing heavy at the start."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import consilium
import typer
from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC
from consilium_core.logs import emit
from consilium_core.units import tokens

from consilium_cli.addresses import checked_address
from consilium_cli.artifacts import checked_locations, locations_to_read
from consilium_cli.asking import agrees
from consilium_cli.operator.exporting import export_onnx
from consilium_cli.operator.invite import finish_invite, invite
from consilium_cli.operator.proposal_screen import (
    agrees_to,
    in_question,
    show_funding,
    show_plan,
    show_proposed,
)
from consilium_cli.options import (
    AddressBookOption,
    ArtifactsOption,
    KeystoreOption,
    PasswordFileOption,
    RpcOption,
    SeedOption,
    TaskArgument,
    YesOption,
)
from consilium_cli.prediction import ClampOption, LocalOption, MappingOption, ModelArgument, warn_unverified

if TYPE_CHECKING:
    from consilium_operators.proposals import Funding
    from consilium_operators.watching import TaskStatus
    from consilium_verify.report import Report

app = typer.Typer(help="Tasks: propose, fund, stop and watch them, and use their models.", no_args_is_help=True)

TaskFileArgument = Annotated[Path, typer.Argument(metavar="TASK.toml", help="a task file, TOML")]
PORT = 8_600


@app.command("check")
def check(task: TaskFileArgument) -> None:
    """Checks a task file, and shows its costs and risks. Needs no chain."""
    from consilium_cli.operator.estimate_screen import show

    read = consilium.Task.read(task)
    show(read, read.estimate())
    read.require_fair()


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
    from consilium_cli.operator.estimate_screen import show

    read = consilium.Task.read(task)
    show(read, read.estimate(rpc, address_book))
    read.require_fair()
    if dry_run:
        typer.echo("\ndry run: nothing was sent")
        return
    operator = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    locations = locations_to_read(artifacts)
    named = None if aggregator is None else checked_address(aggregator, "--aggregator")
    proposed = operator.propose(
        read, aggregator=named, artifacts=locations, not_private=not_private, again=again, on_plan=show_plan,
        confirm=lambda plan: agrees_to(plan, yes, again),
    )  # fmt: skip
    show_proposed(proposed, read.spec, named)


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

    def confirm(plan: Funding) -> bool:
        return yes or agrees(f"\nAdd {tokens(plan.amount)} tokens to the pool of task {task}?")

    operator = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    funded = operator.fund(task, amount, on_plan=show_funding, confirm=confirm)
    typer.echo(f"the pool of task {task} has {tokens(funded.pool + funded.amount)} tokens")


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
    operator = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    stopped = operator.stop(task, confirm=lambda plan: yes or agrees(in_question(plan)))
    if stopped.last is None:
        typer.echo(f"task {task} has ended, and the rest of its pool is in the operator's account")
    else:
        typer.echo(f"task {task} ends with round {stopped.last}; then `consilium operator refund` takes back the rest")


app.command("invite")(invite)
app.command("finish-invite")(finish_invite)


@app.command("refund")
def refund(
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    keystore: KeystoreOption = None,
    password_file: PasswordFileOption = None,
) -> None:
    """Transfers the rest of ended tasks' pools to the operator's account."""
    operator = consilium.Operator(rpc, address_book, keystore=keystore, password_file=password_file)
    typer.echo(f"{tokens(operator.refund())} tokens came back to {operator.address}")


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
    from consilium_operators.event_words import WATCHED

    tracks = mlflow is not None or tensorboard is not None
    if artifacts and not tracks:
        raise typer.BadParameter("goes only with --mlflow or --tensorboard", param_hint="--artifacts")
    if once and tracks:
        raise typer.BadParameter("goes without --mlflow and --tensorboard", param_hint="--once")
    if mlflow is not None:
        _check_server(mlflow)
    locations = checked_locations(artifacts) if artifacts else []
    with on_terminal(WATCHED):
        if once:
            _log_status(task, consilium.status(task, rpc=rpc, address_book=address_book))
            return
        for event in consilium.watch(
            task, rpc=rpc, address_book=address_book, mlflow=mlflow, tensorboard=tensorboard, artifacts=locations
        ):
            emit(event.name, block=event.block, block_time=event.time, **event.values)


def _log_status(task: int, found: TaskStatus) -> None:
    """Logs the task's state, then each finished round."""
    fields = asdict(found)
    rounds = fields.pop("finished")
    emit("status", task_number=task, **fields | {"pool_left": str(found.pool_left), "pool": str(found.pool)})
    for one in rounds:
        emit("round", **one)


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


@app.command("statistics")
def statistics(
    task: TaskArgument,
    *,
    artifacts: ArtifactsOption,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, with all counts")] = False,
    picture: Annotated[
        Path | None, typer.Option(dir_okay=False, help="file for the histograms, PNG; needs matplotlib")
    ] = None,
) -> None:
    """Shows the summary that round 0 counted over all hospitals' rows, once its checks hold."""
    found = consilium.statistics(task, artifacts=locations_to_read(artifacts), rpc=rpc, address_book=address_book)
    if picture is not None:
        picture.write_bytes(found.picture())
    if as_json:
        import json

        typer.echo(json.dumps(asdict(found), indent=2))
        return
    from rich.console import Console

    from consilium_cli.operator.summary_screen import show

    show(Console(), found)


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
    onnx: Annotated[bool, typer.Option("--onnx", help="then write model.onnx, as export-onnx does")] = False,
) -> None:
    """Derives a task's model from chain and artifacts, checks each round as `consilium verify` does, and writes it."""
    locations = locations_to_read(artifacts)
    index = consilium.download_model(
        task, output, artifacts=locations, rpc=rpc, address_book=address_book, unverified=unverified,
        measure_on=measure_on or (), replace=replace, mapping=mapping, on_report=_show_round,
    )  # fmt: skip
    typer.echo(f"the model after round {index.round} of {index.rounds}, SHA-256 of its parameters {index.sha256}")
    if index.measured is not None:
        (start, *_, last), metric = index.measured.rounds, index.measured.headline
        typer.echo(
            f"{metric.replace('_', ' ')} on {index.measured.rows} held-out rows: {last.of(metric):.3f}, before the"
            f" first round {start.of(metric):.3f}"
        )
    if not index.verified:
        typer.secho(f"NOT VERIFIED: checks fail; {output / 'model-card.md'} lists them", fg="red")
    if onnx:
        export_onnx(output)
    typer.echo(f"Next: consilium operator serve-model {output}")
    typer.echo(f"      consilium operator evaluate {output} --data labelled.csv --into-card")
    typer.echo(f"      consilium predict {output} --input rows.csv --output predictions.csv")


app.command("export-onnx")(export_onnx)


@app.command("export-hugging-face")
def export_hugging_face(
    folder: ModelArgument,
    *,
    output: Annotated[Path, typer.Option(help="new folder, to upload")],
    licence: Annotated[str, typer.Option("--license", help="the Hub's identifier, such as apache-2.0")] = "unknown",
) -> None:
    """Writes a model in the layout of Hugging Face's Hub: model card, config, and an adapter for peft if it is one."""
    consilium.export_hugging_face(folder, output, licence=licence)
    typer.echo(f"Next: hf upload OWNER/NAME {output}")


def _show_round(report: Report) -> None:
    fails, unchecked, subject = report.failed, report.unchecked, report.subject
    words = f"FAILS: {', '.join(fails)}" if fails else "holds"
    aside = f" (not checked: {', '.join(unchecked)})" if unchecked else ""
    line = f"round {subject.round} of {subject.rounds}, {subject.outcome}: {words}{aside}"
    typer.secho(line, fg="red" if fails else None)


@app.command("serve-model")
def serve_model(
    folder: ModelArgument,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="port on loopback")] = PORT,
    clamp: ClampOption = False,
    local: LocalOption = None,
) -> None:
    """Serves a model's predictions over HTTP, on this machine only, until Ctrl-C. Rows go to POST /predict."""
    model = consilium.Model.read(folder, local=local)

    def on_start(url: str) -> None:
        warn_unverified(model.verified)
        typer.echo(f"{model.name}, SHA-256 {model.sha256}, at {url}; press Ctrl-C to end it")

    model.serve(port, clamp=clamp, on_start=on_start)


@app.command("evaluate")
def evaluate(
    model: ModelArgument,
    *,
    data: Annotated[
        Path | None, typer.Option(help="labelled data: CSV or Parquet; a folder of texts or images")
    ] = None,
    sites: Annotated[
        list[Path] | None,
        typer.Option(help="report that a node of the task wrote by `evaluate --share`; may be repeated"),
    ] = None,
    rpc: RpcOption = LOCAL_RPC,
    address_book: AddressBookOption = LOCAL_ADDRESS_BOOK,
    into_card: Annotated[
        bool, typer.Option("--into-card", help="also write the result into the model's folder and card")
    ] = False,
    mapping: MappingOption = None,
    site_column: Annotated[str | None, typer.Option(help="column of the data that names each row's site")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="new file for the result, JSON; a page (HTML) and the curve's picture (PNG) go beside it",
        ),
    ] = None,
    seed: SeedOption = 0,
    clamp: ClampOption = False,
    local: LocalOption = None,
) -> None:
    """Measures a model on labelled rows: metrics with 95 % intervals, sites, subgroups, importance, calibration.

    Beside them are the figures that the task's nodes share, of rows of their own.
    """
    from consilium_cli.evaluation_screen import of_operator, show

    if output is not None and output.suffix in (".png", ".html"):
        raise typer.BadParameter(
            "pass a name such as result.json; the page and the picture go beside it", param_hint="--output"
        )
    used = consilium.Model.read(model, local=local)
    warn_unverified(used.verified)
    found = used.evaluate(
        data, sites=sites or (), rpc=rpc, address_book=address_book, mapping=mapping, site_column=site_column,
        seed=seed, clamp=clamp, output=output,
    )  # fmt: skip
    show(of_operator(found.report))
    if into_card:
        found.add_to(model)
        typer.echo(f"added to {model / 'model-card.md'}")
    for path in found.written:
        typer.echo(f"written: {path}")
    if output is not None and output.with_suffix(".png") not in found.written:
        typer.echo("no picture of the calibration: `pip install 'consilium[demo]'` brings matplotlib")
