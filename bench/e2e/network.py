"""A network of the size that FLock reports (176 training nodes, 236 validators, 1,178 delegators) through one round.

Real: the contracts on a local chain (anvil) and every transaction of every party, with its checks; hospitals', voters'
and aggregators' own classes with homes, keys and approvals as their owners make them; what crosses the network between
hospitals and aggregators, byte for byte (`HospitalNode.answer` behind the relay's own Flower app: training, quantising,
masks, share bundles, KZG commitments, signatures, audit logs); the aggregators (`Aggregator.conduct`),
their sums, checks, blobs and cell proofs; tickets, evaluations, commitments and reveals of the voters
(`VoterNode.poll`).

Simulated: Flower's transport, which is its simulation engine (`flwr.simulation`, ray) instead of SuperLink and
SuperNodes, so that no node is authenticated by its transport key. Two actors, one for each core, play all hospitals:
one trains when it is asked to, and not as soon as the chain lets it, and whatever a real one does between requests
(returning, claiming, its own commitment where nobody relays it) does not happen. All aggregators are threads of one
process, all voters two processes. Rows are drawn with replacement from 569 real ones (Wisconsin breast cancer): what is
learnt means nothing.

Ether falls from the sky; tokens, stakes, delegations, and everybody's release of bonds and claims in the end are
transactions as any, but not signed (anvil's impersonation). The chain mines every other transaction at once, and a
block every second besides. Its clock is put forward once, by the vesting period before the claims; every phase ends by
what its parties do, and none by its deadline.

Gas is counted from the receipts of all blocks, memory as proportional set size (PSS) of all processes every three
seconds.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from consilium_chain.deploying.address_book import LOCAL_VESTING
from consilium_chain.ledger.structs import Outcome
from consilium_chain.rpc.local_node import LocalNode

from bench.children import Child
from bench.e2e import network_drawing, network_parts
from bench.e2e.network_counting import ROUND, Memory, Watch, told, transactions_of
from bench.e2e.network_setting import Network, Size, Unsigned
from bench.results_store import say

WORKERS = 2  # processes that join hospitals; and those of the voters
PATIENCE = 3 * 3600.0
FLOCK = Size(tasks=1, hospitals=176, voters=236, delegators=1_178, cohorts=4, seats=30)
QUICK = Size(tasks=2, hospitals=6, voters=4, delegators=10, cohorts=1, seats=2)  # all are seated


def measure_size(size: Size) -> dict[str, Any]:
    """One round of every task, from empty accounts to claimed rewards."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        LocalNode() as node,
        Unsigned(node) as unsigned,
        Memory() as memory,
    ):
        started = time.monotonic()
        spans: dict[str, tuple[float, float]] = {}

        def done(what: str, since: float) -> float:
            now = time.monotonic() - started
            spans[what] = since, now
            say(f"{now:6.0f} s  {what}: {now - since:.1f} s")
            return now

        home = Path(folder)
        network = Network(size, home, node, unsigned)
        plan_file, program = str(network.plan.write()), network_parts.__name__
        at = done("homes, tokens and tasks", 0.0)
        network.stake()
        at = done("staking", at)
        with ExitStack() as stack:
            for kind in ("join", "judge"):
                children = [
                    stack.enter_context(
                        Child([program, kind, plan_file, str(k), str(WORKERS)], home / f"{kind}-{k}.log")
                    )
                    for k in range(WORKERS)
                ]
                if kind == "join":
                    for child in children:
                        child.wait(PATIENCE)
                    at = done("hospitals join", at)
            while network.joined() < size.hospitals + size.voters:
                if dead := [child for child in children if child._process.poll() is not None]:
                    dead[0].wait(0)
                time.sleep(1.0)
            at = done("voters join", at)
            network.delegate()
            at = done("delegating", at)
            with Watch(network.plan.ledger(), [task.number for task in network.tasks], started) as watch:
                with Child([program, "simulate", plan_file], home / "simulation.log") as simulation:
                    simulation.wait(PATIENCE)
                for child in children:
                    child.wait(60)
            done("rounds, with the engine's start and end", at)
        at = time.monotonic() - started
        _require_settled(network)
        network.leave()
        at = done("leaving", at)
        network.unsigned.ask([("evm_increaseTime", [LOCAL_VESTING]), ("evm_mine", [])])
        claims = network.claim()
        done("claiming", at)
        receipts = list(transactions_of(network))
        traffic = json.loads((home / "simulation.json").read_text()).values()
        return told(size, network, receipts, spans, watch.spans(), claims, list(traffic), dict(memory.peaks))


def _require_settled(network: Network) -> None:
    """Raises RuntimeError unless every hospital is in its task's sum, and the round settled."""
    for task in network.tasks:
        found = network.ledger.tasks.round_state(task.number, ROUND)
        if found.outcome is not Outcome.SETTLED or found.survivors.bit_count() != len(task.hospitals):
            raise RuntimeError(f"task {task.number} has no whole round: {found}")


def measure(quick: bool) -> dict[str, Any]:
    return {"what": __doc__.split("\n\n")[0], **measure_size(QUICK if quick else FLOCK)}


def plot(result: dict[str, Any], folder: Path) -> None:
    network_drawing.draw(result, folder, "network")


def table(result: dict[str, Any]) -> list[tuple[str, str]]:
    return network_drawing.table(result)
