"""Errors of ensembles."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class EnsembleError(FaultError):
    """An ensemble cannot be written, read, or sold."""

    MESSAGES: ClassVar = {
        "EnsembleUnknown": (
            "the chain has no ensemble {number}: `consilium ensemble show` lists all; check the number and the address"
            " book"
        ),
        "EnsembleFolderInvalid": "{path}: {why}; write the ensemble again with `consilium ensemble export`",
        "EnsembleDiffers": (
            "{path} has {found}, and the chain has {wanted}: write the ensemble again with `consilium ensemble export`"
        ),
        "GraphImpossible": (
            "nothing was written: the ensemble has no model.onnx, since {why}: pass --no-onnx to leave it out"
        ),
        "MemberForeign": (
            "{path} has the model of task {task} of chain {chain} and contract {contract}, which is no member of"
            " ensemble {number}: pass a folder for each of the tasks {tasks} of chain {wanted} and contract {tasks_at}"
        ),
        "MemberTwice": "{path} has the model of task {task}, as {first} has: pass one folder for each task",
        "MemberMissing": (
            "no folder has the model of the tasks {missing}, which ensemble {number} needs: write them with `consilium"
            " operator download-model`, and pass them too"
        ),
        "MemberNotVerified": (
            "{path}: checks of the model of task {task} failed, so no ensemble with it can be sold: download it again"
        ),
        "MemberLocal": (
            "the model of task {task} leaves out {names}, which each hospital has for itself: form an ensemble of other"
            " tasks"
        ),
        "MembersDiffer": (
            "the tasks {first} and {second} ask differently: {field} is {wanted} in the first, and {found} in the"
            " second. Form an ensemble of tasks with the same columns, answers and metric"
        ),
    }
