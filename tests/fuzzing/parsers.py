"""Every parser that meets foreign bytes, a row each: what it takes, what it may raise, and how much memory it may use.

Files are written into a folder first, as they would lie on a disk. What needs a server or a chain is fuzzed where
that is: Flower's messages and a chain node's answers beside this, the API's bodies and queries by schemathesis
(tests/server/test_api_contract.py), mirrors in tests/chain/test_artifact_locations.py.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import mutations
import numpy as np
import pyarrow
import pyarrow.parquet
from address_books import made_up_book
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.deploying.journal import Record, Step, open_journal
from consilium_chain.deploying.networks import SHIPPED, read_networks
from consilium_chain.errors import (
    DeployFailed,
    DeploymentInvalid,
    InviteRefused,
    RelayFailed,
    SignedUpdateMalformed,
    SpecInvalid,
    StatementMalformed,
)
from consilium_chain.invites import FORMAT, Invite, SignedInvite, certificates_pem, sign_invite
from consilium_chain.keystore import LIGHT_SCRYPT_N, address_of, open_keystore
from consilium_chain.messages import Part
from consilium_chain.rounds import drand_relays as relays
from consilium_chain.rounds.disputes import Shown, parse_shown
from consilium_chain.rounds.signed_updates import parse_signed_update, sign_update
from consilium_chain.rounds.statements import StatementSigning, parse_signed_statement
from consilium_chain.rpc.abi import contract_artifact
from consilium_chain.rpc.event_logs import MALFORMED, LogDecoder
from consilium_chain.rpc.reverts import refusal_from
from consilium_chain.settings import read_settings
from consilium_chain.sponsoring.batches import Authorization, Call, Carried, RefusedBatch, SignedBatch
from consilium_chain.tasks.data_schemas import TableSchema, TextSchema
from consilium_chain.tasks.features import CategoryFeature, NumericFeature
from consilium_chain.tasks.image_schemas import ImageSchema, WindowSpec
from consilium_chain.tasks.questions import Segmentation
from consilium_chain.tasks.task_spec import parse_task_spec
from consilium_client import second_signature
from consilium_client.config import HospitalHomeSettings
from consilium_client.consent import Policy, VoterPolicy, read_policy
from consilium_client.data.folders import labelled_files
from consilium_client.data.mapping import parse_mapping
from consilium_client.errors import (
    AuditError,
    BallotError,
    ClientError,
    DataError,
    FingerprintError,
    FrameError,
    NodeError,
    OwnersRefusal,
    PrivacyError,
)
from consilium_client.home import Approval
from consilium_client.hospital import audit_log
from consilium_client.hospital.round_updates import PendingUpdate, PendingUpdates
from consilium_client.plugins.errors import PluginError
from consilium_client.plugins.installed import digest_of_wheel
from consilium_client.plugins.record import parse_record
from consilium_client.privacy.accountant import Charge, PrivacyAccountant
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord, Given
from consilium_client.programs import program as programs
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.measuring import measured
from consilium_client.relay.wire import RoundReply, RoundRequest, receive_reply
from consilium_client.voter.ballots import Ballot, kept_held_out_secret
from consilium_client.voter.disclosure import DisclosedBatch, Disclosure
from consilium_client.voter.fingerprints import deviation, fingerprint
from consilium_core.artifacts.backends import parse_location
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, ConfigInvalid, KeystoreError
from consilium_core.faults import FaultError
from consilium_operators.ensembles.errors import EnsembleError
from consilium_operators.ensembles.folder import ENSEMBLE, EnsembleFile, MemberFile, _index
from consilium_operators.errors import OperatorError, RowsInvalid
from consilium_operators.model_folder import _tensors, read_model
from consilium_operators.prediction import examples_of, rows_of
from consilium_server.aggregator import reply_store
from consilium_server.aggregator.round_secrets import RoundSecrets, SecretFiles
from consilium_server.aggregator.uploads import parse_signed, parse_upload_body
from consilium_server.api.events import parse_event_id
from consilium_server.api.paging import PageRequest
from consilium_server.api.sessions import Seal
from consilium_server.api.siwe import parse_message
from consilium_server.certificates import ensure_certificates
from consilium_server.config import ApiSettings, WorkerSettings
from consilium_server.errors import DecoysLost, ReplyRefused, RequestRefused
from consilium_zk.authenticated_encryption import seal, unseal
from consilium_zk.blobs import parse_blob
from consilium_zk.bls import decompress_public_key, parse_public_key
from consilium_zk.curve import GENERATOR, from_eip2537, negate, parse_commitment, to_eip2537
from consilium_zk.decoys import negated_delta_lanes, read_lanes
from consilium_zk.disputes import (
    parse_agreements,
    parse_points,
    parse_statement,
)
from consilium_zk.drand import QUICKNET
from consilium_zk.encoding import round_words
from consilium_zk.errors import (
    AgreementUnproven,
    AnswerMalformed,
    ArgumentInvalid,
    EvidenceMalformed,
    LaneOutOfRange,
    Malformed,
    ShapeWrong,
    SharesInvalid,
    ZkError,
)
from consilium_zk.key_exchange import public_key as encryption_key
from consilium_zk.key_exchange import show_agreed, shown_point
from consilium_zk.kzg import Commitment, commit, versioned_hash
from consilium_zk.merkle import root_above
from consilium_zk.packing import LaneLayout, pack, unpack
from consilium_zk.secure_aggregation import MaskedCohort, MaskingHospital, Unmasking
from consilium_zk.tickets import generate_secret_key, parse_ticket, prove_possession, public_key
from dicom_files import dicom, nested, packed, with_part
from eth_abi.abi import encode
from eth_account import Account
from examples_read import read_images, read_table, read_texts
from hypothesis import strategies as st
from model_driver import written as written_model
from nifti_files import nifti
from nifti_files import packed as packed_volume
from PIL import Image
from pydantic import ValidationError
from pydicom import uid
from safetensors.numpy import save
from task_files import DATA, SALE

VECTORS = Path(__file__).parents[1] / "vectors"
HOSPITAL = Account.from_key(b"\x11" * 32)
CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
PASSWORD = "a password"

Form = Literal["bytes", "json", "toml"]
_STRATEGIES = {"bytes": mutations.bytes_like, "json": mutations.json_like, "toml": mutations.toml_like}


@dataclass(frozen=True)
class Parser:
    """samples: valid input. read: of bytes, and of a folder to put them into; what it gives back is trusted.

    refusals: all that it may raise. bombs: input that is small and would grow. fuzzed_in: the neighbouring tests that
    do it in `make test`; here it is left to the deep run then.
    """

    samples: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...]
    form: Form = "bytes"
    bombs: Callable[[], Sequence[bytes]] | None = None
    megabytes: int = 192
    fuzzed_in: str = ""

    def inputs(self) -> st.SearchStrategy[bytes]:
        return _STRATEGIES[self.form](self.samples())


def only(names: str | tuple[str, ...], read: Callable[[bytes, Path], object]) -> Callable[[bytes, Path], object]:
    """Raises no other fault than these."""
    allowed = {names} if isinstance(names, str) else set(names)

    def strict(raw: bytes, folder: Path) -> object:
        try:
            return read(raw, folder)
        except FaultError as error:
            if error.name in allowed:
                raise
            raise AssertionError(f"{error.name}: {error}") from error

    return strict


def same(found: bytes, raw: bytes) -> None:
    """Of what has one encoding and no other."""
    assert found == raw


def put(folder: Path, name: str, raw: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw)
    path.chmod(0o600)
    return path


DEEP_JSON = (mutations.deep(b"["), mutations.deep(b'{"a":', b"1", b"}"), b'{"a":' + mutations.deep(b"[") + b"}")
MANY = 30_000
# Parsers of TOML visit each part of a dotted key for each other part.
DEEP_TOML = (
    b"a=" + mutations.deep(b"[", b"", b"]"),
    b"a=" + mutations.deep(b"{a=", b"1", b"}"),
    b".".join([b"a"] * MANY) + b"=1",
    b"[" + b".".join([b"a"] * MANY) + b"]",
    b"[" + b".".join([b'"a"'] * MANY) + b"]",
    b"a=0x" + b"f" * 1_000_000,
    b"\n".join(b".".join([b"a%d" % line, *[b"a"] * 30]) + b"=1" for line in range(14_000)),
)

# --- zk -------------------------------------------------------------------------------------------------------------

SECRETS = {index: bytes([index + 1]) * 32 for index in range(4)}
COHORT = MaskedCohort(
    {index: encryption_key(secret) for index, secret in SECRETS.items()}, round_words(1, bytes(20), 1, 1)
)
LAYOUT = LaneLayout(bits=9, total_weight=4)


@cache
def masking() -> dict[int, MaskingHospital]:
    return {index: MaskingHospital(index, bytes([7 + index]) * 32, SECRETS[index], COHORT) for index in SECRETS}


@cache
def share_bundles() -> dict[int, bytes]:
    return {index: one.share_bundle().to_wire() for index, one in masking().items()}


@cache
def blob() -> bytes:
    return pack(300 + np.arange(40_000, dtype=np.uint64) % 50, LAYOUT, 3)[0]


@cache
def signed_update() -> bytes:
    return sign_update(HOSPITAL, 1, CONTRACT, 1, 1, [bytes([1]) * 32, bytes([2]) * 32]).to_wire()


def read_share_bundle(raw: bytes, _: Path) -> object:
    parsed = {index: COHORT.parse(index, one) for index, one in share_bundles().items() if index != 1}
    parsed[1] = COHORT.parse(1, raw)
    assert len(parsed[1].entries) == 3
    answer, faults = masking()[0].answer(
        parsed, [0, 2, 3]
    )  # what another's share bundle holds must stop nobody's answer
    assert set(faults) <= {1}
    return answer


def read_answer(raw: bytes, _: Path) -> object:
    unmasking = Unmasking(
        COHORT, {index: COHORT.parse(index, one) for index, one in share_bundles().items()}, [0, 2, 3]
    )
    return unmasking.take(2, raw)


def read_path(raw: bytes, _: Path) -> object:
    index, size = (int.from_bytes(part, "big", signed=True) for part in (raw[:8], raw[8:16]))
    return root_above(bytes(32), index, size, [raw[at : at + 32] for at in range(16, len(raw), 32)])


def read_sum(raw: bytes, _: Path) -> object:
    lanes = unpack([parse_blob(raw)], 40_000, LAYOUT, 4)
    negated_delta = negated_delta_lanes(np.zeros(40_000, np.int64), 8)
    return [read_lanes(lanes, negated_delta, 2, 8, flipped) for flipped in (False, True)]


def drand_signatures() -> list[bytes]:
    rounds = json.loads((VECTORS / "drand_quicknet.json").read_text())["rounds"]
    return [bytes.fromhex(one["signature"][2:]) for one in rounds[:3]]


def tickets() -> list[bytes]:
    return [prove_possession(generate_secret_key(bytes([n]) * 32), 1, bytes(20), bytes(20)) for n in (1, 2)]


POINTS = (GENERATOR, negate(GENERATOR), b"\xc0" + bytes(47))
ZK = {
    "commitment": Parser(
        lambda: POINTS, only("PointMalformed", lambda raw, _: same(parse_commitment(raw), raw)), (Malformed,)
    ),
    "commitment as the chain has it": Parser(
        lambda: [to_eip2537(Commitment(point)) for point in POINTS],
        only("PointMalformed", lambda raw, _: same(to_eip2537(from_eip2537(raw)), raw)),
        (Malformed,),
    ),
    "points of an upload": Parser(
        lambda: [GENERATOR + negate(GENERATOR) + statement()],
        only("UploadInvalid", lambda raw, _: parse_upload_body(raw, 2)),
        (ReplyRefused,),
    ),
    "blob": Parser(lambda: [blob()], only("BlobMalformed", lambda raw, _: same(parse_blob(raw), raw)), (Malformed,)),
    "published sum": Parser(lambda: [blob()], only("BlobMalformed", read_sum), (Malformed, LaneOutOfRange)),
    "voter's key": Parser(
        lambda: [public_key(generate_secret_key(bytes([n]) * 32)) for n in (1, 2)],
        only("KeyMalformed", lambda raw, _: same(parse_public_key(raw), raw)),
        (Malformed,),
    ),
    "beacon's key": Parser(
        lambda: [bytes.fromhex(json.loads((VECTORS / "drand_quicknet.json").read_text())["public_key"][2:])],
        only("KeyMalformed", lambda raw, _: decompress_public_key(raw)),
        (Malformed,),
    ),
    "ticket": Parser(tickets, only("PointMalformed", lambda raw, _: same(parse_ticket(raw), raw)), (Malformed,)),
    "drand signature": Parser(
        drand_signatures,
        only(("PointMalformed", "RoundUnsigned"), lambda raw, _: QUICKNET.parse_signature(42, raw)),
        (Malformed,),
    ),
    "share_bundle": Parser(
        lambda: [share_bundles()[1]], only("ShareBundleInvalid", read_share_bundle), (SharesInvalid,)
    ),
    "answer of a survivor": Parser(
        lambda: [masking()[2].answer({i: COHORT.parse(i, raw) for i, raw in share_bundles().items()}, [0, 2, 3])[0]],
        read_answer,
        (AnswerMalformed,),
    ),
    "upload's statement": Parser(lambda: [bytes(64)], lambda raw, _: parse_statement(raw), (ShapeWrong,)),
    "points of evidence": Parser(
        lambda: [GENERATOR * 3],
        only("PointMalformed", lambda raw, _: parse_points(raw, [0, 2, 3])),
        (ShapeWrong, Malformed),
    ),
    "agreements of evidence": Parser(lambda: [bytes(196)], lambda raw, _: parse_agreements(raw), (ShapeWrong,)),
    "agreement that is shown": Parser(
        lambda: [show_agreed(SECRETS[0], encryption_key(SECRETS[1]), b"pair")],
        lambda raw, _: shown_point(encryption_key(SECRETS[0]), encryption_key(SECRETS[1]), raw, b"pair"),
        (AgreementUnproven,),
    ),
    "path of a Merkle tree": Parser(
        lambda: [(3).to_bytes(8, "big") + (6).to_bytes(8, "big") + bytes(96)],
        only("PathMalformed", read_path),
        (ArgumentInvalid, Malformed),
    ),
    "sealed share": Parser(
        lambda: [seal(bytes(64), (SECRETS[0], encryption_key(SECRETS[0])), encryption_key(SECRETS[1]), b"here")],
        only(
            "CiphertextInvalid",
            lambda raw, _: unseal(raw, (SECRETS[1], encryption_key(SECRETS[1])), encryption_key(SECRETS[0]), b"here"),
        ),
        (SharesInvalid,),
    ),
}

# --- chain ----------------------------------------------------------------------------------------------------------

TASK = f"""
name = "a task"
{DATA}
[[data.features]]
kind = "category"
name = "site"
values = [1.0, 2.0, 3.0]
[model]
name = "mlp"
hidden = [4]
[training]
epochs = 2
[privacy]
epsilon = 8.0
max_grad_norm = 1.0
[update]
bits = 12
[rounds]
cohorts = 1
max_hospitals = 4
[judging]
seats = 4
[money]
pool = 100
tick_bounty = 0
aggregator_bond = 1000
[windows]
commit = 60
""".encode()
IMAGE_TASK = (
    b'name="i"\n[data]\nkind="images"\nclasses=["a","b"]\nheight=8\nwidth=8\n[model]\nname="cnn"\nchannels=[3]\n'
)
TEXT_TASK = b'name="t"\n[data]\nkind="text"\nlabel="l"\nclasses=["a","b"]\n[model]\nname="lora"\nrank=2\n'
BOOK = made_up_book()
NODE = b"""
chain_url = "http://127.0.0.1:8545"
artifacts = ["store", "https://mirror.example.org/artifacts"]
data = "rows.csv"
drand_relays = ["https://api.drand.sh/{round}"]
held_out = 0.1
[sponsor]
url = "https://sponsor.example.org"
"""
WORKER = b"""
home = "/var/lib/consilium/worker"
chain_url = "http://127.0.0.1:8545"
deployment = "/etc/consilium/deployment.json"
artifacts = ["/var/lib/consilium/artifacts", "s3://bucket/consilium"]
keystore = "key.json"
password_file = "password"
database_url = "sqlite:////tmp/x"
broker_url = "redis://:secret@localhost:6379/0"
watch_seconds = 2.0
"""
API = b"""
home = "/var/lib/consilium/api"
deployment = "/etc/consilium/deployment.json"
artifacts = "/var/lib/consilium/artifacts"
origin = "https://consilium.example.org"
admins = ["0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"]
cors_origins = ["https://other.example.org"]
[limits]
streams = 5
"""


def read_task(raw: bytes, _: Path) -> object:
    """With what nodes make of it before anybody agrees to it."""
    spec = parse_task_spec(raw)
    return spec.lanes, spec.statistics_blobs, spec.model.tensors(spec.data), spec.model_dump_json()


def many_columns() -> bytes:
    """As large as a file in the store may be."""
    columns = b",".join(b'{name="%x",min=0,max=1}' % n for n in range(200_000))
    return b'name="n"\nmodel={name="logistic"}\n[data]\nlabel="l"\nclasses=["a","b"]\nfeatures=[' + columns + b"]\n"


def read_journal(raw: bytes, folder: Path) -> object:
    fresh = Record(chain_id=1, genesis="0x00", deployer="0x00", first_block=0)
    return open_journal(put(folder, "book.journal.json", raw), fresh)


def deploy_journal() -> bytes:
    step = Step(nonce=1, transaction="0x00", payload="0x00", address="0x00", block=2)
    return (
        Record(chain_id=1, genesis="0x00", deployer="0x00", first_block=0, steps={"a": step}).model_dump_json().encode()
    )


@cache
def key_file() -> bytes:
    made = Account.encrypt(HOSPITAL.key, PASSWORD, kdf="scrypt", iterations=LIGHT_SCRYPT_N)
    return json.dumps(made | {"address": HOSPITAL.address}).encode()


def key_files() -> list[bytes]:
    slow = Account.encrypt(HOSPITAL.key, PASSWORD, kdf="pbkdf2", iterations=10)
    return [key_file(), json.dumps(slow).encode()]


def costly_key_files() -> list[bytes]:
    """Whose derivation would take all memory, or for ever."""
    scrypt, pbkdf2 = (json.loads(raw) for raw in key_files())
    found = []
    for changes in ({"n": 1 << 30}, {"n": 1 << 20, "r": 1 << 10}, {"p": 1 << 24}, {"n": 1 << 24}, {"dklen": 1 << 34}):
        found.append(
            json.dumps(
                scrypt | {"crypto": scrypt["crypto"] | {"kdfparams": scrypt["crypto"]["kdfparams"] | changes}}
            ).encode()
        )
    pbkdf2["crypto"]["kdfparams"]["c"] = 10**11
    return [*found, json.dumps(pbkdf2).encode(), *DEEP_JSON]


def read_key_file(raw: bytes, folder: Path) -> object:
    return open_keystore(put(folder, "key.json", raw), put(folder, "password", PASSWORD.encode()))


@cache
def stored_point() -> Commitment:
    return commit(parse_blob(blob()))


def read_artifact(raw: bytes, folder: Path) -> object:
    name = versioned_hash(stored_point())
    put(folder, f"blob-{name.hex()}", raw)
    return ArtifactStore(folder).get_blobs([name])


def statement() -> bytes:
    signing = StatementSigning(1, CONTRACT, 1, 1)
    return signing.sign(HOSPITAL, bytes(64)).to_wire()


def read_statement(raw: bytes, _: Path) -> object:
    return StatementSigning(1, CONTRACT, 1, 1).is_by(HOSPITAL.address, parse_signed_statement(raw))


def evidence() -> bytes:
    signed = {0: parse_signed_statement(statement())}
    points = {0: [GENERATOR, negate(GENERATOR)]}
    return Shown(signed, {0: [bytes(32), bytes(32)]}, points, {0: 5, 1: 6}, {0: bytes(96)}).to_file()


@cache
def decoder() -> LogDecoder:
    return LogDecoder(contract_artifact("Tasks").abi, CONTRACT)


def logs() -> list[bytes]:
    """Of each event that the contract has."""
    found = []
    examples: dict[str, Any] = {
        "uint256[]": [1, 2],
        "int64[]": [-1, 5],
        "bytes": b"abc",
        "string": "abc",
        "bool": True,
        "address": CONTRACT,
        "bytes32": bytes(32),
        "bytes32[]": [bytes(32)],
    }
    for topic, shape in decoder()._shapes.items():
        indexed = ["0x" + encode([kind], [examples.get(kind, 3)]).hex() for _, kind in shape.indexed]
        kinds = [kind for _, kind in shape.plain]
        data = "0x" + encode(kinds, [examples.get(kind, 3) for kind in kinds]).hex()
        found.append(
            {
                "address": CONTRACT.lower(),
                "topics": [topic, *indexed],
                "data": data,
                "blockNumber": "0x10",
                "logIndex": "0x1",
                "transactionHash": "0x" + "ab" * 32,
                "blockHash": "0x" + "cd" * 32,
                "blockTimestamp": "0x65",
            }
        )
    return [json.dumps(log).encode() for log in found]


def reverts() -> list[bytes]:
    return [bytes.fromhex("08c379a0") + encode(["string"], ["no"]), bytes(4), b""]


def sponsored() -> bytes:
    batch = SignedBatch(
        account=CONTRACT,
        calls=(Call(to=CONTRACT, data=b"\x01\x02\x03\x04"),),
        nonce=1,
        deadline=2,
        signature=bytes(65),
        authorization=Authorization(chain_id=1, address=CONTRACT, nonce=0, y_parity=1, r=bytes(32), s=bytes(32)),
    )
    return batch.to_wire()


CHAIN = {
    "signed update": Parser(
        lambda: [signed_update()],
        lambda raw, _: parse_signed_update(raw, HOSPITAL.address, 2),
        (SignedUpdateMalformed,),
        fuzzed_in="tests/chain/test_signed_updates_parsed.py",
    ),
    "signed statement": Parser(lambda: [statement()], read_statement, (StatementMalformed,)),
    "accuser's file": Parser(
        lambda: [evidence()], lambda raw, _: parse_shown(raw), (EvidenceMalformed,), "json", lambda: DEEP_JSON
    ),
    "task file": Parser(
        lambda: [TASK, IMAGE_TASK, TEXT_TASK, TASK + SALE.encode()],
        read_task,
        (SpecInvalid,),
        "toml",
        lambda: [*DEEP_TOML, many_columns(), TASK.replace(b"pool = 100\n", b"pool = 1" + b"0" * 400 + b"\n")],
        256,
    ),
    "address book": Parser(
        lambda: [json.dumps(asdict(BOOK)).encode()],
        lambda raw, folder: Deployment.read(put(folder, "book.json", raw)),
        (DeploymentInvalid,),
        "json",
        lambda: DEEP_JSON,
    ),
    "networks file": Parser(
        lambda: [(Path(relays.__file__).parents[1] / "deploying" / SHIPPED).read_bytes()],
        lambda raw, folder: read_networks(put(folder, "networks.toml", raw)),
        (ConfigInvalid,),
        "toml",
    ),
    "deployment journal": Parser(
        lambda: [deploy_journal()],
        only(("JournalInvalid", "JournalStale"), read_journal),
        (DeployFailed,),
        "json",
        lambda: DEEP_JSON,
    ),
    "key file": Parser(key_files, read_key_file, (KeystoreError,), "json", costly_key_files, 300),
    "key file's address": Parser(
        lambda: [key_file()],
        lambda raw, folder: address_of(put(folder, "key.json", raw)),
        (KeystoreError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "stored blob": Parser(lambda: [blob() + stored_point()], read_artifact, (ArtifactCorrupt, ArtifactMissing)),
    "artifact store's place": Parser(
        lambda: [b"https://mirror.example.org/a", b"s3://bucket/x", b"file:///srv/x", b"ipfs://bafy"],
        lambda raw, _: parse_location(raw.decode("utf-8", "replace")),
        (ValueError,),
        fuzzed_in="tests/chain/test_artifact_locations.py",
    ),
    "drand relay's answer": Parser(
        lambda: [json.dumps({"round": 42, "signature": drand_signatures()[0].hex()}).encode()],
        lambda raw, _: relays._parse(raw, "https://relay", QUICKNET, 42),
        (RelayFailed,),
        "json",
        lambda: [raw[: relays.LARGEST_ANSWER] for raw in DEEP_JSON],
    ),
    "event log": Parser(logs, lambda raw, _: decoder().event(json.loads(raw)), MALFORMED, "json"),
    "revert's data": Parser(reverts, lambda raw, _: refusal_from(raw, "settle"), ()),
    "sponsored batch": Parser(
        lambda: [sponsored()],
        lambda raw, _: SignedBatch.model_validate_json(raw),
        (ValidationError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "sponsor's answer": Parser(
        lambda: [
            Carried(transaction=bytes(32)).model_dump_json().encode(),
            RefusedBatch(data=b"abcd").model_dump_json().encode(),
        ],
        lambda raw, _: (Carried if raw[:1] == b"{" else RefusedBatch).model_validate_json(raw),
        (ValidationError,),
        "json",
        lambda: DEEP_JSON,
    ),
}

# --- client ---------------------------------------------------------------------------------------------------------

SCHEMA = TableSchema(
    features=[
        NumericFeature(name="age", min=0, max=120),
        CategoryFeature(kind="category", name="pain", values=[1, 2, 3]),
    ],
    label="ill",
    classes=["healthy", "ill"],
)
TEXTS = TextSchema(kind="text", text="note", label="found", classes=["none", "some"])
PIXELS = ImageSchema(kind="images", height=8, width=8, classes=["no", "yes"])
MASKED = ImageSchema(
    kind="images",
    height=8,
    width=8,
    window=WindowSpec(low=1, high=99),
    question=Segmentation(kind="segmentation", classes=["background", "lesion"]),
)
UNITS = PIXELS.model_copy(update={"window": WindowSpec(center=40, width=400), "bits": 16})
TABLE = "age,pain,ill\n50,1,0\n61.5,2,1\n?,3,1\n"
MAPPING = b"""
[file]
delimiter = ";"
decimal = ","
encoding = "cp1252"
missing = ["?", "NA"]
[columns]
age = { column = "Alter", scale = 2.0, offset = 1.0, missing = ["-9"] }
pain = { column = "chest", codes = { none = 1, some = 2, "3" = 3 } }
ill = "krank"
"""
POLICY = b"""
operators = ["0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2"]
models = ["logistic"]
columns = "any"
max_rounds = 5
max_epsilon = 8.0
delta = 1e-5
max_bond = 100
hours = "19:00-07:00"
"""
VOTER_POLICY = b'operators = "any"\nmodels = ["mlp"]\nmetrics = "any"\nmax_tasks = 3\n'
APPROVAL = b"""
place = "a-b-1"
spec_hash = "0000000000000000000000000000000000000000000000000000000000000000"
approved_at = 2026-01-01T00:00:00Z
superlink = "aggregator.example.org:9092"
data = "rows.csv"
"""


def approval(raw: bytes, _: Path) -> object:
    from consilium_core.typed_toml import parse_toml

    return parse_toml(raw, Approval, "the approval", lambda why: OwnersRefusal("ApprovalInvalid", why=why))


SIGNER = str(HOSPITAL.address)
STATEMENT = second_signature.Statement(
    chain_id=1, contract="0x" + "00" * 20, hospital=HOSPITAL.address, task=3, spec="0x" + "ab" * 32,
    policy="0x" + "cd" * 32, date="2026-11-28",
)  # fmt: skip


@cache
def _authority() -> str:
    return certificates_pem(ensure_certificates(Path(_scratch())).authority.read_bytes())


def invite(**changes: Any) -> SignedInvite:
    content = Invite.model_validate(
        {
            "format": FORMAT, "deployment": made_up_book(), "chain_url": "https://rpc.example.org", "task": 3,
            "artifacts": ["https://artifacts.example.org"], "superlink": "fl.example.org:443",
            "authority": _authority(), "operator": HOSPITAL.address, "expires_at": 1_900_000_000, **changes,
        }
    )  # fmt: skip
    return sign_invite(content, HOSPITAL)


def audit_export() -> bytes:
    folder = Path(_scratch())
    log = audit_log.AuditLog(folder / "log.jsonl", lambda: 1_700_000_000.0)
    for number in range(3):
        log.leaving("trial", "https://rpc.example:8545", bytes([number]), call="commitUpdate", contract=CONTRACT)
    return audit_log.export((folder / "log.jsonl").read_bytes(), HOSPITAL, 1, CONTRACT)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _scratch() -> str:
    """A folder that is there until the process ends, and no longer."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="consilium-fuzz-"))
    return _FOLDERS[-1].name


