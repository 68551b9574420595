"""A large network in the index: invented events, of which no chain knows, through the indexer's own functions."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.structs import Phase, Role, TaskParams
from consilium_chain.rpc.blocks import Head
from consilium_chain.rpc.event_logs import Event
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_server.database.engine import open_database, writing
from consilium_server.database.tables import Block, Source, Spec
from consilium_server.index import store
from consilium_server.index.facts import facts
from consilium_server.index.staking_facts import Known
from eth_utils.address import to_checksum_address
from sqlalchemy import Engine

SPAN = 120 * 86_400  # seconds from the first event to now
CHUNK = 5_000  # events of one transaction
ROLES = (Role.HOSPITAL,) * 6 + (Role.VOTER,) * 3 + (Role.AGGREGATOR,)
NODES_A_BLOCK, DELEGATIONS_A_BLOCK = 50, 250
NAME = "NAME"  # in the text of the task file: each task has its own


@dataclass(frozen=True)
class Size:
    """`popular`: of a hundred delegations, to the first node. `largest`: hospitals, voters, rounds of the last task."""

    tasks: int = 3_000
    nodes: int = 1_000
    delegators: int = 20_000
    delegations: int = 100_000
    rounds: int = 4
    running: int = 30
    popular: int = 10
    largest: tuple[int, int, int] = (200, 40, 20)

    @property
    def blocks(self) -> int:
        return -(-self.nodes // NODES_A_BLOCK) + -(-self.delegations // DELEGATIONS_A_BLOCK) + self.tasks


@dataclass
class Invented:
    """Events of the contracts, one block after the other. Amounts and members are random, always the same."""

    deployment: Deployment
    text: str
    size: Size
    params: dict[int, TaskParams] = field(default_factory=dict)
    specs: list[Spec] = field(default_factory=list)
    block: int = 0
    log: int = 0

    def __post_init__(self) -> None:
        self.random, self.began = random.Random(0), int(time.time()) - SPAN
        self.nodes = {self._account(): ROLES[at % len(ROLES)] for at in range(self.size.nodes)}
        self.delegators = [self._account() for _ in range(self.size.delegators)]
        self.operators = [self._account() for _ in range(max(2, self.size.tasks // 50))]
        self.assets, self.earnings = dict.fromkeys(self.nodes, 0), dict.fromkeys(self.nodes, 1)

    def time_of(self, block: int) -> int:
        return self.began + SPAN * block // self.size.blocks

    def events(self) -> Iterator[Event]:
        nodes = list(self.nodes)
        for at, node in enumerate(nodes):
            self.begin_block(at, NODES_A_BLOCK)
            yield self._staking("NodeRegistered", node, commissionBps=self.random.randrange(2_000))
            yield self.delegated(node, node, self.random.randint(1, 100) * 1_000 * TOKEN)
        for at in range(self.size.delegations):
            self.begin_block(at, DELEGATIONS_A_BLOCK)
            node = nodes[0] if self.random.randrange(100) < self.size.popular else self.random.choice(nodes)
            yield self.delegated(node, self.random.choice(self.delegators), self.random.randint(1, 500) * TOKEN)
        for task in range(1, self.size.tasks + 1):
            self.begin_block(0, 1)
            yield from self._task(task)

    def _account(self) -> str:
        return str(to_checksum_address(self.random.randbytes(20)))

    def begin_block(self, at: int, each: int) -> None:
        if at % each == 0:
            self.block, self.log = self.block + 1, 0

    def _event(self, contract: str, name: str, **values: Any) -> Event:
        self.log += 1
        return Event(name, values, self.block, self.log, f"0x{self.block:032x}{self.log:032x}", contract)

    def _staking(self, name: str, node: str, **values: Any) -> Event:
        return self._event(self.deployment.staking, name, node=node, role=int(self.nodes[node]), **values)

    def delegated(self, node: str, delegator: str, amount: int) -> Event:
        self.assets[node] += amount
        totals = {"totalAssets": self.assets[node], "totalShares": self.assets[node]}
        return self._staking("Delegated", node, delegator=delegator, amount=amount, shares=amount, **totals)

    def _task(self, task: int) -> Iterator[Event]:
        hospitals, voters, rounds = self.size.largest if task == self.size.tasks else (4, 3, self.size.rounds)
        aggregator, training, judging = (
            self._some(role, count)
            for role, count in ((Role.AGGREGATOR, 1), (Role.HOSPITAL, hospitals), (Role.VOTER, voters))
        )
        of = partial(self._event, self.deployment.tasks, taskId=task)
        text = self.text.replace(NAME, f"study-{task}").encode()
        self.specs.append(Spec(spec_hash(text), text.decode()))
        params = self.params[task] = task_params(parse_task_spec(text), spec_hash(text), aggregator[0])
        yield of(
            "TaskProposed", operator=self.random.choice(self.operators), specHash=spec_hash(text), pool=params.pool
        )
        deadline = self.time_of(self.block) + 600
        yield of("PhaseStarted", round=0, phase=Phase.JOINING, deadline=deadline)
        yield of("AggregatorJoined", aggregator=aggregator[0])
        for at, node in enumerate(training):
            yield of("HospitalJoined", hospital=node, index=at, weight=self.random.randint(50, 500))
        for at, node in enumerate(judging):
            yield of("VoterJoined", voter=node, index=at)
        for number in range(1, rounds + 1):
            yield of("PhaseStarted", round=number, phase=Phase.COMMITTING, deadline=deadline)
            if number == rounds and task > self.size.tasks - self.size.running:
                return
            members = [*training, *judging, *aggregator]
            yield from self._settled(of, number, members, params.pool // (2 * rounds * len(members)))
        yield of("TaskEnded", refund=params.pool // 10, burnt=0)
        yield of("PhaseStarted", round=rounds, phase=Phase.ENDED, deadline=0)

    def _settled(self, of: Any, number: int, members: Sequence[str], most: int) -> Iterator[Event]:
        """`most`: of a member's pay, so that no pool pays more than it has."""
        yield of("CohortsFormed", round=number, seed=b"\0" * 32, members=[2**4 - 1])
        accepted = self.random.randrange(10) > 0
        medians = [self.random.randint(1, 30_000) if accepted else -5_000]
        yield of("RoundSettled", round=number, medians=medians, acceptedCohorts=int(accepted))
        for node in members if accepted else ():
            self.earnings[node] += 2**36
            yield of("Rewarded", round=number, account=node, amount=self.random.randint(1, most))
            yield self._staking("RewardAdded", node, amount=TOKEN, vestingEnd=0)
            yield self._staking("RewardsVested", node, commission=0, indexX48=self.earnings[node])

    def _some(self, role: Role, count: int) -> list[str]:
        able = [node for node, of in self.nodes.items() if of is role]
        return self.random.sample(able, min(count, len(able)))


