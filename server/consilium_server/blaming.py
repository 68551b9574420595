"""The aggregator's part where a masked cohort has no sum: statements taken in, and the case made of them."""

from __future__ import annotations

from collections.abc import Mapping

from consilium_chain.accusations import Shown, read_case
from consilium_chain.artifacts import ArtifactStore
from consilium_chain.errors import StatementMalformed
from consilium_chain.journal import emit
from consilium_chain.ledger import Ledger
from consilium_chain.publishing import Accusation
from consilium_chain.statements import SignedStatement, parse_signed_statement
from consilium_chain.views import RoundState
from consilium_zk.blame import Statement, disagreeing, parse_statement, upload_digest
from consilium_zk.errors import ShapeWrong

from consilium_server.uploads import Upload


class Statements:
    """What a round's hospitals signed with their uploads, by index: sound ones only."""

    def __init__(self, ledger: Ledger, task: int, round_: int) -> None:
        self._addresses = [hospital.node for hospital in ledger.hospitals(task)]
        self._signing, self.round = ledger.statement_signing(task, round_), round_
        self._signed: dict[int, SignedStatement] = {}

    def agreeing(self, masking: set[int], uploads: Mapping[int, Upload]) -> set[int]:
        """Of a cohort's masking those who uploaded and whose statements, being sound, go with all the others'.

        Without a statement nobody answers for an upload, and of two who say that they share different seeds one
        masked with another than it should have.
        """
        statements = {}
        for index in masking & uploads.keys():
            try:
                statements[index] = self._take(index, uploads[index], masking - {index})
            except (StatementMalformed, ShapeWrong) as error:
                emit("statement-refused", round=self.round, hospital=index, error=str(error))
        apart = disagreeing(statements)
        for index in sorted(apart):
            emit("statement-refused", round=self.round, hospital=index, error="others say that they share other seeds")
        return statements.keys() - apart

    def _take(self, index: int, upload: Upload, others: set[int]) -> Statement:
        signed = parse_signed_statement(upload.statement)
        statement = parse_statement(signed.statement, others)
        if not self._signing.is_by(self._addresses[index], signed):
            raise StatementMalformed("another's signature")
        if statement.upload != upload_digest(upload.blobs):
            raise StatementMalformed("it is on another upload")
        self._signed[index] = signed
        return statement

    def of(self, hospitals: set[int]) -> dict[int, SignedStatement]:
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
    """Stores what judges need of a cohort, by its number, whose sum does not hold.

    Uploads are masked, and roots given only ever of one kind: who reads the store learns no more than this aggregator.
    """
    case = read_case(ledger, store, task, statements.round, cohort, round_state)
    signed = statements.of(set(case.dealings))
    stored = {index: [store.put_file(blob) for blob in uploads[index].blobs] for index in case.survivors}
    evidence = store.put_file(Shown(signed, stored, roots).to_file())
    return Accusation(case.accusation({index: one.statement for index, one in signed.items()}), evidence)