def disclosure() -> bytes:
    word = bytes(32)
    batch = DisclosedBatch(index=1, salt=word, fingerprints=bytes(64), path=(word, word))
    one = Disclosure(
        format="consilium-evaluation-1",
        chain_id=1,
        contract=CONTRACT,
        task=1,
        round=1,
        voter=HOSPITAL.address,
        held_out_secret=word,
        root=word,
        blinding=word,
        batches=(batch,),
    )
    return one.model_dump_json().encode()


def ballot() -> bytes:
    folder = Path(_scratch())
    Ballot.bound(1, (5, -6), (bytes(8), bytes(8))).keep(folder / "ballot.json")
    return (folder / "ballot.json").read_bytes()


def pending() -> bytes:
    folder = Path(_scratch())
    update = parse_signed_update(signed_update()[:-32], HOSPITAL.address, 1)
    pending = PendingUpdate(update, [GENERATOR], [parse_blob(blob())], bytes(32))
    PendingUpdates(folder, HOSPITAL.address).write(1, pending)
    return (folder / "round-1").read_bytes()


def read_pending(raw: bytes, folder: Path) -> object:
    put(folder / "pending", "round-1", raw)
    return PendingUpdates(folder / "pending", HOSPITAL.address).read(1)


def charges() -> bytes:
    lines = [Charge(task="a", round=n, noise_multiplier=1.0, sample_rate=0.1, steps=5, delta=1e-5) for n in (1, 2)]
    return b"".join(one.model_dump_json().encode() + b"\n" for one in lines)


