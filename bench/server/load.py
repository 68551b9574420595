"""What the HTTP API bears: 200 readers, each with a stream of events, while a network of the demo's kind plays rounds.

Chain, nodes, indexer, API and readers are processes of this machine and share its cores. Measured is, one after the
other on the same chain: rounds with one reader, rounds with all readers, the same from PostgreSQL, and all readers
once no round is played and blocks are empty. Readers are those of `load_readers.py`.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

import httpx
import psutil
import tomli_w
from consilium_chain.ledger.structs import Outcome, Phase
from consilium_chain.rpc.local_node import LocalNode, free_port
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_lab.demo.datasets import deal_wdbc
from consilium_lab.demo.network import Network, build, prepare_output, start
from consilium_lab.demo.options import DemoOptions
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.run import windows as demo_windows
from consilium_lab.demo.task_file import TaskSettings, task_toml
from postgres_driver import binaries, running_postgres

from bench.children import Child
from bench.results_store import COLOURS, figure, say, thinned, write_figure
from bench.server.load_readers import ARRIVAL, THINK

READERS, QUICK_READERS = 200, 10
SECONDS, QUICK_SECONDS = 45.0, 12.0  # of each measurement
LONG = 600.0  # of the first one with all readers: whether memory levels off, minutes tell
WARM_UP, QUICK_WARM_UP = 15.0, 6.0  # of these, left out of what is reported but for errors
ROUNDS = 200  # more than are played
PATIENCE = 240.0
POINTS = 60  # of a line in the picture
NICE = 10
SLOW = 3  # windows of the demo's: nobody's deadline passes for want of a processor


@dataclass
class Served:
    """An indexer and an API of one database."""

    url: str
    index: Child
    api: Child
    journal: Path

    def indexed_at(self) -> list[tuple[int, int, float]]:
        """Ranges of blocks with events in them, and when they were in the tables, in seconds since the epoch."""
        lines = [json.loads(line) for line in self.journal.read_text().splitlines() if '"indexed"' in line]
        return [(line["first"], line["last"], line["at"]) for line in lines if line["events"]]


def measure(quick: bool) -> dict[str, Any]:
    readers, seconds = (QUICK_READERS, QUICK_SECONDS) if quick else (READERS, SECONDS)
    warm_up = QUICK_WARM_UP if quick else WARM_UP
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        folder = Path(name)
        network, node = _network(folder, stack, quick)
        with Processes(folder / "logs") as processes:
            start(network, processes)
            _make_room()
            with _served(folder / "sqlite", folder, node.url, None) as served:
                _wait_for_round(network, processes, 1)
                alone = _window("one reader", served, network, folder, 1, seconds, warm_up)
                longer = seconds if quick else LONG
                many = _window(f"{readers} readers", served, network, folder, readers, longer, warm_up)
            postgres = None
            if not quick and binaries() is not None:
                with running_postgres() as server:
                    url = server.database()
                    with _served(folder / "postgresql", folder, node.url, url) as served:
                        named = f"{readers} readers, PostgreSQL"
                        postgres = _window(named, served, network, folder, readers, seconds, warm_up)
            if bad := processes.ended_badly():
                raise RuntimeError(f"processes of the network ended with an error: {', '.join(bad)}")
        with _served(folder / "sqlite", folder, node.url, None) as served:
            idle = _window(f"{readers} readers, no rounds", served, network, folder, readers, seconds, warm_up)
    windows = [one for one in (alone, many, postgres, idle) if one is not None]
    return {
        "what": "readers of the HTTP API on loopback, sharing the machine with chain, indexer and API, and with nodes"
        " of a lower priority (nice), for these have machines of their own; each holds a stream of events and looks at"
        " pages (one to two requests side by side, with validators), thinking in between; milliseconds until an answer"
        " is whole; event_delay_ms from the indexer's commit to a reader, block_to_reader_s from the block's time,"
        " which is in whole seconds; rss_mb of the API's process, in MiB, its slope after warming up; cpu in cores;"
        " all but errors without warming up",
        "think_s": list(THINK),
        "arrival_s": ARRIVAL,
        "warm_up_s": warm_up,
        "hospitals": len(network.data.hospital_names),
        "voters": network.options.voters,
        "errors": sum(one["errors"]["count"] for one in windows),
        "windows": windows,
    }


def _network(folder: Path, stack: ExitStack, quick: bool) -> tuple[Network, LocalNode]:
    """The demo's, with time to spare; nothing runs yet."""
    options = DemoOptions(output=folder, hospitals=3 if quick else 6, voters=3 if quick else 5)
    data = deal_wdbc(options.hospital_count, options.voters, options.seed)
    limits = {name: SLOW * seconds for name, seconds in demo_windows(options.hospital_count + options.voters).items()}
    text = task_toml(data, TaskSettings(ROUNDS, 1 if quick else 2, None, limits)).encode()
    parse_task_spec(text)
    prepare_output(folder)
    log = stack.enter_context((folder / "chain.log").open("wb"))
    node = stack.enter_context(LocalNode(None, log))
    say("deploying, funding, proposing")
    return build(options, data, text, node), node


