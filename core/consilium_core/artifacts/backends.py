"""Back ends of artifacts: a folder, or a store that fsspec reaches by a URL. None is trusted with anything.

A location is asked for names, and gives bytes or the reason why not. It can cost a bounded number of bytes and seconds
only: a mirror may send without end, drip, hang, or redirect.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NewType
from urllib.parse import unquote, urlsplit

import fsspec
from fsspec.asyn import sync
from pydantic import BeforeValidator, Field, PlainValidator, TypeAdapter, ValidationError

from consilium_core.errors import ConfigInvalid, MirrorUnsupported, StoreUnwritable
from consilium_core.visible_text import without_secrets

TIMEOUT = 20.0  # seconds for an artifact, from connecting to its last byte
AT_ONCE = 16  # artifacts requested from a mirror side by side, checked and kept before the next ones
MOST_LOCATIONS = 16
_HTTP = ("http", "https")
_PACKAGES = {"s3": "s3fs"}  # that add a protocol to fsspec
_PROTOCOLS = (*_HTTP, *_PACKAGES, "ipfs", "memory")
GATEWAY_VARIABLE = "IPFS_GATEWAY"
GATEWAY = "http://127.0.0.1:8080"  # Kubo's default
_READABLE = 0o644  # artifacts are public, and another user may serve the folder
_NOT_THERE = (404, 410)

MirrorUrl = NewType("MirrorUrl", str)
"""A URL of one of `_PROTOCOLS`, without user, password, query and fragment."""

Location = Path | MirrorUrl


class Kind(StrEnum):
    LACKS = "lacks it"
    WRONG = "gives other bytes"
    REFUSES = "refuses to answer"
    SILENT = "does not answer in time"


@dataclass(frozen=True)
class Fault:
    """The reason why a location gave nothing usable, in words without secrets."""

    kind: Kind
    why: str

    @property
    def is_conclusive(self) -> bool:
        """True if the location certainly does not have the artifact."""
        return self.kind in (Kind.LACKS, Kind.WRONG)


Answer = bytes | Fault
_LACKS = Fault(Kind.LACKS, "not there")
_TOO_LONG = Fault(Kind.WRONG, "longer than any artifact")
_LATE = Fault(Kind.SILENT, f"no answer within {TIMEOUT:g} s")


def parse_location(text: object) -> Location:
    """A folder's path, or a URL. Raises ValueError, without the URL: it may hold a secret."""
    if isinstance(text, Path):
        return text
    if not isinstance(text, str) or not text or "\0" in text:
        raise ValueError("an artifact store must be the path of a folder, or a URL")
    if "://" not in text:
        return Path(text)
    scheme = text.partition("://")[0].lower()
    if not re.fullmatch(r"[\x21-\x7e]+", text) or not scheme.isalnum():
        raise ValueError("this is not a valid URL")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("this is not a valid URL") from None
    if scheme == "file":
        path = unquote(parts.path)
        if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
            raise ValueError("a file:// URL must name a folder of this machine, as in file:///srv/artifacts")
        return Path(path)
    if scheme not in _PROTOCOLS:
        raise ValueError(f"{scheme}:// is not supported; use a folder, file, {', '.join(_PROTOCOLS)}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            "an artifact store's URL must not have credentials, a query or a fragment; set credentials in fsspec's"
            " configuration or environment"
        )
    if not host:
        raise ValueError("the URL has no host")
    return MirrorUrl(f"{scheme}://{text.partition('://')[2].rstrip('/')}")


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | Path) else value


Locations = Annotated[
    tuple[Annotated[Location, PlainValidator(parse_location)], ...],
    BeforeValidator(_listed),
    Field(min_length=1, max_length=MOST_LOCATIONS),
]
_LOCATIONS: TypeAdapter[tuple[Location, ...]] = TypeAdapter(Locations)


def parse_locations(texts: Sequence[str | Path]) -> tuple[Location, ...]:
    """Raises ConfigInvalid."""
    try:
        return _LOCATIONS.validate_python(list(texts))
    except ValidationError as error:
        raise ConfigInvalid("; ".join(f"artifact store: {fault['msg']}" for fault in error.errors())) from None


def show_location(location: Location) -> str:
    """A path, or a URL up to its host: the rest may have a key."""
    return str(location) if isinstance(location, Path) else without_secrets(location)


