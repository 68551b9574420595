"""The demo's reference trainings, in a process of their own: it reads the nodes' files, and logs what came of them."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.config import HospitalHomeSettings, VoterHomeSettings
from consilium_client.data.examples import Examples, joined
from consilium_client.data.kinds import read_examples
from consilium_client.home import HospitalHome, VoterHome
from consilium_client.programs.confined import without_windows
from consilium_client.programs.library import offer
from consilium_core.logs import emit
from consilium_core.private_files import write_private_file

from consilium_lab.demo.references import Metrics, each_alone, mean_of, trained_pooled


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", type=Path)
    parser.add_argument("--artifacts", type=Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--hospitals", type=Path, nargs="+")
    parser.add_argument("--voters", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, help="file for the API's references, JSON")
    given = parser.parse_args()
    spec = parse_task_spec(given.task.read_bytes())
    offer(ArtifactStore(given.artifacts), spec)

    def examples(settings: HospitalHomeSettings | VoterHomeSettings) -> Examples:
        return read_examples(settings.data, spec.data, settings.mapping)

    parts = [examples(HospitalHome.open(home).settings) for home in given.hospitals]
    held_out = joined([examples(VoterHome.open(home).settings) for home in given.voters])
    with without_windows():
        pooled = trained_pooled(spec, parts, held_out, given.seed)
        each = each_alone(spec, parts, held_out, given.seed)
    alone = mean_of(each)
    emit("compared", pooled=pooled, local_only=alone, each=each)
    if given.output is not None:
        write_private_file(given.output, json.dumps({"pooled": _finite(pooled), "alone": _finite(alone)}))


def _finite(metrics: Metrics) -> Metrics:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


if __name__ == "__main__":
    main()
