"""A database after the indexer: an ended task, a running one, two without a valid file, and nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.ledger.structs import DOES_NOT_MATCH, Outcome, Phase, Role, SlashReason, VoidReason
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import parse_task_spec, spec_hash
from consilium_server.api.app import build, make_service
from consilium_server.api.reading import open_engine
from consilium_server.config import ApiSettings
from consilium_server.database.sale_tables import MemberRow
from consilium_server.database.tables import (
    Block,
    Checkpoint,
    Cohort,
    EventRow,
    Fact,
    Funding,
    OutcomeRow,
    Participant,
    Payment,
    PhaseStart,
    PoolRow,
    Position,
    Spec,
    TaskRow,
    UnbondingRow,
)
from consilium_zk.kzg import commit
from consilium_zk.packing import LaneLayout, pack
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from fastapi import FastAPI
from numpy import arange, uint64
from served_app import served as served
from sqlalchemy import delete
from sqlalchemy.orm import Session
from task_files import DATA

CHAIN_ID = 31_337
ORIGIN = "https://consilium.example:8443"
START = 1_790_000_000  # of block 0, in seconds
ENTRY, DAY = 2**48, 86_400
TASK_FILE = f"""name = "heart failure"
{DATA}
[model]
name = "logistic"
[rounds]
rounds = 3
max_hospitals = 6
min_cohort_size = 3
cohorts = 2
min_hospitals = 6
[money]
aggregator_bond = 2000
[privacy]
epsilon = 8
max_grad_norm = 0.5
"""


def account(name: str) -> str:
    return str(to_checksum_address(keccak(name.encode())[:20]))


def hash_of(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


def point_of(hospital: str, round_: int) -> bytes:
    """A hospital's point; it is none of the curve."""
    return hash_of("point", hospital, round_) + bytes(16)


OPERATOR, AGGREGATOR = account("operator"), account("aggregator")
HOSPITALS = [account(f"hospital {n}") for n in range(6)]
VOTERS = [account(f"voter {n}") for n in range(3)]
DELEGATORS = [account(f"delegator {n}") for n in range(4)]


