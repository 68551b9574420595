"""A voter's secrets on its disk, readable by its user alone: that of its rows, and each round's ballot.

Both are there before anything of them is on the chain: a lost ballot can neither be revealed nor shown to be an
evaluation's.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.keystore import write_private_file
from consilium_chain.ledger.ledger import Ledger
from consilium_zk.encoding import WORD
from consilium_zk.evaluation import ballot_salt, fingerprints_root

from consilium_client.errors import BallotError, NodeError

HELD_OUT_FILE = "held-out.json"


@dataclass(frozen=True)
class Evaluated:
    """Fingerprints of all evaluated models, by batch; the secret of their tree's salts; the blinding of its root."""

    fingerprints: tuple[bytes, ...]
    secret: bytes
    blinding: bytes

    @property
    def root(self) -> bytes:
        return fingerprints_root(self.secret, self.fingerprints)


@dataclass(frozen=True)
class Ballot:
    """Scores in millionths (`ballot_size`); the salt that hides them until the reveal; the evaluation that it binds."""

    round: int
    scores: tuple[int, ...]
    salt: bytes
    evaluated: Evaluated

    @classmethod
    def bound(cls, round_: int, scores: tuple[int, ...], fingerprints: tuple[bytes, ...]) -> Ballot:
        """With a fresh salt."""
        evaluated = Evaluated(fingerprints, secrets.token_bytes(WORD), secrets.token_bytes(WORD))
        return cls(round_, scores, ballot_salt(evaluated.root, evaluated.blinding), evaluated)

    def keep(self, path: Path) -> None:
        evaluated = {
            "fingerprints": [one.hex() for one in self.evaluated.fingerprints],
            "secret": self.evaluated.secret.hex(),
            "blinding": self.evaluated.blinding.hex(),
        }
        kept = {"round": self.round, "scores": self.scores, "salt": self.salt.hex(), "evaluated": evaluated}
        write_private_file(path, json.dumps(kept))

    @classmethod
    def kept(cls, path: Path, round_: int) -> Ballot:
        """Raises BallotLost, and OSError where it cannot be read: there is one, and it may be read later."""
        try:
            kept = json.loads(path.read_text())
            shown = kept["evaluated"]
            prints = tuple(map(bytes.fromhex, shown["fingerprints"]))
            evaluated = Evaluated(prints, bytes.fromhex(shown["secret"]), bytes.fromhex(shown["blinding"]))
            return cls(kept["round"], tuple(kept["scores"]), bytes.fromhex(kept["salt"]), evaluated)
        except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):  # unchained: it could be quoted
            raise BallotError("BallotLost", round=round_) from None


class Ballots:
    """One task's ballots on disk: of each round one, never a second."""

    def __init__(self, home: Path, ledger: Ledger, task: int) -> None:
        self._home, self._ledger, self._task = home, ledger, task
        self._unkept: tuple[Path, Ballot] | None = None  # it could not be written where it belongs

    def path(self, round_: int) -> Path:
        seed = self._ledger.tasks.round_state(self._task, round_).seat_seed
        return ballot_path(self._home, self._ledger.folder_name(self._task), round_, seed)

    def kept(self, round_: int) -> Ballot:
        """Raises BallotLost, and OSError where it cannot be read now."""
        return Ballot.kept(self.path(round_), round_)

    def of(self, round_: int, judge: Callable[[], tuple[tuple[int, ...], tuple[bytes, ...]]]) -> Ballot:
        """The round's ballot, on disk before its commitment leaves. `judge` gives scores and fingerprints where there
        is none: an earlier process may have committed to its own, in a transaction that is on no block yet.
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
    """`name`: the task's (`Ledger.place`). A local chain that was started anew has the same, but other seeds."""
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
        raise NodeError("HeldOutLost", path=path) from None
    if len(secret) != WORD:
        raise NodeError("HeldOutLost", path=path)
    return secret


def _folder(home: Path, name: str) -> Path:
    return home / "ballots" / name
