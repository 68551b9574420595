"""One side of a private round in a process of its own, blob by blob: a hospital's, or the aggregator's.

    streamed.py hospital FOLDER INDEX    from update.bin to commitments and a masked upload
    streamed.py aggregator FOLDER        from the survivors' uploads to their mean, checked against their commitments

Both write what they took: seconds of processor time, and memory. Memory is the kernel's count of this process's largest
resident set (VmHWM): ru_maxrss is the same, but begins with that of whoever started the process. Pages of files in the
kernel's cache count for nobody, so files are read in chunks and never mapped.
"""

from __future__ import annotations

import json
import math
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from consilium_zk import masks
from consilium_zk.blobs import Blob, add, parse_blob, scale, with_blinders
from consilium_zk.constants import BLS_MODULUS, BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.curve import Commitment, weighted_sum
from consilium_zk.kzg import commit, commits_to, setup
from consilium_zk.packing import LaneLayout, packed, unpack
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray

CONTEXT = b"bench"
VALUES_AT_A_TIME = 1 << 16
CHECK_BITS = 128


@dataclass(frozen=True)
class Plan:
    """What both sides know. In a round each root is its hospital's alone, until the aggregator is given one of them."""

    parameters: int
    bits: int
    total_weight: int
    weight: int
    value_range: float
    max_norm: float
    key_roots: list[int]
    own_roots: list[int]
    survivors: list[int]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Plan:
        return cls(**json.loads(path.read_text()))

    @property
    def layout(self) -> LaneLayout:
        return LaneLayout(self.bits, self.total_weight)

    @property
    def quantiser(self) -> Quantiser:
        return Quantiser(self.bits, self.value_range)

    def pair_seeds(self, index: int) -> dict[int, bytes]:
        keys = {other: masks.mask_key(root) for other, root in enumerate(self.key_roots)}
        return masks.pair_seeds(index, self.key_roots[index], keys, CONTEXT)

    def own_seed(self, index: int) -> bytes:
        return masks.own_seed(self.own_roots[index], CONTEXT)


class Stages:
    """Processor seconds of named stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.process_time()
        yield
        self.seconds[name] = round(time.process_time() - started, 3)


def memory(name: str) -> int:
    """KiB: VmRSS, what is resident now, or VmHWM, the most that ever was."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def chunks(path: Path) -> Iterator[NDArray[np.float32]]:
    """The values of a file of float32."""
    with path.open("rb") as file:
        while (chunk := np.fromfile(file, np.float32, VALUES_AT_A_TIME)).size:
            yield chunk


def blobs_of(path: Path) -> Iterator[Blob]:
    with path.open("rb") as file:
        while raw := file.read(BYTES_PER_BLOB):
            yield parse_blob(raw)


def norm(path: Path) -> float:
    """Euclidean, of a file of float32, whose squares float64 holds."""
    total = 0.0
    for chunk in chunks(path):
        total = math.hypot(total, float(np.linalg.norm(chunk.astype(np.float64))))
    return total


def hospital(folder: Path, index: int) -> dict[str, object]:
    """Writes the commitments and the masked, weighted blobs; the blobs themselves stay in a spool of its own."""
    plan, stages = Plan.read(folder / "plan.json"), Stages()
    update, spool = folder / "update.bin", folder / f"spool-{index}"
    with stages.stage("clip"):
        factor = min(1.0, plan.max_norm / norm(update))
    generator = np.random.default_rng(secrets.randbits(128))
    quantiser = plan.quantiser
    lanes = (quantiser.quantise(chunk * factor, generator.random(chunk.size)) for chunk in chunks(update))
    commitments: list[Commitment] = []
    with stages.stage("quantise, pack, blind, commit"), spool.open("wb") as sink:
        for blob in packed(lanes, plan.layout):
            blinded = with_blinders(blob, secrets.randbelow(BLS_MODULUS), secrets.randbelow(BLS_MODULUS))
            commitments.append(commit(blinded))
            sink.write(blinded)
    (folder / f"commitments-{index}").write_bytes(b"".join(commitments))
    own, pairs = plan.own_seed(index), plan.pair_seeds(index)
    with stages.stage("mask"), (folder / f"upload-{index}").open("wb") as sink:
        for number, blob in enumerate(blobs_of(spool)):
            sink.write(add([scale(blob, plan.weight), masks.mask(index, own, pairs, number)]))
    return {"seconds": stages.seconds, "blobs": len(commitments)}


def aggregator(folder: Path) -> dict[str, object]:
    """Adds up the uploads, takes the masks away, checks the sum, and writes mean.bin, float32."""
    plan, stages = Plan.read(folder / "plan.json"), Stages()
    survivors, sums = plan.survivors, folder / "sums"
    dropped = {
        index: {other: seed for other, seed in plan.pair_seeds(index).items() if other in survivors}
        for index in range(len(plan.key_roots))
        if index not in survivors
    }
    own = [plan.own_seed(index) for index in survivors]
    with stages.stage("add up commitments"), ExitStack() as stack:
        files = [stack.enter_context((folder / f"commitments-{index}").open("rb")) for index in survivors]
        expected = [
            weighted_sum([Commitment(point) for point in points], [plan.weight] * len(survivors))
            for points in in_step(files, BYTES_PER_COMPRESSED_G1)
        ]
    factors = [secrets.randbits(CHECK_BITS) for _ in expected]

    def unmasked(sink: BinaryIO) -> Iterator[Blob]:
        for number, uploads in enumerate(zip(*(blobs_of(folder / f"upload-{i}") for i in survivors), strict=True)):
            total = masks.without(add(uploads), masks.residue(own, dropped, number))
            sink.write(total)
            yield total

    with stages.stage("add up, unmask, check"), sums.open("wb") as sink:
        matches = commits_to(unmasked(sink), expected, factors)
    if not matches:
        raise RuntimeError("the sum is not what was committed to")
    weight, left = plan.weight * len(survivors), plan.parameters
    with stages.stage("unpack"), (folder / "mean.bin").open("wb") as sink:
        for blob in blobs_of(sums):
            count = min(left, plan.layout.lanes_per_blob)
            lanes = unpack([blob], count, plan.layout, weight)
            plan.quantiser.dequantise_mean(lanes, weight).astype(np.float32).tofile(sink)
            left -= count
    return {"seconds": stages.seconds, "blobs": len(expected)}


def in_step(files: Sequence[BinaryIO], size: int) -> Iterator[list[bytes]]:
    """So many bytes of each file at a time, until the first ends."""
    while all(pieces := [file.read(size) for file in files]):
        yield pieces


def main(role: str, home: str, index: str = "") -> None:
    folder = Path(home)
    setup()
    before = {"baseline_kib": memory("VmRSS"), "baseline_peak_kib": memory("VmHWM")}
    took = hospital(folder, int(index)) if role == "hospital" else aggregator(folder)
    (folder / f"{role}{index}.json").write_text(json.dumps({**before, **took, "peak_kib": memory("VmHWM")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
