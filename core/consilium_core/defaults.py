"""Defaults of options that several rooms name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

LOCAL_RPC = "http://127.0.0.1:8545"
LOCAL_ADDRESS_BOOK = Path(".consilium/local.json")


class Role(StrEnum):
    """The roles that a machine may have."""

    API = "api"
    INDEX = "index"
    WORKER = "worker"
    AGGREGATOR = "aggregator"
    SPONSOR = "sponsor"
    HOSPITAL = "hospital"
    VOTER = "voter"


USUAL_HOMES = {role: Path("~/.consilium") / role for role in (Role.HOSPITAL, Role.VOTER)}