def counted_rows() -> bytes:
    lines = [Given(task=task, encoding="ab" * 32, whole="cd" * 32, rows=("ef" * 16, "01" * 16)) for task in ("a", "b")]
    return b"".join(one.model_dump_json().encode() + b"\n" for one in lines)


ACTIVATIONS = np.linspace(-1, 1, 64).reshape(16, 4)


def parquet(**columns: object) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return sink.getvalue()


def tables() -> list[bytes]:
    return [
        parquet(age=[50, 60.5, None], pain=[1, 2, 3], ill=[0, 1, 1]),
        parquet(age=["1", "2"], pain=[1, 2], ill=[0, 1]),
    ]


def parquet_bombs() -> list[bytes]:
    """One value that stands for thousands, and pages of nothing."""

    def packed(length: int, rows: int) -> bytes:
        sink = io.BytesIO()
        values = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, np.int8), ["A" * length])
        table = pyarrow.table({"age": values, "pain": np.ones(rows), "ill": np.zeros(rows)})
        pyarrow.parquet.write_table(table, sink, compression="zstd", row_group_size=rows)
        return sink.getvalue()

    return [packed(500_000, 4_000), packed(1_000_000, 4_000), packed(150_000_000, 1)]


def read_parquet(raw: bytes, folder: Path) -> object:
    return read_table(put(folder, "rows.parquet", raw), SCHEMA)


