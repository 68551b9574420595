"""Answers a node's requests, in the process that computes. It loads no library of models by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np
from consilium_core.faults import FaultError

from consilium_client.programs.confined import Progress, computing_here
from consilium_client.programs.frames import Arrays, FrameBroken, receive_arrays, receive_header, send, stated

Found = Mapping[str, Any]  # arrays
Answer = Callable[[Mapping[str, Any], Arrays, Progress], Found]


@computing_here()
def serve(requests: IO[bytes], answers: IO[bytes], read: Answer) -> None:
    """Answers requests until the node has ended. `read`: answers the first one, and gives the answers to further ones,
    by their names.
    """
    calls: Mapping[str, Answer] = {"read": read}

    def progress(done: int, steps: int, loss: float) -> None:
        send(answers, {"kind": "progress", "done": done, "steps": steps, "loss": loss})

    while True:
        try:
            header = receive_header(requests)
        except FrameBroken:
            return  # the node has ended
        arrays = receive_arrays(requests, stated(header))
        try:
            found = calls[header["kind"]](header, arrays, progress)
        except Exception as error:  # told in full, and the next request may do
            send(answers, fault(error))
            continue
        if header["kind"] == "read":
            calls, found = found, {}
        send(answers, {"kind": "result"}, found)


def fault(error: Exception) -> dict[str, Any]:
    """Values that JSON has, and texts as a screen takes them."""
    if not isinstance(error, FaultError):
        code = getattr(error, "error_code", None)  # a GPU driver's: which call it refused is not told otherwise
        name = type(error).__name__ + (f"_{code}" if isinstance(code, int) else "")
        return {"kind": "error", "error": "none", "name": name}
    values = {name: _plain(value) for name, value in error.values.items()}
    return {"kind": "error", "error": type(error).__name__, "name": error.name, "values": values}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, int | np.integer):
        return int(value)
    return "".join(one if one.isprintable() else " " for one in f"{value}")[:200]
