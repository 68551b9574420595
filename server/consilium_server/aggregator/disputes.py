"""The aggregator's part in a dispute over a masked cohort without a sum: statements, accusations, cheaters."""

from __future__ import annotations

from collections.abc import Mapping

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.errors import StatementMalformed
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.publishing import Accusation
from consilium_chain.ledger.structs import RoundState
from consilium_chain.rounds.disputes import Shown, find_cheaters, read_case, with_commitments
from consilium_chain.rounds.statements import SignedStatement, parse_signed_statement
from consilium_core.logs import emit
from consilium_zk.disputes import parse_statement, upload_digest
from consilium_zk.errors import EvidenceMalformed, ShapeWrong
from consilium_zk.secret_shares import ShareBundle
from consilium_zk.secure_aggregation import MaskedCohort, masking_digest

from consilium_server.aggregator.task import AggregatedTask
from consilium_server.aggregator.uploads import Upload


class Statements:
    """The valid statements that a round's hospitals signed with their uploads, by index."""

    def __init__(self, ledger: Ledger, task: int, round_: int) -> None:
        self._addresses = [hospital.node for hospital in ledger.tasks.hospitals(task)]
        self._signing, self.round = ledger.messages.statements(task, round_), round_
        self._signed: dict[int, SignedStatement] = {}

    def sound(
        self, cohort: MaskedCohort, share_bundles: Mapping[int, ShareBundle], uploads: Mapping[int, Upload]
    ) -> set[int]:
        """Hospitals of a cohort's masking whose upload has a valid statement. Only these answer for their upload."""
        masking, sound = masking_digest(cohort, share_bundles), set()
        for index in share_bundles.keys() & uploads.keys():
            try:
                self._take(index, uploads[index], masking)
            except (StatementMalformed, ShapeWrong) as error:
                emit("statement-refused", round=self.round, hospital=index, error=str(error))
            else:
                sound.add(index)
        return sound

    def _take(self, index: int, upload: Upload, masking: bytes) -> None:
        """Raises StatementMalformed, ShapeWrong."""
        signed = parse_signed_statement(upload.statement)
        statement = parse_statement(signed.statement)
        if not self._signing.is_by(self._addresses[index], signed):
            raise StatementMalformed("its signature is not the hospital's")
        if statement.upload != upload_digest(upload.blobs):
            raise StatementMalformed("it names another upload")
        if statement.masking != masking:
            raise StatementMalformed("it names another masking")
        self._signed[index] = signed

    def of(self, hospitals: set[int]) -> dict[int, SignedStatement]:
        """Signed statements of these hospitals."""
        return {index: signed for index, signed in self._signed.items() if index in hospitals}


def make_accusation(
    ledger: Ledger,
    store: ArtifactStore,
    task: int,
    cohort: int,
    round_state: RoundState,
    statements: Statements,
    uploads: Mapping[int, Upload],
    roots: Mapping[int, int],
) -> Accusation:
    """Stores the evidence against a cohort, by its number, whose sum is wrong.

    Uploads are masked, and the roots are of one kind only. So a reader learns no more than this aggregator.
    """
    case = read_case(ledger, store, task, statements.round, cohort, round_state)
    points = {index: uploads[index].points for index in case.survivors}
    case = with_commitments(ledger, task, statements.round, case, points)
    signed = statements.of(set(case.survivors))
    stored = {index: [store.put_file(blob) for blob in uploads[index].blobs] for index in case.survivors}
    evidence = store.put_file(Shown(signed, stored, points, roots).to_file())
    return Accusation(case.accusation({index: one.statement for index, one in signed.items()}), evidence)


def accuse_withholders(store: ArtifactStore, answers: Mapping[int, bytes]) -> Accusation:
    """Stores the evidence against a cohort whose roots are missing although enough survivors answered.

    answers: of survivors, by index. No factors combine anything here, so that the accusation is the evidence's digest.
    """
    evidence = store.put_file(Shown(answers=answers).to_file())
    return Accusation(evidence, evidence)


def name_cheaters(task: AggregatedTask, round_: int, round_state: RoundState) -> None:
    """Names on chain the hospitals that broke the sums of accused cohorts. Raises EvidenceMalformed, Refused."""
    cheaters = find_cheaters(task.ledger, task.store, task.number, round_, round_state)
    if not cheaters:
        raise EvidenceMalformed("the evidence of every survivor fits its upload")
    for index, reason in cheaters.items():
        emit("cheater", round=round_, hospital=index, reason=reason)
    task.ledger.aggregator.name_cheaters(task.number, round_, sum(1 << index for index in cheaters))
