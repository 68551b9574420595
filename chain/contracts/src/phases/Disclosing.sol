// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskSettlement} from "../interfaces/ITaskSettlement.sol";
import {Bits} from "../libraries/Bits.sol";
import {Bls12381, G1} from "../libraries/Bls12381.sol";
import {Decoys, Shown} from "../libraries/Decoys.sol";
import {Kzg} from "../libraries/Kzg.sol";
import {Cohort, Keys, Round, Sum, Task} from "../types/Task.sol";
import {Settling} from "./Settling.sol";
import {Summing} from "./Summing.sol";

/// @title The disclosure of a decoy round: published blobs are proven to be sums, as they are or sign-flipped.
/// @notice It follows the reveals. Nobody is paid before every blob's hash is the one that the survivors' commitments
///         give.
abstract contract Disclosing is Summing, Settling {
    using Bits for uint256;

    /// @inheritdoc ITaskSettlement
    function discloseDecoys(
        uint256 taskId,
        uint256 number,
        uint256 cohort,
        uint256 firstBlob,
        bytes32 seed,
        bytes calldata negatedDelta,
        Disclosed[] calldata disclosed
    ) external {
        if (_known(taskId).state.phase == Phase.Revealing) settle(taskId, number); // which starts this phase
        (Task storage task, Round storage round) = _open(taskId, Phase.Disclosing, number);
        if (Decoys.commitment(Decoys.seedCommitment(seed), keccak256(negatedDelta)) != round.decoys) {
            revert DecoysMismatch(taskId, number);
        }
        if (!uint256(round.viableCohorts).has(cohort)) revert CohortUnknown(cohort);
        if (negatedDelta.length != round.blobs * Bls12381.G1_LENGTH) {
            revert PointsWrong(negatedDelta.length, round.blobs * Bls12381.G1_LENGTH);
        }
        Shown memory shown;
        shown.isFlipped = Decoys.isFlipped(seed, taskId, number, cohort);
        for (uint256 i = 0; i < disclosed.length; ++i) {
            uint256 blob = firstBlob + i;
            if (blob >= round.blobs) revert BlobUnknown(blob, round.blobs);
            shown.negatedDelta = Bls12381.pointAt(negatedDelta, blob);
            _discloseBlob(taskId, cohort, blob, shown, disclosed[i]);
        }
        if (!uint256(round.summedCohorts).has(cohort)) return;
        if (round.summedCohorts == round.viableCohorts) _noteLate(task, round, task.params.publishWindow);
        if (shown.isFlipped) round.flippedCohorts = uint64(uint256(round.flippedCohorts).with(cohort));
        emit CohortDisclosed(taskId, number, cohort, shown.isFlipped);
    }

    function _discloseBlob(
        uint256 taskId,
        uint256 cohort,
        uint256 blob,
        Shown memory shown,
        Disclosed calldata disclosed
    ) private {
        Task storage task = _tasks[taskId];
        uint256 number = task.state.round;
        Round storage round = task.rounds[number];
        Cohort storage sums = task.cohorts[Keys.entry(number, cohort)];
        if (uint256(sums.summedBlobs).has(blob)) return; // disclosed by another, or before a restart
        (shown.first, shown.second) = (disclosed.first, disclosed.second);
        Sum memory sum;
        (sum.taskId, sum.round, sum.cohort, sum.blob) = (taskId, number, cohort, blob);
        bytes32 expected = _expected(task, sum, shown, disclosed.commitments);
        bytes32 published = task.sums[Keys.entry(number, cohort, blob)];
        if (expected != published) revert BlobMismatch(cohort, blob, expected, published);
        _summed(round, sums, cohort, blob);
    }

    /// @dev The versioned hash that a published blob must have by the survivors' commitments.
    function _expected(Task storage task, Sum memory sum, Shown memory shown, Commitments calldata commitments)
        private
        returns (bytes32)
    {
        sum.isNegated = shown.isFlipped;
        _show(sum, commitments, shown.isFlipped ? Decoys.FLIPPED_TERMS : Decoys.PLAIN_TERMS);
        (shown.next, shown.weight) = (sum.count, sum.weight);
        Decoys.setTerms(sum.terms, shown, task.params.updateBits, task.params.laneBits);
        return Kzg.versionedHash(Bls12381.compress(Bls12381.weightedSum(sum.terms)));
    }
}
