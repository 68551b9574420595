"""Secret shares of a masked round's hospitals, as everybody reads them from chain and artifact store.

The chain names each dealing by its keccak256. Its bytes are in the store, where the aggregator that relayed the
commitment puts them, or on chain, where the hospital sent its own transaction.
"""

from __future__ import annotations

from consilium_zk.errors import SharesInvalid
from consilium_zk.secret_shares import Dealing
from consilium_zk.secure_aggregation import MaskedCohort

from consilium_chain.artifacts.store import ArtifactStore
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import members


def masked_cohort(ledger: Ledger, task: int, round_: int, cohort: int) -> MaskedCohort:
    """A cohort, by its members' bit map."""
    keys = ledger.record.sealing_keys(task)
    return MaskedCohort(
        {index: keys[index] for index in members(cohort)}, ledger.messages.masking_context(task, round_)
    )


def read_dealings(
    ledger: Ledger, store: ArtifactStore, task: int, round_: int, cohort: MaskedCohort, recipient: int | None = None
) -> dict[int, Dealing]:
    """By index, of the cohort's hospitals that are in the masking: who has committed with a sound dealing. With a
    `recipient`, of each dealing what is for that one.

    Once commitments are closed it is the same for everybody. Raises ArtifactMissing, ArtifactCorrupt.
    """
    hospitals = ledger.tasks.hospitals(task)
    digests = ledger.record.share_digests(task, round_)
    on_chain = ledger.record.shares_on_chain(task, round_)
    found = {}
    for index in cohort.sealing_keys:
        digest = digests.get(hospitals[index].node)
        if digest is None:
            continue
        raw = on_chain.get(digest) or store.get_file(digest)
        try:
            dealing = cohort.parse(index, raw)
        except SharesInvalid:  # whoever reads these bytes leaves it out
            continue
        found[index] = dealing if recipient is None else dealing.to(recipient)
    return found
