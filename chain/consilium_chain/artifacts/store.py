"""Files and blobs of tasks: files under their keccak256, blobs under their EIP-4844 versioned hash."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from consilium_core.artifacts.store import ArtifactType, ContentStore
from consilium_core.errors import StoreUnwritable
from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import Malformed
from consilium_zk.kzg import Commitment, commits_to, parse_commitment, versioned_hash
from eth_utils.crypto import keccak

from consilium_chain.errors import NotPossible

CHECK_BITS = 128  # of a random factor in the check of many blobs at once
BYTES_PER_STORED_BLOB = BYTES_PER_BLOB + 48  # and its commitment
# The largest file that a task can have named is the evidence on 256 hospitals of one cohort and 128 blobs each: 6.5 MB
# (docs/artifacts.md).
MOST_FILE_BYTES = 8 << 20
CACHE = "artifacts"  # below a home: copies from mirrors, each task's in a folder of its own


def _is_file(digest: bytes, raw: bytes) -> bool:
    return keccak(raw) == digest


def _is_blob(digest: bytes, raw: bytes) -> bool:
    """True if both halves parse, and the commitment has this hash. `_sound_blobs` checks one against the other."""
    try:
        parse_blob(raw[:BYTES_PER_BLOB])
        return versioned_hash(parse_commitment(raw[BYTES_PER_BLOB:])) == digest
    except Malformed:
        return False


def _sound_blobs(given: Mapping[bytes, bytes]) -> set[bytes]:
    """All are checked at once (`commits_to`); where that fails, each half is: one bad blob costs a few checks more."""
    if not given:
        return set()
    blobs = [Blob(raw[:BYTES_PER_BLOB]) for raw in given.values()]
    commitments = [Commitment(raw[BYTES_PER_BLOB:]) for raw in given.values()]
    if commits_to(blobs, commitments, [secrets.randbits(CHECK_BITS) for _ in blobs]):
        return set(given)
    pairs, middle = list(given.items()), len(given) // 2
    return _sound_blobs(dict(pairs[:middle])) | _sound_blobs(dict(pairs[middle:])) if middle else set()


_FILES = ArtifactType("file", MOST_FILE_BYTES, _is_file, set)
_BLOBS = ArtifactType("blob", BYTES_PER_STORED_BLOB, _is_blob, _sound_blobs)


class ArtifactStore(ContentStore):
    """Reading raises ArtifactMissing, ArtifactCorrupt, StoreMissing; writing raises StoreUnwritable."""

    def put_file(self, raw: bytes) -> bytes:
        """Stores a file; returns its keccak256 (32 bytes). Raises ArtifactTooLong."""
        digest = keccak(raw)
        if len(raw) > MOST_FILE_BYTES:
            raise NotPossible("ArtifactTooLong", digest=digest.hex(), size=len(raw), limit=MOST_FILE_BYTES)
        self.put(_FILES.name(digest), raw)
        return digest

    def get_file(self, digest: bytes) -> bytes:
        return self.get(_FILES, [digest])[digest]

    def put_blob(self, blob: Blob, commitment: Commitment) -> bytes:
        """Stores a blob with its commitment, which the caller has computed; returns the versioned hash."""
        digest = versioned_hash(commitment)
        self.put(_BLOBS.name(digest), blob + commitment)
        return digest

    def get_blobs(self, digests: Sequence[bytes]) -> list[Blob]:
        """The blobs whose KZG commitments have these versioned hashes."""
        found = self.get(_BLOBS, digests)
        return [Blob(found[digest][:BYTES_PER_BLOB]) for digest in digests]

    def pin(self, files: Sequence[bytes] = (), blobs: Sequence[bytes] = ()) -> list[StoreUnwritable]:
        """Copies artifacts to every mirror that takes files. Logs and returns the failures."""
        types = ((_FILES, files), (_BLOBS, blobs))
        return self.copy_to_mirrors(
            {type_.name(digest): raw for type_, digests in types for digest, raw in self.get(type_, digests).items()}
        )
