"""What a process tells whoever runs it: one JSON object a line on standard output.

Journals carry amounts, indices, names of phases and errors: never data, keys, or text from foreign exceptions.
"""

from __future__ import annotations

import json
import sys
import time


def emit(event: str, **fields: object) -> None:
    """Writes a line and flushes it: {"at": unix seconds, "event": …, …}."""
    sys.stdout.write(json.dumps({"at": round(time.time(), 3), "event": event, **fields}) + "\n")
    sys.stdout.flush()
