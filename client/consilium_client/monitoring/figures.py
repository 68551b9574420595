"""The metrics of a hospital's or voter's process: its health, duties, rounds, money and privacy costs.

Labels are numbers of running tasks and words of fixed lists. No metric is about rows.
"""

from __future__ import annotations

import resource
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from consilium_chain.rounds.machine import duty
from consilium_core.errors import CoreError
from consilium_core.owner import FAULTS, MISSED
from cryptography import x509
from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from consilium_client.membership import ROUND_ERRORS
from consilium_client.monitoring.serving import Watched

MONEY_EVERY = 300.0  # seconds between two reads of the account's money
UNIT = 10**18  # of the smallest units, in a token and in ether
_VOID = ("NOT_SETTLED", "VOID", "NOT_PUBLISHED", "NOT_DISCLOSED", "MISMATCHED", "UNTESTED", "LATE")
_ABSENT = ("STRANGER", "SAT_OUT", "NO_SEAT")
_REJECTED = ("FALSE_UPLOAD", "HARMFUL", "REJECTED", "FAILED_DECOY", "FAR")
_ACCEPTED = ("STATISTICS", "PAID", "NO_IMPROVEMENT")
OUTCOMES: Mapping[str, str] = {
    **dict.fromkeys(_ACCEPTED, "accepted"),
    **dict.fromkeys(_REJECTED, "rejected"),
    **dict.fromkeys(MISSED, "missed"),
    **dict.fromkeys(_VOID, "void"),  # for all, by others' doing
    **dict.fromkeys(_ABSENT, "absent"),
}
"""By a payout's reason."""
_BY_TASK = {
    "training_seconds": "of the latest training",
    "judging_seconds": "of the latest judging",
    "epsilon": "privacy cost of the task so far",
    "epsilon_budget": "the task's bound on it",
}


