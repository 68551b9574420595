"""Settings of a hospital node and of a voter node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import NodeSettings, TaskNumber
from consilium_chain.sponsoring.batches import Sponsor
from consilium_chain.sponsoring.connection import SponsoredConnection
from consilium_core.connectivity import Address
from eth_account.signers.local import LocalAccount
from pydantic import BaseModel, ConfigDict, Field

PRIVACY_FILE = "privacy.jsonl"
STATISTICS_FILE = "statistics.jsonl"


class FlowerSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    superlink: Annotated[Address, Field(description="host:port of the aggregator's SuperLink")]
    ca_certificate: Annotated[Path, Field(description="certificate that signed the SuperLink's")]
    transport_key: Annotated[Path, Field(description="this hospital's Flower node key (ECDSA P-256, OpenSSH format)")]


class SponsoredSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(pattern="^https://", description="https://host:port of whoever pays for gas")]
    ca_certificate: Annotated[
        Path | None, Field(description="certificate that signed the sponsor's; without, those that the system trusts")
    ] = None


class HospitalAccountSettings(NodeSettings):
    """A hospital's, whatever tasks it takes part in."""

    data: Annotated[Path, Field(description="file or folder of what the task's schema asks for; see docs/data.md")]
    mapping: Annotated[
        Path | None, Field(description="how the file's columns become the schema's; see docs/data.md")
    ] = None
    held_out: Annotated[
        float,
        Field(
            ge=0,
            le=0.5,
            description="share of the rows that is kept from training, to see on the node's screen what each model is"
            " worth here; the same rows after the next export",
        ),
    ] = 0.0
    device: Annotated[Literal["cpu", "cuda"], Field(description="where models are trained")] = "cpu"
    commits: Annotated[
        Literal["relayed", "own"],
        Field(
            description="relayed: by the aggregator's transaction, and by one of its own only where half of the time"
            " left for it went by without; own: by one of its own at once, which costs ether in every round"
        ),
    ] = "relayed"
    privacy_ledger: Annotated[
        Path | None,
        Field(description="what the rows have cost; homes with the same rows share one. Without, a file in `home`"),
    ] = None
    statistics_ledger: Annotated[
        Path | None,
        Field(
            description="for which rows exact statistics were given, its key beside it; homes with the same rows share"
            " one. Without, a file in `home`"
        ),
    ] = None
    earlier_deployments: Annotated[
        tuple[Path, ...],
        Field(description="address books of contracts under which these rows were trained on before, on this chain"),
    ] = ()
    sponsor: Annotated[
        SponsoredSettings | None,
        Field(description="who pays for this hospital's transactions; without, its own account does, in ether"),
    ] = None

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
    policy: Annotated[Path, Field(description="what this node's owner allows")] = Path("policy.toml")

    def reader(self) -> Ledger:
        """The contracts without an account, which can only read. Raises DeploymentInvalid, ChainUnreachable."""
        return Ledger(Connection(self.chain_url), Deployment.read(self.deployment), self.relays)


class HospitalHomeSettings(HomeSettings, HospitalAccountSettings):
    transport_key: Annotated[Path, Field(description="this hospital's Flower node key")] = Path("transport.key")


class HospitalSettings(HospitalAccountSettings):
    """A home's, with the approval of one task (`HospitalHome.node_settings`)."""

    task: TaskNumber
    flower: FlowerSettings
    policy: Annotated[Path, Field(description="what this hospital allows")]
    approved: Annotated[
        str, Field(pattern="^[0-9a-f]{64}$", description="keccak256 of the task file that was approved")
    ]

    @property
    def runtime(self) -> Path:
        return runtime_folder(self.home, self.task)


def runtime_folder(home: Path, task: int) -> Path:
    """The folder of the files that only a task's running node needs."""
    return home / f"task-{task}"


class VoterAccountSettings(NodeSettings):
    """A voter's, whatever tasks it judges."""

    data: Annotated[
        Path, Field(description="CSV or Parquet file of held-out rows with the columns of the task's schema")
    ]
    mapping: Annotated[Path | None, Field(description="as a hospital's")] = None


class VoterHomeSettings(HomeSettings, VoterAccountSettings):
    pass


class VoterSettings(VoterAccountSettings):
    """A home's, with the table that is for one task (`VoterHome.node_settings`)."""

    task: TaskNumber
