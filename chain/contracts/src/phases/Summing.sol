// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bits} from "../libraries/Bits.sol";
import {Bls12381, G1} from "../libraries/Bls12381.sol";
import {Kzg} from "../libraries/Kzg.sol";
import {PointHashes} from "../libraries/PointHashes.sol";
import {RunningHash} from "../libraries/RunningHash.sol";
import {Cohort, HospitalEntry, Keys, Round, Sum, Task} from "../types/Task.sol";
import {Concluding} from "./Concluding.sol";

/// @title Sums of a cohort's commitments.
abstract contract Summing is Concluding {
    using Bits for uint256;

    function _summed(Round storage round, Cohort storage sums, uint256 cohort, uint256 blob) internal {
        sums.summedBlobs = uint128(uint256(sums.summedBlobs).with(blob));
        if (sums.summedBlobs == Bits.below(round.blobs)) {
            round.summedCohorts = uint64(uint256(round.summedCohorts).with(cohort));
        }
    }

    /// @dev Fills the sum with the survivors' points and weights, and shows the points. All commitments of the cohort
    ///      together must give its running hash. So nobody can leave a survivor out, show another point for it, or show
    ///      it among the others. The precompile that adds points up checks curve and subgroup.
    /// @param sum says which one. @param room number of terms to leave free at the end.
    function _show(Sum memory sum, Commitments calldata commitments, uint256 room) internal {
        Task storage task = _tasks[sum.taskId];
        uint256 left = task.cohorts[Keys.entry(sum.round, sum.cohort)].members & task.rounds[sum.round].committed();
        uint256 survivors = left & task.rounds[sum.round].survivors;
        uint256 count = survivors.count();
        _requireLengths(commitments, left.count(), count);
        sum.hospitals = new bytes(count);
        sum.points = new bytes(count * Kzg.POINT_LENGTH);
        sum.terms = new bytes((count + room) * Bls12381.TERM_LENGTH);
        bytes32 context = PointHashes.context(sum.taskId, sum.round);
        bytes32 hash;
        for (uint256 i = 0; i < commitments.order.length; ++i) {
            uint256 index = uint8(commitments.order[i]);
            // Each occurs once, so there is a point or a hash for it.
            if (!left.has(index)) revert CommitmentMismatch(sum.cohort, sum.blob);
            left = left.without(index);
            bytes32 pointHash = survivors.has(index)
                ? _add(task, sum, context, index, commitments.points)
                : commitments.others[i - sum.count];
            hash = RunningHash.extend(hash, index, pointHash);
        }
        bytes32 expected = task.commitments[Keys.entry(sum.round, sum.cohort, sum.blob)];
        if (hash != expected) revert CommitmentMismatch(sum.cohort, sum.blob);
        emit PointsShown(sum.taskId, sum.round, sum.cohort, sum.blob, sum.hospitals, sum.points);
    }

    /// @dev Adds a survivor's point, which is the next of `points`.
    /// @return pointHash by which the survivor must have committed to the point.
    function _add(Task storage task, Sum memory sum, bytes32 context, uint256 index, bytes calldata points)
        private
        view
        returns (bytes32 pointHash)
    {
        HospitalEntry storage hospital = task.hospitals[index];
        address node = hospital.node;
        G1 memory point = Bls12381.pointAt(points, sum.count);
        if (Bls12381.isIdentity(point)) revert CommitmentMalformed(node, sum.blob);
        bytes memory compressed = Bls12381.compress(point);
        uint256 weight = sum.round == 0 ? 1 : hospital.weight;
        Bls12381.setTerm(sum.terms, sum.count, point, sum.isNegated ? Bls12381.ORDER - weight : weight);
        Kzg.setPoint(sum.points, sum.count, compressed);
        sum.hospitals[sum.count] = bytes1(uint8(index));
        ++sum.count;
        sum.weight += weight;
        return PointHashes.hashOf(context, node, sum.blob, compressed);
    }

    function _requireLengths(Commitments calldata commitments, uint256 committed, uint256 survivors) private pure {
        _requireLength(commitments.order.length, committed);
        _requireLength(commitments.others.length * 32, (committed - survivors) * 32);
        _requireLength(commitments.points.length, survivors * Bls12381.G1_LENGTH);
    }

    function _requireLength(uint256 given, uint256 wanted) private pure {
        if (given != wanted) revert PointsWrong(given, wanted);
    }
}