class NodeMetrics(Collector):
    """Counts the node's events, and reads everything else when it is scraped, but for money: `keep_reading` asks the
    chain for that, so that no scrape waits for the chain.
    """

    def __init__(self, node: Watched) -> None:
        self._node = node
        self._money: dict[str, float] = {}
        self._ether: float | None = None
        self._due, self._is_over = threading.Event(), False
        self._by_task: dict[str, dict[int, float]] = {name: {} for name in _BY_TASK}
        self.registry = CollectorRegistry()
        count = partial(Counter, registry=self.registry)
        self._rounds = count("consilium_node_rounds_total", "rounds that are over, by this node's part", ("outcome",))
        self._missed = count("consilium_node_missed_deadlines_total", "rounds in which it missed a deadline")
        self._slashed = count("consilium_node_slashed_tokens_total", "tokens that slashes cost")
        self._rewards = count("consilium_node_rewards_tokens_total", "tokens earned")
        self._faults = count("consilium_node_faults_total", "faults that cost money if they stay", ("event",))
        self._chain_changes = count("consilium_node_chain_changes_total", "changes to another node of the chain")
        for outcome in OUTCOMES.values():
            self._rounds.labels(outcome)
        for event in FAULTS:
            self._faults.labels(event)
        ProcessCollector(registry=self.registry)
        self.registry.register(self)

    def hear(self, event: str, fields: Mapping[str, Any]) -> None:
        """Takes an event of the log."""
        task = fields.get("task", self._node.task)
        if event in FAULTS:
            self._faults.labels(event).inc()
        if event in ("joined", "settled", "left"):
            self._due.set()
        match event:
            case "chain-node-changed":
                self._chain_changes.inc()
            case "settled":
                self._rounds.labels(OUTCOMES[fields["reason"]]).inc()
                self._missed.inc(fields["reason"] in MISSED)
                self._slashed.inc(int(fields["slash"]) / UNIT)
                self._rewards.inc(int(fields["reward"]) / UNIT)
            case "committed":
                self._by_task["training_seconds"][task] = fields["train_s"]
            case "scored":
                self._by_task["judging_seconds"][task] = fields["seconds"]
            case "privacy":
                self._note_epsilon(task, fields["epsilon"], fields["of"])
            case "left":
                for values in self._by_task.values():
                    values.pop(task, None)

    def _note_epsilon(self, task: int, spent: float, budget: float) -> None:
        self._by_task["epsilon"][task], self._by_task["epsilon_budget"][task] = spent, budget

    def read_money(self) -> None:
        """Asks the chain for the account's money."""
        node = self._node
        staking, address, role = node.ledger.staking, node.ledger.address, node.role
        try:
            stake = staking.stake_of(address, role)
            kinds = {
                "free": stake.free, "bonded": stake.locked, "unbonding": stake.unbonding,
                "unvested": staking.unvested(address, role), "claimable": staking.claimable(address, address, role),
            }  # fmt: skip
            self._money = {kind: amount / UNIT for kind, amount in kinds.items()}
            self._ether = node.ledger.connection.ether() / UNIT
        except CoreError:
            self._faults.labels("chain-unreachable").inc()

    def read_epsilon(self) -> None:
        """Reads the cost of earlier private rounds; later ones are events."""
        with suppress(*ROUND_ERRORS):
            if self._node.task is not None and self._node.epsilon is not None:
                self._note_epsilon(self._node.task, *self._node.epsilon())

    def keep_reading(self) -> None:
        """Reads what takes long, again after an event that moves money, until `stop`."""
        self.read_epsilon()
        while not self._is_over:
            self.read_money()
            self._due.wait(MONEY_EVERY)
            self._due.clear()

    def stop(self) -> None:
        self._is_over = True
        self._due.set()

    def text(self) -> bytes:
        """All metrics, for one scrape."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        node = self._node
        yield _gauge("info", "1 while it runs", {(node.role.name.lower(), version("consilium")): 1}, "role", "version")
        yield from self._of_chain()
        yield _gauge("stake_tokens", "this account's stake and rewards", self._money, "kind")
        yield _gauge("ether", "ether for gas", {} if self._ether is None else {(): self._ether})
        for name, words in _BY_TASK.items():
            yield _gauge(name, words, self._by_task[name], "task")
        with suppress(OSError):
            free = shutil.disk_usage(node.home).free
            yield _gauge("disk_free_bytes", "on the disk of the home folder", {(): free})
        days = {name: left for name, path in node.certificates.items() if (left := _days_left(path)) is not None}
        yield _gauge("certificate_days", "until this node's copy of an authority's certificate ends", days, "of")
        users = {"node": resource.RUSAGE_SELF, "children": resource.RUSAGE_CHILDREN}
        peaks = {name: resource.getrusage(who).ru_maxrss * 1024 for name, who in users.items()}
        yield _gauge("peak_memory_bytes", "the most that it, or an ended child, has used", peaks, "process")

    def _of_chain(self) -> Iterator[GaugeMetricFamily]:
        """The time of the newest block that the node has read. The contract's deadlines follow the chain's clock."""
        node, now = self._node, time.time()
        pace = node.ledger.connection.blocks.heartbeat.pace
        if pace.number < 0:
            return
        age, asked_ago = now - pace.time, time.monotonic() - pace.asked_at
        yield _gauge("block", "the newest block that it has read", {(): pace.number})
        yield _gauge("block_age_seconds", "since that block's time", {(): age})
        words = "this machine's clock before the newest block's time, when it last asked for one"
        yield _gauge("clock_ahead_seconds", words, {(): age - asked_ago})
        left: dict[tuple[str, str], float] = {}
        for task, index in node.seats().items():
            seen = node.ledger.snapshots.latest.get(task)
            if seen is not None and (step := duty(node.role, seen.state, seen.round, index)) is not None:
                left[str(task), step.name.lower()] = seen.state.deadline - pace.time - age
        yield _gauge("duty_seconds", "until the deadline of what this node must do now", left, "task", "duty")


def _gauge(name: str, words: str, values: Mapping[Any, float], *labels: str) -> GaugeMetricFamily:
    """`values`: by a label's value, or by a tuple of several labels'."""
    found = GaugeMetricFamily(f"consilium_node_{name}", words, labels=labels)
    for key, value in dict(values).items():
        found.add_metric([str(one) for one in (key if isinstance(key, tuple) else (key,))], value)
    return found


def _days_left(certificate: Path) -> float | None:
    try:
        ends = [one.not_valid_after_utc for one in x509.load_pem_x509_certificates(certificate.read_bytes())]
    except (OSError, ValueError):
        return None
    return (min(ends).timestamp() - time.time()) / 86_400
