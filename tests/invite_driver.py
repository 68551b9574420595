"""An operator that proposed a task, its invites, and homes made with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chain_driver import LocalChain
from command_line import CommandLine
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.invites import SignedInvite, read_invite, sign_invite
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Role
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_core.private_files import write_private_file
from consilium_server.certificates import ensure_certificates
from eth_account.signers.local import LocalAccount
from task_files import DATA

TASK = f'name = "who will fall ill"\n{DATA}\n[model]\nname = "logistic"\n'


@dataclass
class World:
    """An open task, and an operator's account, which proposed it."""

    chain: LocalChain
    folder: Path
    operator: Ledger
    task: int
    consilium: CommandLine

    @property
    def file(self) -> Path:
        return self.folder / "heart.invite"

    @property
    def home(self) -> Path:
        return self.folder / "home" / ".consilium" / "hospital"

    def invite(self, *more: str, superlinks: Sequence[str] = ("127.0.0.1:9092/9100",)) -> tuple[int, str]:
        links = [word for link in superlinks for word in ("--superlink", link)]
        return self.consilium(
            "operator", "invite", str(self.task), "--output", str(self.file), *links,
            "--ca-certificate", str(self.folder / "tls" / "ca.crt"), "--artifacts", str(self.folder / "artifacts"),
            "--rpc", self.chain.node.url, "--address-book", str(self.folder / "book.json"),
            "--keystore", str(self.folder / "operator.json"), "--password-file", str(self.folder / "password"), *more,
        )  # fmt: skip

    def init(self, *more: str, invite: str | None = None, role: str = "hospital") -> tuple[int, str]:
        return self.consilium(
            role, "init", "--invite", invite or str(self.file), "--data", str(self.folder / "rows.csv"),
            "--home", str(self.home), *more,
        )  # fmt: skip

    def changed(self, by: LocalAccount | None = None, **changes: Any) -> str:
        """The path of another invite, signed by the operator or another account."""
        (self.folder / "other.invite").write_bytes(self.signed(by, **changes).written)
        return str(self.folder / "other.invite")

    def signed(self, by: LocalAccount | None = None, **changes: Any) -> SignedInvite:
        account = by or self.operator.connection.signer
        plain = read_invite(self.file).model_copy(update={"operator": account.address, **changes})
        return sign_invite(plain, account)


def invited_world(consilium: CommandLine, chain: LocalChain, folder: Path, text: str = TASK) -> World:
    spec = parse_task_spec(text.encode())
    operator = chain.funded()
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    digest = ArtifactStore(folder / "artifacts").put_file(text.encode())
    number = operator.operator.propose(task_params(spec, digest, aggregator.address))
    chain.deployment.write(folder / "book.json")
    write_private_file(folder / "password", "secret\n")
    write_keystore(folder / "operator.json", operator.connection.signer, "secret", LIGHT_SCRYPT_N)
    (folder / "rows.csv").write_text("age,sick\n" + "50,0\n60,1\n50,1\n60,0\n" * 15)
    ensure_certificates(folder / "tls")
    return World(chain, folder, operator, number, consilium)
