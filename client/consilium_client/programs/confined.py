"""Computes programs and plug-ins in a process of its own, without keys and network, which the system holds to limits.

All training and evaluation of these goes this way, in every process of the platform: nodes, simulations, predictions
and audits. So no caller can forget it. Only `computing.py`, the process itself, computes within `computing_here`.

Each program has one process, kept for the next call until it was idle for a while. It ends with the thread that
watches it, and so with this process, also with a killed one. Its answers are not trusted: sizes are known before they
are read, and errors are rebuilt from known names. Callers ask for finite values.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from consilium_chain.tasks.family_spec import Data
from consilium_chain.tasks.model_specs import ProgramSpec
from consilium_chain.tasks.plugin_specs import NamedPlugin
from consilium_core.children import child_environment
from consilium_core.faults import FaultError
from consilium_core.logs import emit
from numpy.typing import NDArray

from consilium_client.errors import DataError, ModelError
from consilium_client.plugins.errors import PluginError
from consilium_client.programs.confinement import is_held_by_calls
from consilium_client.programs.errors import ProgramError
from consilium_client.programs.frames import Arrays, FrameBroken, Shapes, receive_arrays, receive_header, send
from consilium_client.programs.library import kept

MODULE: Final = "consilium_client.programs.computing"
MODULE_OF_PLUGINS: Final = "consilium_client.plugins.computing"
BASE: Final = 2 << 30  # bytes, for libraries' own needs; a limit is a multiple of it, so that like calls share one
SPARE_SECONDS: Final = 60.0  # of a call, beside those that it is given
START_SECONDS: Final = 120.0
IDLE_SECONDS: Final = 600.0
LONGEST_TEXT: Final = 300  # characters, in an answer's error
# They decide how many threads add, and so the last bits; and which GPU is meant.
NUMBERS: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
OF_GPU: Final = {"CUDA_MODULE_LOADING": "EAGER"}  # kernels are files' parts, which later cannot be read
READS: Final = "CONSILIUM_READS"  # variable with the path that a plug-in may read: others see no process's variables
NONE: Final = np.empty(0, np.uint8)
_RAISED: Final[Mapping[str, type[FaultError]]] = {
    one.__name__: one for one in (ModelError, ProgramError, PluginError, DataError)
}

Progress = Callable[[int, int, float], None]
Header = Mapping[str, Any]  # of an answer, as its process sent it


@dataclass(frozen=True)
class Work:
    """A call. `wanted`: the arrays of its answer, or the check of those that the answer states. `memory`: bytes that
    it may take, beside BASE. `seconds`: of its phase. `private`: it needs the libraries of differential privacy.
    `reads`: a file or folder that its process may read, a plug-in's. `refusal`: the error of an answer that is one;
    raises FrameBroken if computing raises none like it.
    """

    kind: str
    arrays: Arrays
    wanted: Shapes | Callable[[object], Shapes]
    memory: int
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)
    device: str = "cpu"
    private: bool = False
    reads: Path | None = None
    refusal: Callable[[Header], FaultError] | None = None


_here = _any_time = False
_lock = threading.Lock()
_slots: dict[tuple[bytes, ...], _Slot] = {}


@contextmanager
def computing_here() -> Iterator[None]:
    """Within, this process computes programs itself: it is the confined one, or a test's reference."""
    global _here
    before, _here = _here, True
    try:
        yield
    finally:
        _here = before


@contextmanager
def without_windows() -> Iterator[None]:
    """Within, a call may take any time: simulations and reference trainings have no phases to be late for."""
    global _any_time
    before, _any_time = _any_time, True
    try:
        yield
    finally:
        _any_time = before


def is_elsewhere() -> bool:
    """True if programs are computed by another process."""
    return not _here


