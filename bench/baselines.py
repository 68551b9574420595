"""Flower's SecAgg+ and plain Flower, at the sizes asked for: what a private round is to be compared with.

Every hospital holds as many rows, however many hospitals there are, and trains one local epoch on them, so that the
same work is done at every size; they are drawn with replacement from one pool: 100 hospitals could not share 398.
Seconds are those of bench/own_machines.py, medians without the first round, which warms up.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import secaggplus
import tomli_w
from children import Child
from consilium_chain.task_spec import TaskSpec
from consilium_cli.demo.datasets import DemoData, deal_wdbc, write_csv
from consilium_cli.demo.task_file import TaskSettings, task_spec
from consilium_client.metrics import accuracy
from consilium_client.models import predict
from consilium_client.standardise import Standardiser, table_sums
from consilium_client.tables import read_table
from numpy.typing import NDArray
from results_store import header, say, write_result

SEED = 0
RESULTS = Path(__file__).resolve().parent / "results"
HIDDEN = {100_000: [300, 300], 1_000_000: [970, 1000], 10_000_000: [3150, 3150]}  # widths of the MLP; 1M as in round.py
# SecAgg+ is made for few neighbours each. With all of 100, Shamir's sharing (in Python) takes the server 150 s a round.
SHARES = 31
ROWS = 100  # of a hospital, as bench/round.py deals on average
WHAT = (
    "seconds of a round as if every hospital had its own machine (bench/own_machines.py), and wall_s by this machine's"
    " clock, hospitals one after another; medians without the first round, of the slowest hospital of each stage;"
    " peak_rss_mb of the server and of the largest hospital in MiB; stages: MiB to and from a hospital"
)
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


def training_spec(data: DemoData, params: int) -> TaskSpec:
    """One local epoch, as bench/round.py's large model. Nothing is packed here: few bits let 10M into a task file."""
    demo = task_spec(data, TaskSettings()).model_dump()
    changes = {
        "model": {"name": "mlp", "hidden": HIDDEN[params]},
        "training": {**demo["training"], "epochs": 1, "learning_rate": 0.05},
        "update": {**demo["update"], "bits": 2},
        "rounds": {**demo["rounds"], "max_weight": 1},
    }
    return TaskSpec.model_validate({**demo, **changes})


def measure_size(
    clients: int, params: int, rounds: int, rows: int, num_shares: float, threshold: float
) -> list[dict[str, Any]]:
    """A row of plain Flower and one of SecAgg+, from the same start on the same rows.

    `params` is a key of HIDDEN; `num_shares` and `threshold` are SecAggPlusWorkflow's, integers or fractions, but a
    count above `clients` is all of them.
    """
    data = deal(clients, rows, SEED)
    spec = training_spec(data, params)
    found, models = [], []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        home = Path(folder)
        features, labels = prepare(home, data, spec)
        for name in ("plain", "secaggplus"):
            say(f"{name}: {clients} hospitals, {spec.parameters:,} parameters, {rounds} rounds")
            masked = {"num_shares": min(num_shares, clients), "threshold": threshold, "max_weight": max(rows, 1000)}
            secure = masked if name == "secaggplus" else {}
            told, model = run(home / name, [str(home / f"rows-{i}.npz") for i in range(clients)], rounds, secure)
            models.append(model)
            found.append(
                {
                    "name": name,
                    "clients": clients,
                    "params": spec.parameters,
                    "rows": rows,
                    **secure,
                    **medians(told[1:]),
                    "peak_rss_mb": {key: round(value) for key, value in told[-1]["peak_rss_mb"].items()},
                    "accuracy": round(accuracy(labels, predict(spec.model, spec.data.columns, model, features)), 4),
                    "rounds": rounds - 1,
                }
            )
    found[1]["ratio_to_plain"] = round(found[1]["round_s"] / found[0]["round_s"], 2)
    found[1]["farthest_from_plain"] = float(f"{np.abs(models[1] - models[0]).max():.2g}")  # of any parameter
    return found


def prepare(home: Path, data: DemoData, spec: TaskSpec) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Writes task.toml and each hospital's standardised rows; returns the held-out features and labels."""
    (home / "task.toml").write_text(tomli_w.dumps(spec.model_dump(mode="json")))
    tables = []
    for frame in [*data.hospitals, *data.held_out]:
        write_csv(frame, home / "rows.csv")
        tables.append(read_table(home / "rows.csv", data.schema))
    held_out = tables.pop()
    standardiser = Standardiser.from_sums(np.sum([table_sums(table, data.schema) for table in tables], axis=0))
    for index, table in enumerate(tables):
        np.savez(home / f"rows-{index}.npz", features=standardiser.transform(table), labels=table.labels)
    return standardiser.transform(held_out), held_out.labels


def run(
    home: Path, rows: Sequence[str], rounds: int, secure: dict[str, float]
) -> tuple[list[dict[str, Any]], NDArray[np.float32]]:
    """Every round as the server child tells it, and the last model."""
    home.mkdir()
    plan = secaggplus.Plan(str(home), str(home.parent / "task.toml"), rows, rounds, SEED, **secure)
    plan.write(home / "plan.json")
    with Child([secaggplus.__file__, "server", str(home / "plan.json")], home / "server.log") as child:
        child.wait(PATIENCE)
    return json.loads((home / "rounds.json").read_text()), np.load(home / "model.npy", allow_pickle=False)


def medians(rounds: Sequence[Any]) -> Any:
    """Of nested mappings of equal shape: the same mapping of medians."""
    if isinstance(rounds[0], dict):
        return {key: medians([one[key] for one in rounds]) for key in rounds[0]}
    return round(median(rounds), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[10])
    parser.add_argument("--params", type=int, nargs="+", default=[1_000_000], choices=sorted(HIDDEN))
    parser.add_argument("--rounds", type=int, default=4, help="the first one warms up")
    parser.add_argument("--rows", type=int, default=ROWS, help="of each hospital")
    parser.add_argument(
        "--shares",
        type=json.loads,
        default=SHARES,
        help=f"SecAgg+'s num_shares: a count, at most all clients, or a fraction of them; {SHARES} by default",
    )
    parser.add_argument(
        "--threshold", type=json.loads, default=2 / 3, help="SecAgg+'s reconstruction_threshold: a count or a fraction"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the result goes")
    given = parser.parse_args()
    if min(given.clients) < 3:
        parser.error("SecAgg+ takes three clients at least")
    if given.rounds < 2:
        parser.error("the first round does not count: --rounds 2 at least")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that children are ended
    result = header("bench/baselines.py " + " ".join(sys.argv[1:])) | {"what": WHAT, "rows": []}
    for clients, params in itertools.product(given.clients, given.params):
        result["rows"] += measure_size(clients, params, given.rounds, given.rows, given.shares, given.threshold)
        write_result(given.results, "baselines", result)  # a larger size may not fit this machine
        for row in result["rows"][-2:]:
            say(f"{row['name']}: {row['round_s']:.2f} s a round ({row['wall_s']:.2f} s by this machine's clock)")


if __name__ == "__main__":
    main()
