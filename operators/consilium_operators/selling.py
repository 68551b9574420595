"""Parts of finished models: minted by anybody, paid by anybody, claimed by their holders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.shares import WHOLE
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.tasks.sale_spec import SaleSpec, head_of
from consilium_chain.tasks.task_spec import parse_task_spec

from consilium_operators.errors import OperatorError

# The most gas of a page of minting: reading all nodes, and one reward of a round with this many cohorts.
_GAS_OF_NODES, _GAS_OF_PAGE = 3_500_000, 14_000_000
_GAS_OF_STEP, _GAS_OF_COHORT = 90_000, 6_000


@dataclass(frozen=True)
class Holding:
    """`account`: the operator's or a node's. `holder`: the address that has the parts, of a node its pool's. `parts`:
    of `WHOLE`. `claimable`: in the token's smallest unit.
    """

    account: str
    role: Literal["operator", "hospital", "voter"]
    holder: str
    parts: int
    claimable: int

    @property
    def percent(self) -> float:
        return 100 * self.parts / WHOLE


@dataclass(frozen=True)
class TaskShares:
    """`terms`: None if the chain has not been shown the task's file. `paid`: all that was ever paid to its holders, in
    the token's smallest unit. `holdings`: of the operator as first owner, and of all nodes that earned parts; empty
    before the parts are minted.
    """

    task: int
    terms: SaleSpec | None
    is_minted: bool
    paid: int
    holdings: tuple[Holding, ...]


def shares_of(ledger: Ledger, task: int) -> TaskShares:
    """Raises Refused (TaskUnknown)."""
    shares = ledger.shares
    state, is_minted = ledger.tasks.state(task), shares.is_minted(task)
    holdings = []
    if is_minted:
        nodes = [(one.node, Role.HOSPITAL) for one in ledger.tasks.hospitals(task)]
        nodes += [(one.node, Role.VOTER) for one in ledger.tasks.voters(task)]
        holdings.append(_holding(ledger, task, state.operator, "operator", state.operator))
        for node, role in nodes:
            name: Literal["hospital", "voter"] = "hospital" if role is Role.HOSPITAL else "voter"
            holdings.append(_holding(ledger, task, node, name, shares.pool_address(node, role)))
    held = tuple(one for one in holdings if one.parts or one.claimable)
    return TaskShares(task, shares.terms(task), is_minted, shares.paid(task), held)


def _holding(
    ledger: Ledger, task: int, account: str, role: Literal["operator", "hospital", "voter"], holder: str
) -> Holding:
    shares = ledger.shares
    return Holding(account, role, holder, shares.parts(task, holder), shares.claimable(task, holder))


def mint(
    ledger: Ledger, store: ArtifactStore, task: int, on_page: Callable[[int], None] = lambda page: None
) -> TaskShares:
    """Shows the chain the task's terms of sale, unless it knows them, and mints all parts, in pages. `on_page` gets the
    number of each finished page, from 1.

    Raises OperatorError (NotForSale, TaskNotEnded), StoreMissing, SpecInvalid, and Refused (NothingEarned).
    """
    shares, params = ledger.shares, ledger.tasks.params(task)
    if ledger.tasks.state(task).phase is not Phase.ENDED:
        raise OperatorError("TaskNotEnded", task=task)
    if shares.terms(task) is None:
        raw = store.get_file(params.spec_hash)
        spec = parse_task_spec(raw)
        if (sale := spec.sale) is None:
            raise OperatorError("NotForSale", task=task)
        shares.show_terms(task, head_of(raw, spec), sale)
    steps = (_GAS_OF_PAGE - _GAS_OF_NODES) // (_GAS_OF_STEP + params.cohorts * _GAS_OF_COHORT)
    page = 0
    while not shares.is_minted(task):
        shares.mint(task, steps)
        on_page(page := page + 1)
    return shares_of(ledger, task)


def pay(ledger: Ledger, task: int, amount: int) -> TaskShares:
    """Pays `amount`, in the token's smallest unit, to the holders of a task's parts.

    Raises Refused (NotMinted, AmountIsZero, ERC20InsufficientBalance).
    """
    ledger.shares.pay(task, amount)
    return shares_of(ledger, task)


def claim(ledger: Ledger, task: int) -> int:
    """Pays out this account's money of a task. Returns it, in the token's smallest unit.

    Raises Refused (NothingToClaim).
    """
    before = ledger.shares.claimable(task, ledger.address)
    ledger.shares.claim(task)
    return before


def claim_for_nodes(ledger: Ledger, task: int) -> int:
    """Hands the money of all nodes of a task over to their pools. Returns it, in the token's smallest unit; 0 if there
    is none.
    """
    total = 0
    for one in shares_of(ledger, task).holdings:
        if one.role == "operator" or not one.claimable:
            continue
        ledger.shares.claim_for_pool([task], one.account, Role.HOSPITAL if one.role == "hospital" else Role.VOTER)
        total += one.claimable
    return total
