"""Settings of the aggregator, the sponsor, the indexer, the worker and the HTTP API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from consilium_chain.artifacts.store import CACHE, ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.keystore import open_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.rounds.drand_relays import QUICKNET_RELAYS, RelayUrl
from consilium_chain.rpc.connection import Connection
from consilium_chain.settings import AccountSettings, ChainUrls, NodeSettings, TaskNumber
from consilium_core.artifacts.backends import Locations
from consilium_core.collector import TracingSettings
from consilium_core.notify import MailSettings
from consilium_core.typed_toml import Section
from eth_utils.address import is_hex_address, to_checksum_address
from pydantic import AfterValidator, Field, IPvAnyNetwork, SecretStr, model_validator
from sqlalchemy import Engine

from consilium_server.database.engine import open_database
from consilium_server.errors import ServerError

DATABASE_URL_VARIABLE = "CONSILIUM_DATABASE_URL"
BROKER_URL_VARIABLE = "CONSILIUM_BROKER_URL"
WITHIN_THE_PROCESS = "memory://localhost/"
POSTGRESQL = "postgresql://"
SUPERLINK_DATABASE = "superlink.sqlite"  # with SQLite's more files, in an aggregator's home until its bond is back


def _of_postgresql(url: SecretStr) -> SecretStr:
    if not url.get_secret_value().startswith(POSTGRESQL):
        raise ValueError("machines share a PostgreSQL database: write postgresql://USER:PASSWORD@HOST:PORT/NAME")
    return url


class AggregatorSettings(NodeSettings):
    task: TaskNumber
    superlink_port: Annotated[int, Field(ge=1, le=65_535, description="port of the SuperLink, on loopback")]
    tls: Annotated[
        Path | None, Field(description="folder of the SuperLink's certificate and its authority; default: tls in home")
    ] = None
    database_url: Annotated[
        SecretStr | None,
        AfterValidator(_of_postgresql),
        Field(description="PostgreSQL of this account's machines: one of them runs the task. Default: this one alone"),
    ] = None

    @property
    def tls_folder(self) -> Path:
        return self.tls or self.home / "tls"

    def shared_database(self) -> Engine | None:
        """The database of this account's machines. Raises the errors of `open_database`."""
        return None if self.database_url is None else open_database(self.database_url.get_secret_value(), 3)


class SponsorSettings(AccountSettings):
    task: TaskNumber
    port: Annotated[int, Field(ge=1, le=65_535, description="port of the service, on loopback")]
    gas_per_hospital: Annotated[
        int, Field(ge=100_000, description="most gas to pay for each hospital of the task between two starts")
    ] = 10_000_000


class IndexSettings(Section):
    """Settings of the index: its folder and its contracts."""

    home: Annotated[Path, Field(description="folder for this process's own files, readable by its user alone")]
    deployment: Annotated[Path, Field(description="address book of the contracts")]
    artifacts: Annotated[Locations, Field(description="the artifact store, and mirrors of it: folders or URLs")]
    database_url: Annotated[
        SecretStr | None,
        Field(description="sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/NAME; by default a file in `home`"),
    ] = None

    @property
    def url(self) -> str:
        """URL of the database. The variable CONSILIUM_DATABASE_URL overrides the file."""
        if url := os.environ.get(DATABASE_URL_VARIABLE):
            return url
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.home / 'index.sqlite'}"

    @property
    def store(self) -> ArtifactStore:
        """The artifact store."""
        return ArtifactStore(self.artifacts, self.home / CACHE)


class IndexerSettings(IndexSettings):
    """Settings of an indexer. It only reads the chain, and needs no account."""

    chain_url: Annotated[
        ChainUrls, Field(description="URL of a chain node (http or ws), or several: the first that answers is asked")
    ]

    def connect(self) -> Ledger:
        """Connects as a reader. Raises DeploymentInvalid, ChainUnreachable."""
        return Ledger(Connection(self.chain_url), Deployment.read(self.deployment))