def write(invented: Invented, url: str) -> int:
    """All events into an empty database; returns how many there are."""
    engine, known, events, written = open_database(url), Known(), invented.events(), 0
    with writing(engine) as connection:
        store.add(connection, [Source(invented.deployment.chain_id, invented.deployment.tasks)])
    blocks: set[int] = set()
    while part := list(islice(events, CHUNK)):
        _add(engine, invented, known, part, {event.block for event in part} - blocks)
        blocks |= {event.block for event in part}
        written += len(part)
    with writing(engine) as connection:
        store.add(connection, invented.specs)
        store.advance(connection, Head(invented.block, _hash(invented.block), invented.time_of(invented.block)))
    engine.dispose()
    return written


def _add(engine: Engine, invented: Invented, known: Known, events: Sequence[Event], new: Iterable[int]) -> None:
    times = {event.block: invented.time_of(event.block) for event in events}
    rows = facts(events, times, invented.deployment.staking, known, invented.params)
    with writing(engine) as connection:
        store.add(connection, [Block(number, _hash(number), times[number]) for number in sorted(new)])
        store.add(connection, rows)


def follow(invented: Invented, url: str) -> None:
    """One more block, with a delegation to the first node, as the indexer adds it."""
    engine = open_database(url)
    invented.begin_block(0, 1)
    node = next(iter(invented.nodes))
    event = invented.delegated(node, invented.delegators[0], TOKEN)
    with writing(engine) as connection:
        known = store.known(connection)
        store.add(connection, [Block(event.block, _hash(event.block), int(time.time()))])
        store.add(connection, facts([event], {event.block: int(time.time())}, invented.deployment.staking, known, {}))
        store.advance(connection, Head(event.block, _hash(event.block), int(time.time())))
    engine.dispose()


def _hash(block: int) -> bytes:
    return block.to_bytes(32, "big")
