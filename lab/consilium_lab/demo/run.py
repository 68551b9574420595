"""Runs the demo."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Phase
from consilium_chain.rpc.local_node import LocalNode, require_free_port
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.models import model_of
from consilium_client.programs.library import offer
from consilium_core.kinds import of_kind
from consilium_core.locks import alone
from consilium_core.starter import Starter
from consilium_operators.drafting import MOST_LABELS, likely_draft, read_sample
from consilium_operators.errors import OperatorError
from consilium_operators.task_text import mapping_text
from consilium_operators.weights import store_weights
from rich.console import Console

from consilium_lab.demo.capacity import require_memory
from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.clock import Clock
from consilium_lab.demo.datasets import (
    DemoData,
    deal_heart,
    deal_medquad,
    deal_pneumonia,
    deal_wdbc,
    of_table,
    without_labels,
)
from consilium_lab.demo.generated import deal_recurrence
from consilium_lab.demo.network import REFERENCES, Network, Role, build, prepare_output, start, start_party
from consilium_lab.demo.options import DataSet, DemoOptions, check
from consilium_lab.demo.page import write_page
from consilium_lab.demo.processes import PRELOADED, Processes
from consilium_lab.demo.sales import SALE, faults_of_sales, sell
from consilium_lab.demo.screen import Screen, show_tables
from consilium_lab.demo.tally import faults, report
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_lab.errors import LabError
from consilium_lab.own_table import own_table, sites_of

LOCK_FILE = "in-use.lock"
POLL = 0.15
FAREWELL = 120.0  # longest time in seconds for the nodes to collect their money and leave
WINDOW = 600  # seconds of each phase, which ends early when all have acted: enough for a machine ten times slower
WINDOW_HOLDS_FOR = 32  # parties: all processes share the machine
PHASES = ("join", "commit", "upload", "publish", "score", "reveal")


@dataclass(frozen=True)
class DemoResult:
    """`report`: ready for JSON; as a page with pictures in `page`. `sound`: there is a model, all money is accounted
    for, and no party broke a rule of the demo.
    """

    report: dict[str, Any]
    page: Path
    sound: bool


def run_demo(options: DemoOptions, console: Console | None = None) -> DemoResult:
    """Runs the demo. `console`: shows it. Raises LabError and the rooms' own errors."""
    with alone(options.output / LOCK_FILE, LabError("FolderInUse", folder=options.output, option="--output")):
        require_memory(options.hospital_count, options.voters, options.data is DataSet.MEDQUAD)
        if options.chain_port is not None:
            require_free_port(options.chain_port, "the local chain (--chain-port)")
        with Starter(options.output, PRELOADED) as starter:  # it loads libraries meanwhile
            return _run(options, starter, console or Console(quiet=True))


def _run(options: DemoOptions, starter: Starter, console: Console) -> DemoResult:
    started = time.monotonic()
    data = deal(options)
    prepare_output(options.output)
    store, model = ArtifactStore(options.output / "artifacts"), None
    if options.program is not None:
        model = tomllib.loads(store_weights(store, options.program))["model"]
    limits = windows(options.hospital_count + options.voters)
    settings = TaskSettings(
        options.rounds, options.cohorts, options.seats, limits, digests=options.digests, masked=options.masked,
        epsilon=options.epsilon, strangers=options.strangers, codec=options.codec, model=model,
        sale=SALE if options.sell else None,
    )  # fmt: skip
    task_file = task_toml(data, settings).encode()
    spec = parse_task_spec(task_file)
    offer(store, spec)
    model_of(spec).require_installed()
    (options.output / "task.toml").write_bytes(task_file)
    screen = Screen(console, spec.rounds.rounds)
    screen.say(f"[bold]Consilium[/bold]: {data.description}")
    rows = ", ".join(f"{name} {len(frame)}" for name, frame in zip(data.hospital_names, data.hospitals, strict=True))
    screen.say(
        f"  rows by hospital: {rows}; held out by {len(data.held_out)} voters: {sum(map(len, data.held_out))};"
        f" {spec.in_words.size}"
    )
    with ExitStack() as stack:
        screen.begin("starting a local chain, deploying the contracts, funding the accounts")
        stack.callback(screen.end)
        log = stack.enter_context((options.output / "chain.log").open("wb"))
        logs = options.output / "logs"
        node = stack.enter_context(LocalNode(options.chain_port, log))
        network = build(options, data, task_file, node)
        processes = stack.enter_context(Processes(logs, starter))
        start(network, processes)
        screen.say(f"  {len(processes.running())} processes on loopback, chain at {node.url}")
        chronicle = Chronicle(network.treasury, network.task, started)
        follow(network, processes, chronicle, screen)
        _farewell(network, processes, chronicle, screen)
        wall = time.monotonic() - started
        screen.end()
        result = report(network, chronicle, _compared(chronicle), wall)
        if options.sell and result["final_metric"] is not None:
            result["sales"] = sell(network, processes, options.sell, screen.say)
        result["wall_s"] = round(time.monotonic() - started, 2)
        (options.output / "report.json").write_text(json.dumps(result, indent=2) + "\n")
        write_page(options.output / "report.html", result)
        show_tables(console, result)
    shown = options.output / "report.html"
    console.print(f"{result['wall_s']:.1f} s. Report with pictures, and the same as JSON beside it:\n  {shown}",
                  highlight=False, soft_wrap=True)  # fmt: skip
    reasons = faults(result) + faults_of_sales(result.get("sales"))
    for words in reasons:
        screen.say(f"[red]Broken[/red]: {words}")
    if not reasons:
        title = "Next, with your own table:" if options.table is None else "Next, a task file for this table:"
        commands = "\n  ".join(result["next"].splitlines())
        console.print(f"{title}\n  {commands}", highlight=False, soft_wrap=True)
    return DemoResult(result, shown, not reasons)


