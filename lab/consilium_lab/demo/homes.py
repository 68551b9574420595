"""Makes homes of hospitals and voters on one machine, as `hospital init` and `voter init` do."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.task_spec import TaskSpec
from consilium_client.data.door import answers_to
from consilium_client.data.kinds import kind_of
from consilium_client.home import Approval, HospitalHome, VoterHome
from consilium_client.hospital.transport_key import make_transport_key
from consilium_core.private_files import write_private_file
from eth_account.signers.local import LocalAccount

from consilium_lab.demo.datasets import Frame, write_mapping, write_rows


@dataclass(frozen=True)
class NetworkSettings:
    """Settings that all nodes of a network share, and their tasks' operator. `is_open`: they join anybody's tasks.
    `report_to`: the API to which nodes hand their reports in. Voters' policies then allow it: their rows are public.
    """

    chain_url: str
    deployment: Path
    artifacts: Path
    operator: str
    is_open: bool = False
    report_to: str | None = None

    @property
    def shared(self) -> dict[str, Any]:
        return {
            "chain_url": self.chain_url,
            "deployment": str(self.deployment.absolute()),
            "artifacts": str(self.artifacts.absolute()),
        }

    @property
    def of_nodes(self) -> dict[str, Any]:
        return self.shared if self.report_to is None else self.shared | {"report_to": self.report_to}

    def policy(self, spec: TaskSpec) -> dict[str, Any]:
        programs = [spec.model.program] if isinstance(spec.model, ProgramSpec) else []
        operators = "any" if self.is_open else [self.operator]
        sale = {"may_be_sold": True} if spec.sale is not None else {}
        return {"operators": operators, "models": [spec.model.name], "programs": programs, **sale}


def write_key(home: Path, account: LocalAccount) -> None:
    home.mkdir(parents=True, mode=0o700, exist_ok=True)
    password = secrets.token_urlsafe(16)
    write_private_file(home / "password", password + "\n")
    write_keystore(home / "key.json", account, password, scrypt_n=LIGHT_SCRYPT_N)


def make_hospital(
    settings: NetworkSettings,
    home: Path,
    account: LocalAccount,
    rows: tuple[Frame, DataSchema],
    spec: TaskSpec,
    more: Mapping[str, Any],
) -> HospitalHome:
    """A home with a policy for tasks like `spec`. `more`: more settings."""
    write_key(home, account)
    data = data_settings(rows, home, spec)
    make_transport_key(home / "transport.key")
    policy = settings.policy(spec) | {"columns": spec.data.used, "masked_only": spec.update.masked}
    return HospitalHome.create(home, settings.of_nodes | data | {**more}, policy)


def make_voter(
    settings: NetworkSettings, home: Path, account: LocalAccount, rows: tuple[Frame, DataSchema], spec: TaskSpec
) -> VoterHome:
    write_key(home, account)
    data = data_settings(rows, home, spec)
    policy = settings.policy(spec) | {"metrics": [spec.judging.metric]}
    if settings.report_to is not None:
        policy["share_evaluation"] = "unless_private"
    return VoterHome.create(home, settings.of_nodes | data, policy)


def data_settings(rows: tuple[Frame, DataSchema], home: Path, spec: TaskSpec) -> dict[str, Any]:
    """Writes the rows and their mapping, and accepts public data as they are."""
    frame, schema = rows
    data, mapping = write_rows(frame, schema, home / "data"), write_mapping(frame, home / "mapping.toml")
    kind = kind_of(schema)
    accepted = answers_to(kind.profile(kind.read(data, schema, mapping), spec).findings)
    settings: dict[str, Any] = {"data": data.name, "data_accepted": accepted}
    return settings if mapping is None else settings | {"mapping": mapping.name}


def approve(home: HospitalHome, ledger: Ledger, task: int, spec_hash: bytes, port: int, authority: Path) -> None:
    """Approves a task whose aggregator's SuperLink is on loopback, with a certificate of `authority`."""
    approval = Approval(
        place=ledger.folder_name(task),
        spec_hash=spec_hash.hex(),
        approved_at=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
        superlink=f"127.0.0.1:{port}",
    )
    home.approve(task, approval, authority.read_bytes())
