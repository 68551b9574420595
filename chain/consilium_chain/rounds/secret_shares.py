"""Secret shares of a masked round's hospitals, from chain and artifact store.

The chain has the keccak256 of each hospital's secret shares. The bytes are in the store if the aggregator sent the
commitment, and on chain if the hospital sent its own transaction.
"""

from __future__ import annotations

from consilium_zk.errors import SharesInvalid
from consilium_zk.secret_shares import ShareBundle
from consilium_zk.secure_aggregation import MaskedCohort

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import members


def masked_cohort(ledger: Ledger, task: int, round_: int, cohort: int) -> MaskedCohort:
    """A cohort by its members' bit map."""
    keys = ledger.record.encryption_keys(task)
    return MaskedCohort(
        {index: keys[index] for index in members(cohort)}, ledger.messages.masking_context(task, round_)
    )


def read_share_bundles(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int, cohort: MaskedCohort, recipient: int | None = None
) -> dict[int, ShareBundle]:
    """The secret shares of the cohort's hospitals in the masking, by index: those that committed with sound ones.
    `recipient`: only the parts for this one.

    The result is the same for everybody after commitments are closed. Raises ArtifactMissing, ArtifactCorrupt.
    """
    hospitals = ledger.tasks.hospitals(task)
    digests = ledger.record.share_digests(task, round_)
    on_chain = ledger.record.shares_on_chain(task, round_)
    found = {}
    for index in cohort.encryption_keys:
        digest = digests.get(hospitals[index].node)
        if digest is None:
            continue
        raw = on_chain.get(digest) or store.get_file(digest)
        try:
            share_bundle = cohort.parse(index, raw)
        except SharesInvalid:  # every reader leaves it out
            continue
        found[index] = share_bundle if recipient is None else share_bundle.to(recipient)
    return found
