"""Memory of a hospital's node that trains without torch, in a task of real nodes on UCI Heart; and of one with torch.

Each side is one task: anvil, sponsor, aggregator with SuperLink, four hospitals with their SuperNodes, and voters, each
a process of its own; masked, committed by KZG, judged and settled. A side's hospitals have `device` in node.toml.

`node_mib`: VmHWM of a hospital's node, the most that it had resident at any moment, of the largest hospital.
`relay_mib`: the same of its relay's processes, each by itself; `together_mib`: the node and all of its relay at one
moment, with shared pages by parts (PSS), looked at twice a second. `libraries`: large ones that the node has mapped.

`imports`: growth of a new process's resident memory in MiB, as it imports one after the other. `updates`: the largest
difference of an update by NumPy and by torch, from the same base, rows and seed, over the norm of torch's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tomli_w
from consilium_chain.rpc.local_node import LocalNode
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.standardise import public_sums
from consilium_client.models import model_of
from consilium_client.models.training import NUMPY, learn
from consilium_lab.demo.chronicle import Chronicle
from consilium_lab.demo.datasets import DemoData, deal_heart, examples_of
from consilium_lab.demo.network import Network, Party, Role, build, prepare_output, start_party
from consilium_lab.demo.options import DemoOptions
from consilium_lab.demo.processes import Processes
from consilium_lab.demo.run import follow, windows
from consilium_lab.demo.screen import Screen
from consilium_lab.demo.tally import Evaluator
from consilium_lab.demo.task_file import TaskSettings, task_spec
from rich.console import Console

from bench.client.codecs import SHARED
from bench.process_watch import children_by, pss_mib
from bench.results_store import Skipped, figure, say, write_figure

LIMIT = 150e6 / 2**20  # 150 MB
SEED, VOTERS, LOOK, FAREWELL = 0, 3, 0.5, 120.0
SIDES = {NUMPY: "without torch", "cpu": "with torch"}
MODELS: Mapping[str, dict[str, Any]] = {"logistic": {"name": "logistic"}, "mlp": {"name": "mlp", "hidden": [32, 16]}}
LIBRARIES = ("libtorch", "libarrow", "/scipy/", "/pandas/", "/grpc/", "/sklearn/", "/duckdb/")
IMPORTS = (
    "pydantic", "numpy", "cryptography.hazmat.primitives.ciphers", "py_arkworks_bls12381", "ckzg", "eth_account",
    "web3", "httpx", "consilium_chain.ledger.ledger", "consilium_client.hospital.node", "consilium_cli.main", "torch",
)  # fmt: skip
GROWTH = """
import json, sys
from importlib import import_module
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
found, before = {"python": resident()}, resident()
for name in sys.argv[1:]:
    import_module(name)
    found[name], before = resident() - before, resident()