def _make_room() -> None:
    """Nodes train at a lower priority, and so does what they start: hospitals do not share a machine with the API."""
    for child in psutil.Process().children():
        if "consilium_cli" in " ".join(child.cmdline()):
            child.nice(NICE)


@contextmanager
def _served(home: Path, network: Path, chain_url: str, database_url: str | None) -> Iterator[Served]:
    home.mkdir(exist_ok=True, mode=0o700)
    shared: dict[str, Any] = {
        "home": str(home),
        "chain_url": chain_url,
        "deployment": str(network / "deployment.json"),
        "artifacts": str(network / "artifacts"),
    }
    if database_url is not None:
        shared["database_url"] = database_url
    port, command = free_port(), ["consilium_cli.main", "server"]
    # Every reader has an address of its own: the limits are the defaults.
    own = {"origin": "http://localhost", "port": port, "proxies": ["127.0.0.1"]}
    (home / "index.toml").write_text(tomli_w.dumps(shared))
    (home / "api.toml").write_text(tomli_w.dumps(shared | own))
    url, journal = f"http://127.0.0.1:{port}", home / f"index-{port}.jsonl"
    with (
        Child([*command, "index", "--config", str(home / "index.toml")], journal) as index,
        Child([*command, "api", "--config", str(home / "api.toml")], home / "api.jsonl") as api,
    ):
        until = time.monotonic() + PATIENCE
        while not _is_ready(url):
            if time.monotonic() > until:
                raise RuntimeError(f"the API was not ready within {PATIENCE:.0f} s")
            time.sleep(0.2)
        yield Served(url, index, api, journal)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _wait_for_round(network: Network, processes: Processes, round_: int) -> None:
    """Until everybody has joined and trains."""
    say(f"waiting for round {round_}")
    until = time.monotonic() + PATIENCE
    while (state := network.treasury.tasks.state(network.task)).round < round_ or state.phase is Phase.JOINING:
        if processes.ended_badly() or time.monotonic() > until:
            raise RuntimeError(f"no round {round_} within {PATIENCE:.0f} s; ended: {processes.ended_badly()}")
        time.sleep(0.5)


