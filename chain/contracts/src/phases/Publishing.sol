// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Bls12381} from "../libraries/Bls12381.sol";
import {Decoys} from "../libraries/Decoys.sol";
import {Kzg} from "../libraries/Kzg.sol";
import {TaskRules} from "../libraries/TaskRules.sol";
import {Cohort, Keys, Round, Sum, Task} from "../types/Task.sol";
import {Disputing} from "./Disputing.sol";
import {Summing} from "./Summing.sol";

/// @title Sums: their expected commitments, and the blobs that publish them.
/// @notice The consensus layer proves that a blob's bytes belong to the commitment behind its versioned hash. If that
///         hash is the one of the survivors' added commitments, the blob is the sum of their committed updates. In a
///         decoy round `Disclosing` makes this comparison after the reveals.
abstract contract Publishing is Summing, Disputing {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function sumCommitments(
        uint256 taskId,
        uint256 number,
        uint256 cohort,
        uint256 blob,
        Commitments calldata commitments
    ) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Publishing, number);
        if (_hasDecoys(task, number)) revert DecoyRound(taskId, number);
        if (!uint256(round.viableCohorts).has(cohort)) revert CohortUnknown(cohort);
        if (blob >= round.blobs) revert BlobUnknown(blob, round.blobs);
        Cohort storage sums = task.cohorts[Keys.entry(number, cohort)];
        if (uint256(sums.summedBlobs).has(blob)) revert AlreadySummed(cohort, blob);

        Sum memory sum;
        (sum.taskId, sum.round, sum.cohort, sum.blob) = (taskId, number, cohort, blob);
        _show(sum, commitments, 0);
        bytes32 hash = Kzg.versionedHash(Bls12381.compress(Bls12381.weightedSum(sum.terms)));
        task.sums[Keys.entry(number, cohort, blob)] = hash;
        _summed(round, sums, cohort, blob);
        emit CohortSummed(taskId, number, cohort, blob, hash);
    }

    /// @inheritdoc ITaskRounds
    function setDecoys(uint256 taskId, uint256 number, bytes32 seedCommitment, bytes32 negatedDelta) external {
        (Task storage task, Round storage round) = _open(taskId, Phase.Publishing, number);
        _requireAggregator(task);
        if (!_hasDecoys(task, number)) revert NotADecoyRound(taskId, number);
        if (round.decoys != 0) revert DecoysAlreadySet(taskId, number);
        round.decoys = Decoys.commitment(seedCommitment, negatedDelta);
        emit DecoysSet(taskId, number, seedCommitment, negatedDelta);
    }

    /// @inheritdoc ITaskRounds
    function publish(uint256 taskId, uint256 number, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external
    {
        bytes32[] memory hashes = new bytes32[](count);
        for (uint256 i = 0; i < count; ++i) {
            hashes[i] = blobhash(txBlob + i);
        }
        _publish(taskId, number, cohort, firstBlob, hashes);
    }

    /// @inheritdoc ITaskRounds
    function publishDigests(
        uint256 taskId,
        uint256 number,
        uint256 cohort,
        uint256 firstBlob,
        bytes32[] calldata hashes
    ) external {
        if (!_known(taskId).params.digests) revert NotByDigest(taskId);
        _publish(taskId, number, cohort, firstBlob, hashes);
    }

    /// @inheritdoc ITaskRounds
    function dropCohort(uint256 taskId, uint256 number, uint256 cohort) external {
        (Task storage task, Round storage round) = _drop(taskId, number, cohort);
        _closePublishing(taskId, task, round);
    }

    /// @inheritdoc ITaskRounds
    function accuseCohort(uint256 taskId, uint256 number, uint256 cohort, bytes32 accusation, bytes32 evidence)
        external
    {
        (Task storage task, Round storage round) = _drop(taskId, number, cohort);
        round.accused |= task.cohorts[Keys.entry(number, cohort)].members & round.committed();
        emit CohortAccused(taskId, number, cohort, accusation, evidence);
        _closePublishing(taskId, task, round);
    }

    function _drop(uint256 taskId, uint256 number, uint256 cohort)
        private
        returns (Task storage task, Round storage round)
    {
        (task, round) = _open(taskId, Phase.Publishing, number);
        _requireAggregator(task);
        if (!task.params.masked) revert NotMasked(taskId);
        uint256 viable = round.viableCohorts;
        if (!viable.has(cohort)) revert CohortUnknown(cohort);
        if (task.cohorts[Keys.entry(number, cohort)].publishedBlobs != 0) revert AlreadyPublished(cohort, 0);
        viable = viable.without(cohort);
        round.viableCohorts = uint64(viable);
        round.summedCohorts &= uint64(viable);
        round.droppedCohorts = uint64(uint256(round.droppedCohorts).with(cohort));
        emit CohortDropped(taskId, number, cohort);
    }

    function _publish(uint256 taskId, uint256 number, uint256 cohort, uint256 firstBlob, bytes32[] memory hashes)
        private
    {
        (Task storage task, Round storage round) = _open(taskId, Phase.Publishing, number);
        _requireAggregator(task);
        if (!uint256(round.viableCohorts).has(cohort)) revert CohortUnknown(cohort);
        bool hasDecoys = _hasDecoys(task, number);
        if (hasDecoys && round.decoys == 0) revert DecoysNotSet(taskId, number);

        Cohort storage sums = task.cohorts[Keys.entry(number, cohort)];
        (uint256 published, uint256 blobs) = (sums.publishedBlobs, round.blobs);
        for (uint256 i = 0; i < hashes.length; ++i) {
            uint256 blob = firstBlob + i;
            if (blob >= blobs) revert BlobUnknown(blob, blobs);
            if (published.has(blob)) revert AlreadyPublished(cohort, blob);
            bytes32 key = Keys.entry(number, cohort, blob);
            if (hasDecoys) _take(task, key, cohort, blob, hashes[i]);
            else _compare(task, key, cohort, blob, hashes[i]);
            published = published.with(blob);
            emit CohortPublished(taskId, number, cohort, blob, hashes[i]);
        }
        sums.publishedBlobs = uint128(published);
        if (published != Bits.below(blobs)) return;
        round.publishedCohorts = uint64(uint256(round.publishedCohorts).with(cohort));
        _closePublishing(taskId, task, round);
    }

    function _take(Task storage task, bytes32 key, uint256 cohort, uint256 blob, bytes32 hash) private {
        if (hash == 0) revert BlobMissing(cohort, blob);
        task.sums[key] = hash;
    }

    function _compare(Task storage task, bytes32 key, uint256 cohort, uint256 blob, bytes32 hash) private view {
        bytes32 expected = task.sums[key];
        if (expected == 0) revert NotSummed(cohort, blob);
        if (hash != expected) revert BlobMismatch(cohort, blob, expected, hash);
    }

    /// @dev Without blobs only the committee can say that the statistics are available.
    function _closePublishing(uint256 taskId, Task storage task, Round storage round) private {
        uint256 published = round.publishedCohorts;
        if (published != round.viableCohorts) return;
        _noteLate(task, round, task.params.publishWindow);
        bool isWhole = published == Bits.below(round.cohorts); // same slot: the common case needs no further read
        if (!isWhole && round.accused != 0) {
            return _startPhase(taskId, task, Phase.Disputing, TaskRules.DISPUTE_STEPS * task.params.publishWindow);
        }
        if (published == 0) return _conclude(taskId, task, VoidReason.NoSums);
        bool isJudged = task.state.round != 0 || task.params.digests;
        if (isJudged) _awaitBeacon(taskId, task, Phase.Drawing);
        else _conclude(taskId, task, VoidReason.None);
    }
}
