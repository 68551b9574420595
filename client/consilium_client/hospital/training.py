"""A hospital's training: from the base that it derives itself to the blobs of a round's update."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from consilium_chain.deploying.address_book import Deployment
from consilium_chain.errors import name_of
from consilium_chain.ledger.ledger import Ledger
from consilium_chain.ledger.structs import STATISTICS_ROUND
from consilium_chain.rounds.machine import View
from consilium_chain.rpc.local_node import CHAIN_ID
from consilium_chain.tasks.data_schemas import DataSchema
from consilium_chain.tasks.task_spec import STATISTICS_BITS, STATISTICS_RANGE, TaskSpec
from consilium_core.errors import KeystoreError
from consilium_core.logs import emit, hint
from consilium_core.private_files import read_private_file, write_private_file
from consilium_zk.basis import Coordinates
from consilium_zk.blobs import Blob
from consilium_zk.errors import ArgumentInvalid
from consilium_zk.packing import pack
from consilium_zk.quantise import Quantiser
from numpy.typing import NDArray
from safetensors.numpy import save

from consilium_client.config import HospitalAccountSettings
from consilium_client.consent import Policy
from consilium_client.data.examples import Examples, Labels
from consilium_client.data.standardise import round_0_values, summary_of
from consilium_client.errors import ClientError, DataError
from consilium_client.evaluation.own import note_trained
from consilium_client.home import SALT_FILE
from consilium_client.hospital.context import Context
from consilium_client.hospital.learning import Updates
from consilium_client.hospital.memory import OnDisk
from consilium_client.membership import ROUND_ERRORS
from consilium_client.models import Inputs, Model, Vector, model_of
from consilium_client.models.training import require_device
from consilium_client.privacy.exact_statistics import ExactStatisticsRecord
from consilium_client.replay import PublicRecord

if TYPE_CHECKING:
    from consilium_client.privacy.accountant import PrivateRounds

LOCAL_TENSORS = "local.safetensors"
SEED_BITS = 128  # of the operating system's randomness
LEAST_SALT, MOST_SALT = 16, hashlib.blake2b.MAX_KEY_SIZE  # bytes
LocalUpdate = Callable[[int, Vector], Coordinates]


def split(examples: Examples, share: float, salt: bytes) -> tuple[Examples, Examples]:
    """(kept, held out), each in the examples' order; either may be empty. Raises ArgumentInvalid."""
    out = held_out(examples, share, salt)
    return examples.chosen(~out), examples.chosen(out)


def held_out(examples: Examples, share: float, salt: bytes) -> NDArray[np.bool_]:
    """Marks rows that are held out, bool (n,): each with probability `share` in [0, 1], drawn by a hash under `salt`.

    The same patients are held out again after the next export, in any order of rows and columns and any form of file.
    The label does not count: a corrected diagnosis moves no row, and equal rows stay together. A larger share includes
    the rows of a smaller one. If a mapping names the patients' column, all rows of a patient stay together.
    `salt`: 16 to 64 random bytes, which the hospital keeps secret: with them and a patient's row, one knows on which
    side the row is. Raises ArgumentInvalid.
    """
    if not 0 <= share <= 1:
        raise ArgumentInvalid("share", share, "in [0, 1]")
    if not LEAST_SALT <= len(salt) <= MOST_SALT:
        raise ArgumentInvalid("the salt's length", len(salt), f"in [{LEAST_SALT}, {MOST_SALT}]")
    below = int(share * 2**64)
    digests = (hashlib.blake2b(what, key=salt, digest_size=8).digest() for what in examples.units())
    return np.array([int.from_bytes(digest) < below for digest in digests], dtype=np.bool_)


def keep_out(settings: HospitalAccountSettings, examples: Examples) -> tuple[Examples, Examples | None]:
    """Splits the examples into those to train on and those kept out, if any. Raises TooFewRows."""
    if settings.held_out == 0:
        return examples, None
    path = settings.home / SALT_FILE
    if not path.exists():
        write_private_file(path, secrets.token_hex(LEAST_SALT))
    try:
        salt = bytes.fromhex(read_private_file(path))
    except ValueError:  # which would quote it
        raise KeystoreError(
            f"{path} must contain {2 * LEAST_SALT} hexadecimal digits; restore it from a backup"
        ) from None
    kept, out = split(examples, settings.held_out, salt)
    if kept.rows == 0:
        raise DataError("TooFewRows", rows=0, at_least=1)
    return kept, out if out.rows else None


