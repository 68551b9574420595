"""Carries out a deployment, one transaction at a time. A new run continues an interrupted one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import rlp
from consilium_core.errors import ConfigInvalid
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from hexbytes import HexBytes

from consilium_chain.deploying.address_book import ZERO_ADDRESS, Deployment
from consilium_chain.deploying.journal import Journal, Record, Step, fingerprint, journal_path, open_journal
from consilium_chain.deploying.networks import Network
from consilium_chain.deploying.node import DeployNode
from consilium_chain.deploying.plan import WIRING, Survey, constructor_arguments, contracts_of, survey
from consilium_chain.deploying.verify import require_precompiles, verify_code, verify_wiring
from consilium_chain.errors import DeployFailed, DeploymentInvalid
from consilium_chain.rpc.abi import ContractName, compiler_input, contract_artifact

DECIMALS = 18
INDEX = "contracts.json"  # of the sources' files


def created_address(creator: str, nonce: int) -> str:
    """The address of the contract that a transaction of this nonce creates (yellow paper, 7)."""
    return to_checksum_address(keccak(rlp.encode([bytes.fromhex(creator[2:]), nonce]))[12:])


@dataclass
class Deploying:
    """A deployment to one network, its account and its files."""

    node: DeployNode
    network: Network
    book: Path
    journal: Journal
    creations: dict[ContractName, bytes] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, node: DeployNode, name: str, network: Network, book: Path) -> Deploying:
        """Reads the state that an earlier run left. Sends nothing.

        Raises ConfigInvalid, DeployFailed (ChainMismatch, PrecompileMissing, BookTaken, JournalInvalid, JournalStale,
        CodeMismatch).
        """
        if node.chain_id != network.chain_id:
            raise DeployFailed(
                "ChainMismatch", network=name, expected=network.chain_id, found=node.chain_id, url=node.shown_url
            )
        require_precompiles(node)
        _check_token(node, network)
        fresh = Record(
            chain_id=node.chain_id,
            genesis=HexBytes(node.blocks.hash_of(0)).to_0x_hex(),  # local chains share an id, but not this
            deployer=node.address,
            first_block=node.blocks.number(),
        )
        path = journal_path(book)
        if book.exists():
            _check_book(book, node.chain_id, path)
        deploying = cls(node, network, book, open_journal(path, fresh))
        deploying._find_deployed()
        return deploying

    def _find_deployed(self) -> None:
        for name in contracts_of(self.network):
            creation = self._creation(name)
            step = self.journal.step(name, creation)
            if step is None or step.address is None or not self.node.code(step.address):
                return
            verify_code(self.node, name, step.address, creation)
            self._know(name, step.address, creation)

    def _creation(self, name: ContractName) -> bytes:
        return self.node.creation_code(
            name, *constructor_arguments(name, self.network, self.node.address, self.addresses)
        )

    def _know(self, name: ContractName, address: str, creation: bytes) -> None:
        self.addresses[name], self.creations[name] = address, creation

    @property
    def wired(self) -> bool:
        """True if the last step is done."""
        if "Tasks" not in self.addresses:
            return False
        return str(self.node.read("Staking", self.addresses["Staking"], "tasks")) != ZERO_ADDRESS

    def survey(self) -> Survey:
        return survey(self.node, self.network, self.addresses, self.wired)

    def carry_out(self, tell: Callable[[str], None]) -> Deployment:
        """Sends the missing transactions, waits for confirmations, verifies all, and writes the address book.

        Sends again the transactions that a reorganisation removes.

        Raises Refused, TransactionRejected, DeployFailed (DeploymentPending, DeploymentReverted, CodeMismatch,
        WiringWrong).
        """
        while True:
            self._send_missing(tell)
            head = self.node.blocks.number()
            last = max(head if step.block is None else step.block for step in self.journal.record.steps.values())
            self.node.wait_confirmed(last, self.network.confirmations)
            gone = [name for name in self.creations if not self.node.code(self.addresses[name])]
            for name in gone:
                tell(f"{name} disappeared with its block, and is sent again")
                del self.addresses[name], self.creations[name]
            if not gone and self.wired:
                return self._verified()

    def _send_missing(self, tell: Callable[[str], None]) -> None:
        for name in contracts_of(self.network):
            if name not in self.addresses:
                creation = self._creation(name)
                step = self._send(f"deploy {name}", name, None, creation)
                address = cast(str, step.address)
                self._know(name, address, creation)
                tell(f"{name} at {address}")
        if not self.wired:
            staking, tasks, shares = (self.addresses[name] for name in ("Staking", "Tasks", "ModelShares"))
            self._send(WIRING, WIRING, staking, self.node.call_data("Staking", staking, "connect", tasks, shares))
            tell("Staking answers to Tasks and ModelShares")

    def _verified(self) -> Deployment:
        for name, creation in self.creations.items():
            verify_code(self.node, name, self.addresses[name], creation)
        deployment = Deployment(
            self.node.chain_id,
            self.journal.record.first_block,
            self.network.token.address or self.addresses["ConsiliumToken"],
            self.addresses["Staking"],
            self.addresses[self.network.beacon.contract],
            self.addresses["Tasks"],
            self.addresses["ModelShares"],
            self.addresses["SponsoredAccount"],
            self.network.beacon.contract,
            self.network.blobs,
        )
        verify_wiring(
            self.node, self.network, deployment, self.addresses["TaskRegistry"], self.addresses["TaskSettlement"]
        )
        deployment.write(self.book)
        return deployment

    def _send(self, call: str, name: str, to: str | None, data: bytes) -> Step:
        """Sends a step and waits for it. Uses the nonce of an earlier run, unless another transaction took it."""
        step = self.journal.step(name, data)
        if step is not None and step.nonce < self.node.nonce(with_pending=False):
            if step.address is not None and self.node.code(step.address):
                return step  # it arrived after this run began
            step = None  # it failed on the chain, or the account sent another transaction
        own = None
        if step is None or not self.node.knows(step.transaction):
            nonce = self.node.nonce(with_pending=True) if step is None else step.nonce
            own = self.node.sign(call, to, data, nonce)
            address = created_address(self.node.address, nonce) if to is None else None
            transaction = own.signed.hash.to_0x_hex()
            step = Step(nonce=nonce, transaction=transaction, payload=fingerprint(data), address=address)
            self.journal.write_down(name, step)
            self.node.broadcast(own, call)
        step = step.model_copy(update={"block": self.node.wait_mined(step.transaction, call, own)})
        self.journal.write_down(name, step)
        return step


def _check_book(book: Path, chain_id: int, journal: Path) -> None:
    """An existing address book must be of this deployment."""
    try:
        other = Deployment.read(book).chain_id
    except DeploymentInvalid as error:
        raise DeployFailed("BookTaken", path=book, why=error) from error
    if other != chain_id:
        raise DeployFailed("BookTaken", path=book, why=f"it is of chain {other} instead of {chain_id}")
    if not journal.exists():
        why = f"without the journal {journal.name} of its deployment"
        raise DeployFailed("BookTaken", path=book, why=why)


def _check_token(node: DeployNode, network: Network) -> None:
    """A named token must exist, with the decimals of every amount in this project."""
    address = network.token.address
    if address is None:
        return
    if not node.code(address):
        raise ConfigInvalid(f"token.address {address} has no contract on chain {node.chain_id}; correct it")
    if (decimals := node.read("ConsiliumToken", address, "decimals")) != DECIMALS:
        raise ConfigInvalid(
            f"the token at {address} has {decimals} decimals, and tasks need {DECIMALS}; name another token"
        )


def write_sources(folder: Path, deploying: Deploying) -> None:
    """Writes the files by which block explorers verify sources: NAME.input.json for each contract, and an index.

    The index's fields have the names of Sourcify's API (v2, POST /v2/verify/{chainId}/{address}). Etherscan's
    `contractname` is `contractIdentifier`, and its `compilerversion` begins with "v".
    """
    folder.mkdir(parents=True, exist_ok=True)
    steps = deploying.journal.record.steps
    index: list[Mapping[str, object]] = []
    for name, creation in deploying.creations.items():
        (folder / f"{name}.input.json").write_text(json.dumps(compiler_input(name), indent=1) + "\n")
        artifact = contract_artifact(name)
        index.append(
            {
                "name": name,
                "chainId": deploying.node.chain_id,
                "address": deploying.addresses[name],
                "contractIdentifier": artifact.source,
                "compilerVersion": artifact.compiler,
                "constructorArguments": creation[len(artifact.bytecode) // 2 - 1 :].hex(),  # follow the init code
                "creationTransactionHash": steps[name].transaction,
                "stdJsonInput": f"{name}.input.json",
            }
        )
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n")
