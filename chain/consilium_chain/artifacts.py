"""Content-addressed files: task files under their keccak256, blobs under their EIP-4844 versioned hash.

The store needs no trust: whoever reads, checks the bytes against the name that the chain gave.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path

from consilium_zk.blobs import Blob, parse_blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.errors import BlobMalformed, PointMalformed
from consilium_zk.kzg import Commitment, commit, commits_to, parse_commitment, versioned_hash
from eth_utils.crypto import keccak

from consilium_chain.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing

CHECK_BITS = 128  # of a random factor in the check of many blobs at once


class ArtifactStore:
    """Artifacts in a folder. Writes are atomic and repeatable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put_file(self, raw: bytes) -> bytes:
        """Stores a file; returns its keccak256 (32 bytes)."""
        digest = keccak(raw)
        self._write(f"file-{digest.hex()}", raw)
        return digest

    def get_file(self, digest: bytes) -> bytes:
        raw = self._read(f"file-{digest.hex()}")
        if keccak(raw) != digest:
            raise ArtifactCorrupt(digest.hex(), str(self._folder))
        return raw

    def put_blob(self, blob: Blob, commitment: Commitment) -> bytes:
        """Stores a blob with its commitment, which the caller has computed; returns the versioned hash."""
        digest = versioned_hash(commitment)
        self._write(f"blob-{digest.hex()}", blob + commitment)
        return digest

    def get_blobs(self, digests: Sequence[bytes]) -> list[Blob]:
        """The blobs whose KZG commitments have these versioned hashes. Raises ArtifactMissing, ArtifactCorrupt.

        All are checked at once (`commits_to`); only where that fails is each looked at alone, to name the bad one.
        """
        pairs = [self._read_blob(digest) for digest in digests]
        blobs, commitments = [blob for blob, _ in pairs], [commitment for _, commitment in pairs]
        factors = [secrets.randbits(CHECK_BITS) for _ in pairs]
        if not commits_to(blobs, commitments, factors):
            wrong = next(d for d, (blob, commitment) in zip(digests, pairs, strict=True) if commit(blob) != commitment)
            raise ArtifactCorrupt(wrong.hex(), str(self._folder))
        return blobs

    def _read_blob(self, digest: bytes) -> tuple[Blob, Commitment]:
        raw = self._read(f"blob-{digest.hex()}")
        try:
            blob, commitment = parse_blob(raw[:BYTES_PER_BLOB]), parse_commitment(raw[BYTES_PER_BLOB:])
        except (BlobMalformed, PointMalformed) as error:
            raise ArtifactCorrupt(digest.hex(), str(self._folder)) from error
        if versioned_hash(commitment) != digest:
            raise ArtifactCorrupt(digest.hex(), str(self._folder))
        return blob, commitment

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError as error:
            if not self._folder.is_dir():
                raise StoreMissing(str(self._folder)) from error
            raise ArtifactMissing(name, str(self._folder)) from error

    def _write(self, name: str, raw: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        os.replace(temporary, self._folder / name)
