"""A model of a hundred million parameters by a codec, in a task of real nodes, and by plain Flower on the same rows.

Consilium: anvil, the sponsor, the aggregator with Flower's SuperLink, hospitals with their SuperNodes, and voters, each
a process of its own; masked, with decoys, committed to, judged and settled on the chain. Plain Flower: SuperLink,
SuperNodes and FedAvg by Flower's own programs, without TLS; each hospital gets the whole model and sends it back. Both
train one epoch from like starts, all nodes at once on this machine's cores, one side after the other.

A round of Consilium is from the draw of its cohorts to its settlement, so it has the voters' evaluation, which plain
Flower lacks. `cpu_s`: in the round, of all processes of a node; of hospitals and voters the mean. `peak_mib`: PSS of
all processes of a node, looked at once a second, the largest of its kind; `all` at one moment. `sent_bytes` and
`got_bytes`: of a hospital in a round, payload alone: masked blobs and the sum's blobs, or the model's float32 values.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import tomli_w
from consilium_chain.ledger.structs import Outcome
from consilium_chain.rpc.local_node import LocalNode
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.models import model_of
from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.datasets import DemoData, deal_wdbc
from consilium_lab.demo.network import Network, Role, build, prepare_output, start_party
from consilium_lab.demo.options import DemoOptions
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.run import follow
from consilium_lab.demo.screen import Screen
from consilium_lab.demo.tally import Evaluator
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_zk.constants import BYTES_PER_BLOB
from eth_typing import HexStr
from rich.console import Console

from bench.e2e import plain_flower
from bench.e2e.round import deal, prepare
from bench.process_watch import ProcessWatch, children_by
from bench.results_store import figure, say, write_figure

SEED, ROUNDS, ROWS = 0, 2, 100
FLOAT = 4  # bytes
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 7_200)  # no deadline is measured
FAREWELL = 300.0
UNTIL_PUBLISHED = ("forming", "committing", "uploading", "publishing")
SIDES = {"consilium": "Consilium, lowrank", "plain": "plain Flower"}
SHADES = {
    "hospital": "#2f6f9f", "voter": "#b1588c", "aggregator": "#1f9e89", "server": "#8a8f98", "sponsor": "#c9b458",
    "chain": "#d9d9d9",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """`value_range`: of the codec's numbers, a few times the largest of any update here. `rates`: of learning, by side.
    A number of a codec moves many parameters at once, so its rate is lower.
    """

    hidden: tuple[int, ...]
    rank: int
    hospitals: int
    voters: int
    value_range: float
    rates: Mapping[str, float]


FULL = Size((9_990, 9_990), 8, 3, 2, 0.005, {"consilium": 0.001, "plain": 0.003})
QUICK = Size((300, 300), 4, 3, 1, 0.05, {"consilium": 0.005, "plain": 0.01})


def task_of(size: Size, data: DemoData, side: str) -> TaskSpec:
    """Plain Flower takes the model and the training from it, and trains all parameters."""
    demo = task_spec(data, TaskSettings(rounds=ROUNDS, cohorts=1, windows=WINDOWS)).model_dump()
    codec = {"name": "lowrank", "rank": size.rank, "dense": [f"{2 * len(size.hidden)}.weight"]}
    sections = {
        "model": {"name": "mlp", "hidden": list(size.hidden)},
        "training": {**demo["training"], "epochs": 1, "learning_rate": size.rates[side]},
        "rounds": {**demo["rounds"], "max_weight": 1},
        "update": {**demo["update"], "bits": 8, "value_range": size.value_range, "clip_norm": 3.0, "codec": codec},
    }
    return TaskSpec.model_validate({**demo, **sections})


def measure(quick: bool) -> dict[str, Any]:
    size = QUICK if quick else FULL
    data = dealt(size)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        sides = {
            name: side(Path(folder) / name, size, data)
            for name, side in (("plain", play_plain), ("consilium", play_consilium))
        }
    return {"what": __doc__, "size": asdict(size), "rows": ROWS, "to_plain": to_plain(sides), "sides": sides}


def to_plain(sides: Mapping[str, Any]) -> dict[str, float]:
    """Consilium's figures in plain Flower's, rounds by their mean. `published_s`: without the voters' judgement."""
    own, plain = sides["consilium"], sides["plain"]
    return {
        "round_s": _ratio(own, plain, lambda side: fmean(one["seconds"] for one in side["rounds"])),
        "published_s": _ratio(own, plain, lambda side: fmean(map(published_s, side["rounds"]))),
        "hospital_cpu_s": _ratio(own, plain, lambda side: fmean(one["cpu_s"]["hospital"] for one in side["rounds"])),
        "all_cpu_s": _ratio(own, plain, lambda side: fmean(one["cpu_s"]["all"] for one in side["rounds"])),
        "hospital_peak": _ratio(own, plain, lambda side: side["peak_mib"]["hospital"]),
        "all_peak": _ratio(own, plain, lambda side: side["peak_mib"]["all"]),
        "sent_bytes": _ratio(own, plain, lambda side: side["sent_bytes"]),
    }


