"""Downloads a data set's files: with progress, retried and resumed, and kept only if their SHA-256 is the known one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from consilium_lab.data.building import arrays_sha256, build_medquad, build_pneumonia
from consilium_lab.data.publishers import Download, Publisher
from consilium_lab.demo.options import DataSet
from consilium_lab.errors import LabError

TRIES = 4
TIMEOUT = 30.0  # seconds without a byte
LONGEST_WAIT = 8.0  # seconds between two tries
DOWNLOADS = "downloads"  # folder of files that a data set is built from
# Arguments: the downloads in the publisher's order, and the file to write.
BUILD: dict[DataSet, Callable[..., None]] = {DataSet.MEDQUAD: build_medquad, DataSet.PNEUMONIA: build_pneumonia}

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, its bytes so far, and all its bytes if the server says so."""


def fetch(name: DataSet, publisher: Publisher, folder: Path, progress: Progress) -> list[Path]:
    """Puts the files that the demo reads into a folder, and returns them. Files that are there and right stay.

    Raises LabError (DataUnreachable, DataWrong, DataUnreadable): no file with wrong content is left in `folder`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}-licence.txt").write_text(publisher.terms + "\n", encoding="utf-8")
    if publisher.file is None or publisher.built is None:
        return [_downloaded(name, publisher, one, folder, progress) for one in publisher.downloads]
    output = folder / publisher.file
    if output.exists() and _is_right(output, publisher.built):
        return [output]
    parts = [_downloaded(name, publisher, one, folder / DOWNLOADS, progress) for one in publisher.downloads]
    draft = output.with_name(f"draft-{output.name}")
    try:
        BUILD[name](*parts, draft)
        if (found := _sha256(draft)) != publisher.built:
            source = publisher.sources
            raise LabError("DataWrong", file=output.name, source=source, found=found, wanted=publisher.built)
        draft.replace(output)
    except LabError:
        for part, one in zip(parts, publisher.downloads, strict=True):
            if one.sha256 is None:  # the next call downloads it again
                part.unlink(missing_ok=True)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return [output]


def _is_right(path: Path, wanted: str) -> bool:
    try:
        return _sha256(path) == wanted
    except LabError:  # a damaged one is built again
        return False


def _sha256(path: Path) -> str:
    if path.suffix == ".npz":
        return arrays_sha256(path)
    return _bytes_sha256(path)


def _bytes_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _downloaded(name: DataSet, publisher: Publisher, one: Download, folder: Path, progress: Progress) -> Path:
    """The file, from the first address that gives the right one."""
    path = folder / one.name
    if path.exists() and one.sha256 in (None, _bytes_sha256(path)):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    faults: list[LabError] = []
    for url in one.urls:
        part = path.with_name(f"{path.name}.part")
        try:
            _retried(url, part, one, progress)
        except LabError:
            part.unlink()
            raise
        except httpx.HTTPError as error:
            faults.append(
                LabError("DataUnreachable", url=url, why=_why(error), data=name, folder=folder, file=one.name)
            )
            continue
        found = _bytes_sha256(part)
        if one.sha256 in (None, found):
            part.replace(path)
            return path
        part.unlink()
        faults.append(LabError("DataWrong", file=one.name, source=url, found=found, wanted=one.sha256))
    # A wrong file says more than a server that does not answer.
    raise next((fault for fault in faults if fault.name == "DataWrong"), faults[0])


def _retried(url: str, part: Path, one: Download, progress: Progress) -> None:
    """Raises httpx.HTTPError."""
    tries = Retrying(
        retry=retry_if_exception(_may_pass),
        stop=stop_after_attempt(TRIES),
        wait=wait_exponential(multiplier=0.25, max=LONGEST_WAIT),
        reraise=True,
    )
    tries(_continue, url, part, one, progress)


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in (408, 429) or error.response.is_server_error
    return isinstance(error, httpx.TransportError)


def _continue(url: str, part: Path, one: Download, progress: Progress) -> None:
    """Downloads what the part lacks; all of it if the server sends no ranges. Raises httpx.HTTPError, LabError."""
    begun = part.stat().st_size if part.exists() else 0
    asked = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
    with httpx.stream("GET", url, headers=asked, timeout=TIMEOUT, follow_redirects=True) as answer:
        if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()
            raise httpx.ReadError("the part on disk is longer than the file", request=answer.request)
        answer.raise_for_status()
        resumes = answer.status_code == httpx.codes.PARTIAL_CONTENT
        size = begun if resumes else 0
        length = answer.headers.get("Content-Length", "")
        whole = size + int(length) if length.isdecimal() else None
        with part.open("ab" if resumes else "wb") as file:
            for chunk in answer.iter_raw():
                size += len(chunk)
                if size > one.most_bytes:
                    raise LabError("DataTooLong", url=url, limit=one.most_bytes)
                file.write(chunk)
                progress(one.name, size, whole)


def _why(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"status {error.response.status_code}"
    return type(error).__name__
