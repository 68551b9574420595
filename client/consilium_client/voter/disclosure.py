"""A disclosure: a voter shows an auditor who holds its rows its evaluation of the batches that chance drew.

It is as confidential as the rows: models are public, and a model's activations on a batch tell much of its rows. It
goes to the auditor and nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from consilium_chain.ledger.ledger import Ledger
from consilium_zk.evaluation import FINGERPRINT_TAG, batch_leaves, draw_seed, drawn, leaf_salt
from consilium_zk.merkle import path_of
from eth_utils.address import is_checksum_address
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from consilium_client.errors import ClientError, NodeError
from consilium_client.voter.ballots import Ballot

MOST_BYTES = 1 << 28  # of a file: more than 22 batches of any ballot have


def _from_hex(shown: object) -> object:
    return bytes.fromhex(shown) if isinstance(shown, str) else shown


def _address(text: str) -> str:
    if not is_checksum_address(text):
        raise ValueError("it is no address with its checksum")
    return text


Bytes = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(bytes.hex)]
Word = Annotated[Bytes, Field(min_length=32, max_length=32)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
Address = Annotated[str, AfterValidator(_address)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OpenedBatch(_Part):
    """fingerprints: of all models, one after the other; path: from the leaf up."""

    index: Count
    salt: Word
    fingerprints: Bytes
    path: Annotated[tuple[Word, ...], Field(strict=False)]


class Opening(_Part):
    """held_out_secret: with it and the rows, the voter's commitment to its rows follows."""

    format: Literal["consilium-evaluation-1"]
    chain_id: Count
    contract: Address
    task: Count
    round: Count
    voter: Address
    held_out_secret: Word
    root: Word
    blinding: Word
    batches: Annotated[tuple[OpenedBatch, ...], Field(strict=False)]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises OpeningMalformed."""
        try:
            with path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ClientError(
                "OpeningMalformed", path=path, why=f"cannot be read: {error.strerror or type(error).__name__}"
            ) from error
        if len(raw) > MOST_BYTES:
            raise ClientError("OpeningMalformed", path=path, why=f"it has more than {MOST_BYTES} bytes")
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors(include_input=False, include_context=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            # Unchained: the error could quote what the file holds.
            raise ClientError("OpeningMalformed", path=path, why=f"{where}: {first['msg']}") from None


def seed_of(ledger: Ledger, task: int, round_: int, voter: str) -> bytes:
    """The seed of the draw of a voter's batches. Raises RecordIncomplete before the round has ended."""
    contract, own = (bytes.fromhex(account.removeprefix("0x")) for account in (ledger.deployment.tasks, voter))
    return draw_seed(ledger.record.ending_hash(task, round_), ledger.connection.chain_id, contract, task, round_, own)


def opened(ledger: Ledger, task: int, ballot: Ballot, held_out_secret: bytes) -> Opening:
    """The disclosure of this account's ballot. Raises NothingEvaluated, RecordIncomplete before the round has ended."""
    evaluated, voter = ballot.evaluated, ledger.address
    if not evaluated.fingerprints:
        raise NodeError("NothingEvaluated", round=ballot.round)
    leaves = batch_leaves(FINGERPRINT_TAG, evaluated.secret, evaluated.fingerprints)
    chosen = drawn(seed_of(ledger, task, ballot.round, voter), len(leaves))
    return Opening(
        format="consilium-evaluation-1",
        chain_id=ledger.connection.chain_id,
        contract=ledger.deployment.tasks,
        task=task,
        round=ballot.round,
        voter=voter,
        held_out_secret=held_out_secret,
        root=evaluated.root,
        blinding=evaluated.blinding,
        batches=tuple(
            OpenedBatch(
                index=index,
                salt=leaf_salt(evaluated.secret, index),
                fingerprints=evaluated.fingerprints[index],
                path=tuple(path_of(leaves, index)),
            )
            for index in chosen
        ),
    )