class Usage:
    """What processes use, second by second."""

    def __init__(self, **pids: int) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self._began = time.monotonic()
        self._cpu = {name: self._seconds(process) for name, process in self._processes.items()}
        self._last = dict(self._cpu)
        psutil.cpu_percent()
        self.rss: list[tuple[float, float]] = []  # seconds and MiB, of the API

    def look(self) -> None:
        self.rss.append((time.monotonic() - self._began, self._processes["api"].memory_info().rss / 2**20))
        for name, process in self._processes.items():
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                self._last[name] = self._seconds(process)

    def cpu(self) -> dict[str, float]:
        """Cores, on average; `all` of the machine's, whoever used them."""
        lasted = time.monotonic() - self._began
        cores = {name: round((self._last[name] - self._cpu[name]) / lasted, 3) for name in self._processes}
        return cores | {"all": round(psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1), 3)}

    @staticmethod
    def _seconds(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(times.user + times.system)


def _window(
    name: str, served: Served, network: Network, folder: Path, readers: int, seconds: float, warm_up: float
) -> dict[str, Any]:
    say(f"{name}: {seconds:.0f} s")
    output, first = folder / "seen.json", network.treasury.connection.blocks.number() + 1
    arguments = ["bench.server.load_readers", served.url, str(readers), str(seconds), str(output)]
    began = time.time()
    with Child(arguments, folder / "readers.log") as child:
        usage = Usage(api=served.api.pid, index=served.index.pid, readers=child.pid)
        while child.is_running():
            time.sleep(1)
            usage.look()
        child.wait(1)
    found = _summary(json.loads(output.read_text()), served.indexed_at(), _block_times(network, first), began, warm_up)
    rss = [(at, size) for at, size in usage.rss if at >= warm_up] or usage.rss
    slope, late = _slope(rss), _slope(rss[len(rss) // 2 :])
    window = {
        "name": name,
        "readers": readers,
        "seconds": seconds,
        **found,
        "rounds": _rounds(network, first),
        "rss_mb": {
            "first": round(rss[0][1], 1),
            "last": round(rss[-1][1], 1),
            "slope_per_minute": round(slope, 2),
            "slope_per_minute_of_the_last_half": round(late, 2),
            "each_second": [round(size, 1) for _, size in usage.rss],
        },
        "cpu": usage.cpu(),
    }
    all_ = window["ms"]["all"]
    say(
        f"  {window['requests_per_s']:.0f} requests/s, p95 {all_['p95']:.0f} ms, {window['errors']['count']} errors,"
        f" {window['events']['told']} events told, memory {slope:+.1f} MiB a minute, {late:+.1f} in the last half"
    )
    return window


def _slope(rss: Sequence[tuple[float, float]]) -> float:
    """MiB a minute."""
    return 60 * linear_regression(*zip(*rss, strict=True)).slope if len(rss) > 1 else 0.0


def _summary(
    seen: dict[str, Any],
    indexed: Sequence[tuple[int, int, float]],
    block_times: dict[int, int],
    began: float,
    warm_up: float,
) -> dict[str, Any]:
    since = began + warm_up
    asked = [one for one in seen["asked"] if one[0] >= since]
    if not asked:
        raise RuntimeError(f"nobody was answered; the first errors: {seen['errors'][:5]}")
    by_route: dict[str, list[float]] = defaultdict(list)
    for _, route, _, lasted in asked:
        by_route[route].append(1000 * lasted)
        by_route["all"].append(1000 * lasted)
    told = [(at, block) for at, block in seen["told"] if at >= since]
    delays = [
        1000 * (at - then) for at, block in told for low, high, then in indexed if low <= block <= high and at >= since
    ]
    from_block = [at - block_times[block] for at, block in told if block in block_times]
    return {
        "requests": len(asked),
        "requests_per_s": round(len(asked) / (max(one[0] for one in asked) - since), 1),
        "ms": {route: _percentiles(times) for route, times in sorted(by_route.items())},
        "not_modified": round(sum(status == 304 for _, _, status, _ in asked) / len(asked), 3),
        "errors": {"count": len(seen["errors"]), "first": seen["errors"][:10]},
        "events": {
            "told": len(told),
            "reorgs": seen["reorgs"],
            "event_delay_ms": _percentiles(delays) if delays else None,
            "block_to_reader_s": {key: round(value, 2) for key, value in _percentiles(from_block, 3).items()}
            if from_block
            else None,
        },
    }


def _percentiles(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    ordered = sorted(values)
    quantiles = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    found = {name: ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] for name, quantile in quantiles.items()}
    return {name: round(value, digits) for name, value in found.items()} | {"count": len(ordered)}


def _block_times(network: Network, first: int) -> dict[int, int]:
    blocks = {event.block for event in network.treasury.logs.between(first)}
    heads = [network.treasury.connection.blocks.head(block) for block in sorted(blocks)]
    return {head.number: head.time for head in heads if head is not None}


def _rounds(network: Network, first: int) -> dict[str, Any]:
    """How many ended in a window, how, and how long each took from one end to the next, by blocks' times."""
    ends = [event for event in network.treasury.logs.between(first) if event.name in ("RoundSettled", "RoundVoided")]
    times = [head.time for event in ends if (head := network.treasury.connection.blocks.head(event.block)) is not None]
    lasted = [later - earlier for earlier, later in pairwise(times)]
    settled = sum(event.name == "RoundSettled" for event in ends)
    return {
        Outcome.SETTLED.name.lower(): settled,
        Outcome.VOID.name.lower(): len(ends) - settled,
        "median_s": median(lasted) if lasted else None,
    }


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """Memory as means of a few seconds each, `every_s` of them."""
    windows = []
    for one in result["windows"]:
        memory = dict(one["rss_mb"])
        each = memory.pop("each_second")
        series = {"every_s": -(-len(each) // POINTS), "over_time": thinned(each, POINTS, 1)}
        windows.append({**one, "rss_mb": memory | series})
    return {**result, "windows": windows}


def plot(result: dict[str, Any], folder: Path) -> None:
    """From the brief result."""
    windows = result["windows"]
    drawn, (latencies, memory) = figure(9.5, 3.6, columns=2)
    for position, one in enumerate(windows):
        for shade, key in (("plain", "p99"), ("uploading", "p95"), ("committing", "p50")):
            latencies.barh(position, one["ms"]["all"][key], color=COLOURS[shade], height=0.6)
        all_ = one["ms"]["all"]
        latencies.text(all_["p99"], position, f"  {all_['p95']:.0f} ms", va="center", fontsize=9)
    latencies.set_yticks(range(len(windows)), [one["name"].replace(", ", ",\n") for one in windows])
    latencies.invert_yaxis()
    latencies.margins(x=0.2)
    latencies.set_xlabel("milliseconds until an answer is whole: half, 95 % (named), 99 %")
    latencies.set_title("Requests", loc="left")
    shades = ("plain", "committing", "publishing", "drawing")
    for shade, one in zip(shades, windows, strict=False):
        rss, every = one["rss_mb"]["over_time"], one["rss_mb"]["every_s"]
        seconds = [every * index + (every - 1) / 2 for index in range(len(rss))]
        memory.plot(seconds, rss, color=COLOURS[shade], label=one["name"])
    memory.set_ylim(0, 1.3 * max(max(one["rss_mb"]["over_time"]) for one in windows))
    memory.set_xlabel("seconds")
    memory.set_ylabel("MiB")
    memory.set_title("Memory of the API's process", loc="left")
    memory.legend(frameon=False, fontsize=8, loc="lower right")
    write_figure(folder, "load", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("errors of all readers", str(result["errors"]))]
    for one in result["windows"]:
        delay = one["events"]["event_delay_ms"]
        rows.append(
            (
                one["name"],
                f"{one['requests_per_s']:.0f} requests/s, p95 {one['ms']['all']['p95']:.0f} ms"
                + (f", events' p95 {delay['p95']:.0f} ms" if delay else "")
                + f", 304 {one['not_modified']:.0%}, {one['rss_mb']['last']:.0f} MiB"
                f" ({one['rss_mb']['slope_per_minute']:+.1f} a minute), {one['cpu']['api']:.2f} cores",
            )
        )
    return rows
