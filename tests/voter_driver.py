"""Tasks with a file, a store and real rows, whose rounds tests play for real voters' nodes to judge."""

from __future__ import annotations

import http.server
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np
from chain_driver import LocalChain, TaskDriver, Update
from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.keystore import LIGHT_SCRYPT_N, write_keystore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import PublishedCohort
from consilium_chain.tasks.data_schemas import TableSchema
from consilium_chain.tasks.money_spec import TOKEN
from consilium_chain.tasks.proposal import task_params
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, parse_task_spec
from consilium_client.data.standardise import sums_of
from consilium_client.home import VoterHome
from consilium_client.voter.registration import register
from consilium_core.children import child_environment
from consilium_core.kinds import of_kind
from consilium_core.private_files import write_private_file
from consilium_zk.kzg import commit
from consilium_zk.packing import pack
from consilium_zk.quantise import Quantiser
from examples_read import read_table
from task_files import DATA

ROWS = "age,sick\n20,0\n30,0\n40,1\n50,0\n60,1\n70,1\n80,1\n90,1\n"
POLICY: dict[str, Any] = {"operators": "any", "models": "any", "metrics": "any"}
WINDOW = 20_000  # seconds of chain time: none passes but by `pass_deadline`
# By digest, so that the statistics round is judged, too.
TASK = f"""
name = "who will fall ill"
{DATA}
[model]
name = "logistic"
[update]
masked = false
publication = "digests"
[rounds]
rounds = 1
min_cohort_size = 1
min_hospitals = 1
max_hospitals = 1
[judging]
decoys = false
max_voters = 1
seats = 1
[money]
pool = 1000
[windows]
join = {WINDOW}
commit = {WINDOW}
upload = {WINDOW}
publish = {WINDOW}
score = {WINDOW}
reveal = {WINDOW}
"""
JSON = "application/json"
PATIENCE = 90.0  # seconds for a process to start and do something, on a busy machine


class FiledTask(TaskDriver):
    """One hospital's task by this file. Its voters are for the test to bring."""

    def __init__(self, chain: LocalChain, folder: Path, text: str = TASK) -> None:
        """The store is in `folder`, and the hospital's rows."""
        self.store, self.spec = ArtifactStore(folder / "artifacts"), parse_task_spec(text.encode())
        column = of_kind(TableSchema, self.spec.data).features[0].name
        self.rows = folder / f"{column}.csv"
        self.rows.write_text(ROWS.replace("age", column))
        terms = asdict(task_params(self.spec, self.store.put_file(text.encode()), ""))
        del terms["aggregator"]
        super().__init__(
            chain, hospitals=1, voters=0, lanes=self.spec.parameters, terms=terms, layout=self.spec.update_layout,
            statistics=(self.spec.statistics_layout, self.spec.statistics_values),
        )  # fmt: skip

    def make_update(self, index: int, round_: int | None = None) -> Update:
        """In round 0 what the rows give, later a small step."""
        number = self.round if round_ is None else round_
        if number == 0:
            sums = sums_of(read_table(self.rows, of_kind(TableSchema, self.spec.data)), self.spec.data)
            lanes, layout = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).quantise(sums), self.spec.statistics_layout
        else:
            quantiser = Quantiser(self.spec.update.bits, self.spec.update.value_range)
            lanes, layout = quantiser.quantise(np.full(self.spec.lanes, 0.1)), self.spec.update_layout
        return self.update_of(index, number, lanes, pack(lanes, layout))

    def shown_sum(self, cohort: int, survivors: Any) -> PublishedCohort:
        total = super().shown_sum(cohort, survivors)
        for blob in total.blobs:
            self.store.put_blob(blob, commit(blob))
        return total

    def to_drawing(self) -> Self:
        """Of the round that is to come."""
        if self.round > 0:
            self.form()
        self.commit_all().publish()
        return self


def voter_home(
    chain: LocalChain, folder: Path, stake: int = 10_000, url: str | None = None, **policy: Any
) -> tuple[VoterHome, Ledger]:
    """A registered voter's, with `stake` whole tokens; `url`: by which it reaches the chain."""
    ledger = chain.funded()
    write_private_file(folder / "password", "secret\n")
    write_keystore(folder / "key.json", ledger.connection.signer, "secret", LIGHT_SCRYPT_N)
    (folder / "held-out.csv").write_text(ROWS)
    chain.deployment.write(folder / "deployment.json")
    settings = {
        "chain_url": url or chain.node.url,
        "artifacts": str(folder.parent / "artifacts"),
        "data": "held-out.csv",
    }
    register(ledger, stake * TOKEN, 0)
    return VoterHome.create(folder, settings, POLICY | policy), ledger


class Door:
    """Stands before a chain's node, and may be shut. `longest`: of how many blocks it gives logs at once, as
    providers do.
    """

    def __init__(self, url: str, longest: int | None = None) -> None:
        self.shut = False
        self.refused = 0
        outside = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                if outside.shut:
                    body = b""
                elif longest is not None and _blocks_of_logs(json.loads(raw)) > longest:
                    outside.refused += 1
                    error = {"code": -32005, "message": "query exceeds max block range"}
                    body = json.dumps({"jsonrpc": "2.0", "id": json.loads(raw)["id"], "error": error}).encode()
                else:
                    body = httpx.post(url, content=raw, headers={"Content-Type": JSON}).content
                self.send_response(503 if outside.shut else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Door:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _blocks_of_logs(asked: dict[str, Any]) -> int:
    """Of how many blocks logs are asked for."""
    if asked["method"] != "eth_getLogs":
        return 0
    wanted = asked["params"][0]
    return int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) + 1


class VoterProcess:
    """`consilium voter run` in a process of its own, heard line by line."""

    def __init__(self, home: VoterHome, *arguments: str) -> None:
        command = [sys.executable, "-m", "consilium_cli.main", "voter", "run", "--home", str(home.folder), *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_environment()
        )
        self.heard: list[dict[str, Any]] = []
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next one told that has these fields."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                told = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no {event} {fields} within {PATIENCE} s, but {self.heard}") from None
            self.heard.append(told)
            if told["event"] == event and fields.items() <= told.items():
                return told

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self) -> VoterProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
