"""Verifies the last settled round of a task: `python -m consilium_verify.example BOOK RPC ARTIFACTS TASK`."""

import sys
from pathlib import Path

from consilium_chain.artifacts.store import ArtifactStore

from consilium_verify.verification import reader, verify_round

if __name__ == "__main__":
    book, rpc, artifacts, task = sys.argv[1:]
    report = verify_round(reader(rpc, Path(book)), ArtifactStore(Path(artifacts)), int(task))
    for check in report.checks:
        sys.stdout.write(f"{check.result:12} {check.name}: {check.detail}\n")
    sys.exit(not report.holds)
