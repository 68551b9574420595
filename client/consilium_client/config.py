"""Settings of a hospital node and of a voter node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from consilium_chain.connection import Connection
from consilium_chain.deployment import Deployment
from consilium_chain.settings import NodeSettings
from consilium_chain.sponsored import SponsoredConnection
from consilium_chain.sponsoring import Sponsor
from eth_account.signers.local import LocalAccount
from pydantic import BaseModel, ConfigDict, Field


class FlowerSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    superlink: Annotated[str, Field(description="host:port of the aggregator's SuperLink")]
    ca_certificate: Annotated[Path, Field(description="certificate that signed the SuperLink's")]
    transport_key: Annotated[Path, Field(description="this hospital's Flower node key (ECDSA P-384, OpenSSH format)")]


class SponsoredSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(pattern="^https://", description="https://host:port of whoever pays for gas")]
    ca_certificate: Annotated[
        Path | None, Field(description="certificate that signed the sponsor's; without, those that the system trusts")
    ] = None


class HospitalSettings(NodeSettings):
    data: Annotated[Path, Field(description="CSV file with the columns of the task's schema")]
    seed: Annotated[int, Field(ge=0, description="seed of batch orders")] = 0
    max_epsilon: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="the most that all tasks together may cost a row; without, each task's own budget is all that"
            " holds. With it, this node takes part in private tasks only",
        ),
    ] = None
    delta: Annotated[float, Field(gt=0, lt=1, description="the delta at which max_epsilon counts")] = 1e-5
    commits: Annotated[
        Literal["relayed", "own"],
        Field(
            description="relayed: by the aggregator's transaction, and by one of its own only where half of the time"
            " left for it went by without; own: by one of its own at once, which costs ether in every round"
        ),
    ] = "relayed"
    sponsor: Annotated[
        SponsoredSettings | None,
        Field(description="who pays for this hospital's transactions; without, its own account does, in ether"),
    ] = None
    flower: FlowerSettings

    def connection(self, account: LocalAccount, deployment: Deployment) -> Connection:
        """Raises ChainUnreachable, SponsorFailed."""
        if self.sponsor is None:
            return super().connection(account, deployment)
        sponsor = Sponsor(self.sponsor.url, self.sponsor.ca_certificate)
        return SponsoredConnection(self.chain_url, account, deployment.sponsored_account, sponsor)


class VoterSettings(NodeSettings):
    data: Annotated[Path, Field(description="CSV file of held-out rows with the columns of the task's schema")]
