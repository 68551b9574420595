"""A node's home: the folder with its key, its settings, its policy and its owner's decisions.

node.toml          settings (`HomeSettings`)             key.json, password   the account
policy.toml        the owner's policy (`consent`)        deployment.json      the contracts' addresses
paused             while it exists, the node begins no round and joins no task
invite.json        the operator's invite by which the home was made, if it was

A hospital's has besides:

tasks/N.toml       the approval of task N                transport.key        the Flower node key
tasks/N.left       the approval was withdrawn, but the bond is still locked
tasks/N.signed.json  another account's signature on task N (`second_signature`)
audit.jsonl        the audit log (`audit_log`)           privacy.jsonl        privacy costs (`accountant`)
split.salt         draws the rows kept out of training   statistics.jsonl     rows with exact statistics
                                                         statistics.key       (`exact_statistics`), and its key
memory/TASK_KEY/     of a task's earlier rounds (`memory`); at its end local.safetensors

A home is for the contracts of one address book. For other contracts, the owner makes another home, which shares the
first one's account, policy and record of privacy costs (`Home.create_like`).

A voter's:

tasks/TASK_KEY.toml   the data for one task              ballots/TASK_KEY/    ballots to be revealed
lock               held by the process that judges
"""

from __future__ import annotations

import datetime
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import tomli_w
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.structs import Role
from consilium_chain.settings import read_settings
from consilium_core.connectivity import Fleet
from consilium_core.locks import alone, is_locked
from consilium_core.private_files import read_private_file, write_private_file
from consilium_core.typed_toml import Section, parse_toml
from pydantic import BaseModel, Field

from consilium_client.config import (
    FlowerSettings,
    HomeSettings,
    HospitalHomeSettings,
    HospitalSettings,
    VoterHomeSettings,
    VoterSettings,
    runtime_folder,
)
from consilium_client.consent import Policy, TaskPolicy, VoterPolicy, policy_toml, read_policy
from consilium_client.errors import ConsentError, HomeError, OwnersRefusal

SETTINGS_FILE = "node.toml"
DEPLOYMENT_FILE = "deployment.json"
INVITE_FILE = "invite.json"
SALT_FILE = "split.salt"  # of a hospital that keeps rows from training (`split`)
LOCK_FILE = "lock"


class Approval(Section):
    """The owner's approval of a task file, and the address of the task's aggregator."""

    task_key: str = Field(alias="place", description="chain, contract and number of the task")
    spec_hash: str = Field(pattern="^[0-9a-f]{64}$", description="keccak256 of the task file")
    approved_at: datetime.datetime
    superlink: Fleet = Field(description="host:port of the aggregator's SuperLink, or host:port/9100 behind a proxy")
    data: Path | None = Field(default=None, description="data for this task; default: the home's")
    mapping: Path | None = Field(default=None, description="mapping of its columns; default: the home's")


SettingsType = TypeVar("SettingsType", bound=HomeSettings)
PolicyType = TypeVar("PolicyType", bound=TaskPolicy)


