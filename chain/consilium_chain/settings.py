"""Settings that every node shares, read from a TOML file."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, TypeVar

from consilium_core.artifacts.backends import Locations
from consilium_core.collector import TracingSettings
from consilium_core.errors import ConfigInvalid
from consilium_core.tracing import Party, traced
from consilium_core.typed_toml import parse_toml
from eth_account.signers.local import LocalAccount
from pydantic import BaseModel, ConfigDict, Field

from consilium_chain.addresses import ExactAddress
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import address_of, open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rounds.drand_relays import QUICKNET_RELAYS, RelayUrl
from consilium_chain.rpc.connection import Connection

MOST_NODES = 8
ChainUrl = Annotated[str, Field(min_length=1)]
ChainUrls = ChainUrl | Annotated[tuple[ChainUrl, ...], Field(min_length=1, max_length=MOST_NODES)]
"""One URL of a chain node (http or ws), or several of the same chain: the first that answers is asked."""

TaskNumber = Annotated[int, Field(ge=1, description="the task to take part in")]


class AccountSettings(BaseModel):
    """Settings of an account on the chain."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Annotated[Path, Field(description="folder for this node's own files, readable by its user alone")]
    chain_url: Annotated[
        ChainUrls, Field(description="URL of a chain node (http or ws), or several: the first that answers is asked")
    ]
    deployment: Annotated[Path, Field(description="address book of the contracts")]
    keystore: Annotated[Path, Field(description="encrypted key file of the node's account")]
    password_file: Annotated[Path, Field(description="file with the key file's password, mode 600")]
    tracing: Annotated[
        TracingSettings | None, Field(description="the collector that gets this process's spans; default: none")
    ] = None

    def connect(self) -> Ledger:
        """Opens the key file and connects. Raises KeystoreError, DeploymentInvalid, ChainUnreachable."""
        account = open_keystore(self.keystore, self.password_file)
        deployment = Deployment.read(self.deployment)
        return Ledger(self.connection(account, deployment), deployment, self.relays, self.payee)

    def connection(self, account: LocalAccount, deployment: Deployment) -> Connection:
        """Raises ChainUnreachable."""
        return Connection(self.chain_url, account)

    @property
    def relays(self) -> tuple[str, ...]:
        return QUICKNET_RELAYS

    @property
    def payee(self) -> str | None:
        return None

    def traced(self, role: str, task: int | None = None) -> AbstractContextManager[None]:
        """Within, this process's spans go to the collector, if there is one. `task`: None for a process of several.

        Raises KeystoreError, DeploymentInvalid.
        """
        if self.tracing is None:
            return nullcontext()
        book = Deployment.read(self.deployment)
        return traced(self.tracing, Party(book.chain_id, book.tasks, role, address_of(self.keystore), task))


class NodeSettings(AccountSettings):
    """Settings of every node."""

    artifacts: Annotated[
        Locations, Field(description="folder or URL of the artifact store, or several: the first this node's own")
    ]
    drand_relays: Annotated[
        tuple[RelayUrl, ...],
        Field(min_length=1, description="where drand rounds are fetched, in this order; {round} stands for the round"),
    ] = QUICKNET_RELAYS

    withdrawal_address: Annotated[
        ExactAddress | None,
        Field(
            description="account that gets this node's own stake and rewards: set on the chain when the node first"
            " stakes, and changed there alone. Default: the node's account"
        ),
    ] = None

    @property
    def relays(self) -> tuple[str, ...]:
        return self.drand_relays

    @property
    def payee(self) -> str | None:
        return self.withdrawal_address


def chain_urls(setting: ChainUrls) -> tuple[str, ...]:
    return (setting,) if isinstance(setting, str) else setting


SettingsType = TypeVar("SettingsType", bound=BaseModel)


def read_settings(path: Path, kind: type[SettingsType]) -> SettingsType:
    """Raises ConfigInvalid with every fault."""
    what = f"the configuration {path}"
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigInvalid(f"{what} does not exist; pass the right path") from error
    except OSError as error:
        raise ConfigInvalid(f"{what} cannot be read: {error.strerror}") from error
    return parse_toml(raw, kind, what, ConfigInvalid)
