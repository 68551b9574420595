"""A hospital never writes a row, a label or an unmasked update to the network: all traffic of a masked round, searched.

Three hospitals' nodes play the statistics round and a training round on a real chain. Whatever they say to it passes a
wiretap, and so does what crosses their Unix sockets. The first one has a real relay behind its socket, a SuperLink that
its SuperNode reaches through a third wiretap, and a sponsor, whose requests are kept where TLS ends.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import pytest
import tomli_w
from audit_lines import chained
from chain_driver import GAS_MONEY, TOKENS, LocalChain
from click.testing import Result
from consilium_chain.artifacts.store import CHECK_BITS, ArtifactStore
from consilium_chain.errors import ChainUnreachable, DeploymentInvalid, Refused
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import CohortsFate, PublishedCohort, cohort_commitments
from consilium_chain.ledger.structs import Phase, Role, RoundState
from consilium_chain.messages import Part, ReplyCode, signed_update_bytes
from consilium_chain.rounds.machine import Step
from consilium_chain.rounds.signed_updates import parse_signed_update
from consilium_chain.rpc.abi import CONTRACT_NAMES, contract_artifact
from consilium_chain.rpc.local_node import free_port
from consilium_chain.rpc.looks import Asked, program
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_cli.main import app
from consilium_client.config import SponsoredSettings
from consilium_client.data.standardise import sums_of
from consilium_client.data.table.reader import Table
from consilium_client.errors import AuditError, FrameError
from consilium_client.hospital.audit_log import AUDIT_FILE, Entry, export, parse_log
from consilium_client.hospital.node import HospitalNode
from consilium_client.hospital.relay_link import Listener
from consilium_client.hospital.transport_key import transport_public_key
from consilium_client.models import Vector
from consilium_client.relay.process import RelayProcess
from consilium_client.relay.wire import RoundReply, RoundRequest, receive_reply, send_request
from consilium_core.kinds import of_kind
from consilium_core.private_files import write_private_file
from consilium_lab.demo.datasets import DemoData, Frame, deal_wdbc, write_csv
from consilium_lab.demo.task_file import TaskSettings, task_toml
from consilium_server.aggregator.collection import Collection
from consilium_server.aggregator.unmasking import cohort_answers
from consilium_server.aggregator.uploads import (
    Answer,
    Contribution,
    Signed,
    Upload,
    parse_upload_body,
    sum_cohort,
)
from consilium_server.flower.internals import SuperLink
from consilium_server.sponsor.service import Sponsor as Payer
from consilium_server.sponsor.service import Terms, service
from consilium_zk.blobs import Blob, parse_blob, scale
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.quantise import clip_norm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eth_abi.abi import decode
from eth_account import Account
from eth_utils.abi import abi_to_signature
from eth_utils.crypto import keccak
from hospital_driver import hospital_settings, take
from numpy.typing import NDArray
from raised_faults import raises_fault
from sponsor_driver import served
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typer.testing import CliRunner
from wiretap import Wiretap, search

pytestmark = pytest.mark.timeout(600)

T = TypeVar("T")
HOSPITALS, ROWS, WINDOW = 3, 72, 10_000
PATIENCE = 120.0  # seconds, against hanging for ever
# What a node asks a chain node besides calls: numbers of blocks, hashes, accounts' addresses, events' topics.
READS = {
    "eth_blockNumber", "eth_chainId", "eth_getBalance", "eth_getBlockByNumber", "eth_getCode", "eth_getLogs",
    "eth_getStorageAt", "eth_getTransactionByHash", "eth_getTransactionCount", "eth_getTransactionReceipt",
    "debug_traceTransaction",
}  # fmt: skip


class Watched(HospitalNode):
    """Keeps what it trains, for the search to know it. In `leak`, what it is made to say in place of its answers."""

    leak: RoundReply | None = None
    trained: NDArray[np.float64] | None = None

    def local_update(self, round_: int, base: Vector) -> NDArray[np.float64]:
        self.trained = super().local_update(round_, base)
        return self.trained

    def answer(self, request: RoundRequest) -> RoundReply:
        return self.leak or super().answer(request)


class Bodies:
    """Keeps the bodies of requests to an app, in order."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.kept: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""

        async def receiving() -> Message:
            nonlocal body
            message = await receive()
            body += message.get("body", b"")
            return message

        await self._app(scope, receiving, send)
        if scope["type"] == "http":
            self.kept.append(body)


