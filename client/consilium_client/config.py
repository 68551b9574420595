"""Settings of a hospital node and of a voter node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import NodeSettings, TaskNumber
from consilium_chain.sponsoring.batches import Sponsor
from consilium_chain.sponsoring.connection import SponsoredConnection
from consilium_core.connectivity import Fleet
from consilium_core.notify import MailSettings, Target
from consilium_core.typed_toml import Section
from eth_account.signers.local import LocalAccount
from pydantic import Field, model_validator

from consilium_client.monitoring.serving import LoopbackAddress

PRIVACY_FILE = "privacy.jsonl"
STATISTICS_FILE = "statistics.jsonl"


ApiAddress = Annotated[str, Field(pattern=r"^(https://[^\s/?#@]+|http://(127\.0\.0\.1|localhost)(:[0-9]+)?)$")]
"""An operator's API, without a path; https, or on this machine http."""


class FlowerSettings(Section):
    superlink: Fleet = Field(description="host:port of the aggregator's SuperLink, or host:port/9100 behind a proxy")
    ca_certificate: Path = Field(description="certificate that signed the SuperLink's")
    transport_key: Path = Field(description="this hospital's Flower node key (ECDSA P-256, OpenSSH format)")


class SponsoredSettings(Section):
    url: str = Field(pattern="^https://", description="https://host:port of the sponsor")
    ca_certificate: Path | None = Field(
        default=None, description="certificate that signed the sponsor's; without, those that the system trusts"
    )


class DataSettings(NodeSettings):
    policy: Path = Field(description="what this node's owner allows")
    report_to: ApiAddress | None = Field(
        default=None,
        description="address of the operator's API, as https://consilium.example.org: after a task, the node hands in"
        " the report that the policy's `share_evaluation` allows. Default: reports are sent by hand",
    )
    notify: tuple[Target, ...] = Field(
        default=(),
        max_length=4,
        description="where this node tells its owner of faults and losses: https://HOST/PATH or mailto:NAME@HOST",
    )
    mail: MailSettings | None = Field(default=None, description="the SMTP server for `mailto:` in `notify`")
    metrics: LoopbackAddress | None = Field(
        default=None,
        description="127.0.0.1:PORT, where Prometheus on this machine reads this node's metrics; hospital nodes of"
        " further tasks take the next ports. Default: none",
    )
    data: Path = Field(description="file or folder with the data that the task's schema needs; see docs/data.md")
    mapping: Path | None = Field(
        default=None, description="file that maps the columns of the data to the schema's; see docs/data.md"
    )
    data_accepted: dict[str, bool | tuple[str, ...]] = Field(
        default={},
        description="remarks of `check-data` that are right for these data, by name: true, or columns; without its"
        " answer, such a remark keeps the node from joining",
    )

    @model_validator(mode="after")
    def _mail_has_a_server(self) -> Self:
        if self.mail is None and any(one.startswith("mailto:") for one in self.notify):
            raise ValueError("`notify` has a mailto: address, and there is no [mail]")
        return self


class HospitalAccountSettings(DataSettings):
    """A hospital's settings for all of its tasks."""

    held_out: float = Field(
        default=0.0,
        ge=0,
        le=0.5,
        description="share of the rows that is kept out of training, to show on the node's screen how good each model"
        " is here; the same rows stay out after the next export",
    )
    trial_seed: int | None = Field(
        default=None,
        ge=0,
        description="for trials on a local chain: training and rounding are the same each time, as in a simulation with"
        " this seed. Other chains refuse it, because two tasks' updates would then differ by the rows alone",
    )
    device: Literal["cpu", "cuda", "numpy"] | None = Field(
        default=None,
        description="where models are trained: cpu, cuda, or numpy: on the CPU without torch, which takes less memory"
        " and trains logistic and mlp only. Default: cpu, or numpy if torch is not installed",
    )
    commits: Literal["relayed", "own"] = Field(
        default="relayed",
        description="relayed: the aggregator's transaction commits, and this node sends its own only if half of the"
        " remaining time passed without; own: this node sends its own at once, which costs ether in every round",
    )
    privacy_ledger: Path | None = Field(
        default=None,
        description="file with the privacy costs of the rows; homes with the same rows share one. Default: a file in"
        " `home`",
    )
    statistics_ledger: Path | None = Field(
        default=None,
        description="file that lists the rows with exact statistics, its key beside it; homes with the same rows share"
        " one. Default: a file in `home`",
    )
    earlier_deployments: tuple[Path, ...] = Field(
        default=(),
        description="address books of earlier contracts on this chain under which these rows were trained on",
    )
    sponsor: SponsoredSettings | None = Field(
        default=None,
        description="the sponsor that pays for this hospital's transactions; default: its own account pays, in ether",
    )

    @property
    def privacy_file(self) -> Path:
        return self.privacy_ledger or self.home / PRIVACY_FILE

    @property
    def statistics_file(self) -> Path:
        return self.statistics_ledger or self.home / STATISTICS_FILE

    def connection(self, account: LocalAccount, deployment: Deployment) -> Connection:
        """Raises ChainUnreachable, SponsorFailed."""
        if self.sponsor is None:
            return super().connection(account, deployment)
        sponsor = Sponsor(self.sponsor.url, self.sponsor.ca_certificate)
        return SponsoredConnection(self.chain_url, account, deployment.sponsored_account, sponsor)


class HomeSettings(NodeSettings):
    """The settings that `init` writes. `home` is the file's folder, and paths that are not absolute are below it."""

    home: Path = Path()
    keystore: Path = Path("key.json")
    password_file: Path = Path("password")
    deployment: Path = Path("deployment.json")
    policy: Path = Field(default=Path("policy.toml"), description="what this node's owner allows")

    def reader(self) -> Ledger:
        """The contracts without an account, which can only read. Raises DeploymentInvalid, ChainUnreachable."""
        return Ledger(Connection(self.chain_url), Deployment.read(self.deployment), self.relays)


class HospitalHomeSettings(HomeSettings, HospitalAccountSettings):
    transport_key: Path = Field(default=Path("transport.key"), description="this hospital's Flower node key")


class HospitalSettings(HospitalAccountSettings):
    """A home's, with the approval of one task (`HospitalHome.node_settings`)."""

    task: TaskNumber
    flower: FlowerSettings
    approved: str = Field(pattern="^[0-9a-f]{64}$", description="keccak256 of the task file that was approved")

    @property
    def runtime(self) -> Path:
        return runtime_folder(self.home, self.task)


def runtime_folder(home: Path, task: int) -> Path:
    """The folder of the files that only a task's running node needs."""
    return home / f"task-{task}"


class VoterHomeSettings(HomeSettings, DataSettings):
    pass


class VoterSettings(DataSettings):
    """A home's, with the table that is for one task (`VoterHome.node_settings`)."""

    task: TaskNumber
