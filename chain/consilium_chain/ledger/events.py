"""Events of the contracts, since their deployment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from consilium_chain.ledger.contracts import Contracts
from consilium_chain.rpc.event_logs import Event

FINALITY = 64  # blocks of Ethereum that a reorganisation may reach back: two epochs


class ContractEvents:
    """Every method raises ChainUnreachable."""

    def __init__(self, contracts: Contracts) -> None:
        self._blocks, self._logs = contracts.connection.blocks, contracts.connection.logs
        self._token, self._staking, self._tasks, self._shares = (
            client.contract for client in (contracts.token, contracts.staking, contracts.tasks, contracts.model_shares)
        )
        self._deployed_at = contracts.deployment.first_block
        self._begun: dict[int, int] = {}  # by task, a block before all of its events

    def between(self, first_block: int | None = None, last_block: int | None = None) -> list[Event]:
        """Events of the task and staking contracts in [first, last]; by default from deployment to the latest block."""
        start = self._deployed_at if first_block is None else first_block
        last = self._blocks.number() if last_block is None else last_block
        return self._logs.events_of((self._tasks, self._staking), start, last)

    def indexed(self, first_block: int, last_block: int) -> list[Event]:
        """Events of the task and staking contracts and of model shares in [first, last]."""
        return self._logs.events_of((self._tasks, self._staking, self._shares), first_block, last_block)

    def naming(self, account: str) -> list[Event]:
        """Events of tasks, staking and token with the account in one of their fields."""
        first, last = self._deployed_at, self._blocks.number()
        contracts = (self._tasks, self._staking, self._token)
        found = [event for contract in contracts for event in self._logs.events_of([contract], first, last)]
        return [event for event in found if account in event.values.values()]

    def of_staking(self, name: str, last_block: int | None = None, **indexed: Any) -> Iterator[Event]:
        """Staking's events of this name, from deployment to a block, in order; by the values of indexed fields."""
        last = self._blocks.number() if last_block is None else last_block
        return self._logs.events(self._staking, self._deployed_at, last, name, **indexed)

    def of_tasks(self, name: str, **indexed: Any) -> Iterator[Event]:
        """Tasks' events of this name, in order; by the values of indexed fields."""
        first, last = self._deployed_at, self._blocks.number()
        if "taskId" in indexed and self._logs.bounds_spans:
            first = self._first_block_of(indexed["taskId"], last)
        return self._logs.events(self._tasks, first, last, name, **indexed)

    def of_task(self, name: str, task: int) -> list[Event]:
        """All events of this name and task, in order."""
        return list(self.of_tasks(name, taskId=task))

    def _first_block_of(self, task: int, last: int) -> int:
        """A block before which a task has no event: all events of an old deployment take hundreds of requests."""
        if task not in self._begun:
            first = self._deployed_at
            for event in self._logs.events(self._tasks, first, last, "TaskProposed", taskId=task):
                self._begun[task] = max(event.block - FINALITY, first)
                break
            else:  # the node is behind the chain
                return first
        return self._begun[task]
