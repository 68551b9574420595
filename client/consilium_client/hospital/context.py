"""The connections that all parts of one hospital's node share."""

from __future__ import annotations

from dataclasses import dataclass

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.deploying.networks import confirmations_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role
from consilium_chain.rounds.machine import View

from consilium_client.config import HospitalSettings
from consilium_client.errors import NodeError
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog
from consilium_client.membership import Membership
from consilium_client.task import JoinedTask, load_task


@dataclass(frozen=True)
class Context:
    """`name`: the task's name, for folders in the home."""

    settings: HospitalSettings
    audit: AuditLog
    ledger: Ledger
    store: ArtifactStore
    task: JoinedTask
    membership: Membership
    name: str

    @classmethod
    def open(cls, settings: HospitalSettings) -> Context:
        """Every transaction is in the audit log before it leaves."""
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        audit = AuditLog(settings.home / AUDIT_FILE)
        ledger = settings.connect()
        ledger.connection.transactions.witness = audit
        name = ledger.folder_name(settings.task)
        store = ArtifactStore(settings.artifacts, passing=settings.home / CACHE / name)
        task = load_task(ledger, store, settings.task)
        return cls(settings, audit, ledger, store, task, Membership(ledger, settings.task, Role.HOSPITAL), name)

    def view(self) -> View:
        """The task as the chain has it now. Raises ChainUnreachable."""
        params, seen = self.task.params, self.ledger.snapshots.of(self.task.number, Role.HOSPITAL)
        return View(
            seen.state, seen.round, seen.time, masked=params.masked, publish_window=params.publish_window,
            block=seen.block, roster=seen.roster,
        )  # fmt: skip

    def shows_at(self, view: View) -> int:
        """The block from which on this hospital shows its points. A masked round waits until a reorganisation cannot
        open its commitments again: a colluder that knew the others' points could then make any sum by committing anew.
        """
        if not view.masked or view.state.phase not in (Phase.UPLOADING, Phase.PUBLISHING):
            return 0
        return self._confirmed_at(view, Phase.UPLOADING)

    def signs_at(self, view: View) -> int:
        """The block from which on this hospital signs an update. Secret shares are for the cohort's members in their
        order, and a reorganisation may change both: committed then, they would pass for false ones.
        """
        if not view.masked or self._confirmations == 1:  # then the view's block is enough: spares a request
            return 0
        return self._confirmed_at(view, Phase.COMMITTING)

    @property
    def _confirmations(self) -> int:
        return confirmations_of(self.ledger.connection.chain_id)

    def _confirmed_at(self, view: View, phase: Phase) -> int:
        """The block in which the one that began a phase of this round has the network's confirmations."""
        began = self.ledger.record.phase_block(self.task.number, view.state.round, phase)
        if began is None:  # a reorganisation took its block back since the view
            return view.block + 1
        return began + self._confirmations - 1

    def cohort(self, round_: int) -> int:
        """Members of this hospital's cohort: a bit map. Raises NotAssigned."""
        return self.ledger.tasks.cohort_members(self.task.number, round_, self.cohort_number(round_))

    def cohort_number(self, round_: int) -> int:
        """The number of this hospital's cohort. Raises NotAssigned."""
        number = self.ledger.tasks.cohort_of(self.task.number, round_, self.membership.index)
        if number is None:
            raise NodeError("NotAssigned", round=round_)
        return number