def read_texts_of(name: str) -> Callable[[bytes, Path], object]:
    return lambda raw, folder: read_texts(put(folder, name, raw), TEXTS)


def pictures() -> list[bytes]:
    found = []
    for kind in ("PNG", "JPEG", "BMP", "TIFF"):
        sink = io.BytesIO()
        Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4).save(sink, kind)
        found.append(sink.getvalue())
    return found


def image_bombs() -> list[bytes]:
    found = []
    for size, mode in (((8_192, 8_192), "RGB"), ((8_193, 8_193), "1")):
        sink = io.BytesIO()
        Image.new(mode, size).save(sink, "PNG")
        found.append(sink.getvalue())
    return [*found, tiff_of_many(50_000)]


def tiff_of_many(frames: int) -> bytes:
    """Directories alone, each of one pixel in the same place."""
    tags = [(256, 8), (257, 8), (258, 8), (259, 1), (262, 1), (273, 8), (278, 8), (279, 64)]
    size = 2 + 12 * len(tags) + 4
    raw = bytearray(struct.pack("<2sHI", b"II", 42, 72) + bytes(64))
    for frame in range(frames):
        raw += struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        raw += struct.pack("<I", len(raw) + 4 if frame + 1 < frames else 0)
    assert len(raw) == 72 + size * frames
    return bytes(raw)