def published_s(played: Mapping[str, Any]) -> float:
    """Seconds until the sum is on the chain; plain Flower's whole round."""
    phases = played.get("phases_s")
    return float(played["seconds"] if phases is None else sum(phases.get(one, 0.0) for one in UNTIL_PUBLISHED))


def _ratio(own: Any, plain: Any, of: Callable[[Any], float]) -> float:
    return float(f"{of(own) / of(plain):.3g}")


def dealt(size: Size) -> DemoData:
    """As many rows for each hospital; the held-out ones split among the voters."""
    data, judged = deal(size.hospitals, ROWS, SEED), deal_wdbc(1, size.voters, SEED)
    return DemoData(
        name=data.name, description=data.description, schema=data.schema, hospital_names=data.hospital_names,
        hospitals=data.hospitals, held_out=judged.held_out,
    )  # fmt: skip


# The platform


def play_consilium(home: Path, size: Size, data: DemoData) -> dict[str, Any]:
    spec = task_of(size, data, "consilium")
    say(f"consilium: {spec.parameters:,} parameters by {spec.coordinates:,} numbers")
    prepare_output(home)
    raw = tomli_w.dumps(spec.model_dump(mode="json", exclude_none=True)).encode()
    options = DemoOptions(hospitals=size.hospitals, voters=size.voters, seed=SEED, output=home)
    with ExitStack() as stack:
        log = stack.enter_context((home / "chain.log").open("wb"))
        node = stack.enter_context(LocalNode(None, log))
        started = time.monotonic()
        network = build(options, data, raw, node)
        processes = stack.enter_context(Processes(home / "logs"))
        words = {party.name: f"{party.home}" for party in (network.sponsor, *network.parties)}
        watch = stack.enter_context(ProcessWatch(lambda: children_by(words) | {"chain": node.process.pid}))
        processes.serve(network.sponsor.name, "consilium_cli.main", "server", "sponsor", "--config",
                        str(network.sponsor.home / "node.toml"))  # fmt: skip
        for party in network.parties:
            start_party(network, party, processes)
        chronicle = Chronicle(network.treasury, network.task, started)
        follow(network, processes, chronicle, Screen(Console(quiet=True), ROUNDS))
        processes.wait(FAREWELL)
        chronicle.update(processes.lines())
        rounds = [_round(network, chronicle, watch, number) for number in range(1, ROUNDS + 1)]
        metrics = Evaluator(network).metrics(ROUNDS + 1)
    return {
        "parameters": spec.parameters, "numbers": spec.coordinates, "blobs": spec.update_blobs,
        "sent_bytes": spec.update_bytes, "got_bytes": spec.update_bytes, "rounds": rounds,
        "peak_mib": _peaks(watch), "metrics": _rounded(metrics),
    }  # fmt: skip


def _round(network: Network, chronicle: Chronicle, watch: ProcessWatch, number: int) -> dict[str, Any]:
    """Raises RuntimeError unless the sum of all hospitals was accepted."""
    state = network.treasury.tasks.round_state(network.task, number)
    if state.outcome is not Outcome.SETTLED or state.accepted_cohorts != 1:
        raise RuntimeError(f"round {number} is {state.outcome.name}, with accepted cohorts {state.accepted_cohorts:b}")
    at = [seen.at for seen in chronicle.seen if seen.event.values.get("round") == number]
    begin, end = (chronicle.started + moment for moment in (min(at), max(at)))
    events = chronicle.of_round(number)
    receipts: list[dict[str, Any]] = [
        dict(network.treasury.connection.web3.eth.get_transaction_receipt(HexStr(one)))
        for one in sorted({event.transaction for event in events})
    ]
    gas = {one["transactionHash"].to_0x_hex(): int(one["gasUsed"]) for one in receipts}
    committing = {event.transaction for event in chronicle.of_round(number, "UpdateCommitted")}
    return {
        "seconds": round(end - begin, 1), "phases_s": chronicle.phase_seconds(number),
        "cpu_s": _by_kind(watch.cpu_s(begin, end)), "gas": sum(gas.values()),
        "gas_commit_each": round(sum(gas[one] for one in committing) / len(network.of(Role.HOSPITAL))),
        "blobs_on_chain": sum(int(one.get("blobGasUsed") or 0) for one in receipts) // BYTES_PER_BLOB,
        "flipped": bool(state.flipped_cohorts), "median_improvement": state.medians[0] / 1_000_000,
    }  # fmt: skip


