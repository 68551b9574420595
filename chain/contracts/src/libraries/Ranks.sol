// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Payouts} from "./Payouts.sol";

/// @title The ranks of an arena, in which each hospital is alone in its cohort.
/// @notice A cohort has a rank if its median reaches the task's `rankFloor`, which is above zero. The largest median has rank 0; of
///         equal ones the lower index, which the cohorts' seed draws, comes first. Its cohort alone moves the model.
library Ranks {
    uint256 private constant FIRST = 1e36; // claims of all 64 ranks fit 128 bits

    /// @notice The claim of a rank: `decayBps` of the claim of the rank before, rounded down.
    function claim(uint256 rank, uint256 decayBps) internal pure returns (uint256 part) {
        part = FIRST;
        for (; rank != 0; --rank) {
            part = Payouts.portion(part, decayBps);
        }
    }

    /// @notice The rank of a cohort that has one. Cohorts without sums have median 0, so they precede none.
    function rankOf(int64[] memory medians, uint256 cohort) internal pure returns (uint256 rank) {
        for (uint256 other = 0; other < medians.length; ++other) {
            bool precedes = other < cohort ? medians[other] >= medians[cohort] : medians[other] > medians[cohort];
            if (precedes) ++rank;
        }
    }

    /// @param floor above zero, so that cohorts without sums have no rank.
    /// @return best the cohort of rank 0, as a bit map; 0 without one.
    /// @return claims of all ranks together.
    function standings(int64[] memory medians, int64 floor, uint256 decayBps)
        internal
        pure
        returns (uint256 best, uint256 claims)
    {
        int64 highest = 0;
        uint256 part = FIRST;
        for (uint256 cohort = 0; cohort < medians.length; ++cohort) {
            if (medians[cohort] < floor) continue;
            if (medians[cohort] > highest) (best, highest) = (1 << cohort, medians[cohort]);
            claims += part;
            part = Payouts.portion(part, decayBps);
        }
    }
}