@dataclass
class Bed:
    """One hospital: its node, the wiretaps around it, and its updates by round, which nobody else must see."""

    node: Watched
    frame: Frame
    chain: Wiretap
    relay: Wiretap
    path: Path
    blobs: dict[int, list[Blob]] = field(default_factory=dict)
    seeds: list[bytes] = field(default_factory=list)

    @property
    def index(self) -> int:
        return self.node.index

    def ask(self, round_: int, part: Part) -> RoundReply:
        """As its relay would."""
        contract = bytes.fromhex(self.node.ledger.deployment.tasks[2:])
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.path))
            send_request(connection, RoundRequest(contract, self.node.task.number, round_, part))
            return receive_reply(connection)

    def keep(self, round_: int) -> None:
        update = self.node.updates.pending.read(round_)
        assert update is not None
        self.blobs[round_] = list(update.blobs)
        self.seeds.append(update.seed)

    @property
    def frames(self) -> list[bytes]:
        """The replies of its node to its relay."""
        return [bytes(one.callee) for one in self.relay.conversations if one.callee]

    @property
    def calls(self) -> list[tuple[str, list[Any]]]:
        """The requests of its node to the chain: methods and arguments, in order within a connection."""
        return [
            (asked["method"], asked["params"])
            for one in self.chain.conversations
            for asked in map(json.loads, bodies(bytes(one.caller)))
        ]

    def entries(self) -> list[Entry]:
        return parse_log((self.node.settings.home / AUDIT_FILE).read_bytes())


def bodies(stream: bytes) -> Iterator[bytes]:
    """The bodies of HTTP requests, one after another."""
    while stream:
        head, _, rest = stream.partition(b"\r\n\r\n")
        (size,) = re.findall(rb"(?im)^content-length: (\d+)", head)
        yield rest[: int(size)]
        stream = rest[int(size) :]


@dataclass
class Scene:
    """Both rounds, once they are over."""

    chain: LocalChain
    aggregator: Ledger
    store: ArtifactStore
    task: int
    beds: list[Bed]
    superlink: Wiretap
    sponsor: Bodies
    played: list[bytes] = field(init=False)  # the traffic of the two rounds, before tests add to it

    def __post_init__(self) -> None:
        self.played = self.traffic()

    def traffic(self) -> list[bytes]:
        """All that left a hospital."""
        streams = [bytes(one.caller) for bed in self.beds for one in bed.chain.conversations]
        streams += [frame for bed in self.beds for frame in bed.frames]
        streams += [bytes(one.caller) for one in self.superlink.conversations]
        return streams + self.sponsor.kept

    def left(self, bed: Bed) -> dict[str, list[str]]:
        """SHA-256 of all that left a node but reads of the chain, by the kind of entry that it must have."""
        views = view_selectors()
        left: dict[str, list[str]] = {"transaction": [], "trial": [], "reply": [], "batch": []}
        for method, given in bed.calls:
            if method == "eth_sendRawTransaction":
                left["transaction"].append(digest(bytes.fromhex(given[0][2:])))
            elif method in ("eth_call", "eth_estimateGas"):
                data = bytes.fromhex(given[0]["data"][2:])
                if not (reads(data, views) if "to" in given[0] else looks(data, views)):
                    left["trial"].append(digest(data))
            else:
                assert method in READS
        left["reply"] = [digest(frame) for frame in bed.frames]
        if bed.index == 0:
            left["batch"] = [digest(body) for body in self.sponsor.kept]
        return left

    def needles(self) -> dict[str, list[bytes]]:
        """Secrets of all hospitals that must not be in it, by kind."""
        found: dict[str, list[bytes]] = {}
        for bed in self.beds:
            for kind, some in needles_of(bed).items():
                found.setdefault(kind, []).extend(some)
        return found


