"""`make bench`: measures, and writes bench/results/NAME.json and NAME.svg; `--draw` draws again what was measured.

A part may measure more than the figures of its page and picture: all of it goes into bench/results/raw, which git
ignores.

commit    parameters committed to in a second, and against other ways; what masks cost
streaming memory of a hospital and of the aggregator, up to 100M parameters
gas       gas of every transaction of a task on a local chain
costs     a year of a consortium on three networks at assumed fees, calculated; a second
round     a private round against plain Flower and against SecAgg+; an hour
demo      the whole demo, by the clock
foretold  a simulation beside the demo that it foretells, on four data sets
first_result  from an empty folder by pip to a simulation of one's own rows; after `make wheel`
decoys  how well decoys hide, and from whom
decoy_codecs  honest votes on decoys under codecs and outer steps
chain_reads requests to the chain node of a hospital and a voter, a day
indexing  events of the chain that the server's index takes in a second
network   a round of 176 hospitals, 236 voters and 1,178 delegators, hospitals in Flower's simulation engine
thousand  a round of a thousand hospitals in four tasks, likewise
hundred   a task of 100M parameters by a codec, of real nodes, beside plain Flower's SuperLink and SuperNodes
small_machine  memory of a hospital without torch, and of one with, in a task of real nodes
load      200 readers of the HTTP API with live events, while rounds are played
dashboard pages of the dashboard on a large made-up network: first content, requests, bytes, memory
many_tasks  an index of 10,000 tasks, and a worker with 300 live ones: memory, disk, handles
learning  what four hospitals learn: together, alone, federated and privately
learning_programs  MONAI's ResNet-18 as a program on chest X-rays, likewise; on a GPU
learning_language  a Llama with LoRA as a program on MedQuAD texts, likewise
learning_questions  time to recurrence, progress of a disease, and a rare event, on real tables, likewise
learning_masks  lesions in synthetic NIfTI volumes of four sites, likewise
codecs    what travels and how it is applied: bytes a round beside fp32, and the model, on four data sets
encoder   all weights of a pretrained encoder in six blobs, beside its adapters; an hour
fewest    the fewest bytes at plain averaging's AUC on chest X-rays
methods   FedProx, SCAFFOLD, FedAdam and others on hospitals whose patients differ
programs  a program beside the module that it was exported from: export, reading, each step
experts   experts of unequal size beside equal ones at equal FLOPs, on five domains
int8      models with weights of 8 bits as ONNX, beside whole ones
scans     a folder of DICOM files as a node reads it, beside pydicom alone
reading   a gigabyte of each kind of file as a node reads it, beside pandas and pydicom; memory; half an hour
learning_series  a series of measurements, likewise (see learning)
membership membership inference on published sums by two attackers, with and without noise
fair_judging honest cohorts that chance rejects or slashes, by metric, prevalence and voters' rows
fair_amounts the same for amounts and times
soak      two hours of rounds on the small internet: memory, handles, disks; as root
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Generator
from contextlib import closing, nullcontext
from importlib import import_module
from multiprocessing import active_children
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from bench.results_store import Skipped, header, write_result

# Each part's module, and the folder of the room or the subject that it measures.
PARTS = {
    "commit": "bench.zk.commit",
    "streaming": "bench.zk.streaming",
    "gas": "bench.chain.gas",
    "costs": "bench.chain.costs",
    "round": "bench.e2e.round",
    "foretold": "bench.e2e.foretold",
    "demo": "bench.e2e.demo",
    "first_result": "bench.e2e.first_result",
    "decoys": "bench.decoys.hiding",
    "decoy_codecs": "bench.decoys.by_codec",
    "learning": "bench.client.learning",
    "learning_programs": "bench.client.learning_programs",
    "learning_language": "bench.client.learning_language",
    "learning_questions": "bench.client.learning_questions",
    "learning_masks": "bench.client.learning_masks",
    "codecs": "bench.client.codecs",
    "encoder": "bench.client.encoder",
    "fewest": "bench.client.fewest",
    "methods": "bench.client.methods",
    "programs": "bench.client.programs",
    "experts": "bench.client.experts",
    "int8": "bench.client.int8",
    "scans": "bench.client.scans",
    "reading": "bench.client.reading",
    "learning_series": "bench.client.learning_series",
    "membership": "bench.client.membership",
    "fair_judging": "bench.client.fair_judging",
    "fair_amounts": "bench.client.fair_amounts",
    "chain_reads": "bench.chain.chain_reads",
    "indexing": "bench.server.indexing",
    "load": "bench.server.load",
    "dashboard": "bench.server.dashboard",
    "many_tasks": "bench.server.many_tasks",
    "network": "bench.e2e.network",
    "thousand": "bench.e2e.thousand",
    "hundred": "bench.e2e.hundred",
    "small_machine": "bench.e2e.small_machine",
    "soak": "bench.e2e.soak",
}
RESULTS = Path(__file__).resolve().parent / "results"


def _end(*_: object) -> NoReturn:
    """As an exception, so that what a measurement started is ended. A pool would first wait for its workers."""
    for child in active_children():
        child.terminate()
    sys.exit(143)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny runs: shows that it works, measures nothing")
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw the pictures of the results")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results go")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if given.draw:
        for part in given.parts or PARTS:
            if (path := given.results / f"{part}.json").exists():
                import_module(PARTS[part]).plot(json.loads(path.read_text()), given.results)
        return
    signal.signal(signal.SIGTERM, _end)
    console = Console()
    broke = False
    summary = Table("measurement", "result", box=None, pad_edge=False)
    for part in given.parts or PARTS:
        started = time.monotonic()
        console.print(f"[bold]{part}[/bold]")
        module = import_module(PARTS[part])
        brief = getattr(module, "brief", None)  # of those that measure more than they show
        before = header(f"python -m bench {part}{' --quick' if given.quick else ''}")
        try:
            measured = module.measure(given.quick)
            with closing(measured) if isinstance(measured, Generator) else nullcontext([measured]) as several:
                for found in several:  # so far, so far, and at the end
                    result = {**before, **found}
                    if brief is not None:
                        write_result(given.results / "raw", part, result)
                        result = brief(result)
                    write_result(given.results, part, result)
        except Skipped as why:
            console.print(f"  skipped: {why}")
            continue
        broke = broke or bool(result.get("broke"))
        module.plot(result, given.results)
        for name, text in module.table(result):
            summary.add_row(name, text)
        console.print(f"  {time.monotonic() - started:.0f} s")
    console.print()
    console.print(summary)
    if broke:
        sys.exit(1)


if __name__ == "__main__":
    main()
