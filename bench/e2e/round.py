"""The private round against plain Flower and against Flower's SecAgg+, the sides of each size in one run.

Every hospital holds as many rows, however many hospitals there are, and trains one local epoch on them, so that the
same work is done at every size; they are drawn with replacement from one pool: 100 hospitals could not share 398.
Seconds are those of bench/e2e/own_machines.py, medians without the first round, which warms up.

As a program it measures the sizes that it is given, and leaves what is known of others in the result.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import json
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tomli_w
from consilium_chain.rpc.local_node import LocalNode
from consilium_chain.tasks.codec_specs import Codec, CodecSpec
from consilium_chain.tasks.limits import MAX_BLOBS
from consilium_chain.tasks.model_specs import MlpSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.standardise import Standardiser, public_sums, sums_of
from consilium_client.data.table.reader import Table
from consilium_client.models import model_of
from consilium_client.models.metrics import accuracy
from consilium_core.kinds import of_kind
from consilium_lab.demo.datasets import DemoData, deal_wdbc, examples_of
from consilium_lab.demo.network import GAS_MONEY, Role, build, prepare_output
from consilium_lab.demo.options import CODECS, DemoOptions
from consilium_lab.demo.task_file import TaskSettings, task_spec
from consilium_lab.result_files import columns_of
from consilium_zk.packing import LaneLayout
from numpy.typing import NDArray
from pydantic import TypeAdapter

from bench.children import Child
from bench.e2e import private_round, secaggplus
from bench.e2e.round_drawing import RATIOS, SIDES, label_of, plot
from bench.results_store import header, say, write_result

SEED, RATE = 0, 0.05
Told = tuple[list[dict[str, Any]], NDArray[np.float32]]
RESULTS = Path(__file__).resolve().parents[1] / "results"
HIDDEN = {100_000: [300, 300], 1_000_000: [970, 1000], 10_000_000: [3150, 3150]}  # widths of the MLP
# SecAgg+ is made for few neighbours each. With all of 100, Shamir's sharing (in Python) takes the server 150 s a round.
SHARES = 31
ROWS = 100  # of a hospital
WHAT = (
    "seconds of a round as if every hospital had its own machine (bench/e2e/own_machines.py), and wall_s by this"
    " machine's clock, hospitals one after another; medians without the first round, of each stage's slowest hospital;"
    " peak_rss_mb of the server, of the largest hospital, and on the private side of the chain and of all processes"
    " that make cell proofs, in MiB; helpers_cpu_s of the same two, the chain's with all that it does meanwhile; cpu_s:"
    " round_s with the server's CPU time and its helpers' in place of its wall time, which grows with whatever else"
    " this machine does; besides_cpu_s: what the slowest hospital read for this round while the one before was judged,"
    " which is in no other number; stages: MiB to and from a hospital, and seconds by part"
)
TO_KNOW = [
    "private is masked and verified: hospitals commit to their updates on chain, and the contract adds the commitments"
    " up; neither plain Flower nor SecAgg+ shows anybody that a sum is right",
    "the private round ends with the published sum: how it is judged then is left out, as the others judge nothing;"
    " decoys are off, with which the contract would add up later",
    "SecAgg+ as Flower ships it seeds masks with 32 bits of the shared secret, which can all be tried; private masks"
    " are ChaCha20's under keys of 256 bits",
    "private updates have `bits` bits a parameter, SecAgg+'s 22 and plain ones 32: time and bytes go by the bits",
    "training is one epoch of few rows, train_cpu_s: the less there is of it, the larger are ratios to plain Flower",
    "the chain is anvil, which mines each transaction at once: no block interval is in a round; its work on"
    " transactions is in server_s, that on hospitals' questions in nobody's",
    "server_s far above server_cpu_s on a side without helpers says that something else ran on this machine: then only"
    " cpu_s and cpu_ratio_to_… compare",
    "a codec's hospitals train, mask and commit to `numbers` instead of parameters, on the same rows in as many steps,"
    " at a lower rate: one of these numbers moves many parameters",
    "of publication `digests` only the sums' hashes go on chain and the sums into a store: no cell proofs are needed",
]
MOST_PARTS = 14
MOST_ON_CHAIN = 36  # blobs of a sum that are published as such; of more, hashes


@dataclass(frozen=True)
class Variant:
    """How a private round is run. `bits`: at most; what does not fit into an update's blobs has fewer. `codec`: a name
    and its number. `rate`: of learning.
    """

    bits: int
    value_range: float
    publication: str
    codec: tuple[str, int] | None = None
    rate: float = RATE

    @classmethod
    def parse(cls, text: str) -> Variant:
        bits, value_range, publication, *codec = text.split(":")
        variant = cls(int(bits), float(value_range), publication)
        if not codec:
            return variant
        name, number, rate = codec
        return dataclasses.replace(variant, codec=(name, int(number)), rate=float(rate))

    def section(self, layers: int) -> dict[str, Any]:
        """The codec's in a task file. The last layer's one row travels whole: it learns little by few numbers."""
        if self.codec is None:
            return {"name": "dense"}
        name, number = self.codec
        whole = {"dense": [f"{2 * layers}.weight"]} if name == "lowrank" else {}
        return {"name": name, CODECS[name]: number, **whole}


# The largest entries of any update here are about 0.05, in the first round.
VARIANTS = (Variant(8, 0.2, "digests"), Variant(4, 0.05, "digests"))
# A number of a codec moves many parameters at once: it learns as fast at a lower rate.
BY_CODEC = (
    Variant(8, 0.05, "digests", ("lowrank", 8), 0.01),
    Variant(8, 0.05, "blobs", ("lowrank", 8), 0.01),
    Variant(8, 0.05, "digests", ("hash", 60_000), 0.01),
)
# Clients, parameters, rounds of which the first does not count, and variants besides.
SIZES = (
    (10, 1_000_000, 4, (Variant(4, 0.05, "blobs"),)),
    (30, 1_000_000, 3, ()),
    (100, 1_000_000, 2, ()),
    (10, 10_000_000, 3, (Variant(3, 0.05, "digests"), *BY_CODEC)),
)
QUICK = ((3, 100_000, 2, BY_CODEC[:1]),)
WINDOWS = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), 20_000)  # no deadline is measured
PATIENCE = 6 * 3600.0  # seconds for one side's rounds


def deal(hospitals: int, rows: int, seed: int) -> DemoData:
    """Wisconsin breast cancer, 30 % of it held out in one piece; each hospital draws `rows` of the rest."""
    data = deal_wdbc(1, 1, seed)
    (pool,) = data.hospitals
    generator = np.random.default_rng(seed)
    return dataclasses.replace(
        data,
        hospital_names=[f"hospital-{index + 1}" for index in range(hospitals)],
        hospitals=[
            pool.iloc[generator.integers(len(pool), size=rows)].reset_index(drop=True) for _ in range(hospitals)
        ],
    )


def training_spec(data: DemoData, params: int, rounds: int = 1, variant: Variant = VARIANTS[0]) -> TaskSpec:
    """One local epoch, and for the private side the rest of a task: one cohort, equal weights, no decoys.

    As many of the variant's bits as fit into an update's blobs. Raises ValueError where that is none.
    """
    demo = task_spec(data, TaskSettings(rounds=rounds, cohorts=1, windows=WINDOWS)).model_dump()
    hidden = HIDDEN[params]
    spec = {
        **demo,
        "model": {"name": "mlp", "hidden": hidden},
        "training": {**demo["training"], "epochs": 1, "learning_rate": variant.rate},
        "rounds": {**demo["rounds"], "max_weight": 1},
        "judging": {**demo["judging"], "decoys": False},
    }
    update = {
        "bits": variant.bits, "value_range": variant.value_range, "clip_norm": 3.0, "publication": variant.publication,
        "masked": True, "codec": variant.section(len(hidden)),
    }  # fmt: skip
    codec: Codec = TypeAdapter(CodecSpec).validate_python(update["codec"])
    count = codec.size(MlpSpec(hidden=hidden).tensors(data.schema))
    most = MOST_ON_CHAIN if variant.publication == "blobs" else MAX_BLOBS
    fitting = (b for b in range(variant.bits, 1, -1) if LaneLayout(b, len(data.hospitals)).blobs_for(count) <= most)
    bits = next(fitting, None)
    if bits is None:
        raise ValueError(f"{count} parameters of {len(data.hospitals)} hospitals take more than {most} blobs")
    return TaskSpec.model_validate({**spec, "update": {**update, "bits": bits}})


def measure_size(
    clients: int,
    params: int,
    rounds: int,
    variants: Sequence[Variant] = VARIANTS,
    rows: int = ROWS,
    num_shares: float = SHARES,
    threshold: float = 2 / 3,
) -> list[dict[str, Any]]:
    """Rows of plain Flower, of SecAgg+ and of the private round, on the same rows; the first two from the same start.

    `params` is a key of HIDDEN; `num_shares` and `threshold` are SecAggPlusWorkflow's, integers or fractions, but a
    count above `clients` is all of them. Each variant is a private row.
    """
    data = deal(clients, rows, SEED)
    spec = training_spec(data, params)
    masked = {"num_shares": min(num_shares, clients), "threshold": threshold, "max_weight": max(rows, 1000)}
    found: list[dict[str, Any]] = []
    models: dict[str, NDArray[np.float32]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        features, labels = prepare(home, data, spec)
        files = [str(home / f"rows-{index}.npz") for index in range(clients)]

        def measured(name: str, about: dict[str, Any], side: Callable[[Path], Told]) -> None:
            say(f"{name}: {clients} hospitals, {spec.parameters:,} parameters, {rounds} rounds")
            told, model = side(home / f"{name}-{len(found)}")
            models[name] = model
            found.append(
                {
                    "name": name,
                    "date": datetime.date.today().isoformat(),
                    "clients": clients,
                    "params": spec.parameters,
                    "rows": rows,
                    **about,
                    **medians(told[1:]),
                    "peak_rss_mb": {key: round(value) for key, value in told[-1]["peak_rss_mb"].items()},
                    "accuracy": round(accuracy(labels, model_of(spec).evaluate(model, features).predictions), 4),
                    "rounds": rounds - 1,
                }
            )

        measured("plain", {}, lambda path: run(path, files, rounds, {}))
        measured("secaggplus", masked, lambda path: run(path, files, rounds, masked))
        for variant in variants:
            task = training_spec(data, params, rounds, variant)
            about = {
                "codec": task.update.codec.name, "numbers": task.coordinates, "learning_rate": variant.rate,
                "bits": task.update.bits, "blobs": task.update_blobs, "publication": task.update.publication,
            }  # fmt: skip
            measured("private", about, partial(run_private, data=data, spec=task))
    for row in found:
        row["cpu_s"] = round(row["client_cpu_s"] + row["server_cpu_s"] + sum(row.get("helpers_cpu_s", {}).values()), 4)
    for index, other in enumerate(RATIOS):
        for row in found[index + 1 :]:
            row[f"ratio_to_{other}"] = round(row["round_s"] / found[index]["round_s"], 2)
            row[f"cpu_ratio_to_{other}"] = round(row["cpu_s"] / found[index]["cpu_s"], 2)
            row[f"wall_ratio_to_{other}"] = round(row["wall_s"] / found[index]["wall_s"], 2)
    found[1]["farthest_from_plain"] = float(f"{np.abs(models['secaggplus'] - models['plain']).max():.2g}")
    return found


def prepare(home: Path, data: DemoData, spec: TaskSpec) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Writes task.toml and each hospital's standardised rows; returns the held-out features and labels."""
    write_task(home, spec)
    examples = examples_of([*data.hospitals, *data.held_out], data.schema)
    *tables, held_out = [of_kind(Table, one) for one in examples]
    exact = spec.statistics == "exact"
    sums = np.sum([sums_of(table, data.schema) for table in tables], axis=0) if exact else public_sums(data.schema)
    standardiser = Standardiser.from_sums(sums)
    for index, table in enumerate(tables):
        np.savez(home / f"rows-{index}.npz", features=standardiser.transform(table), labels=table.labels)
    return standardiser.transform(held_out), held_out.labels


