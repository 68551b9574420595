"""Artifacts of several places, none of which is trusted: what is damaged, slow or hostile, and what that costs."""

from __future__ import annotations

import random
import resource
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from uuid import uuid4

import pytest
from consilium_chain.artifacts.store import BYTES_PER_STORED_BLOB, MOST_FILE_BYTES, ArtifactStore
from consilium_chain.errors import NotPossible
from consilium_chain.rounds.disputes import Shown
from consilium_chain.rounds.statements import BYTES_PER_SIGNATURE, SignedStatement
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.judging_spec import MAX_PARTICIPANTS
from consilium_chain.tasks.limits import MAX_BLOBS
from consilium_core.artifacts import backends
from consilium_core.artifacts.backends import MirrorUrl, parse_location, parse_locations
from consilium_core.errors import (
    ArtifactCorrupt,
    ArtifactMissing,
    ConfigInvalid,
    MirrorUnsupported,
    StoreMissing,
    StoreUnwritable,
)
from consilium_core.logs import log_to
from consilium_core.visible_text import without_secrets
from consilium_zk.blobs import from_scalars
from consilium_zk.disputes import Statement
from consilium_zk.kzg import Commitment, commit_by_points, versioned_hash
from consilium_zk.secret_shares import share_bundle_bytes
from eth_utils.crypto import keccak
from file_server import FileServer
from fsspec.asyn import AsyncFileSystem
from fsspec.registry import _registry
from hypothesis import given, settings
from hypothesis import strategies as st
from raised_faults import raises_fault

BLOBS = [from_scalars([number + 1, *[0] * 4095]) for number in range(24)]
COMMITMENTS = [commit_by_points(blob) for blob in BLOBS]
FILES = [b"a task", b"", b"a share bundle" * 100]
SECRET = "hush-hush"

Told = list[tuple[str, dict[str, Any]]]


def fill(store: ArtifactStore, blobs: int = len(BLOBS)) -> tuple[list[bytes], list[bytes]]:
    """Digests of the files and of the blobs."""
    pairs = list(zip(BLOBS, COMMITMENTS, strict=True))[:blobs]
    return [store.put_file(raw) for raw in FILES], [store.put_blob(*pair) for pair in pairs]


def empty(folder: Path) -> Path:
    for path in folder.iterdir():
        path.unlink()
    return folder


@pytest.fixture
def told() -> Iterator[Told]:
    heard: Told = []
    with log_to(lambda event, fields: heard.append((event, dict(fields)))):
        yield heard


@pytest.fixture
def mirrors(tmp_path: Path) -> Iterator[tuple[FileServer, FileServer]]:
    with FileServer(tmp_path / "first") as first, FileServer(tmp_path / "second") as second:
        for server in (first, second):
            server.folder.mkdir()
        yield first, second


def url(server: FileServer) -> MirrorUrl:
    return MirrorUrl(server.url)


# What is damaged

Damage = Callable[[bytes, random.Random], bytes]


def flip(raw: bytes, chance: random.Random) -> bytes:
    changed = bytearray(raw or b"x")
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


