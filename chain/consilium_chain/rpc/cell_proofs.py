"""Cell proofs of blobs (EIP-7594), which every blob transaction has: 128 a blob, a fifth of a second of work.

ckzg holds the interpreter's lock meanwhile, so many blobs want processes. As a program, this module is such a process:
it reads blobs from standard input and writes their proofs to standard output, until the input ends.
"""

from __future__ import annotations

import queue
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO

import ckzg
from consilium_core.children import Child, start_module
from consilium_zk.blobs import Blob
from consilium_zk.constants import BYTES_PER_BLOB, BYTES_PER_COMPRESSED_G1
from consilium_zk.kzg import Commitment, commit, setup

from consilium_chain.errors import NotPossible

CELLS_PER_BLOB = 128
_PROOFS_BYTES = CELLS_PER_BLOB * BYTES_PER_COMPRESSED_G1

CellProofs = list[bytes]
"""128 proofs of 48 bytes."""


@dataclass(frozen=True)
class Sidecar:
    """The part beside a blob transaction (EIP-7594): a blob, its commitment, and the future proofs of its cells."""

    blob: Blob
    commitment: Commitment
    proofs: Future[CellProofs]


class CellProver:
    """Proves blobs in the background: in up to `processes` processes, or with 0 in a thread of this one.

    A process starts with the first blob that finds no idle one, in up to two seconds, and ends with its parent.
    """

    def __init__(self, processes: int) -> None:
        self._threads = ThreadPoolExecutor(max(processes, 1), thread_name_prefix="cell-proofs")
        self._has_processes = processes > 0
        self._begun: dict[Blob, Sidecar] = {}
        self._children: list[Child] = []
        self._idle: queue.SimpleQueue[Child] = queue.SimpleQueue()

    def prove(self, blob: Blob, commitment: Commitment) -> None:
        """Starts with a blob for later publication; the caller has computed its commitment."""
        proofs = self._threads.submit(self._prove_in_child if self._has_processes else cell_proofs, blob)
        self._begun[blob] = Sidecar(blob, commitment, proofs)

    def sidecar(self, blob: Blob) -> Sidecar:
        """The blob's sidecar, once. Its future raises CellProverEnded if a process ended too early."""
        if blob not in self._begun:
            self.prove(blob, commit(blob))
        return self._begun.pop(blob)

    def _prove_in_child(self, blob: Blob) -> CellProofs:
        child = self._idle_child()
        try:
            source, sink = child.stdout, child.stdin
            if source is None or sink is None:
                raise NotPossible("CellProverEnded", pid=child.pid)
            sink.write(blob)
            sink.flush()
            proofs = source.read(_PROOFS_BYTES)
        except OSError as error:
            raise NotPossible("CellProverEnded", pid=child.pid) from error
        finally:
            self._idle.put(child)
        if len(proofs) != _PROOFS_BYTES:
            raise NotPossible("CellProverEnded", pid=child.pid)
        starts = range(0, len(proofs), BYTES_PER_COMPRESSED_G1)
        return [proofs[start : start + BYTES_PER_COMPRESSED_G1] for start in starts]

    def _idle_child(self) -> Child:
        """At most one for each thread of the pool."""
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            child = start_module("consilium_chain.rpc.cell_proofs")
            self._children.append(child)
            return child

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            child.terminate()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()

    def __enter__(self) -> CellProver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def cell_proofs(blob: Blob) -> CellProofs:
    """The proofs, computed in this process."""
    _, proofs = ckzg.compute_cells_and_kzg_proofs(blob, setup())
    return [bytes(proof) for proof in proofs]


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    setup()
    while len(blob := source.read(BYTES_PER_BLOB)) == BYTES_PER_BLOB:
        sink.write(b"".join(cell_proofs(Blob(blob))))
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
