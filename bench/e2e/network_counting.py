"""The counts of bench/e2e/network.py: time by phase, memory by kind of process, and gas by party from each receipt."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, cast

import psutil
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, TaskState
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.rpc.outgoing import TRANSACTION_GAS_LIMIT
from eth_typing import ABIFunction
from eth_utils.abi import function_abi_to_4byte_selector

from bench.e2e.network_parts import LOOK, TaskPlan
from bench.e2e.network_setting import Network, Size
from bench.results_store import say

MEMORY_LOOK = 3.0
MIB = 2**20
ROUND = 1  # the training round; before it the statistics
PHASES = {phase: phase.name.lower() for phase in Phase}
# What a transaction is for, by the calls in it, the first that fits.
KINDS = {
    "forming": ("formCohorts",),
    "committing": ("commitUpdates", "commitUpdate"),
    "uploading": ("fixSurvivors",),
    "disclosing": ("discloseDecoys", "settle"),
    "publishing": ("publish", "sumCommitments", "setDecoys"),
    "drawing": ("drawSeats",),
    "scoring": ("commitScores", "standDown"),
    "revealing": ("revealScores",),
    "staking": ("register",),
    "joining": ("registerVoterKey", "commitHeldOut", "joinAsHospital", "joinAsVoter", "joinAsAggregator"),
    "delegating": ("delegate",),
    "leaving": ("releaseBond",),
    "claiming": ("claim",),
    "proposing": ("propose",),
}


class Memory(threading.Thread):
    """PSS of this process and of all that come from it, in MiB: each kind's peak, and that of their sum."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, float] = defaultdict(float)
        self._over = threading.Event()

    def run(self) -> None:
        this = psutil.Process()
        while not self._over.wait(MEMORY_LOOK):
            found: dict[str, float] = defaultdict(float)
            for process in (this, *this.children(recursive=True)):
                try:
                    found[_kind_of(process, this.pid)] += process.memory_full_info().pss / MIB
                except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                    continue
            found["all"] = sum(found.values())
            for kind, mib in found.items():
                self.peaks[kind] = max(self.peaks[kind], mib)

    def __enter__(self) -> Memory:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def _kind_of(process: psutil.Process, this: int) -> str:
    if process.pid == this:
        return "this benchmark"
    words = process.cmdline()
    named = " ".join(words)
    if "anvil" in process.name():
        return "chain (anvil)"
    if "ClientAppActor" in named:
        return "hospitals (ray's actors)"
    if "network_parts" in named:
        kinds = {"join": "hospitals that join", "judge": "voters", "simulate": "aggregators and Flower's engine"}
        return next(kinds[word] for word in words if word in kinds)
    return "cell proofs" if "cell_proofs" in named else "ray itself"


class Watch(threading.Thread):
    """When each task came to each phase, in seconds since `started`."""

    def __init__(self, ledger: Ledger, tasks: Sequence[int], started: float) -> None:
        super().__init__(daemon=True)
        self._ledger, self._tasks, self._beginning = ledger, tasks, started
        self.seen: dict[int, list[tuple[int, Phase, float]]] = {task: [] for task in tasks}
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(LOOK):
            for task in self._tasks:
                self._note(task, self._ledger.tasks.state(task))

    def _note(self, task: int, state: TaskState) -> None:
        seen = self.seen[task]
        if seen and seen[-1][:2] == (state.round, state.phase):
            return
        at = time.monotonic() - self._beginning
        seen.append((state.round, state.phase, at))
        say(f"{at:6.0f} s  task {task}, round {state.round}: {state.phase.name.lower()}")

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()

    def spans(self) -> list[dict[str, Any]]:
        """Of rounds alone: joining is the same for all."""
        return [
            {"task": task, "round": round_, "phase": PHASES[phase], "from_s": round(at, 1), "to_s": round(end, 1)}
            for task, seen in self.seen.items()
            for (round_, phase, at), (_, _, end) in pairwise(seen)
            if phase is not Phase.JOINING
        ]


@dataclass(frozen=True)
class Transaction:
    """`kind`: what it is for, or "set-up"."""

    role: str
    kind: str
    calls: tuple[str, ...]
    gas: int
    blobs: int


