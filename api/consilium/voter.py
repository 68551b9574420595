"""A voter's node in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.structs import Phase, Role, TaskState
from consilium_chain.ledger.structs import Voter as Entry
from consilium_chain.tasks.money_spec import TOKEN
from consilium_client.config import VoterHomeSettings
from consilium_client.consent import NEW_VOTER, VoterPolicy
from consilium_client.data.door import admitted
from consilium_client.data.kinds import read_held_out
from consilium_client.errors import ConsentError, DataError, ModelError
from consilium_client.home import OwnTable, VoterHome, is_running
from consilium_client.models import model_of
from consilium_client.models.worth import require_metric_installed
from consilium_client.task import JoinedTask
from consilium_client.voter import registration
from consilium_client.voter.ballots import Ballot, ballot_path, kept_held_out_secret
from consilium_client.voter.disclosure import Disclosure, disclose
from consilium_core.owner import telling_owner
from consilium_core.private_files import write_private_file
from consilium_core.units import tokens as shown_tokens
from consilium_operators.proposals import require_funds

from consilium.homes import Names, NewHome, checked_policy
from consilium.invites import Invitation, new_values
from consilium.node import Node, standing_of
from consilium.node_results import Activity, Balance, Claimed, Registered, Registration, Standing, VoterStatus, agree

if TYPE_CHECKING:
    from consilium.node_evaluation import NodeEvaluation

GAS = 420_000  # of approving, registering with a commission, and the key, together
GAS_LIMIT = 900_000  # of the costliest of them: an account must hold the most that it may cost
PERCENT = 100  # basis points


class Voter(Node[VoterHome]):
    """A voter's node: the home folder with its key, settings and policy, as `consilium voter` has it.

        voter = consilium.Voter.create("voter", invite="heart.invite", data="held-out.csv")
        voter.register(stake=1000)
        voter.tasks().tasks                     # each with this home's objections
        voter.run()                             # joins the tasks that policy and data allow, and judges them

    Methods raise ChainUnreachable, DeploymentInvalid, and the errors that they name. Those that send a transaction read
    the key file's password, and raise KeystoreError; the others need none.
    """

    _kind = VoterHome

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
        metrics: Names | None = None,
        max_bond: int | None = None,
        max_tasks: int | None = None,
        chain_url: str | None = None,
        address_book: str | Path | Deployment | None = None,
        mapping: str | Path | None = None,
        report_to: str | None = None,
        withdrawal_address: str | None = None,
        keystore: str | Path | None = None,
        password_file: str | Path | None = None,
        password: Callable[[], str] | None = None,
        confirm: Callable[[Invitation], bool] = agree,
    ) -> Voter:
        """Makes a home with key, settings and policy. Writes nothing before all values are known to be valid.

        `data`: held-out rows of several classes, or a folder of texts or images. `mapping`: maps the file's columns.
        `metrics`: those that the policy allows, or "any". `max_bond`: the most that a task may lock, in whole tokens.
        `max_tasks`: at once; by default 4. The others, and the errors, are those of `Client.create`.
        """
        limits = {"max_bond": max_bond, "max_tasks": max_tasks}
        invited, values = new_values(
            invite, "voter", confirm,
            {"chain_url": chain_url, "address_book": address_book, "artifacts": artifacts, "report_to": report_to,
             "withdrawal_address": withdrawal_address,
             "operators": operators, "models": models, "metrics": metrics, **limits},
        )  # fmt: skip
        values.pop("sponsor_url", None)
        rules = {name: values.pop(name) for name in ("operators", "models", "metrics", *limits) if name in values}
        new = NewHome(Path(home), data, mapping, keystore, password_file, password, **values, invite=invited)
        return cls(new.write(VoterHome, new.settings(), checked_policy({**rules, **NEW_VOTER}, VoterPolicy)))

    @property
    def settings(self) -> VoterHomeSettings:
        """The content of node.toml."""
        return self._home.settings

    def policy(self) -> VoterPolicy:
        """The content of policy.toml. Raises PolicyInvalid."""
        return self._home.policy()

    def status(self) -> VoterStatus:
        """Home, policy and connections. Raises PolicyInvalid."""
        policy, home = self.policy(), self._home
        return VoterStatus(home.folder, home.paused, self.connections(), policy, is_running(home.folder))

    def standing(self) -> Standing:
        """Bonds, rewards and slashes of the tasks that this voter has joined, the newest first, and the stake."""
        return standing_of(self, self._ledger.record.tasks_of_voter(self.account)[::-1])

    def balance(self) -> Balance:
        """Money, stake and commission of the account."""
        ledger, account = self._ledger, self.account
        return Balance(
            tokens=ledger.token.balance(account),
            ether=ledger.connection.ether_of(account),
            staked=ledger.staking.stake_of(account, Role.VOTER).active,
            is_voter=ledger.staking.is_registered(account, Role.VOTER),
            commission=ledger.staking.commission(account, Role.VOTER) / PERCENT,
        )

    def register(
        self, stake: int = 0, commission: float | None = None, *, confirm: Callable[[Registration], bool] = agree
    ) -> Registered | None:
        """Stakes tokens, and registers the key that draws seats. Does only the missing steps; None if there is none.

        `stake`: whole tokens in total, with the present stake. `commission`: per cent of the delegators' rewards; by
        default the present one. Raises ConsentError (Unfunded, NotConfirmed) before anything is sent.
        """
        ledger, now = self._signing, self.balance()
        to_do = Registration(
            becomes_voter=not now.is_voter,
            commission=now.commission if commission is None else round(commission * PERCENT) / PERCENT,
            present=now.commission,
            stakes=max(stake * TOKEN - now.staked, 0),
            makes_key=not registration.has_key(ledger),
            gas=GAS * ledger.connection.fees.highest(),
        )
        if to_do.is_done:
            return None
        require_funds(ledger, to_do.stakes, GAS_LIMIT)
        if not confirm(to_do):
            raise ConsentError("NotConfirmed", about="this voter's stake and key")
        before = ledger.connection.ether()
        registration.register(ledger, stake * TOKEN, round(to_do.commission * PERCENT))
        left = ledger.staking.stake_of(self.account, Role.VOTER)
        return Registered(before - ledger.connection.ether(), left)

    def use_table(self, task: int, data: str | Path, mapping: str | Path | None = None) -> int:
        """Sets held-out data for one task, which are used instead of the home's; returns the number of rows.

        Changes nothing if it raises: DataError, and as `task` does.
        """
        own = OwnTable(data=Path(data).absolute(), mapping=None if mapping is None else Path(mapping).absolute())
        rows = read_held_out(own.data, self.task(task).spec, own.mapping).rows
        self._home.use_table(self._ledger.folder_name(task), own)
        return rows

    def run(self, task: int | None = None) -> None:
        """Joins the tasks that policy and data allow, and judges them, until the process is stopped; with `task`, only
        this one, until it ends. Its events go to the log (`log_to`).

        Raises ConsentError (NotRegistered, AlreadyRunning); with `task` also the reasons not to join it.
        """
        from consilium_client.voter.judging import Voter as Judge

        settings = self.settings
        with (
            telling_owner(settings.notify, settings.mail, f"voter {self.account}", settings.home),
            settings.traced("voter"),
        ):
            judge = Judge(self._home)
            if task is None:
                judge.run()
            else:
                judge.run_one(task)

    def evaluate(self, task: int, *, share: str | Path | None = None, seed: int = 0) -> NodeEvaluation:
        """Measures a task's model on this voter's rows, beside the start. `share`: a file for a signed report of coarse
        figures, if the policy allows it.

        Raises ClientError (SharingTooEarly, TooFewToShare), OwnersRefusal (SharingNotAllowed), RecordIncomplete,
        DataError, and as `task` does.
        """
        from consilium.node_evaluation import evaluate_voter

        return evaluate_voter(self, task, None if share is None else Path(share), seed)

    def claim(self) -> Claimed:
        """Pays out vested rewards, and frees the bonds of ended tasks. A running node does the same."""
        ledger, account = self._signing, self.account
        payee = ledger.withdrawal.payee(account, Role.VOTER)
        before, released = ledger.token.balance(payee), []
        for task in ledger.record.tasks_of_voter(account):
            if ledger.tasks.state(task).phase is Phase.ENDED and ledger.staking.release_bond(task, account):
                released.append(task)
        ledger.staking.claim(Role.VOTER)
        claimed = ledger.token.balance(payee) - before
        return Claimed(payee, claimed, ledger.staking.unvested(account, Role.VOTER), tuple(released))

    def disclose_evaluation(self, task: int, round_: int, output: str | Path) -> Disclosure:
        """Writes evidence for an auditor who has this voter's rows: that the node evaluated them as drawn. The file is
        as confidential as the rows. Raises BallotLost, HeldOutLost, NothingEvaluated, RecordIncomplete, Refused.
        """
        ledger, folder = self._signing, self.folder
        task_key = ledger.folder_name(task)
        path = ballot_path(folder, task_key, round_, ledger.tasks.round_state(task, round_).seat_seed)
        disclosure = disclose(ledger, task, Ballot.kept(path, round_), kept_held_out_secret(folder, task_key))
        write_private_file(Path(output), disclosure.model_dump_json(indent=1))
        return disclosure

    def _members(self, number: int) -> Sequence[Entry]:
        return self._ledger.tasks.voters(number)

    def _is_listed(self, state: TaskState, is_in: bool) -> bool:
        return state.phase is Phase.JOINING or (is_in and state.phase is not Phase.ENDED)

    def _objections(self, task: JoinedTask, state: TaskState, is_in: bool) -> list[str]:
        """Raises PolicyInvalid, ApprovalInvalid."""
        if is_in or state.phase is not Phase.JOINING:
            return []
        found = self.policy().objections(task.spec, state.operator)
        settings = self._home.node_settings(task.number, self._ledger.folder_name(task.number))
        try:
            model_of(task.spec).require_installed()
            require_metric_installed(task.spec)
            admitted(settings.data, task.spec, settings.mapping, settings.data_accepted, held_out=True)
        except (DataError, ModelError) as error:
            found.append(str(error))
        free = self._ledger.staking.stake_of(self.account, Role.VOTER).free
        if free < task.params.voter_bond:
            found.append(
                f"{shown_tokens(free)} tokens of stake are free: `consilium voter register --stake` stakes more"
            )
        return found

    def _activity(self, number: int, state: TaskState, index: int | None) -> Activity:
        if index is None or state.phase not in (Phase.SCORING, Phase.REVEALING):
            return Activity.NOTHING_TO_JUDGE
        round_ = self._ledger.tasks.round_state(number, state.round)
        if round_.stood_down >> index & 1:
            return Activity.NOT_DRAWN
        if not round_.seated >> index & 1:
            return Activity.NOT_YET_KNOWN if state.phase is Phase.SCORING else Activity.NO_SEAT
        if round_.revealed >> index & 1:
            return Activity.REVEALED
        path = ballot_path(self.folder, self._ledger.folder_name(number), state.round, round_.seat_seed)
        return Activity.COMMITTED if path.exists() else Activity.BALLOT_LOST
