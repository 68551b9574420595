"""Artifacts in S3: fsspec's own client against a server on loopback that speaks S3's protocol."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import httpx
import pytest
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.rpc.local_node import free_port
from consilium_core.artifacts.backends import parse_locations
from consilium_core.children import child_environment
from consilium_core.errors import ArtifactCorrupt, ArtifactMissing, StoreMissing
from consilium_zk.blobs import Blob
from consilium_zk.constants import BYTES_PER_BLOB
from consilium_zk.kzg import commit

SECRET = "hunter2hunter2"
PLACE = "s3://consilium/artifacts"


class Server:
    def __init__(self, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{(port := free_port())}"
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log,
                env=child_environment(),
            )  # fmt: skip
        end = time.monotonic() + 60
        while True:
            try:
                httpx.get(self.url, timeout=5)
                return
            except httpx.HTTPError:
                assert self.process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end
                time.sleep(0.1)

    def overwrite(self, name: str, raw: bytes) -> None:
        client = boto3.client("s3", endpoint_url=self.url)
        client.put_object(Bucket="consilium", Key=f"artifacts/{name}", Body=raw)
        client.close()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """With an empty bucket; where it is and who asks, the environment says, as AWS' own tools read it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    running = Server(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
    try:
        client = boto3.client("s3", endpoint_url=running.url)
        client.create_bucket(Bucket="consilium")
        client.close()
        yield running
    finally:
        running.stop()


def reader(folder: Path, name: str) -> ArtifactStore:
    """Somebody with an empty folder, and the bucket as a mirror."""
    own = folder / name
    own.mkdir()
    return ArtifactStore(parse_locations([own, PLACE]))


def test_what_is_pinned_in_s3_is_read_by_others_and_kept_by_them(server: Server, tmp_path: Path) -> None:
    blobs = [Blob(bytes([0, *[k] * 31]) * (BYTES_PER_BLOB // 32)) for k in (1, 2, 3)]
    writer = reader(tmp_path, "writer")
    file = writer.put_file(b"a task")
    digests = [writer.put_blob(blob, commit(blob)) for blob in blobs]
    assert writer.pin([file], digests) == []
    other = reader(tmp_path, "other")
    assert other.get_file(file) == b"a task"
    assert other.get_blobs(digests) == blobs
    server.stop()
    assert other.get_blobs(digests) == blobs  # nothing is fetched twice
    with pytest.raises(StoreMissing, match="s3://consilium") as refused:
        reader(tmp_path, "late").get_file(file)
    assert SECRET not in str(refused.value)


def test_s3_as_the_place_that_is_written_to(server: Server, tmp_path: Path) -> None:
    store = ArtifactStore(parse_locations([PLACE]), tmp_path / "cache")
    digest = store.put_file(b"a task")
    assert store.unreachable() == [None]
    assert reader(tmp_path, "other").get_file(digest) == b"a task"
    with pytest.raises(ArtifactMissing):
        store.get_file(bytes(32))


def test_changed_object_costs_itself_alone(server: Server, tmp_path: Path) -> None:
    writer = reader(tmp_path, "writer")
    good, bad = writer.put_file(b"good"), writer.put_file(b"bad")
    assert writer.pin([good, bad]) == []
    server.overwrite(f"file-{bad.hex()}", b"evil")
    other = reader(tmp_path, "other")
    assert other.get_file(good) == b"good"
    with pytest.raises(ArtifactCorrupt, match=bad.hex()):
        other.get_file(bad)
    assert writer.pin([bad]) == []  # and is made good by who has it
    assert other.get_file(bad) == b"bad"


def test_pin_says_what_could_not_be_copied(server: Server, tmp_path: Path) -> None:
    writer = reader(tmp_path, "writer")
    digest = writer.put_file(b"a task")
    server.stop()
    (failed,) = writer.pin([digest])
    assert "s3://consilium" in str(failed)
    assert SECRET not in str(failed)
