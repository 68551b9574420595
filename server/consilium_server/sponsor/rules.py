"""What a sponsor pays for. Pure: no chain, no clock.

What bounds its cost: whoever is not in the task must join it with the same batch, which locks a bond until the task
ends and takes one of its places. So a sponsor pays at most its budget for as many hospitals as the task takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.calls import NamedCall

from consilium_server.errors import NotSponsored

JOIN = ("tasks", "joinAsHospital")
# By contract and function, the arguments that must be the sponsor's own of that name.
PAID: dict[tuple[str, str], dict[str, str]] = {
    ("token", "approve"): {"spender": "staking"},
    ("staking", "register"): {"role": "role"},
    ("staking", "delegate"): {"role": "role", "node": "account"},
    ("staking", "claim"): {"role": "role", "node": "account"},
    ("staking", "startUnbonding"): {"role": "role", "node": "account"},
    ("staking", "withdraw"): {},
    JOIN: {"taskId": "task"},
    ("tasks", "resume"): {"taskId": "task"},
    ("tasks", "commitUpdate"): {"taskId": "task"},
    ("tasks", "testify"): {"taskId": "task"},
    ("tasks", "tick"): {"taskId": "task"},
    ("tasks", "releaseBond"): {"taskId": "task", "account": "account"},
    ("tasks", "claim"): {},
}


@dataclass(frozen=True)
class Terms:
    """`staking` is that contract's address; `budget` in gas for each hospital of the task."""

    task: int
    staking: str
    budget: int

    def check_calls(self, account: str, calls: Sequence[NamedCall | None], is_hospital: bool) -> None:
        """Raises NotSponsored; None stands for a call of nothing that is known."""
        own = {"task": self.task, "staking": self.staking, "account": account, "role": Role.HOSPITAL}
        for call in calls:
            wanted = None if call is None else PAID.get((call.contract, call.name))
            if call is None or wanted is None:
                shown = "something unknown" if call is None else f"{call.contract}.{call.name}"
                raise NotSponsored(f"it calls {shown}, which this sponsor does not pay for")
            for argument, name in wanted.items():
                if call.arguments[argument] != own[name]:
                    raise NotSponsored(f"{call.name} is not of its own {name}, task {self.task}")
        if not is_hospital and JOIN not in [(call.contract, call.name) for call in calls if call]:
            raise NotSponsored(f"{account} is no hospital of task {self.task}, nor would it join with this")

    def check_gas(self, spent: int, gas: int) -> None:
        """Raises NotSponsored."""
        if spent + gas > self.budget:
            left = max(self.budget - spent, 0)
            raise NotSponsored(f"of {self.budget:,} gas for each hospital {left:,} are left, and this takes {gas:,}")
