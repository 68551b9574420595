"""A voter's secrets on its disk, readable by its user alone: the secret of its rows, and a ballot for each round.

The voter writes each one before its commitment is on chain. It could not reveal a lost ballot, nor show the evaluation
behind it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from consilium_chain.ledger.ledger import Ledger
from consilium_core.private_files import write_private_file
from consilium_zk.encoding import WORD
from consilium_zk.evaluation import ballot_salt, fingerprints_root
from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from consilium_client.errors import BallotError, NodeError

HELD_OUT_FILE = "held-out.json"


def _from_hex(shown: object) -> object:
    return bytes.fromhex(shown) if isinstance(shown, str) else shown


Bytes = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(bytes.hex)]


@dataclass(frozen=True)
class Evaluated:
    """Fingerprints of all evaluated models, by batch; the secret of their tree's salts; the blinding of its root."""

    fingerprints: tuple[Bytes, ...]
    secret: Bytes
    blinding: Bytes

    @property
    def root(self) -> bytes:
        return fingerprints_root(self.secret, self.fingerprints)


@dataclass(frozen=True)
class Ballot:
    """Scores in millionths (`ballot_size`); the salt that hides them until the reveal; the evaluation that it binds."""

    round: int
    scores: tuple[int, ...]
    salt: Bytes
    evaluated: Evaluated

    @classmethod
    def bound(cls, round_: int, scores: tuple[int, ...], fingerprints: tuple[bytes, ...]) -> Ballot:
        """With a fresh salt."""
        evaluated = Evaluated(fingerprints, secrets.token_bytes(WORD), secrets.token_bytes(WORD))
        return cls(round_, scores, ballot_salt(evaluated.root, evaluated.blinding), evaluated)

    def keep(self, path: Path) -> None:
        write_private_file(path, _BALLOT.dump_json(self))

    @classmethod
    def kept(cls, path: Path, round_: int) -> Ballot:
        """Raises BallotLost; and OSError where an existing file cannot be read, perhaps only for a while."""
        try:
            return _BALLOT.validate_json(path.read_bytes())
        except (FileNotFoundError, ValidationError):  # unchained: it could be quoted
            raise BallotError("BallotLost", round=round_) from None


_BALLOT = TypeAdapter(Ballot)


class Ballots:
    """One task's ballots on disk, never more than one for a round."""

    def __init__(self, home: Path, ledger: Ledger, task: int) -> None:
        self._home, self._ledger, self._task = home, ledger, task
        self._unkept: tuple[Path, Ballot] | None = None  # made, but not yet on disk

    def path(self, round_: int) -> Path:
        seed = self._ledger.tasks.round_state(self._task, round_).seat_seed
        return ballot_path(self._home, self._ledger.folder_name(self._task), round_, seed)

    def kept(self, round_: int) -> Ballot:
        """Raises BallotLost, and OSError where it cannot be read now."""
        return Ballot.kept(self.path(round_), round_)

    def of(self, round_: int, judge: Callable[[], tuple[tuple[int, ...], tuple[bytes, ...]]]) -> Ballot:
        """The round's ballot, on disk before its commitment leaves. Without one on disk, `judge` gives scores and
        fingerprints. An earlier process may have committed to a kept ballot, in a transaction that is not in a block
        yet.
        """
        path = self.path(round_)
        try:
            return Ballot.kept(path, round_)
        except BallotError:
            if self._unkept is None or self._unkept[0] != path:
                self._unkept = path, Ballot.bound(round_, *judge())
            ballot = self._unkept[1]
            ballot.keep(path)
            self._unkept = None
            return ballot


def ballot_path(home: Path, name: str, round_: int, seat_seed: bytes) -> Path:
    """`name`: the task's (`Ledger.folder_name`). A restarted local chain has the same names, but other seeds."""
    return _folder(home, name) / f"round-{round_}-{seat_seed[:8].hex()}.json"


def held_out_secret(home: Path, name: str) -> bytes:
    """The secret of a task's commitment to rows: 32 bytes, made if there is none. Raises HeldOutLost."""
    path = _folder(home, name) / HELD_OUT_FILE
    if not path.exists():
        write_private_file(path, json.dumps({"secret": secrets.token_bytes(WORD).hex()}))
    return kept_held_out_secret(home, name)


def kept_held_out_secret(home: Path, name: str) -> bytes:
    """Raises HeldOutLost."""
    path = _folder(home, name) / HELD_OUT_FILE
    try:
        secret = bytes.fromhex(json.loads(path.read_text())["secret"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # unchained: the error could quote it
        secret = b""
    if len(secret) != WORD:
        raise NodeError("HeldOutLost", path=path)
    return secret


def _folder(home: Path, name: str) -> Path:
    return home / "ballots" / name
