"""Consilium in Python: try a task on your own rows, take part, check a finished task, and take its model.

    import consilium

    task = consilium.draft("patients.csv", label="died", sites="hospital")
    result = consilium.simulate(task, table="patients.csv", sites="hospital")
    result.metrics                      # a data frame: alone, together, all rows in one place
    result.figure()                     # a matplotlib figure
    consilium.Client("~/.consilium/hospital").status()
    consilium.verify(3, rpc=URL, address_book="deployment.json", artifacts=["artifacts"]).holds

Each command of the command line that does the same calls these functions. Errors are subclasses of `Fault`: `name` is
the name in docs/errors.md, `values` are its values. A node's log events are JSON lines on standard output, or calls of
your own function within `log_to`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from consilium_core.faults import FaultError as Fault
from consilium_core.logs import log_to

from consilium.record import download_model, verify
from consilium.simulation import SimulationResult, simulate
from consilium.task import DraftedTask, Task, draft

if TYPE_CHECKING:
    from consilium.client import Client
    from consilium.data_check import DataCheck, check_data
    from consilium.machine import Diagnosis, doctor
    from consilium.voter import Voter

# Imported at first use: they need web3.
_AT_FIRST_USE = {
    "Client": "client", "DataCheck": "data_check", "Diagnosis": "machine", "Voter": "voter", "check_data": "data_check",
    "doctor": "machine",
}  # fmt: skip

__all__ = ["DraftedTask", "Fault", "SimulationResult", "Task", "download_model", "draft", "simulate", "verify"]
__all__ += ["Client", "DataCheck", "Diagnosis", "Voter", "check_data", "doctor", "log_to"]


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_AT_FIRST_USE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
