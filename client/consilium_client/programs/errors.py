"""Errors of model programs."""

from __future__ import annotations

from typing import ClassVar

from consilium_client.errors import ModelError


class ProgramError(ModelError):
    """A program's file is refused, or a module cannot become one."""

    MESSAGES: ClassVar = {
        "NotExportable": "this module cannot become a program: {why}",
        "ProgramMalformed": "this is no program: {why}; export the module again by `consilium.export`",
        "OperatorForbidden": "node {node} of the program has the operator {operator}, which no program may have"
        " (docs/models.md has the list)",
        "ProgramTooLarge": "the program is too large: {what} has {found:,} {unit}, and at most {most:,} are read",
        "RowsMixed": "the program's result for a row depends on the rows beside it, so a private task cannot train it:"
        " export it without batch norms, or remove [privacy]",
        "ProgramFailed": "node {node} ({operator}) of the program cannot be computed: {why}; tell its author",
        "ProgramEnded": "the process that computes the program {why}. Its round is lost, and a node goes on with the"
        " next. If it happens again, leave the task, and tell the program's author",
        "NotConfined": "the system does not hold a program's process to its limits: {why}; run this node on Linux with"
        " seccomp (x86_64 or aarch64), or leave out tasks with programs",
        "TokenizerUnusable": "the program's tokenizer makes no tokens of these texts: {why}; export it again, with the"
        " `tokenizer.json` of its model",
        "ProgramMissing": "the program {program} was not read: it is an artifact of the task that names it",
    }