def write_task(home: Path, spec: TaskSpec) -> bytes:
    raw = tomli_w.dumps(spec.model_dump(mode="json", exclude_none=True)).encode()
    (home / "task.toml").write_bytes(raw)
    return raw


def run(home: Path, rows: Sequence[str], rounds: int, secure: dict[str, float]) -> Told:
    """Every round as the server child tells it, and the last model."""
    home.mkdir()
    plan = secaggplus.Plan(str(home), str(home.parent / "task.toml"), rows, rounds, SEED, **secure)
    plan.write(home / "plan.json")
    with Child([secaggplus.__name__, "server", str(home / "plan.json")], home / "server.log") as child:
        child.wait(PATIENCE)
    return json.loads((home / "rounds.json").read_text()), np.load(home / "model.npy", allow_pickle=False)


def run_private(home: Path, data: DemoData, spec: TaskSpec) -> Told:
    """The same of the platform's own rounds, on a chain of their own."""
    prepare_output(home)
    options = DemoOptions(hospitals=len(data.hospitals), voters=1, seed=SEED, output=home)
    with LocalNode() as node:
        network = build(options, data, write_task(home, spec), node)
        hospitals = network.of(Role.HOSPITAL)
        for party in hospitals:
            network.treasury.connection.transactions.send_ether(
                party.address, GAS_MONEY
            )  # no sponsor is there to pay for joining
        (aggregator,), (voter,) = network.of(Role.AGGREGATOR), network.of(Role.VOTER)
        plan = private_round.Plan(
            home=str(home),
            aggregator=str(aggregator.home / "node.toml"),
            hospitals=[str(party.home) for party in hospitals],
            voter=str(voter.home),
            rounds=spec.rounds.rounds,
            chain=node.process.pid,
        )
        plan.write(home / "plan.json")
        with Child([private_round.__name__, "server", str(home / "plan.json")], home / "server.log") as child:
            child.wait(PATIENCE)
    return json.loads((home / "rounds.json").read_text()), np.load(home / "model.npy", allow_pickle=False)


