"""Processes of a small internet, started again when they end, after a pause, as systemd would."""

from __future__ import annotations

import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from consilium_core.children import child_environment

from internet.hosts import Host

UNITS = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
USUAL_PAUSE = 5.0  # seconds; of programs that have no unit here
LOOK = 0.1


def pause_of(unit: str) -> float:
    """RestartSec of a unit, in seconds."""
    path = UNITS / unit
    found = re.search(r"^RestartSec=(\d+)", path.read_text(), re.MULTILINE) if path.exists() else None
    return float(found[1]) if found else USUAL_PAUSE


@dataclass
class Service:
    """`shares_fate`: whether systemd's KillMode would end what it started with it. `ends`: that 0 is a good end."""

    name: str
    host: Host
    arguments: Sequence[str]
    pause: float = USUAL_PAUSE
    environment: Mapping[str, str] = field(default_factory=dict)
    shares_fate: bool = True
    ends: bool = False
    stop_signal: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    wanted: bool = False
    _ended: float | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was never started"
        return self.process.pid

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Services:
    """By name. All of them end with the internet."""

    def __init__(self, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._all: dict[str, Service] = {}
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self._thread.start()

    def __getitem__(self, name: str) -> Service:
        return self._all[name]

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def names(self) -> list[str]:
        return list(self._all)

    def add(self, service: Service) -> None:
        """Starts it; one of the same name is ended first."""
        if service.name in self._all:
            self.end(service.name)
        with self._lock:
            self._all[service.name] = service
            service.wanted = True
            self._start(service)

    def end(self, name: str, patience: float = 25.0) -> None:
        """As `systemctl stop`."""
        with self._lock:
            service = self._all[name]
            service.wanted = False
        self._end(service, patience)

    def restart(self, name: str) -> None:
        """As `systemctl restart`."""
        self.end(name)
        with self._lock:
            service = self._all[name]
            service.wanted = True
            self._start(service)

    def kill(self, name: str) -> None:
        """SIGKILL to its main process; what is left of its control group goes with it, as systemd ends it."""
        service = self._all[name]
        with suppress(psutil.NoSuchProcess):
            main = psutil.Process(service.pid)
            family = main.children(recursive=True) if service.shares_fate else []
            for process in (main, *family):
                with suppress(psutil.NoSuchProcess):
                    process.kill()

    def down(self) -> list[str]:
        """Those that should run and do not."""
        with self._lock:
            return [one.name for one in self._all.values() if one.wanted and not one.runs]

    def errors_of(self, name: str) -> str:
        path = self._logs / f"{name}.err"
        return path.read_text(errors="replace")[-2_000:] if path.exists() else ""

    def journal_of(self, name: str) -> str:
        path = self._logs / f"{name}.jsonl"
        return path.read_text(errors="replace") if path.exists() else ""

    def close(self) -> None:
        """Nothing is started from here on. What runs ends with the internet."""
        self._over.set()
        self._thread.join()

    def _supervise(self) -> None:
        while not self._over.wait(LOOK):
            with self._lock:
                for service in self._all.values():
                    if service.wanted and not service.runs:
                        self._restart_when_due(service)

    def _restart_when_due(self, service: Service) -> None:
        assert service.process is not None
        if service.ends and service.process.returncode == 0:
            service.wanted = False
        elif service._ended is None:
            service._ended = time.monotonic()
        elif time.monotonic() - service._ended >= service.pause:
            self._start(service)

    def _start(self, service: Service) -> None:
        environment = child_environment() | {"OMP_NUM_THREADS": "1"} | dict(service.environment)
        out, errors = self._logs / f"{service.name}.jsonl", self._logs / f"{service.name}.err"
        with out.open("ab") as output, errors.open("ab") as problems:
            service.process = service.host.start(service.arguments, environment, output, problems)
        service.starts += 1
        service._ended = None

    @staticmethod
    def _end(service: Service, patience: float) -> None:
        if service.process is None or service.process.poll() is not None:
            return
        family = psutil.Process(service.pid).children(recursive=True) if service.shares_fate else []
        service.process.send_signal(service.stop_signal)
        try:
            service.process.wait(patience)
        except subprocess.TimeoutExpired:
            service.process.kill()
            service.process.wait()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