class IndexedNetwork:
    """Adds rows one block at a time, like the indexer."""

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder / 'index.sqlite'}"
        self.engine = open_engine(self.url)
        self.store = ArtifactStore(folder / "artifacts")
        token, staking, beacon, tasks, shares, sponsored = map(
            account, ("token", "staking", "beacon", "tasks", "shares", "sponsored")
        )
        self.deployment = Deployment(CHAIN_ID, 0, token, staking, beacon, tasks, shares, sponsored)
        self.deployment.write(folder / "deployment.json")
        self.block, self.log, self.fork = 0, 0, 0
        self.pools: dict[tuple[str, int], dict[str, Any]] = {}
        self.rows: list[Any] = []

    # Blocks

    @contextmanager
    def mined(self, seconds: int = 12) -> Iterator[None]:
        """A block with the events of the `with` statement."""
        self.block, self.log = self.block + 1, 0
        block_hash = hash_of("block", self.block, self.fork)
        self.rows = [Block(self.block, block_hash, START + self.block * seconds)]
        yield
        self.rows.append(Checkpoint(self.block, block_hash))
        with Session(self.engine) as db, db.begin():
            blocks = [row for row in self.rows if isinstance(row, Block)]
            db.add_all(blocks)
            db.flush()
            db.add_all([row for row in self.rows if not isinstance(row, Block)])

    def pass_block(self) -> None:
        """Adds a block without logs."""
        self.block += 1
        with Session(self.engine) as db, db.begin():
            db.add(Checkpoint(self.block, hash_of("block", self.block, self.fork)))

    def told(self, contract: str, name: str, values: dict[str, Any], **about: Any) -> dict[str, Any]:
        """Adds an event; returns its place."""
        place: dict[str, Any] = {"block": self.block, "log_index": self.log}
        fields = {"task": None, "round": None, "account": None, "role": None, "other": None} | about
        self.rows.append(
            EventRow(
                **place, item=0, contract=contract, name=name, transaction=hash_of("tx", place), values=values, **fields
            )
        )
        self.log += 1
        return place | {"item": 0}

    def reorganise(self, from_block: int) -> None:
        """Removes all blocks from this one on."""
        with Session(self.engine) as db, db.begin():
            for table in Fact.__subclasses__():
                db.execute(delete(table).where(table.block >= from_block))
            db.execute(delete(Block).where(Block.number >= from_block))
            db.execute(delete(Checkpoint).where(Checkpoint.number >= from_block))
        self.block, self.fork = from_block - 1, self.fork + 1

    # Logs

    def register(self, node: str, role: Role, commission_bps: int = 500) -> None:
        place = self.told("staking", "NodeRegistered", {"commissionBps": str(commission_bps)}, account=node, role=role)
        self.pools[node, role] = {
            "generation": 0, "assets": 0, "shares": 0, "unbonding_shares": 0, "locked": 0,
            "commission_bps": commission_bps, "next_commission_bps": None, "next_commission_at": None, "index_x48": 1,
            "rewarded": 0, "burnt": 0, "forfeited": 0, "voter_key": role is Role.VOTER,
        }  # fmt: skip
        self.rows.append(PoolRow(**place, node=node, role=role, **self.pools[node, role]))

    def pool(self, place: dict[str, Any], node: str, role: Role, **changes: Any) -> None:
        self.pools[node, role] |= changes
        self.rows.append(PoolRow(**place, node=node, role=role, **self.pools[node, role]))

    def delegate(self, delegator: str, node: str, role: Role, amount: int, before: int = 0) -> None:
        """Delegates at a price of one token a share; `before`: the delegator's shares."""
        values = {"amount": str(amount), "shares": str(amount)}
        place = self.told("staking", "Delegated", values, account=node, role=role, other=delegator)
        pool = self.pools[node, role]
        self.pool(place, node, role, assets=pool["assets"] + amount, shares=pool["shares"] + amount)
        self.rows.append(
            Position(**place, delegator=delegator, node=node, role=role, generation=0, shares=before + amount,
                     delegated=before + amount, withdrawn=0, claimed=0)
        )  # fmt: skip

    def task_told(
        self, name: str, task: int, round_: int | None = None, who: str | None = None, **values: Any
    ) -> dict[str, int]:
        role = next((int(r) for r, ones in ((Role.HOSPITAL, HOSPITALS), (Role.VOTER, VOTERS)) if who in ones), None)
        return self.told(
            "tasks", name, {"taskId": str(task), **values}, task=task, round=round_, account=who, role=role
        )

    def propose(self, task: int, text: str, known: bool = True, **changed: int) -> None:
        """`changed`: other terms than those of TASK_FILE."""
        raw = text.encode()
        params = asdict(task_params(parse_task_spec(TASK_FILE.encode()), spec_hash(raw), AGGREGATOR)) | changed
        shown = {
            k: v if isinstance(v, bool) or (isinstance(v, int) and abs(v) <= 2**53) else plain(v)
            for k, v in params.items()
        }
        place = self.task_told(
            "TaskProposed", task, who=OPERATOR, specHash=plain(spec_hash(raw)), pool=str(params["pool"])
        )
        self.rows.append(
            TaskRow(**place, task=task, operator=OPERATOR, aggregator=AGGREGATOR, spec_hash=spec_hash(raw),
                    pool=params["pool"], params=shown)
        )  # fmt: skip
        self.phase(task, 0, Phase.JOINING, START + 86_400)
        if known:
            self.store.put_file(raw)
            self.rows.append(Spec(spec_hash(raw), text))

    def unbond(self, delegator: str, node: str, request: int, matures_at: int, shares: int) -> None:
        place = self.told("staking", "UnbondingStarted", {}, account=node, role=Role.HOSPITAL, other=delegator)
        self.rows.append(
            UnbondingRow(**place, delegator=delegator, request=request, node=node, role=Role.HOSPITAL, generation=0,
                         shares=shares, matures_at=matures_at)
        )  # fmt: skip

    def fund(self, task: int, amount: int, pool: int) -> None:
        """Adds to a task's pool; `pool`: with the amount."""
        place = self.task_told("TaskFunded", task, who=OPERATOR, amount=str(amount), pool=str(pool))
        self.rows.append(Funding(**place, task=task, pool=pool))

    def phase(self, task: int, round_: int, phase: Phase, deadline: int = 0) -> None:
        place = self.task_told("PhaseStarted", task, round_, phase=str(int(phase)), deadline=str(deadline))
        self.rows.append(PhaseStart(**place, task=task, round=round_, phase=phase, deadline=deadline))

    def join(self, task: int) -> None:
        members = [(n, Role.HOSPITAL, h) for n, h in enumerate(HOSPITALS)]
        members += [(n, Role.VOTER, v) for n, v in enumerate(VOTERS)] + [(0, Role.AGGREGATOR, AGGREGATOR)]
        for position, role, who in members:
            place = self.task_told(f"{role.name.capitalize()}Joined", task, who=who, index=str(position))
            weight = 8 + position if role is Role.HOSPITAL else 0
            self.rows.append(Participant(**place, task=task, account=who, role=role, position=position, weight=weight))
            if role is not Role.AGGREGATOR:
                locked = self.told("staking", "StakeLocked", {"amount": str(TOKEN)}, account=who, role=role)
                self.pool(locked, who, role, locked=self.pools[who, role]["locked"] + 100 * TOKEN)

    def pay(self, task: int, round_: int | None, who: str, role: Role | None, kind: str, amount: int) -> None:
        event = {"reward": "Rewarded", "slash": "Slashed", "bounty": "BountyPaid", "refund": "TaskEnded"}[kind]
        reason = SlashReason.HARMFUL_COHORT if kind == "slash" else None
        told = {"refund": str(amount), "burnt": "0"} if kind == "refund" else {"amount": str(amount)}
        told |= {} if reason is None else {"reason": str(int(reason))}
        place = self.task_told(event, task, round_, who if kind != "refund" else None, **told)
        self.rows.append(
            Payment(**place, task=task, round=round_, account=who, role=role, kind=kind, amount=amount, reason=reason)
        )
        if role is None:
            return
        pool = self.pools.get((who, role))
        if pool is None:
            return
        if kind == "reward":
            added = self.told("staking", "RewardAdded", {"amount": str(amount)}, account=who, role=role)
            earned = amount * ENTRY // max(1, pool["shares"])
            self.pool(added, who, role, rewarded=pool["rewarded"] + amount, index_x48=pool["index_x48"] + earned)
        if kind == "slash":
            lost = self.told("staking", "StakeSlashed", {"amount": str(amount)}, account=who, role=role)
            self.pool(lost, who, role, assets=pool["assets"] - amount, burnt=pool["burnt"] + amount)

    def commit(self, task: int, round_: int, hospital: str) -> None:
        """A commitment to one blob."""
        hashes, none = [plain(hash_of("point hash", hospital, round_))], plain(bytes(32))
        self.task_told("UpdateCommitted", task, round_, hospital, pointHashes=hashes, shareBundle=none, base=none)

    def show_points(self, task: int, round_: int, cohort: int, survivors: Sequence[int]) -> None:
        """The points of the survivors of a cohort, as the contract shows them with their sum."""
        values = {"cohort": str(cohort), "blob": "0", "hospitals": plain(bytes(survivors))}
        points = b"".join(point_of(HOSPITALS[one], round_) for one in survivors)
        self.task_told("PointsShown", task, round_, points=plain(points), **values)

    def play_statistics(self, task: int, blob: bytes) -> None:
        """Round 0: one cohort of all hospitals, without committee and rewards."""
        with self.mined():
            self.phase(task, 0, Phase.COMMITTING, START + 90_000)
            for hospital in HOSPITALS:
                self.commit(task, 0, hospital)
        with self.mined():
            self.task_told("SurvivorsFixed", task, 0, survivors=str(0b111111))
            self.show_points(task, 0, 0, range(6))
            for name in ("CohortSummed", "CohortPublished"):
                self.task_told(name, task, 0, cohort="0", blob="0", versionedHash=plain(blob))
            place = self.task_told("RoundSettled", task, 0, medians=[], acceptedCohorts="1")
            self.rows.append(
                OutcomeRow(**place, task=task, round=0, outcome=Outcome.SETTLED, reason=VoidReason.NONE, medians=[],
                           accepted=1)
            )  # fmt: skip

    def play_round(self, task: int, round_: int, blob: bytes, void: bool = False) -> None:
        """A whole round of two cohorts. The second sum is flipped, and one voter fails to recognise it."""
        with self.mined():
            self.phase(task, round_, Phase.FORMING)
            place = self.task_told(
                "CohortsFormed", task, round_, seed=plain(hash_of(task, round_)), members=["7", "56"]
            )
            for item, members in enumerate((0b000111, 0b111000)):
                self.rows.append(Cohort(**(place | {"item": item}), task=task, round=round_, members=members))
            self.phase(task, round_, Phase.COMMITTING, START + 90_000)
        with self.mined():
            for hospital in HOSPITALS[:-1]:
                self.commit(task, round_, hospital)
            self.phase(task, round_, Phase.UPLOADING, START + 91_000)
        with self.mined():
            self.task_told("SurvivorsFixed", task, round_, survivors=str(0b011111))
            self.task_told("DecoysSet", task, round_, seedCommitment=plain(hash_of(1)), negatedDelta=plain(hash_of(2)))
            for cohort in (0, 1):
                hash_ = plain(blob) if cohort == 0 else plain(hash_of("blob", task, round_))
                self.task_told("CohortPublished", task, round_, cohort=str(cohort), blob="0", versionedHash=hash_)
        if void:
            with self.mined():
                place = self.task_told("RoundVoided", task, round_, reason=str(int(VoidReason.TOO_FEW_SCORES)))
                self.rows.append(
                    OutcomeRow(**place, task=task, round=round_, outcome=Outcome.VOID,
                               reason=VoidReason.TOO_FEW_SCORES, medians=[], accepted=0)
                )  # fmt: skip
            return
        with self.mined():
            self.task_told("SeatsDrawn", task, round_, seed=plain(hash_of("seats")), seatWeight=str(2**200))
            for voter in VOTERS:
                self.task_told("ScoresCommitted", task, round_, voter, commitment=plain(hash_of(voter, round_)))
        with self.mined():
            for rank, voter in enumerate(VOTERS[:2]):
                scores = [12_000 + rank, -3, 4, 9_000] if rank == 0 else [DOES_NOT_MATCH] * 4
                self.task_told("ScoresRevealed", task, round_, voter, scores=[str(score) for score in scores])
            for cohort, flipped in enumerate((False, True)):
                self.show_points(task, round_, cohort, (range(3), (3, 4))[cohort])
                self.task_told("CohortDisclosed", task, round_, cohort=str(cohort), isFlipped=flipped)
        with self.mined():
            for cohort in (0, 1):
                hash_ = plain(blob) if cohort == 0 else plain(hash_of("blob", task, round_))
                self.task_told("CohortSummed", task, round_, cohort=str(cohort), blob="0", versionedHash=hash_)
            medians = [12_000, -80_000]
            place = self.task_told("RoundSettled", task, round_, medians=[str(m) for m in medians], acceptedCohorts="1")
            self.rows.append(
                OutcomeRow(**place, task=task, round=round_, outcome=Outcome.SETTLED, reason=VoidReason.NONE,
                           medians=medians, accepted=1)
            )  # fmt: skip
            for hospital in HOSPITALS[:3]:
                self.pay(task, round_, hospital, Role.HOSPITAL, "reward", 300 * TOKEN)
            self.pay(task, round_, HOSPITALS[3], Role.HOSPITAL, "slash", 50 * TOKEN)
            self.pay(task, round_, VOTERS[0], Role.VOTER, "reward", 40 * TOKEN)
            self.pay(task, round_, DELEGATORS[0], None, "bounty", TOKEN)


