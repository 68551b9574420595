"""The settings of an aggregator, of a sponsor and of the HTTP API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from consilium_chain.settings import AccountSettings, NodeSettings, TaskNumber
from consilium_chain.typed_toml import Section
from eth_utils.address import is_hex_address, to_checksum_address
from pydantic import AfterValidator, Field


class AggregatorSettings(NodeSettings):
    task: TaskNumber
    superlink_port: Annotated[int, Field(ge=1, le=65_535, description="port of the SuperLink, on loopback")]


class SponsorSettings(AccountSettings):
    task: TaskNumber
    port: Annotated[int, Field(ge=1, le=65_535, description="port of the service, on loopback")]
    gas_per_hospital: Annotated[
        int, Field(ge=100_000, description="the most gas to pay for each hospital of the task between two starts")
    ] = 10_000_000


def checksummed(account: str) -> str:
    """Of an account in any capitals. Raises ValueError."""
    if not is_hex_address(account) or not account.startswith("0x"):
        raise ValueError("an account is 0x and 40 hexadecimal digits")
    return str(to_checksum_address(account))


AccountSetting = Annotated[str, AfterValidator(checksummed)]
Origin = Annotated[str, Field(pattern=r"^https?://[A-Za-z0-9.\-\[\]:]+$", description="as https://example.org")]


class ApiLimits(Section):
    """By client address, but for files by account too. As much as in the time named may come at once."""

    requests_per_minute: Annotated[int, Field(ge=1)] = 1_200
    sign_ins_per_minute: Annotated[int, Field(ge=1)] = 20
    checks_per_minute: Annotated[int, Field(ge=1)] = 12
    files_per_hour: Annotated[int, Field(ge=1)] = 20
    streams_per_client: Annotated[int, Field(ge=1)] = 16
    streams: Annotated[int, Field(ge=1, description="open at once, of all clients")] = 1_000
    largest_body: Annotated[int, Field(ge=1_024, description="bytes")] = 256 * 1024


class ApiSettings(Section):
    """What the HTTP API needs. It holds no key of any account."""

    home: Annotated[Path, Field(description="folder of the server's secret, readable by its user alone")]
    database_url: Annotated[str, Field(description="of the index: sqlite:///PATH or postgresql+psycopg://…")]
    deployment: Annotated[Path, Field(description="address book of the contracts")]
    artifacts: Annotated[Path, Field(description="folder of the artifact store")]
    origin: Annotated[Origin, Field(description="where people reach this server, and what they sign in to")]
    port: Annotated[int, Field(ge=1, le=65_535)] = 8_080
    host: Annotated[str, Field(description="address to listen on; TLS is a proxy's")] = "127.0.0.1"
    chain_url: Annotated[str | None, Field(description="chain node, asked only how far the chain is")] = None
    most_behind: Annotated[int, Field(ge=0, description="blocks that the index may lack and be called ready")] = 20
    admins: tuple[AccountSetting, ...] = ()
    operators: Annotated[
        tuple[AccountSetting, ...] | None, Field(description="who may store task files; by default whoever signs in")
    ] = None
    cors_origins: Annotated[tuple[Origin, ...], Field(description="other sites whose pages may read here")] = ()
    proxies: Annotated[tuple[str, ...], Field(description="addresses whose X-Forwarded-For is believed")] = ()
    dashboard: Annotated[Path | None, Field(description="folder of static files, served at /")] = None
    poll_seconds: Annotated[float, Field(gt=0, description="between looks for events")] = 0.5
    heartbeat_seconds: Annotated[float, Field(gt=0, description="between signs of life on a stream")] = 15.0
    stalled_seconds: Annotated[float, Field(gt=0, description="a stream's reader that takes longer is let go")] = 20.0
    limits: ApiLimits = ApiLimits()
