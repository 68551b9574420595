"""A hospital's node in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Hospital, Phase, Role, TaskState
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_client.config import HospitalHomeSettings
from consilium_client.consent import NEW_HOSPITAL, Policy
from consilium_client.data.kinds import read_examples
from consilium_client.errors import ConsentError, DataError, ModelError, OwnersRefusal
from consilium_client.home import HospitalHome, is_running, running_alone
from consilium_client.hospital.audit_log import AUDIT_FILE, AuditLog, export, read_log
from consilium_client.models.training import needs_torch
from consilium_client.privacy.membership import in_words
from consilium_client.programs.library import loaded
from consilium_client.task import JoinedTask
from consilium_core.owner import telling_owner
from consilium_core.private_files import write_private_file

from consilium.homes import Names, NewHome, checked_policy, checked_sponsor
from consilium.invites import Invitation, new_values
from consilium.joining import Join
from consilium.node import Node, entry_of, standing_of
from consilium.node_results import Activity, ClientStatus, Departure, Joining, Membership, Standing, agree
from consilium.task import Task

if TYPE_CHECKING:
    from consilium.data_check import DataCheck
    from consilium.node_evaluation import NodeEvaluation

ASSUMED_ROWS = 30  # if the hospital's own rows cannot be counted


class Client(Node[HospitalHome]):
    """A hospital's node: the home folder with its key, settings, policy and approvals, as `consilium hospital` has it.

        client = consilium.Client.create("hospital", invite="heart.invite", data="patients.csv")
        client.tasks().tasks                    # each with this home's objections
        client.check_data(3).profile            # everything that would leave this hospital; sends nothing
        client.join(3)
        client.run(3)                           # takes part until the task ends

    Methods raise ChainUnreachable, DeploymentInvalid, and the errors that they name. Those that send a transaction read
    the key file's password, and raise KeystoreError; the others need none.
    """

    _kind = HospitalHome

    @classmethod
    def create(
        cls,
        home: str | Path,
        *,
        data: str | Path,
        invite: str | Path | Invitation | None = None,
        artifacts: str | Path | Sequence[str | Path] | None = None,
        operators: Names | None = None,
        models: Names | None = None,
        columns: Names | None = None,
        hours: str | None = None,
        chain_url: str | None = None,
        address_book: str | Path | Deployment | None = None,
        mapping: str | Path | None = None,
        report_to: str | None = None,
        withdrawal_address: str | None = None,
        keystore: str | Path | None = None,
        password_file: str | Path | None = None,
        password: Callable[[], str] | None = None,
        sponsor_url: str | None = None,
        sponsor_ca: str | Path | None = None,
        confirm: Callable[[Invitation], bool] = agree,
    ) -> Client:
        """Makes a home with key, settings and policy. Writes nothing before all values are known to be valid.

        `data`: a table, or a folder of texts or images; `mapping`: a file that maps its columns. `invite`: an
        operator's file or link, which stands for all other values that are not given; `confirm` is asked about it.
        `artifacts`: folders and URLs of the artifact store, this node's own first. `operators`, `models`, `columns`:
        the names that the policy allows, or "any". `hours`: local time of day in which to train, such as "19:00-07:00".
        `report_to`: https address of the operator's API, which gets the reports that the policy's `share_evaluation`
        allows. `withdrawal_address`: of the account that gets this node's own stake and rewards, from its first stake
        on; by default its own account.

        `keystore`: the key file of an existing account; by default a new account is made. `password_file`: a file with
        its password, mode 600; without, `password` is called, and its answer is stored in the home; with an invite, a
        new key's password is random by default. `sponsor_url`: https://host:port of the sponsor that pays for gas;
        `sponsor_ca`: certificate of the authority that signed the sponsor's.

        Raises HomeTaken, DeploymentInvalid, ConfigInvalid, DataFileMissing, PolicyInvalid, KeystoreError, TypeError
        without `artifacts` or `operators`; with an invite NotConfirmed, and as `Invitation.open` does.
        """
        invited, values = new_values(
            invite, "hospital", confirm,
            {"chain_url": chain_url, "address_book": address_book, "artifacts": artifacts, "report_to": report_to,
             "withdrawal_address": withdrawal_address,
             "operators": operators, "models": models, "columns": columns, "hours": hours, "sponsor_url": sponsor_url},
        )  # fmt: skip
        sponsor = values.pop("sponsor_url", None)
        names = "operators", "models", "columns", "hours"
        rules = {str(name): values.pop(name) for name in names if name in values}
        new = NewHome(Path(home), data, mapping, keystore, password_file, password, **values, invite=invited)
        settings = new.settings()
        if sponsor is not None:
            settings["sponsor"] = checked_sponsor(sponsor, sponsor_ca or new.sponsor_ca(sponsor))
        return cls(new.write(HospitalHome, settings, checked_policy({**rules, **NEW_HOSPITAL}, Policy)))

    @property
    def settings(self) -> HospitalHomeSettings:
        """The content of node.toml."""
        return self._home.settings

    def policy(self) -> Policy:
        """The content of policy.toml. Raises PolicyInvalid."""
        return self._home.policy()

    def status(self) -> ClientStatus:
        """Home, policy and connections. Raises PolicyInvalid."""
        policy, home = self.policy(), self._home
        epsilon = _epsilon(self.settings.privacy_file, policy.delta)
        return ClientStatus(home.folder, home.paused, self.connections(), policy, self._approved(), epsilon)

    def standing(self) -> Standing:
        """Bonds, rewards and slashes of the approved tasks, and the stake."""
        return standing_of(self, self._approved())

    def membership(self, task: JoinedTask) -> Membership:
        """The measured risk of this home's rows in a task. If they do not fit, it is that of 30 rows."""
        try:
            rows = read_examples(self.settings.data, task.spec.data, self.settings.mapping).rows
        except (DataError, ModelError):
            return Membership(ASSUMED_ROWS, True, in_words(task.spec, ASSUMED_ROWS))
        return Membership.of(task.spec, rows, self.settings.held_out)

    def program(self, task: JoinedTask) -> list[tuple[str, str]]:
        """A title and a text each: what the task's program takes, gives, holds and costs; none if it has no program.

        Raises ProgramError, ModelError (WeightsUnusable), ArtifactMissing, ArtifactCorrupt.
        """
        spec = task.spec
        if not isinstance(spec.model, ProgramSpec):
            return []
        from consilium_client.programs.description import described  # torch: seconds to import

        signed = ("signed by", spec.model.author or "nobody")
        return [signed, *described(loaded(spec.model, spec.data).program, spec.training.batch_size)]

    def plugin(self, task: JoinedTask) -> list[tuple[str, str]]:
        """A title and a text each: which plug-ins the task names, one after the other, and their state here. None of
        their code runs.
        """
        from consilium_client.plugins.errors import PluginError
        from consilium_client.plugins.installed import plugins_of, verified

        found = []
        for one in plugins_of(task.spec):
            policy, here = self.policy(), "yes, with the files of its digest"
            allowed = one.record in policy.plugins
            try:
                verified(one)
            except PluginError as error:
                here = f"no: {error}"
            state = [
                ("installed here", here),
                ("allowed here", "yes" if allowed else "no: `plugins` in policy.toml does not list its digest"),
            ]
            found += [
                ("plug-in", f"{one.in_words}, its {one.thing} {one.entry}"),
                ("digest", one.record),
                ("arguments", ", ".join(f"{name} = {value!r}" for name, value in one.arguments.items()) or "none"),
                *(state if one in policy.needed(task.spec) else [("runs", "at voters, and not here")]),
            ]
        return found

    def check_data(
        self, task: int | Task | None = None, *, data: str | Path | None = None, mapping: str | Path | None = None
    ) -> DataCheck:
        """The profile of this hospital's data for a task, by its number on the chain or its file. Sends nothing.

        `data`, `mapping`: by default those of the home. Raises ConsentError (WhichTask), DataError if the data cannot
        be read, and as `task` does.
        """
        from consilium.data_check import check_data  # pyarrow: 45 MB

        if task is None:
            raise self._home.which_task()
        found = task if isinstance(task, Task) else self.task(task)
        own = self.settings
        return check_data(found, data or own.data, mapping or own.mapping, own.data_accepted)

    def join(
        self,
        task: int | None = None,
        *,
        superlink: str | None = None,
        ca_certificate: str | Path | None = None,
        invite: str | Path | None = None,
        data: str | Path | None = None,
        mapping: str | Path | None = None,
        on_task: Callable[[JoinedTask, TaskState], None] = lambda task, state: None,
        confirm: Callable[[Joining], bool] = agree,
    ) -> int:
        """Approves a task that policy and data allow, and joins it on chain with this hospital's bond. Returns its
        number. A second call continues where the first one stopped.

        `task`: by default one of the invite's with room; if another hospital takes its last seat, the next one, which
        `confirm` is asked about again. `superlink`: host:port of the aggregator's SuperLink. `ca_certificate`: of the
        authority that signed its own. `invite`: a file or link that has both; by default the one by which the home was
        made. `data`, `mapping`: for this task; by default those of the home. `on_task` gets each task before its
        checks. `confirm` is asked before anything is written or sent. Its events go to the log (`log_to`).

        Raises ValueError for another form of `superlink`; OwnersRefusal (NotAllowed), ModelNotInstalled, DataError,
        InviteRefused, ConsentError (CertificateInvalid, SuperLinkUnknown, WhichTask, NotConfirmed, Unfunded), and as
        `task` does. An interrupt leaves the approval.
        """
        join = Join(self, superlink, ca_certificate, invite, data, mapping, on_task, confirm)
        if task is None:
            return join.do_any()
        join.do(task)
        return task

    def run(self, task: int | None = None) -> None:
        """Takes part in an approved task until it ends; by default in the only one. It can be stopped and started again
        at any time. Its events go to the log (`log_to`).

        Raises ConsentError (WhichTask, AlreadyRunning), OwnersRefusal (NotApproved, ApprovalStale, NotAllowed),
        ClientError.
        """
        from consilium_client.hospital.node import HospitalNode

        settings = self._home.approved_settings(task)
        with (
            telling_owner(settings.notify, settings.mail, f"hospital {self.account}", settings.home),
            settings.traced("hospital", settings.task),
        ):
            HospitalNode(settings).run()

    def evaluate(
        self, task: int, *, share: str | Path | None = None, alone: bool = False, seed: int = 0
    ) -> NodeEvaluation:
        """Measures a task's model on the rows that this hospital kept out of its training (`held_out`), beside the
        start. `alone`: also beside a model of this hospital's other rows alone, which takes as long as its training.
        `share`: a file for a signed report of coarse figures, if the policy allows it; it is in the audit log.

        Raises ClientError (NothingHeldOut, SharingTooEarly, TooFewToShare), OwnersRefusal (SharingNotAllowed),
        RecordIncomplete, DataError, and as `task` does.
        """
        from consilium.node_evaluation import evaluate_hospital

        return evaluate_hospital(self, task, None if share is None else Path(share), alone, seed)

    def leave(self, task: int, *, confirm: Callable[[TaskState], bool] = agree) -> Departure:
        """Withdraws the approval of a task. If the task has ended, frees the bond and pays the rewards, too.

        `confirm` gets the task's state. Raises OwnersRefusal (NotApproved), ConsentError (NotConfirmed,
        AlreadyRunning).
        """
        state, home = self.state(task), self._home
        if entry_of(self, task) is None:
            home.withdraw(task)
            return Departure.NOT_JOINED
        ended, approved = state.phase is Phase.ENDED, task in home.approved_tasks()
        if not ended and not approved:
            raise OwnersRefusal("NotApproved", task=task)
        if not confirm(state):
            raise ConsentError("NotConfirmed", about=f"task {task}")
        with running_alone(home.runtime(task), task):
            if approved:
                home.leave(task)
            if not ended:
                return Departure.BOND_LOCKED
            self._signing.staking.release_bond(task, self.account)
            self._signing.staking.claim(Role.HOSPITAL)
            home.forget(task)
        return Departure.PAID

    def export_audit(self, output: str | Path) -> int:
        """Writes the audit log to a file, signed by this hospital's key, for `consilium verify-audit`. Returns the
        number of its entries. Raises AuditError.
        """
        own, deployment = self.settings, Deployment.read(self.settings.deployment)
        account = open_keystore(own.keystore, own.password_file)
        exported = export(read_log(own.home / AUDIT_FILE), account, deployment.chain_id, deployment.tasks)
        write_private_file(Path(output), exported)
        return len(exported.splitlines()) - 1

    @cached_property
    def _signing(self) -> Ledger:
        """Its transactions are in the audit log."""
        ledger = self.settings.connect()
        ledger.connection.transactions.witness = AuditLog(self.settings.home / AUDIT_FILE)
        return ledger

    def _approved(self) -> tuple[int, ...]:
        """Also those whose approval is withdrawn, and whose bond is still locked."""
        return tuple(sorted({*self._home.approved_tasks(), *self._home.left_tasks()}))

    def _members(self, number: int) -> Sequence[Hospital]:
        return self._ledger.tasks.hospitals(number)

    def _is_listed(self, state: TaskState, is_in: bool) -> bool:
        return state.phase is not Phase.ENDED

    def _objections(self, task: JoinedTask, state: TaskState, is_in: bool) -> list[str]:
        why = needs_torch(task.spec, self.settings.device)
        return [*self.policy().objections(task.spec, state.operator), *([f"it needs torch for {why}"] if why else [])]

    def _activity(self, number: int, state: TaskState, index: int | None) -> Activity:
        if number in self._home.left_tasks():
            return Activity.LEFT
        return Activity.RUNS if is_running(self._home.runtime(number)) else Activity.STOPPED


def _epsilon(privacy_ledger: Path, delta: float) -> float | None:
    """None without a private task: then Opacus is not loaded."""
    if not privacy_ledger.exists():
        return None
    from consilium_client.privacy.accountant import PrivacyAccountant
    from consilium_client.privacy.dp_sgd import epsilon

    return epsilon([charge.mechanism for charge in PrivacyAccountant(privacy_ledger).charges()], delta)