def plain(value: Any) -> Any:
    return "0x" + value.hex() if isinstance(value, bytes) else str(value) if isinstance(value, int) else value


def stored_blob(network: IndexedNetwork) -> bytes:
    """A real blob in the store; returns its versioned hash."""
    (blob,) = pack(arange(50, dtype=uint64), LaneLayout(bits=16, total_weight=256))
    return network.store.put_blob(blob, commit(blob))


def populated(folder: Path, url: str | None = None) -> IndexedNetwork:
    network = IndexedNetwork(folder, url)
    blob = stored_blob(network)
    with network.mined():
        for node in HOSPITALS:
            network.register(node, Role.HOSPITAL, commission_bps=100 * HOSPITALS.index(node))
            network.delegate(node, node, Role.HOSPITAL, 1_000 * TOKEN)
        for node in VOTERS:
            network.register(node, Role.VOTER)
            network.delegate(node, node, Role.VOTER, 500 * TOKEN)
    with network.mined():
        for number, delegator in enumerate(DELEGATORS):
            network.delegate(delegator, HOSPITALS[number % 2], Role.HOSPITAL, (number + 1) * 10 * TOKEN)
        network.propose(1, TASK_FILE)
    with network.mined():
        network.fund(1, 250 * TOKEN, 10_250 * TOKEN)
        network.join(1)
    network.play_statistics(1, blob)
    for round_ in (1, 2, 3):
        network.play_round(1, round_, blob, void=round_ == 2)
    with network.mined():
        network.pay(1, None, OPERATOR, None, "refund", 7 * TOKEN)
        network.phase(1, 3, Phase.ENDED)
        values = {"requestId": "0", "shares": str(4 * TOKEN), "maturesAt": str(START + 10**6)}
        node = HOSPITALS[0]
        place = network.told(
            "staking", "UnbondingStarted", values, account=node, role=Role.HOSPITAL, other=DELEGATORS[0]
        )
        network.pool(place, node, Role.HOSPITAL, unbonding_shares=4 * TOKEN)
        network.rows.append(
            UnbondingRow(**place, delegator=DELEGATORS[0], request=0, node=node, role=Role.HOSPITAL, generation=0,
                         shares=4 * TOKEN, matures_at=START + 10**6)
        )  # fmt: skip
        network.rows.append(
            Position(**place, delegator=DELEGATORS[0], node=node, role=Role.HOSPITAL, generation=0, shares=6 * TOKEN,
                     delegated=10 * TOKEN, withdrawn=0, claimed=0)
        )  # fmt: skip
    with network.mined():
        network.propose(2, TASK_FILE.replace("heart failure", "stroke 100%"))
        network.propose(3, 'name = "unknown file"', known=False)
        network.propose(4, 'name = "does not hold"')
    with network.mined():
        network.join(2)
    network.play_statistics(2, blob)
    with network.mined():
        network.phase(2, 1, Phase.FORMING)
        place = network.task_told("CohortsFormed", 2, 1, seed=plain(hash_of(5)), members=["63"])
        network.rows.append(Cohort(**place, task=2, round=1, members=63))
        for item, gain in enumerate((30_000, 10_000)):
            network.rows.append(MemberRow(**place | {"item": item}, ensemble=2**48 + 1, task=item + 1, gain=gain))
        network.phase(2, 1, Phase.COMMITTING, START + 99_000)
    return network


def settings_of(network: IndexedNetwork, **changes: Any) -> ApiSettings:
    given: dict[str, Any] = {
        "home": network.folder / "home", "database_url": network.url, "artifacts": network.folder / "artifacts",
        "deployment": network.folder / "deployment.json", "origin": ORIGIN, "poll_seconds": 0.05,
    }  # fmt: skip
    return ApiSettings.model_validate(given | changes)


def app_of(network: IndexedNetwork, **changes: Any) -> FastAPI:
    return build(make_service(settings_of(network, **changes), network.engine))
