"""`consilium up`: starts a whole network on this machine, prints its addresses, and keeps it running."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import httpx
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rounds.deadlines import fields_of
from consilium_chain.rpc.event_logs import Event
from consilium_chain.rpc.local_node import CHAIN_ID, LocalNode, require_free_port
from consilium_chain.rpc.retry import retry_policy
from consilium_client.errors import REFUSED
from consilium_client.models import model_of
from consilium_core.live import Waiting, Words, on_terminal
from consilium_core.locks import alone
from consilium_core.logs import emit
from consilium_operators.event_words import EVENTS
from consilium_operators.watching import DEADLINE_MISSED, EventFeed, log_name, plain
from consilium_server.api.dashboard import built
from rich.console import Console

from consilium_lab.demo.capacity import require_memory
from consilium_lab.demo.options import DataSet, DemoOptions
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.run import LOCK_FILE, deal, windows
from consilium_lab.demo.task_file import TaskSettings
from consilium_lab.errors import LabError
from consilium_lab.up.commands import commands_to_try, near
from consilium_lab.up.network import StandingNetwork, build, prepare
from consilium_lab.up.options import UpOptions
from consilium_lab.up.supervisor import ModelDeriver, TaskJoiner

POLL = 0.5
START_TIMEOUT = 120.0  # seconds until the API answers, while everything else starts, too
LONGEST_PAUSE = 60.0  # seconds before a process that ended is started again
LASTING = 600.0  # seconds after which a running process counts as started
MOST_STARTS = 8  # in a row, for a process that is not a server: four minutes of pauses
LONGEST_PAUSE_OF_CHAIN = 5.0  # seconds before a silent chain is asked again
# The events of a task that get a line.
SHOWN = {
    "TaskProposed", "TaskFunded", "AggregatorJoined", "HospitalJoined", "VoterJoined", "RoundSettled", "RoundVoided",
    "Slashed", "CohortAccused", "CheatersNamed", "TaskStopped", "TaskEnded",
}  # fmt: skip
WORDS: Words = {
    **EVENTS,
    "aggregator-joined": lambda f: "the aggregator joined",
    "joining": lambda f: f"{f['hospitals']} hospitals are starting, to join it",
    "not-joined": lambda f: f"[yellow]the hospitals here do not join it: {f['why']}[/yellow]",
    "no-memory": lambda f: (
        f"[yellow]its hospitals need {f['needed_mib']} MiB, but {f['available_mib']} are free: they start when enough"
        " memory is free[/yellow]"
    ),
    "process-refused": lambda f: (
        f"[yellow]{f['process']} ended, and is not started again:[/yellow] {f['error']} (log: {f['log']})"
    ),
    "process-given-up": lambda f: (
        f"[red]{f['process']} ended with {f['code']}[/red] {f['starts']} times in a row, and is not started again:"
        f" {f['error']} (log: {f['log']})"
    ),
    "process-ended": lambda f: (
        f"[red]{f['process']} ended with {f['code']}[/red], and is started again in {f['again_in_s']:g} s:"
        f" {f['error']} (log: {f['log']})"
    ),
}
TERMINAL = Waiting("running; press Ctrl-C to end it", words=WORDS)


def run_up(options: UpOptions, console: Console | None = None) -> None:
    """Runs until it is stopped. `console`: shows it. Raises LabError, LocalNodeError and the rooms' own errors."""
    console = console or Console(quiet=True)
    with ExitStack() as stack:
        in_use = LabError("FolderInUse", folder=options.home, option="--home")
        stack.enter_context(alone(options.home / LOCK_FILE, in_use))
        require_memory(options.hospitals, options.voters, options.data is DataSet.MEDQUAD)
        require_free_port(options.port, "the API (--port)")
        require_free_port(options.chain_port, "the local chain (--chain-port)")
        data = deal(
            DemoOptions(
                data=options.data, data_dir=options.data_dir, hospitals=options.hospitals, voters=options.voters
            )
        )
        settings = TaskSettings(options.rounds, windows=windows(options.hospitals + options.voters))
        prepare(options.home)
        with _spinner(console, "starting a local chain, deploying the contracts, funding the accounts"):
            log = stack.enter_context((options.home / "chain.log").open("wb"))
            node = stack.enter_context(LocalNode(options.chain_port, log, stands=True))
            network = build(options, data, settings, node)
        model_of(network.spec).require_installed()
        processes = stack.enter_context(Processes(options.home / "logs"))
        with _spinner(console, "starting the API, the jobs and the voters"):
            network.start(processes)
            _wait_for_api(options, processes)
        first = network.propose() if options.task else None
        _show(console, network, first)
        with on_terminal(TERMINAL):
            run_forever(node, _supervision(network, processes))


def _supervision(network: StandingNetwork, processes: Processes) -> Callable[[], None]:
    joiner, deriver = TaskJoiner(network, processes), ModelDeriver(network, processes)
    news, restarts = News(network.operator, network.names), Restarts(network.options.home / "logs", processes)

    def turn() -> None:
        processes.lines()  # only the log files need them
        joiner.turn()
        deriver.turn(news.log_new())
        restarts.turn()

    return turn


