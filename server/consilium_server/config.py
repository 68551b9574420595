"""The settings of an aggregator and of a sponsor."""

from __future__ import annotations

from typing import Annotated

from consilium_chain.settings import AccountSettings, NodeSettings, TaskNumber
from pydantic import Field


class AggregatorSettings(NodeSettings):
    task: TaskNumber
    superlink_port: Annotated[int, Field(ge=1, le=65_535, description="port of the SuperLink, on loopback")]


class SponsorSettings(AccountSettings):
    task: TaskNumber
    port: Annotated[int, Field(ge=1, le=65_535, description="port of the service, on loopback")]
    gas_per_hospital: Annotated[
        int, Field(ge=100_000, description="the most gas to pay for each hospital of the task between two starts")
    ] = 10_000_000