class Folder:
    """A folder of this machine."""

    at_once: int | None = None  # all
    is_writable = True

    def __init__(self, folder: Path, made_when_needed: bool = False) -> None:
        self._folder, self._made_when_needed = folder, made_when_needed
        self.shown = str(folder)

    def read(self, names: Sequence[str], limit: int) -> Iterable[Answer]:
        """Answers in the names' order, one in memory at a time."""
        return (self._read(name, limit) for name in names)

    def _read(self, name: str, limit: int) -> Answer:
        try:
            with (self._folder / name).open("rb") as file:
                raw = file.read(limit + 1)
        except FileNotFoundError:
            if self._made_when_needed or self._folder.is_dir():
                return _LACKS
            return Fault(Kind.REFUSES, "no such folder")
        except OSError as error:
            return Fault(Kind.REFUSES, error.strerror or type(error).__name__)
        return raw if len(raw) <= limit else _TOO_LONG

    def write(self, name: str, raw: bytes) -> None:
        """Writes in one step: no reader sees a part. Raises StoreUnwritable."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(raw)
                    os.fchmod(file.fileno(), _READABLE)
                os.replace(temporary, self._folder / name)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            raise StoreUnwritable(self.shown, error.strerror or type(error).__name__) from error


def _by_gateway(url: MirrorUrl) -> MirrorUrl:
    """The URL of an ipfs:// URL at its gateway, which needs no trust: readers check the bytes. Raises ConfigInvalid."""
    try:
        gateway = parse_location(os.environ.get(GATEWAY_VARIABLE) or GATEWAY)
    except ValueError as error:
        raise ConfigInvalid(f"{GATEWAY_VARIABLE}: {error}") from None
    if isinstance(gateway, Path) or not gateway.startswith(_HTTP):
        raise ConfigInvalid(f"{GATEWAY_VARIABLE} must be the http(s):// URL of an IPFS gateway, as in {GATEWAY}")
    return MirrorUrl(f"{gateway}/ipfs/{url.partition('://')[2]}")


class Mirror:
    """A store behind a URL. It reads artifacts side by side, in fsspec's event loop."""

    at_once: int | None = AT_ONCE

    def __init__(self, url: MirrorUrl) -> None:
        """Raises MirrorUnsupported, ConfigInvalid."""
        self.shown = without_secrets(url)
        self._url = _by_gateway(url) if url.startswith("ipfs://") else url
        scheme = self._url.partition("://")[0]
        self._over_http = scheme in _HTTP
        self.is_writable = scheme in ("s3", "memory")
        options: dict[str, Any] = {} if scheme == "memory" else {"skip_instance_cache": True}
        if self._over_http:
            # Uncompressed: a few compressed bytes can become gigabytes.
            options["client_kwargs"] = {"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}}
        try:
            self._files = fsspec.filesystem(scheme, **options)
        except (ImportError, ValueError) as error:
            raise MirrorUnsupported(scheme, _PACKAGES.get(scheme, "aiohttp")) from error

    def read(self, names: Sequence[str], limit: int) -> Iterable[Answer]:
        if self._files.async_impl:
            return list(sync(self._files.loop, self._read_all, names, limit))
        return [self._read_memory(name, limit) for name in names]

    def _read_memory(self, name: str, limit: int) -> Answer:
        try:
            raw = bytes(self._files.cat_file(f"{self._url}/{name}", start=0, end=limit + 1))
        except FileNotFoundError:
            return _LACKS
        return raw if len(raw) <= limit else _TOO_LONG

    async def _read_all(self, names: Sequence[str], limit: int) -> list[Answer]:
        read = self._download if self._over_http else self._read_range
        return await asyncio.gather(*(self._bounded(read, name, limit) for name in names))

    async def _bounded(self, read: Callable[[str, int], Awaitable[Answer]], name: str, limit: int) -> Answer:
        try:
            async with asyncio.timeout(TIMEOUT):
                return await read(f"{self._url}/{name}", limit)
        except FileNotFoundError:
            return _LACKS
        except TimeoutError:
            return _LATE
        except PermissionError:
            return Fault(Kind.REFUSES, "permission denied")
        except OSError as error:
            return Fault(Kind.SILENT, type(error).__name__)
        except Exception as error:  # each filesystem has errors of its own, whose texts may repeat the URL
            return Fault(Kind.REFUSES, type(error).__name__)

    async def _download(self, url: str, limit: int) -> Answer:
        """Bounded and without redirects, which fsspec's own reading is not."""
        session = await self._files.set_session()
        async with session.get(url, allow_redirects=False) as response:
            if response.status in _NOT_THERE:
                return _LACKS
            if response.status != 200:
                return Fault(Kind.REFUSES, f"status {response.status}")
            raw = bytearray()
            async for part in response.content.iter_any():
                raw += part
                if len(raw) > limit:
                    return _TOO_LONG
            return bytes(raw)

    async def _read_range(self, path: str, limit: int) -> Answer:
        raw = bytes(await self._files._cat_file(path, start=0, end=limit + 1))
        return raw if len(raw) <= limit else _TOO_LONG

    def write(self, name: str, raw: bytes) -> None:
        """In one put. Raises StoreUnwritable."""
        if not self.is_writable:
            raise StoreUnwritable(self.shown, "it is read-only")
        path = f"{self._url}/{name}"
        try:
            if self._files.async_impl:
                sync(self._files.loop, self._files._pipe_file, path, raw, timeout=TIMEOUT)
            else:
                self._files.pipe_file(path, raw)
        except Exception as error:  # as above
            raise StoreUnwritable(self.shown, type(error).__name__) from error


def open_location(location: Location) -> Folder | Mirror:
    """Raises MirrorUnsupported, ConfigInvalid."""
    return Folder(location) if isinstance(location, Path) else Mirror(location)