DAMAGES: dict[str, Damage] = {
    "one bit": flip,
    "cut off": lambda raw, chance: raw[: chance.randrange(len(raw))] if raw else b"x",
    "lengthened": lambda raw, chance: raw + chance.randbytes(chance.randint(1, 200)),
    "nothing": lambda raw, chance: b"" if raw else b"x",
    "of another": lambda raw, chance: BLOBS[-1] + COMMITMENTS[-1] if len(raw) > 1000 else b"a task, almost",
}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FileServer, FileServer]]:
    """Both with all artifacts."""
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    with FileServer(folders[0]) as first, FileServer(folders[1]) as second:
        for folder in folders:
            fill(ArtifactStore(folder), 5)
        yield first, second


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32), damage=st.sampled_from(sorted(DAMAGES)), which=st.integers(0, 7))
def test_damage_is_noticed_and_costs_that_artifact_once_more(
    two: tuple[FileServer, FileServer], seed: int, damage: str, which: int
) -> None:
    first, second = two
    name = sorted(path.name for path in first.folder.iterdir())[which]
    good = (first.folder / name).read_bytes()
    files, blobs = [keccak(raw) for raw in FILES], [versioned_hash(point) for point in COMMITMENTS[:5]]
    (first.folder / name).write_bytes(DAMAGES[damage](good, random.Random(seed)))
    first.asked.clear()
    second.asked.clear()
    try:
        with TemporaryDirectory() as own, log_to(lambda *_: None):
            store = ArtifactStore([Path(own), url(first), url(second)])
            for _ in range(2):  # the second time, of what is kept
                assert [store.get_file(digest) for digest in files] == FILES
                assert store.get_blobs([*blobs, blobs[0]]) == [*BLOBS[:5], BLOBS[0]]
            assert (Path(own) / name).read_bytes() == good
        assert set(first.asked.values()) == {1}
        assert (len(first.asked), dict(second.asked)) == (8, {name: 1})
    finally:
        (first.folder / name).write_bytes(good)


@settings(max_examples=40)
@given(seed=st.integers(0, 1 << 32), damage=st.sampled_from(sorted(DAMAGES)), which=st.integers(0, 7))
def test_a_damaged_copy_of_ones_own_is_replaced(
    two: tuple[FileServer, FileServer], seed: int, damage: str, which: int
) -> None:
    mirror = two[1]
    name = sorted(path.name for path in mirror.folder.iterdir())[which]
    mirror.asked.clear()
    with TemporaryDirectory() as own, log_to(lambda *_: None):
        files, blobs = fill(ArtifactStore(Path(own)), 5)
        good = (Path(own) / name).read_bytes()
        (Path(own) / name).write_bytes(DAMAGES[damage](good, random.Random(seed)))
        with pytest.raises(ArtifactCorrupt, match=name):
            read_all(ArtifactStore(Path(own)), files, blobs)
        read_all(ArtifactStore([Path(own), url(mirror)]), files, blobs)
        assert (Path(own) / name).read_bytes() == good
    assert dict(mirror.asked) == {name: 1}


def read_all(store: ArtifactStore, files: list[bytes], blobs: list[bytes]) -> None:
    assert [store.get_file(digest) for digest in files] == FILES
    assert store.get_blobs(blobs) == BLOBS[: len(blobs)]


def test_exchanged_artifacts_are_noticed_both(tmp_path: Path, told: Told) -> None:
    files, blobs = fill(ArtifactStore(tmp_path / "a"))
    fill(ArtifactStore(tmp_path / "b"))
    for one, other in (
        (f"file-{files[0].hex()}", f"file-{files[2].hex()}"),
        tuple(f"blob-{b.hex()}" for b in blobs[:2]),
    ):
        first, second = tmp_path / "a" / one, tmp_path / "a" / other
        first.rename(tmp_path / "aside")
        second.rename(first)
        (tmp_path / "aside").rename(second)
    read_all(ArtifactStore([tmp_path / "a", tmp_path / "b"]), files, blobs)
    assert [(event, fields["place"], fields["error"], fields["artifacts"]) for event, fields in told] == [
        ("place-failed", str(tmp_path / "a"), "other bytes", number) for number in (1, 1, 2)
    ]
    read_all(ArtifactStore(tmp_path / "a"), files, blobs)  # healed


def test_a_blob_with_anothers_commitment_is_noticed_among_many(tmp_path: Path, told: Told) -> None:
    files, blobs = fill(ArtifactStore(tmp_path / "a"))
    fill(ArtifactStore(tmp_path / "b"))
    (tmp_path / "a" / f"blob-{blobs[7].hex()}").write_bytes(BLOBS[8] + COMMITMENTS[7])
    read_all(ArtifactStore([tmp_path / "a", tmp_path / "b"]), files, blobs)
    assert [fields["artifact"] for _, fields in told] == [f"blob-{blobs[7].hex()}"]