class KeyFiles(NamedTuple):
    """Key file and password file of an account."""

    keystore: Path
    password_file: Path


def checksummed(account: str) -> str:
    """The account with the capitals of EIP-55. Raises ValueError."""
    if not is_hex_address(account) or not account.startswith("0x"):
        raise ValueError("an account is 0x and 40 hexadecimal digits")
    return str(to_checksum_address(account))


AccountSetting = Annotated[str, AfterValidator(checksummed)]
Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.\-\[\]:]+$", description="as https://example.org")]


class PublicMailSettings(MailSettings):
    per_day: Annotated[int, Field(ge=1, description="mails of all addresses together")] = 1_000


class NotifySettings(Section):
    """Means by which the worker tells the addresses of the API's watch lists."""

    origin: Annotated[Origin, Field(description="address of the API in people's browsers, for links")]
    webhooks: bool = True
    webhook_ports: tuple[Annotated[int, Field(ge=1, le=65_535)], ...] = (443,)
    mail: PublicMailSettings | None = None
    confirmations: Annotated[int, Field(ge=0, description="blocks above an event before it is told")] = 12


class NameSettings(Section):
    """Means by which the worker verifies accounts' names."""

    domains: Annotated[bool, Field(description="asks the hosts of profiles' sites for a file with the address")] = True
    ens_url: Annotated[
        ChainUrls | None, Field(description="node of Ethereum's mainnet, or several, for ENS names; default: none")
    ] = None


class WorkerSettings(IndexerSettings):
    """Settings of a worker. Without an account it only indexes, and copies artifacts to mirrors."""

    broker_url: Annotated[
        SecretStr | None,
        Field(description="redis://:PASSWORD@HOST:PORT/NUMBER; by default jobs stay within this process"),
    ] = None
    keystore: Annotated[Path | None, Field(description="encrypted key file of the account that takes tasks' steps")] = (
        None
    )
    password_file: Annotated[Path | None, Field(description="file with the key file's password, mode 600")] = None
    notify: NotifySettings | None = None
    names: NameSettings | None = None
    tracing: Annotated[
        TracingSettings | None, Field(description="the collector of this account's aggregators; default: none")
    ] = None
    drand_relays: Annotated[tuple[RelayUrl, ...], Field(min_length=1)] = QUICKNET_RELAYS
    first_superlink_port: Annotated[
        int, Field(ge=1, le=65_535, description="first port of the SuperLinks of this account's tasks, one for each")
    ] = 9_100
    max_aggregators: Annotated[
        int | None, Field(ge=1, description="most aggregators on this machine; another one takes the rest")
    ] = None
    index_seconds: Annotated[float, Field(gt=0, description="seconds between polls for blocks")] = 1.0
    watch_seconds: Annotated[float, Field(gt=0, description="seconds between polls for due jobs")] = 3.0
    precedence_seconds: Annotated[
        float, Field(ge=0, description="seconds after a deadline that are left to the task's aggregator")
    ] = 15.0

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.keystore is None) != (self.password_file is None):
            raise ValueError("keystore and password_file belong together: give both, or neither")
        return self

    @property
    def key_files(self) -> KeyFiles | None:
        """Key files of the worker's account; None if it has none."""
        if self.keystore is None or self.password_file is None:
            return None
        return KeyFiles(self.keystore, self.password_file)

    @property
    def indexer(self) -> IndexerSettings:
        """Settings for commands that only read the chain and open no key file."""
        return IndexerSettings.model_construct(**{name: getattr(self, name) for name in IndexerSettings.model_fields})

    @property
    def broker(self) -> str:
        """The broker's URL. CONSILIUM_BROKER_URL overrides the file. Raises ServerError (BrokerUrlInvalid)."""
        url = os.environ.get(BROKER_URL_VARIABLE)
        if not url:
            url = None if self.broker_url is None else self.broker_url.get_secret_value()
        if url is None:
            return WITHIN_THE_PROCESS
        try:
            parts = urlsplit(url)
            known = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            raise ServerError("BrokerUrlInvalid") from None  # the cause would show the URL
        if not known or "password" in parse_qs(parts.query):
            raise ServerError("BrokerUrlInvalid")
        return url

    def connect(self) -> Ledger:
        """Connects with the account, if there is one. Raises KeystoreError, DeploymentInvalid, ChainUnreachable."""
        if self.key_files is None:
            return super().connect()
        account = open_keystore(*self.key_files)
        return Ledger(Connection(self.chain_url, account), Deployment.read(self.deployment), self.drand_relays)


