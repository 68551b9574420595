"""How a hospital joins a task: the checks, its owner's yes, the approval, and the transactions.

An invite may name several shards of one model. A hospital takes the emptier of two that its account's hash draws. So
hospitals spread evenly without talking to each other, also if many look at the chain at once (Mitzenmacher, "The power
of two choices in randomized load balancing", 2001).
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from consilium_chain.errors import InviteRefused, Refused
from consilium_chain.ledger.structs import Phase, TaskState
from consilium_chain.tasks.judging_spec import MAX_SHARDS
from consilium_client.data.door import admitted
from consilium_client.errors import ConsentError
from consilium_client.home import Approval, approval_file
from consilium_client.models import model_of
from consilium_client.models.training import require_device
from consilium_client.second_signature import second_signature
from consilium_client.task import JoinedTask
from consilium_core.connectivity import fleet_address, why_shut_out
from consilium_core.logs import emit

from consilium.invites import invite_of, way_to
from consilium.node import entry_of
from consilium.node_results import Joining, Membership

if TYPE_CHECKING:
    from consilium_chain.invites import SignedInvite

    from consilium.client import Client

CLOSED = ("TaskFull", "WrongPhase", "PhaseOver")  # the contract's errors if others took the last seats, or time is over
CHOICES = 2


@dataclass(frozen=True)
class Join:
    """The arguments of `Client.join`."""

    client: Client
    superlink: str | None
    ca_certificate: str | Path | None
    invite: str | Path | None
    data: str | Path | None
    mapping: str | Path | None
    on_task: Callable[[JoinedTask, TaskState], None]
    confirm: Callable[[Joining], bool]

    def do(self, task: int) -> None:
        """Raises as `Client.join` does."""
        client = self.client
        home, settings = client._home, client.settings
        link, authority = way_to(client, task, self.superlink, self.ca_certificate, self.invite)
        found, state, policy = client.task(task), client.state(task), client.policy()
        self.on_task(found, state)
        policy.require(found.spec, state.operator)
        signed = approval_file(client.folder, task)
        second_signature(policy, client._ledger, client.account, task, found.params.spec_hash, signed)
        model_of(found.spec).require_installed()
        require_device(found.spec, settings.device)
        own = [None if one is None else Path(one).absolute() for one in (self.data, self.mapping)]
        data, mapping = own[0] or settings.data, own[1] or settings.mapping
        fitting = admitted(data, found.spec, mapping, settings.data_accepted)
        rows = fitting.examples.rows
        policy.require_rows(found.spec, rows)
        task_key = client._ledger.folder_name(task)
        with NamedTemporaryFile(suffix=".crt") as file:
            Path(file.name).write_bytes(authority)
            shut_out = why_shut_out(fleet_address(link), Path(file.name), task_key)
        risk = Membership.of(found.spec, rows, client.settings.held_out)
        if not self.confirm(Joining(task, rows, risk, link, shut_out, fitting.remarks, fitting.unneeded)):
            raise ConsentError("NotConfirmed", about=f"task {task}")
        approval = Approval(
            place=task_key,
            spec_hash=found.params.spec_hash.hex(),
            approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            superlink=link,
            data=own[0],
            mapping=own[1],
        )
        had_joined = entry_of(client, task) is not None
        home.approve(task, approval, authority)
        from consilium_client.hospital.node import HospitalNode

        try:
            HospitalNode(home.node_settings(task, task_key)).join()
        except Exception:  # not at an interrupt: a sent transaction may still reach the chain
            if not had_joined:  # only a joined task stays approved
                home.withdraw(task)
            raise

    def do_any(self) -> int:
        """Joins a task of the invite with room. If others take its last seats meanwhile, another one follows."""
        if self.superlink is not None:
            raise TypeError("pass the SuperLink's task, or an invite instead")
        invite = invite_of(self.client, self.invite)
        if invite is None:
            raise self.client._home.which_task()
        closed: set[int] = set()
        for _ in range(MAX_SHARDS):
            task = with_room(self.client, invite, closed)
            try:
                self.do(task)
            except Refused as error:
                if error.name not in CLOSED:
                    raise
                emit("shard-closed", task=task, error=error.name)
                closed.add(task)
            else:
                return task
        raise InviteRefused("InviteTooLate", task=invite.shown_tasks)


def with_room(client: Client, invite: SignedInvite, closed: set[int]) -> int:
    """The invite's task that this hospital has joined, or else one with room that is not in `closed`: one that its
    owner approved or an officer signed, if there is one.

    Raises InviteRefused (InviteTooLate), and as `require_of` does.
    """
    ledger, free = client._ledger, dict[int, int]()
    invite.require_of(ledger, invite.task)
    most, now = ledger.tasks.params(invite.task).max_hospitals, ledger.connection.blocks.now()
    for task in invite.superlinks:
        state, nodes = ledger.tasks.state(task), [one.node for one in ledger.tasks.hospitals(task)]
        if client.account in nodes:
            return task
        if task not in closed and state.phase is Phase.JOINING and now <= state.deadline and len(nodes) < most:
            free[task] = most - len(nodes)
    if not free:
        raise InviteRefused("InviteTooLate", task=invite.shown_tasks)
    approved = client._home.approved_tasks()
    begun = [task for task in free if task in approved or approval_file(client.folder, task).exists()]
    return begun[0] if begun else emptier_of_two(client.account, free)


def emptier_of_two(account: str, free: Mapping[int, int]) -> int:
    """Of two tasks drawn by the account's hash, the one with more free seats. `free`: by task."""

    def drawn(task: int) -> bytes:
        return hashlib.sha256(f"{account.lower()} {task}".encode()).digest()

    return max(sorted(free, key=drawn)[:CHOICES], key=lambda task: free[task])