# In which order


def test_the_first_that_has_it_is_the_last_that_is_asked(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer], told: Told
) -> None:
    first, second = mirrors
    files, blobs = fill(ArtifactStore(second.folder))
    fill(ArtifactStore(tmp_path / "third"))
    read_all(ArtifactStore([url(first), url(second), tmp_path / "third"]), files, blobs)
    assert first.asked == second.asked
    assert {fields["place"] for _, fields in told} == {without_secrets(first.url)}
    empty(second.folder)
    with pytest.raises(ArtifactMissing) as missing:
        ArtifactStore([url(first), url(second)]).get_file(files[0])
    assert all(without_secrets(server.url) in str(missing.value) for server in mirrors)


def test_what_was_fetched_is_not_fetched_again_wherever_the_reader_keeps_it(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer]
) -> None:
    mirror, _ = mirrors
    files, blobs = fill(ArtifactStore(mirror.folder))
    stores: list[Callable[[], ArtifactStore]] = [
        lambda: ArtifactStore([tmp_path / "own", url(mirror)]),
        lambda: ArtifactStore([url(mirror)], tmp_path / "cache"),
        lambda: ArtifactStore([tmp_path / "mounted", url(mirror)], passing=tmp_path / "passing"),
    ]
    for stored in stores:
        mirror.asked.clear()
        with log_to(lambda *_: None):
            for store in (stored(), stored()):
                for _ in range(2):
                    read_all(store, files, blobs)
        assert set(mirror.asked.values()) == {1}
    uncached = ArtifactStore([url(mirror)])
    read_all(uncached, files, blobs)
    assert set(mirror.asked.values()) == {2}


def test_what_is_kept_in_passing_is_no_copy_of_a_folder_and_can_be_forgotten(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer]
) -> None:
    mirror, _ = mirrors
    files, blobs = fill(ArtifactStore(mirror.folder))
    mounted = tmp_path / "mounted"
    shutil.copytree(mirror.folder, mounted)
    passing = tmp_path / "passing" / "task"
    of_a_folder = ArtifactStore([mounted, url(mirror)], passing=passing)
    read_all(of_a_folder, files, blobs)
    assert (mirror.asked, passing.exists()) == ({}, False)

    of_a_mirror = ArtifactStore([url(mirror)], passing=passing)
    read_all(of_a_mirror, files, blobs)
    assert len(list(passing.iterdir())) == len(files) + len(blobs)
    for store in (of_a_mirror, of_a_folder, ArtifactStore(mounted)):
        store.forget()
    assert not passing.exists()
    assert len(list(mounted.iterdir())) == len(files) + len(blobs)
    read_all(of_a_mirror, files, blobs)
    assert set(mirror.asked.values()) == {2}


def test_cut_off_in_the_middle_it_goes_on_where_it_was(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer], told: Told
) -> None:
    mirror, _ = mirrors
    _, blobs = fill(ArtifactStore(mirror.folder))
    mirror.stop_after = 18
    with pytest.raises(StoreMissing, match="status 503"):
        ArtifactStore([tmp_path / "own", url(mirror)]).get_blobs(blobs)
    kept = {path.name for path in (tmp_path / "own").iterdir()}
    assert len(kept) == 18
    mirror.stop_after = None
    mirror.asked.clear()
    assert ArtifactStore([tmp_path / "own", url(mirror)]).get_blobs(blobs) == BLOBS
    assert set(mirror.asked) == {f"blob-{digest.hex()}" for digest in blobs} - kept


# What is slow or hostile

BAD = ("hang", "drip", "send_for_ever", "cut_off", "refuse", "compress")
CONCLUSIVE = ("send_for_ever", "compress")