print(json.dumps(found))
"""


class PeakWatch(threading.Thread):
    """Looks at each hospital's node and the processes below it until the context is left."""

    def __init__(self, words: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._words, self._over = words, threading.Event()
        self.nodes: dict[str, float] = {}
        self.relays: dict[int, float] = {}
        self.together: dict[str, float] = {}
        self.libraries: set[str] = set()

    def run(self) -> None:
        while not self._over.wait(LOOK):
            for name, number in children_by(self._words).items():
                with suppress(psutil.NoSuchProcess, OSError):
                    self._look(name, psutil.Process(number))

    def _look(self, name: str, node: psutil.Process) -> None:
        below = node.children(recursive=True)
        self.nodes[name] = max(self.nodes.get(name, 0.0), most_resident(node.pid))
        for one in below:
            with suppress(OSError):
                self.relays[one.pid] = max(self.relays.get(one.pid, 0.0), most_resident(one.pid))
        self.together[name] = max(self.together.get(name, 0.0), sum(map(pss_mib, (node, *below))))
        mapped = Path(f"/proc/{node.pid}/maps").read_text()
        self.libraries |= {one for one in LIBRARIES if one in mapped}

    def __enter__(self) -> PeakWatch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def most_resident(number: int) -> float:
    """VmHWM of a process in MiB. Raises OSError if it has ended."""
    lines = Path(f"/proc/{number}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def task_of(data: DemoData, model: str, rounds: int) -> TaskSpec:
    limits = windows(len(data.hospitals) + VOTERS)
    return task_spec(data, TaskSettings(rounds=rounds, windows=limits, model=MODELS[model]))


def measure(quick: bool) -> Iterator[dict[str, Any]]:
    folder = SHARED / "heart"
    if not folder.is_dir():
        raise Skipped("there is no shared/data/heart beside this checkout")
    data, rounds = deal_heart(folder, VOTERS, SEED), 2 if quick else 6
    found: dict[str, Any] = {
        "what": __doc__, "data": data.description, "rounds": rounds, "hospitals": len(data.hospitals),
        "updates": {model: apart(task_of(data, model, rounds), data) for model in MODELS}, "imports": imports(),
        "sides": {},
    }  # fmt: skip
    for device, words in SIDES.items():
        say(f"hospitals {words}")
        with tempfile.TemporaryDirectory(prefix="bench-") as home:
            found["sides"][device] = play(Path(home), task_of(data, "logistic", rounds), data, device)
        yield found


def apart(spec: TaskSpec, data: DemoData) -> float:
    """The worst of all hospitals."""
    model, basis, worst = model_of(spec), spec.basis(bytes(32)), 0.0
    base, sums = model.initial(SEED), public_sums(spec.data)
    for examples in examples_of(data.hospitals, data.schema):
        rows = model.inputs(examples, sums), examples.labels
        of_torch, own = (learn(spec, basis, base, *rows, SEED, device=device) for device in ("cpu", NUMPY))
        worst = max(worst, float(np.abs(own - of_torch).max() / np.linalg.norm(of_torch)))
    return float(f"{worst:.2g}")


def imports() -> dict[str, float]:
    said = subprocess.run([sys.executable, "-c", GROWTH, *IMPORTS], stdout=subprocess.PIPE, check=True).stdout
    return {name: round(size, 1) for name, size in json.loads(said).items()}


def play(home: Path, spec: TaskSpec, data: DemoData, device: str) -> dict[str, Any]:
    prepare_output(home)
    raw = tomli_w.dumps(spec.model_dump(mode="json", exclude_none=True)).encode()
    options = replace(DemoOptions(voters=VOTERS, seed=SEED, output=home), hospitals=len(data.hospitals))
    with ExitStack() as stack:
        log = stack.enter_context((home / "chain.log").open("wb"))
        node = stack.enter_context(LocalNode(None, log))
        network = build(options, data, raw, node)
        hospitals = network.of(Role.HOSPITAL)
        for party in hospitals:
            choose(party, device)
        processes = stack.enter_context(Processes(home / "logs"))
        watch = stack.enter_context(PeakWatch({party.name: f"{party.home}" for party in hospitals}))
        config = str(network.sponsor.home / "node.toml")
        processes.serve(network.sponsor.name, "consilium_cli.main", "server", "sponsor", "--config", config)
        for party in network.parties:
            start_party(network, party, processes)
        started = time.monotonic()
        chronicle = Chronicle(network.treasury, network.task, started)
        follow(network, processes, chronicle, Screen(Console(quiet=True), spec.rounds.rounds))
        processes.wait(FAREWELL)
        metrics = Evaluator(network).metrics(spec.rounds.rounds + 1)
        return {
            "seconds": round(time.monotonic() - started, 1), "settled": _settled(network, spec),
            "node_mib": round(max(watch.nodes.values()), 1), "relay_mib": _relays(watch),
            "together_mib": round(max(watch.together.values()), 1),
            "libraries": sorted(one.strip("/") for one in watch.libraries),
            "metrics": {name: round(value, 4) for name, value in metrics.items() if value is not None},
        }  # fmt: skip


def choose(party: Party, device: str) -> None:
    """Writes `device` before the first section of the home's settings."""
    settings = party.home / "node.toml"
    settings.write_text(f'device = "{device}"\n{settings.read_text()}')


def _relays(watch: PeakWatch) -> dict[str, float]:
    """Memory of the relay's processes: the largest, and the least. Those that ended before a second look count, too."""
    sizes = sorted(watch.relays.values())
    return {"most": round(sizes[-1], 1), "least": round(sizes[0], 1)}


def _settled(network: Network, spec: TaskSpec) -> int:
    rounds = range(1, spec.rounds.rounds + 1)
    return sum(network.treasury.tasks.round_state(network.task, one).outcome.name == "SETTLED" for one in rounds)


def plot(result: dict[str, Any], folder: Path) -> None:
    drawn, (peaks, parts) = figure(11, 3.4, 2)
    for index, (device, side) in enumerate(result["sides"].items()):
        peaks.barh(index, side["node_mib"], color="#2f6f9f" if device == NUMPY else "#8a8f98", height=0.6)
        peaks.text(side["node_mib"], index, f"  {side['node_mib']:.0f} MiB", va="center")
    peaks.axvline(LIMIT, color="#b1588c", linewidth=1)
    peaks.set_yticks(range(len(result["sides"])), [SIDES[one] for one in result["sides"]])
    peaks.margins(x=0.2)
    peaks.set_xlabel("MiB resident, at most")
    peaks.set_title("a hospital's node in a task of UCI Heart", loc="left")
    names, sizes = [name.partition(".hazmat")[0] for name in result["imports"]], list(result["imports"].values())
    parts.barh(names, sizes, color="#5fa3c7")
    parts.invert_yaxis()
    parts.set_xlabel("MiB more, imported in this order")
    write_figure(folder, "small_machine", drawn)


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"a hospital {SIDES[device]}",
            f"node {side['node_mib']:.0f} MiB, with its relay {side['together_mib']:.0f} MiB;"
            f" accuracy {side['metrics']['accuracy']:.3f}",
        )
        for device, side in result["sides"].items()
    ]