def read_image(raw: bytes, folder: Path) -> object:
    put(folder, "pictures/yes/a.png", raw)
    return read_images(folder / "pictures", PIXELS)


def dicoms() -> list[bytes]:
    shades = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
    units = shades.astype(np.int16) - 100
    syntaxes = (uid.RLELossless, uid.JPEGBaseline8Bit, uid.JPEG2000Lossless)
    natives = [
        dicom(units, syntax, RescaleSlope="2") for syntax in (uid.ImplicitVRLittleEndian, uid.ExplicitVRBigEndian)
    ]
    sequences = with_part(dicom(units), nested(2) + b"\xfe\xff\x0d\xe0\0\0\0\0\xfe\xff\xdd\xe0\0\0\0\0" * 2)
    return [*natives, sequences, *(packed(shades, syntax) for syntax in syntaxes)]


def dicom_bombs() -> list[bytes]:
    whole = dicom(np.zeros((8, 8), np.uint16))
    large = [dicom(np.zeros((8, 8), np.uint16), Rows=rows, Columns=rows) for rows in (8_192, 65_535)]
    frame = struct.pack("<II", 1, 64) + bytes(56) + b"\x81\0" * 200_000
    runs = b"\xfe\xff\x00\xe0\0\0\0\0\xfe\xff\x00\xe0" + struct.pack("<I", len(frame)) + frame
    packed_runs = dicom(np.zeros((8, 8), np.uint8), uid.RLELossless, Rows=2_048, Columns=2_048, PixelData=runs)
    empty = b"".join(struct.pack("<HH2sH", 0x0041, at, b"LO", 0) for at in range(1 << 16)) * 4
    return [*large, packed_runs, with_part(whole, nested(100_000)), with_part(whole, nested(1) + empty)]