@pytest.mark.parametrize("how", BAD)
def test_a_mirror_that_misbehaves_costs_little_and_another_is_asked(
    mirrors: tuple[FileServer, FileServer], told: Told, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how in ("hang", "drip"):
        monkeypatch.setattr(backends, "TIMEOUT", 6.0)  # the good one must keep it, too, on a busy machine
    bad, good = mirrors
    bad.behaviour = getattr(bad, how)
    files, blobs = fill(ArtifactStore(good.folder))
    store = ArtifactStore([url(bad), url(good)])
    began = time.monotonic()
    read_all(store, files, blobs)
    assert time.monotonic() - began < 30  # one of its timeouts, not one for each artifact
    assert {fields["place"] for _, fields in told} == {without_secrets(bad.url)}
    if how in ("hang", "drip"):  # asked once, with all that it was asked for side by side, and last from then on
        assert sum(bad.asked.values()) == 1
        monkeypatch.setattr(backends, "TIMEOUT", 0.5)  # nobody has to keep it any more
    # Alone it has shown nothing, unless it did send something else.
    expected = ArtifactCorrupt if how in CONCLUSIVE else StoreMissing
    with pytest.raises(expected, match=without_secrets(bad.url)):
        ArtifactStore([url(bad)]).get_file(files[0])
    empty(good.folder)
    with pytest.raises(expected):
        ArtifactStore([url(good), url(bad)]).get_blobs(blobs)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_mirror_sends_nobody_elsewhere(mirrors: tuple[FileServer, FileServer], status: int) -> None:
    sender, inside = mirrors
    files, _ = fill(ArtifactStore(inside.folder))
    sender.behaviour = lambda request, name: request.give(status, b"", Location=f"{inside.url}/{name}")
    with pytest.raises(StoreMissing, match=f"status {status}"):
        ArtifactStore([url(sender)]).get_file(files[0])
    assert not inside.asked


def test_what_nobody_has_is_missing_only_if_all_have_answered(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer]
) -> None:
    """Voters act upon what is missing or corrupt: a mirror must not make them, while another does not answer."""
    first, second = mirrors
    lost = keccak(b"lost")
    (first.folder / f"file-{lost.hex()}").write_bytes(b"found")
    nobody = MirrorUrl(f"http://127.0.0.1:{free_port()}")
    cases: list[tuple[list[Path | MirrorUrl], type[Exception]]] = [
        ([url(second), tmp_path], ArtifactMissing),
        ([url(second), url(first)], ArtifactCorrupt),
        ([url(first), nobody], StoreMissing),
        ([nobody, url(first), url(second)], StoreMissing),
        ([tmp_path / "not mounted", url(first)], StoreMissing),
        ([nobody], StoreMissing),
    ]
    for several, error in cases:
        with pytest.raises(error):
            ArtifactStore(several).get_file(lost)


# Writing


def test_writers_at_the_same_time_leave_nothing_half_written(tmp_path: Path) -> None:
    digests = fill(ArtifactStore(tmp_path), 6)[1]

    def work(number: int) -> None:
        store = ArtifactStore(tmp_path)
        for turn in range(15):
            index = (number + turn) % 6
            assert store.put_blob(BLOBS[index], COMMITMENTS[index]) == digests[index]
            assert store.get_blobs(digests) == BLOBS[:6]

    with ThreadPoolExecutor(6) as several:
        list(several.map(work, range(6)))
    assert len(list(tmp_path.iterdir())) == 9
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o644}  # for whoever serves them


@contextmanager
def disk_full() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_told_and_leaves_nothing_behind(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer], told: Told
) -> None:
    mirror, _ = mirrors
    _, blobs = fill(ArtifactStore(mirror.folder))
    store = ArtifactStore([tmp_path / "own", url(mirror)])
    with disk_full():
        with pytest.raises(StoreUnwritable, match="File too large"):
            store.put_blob(BLOBS[0], COMMITMENTS[0])
        assert store.get_blobs(blobs) == BLOBS  # a reader goes on
    assert list((tmp_path / "own").iterdir()) == []
    assert [event for event, _ in told] == ["not-kept"]
    assert store.not_kept is not None


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", MirrorUrl(f"https://mirror.example/{SECRET}")):
        with pytest.raises(StoreUnwritable) as refused:
            ArtifactStore([place]).put_file(b"a task")
        assert SECRET not in str(refused.value)
    with raises_fault(NotPossible, "ArtifactTooLong"):
        ArtifactStore(tmp_path / "own").put_file(bytes(MOST_FILE_BYTES + 1))


