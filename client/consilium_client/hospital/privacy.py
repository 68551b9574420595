"""A hospital's records of what tasks learned of its rows: the privacy budget's, and those of exact statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger

from consilium_client.consent import Policy
from consilium_client.data.examples import Examples
from consilium_client.hospital.context import Context
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord

if TYPE_CHECKING:
    from consilium_client.privacy.accountant import PrivateRounds


class Privacy:
    """`rounds`: None in a task without differential privacy."""

    def __init__(self, context: Context, policy: Policy, examples: Examples) -> None:
        """Raises EpsilonUnreachable, ChargesUnknown, DeploymentInvalid."""
        self._context, self._examples = context, examples
        self.rounds = self._private_rounds(policy)
        exact = context.task.spec.statistics == "exact"
        self._statistics = ExactStatisticsRecord(context.settings.statistics_file) if exact else None

    def _private_rounds(self, policy: Policy) -> PrivateRounds | None:
        spec, context = self._context.task.spec, self._context
        if spec.privacy is None:
            return None
        from consilium_client.privacy.accountant import Budget, PrivateRounds  # Opacus: seconds to import, and 120 MB

        own = None if policy.max_epsilon is None else Budget(policy.max_epsilon, policy.delta)
        found = PrivateRounds(context.settings.privacy_file, own, context.name, spec, spec.privacy, self._examples.rows)
        for ledger in self._ledgers():
            found.make_up(ledger, context.store)
        return found

    @property
    def is_spent(self) -> bool:
        return self.rounds is not None and self.rounds.spent

    def require_affordable(self) -> None:
        """Raises BudgetExceeded; ClientError (StatisticsOverlap and others) if no exact
        statistics of these rows may leave.
        """
        if self.rounds:
            self.rounds.require_affordable()
        self._require_givable()

    def give_statistics(self) -> None:
        """Records that exact statistics leave, if the task takes them: on disk before anything of it is signed."""
        self._require_givable()
        if self._statistics:
            self._statistics.give(self._context.name, self._examples, self._context.task.spec.data)

    def _require_givable(self) -> None:
        """Raises ClientError (StatisticsOverlap and others), DeploymentInvalid."""
        if self._statistics is None:
            return
        for ledger in self._ledgers():
            self._statistics.require_complete(ledger, self._context.store)
        self._statistics.require_givable(self._context.name, self._examples, self._context.task.spec.data)

    def _ledgers(self) -> Iterator[Ledger]:
        """The task's, and those of earlier contracts on its chain. Raises DeploymentInvalid."""
        yield self._context.ledger
        for book in map(Deployment.read, self._context.settings.earlier_deployments):
            if book.chain_id == self._context.ledger.connection.chain_id:
                yield Ledger(self._context.ledger.connection, book)
