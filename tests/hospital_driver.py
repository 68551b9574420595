"""Hospitals' nodes without Flower: what each is asked, it answers, on a real chain, for tests to hold against it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from chain_driver import LocalChain
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import Phase, Role, RoundState
from consilium_chain.messages import Part, ReplyCode, signed_update_bytes
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.signed_updates import SignedUpdate, parse_signed_update
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client.config import FlowerSettings, HospitalSettings, VoterSettings
from consilium_client.hospital.node import HospitalNode
from consilium_client.hospital.transport_key import make_transport_key
from consilium_client.relay.wire import RoundReply, RoundRequest
from consilium_client.voter.node import VoterNode
from consilium_core.private_files import write_private_file
from consilium_lab.demo.datasets import deal_wdbc, write_csv
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_zk.blobs import parse_blob
from consilium_zk.kzg import commit
from eth_account.signers.local import LocalAccount

OPEN_POLICY = {"operators": "any", "models": "any", "programs": "any", "columns": "any", "masked_only": False}
WINDOW = 10_000  # seconds of chain time: none passes but by `pass_time`


@dataclass
class Committing:
    """A task in its statistics round's Committing phase, and what its hospitals' nodes run on."""

    chain: LocalChain
    aggregator: Ledger
    store: ArtifactStore
    task: int
    settings: list[HospitalSettings]
    voter: VoterSettings

    def node(self, index: int, **changes: Any) -> HospitalNode:
        """A process of this hospital: at first as after joining, later as after a restart."""
        node = HospitalNode(self.settings[index].model_copy(update=changes))
        node.context.membership.index = index
        return node

    @property
    def round_state(self) -> RoundState:
        return self.aggregator.tasks.round_state(self.task, 0)

    def voter_node(self) -> VoterNode:
        node = VoterNode(self.voter, self.voter.connect())
        node.join()
        return node

    def look(self, node: HospitalNode) -> None:
        """One turn of the node's own loop, but for its relay."""
        take(node, Step.TRAIN, Step.NOTE_COMMITMENT, Step.COMMIT)

    def ask(self, node: HospitalNode, part: Part, round_: int = 0) -> RoundReply:
        contract = bytes.fromhex(self.aggregator.deployment.tasks.removeprefix("0x"))
        return node.answer(RoundRequest(contract, self.task, round_, part))

    def signed(self, node: HospitalNode) -> SignedUpdate:
        """A node's signed update; the share bundle with it, if there is one, is in the store then."""
        reply = self.ask(node, Part.SIGNED)
        assert (reply.code, list(reply.blobs)) == (ReplyCode.SIGNED, [])
        size = signed_update_bytes(1)
        if share_bundle := reply.body[size:]:
            self.store.put_file(share_bundle)
        return parse_signed_update(reply.body[:size], node.ledger.address, 1)

    def relay(self, *updates: SignedUpdate) -> None:
        self.aggregator.aggregator.commit_updates(self.task, 0, [(0, update) for update in updates])

    def set_ether(self, node: HospitalNode, wei: int) -> None:
        self.chain.rpc("anvil_setBalance", node.ledger.address, hex(wei))


def has_point_of(committing: Committing, upload: RoundReply, signed: SignedUpdate) -> bool:
    """True if an unmasked upload of one blob shows its blob's point, and the hospital signed the hash of it."""
    (blob,) = upload.blobs
    point = commit(parse_blob(blob))
    found = committing.aggregator.messages.point_hashes(committing.task, 0, signed.hospital, [point])
    return (upload.body, tuple(found)) == (point, signed.point_hashes)


def take(node: HospitalNode, *steps: Step) -> None:
    """Has a node take these steps, if they are due."""
    for step in steps:
        view, due = node.due()
        if step in due:
            node.actions[step](view)


def hospital_settings(chain: LocalChain, task: int, home: Path, data: Path, **policy: Any) -> HospitalSettings:
    make_transport_key(home / "transport.key")
    flower = FlowerSettings(superlink="127.0.0.1:1", ca_certificate=home / "none", transport_key=home / "transport.key")
    (home / "policy.toml").write_text(tomli_w.dumps(OPEN_POLICY | policy))
    approved = chain.treasury.tasks.params(task).spec_hash.hex()
    return HospitalSettings(
        **node_files(chain, chain.funded(), home), task=task, data=data, flower=flower, policy=home / "policy.toml",
        approved=approved, data_accepted={"leak": True},  # ages that foretell sickness
    )  # fmt: skip


def node_files(chain: LocalChain, node: Ledger, home: Path) -> dict[str, Any]:
    """What the settings of any node name, written to its folder."""
    account = node.connection.account
    assert isinstance(account, LocalAccount)
    write_private_file(home / "password", "secret\n")
    write_keystore(home / "key.json", account, "secret", scrypt_n=LIGHT_SCRYPT_N)
    chain.deployment.write(home / "deployment.json")
    return {
        "home": home, "chain_url": chain.node.url, "deployment": home / "deployment.json",
        "artifacts": home.parent / "artifacts", "keystore": home / "key.json", "password_file": home / "password",
    }  # fmt: skip


def start(
    chain: LocalChain,
    folder: Path,
    hospitals: int,
    masked: bool,
    exact: bool = False,
    encryption_keys: dict[int, bytes] | None = None,
    sections: str = "",
    **policy: Any,
) -> Committing:
    """In the statistics round. Hospitals have no ether left. encryption_keys: what some announce instead of their
    own. sections: more of the task file; policy: more of each hospital's.
    """
    data = deal_wdbc(hospitals, 1, 0)
    windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), WINDOW)
    raw = task_toml(data, TaskSettings(rounds=1, cohorts=1, windows=windows, masked=masked)).encode()
    if exact:
        raw = raw.replace(b'statistics = "schema"', b'statistics = "exact"')
    raw += sections.encode()
    store = ArtifactStore(folder / "artifacts")
    spec = parse_task_spec(raw)
    (aggregator,) = chain.staked(Role.AGGREGATOR, 1, spec.money.aggregator_bond * TOKEN)
    params = task_params(spec, store.put_file(raw), aggregator.address)
    task = chain.treasury.operator.propose(params)
    aggregator.aggregator.join(task)
    (voter,) = chain.staked(Role.VOTER, 1, params.voter_bond)
    voter.voter.join(task)
    write_csv(data.held_out[0], folder / "held-out.csv")
    voter_settings = VoterSettings(
        **node_files(chain, voter, folder / "v"), task=task, data=folder / "held-out.csv",
        policy=folder / "v" / "policy.toml",
    )  # fmt: skip
    settings = []
    for index, frame in enumerate(data.hospitals):
        write_csv(frame, folder / f"{index}.csv")
        settings.append(
            hospital_settings(
                chain, task, folder / f"h{index}", folder / f"{index}.csv", exact_statistics=exact, **policy
            )
        )
    made = Committing(chain, aggregator, store, task, settings, voter_settings)
    for index, own in enumerate(settings):
        node = HospitalNode(own)
        if encryption_keys and index in encryption_keys and node.updates.masking:
            node.updates.masking.encryption_key = encryption_keys[index]
        node.join()
        made.set_ether(node, 0)
    assert aggregator.tasks.state(task).phase is Phase.COMMITTING
    return made
