"""Consilium in Python: try a task on your own rows, check a finished one, and take its model.

    import consilium

    task = consilium.draft("patients.csv", label="died", sites="hospital")
    result = consilium.simulate(task, table="patients.csv", sites="hospital")
    result.metrics                      # a data frame: alone, together, all rows in one place
    result.figure()                     # a matplotlib figure
    consilium.verify(3, rpc=URL, address_book="deployment.json", artifacts=["artifacts"]).holds

Each command of the command line that does the same calls these functions. Errors are subclasses of `Fault`: `name` is
the name in docs/errors.md, `values` are its values.
"""

from consilium_core.faults import FaultError as Fault

from consilium.record import download_model, verify
from consilium.simulation import SimulationResult, simulate
from consilium.task import DraftedTask, Task, draft

__all__ = ["DraftedTask", "Fault", "SimulationResult", "Task", "download_model", "draft", "simulate", "verify"]