def read_dicom(raw: bytes, folder: Path) -> object:
    put(folder, "scans/yes/a.dcm", raw)
    return read_images(folder / "scans", UNITS)


def volumes() -> list[bytes]:
    values = np.arange(8 * 8 * 2, dtype=np.int16).reshape(8, 8, 2)
    return [nifti(values), nifti(values, version=2), packed_volume(nifti(values, extension=b"a"))]


def volume_bombs() -> list[bytes]:
    """Of 64 MB where the header says little, or all that it allows."""
    small = nifti(np.zeros((8, 8, 2), np.int16))
    large = nifti(np.zeros((8, 8, 2), np.int16), fields={"dim[1]": 30_000, "dim[2]": 30_000})
    return [packed_volume(one + bytes(1 << 26)) for one in (small, large)]


def read_volume(raw: bytes, folder: Path) -> object:
    put(folder, "cases/imagesTr/a_0000.nii", raw)
    put(folder, "cases/labelsTr/a.nii", nifti(np.ones((8, 8, 2), np.uint8)))
    return read_images(folder / "cases", MASKED)


def archives() -> list[bytes]:
    sink = io.BytesIO()
    np.savez_compressed(sink, images=np.zeros((3, 8, 8), np.uint8), labels=np.array([0, 1, 1]))
    return [sink.getvalue()]


def read_listing(raw: bytes, folder: Path) -> object:
    place = folder / "listed"
    put(place, "a.txt", b"one")
    put(place, "b/c.txt", b"two")
    put(place, "labels.csv", raw)
    return labelled_files(place, TEXTS, (".txt",), 10)


def read_frame(raw: bytes, _: Path) -> object:
    import socket

    one, other = socket.socketpair()
    with one, other:
        one.sendall(raw[:100_000])
        one.close()
        return receive_reply(other)


def frames() -> list[bytes]:
    from consilium_chain.messages import ReplyCode

    return [b"".join(RoundReply(code, (), bytes(200)).encode()) for code in (ReplyCode.SIGNED, ReplyCode.FAILED)]


def json_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], object]:
    return lambda raw, folder: read(put(folder, name, raw))


def read_secret(raw: bytes, folder: Path) -> object:
    put(folder, "ballots/here/held-out.json", raw)
    return kept_held_out_secret(folder, "here")


