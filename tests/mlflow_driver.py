"""A server with the part of MLflow's REST API that is used here; it records everything that it is sent."""

from __future__ import annotations

import json
import threading
import uuid
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

API = "/api/2.0/mlflow/"
FILES = "/api/2.0/mlflow-artifacts/artifacts/"


@dataclass
class Run:
    """`metrics`: name, step, value and milliseconds, in the order in which they came."""

    experiment: str
    tags: dict[str, str]
    params: dict[str, str] = field(default_factory=dict)
    metrics: list[tuple[str, int, float, int]] = field(default_factory=list)
    status: str = "RUNNING"

    def steps(self, name: str) -> list[tuple[int, float]]:
        return [(step, value) for called, step, value, _ in self.metrics if called == name]


class Refusing(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


class Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Listening

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    do_PUT = do_POST

    def _answer(self, body: bytes) -> None:
        try:
            status, answer = 200, self.server.mlflow.take(self.command, self.path, body)
        except Refusing as error:
            status, answer = error.status, {"error_code": error.code, "message": "a text of the server"}
        raw = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        pass


class Listening(ThreadingHTTPServer):
    mlflow: RecordingMlflow


class RecordingMlflow:
    """`refuses`: the names of calls that are answered with 403."""

    def __init__(self) -> None:
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, Run] = {}
        self.files: dict[str, bytes] = {}
        self.calls: Counter[str] = Counter()
        self.unknown: list[str] = []
        self.refuses: set[str] = set()
        self._lock = threading.Lock()
        self._server = Listening(("127.0.0.1", 0), Request)
        self._server.daemon_threads = True
        self._server.mlflow = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> RecordingMlflow:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def run(self) -> Run:
        (run,) = self.runs.values()
        return run

    def take(self, method: str, target: str, body: bytes) -> dict[str, Any]:
        parts = urlsplit(target)
        with self._lock:
            if method == "PUT" and parts.path.startswith(FILES):
                self.calls["upload"] += 1
                if "upload" in self.refuses:
                    raise Refusing(403, "PERMISSION_DENIED")
                self.files[unquote(parts.path.removeprefix(FILES))] = body
                return {}
            name = parts.path.removeprefix(API)
            given = json.loads(body) if body else {key: values[0] for key, values in parse_qs(parts.query).items()}
            self.calls[name] += 1
            if name in self.refuses:
                raise Refusing(403, "PERMISSION_DENIED")
            handler = getattr(self, "_" + name.replace("/", "_").replace("-", "_"), None)
            if handler is None:
                self.unknown.append(f"{method} {target}")
                raise Refusing(404, "ENDPOINT_NOT_FOUND")
            answer: dict[str, Any] = handler(given)
            return answer

    def _experiments_get_by_name(self, given: dict[str, Any]) -> dict[str, Any]:
        name = given["experiment_name"]
        if name not in self.experiments:
            raise Refusing(404, "RESOURCE_DOES_NOT_EXIST")
        return {"experiment": {"experiment_id": self.experiments[name], "name": name, "lifecycle_stage": "active"}}

    def _experiments_create(self, given: dict[str, Any]) -> dict[str, Any]:
        self.experiments[given["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[given["name"]]}

    def _runs_search(self, given: dict[str, Any]) -> dict[str, Any]:
        wanted = given["filter"].rpartition("= '")[2].rstrip("'")
        found = [one for one, run in self.runs.items() if run.tags.get("consilium.task") == wanted]
        return {"runs": [self._shown(one) for one in found]}

    def _runs_create(self, given: dict[str, Any]) -> dict[str, Any]:
        number = uuid.uuid4().hex  # MLflow's client remembers runs by it
        tags = {tag["key"]: tag["value"] for tag in given["tags"]}
        self.runs[number] = Run(given["experiment_id"], tags)
        return {"run": self._shown(number)}

    def _runs_log_batch(self, given: dict[str, Any]) -> dict[str, Any]:
        run = self.runs[given["run_id"]]
        run.params |= {param["key"]: param["value"] for param in given.get("params", [])}
        run.metrics += [(m["key"], int(m["step"]), m["value"], int(m["timestamp"])) for m in given.get("metrics", [])]
        return {}

    def _runs_get(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"run": self._shown(given["run_id"])}

    def _metrics_get_history(self, given: dict[str, Any]) -> dict[str, Any]:
        found = [one for one in self.runs[given["run_id"]].metrics if one[0] == given["metric_key"]]
        return {"metrics": [dict(zip(("key", "step", "value", "timestamp"), one, strict=True)) for one in found]}

    def _runs_set_tag(self, given: dict[str, Any]) -> dict[str, Any]:
        self.runs[given["run_id"]].tags[given["key"]] = given["value"]
        return {}

    def _runs_update(self, given: dict[str, Any]) -> dict[str, Any]:
        self.runs[given["run_id"]].status = given["status"]
        return {"run_info": self._shown(given["run_id"])["info"]}

    def _shown(self, number: str) -> dict[str, Any]:
        run = self.runs[number]
        latest = {name: (step, value, at) for name, step, value, at in run.metrics}
        return {
            "info": {
                "run_id": number, "run_uuid": number, "experiment_id": run.experiment, "status": run.status,
                "artifact_uri": f"mlflow-artifacts:/{number}", "lifecycle_stage": "active", "start_time": 1,
            },
            "data": {
                "tags": [{"key": key, "value": value} for key, value in run.tags.items()],
                "params": [{"key": key, "value": value} for key, value in run.params.items()],
                "metrics": [
                    {"key": name, "step": step, "value": value, "timestamp": at}
                    for name, (step, value, at) in latest.items()
                ],
            },
        }  # fmt: skip
