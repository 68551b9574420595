"""The settings of an aggregator, of a sponsor and of an indexer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from consilium_chain.artifacts import ArtifactStore
from consilium_chain.connection import Connection
from consilium_chain.deployment import Deployment
from consilium_chain.ledger import Ledger
from consilium_chain.settings import AccountSettings, NodeSettings, TaskNumber
from pydantic import BaseModel, ConfigDict, Field, SecretStr

DATABASE_URL_VARIABLE = "CONSILIUM_DATABASE_URL"


class AggregatorSettings(NodeSettings):
    task: TaskNumber
    superlink_port: Annotated[int, Field(ge=1, le=65_535, description="port of the SuperLink, on loopback")]


class SponsorSettings(AccountSettings):
    task: TaskNumber
    port: Annotated[int, Field(ge=1, le=65_535, description="port of the service, on loopback")]
    gas_per_hospital: Annotated[
        int, Field(ge=100_000, description="the most gas to pay for each hospital of the task between two starts")
    ] = 10_000_000


class IndexerSettings(BaseModel):
    """Who only reads the chain needs no account."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Annotated[Path, Field(description="folder for this process's own files, readable by its user alone")]
    chain_url: Annotated[str, Field(description="HTTP endpoint of a chain node")]
    deployment: Annotated[Path, Field(description="address book of the contracts")]
    artifacts: Annotated[Path, Field(description="folder of the artifact store")]
    database_url: Annotated[
        SecretStr | None,
        Field(description="sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME; by default a file in `home`"),
    ] = None

    @property
    def url(self) -> str:
        """Of the database; the environment's CONSILIUM_DATABASE_URL goes before the file's."""
        if given := os.environ.get(DATABASE_URL_VARIABLE):
            return given
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.home / 'index.sqlite'}"

    @property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.artifacts)

    def connect(self) -> Ledger:
        """A reader. Raises DeploymentInvalid, ChainUnreachable."""
        return Ledger(Connection(self.chain_url), Deployment.read(self.deployment))
