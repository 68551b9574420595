"""Task states and money, as the status screens of hospitals and voters show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.errors import SpecInvalid, SpecMismatch
from consilium_chain.keystore import address_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND, Phase, TaskState
from consilium_client.home import Home
from consilium_client.task import JoinedTask, load_task
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing
from consilium_core.live import log_to_stderr

UNREADABLE = (ArtifactMissing, ArtifactCorrupt, SpecInvalid, SpecMismatch)
HomeType = TypeVar("HomeType", bound=Home[Any, Any])


@dataclass(frozen=True)
class HomeVisit(Generic[HomeType]):
    """A home with its chain and store, to read only: its password is not read."""

    home: HomeType
    ledger: Ledger
    store: ArtifactStore

    @classmethod
    def to(cls, home: HomeType) -> Self:
        """Raises DeploymentInvalid, ChainUnreachable, MirrorUnsupported."""
        log_to_stderr()
        return cls(home, home.settings.reader(), ArtifactStore(home.settings.artifacts, passing=home.folder / CACHE))

    @property
    def account(self) -> str:
        return address_of(self.home.settings.keystore)

    def task(self, number: int) -> JoinedTask:
        return load_task(self.ledger, self.store, number)


def stand(state: TaskState) -> str:
    if state.phase in (Phase.JOINING, Phase.ENDED):
        return state.phase.name.lower()
    return f"round {state.round}, {state.phase.name.lower()}"


def said(names: Sequence[str] | str) -> str:
    return names if isinstance(names, str) else ", ".join(names)


def money_of(ledger: Ledger, account: str, number: int, state: TaskState) -> tuple[int, int, str]:
    """An account's rewards and slashes over a task's ended rounds, and the reason of the latest payout."""
    over = state.round + (state.phase is Phase.ENDED)
    payouts = [ledger.tasks.explain(number, round_, account) for round_ in range(STATISTICS_ROUND, over)]
    last = payouts[-1].reason.name.lower().replace("_", " ") if payouts else "–"
    return sum(p.reward for p in payouts), sum(p.slash for p in payouts), last
