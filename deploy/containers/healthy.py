"""Whether the container that it runs in does its work: ends with 0, or says on standard error why not and ends with 1.

api PORT        the HTTP API answers
jobs CONFIG     the worker's database answers, and blocks were indexed lately
node HOME       a node runs in this home: in a hospital's for any task
"""

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

LATELY = 120  # seconds: the index job is tried every second, and pauses ten after failures


def api(port: str) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{int(port)}/health", timeout=5):
            return None
    except OSError as error:
        return f"the API does not answer: {error}"


def jobs(config: str) -> str | None:
    command = [sys.executable, "-m", "consilium_cli.main", "server", "jobs", "--config", config]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        return said.stderr.strip()
    rows = [json.loads(line) for line in said.stdout.splitlines()]
    index = next((row for row in rows if row["job"] == "index"), None)
    if index is None or index["succeeded_at"] is None:
        return "nothing has been indexed yet"
    seconds = int(time.time()) - index["succeeded_at"]
    return None if seconds <= LATELY else f"nothing was indexed for {seconds} s: {index['error']}: {index['why']}"


def node(home: str) -> str | None:
    from consilium_core.locks import is_locked

    locks = [Path(home, "lock"), *Path(home).glob("task-*/lock")]
    return None if any(map(is_locked, locks)) else f"no node runs in {home}"


if __name__ == "__main__":
    fault = {"api": api, "jobs": jobs, "node": node}[sys.argv[1]](sys.argv[2])
    if fault is not None:
        sys.exit(fault)
