"""Errors of the verifiers' own."""

from __future__ import annotations

from typing import ClassVar

from consilium_core.faults import FaultError


class AuditReportError(FaultError):
    """A file is not a signed report of the dashboard's audit, or does not hold."""

    MESSAGES: ClassVar = {
        "ReportUnreadable": "cannot read {path}: {why}; pass the file that the dashboard's audit page downloaded",
        "ReportMalformed": "{path} is not an audit report of the dashboard: {why}; download it again, and do not edit"
        " it",
        "ReportUnsigned": "{path} has no signature: sign the report on the audit page before you download it",
        "ReportChanged": "{path} was changed after it was made: {why}; ask its signer for the original file",
        "ReportForged": "{account} did not sign {path}{hint}; ask for a report that its account signed",
        "ReportElsewhere": "{path} is of another chain or deployment: its {what} is {given}, and here it is {own}; pass"
        " the chain node and the address book of that network",
    }