def distinctive(data: DemoData, hospital: int) -> Frame:
    """A hospital's rows, no number of which is anywhere else."""
    shuffled = pd.concat(data.hospitals).sample(frac=1, random_state=0, ignore_index=True)
    frame = shuffled.iloc[hospital * ROWS : (hospital + 1) * ROWS].reset_index(drop=True)
    random = np.random.default_rng(hospital)
    for column in frame.columns.drop("malignant"):
        changed = frame[column] * (1 + random.normal(0, 1e-3, ROWS))
        frame[column] = [float(f"{value:.9g}") for value in changed]
    assert set(frame["malignant"]) == {0, 1}
    return frame


def floats(values: NDArray[Any]) -> Iterator[bytes]:
    """Each value as a double, each two beside each other as singles, in both byte orders; zero is everywhere."""
    for order in "<>":
        doubles = values.astype(f"{order}f8").ravel()
        yield from (one.tobytes() for one in doubles[doubles != 0])
        singles = values.astype(f"{order}f4").ravel()
        both = (singles[:-1] != 0) & (singles[1:] != 0)
        yield from (singles[at : at + 2].tobytes() for at in np.flatnonzero(both))


def label_vectors(labels: NDArray[np.int64]) -> Iterator[bytes]:
    for kind in ("i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "<f4", ">f4", "<f8", ">f8"):
        yield labels.astype(kind).tobytes()
    yield from (between.join(map(str, labels)).encode() for between in ("", ",", ", ", " ", "\n"))
    for order in ("big", "little"):
        yield np.packbits(labels.astype(np.uint8), bitorder=order).tobytes()


def scalars(blobs: Sequence[bytes]) -> Iterator[bytes]:
    """Field elements that are there once: others hold no number of the hospital's."""
    raw = b"".join(blobs)
    words = [raw[at : at + 32] for at in range(0, len(raw), 32)]
    counts = Counter(words)
    for word in (word for word in words if counts[word] == 1 and any(word)):
        yield from (word, word[::-1])


def needles_of(bed: Bed) -> dict[str, list[bytes]]:
    node, settings = bed.node, bed.node.settings
    account = node.ledger.connection.signer
    rows = settings.data.read_bytes().splitlines()[1:]
    features = bed.frame.drop(columns="malignant").to_numpy()
    weight = node.ledger.tasks.hospitals(node.task.number)[bed.index].weight
    blobs = [blob for some in bed.blobs.values() for blob in some]
    sums = sums_of(node.training.examples, node.task.spec.data)
    assert node.trained is not None
    clipped = clip_norm(node.trained, node.task.spec.update.clip_norm)
    transport = serialization.load_ssh_private_key(settings.flower.transport_key.read_bytes(), None)
    assert isinstance(transport, ec.EllipticCurvePrivateKey)
    (sealing,) = settings.home.rglob("encryption.key")
    return {
        "row as text": rows,
        "cell as text": [cell for row in rows for cell in row.split(b",") if len(cell) >= 8],
        "cell as float": list(floats(features)),
        "cell scaled to the schema's range": list(floats(of_kind(Table, node.training.examples).features)),
        "standardised cell": list(floats(node.training.inputs)),
        "labels": list(label_vectors(node.training.examples.labels)),
        "sums of columns": list(floats(sums[sums != np.rint(sums)])),
        "unmasked update": [*scalars(blobs), *scalars([scale(blob, weight) for blob in blobs])],
        "update as floats": [*floats(node.trained), *floats(clipped)],
        "private key": [bytes(account.key)],
        "password": [settings.password_file.read_bytes().strip()],
        "transport key": [transport.private_numbers().private_value.to_bytes(48, "big")],
        "encryption key": [sealing.read_bytes()],
        "seed of masks": bed.seeds,
    }


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def view_selectors() -> set[bytes]:
    """Selectors of the functions that change nothing."""
    entries = [entry for name in CONTRACT_NAMES for entry in contract_artifact(name).abi]
    views = [e for e in entries if e["type"] == "function" and e["stateMutability"] in ("view", "pure")]
    return {keccak(text=abi_to_signature(cast(Any, entry)))[:4] for entry in views}


def reads(calldata: bytes, views: set[bytes]) -> bool:
    if calldata[:4] == keccak(text="multicall(bytes[])")[:4]:
        return all(reads(one, views) for one in decode(["bytes[]"], calldata[4:])[0])
    return calldata[:4] in views


# A read in a look at the chain, as `rpc/looks.py` writes it: length and place of its calldata, contract, end.
ONE_READ = re.compile(
    rb"\x61(..)\x61(..)\x82\x39\x5f\x5f\x61..\x83\x73(.{20})\x5a\xfa\x81\x52\x60\x20\x01"
    rb"\x3d\x81\x52\x60\x20\x01\x3d\x5f\x82\x3e\x3d(\x01|\x81\x20\x81\x52)", re.DOTALL
)  # fmt: skip


def looks(code: bytes, views: set[bytes]) -> bool:
    """True for the code of a look that has nothing in it but reads."""
    found = []
    for length, at, contract, end in ONE_READ.findall(code):
        place = int.from_bytes(at, "big")
        found.append(Asked(contract, code[place : place + int.from_bytes(length, "big")], hashed=end != b"\x01"))
    return program(found) == code and all(reads(one.data, views) for one in found)


class Play:
    """Plays both rounds: what the aggregator would do, step by step."""

    def __init__(self, chain: LocalChain, folder: Path, stack: ExitStack) -> None:
        self.chain, self.folder, self.stack = chain, folder, stack
        self.data = deal_wdbc(HOSPITALS, 1, 0)
        self.store = ArtifactStore(folder / "artifacts")
        self.task = self.propose()
        home = folder / "a"
        home.mkdir()
        port = free_port()
        self.superlink = stack.enter_context(SuperLink(home, port))
        self.fleet = self.tapped(Wiretap.of_port(port))
        self.sponsor, self.payer = self.sponsoring()
        self.beds = [self.bed(index) for index in range(HOSPITALS)]
        self.listeners = [self.listening(bed) for bed in self.beds]
        settings = self.beds[0].node.settings
        self.relay = stack.enter_context(RelayProcess(settings, self.beds[0].path))
        self.superlink.wait_until_up()
        self.flower_id = self.superlink.register(transport_public_key(settings.flower.transport_key))
        self.grid, _ = stack.enter_context(self.superlink.run())

    def tapped(self, tap: Wiretap) -> Wiretap:
        self.stack.callback(tap.close)
        return tap

    def propose(self) -> int:
        windows = dict.fromkeys(("join", "commit", "upload", "publish", "score", "reveal"), WINDOW)
        text = task_toml(self.data, TaskSettings(rounds=1, cohorts=1, windows=windows))
        raw = text.replace("decoys = true", "decoys = false").encode()
        self.spec = parse_task_spec(raw)
        (self.aggregator,) = self.chain.staked(Role.AGGREGATOR, 1, self.spec.money.aggregator_bond * TOKEN)
        params = task_params(self.spec, self.store.put_file(raw), self.aggregator.address)
        task = self.chain.treasury.operator.propose(params)
        self.aggregator.aggregator.join(task)
        (voter,) = self.chain.staked(Role.VOTER, 1, params.voter_bond)
        voter.voter.join(task)
        return task

    def sponsoring(self) -> tuple[SponsoredSettings, Bodies]:
        payer = self.chain.ledger(Account.create().key)
        self.chain.treasury.connection.transactions.send_ether(payer.address, GAS_MONEY)
        terms = Terms(self.task, self.chain.deployment.staking, 10_000_000)
        recorded = Bodies(service(Payer(payer, terms)))
        found = self.stack.enter_context(served(recorded, self.folder / "sponsor"))
        return SponsoredSettings(url=found.url, ca_certificate=self.folder / "sponsor" / "tls" / "ca.crt"), recorded

    def bed(self, index: int) -> Bed:
        """A hospital that has joined. The first one has a sponsor and never had ether, the second commits itself."""
        home, file, frame = self.folder / f"h{index}", self.folder / f"{index}.csv", distinctive(self.data, index)
        write_csv(frame, file)
        made = hospital_settings(self.chain, self.task, home, file)
        password = secrets.token_urlsafe(16)
        write_private_file(made.password_file, password)
        account = Account.create()
        write_keystore(made.keystore, account, password, scrypt_n=LIGHT_SCRYPT_N)
        self.chain.treasury.token.transfer(account.address, TOKENS)
        self.chain.accounts[account.address] = self.chain.ledger(account.key)  # other tests add up all tokens
        tap = self.tapped(Wiretap.of_port(self.chain.node.port))
        changes: dict[str, Any] = {"chain_url": f"http://{tap.address}"}
        if index == 0:
            authority = self.superlink.certificates.authority
            flower = {"superlink": self.fleet.address, "ca_certificate": authority}
            changes |= {"sponsor": self.sponsor, "flower": made.flower.model_copy(update=flower)}
        else:
            self.chain.treasury.connection.transactions.send_ether(account.address, GAS_MONEY)
            changes |= {"commits": "own" if index == 1 else "relayed"}
        node = Watched(made.model_copy(update=changes))
        node.join()
        return Bed(node, frame, tap, self.tapped(Wiretap.of_path(home / "r", home / "n")), home / "r")

    def listening(self, bed: Bed) -> Listener:
        return self.stack.enter_context(Listener(bed.path.with_name("n"), bed.node.answer, bed.node.link.write_down))

    def scene(self) -> Scene:
        self.round(0)
        while not self.aggregator.phases.beacon_ready(self.state(1).beacon_request):
            self.chain.mine(1)
        self.aggregator.phases.form_cohorts(self.task, self.state(1).beacon_request)
        self.round(1)
        return Scene(self.chain, self.aggregator, self.store, self.task, self.beds, self.fleet, self.payer)

    def state(self, round_: int) -> RoundState:
        return self.aggregator.tasks.round_state(self.task, round_)

    def round(self, number: int) -> None:
        addresses = [hospital.node for hospital in self.aggregator.tasks.hospitals(self.task)]
        contract = bytes.fromhex(self.chain.deployment.tasks[2:])
        flower = Collection(self.grid, {0: self.flower_id}, addresses, contract, self.task, number, 1, True)
        signed = {0: self.by_flower(flower, flower.signed)}
        for bed in self.beds[1:]:
            body = bed.ask(number, Part.SIGNED).body
            size = signed_update_bytes(1)
            update = parse_signed_update(body[:size], bed.node.ledger.address, 1)
            signed[bed.index] = Signed(update, body[size:])
        for bed in self.beds:
            bed.keep(number)
            self.store.put_file(signed[bed.index].share_bundle)
        if number == 1:
            take(self.beds[1].node, Step.COMMIT)
            del signed[1]
        updates = [(0, one.update) for one in signed.values()]
        self.aggregator.aggregator.commit_updates(self.task, number, updates)
        assert self.aggregator.tasks.state(self.task).phase is Phase.UPLOADING
        uploads = {0: self.by_flower(flower, flower.uploads)}
        for bed in self.beds[1:]:
            reply = bed.ask(number, Part.UPLOAD)
            uploads[bed.index] = Upload([parse_blob(blob) for blob in reply.blobs], *parse_upload_body(reply.body, 1))
        self.aggregator.aggregator.fix_survivors(self.task, number, 0b111)
        cohort = self.aggregator.tasks.cohort_members(self.task, number, 0)
        answers = cohort_answers(self.aggregator, self.store, self.task, number, cohort, self.state(number))
        said = {0: self.by_flower(flower, flower.answers)}
        said |= {bed.index: Answer(bed.ask(number, Part.ANSWER).body) for bed in self.beds[1:]}
        answers.take(said)
        residue = answers.residue()
        assert residue is not None
        hospitals = self.aggregator.tasks.hospitals(self.task)
        parts = [Contribution(uploads[i], h.weight if number else 1) for i, h in enumerate(hospitals)]
        total = sum_cohort(0, parts, [secrets.randbits(CHECK_BITS)], residue)
        if number == 0:
            self.store.put_blob(total.blobs[0], total.commitments[0])
            committed = self.aggregator.record.point_hashes(self.task, 0)
            hashes = {[one.node for one in hospitals].index(who): own for who, own in committed.items()}
            points = {index: part.points for index, part in enumerate(parts)}
            one = PublishedCohort(0, total.blobs, cohort_commitments(hashes, 0b111, points))
            self.aggregator.aggregator.publish_sums(self.task, 0, CohortsFate(), [one])

    def by_flower(self, asked: Collection, found: Mapping[int, T]) -> T:
        """The first hospital's part, once Flower has brought it."""
        end = time.monotonic() + PATIENCE
        while 0 not in found:
            assert time.monotonic() < end
            self.listeners[0].raise_fault()
            self.relay.keep_running()
            asked.ask(1)
            asked.receive()
            time.sleep(0.1)
        return found[0]


@pytest.fixture(scope="module")
def scene(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Play(local_chain, tmp_path_factory.mktemp("x"), stack).scene()


def test_nothing_that_a_hospital_keeps_is_in_its_traffic(scene: Scene) -> None:
    needles, traffic = scene.needles(), scene.played
    assert all(needles.values())
    assert search(traffic, needles) == set()
    # There was something to search: all replies, all points, and Flower's bytes for the first.
    for bed in scene.beds:
        assert [frame[0] for frame in bed.frames[:6]] == [ReplyCode.SIGNED, ReplyCode.OK, ReplyCode.ANSWERED] * 2
        assert all(frame in traffic for frame in bed.frames[:6])
    hashes = [one for some in scene.aggregator.record.point_hashes(scene.task, 1).values() for one in some]
    assert [search(traffic, {"hash": [one]}) for one in hashes] == [{"hash"}] * HOSPITALS
    assert sum(len(one.caller) for one in scene.superlink.conversations) > 2 * BYTES_PER_BLOB


def test_each_kind_of_leak_is_found(scene: Scene) -> None:
    """By each way out of a node that is made to leak: to its sponsor, to the chain, to its relay."""
    secret = {bed.index: needles_of(bed) for bed in scene.beds}
    holders = Counter(needle for kinds in secret.values() for needle in set(chain.from_iterable(kinds.values())))
    for bed in scene.beds:
        # One that no other hospital holds: two may count the same rows, and an earlier leak is in the traffic.
        own = {kind: [needle for needle in some if holders[needle] == 1] for kind, some in secret[bed.index].items()}
        leaks = {kind: [secrets.choice(some)] for kind, some in own.items()}
        assert search(scene.traffic(), leaks) == set()
        for (needle,) in leaks.values():
            leak = secrets.token_bytes(3) + needle
            if bed.index == 2:
                bed.node.leak = RoundReply(ReplyCode.SIGNED, body=leak)
                bed.ask(1, Part.SIGNED)
                bed.node.leak = None
            else:
                with pytest.raises(Refused, match="WrongPhase"):
                    bed.node.ledger.hospital.submit_evidence(scene.task, 1, 0, leak)
        assert search(scene.traffic(), leaks) == set(leaks)


def test_whatever_left_has_its_entry(scene: Scene) -> None:
    """Also what the test above made the nodes leak."""
    for bed in scene.beds:
        chain, settings = scene.chain.deployment, bed.node.settings
        left = scene.left(bed)
        entries: dict[str, list[Any]] = {kind: [] for kind in left}
        for entry in bed.entries():
            entries[entry.kind].append(entry)
        for kind, found in left.items():
            said = [entry.sha256 for entry in entries[kind]]
            if kind == "trial":  # a chain node is asked about the same calldata more than once
                said, found = sorted(set(said)), sorted(set(found))
            assert sorted(said) == sorted(found)
        assert {entry.to for kind in ("transaction", "trial") for entry in entries[kind]} <= {settings.chain_url}
        assert {entry.to for entry in entries["reply"]} == {settings.flower.superlink}
        assert [(e.code, e.contract, e.task, e.round, e.blobs) for e in entries["reply"]][:6] == [
            (code, chain.tasks, scene.task, round_, blobs)
            for round_ in (0, 1)
            for code, blobs in (("SIGNED", 0), ("OK", 1), ("ANSWERED", 0))
        ]
        for entry, frame in zip(entries["reply"], bed.frames, strict=True):
            assert entry.bytes == len(frame)
            if entry.code == "OK":  # the digest that the hospital has signed on what it uploads
                blob, signed = frame[-BYTES_PER_BLOB:], frame[:-BYTES_PER_BLOB]
                assert entry.upload == digest(blob)
                assert bytes.fromhex(entry.upload) in signed
        for entry in entries["transaction"]:
            sent = scene.aggregator.connection.transactions.sent(entry.transaction)
            assert (sent.sender, sent.to, digest(sent.data)) == (
                bed.node.ledger.address, entry.contract, entry.calldata
            )  # fmt: skip
    with pytest.raises(ChainUnreachable, match="no transaction"):
        scene.aggregator.connection.transactions.sent("0x" + "00" * 32)
    joined = [[e.call for e in bed.entries() if e.kind in ("transaction", "batch")] for bed in scene.beds]
    assert joined[0][0] == "approve and register and joinAsHospital"
    assert joined[1][:4] == ["approve", "register", "joinAsHospital", "commitUpdate"]
    assert joined[2] == ["approve", "register", "joinAsHospital"]


def test_what_cannot_be_written_down_does_not_leave(scene: Scene) -> None:
    for bed in scene.beds:
        log, left = bed.node.settings.home / AUDIT_FILE, scene.left(bed)
        log.rename(log.with_suffix(".away"))
        with raises_fault(FrameError, "FrameMalformed", match="closed after 0"):
            bed.ask(1, Part.ANSWER)
        with raises_fault(AuditError, "AuditUnwritable"):
            bed.node.ledger.hospital.submit_evidence(scene.task, 1, 0, b"evidence")
        log.with_suffix(".away").rename(log)
        assert scene.left(bed) == left
        assert search(scene.traffic(), {"evidence": [b"evidence"]}) == set()
        assert bed.ask(1, Part.ANSWER).code is ReplyCode.ANSWERED


def test_exports_hold_against_the_chain(scene: Scene, tmp_path: Path) -> None:
    book, file = tmp_path / "deployment.json", tmp_path / "export"
    scene.chain.deployment.write(book)
    other = tmp_path / "other.json"
    replace(scene.chain.deployment, tasks=scene.chain.deployment.staking).write(other)

    def verify(book: Path = book) -> Result:
        compared = ["--deployment", str(book), "--chain-url", scene.chain.node.url]
        return CliRunner().invoke(app, ["verify-audit", str(file), *compared])

    for bed in scene.beds:
        settings, account = bed.node.settings, bed.node.ledger.connection.signer
        named = {"chain_url": settings.chain_url, "artifacts": str(settings.artifacts[0]), "data": str(settings.data)}
        (settings.home / "node.toml").write_text(tomli_w.dumps(named))
        arguments = ["--home", str(settings.home), "--output", str(file)]
        made = CliRunner().invoke(app, ["hospital", "export-audit", *arguments])
        assert made.exit_code == 0, made.exception
        told = verify()
        assert told.exit_code == 0, told.exception
        for part in (f"audit log of {account.address}", settings.flower.superlink, "reply OK", "all in the log"):
            assert part in told.output
        assert isinstance(verify(other).exception, DeploymentInvalid)
        # Left out by who holds the key, and signed anew: the chain still tells.
        lines = (settings.home / AUDIT_FILE).read_bytes().splitlines(keepends=True)
        left_out = 0
        for number, entry in enumerate(bed.entries()):
            if entry.kind not in ("transaction", "batch") or entry.call == "submitEvidence":
                continue
            others = chained(lines[:number] + lines[number + 1 :])
            file.write_bytes(export(others, account, scene.chain.deployment.chain_id, scene.chain.deployment.tasks))
            caught = verify().exception
            assert isinstance(caught, AuditError)
            assert (caught.name, caught.values["count"]) == ("AuditIncomplete", 1)
            left_out += 1
        assert left_out == [1, 4, 3][bed.index]
        without = chained(line for line in lines if b'"SIGNED"' not in line)
        file.write_bytes(export(without, account, scene.chain.deployment.chain_id, scene.chain.deployment.tasks))
        caught = verify().exception
        assert isinstance(caught, AuditError)
        assert (caught.name, caught.values["count"]) == (
            "AuditIncomplete",
            [2, 1, 2][bed.index],
        )  # commitments that the aggregator sent