@dataclass(frozen=True)
class Home(Generic[SettingsType, PolicyType]):
    role: ClassVar[Role]
    settings_kind: ClassVar[type[HomeSettings]]
    policy_kind: ClassVar[type[TaskPolicy]]

    folder: Path
    settings: SettingsType

    @classmethod
    def whose(cls) -> str:
        return cls.role.name.lower()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Raises HomeMissing, ConfigInvalid."""
        folder = folder.expanduser().absolute()
        path = folder / SETTINGS_FILE
        if not path.exists():
            raise HomeError("HomeMissing", folder=folder, whose=cls.whose())
        written = read_settings(path, cls.settings_kind)
        below = {name: _below(folder, value) for name, value in written}
        return cls(folder, cast(SettingsType, written.model_copy(update=below | {"home": folder})))

    @classmethod
    def create(cls, folder: Path, settings: dict[str, Any], policy: dict[str, Any]) -> Self:
        """Writes the policy, then the settings, which make it a home. Raises HomeTaken."""
        folder = _new_folder(folder)
        write_private_file(folder / "policy.toml", policy_toml(policy, cls.policy_kind))
        write_private_file(folder / SETTINGS_FILE, tomli_w.dumps(settings))
        return cls.open(folder)

    @classmethod
    def create_like(cls, folder: Path, other: Self, book: Path) -> Self:
        """A home for the contracts of another address book. `other`'s files stay there, and serve both homes.

        Raises HomeTaken, DeploymentInvalid, SameContracts.
        """
        named = [other.settings.deployment, *other.earlier_deployments]
        if any(_contracts(one) == _contracts(book) for one in named):
            raise HomeError("SameContracts", other=other.folder)
        folder = _new_folder(folder)
        shutil.copyfile(book, folder / DEPLOYMENT_FILE)
        own = {"home", "deployment"}
        settings = other.settings.model_dump(mode="json", exclude=own, exclude_none=True, exclude_defaults=True)
        other.share(folder, settings)
        write_private_file(folder / SETTINGS_FILE, tomli_w.dumps(settings))
        return cls.open(folder)

    @property
    def earlier_deployments(self) -> tuple[Path, ...]:
        """Address books of the contracts of earlier homes with the same rows."""
        return ()

    def share(self, folder: Path, settings: dict[str, Any]) -> None:
        """Changes the settings of another home of the same owner, in `folder`, so that it shares more than them."""

    def policy(self) -> PolicyType:
        """Raises PolicyInvalid."""
        return cast(PolicyType, read_policy(self.settings.policy, self.policy_kind))

    @property
    def paused(self) -> bool:
        return is_paused(self.folder)

    def pause(self) -> None:
        (self.folder / "paused").touch()

    def resume(self) -> None:
        (self.folder / "paused").unlink(missing_ok=True)


@dataclass(frozen=True)
class HospitalHome(Home[HospitalHomeSettings, Policy]):
    role = Role.HOSPITAL
    settings_kind = HospitalHomeSettings
    policy_kind = Policy

    @property
    def earlier_deployments(self) -> tuple[Path, ...]:
        return self.settings.earlier_deployments

    def share(self, folder: Path, settings: dict[str, Any]) -> None:
        """The same records, and the same rows kept out of training."""
        settings["privacy_ledger"] = str(self.settings.privacy_file)
        settings["statistics_ledger"] = str(self.settings.statistics_file)
        settings["earlier_deployments"] = [str(one) for one in (self.settings.deployment, *self.earlier_deployments)]
        if (self.folder / SALT_FILE).exists():
            write_private_file(folder / SALT_FILE, read_private_file(self.folder / SALT_FILE))

    # Approvals

    def approve(self, task: int, approval: Approval, authority: bytes) -> None:
        """`authority`: PEM of the certificate that signed the SuperLink's."""
        values = approval.model_dump(mode="json", by_alias=True, exclude_none=True)
        values["approved_at"] = approval.approved_at
        write_private_file(self._file(task, "ca.crt"), authority)
        write_private_file(self._file(task, "toml"), tomli_w.dumps(values))
        self.forget(task)

    def approval(self, task: int) -> Approval:
        """Raises NotApproved, ApprovalInvalid."""
        path = self._file(task, "toml")
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            raise OwnersRefusal("NotApproved", task=task) from None
        return parse_toml(raw, Approval, f"the approval {path}", _invalid)

    def approved_tasks(self) -> list[int]:
        return self._numbers("*.toml")

    def approved_settings(self, number: int | None) -> HospitalSettings:
        """Settings of this task; of the only approved one for None. Raises WhichTask, NotApproved, ApprovalStale."""
        if number is None:
            approved = self.approved_tasks()
            if len(approved) != 1:
                raise self.which_task()
            (number,) = approved
        return self.node_settings(number, self.settings.reader().folder_name(number))

    def which_task(self) -> ConsentError:
        """The error about a missing task number."""
        return ConsentError("WhichTask", approved=", ".join(map(str, self.approved_tasks())) or "none")

    def withdraw(self, task: int) -> None:
        """Raises NotApproved."""
        try:
            self._file(task, "toml").unlink()
        except FileNotFoundError:
            raise OwnersRefusal("NotApproved", task=task) from None

    def leave(self, task: int) -> None:
        """Withdraws, and notes that the bond is still locked. Raises NotApproved."""
        self.withdraw(task)
        self._file(task, "left").touch()

    def forget(self, task: int) -> None:
        self._file(task, "left").unlink(missing_ok=True)

    def left_tasks(self) -> list[int]:
        return self._numbers("*.left")

    def node_settings(self, task: int, task_key: str) -> HospitalSettings:
        """The settings of an approved task's node; `task_key` names it on the chain of this home's address book.

        Raises NotApproved, ApprovalInvalid, ApprovalStale where another chain's or deployment's task was approved.
        """
        approval = self.approval(task)
        if approval.task_key != task_key:
            why = f"you approved {approval.task_key}, but this address book makes it {task_key}"
            raise OwnersRefusal("ApprovalStale", task=task, why=why)
        common = self.settings.model_dump(exclude={"transport_key"})
        common |= approval.model_dump(include={"data", "mapping"}, exclude_none=True)
        flower = FlowerSettings(
            superlink=approval.superlink,
            ca_certificate=self._file(task, "ca.crt"),
            transport_key=self.settings.transport_key,
        )
        return HospitalSettings(**common, task=task, flower=flower, approved=approval.spec_hash)

    def _numbers(self, pattern: str) -> list[int]:
        return sorted(int(path.stem) for path in (self.folder / "tasks").glob(pattern) if path.stem.isdecimal())

    def runtime(self, task: int) -> Path:
        return runtime_folder(self.folder, task)

    def _file(self, task: int, ending: str) -> Path:
        return self.folder / "tasks" / f"{task}.{ending}"


