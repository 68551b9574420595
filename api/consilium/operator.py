"""An operator: its account, and the tasks that it proposes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.account import Account
from consilium.chain import checked_address
from consilium.sources import open_store
from consilium.task import Task

if TYPE_CHECKING:
    from consilium_chain.invites import SignedInvite
    from consilium_operators.proposals import Funding, Proposal, Proposed, Stop


class Operator(Account):
    """An operator's account on a chain. Without `confirm`, a method pays without a question."""

    def propose(
        self,
        task: Task,
        *,
        aggregator: str | None,
        artifacts: Sequence[str | Path],
        not_private: bool = False,
        again: bool = False,
        on_plan: Callable[[Proposal], None] = lambda plan: None,
        confirm: Callable[[Proposal], bool] | None = None,
    ) -> Proposed:
        """Stores the task's file, proposes the task, and pays its pool. Returns its number and the gas, in wei.

        `aggregator`: an account's address. `artifacts`: folders and URLs, of which the first gets the file.
        `not_private`: needed for a task without privacy. `again`: needed if this account has an open task with the same
        file, unless `confirm` agrees. `on_plan` gets costs and balances, in the smallest units, before funds are
        checked.

        Raises ConfigInvalid, MirrorUnsupported, StoreUnwritable, NotPossible (BlobsUnavailable,
        AddressMalformed, AddressMistyped), ConsentError (Unfunded), OperatorError (PrivacyMissing, AggregatorMissing,
        AlreadyProposed, ProposalNotConfirmed).
        """
        from consilium_operators.proposals import propose

        named = None if aggregator is None else checked_address(aggregator)
        return propose(
            self._ledger, open_store(artifacts), task.raw, named,
            not_private=not_private, again=again, on_plan=on_plan, confirm=confirm,
        )  # fmt: skip

    def fund(
        self,
        task: int,
        tokens: int,
        *,
        on_plan: Callable[[Funding], None] = lambda plan: None,
        confirm: Callable[[Funding], bool] = lambda plan: True,
    ) -> Funding:
        """Adds whole tokens to a task's pool while nodes join. Returns the pool and a round's pay, before and after.

        Raises ConsentError (Unfunded), OperatorError (BondOutweighed, ProposalNotConfirmed).
        """
        from consilium_operators.proposals import fund

        return fund(self._ledger, task, tokens, on_plan=on_plan, confirm=confirm)

    def stop(self, task: int, *, confirm: Callable[[Stop], bool] = lambda plan: True) -> Stop:
        """Ends a task after its current round, which is still paid; while nodes join, at once. Returns its last round.

        Raises OperatorError (ProposalNotConfirmed).
        """
        from consilium_operators.proposals import stop

        return stop(self._ledger, task, confirm=confirm)

    def invite(
        self,
        task: int,
        *,
        superlink: str | Sequence[str],
        ca_certificate: str | Path,
        artifacts: Sequence[str],
        chain_url: str | None = None,
        days: int = 14,
        name: str = "",
        sponsor_url: str = "",
        sponsor_ca: str | Path | None = None,
        report_to: str = "",
        on_doubt: Callable[[str, str], None] = lambda superlink, why: None,
    ) -> SignedInvite:
        """Signs an invite to a task that this account proposed: `written` is a file's content, `link` the same as text.

        `superlink`, `ca_certificate`: of the task's aggregator. Several SuperLinks are those of this task and of the
        shards that follow it: the invite is then to all of them. `artifacts`: URLs of artifact stores, on two hosts for
        a task by digest. `chain_url`: a public chain node, by default this operator's. `days`: until it expires.
        `name`: of the operator, to show. `sponsor_url`, `sponsor_ca`, `report_to`: as for `Client.create`. An invite is
        public: URLs with keys are refused. `on_doubt` gets each SuperLink that hospitals could not use now, with the
        reason: it may start later. Raises InviteRefused, ConsentError (CertificateInvalid), DeploymentInvalid,
        Refused (TaskUnknown).
        """
        from consilium_chain.invites import sign_invite

        from consilium.invites import InviteTerms, drafted

        terms = InviteTerms(
            superlink=superlink, ca_certificate=ca_certificate, artifacts=artifacts, chain_url=chain_url, days=days,
            name=name, sponsor_url=sponsor_url, sponsor_ca=sponsor_ca, report_to=report_to, on_doubt=on_doubt,
        )  # fmt: skip
        return sign_invite(drafted(self._ledger, task, self.address, False, terms), self._ledger.connection.signer)

    def refund(self) -> int:
        """Takes back the rest of ended tasks' pools. Returns it, in the token's smallest unit."""
        from consilium_operators.proposals import refund

        return refund(self._ledger)