def transactions_of(network: Network) -> Iterator[Transaction]:
    """All that are on chain."""
    names = {
        "0x" + function_abi_to_4byte_selector(cast(ABIFunction, entry)).hex(): entry["name"]
        for contract in CONTRACT_NAMES
        for entry in contract_artifact(contract).abi
        if entry["type"] == "function"
    }
    roles = {party.address.lower(): party.role for party in network.parties}
    blocks = [hex(number) for number in range(network.ledger.connection.blocks.number() + 1)]
    receipts = network.unsigned.ask([("eth_getBlockReceipts", [number]) for number in blocks])
    full = [number for number, found in zip(blocks, receipts, strict=True) if found]
    sent = {
        one["hash"]: one
        for block in network.unsigned.ask([("eth_getBlockByNumber", [number, True]) for number in full])
        for one in block["transactions"]
    }
    for receipt in (one for found in receipts for one in found):
        data = sent[receipt["transactionHash"]]["input"]
        calls = (names.get(data[:10], "deploy"),)
        if calls == ("multicall",):
            _, given = network.ledger.contracts.tasks.contract.decode_function_input(data)
            calls = tuple(dict.fromkeys(names["0x" + one[:4].hex()] for one in given["data"]))
        if receipt["status"] != "0x1":
            raise RuntimeError(f"a transaction of {calls} was refused on chain")
        role = roles.get(receipt["from"].lower(), "set-up")
        kind = "set-up" if role == "set-up" else next((k for k, of in KINDS.items() if set(of) & set(calls)), "staking")
        blobs = int(receipt.get("blobGasUsed") or "0x0", 16) // 2**17
        yield Transaction(role, kind, calls, int(receipt["gasUsed"], 16), blobs)


def told(
    size: Size,
    network: Network,
    transactions: Sequence[Transaction],
    spans: dict[str, tuple[float, float]],
    rounds: list[dict[str, Any]],
    claims: dict[str, int],
    traffic: list[dict[str, int]],
    peaks: dict[str, float],
) -> dict[str, Any]:
    counted = [one for one in transactions if one.kind != "set-up"]
    largest = max(counted, key=lambda one: one.gas)
    by_role: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in counted:
        by_role[one.role][one.kind] += one.gas
    counts = Counter(one.role for one in network.parties)
    lasted = defaultdict(list)
    for span in rounds:
        lasted[f"round {span['round']}: {span['phase']}"].append(span["to_s"] - span["from_s"])
    first, last = min(span["from_s"] for span in rounds), max(span["to_s"] for span in rounds)
    return {
        "size": asdict(size),
        "models": size.models,
        "hospitals": size.hospitals,
        "gas": sum(one.gas for one in counted),
        "wall_s": round(last - first, 1),
        "peak_mib": round(peaks["all"]),
        "cohort_hospitals": size.hospitals // size.tasks // size.cohorts,
        "parameters": network.spec.parameters,
        "seconds": {
            **{name: round(end - begin, 1) for name, (begin, end) in spans.items()},
            "both rounds of all tasks": round(last - first, 1),
        },
        "phase_seconds_slowest_task": {name: round(max(values), 1) for name, values in lasted.items()},
        "stages": [
            {"name": name, "from_s": round(begin, 1), "to_s": round(end, 1)} for name, (begin, end) in spans.items()
        ],
        "phases": rounds,
        "seats": [_seats(network, task) for task in network.tasks],
        "gas_by_role_and_phase": {role: dict(phases) for role, phases in by_role.items()},
        "gas_of_one": {role: round(sum(phases.values()) / counts[role]) for role, phases in by_role.items()},
        "gas_by_call": _by_call(counted),
        "gas_all": sum(one.gas for one in counted),
        "largest_transaction": {"calls": largest.calls, "role": largest.role, "gas": largest.gas},
        "transaction_gas_limit": TRANSACTION_GAS_LIMIT,
        "transactions": len(counted),
        "transactions_of_setting_up": len(transactions) - len(counted),
        "blobs": sum(one.blobs for one in counted),
        "claims": claims,
        "flower": {
            name: max(one[name] for one in traffic) if name == "largest_reply" else sum(one[name] for one in traffic)
            for name in traffic[0]
        },
        "peak_pss_mib": {kind: round(mib) for kind, mib in sorted(peaks.items(), key=lambda item: -item[1])},
    }


def _seats(network: Network, task: TaskPlan) -> dict[str, int]:
    state = network.ledger.tasks.round_state(task.number, ROUND)
    counted = {name: getattr(state, name).bit_count() for name in ("seated", "revealed", "survivors", "committed")}
    return {"task": task.number, **counted}


def _by_call(transactions: Sequence[Transaction]) -> dict[str, dict[str, int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for one in transactions:
        found[" + ".join(one.calls)].append(one.gas)
    return {
        name: {"count": len(gas), "mean": round(sum(gas) / len(gas)), "max": max(gas)}
        for name, gas in sorted(found.items(), key=lambda item: -sum(item[1]))
    }
