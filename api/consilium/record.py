"""A task's public record: checks of it, and the model that follows from it. Needs no account."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium_core.defaults import LOCAL_ADDRESS_BOOK, LOCAL_RPC

from consilium.sources import open_chain, open_store

if TYPE_CHECKING:
    import pandas as pd
    from consilium_client.hospital.audit_log import Export
    from consilium_client.voter.disclosure import Disclosure, Finding
    from consilium_operators.model_folder import ModelFile
    from consilium_operators.summary import TaskSummary
    from consilium_verify.audit_log import Consent, Message
    from consilium_verify.audit_report import SignedReport
    from consilium_verify.evaluation import EvaluationCheck
    from consilium_verify.report import Report


def verify(
    task: int,
    round_: int | None = None,
    *,
    artifacts: Sequence[str | Path],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
) -> Report:
    """Checks a round from the chain and the artifacts alone; by default the last settled one, 0 for the statistics.

    `artifacts`: folders and URLs of stores, the first that answers. `.holds` is False if a check fails.

    Raises RecordIncomplete, Refused, ChainUnreachable, DeploymentInvalid.
    """
    from consilium_verify.verification import verify_round

    return verify_round(open_chain(rpc, address_book), open_store(artifacts), task, round_)


def download_model(
    task: int,
    output: str | Path,
    *,
    artifacts: Sequence[str | Path],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
    unverified: bool = False,
    measure_on: Sequence[str | Path] = (),
    replace: bool = False,
    mapping: str | Path | None = None,
    on_report: Callable[[Report], None] = lambda report: None,
) -> ModelFile:
    """Derives a task's model from the record, checks every round, and writes it with its proof into a new folder.

    `unverified`: also if checks fail; the files say so. `measure_on`: held-out rows, to measure the model after each
    round. `replace`: also over an earlier model of this task. `mapping`: written into the model, for its users' files.
    `on_report` is called with each round's report.

    Raises OperatorError (OutputTaken, NotVerified), RecordIncomplete, Refused, ChainUnreachable, DeploymentInvalid,
    DataError.
    """
    from consilium_operators.download import Options, download

    options = Options(
        unverified, [Path(one) for one in measure_on], replace, None if mapping is None else Path(mapping)
    )
    return download(open_chain(rpc, address_book), open_store(artifacts), task, Path(output), options, on_report)


def statistics(
    task: int,
    *,
    artifacts: Sequence[str | Path],
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
) -> TaskSummary:
    """The summary of all hospitals' rows that round 0 of a task counted, once its checks hold. `.table` is a data
    frame, and `.picture()` a PNG file's bytes.

    Raises OperatorError (SummaryMissing, SummaryNotVerified), RecordIncomplete, Refused, ChainUnreachable,
    DeploymentInvalid, ClientError (StatisticsOutOfRange).
    """
    from consilium_operators.summary import summarised

    return summarised(open_chain(rpc, address_book), open_store(artifacts), task)


@dataclass(frozen=True)
class Audit:
    """A hospital's audit log that holds. `added`: the entries that the older export lacks. `transactions`: the number
    of the hospital's on chain, all of which the log has. None: not compared.
    """

    log: Export
    added: int | None
    transactions: int | None

    @property
    def sent(self) -> list[Message]:
        """The messages that left the hospital."""
        from consilium_verify.audit_log import messages_of

        return messages_of(self.log)

    @property
    def consents(self) -> list[Consent]:
        """The second signatures under which the node started on tasks."""
        from consilium_verify.audit_log import consents_of

        return consents_of(self.log)

    @property
    def messages(self) -> pd.DataFrame:
        """The same by row: Unix time `at`, `message`, recipient `to`, and `bytes`."""
        import pandas as pd

        return pd.DataFrame(self.sent, columns=["at", "message", "to", "bytes"])


def verify_audit(
    file: str | Path,
    *,
    extends: str | Path | None = None,
    rpc: str = LOCAL_RPC,
    address_book: str | Path | None = None,
    on_log: Callable[[Audit], None] = lambda audit: None,
) -> Audit:
    """Checks a hospital's exported audit log: its signature and hashes; that it has all entries of the older export
    `extends`; and with an address book, that it has the hospital's actions on chain. `on_log` gets the log before the
    other checks.

    Raises AuditError, DeploymentInvalid, ChainUnreachable.
    """
    from consilium_client.hospital.audit_log import require_extends
    from consilium_verify.audit_log import read_export, require_complete

    log = read_export(Path(file))
    on_log(Audit(log, None, None))
    added = transactions = None
    if extends is not None:
        older = read_export(Path(extends))
        require_extends(log, older)
        added = len(log.entries) - len(older.entries)
    if address_book is not None:
        transactions = require_complete(log, open_chain(rpc, address_book))
    return Audit(log, added, transactions)


def verify_report(file: str | Path, *, rpc: str = LOCAL_RPC, address_book: str | Path | None = None) -> SignedReport:
    """Checks a report of the dashboard's audit: that its account signed it, with its key (EIP-191), and that nothing of
    it was changed. With an address book, also that its chain, contract and block are these, and a contract wallet may
    have signed it (EIP-1271).

    Raises AuditReportError, DeploymentInvalid, ChainUnreachable.
    """
    from consilium_verify.audit_report import verify_report as verified

    return verified(Path(file), None if address_book is None else open_chain(rpc, address_book))


def verify_evaluation(
    file: str | Path,
    *,
    data: str | Path,
    artifacts: Sequence[str | Path],
    mapping: str | Path | None = None,
    rpc: str = LOCAL_RPC,
    address_book: str | Path = LOCAL_ADDRESS_BOOK,
    drawn_only: bool = False,
    on_start: Callable[[Disclosure], None] = lambda disclosure: None,
    on_finding: Callable[[Finding], None] = lambda finding: None,
) -> EvaluationCheck:
    """Checks, with a voter's rows, that the voter evaluated them for its ballot. `.holds` is False if a check fails.

    `file`: the voter's disclosure. `drawn_only`: evaluates only the drawn batches, and computes no scores.

    Raises ClientError (DisclosureMalformed), DataError, RecordIncomplete, ArtifactMissing, ChainUnreachable,
    DeploymentInvalid.
    """
    from consilium_client.voter.disclosure import Disclosure
    from consilium_verify.evaluation import verify_evaluation

    shown = Disclosure.read(Path(file))
    return verify_evaluation(
        open_chain(rpc, address_book), open_store(artifacts), shown, Path(data),
        None if mapping is None else Path(mapping), drawn_only, on_start, on_finding,
    )  # fmt: skip
