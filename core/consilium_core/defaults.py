"""Defaults of options that several rooms name."""

from __future__ import annotations

from pathlib import Path

LOCAL_RPC = "http://127.0.0.1:8545"
LOCAL_ADDRESS_BOOK = Path(".consilium/local.json")
