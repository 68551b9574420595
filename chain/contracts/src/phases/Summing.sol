// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Bits} from "../libraries/Bits.sol";
import {Bls12381, G1} from "../libraries/Bls12381.sol";
import {Cohort, Keys, Round, Task} from "../types/Task.sol";
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

    /// @dev The survivors' points with their weights. Each point is compared with its hospital's commitment. Curve and
    ///      subgroup need no check here: the KZG proof was checked, and the precompile checks them again.
    /// @param isNegated true for the negated sum.
    /// @param room number of terms to leave free at the end. @return next the first free one. @return total of weights.
    function _terms(
        Task storage task,
        uint256 number,
        uint256 survivors,
        uint256 blob,
        bytes calldata points,
        bool isNegated,
        uint256 room
    ) internal view returns (bytes memory terms, uint256 next, uint256 total) {
        uint256 count = survivors.count();
        if (points.length != count * Bls12381.G1_LENGTH) {
            revert PointsWrong(points.length, count * Bls12381.G1_LENGTH);
        }
        terms = new bytes((count + room) * Bls12381.TERM_LENGTH);
        for (uint256 i = 0; survivors >> i != 0; ++i) {
            if (!survivors.has(i)) continue;
            G1 memory point = Bls12381.pointAt(points, next);
            if (keccak256(Bls12381.compress(point)) != task.commitments[Keys.entry(number, i, blob)]) {
                revert CommitmentMismatch(task.hospitals[i].node, blob);
            }
            uint256 weight = number == 0 ? 1 : task.hospitals[i].weight;
            Bls12381.setTerm(terms, next++, point, isNegated ? Bls12381.ORDER - weight : weight);
            total += weight;
        }
    }
}