class ApiLimits(Section):
    """Limits by client address; those on files also by account. A burst may take the whole amount of its period."""

    requests_per_minute: Annotated[int, Field(ge=1)] = 1_200
    sign_ins_per_minute: Annotated[int, Field(ge=1)] = 20
    checks_per_minute: Annotated[int, Field(ge=1)] = 12
    files_per_hour: Annotated[int, Field(ge=1)] = 20
    streams_per_client: Annotated[int, Field(ge=1)] = 16
    streams: Annotated[int, Field(ge=1, description="open at once, of all clients")] = 1_000
    watch_lists: Annotated[int, Field(ge=1, description="stored, of all accounts")] = 10_000
    largest_body: Annotated[int, Field(ge=1_024, description="bytes")] = 256 * 1024


class ApiSettings(IndexSettings):
    """Settings of the HTTP API. It holds no key of any account, and stores its own secret in `home`."""

    origin: Annotated[
        Origin, Field(description="address of this server in people's browsers, and in messages to sign in")
    ]
    port: Annotated[int, Field(ge=1, le=65_535)] = 8_080
    host: Annotated[str, Field(description="address to listen on; TLS is a proxy's")] = "127.0.0.1"
    chain_url: Annotated[
        ChainUrls | None,
        Field(description="chain node, or several, for the latest block, gas prices, and sign-in of contract wallets"),
    ] = None
    most_behind: Annotated[int, Field(ge=0, description="blocks that the index may be behind and still be ready")] = 20
    admins: tuple[AccountSetting, ...] = ()
    operators: Annotated[
        tuple[AccountSetting, ...] | None,
        Field(description="accounts that may store task files; by default every signed-in account"),
    ] = None
    cors_origins: Annotated[tuple[Origin, ...], Field(description="other sites whose pages may read here")] = ()
    proxies: Annotated[
        tuple[IPvAnyNetwork, ...], Field(description="addresses or networks whose X-Forwarded-For is trusted")
    ] = ()
    models: Annotated[
        Path | None,
        Field(description="folder with a folder task-N for each task's model, from `operator download-model`"),
    ] = None
    example_task: Annotated[
        Path | None, Field(description="task file that the dashboard's page Propose begins with; by default its own")
    ] = None
    dashboard: Annotated[
        Path | None, Field(description="folder of static files, served at /; by default the dashboard, if it is built")
    ] = None
    public_chain_url: Annotated[str | None, Field(description="a chain node for the checks in visitors' browsers")] = (
        None
    )
    prediction_servers: Annotated[
        tuple[Origin | Literal["https:"], ...],
        Field(description="servers at which the dashboard may buy predictions; https: for every https server"),
    ] = ()
    explorer: Annotated[
        str | None,
        Field(pattern=r"^https://[A-Za-z0-9.:-]+(/[A-Za-z0-9._~/-]*)?$", description="a block explorer's URL"),
    ] = None
    poll_seconds: Annotated[float, Field(gt=0, description="seconds between polls for events")] = 0.2
    heartbeat_seconds: Annotated[float, Field(gt=0, description="seconds between heartbeats on a stream")] = 15.0
    stalled_seconds: Annotated[
        float, Field(gt=0, description="seconds after which a client that reads nothing is disconnected")
    ] = 20.0
    limits: ApiLimits = ApiLimits()
