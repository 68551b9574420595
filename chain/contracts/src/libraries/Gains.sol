// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITaskTypes} from "../interfaces/ITaskTypes.sol";
import {Bits} from "./Bits.sol";

/// @title How much a round improved its task's model, as its voters measured it.
library Gains {
    using Bits for uint256;

    /// @notice The mean of the accepted cohorts' medians, rounded down, in millionths of the metric. It is 0 if that is
    ///         not positive, and for a round that is void.
    function gain(ITaskTypes.RoundState memory round) internal pure returns (uint256) {
        uint256 accepted = round.acceptedCohorts;
        if (round.outcome != ITaskTypes.Outcome.Settled || accepted == 0) return 0;
        int256 sum;
        for (uint256 cohort = 0; accepted >> cohort != 0; ++cohort) {
            if (accepted.has(cohort)) sum += round.medians[cohort];
        }
        return sum <= 0 ? 0 : uint256(sum) / accepted.count();
    }
}