def run_forever(chain: LocalNode, turn: Callable[[], None]) -> NoReturn:
    """Calls `turn` again and again while the chain runs, even if a read fails, as after a revert of blocks. Raises
    LocalNodeError when the chain has ended.
    """

    def watched() -> None:
        chain.require_running()
        turn()

    while True:
        retry_policy(longest_wait=LONGEST_PAUSE_OF_CHAIN)(watched)
        time.sleep(POLL)


class News:
    """Logs the chain's events, with names for the network's own accounts."""

    def __init__(self, ledger: Ledger, names: Mapping[str, str]) -> None:
        self._feed, self._names = EventFeed(ledger), names

    def log_new(self) -> list[Event]:
        """Logs the important ones of the new events. Returns all."""
        entries = self._feed.read()
        for entry in entries:
            event = entry.event
            if entry.missed:
                emit(DEADLINE_MISSED, task=event.values["taskId"], **self._named(fields_of(entry.missed)))
            if event.name in SHOWN:
                emit(log_name(event.name), task=event.values["taskId"], **self._named(plain(event)))
        return [entry.event for entry in entries]

    def _named(self, fields: Mapping[str, object]) -> dict[str, Any]:
        return {key: self._name(value) for key, value in fields.items()}

    def _name(self, value: object) -> object:
        if isinstance(value, list):
            return [self._name(one) for one in value]
        return self._names.get(value, value) if isinstance(value, str) else value


class Restarts:
    """Restarts processes that ended unexpectedly, one per turn, after a pause that doubles each time.

    Does not restart a node whose owner has not allowed its task, or a client that failed too often in a row.
    """

    def __init__(self, logs: Path, processes: Processes, clock: Callable[[], float] = time.monotonic) -> None:
        self._logs, self._processes, self._clock = logs, processes, clock
        self._times: dict[str, int] = {}  # of failures in a row
        self._since: dict[str, float] = {}  # when it was started again last
        self._due: dict[str, float] = {}
        self._given_up: set[str] = set()

    def turn(self) -> None:
        for name, code in self._processes.lost().items():
            if name not in self._due and name not in self._given_up:
                self._note(name, code)
        if due := [name for name, at in self._due.items() if self._clock() >= at]:
            name = min(due, key=self._due.__getitem__)
            del self._due[name]
            self._since[name] = self._clock()
            self._processes.again(name)

    def _note(self, name: str, code: int) -> None:
        about = {"process": name, "error": self._processes.errors_of(name), "log": str(self._logs / f"{name}.err")}
        if code == REFUSED:
            self._given_up.add(name)
            emit("process-refused", **about)
            return
        if self._clock() - self._since.get(name, self._clock()) >= LASTING:
            self._times[name] = 0
        self._times[name] = self._times.get(name, 0) + 1
        if self._times[name] > MOST_STARTS and not self._processes.is_server(name):
            self._given_up.add(name)
            emit("process-given-up", code=code, starts=self._times[name], **about)
            return
        pause = min(2.0 ** self._times[name], LONGEST_PAUSE)
        self._due[name] = self._clock() + pause
        emit("process-ended", code=code, again_in_s=pause, **about)


def _wait_for_api(options: UpOptions, processes: Processes) -> None:
    """Raises LabError (NetworkNotUp)."""
    logs, end = options.home / "logs", time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        for name, code in processes.lost().items():
            how = f"ended with exit code {code} while starting"
            raise LabError("NetworkNotUp", process=name, how=how, error=processes.errors_of(name), logs=logs)
        try:
            httpx.get(f"{options.origin}/ready", timeout=2).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.2)
    error = f"no answer within {START_TIMEOUT:g} s"
    raise LabError("NetworkNotUp", process="api", how="does not answer", error=error, logs=logs)


@contextmanager
def _spinner(console: Console, text: str) -> Iterator[None]:
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _show(console: Console, network: StandingNetwork, first: int | None) -> None:
    """Prints the network's addresses, and commands to try."""
    options = network.options
    api = options.origin
    commands = commands_to_try(network, api, first)
    if not sys.stdout.isatty():
        emit(
            "up", api=api, chain=network.settings.chain_url, address_book=str(options.address_book),
            artifacts=str(network.settings.artifacts), aggregator=network.aggregator, task=first, commands=commands,
        )  # fmt: skip
        return
    count = f"{len(network.hospitals)} hospitals, {len(network.voters)} voters, an aggregator"
    jobs = "by Redis" if options.broker_url else "in the worker, without Redis"
    index = "the database that you named" if options.database_url else "SQLite"
    console.print(
        f"[bold]Consilium is up[/bold]: {count}; {network.data.description}\n"
        f"  dashboard  {f'{api}/' if built() else 'not built: make dashboard'}\n"
        f"  API        {api}/v1/tasks, live at {api}/v1/events; described in {api}/v1/openapi.json\n"
        f"  chain      {network.settings.chain_url}, chain id {CHAIN_ID}; addresses in {options.address_book}\n"
        f"  jobs       {jobs}; index in {index}\n"
        f"  files      {near(options.home)}: nodes' homes, artifacts, settings, logs\n\n"
        f"Try, in another terminal, in {Path.cwd()}:\n" + "".join(f"  {command}\n" for command in commands),
        soft_wrap=True,  # so that commands can be copied
    )