class OwnTable(Section):
    """The data by which a voter judges one task, if not the home's."""

    data: Path
    mapping: Path | None = None


@dataclass(frozen=True)
class VoterHome(Home[VoterHomeSettings, VoterPolicy]):
    role = Role.VOTER
    settings_kind = VoterHomeSettings
    policy_kind = VoterPolicy

    def use_table(self, task_key: str, table: OwnTable) -> None:
        """For the task of `task_key`: its name on the chain of this home's address book."""
        values = table.model_dump(mode="json", exclude_none=True)
        write_private_file(self._own_table(task_key), tomli_w.dumps(values))

    def node_settings(self, task: int, task_key: str) -> VoterSettings:
        """The settings of a task's node. Raises ApprovalInvalid."""
        common = self.settings.model_dump()
        path = self._own_table(task_key)
        if path.exists():
            common |= parse_toml(path.read_bytes(), OwnTable, f"the choice {path}", _invalid).model_dump()
        return VoterSettings(**common, task=task)

    def _own_table(self, task_key: str) -> Path:
        return self.folder / "tasks" / f"{task_key}.toml"


def _below(folder: Path, value: Any) -> Any:
    """Paths that are not absolute are below the folder."""
    if isinstance(value, tuple):
        return tuple(_below(folder, one) for one in value)
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: _below(folder, one) for name, one in value})
    return folder / value if isinstance(value, Path) else value


def _new_folder(folder: Path) -> Path:
    """Raises HomeTaken."""
    folder = folder.expanduser().absolute()
    if (folder / SETTINGS_FILE).exists():
        raise HomeError("HomeTaken", folder=folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def _contracts(book: Path) -> tuple[int, str]:
    read = Deployment.read(book)
    return read.chain_id, read.tasks.lower()


def _invalid(why: str) -> OwnersRefusal:
    return OwnersRefusal("ApprovalInvalid", why=why)


def approval_file(home: Path, task: int) -> Path:
    """The second signature on a task (`second_signature`)."""
    return home / "tasks" / f"{task}.signed.json"


def is_paused(home: Path) -> bool:
    return (home / "paused").exists()


def running_alone(folder: Path, task: int | None = None) -> AbstractContextManager[None]:
    """One process at a time runs a task's node, or all tasks'. Raises ConsentError (AlreadyRunning)."""
    node = "a node" if task is None else f"a node of task {task}"
    return alone(folder / LOCK_FILE, ConsentError("AlreadyRunning", node=node))


def is_running(folder: Path) -> bool:
    """True if a node holds the folder's lock."""
    return is_locked(folder / LOCK_FILE)