def statistics_blobs(examples: Examples, spec: TaskSpec, summary: NDArray[np.int64] | None = None) -> list[Blob]:
    """Round 0's values of these examples, quantised and packed. `summary`: as `round_0_values` takes it."""
    lanes = Quantiser(STATISTICS_BITS, STATISTICS_RANGE).quantise(round_0_values(examples, spec, summary), None)
    return pack(lanes, spec.statistics_layout)


@dataclass(frozen=True)
class RoundSeeds:
    """Seeds of a round's training and of the rounding of its update."""

    training: int
    rounding: int

    @classmethod
    def of(cls, trial_seed: int | None, round_: int) -> RoundSeeds:
        """The operating system's, or, with a trial's seed, the same for a round each time."""
        if trial_seed is None:
            return cls(secrets.randbits(SEED_BITS), secrets.randbits(SEED_BITS))
        training, rounding = np.random.SeedSequence((trial_seed, round_)).generate_state(2, np.uint64).tolist()
        return cls(training, rounding)


class Privacy:
    """The records of privacy costs and of exact statistics. `rounds`: None in a task without noise."""

    def __init__(self, context: Context, policy: Policy, examples: Examples) -> None:
        """Raises EpsilonUnreachable, ChargesUnknown, DeploymentInvalid."""
        self._context, self._examples = context, examples
        self.rounds = self._private_rounds(policy)
        exact = context.task.spec.counts_exactly
        self._statistics = ExactStatisticsRecord(context.settings.statistics_file) if exact else None

    def _private_rounds(self, policy: Policy) -> PrivateRounds | None:
        spec, context = self._context.task.spec, self._context
        if spec.privacy is None and spec.summary_variance == 0:
            return None
        from consilium_client.privacy.accountant import Budget, PrivateRounds  # Opacus: seconds to import, and 120 MB

        own = None if policy.max_epsilon is None else Budget(policy.max_epsilon, policy.delta)
        found = PrivateRounds(context.settings.privacy_file, own, context.name, spec, self._examples.rows)
        for ledger in self._ledgers():
            found.make_up(ledger, context.store)
        return found

    @property
    def is_spent(self) -> bool:
        return self.rounds is not None and self.rounds.spent

    def require_affordable(self) -> None:
        """Raises BudgetExceeded; ClientError (StatisticsOverlap and others) if no exact
        statistics of these rows may leave.
        """
        if self.rounds:
            self.rounds.require_affordable()
        self._require_givable()

    def give_statistics(self) -> None:
        """Records on disk that exact statistics leave, or what a noisy summary costs, before anything is signed."""
        self._require_givable()
        spec = self._context.task.spec
        if self._statistics:
            self._statistics.give(*self._given)
        elif self.rounds and spec.summary:
            self.rounds.pay(STATISTICS_ROUND)
        if spec.summary:
            self._context.audit.counted(self._context.task.number, spec.summary_values, spec.summary_variance)

    def _require_givable(self) -> None:
        """Raises ClientError (StatisticsOverlap and others), DeploymentInvalid."""
        if self._statistics is None:
            return
        for ledger in self._ledgers():
            self._statistics.require_complete(ledger, self._context.store)
        self._statistics.require_givable(*self._given)

    @property
    def _given(self) -> tuple[str, Examples, DataSchema, bool, int | None]:
        spec = self._context.task.spec
        bins = spec.summary.bins if spec.summary else None
        return self._context.name, self._examples, spec.data, spec.counted_classes > 0 or bins is not None, bins

    def _ledgers(self) -> Iterator[Ledger]:
        """The task's, and those of earlier contracts on its chain. Raises DeploymentInvalid."""
        yield self._context.ledger
        for book in map(Deployment.read, self._context.settings.earlier_deployments):
            if book.chain_id == self._context.ledger.connection.chain_id:
                yield Ledger(self._context.ledger.connection, book)