def test_pinned_artifacts_are_in_every_mirror_that_can_be_written(
    tmp_path: Path, mirrors: tuple[FileServer, FileServer], told: Told
) -> None:
    memory = MirrorUrl(f"memory://{uuid4().hex}")
    (tmp_path / "file").write_text("")
    store = ArtifactStore([tmp_path / "own", tmp_path / "copy", url(mirrors[0]), memory, tmp_path / "file"])
    files, blobs = fill(store)
    failed = store.pin(files, blobs)
    assert [(error.where, event, fields["place"]) for error, (event, fields) in zip(failed, told, strict=True)] == [
        (str(tmp_path / "file"), "not-pinned", str(tmp_path / "file"))
    ]
    for copy in (tmp_path / "copy", memory):
        read_all(ArtifactStore([copy]), files, blobs)


def test_the_largest_artifacts_that_a_task_can_name_are_within_what_is_read() -> None:
    """256 hospitals in one cohort, 128 blobs each."""
    signed = SignedStatement(Statement(bytes(32), bytes(32)).to_wire(), bytes(BYTES_PER_SIGNATURE))
    everybody = range(MAX_PARTICIPANTS)
    uploads = [bytes([number % 256]) * 32 for number in range(MAX_BLOBS)]
    points = dict.fromkeys(everybody, [Commitment(bytes(48))] * MAX_BLOBS)
    shown = Shown(
        dict.fromkeys(everybody, signed), dict.fromkeys(everybody, uploads), points, dict.fromkeys(everybody, 1)
    )
    assert MOST_FILE_BYTES // 2 < len(shown.to_file()) <= MOST_FILE_BYTES
    assert share_bundle_bytes(MAX_PARTICIPANTS - 1) < BYTES_PER_STORED_BLOB


# Places


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/srv/artifacts", Path("/srv/artifacts")),
        ("store", Path("store")),
        ("file:///srv/my%20artifacts", Path("/srv/my artifacts")),
        ("https://mirror.example/a/", "https://mirror.example/a"),
        ("HTTP://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/a", "http://[::1]:8000/a"),
        ("s3://Bucket/a", "s3://Bucket/a"),
        (
            "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPBdG",
            "ipfs://QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPBdG",
        ),
    ],
)
def test_folders_and_urls_are_places(text: str, place: object) -> None:
    assert parse_location(text) == place
    assert parse_location(parse_location(text)) == place


NONSENSE = [
    "", "a\0b", 7, None, "ftp://mirror.example", "file:///a%00b", f"{SECRET}/https://mirror.example",
    "zip://a::https://mirror.example", "https://", "https:///a", "file://host/a",
    f"https://user:{SECRET}@mirror.example", f"https://{SECRET}@mirror.example/a", f"https://mirror.example/?key={SECRET}",
    f"https://mirror.example:{SECRET}/", f"s3://key:{SECRET}@bucket", f"https://mirror.example/#{SECRET}",
    f"https://mirror.example/{SECRET} ", f"https://[{SECRET}/", f"github://{SECRET}@example",
]  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_no_place_and_is_not_repeated(text: Any) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse_locations([text])
    assert SECRET not in str(refused.value)


@given(text=st.text() | st.text().map("https://".__add__))
def test_whatever_is_given_is_a_place_or_refused(text: str) -> None:
    try:
        place = parse_location(text)
    except ValueError:
        return
    assert parse_location(place) == place


