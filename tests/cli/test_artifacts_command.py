"""`consilium artifacts`: a copy of all that the chain names of a task, made of mirrors nobody trusts, and checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from accused_driver import Accused, FalseUpload, accused
from chain_driver import LocalChain
from consilium_chain.artifacts.public_record import artifacts_of, shown_uploads
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.structs import Role
from consilium_chain.rpc.local_node import free_port
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.transport_keys import TransportKey
from consilium_cli.main import app
from file_server import FileServer
from typer.testing import CliRunner
from voter_driver import FiledTask


@pytest.fixture(scope="module")
def published(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> FiledTask:
    """Round 0 of it, by digest."""
    task = FiledTask(local_chain, tmp_path_factory.mktemp("published"))
    (voter,) = local_chain.staked(Role.VOTER, 1, 10_000 * TOKEN)
    voter.voter.join(task.task)
    task.aggregator.aggregator.join(task.task)
    task.nodes[0].hospital.join(task.task, 8, TransportKey.generate())
    return task.to_drawing()


@pytest.fixture(scope="module")
def broken(local_chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Accused:
    """A masked round whose sum does not hold: with share bundles, evidence and uploads."""
    return accused(local_chain, tmp_path_factory.mktemp("broken"), FalseUpload)


def artifacts(*arguments: object) -> tuple[int, str]:
    ran = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["artifacts", *map(str, arguments)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        return 1, f"{type(ran.exception).__name__}: {ran.exception}"
    return ran.exit_code, ran.output


def fetch(chain: LocalChain, task: int, to: Path, *sources: object) -> tuple[int, str]:
    book = tmp_book(to)
    chain.deployment.write(book)
    given = [word for source in sources for word in ("--from", source)]
    return artifacts("fetch", task, *given, "--to", to, "--rpc", chain.node.url, "--address-book", book)


def tmp_book(to: Path) -> Path:
    return next(folder for folder in to.parents if folder.is_dir()) / "book.json"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_blobs_and_task_file_are_fetched_once_and_from_whoever_has_them(published: FiledTask, tmp_path: Path) -> None:
    whole = Path(shutil.copytree(published.rows.parent / "artifacts", tmp_path / "whole"))
    damaged = Path(shutil.copytree(whole, tmp_path / "damaged"))
    for path in damaged.glob("blob-*"):
        path.write_bytes(path.read_bytes()[:-100] + bytes(100))
    named = artifacts_of(published.operator, published.task)
    assert (len(named.files), len(named.blobs)) == (1, published.params.statistics_blobs)
    with FileServer(damaged) as first, FileServer(whole) as second:
        told = fetch(published.chain, published.task, tmp_path / "copy", f"{first.url}/hush", second.url)
        assert told[0] == 0, told
        assert "2 of 2 artifacts" in told[1]
        assert "other bytes" in told[1]
        assert "hush" not in told[1]
        assert (names(tmp_path / "copy"), set(second.asked)) == (names(whole), {p.name for p in whole.glob("blob-*")})
        first.asked.clear()
        second.asked.clear()
        assert fetch(published.chain, published.task, tmp_path / "copy", first.url, second.url)[0] == 0
        assert not first.asked | second.asked
    assert artifacts("check", whole, tmp_path / "copy") == (0, "4 of 4 artifacts match their names\n")
    code, said = artifacts("check", whole, damaged)
    assert (code, "3 of 4" in said, f"blob-{named.blobs[0].hex()}" in said) == (1, True, True)


def test_share_bundles_evidence_and_uploads_are_fetched(broken: Accused, tmp_path: Path) -> None:
    round_ = broken.round
    folder = round_.settings[0].artifacts[0]
    assert isinstance(folder, Path)
    named = artifacts_of(round_.aggregator, round_.task)
    (evidence,) = named.evidence
    uploads = shown_uploads(round_.store.get_file(evidence))
    assert (len(named.files), len(uploads), named.blobs) == (1 + 4 + 1, 4, ())
    assert fetch(round_.chain, round_.task, tmp_path / "copy", folder)[0] == 0
    assert names(tmp_path / "copy") == {f"file-{digest.hex()}" for digest in (*named.files, *uploads)}
    copy = ArtifactStore(tmp_path / "copy")
    assert [copy.get_file(digest) for digest in uploads] == [round_.store.get_file(digest) for digest in uploads]


def test_what_nobody_has_is_named_and_the_rest_is_there(broken: Accused, tmp_path: Path) -> None:
    round_ = broken.round
    source = Path(shutil.copytree(str(round_.settings[0].artifacts[0]), tmp_path / "source"))
    lost = artifacts_of(round_.aggregator, round_.task).files[2].hex()
    (source / f"file-{lost}").unlink()
    code, said = fetch(round_.chain, round_.task, tmp_path / "copy", source)
    assert (code, "9 of 10 artifacts" in said, f"ArtifactMissing: artifact file-{lost}" in said) == (1, True, True)


def test_a_fetch_that_is_cut_off_is_an_error_and_goes_on_later(broken: Accused, tmp_path: Path) -> None:
    round_ = broken.round
    source = round_.settings[0].artifacts[0]
    nobody = f"http://127.0.0.1:{free_port()}"
    code, said = fetch(round_.chain, round_.task, tmp_path / "copy", nobody)
    assert (code, said.startswith(f"StoreMissing: the artifact store does not answer: {nobody} (")) == (1, True)
    with FileServer(Path(str(source))) as mirror:
        mirror.stop_after = 5
        assert fetch(round_.chain, round_.task, tmp_path / "copy", mirror.url)[0] == 1
        kept = names(tmp_path / "copy")
        assert len(kept) == 5
        mirror.stop_after = None
        mirror.asked.clear()
        assert fetch(round_.chain, round_.task, tmp_path / "copy", mirror.url)[0] == 0
        assert (set(mirror.asked) & kept, len(names(tmp_path / "copy"))) == (set(), 10)


def test_a_copy_that_cannot_be_written_is_an_error(published: FiledTask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    given = published.rows.parent / "artifacts"
    code, said = fetch(published.chain, published.task, tmp_path / "file" / "copy", given)
    assert (code, "StoreUnwritable" in said) == (1, True)


def test_nonsense_is_a_wrong_flag_that_is_not_repeated(published: FiledTask, tmp_path: Path) -> None:
    code, said = fetch(published.chain, published.task, tmp_path / "copy", "https://user:hush@mirror.example")
    assert (code, "credentials" in said, "hush" in said) == (2, True, False)