def medians(rounds: Sequence[Any]) -> Any:
    """Of nested mappings of equal shape: the same mapping of medians."""
    if isinstance(rounds[0], dict):
        return {key: medians([one[key] for one in rounds]) for key in rounds[0]}
    return round(median(rounds), 4)


def measure(quick: bool) -> dict[str, Any]:
    rows = []
    for clients, params, rounds, besides in QUICK if quick else SIZES:
        rows += measure_size(clients, params, rounds, (*VARIANTS, *besides))
    return {"what": WHAT, "to_know": TO_KNOW, "rows": rows}


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (
            f"{label_of(row)}, {row['clients']} hospitals, {row['params']:,} parameters".replace("\n", ", "),
            ", ".join(
                [f"{row['round_s']:.2f} s", *(f"{row[f'ratio_to_{of}']:.2f} × {RATIOS[of]}" for of in ratios_of(row))]
            ),
        )
        for row in result["rows"]
    ]


def ratios_of(row: dict[str, Any]) -> list[str]:
    return [other for other in RATIOS if f"ratio_to_{other}" in row]


def brief(result: dict[str, Any]) -> dict[str, Any]:
    """Of each row's parts of stages the longest alone, by side and named after their stage. Rows that are brief already
    stay as they are.
    """
    return {**result, "rows": [row if "longest_s" in row else _brief_row(row) for row in result["rows"]]}