CLIENT = {
    "relay's request": Parser(
        lambda: [RoundRequest(bytes(20), 1, 2, part).encode() for part in Part],
        lambda raw, _: RoundRequest.parse(raw),
        (FrameError,),
        fuzzed_in="tests/client/test_wire_frames.py",
    ),
    "node's reply to its relay": Parser(frames, read_frame, (FrameError,)),
    "node.toml": Parser(
        lambda: [NODE],
        lambda raw, folder: read_settings(put(folder, "node.toml", raw), HospitalHomeSettings),
        (ConfigInvalid,),
        "toml",
    ),
    "policy of a hospital": Parser(
        lambda: [POLICY],
        only("PolicyInvalid", lambda raw, folder: read_policy(put(folder, "policy.toml", raw), Policy)),
        (OwnersRefusal,),
        "toml",
    ),
    "policy of a voter": Parser(
        lambda: [VOTER_POLICY],
        only("PolicyInvalid", lambda raw, folder: read_policy(put(folder, "policy.toml", raw), VoterPolicy)),
        (OwnersRefusal,),
        "toml",
    ),
    "approval": Parser(lambda: [APPROVAL], only("ApprovalInvalid", approval), (OwnersRefusal,), "toml"),
    "mapping": Parser(
        lambda: [MAPPING], only("MappingInvalid", lambda raw, _: parse_mapping(raw, SCHEMA)), (DataError,), "toml"
    ),
    "CSV table": Parser(
        lambda: [TABLE.encode()],
        lambda raw, folder: read_table(put(folder, "rows.csv", raw), SCHEMA),
        (DataError,),
        bombs=lambda: [b"," * 1_000_000, b'"' * 1_000_000, b"a\n" * 1_000_000, b"age,pain,ill\n" + b"1,1,0\n" * 70_000],
        megabytes=160,
    ),
    "CSV of texts": Parser(
        lambda: [b'note,found\n"one, two",some\nthree,none\n'], read_texts_of("texts.csv"), (DataError,)
    ),
    "labels.csv": Parser(lambda: [b"file,label\na.txt,some\nb/c.txt,none\n"], read_listing, (DataError,)),
    "Parquet table": Parser(
        tables,
        read_parquet,
        (DataError,),
        bombs=parquet_bombs,
        megabytes=256,
    ),
    "Parquet of texts": Parser(
        lambda: [parquet(note=["one", "two"], found=["some", "none"])],
        read_texts_of("texts.parquet"),
        (DataError,),
        megabytes=256,
    ),
    "image": Parser(
        pictures,
        read_image,
        (DataError,),
        bombs=image_bombs,
        megabytes=640,
        fuzzed_in="tests/client/test_images_read.py",
    ),
    "DICOM file": Parser(
        dicoms,
        read_dicom,
        (DataError,),
        bombs=dicom_bombs,
        megabytes=256,
        fuzzed_in="tests/client/test_dicom_read.py",
    ),
    "NIfTI file": Parser(
        volumes,
        read_volume,
        (DataError,),
        bombs=volume_bombs,
        megabytes=256,
        fuzzed_in="tests/client/test_volumes_read.py",
    ),
    "archive of images": Parser(
        archives,
        lambda raw, folder: read_images(put(folder, "images.npz", raw), PIXELS),
        (DataError,),
        fuzzed_in="tests/client/test_images_read.py",
    ),
    "audit export": Parser(
        lambda: [audit_export()],
        only(("AuditMalformed", "AuditBroken", "AuditForged"), lambda raw, _: audit_log.parse_export(raw)),
        (AuditError,),
        bombs=lambda: DEEP_JSON,
        fuzzed_in="tests/client/test_audit_log.py",
    ),
    "invite": Parser(
        lambda: [
            invite().written,
            invite(shards=[{"task": 4, "superlink": "fl.example.org:443/9101"}]).written,
            invite(signed_by_contract=True).written,
        ],
        lambda raw, _: SignedInvite.parse(raw),
        (InviteRefused,),
        "json",
        lambda: DEEP_JSON,
        fuzzed_in="tests/chain/test_invites.py",
    ),
    "link of an invite": Parser(
        lambda: [invite().link.encode()],
        lambda raw, _: SignedInvite.parse(raw),
        (InviteRefused,),
        fuzzed_in="tests/chain/test_invites.py",
    ),
    "statement of a second signature": Parser(
        lambda: [second_signature.statement_bytes(STATEMENT)],
        lambda raw, _: second_signature.parse_statement(raw),
        (OwnersRefusal,),
        "json",
        lambda: DEEP_JSON,
        fuzzed_in="tests/e2e/test_second_signatures.py",
    ),
    "second signature": Parser(
        lambda: [second_signature.SignedApproval(statement=STATEMENT, signer=SIGNER, signature="0x07").written],
        lambda raw, folder: second_signature.read_approval(put(folder, "signed.json", raw)),
        (OwnersRefusal,),
        "json",
        lambda: DEEP_JSON,
        fuzzed_in="tests/e2e/test_second_signatures.py",
    ),
    "opened evaluation": Parser(
        lambda: [disclosure()],
        only("DisclosureMalformed", json_file("disclosure.json", Disclosure.read)),
        (ClientError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "kept ballot": Parser(
        lambda: [ballot()],
        json_file("ballot.json", lambda path: Ballot.kept(path, 1)),
        (BallotError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "kept secret of rows": Parser(
        lambda: [json.dumps({"secret": bytes(32).hex()}).encode()],
        only("HeldOutLost", read_secret),
        (NodeError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "ledger of ε": Parser(
        lambda: [charges()],
        only("EpsilonLedgerInvalid", json_file("privacy.jsonl", lambda path: PrivacyAccountant(path).charges())),
        (PrivacyError,),
    ),
    "list of counted rows": Parser(
        lambda: [counted_rows()],
        only(
            "StatisticsLedgerInvalid", json_file("statistics.jsonl", lambda path: ExactStatisticsRecord(path).tasks())
        ),
        (ClientError,),
    ),
    "pending update": Parser(lambda: [pending()], only("PendingUpdateLost", read_pending), (NodeError,)),
    "fingerprint": Parser(
        lambda: [fingerprint(ACTIVATIONS)], lambda raw, _: deviation(raw, ACTIVATIONS), (FingerprintError,)
    ),
}

# --- server and cli -------------------------------------------------------------------------------------------------

SEAL = Seal(bytes(32))


def page_request(cursor: str | None = None) -> PageRequest:
    return PageRequest("tasks", 10, cursor, SEAL)


def sign_ins() -> list[bytes]:
    return [one["message"].encode() for one in json.loads((VECTORS / "sign_in.json").read_text())]


def kept_upload() -> bytes:
    body = GENERATOR + statement()
    return len(body).to_bytes(4, "big") + body + blob()


def decoy_secrets() -> bytes:
    folder = Path(_scratch())
    SecretFiles(folder).store(1, RoundSecrets(bytes(32), {0: [(5, 6)]}, {0: [GENERATOR]}, 3))
    return (folder / "round-1.json").read_bytes()


def read_decoys(raw: bytes, folder: Path) -> object:
    put(folder, "round-1.json", raw)
    return SecretFiles(folder).of(1)


@cache
def model_folder() -> Path:
    return written_model(Path(_scratch()), TASK.decode())


def read_index(raw: bytes, folder: Path) -> object:
    for name in ("model.safetensors", "proof.json", "model-card.md"):
        put(folder / "model", name, (model_folder() / name).read_bytes())
    put(folder / "model", "model.json", raw)
    return read_model(folder / "model")


def tensors() -> list[bytes]:
    zeros = {name: np.zeros(shape, np.float32) for name, shape in SPEC.model.tensors(SPEC.data).items()}
    return [(model_folder() / "model.safetensors").read_bytes(), save(zeros), *map(tensor_of, DTYPES)]


_MEMBERS = tuple(MemberFile(task=task, gain=task * 1_000, sha256="00" * 32, folder=f"task-{task}") for task in (7, 9))
ENSEMBLE_INDEX = EnsembleFile(number=2**48 + 1, chain_id=1, contract=CONTRACT, members=_MEMBERS).written
DTYPES = ("BF16", "F8_E4M3", "F8_E5M2", "F64", "I64", "BOOL", "C64", "F4")


def tensor_of(kind: str) -> bytes:
    head = json.dumps({"a": {"dtype": kind, "shape": [8], "data_offsets": [0, 64]}}).encode()
    return len(head).to_bytes(8, "little") + head + bytes(64)


SPEC = parse_task_spec(TASK)


# A dense layer without a bias.
RECORD = b"""test_plugin/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0
test_plugin/__pycache__/__init__.cpython-311.pyc,,
../../bin/tool,,
test_plugin-1.0.dist-info/METADATA,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0
test_plugin-1.0.dist-info/RECORD,,
"""


def wheel_of(size: int) -> bytes:
    """A plug-in's wheel with a file of so many zero bytes."""
    part, whole, into = bytes(1 << 20), hashlib.sha256(), io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as wheel:
        with wheel.open("test_plugin/__init__.py", "w") as file:
            for start in range(0, size, len(part)):
                file.write(part[: size - start])
                whole.update(part[: size - start])
        hash_ = urlsafe_b64encode(whole.digest()).rstrip(b"=").decode()
        wheel.writestr("test_plugin-1.0.dist-info/RECORD", f"test_plugin/__init__.py,sha256={hash_},{size}\n")
    return into.getvalue()


PROGRAM = programs.written(programs.Program(
    (4,), "float32", 2, {"w": (2, 4)}, {}, {},
    (programs.Call("linear.default", (programs.Input(), programs.Tensor("w")), {}),),
))  # fmt: skip


def predictable() -> list[bytes]:
    return [json.dumps({"rows": [{"age": 5, "site": 1}, {"age": "7.5", "site": None}]}).encode()]


def read_rows(raw: bytes, _: Path) -> object:
    return examples_of(rows_of(raw, SPEC.data, 100), SPEC.data)


SERVER = {
    "worker.toml": Parser(
        lambda: [WORKER],
        lambda raw, folder: read_settings(put(folder, "worker.toml", raw), WorkerSettings),
        (ConfigInvalid,),
        "toml",
    ),
    "api.toml": Parser(
        lambda: [API],
        lambda raw, folder: read_settings(put(folder, "api.toml", raw), ApiSettings),
        (ConfigInvalid,),
        "toml",
    ),
    "body of a signed update": Parser(
        lambda: [signed_update()], lambda raw, _: parse_signed(raw, HOSPITAL.address, 2), (SignedUpdateMalformed,)
    ),
    "kept upload": Parser(
        lambda: [kept_upload()],
        only(("UploadInvalid", *Malformed.MESSAGES), lambda raw, _: reply_store._parse_upload(raw, 1)),
        (ReplyRefused, ZkError),
    ),
    "kept secrets of decoys": Parser(lambda: [decoy_secrets()], read_decoys, (DecoysLost,), "json", lambda: DEEP_JSON),
    "message to sign in": Parser(
        sign_ins,
        only("SignInMalformed", lambda raw, _: parse_message(raw.decode("utf-8", "surrogateescape"))),
        (RequestRefused,),
        bombs=lambda: [
            b"a" * 4_096,
            sign_ins()[0].replace(b"URI: ", b"URI: a:" + b"/" * 3_000),
            sign_ins()[0] + b"\nResources:" + b"\n- a:" * 700 + b"\n",
        ],
    ),
    "cursor": Parser(
        lambda: [page_request().end([1, "0x5"]).encode()],
        only("CursorInvalid", lambda raw, _: page_request(raw.decode("utf-8", "surrogateescape")).start()),
        (RequestRefused,),
    ),
    "event id": Parser(
        lambda: [b"812-3", b"812-3-0123456789abcdef"],
        lambda raw, _: parse_event_id(raw.decode("utf-8", "surrogateescape")),
        (),
    ),
    "model.json": Parser(
        lambda: [(model_folder() / "model.json").read_bytes()],
        only("ModelFolderInvalid", read_index),
        (OperatorError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "ensemble.json": Parser(
        lambda: [ENSEMBLE_INDEX],
        only("EnsembleFolderInvalid", lambda raw, folder: _index(put(folder, ENSEMBLE, raw))),
        (EnsembleError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "model.safetensors": Parser(
        tensors,
        only(
            "ModelFolderInvalid",
            lambda raw, folder: _tensors(folder / "model.safetensors", raw, SPEC, SPEC.model.tensors(SPEC.data)),
        ),
        (OperatorError,),
    ),
    "program": Parser(
        lambda: [PROGRAM],
        only(
            ("ProgramMalformed", "ProgramTooLarge", "OperatorForbidden"),
            lambda raw, _: measured(programs.parse_program(raw), 4, training=False),
        ),
        (ProgramError,),
        "json",
        lambda: DEEP_JSON,
    ),
    "plug-in's RECORD": Parser(
        lambda: [RECORD],
        only("PluginMalformed", lambda raw, _: parse_record(raw, "test_plugin-1.0.dist-info").digest),
        (PluginError,),
    ),
    "plug-in's wheel": Parser(
        lambda: [wheel_of(0), wheel_of(100)],
        only("PluginMalformed", lambda raw, folder: digest_of_wheel(put(folder, "w.whl", raw)).digest),
        (PluginError,),
        bombs=lambda: [wheel_of(1 << 28)],
    ),
    "rows to predict for": Parser(predictable, read_rows, (RowsInvalid, DataError), "json", lambda: DEEP_JSON),
}

PARSERS: dict[str, Parser] = ZK | CHAIN | CLIENT | SERVER
