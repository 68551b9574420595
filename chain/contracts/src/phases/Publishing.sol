// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskRounds} from "../interfaces/ITaskRounds.sol";
import {Bits} from "../libraries/Bits.sol";
import {Bls12381, G1} from "../libraries/Bls12381.sol";
import {Kzg} from "../libraries/Kzg.sol";
import {Cohort, Keys, Round, Task} from "../types/Task.sol";
import {TaskBase} from "./TaskBase.sol";

/// @title The sums: what they must be by the hospitals' commitments, and the blobs that show them.
/// @notice The consensus layer proves that a blob's bytes open the commitment behind its versioned hash. So when that
///         hash is the one of the survivors' added commitments, the blob is the sum of what they committed to.
abstract contract Publishing is TaskBase, ITaskRounds {
    using Bits for uint256;

    /// @inheritdoc ITaskRounds
    function sumCommitments(uint256 taskId, uint256 number, uint256 cohort, uint256 blob, bytes calldata points)
        external
    {
        (Task storage task, Round storage round) = _open(taskId, Phase.Publishing, number);
        if (!uint256(round.viableCohorts).has(cohort)) revert CohortUnknown(cohort);
        if (blob >= round.blobs) revert BlobUnknown(blob, round.blobs);
        Cohort storage sums = task.cohorts[Keys.entry(number, cohort)];
        if (uint256(sums.summedBlobs).has(blob)) revert AlreadySummed(cohort, blob);

        bytes memory terms = _terms(task, number, sums.members & round.survivors, blob, points);
        bytes32 hash = Kzg.versionedHash(Bls12381.compress(Bls12381.weightedSum(terms)));
        task.sums[Keys.entry(number, cohort, blob)] = hash;
        sums.summedBlobs = uint128(uint256(sums.summedBlobs).with(blob));
        if (sums.summedBlobs == Bits.below(round.blobs)) {
            round.summedCohorts = uint64(uint256(round.summedCohorts).with(cohort));
        }
        emit CohortSummed(taskId, number, cohort, blob, hash);
    }

    /// @inheritdoc ITaskRounds
    function publish(uint256 taskId, uint256 number, uint256 cohort, uint256 firstBlob, uint256 txBlob, uint256 count)
        external
    {
        (Task storage task, Round storage round) = _open(taskId, Phase.Publishing, number);
        _requireAggregator(task);
        if (!uint256(round.viableCohorts).has(cohort)) revert CohortUnknown(cohort);

        Cohort storage sums = task.cohorts[Keys.entry(number, cohort)];
        uint256 published = sums.publishedBlobs;
        for (uint256 i = 0; i < count; ++i) {
            uint256 blob = firstBlob + i;
            bytes32 expected = task.sums[Keys.entry(number, cohort, blob)];
            if (expected == 0) revert NotSummed(cohort, blob);
            if (published.has(blob)) revert AlreadyPublished(cohort, blob);
            bytes32 actual = blobhash(txBlob + i);
            if (actual != expected) revert BlobMismatch(cohort, blob, expected, actual);
            published = published.with(blob);
            emit CohortPublished(taskId, number, cohort, blob, expected);
        }
        sums.publishedBlobs = uint128(published);
        if (published == Bits.below(round.blobs)) _cohortPublished(taskId, task, round, cohort);
    }

    function _cohortPublished(uint256 taskId, Task storage task, Round storage round, uint256 cohort) private {
        uint256 published = uint256(round.publishedCohorts).with(cohort);
        round.publishedCohorts = uint64(published);
        if (published != round.viableCohorts) return;
        if (task.state.round == 0) _settled(taskId, task, new int64[](0), published);
        else _awaitBeacon(taskId, task, Phase.Drawing);
    }

    /// @dev The survivors' points with their weights, each point compared with what its hospital committed to.
    ///      Curve and subgroup need no check here: the opening made it, and the precompile makes it again.
    function _terms(Task storage task, uint256 number, uint256 survivors, uint256 blob, bytes calldata points)
        private
        view
        returns (bytes memory terms)
    {
        uint256 count = survivors.count();
        if (points.length != count * Bls12381.G1_LENGTH) {
            revert PointsWrong(points.length, count * Bls12381.G1_LENGTH);
        }
        terms = new bytes(count * Bls12381.TERM_LENGTH);
        uint256 term;
        for (uint256 i = 0; survivors >> i != 0; ++i) {
            if (!survivors.has(i)) continue;
            G1 memory point = Bls12381.pointAt(points, term);
            if (keccak256(Bls12381.compress(point)) != task.commitments[Keys.entry(number, i, blob)]) {
                revert CommitmentMismatch(task.hospitals[i].node, blob);
            }
            uint256 weight = number == 0 ? 1 : task.hospitals[i].weight;
            Bls12381.setTerm(terms, term++, point, weight);
        }
    }
}