# Plain Flower


def play_plain(home: Path, size: Size, data: DemoData) -> dict[str, Any]:
    spec = task_of(size, data, "plain")
    say(f"plain Flower: {spec.parameters:,} parameters")
    home.mkdir(parents=True)
    features, labels = prepare(home, data, spec)
    files = [home / f"rows-{index}.npz" for index in range(size.hospitals)]
    with (
        plain_flower.running(home, home / "task.toml", files, ROUNDS) as processes,
        ProcessWatch(lambda: processes) as watch,
    ):
        spans, model = plain_flower.play(home)
    rounds = [{"seconds": round(end - begin, 1), "cpu_s": _by_kind(watch.cpu_s(begin, end))} for begin, end in spans]
    judged = model_of(spec)
    metrics = judged.objective.measured(labels, judged.evaluate(model, features).predictions)
    return {
        "parameters": spec.parameters, "sent_bytes": FLOAT * spec.parameters, "got_bytes": FLOAT * spec.parameters,
        "rounds": rounds, "peak_mib": _peaks(watch), "metrics": _rounded(metrics),
    }  # fmt: skip


# Both


def _kind(name: str) -> str:
    return name.partition("-")[0]


def _by_kind(cpu_s: Mapping[str, float]) -> dict[str, float]:
    kinds = {_kind(name): [s for other, s in cpu_s.items() if _kind(other) == _kind(name)] for name in cpu_s}
    return {kind: round(fmean(several), 1) for kind, several in kinds.items()} | {"all": round(sum(cpu_s.values()), 1)}


def _peaks(watch: ProcessWatch) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, mib in watch.peaks_mib().items():
        found[_kind(name)] = max(round(mib), found.get(_kind(name), 0))
    return found


def _rounded(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 4) for name, value in metrics.items()}


def plot(result: dict[str, Any], folder: Path) -> None:
    """A round's cost by kind of node, and the memory of each."""
    sides = result["sides"]
    drawn, (seconds, memory) = figure(13, 3.6, columns=2)
    for index, name in enumerate(SIDES):
        left = 0.0
        for kind, shade in SHADES.items():
            spent = _count(result, kind) * fmean(one["cpu_s"].get(kind, 0.0) for one in sides[name]["rounds"])
            seconds.barh(index, spent, left=left, color=shade, height=0.6, label=None if index else kind)
            left += spent
        clock = fmean(one["seconds"] for one in sides[name]["rounds"])
        seconds.text(left, index, f"  {left:.0f} s of CPU\n  {clock:.0f} s by the clock", va="center", fontsize=9)
    kinds = [kind for kind in (*SHADES, "all") if any(kind in side["peak_mib"] for side in sides.values())]
    for index, (name, label) in enumerate(SIDES.items()):
        values = [sides[name]["peak_mib"].get(kind, 0) / 1024 for kind in kinds]
        memory.bar(
            [at + 0.4 * index for at in range(len(kinds))], values, width=0.38, label=label,
            color=("#2f6f9f", "#8a8f98")[index],
        )  # fmt: skip
    seconds.set_yticks(range(len(SIDES)), list(SIDES.values()))
    seconds.margins(x=0.3)
    seconds.set_xlabel("CPU seconds of a round, all nodes")
    seconds.set_title(
        f"{sides['plain']['parameters']:,} parameters, {result['size']['hospitals']} hospitals", loc="left"
    )
    seconds.legend(frameon=False, fontsize=8, ncols=6, loc="upper center", bbox_to_anchor=(0.45, -0.2))
    memory.set_xticks([at + 0.2 for at in range(len(kinds))], kinds)
    memory.set_ylabel("GiB, peak")
    memory.set_title("memory of a node of each kind, and of all together", loc="left")
    memory.legend(frameon=False)
    write_figure(folder, "hundred", drawn)


def _count(result: dict[str, Any], kind: str) -> int:
    return int({"hospital": result["size"]["hospitals"], "voter": result["size"]["voters"]}.get(kind, 1))


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{SIDES[name]}, {side['parameters']:,} parameters",
            f"{fmean(one['seconds'] for one in side['rounds']):.0f} s a round,"
            f" {fmean(one['cpu_s']['hospital'] for one in side['rounds']):.0f} s of a hospital's CPU,"
            f" {side['sent_bytes']:,} bytes from each; a hospital's peak {side['peak_mib']['hospital'] / 1024:.1f} GiB",
        )
        for name, side in result["sides"].items()
    ]