class Training:
    """`examples`: the rows to train on; `own_test`: those kept out of training. `record` derives the bases."""

    def __init__(self, context: Context, policy: Policy, examples: Examples) -> None:
        self._settings, self._spec = context.settings, context.task.spec
        self._last_round = context.task.params.rounds
        self.examples, self.own_test = keep_out(context.settings, examples)
        policy.require_rows(self._spec, self.examples.rows)
        self._model: Model = model_of(self._spec)
        self._model.require_installed()
        self._device = require_device(self._spec, context.settings.device)
        if self._spec.privacy is not None:
            self._model.require_apart()
        if context.settings.trial_seed is not None and context.ledger.connection.chain_id != CHAIN_ID:
            raise ClientError("TrialNotLocal", chain_id=context.ledger.connection.chain_id)
        self.record = PublicRecord(context.ledger, context.store, context.task)
        self._task_key = context.name
        self._folder = context.settings.home / "memory" / context.name
        self._memory = OnDisk(self._folder)
        self._updates = Updates(self._spec, self.record, self._memory)
        self.privacy = Privacy(context, policy, self.examples)
        self._read = STATISTICS_ROUND  # the latest round whose sums it tried to read

    @cached_property
    def inputs(self) -> Inputs:
        """The model's inputs of this hospital's examples, once round 0 is settled."""
        return self._model.inputs(self.examples, self.record.statistics())

    def packed(self, round_: int, local_update: LocalUpdate) -> list[Blob]:
        """A round's statistics, or from round 1 on the local update: clipped, quantised, and packed into blobs."""
        self.record.refresh(round_)
        spec = self._spec
        if round_ == STATISTICS_ROUND:
            self.privacy.give_statistics()
            return statistics_blobs(self.examples, spec, self._summary() if spec.summary_variance else None)
        note_trained(self._settings, self._task_key)
        seeds = RoundSeeds.of(self._settings.trial_seed, round_)
        return self._updates.blobs(round_, local_update(round_, self.record.base(round_)), seeds.rounding)

    def _summary(self) -> NDArray[np.int64]:
        """The noisy counts that leave: drawn once, and kept on disk before they leave. Two draws for the
        same rows would average out, and the same draw for other rows would show which ones differ.
        """
        kept = self._memory.recall("summary", STATISTICS_ROUND + 1, self._spec.summary_values)
        if kept is not None:
            return kept[1]
        counts = summary_of(self.examples, self._spec)
        self._memory.keep("summary", STATISTICS_ROUND, counts)
        return counts

    def local_update(self, round_: int, base: Vector) -> Coordinates:
        """The difference that training makes to `base`, as coordinates in the task's basis, float64 (k,). Never the
        same twice but in a trial: two tasks' updates of the same rows must not differ by the rows alone.
        """
        rows = self.inputs, self.examples.labels

        def progress(done: int, steps: int, loss: float) -> None:
            hint("training", step=done, of=steps, loss=loss)

        if self.privacy.rounds is not None and self._spec.privacy is not None:
            return self.privacy.rounds.learn(round_, self.record.basis, base, *rows, progress, self._device)
        seed = RoundSeeds.of(self._settings.trial_seed, round_).training
        return self._updates.learn(round_, base, rows, self._held_out(), seed, progress, self._device)

    def _held_out(self) -> tuple[Inputs, Labels] | None:
        if self.own_test is None:
            return None
        return self._model.inputs(self.own_test, self.record.statistics()), self.own_test.labels

    def forget(self) -> None:
        """Deletes what the ended task needed from round to round. Local tensors become a file, to predict with."""
        if own := self._updates.local_tensors():
            write_private_file(self._folder / LOCAL_TENSORS, save(own))
        self._memory.forget()

    def has_read(self, round_: int) -> bool:
        """True if this round's sums need not be read ahead. The last round leads to no base."""
        return round_ in (self._read, self._last_round)

    def read_ahead(self, view: View) -> None:
        """Reads the sums of the next base while a committee judges. Missing sums fail the next round, not this step."""
        self._read = view.state.round
        self.show_worth(self._read)
        try:
            self.record.sums.read_ahead(self._read, view.round)
        except ROUND_ERRORS as error:
            emit("sums-missing", round=self._read, error=name_of(error))

    def show_worth(self, round_: int) -> None:
        """Shows how good the round's base, with its own local tensors, is on its rows; only on the screen."""
        if self.own_test is None or round_ == STATISTICS_ROUND:
            return
        try:
            inputs = self._model.inputs(self.own_test, self.record.statistics())
            own = self._updates.own_model(round_, self.record.base(round_))
            answers = self._model.evaluate(own, inputs).answers(self.own_test.labels)
        except ROUND_ERRORS as error:
            emit("sums-missing", round=round_, error=name_of(error))
            return
        measures = self._model.objective.measures
        scores = {name: measures[name].of(*answers) for name in self._spec.data.asked.shown}
        hint("worth", round=round_, rows=len(answers[0]), **scores)
