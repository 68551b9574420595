"""What a voter keeps on its disk, readable by its user alone: the secret of its rows, and each round's ballot.

Both are there before anything of them is on the chain: what is lost can neither be revealed nor shown to have been
evaluated.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from consilium_chain.keystore import write_private_file
from consilium_zk.encoding import WORD
from consilium_zk.evaluation import ballot_salt, fingerprints_root

from consilium_client.errors import BallotError, NodeError

HELD_OUT_FILE = "held-out.json"


@dataclass(frozen=True)
class Evaluated:
    """By batch the fingerprints of all models evaluated, none where none was; the secret of their tree's salts, and
    what hides its root.
    """

    fingerprints: tuple[bytes, ...]
    secret: bytes
    blinding: bytes

    @property
    def root(self) -> bytes:
        return fingerprints_root(self.secret, self.fingerprints)


@dataclass(frozen=True)
class Ballot:
    """Scores in millionths, of `ballot_size`, the salt that hides them until the reveal, and what the salt binds."""

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


def ballot_path(home: Path, place: str, round_: int, seat_seed: bytes) -> Path:
    """By the round's seed, too: of a local chain that was started anew the place (`Ledger.place`) is the same."""
    return _folder(home, place) / f"round-{round_}-{seat_seed[:8].hex()}.json"


def held_out_secret(home: Path, place: str) -> bytes:
    """Of a task's commitment to rows: made where there is none, 32 bytes. Raises HeldOutLost."""
    path = _folder(home, place) / HELD_OUT_FILE
    if not path.exists():
        write_private_file(path, json.dumps({"secret": secrets.token_bytes(WORD).hex()}))
    return kept_held_out_secret(home, place)


def kept_held_out_secret(home: Path, place: str) -> bytes:
    """Raises HeldOutLost."""
    path = _folder(home, place) / HELD_OUT_FILE
    try:
        secret = bytes.fromhex(json.loads(path.read_text())["secret"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # unchained: the error could quote it
        raise NodeError("HeldOutLost", path=path) from None
    if len(secret) != WORD:
        raise NodeError("HeldOutLost", path=path)
    return secret


def _folder(home: Path, place: str) -> Path:
    return home / "ballots" / place