def test_a_key_in_a_path_is_never_shown(tmp_path: Path, mirrors: tuple[FileServer, FileServer], told: Told) -> None:
    bad, good = mirrors
    files, _ = fill(ArtifactStore(good.folder))
    keyed = [MirrorUrl(f"{server.url}/{SECRET}") for server in mirrors]
    said = []
    for behaviour in (bad.serve, bad.refuse, bad.cut_off):
        bad.behaviour = behaviour
        assert ArtifactStore(keyed).get_file(files[0]) == FILES[0]
        with pytest.raises((ArtifactMissing, StoreMissing)) as error:
            ArtifactStore(keyed[:1]).get_file(files[0])
        said.append(str(error.value))
    assert len(told) == 3
    assert without_secrets(bad.url) in said[0]
    assert SECRET not in f"{said} {told}"


def test_a_protocol_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)  # as where it is not installed
    with pytest.raises(MirrorUnsupported, match="pip install s3fs"):
        ArtifactStore([Path("own"), MirrorUrl("s3://bucket/a")])


CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"


def test_ipfs_is_read_by_a_gateway_that_is_believed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pinned" / "ipfs" / CID
    digest = ArtifactStore(folder).put_file(FILES[0])
    other = ArtifactStore(folder).put_file(FILES[1])
    (folder / f"file-{other.hex()}").write_bytes(b"evil")
    with FileServer(folder) as gateway:
        monkeypatch.setenv("IPFS_GATEWAY", gateway.url)
        store = ArtifactStore(parse_locations([tmp_path / "own", f"ipfs://{CID}"]))
        (tmp_path / "own").mkdir()
        assert store.get_file(digest) == FILES[0]
        assert gateway.paths == [f"/artifacts/ipfs/{CID}/file-{digest.hex()}"]
        with pytest.raises(ArtifactCorrupt, match="ipfs://"):
            store.get_file(other)
        with pytest.raises(ArtifactMissing):
            store.get_file(bytes(32))


@pytest.mark.parametrize("gateway", ["/srv/ipfs", "s3://bucket", f"https://me:{SECRET}@gateway.example", "gateway"])
def test_an_ipfs_gateway_is_an_http_url(gateway: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPFS_GATEWAY", gateway)
    with pytest.raises(ConfigInvalid, match="IPFS_GATEWAY") as refused:
        ArtifactStore([MirrorUrl(f"ipfs://{CID}")])
    assert SECRET not in str(refused.value)


class Bucket(AsyncFileSystem):  # type: ignore[misc]
    """As s3fs is one: asynchronous, with ranges, and errors whose texts hold what nobody should read."""

    protocol = "s3"
    objects: ClassVar[dict[str, bytes]] = {}
    fault: ClassVar[Exception | None] = None

    async def _cat_file(self, path: str, start: int, end: int, **_: object) -> bytes:
        if self.fault is not None:
            raise self.fault
        try:
            return self.objects[path][start:end]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def _pipe_file(self, path: str, value: bytes, **_: object) -> None:
        if self.fault is not None:
            raise self.fault
        self.objects[path] = value


def test_an_object_store_is_a_place_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_registry, "s3", Bucket)  # in place of s3fs, which needs a server
    place = MirrorUrl("s3://bucket/a")
    store = ArtifactStore([place])
    files, blobs = fill(store)
    read_all(store, files, blobs)
    path = f"{place}/blob-{blobs[3].hex()}"
    Bucket.objects[path] += b"x"
    with pytest.raises(ArtifactCorrupt, match=blobs[3].hex()):
        store.get_blobs(blobs)
    for fault in (PermissionError(SECRET), OSError(SECRET), RuntimeError(SECRET)):
        monkeypatch.setattr(Bucket, "fault", fault)
        with pytest.raises(StoreMissing) as unread:
            ArtifactStore([place]).get_file(files[0])
        with pytest.raises(StoreUnwritable) as unwritten:
            ArtifactStore([place]).put_file(b"a task")
        assert SECRET not in f"{unread.value} {unwritten.value}"
