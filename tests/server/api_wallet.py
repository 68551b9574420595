"""A wallet that signs in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount
from fastapi.testclient import TestClient
from httpx2 import Response

TEMPLATE = """{domain} wants you to sign in with your Ethereum account:
{address}

Sign in to Consilium.

URI: {uri}
Version: 1
Chain ID: {chain_id}
Nonce: {nonce}
Issued At: {issued_at}"""


def rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Wallet:
    account: LocalAccount = field(default_factory=Account.create)

    @property
    def address(self) -> str:
        return str(self.account.address)

    def message(self, client: TestClient, **changes: Any) -> str:
        """The message that the server wants, with these changes; `more` is appended."""
        asked = client.get("/v1/session/nonce").json()
        more = changes.pop("more", "")
        given = asked | {"address": self.address, "issued_at": rfc3339(asked["expires_at"] - 600)} | changes
        return f"{TEMPLATE.format(**given)}{more}"

    def sign(self, text: str) -> str:
        return "0x" + bytes(self.account.sign_message(encode_defunct(text=text)).signature).hex()

    def sign_in(self, client: TestClient, **changes: Any) -> Response:
        text = self.message(client, **changes)
        return client.post("/v1/session", json={"message": text, "signature": self.sign(text)})
