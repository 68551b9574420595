"""Audit logs as somebody writes them who is not a hospital's node."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from consilium_client.hospital.audit_log import FIRST


def chained(lines: Iterable[bytes]) -> bytes:
    """The lines as a log of their own that holds."""
    done: list[bytes] = []
    for number, line in enumerate(lines, start=1):
        previous = hashlib.sha256(done[-1]).hexdigest() if done else FIRST
        said = json.loads(line) | {"seq": number, "previous": previous}
        done.append(json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    return b"".join(done)
