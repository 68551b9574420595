"""Consilium in Python: try a task on your own rows, propose it, take part, check it, and use its model.

    import consilium

    task = consilium.draft("patients.csv", label="died", sites="hospital")
    result = consilium.simulate(task, table="patients.csv", sites="hospital")
    result.metrics                      # a data frame: alone, together, all rows in one place
    result.figure()                     # a matplotlib figure

    chain = {"rpc": URL, "address_book": "deployment.json"}
    operator = consilium.Operator(**chain, keystore="key.json", password_file="password")
    number = operator.propose(task, aggregator=ADDRESS, artifacts=["artifacts"], not_private=True).task
    consilium.Client("hospital").status()               # a hospital's node; `Voter` is a voter's
    for event in consilium.watch(number, **chain):
        print(event.name, event.values)
    consilium.verify(number, **chain, artifacts=["artifacts"]).holds
    consilium.download_model(number, "model", **chain, artifacts=["artifacts"])
    consilium.Model.read("model").predict("new.csv")    # a data frame

    consilium.Seller(**chain).serve(number, "model", price=10**16)              # predictions for money
    with consilium.Buyer("https://predict.example.org", **chain) as buyer:
        buyer.predict(buyer.read("new.csv"))            # answers with receipts
    both = consilium.Ensembles(**chain).form([7, 9]).number                     # two tasks' models as one
    consilium.export_ensemble(both, ["model-7", "model-9"], "both", **chain)

The command line calls these functions, and adds options, questions and screens. Here nothing asks or prints: questions
are arguments (`confirm`, `accept`), and so is progress (`on_…`). Log events, such as a mirror's faults, go to standard
output as JSON lines; within `log_to` they go elsewhere. Errors are subclasses of `Fault`: `name` is the name in
docs/errors.md, `values` are its values.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from consilium_core.faults import Fault
from consilium_core.logs import log_to

from consilium.artifacts import check_artifacts, fetch_artifacts, store_weights
from consilium.chain import LocalChain, checked_address, deploy, fund_account
from consilium.ensembling import EnsembleModel, Ensembles, ensembles, export_ensemble, is_ensemble
from consilium.exporting import ExportedProgram, export
from consilium.keys import change_password, new_key
from consilium.lab import (
    Attack,
    Cheat,
    DataSet,
    DemoOptions,
    Economics,
    EconomicsOptions,
    Scenario,
    TableOptions,
    UpOptions,
    demo,
    fetch_data,
    simulate_economics,
    up,
)  # fmt: skip
from consilium.market import Buyer, Seller, check_receipt, offers
from consilium.model import Evaluation, Model, export_hugging_face, export_onnx, export_onnx_int8
from consilium.operator import Operator
from consilium.plugin import InstalledPlugin, check_plugin, plugin_digest, plugins
from consilium.ranks import arena
from consilium.record import Audit, download_model, statistics, verify, verify_audit, verify_evaluation, verify_report
from consilium.reference import TaskReference, task_reference
from consilium.server import openapi, reindex, run_server, server_aggregators, server_jobs
from consilium.shares import Shares, task_shares
from consilium.simulation import GridResult, SimulationResult, simulate, simulate_grid
from consilium.task import DraftedTask, Table, Task, draft
from consilium.watching import status, watch

if TYPE_CHECKING:
    from consilium.client import Client
    from consilium.data_check import DataCheck, check_data
    from consilium.invites import Invitation
    from consilium.machine import Diagnosis, doctor
    from consilium.voter import Voter

# Imported at first use: they need web3.
_AT_FIRST_USE = {
    "Client": "client", "DataCheck": "data_check", "Diagnosis": "machine",
    "Invitation": "invites", "Voter": "voter", "check_data": "data_check",
    "doctor": "machine",
}  # fmt: skip

__all__ = [
    "Attack",
    "Audit",
    "Buyer",
    "Cheat",
    "Client",
    "DataCheck",
    "DataSet",
    "DemoOptions",
    "Diagnosis",
    "DraftedTask",
    "Economics",
    "EconomicsOptions",
    "EnsembleModel",
    "Ensembles",
    "Evaluation",
    "ExportedProgram",
    "Fault",
    "GridResult",
    "InstalledPlugin",
    "Invitation",
    "LocalChain",
    "Model",
    "Operator",
    "Scenario",
    "Seller",
    "Shares",
    "SimulationResult",
    "Table",
    "TableOptions",
    "Task",
    "TaskReference",
    "UpOptions",
    "Voter",
    "arena",
    "change_password",
    "check_artifacts",
    "check_data",
    "check_plugin",
    "check_receipt",
    "checked_address",
    "demo",
    "deploy",
    "doctor",
    "download_model",
    "draft",
    "ensembles",
    "export",
    "export_ensemble",
    "export_hugging_face",
    "export_onnx",
    "export_onnx_int8",
    "fetch_artifacts",
    "fetch_data",
    "fund_account",
    "is_ensemble",
    "log_to",
    "new_key",
    "offers",
    "openapi",
    "plugin_digest",
    "plugins",
    "reindex",
    "run_server",
    "server_aggregators",
    "server_jobs",
    "simulate",
    "simulate_economics",
    "simulate_grid",
    "statistics",
    "status",
    "store_weights",
    "task_reference",
    "task_shares",
    "up",
    "verify",
    "verify_audit",
    "verify_evaluation",
    "verify_report",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_AT_FIRST_USE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