def _brief_row(row: dict[str, Any]) -> dict[str, Any]:
    parts = sorted(
        (seconds, side, f"{stage}: {part}")
        for stage, told in row["stages"].items()
        for side in SIDES
        for part, seconds in told.get(f"{side}_parts_s", {}).items()
    )
    longest: dict[str, dict[str, float]] = {}
    for seconds, side, name in reversed(parts[-MOST_PARTS:]):
        longest.setdefault(side, {})[name] = seconds
    stages = [
        {"stage": stage, **{name: value for name, value in told.items() if not name.endswith("_parts_s")}}
        for stage, told in row["stages"].items()
    ]
    return {**row, "stages": columns_of(stages, ()), "longest_s": longest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[10])
    parser.add_argument("--params", type=int, nargs="+", default=[1_000_000], choices=sorted(HIDDEN))
    parser.add_argument("--rounds", type=int, default=3, help="the first one warms up")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each hospital")
    parser.add_argument(
        "--shares", type=json.loads, default=SHARES,
        help=f"SecAgg+'s num_shares: a count, at most all clients, or a fraction of them; {SHARES} by default",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", type=json.loads, default=2 / 3, help="SecAgg+'s reconstruction_threshold: a count or a fraction"
    )
    parser.add_argument(
        "--variants", type=Variant.parse, nargs="+", default=VARIANTS,
        help="private rounds, a row each: BITS:RANGE:blobs or BITS:RANGE:digests, then perhaps :CODEC:NUMBER:RATE",
    )  # fmt: skip
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the result goes")
    given = parser.parse_args()
    if min(given.clients) < 3:
        parser.error("SecAgg+ takes three clients at least")
    if given.rounds < 2:
        parser.error("the first round does not count: --rounds 2 at least")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    for clients, params in itertools.product(given.clients, given.params):
        before = header("python -m bench.e2e.round " + " ".join(sys.argv[1:]))
        rows = measure_size(clients, params, given.rounds, given.variants, given.rows, given.shares, given.threshold)
        for folder in (given.results / "raw", given.results):  # at once: a larger size may not fit this machine
            others = [row for row in known_rows(folder) if size_of(row) != size_of(rows[0])]
            result = before | {"what": WHAT, "to_know": TO_KNOW, "rows": sorted([*others, *rows], key=size_of)}
            result = result if folder.name == "raw" else brief(result)
            write_result(folder, "round", result)
        plot(result, given.results)
        for about, told in table({"rows": rows}):
            say(f"{about}: {told}")


def known_rows(results: Path) -> list[dict[str, Any]]:
    path = results / "round.json"
    return json.loads(path.read_text())["rows"] if path.exists() else []


def size_of(row: dict[str, Any]) -> tuple[int, int]:
    return row["params"], row["clients"]


if __name__ == "__main__":
    main()