def computed(
    model: ProgramSpec | NamedPlugin, data: Data | None, work: Work, progress: Progress | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays `work.wanted`. Raises ProgramError (ProgramEnded, NotConfined), and what the call raises:
    ModelError, ProgramError, PluginError, DataError.
    """
    with _lock:
        slot = _slots.setdefault(_key(model, data), _Slot())
    with slot.lock:
        process = slot.process
        if process is None or not process.serves(work):
            slot.end()
            process = slot.process = _Process(model, data, work, slot.lock)
        try:
            return process.answer(work, progress)
        finally:
            if process.is_busy:  # with an answer that nobody reads to its end
                slot.end()


def end(model: ProgramSpec | NamedPlugin, data: Data | None) -> None:
    """Ends the model's process, if it has one. The next call starts another one."""
    slot = _slots.get(_key(model, data))
    if slot is not None:
        with slot.lock:
            slot.end()


def end_all() -> None:
    """Ends all processes. The next call starts another one."""
    for slot in list(_slots.values()):
        slot.end()


atexit.register(end_all)


def _key(model: ProgramSpec | NamedPlugin, data: Data | None) -> tuple[bytes, ...]:
    """The same for tasks that one process can serve. A plug-in's shapes follow from the rest."""
    of_data = b"" if data is None else data.model_dump_json().encode()
    if isinstance(model, ProgramSpec):
        return *model.digests, of_data
    return model.group.encode(), model.model_dump_json(exclude={"shapes", "moving"}).encode(), of_data


def _files(model: ProgramSpec | NamedPlugin) -> dict[str, bytes]:
    """Those that the process cannot read itself."""
    if not isinstance(model, ProgramSpec):
        return {}
    return vars(kept(model))


class _Slot:
    """A program's process, if there is one. Its calls come one after the other."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.process: _Process | None = None

    def end(self) -> None:
        process, self.process = self.process, None
        if process is not None and process.owner == os.getpid():  # else it is of the process that forked this one
            process.end()


class _Process:
    def __init__(self, model: ProgramSpec | NamedPlugin, data: Data | None, work: Work, lock: threading.RLock) -> None:
        """`lock`: held during calls. Raises ProgramError (ProgramEnded, NotConfined), and as reading it does."""
        self.owner, self._for, self._lock, self._used = os.getpid(), work, lock, time.monotonic()
        self._popen: subprocess.Popen[bytes] | None = None
        self._refused, self._group = "", model.group if isinstance(model, NamedPlugin) else ""
        self.is_busy = self._is_late = False
        started = threading.Event()
        self._watch = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._watch.start()
        started.wait()
        raw = _files(model)
        arrays = {name: np.frombuffer(bytearray(one), np.uint8) if one else NONE for name, one in raw.items()}
        sections = {
            "group": self._group, "model": model.model_dump(mode="json"),
            "data": None if data is None else data.model_dump(mode="json"),
        }  # fmt: skip
        try:
            self.answer(Work("read", arrays, {}, 0, START_SECONDS, sections, refusal=work.refusal), None)
        except BaseException:
            self.end()
            raise
        if not is_held_by_calls():
            emit("program-not-confined", why="this system has no list of calls: files and network stay open to it")

    @property
    def _memory(self) -> int:
        return BASE * (1 + -(-self._for.memory // BASE))

    def _run(self, started: threading.Event) -> None:
        """Stays as long as the process: the system kills that with the thread that started it."""
        settings = {name: os.environ[name] for name in NUMBERS if name in os.environ} | OF_GPU
        work = self._for
        if work.reads is not None:
            settings[READS] = f"{work.reads}"
        module = MODULE_OF_PLUGINS if self._group else MODULE
        arguments = [os.getpid(), self._memory, work.device, int(work.private), *filter(None, [self._group])]
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-m", module, *map(str, arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/",
                env=child_environment() | settings,
            )  # fmt: skip
        except OSError as error:
            self._refused = error.strerror or type(error).__name__
            return
        finally:
            started.set()
        while self._popen.poll() is None:
            with suppress(subprocess.TimeoutExpired):  # it is looked at again
                self._popen.wait(IDLE_SECONDS)
            with self._lock:
                if time.monotonic() - self._used > IDLE_SECONDS:
                    self._popen.kill()
                    self._popen.wait()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._popen is None:
            raise _ended(f"could not be started: {self._refused}")
        return self._popen

    def serves(self, work: Work) -> bool:
        own = self._for
        has_more = work.memory <= self._memory - BASE and work.private <= own.private
        is_own = self.owner == os.getpid() and self._running.poll() is None
        return is_own and has_more and work.device in ("cpu", own.device) and work.reads == own.reads

    def answer(self, work: Work, progress: Progress | None) -> dict[str, NDArray[Any]]:
        """As `computed`."""
        self.is_busy, self._is_late = True, False
        seconds = work.seconds + SPARE_SECONDS
        clock = threading.Timer(seconds, self._be_late)
        clock.daemon = True
        if not _any_time:
            clock.start()
        try:
            self._ask(work)
            return self._answers(_pipe(self._running.stdout), work, progress)
        except (OSError, FrameBroken) as error:
            why = f"took longer than {seconds:.0f} seconds" if self._is_late else self._died()
            raise _ended(why) from error
        finally:
            clock.cancel()
            self._used = time.monotonic()

    def _ask(self, work: Work) -> None:
        try:
            send(_pipe(self._running.stdin), {"kind": work.kind, **work.values}, work.arrays)
        except BrokenPipeError:
            return  # it has ended, perhaps with an error that is its answer

    def _answers(self, source: IO[bytes], work: Work, progress: Progress | None) -> dict[str, NDArray[Any]]:
        steps = 0
        while True:
            header = receive_header(source)
            kind = header.get("kind")
            if kind == "progress" and progress is not None:
                steps = _shown(header, steps, progress)
            elif kind == "error":
                error = (work.refusal or _told)(header)
                self.is_busy = False
                raise error
            elif kind == "result":
                wanted = work.wanted(header.get("arrays")) if callable(work.wanted) else work.wanted
                found = receive_arrays(source, wanted)
                self.is_busy = False
                return found
            else:
                raise FrameBroken

    def _be_late(self) -> None:
        self._is_late = True
        self._running.kill()

    def _died(self) -> str:
        """As after `the process …`. A process that still runs has sent something else than an answer."""
        try:
            status = self._running.wait(1)
        except subprocess.TimeoutExpired:
            return "gave an answer that is none"
        if status < 0:
            return f"was ended by the signal {signal.Signals(-status).name}"
        return f"ended with the status {status}"

    def end(self) -> None:
        if self._popen is None:
            return
        self._popen.kill()
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            try:
                _pipe(pipe).close()
            except BrokenPipeError:
                continue  # the rest of a request that nobody reads any more


def _ended(why: str) -> ProgramError:
    emit("program-ended", why=why)
    return ProgramError("ProgramEnded", why=why)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process has no pipes")
    return pipe


def _shown(header: Mapping[str, Any], before: int, progress: Progress) -> int:
    """The steps done, more than before. Raises FrameBroken."""
    done, steps, loss = (header.get(name) for name in ("done", "steps", "loss"))
    if type(done) is not int or type(steps) is not int or not before < done <= steps or type(loss) is not float:
        raise FrameBroken
    progress(done, steps, loss)
    return done


def _told(header: Mapping[str, Any]) -> FaultError:
    """The error of an answer. Raises FrameBroken if computing raises none like it."""
    kind, name, values = str(header.get("error")), str(header.get("name")), header.get("values")
    if not re.fullmatch(r"\w{1,64}", name):
        raise FrameBroken
    if kind not in _RAISED:
        return _ended(f"failed with {name}")
    if not isinstance(values, dict) or not all(map(_is_plain, values.values())):
        raise FrameBroken
    try:
        return _RAISED[kind](name, **{one: tuple(v) if isinstance(v, list) else v for one, v in values.items()})
    except (LookupError, TypeError, ValueError, AttributeError) as broken:  # not as its message has them
        raise FrameBroken from broken


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return len(value) <= 8 and all(isinstance(one, int | str) and _is_plain(one) for one in value)
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT and value.isprintable()
    return isinstance(value, int)