def windows(parties: int) -> dict[str, int]:
    """The longest duration of each phase in seconds."""
    return dict.fromkeys(PHASES, -(-WINDOW * max(parties, WINDOW_HOLDS_FOR) // WINDOW_HOLDS_FOR))


def fitted(options: DemoOptions) -> DemoOptions:
    """With as many hospitals as the table names. Raises ValueError for options that do not go together, DataError,
    OperatorError, LabError.
    """
    table = options.table
    if table is not None and table.sites is not None:
        options = replace(options, hospitals=len(sites_of(read_sample(table.file), table.sites)))
    check(options)
    return options


def deal(options: DemoOptions) -> DemoData:
    hospitals, voters, seed = options.hospital_count, options.voters, options.seed
    if options.table is not None:
        table = options.table
        sample = read_sample(table.file)
        draft = likely_draft(sample, table.label, table.sites, table.leave_out or None)
        schema = of_kind(TableSchema, draft.schema)
        if schema.question is not None:  # rows are dealt class by class
            (label,) = schema.question.columns
            raise OperatorError(
                "LabelNotClasses",
                path=table.file,
                column=label,
                found=len(sample.different(label)),
                at_most=MOST_LABELS,
            )
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "mapping.toml").write_text(mapping_text(draft.mapping, table.file.name))
        own = own_table(table.file, schema, draft.mapping, table.sites or hospitals, voters, seed)
        return of_table(own, f"{table.file.name}, by {schema.label} ({', '.join(schema.classes)})")
    if options.data is DataSet.RECURRENCE:
        return deal_recurrence(hospitals, voters, seed)
    if options.data is DataSet.WDBC or options.data_dir is None:
        return deal_wdbc(hospitals, voters, seed)
    if options.data is DataSet.HEART:
        return deal_heart(options.data_dir, voters, seed)
    if options.data is DataSet.MEDQUAD:
        return deal_medquad(options.data_dir, hospitals, voters, seed)
    if options.data is DataSet.MEDQUAD_TEXTS:
        return without_labels(deal_medquad(options.data_dir, hospitals, voters, seed))
    return deal_pneumonia(options.data_dir, hospitals, voters, seed)


def _compared(chronicle: Chronicle) -> dict[str, dict[str, float]]:
    """Reference trainings on the same rows, without the platform."""
    (line,) = chronicle.lines_of("compared")
    return {name: line.fields[name] for name in ("pooled", "local_only")}


def follow(network: Network, processes: Processes, chronicle: Chronicle, screen: Screen) -> None:
    """Shows the events until the task ends. Raises LabError (DemoFailed) if a process fails before."""
    clock = Clock(network, chronicle, screen)
    killer = _killer(network, processes, screen, clock)
    while True:
        lines = processes.lines()
        for line in lines:
            if line.fields.get("event") == "refused":
                screen.refused(line.process, line.fields["call"], line.fields["error"])
        ended = network.treasury.tasks.state(network.task).phase is Phase.ENDED  # asked before the last events are read
        for seen in chronicle.update(lines):
            if seen.event.values.get("taskId") in (None, network.task):  # a stranger may propose other tasks
                screen.show(seen, network)
                killer(seen.event.name, seen.event.values)
        if ended:
            return
        for name, code in processes.ended_badly().items():
            logs = network.options.output / "logs"
            raise LabError("DemoFailed", process=name, code=code, error=processes.errors_of(name), logs=logs)
        clock.advance()
        time.sleep(POLL)


def _killer(
    network: Network, processes: Processes, screen: Screen, clock: Clock
) -> Callable[[str, dict[str, Any]], None]:
    """Kills the first hospital in the chosen round, right after its commitment. Kills the aggregator in its chosen
    round, after the commitments, and starts it again.
    """
    victim, (aggregator,) = network.of(Role.HOSPITAL)[0], network.of(Role.AGGREGATOR)
    pending = {network.options.kill_in_round} - {None}
    closing = {network.options.kill_aggregator_in_round} - {None}

    def kill(name: str, values: dict[str, Any]) -> None:
        if name == "UpdateCommitted" and values["round"] in pending and values["hospital"] == victim.address:
            pending.clear()
            processes.forget(victim.name)
            clock.killed(victim.name)
            screen.say(f"  [yellow]killed[/yellow] {victim.name} in round {values['round']}, after its commitment")
        elif name == "PhaseStarted" and values["round"] in closing and values["phase"] == Phase.UPLOADING:
            closing.clear()
            processes.kill(aggregator.name)
            start_party(network, aggregator, processes)
            screen.say(f"  [yellow]killed[/yellow] {aggregator.name} in round {values['round']}, and started it again")

    return kill


def _farewell(network: Network, processes: Processes, chronicle: Chronicle, screen: Screen) -> None:
    """Waits until the nodes have taken back their bonds. The report counts their money wherever it is. Then it waits
    for the reference trainings, as long as they take. Raises LabError (DemoFailed) if these fail.
    """
    if REFERENCES in processes.wait(FAREWELL):
        screen.end()
        screen.begin("training on the same rows without the platform, to compare with")
        while REFERENCES in processes.running():
            time.sleep(POLL)
    if code := processes.ended_badly().get(REFERENCES):
        error, logs = processes.errors_of(REFERENCES), network.options.output / "logs"
        raise LabError("DemoFailed", process=REFERENCES, code=code, error=error, logs=logs)
    chronicle.update(processes.lines())
